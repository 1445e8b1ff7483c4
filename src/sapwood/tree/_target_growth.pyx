"""Several targets: where a leaf may be cut, and what its children start from.

The merit of a cut is the mean over targets of the share of their variance that it removes: what it
explains of a target among the rows of the leaf, divided by the target's variance over the whole
tree. That is so for all three measures of `_cuts.pxd`. A row in which a target is missing adds
nothing to its share; nor does a target whose y were always the same.
"""

from libc.math cimport INFINITY, sqrt
from libc.stdint cimport uint64_t
from libc.string cimport memset

from sapwood.tree._cuts cimport (
    LINE, MEASURES, STEP, TARGET, Cut, Sums, is_too_light, keep_better, line_explains,
    sort_in,
)
from sapwood.tree._records cimport CATEGORIES, EXPERTS, RATES
from sapwood.tree._search cimport BestCut, Sides, rank_cuts
from sapwood.tree._tables cimport TreeTables, slots_between
from sapwood.tree._target_records cimport (
    SIDES, TargetLeaf, TargetNode, TargetSide, TargetStream, TargetSums, coefficients_of, sides_in,
    sums_in,
)
from sapwood.tree._watch cimport Slot, slot_at

# A target is not asked where fewer of its rows than this share of them are on a side.
cdef double LEAST_SHARE = 1e-9
# Nor is one whose variance is so small that shares of it would be no doubles.
cdef double LEAST_VARIANCE = 1e-200
# As in _split.pyx, and FADED_SHARE in _growth.pyx.
cdef double MOST_INHERITED = 10.0
cdef double INHERITED_ERROR = 0.5
cdef double LARGEST_MERIT = 1e204
cdef double FADED_SHARE = 1.0 - 0.99


cdef inline TargetSums* sums_of(TreeTables tables) noexcept nogil:
    return sums_in(tables.scratch, tables.features, tables.targets, tables.separate)


cdef inline TargetSide* side_of(
    TreeTables tables, Py_ssize_t side, Py_ssize_t target
) noexcept nogil:
    """What `find_sides_of_targets` has found: of the left side, the right one, the missing."""
    return (
        sides_in(tables.scratch, tables.features, tables.targets, tables.separate)
        + tables.targets * side
        + target
    )


cdef inline double unit_of(const TargetStream* stream) noexcept nogil:
    """One over the variance of a target; 0 if it has none."""
    if not stream.m2 > LEAST_VARIANCE * stream.weight:
        return 0.0
    return stream.weight / stream.m2


cdef inline Py_ssize_t known_targets(TreeTables tables) noexcept nogil:
    """How many targets have a variance; 1 if none has."""
    cdef Py_ssize_t target, known = 0
    for target in range(tables.targets):
        known += unit_of(tables.target_streams + target) > 0.0
    return max(known, 1)


cdef inline void add_slot(
    TreeTables tables, Sums* sums, const Slot* slot, const double* gaps, Py_ssize_t target,
    double place,
) noexcept nogil:
    """Add a slot to the sums of a target, as if all of its rows were at one place."""
    add_rows(sums, slot.weight - gaps[target], place)
    add_y(sums, <const double*>slot + 1 + 2 * target, place)


cdef inline void add_rows(Sums* sums, double weight, double place) noexcept nogil:
    """Add rows at a place."""
    sums.weight += weight
    sums.place += weight * place
    sums.place_square += weight * place * place


cdef inline void add_y(Sums* sums, const double* own, double place) noexcept nogil:
    """Add sums of y and of the residual of rows at a place."""
    sums.target += own[0]
    sums.residual += own[1]
    sums.place_residual += own[1] * place


cdef inline void add_y_of_slot(
    Sums* side, const TargetSums* sums, Py_ssize_t target, const Slot* slot, const double* gap,
    double place,
) noexcept nogil:
    """Add the sums of a target in a slot, and their rows unless these are all rows of the slot."""
    add_y(side, <const double*>slot + 1 + 2 * target, place)
    if not sums.whole_is_known:
        add_rows(side, slot.weight - gap[0], place)


cdef inline bint has_both_sides(const TargetSums* sums) noexcept nogil:
    """Whether a target that has a variance was seen on both sides of a cut."""
    cdef double least = LEAST_SHARE * sums.whole.weight
    return (
        sums.unit > 0.0
        and sums.left.weight > least
        and sums.whole.weight - sums.left.weight > least
    )


cdef void begin_search(TreeTables tables, Py_ssize_t leaf) noexcept nogil:
    """Set the units of all targets; their sums are 0."""
    cdef TargetSums* sums = sums_of(tables)
    cdef Py_ssize_t target
    memset(sums, 0, tables.targets * sizeof(TargetSums))
    for target in range(tables.targets):
        sums[target].unit = unit_of(tables.target_streams + target)
        sums[target].whole_is_known = tables.target_streams[target].rows == tables.rows


cdef struct Shape:
    # How the rows of a target, or all of them, lie on the sides of a cut.
    double share        # of the left side
    double per_product  # one over the product of the weights of both sides
    double left_place   # the mean place of the left side
    double left_spread  # one over the squared distances from it; 0 where places hardly differ
    double right_place
    double right_spread


cdef inline double per_spread(double weighted_square, double place, double mean) noexcept nogil:
    """One over the sum of the squared distances from the mean place; 0 where they hardly differ."""
    cdef double spread = weighted_square - place * mean
    return 1.0 / spread if spread > 1e-9 * weighted_square else 0.0


cdef inline Shape shape_of(const Sums* whole, const Sums* left) noexcept nogil:
    """How rows lie on the sides of a cut, by their weights and places."""
    cdef double rest = whole.weight - left.weight
    cdef double per_product = 1.0 / (left.weight * rest)
    cdef double left_place = left.place * (rest * per_product)
    cdef double right_place = (whole.place - left.place) * (left.weight * per_product)
    return Shape(
        left.weight / whole.weight,
        per_product,
        left_place,
        per_spread(left.place_square, left.place, left_place),
        right_place,
        per_spread(
            whole.place_square - left.place_square, whole.place - left.place, right_place
        ),
    )


cdef inline void add_reductions(
    const TargetSums* sums, const Shape* shape, double weight, bint lines, double* merits
) noexcept nogil:
    """Add what a cut takes off the squares of a target, by each measure."""
    cdef double excess = sums.left.target - sums.whole.target * shape.share, step, slope
    merits[TARGET] += sums.unit * (excess * excess * shape.per_product * weight)
    if not lines:
        return
    excess = sums.left.residual - sums.whole.residual * shape.share
    step = excess * excess * shape.per_product * weight
    merits[STEP] += sums.unit * step
    slope = sums.left.place_residual - sums.left.residual * shape.left_place
    step += slope * slope * shape.left_spread
    slope = (sums.whole.place_residual - sums.left.place_residual) - (
        sums.whole.residual - sums.left.residual
    ) * shape.right_place
    step += slope * slope * shape.right_spread
    merits[LINE] += sums.unit * (step - sums.line)


cdef void sum_up(TreeTables tables, Py_ssize_t leaf, Py_ssize_t feature) noexcept nogil:
    """Sum up all slots of a feature but that of missing values; what is left of a cut is 0."""
    cdef TargetSums* sums = sums_of(tables)
    cdef const Slot* slots = tables.slots_of(leaf, feature)
    cdef const Slot* each
    cdef const double* gaps = tables.gaps_of(leaf, feature)
    cdef const double* gap
    cdef Py_ssize_t slot, target
    cdef Sums rows = Sums(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    for target in range(tables.targets):
        sums[target].whole = sums[target].left = rows
    for slot in range(slots_between(tables.slot_starts, feature)):
        each = slot_at(slots, tables.slot_size, slot)
        if each.weight == 0.0:
            continue
        add_rows(&rows, each.weight, slot)
        gap = gaps + tables.targets * slot
        for target in range(tables.targets):
            add_y_of_slot(&sums[target].whole, sums + target, target, each, gap + target, slot)
    for target in range(tables.targets):
        if sums[target].whole_is_known:
            sums[target].whole.weight = rows.weight
            sums[target].whole.place = rows.place
            sums[target].whole.place_square = rows.place_square
        if is_too_light(sums[target].whole.weight):
            sums[target].whole.weight = 0.0  # so that it has no two sides
        else:
            sums[target].line = line_explains(
                &sums[target].whole, 1.0 / sums[target].whole.weight
            )


cdef double reduction(const TargetSums* sums, int measure) noexcept nogil:
    """What a cut takes off the squares of a target, of which there are rows on both sides."""
    cdef double merits[MEASURES]
    cdef TargetSums unweighted = sums[0]
    cdef Shape shape = shape_of(&sums.whole, &sums.left)
    unweighted.unit = 1.0
    merits[TARGET] = merits[STEP] = merits[LINE] = 0.0
    add_reductions(&unweighted, &shape, sums.whole.weight, True, merits)
    return merits[measure]


cdef void cut_number_of_targets(
    TreeTables tables, Py_ssize_t leaf, Py_ssize_t feature, double min_share, double per_row,
    Cut* cuts,
) noexcept nogil:
    """Find the best cuts of a number; `per_row` makes means of sums over targets and rows."""
    cdef TargetSums* sums = sums_of(tables)
    cdef const Slot* slots = tables.slots_of(leaf, feature)
    cdef const Slot* each
    cdef const double* gaps = tables.gaps_of(leaf, feature)
    cdef const double* gap
    cdef Py_ssize_t slot, target
    cdef Sums whole = Sums(0.0, 0.0, 0.0, 0.0, 0.0, 0.0), left = whole
    cdef Shape of_rows, own
    cdef double merits[MEASURES]
    cdef int measure, measures = MEASURES if tables.linear else 1
    for slot in range(tables.slots):
        add_rows(&whole, slot_at(slots, tables.slot_size, slot).weight, slot)
    if is_too_light(whole.weight):
        return
    sum_up(tables, leaf, feature)
    for slot in range(tables.slots - 1):
        each = slot_at(slots, tables.slot_size, slot)
        if each.weight == 0.0:
            continue
        add_rows(&left, each.weight, slot)
        gap = gaps + tables.targets * slot
        for target in range(tables.targets):
            add_y_of_slot(&sums[target].left, sums + target, target, each, gap + target, slot)
        if left.weight < min_share * whole.weight:
            continue
        if not (whole.weight - left.weight >= min_share * whole.weight):
            break
        for measure in range(measures):
            merits[measure] = 0.0
        of_rows = shape_of(&whole, &left)
        for target in range(tables.targets):
            if not sums[target].unit > 0.0:
                continue
            if sums[target].whole_is_known:
                add_reductions(sums + target, &of_rows, whole.weight, tables.linear, merits)
            elif has_both_sides(sums + target):
                own = shape_of(&sums[target].whole, &sums[target].left)
                add_reductions(
                    sums + target, &own, sums[target].whole.weight, tables.linear, merits
                )
        for measure in range(measures):
            keep_better(&cuts[measure], merits[measure] * per_row, slot)


cdef Py_ssize_t sort_categories(
    TreeTables tables, Py_ssize_t leaf, Py_ssize_t feature, Py_ssize_t target, int measure,
    Py_ssize_t* order,
) noexcept nogil:
    """The categories that were seen in the order of a target's means; how many there are.

    One of which the target was never seen counts as if it were at its mean.
    """
    cdef const Sums* whole = &sums_of(tables)[target].whole
    cdef const Slot* slots = tables.slots_of(leaf, feature)
    cdef const Slot* slot
    cdef const double* gaps = tables.gaps_of(leaf, feature)
    cdef double means[CATEGORIES]
    cdef double mean, weight
    cdef Py_ssize_t present = 0, code
    for code in range(CATEGORIES):
        slot = slot_at(slots, tables.slot_size, code)
        if slot.weight == 0.0:
            continue
        weight = slot.weight - gaps[tables.targets * code + target]
        if weight > 0.0:
            mean = (<const double*>slot)[1 + 2 * target + (measure != TARGET)] / weight
        else:
            mean = (whole.target if measure == TARGET else whole.residual) / whole.weight
        sort_in(order, means, present, code, mean)
        present += 1
    return present


cdef void cut_category_of_targets(
    TreeTables tables, Py_ssize_t leaf, Py_ssize_t feature, double min_share, double per_row,
    int measure, Cut* cut,
) noexcept nogil:
    """Find the best subset of categories: a prefix of them in the order of some target's means."""
    cdef TargetSums* sums = sums_of(tables)
    cdef const Slot* slots = tables.slots_of(leaf, feature)
    cdef const double* gaps = tables.gaps_of(leaf, feature)
    cdef Py_ssize_t order[CATEGORIES]
    cdef Py_ssize_t by, target, place, code, present
    cdef double whole = 0.0, left, merit
    cdef uint64_t subset
    for code in range(CATEGORIES):
        whole += slot_at(slots, tables.slot_size, code).weight
    if is_too_light(whole):
        return
    sum_up(tables, leaf, feature)
    for by in range(tables.targets):
        if not (sums[by].unit > 0.0 and sums[by].whole.weight > 0.0):
            continue
        present = sort_categories(tables, leaf, feature, by, measure, order)
        left, subset = 0.0, 0
        for target in range(tables.targets):
            sums[target].left = Sums(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        for place in range(present - 1):
            code = order[place]
            left += slot_at(slots, tables.slot_size, code).weight
            subset |= <uint64_t>1 << code
            merit = 0.0
            for target in range(tables.targets):
                add_slot(
                    tables,
                    &sums[target].left,
                    slot_at(slots, tables.slot_size, code),
                    gaps + tables.targets * code,
                    target,
                    0.0,
                )
                if has_both_sides(sums + target):
                    merit += sums[target].unit * reduction(sums + target, measure)
            if left >= min_share * whole and whole - left >= min_share * whole:
                if merit * per_row > cut.merit:
                    cut.merit, cut.place, cut.subset = merit * per_row, place, subset


cdef void find_cuts_of_targets(
    TreeTables tables, Py_ssize_t leaf, double min_share, BestCut* best
) noexcept nogil:
    """Find for each measure the best cut of a leaf."""
    cdef double per_row = 1.0 / (known_targets(tables) * tables.leaves[leaf].weight)
    cdef Cut cuts[MEASURES]
    cdef Py_ssize_t feature, measure
    begin_search(tables, leaf)
    for measure in range(MEASURES):
        best[measure] = BestCut(0.0, 0.0, -1, -1, 0)
    for feature in range(tables.features):
        if not tables.may_split[feature]:
            continue
        for measure in range(MEASURES):
            cuts[measure] = Cut(0.0, -1, 0)
        if tables.is_category[feature]:
            for measure in range(2 if tables.linear else 1):
                cut_category_of_targets(
                    tables, leaf, feature, min_share, per_row, measure, &cuts[measure]
                )
            cuts[LINE] = cuts[STEP]
        elif tables.grid_of(leaf, feature).inverse > 0.0:
            cut_number_of_targets(tables, leaf, feature, min_share, per_row, cuts)
        rank_cuts(cuts, feature, best)


cdef double variance_of_targets(
    TreeTables tables, Py_ssize_t leaf, bint of_residual
) noexcept nogil:
    """The mean over targets of their variance in a leaf, or that of residuals, as merits are."""
    cdef const TargetLeaf* own
    cdef double total = 0.0
    cdef Py_ssize_t target
    for target in range(tables.targets):
        own = tables.target_leaf(leaf, target)
        total += unit_of(tables.target_streams + target) * (
            own.residual_m2 if of_residual else own.target_m2
        )
    return total / (known_targets(tables) * tables.leaves[leaf].weight)


cdef inline double least_error(TreeTables tables, const TargetLeaf* own, bint of_all) noexcept nogil:
    """The least faded error of the experts of a target; the mean is one if it is asked, or all."""
    cdef double least = own.errors[0] if tables.averaging or of_all else INFINITY
    cdef Py_ssize_t expert
    for expert in range(1, EXPERTS if tables.linear else 1):
        least = min(least, own.errors[expert])
    return least


cdef bint are_outdated(
    TreeTables tables, Py_ssize_t leaf, double least_rows, double times
) noexcept nogil:
    """Whether the errors that a leaf has now are nothing beside those that it had, in all targets.
    """
    cdef const TargetLeaf* own
    cdef bint any_known = False
    cdef Py_ssize_t target
    for target in range(tables.targets):
        own = tables.target_leaf(leaf, target)
        if own.rows == 0.0:
            continue
        any_known = True
        if own.rows < least_rows or not (
            FADED_SHARE * least_error(tables, own, False) * own.rows * times < own.residual_m2
        ):
            return False
    return any_known


cdef double error_of_targets(TreeTables tables, Py_ssize_t leaf) noexcept nogil:
    """The mean over targets of the least faded error of a leaf, as shares of their variances."""
    cdef double total = 0.0
    cdef Py_ssize_t target
    for target in range(tables.targets):
        total += unit_of(tables.target_streams + target) * least_error(
            tables, tables.target_leaf(leaf, target), True
        )
    return total / known_targets(tables)


# -- what lies on the sides of a cut ----------------------------------------------------------


cdef void find_sides_of_targets(
    TreeTables tables, Py_ssize_t leaf, const BestCut* cut
) noexcept nogil:
    """Sum up for each target what lies on the sides of a cut, and where its feature is missing."""
    cdef const Slot* slots = tables.slots_of(leaf, cut.feature)
    cdef const Slot* each
    cdef const double* gaps = tables.gaps_of(leaf, cut.feature)
    cdef Py_ssize_t count = slots_between(tables.slot_starts, cut.feature), slot, target, side
    cdef TargetSide* found
    memset(side_of(tables, 0, 0), 0, SIDES * tables.targets * sizeof(TargetSide))
    for slot in range(count + 1):
        each = slot_at(slots, tables.slot_size, slot)
        if slot == count:
            side = 2
        elif tables.is_category[cut.feature]:
            side = not (cut.subset >> slot) & 1
        else:
            side = slot > cut.place
        for target in range(tables.targets):
            found = side_of(tables, side, target)
            found.weight += each.weight - gaps[tables.targets * slot + target]
            found.target += (<const double*>each)[1 + 2 * target]
            found.residual += (<const double*>each)[2 + 2 * target]


cdef inline double mean_of(const TargetSide* side, bint of_target) noexcept nogil:
    return (side.target if of_target else side.residual) / side.weight


cdef bint missing_targets_go_left(
    TreeTables tables, const Sides* sides, bint of_target
) noexcept nogil:
    """Send missing values where y (or residuals) are nearer to theirs, in units of each target.

    If no target tells, they go to the heavier side.
    """
    cdef double left = 0.0, right = 0.0, unit, distance
    cdef const TargetSide* missing
    cdef Py_ssize_t target
    cdef bint is_told = False
    for target in range(tables.targets):
        unit = unit_of(tables.target_streams + target)
        missing = side_of(tables, 2, target)
        if (
            missing.weight > 0.0
            and side_of(tables, 0, target).weight > 0.0
            and side_of(tables, 1, target).weight > 0.0
        ):
            is_told = True
            distance = mean_of(side_of(tables, 0, target), of_target) - mean_of(missing, of_target)
            left += unit * distance * distance
            distance = mean_of(side_of(tables, 1, target), of_target) - mean_of(missing, of_target)
            right += unit * distance * distance
    return left <= right if is_told else sides.left.weight >= sides.right.weight


cdef double gain_of(
    TreeTables tables, Py_ssize_t leaf, const BestCut* cut, int measure, Py_ssize_t target
) noexcept nogil:
    """What a cut takes off the squares of a target, as a multiple of its variance."""
    cdef const Slot* slots = tables.slots_of(leaf, cut.feature)
    cdef const double* gaps = tables.gaps_of(leaf, cut.feature)
    cdef TargetSums sums
    cdef Py_ssize_t slot
    cdef bint goes_left, by_category = tables.is_category[cut.feature]
    memset(&sums, 0, sizeof(TargetSums))
    for slot in range(slots_between(tables.slot_starts, cut.feature)):
        goes_left = (cut.subset >> slot) & 1 if by_category else slot <= cut.place
        add_slot(
            tables, &sums.whole, slot_at(slots, tables.slot_size, slot),
            gaps + tables.targets * slot, target, slot,
        )
        if goes_left:
            add_slot(
                tables, &sums.left, slot_at(slots, tables.slot_size, slot),
                gaps + tables.targets * slot, target, slot,
            )
    sums.unit = unit_of(tables.target_streams + target)
    if is_too_light(sums.whole.weight) or not has_both_sides(&sums):
        return 0.0
    sums.line = line_explains(&sums.whole, 1.0 / sums.whole.weight)
    if by_category and measure == LINE:
        measure = STEP
    return min(max(0.0, sums.unit * reduction(&sums, measure)), LARGEST_MERIT * sums.whole.weight)


cdef void divide_targets(
    TreeTables tables, Py_ssize_t leaf, const BestCut* cut, int measure, Py_ssize_t right,
    Py_ssize_t node,
) noexcept nogil:
    """Write what a node knows of each target that is split, and what its children start from.

    Its leaf becomes the left child, and the slots are still those of the parent. The models of
    the right child are copies of the parent's; the nodes of the children are `node` and the next.
    """
    cdef TargetLeaf parent
    cdef TargetNode* own
    cdef Py_ssize_t at = tables.nodes[node].parent, target
    for target in range(tables.targets):
        parent = tables.target_leaf(leaf, target)[0]
        own = tables.target_nodes + at * tables.targets + target
        # A leaf's node holds the weight of the rows that it inherited; their mean is its origin.
        own.weight += parent.weight
        own.mean = parent.origin
        own.deviation = 0.0
        if parent.weight > 0.0:
            own.mean += parent.target_mean * (parent.weight / own.weight)
            own.deviation = sqrt(parent.target_m2 / parent.weight)
        own.gain = gain_of(tables, leaf, cut, measure, target)
        start_target(tables, &parent, leaf, node, target, side_of(tables, 0, target))
        start_target(tables, &parent, right, node + 1, target, side_of(tables, 1, target))


cdef void start_target(
    TreeTables tables, const TargetLeaf* parent, Py_ssize_t leaf, Py_ssize_t node,
    Py_ssize_t target, const TargetSide* side,
) noexcept nogil:
    """Write what a child knows of a target, of which its parent knows weight and sums."""
    cdef TargetLeaf* child = tables.target_leaf(leaf, target)
    cdef TargetNode* own = tables.target_nodes + node * tables.targets + target
    cdef const TargetStream* stream = tables.target_streams + target
    cdef double* coefficients
    cdef double shift
    cdef Py_ssize_t expert, rate
    memset(own, 0, sizeof(TargetNode))
    memset(child, 0, sizeof(TargetLeaf))
    own.weight = max(side.weight, 0.0)
    for expert in range(EXPERTS):
        child.errors[expert] = INHERITED_ERROR * parent.errors[expert]
        child.said[expert] = INHERITED_ERROR * parent.said[expert]
    child.origin = parent.origin
    child.mean, child.mean_weight = parent.mean, min(parent.mean_weight, MOST_INHERITED)
    if side.weight > 0.0:
        # What is missing may round what is there: but a mean is within the range.
        child.origin += side.target / side.weight
        child.origin = min(max(child.origin, stream.low), stream.high)
        child.mean, child.mean_weight = 0.0, min(side.weight, MOST_INHERITED)
        if tables.linear:
            # It measures y from its own mean, so that the constant of its model moves back by it.
            shift = side.residual / side.weight - (child.origin - parent.origin)
            coefficients = coefficients_of(
                tables.models[leaf], tables.features, tables.separate, target
            )
            for rate in range(RATES):
                coefficients[rate] += shift
