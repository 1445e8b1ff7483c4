"""A linear model of any number of names, of which a row has a few.

The prediction is c + sum of w z over the names of a row; z is the value divided by the largest
absolute value that its name has had. Each weight has a variance v. An update is that of a Kalman
filter whose covariance is diagonal:

    g = v z / (s + sum of v z²),   w += g (y - prediction),   v -= g v z

with s the noise. A name begins with w = 0 and PRIOR times the variance of y, divided by the mean
sum of z² of a row. Variances grow by a small share in each row that has the name, so that weights
follow changes. The noise is half the mean squared error, which is too large while much is unknown,
and half the share of it that the variances do not explain.

Weights are in a table with buckets of BUCKET slots, found by the keys of names. A full bucket lets
the table grow; at its largest size the name is evicted that has had no row for the longest time.

Its prediction and that of the model inside are combined by a ridge regression on earlier errors
(_stacking.pxd).

Rows are learned in a transaction: `begin`, `learn`, and then `commit` or `undo`.
"""

import numpy as np

from libc.math cimport fabs, fmax, fmin
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free, malloc

from sapwood.corrector._stacking cimport (
    StackRules, stacked, score_stack, solve_stack, start_stack,
)
from sapwood.sparse._rows cimport SparseRows

cdef enum:
    BUCKET = 8
    LEAST_SLOTS = 64
    STACK_DOUBLES = 5    # stack_doubles(1)
    EARLY_ROWS = 20      # before the first review of names
    REVIEW_ROWS = 500

cdef double PRIOR = 2.0
cdef double KEPT = 0.998          # by which variances are divided in each row
cdef double NOISE_FADE = 0.999
cdef double LEAST_NOISE = 1e-3    # of the variance of y
cdef double MEAN_RATE = 0.01      # of the sum of z² of a row
cdef double EVIDENCE = 9.0        # w² of a name that is handed inwards, in units of its variance
cdef StackRules RULES = StackRules(0.9995, 25.0, 0.5, 1.0)


cdef struct Slot:
    double weight
    double variance    # -1 until y has one
    double scale       # the largest |value|
    double count       # rows that had the name
    double last        # the last of them


cdef struct Head:
    double rows
    double total       # weight of rows
    double mean        # of y, and the sum of squares around it
    double squares
    double low         # range of y
    double high
    double constant    # c, and its variance
    double uncertain
    double noise       # exponentially weighted sums of squared errors, and of weights
    double noise_weight
    double terms       # mean sum of z² of a row
    double stack[STACK_DOUBLES]


cdef struct Saved:
    Py_ssize_t place
    uint64_t key
    Slot slot


HEAD = sizeof(Head) // sizeof(double)
SLOT = sizeof(Slot) // sizeof(double)
BYTES = sizeof(uint64_t) + sizeof(Slot)
LEAST_BYTES = LEAST_SLOTS * BYTES


cdef class SparseWeights:
    """A table of weights.

    Parameters
    ----------
    max_bytes : int
        What it may occupy.
    """

    cdef readonly Py_ssize_t most    # slots
    cdef Py_ssize_t slot_count       # a power of 2
    cdef object key_array            # uint64, 0 where a slot is free
    cdef object slot_array
    cdef object head_array
    cdef uint64_t* keys
    cdef Slot* slots
    cdef Head* head
    # The transaction that is open: what was before it.
    cdef readonly bint is_open
    cdef Head old_head
    cdef bint has_grown
    cdef object old_keys             # the table before it grew
    cdef object old_slots
    cdef Saved* saved                # slots before their first change
    cdef Py_ssize_t saved_count
    cdef Py_ssize_t* places          # of the terms of a row

    def __cinit__(self, Py_ssize_t max_bytes):
        self.most = LEAST_SLOTS
        while 2 * self.most * BYTES <= max_bytes:
            self.most *= 2
        self.use_table(np.zeros(LEAST_SLOTS, np.uint64), np.zeros((LEAST_SLOTS, SLOT)))
        self.head_array = np.zeros(HEAD)
        cdef double[::1] view = self.head_array
        self.head = <Head*>&view[0]
        start_stack(self.head.stack, 1, &RULES)
        self.is_open = self.has_grown = False
        self.saved, self.places = NULL, NULL

    def __dealloc__(self):
        free(self.saved)
        free(self.places)

    cdef int use_table(self, object keys, object slots) except -1:
        cdef uint64_t[::1] key_view = keys
        cdef double[:, ::1] slot_view = slots
        self.key_array, self.slot_array = keys, slots
        self.keys, self.slots = &key_view[0], <Slot*>&slot_view[0, 0]
        self.slot_count = key_view.shape[0]
        return 0

    @property
    def nbytes(self):
        """Bytes of the table."""
        return self.slot_count * BYTES + HEAD * sizeof(double)

    @property
    def rows(self):
        """The number of rows learned."""
        return self.head.rows

    @property
    def names(self):
        """How many names, and names with texts, have weights."""
        return int(np.count_nonzero(self.key_array))

    # -- places of names --------------------------------------------------------------------------

    cdef inline Py_ssize_t find(self, uint64_t key) noexcept nogil:
        """Return the place of a name, or -1."""
        cdef Py_ssize_t start = self.bucket(key), place
        for place in range(start, start + BUCKET):
            if self.keys[place] == key:
                return place
        return -1

    cdef inline Py_ssize_t bucket(self, uint64_t key) noexcept nogil:
        return <Py_ssize_t>((key >> 8) & <uint64_t>(self.slot_count // BUCKET - 1)) * BUCKET

    cdef int ensure(self, uint64_t key) except -1 nogil:
        """Give a name a place, and save what was there; it has its last row now."""
        cdef Py_ssize_t place = self.find(key), start, other
        if place < 0:
            start = self.bucket(key)
            place = start
            for other in range(start, start + BUCKET):
                if not self.keys[other]:
                    place = other
                    break
                if self.slots[other].last < self.slots[place].last:
                    place = other
            if self.keys[place] and self.slot_count < self.most:
                with gil:
                    self.grow()
                return self.ensure(key)
            self.save(place)
            self.keys[place] = key
            self.slots[place] = Slot(0.0, -1.0, 0.0, 0.0, 0.0)
        else:
            self.save(place)
        self.slots[place].last = self.head.rows + 1.0
        return 0

    cdef inline void save(self, Py_ssize_t place) noexcept nogil:
        if not self.has_grown:
            self.saved[self.saved_count] = Saved(place, self.keys[place], self.slots[place])
            self.saved_count += 1

    cdef int grow(self) except -1:
        """Double the table; buckets are large enough for all that was in half of one."""
        cdef Py_ssize_t place, to
        cdef uint64_t[::1] old_keys = self.key_array
        cdef double[:, ::1] old_slots = self.slot_array
        cdef Py_ssize_t count = self.slot_count
        if not self.has_grown:
            self.old_keys, self.old_slots = self.key_array, self.slot_array
            self.has_grown = True
        self.use_table(np.zeros(2 * count, np.uint64), np.zeros((2 * count, SLOT)))
        for place in range(count):
            if old_keys[place]:
                to = self.bucket(old_keys[place])
                while self.keys[to]:
                    to += 1
                self.keys[to] = old_keys[place]
                self.slots[to] = (<Slot*>&old_slots[place, 0])[0]
        return 0

    # -- transactions -----------------------------------------------------------------------------

    def begin(self, SparseRows rows):
        """Open a transaction in which rows are learned.

        Parameters
        ----------
        rows : SparseRows
            All of them.
        """
        cdef Py_ssize_t row, widest = 1
        for row in range(rows.count):
            widest = max(widest, rows.starts[row + 1] - rows.starts[row])
        free(self.saved)
        free(self.places)
        self.saved = <Saved*>malloc(<size_t>(rows.terms + 1) * sizeof(Saved))
        self.places = <Py_ssize_t*>malloc(<size_t>widest * sizeof(Py_ssize_t))
        if not (self.saved and self.places):
            raise MemoryError
        self.saved_count = 0
        self.old_head = self.head[0]
        self.is_open = True

    def undo(self):
        """Restore what was before the transaction."""
        cdef Py_ssize_t at
        if not self.is_open:
            return
        if self.has_grown:
            self.use_table(self.old_keys, self.old_slots)
        for at in range(self.saved_count - 1, -1, -1):
            self.keys[self.saved[at].place] = self.saved[at].key
            self.slots[self.saved[at].place] = self.saved[at].slot
        self.head[0] = self.old_head
        self.close()

    cdef void close(self) noexcept:
        self.is_open = self.has_grown = False
        self.old_keys = self.old_slots = None

    def commit(
        self, const double[::1] inner, const double[::1] linear, const double[::1] y,
        const double[::1] w, double[::1] found,
    ):
        """Take in how well both models have predicted, and close the transaction.

        Parameters
        ----------
        inner, linear : ndarray of float, shape (n,)
            What both predicted just before each row was learned.
        y, w : ndarray of float, shape (n,)
            The labels and weights.
        found : ndarray of float, shape (n,)
            Gets what they predicted together.
        """
        cdef Py_ssize_t row
        cdef Head* head = self.head
        cdef double* stack = head.stack
        if not self.is_open:
            return
        for row in range(y.shape[0]):
            found[row] = inner[row]
            if self.old_head.rows + row > 0.0:
                found[row] = stacked(stack, 1, inner[row], &linear[row])
                score_stack(
                    stack, 1, &RULES, inner[row], &linear[row], found[row], y[row], w[row], 1.0
                )
                solve_stack(stack, 1, &RULES, 1)
        self.close()

    # -- learning and predicting ------------------------------------------------------------------

    def predict(self, SparseRows rows, double[::1] linear):
        """Write linear predictions.

        Parameters
        ----------
        rows : SparseRows
            The rows.
        linear : ndarray of float, shape (n,)
            Gets the predictions.
        """
        cdef Py_ssize_t row, term, place
        cdef double sum
        with nogil:
            for row in range(rows.count):
                sum = self.head.constant
                for term in range(rows.starts[row], rows.starts[row + 1]):
                    place = self.find(rows.keys[term])
                    if place >= 0:
                        sum += self.slots[place].weight * scaled(
                            rows.values[term], self.slots[place].scale
                        )
                linear[row] = self.held(sum)

    def combine(self, const double[::1] inner, const double[::1] linear, double[::1] found):
        """Write what both models predict together.

        Parameters
        ----------
        inner, linear : ndarray of float, shape (n,)
            What each predicts.
        found : ndarray of float, shape (n,)
            Gets the result.
        """
        cdef Py_ssize_t row
        for row in range(inner.shape[0]):
            found[row] = stacked(self.head.stack, 1, inner[row], &linear[row])

    cdef inline double held(self, double prediction) noexcept nogil:
        return fmin(fmax(prediction, self.head.low), self.head.high)

    def learn(
        self, SparseRows rows, const double[::1] y, const double[::1] w, Py_ssize_t start,
        double[::1] linear,
    ):
        """Learn rows in the transaction that is open, up to the next review of names.

        Parameters
        ----------
        rows : SparseRows
            All rows of the transaction.
        y, w : ndarray of float
            Their labels and weights.
        start : int
            The first that is learned.
        linear : ndarray of float
            Gets the linear prediction of just before each.

        Returns
        -------
        int
            The row after the last that was learned.
        """
        cdef Py_ssize_t row = start
        with nogil:
            while row < rows.count and (row == start or not self.review_is_due()):
                linear[row] = self.learn_row(rows, row, y[row], w[row])
                row += 1
        return row

    cdef double learn_row(
        self, SparseRows rows, Py_ssize_t row, double y, double w
    ) except? -1.0 nogil:
        """Learn a row; return its linear prediction of just before."""
        cdef Head* head = self.head
        cdef Py_ssize_t first = rows.starts[row], count = rows.starts[row + 1] - first, at
        cdef double sum = head.constant, terms = 1.0, explained, variance, prior, noise, error, z
        cdef double gain, prediction, delta
        cdef Slot* slot
        for at in range(count):
            self.ensure(rows.keys[first + at])
        for at in range(count):  # as the table may have grown, or a name may have lost its place
            self.places[at] = self.find(rows.keys[first + at])
        for at in range(count):
            if self.places[at] >= 0:
                slot = self.slots + self.places[at]
                slot.count += 1.0
                sum += slot.weight * scaled(rows.values[first + at], slot.scale)
        prediction = self.held(sum)
        if head.rows == 0.0:
            prediction = 0.0
            head.low = head.high = head.mean = head.constant = y
            sum = y
            head.uncertain = -1.0
        head.low, head.high = fmin(head.low, y), fmax(head.high, y)
        head.rows += 1.0
        head.total += w
        delta = y - head.mean
        head.mean += w / head.total * delta
        head.squares += w * delta * (y - head.mean)
        variance = head.squares / head.total
        error = y - sum
        # Scales first: they change predictions of rows to come, not of this one.
        for at in range(count):
            if self.places[at] >= 0:
                slot = self.slots + self.places[at]
                slot.scale = fmax(slot.scale, fabs(rows.values[first + at]))
                z = scaled(rows.values[first + at], slot.scale)
                terms += z * z
        head.terms += fmax(MEAN_RATE, 1.0 / head.rows) * (terms - head.terms)
        if not variance > 0.0:
            return prediction
        prior = PRIOR * variance / head.terms
        if head.uncertain < 0.0:
            head.uncertain = prior
        explained = head.uncertain
        for at in range(count):
            if self.places[at] >= 0:
                slot = self.slots + self.places[at]
                if slot.variance < 0.0:
                    slot.variance = prior
                z = scaled(rows.values[first + at], slot.scale)
                explained += slot.variance * z * z
        noise = variance
        if head.noise_weight > 0.0:
            noise = fmax(head.noise / head.noise_weight, LEAST_NOISE * variance)
        gain = 1.0 / (explained + noise / w)
        for at in range(count):
            if self.places[at] >= 0:
                slot = self.slots + self.places[at]
                z = scaled(rows.values[first + at], slot.scale)
                slot.weight += slot.variance * z * gain * error
                slot.variance = lowered(slot.variance, z, gain, prior)
        head.constant += head.uncertain * gain * error
        head.uncertain = lowered(head.uncertain, 1.0, gain, prior)
        head.noise = NOISE_FADE * head.noise + w * 0.5 * error * error * (
            1.0 + noise / (explained + noise)
        )
        head.noise_weight = NOISE_FADE * head.noise_weight + w
        return prediction

    # -- names that the model inside gets ---------------------------------------------------------

    cdef bint review_is_due(self) noexcept nogil:
        cdef int64_t rows = <int64_t>self.head.rows
        return rows == EARLY_ROWS or (
            rows > 0 and rows % max(<int64_t>REVIEW_ROWS, <int64_t>self.slot_count // 64) == 0
        )

    @property
    def is_due(self):
        """Whether names are to be reviewed before the next row."""
        return self.review_is_due()

    def review(self, known, Py_ssize_t room):
        """Return the keys of the names that the model inside should get.

        That are names that half of the rows have, and then those that explain most.

        Parameters
        ----------
        known : set of int
            The keys of names that it has.
        room : int
            How many there may be.
        """
        cdef Py_ssize_t place
        cdef Slot* slot
        cdef bint is_frequent
        found = []
        for place in range(self.slot_count):
            if not self.keys[place] & 1:
                continue
            slot = self.slots + place
            is_frequent = slot.count >= 0.5 * self.head.rows
            if (
                is_frequent
                or (slot.variance > 0.0 and slot.weight * slot.weight > EVIDENCE * slot.variance)
            ) and self.keys[place] not in known:
                found.append(
                    (not is_frequent, -slot.weight * slot.weight * slot.count, self.keys[place])
                )
        if self.head.rows < REVIEW_ROWS:  # not enough to choose by
            found = [each for each in found if not each[0]]
            found = found if len(found) <= room else []
        return {key for _, _, key in sorted(found)[:room]}

    def weight_of(self, uint64_t key):
        """Return what a value of 1 of a name adds to the linear prediction, or NaN.

        Parameters
        ----------
        key : int
            The key of the name.
        """
        cdef Py_ssize_t place = self.find(key)
        if place < 0:
            return np.nan
        return self.slots[place].weight * scaled(1.0, self.slots[place].scale)

    # -- files ------------------------------------------------------------------------------------

    def state(self):
        """Return the number of slots, the places of those in use, their keys and contents, and all
        other numbers."""
        places = np.flatnonzero(self.key_array)
        return (
            self.slot_count, places, self.key_array[places], self.slot_array[places],
            self.head_array.copy(),
        )

    def restore(self, Py_ssize_t count, places, keys, slots, head):
        """Restore what `state` returned; nothing of it is trusted.

        Parameters
        ----------
        count, places, keys, slots, head
            As `state` returned them.

        Raises
        ------
        ValueError
            If it cannot be.
        """
        cdef Py_ssize_t at
        if count < LEAST_SLOTS or count > self.most or count & (count - 1):
            raise ValueError("the table of weights has an impossible size")
        for array, kind, shape in (
            (places, np.int64, (len(places),)), (keys, np.uint64, (len(places),)),
            (slots, np.float64, (len(places), SLOT)), (head, np.float64, (HEAD,)),
        ):
            if array.dtype != kind or array.shape != shape:
                raise ValueError("the arrays of weights are not as they were saved")
        if len(places) and (
            places[0] < 0 or places[len(places) - 1] >= count or (np.diff(places) <= 0).any()
        ):
            raise ValueError("the places of weights cannot be")
        if not (np.isfinite(slots).all() and np.isfinite(head).all()):
            raise ValueError("a weight is not finite")
        named = dict(zip(FIELDS, head.tolist()))
        last = slots[:, 4]
        if (
            (slots[:, 2:] < 0.0).any() or (last > named["rows"]).any()
            or ((slots[:, 1] < 0.0) & (slots[:, 1] != -1.0)).any()
            or min(named[name] for name in NOT_NEGATIVE) < 0.0
            or (named["uncertain"] < 0.0 and named["uncertain"] != -1.0)
            or named["low"] > named["high"] or not 0.0 <= named["theta"] <= 1.0
        ):
            raise ValueError("the weights cannot be")
        table = np.zeros(count, np.uint64), np.zeros((count, SLOT))
        table[0][places], table[1][places] = keys, slots
        self.use_table(table[0], table[1])
        for at in places:
            if not self.keys[at] or self.find(self.keys[at]) != at:
                raise ValueError("a weight is at the wrong place")
        self.head_array[:] = head


FIELDS = (
    "rows", "total", "mean", "squares", "low", "high", "constant", "uncertain", "noise",
    "noise_weight", "terms", "errors", "error_weight", "theta", "joint", "products",
)
NOT_NEGATIVE = (
    "rows", "total", "squares", "noise", "noise_weight", "terms", "errors", "error_weight",
    "products",
)


cdef inline double scaled(double value, double scale) noexcept nogil:
    """A value in units of the largest one; one beyond that counts as it."""
    if scale <= 0.0:
        return 0.0
    value /= scale
    return fmin(fmax(value, -1.0), 1.0)


cdef inline double lowered(double variance, double z, double gain, double prior) noexcept nogil:
    """A variance after a row, which never rises above that of a new name."""
    cdef double after = variance - variance * z * gain * variance * z
    after = fmax(after, 0.0)
    return fmin(after / KEPT, fmax(prior, after))
