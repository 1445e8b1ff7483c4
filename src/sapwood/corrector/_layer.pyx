"""The error-correction layer by itself, for the predictions of any model."""

import numpy as np
from libc.math cimport fabs

from sapwood.corrector._stacking cimport stack_doubles
from sapwood.corrector._range cimport FIRST_WINDOW as WINDOW, MOST_RECORDS as RECORDS

LEVEL_RATES = (0.02, 0.1, 0.4)
MOST_RECORDS, FIRST_WINDOW = RECORDS, WINDOW
RANGE_PARTS = ("seen", "window", "low_records", "high_records", "low_before", "high_before")
LAYER_DOUBLES = sizeof(LayerState) // sizeof(double)
CORRECTED_DOUBLES = sizeof(CorrectedPrediction) // sizeof(double)
cdef double LARGEST = 1e100  # prediction of a model that is corrected

# Chosen on bike, Beijing PM2.5, california, friedman-gsg, demand and daily temperatures, each with
# labels at once, by batches and late; `python -m benchmarks timings` shows all streams.
cdef LayerRules RULES = LayerRules(
    stack=StackRules(decay=0.999, precision=100.0, centre=0.0, most=1.0),
    decay=0.999,
    precision=1.0 / 0.09,
    margin=0.1,
)


cdef const LayerRules* layer_rules() noexcept nogil:
    """The rules of every error-correction layer."""
    return &RULES


cdef void solve_layer(LayerState* layer, const LayerRules* rules) noexcept nogil:
    """Compute slopes, coefficients and weights from all labels so far."""
    solve_levels(&layer.levels)
    solve_transfer(&layer.transfer, rules.precision)
    solve_stack(layer.stack, CANDIDATES, &rules.stack, 1)


def last_label_share(const double[::1] state):
    """Return the share of the last label in the predictions of a layer, given by its doubles."""
    return last_share(<const LayerState*>&state[0])


def fresh_layer():
    """Return the doubles of a layer that has learned nothing."""
    if STACK_DOUBLES != stack_doubles(CANDIDATES):
        raise RuntimeError("the weights of the corrector have another size than they should")
    state = np.zeros(LAYER_DOUBLES)
    state[:LEVELS] = LEVEL_RATES
    return state


def layer_parts():
    """Return, for each part of a layer's doubles, its name, where it starts, and its size."""
    parts, start = [], 0
    for name, size in (
        *((name, LEVELS) for name in ("rate", "level", "predicted", "slope", "joint", "square")),
        ("scored", 1), ("lateness", 1), ("waiting", 1), ("low", 1), ("high", 1),
        *((name, 1) for name in RANGE_PARTS),
        ("coefficient", TERMS), ("term_joint", TERMS), ("term_products", TERMS * (TERMS + 1) // 2),
        ("term_square", 1), ("term_weight", 1), ("known", KNOWN), ("first", 1),
        ("stack_square", 1), ("stack_weight", 1), ("theta", CANDIDATES),
        ("stack_joint", CANDIDATES), ("stack_products", CANDIDATES * (CANDIDATES + 1) // 2),
    ):
        parts.append((name, start, size))
        start += size
    if start != LAYER_DOUBLES:
        raise RuntimeError("the parts of a layer are other than they should be")
    return parts


cdef class ErrorCorrectionLayer:
    """Correct the predictions of any model by earlier labels.

    Predictions that are not finite, or beyond `LARGEST`, are issued as they are. Nothing is learned
    from their rows, nor from rows without a label.

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
    >>> layer = ErrorCorrectionLayer()
    >>> issued = layer.predict_learn(np.zeros(2000), walk)      # a model that knows nothing
    >>> bool(np.mean((walk - issued)[100:] ** 2) < 2.0)          # follows a random walk
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
        return ErrorCorrectionLayer(self.state, self.rows)

    def predict(self, const double[::1] predictions):
        """Return corrected predictions, and the records by which to score them later.

        Parameters
        ----------
        predictions : array of float, shape (n,)
            Of the model.

        Returns
        -------
        tuple of arrays, shapes (n,) and (n, CORRECTED_DOUBLES)
            The corrected predictions, and the records that `learn` takes with the labels.
        """
        cdef Py_ssize_t row, rows = predictions.shape[0]
        cdef double[::1] issued = np.array(predictions)
        cdef double[:, ::1] records = np.zeros((rows, CORRECTED_DOUBLES))
        cdef CorrectedPrediction* corrected
        if self.rows > 0.0:
            for row in range(rows):
                if fabs(predictions[row]) <= LARGEST:
                    corrected = <CorrectedPrediction*>&records[row, 0]
                    predict_layer(self.layer, &RULES, predictions[row], self.rows, corrected)
                    issued[row] = issued_prediction(self.layer, corrected)
        return issued.base, records.base

    def learn(
        self,
        const double[::1] predictions,
        const double[::1] y,
        const double[:, ::1] records=None,
        const double[::1] w=None,
        bint at_once=False,
    ):
        """Learn labels; return the corrected predictions of just before.

        Parameters
        ----------
        predictions : array of float, shape (n,)
            What the model predicts for their rows just before it learns them.
        y : array of float, shape (n,)
            The labels; NaN where one is missing.
        records : array of float, shape (n, CORRECTED_DOUBLES), optional
            What `predict` returned for these rows, zeros or NaN for a row that was never predicted;
            without it none was.
        w : array of float, shape (n,), optional
            Their weights; 1 each if not given.
        at_once : bool
            Whether the predictions of just before are scored, instead of `records`.
        """
        cdef Py_ssize_t row, rows = y.shape[0]
        cdef double[::1] issued = np.array(predictions)
        cdef CorrectedPrediction corrected
        cdef const CorrectedPrediction* scored
        if predictions.shape[0] != rows or (w is not None and w.shape[0] != rows):
            raise ValueError("the arrays do not fit together")
        if records is not None and (
            records.shape[0] != rows or records.shape[1] != CORRECTED_DOUBLES
        ):
            raise ValueError("the records do not fit the labels")
        for row in range(rows):
            if not fabs(predictions[row]) <= LARGEST:
                continue
            scored = NULL if records is None else <const CorrectedPrediction*>&records[row, 0]
            if self.rows > 0.0:
                predict_layer(self.layer, &RULES, predictions[row], self.rows, &corrected)
                issued[row] = issued_prediction(self.layer, &corrected)
                scored = &corrected if at_once else scored
            if y[row] == y[row]:
                self.take(predictions[row], y[row], 1.0 if w is None else w[row], scored)
        return issued.base

    def predict_learn(self, const double[::1] predictions, const double[::1] y):
        """Return the corrected prediction of each row, before its label is learned.

        Parameters
        ----------
        predictions, y : arrays of float, shape (n,)
            What the model predicted for each row, and the labels.
        """
        return self.learn(predictions, y, at_once=True)

    cdef void take(
        self, double model, double y, double w, const CorrectedPrediction* corrected
    ) noexcept nogil:
        if self.rows == 0.0:
            start_layer(self.layer, &RULES, y)
        else:
            # The record of a prediction before the first label has zeros.
            if corrected != NULL and corrected.known > 0.0:
                score_layer(self.layer, &RULES, corrected, y, w, self.rows)
            update_layer(self.layer, model, y, w)
        self.rows += 1.0
