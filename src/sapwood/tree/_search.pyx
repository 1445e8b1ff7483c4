"""Where a leaf may be cut: its best cuts, what lies on their sides, and their thresholds.

Slots are searched without the GIL. Observers are asked for the order of their elements, which
takes it, and may fail for want of memory; nothing is changed here.
"""

from libc.stdint cimport uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from sapwood.moments cimport CELL, PIVOT, SHIFT
from sapwood.observers._rows cimport CELLS, PROTOTYPE, WEIGHT
from sapwood.observers._store cimport Store
from sapwood.tree._cuts cimport (
    LINE, MEASURES, STEP, TARGET, Cut, cut_category, cut_number,
)
from sapwood.tree._facts cimport round_cut
from sapwood.tree._tables cimport TreeTables, Watchers, slots_between
from sapwood.tree._watch cimport Grid, Slot, slot_add, slot_at, slot_border


cdef struct Elements:
    # The elements of an observer, as slots.
    Slot* slots
    double* places
    Py_ssize_t count


cdef Elements elements_of(Store store) except *:
    """Elements of an observer as slots, in ascending order; places are from 0 to 1."""
    cdef Elements elements
    cdef const Py_ssize_t[::1] order = store.order()
    cdef Py_ssize_t row, count = order.shape[0]
    cdef const double* element
    cdef double low = 0.0, reach = 0.0
    elements.count = count
    elements.slots = <Slot*>malloc(max(count, 1) * (sizeof(Slot) + sizeof(double)))
    if elements.slots == NULL:
        raise MemoryError
    elements.places = <double*>(elements.slots + count)
    if count > 0:
        low = store.table[order[0], PROTOTYPE]
        reach = store.table[order[count - 1], PROTOTYPE] / 2 - low / 2
    for row in range(count):
        element = &store.table[order[row], 0]
        elements.slots[row] = Slot(
            element[WEIGHT],
            element[WEIGHT] * (element[CELLS + PIVOT] + element[CELLS + SHIFT]),
            element[WEIGHT] * (element[CELLS + CELL + PIVOT] + element[CELLS + CELL + SHIFT]),
        )
        elements.places[row] = 0.0
        if reach > 0.0:
            elements.places[row] = (element[PROTOTYPE] / 2 - low / 2) / reach
    return elements


cdef int cut_feature(
    TreeTables tables, Py_ssize_t leaf, Py_ssize_t feature, double min_share, Cut* cuts
) except -1 nogil:
    """Find the best cut of a feature by each measure; merits are those over all of the leaf."""
    cdef const Slot* slots = tables.slots_of(leaf, feature)
    cdef Elements elements
    cdef Py_ssize_t measure
    cdef double present = 0.0
    for measure in range(MEASURES):
        cuts[measure] = Cut(0.0, -1, 0)
    if tables.is_category[feature]:
        present = cut_category(slots, min_share, TARGET, &cuts[TARGET])
        if tables.linear:
            cut_category(slots, min_share, STEP, &cuts[STEP])
            cuts[LINE] = cuts[STEP]
    elif tables.slots == 0:
        with gil:
            elements = elements_of(store_of(tables, leaf, feature))
        present = cut_number(
            elements.slots, elements.places, elements.count, min_share, tables.linear, cuts
        )
        free(elements.slots)
    elif tables.grid_of(leaf, feature).inverse > 0.0:
        present = cut_number(slots, NULL, tables.slots, min_share, tables.linear, cuts)
    for measure in range(MEASURES):
        cuts[measure].merit *= present / tables.leaves[leaf].weight
    return 0


cdef void rank_cuts(const Cut* cuts, Py_ssize_t feature, BestCut* best) noexcept nogil:
    """Let the cuts of a feature be the best, or the second, where they are."""
    cdef Py_ssize_t measure
    for measure in range(MEASURES):
        if cuts[measure].merit > best[measure].merit:
            best[measure] = BestCut(
                cuts[measure].merit,
                best[measure].merit,
                feature,
                cuts[measure].place,
                cuts[measure].subset,
            )
        elif cuts[measure].merit > best[measure].second:
            best[measure].second = cuts[measure].merit


cdef int find_best_cuts(
    TreeTables tables, Py_ssize_t leaf, double min_share, BestCut* best
) except -1 nogil:
    """Find for each measure the best cut of a leaf."""
    cdef Cut cuts[MEASURES]
    cdef Py_ssize_t feature, measure
    for measure in range(MEASURES):
        best[measure] = BestCut(0.0, 0.0, -1, -1, 0)
    for feature in range(tables.features):
        if tables.may_split[feature]:
            cut_feature(tables, leaf, feature, min_share, cuts)
            rank_cuts(cuts, feature, best)
    return 0


cdef int find_sides(
    TreeTables tables, Py_ssize_t leaf, const BestCut* cut, Sides* sides
) except -1 nogil:
    """Sum up what lies on the sides of a cut, and where its feature is missing.

    With several targets, sums are those of the first.
    """
    cdef const Slot* slots = tables.slots_of(leaf, cut.feature)
    cdef const Slot* each
    cdef Py_ssize_t count = slots_between(tables.slot_starts, cut.feature), slot
    cdef const Slot* missing = slot_at(slots, tables.slot_size, count)
    cdef bint by_category = tables.is_category[cut.feature], goes_right
    cdef Elements elements
    memset(sides, 0, sizeof(Sides))
    elements.slots = NULL
    if not by_category and tables.slots == 0:
        with gil:
            elements = elements_of(store_of(tables, leaf, cut.feature))
        slots, count = elements.slots, elements.count
    for slot in range(count):
        each = slot_at(slots, tables.slot_size, slot)
        if each.weight == 0.0:
            continue
        goes_right = slot > cut.place
        if by_category:
            goes_right = not (cut.subset >> slot) & 1
            sides.seen |= <uint64_t>1 << slot
        slot_add(
            &sides.right if goes_right else &sides.left,
            each.target,
            each.residual,
            each.weight,
        )
    slot_add(&sides.missing, missing.target, missing.residual, missing.weight)
    free(elements.slots)
    return 0


cdef int find_threshold(
    TreeTables tables, Py_ssize_t leaf, Py_ssize_t feature, Py_ssize_t place, double* threshold
) except -1 nogil:
    """Where a number is cut after a slot or an element; 0 for a category."""
    cdef const Grid* grid = tables.grid_of(leaf, feature)
    threshold[0] = 0.0
    if tables.slots and not tables.is_category[feature]:
        threshold[0] = round_cut(
            slot_border(grid, place + 1), tables.facts[feature].decimals
        )
    elif not tables.is_category[feature]:
        with gil:
            threshold[0] = threshold_of_observer(tables, leaf, feature, place)
    return 0


cdef double threshold_of_observer(
    TreeTables tables, Py_ssize_t leaf, Py_ssize_t feature, Py_ssize_t place
) except *:
    """Where the observer of a number is cut after an element."""
    return tables.observing.threshold((<Watchers>tables.watchers[leaf]).observers[feature], place)


# -- for tests and pictures -------------------------------------------------------------------


def best_cuts(TreeTables tables not None, Py_ssize_t leaf, double min_share):
    """Return for each measure (target, step, line) the best cut of a leaf.

    Returns
    -------
    list of tuple
        The merit, the best merit of any other feature, the feature (-1 if there is no cut), the
        slot or element after which it is cut, and the codes that go left.
    """
    cdef BestCut best[MEASURES]
    find_best_cuts(tables, leaf, min_share, best)
    return [(each.merit, each.second, each.feature, each.place, each.subset) for each in best]


def sides_of(
    TreeTables tables not None,
    Py_ssize_t leaf,
    Py_ssize_t feature,
    Py_ssize_t place,
    uint64_t subset,
):
    """Return weight and sums of y and residual: left of a cut, right of it, and where missing.

    Returns
    -------
    sides : list of tuple
        Left, right, missing; each the weight, the sum of y from the leaf's origin, and the sum
        of the residual.
    seen : int
        Of a category, the codes that were seen.
    """
    cdef BestCut cut = BestCut(0.0, 0.0, feature, place, subset)
    cdef Sides sides
    find_sides(tables, leaf, &cut, &sides)
    parts = (sides.left, sides.right, sides.missing)
    return [(each["weight"], each["target"], each["residual"]) for each in parts], sides.seen


def threshold_of(TreeTables tables not None, Py_ssize_t leaf, Py_ssize_t feature, Py_ssize_t place):
    """Return where a number is cut after a slot or an element."""
    cdef double threshold
    find_threshold(tables, leaf, feature, place, &threshold)
    return threshold
