"""The quantizer that needs no radius: at most so many slots, ascending, of dyadic borders.

Each slot is [h 2^k, (h + 1) 2^k). All have one level k, the *radius* being 2^k, but for slots that
were merged because they mattered little. The radius starts so fine that each double has its own slot,
and is doubled, exactly as floor(h / 2), until the slots suffice. As slots of one level or of two
are either disjoint or nested, coarsening and merging never have to divide a slot.
"""

cimport cython
import numpy as np
from libc.math cimport frexp, isfinite
from libc.string cimport memcpy, memmove

from sapwood.moments cimport CELL, M2, PIVOT, SHIFT
from sapwood.observers._rows cimport CELLS, WEIGHT, row_add, row_clear, row_merge, row_width
from sapwood.observers._store import resized

# What merging two slots may cost at the most for the radius to be doubled, times the slots.
cdef double DEAR = 8.0


@cython.final
cdef class GridStore(Store):
    """At most `slots` slots, all data in them, none where there is no data."""

    def __init__(self, Py_ssize_t targets, Py_ssize_t slots):
        Store.__init__(self, targets)
        self.slots = slots
        self.level = FINEST
        self.find_anchor()
        self.ends = np.empty(0)

    @property
    def radius(self):
        """The width of a slot, tails aside."""
        return ldexp(1.0, self.level)

    cdef bint take_one(self, double x, const double* y, double w) noexcept nogil:
        cdef Py_ssize_t row = self.find(x)
        if row >= 0 and x < self.ends[row]:
            row_add(&self.table[row, 0], self.targets, x, y, w)
            return True
        if self.count + 1 >= self.keys.shape[0]:
            return False
        self.insert(row + 1, x)
        row_add(&self.table[row + 1, 0], self.targets, x, y, w)
        if self.count > self.slots:
            self.coarsen()
        return True

    cdef Py_ssize_t take(
        self, const double[::1] x, const double[:, ::1] y, const double[:] w, Py_ssize_t start
    ) noexcept nogil:
        cdef Py_ssize_t row
        for row in range(start, x.shape[0]):
            if not self.take_one(x[row], &y[row, 0], w[row]):
                return row
        return x.shape[0]

    cdef Py_ssize_t find(self, double x) noexcept nogil:
        """The last slot whose lower border is at most x, or -1.

        Where slots follow one another without a gap, it is found by counting from the anchor.
        """
        cdef double place
        cdef Py_ssize_t row
        if self.count > 0:
            place = self.anchor + (x - self.keys[self.anchor]) * self.density
            if 0.0 <= place < self.count:
                row = <Py_ssize_t>place
                if self.keys[row] <= x < self.ends[row]:
                    return row
        return last_at_or_below(self.keys, self.count, x)

    cdef void find_anchor(self) noexcept nogil:
        """Let the anchor be the slot that parts the weight in half."""
        cdef double weight = 0.0, half = 0.0
        cdef Py_ssize_t row
        for row in range(self.count):
            weight += self.table[row, WEIGHT]
        self.anchor = 0
        while self.anchor < self.count - 1:
            half += self.table[self.anchor, WEIGHT]
            if half >= 0.5 * weight:
                break
            self.anchor += 1
        self.density = ldexp(1.0, -self.level)

    cdef void insert(self, Py_ssize_t row, double x) noexcept nogil:
        """Make an empty slot for x at a row, moving those from there on up by one."""
        cdef Py_ssize_t moved = self.count - row
        cdef Py_ssize_t width = row_width(self.targets)
        if moved > 0:
            memmove(&self.keys[row + 1], &self.keys[row], moved * sizeof(double))
            memmove(&self.ends[row + 1], &self.ends[row], moved * sizeof(double))
            memmove(&self.table[row + 1, 0], &self.table[row, 0], moved * width * sizeof(double))
        self.keys[row] = lower_border(x, self.level, &self.ends[row])
        row_clear(&self.table[row, 0], self.targets)
        if self.count > 0 and row <= self.anchor:
            self.anchor += 1
        self.count += 1

    cdef void coarsen(self) noexcept nogil:
        """Bring the number of slots back to what is allowed.

        The radius is doubled, unless that would merge slots that matter: then the slots that
        matter least are merged, wherever they are.
        """
        self.sum_up()
        self.level = max(self.level, level_below_gaps(self.keys, self.count))
        self.widen()
        while self.count > self.slots:
            if self.cost_of_doubling() * self.slots > DEAR:
                self.merge_cheapest()
            else:
                self.level += 1
                self.widen()
        self.find_anchor()

    cdef void sum_up(self) noexcept nogil:
        """Merge all rows into the spare one, the last of the table."""
        cdef Py_ssize_t row, spare = self.table.shape[0] - 1
        row_clear(&self.table[spare, 0], self.targets)
        for row in range(self.count):
            row_merge(&self.table[spare, 0], &self.table[row, 0], self.targets)

    cdef double cost(self, Py_ssize_t row, Py_ssize_t other) noexcept nogil:
        """What merging two slots costs: their share of the weight, and of the variance it hides.

        The latter is the variance between the two; it is what a cut between them could explain.
        """
        cdef const double* whole = &self.table[self.table.shape[0] - 1, 0]
        cdef const double* a = &self.table[row, 0]
        cdef const double* b = &self.table[other, 0]
        cdef double hidden = 0.0
        cdef Py_ssize_t target, column = CELLS
        for target in range(self.targets):
            if whole[column + M2] > 0.0:
                hidden += m2_between(a, b, column) / whole[column + M2]
            column += CELL
        return (a[WEIGHT] + b[WEIGHT]) / whole[WEIGHT] + hidden / self.targets

    cdef double cost_of_doubling(self) noexcept nogil:
        """The largest cost of all pairs that doubling the radius would merge."""
        cdef Py_ssize_t row
        cdef double upper, result = 0.0
        for row in range(1, self.count):
            lower_border(self.keys[row - 1], self.level + 1, &upper)
            if self.keys[row] < upper:
                result = max(result, self.cost(row - 1, row))
        return result

    cdef void merge_cheapest(self) noexcept nogil:
        """Merge neighbours that matter little, until an eighth of the slots is free."""
        cdef Py_ssize_t wanted = self.slots - self.slots // 8
        cdef double limit = 0.125 / self.slots
        while self.count > wanted:
            self.merge_below(limit)
            limit *= 2.0

    cdef void merge_below(self, double limit) noexcept nogil:
        """Merge neighbours whose cost is within a limit into the smallest slot that holds both.

        Not where that slot would reach into another neighbour.
        """
        cdef Py_ssize_t row, kept = 0
        cdef double lower, upper
        for row in range(1, self.count):
            if self.cost(kept, row) <= limit:
                lower = common_slot(self.keys[kept], self.keys[row], self.level, &upper)
                if (
                    lower < upper
                    and (kept == 0 or self.ends[kept - 1] <= lower)
                    and (row + 1 == self.count or upper <= self.keys[row + 1])
                ):
                    row_merge(&self.table[kept, 0], &self.table[row, 0], self.targets)
                    self.keys[kept] = lower
                    self.ends[kept] = upper
                    continue
            kept += 1
            self.move(row, kept)
        self.count = kept + 1

    cdef void widen(self) noexcept nogil:
        """Bring slots up to the store's level, merging those that fall together."""
        cdef Py_ssize_t row, kept = -1
        cdef double lower, upper
        for row in range(self.count):
            if kept >= 0 and self.keys[row] < self.ends[kept]:
                row_merge(&self.table[kept, 0], &self.table[row, 0], self.targets)
                continue
            lower = self.keys[row]
            upper = self.ends[row]
            if upper - lower < ldexp(1.0, self.level):
                lower = lower_border(lower, self.level, &upper)
            kept += 1
            self.move(row, kept)
            self.keys[kept] = lower
            self.ends[kept] = upper
        self.count = kept + 1

    cdef void move(self, Py_ssize_t row, Py_ssize_t to) noexcept nogil:
        """Move a slot to another row."""
        if row != to:
            self.keys[to] = self.keys[row]
            self.ends[to] = self.ends[row]
            memcpy(&self.table[to, 0], &self.table[row, 0], row_width(self.targets) * sizeof(double))

    cdef Py_ssize_t room(self):
        # One more than there may be, for the moment before they are coarsened; one is spare.
        return min(Store.room(self), self.slots + 1) + 1

    cdef int resize(self, Py_ssize_t size) except -1:
        Store.resize(self, size)
        self.ends = resized(self.ends.base, size)
        return 0

    cdef int trim(self) except -1:
        # Coarsening halves the number of slots; the room for 16 more is kept.
        if self.keys.shape[0] > self.room() + 8:
            self.resize(self.room())
        return 0

    def absorb(
        self,
        int level,
        const double[::1] keys,
        const double[::1] ends,
        const double[:, ::1] table,
    ):
        """Merge the slots of another grid, given its level."""
        cdef Py_ssize_t size = self.count + keys.shape[0]
        all_keys = np.concatenate([self.keys.base[: self.count], keys])
        all_ends = np.concatenate([self.ends.base[: self.count], ends])
        # Of slots with one lower border the widest comes first, so that it holds the others.
        order = np.lexsort((-all_ends, all_keys))
        all_rows = np.concatenate([self.table.base[: self.count], table])
        self.keys = all_keys[order]
        self.ends = all_ends[order]
        self.table = all_rows[order]
        self.count = size
        self.resize(size + 1)
        self.level = max(self.level, level)
        self.widen()
        if self.count > self.slots:
            self.coarsen()
        self.resize(self.room())
        self.find_anchor()

    def order(self):
        """Return the rows in use; they are in ascending order."""
        return np.arange(self.count)

    def upper_borders(self, const double[::1] keys):
        """Return the upper border of the slots with the given lower borders."""
        cdef Py_ssize_t i
        cdef double[::1] borders = np.empty(keys.shape[0])
        for i in range(keys.shape[0]):
            borders[i] = self.ends[last_at_or_below(self.keys, self.count, keys[i])]
        return np.asarray(borders)

    def arrays(self):
        """Return the arrays that the store holds, as they are."""
        return [*Store.arrays(self), self.ends.base]


cdef inline double m2_between(const double* a, const double* b, Py_ssize_t column) noexcept nogil:
    """What the M2 of one target gains by merging two rows, beside the M2 of both."""
    cdef double delta = (b[column + PIVOT] - a[column + PIVOT]) + (
        b[column + SHIFT] - a[column + SHIFT]
    )
    return a[WEIGHT] * (b[WEIGHT] / (a[WEIGHT] + b[WEIGHT])) * delta * delta


cdef double common_slot(double low, double high, int level, double* upper) noexcept nogil:
    """The smallest slot from a level on that holds both; an empty one if they differ in sign."""
    cdef int exponent
    cdef double lower
    if low < 0.0 <= high:
        upper[0] = low
        return INFINITY
    frexp(high - low, &exponent)
    level = max(level, min(exponent - 1, COARSEST))
    while True:
        lower = lower_border(low, level, upper)
        if high < upper[0]:
            return lower
        level += 1


cdef int level_below_gaps(const double[::1] keys, Py_ssize_t count) noexcept nogil:
    """A level at which no two slots fall together yet."""
    cdef Py_ssize_t row
    cdef int exponent
    cdef double smallest = INFINITY
    for row in range(1, count):
        smallest = min(smallest, keys[row] - keys[row - 1])
    frexp(smallest, &exponent)
    return exponent - 1 if isfinite(smallest) else FINEST


def are_slots(int level, const double[::1] keys, const double[::1] ends):
    """Whether borders are those of disjoint slots of at least the given level."""
    cdef Py_ssize_t row
    cdef int exponent
    for row in range(keys.shape[0]):
        if row > 0 and keys[row] < ends[row - 1]:
            return False
        frexp(ends[row] - keys[row], &exponent)
        if not (isfinite(keys[row]) and keys[row] < ends[row]):
            return False
        # The lowest slot of all, cut off at the largest double, is a little narrower.
        if not (
            is_slot(max(level, exponent - 1), keys[row], ends[row])
            or is_slot(max(level, exponent), keys[row], ends[row])
        ):
            return False
    return True


cdef bint is_slot(int level, double lower, double upper) noexcept nogil:
    cdef double end
    return lower_border(lower, level, &end) == lower and end == upper
