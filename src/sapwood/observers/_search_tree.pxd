"""A balanced binary search tree over the values of x."""

cimport cython
from libc.stdint cimport int32_t

from sapwood.observers._store cimport Store

cdef enum:
    DEEPEST = 64   # an AVL tree of 2^31 nodes is less than 46 deep
    NEITHER = -1   # the heavy side of a node whose sides are equally high


@cython.final
cdef class SearchTreeStore(Store):
    cdef readonly double scale  # x is rounded to multiples of 1 / scale; 0: not at all
    # The children: twice the row (or twice -1), odd if that side is higher.
    cdef int32_t[:, ::1] links
    cdef Py_ssize_t root

    cdef double rounded(self, double x) noexcept nogil
    cdef Py_ssize_t find_or_add(self, double key) noexcept nogil
    cdef Py_ssize_t add_node(self, double key) noexcept nogil
    cdef Py_ssize_t child(self, Py_ssize_t node, int side) noexcept nogil
    cdef void set_child(self, Py_ssize_t node, int side, Py_ssize_t child) noexcept nogil
    cdef int heavy(self, Py_ssize_t node) noexcept nogil
    cdef void set_heavy(self, Py_ssize_t node, int side) noexcept nogil
    cdef Py_ssize_t rotate(self, Py_ssize_t node, int side) noexcept nogil
