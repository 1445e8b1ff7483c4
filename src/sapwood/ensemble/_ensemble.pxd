"""Trees that learn the same rows."""

from libc.stdint cimport uint64_t

from sapwood.corrector._pending cimport PendingPredictions
from sapwood.ensemble._members cimport Members, MemberPredictions, TargetTables, TreeRecord
from sapwood.rows._dict_row cimport RowReader
from sapwood.tree._kernel cimport TreeKernel
from sapwood.tree._lock cimport ModelLock


cdef class EnsembleKernel(Members):
    cdef readonly object work          # rows that not all trees have learned yet, or None
    cdef readonly object renew         # answers when it is time to look
    cdef Py_ssize_t threads
    cdef object thresholds
    cdef ModelLock access
    cdef Py_ssize_t block_rows         # the most rows of the next block

    cdef int store_one(
        self, const double* row, const MemberPredictions* predicted, uint64_t id
    ) except -1
    cdef bint can_read(self, RowReader reader, x, bint learn) except -1
    cdef int learn_one_row(
        self, const double* row, const double* y, double w, uint64_t id
    ) except -1
    cdef void become_several(self, TargetTables tables, PendingPredictions pending) noexcept
    cdef double copies(
        self, const TreeRecord* record, const uint64_t* thresholds, Py_ssize_t later
    ) noexcept nogil
    cdef Py_ssize_t rows_until_look(self) noexcept nogil
    cdef object prepared(self, X, y, w, predictions, bint asked)
    cdef int let_trees_learn(self) except -1
    cdef int begin_reading(self) except -1
    cdef TreeKernel reference(self)
    cdef void set_keys(
        self, TreeKernel tree, const double[:, ::1] X, const char* fresh, uint64_t* seen,
        uint64_t* keys,
    ) noexcept nogil
    cdef int finish_work(self) except -1
    cdef int settle(self) except -1
    cdef bint is_look_due(self) noexcept nogil
    cdef int look_if_due(self) except -1
