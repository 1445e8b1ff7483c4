"""Several targets: where a leaf may be cut, and what its children start from."""

from sapwood.tree._cuts cimport MEASURES
from sapwood.tree._search cimport BestCut, Sides
from sapwood.tree._tables cimport TreeTables

cdef void find_cuts_of_targets(
    TreeTables tables, Py_ssize_t leaf, double min_share, BestCut* best
) noexcept nogil
cdef double variance_of_targets(
    TreeTables tables, Py_ssize_t leaf, bint of_residual
) noexcept nogil
cdef bint are_outdated(TreeTables tables, Py_ssize_t leaf, double least_rows, double times) noexcept nogil
cdef double error_of_targets(TreeTables tables, Py_ssize_t leaf) noexcept nogil
cdef void find_sides_of_targets(
    TreeTables tables, Py_ssize_t leaf, const BestCut* cut
) noexcept nogil
cdef bint missing_targets_go_left(
    TreeTables tables, const Sides* sides, bint of_target
) noexcept nogil
cdef void divide_targets(
    TreeTables tables, Py_ssize_t leaf, const BestCut* cut, int measure, Py_ssize_t right,
    Py_ssize_t node,
) noexcept nogil
