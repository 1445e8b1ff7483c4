"""The quantizer that needs no radius: a limited number of slots, narrow near the best split.

Each slot is [h 2^k, (h + 1) 2^k) for some level k. A new value gets a slot so fine that it holds
nothing else. When there is one slot too many, neighbours are merged to the smallest slot that
holds both, the least promising first. They are only merged within a cell of a base grid, which
has one level: no slot is wider than the *radius*, 2^level. It is doubled, which makes the cell
floor(h / 2) of cell h, whenever more than half as many cells as there may be slots have data.

So about half of the slots cover the feature evenly, and the others crowd where the merit is near
its largest. Slots are either disjoint or nested, hence none ever has to be divided.
"""

cimport cython
import numpy as np
from libc.math cimport frexp, isfinite
from libc.stdlib cimport free, malloc
from libc.string cimport memmove

from sapwood.moments cimport CELL, M2, PIVOT, SHIFT
from sapwood.observers._rows cimport CELLS, WEIGHT, row_add, row_clear, row_merge, row_width
from sapwood.observers._store import resized

# When there are too many slots, one of so many is freed.
cdef Py_ssize_t FREED = 16
# How much dearer it is to give up the best cut than a useless one between equal weights.
cdef double BEST = 100.0


@cython.final
cdef class GridStore(Store):
    """At most `slots` slots, all data in them, none where there is no data."""

    def __init__(self, Py_ssize_t targets, Py_ssize_t slots):
        Store.__init__(self, targets)
        self.slots = slots
        self.level = FINEST
        self.ends = np.empty(0)

    @property
    def radius(self):
        """The width that no slot exceeds."""
        return ldexp(1.0, self.level)

    cdef bint take_one(self, double x, const double* y, double w) noexcept nogil:
        cdef Py_ssize_t row = last_at_or_below(self.keys, self.count, x)
        cdef double* scratch = NULL
        if row >= 0 and x < self.ends[row]:
            row_add(&self.table[row, 0], self.targets, x, y, w)
            return True
        if self.count == self.keys.shape[0]:
            return False
        if self.count == self.slots:
            scratch = self.scratch(self.count + 1)
            if scratch == NULL:
                return False  # `grow` will complain
        self.insert(row + 1, x)
        row_add(&self.table[row + 1, 0], self.targets, x, y, w)
        if scratch != NULL:
            self.coarsen(scratch)
            free(scratch)
        return True

    cdef double* scratch(self, Py_ssize_t count) noexcept nogil:
        """What `coarsen` needs for so many slots; NULL if there is no memory."""
        return <double*>malloc(2 * count * sizeof(double))

    cdef void insert(self, Py_ssize_t row, double x) noexcept nogil:
        """Make an empty slot for x at a row, moving those from there on up by one."""
        cdef Py_ssize_t moved = self.count - row
        cdef Py_ssize_t width = row_width(self.targets)
        if moved > 0:
            memmove(&self.keys[row + 1], &self.keys[row], moved * sizeof(double))
            memmove(&self.ends[row + 1], &self.ends[row], moved * sizeof(double))
            memmove(&self.table[row + 1, 0], &self.table[row, 0], moved * width * sizeof(double))
        self.keys[row] = lower_border(x, FINEST, &self.ends[row])
        row_clear(&self.table[row, 0], self.targets)
        self.count += 1

    cdef void merge_with_next(self, Py_ssize_t row, double lower, double upper) noexcept nogil:
        """Merge a slot with the next one, moving those after it down by one."""
        cdef Py_ssize_t moved = self.count - row - 2
        cdef Py_ssize_t width = row_width(self.targets)
        row_merge(&self.table[row, 0], &self.table[row + 1, 0], self.targets)
        self.keys[row] = lower
        self.ends[row] = upper
        self.count -= 1
        if moved > 0:
            memmove(&self.keys[row + 1], &self.keys[row + 2], moved * sizeof(double))
            memmove(&self.ends[row + 1], &self.ends[row + 2], moved * sizeof(double))
            memmove(
                &self.table[row + 1, 0], &self.table[row + 2, 0], moved * width * sizeof(double)
            )

    cdef void coarsen(self, double* scratch) noexcept nogil:
        """Merge the least promising neighbours, until some slots are free."""
        cdef Py_ssize_t wanted = self.slots - self.slots // FREED, row
        cdef double lower, upper
        cdef double* promise = scratch
        cdef double* price = scratch + self.count
        self.raise_level()
        self.find_promise(promise)
        for row in range(self.count - 1):
            self.set_price(price, promise, row)
        while self.count > wanted:
            row = lowest(price, self.count - 1)
            lower = lower_border(
                self.keys[row], common_level(self.keys[row], self.keys[row + 1]), &upper
            )
            if self.reaches_neighbour(row, lower, upper):
                price[row] = INFINITY  # until that neighbour is merged
                continue
            self.merge_with_next(row, lower, upper)
            memmove(&promise[row], &promise[row + 1], (self.count - 1 - row) * sizeof(double))
            memmove(&price[row], &price[row + 1], (self.count - 1 - row) * sizeof(double))
            if row > 0:
                self.set_price(price, promise, row - 1)
            if row < self.count - 1:
                self.set_price(price, promise, row)

    cdef void set_price(
        self, double* price, const double* promise, Py_ssize_t row
    ) noexcept nogil:
        """The cost of merging a slot with the next: the promise of the cut times the weight."""
        price[row] = promise[row] * (self.table[row, WEIGHT] + self.table[row + 1, WEIGHT])

    cdef void raise_level(self) noexcept nogil:
        """Double the radius until half of the slots could cover all cells with data."""
        cdef Py_ssize_t allowed = max(self.slots // 2, 2)
        if self.cells_with_data() > allowed:
            self.level = max(self.level, level_below_gaps(self.keys, self.count))
        while self.cells_with_data() > allowed:
            self.level += 1

    cdef Py_ssize_t cells_with_data(self) noexcept nogil:
        """How many cells of the base grid have data."""
        cdef Py_ssize_t row, result = 0
        cdef double upper = -INFINITY
        for row in range(self.count):
            if self.keys[row] >= upper:
                lower_border(self.keys[row], self.level, &upper)
                result += 1
        return result

    cdef void find_promise(self, double* promise) noexcept nogil:
        """Score the cut after each slot: 1 if it is useless, BEST if none is better.

        In between, the score is inverse to the distance of the merit from the best one. It is
        INFINITY where slots may not be merged.
        """
        cdef Py_ssize_t row, target, cuts = self.count - 1
        cdef double best = 0.0, upper
        for row in range(cuts):
            promise[row] = 0.0
        for target in range(self.targets):
            self.add_explained(promise, target)
        for row in range(cuts):
            best = max(best, promise[row])
        for row in range(cuts):
            if best > 0.0:
                promise[row] = 1.0 / (1.0 + 1.0 / BEST - promise[row] / best)
            else:
                promise[row] = 1.0
            lower_border(self.keys[row], self.level, &upper)
            if self.keys[row + 1] >= upper:
                promise[row] = INFINITY

    cdef void add_explained(self, double* explained, Py_ssize_t target) noexcept nogil:
        """Add the share of a target's variance that the cut after each slot explains."""
        cdef Py_ssize_t row, column = CELLS + CELL * target
        cdef const double* cell
        cdef double weight = 0.0, mean = 0.0, m2 = 0.0, left = 0.0, total = 0.0, distance, share
        cdef double pivot = self.table[0, column + PIVOT]
        for row in range(self.count):
            cell = &self.table[row, column]
            weight += self.table[row, WEIGHT]
            distance = (cell[PIVOT] - pivot) + cell[SHIFT] - mean
            mean += distance * (self.table[row, WEIGHT] / weight)
            m2 += cell[M2] + self.table[row, WEIGHT] * (
                1.0 - self.table[row, WEIGHT] / weight
            ) * distance * distance
        if not m2 / weight > 0.0:
            return
        for row in range(self.count - 1):
            cell = &self.table[row, column]
            left += self.table[row, WEIGHT]
            total += self.table[row, WEIGHT] * ((cell[PIVOT] - pivot) + cell[SHIFT] - mean)
            share = (total / left) * (total / (weight - left)) / (m2 / weight)
            # Where the right side weighs nothing compared with the left, rounding decides.
            explained[row] += share if share <= 1.0 else 1.0

    cdef bint reaches_neighbour(self, Py_ssize_t row, double lower, double upper) noexcept nogil:
        """Whether a slot for a row and the next one would hold more than these two."""
        return (row > 0 and lower < self.ends[row - 1]) or (
            row + 2 < self.count and self.keys[row + 2] < upper
        )

    cdef Py_ssize_t room(self):
        # One more than there may be, for the moment before they are coarsened.
        return min(Store.room(self), self.slots + 1)

    cdef int grow(self, Py_ssize_t rows) except -1:
        if self.keys.shape[0] > self.slots:
            raise MemoryError("no memory to make room among the slots")
        return Store.grow(self, min(rows, self.slots + 1 - self.count))

    cdef int resize(self, Py_ssize_t size) except -1:
        cdef double[::1] ends = resized(self.ends.base, size)
        Store.resize(self, size)
        self.ends = ends
        return 0

    cdef bint knows(self, double x) noexcept nogil:
        cdef Py_ssize_t row = last_at_or_below(self.keys, self.count, x)
        return row >= 0 and x < self.ends[row]

    cdef Py_ssize_t spare(self) noexcept nogil:
        # One more than there may be has to be made room for.
        return min(self.keys.shape[0], self.slots) - self.count

    cdef Store duplicate(self):
        cdef GridStore duplicate = GridStore(self.targets, self.slots)
        duplicate.keys, duplicate.table = self.keys.base.copy(), self.table.base.copy()
        duplicate.ends, duplicate.level = self.ends.base.copy(), self.level
        duplicate.count = self.count
        return duplicate

    cdef void become(self, Store other) noexcept:
        Store.become(self, other)
        self.ends = (<GridStore>other).ends
        self.level = (<GridStore>other).level

    def absorb(
        self,
        int level,
        const double[::1] keys,
        const double[::1] ends,
        const double[:, ::1] table,
    ):
        """Merge the slots of another grid, given its level; without enough memory, all is lost."""
        cdef Py_ssize_t row, kept = -1
        cdef double* scratch
        all_keys = np.concatenate([self.keys.base[: self.count], keys])
        all_ends = np.concatenate([self.ends.base[: self.count], ends])
        all_rows = np.concatenate([self.table.base[: self.count], table])
        # Of slots with one lower border the widest comes first, so that it holds the others.
        order = np.lexsort((-all_ends, all_keys))
        self.keys, self.ends, self.table = all_keys[order], all_ends[order], all_rows[order]
        self.level = max(self.level, level)
        for row in range(self.keys.shape[0]):
            if kept >= 0 and self.keys[row] < self.ends[kept]:
                row_merge(&self.table[kept, 0], &self.table[row, 0], self.targets)
            else:
                kept += 1
                self.move(row, kept)
        self.count = kept + 1
        if self.count > self.slots:
            scratch = self.scratch(self.count)
            if scratch == NULL:
                raise MemoryError
            self.coarsen(scratch)
            free(scratch)
        self.resize(self.room())

    cdef void move(self, Py_ssize_t row, Py_ssize_t to) noexcept nogil:
        """Move a slot to another row."""
        if row != to:
            self.keys[to] = self.keys[row]
            self.ends[to] = self.ends[row]
            memcpy(
                &self.table[to, 0], &self.table[row, 0], row_width(self.targets) * sizeof(double)
            )

    def order(self):
        """Return the rows in use; they are in ascending order."""
        return np.arange(self.count)

    def upper_borders(self, const double[::1] keys):
        """Return the upper border of the slots with the given lower borders."""
        cdef Py_ssize_t i, row
        cdef double[::1] borders = np.empty(keys.shape[0])
        for i in range(keys.shape[0]):
            row = last_at_or_below(self.keys, self.count, keys[i])
            borders[i] = self.ends[row] if row >= 0 else keys[i]
        return borders.base

    def arrays(self):
        """Return the arrays that the store holds, as they are."""
        return [*Store.arrays(self), self.ends.base]


cdef Py_ssize_t lowest(const double* values, Py_ssize_t count) noexcept nogil:
    """The position of the lowest value, the first of equals."""
    cdef Py_ssize_t place, result = 0
    for place in range(1, count):
        if values[place] < values[result]:
            result = place
    return result


cdef int common_level(double low, double high) noexcept nogil:
    """The level of the smallest slot that holds both of two numbers of one sign."""
    cdef int level
    cdef double upper
    frexp(high - low, &level)
    level -= 1  # the difference may have been rounded up
    while True:
        lower_border(low, level, &upper)
        if high < upper:
            return level
        level += 1


def roundest_between(const double[::1] keys):
    """Return the roundest number that parts each slot from the next, given their lower borders.

    The smallest slot that holds both has one of them in its lower half and the other in its
    upper half, so that its middle parts them, and no multiple of a larger power of two does.
    """
    cdef Py_ssize_t cut
    cdef double low, high, upper
    cdef double[::1] middles = np.empty(max(keys.shape[0] - 1, 0))
    for cut in range(middles.shape[0]):
        low, high = keys[cut], keys[cut + 1]
        if low < 0.0 <= high:
            middles[cut] = 0.0
        else:
            middles[cut] = lower_border(high, common_level(low, high) - 1, &upper)
    return middles.base


cdef int level_below_gaps(const double[::1] keys, Py_ssize_t count) noexcept nogil:
    """A level at which no two slots fall together yet."""
    cdef Py_ssize_t row
    cdef int exponent
    cdef double smallest = INFINITY
    for row in range(1, count):
        smallest = min(smallest, keys[row] - keys[row - 1])
    frexp(smallest, &exponent)
    # A power of two may have been rounded up to.
    return exponent - 2 if isfinite(smallest) else FINEST


def are_slots(int level, const double[::1] keys, const double[::1] ends):
    """Whether borders are those of disjoint slots that are within cells of a level."""
    cdef Py_ssize_t row
    cdef int exponent
    for row in range(keys.shape[0]):
        if not (isfinite(keys[row]) and keys[row] < ends[row]):
            return False
        if row > 0 and keys[row] < ends[row - 1]:
            return False
        if is_slot(FINEST, keys[row], ends[row]):
            continue
        frexp(min(ends[row], DBL_MAX) - keys[row], &exponent)
        # The lowest slot of all, cut off at the largest double, is a little narrower.
        if not (
            (exponent - 1 <= level and is_slot(exponent - 1, keys[row], ends[row]))
            or (exponent <= level and is_slot(exponent, keys[row], ends[row]))
        ):
            return False
    return True


cdef bint is_slot(int level, double lower, double upper) noexcept nogil:
    cdef double end
    return lower_border(lower, level, &end) == lower and end == upper
