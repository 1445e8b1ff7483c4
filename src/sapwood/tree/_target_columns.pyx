"""What it costs each of several targets to get a column wrong; _facts.pxd tells how that is found.

The rows that are tried, the rows of the past and the columns are those of `permute` for one target. What
does not depend on the target is done once: where other values lead, and by how much terms change.
"""

from libc.stdint cimport uint64_t
from libc.string cimport memcpy

from sapwood.tree._columns cimport find_moving
from sapwood.tree._experts cimport MARGIN
from sapwood.tree._facts cimport (
    MOST_MOVING, PERMUTED, SAMPLES, add_cost, hashed, slope_of,
)
from sapwood.tree._model cimport standardise
from sapwood.tree._records cimport EXPERTS, RATES, centres_at, scales_at
from sapwood.tree._target_outlook cimport look_at_targets, outlooks_in, set_levels
from sapwood.tree._target_records cimport (
    TargetCost, TargetLeaf, TargetStream, coefficients_of, model_of, outlooks_at, terms_doubles,
)
from sapwood.tree._walk cimport find_shares, leaf_of


cdef void try_row(
    TreeTables tables, Py_ssize_t leaf, const double* row, TriedRow* tried
) noexcept nogil:
    """Try one row in so many, which was predicted just before, with the values of another.

    Where a value leads to the same leaf, terms change, and no more: by how much is left in the room
    for that. Of the columns in which it leads elsewhere one is tried, by every second row, and counts
    for twice as many as there are; what is then said of all targets is left behind.
    """
    cdef uint64_t bits = hashed(<uint64_t>tables.rows)
    cdef Py_ssize_t features = tables.features, count, model
    cdef Py_ssize_t moving[MOST_MOVING]
    cdef const double* sample
    cdef double* values = tables.permuted
    tried.is_tried = bits % PERMUTED == 0 and tables.rows > 0.0 and features > 0
    if not tried.is_tried:
        return
    bits >>= 16
    sample = tables.samples + <Py_ssize_t>((bits >> 32) % SAMPLES) * features
    count = find_moving(tables.nodes, row, sample, moving)
    if tables.linear:
        for model in range(tables.targets if tables.separate else 1):
            find_changes(tables, leaf, model, sample, moving, count)
    tried.column = moving[bits % <uint64_t>count] if count and bits >> 47 else -1
    tried.times = 2.0 * count
    if tried.column >= 0:
        memcpy(values, row, features * sizeof(double))
        values[tried.column] = sample[tried.column]
        look_at_targets(tables, leaf_of(tables.nodes, values), values, room_aside(tables))


cdef inline double* changes_of(TreeTables tables, Py_ssize_t model) noexcept nogil:
    """Where the changes of terms are, after the values that are standardised for a model."""
    return tables.permuted + tables.features + model * terms_doubles(tables.features)


cdef inline double* room_aside(TreeTables tables) noexcept nogil:
    """Room to predict a row that is not there."""
    return changes_of(tables, 0) + outlooks_at(tables.features, tables.targets, tables.separate)


cdef void find_changes(
    TreeTables tables, Py_ssize_t leaf, Py_ssize_t model, const double* sample,
    const Py_ssize_t* moving, Py_ssize_t count,
) noexcept nogil:
    """Set by how much each term of a row changes with the value of another, if its leaf does not."""
    cdef Py_ssize_t features = tables.features, feature
    cdef const double* page = model_of(tables.models[leaf], features, tables.separate, model)
    cdef const double* z = tables.scratch + model * terms_doubles(features) + features
    cdef const double* values = sample
    cdef double* room = changes_of(tables, model)
    cdef double* changes = room + features
    if tables.separate:
        set_levels(tables, model, sample, room)
        values = room
    standardise(page + centres_at(features), page + scales_at(features), values, features, changes)
    for feature in range(1, 1 + features):
        changes[feature] = z[feature] - changes[feature]
    for feature in range(count):
        changes[1 + moving[feature]] = 0.0


cdef void add_costs(
    TreeTables tables, Py_ssize_t leaf, Py_ssize_t target, const TriedRow* tried, double y, double w,
    const TargetOutlook* outlook,
) noexcept nogil:
    """Add what other values cost a target, whose y has not been learned yet; as `permute` does."""
    cdef Py_ssize_t features = tables.features, feature
    cdef const TargetLeaf* own = tables.target_leaf(leaf, target)
    cdef const TargetStream* stream = tables.target_streams + target
    cdef const double* changes = changes_of(tables, target if tables.separate else 0) + features
    cdef const double* coefficients = NULL
    cdef TargetCost* costs = tables.costs + target
    cdef double margin = MARGIN * (stream.high - stream.low), error = y - outlook.tree
    cdef double most = outlook.tree - stream.low + margin
    cdef double least = outlook.tree - stream.high - margin
    cdef double shares[EXPERTS]
    cdef double change, times
    if tables.linear:
        coefficients = coefficients_of(tables.models[leaf], features, tables.separate, target)
        find_shares(
            &own.said[0] if tables.tracking else &own.errors[0], tables.averaging, shares
        )
    for feature in range(features):
        change, times = 0.0, 1.0
        if feature == tried.column:
            change = outlook.tree - outlooks_in(tables, room_aside(tables))[target].tree
            times = tried.times
        elif tables.linear:
            change = slope_of(coefficients + RATES * (1 + feature), shares) * changes[1 + feature]
            change = change if change < most else most
            change = change if change > least else least
        add_cost(&costs.cost, times * (change * (change + error)), w)
        costs += tables.targets
