"""The paper's quantizer: a hash from floor(x / r) to the statistics of a slot."""

cimport cython
import numpy as np
from libc.float cimport DBL_MAX
from libc.math cimport INFINITY, nextafter
from libc.stdlib cimport calloc, free

from sapwood.observers._rows cimport row_add, row_merge


@cython.final
cdef class SlotStore(Store):
    """Slots [h r, (h + 1) r) of one radius, made where there is data."""

    def __init__(self, Py_ssize_t targets, double radius):
        Store.__init__(self, targets)
        self.radius = radius
        self.index = np.full(16, -1, dtype=np.int32)
        self.shift = 60

    cdef Py_ssize_t find(self, double key) noexcept nogil:
        """The row of a key; if it has none, the complement of its place in the index."""
        cdef Py_ssize_t mask = self.index.shape[0] - 1
        cdef Py_ssize_t place = hashed(key) >> self.shift
        cdef Py_ssize_t row
        while True:
            row = self.index[place]
            if row < 0:
                return ~place
            if self.keys[row] == key:
                return row
            place = (place + 1) & mask

    cdef Py_ssize_t add_slot(self, double key, Py_ssize_t place) noexcept nogil:
        """Make an empty slot; its row, or -1 if there is no room."""
        cdef Py_ssize_t row = self.count
        if row == self.keys.shape[0]:
            return -1
        self.index[place] = row
        self.keys[row] = key
        self.count += 1
        return row

    cdef bint take_one(self, double x, const double* y, double w) noexcept nogil:
        cdef double key = slot_key(x, self.radius)
        cdef Py_ssize_t row = self.find(key)
        if row < 0:
            row = self.add_slot(key, ~row)
            if row < 0:
                return False
        row_add(&self.table[row, 0], self.targets, x, y, w)
        return True

    cdef int resize(self, Py_ssize_t size) except -1:
        cdef int32_t[::1] index = self.index_for(size)
        Store.resize(self, size)
        self.index = index
        self.shift = shift_for(index.shape[0])
        return 0

    cdef int32_t[::1] index_for(self, Py_ssize_t size):
        """An index that is at most three fifths full when there are so many elements."""
        cdef Py_ssize_t length = 16, row, place
        cdef int shift
        cdef int32_t[::1] index
        while 5 * size > 3 * length:
            length *= 2
        index = np.full(length, -1, dtype=np.int32)
        shift = shift_for(length)
        for row in range(self.count):
            place = hashed(self.keys[row]) >> shift
            while index[place] >= 0:
                place = (place + 1) & (length - 1)
            index[place] = row
        return index

    cdef bint knows(self, double x) noexcept nogil:
        return self.find(slot_key(x, self.radius)) >= 0

    cdef Store duplicate(self):
        cdef SlotStore duplicate = SlotStore(self.targets, self.radius)
        duplicate.keys, duplicate.table = self.keys.base.copy(), self.table.base.copy()
        duplicate.index, duplicate.shift = self.index.base.copy(), self.shift
        duplicate.count = self.count
        return duplicate

    cdef void become(self, Store other) noexcept:
        Store.become(self, other)
        self.radius = (<SlotStore>other).radius
        self.index = (<SlotStore>other).index
        self.shift = (<SlotStore>other).shift

    def order(self):
        """Return the rows in use, in ascending order of their keys.

        Keys are whole numbers and mostly near to each other, so each is put into one of a few
        times as many places; only keys that share one are yet to be compared.
        """
        cdef double lowest = INFINITY, highest = -INFINITY, density
        cdef Py_ssize_t row
        cdef int32_t* starts
        cdef Py_ssize_t[::1] order
        for row in range(self.count):
            lowest = min(lowest, self.keys[row])
            highest = max(highest, self.keys[row])
        if not 0.0 <= highest - lowest < 64.0 * self.count:
            return Store.order(self)
        density = min(1.0, 4.0 * self.count / (highest - lowest + 1.0))
        order = np.empty(self.count, dtype=np.intp)
        starts = <int32_t*>calloc(<size_t>((highest - lowest) * density) + 2, sizeof(int32_t))
        if starts == NULL:
            raise MemoryError
        self.fill_order(order, starts, lowest, density)
        free(starts)
        return order.base

    cdef void fill_order(
        self, Py_ssize_t[::1] order, int32_t* starts, double lowest, double density
    ) noexcept nogil:
        """Count how many keys have each place, put them there, and sort what shares a place."""
        cdef Py_ssize_t row, place, total = 0, last
        for row in range(self.count):
            starts[<Py_ssize_t>((self.keys[row] - lowest) * density)] += 1
        place = 0
        while total < self.count:
            total += starts[place]
            starts[place] = total - starts[place]
            place += 1
        for row in range(self.count):
            place = <Py_ssize_t>((self.keys[row] - lowest) * density)
            order[starts[place]] = row
            starts[place] += 1
        for place in range(1, self.count):
            row = order[place]
            last = place
            while last > 0 and self.keys[order[last - 1]] > self.keys[row]:
                order[last] = order[last - 1]
                last -= 1
            order[last] = row

    def coarsen(self, double radius):
        """Go over to a radius that is a power of two times the present one, exactly.

        If memory does not suffice, the store is lost.
        """
        table = self.table.base[: self.count]
        coarse = coarser_keys(self.keys.base[: self.count], radius / self.radius)
        SlotStore.__init__(self, self.targets, radius)
        self.absorb(coarse, table)

    def absorb(self, const double[::1] keys, const double[:, ::1] table):
        """Merge rows into the slots of their keys; those before memory is short, if it is."""
        cdef Py_ssize_t other, row
        for other in range(keys.shape[0]):
            row = self.find(keys[other])
            if row < 0 and self.count == self.keys.shape[0]:
                self.grow(keys.shape[0] - other)
                row = self.find(keys[other])
            if row < 0:
                row = self.add_slot(keys[other], ~row)
            row_merge(&self.table[row, 0], &table[other, 0], self.targets)
        self.trim(0)

    def arrays(self):
        """Return the arrays that the store holds, as they are."""
        return [*Store.arrays(self), self.index.base]


cdef int shift_for(Py_ssize_t length) noexcept nogil:
    """64 less the binary logarithm of the length of an index."""
    cdef int shift = 64
    while length > 1:
        length >>= 1
        shift -= 1
    return shift


def coarser_keys(keys, double factor):
    """Return the keys for a radius that is larger by a power of two, floor(h / factor)."""
    return np.floor(keys / factor) if factor != 1.0 else keys


def slot_keys(const double[::1] x, double radius):
    """Return the key of each x."""
    return np.array([slot_key(value, radius) for value in x])


def upper_borders(const double[::1] keys, double radius):
    """Return for each key the smallest double of a larger key: (h + 1) r, to the last bit."""
    cdef Py_ssize_t i
    cdef double[::1] borders = np.empty(keys.shape[0])
    for i in range(keys.shape[0]):
        borders[i] = upper_border(keys[i], radius)
    return np.asarray(borders)


cdef double upper_border(double key, double radius) noexcept nogil:
    cdef double border = (key + 1.0) * radius
    if slot_key(border, radius) <= key:
        border = nextafter(border, INFINITY)
    elif slot_key(nextafter(border, -INFINITY), radius) > key:
        border = nextafter(border, -INFINITY)
    if slot_key(border, radius) > key >= slot_key(nextafter(border, -INFINITY), radius):
        return border
    return searched_border(key, radius)


cdef double searched_border(double key, double radius) noexcept nogil:
    """The border by bisection over all doubles, for keys too large for (h + 1) r."""
    cdef int64_t low = ordinal(-DBL_MAX), high = ordinal(DBL_MAX), middle
    while <uint64_t>high - <uint64_t>low > 1:  # more than an int64 can hold
        middle = low + <int64_t>((<uint64_t>high - <uint64_t>low) >> 1)
        if slot_key(from_ordinal(middle), radius) > key:
            high = middle
        else:
            low = middle
    return from_ordinal(high)


cdef inline int64_t ordinal(double value) noexcept nogil:
    """An integer for each double, in the same order."""
    cdef int64_t bits
    memcpy(&bits, &value, sizeof(bits))
    return bits if bits >= 0 else <int64_t>(<uint64_t>0x8000000000000000 - <uint64_t>bits)


cdef inline double from_ordinal(int64_t number) noexcept nogil:
    cdef double value
    cdef int64_t bits = number if number >= 0 else <int64_t>(
        <uint64_t>0x8000000000000000 - <uint64_t>number
    )
    memcpy(&value, &bits, sizeof(value))
    return value
