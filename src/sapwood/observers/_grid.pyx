"""The quantizer that needs no radius: at most so many slots, ascending, of dyadic borders.

Each slot is [h 2^k, (h + 1) 2^k). All have one level k, the *radius* being 2^k, but for those of
far tails, whose level is higher. The radius starts so fine that each double has its own slot, and
is doubled, exactly as floor(h / 2), until the slots suffice. As slots of one level or of two are
either disjoint or nested, coarsening and merging never have to divide a slot.
"""

cimport cython
import numpy as np
from libc.math cimport frexp, isfinite
from libc.string cimport memcpy, memmove

from sapwood.observers._rows cimport WEIGHT, row_add, row_clear, row_merge, row_width
from sapwood.observers._store import resized

# The share of the weight on each side that may count as tail.
cdef double TAIL = 0.05
# How many widths of the part between the tails a slot has to be away from it, to be far.
cdef double FAR = 2.0
# Far slots start with this many per octave of their distance, as a binary logarithm.
cdef int TAIL_DIGITS = 3


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
        if self.count == self.keys.shape[0]:
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
        """Bring the number of slots back to what is allowed."""
        cdef Middle everything = Middle(-INFINITY, INFINITY, INFINITY)
        self.gather_tails()
        if self.count > self.slots:
            self.level = max(self.level, level_below_gaps(self.keys, self.count))
        while self.count > self.slots:
            self.level += 1
            self.widen(&everything, 0)
        self.find_anchor()

    cdef void gather_tails(self) noexcept nogil:
        """Widen slots that are far and scattered, if they take many from the rest.

        Far slots that would stay apart even if a slot were as wide as the middle of the data are
        not worth a coarser middle: they become as wide as a share of their distance. A cluster
        far away, whose slots would fall together, is not a tail and is left alone.
        """
        cdef Middle middle
        cdef int width_level, digits = TAIL_DIGITS
        if not find_middle(&middle, self.keys, self.ends, self.table, self.count):
            return
        frexp(middle.high - middle.low, &width_level)
        if 8 * self.far_slots(&middle, width_level) < self.slots:
            return
        while digits >= 0 and 4 * self.far_slots(&middle, FINEST) > self.slots:
            self.widen(&middle, digits)
            digits -= 1

    cdef Py_ssize_t far_slots(self, Middle* middle, int level) noexcept nogil:
        """How many different slots of a level the far slots would make."""
        cdef Py_ssize_t row, result = 0
        cdef double lower, upper, previous = INFINITY
        for row in range(self.count):
            if distance(middle, self.keys[row], self.ends[row]) > middle.margin:
                lower = lower_border(self.keys[row], level, &upper)
                result += lower != previous
                previous = lower
        return result

    cdef void widen(self, Middle* middle, int digits) noexcept nogil:
        """Bring slots to the store's level, and far ones to 2^-digits of their distance."""
        cdef Py_ssize_t row, kept = 0
        cdef Py_ssize_t width = row_width(self.targets)
        cdef int level, exponent
        cdef double away, lower, upper
        for row in range(self.count):
            level = self.level
            away = distance(middle, self.keys[row], self.ends[row])
            if away > middle.margin:
                frexp(away, &exponent)
                level = max(level, exponent - 1 - digits)
            lower = self.keys[row]
            upper = self.ends[row]
            if upper - lower < ldexp(1.0, level):
                lower = lower_border(lower, level, &upper)
            if kept > 0 and lower < self.ends[kept - 1]:
                # Nested: this one lies in the last kept, or holds it and perhaps more.
                row_merge(&self.table[kept - 1, 0], &self.table[row, 0], self.targets)
                self.keys[kept - 1] = min(self.keys[kept - 1], lower)
                self.ends[kept - 1] = max(self.ends[kept - 1], upper)
                while kept > 1 and lower < self.ends[kept - 2]:
                    kept -= 1
                    row_merge(&self.table[kept - 1, 0], &self.table[kept, 0], self.targets)
                    self.keys[kept - 1] = min(self.keys[kept - 1], lower)
                    self.ends[kept - 1] = max(self.ends[kept - 1], upper)
                continue
            self.keys[kept] = lower
            self.ends[kept] = upper
            if kept < row:
                memcpy(&self.table[kept, 0], &self.table[row, 0], width * sizeof(double))
            kept += 1
        self.count = kept

    cdef Py_ssize_t room(self):
        return min(Store.room(self), self.slots + 1)

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
        cdef Middle everything = Middle(-INFINITY, INFINITY, INFINITY)
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
        self.level = max(self.level, level)
        self.widen(&everything, 0)
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


cdef inline double distance(Middle* middle, double lower, double upper) noexcept nogil:
    """How far a slot is from the middle of the data; negative inside."""
    return max(middle.low - upper, lower - middle.high)


cdef bint find_middle(
    Middle* middle,
    const double[::1] keys,
    const double[::1] ends,
    const double[:, ::1] table,
    Py_ssize_t count,
) noexcept nogil:
    """Leave out tails of at most TAIL of the weight on each side; False if that is too wide."""
    cdef Py_ssize_t first = 0, last = count - 1, row
    cdef double weight = 0.0, below, above
    for row in range(count):
        weight += table[row, WEIGHT]
    below = table[first, WEIGHT]
    while below <= TAIL * weight:
        first += 1
        below += table[first, WEIGHT]
    above = table[last, WEIGHT]
    while above <= TAIL * weight:
        last -= 1
        above += table[last, WEIGHT]
    middle.low = keys[first]
    middle.high = ends[last]
    middle.margin = FAR * (middle.high - middle.low)
    return isfinite(middle.margin)


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
