"""Where a leaf may be cut."""

from libc.stdint cimport uint64_t

from sapwood.observers._store cimport Store
from sapwood.tree._cuts cimport Cut
from sapwood.tree._tables cimport TreeTables
from sapwood.tree._watch cimport Slot


cdef struct BestCut:
    # The best cut of a leaf by one measure.
    double merit
    double second       # the best merit of any other feature
    Py_ssize_t feature  # -1 if there is no cut
    Py_ssize_t place    # the slot or element after which a number is cut
    uint64_t subset     # the categories that go left


cdef struct Sides:
    # Weight and sums of y and residual, left and right of a cut, and where the value is missing.
    Slot left
    Slot right
    Slot missing
    uint64_t seen       # of a category, the codes that were seen


cdef inline Store store_of(TreeTables tables, Py_ssize_t leaf, Py_ssize_t feature):
    """What keeps the elements of the observer of a number."""
    return <Store>tables.stores[leaf][feature]


cdef void rank_cuts(const Cut* cuts, Py_ssize_t feature, BestCut* best) noexcept nogil
cdef int find_best_cuts(
    TreeTables tables, Py_ssize_t leaf, double min_share, BestCut* best
) except -1 nogil
cdef int find_sides(
    TreeTables tables, Py_ssize_t leaf, const BestCut* cut, Sides* sides
) except -1 nogil
cdef int find_threshold(
    TreeTables tables, Py_ssize_t leaf, Py_ssize_t feature, Py_ssize_t place, double* threshold
) except -1 nogil
