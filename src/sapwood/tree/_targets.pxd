"""What a row does to a tree of several targets."""

from libc.stdint cimport uint64_t

from sapwood.tree._tables cimport TreeTables
from sapwood.tree._target_records cimport TargetNote


cdef inline Py_ssize_t note_doubles(Py_ssize_t targets) noexcept nogil:
    """Doubles of a note: how many labels were known, and a TargetNote for each target."""
    return 1 + targets * <Py_ssize_t>sizeof(TargetNote) // <Py_ssize_t>sizeof(double)


cdef void fetch_leaf(TreeTables tables, Py_ssize_t leaf) noexcept nogil
cdef void learn_targets(
    TreeTables tables, Py_ssize_t leaf, const double* row, const double* y, double w,
    uint64_t key, bint at_once,
) noexcept nogil
