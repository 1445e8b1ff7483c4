"""A row is learned, whose leaf is known."""

from libc.stdint cimport uint64_t

from sapwood.tree._tables cimport TreeTables
from sapwood.tree._target_records cimport TargetPrediction

cdef void learn_row(
    TreeTables tables, Py_ssize_t leaf, const double* row, const double* raw, const double* y,
    double w, uint64_t key, bint at_once, TargetPrediction* predictions,
) noexcept nogil
