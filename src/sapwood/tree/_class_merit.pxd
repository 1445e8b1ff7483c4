"""Merits of VFDT: the reduction of an impurity of classes."""

from sapwood.tree._cuts cimport Cut, Slots, TargetSums
from sapwood.tree._tables cimport TreeTables

cdef enum:
    GINI = 2     # codes of units; see sapwood/tasks.py
    ENTROPY = 3


cdef inline bint is_of_classes(TreeTables tables) noexcept nogil:
    """Whether merits are reductions of an impurity of classes."""
    return tables.growth.merit_unit >= <long>GINI


cdef double cut_classes(
    TreeTables tables, Py_ssize_t leaf, const Slots* slots, TargetSums* sums, double min_share,
    bint by_category, Cut* cut,
) noexcept nogil
