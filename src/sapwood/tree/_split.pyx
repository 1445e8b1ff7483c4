"""A leaf becomes a split with two leaves, which start from what it knew.

Whatever may fail comes first; then everything is changed in one go that cannot.
"""

from libc.math cimport sqrt
from libc.stdint cimport uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from sapwood.tree._column_tables cimport clear_watch
from sapwood.tree._experts cimport INHERITED_ERROR, LARGEST_MERIT, MOST_INHERITED
from sapwood.tree._model cimport PRIOR, PRIOR_OF_CONSTANT
from sapwood.tree._records cimport (
    CATEGORY, EXPERTS, LEAF, NUMBER, RATES, SQUARE_TERMS, LeafRecord, NodeRecord, TargetPart,
    covariance_at, terms_of,
)
from sapwood.tree._cuts cimport (
    LINE, MEASURES, STEP, TARGET, Slots, TargetSums, add_merits, is_divided, is_too_light,
    line_explains, sums_add,
)
from sapwood.tree._prediction cimport (
    highest_of, leaf_weight_of, lowest_of, part_of, rows_of, target_node,
)
from sapwood.tree._search cimport (
    BestCut, Elements, Sides, elements_of, find_missing_side, find_sides, find_threshold, slots_in,
    slots_of_elements, store_of, sum_sides, unit_of,
)
from sapwood.tree._leaves cimport Watchers
from sapwood.tree._tables cimport TreeTables
from sapwood.tree._target_records cimport TargetNode, coefficients_of, model_of
from sapwood.tree._watch cimport Grid, Slot, lay_over, slot_at, slot_border

from sapwood.tree._review import deviation_of

# A child is so much less sure of the coefficients than its parent was; but nothing becomes more
# uncertain than so many times its prior.
cdef double INFLATION = 3.0
cdef double MOST_UNCERTAIN = 4.0


cdef inline double prior_of(Py_ssize_t term) noexcept nogil:
    return PRIOR_OF_CONSTANT if term == 0 else PRIOR


cdef int split_leaf(
    TreeTables tables, Py_ssize_t leaf, const BestCut* cut, int measure
) except -1 nogil:
    """Turn a leaf into a split by a cut that was decided on.

    Its record and its pages become those of the left child; the right one gets new ones, at the
    end. The tables have room for it.

    Parameters
    ----------
    tables : TreeTables
        Of the tree.
    leaf : int
        What is split.
    cut : BestCut
        Where.
    measure : {TARGET, STEP, LINE}
        What its merit is that of.
    """
    cdef Sides sides
    cdef Slots slots = slots_in(tables, leaf, cut.feature)
    cdef double threshold
    cdef uint64_t subset = cut.subset
    cdef bint missing_left
    tables.get_spares()
    find_threshold(tables, leaf, cut.feature, cut.place, &threshold)
    find_missing_side(tables, leaf, cut, measure == TARGET, &missing_left)
    find_sides(tables, leaf, cut, 0, &sides)
    if tables.column.is_category[cut.feature] and missing_left:
        subset |= ~sides.seen
    if tables.slots == 0:
        with gil:
            divide_observers(tables, leaf, cut, measure, threshold, subset, missing_left, &sides)
    else:
        divide(tables, leaf, cut, measure, threshold, subset, missing_left, &slots, &sides)
    return 0


def split_by(
    TreeTables tables not None,
    Py_ssize_t leaf,
    Py_ssize_t feature,
    Py_ssize_t place,
    uint64_t subset,
    double merit,
    bint of_target,
):
    """Split a leaf by a cut, earned or not."""
    cdef BestCut cut = BestCut(merit, 0.0, feature, place, subset)
    if not tables.has_room():
        tables.make_room()
    split_leaf(tables, leaf, &cut, TARGET if of_target else STEP)
    tables.drop_spares()


cdef int divide_observers(
    TreeTables tables, Py_ssize_t leaf, const BestCut* cut, int measure, double threshold,
    uint64_t subset, bint missing_left, Sides* sides,
) except -1:
    """As `divide`; the children get observers by the deviations of the features in the leaf."""
    cdef list deviations = [0.0] * tables.features
    cdef Slots slots = slots_in(tables, leaf, cut.feature)
    cdef Elements elements
    cdef Py_ssize_t feature
    for feature in range(tables.features):
        deviations[feature] = deviation_of(tables, leaf, feature)
    cdef Watchers left = Watchers(tables.fresh_observers(deviations))
    cdef Watchers right = Watchers(tables.fresh_observers(deviations))
    elements.slots = NULL
    if not tables.column.is_category[cut.feature]:
        elements = elements_of(store_of(tables, leaf, cut.feature), tables.targets)
        slots = slots_of_elements(&elements)
    divide(tables, leaf, cut, measure, threshold, subset, missing_left, &slots, sides)
    free(elements.slots)
    tables.put_watchers(leaf, left)
    tables.put_watchers(tables.leaf_count - 1, right)
    return 0


cdef void divide(
    TreeTables tables, Py_ssize_t leaf, const BestCut* cut, int measure, double threshold,
    uint64_t subset, bint missing_left, const Slots* slots, Sides* sides,
) noexcept nogil:
    """Change all tables for a split; the sides are those of the first target.

    The slots are those of the leaf, or the elements of its observer.
    """
    cdef Py_ssize_t right = tables.leaf_count, node = tables.topology.count, target
    cdef Py_ssize_t parent = tables.leaves[leaf].node
    cdef double weight = tables.leaves[leaf].weight
    if tables.trial.leaf == leaf:
        tables.end_trial()
    clear_watch(tables.columns, tables.spare_watch)
    tables.watch_table.put(right, tables.spare_watch)
    tables.spare_watch = NULL
    tables.leaves[right].watching = True
    tables.topology.count, tables.leaf_count = node + 2, right + 1
    split_node(tables, parent, cut, threshold, subset, missing_left)
    if tables.linear:
        become_less_sure(tables, leaf)
        memcpy(
            tables.spare_model, tables.models[leaf], tables.model_table.doubles * sizeof(double)
        )
        tables.model_table.put(right, tables.spare_model)
        tables.spare_model = NULL
    start_node(tables, parent, leaf, node, sides.left_rows)
    start_node(tables, parent, right, node + 1, sides.right_rows)
    # A leaf's node holds the weight of the rows that it inherited; their mean is its origin.
    weight += tables.topology.nodes[parent].weight
    for target in range(tables.targets):
        if target > 0:
            sum_sides(tables, leaf, cut, slots, target, sides)
        divide_target(tables, leaf, right, cut, measure, node, target, slots, sides)
    tables.topology.nodes[parent].weight = weight
    tables.topology.nodes[parent].gain = tables.leaves[leaf].weight * min(cut.merit, LARGEST_MERIT)
    start_leaf(tables, leaf, node)
    start_leaf(tables, right, node + 1)
    divide_watch(tables, leaf, right, cut.feature, cut.place)


cdef void split_node(
    TreeTables tables, Py_ssize_t at, const BestCut* cut, double threshold, uint64_t subset,
    bint missing_left,
) noexcept nogil:
    """Turn the node of a leaf into a split; its children are the last two nodes."""
    cdef NodeRecord* node = tables.topology.nodes + at
    node.kind = CATEGORY if tables.column.is_category[cut.feature] else NUMBER
    node.feature, node.child = <int>cut.feature, <int>(tables.topology.count - 2)
    node.missing_left, node.threshold, node.subset = missing_left, threshold, subset


cdef void start_node(
    TreeTables tables, Py_ssize_t parent, Py_ssize_t leaf, Py_ssize_t at, double weight
) noexcept nogil:
    """Write the node of a child, which inherits rows of so much weight."""
    cdef NodeRecord* node = tables.topology.nodes + at
    memset(node, 0, sizeof(NodeRecord))
    node.kind, node.child, node.parent = LEAF, <int>leaf, <int>parent
    node.weight = weight
    node.depth = tables.topology.nodes[parent].depth + 1


cdef void start_leaf(TreeTables tables, Py_ssize_t leaf, Py_ssize_t at) noexcept nogil:
    """Write what a child knows of its own rows: nothing."""
    cdef LeafRecord* child = tables.leaves + leaf
    child.node = <int>at
    child.rows = child.weight = 0.0
    child.due = child.review = tables.growth.grace_period
    child.born = tables.stream.weight


cdef void divide_target(
    TreeTables tables, Py_ssize_t leaf, Py_ssize_t right, const BestCut* cut, int measure,
    Py_ssize_t node, Py_ssize_t target, const Slots* slots, const Sides* sides,
) noexcept nogil:
    """Write what a node knows of a target that is split, and what its children start from.

    Its leaf becomes the left child, and the slots are still those of the parent. The models of
    the right child are copies of the parent's; the nodes of the children are `node` and the next.
    """
    cdef TargetPart parent = part_of(tables, tables.targets, leaf, target)[0]
    cdef double weight = leaf_weight_of(tables, tables.targets, leaf, target)
    cdef TargetNode* own = target_node(tables, tables.topology.nodes[node].parent, target)
    own.weight += weight
    own.mean = parent.origin
    own.deviation = 0.0
    if weight > 0.0:
        own.mean += parent.target_mean * (weight / own.weight)
        own.deviation = sqrt(parent.target_m2 / weight)
    own.gain = gain_of(tables, cut, measure, target, slots)
    start_target(tables, &parent, leaf, node, target, &sides.left)
    start_target(tables, &parent, right, node + 1, target, &sides.right)


cdef double gain_of(
    TreeTables tables, const BestCut* cut, int measure, Py_ssize_t target, const Slots* slots
) noexcept nogil:
    """What a cut takes off the squares of a target, in its unit."""
    cdef double merits[MEASURES]
    cdef TargetSums sums
    cdef double gap = 0.0, place
    cdef Py_ssize_t slot
    cdef bint goes_left, by_category = tables.column.is_category[cut.feature]
    memset(&sums, 0, sizeof(TargetSums))
    for slot in range(slots.count):
        goes_left = (cut.subset >> slot) & 1 if by_category else slot <= cut.place
        if slots.gaps != NULL:
            gap = slots.gaps[tables.targets * slot + target]
        place = slot if slots.places == NULL else slots.places[slot]
        sums_add(&sums.whole, slots.at + slots.size * slot, target, gap, place)
        if goes_left:
            sums_add(&sums.left, slots.at + slots.size * slot, target, gap, place)
    sums.worth = unit_of(tables, target)
    if is_too_light(sums.whole.weight) or not is_divided(&sums):
        return 0.0
    if by_category and measure == LINE:
        measure = STEP
    merits[TARGET] = merits[STEP] = merits[LINE] = 0.0
    sums.per_weight = 1.0 / sums.whole.weight
    sums.line = line_explains(&sums.whole, sums.per_weight)
    add_merits(&sums, sums.worth * sums.whole.weight, True, merits)
    return min(max(0.0, merits[measure]), LARGEST_MERIT * sums.whole.weight)


cdef void start_target(
    TreeTables tables, const TargetPart* parent, Py_ssize_t leaf, Py_ssize_t node,
    Py_ssize_t target, const Slot* side,
) noexcept nogil:
    """Write what a child knows of a target, of which its parent knows weight and sums."""
    cdef TargetPart* child = part_of(tables, tables.targets, leaf, target)
    cdef TargetNode* own = target_node(tables, node, target)
    cdef double* coefficients
    cdef double shift, origin
    cdef Py_ssize_t expert, rate
    memset(own, 0, sizeof(TargetNode))
    memset(child, 0, sizeof(TargetPart))
    if tables.targets > 1:
        tables.target_leaf(leaf, target).rows = tables.target_leaf(leaf, target).weight = 0.0
    own.weight = max(side.weight, 0.0)
    for expert in range(EXPERTS):
        child.errors[expert] = INHERITED_ERROR * parent.errors[expert]
        child.issued_errors[expert] = INHERITED_ERROR * parent.issued_errors[expert]
    child.origin = parent.origin
    child.mean = parent.mean
    child.mean_weight = min(parent.mean_weight, MOST_INHERITED)
    if not side.weight > 0.0:
        return
    # It measures y from its own mean, so that the constant of its model moves back by it.
    child.origin += side.target / side.weight
    child.mean, child.mean_weight = 0.0, min(side.weight, MOST_INHERITED)
    shift = (side.residual - side.target) / side.weight
    if rows_of(tables, tables.targets, target) < tables.stream.rows:
        # What is missing may round what is there: but a mean is within the range.
        origin = child.origin
        child.origin = max(origin, lowest_of(tables, tables.targets, target))
        child.origin = min(child.origin, highest_of(tables, tables.targets, target))
        shift += origin - child.origin
    if tables.linear:
        coefficients = coefficients_of(
            tables.models[leaf], tables.features, tables.column.separate, target
        )
        for rate in range(RATES):
            coefficients[rate] += shift


cdef void become_less_sure(TreeTables tables, Py_ssize_t leaf) noexcept nogil:
    """Let the coefficients of a leaf be as uncertain as those of its children."""
    cdef double* page
    cdef Py_ssize_t model
    for model in range(tables.targets if tables.column.separate else 1):
        page = model_of(tables.models[leaf], tables.features, tables.column.separate, model)
        inflate(page + covariance_at(tables.features), terms_of(tables.features))


cdef void inflate(double* covariance, Py_ssize_t terms) noexcept nogil:
    cdef Py_ssize_t i, j
    cdef double factors[SQUARE_TERMS]
    if terms > SQUARE_TERMS:
        for i in range(terms):
            covariance[i] = min(INFLATION * covariance[i], MOST_UNCERTAIN * prior_of(i))
        return
    for i in range(terms):
        factors[i] = sqrt(min(INFLATION, MOST_UNCERTAIN * prior_of(i) / covariance[terms * i + i]))
    for i in range(terms):
        for j in range(terms):
            covariance[terms * i + j] *= factors[i] * factors[j]


cdef void divide_watch(
    TreeTables tables, Py_ssize_t leaf, Py_ssize_t right, Py_ssize_t cut, Py_ssize_t place
) noexcept nogil:
    """Lay empty grids over what a leaf saw on each side of a cut; those of the left are its own."""
    cdef Grid* grids = <Grid*>tables.watches[leaf]
    cdef const Slot* slots
    cdef Grid grid
    cdef Py_ssize_t feature, last = tables.slots - 1
    for feature in range(tables.features):
        if tables.column.is_category[feature]:
            continue
        grid = grids[feature]
        grids[feature] = Grid(0.0, 0.0, 0.0, 0.0)
        if grid.inverse == 0.0:
            continue
        slots = tables.slots_of(leaf, feature)
        lay_over_slots(tables, grids + feature, &grid, slots, 0, place if feature == cut else last)
        lay_over_slots(
            tables,
            tables.grid_of(right, feature),
            &grid,
            slots,
            place + 1 if feature == cut else 0,
            last,
        )
    if tables.features:
        memset(
            grids + tables.features,
            0,
            tables.watch_table.doubles * sizeof(double) - tables.features * sizeof(Grid),
        )


cdef void lay_over_slots(
    TreeTables tables, Grid* child, const Grid* grid, const Slot* slots, Py_ssize_t first,
    Py_ssize_t last,
) noexcept nogil:
    """Lay a grid over those of some slots that have rows."""
    while first < last and slot_at(slots, tables.column.slot_size, first).weight == 0.0:
        first += 1
    while last > first and slot_at(slots, tables.column.slot_size, last).weight == 0.0:
        last -= 1
    lay_over(child, slot_border(grid, first), slot_border(grid, last + 1), tables.slots)
