"""A leaf becomes a split with two leaves, which start from what it knew.

Whatever may fail comes first; then everything is changed in one go that cannot.
"""

from libc.math cimport fabs, sqrt
from libc.stdint cimport uint64_t
from libc.string cimport memcpy, memset

from sapwood.tree._column_tables cimport clear_watch
from sapwood.tree._model cimport PRIOR, PRIOR_OF_CONSTANT
from sapwood.tree._records cimport (
    CATEGORY, EXPERTS, LEAF, NUMBER, RATES, SQUARE_TERMS, LeafRecord, NodeRecord, covariance_at,
    terms_of,
)
from sapwood.tree._cuts cimport STEP, TARGET
from sapwood.tree._search cimport BestCut, Sides, find_sides, find_threshold
from sapwood.tree._tables cimport TreeTables, Watchers
from sapwood.tree._target_growth cimport (
    divide_targets, find_sides_of_targets, missing_targets_go_left,
)
from sapwood.tree._target_records cimport model_of
from sapwood.tree._watch cimport Grid, Slot, lay_over, slot_at, slot_border

from sapwood.tree._review import deviation_of

# A child is so much less sure of the coefficients than its parent was; but nothing becomes more
# uncertain than so many times its prior.
cdef double INFLATION = 3.0
cdef double MOST_UNCERTAIN = 4.0
# The mean of a side counts for at most so many rows when a child starts from it.
cdef double MOST_INHERITED = 10.0
# A child trusts its parent's errors half as much as its own.
cdef double INHERITED_ERROR = 0.5
# The merit of a split that is kept: of targets that hardly varied before, it has no bounds.
cdef double LARGEST_MERIT = 1e204


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
    cdef bint of_target = measure == TARGET
    cdef double threshold
    cdef uint64_t subset = cut.subset
    cdef bint missing_left
    tables.get_spares()
    find_threshold(tables, leaf, cut.feature, cut.place, &threshold)
    find_sides(tables, leaf, cut, &sides)
    if tables.targets > 1:
        find_sides_of_targets(tables, leaf, cut)
        missing_left = missing_targets_go_left(tables, &sides, of_target)
    else:
        missing_left = missing_goes_left(&sides, of_target)
    if tables.is_category[cut.feature] and missing_left:
        subset |= ~sides.seen
    if tables.slots == 0:
        with gil:
            divide_observers(tables, leaf, cut, measure, threshold, subset, missing_left, &sides)
    else:
        divide(tables, leaf, cut, measure, threshold, subset, missing_left, &sides)
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
    uint64_t subset, bint missing_left, const Sides* sides,
) except -1:
    """As `divide`; the children get observers by the deviations of the features in the leaf."""
    cdef list deviations = [0.0] * tables.features
    cdef Py_ssize_t feature
    for feature in range(tables.features):
        deviations[feature] = deviation_of(tables, leaf, feature)
    cdef Watchers left = Watchers(tables.fresh_observers(deviations))
    cdef Watchers right = Watchers(tables.fresh_observers(deviations))
    divide(tables, leaf, cut, measure, threshold, subset, missing_left, sides)
    tables.put_watchers(leaf, left)
    tables.put_watchers(tables.leaf_count - 1, right)
    return 0


cdef bint missing_goes_left(const Sides* sides, bint of_target) noexcept nogil:
    """Send missing values where y (or the residual) is nearer to theirs; else to the heavier side.
    """
    cdef double left, right, missing
    if sides.missing.weight == 0.0:
        return sides.left.weight >= sides.right.weight
    left = mean_of(&sides.left, of_target)
    right = mean_of(&sides.right, of_target)
    missing = mean_of(&sides.missing, of_target)
    return fabs(left - missing) <= fabs(right - missing)


cdef inline double mean_of(const Slot* side, bint of_target) noexcept nogil:
    return (side.target if of_target else side.residual) / side.weight


cdef void divide(
    TreeTables tables, Py_ssize_t leaf, const BestCut* cut, int measure, double threshold,
    uint64_t subset, bint missing_left, const Sides* sides,
) noexcept nogil:
    """Change all tables for a split."""
    cdef Py_ssize_t right = tables.leaf_count, node = tables.node_count
    cdef LeafRecord parent = tables.leaves[leaf]
    if tables.trial.leaf == leaf:
        tables.end_trial()
    clear_watch(tables.columns, tables.spare_watch)
    tables.watch_table.put(right, tables.spare_watch)
    tables.spare_watch = NULL
    tables.leaves[right].watching = True
    tables.node_count, tables.leaf_count = node + 2, right + 1
    split_node(tables, leaf, cut, threshold, subset, missing_left)
    if tables.linear:
        become_less_sure(tables, leaf)
        memcpy(
            tables.spare_model, tables.models[leaf], tables.model_table.doubles * sizeof(double)
        )
        tables.model_table.put(right, tables.spare_model)
        tables.spare_model = NULL
    start_child(tables, &parent, leaf, node, &sides.left)
    start_child(tables, &parent, right, node + 1, &sides.right)
    if tables.targets > 1:
        divide_targets(tables, leaf, cut, measure, right, node)
    divide_watch(tables, leaf, right, cut.feature, cut.place)


cdef void split_node(
    TreeTables tables, Py_ssize_t leaf, const BestCut* cut, double threshold, uint64_t subset,
    bint missing_left,
) noexcept nogil:
    """Turn the node of a leaf into a split; its children are the last two nodes."""
    cdef const LeafRecord* record = tables.leaves + leaf
    cdef NodeRecord* node = tables.nodes + record.node
    node.kind = CATEGORY if tables.is_category[cut.feature] else NUMBER
    node.feature, node.child = <int>cut.feature, <int>(tables.node_count - 2)
    node.missing_left, node.threshold, node.subset = missing_left, threshold, subset
    # A leaf's node holds the weight of the rows that it inherited; their mean is its origin.
    node.weight += record.weight
    if tables.targets == 1:
        node.mean = record.origin + record.target_mean * (record.weight / node.weight)
        node.deviation = sqrt(record.target_m2 / record.weight)
    node.gain = record.weight * min(cut.merit, LARGEST_MERIT)


cdef void start_child(
    TreeTables tables, const LeafRecord* parent, Py_ssize_t leaf, Py_ssize_t at, const Slot* side
) noexcept nogil:
    """Write the records of a child, of whose rows its parent knows weight and sums."""
    cdef NodeRecord* node = tables.nodes + at
    cdef LeafRecord* child = tables.leaves + leaf
    cdef int watching = child.watching
    cdef Py_ssize_t error
    memset(node, 0, sizeof(NodeRecord))
    node.kind, node.child, node.parent = LEAF, <int>leaf, parent.node
    node.weight = side.weight
    node.depth = tables.nodes[parent.node].depth + 1
    memset(child, 0, sizeof(LeafRecord))
    child.node, child.watching = <int>at, watching
    child.due = child.review = tables.growth.grace_period
    child.born = tables.weight
    if tables.targets > 1:
        return
    child.origin = parent.origin + side.target / side.weight
    child.mean_weight = min(side.weight, MOST_INHERITED)
    for error in range(EXPERTS):
        child.errors[error] = INHERITED_ERROR * parent.errors[error]
        child.said[error] = INHERITED_ERROR * parent.said[error]
    if tables.linear:
        # It measures y from its own mean, so that the constant of its model moves back by it.
        move_constants(tables, leaf, (side.residual - side.target) / side.weight)


cdef void become_less_sure(TreeTables tables, Py_ssize_t leaf) noexcept nogil:
    """Let the coefficients of a leaf be as uncertain as those of its children."""
    cdef double* page
    cdef Py_ssize_t model
    for model in range(tables.targets if tables.separate else 1):
        page = model_of(tables.models[leaf], tables.features, tables.separate, model)
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


cdef void move_constants(TreeTables tables, Py_ssize_t leaf, double shift) noexcept nogil:
    """Add to all that the linear models of a leaf predict."""
    cdef Py_ssize_t rate
    for rate in range(RATES):
        tables.models[leaf][rate] += shift


cdef void divide_watch(
    TreeTables tables, Py_ssize_t leaf, Py_ssize_t right, Py_ssize_t cut, Py_ssize_t place
) noexcept nogil:
    """Lay empty grids over what a leaf saw on each side of a cut; those of the left are its own."""
    cdef Grid* grids = <Grid*>tables.watches[leaf]
    cdef const Slot* slots
    cdef Grid grid
    cdef Py_ssize_t feature, last = tables.slots - 1
    for feature in range(tables.features):
        if tables.is_category[feature]:
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
    while first < last and slot_at(slots, tables.slot_size, first).weight == 0.0:
        first += 1
    while last > first and slot_at(slots, tables.slot_size, last).weight == 0.0:
        last -= 1
    lay_over(child, slot_border(grid, first), slot_border(grid, last + 1), tables.slots)
