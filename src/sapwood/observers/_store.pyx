"""The elements of an observer: a key and a row of statistics each, in growing tables."""

import sys

import numpy as np

from sapwood.moments cimport CELL
from sapwood.observers._rows cimport CELLS, PROTOTYPE, WEIGHT, row_width

# The layout of a row, for Python: two columns, where the moment cells start, and their width.
LAYOUT = (WEIGHT, PROTOTYPE, CELLS, CELL)


cdef class Store:
    """Keys and their rows. A subclass defines how a key is found, and adds arrays of its own.

    `take` and `take_one` stop, changing nothing, at a row for which there is no space; the caller
    then calls `grow` and continues. That may raise MemoryError. An operation that has to succeed as
    a whole or not at all works on a copy (`duplicate`), which then replaces the store.
    """

    def __init__(self, Py_ssize_t targets):
        self.targets = targets
        self.count = 0
        self.keys = np.empty(0)
        self.table = np.empty((0, row_width(targets)))

    cdef Py_ssize_t take(
        self, const double[::1] x, const double[:, ::1] y, const double[:] w, Py_ssize_t start
    ) noexcept nogil:
        """Take rows from start on; the position of the first that found no room, or the end."""
        cdef Py_ssize_t row
        for row in range(start, x.shape[0]):
            if not self.take_one(x[row], &y[row, 0], w[row]):
                return row
        return x.shape[0]

    cdef bint take_one(self, double x, const double* y, double w) noexcept nogil:
        """Take one row; False if there is no room."""
        return False

    cdef Py_ssize_t room(self):
        """How many elements the tables should have room for, now that there are so many."""
        if self.count < 64:
            return max(16, 2 * self.count)
        return self.count + max(8, self.count // 16)

    cdef int resize(self, Py_ssize_t size) except -1:
        """Give the tables room for size elements, all of them or none."""
        cdef double[::1] keys = resized(self.keys.base, size)
        cdef double[:, ::1] table = resized(self.table.base, size)
        self.keys = keys
        self.table = table
        return 0

    cdef int grow(self, Py_ssize_t rows) except -1:
        """Make room for more elements, ample if many rows are yet to come."""
        cdef Py_ssize_t ample = min(self.count + rows, 2 * self.count)
        return self.resize(max(self.room(), ample))

    cdef int trim(self, Py_ssize_t spare) except -1:
        """Give back what exceeds the room that there should be by more than `spare`."""
        if self.keys.shape[0] > self.room() + spare:
            try:
                self.resize(self.room())
            except MemoryError:
                pass  # for smaller tables: the larger ones do as well
        return 0

    cdef bint finds_room(self, const double[::1] x) noexcept nogil:
        """Whether rows are sure to find room, as too few of them are of new elements."""
        cdef Py_ssize_t row, spare = self.spare(), new = 0
        if x.shape[0] <= spare:
            return True
        for row in range(x.shape[0]):
            if not self.knows(x[row]):
                new += 1
                if new > spare:
                    return False
        return True

    cdef bint knows(self, double x) noexcept nogil:
        """Whether there is an element for x."""
        return False

    cdef Py_ssize_t spare(self) noexcept nogil:
        """How many new elements find room."""
        return self.keys.shape[0] - self.count

    cdef Store duplicate(self):
        """A copy of the store."""
        raise NotImplementedError

    cdef void become(self, Store other) noexcept:
        """Take over all that another store of the same kind holds."""
        self.count = other.count
        self.keys = other.keys
        self.table = other.table

    def order(self):
        """Return the rows in use, in ascending order of their keys."""
        return np.argsort(self.keys.base[: self.count])

    def arrays(self):
        """Return the arrays that the store holds, as they are."""
        return [self.keys.base, self.table.base]

    @property
    def nbytes(self):
        """Bytes of the store: its tables, their views and the object itself."""
        arrays = self.arrays()
        view = sys.getsizeof(<object>self.keys)
        return sys.getsizeof(self) + sum(sys.getsizeof(array) + view for array in arrays)


def resized(array, Py_ssize_t size):
    """Return a copy of an array with room for size rows; what is new is zero."""
    grown = np.zeros((size, *array.shape[1:]), dtype=array.dtype)
    kept = min(size, len(array))
    grown[:kept] = array[:kept]
    return grown
