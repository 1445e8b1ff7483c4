"""Slots of one fixed radius, found by a hash."""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memcpy

from sapwood.observers._store cimport Store


cdef inline double floor_fast(double value) noexcept nogil:
    """The floor, inlined: the C library's is a call on machines without SSE4."""
    cdef int64_t whole
    if not (-4503599627370496.0 < value < 4503599627370496.0):
        return value  # from 2**52 on every double is whole
    whole = <int64_t>value
    return <double>(whole - (<double>whole > value))


cdef inline double slot_key(double x, double radius) noexcept nogil:
    """The paper's floor(x / r), as a double so that none is too large; +0.0, never -0.0."""
    cdef double quotient = x / radius
    if quotient == 0.0 and x < 0.0:
        return -1.0  # it underflowed, but x is below zero
    return floor_fast(quotient) + 0.0


cdef inline uint64_t hashed(double key) noexcept nogil:
    """Spread a key over 64 bits, best in the upper ones; a run of keys does not collide."""
    cdef uint64_t bits
    if -9e18 < key < 9e18:
        bits = <uint64_t><int64_t>key
    else:
        memcpy(&bits, &key, sizeof(bits))
    return bits * <uint64_t>0x9E3779B97F4A7C15


@cython.final
cdef class SlotStore(Store):
    cdef readonly double radius
    cdef int32_t[::1] index  # open addressing: the row of a key, or -1
    cdef int shift           # 64 less the binary logarithm of the index's length

    cdef int32_t[::1] index_for(self, Py_ssize_t size)
    cdef Py_ssize_t find(self, double key) noexcept nogil
    cdef Py_ssize_t add_slot(self, double key, Py_ssize_t place) noexcept nogil
    cdef void fill_order(
        self, Py_ssize_t[::1] order, int32_t* starts, double lowest, double density
    ) noexcept nogil
