"""A row of several targets is learned."""

from libc.stdint cimport uint64_t

from sapwood.tree._records cimport PendingPrediction
from sapwood.tree._tables cimport TreeTables
from sapwood.tree._target_records cimport TargetPrediction


cdef inline Py_ssize_t pending_doubles(Py_ssize_t targets) noexcept nogil:
    """Doubles of a pending prediction: the number of known labels, and a record for each target."""
    return 1 + targets * <Py_ssize_t>sizeof(PendingPrediction) // <Py_ssize_t>sizeof(double)


cdef void fetch_leaf(TreeTables tables, Py_ssize_t leaf) noexcept nogil
cdef void learn_several(
    TreeTables tables, Py_ssize_t leaf, const double* row, const double* raw, const double* y,
    double w, uint64_t key, bint at_once, TargetPrediction* predictions,
) noexcept nogil
