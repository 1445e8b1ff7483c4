"""Ratings of classes become probabilities, calibrated by the labels of issued predictions.

A model rates each class by a number near its probability. Four candidates make probabilities
of ratings r of K classes: p is proportional to clip(r, e / K, 1) ** a, for e in .3, .1, .03, .01,
where each exponent a is learned by Newton steps of the log-loss. They are mixed by weights that are
proportional to exp(-L), where L is the exponentially weighted sum of a candidate's log-loss. All of
it keeps the order of ratings, so that the predicted class is that of the highest rating.

`tests/support/naive_classes.py` has the same in plain Python.
"""

import numpy as np
from libc.math cimport exp, log
from libc.stdint cimport int64_t, uint64_t

from sapwood.corrector._pending cimport Notes, is_id, take_blank

cdef enum:
    CANDIDATES = 4
    LABELS = 0                       # the table: labels so far,
    EXPONENTS = 1                    # and of each candidate its exponent,
    CURVATURES = 1 + CANDIDATES      # the exponentially weighted sum of second derivatives,
    LOSSES = 1 + 2 * CANDIDATES      # and that of its log-loss
    DOUBLES = 1 + 3 * CANDIDATES

cdef double LEAST[CANDIDATES]
LEAST[0], LEAST[1], LEAST[2], LEAST[3] = 0.3, 0.1, 0.03, 0.01
cdef double CURVATURE_KEPT = 0.999  # a row later
cdef double LOSS_KEPT = 0.998
cdef double LONGEST_STEP = 50.0     # a step is at most one over so many of its own row's
cdef double SMALLEST = 0.2          # of exponents
cdef double LARGEST = 8.0
cdef double HEAVIEST = 1e100        # that a row counts for

LEAST_RATINGS = tuple(LEAST[candidate] for candidate in range(CANDIDATES))
EXPONENT_RANGE = SMALLEST, LARGEST


cdef inline const double* taken(Notes pending, uint64_t key, double labels) noexcept nogil:
    """Take out what is pending of a row; NULL if it was not predicted, or no class was known."""
    if pending.count > 0:
        return pending.take(key, labels, NULL)
    if not is_id(key):
        take_blank(pending)
    return NULL


cdef class Calibrator:
    """What is learned about probabilities, and the weight of the rows of each class.

    Parameters
    ----------
    table : array of float, optional
        What another one has learned; of one that knows nothing by default.
    class_weights : array of float, optional
        The weight of the rows of each class.

    Examples
    --------
    >>> calibrator = Calibrator()
    >>> calibrator.widen(2)
    >>> [round(p, 3) for p in calibrator.probabilities_of([0.1, 0.9])]
    [0.108, 0.892]
    >>> for code in (1, 1, 1, 0):
    ...     calibrator.score_one([0.3, 0.7], 2, code, 1.0)
    >>> [round(p, 3) for p in calibrator.probabilities_of([0.1, 0.9])]
    [0.106, 0.894]
    """

    cdef readonly object table
    cdef readonly object class_weights
    cdef object scratch
    cdef double* own
    cdef double* totals
    cdef double* room
    cdef Py_ssize_t width

    def __init__(self, table=None, class_weights=None):
        cdef double[::1] view, weights, scratch
        if table is None:
            table = np.zeros(DOUBLES)
            table[EXPONENTS : EXPONENTS + CANDIDATES] = 1.0
        if len(table) != DOUBLES:
            raise ValueError(f"a calibration has {DOUBLES} doubles, not {len(table)}")
        view = np.array(table, np.float64)
        weights = np.zeros(2) if class_weights is None else np.array(class_weights, np.float64)
        scratch = np.zeros(4 * len(weights))
        self.table, self.class_weights, self.scratch = view.base, weights.base, scratch.base
        self.own, self.totals, self.room = &view[0], &weights[0], &scratch[0]
        self.width = len(weights)

    def copy(self):
        """Return an independent copy."""
        return Calibrator(self.table, self.class_weights)

    def widen(self, Py_ssize_t classes):
        """Have room for so many classes."""
        if classes <= self.width:
            return
        wide = np.zeros(classes)
        wide[: self.width] = self.class_weights
        cdef double[::1] weights = wide, scratch = np.zeros(4 * classes)
        self.class_weights, self.scratch = wide, scratch.base
        self.totals, self.room, self.width = &weights[0], &scratch[0], classes

    @property
    def labels(self):
        """How many labels were learned."""
        return self.own[LABELS]

    # -- one row --------------------------------------------------------------------------------

    def probabilities_of(self, list ratings):
        """Return the probabilities of classes, given their ratings."""
        cdef Py_ssize_t count = self.load(ratings), place
        cdef double* made = self.room + 3 * self.width
        cdef list found = [0.0] * count
        if count > 0:
            self.blend(self.room, count, made)
        for place in range(count):
            found[place] = made[place]
        return found

    def score_one(
        self, list ratings, Py_ssize_t known, Py_ssize_t code, double w, Notes pending=None,
        uint64_t key=0,
    ):
        """Take the label of a row, rated so just before, unless an earlier prediction is pending.

        Parameters
        ----------
        ratings : list of float
            Of the classes.
        known : int
            How many classes were known; the label of another one is not scored.
        code : int
            Of its class.
        w : float
            Of the row.
        pending : Notes, optional
            Ratings that were issued before, each after the number of labels then.
        key : int
            Of the row.
        """
        cdef const double* found = NULL
        self.load(ratings)
        if not (0 <= code < self.width and known <= self.width):
            raise ValueError("there is no such class")
        if pending is not None:
            if pending.width != 1 + self.width:
                raise ValueError("pending predictions have another number of classes")
            found = taken(pending, key, self.own[LABELS])
        self.score(self.room if found == NULL else found + 1, known, code, w)
        if pending is not None:
            pending.tidy()

    cdef Py_ssize_t load(self, list ratings) except -1:
        cdef Py_ssize_t count = len(ratings), place
        if count > self.width:
            raise ValueError("there are more ratings than classes")
        for place in range(count):
            self.room[place] = ratings[place]
        return count

    # -- many rows ------------------------------------------------------------------------------

    def probabilities(self, const double[:, ::1] ratings, Py_ssize_t known):
        """Return the probabilities of the first classes of each row; others are 0."""
        cdef Py_ssize_t rows = ratings.shape[0], row
        cdef double[:, ::1] found = np.zeros((rows, ratings.shape[1]))
        if known > min(ratings.shape[1], self.width):
            raise ValueError("there are more ratings than classes")
        if known > 0:
            with nogil:
                for row in range(rows):
                    self.blend(&ratings[row, 0], known, &found[row, 0])
        return found.base

    def score_many(
        self, const double[:, ::1] ratings, Py_ssize_t known, const int64_t[::1] codes,
        const double[:] w, Notes pending=None, const uint64_t[::1] keys=None, bint returns=False,
    ):
        """Take the labels of rows, in one step; see `score_one`.

        Returns
        -------
        array of float, or None
            If they are wanted, the probabilities of just before each label.
        """
        cdef Py_ssize_t rows = ratings.shape[0], row
        cdef const double* found
        cdef bint is_pending = pending is not None and keys is not None
        cdef double[:, ::1] told = np.zeros((rows if returns else 0, ratings.shape[1]))
        if codes.shape[0] != rows or w.shape[0] != rows or (is_pending and len(keys) != rows):
            raise ValueError("the arrays do not fit together")
        if known > min(ratings.shape[1], self.width):
            raise ValueError("there are more ratings than classes")
        if is_pending and pending.width != 1 + self.width:
            raise ValueError("pending predictions have another number of classes")
        for row in range(rows):
            if not 0 <= codes[row] < self.width:
                raise ValueError("there is no such class")
        with nogil:
            for row in range(rows):
                if returns and known > 0:
                    self.blend(&ratings[row, 0], known, &told[row, 0])
                found = NULL
                if is_pending:
                    found = taken(pending, keys[row], self.own[LABELS])
                self.score(
                    &ratings[row, 0] if found == NULL else found + 1, known, codes[row], w[row]
                )
            if is_pending:
                pending.tidy()
        return told.base if returns else None

    # -- the rules ------------------------------------------------------------------------------

    cdef void held(self, const double* ratings, Py_ssize_t count, double* made) noexcept nogil:
        """Ratings from 0 to 1, of which the highest is at least that of chance."""
        cdef double highest = 0.0, chance = 1.0 / count
        cdef Py_ssize_t place
        for place in range(count):
            made[place] = min(max(ratings[place], 0.0), 1.0)
            highest = max(highest, made[place])
        if highest >= chance:
            return
        for place in range(count):
            made[place] = made[place] / highest * chance if highest > 0.0 else chance

    cdef void candidate(
        self, const double* ratings, Py_ssize_t count, Py_ssize_t number, double* logs, double* made
    ) noexcept nogil:
        """The logarithms of clipped ratings, and the probabilities of a candidate."""
        cdef double least = LEAST[number] / count, highest = -1e300, total = 0.0
        cdef double exponent = self.own[EXPONENTS + number]
        cdef Py_ssize_t place
        for place in range(count):
            logs[place] = log(ratings[place] if ratings[place] > least else least)
            highest = max(highest, logs[place])
        for place in range(count):
            made[place] = exp(exponent * (logs[place] - highest))
            total += made[place]
        for place in range(count):
            made[place] /= total

    cdef void blend(self, const double* ratings, Py_ssize_t count, double* made) noexcept nogil:
        """The mixture of all candidates."""
        cdef double* held = self.room
        cdef double* logs = self.room + self.width
        cdef double shares[CANDIDATES]
        cdef double least = self.own[LOSSES], total = 0.0
        cdef double* own = self.room + 2 * self.width
        cdef Py_ssize_t place, number
        if count == 1:
            made[0] = 1.0
            return
        self.held(ratings, count, held)
        for number in range(1, CANDIDATES):
            least = min(least, self.own[LOSSES + number])
        for number in range(CANDIDATES):
            shares[number] = exp(least - self.own[LOSSES + number])
            total += shares[number]
        for place in range(count):
            made[place] = 0.0
        for number in range(CANDIDATES):
            self.candidate(held, count, number, logs, own)
            for place in range(count):
                made[place] += shares[number] / total * own[place]

    cdef void score(
        self, const double* ratings, Py_ssize_t known, Py_ssize_t code, double w
    ) noexcept nogil:
        """Take a label, of which the ratings were issued before."""
        cdef double* held = self.room
        cdef double* logs = self.room + self.width
        cdef double* made = self.room + 2 * self.width
        cdef double mean, variance, curvature, step
        cdef Py_ssize_t place, number
        w = min(w, HEAVIEST)
        self.own[LABELS] += 1.0
        self.totals[code] += w
        if code >= known or known < 2:
            return
        self.held(ratings, known, held)
        for number in range(CANDIDATES):
            self.candidate(held, known, number, logs, made)
            mean = variance = 0.0
            for place in range(known):
                mean += made[place] * logs[place]
            for place in range(known):
                variance += made[place] * (logs[place] - mean) * (logs[place] - mean)
            self.own[LOSSES + number] = LOSS_KEPT * self.own[LOSSES + number] - w * log(
                max(made[code], 1e-300)
            )
            curvature = CURVATURE_KEPT * self.own[CURVATURES + number] + w * variance
            self.own[CURVATURES + number] = curvature
            step = max(curvature, LONGEST_STEP * w * variance)
            if step > 0.0:
                self.own[EXPONENTS + number] = min(
                    max(self.own[EXPONENTS + number] - w * (mean - logs[code]) / step, SMALLEST),
                    LARGEST,
                )
