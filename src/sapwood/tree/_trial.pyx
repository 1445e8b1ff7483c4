"""Splits on trial: what two features do together, where no single cut shows anything.

Where y is the product of two features, or their signs, neither of them cuts it: not before the
other has. A leaf that has waited for long, and has much left to explain, tries its features in
turn, each cut in the middle. Beside the leaf, either side of that cut watches the residual in pages
of its own for a grace period. If a side then shows a cut of another feature far beyond noise
and beyond what the leaf itself shows, the split is made; the children find that cut themselves. If
not, it is the next feature's turn, and after the last of them the leaf waits until it has seen
several times as many rows. There is one trial in a tree at a time. The rules are those of
`sapwood.tree.growth`.
"""

from libc.string cimport memcpy, memset

from sapwood.tree._cuts cimport MEASURES, TARGET, Cut, Slots, TargetSums
from sapwood.tree._growth cimport variance_of
from sapwood.tree._memory cimport admits_trial
from sapwood.tree._prediction cimport target_node
from sapwood.tree._records cimport LEAF, GrowthRules, LeafRecord, Trial
from sapwood.tree._search cimport (
    BestCut, Sides, begin_search, find_missing_side, find_sides, find_threshold, known_targets,
    search_category, search_number, slots_in, slots_on,
    unit_of,
)
from sapwood.tree._tables cimport TreeTables
from sapwood.tree._target_records cimport TargetTrial
from sapwood.tree._watch cimport Grid


cdef int continue_trial(
    TreeTables tables, Py_ssize_t leaf, double merit, BestCut* cut, bint* is_shown
) except -1 nogil:
    """Begin, evaluate or continue a trial at a leaf that has no split to make.

    Parameters
    ----------
    tables : TreeTables
        Of the tree.
    leaf : int
        Which is due.
    merit : float
        Of the best cut of what is left to explain, over all of the leaf.
    cut : BestCut
        Gets the split that was on trial, if it is to be made.
    is_shown : bool
        Gets whether it is.
    """
    cdef LeafRecord* record = tables.leaves + leaf
    cdef Trial* trial = &tables.trial
    cdef Py_ssize_t feature = 0
    cdef Sides sides
    cdef bint has_begun = False
    is_shown[0] = False
    if trial.leaf == leaf:
        if record.weight < trial.ends:
            return 0
        if shows_more(tables, merit):
            is_shown[0] = True
            cut[0] = BestCut(
                merit_of_trial(tables), 0.0, trial.feature, trial.place, trial.subset
            )
            find_sides(tables, leaf, cut, 0, &sides)
            cut.subset &= sides.seen
            return 0
        feature = trial.feature + 1
    elif trial.leaf >= 0 or not may_try(tables, leaf):
        return 0
    elif not tables.get_trial_pages():
        with gil:
            raise MemoryError
    while feature < tables.features and not has_begun:
        if tables.column.may_split[feature]:
            begin_trial(tables, leaf, feature, &has_begun)
        feature += 1
    if not has_begun:
        tables.end_trial()
        tables.topology.nodes[record.node].gain = tables.growth.trial_pause * record.weight
    return 0


cdef bint may_try(TreeTables tables, Py_ssize_t leaf) noexcept nogil:
    """Whether a leaf has waited long enough, has enough to explain, and there is room."""
    cdef const LeafRecord* record = tables.leaves + leaf
    cdef const GrowthRules* rules = &tables.growth
    cdef double whole = variance_of_root(tables, leaf)
    return (
        tables.slots > 0
        and tables.columns.splittable > 1
        and record.weight >= rules.patience * rules.grace_period
        and record.weight >= tables.topology.nodes[record.node].gain
        and variance_of(tables, leaf, True) >= rules.trial_left * whole > 0.0
        and admits_trial(tables)
    )


cdef double variance_of_root(TreeTables tables, Py_ssize_t leaf) noexcept nogil:
    """The mean over targets of the variance that the root had when it was split, as merits are."""
    cdef double total = 0.0, deviation
    cdef Py_ssize_t target
    if tables.topology.nodes[0].kind == LEAF:
        return variance_of(tables, leaf, False)
    for target in range(tables.targets):
        deviation = target_node(tables, 0, target).deviation
        total += unit_of(tables, target) * (deviation * deviation)
    return total / known_targets(tables)


cdef int begin_trial(
    TreeTables tables, Py_ssize_t leaf, Py_ssize_t feature, bint* has_begun
) except -1 nogil:
    """Cut a feature of a leaf in the middle, on trial, if both sides are heavy enough."""
    cdef Trial trial
    cdef BestCut cut = middle_cut(tables, leaf, feature)
    cdef Sides sides
    cdef Py_ssize_t side, each
    cdef Grid* grids
    cdef bint missing_left
    has_begun[0] = False
    if cut.feature < 0:
        return 0
    memset(&trial, 0, sizeof(Trial))
    find_threshold(tables, leaf, feature, cut.place, &trial.threshold)
    find_sides(tables, leaf, &cut, 0, &sides)
    find_missing_side(tables, leaf, &cut, not tables.linear, &missing_left)
    trial.leaf, trial.feature, trial.place = leaf, feature, cut.place
    trial.missing_left = missing_left
    trial.subset = cut.subset
    if tables.column.is_category[feature] and trial.missing_left:
        trial.subset |= ~sides.seen
    trial.ends = tables.leaves[leaf].weight + tables.growth.grace_period
    for side in range(2):
        memset(tables.trial_pages[side], 0, tables.watch_table.doubles * sizeof(double))
        memcpy(tables.trial_pages[side], tables.watches[leaf], tables.features * sizeof(Grid))
        grids = <Grid*>tables.trial_pages[side]
        for each in range(tables.features):
            if grids[each].inverse == 0.0:
                grids[each].kept = 0.0
    tables.trial = trial
    if tables.targets > 1:
        memset(tables.of_targets.trials, 0, tables.targets * sizeof(TargetTrial))
    has_begun[0] = True
    return 0


cdef int renew_trial(TreeTables tables) except -1 nogil:
    """Begin a trial once more, as the grids of its leaf may be others now."""
    cdef Trial* trial = &tables.trial
    cdef bint has_begun
    begin_trial(tables, trial.leaf, trial.feature, &has_begun)
    if not has_begun:
        trial.weight[0] = trial.weight[1] = 0.0  # it shows nothing, and the next feature has a turn
        trial.ends = tables.leaves[trial.leaf].weight
    return 0


cdef BestCut middle_cut(TreeTables tables, Py_ssize_t leaf, Py_ssize_t feature) noexcept nogil:
    """The cut of a number nearest to its median, or the best of a category; of no feature if a
    side would be too light."""
    cdef Slots slots = slots_in(tables, leaf, feature)
    cdef double weight = tables.leaves[leaf].weight, present = 0.0, left = 0.0, lighter, most, own
    cdef Py_ssize_t slot
    cdef TargetSums one
    cdef BestCut cut = BestCut(0.0, 0.0, -1, -1, 0)
    cdef Cut best = Cut(0.0, -1, 0)
    most = tables.growth.trial_share * weight  # that the lighter side has to have at least
    if tables.column.is_category[feature]:
        present = search_category(
            &slots, tables.targets, begin_search(tables, &one), tables.growth.trial_share, TARGET,
            &best,
        )
        if best.place >= 0 and present >= 0.5 * weight:
            cut.feature, cut.place, cut.subset = feature, best.place, best.subset
        return cut
    if tables.grid_of(leaf, feature).inverse == 0.0:
        return cut
    for slot in range(slots.count):
        present += slots.at[slots.size * slot]
    for slot in range(slots.count - 1):
        own = slots.at[slots.size * slot]
        left += own
        lighter = min(left, present - left)
        if own > 0.0 and lighter >= most:
            most = lighter
            cut.feature, cut.place = feature, slot
    return cut


cdef bint shows_more(TreeTables tables, double merit) noexcept nogil:
    """Whether a side of the split on trial has a cut beyond noise, and beyond that of the leaf."""
    cdef const GrowthRules* rules = &tables.growth
    cdef const Trial* trial = &tables.trial
    cdef Py_ssize_t side, feature
    cdef double found, variance
    for side in range(2):
        if trial.weight[side] <= 0.0:
            continue
        variance = variance_in_trial(tables, side)
        for feature in range(tables.features):
            if feature == trial.feature or not tables.column.may_split[feature]:
                continue
            found = merit_in_trial(tables, side, feature)
            if (
                found > rules.trial_clearer * merit
                and trial.weight[side] * found > rules.trial_evidence * (variance - found)
            ):
                return True
    return False


cdef double variance_in_trial(TreeTables tables, Py_ssize_t side) noexcept nogil:
    """The mean over targets of the residual's variance on one side, as merits are."""
    cdef double total = 0.0
    cdef Py_ssize_t target
    for target in range(tables.targets):
        total += unit_of(tables, target) * trial_of(tables, tables.targets, target).m2[side]
    return total / (known_targets(tables) * tables.trial.weight[side])


cdef double merit_in_trial(
    TreeTables tables, Py_ssize_t side, Py_ssize_t feature
) noexcept nogil:
    """By how much the best cut of a feature lowers the residual's variance on one side."""
    cdef const Grid* grid = <const Grid*>tables.trial_pages[side] + feature
    cdef double share = tables.growth.trial_share, present = 0.0
    cdef Slots slots = slots_on(tables, tables.trial_pages[side], feature)
    cdef TargetSums one
    cdef TargetSums* sums = begin_search(tables, &one)
    cdef Cut cuts[MEASURES]
    cdef Py_ssize_t measure
    for measure in range(MEASURES):
        cuts[measure] = Cut(0.0, -1, 0)
    if tables.column.is_category[feature]:
        present = search_category(&slots, tables.targets, sums, share, TARGET, &cuts[TARGET])
    elif grid.inverse > 0.0:
        present = search_number(&slots, tables.targets, sums, share, False, cuts)
    return cuts[TARGET].merit * (present / tables.trial.weight[side])


cdef double merit_of_trial(TreeTables tables) noexcept nogil:
    """By how much the split on trial itself has lowered the residual's variance."""
    cdef const TargetTrial* own
    cdef double rows = tables.trial.weight[0] + tables.trial.weight[1], total = 0.0, whole, distance
    cdef Py_ssize_t target
    for target in range(tables.targets):
        own = trial_of(tables, tables.targets, target)
        whole = own.weight[0] + own.weight[1]
        if own.weight[0] > 0.0 and own.weight[1] > 0.0:
            distance = own.mean[0] - own.mean[1]
            total += unit_of(tables, target) * (
                own.weight[0] * own.weight[1] / (whole * whole) * distance * distance
            ) * (whole / rows)
    return total / known_targets(tables)
