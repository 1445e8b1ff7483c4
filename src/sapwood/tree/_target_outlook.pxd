"""What a tree of several targets says of a row."""

from sapwood.tree._tables cimport TreeTables
from sapwood.tree._target_records cimport TargetOutlook, outlooks_at


cdef inline TargetOutlook* outlooks_in(TreeTables tables, double* work) noexcept nogil:
    """What `look_at_targets` has found, in the room to work on a row."""
    return <TargetOutlook*>(
        work + outlooks_at(tables.features, tables.targets, tables.separate)
    )


cdef void look_at_targets(
    TreeTables tables, Py_ssize_t leaf, const double* row, double* work
) noexcept nogil
cdef void set_levels(
    TreeTables tables, Py_ssize_t target, const double* row, double* values
) noexcept nogil
cdef void take_down_targets(
    TreeTables tables, Py_ssize_t leaf, const double* work, double* note
) noexcept nogil
