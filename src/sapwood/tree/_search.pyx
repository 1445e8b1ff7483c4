"""Where a leaf may be cut: its best cuts, what lies on their sides, and their thresholds.

The merit of a split point is what it explains of the variance of y. Of several targets it is the
mean over them of the share of their variance that it removes: what it explains of a target among
the rows of the leaf, divided by the target's variance over the whole tree. That is so for all three
measures of `_cuts.pxd`. A target whose y were always the same does not count.

Slots are searched without the GIL. Observers are asked for the order of their elements, which
takes it, and may fail for want of memory; nothing is changed here.
"""

from libc.math cimport fabs, sqrt
from libc.stdint cimport uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from sapwood.moments cimport CELL
from sapwood.observers._rows cimport CELLS, PROTOTYPE, WEIGHT, mean_of_cell
from sapwood.observers._store cimport Store
from sapwood.tree._class_merit cimport cut_classes, is_of_classes
from sapwood.tree._cuts cimport (
    LINE, MEASURES, SAME_MERIT_ROUNDING, STEP, TARGET, Cut, Slots, TargetSums, cut_category,
    cut_number,
)
from sapwood.tree._facts cimport round_cut
from sapwood.tree._prediction cimport part_of, rows_of
from sapwood.tree._records cimport TargetPart
from sapwood.tree._leaves cimport Watchers
from sapwood.tree._tables cimport TreeTables
from sapwood.tree._target_records cimport TargetStream, gap_doubles, slot_doubles, sums_in
from sapwood.tree._watch cimport Grid, Slot, slot_add, slot_border

cdef enum:
    ONE = 1  # the code of that unit and, above it, of merits of classes; see sapwood/tasks.py

# A target does not count whose variance is so small that shares of it would be no doubles.
cdef double LEAST_VARIANCE = 1e-200


cdef double unit_of(TreeTables tables, Py_ssize_t target) noexcept nogil:
    """What the variance of a target counts for: that of the only one for itself; those of several
    in the unit of the task, mostly that over the whole tree; 0 if there is none."""
    cdef const TargetStream* stream
    if tables.targets == 1:
        return 1.0
    stream = tables.of_targets.streams + target
    if not stream.m2 > LEAST_VARIANCE * stream.weight:
        return 0.0
    return stream.weight / stream.m2 if tables.growth.merit_unit < ONE else 1.0


cdef Py_ssize_t known_targets(TreeTables tables) noexcept nogil:
    """How many targets count; 1 if none does."""
    cdef Py_ssize_t target, known = 0
    for target in range(tables.targets):
        known += unit_of(tables, target) > 0.0
    return max(known, 1)


cdef TargetSums* begin_search(TreeTables tables, TargetSums* one) noexcept nogil:
    """Set the units of all targets, so that merits are means over them; where their sums are: of
    several targets in the room to work, else aside."""
    cdef TargetSums* sums = one
    cdef Py_ssize_t target, known = known_targets(tables)
    if tables.targets > 1:
        sums = sums_in(
            tables.column.scratch, tables.features, tables.targets, tables.column.separate
        )
    memset(sums, 0, tables.targets * sizeof(TargetSums))
    for target in range(tables.targets):
        sums[target].unit = unit_of(tables, target) / known
        sums[target].is_whole = rows_of(tables, tables.targets, target) == tables.stream.rows
    return sums


cdef double search_number(
    const Slots* slots, Py_ssize_t targets, TargetSums* sums, double min_share, bint lines,
    Cut* cuts,
) noexcept nogil:
    """As `cut_number`, compiled for one target and for any number of them."""
    cdef TargetSums one
    cdef double present
    if targets == 1:
        one = sums[0]  # a copy that compilers keep in registers
        present = cut_number(slots, 1, &one, min_share, lines, cuts)
        sums[0] = one
        return present
    return cut_number(slots, targets, sums, min_share, lines, cuts)


cdef double search_category(
    const Slots* slots, Py_ssize_t targets, TargetSums* sums, double min_share, int measure,
    Cut* cut,
) noexcept nogil:
    """As `cut_category`, compiled once."""
    return cut_category(slots, targets, sums, min_share, measure, cut)


cdef Elements elements_of(Store store, Py_ssize_t targets) except *:
    """Elements of an observer as slots, in ascending order; places are from 0 to 1."""
    cdef Elements elements
    cdef const Py_ssize_t[::1] order = store.order()
    cdef Py_ssize_t row, column, count = order.shape[0], size = slot_doubles(targets)
    cdef const double* element
    cdef const double* cells
    cdef double low = 0.0, reach = 0.0
    elements.count, elements.targets = count, targets
    elements.slots = <double*>malloc(
        max(count, 1) * (1 + size + gap_doubles(targets)) * sizeof(double)
    )
    if elements.slots == NULL:
        raise MemoryError
    elements.gaps = elements.slots + size * count
    elements.places = elements.gaps + gap_doubles(targets) * count
    if count > 0:
        low = store.table[order[0], PROTOTYPE]
        reach = store.table[order[count - 1], PROTOTYPE] / 2 - low / 2
    for row in range(count):
        element = &store.table[order[row], 0]
        cells = element + CELLS
        elements.slots[size * row] = element[WEIGHT]
        for column in range(2 * targets):
            elements.slots[size * row + 1 + column] = element[WEIGHT] * mean_of_cell(cells)
            cells += CELL
        for column in range(gap_doubles(targets)):
            elements.gaps[targets * row + column] = element[WEIGHT] * mean_of_cell(cells)
            cells += CELL
        elements.places[row] = 0.0
        if reach > 0.0:
            elements.places[row] = (element[PROTOTYPE] / 2 - low / 2) / reach
    return elements


cdef Slots slots_of_elements(const Elements* elements) noexcept nogil:
    cdef const double* gaps = NULL
    if elements.targets > 1:
        gaps = elements.gaps
    return Slots(
        elements.slots, gaps, elements.places, slot_doubles(elements.targets), elements.count
    )


cdef int cut_feature(
    TreeTables tables, Py_ssize_t leaf, Py_ssize_t feature, double min_share, TargetSums* sums,
    Cut* cuts,
) except -1 nogil:
    """Find the best cut of a feature by each measure; merits are those over all of the leaf."""
    cdef Slots slots = slots_in(tables, leaf, feature)
    cdef Elements elements
    cdef Py_ssize_t targets = tables.targets, measure
    cdef double present = 0.0
    for measure in range(MEASURES):
        cuts[measure] = Cut(0.0, -1, 0)
    if is_of_classes(tables):
        if tables.column.is_category[feature] or tables.grid_of(leaf, feature).inverse > 0.0:
            present = cut_classes(
                tables, leaf, &slots, sums, min_share, tables.column.is_category[feature],
                &cuts[TARGET],
            )
    elif tables.column.is_category[feature]:
        present = search_category(&slots, targets, sums, min_share, TARGET, &cuts[TARGET])
        if tables.linear:
            search_category(&slots, targets, sums, min_share, STEP, &cuts[STEP])
            cuts[LINE] = cuts[STEP]
    elif tables.slots == 0:
        with gil:
            elements = elements_of(store_of(tables, leaf, feature), targets)
        slots = slots_of_elements(&elements)
        present = search_number(&slots, targets, sums, min_share, tables.linear, cuts)
        free(elements.slots)
    elif tables.grid_of(leaf, feature).inverse > 0.0:
        present = search_number(&slots, targets, sums, min_share, tables.linear, cuts)
    for measure in range(MEASURES):
        cuts[measure].merit *= present / tables.leaves[leaf].weight
    return 0


cdef int rank_cuts(
    TreeTables tables, Py_ssize_t leaf, const Cut* cuts, Py_ssize_t feature, BestCut* best
) except -1 nogil:
    """Let the cuts of a feature be the best, or the second, where they are.

    A cut that separates the same rows as the best one so far is no rival of it.
    """
    cdef double near = tables.growth.same_merit
    cdef Py_ssize_t measure
    cdef BestCut cut
    cdef bint is_same
    for measure in range(MEASURES):
        cut = BestCut(
            cuts[measure].merit,
            best[measure].second,
            feature,
            cuts[measure].place,
            cuts[measure].subset,
        )
        if not cut.merit > best[measure].second:
            continue
        is_same = False
        if cut.merit > near * best[measure].merit and best[measure].merit > near * cut.merit:
            find_if_same(tables, leaf, &cut, best + measure, &is_same)
        if is_same:
            # Of features that make the same split the first is taken, whatever rounding says.
            if cut.merit > best[measure].merit * (1.0 + SAME_MERIT_ROUNDING):
                best[measure] = cut
        elif cut.merit > best[measure].merit:
            cut.second = best[measure].merit
            best[measure] = cut
        else:
            best[measure].second = cut.merit
    return 0


cdef int find_if_same(
    TreeTables tables, Py_ssize_t leaf, const BestCut* one, const BestCut* other, bint* is_same
) except -1 nogil:
    """Find whether two cuts of a leaf separate nearly the same rows, as far as their sums show it.

    Left and right may be exchanged. Of several targets, the sums of each have to be near.
    """
    cdef double weight = tables.leaves[leaf].weight
    cdef const TargetPart* own
    cdef bint is_straight = True, is_crossed = True
    cdef Slot far
    cdef Sides mine, its
    cdef Py_ssize_t target
    far.weight = tables.growth.same_share * weight
    for target in range(tables.targets):
        own = part_of(tables, tables.targets, leaf, target)
        far.target = far.weight * sqrt(own.target_m2 / weight)
        far.residual = far.weight * sqrt(own.residual_m2 / weight)
        find_centred_sides(tables, leaf, one, target, own, &mine)
        find_centred_sides(tables, leaf, other, target, own, &its)
        is_straight &= are_near(&mine.left, &its.left, &far)
        is_straight &= are_near(&mine.right, &its.right, &far)
        is_crossed &= are_near(&mine.left, &its.right, &far)
        is_crossed &= are_near(&mine.right, &its.left, &far)
    is_same[0] = is_straight or is_crossed
    return 0


cdef int find_centred_sides(
    TreeTables tables, Py_ssize_t leaf, const BestCut* cut, Py_ssize_t target,
    const TargetPart* own, Sides* sides,
) except -1 nogil:
    """As `find_sides`, but with the weights of all rows, and sums of distances from the means."""
    cdef double left, right
    find_sides(tables, leaf, cut, target, sides)
    left, right = sides.left.weight, sides.right.weight
    slot_add(&sides.left, -left * own.target_mean, -left * own.residual_mean, 0.0)
    slot_add(&sides.right, -right * own.target_mean, -right * own.residual_mean, 0.0)
    sides.left.weight, sides.right.weight = sides.left_rows, sides.right_rows
    return 0


cdef inline bint are_near(const Slot* one, const Slot* other, const Slot* far) noexcept nogil:
    """Whether two sides differ by no more than so much."""
    return (
        fabs(one.weight - other.weight) <= far.weight
        and fabs(one.target - other.target) <= far.target
        and fabs(one.residual - other.residual) <= far.residual
    )


cdef int find_best_cuts(
    TreeTables tables, Py_ssize_t leaf, double min_share, BestCut* best
) except -1 nogil:
    """Find for each measure the best cut of a leaf."""
    cdef TargetSums one
    cdef TargetSums* sums = begin_search(tables, &one)
    cdef Cut cuts[MEASURES]
    cdef Py_ssize_t feature, measure
    for measure in range(MEASURES):
        best[measure] = BestCut(0.0, 0.0, -1, -1, 0)
    for feature in range(tables.features):
        if tables.column.may_split[feature]:
            cut_feature(tables, leaf, feature, min_share, sums, cuts)
            rank_cuts(tables, leaf, cuts, feature, best)
    return 0


cdef inline void add_to_side(
    Slot* side, double* rows, const double* slot, double gap, Py_ssize_t target
) noexcept nogil:
    slot_add(side, slot[1 + 2 * target], slot[2 + 2 * target], slot[0] - gap)
    rows[0] += slot[0]


cdef void sum_sides(
    TreeTables tables, Py_ssize_t leaf, const BestCut* cut, const Slots* slots, Py_ssize_t target,
    Sides* sides,
) noexcept nogil:
    """Sum up for a target what lies on the sides of a cut of slots, and where it is missing."""
    cdef Slots own = slots_in(tables, leaf, cut.feature)
    cdef const double* each
    cdef bint by_category = tables.column.is_category[cut.feature], goes_right
    cdef double gap = 0.0, missing = 0.0
    cdef Py_ssize_t slot
    memset(sides, 0, sizeof(Sides))
    for slot in range(slots.count):
        each = slots.at + slots.size * slot
        if each[0] == 0.0:
            continue
        goes_right = slot > cut.place
        if by_category:
            goes_right = not (cut.subset >> slot) & 1
            sides.seen |= <uint64_t>1 << slot
        if slots.gaps != NULL:
            gap = slots.gaps[tables.targets * slot + target]
        if goes_right:
            add_to_side(&sides.right, &sides.right_rows, each, gap, target)
        else:
            add_to_side(&sides.left, &sides.left_rows, each, gap, target)
    if own.gaps != NULL:
        gap = own.gaps[tables.targets * own.count + target]
    add_to_side(&sides.missing, &missing, own.at + own.size * own.count, gap, target)


cdef int find_sides(
    TreeTables tables, Py_ssize_t leaf, const BestCut* cut, Py_ssize_t target, Sides* sides
) except -1 nogil:
    """Sum up for a target what lies on the sides of a cut, and where its feature is missing."""
    cdef Slots slots = slots_in(tables, leaf, cut.feature)
    cdef Elements elements
    elements.slots = NULL
    if not tables.column.is_category[cut.feature] and tables.slots == 0:
        with gil:
            elements = elements_of(store_of(tables, leaf, cut.feature), tables.targets)
        slots = slots_of_elements(&elements)
    sum_sides(tables, leaf, cut, &slots, target, sides)
    free(elements.slots)
    return 0


cdef int find_missing_side(
    TreeTables tables, Py_ssize_t leaf, const BestCut* cut, bint of_target, bint* goes_left
) except -1 nogil:
    """Send missing values where y (or residuals) are nearer to theirs, in units of each target.

    If that is known of no target, they go to the heavier side.
    """
    cdef double farther = 0.0, left, right, missing
    cdef Sides sides
    cdef Py_ssize_t target
    cdef bint is_known = False
    for target in range(tables.targets):
        find_sides(tables, leaf, cut, target, &sides)
        if sides.missing.weight > 0.0 and sides.left.weight > 0.0 and sides.right.weight > 0.0:
            is_known = True
            missing = mean_of(&sides.missing, of_target)
            left = fabs(mean_of(&sides.left, of_target) - missing)
            right = fabs(mean_of(&sides.right, of_target) - missing)
            # The difference of their squares, whose sign no rounding changes.
            farther += unit_of(tables, target) * ((left - right) * (left + right))
    goes_left[0] = farther <= 0.0 if is_known else sides.left_rows >= sides.right_rows
    return 0


cdef inline double mean_of(const Slot* side, bint of_target) noexcept nogil:
    return (side.target if of_target else side.residual) / side.weight


cdef int find_threshold(
    TreeTables tables, Py_ssize_t leaf, Py_ssize_t feature, Py_ssize_t place, double* threshold
) except -1 nogil:
    """Where a number is cut after a slot or an element; 0 for a category."""
    cdef const Grid* grid = tables.grid_of(leaf, feature)
    threshold[0] = 0.0
    if tables.slots and not tables.column.is_category[feature]:
        threshold[0] = round_cut(
            slot_border(grid, place + 1), tables.column.facts[feature].decimals
        )
    elif not tables.column.is_category[feature]:
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
        The merit, the best merit of any rival, the feature (-1 if there is no cut), the
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

    Of several targets, those of the first.

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
    find_sides(tables, leaf, &cut, 0, &sides)
    parts = (sides.left, sides.right, sides.missing)
    return [(each["weight"], each["target"], each["residual"]) for each in parts], sides.seen


def threshold_of(TreeTables tables not None, Py_ssize_t leaf, Py_ssize_t feature, Py_ssize_t place):
    """Return where a number is cut after a slot or an element."""
    cdef double threshold
    find_threshold(tables, leaf, feature, place, &threshold)
    return threshold
