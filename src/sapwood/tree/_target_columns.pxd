"""What it costs each of several targets to get a column wrong."""

from sapwood.tree._tables cimport TreeTables
from sapwood.tree._target_records cimport TargetOutlook

cdef struct TriedRow:
    # A row that is tried with the values of a row of the past.
    bint is_tried
    Py_ssize_t column  # in which another value leads to another leaf, if one is tried; else -1
    double times       # what that counts for


cdef void try_row(
    TreeTables tables, Py_ssize_t leaf, const double* row, TriedRow* tried
) noexcept nogil
cdef void add_costs(
    TreeTables tables, Py_ssize_t leaf, Py_ssize_t target, const TriedRow* tried, double y, double w,
    const TargetOutlook* outlook,
) noexcept nogil
