"""A tree that learns."""

cimport cython
from libc.stdint cimport uint64_t

from sapwood.tree._asking cimport AskedTree
from sapwood.tree._pace cimport Pace
from sapwood.tree._sharing cimport Sharing


@cython.final
cdef class TreeKernel(AskedTree):
    cdef int learn_row_of_targets(
        self, const double* row, const double* y, double w, Py_ssize_t number,
        const Py_ssize_t* first_value, bint at_once, Py_ssize_t leaf, double* predictions,
    ) except -1 nogil
    cdef int make_ready(self, Py_ssize_t leaf, double w) except -1 nogil
    cdef int make_room_for_element(self, Py_ssize_t leaf, Py_ssize_t feature) except -1 nogil
    cdef int settle(self) except -1 nogil
    cdef inline void end_writing(self, Sharing sharing) noexcept
    cdef int stop_between_rows(self, Py_ssize_t row, Pace* pace) except -1 nogil
    cdef void answer_askers(self) noexcept nogil
