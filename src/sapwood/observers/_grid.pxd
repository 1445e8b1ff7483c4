"""A bounded number of slots, narrow where the best split point may be."""

cimport cython
from libc.float cimport DBL_MAX
from libc.math cimport INFINITY, fabs, ldexp, nextafter
from libc.stdint cimport uint64_t
from libc.string cimport memcpy

from sapwood.observers._slots cimport floor_fast
from sapwood.observers._store cimport Store

cdef enum:
    FINEST = -1074   # the level of the smallest positive double
    COARSEST = 1024  # one slot holds all that is positive, one all that is negative


cdef inline double power_of_two(int exponent) noexcept nogil:
    """2^exponent; inlined, as most are of normal size."""
    cdef double result
    cdef uint64_t bits
    if not -1022 <= exponent <= 1023:
        return ldexp(1.0, exponent)
    bits = <uint64_t>(exponent + 1023) << 52
    memcpy(&result, &bits, sizeof(result))
    return result


cdef inline double lower_border(double x, int level, double* upper) noexcept nogil:
    """The slot [h 2^level, (h + 1) 2^level) of x; exact, and never across zero.

    Where doubles are farther apart than 2^level a slot holds one double.
    """
    cdef double unit, h
    if level >= COARSEST:
        upper[0] = 0.0 if x < 0.0 else INFINITY
        return -DBL_MAX if x < 0.0 else 0.0
    if fabs(x) >= power_of_two(level + 52):
        upper[0] = nextafter(x, INFINITY)
        return x
    unit = power_of_two(level)
    h = floor_fast(x / unit) + 0.0
    if x < 0.0 and h == 0.0:
        h = -1.0  # x / unit underflowed
    upper[0] = (h + 1.0) * unit
    return max(h * unit, -DBL_MAX)


cdef inline Py_ssize_t last_at_or_below(
    const double[::1] keys, Py_ssize_t count, double x
) noexcept nogil:
    """The last of count ascending keys that is at most x, or -1; without branches to guess."""
    cdef Py_ssize_t first = 0, half
    if count == 0 or x < keys[0]:
        return -1
    while count > 1:
        half = count >> 1
        first += half & -<Py_ssize_t>(keys[first + half] <= x)
        count -= half
    return first


@cython.final
cdef class GridStore(Store):
    cdef readonly Py_ssize_t slots
    cdef readonly int level  # of the base grid: no slot is wider than its cells
    cdef double[::1] ends    # the upper borders; the keys are the lower ones, ascending

    cdef void insert(self, Py_ssize_t row, double x) noexcept nogil
    cdef void merge_with_next(self, Py_ssize_t row, double lower, double upper) noexcept nogil
    cdef void move(self, Py_ssize_t row, Py_ssize_t to) noexcept nogil
    cdef double* scratch(self, Py_ssize_t count) noexcept nogil
    cdef void coarsen(self, double* scratch) noexcept nogil
    cdef void raise_level(self) noexcept nogil
    cdef Py_ssize_t cells_with_data(self) noexcept nogil
    cdef void find_promise(self, double* promise) noexcept nogil
    cdef void add_explained(self, double* explained, Py_ssize_t target) noexcept nogil
    cdef void set_price(
        self, double* price, const double* promise, Py_ssize_t row
    ) noexcept nogil
    cdef bint reaches_neighbour(self, Py_ssize_t row, double lower, double upper) noexcept nogil
