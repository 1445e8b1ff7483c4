"""Predictions of a tree."""

from libc.stdint cimport int32_t, uint64_t

from sapwood.rows._dict_row cimport RowReader
from sapwood.tree._tables cimport TreeTables
from sapwood.tree._target_records cimport TargetPrediction


cdef class PredictingTree(TreeTables):
    cdef bint predict_known(
        self, RowReader reader, x, bint asked, uint64_t id, Py_ssize_t* leaf,
        TargetPrediction* prediction,
    ) except -1
    cdef int predict_all(
        self,
        const double[:, ::1] X,
        double[::1] predictions,
        int32_t[::1] regions,
        double* scratch,
        double* records,
        Py_ssize_t first_recorded,
    ) except -1


cdef inline const double* row_at(const double[:, ::1] X, Py_ssize_t row) noexcept nogil:
    return &X[row, 0] if X.shape[1] else NULL
