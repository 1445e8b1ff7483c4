"""Ratings of classes become probabilities, calibrated by the labels of issued predictions.

A model rates each class by a number near its probability. Four candidates make probabilities
of ratings r of K classes: p is proportional to clip(r, e / K, 1) ** a, for e in .3, .1, .03, .01,
where each exponent a is learned by Newton steps of the log-loss. They are mixed by weights that are
proportional to exp(-L), where L is the exponentially weighted sum of a candidate's log-loss. All of
it keeps the order of ratings, so that the predicted class is that of the highest rating.

Prediction sets hold each class whose probability is at least a threshold. The threshold of a level
is a quantile of the probabilities that rows gave to their actual classes, exponentially weighted.
The order of that quantile is corrected for each level by whether the last sets held their labels:
adaptive conformal inference (Gibbs and Candès, 2021).

`tests/support/naive_classes.py` has the same in plain Python.
"""

import numpy as np
from libc.math cimport exp, log
from libc.stdint cimport int64_t, uint64_t

from sapwood.corrector._pending cimport PendingPredictions, is_id, take_unrecorded

cdef enum:
    CANDIDATES = 4
    LABELS = 0                       # the table: labels so far,
    EXPONENTS = 1                    # and of each candidate its exponent,
    CURVATURES = 1 + CANDIDATES      # the exponentially weighted sum of second derivatives,
    LOSSES = 1 + 2 * CANDIDATES      # and that of its log-loss
    DOUBLES = 1 + 3 * CANDIDATES

cdef enum:
    LEVELS = 5                       # the table of sets: the order of the quantile of each level,
    BINS = 64                        # and the weight of rows by the logit of their probability
    SET_DOUBLES = LEVELS + BINS
    ROOM = 4 + 2 * CANDIDATES        # doubles of each class to compute with

cdef double NOMINAL[LEVELS]
NOMINAL[0], NOMINAL[1], NOMINAL[2], NOMINAL[3], NOMINAL[4] = 0.5, 0.8, 0.9, 0.95, 0.99
cdef double STEEPEST = 8.0          # logits of the first and the last bin
cdef double SET_KEPT = 0.999        # a row later
cdef double SET_STEP = 0.05         # of an order, as a part of the variance of being missed
cdef double MOST_ORDER = 2.0        # times the share that may be missed
cdef double FEWEST = 20.0           # rows, before which a set holds all classes

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
SET_LEVELS = tuple(NOMINAL[level] for level in range(LEVELS))
SET_ORDERS = tuple(MOST_ORDER * (1.0 - NOMINAL[level]) for level in range(LEVELS))


cdef inline const double* taken(
    PendingPredictions pending, uint64_t key, double labels
) noexcept nogil:
    """Take out what is pending of a row; NULL if it was not predicted, or no class was known."""
    if pending.count > 0:
        return pending.take(key, labels, NULL)
    if not is_id(key):
        take_unrecorded(pending)
    return NULL


cdef class Calibrator:
    """What is learned about probabilities, and the weight of the rows of each class.

    Parameters
    ----------
    table : array of float, optional
        What another one has learned; of one that knows nothing by default.
    class_weights : array of float, optional
        The weight of the rows of each class.
    sets : array of float, optional
        What another one has learned about prediction sets.

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
    cdef readonly object sets
    cdef object scratch
    cdef double* orders
    cdef double* bins
    cdef double* own
    cdef double* totals
    cdef double* room
    cdef Py_ssize_t width

    def __init__(self, table=None, class_weights=None, sets=None):
        cdef double[::1] view, weights, scratch, own_sets
        if table is None:
            table = np.zeros(DOUBLES)
            table[EXPONENTS : EXPONENTS + CANDIDATES] = 1.0
        if len(table) != DOUBLES:
            raise ValueError(f"a calibration has {DOUBLES} doubles, not {len(table)}")
        view = np.array(table, np.float64)
        weights = np.zeros(2) if class_weights is None else np.array(class_weights, np.float64)
        scratch = np.zeros(ROOM * len(weights))
        self.table, self.class_weights, self.scratch = view.base, weights.base, scratch.base
        self.own, self.totals, self.room = &view[0], &weights[0], &scratch[0]
        self.width = len(weights)
        if sets is None:
            sets = np.zeros(SET_DOUBLES)
            sets[:LEVELS] = 1.0 - np.array(SET_LEVELS)
        if len(sets) != SET_DOUBLES:
            raise ValueError(f"the table of sets has {SET_DOUBLES} doubles, not {len(sets)}")
        own_sets = np.array(sets, np.float64)
        self.sets, self.orders, self.bins = own_sets.base, &own_sets[0], &own_sets[LEVELS]

    def copy(self):
        """Return an independent copy."""
        return Calibrator(self.table, self.class_weights, self.sets)

    def threshold(self, double level):
        """Return the least probability of a class in prediction sets of a level."""
        cdef double order = 1.0 - level, right
        cdef Py_ssize_t at = 0
        if level <= NOMINAL[0]:
            return self.quantile(order + self.orders[0] - (1.0 - NOMINAL[0]))
        while at < LEVELS - 1 and NOMINAL[at + 1] < level:
            at += 1
        if at == LEVELS - 1:  # between the last level and 1
            return self.quantile(order / (1.0 - NOMINAL[at]) * self.orders[at])
        right = (level - NOMINAL[at]) / (NOMINAL[at + 1] - NOMINAL[at])
        return self.quantile((1.0 - right) * self.orders[at] + right * self.orders[at + 1])

    def widen(self, Py_ssize_t classes):
        """Have room for so many classes."""
        if classes <= self.width:
            return
        wide = np.zeros(classes)
        wide[: self.width] = self.class_weights
        cdef double[::1] weights = wide, scratch = np.zeros(ROOM * classes)
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
        cdef double* made = self.given() + self.width
        cdef list found = [0.0] * count
        if count > 0:
            self.blend(self.given(), count, made)
        for place in range(count):
            found[place] = made[place]
        return found

    def score_one(
        self, list ratings, Py_ssize_t known, Py_ssize_t code, double w,
        PendingPredictions pending=None,
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
        pending : PendingPredictions, optional
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
        self.score(self.given() if found == NULL else found + 1, known, code, w, False)
        if pending is not None:
            pending.shrink()

    cdef Py_ssize_t load(self, list ratings) except -1:
        cdef Py_ssize_t count = len(ratings), place
        if count > self.width:
            raise ValueError("there are more ratings than classes")
        for place in range(count):
            self.given()[place] = ratings[place]
        return count

    cdef inline double* given(self) noexcept nogil:
        """The ratings of one row, and behind them its probabilities."""
        return self.room + (2 + 2 * CANDIDATES) * self.width

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
        const double[:] w, PendingPredictions pending=None, const uint64_t[::1] keys=None,
        bint returns=False,
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
                    &ratings[row, 0] if found == NULL else found + 1,
                    known,
                    codes[row],
                    w[row],
                    returns and found == NULL,
                )
            if is_pending:
                pending.shrink()
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

    cdef void rate(self, const double* ratings, Py_ssize_t count) noexcept nogil:
        """Clipped ratings, and of each candidate their logarithms and probabilities.

        Ratings below the least of a candidate are all alike, and most are as the classes of a row
        are few: their logarithm and their power are computed once.
        """
        cdef double* held = self.room
        cdef double* plain = self.room + self.width
        cdef double* logs
        cdef double* made
        cdef double least, floor, power, highest, total, exponent
        cdef Py_ssize_t place, number
        self.held(ratings, count, held)
        least = LEAST[CANDIDATES - 1] / count
        for place in range(count):
            plain[place] = log(held[place]) if held[place] > least else 0.0
        for number in range(CANDIDATES):
            logs, made = self.logs_of(number), self.made_of(number)
            least, highest, total = LEAST[number] / count, -1e300, 0.0
            exponent, floor = self.own[EXPONENTS + number], log(least)
            for place in range(count):
                logs[place] = plain[place] if held[place] > least else floor
                highest = max(highest, logs[place])
            power = exp(exponent * (floor - highest))
            for place in range(count):
                if held[place] > least:
                    made[place] = exp(exponent * (logs[place] - highest))
                else:
                    made[place] = power
                total += made[place]
            for place in range(count):
                made[place] /= total

    cdef inline double* logs_of(self, Py_ssize_t number) noexcept nogil:
        return self.room + (2 + 2 * number) * self.width

    cdef inline double* made_of(self, Py_ssize_t number) noexcept nogil:
        return self.room + (3 + 2 * number) * self.width

    cdef void blend(self, const double* ratings, Py_ssize_t count, double* made) noexcept nogil:
        """The mixture of all candidates, which `rate` has then computed."""
        cdef double shares[CANDIDATES]
        cdef double least = self.own[LOSSES], total = 0.0
        cdef double* own
        cdef Py_ssize_t place, number
        if count == 1:
            made[0] = 1.0
            return
        self.rate(ratings, count)
        for number in range(1, CANDIDATES):
            least = min(least, self.own[LOSSES + number])
        for number in range(CANDIDATES):
            shares[number] = exp(least - self.own[LOSSES + number])
            total += shares[number]
        for place in range(count):
            made[place] = 0.0
        for number in range(CANDIDATES):
            own = self.made_of(number)
            for place in range(count):
                made[place] += shares[number] / total * own[place]

    cdef double quantile(self, double order) noexcept nogil:
        """The probability of actual classes that a share of rows is below; 0 if none may be."""
        cdef double total = 0.0, below, missing
        cdef Py_ssize_t place
        for place in range(BINS):
            total += self.bins[place]
        if total < FEWEST:
            return 0.0
        missing = order * (total + 1.0) - 1.0
        if missing <= 0.0:
            return 0.0
        for place in range(BINS):
            below = self.bins[place]
            if missing < below:
                missing = (place + missing / below) / BINS
                return 1.0 / (1.0 + exp(STEEPEST * (1.0 - 2.0 * missing)))
            missing -= below
        return 1.0

    cdef void score_set(self, double p, bint is_highest, double w) noexcept nogil:
        """Take the probability of an actual class."""
        cdef double share, miss
        cdef Py_ssize_t level, place
        for level in range(LEVELS):
            share = 1.0 - NOMINAL[level]
            miss = 0.0 if is_highest or p >= self.quantile(self.orders[level]) else 1.0
            self.orders[level] = min(
                max(self.orders[level] + SET_STEP * share * (1.0 - share) * (share - miss), 0.0),
                MOST_ORDER * share,
            )
        for place in range(BINS):
            self.bins[place] *= SET_KEPT
        p = min(max(p, 1e-9), 1.0 - 1e-9)
        share = (log(p / (1.0 - p)) + STEEPEST) / (2.0 * STEEPEST) * BINS
        self.bins[<Py_ssize_t>min(max(share, 0.0), BINS - 1.0)] += min(w, 1.0)

    cdef void score(
        self, const double* ratings, Py_ssize_t known, Py_ssize_t code, double w, bint is_rated
    ) noexcept nogil:
        """Take a label, of which the ratings were issued before; `rate` may have seen them."""
        cdef double* held = self.room
        cdef double* logs
        cdef double* made
        cdef double mean, variance, curvature, step, mixed = 0.0, total = 0.0, share
        cdef double least = self.own[LOSSES]
        cdef bint is_highest = True
        cdef Py_ssize_t place, number
        w = min(w, HEAVIEST)
        self.own[LABELS] += 1.0
        self.totals[code] += w
        if code >= known or known < 2:
            return
        if not is_rated:
            self.rate(ratings, known)
        for place in range(known):
            if held[place] > held[code] or (held[place] == held[code] and place < code):
                is_highest = False
        for number in range(1, CANDIDATES):
            least = min(least, self.own[LOSSES + number])
        for number in range(CANDIDATES):
            logs, made = self.logs_of(number), self.made_of(number)
            share = exp(least - self.own[LOSSES + number])
            mixed += share * made[code]
            total += share
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
        self.score_set(mixed / total, is_highest, w)
