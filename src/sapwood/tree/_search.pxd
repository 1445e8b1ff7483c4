"""Where a leaf may be cut."""

from libc.stdint cimport uint64_t

from sapwood.observers._store cimport Store
from sapwood.tree._cuts cimport Cut, Slots, TargetSums
from sapwood.tree._tables cimport TreeTables, slots_between
from sapwood.tree._watch cimport Grid, Slot


cdef struct BestCut:
    # The best cut of a leaf by one measure.
    double merit
    double second       # the best merit of any other feature that separates other rows
    Py_ssize_t feature  # -1 if there is no cut
    Py_ssize_t place    # the slot or element after which a number is cut
    uint64_t subset     # the categories that go left


cdef struct Sides:
    # Left and right of a cut, and where the value is missing.
    Slot left           # of a target: the weight of the rows in which it is present, and its sums
    Slot right
    Slot missing
    double left_rows    # the weight of all rows
    double right_rows
    uint64_t seen       # of a category, the codes that were seen


cdef struct Elements:
    # The elements of an observer, as slots.
    double* slots
    double* gaps
    double* places
    Py_ssize_t count
    Py_ssize_t targets


cdef inline Slots slots_on(TreeTables tables, double* page, Py_ssize_t feature) noexcept nogil:
    """The slots of a feature on a watch page."""
    cdef Slots slots
    slots.at = <const double*>(<Grid*>page + tables.features)
    slots.gaps = slots.places = NULL
    if tables.targets > 1:
        slots.gaps = slots.at + tables.column.slot_size * tables.column.slot_starts[tables.features]
        slots.gaps += tables.targets * tables.column.slot_starts[feature]
    slots.at += tables.column.slot_size * tables.column.slot_starts[feature]
    slots.size = tables.column.slot_size
    slots.count = slots_between(tables.column.slot_starts, feature)
    return slots


cdef inline Slots slots_in(TreeTables tables, Py_ssize_t leaf, Py_ssize_t feature) noexcept nogil:
    """The slots by which a leaf watches a feature."""
    return slots_on(tables, tables.watches[leaf], feature)


cdef inline Store store_of(TreeTables tables, Py_ssize_t leaf, Py_ssize_t feature):
    """What keeps the elements of the observer of a number."""
    return <Store>tables.stores[leaf][feature]


cdef Elements elements_of(Store store, Py_ssize_t targets) except *
cdef Slots slots_of_elements(const Elements* elements) noexcept nogil
cdef double unit_of(TreeTables tables, Py_ssize_t target) noexcept nogil
cdef Py_ssize_t known_targets(TreeTables tables) noexcept nogil
cdef TargetSums* begin_search(TreeTables tables, TargetSums* one) noexcept nogil
cdef int find_best_cuts(
    TreeTables tables, Py_ssize_t leaf, double min_share, BestCut* best
) except -1 nogil
cdef double search_number(
    const Slots* slots, Py_ssize_t targets, TargetSums* sums, double min_share, bint lines,
    Cut* cuts,
) noexcept nogil
cdef double search_category(
    const Slots* slots, Py_ssize_t targets, TargetSums* sums, double min_share, int measure,
    Cut* cut,
) noexcept nogil
cdef void sum_sides(
    TreeTables tables, Py_ssize_t leaf, const BestCut* cut, const Slots* slots, Py_ssize_t target,
    Sides* sides,
) noexcept nogil
cdef int find_sides(
    TreeTables tables, Py_ssize_t leaf, const BestCut* cut, Py_ssize_t target, Sides* sides
) except -1 nogil
cdef int find_missing_side(
    TreeTables tables, Py_ssize_t leaf, const BestCut* cut, bint of_target, bint* goes_left
) except -1 nogil
cdef int find_threshold(
    TreeTables tables, Py_ssize_t leaf, Py_ssize_t feature, Py_ssize_t place, double* threshold
) except -1 nogil
