"""The last layer by itself, for the predictions of any model."""

import numpy as np
from libc.math cimport fabs

from sapwood.corrector._blend cimport blend_doubles
from sapwood.corrector._range cimport FIRST_WINDOW as WINDOW, MOST_RECORDS as RECORDS

LEVEL_RATES = (0.02, 0.1, 0.4)
MOST_RECORDS, FIRST_WINDOW = RECORDS, WINDOW
RANGE_PARTS = ("seen", "window", "low_records", "high_records", "low_before", "high_before")
LAYER_DOUBLES = sizeof(LayerState) // sizeof(double)
SAYING_DOUBLES = sizeof(CorrectedPrediction) // sizeof(double)
cdef double LARGEST = 1e100  # prediction of a model that is corrected

# Chosen on bike, Beijing PM2.5, california, friedman-gsg, demand and daily temperatures, each with
# labels at once, by batches and late; `python -m benchmarks timings` shows all streams.
cdef LayerRules RULES = LayerRules(
    blend=BlendRules(fade=0.999, precision=100.0, centre=0.0, most=1.0),
    fade=0.999,
    precision=1.0 / 0.09,
    margin=0.1,
)


cdef const LayerRules* layer_rules() noexcept nogil:
    """The rules of every last layer."""
    return &RULES


cdef void settle(LayerState* layer, const LayerRules* rules) noexcept nogil:
    """Compute slopes, coefficients and weights from all labels so far."""
    settle_levels(&layer.levels)
    settle_transfer(&layer.transfer, rules.precision)
    settle_blend(layer.blend, CANDIDATES, &rules.blend, 1)


def last_label_share(const double[::1] state):
    """Return the share of the last label in what a layer, given by its doubles, predicts."""
    return last_share(<const LayerState*>&state[0])


def fresh_layer():
    """Return the doubles of a layer that has learned nothing."""
    if BLEND != blend_doubles(CANDIDATES):
        raise RuntimeError("the weights of the corrector have another size than they should")
    state = np.zeros(LAYER_DOUBLES)
    state[:LEVELS] = LEVEL_RATES
    return state


def layer_parts():
    """Return, for each part of a layer's doubles, its name, where it starts, and its size."""
    parts, start = [], 0
    for name, size in (
        *((name, LEVELS) for name in ("rate", "level", "outlook", "slope", "joint", "square")),
        ("judged", 1), ("lateness", 1), ("waiting", 1), ("low", 1), ("high", 1),
        *((name, 1) for name in RANGE_PARTS),
        ("coefficient", TERMS), ("term_joint", TERMS), ("term_products", TERMS * (TERMS + 1) // 2),
        ("term_square", 1), ("term_weight", 1), ("known", KNOWN), ("first", 1),
        ("blend_square", 1), ("blend_weight", 1), ("theta", CANDIDATES),
        ("blend_joint", CANDIDATES), ("blend_products", CANDIDATES * (CANDIDATES + 1) // 2),
    ):
        parts.append((name, start, size))
        start += size
    if start != LAYER_DOUBLES:
        raise RuntimeError("the parts of a layer are other than they should be")
    return parts


cdef class LastLayer:
    """Blend a model's predictions with what followed from earlier labels.

    Predictions beyond `LARGEST`, as a model that diverges makes, are issued as they are, and nothing
    is learned from their rows; nor from those whose label is missing.

    Parameters
    ----------
    state : array of float, optional
        The doubles of a layer that has learned rows; a copy is made.
    rows : float
        How many it has learned.

    Examples
    --------
    >>> import numpy as np
    >>> walk = np.cumsum(np.random.default_rng(1).normal(size=2000))
    >>> layer = LastLayer()
    >>> said = layer.predict_learn(np.zeros(2000), walk)      # a model that knows nothing
    >>> bool(np.mean((walk - said)[100:] ** 2) < 2.0)          # follows a walk all the same
    True
    """

    cdef readonly object state
    cdef readonly double rows
    cdef LayerState* layer

    def __init__(self, state=None, double rows=0.0):
        cdef double[::1] view = fresh_layer() if state is None else np.array(state, np.float64)
        if view.shape[0] != LAYER_DOUBLES:
            raise ValueError(f"a layer has {LAYER_DOUBLES} doubles, not {view.shape[0]}")
        self.state, self.rows = view.base, rows
        self.layer = <LayerState*>&view[0]

    def copy(self):
        """Return an independent copy."""
        return LastLayer(self.state, self.rows)

    def say(self, const double[::1] predictions):
        """Return what comes of predictions, and notes by which to judge it later.

        Parameters
        ----------
        predictions : array of float, shape (n,)
            Of the model.

        Returns
        -------
        tuple of arrays, shapes (n,) and (n, SAYING_DOUBLES)
            What is said, and the notes that `learn` takes with the labels.
        """
        cdef Py_ssize_t row, rows = predictions.shape[0]
        cdef double[::1] said = np.array(predictions)
        cdef double[:, ::1] notes = np.zeros((rows, SAYING_DOUBLES))
        cdef CorrectedPrediction* saying
        if self.rows > 0.0:
            for row in range(rows):
                if fabs(predictions[row]) <= LARGEST:
                    saying = <CorrectedPrediction*>&notes[row, 0]
                    say(self.layer, &RULES, predictions[row], self.rows, saying)
                    said[row] = issued(self.layer, saying)
        return said.base, notes.base

    def learn(
        self,
        const double[::1] predictions,
        const double[::1] y,
        const double[:, ::1] notes=None,
        const double[::1] w=None,
        bint at_once=False,
    ):
        """Learn labels; return what is said of each prediction just before.

        Parameters
        ----------
        predictions : array of float, shape (n,)
            What the model predicts for their rows just before it learns them.
        y : array of float, shape (n,)
            The labels; NaN where one is missing.
        notes : array of float, shape (n, SAYING_DOUBLES), optional
            What `say` returned for these rows, zeros or NaN for a row that was never predicted;
            without it none was.
        w : array of float, shape (n,), optional
            Their weights; 1 each if not given.
        at_once : bool
            Whether the rows are judged by what is said just before.
        """
        cdef Py_ssize_t row, rows = y.shape[0]
        cdef double[::1] said = np.array(predictions)
        cdef CorrectedPrediction saying
        cdef const CorrectedPrediction* judged
        if predictions.shape[0] != rows or (w is not None and w.shape[0] != rows):
            raise ValueError("the arrays do not fit together")
        if notes is not None and (notes.shape[0] != rows or notes.shape[1] != SAYING_DOUBLES):
            raise ValueError("the notes do not fit the labels")
        for row in range(rows):
            if not fabs(predictions[row]) <= LARGEST:
                continue
            judged = NULL if notes is None else <const CorrectedPrediction*>&notes[row, 0]
            if self.rows > 0.0:
                say(self.layer, &RULES, predictions[row], self.rows, &saying)
                said[row] = issued(self.layer, &saying)
                judged = &saying if at_once else judged
            if y[row] == y[row]:
                self.take(predictions[row], y[row], 1.0 if w is None else w[row], judged)
        return said.base

    def predict_learn(self, const double[::1] predictions, const double[::1] y):
        """Return what is said of each prediction, before its label is learned.

        Parameters
        ----------
        predictions, y : arrays of float, shape (n,)
            What the model predicted for each row, and the labels.
        """
        return self.learn(predictions, y, at_once=True)

    cdef void take(
        self, double model, double y, double w, const CorrectedPrediction* saying
    ) noexcept nogil:
        if self.rows == 0.0:
            start_layer(self.layer, &RULES, y)
        else:
            # What was said before the first label is a note of zeros.
            if saying != NULL and saying.known > 0.0:
                judge(self.layer, &RULES, saying, y, w, self.rows)
            follow(self.layer, model, y, w)
        self.rows += 1.0
