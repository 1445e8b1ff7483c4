"""A tree that learns."""

cimport cython
from libc.stdint cimport uint64_t

from sapwood.rows._dict_row cimport RowReader
from sapwood.tree._predict_tree cimport PredictingTree
from sapwood.tree._pace cimport Pace
from sapwood.tree._lock cimport ModelLock
from sapwood.tree._target_records cimport TargetPrediction


@cython.final
cdef class TreeKernel(PredictingTree):
    cdef inline int learn_known(
        self, Py_ssize_t leaf, const double* row, const double* raw, const double* y, double w,
        Py_ssize_t number, const Py_ssize_t* first_value, bint at_once, uint64_t id,
        TargetPrediction* found,
    ) except -1 nogil
    cdef bint learn_plain(
        self, RowReader reader, x, const double* y, double w, uint64_t id,
        TargetPrediction* found,
    ) except -1
    cdef int reserve_for_row(self, Py_ssize_t leaf, double w) except -1 nogil
    cdef int make_room_for_element(self, Py_ssize_t leaf, Py_ssize_t feature) except -1 nogil
    cdef int settle(self) except -1 nogil
    cdef inline void end_writing(self, ModelLock access) noexcept
    cdef int stop_between_rows(self, Py_ssize_t row, Pace* pace) except -1 nogil
    cdef void answer_requests(self) noexcept nogil
