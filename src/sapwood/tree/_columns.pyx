"""Sample rows, and rows that are predicted again with other values of a column.

_facts.pxd describes permutation importances, and _units.pxd changes of units.
"""

from libc.math cimport NAN, fabs, sqrt

from sapwood.tree._experts cimport MARGIN
from sapwood.tree._facts cimport (
    MOST_MOVING, PERMUTED, RENEWED, SAMPLES, ColumnFacts, add_cost, hashed, keep_of, slope_of,
    stride_of,
)
from sapwood.tree._model cimport standardise
from sapwood.tree._prediction cimport (
    highest_of, lowest_of, mix_experts, part_of, predict_experts, predictions_in, rows_of,
    set_model_values, with_encodings,
)
from sapwood.tree._records cimport EXPERTS, LEAF, RATES, TargetPart, centres_at, scales_at
from sapwood.tree._target_records cimport (
    TargetStream, coefficients_of, model_of, terms_doubles,
)
from sapwood.tree._units cimport CALM, KINDS, SAMPLED, UnitDetection, find_map
from sapwood.tree._topology cimport find_shares, leaf_of, step_down

# A squared error of one of several targets is limited to this many times its variance.
cdef double MOST_SHARE = 1e6


cdef bint sample_row(
    TreeTables tables, Py_ssize_t leaf, const double* row, const double* y, double w,
    const TargetPrediction* predictions,
) noexcept nogil:
    """Permute a row, or store it, if its number requires it; return whether it samples units."""
    cdef uint64_t bits = hashed(<uint64_t>tables.stream.rows)
    cdef Py_ssize_t sample
    tables.stream.next_sample = next_sample_after(tables.stream.rows)
    if tables.stream.rows == 0.0:
        for sample in range(SAMPLES):
            keep_sample(tables, row, sample)
    elif is_permuted(bits, tables.stream.rows) and tables.features and not tables.units.alert:
        if tables.targets == 1:
            permute(tables, 1, leaf, row, y, w, predictions, bits >> 16)
        else:
            permute(tables, tables.targets, leaf, row, y, w, predictions, bits >> 16)
    if bits % RENEWED == 1 and not tables.units.alert:
        keep_sample(tables, row, <Py_ssize_t>((bits >> 16) % SAMPLES))
    return bits % SAMPLED == 3


cdef void widen_ranges(TreeTables tables, const double* row) noexcept nogil:
    """Extend the ranges of columns by a row that is learned."""
    cdef ColumnFacts* facts = tables.column.facts
    cdef Py_ssize_t feature
    for feature in range(tables.features):
        facts[feature].low = (
            row[feature] if row[feature] < facts[feature].low else facts[feature].low
        )
        facts[feature].high = (
            row[feature] if row[feature] > facts[feature].high else facts[feature].high
        )


cdef void keep_sample(TreeTables tables, const double* row, Py_ssize_t sample) noexcept nogil:
    """Store a sample row in place of another, and count which columns have risen since the last.

    Times may be the same in many rows, so that a column need not rise each time, but never fall.
    """
    cdef double* kept = tables.column.samples + sample * tables.features
    cdef ColumnFacts* facts = tables.column.facts
    cdef Py_ssize_t feature
    for feature in range(tables.features):
        kept[feature] = row[-1 - feature] if tables.column.has_encoded else row[feature]
        if kept[feature] > facts[feature].last:
            facts[feature].rises += 1.0
        elif kept[feature] != facts[feature].last:  # as what is missing is, too
            facts[feature].rises = 0.0
        facts[feature].last = kept[feature]


cdef inline void permute(
    TreeTables tables, Py_ssize_t targets, Py_ssize_t leaf, const double* row, const double* y,
    double w, const TargetPrediction* predictions, uint64_t bits,
) noexcept nogil:
    """Update the permutation importance of each column with the value of an earlier row.

    The y of each target is the first of two numbers, and NaN if it is missing. Where a value leads
    to the same leaf, only one term of its models changes. For each column in which it leads to
    another leaf, the row is predicted again.
    """
    cdef const double* sample = tables.column.samples + (
        <Py_ssize_t>((bits >> 32) % SAMPLES) * tables.features
    )
    cdef const double* past = sample
    cdef Py_ssize_t moving[MOST_MOVING]
    cdef Py_ssize_t feature, count, place, target
    cdef TargetPrediction one
    cdef TargetPrediction* instead = predictions_in(tables, room_aside(tables), &one)
    cdef double change, keep, own
    cdef uint64_t stride = stride_of(tables.stream.rows)
    w, keep = w * <double>stride / PERMUTED, keep_of(stride)
    if tables.column.has_encoded:
        past = with_encodings(tables, sample, tables.column.permuted + tables.features)
    count = find_moving(tables.topology.nodes, row, past, moving)
    for target in range(targets if targets > 1 and tables.column.separate else 1):
        find_changes(tables, targets, leaf, target, past, moving, count)
    for target in range(targets):
        if is_scored(tables, targets, target, y):
            add_costs(tables, targets, leaf, target, y[2 * target], w, keep, predictions + target)
    for feature in range(tables.features):
        tables.column.permuted[feature] = (
            row[-1 - feature] if tables.column.has_encoded else row[feature]
        )
    for place in range(count):
        feature = moving[place]
        own = tables.column.permuted[feature]
        tables.column.permuted[feature] = sample[feature]
        predict_aside(tables, targets, tables.column.permuted, instead)
        tables.column.permuted[feature] = own
        for target in range(targets):
            if is_scored(tables, targets, target, y):
                change = predictions[target].tree - instead[target].tree
                add_cost(
                    cost_of(tables, targets, feature, target),
                    change * (change + (y[2 * target] - predictions[target].tree)), w, keep,
                )


cdef inline bint is_scored(
    TreeTables tables, Py_ssize_t targets, Py_ssize_t target, const double* y
) noexcept nogil:
    """Whether a target has a y in this row, and had one before."""
    return targets == 1 or (
        y[2 * target] == y[2 * target] and rows_of(tables, targets, target) > 0.0
    )


cdef inline double* cost_of(
    TreeTables tables, Py_ssize_t targets, Py_ssize_t feature, Py_ssize_t target
) noexcept nogil:
    """The importance of a column for a target."""
    if targets == 1:
        return &tables.column.facts[feature].cost
    return &tables.column.costs[feature * targets + target].cost


cdef inline double* room_aside(TreeTables tables) noexcept nogil:
    """A buffer to predict a permuted row, after its values and its encoded values."""
    return tables.column.permuted + 3 * tables.features


cdef Py_ssize_t find_moving(
    const NodeRecord* nodes, const double* row, const double* past, Py_ssize_t* moving
) noexcept nogil:
    """Find the columns in which the value of another row would lead to another leaf; how many.

    Of more than MOST_MOVING those are found that come first on the way.
    """
    cdef Py_ssize_t node = 0, count = 0, place, child
    while nodes[node].kind != LEAF:
        child = step_down(nodes, node, row)
        if step_down(nodes, node, past) != child:
            place = 0
            while place < count and moving[place] != nodes[node].feature:
                place += 1
            if place == count and count < MOST_MOVING:
                moving[count] = nodes[node].feature
                count += 1
        node = child
    return count


cdef inline void find_changes(
    TreeTables tables, Py_ssize_t targets, Py_ssize_t leaf, Py_ssize_t model, const double* past,
    const Py_ssize_t* moving, Py_ssize_t count,
) noexcept nogil:
    """Set, in the room for terms of a model, how much they change with the values of another row;
    to NaN where its leaf would be another."""
    cdef Py_ssize_t features = tables.features, feature
    cdef const double* page = model_of(
        tables.models[leaf], features, targets > 1 and tables.column.separate, model
    )
    cdef const double* z = tables.column.scratch + model * terms_doubles(features) + features
    cdef double* values = room_aside(tables) + model * terms_doubles(features)
    cdef double* changes = values + features
    if tables.linear:
        if tables.column.has_categories or tables.column.split_encoded:
            set_model_values(tables, model, past, values)
            past = values
        standardise(
            page + centres_at(features), page + scales_at(features), tables.column.facts, past,
            features, changes,
        )
    for feature in range(1, 1 + features):
        changes[feature] = z[feature] - changes[feature] if tables.linear else 0.0
    for feature in range(count):
        changes[1 + moving[feature]] = NAN


cdef inline void add_costs(
    TreeTables tables, Py_ssize_t targets, Py_ssize_t leaf, Py_ssize_t target, double y, double w,
    double keep, const TargetPrediction* prediction,
) noexcept nogil:
    """Add to the importances for a target where other values lead to the same leaf.

    The combined prediction is limited to the range of y, rather than that of each expert.
    """
    cdef bint separate = targets > 1 and tables.column.separate
    cdef Py_ssize_t features = tables.features, feature
    cdef const TargetPart* part = part_of(tables, targets, leaf, target)
    cdef const double* changes = room_aside(tables) + features
    cdef const double* coefficients = NULL
    cdef double low = lowest_of(tables, targets, target)
    cdef double high = highest_of(tables, targets, target)
    cdef double margin = MARGIN * (high - low), error = y - prediction.tree
    cdef double most = prediction.tree - low + margin
    cdef double least = prediction.tree - high - margin
    cdef double shares[EXPERTS]
    cdef double change
    if separate:
        changes += target * terms_doubles(features)
    if tables.linear:
        coefficients = coefficients_of(tables.models[leaf], features, separate, target)
        find_shares(
            &part.issued_errors[0] if tables.tracking else &part.errors[0], tables.averaging, shares
        )
    for feature in range(features):
        change = changes[1 + feature]
        if change != change:
            continue
        if tables.linear:
            change *= slope_of(coefficients + RATES * (1 + feature), shares)
            change = change if change < most else most
            change = change if change > least else least
        # Half of what the squared error grows by, which is uncertain where errors are large, and
        # half of the squared change of the prediction: the same in the mean, if errors are noise.
        add_cost(cost_of(tables, targets, feature, target), change * (change + error), w, keep)


cdef inline void predict_aside(
    TreeTables tables, Py_ssize_t targets, const double* values, TargetPrediction* predictions
) noexcept nogil:
    """Predict a permuted row, without the error-correction layer."""
    cdef double* room = tables.column.permuted + tables.features
    cdef const double* row = values
    cdef Py_ssize_t leaf, target
    if tables.column.has_encoded:
        row = with_encodings(tables, values, room)
    leaf = leaf_of(tables.topology.nodes, row)
    predict_experts(tables, targets, leaf, row, room_aside(tables), predictions, False)
    for target in range(targets):
        mix_experts(tables, targets, leaf, target, predictions + target)


cdef double error_of(
    TreeTables tables, const double* y, const TargetPrediction* predictions
) noexcept nogil:
    """The absolute error of a tree; of several targets, as it was in units of their deviations.

    That is the root of the mean, over the targets of a row, of squares as shares of the variance.
    NaN if no variance is known.
    """
    cdef const TargetStream* stream
    cdef double total = 0.0, share, error
    cdef Py_ssize_t target, count = 0
    if tables.targets == 1:
        return fabs(y[0] - predictions.tree)
    for target in range(tables.targets):
        stream = tables.of_targets.streams + target
        if y[target] == y[target] and stream.m2 > 0.0:
            error = y[target] - predictions[target].tree
            share = error * error * (stream.weight / stream.m2)
            total += share if share < MOST_SHARE else MOST_SHARE
            count += 1
    return sqrt(total / count) if count > 0 else NAN


cdef double error_aside(
    TreeTables tables, const double* values, const double* y, double scale, double shift
) noexcept nogil:
    """The absolute error with other values of a row, and with the only y in other units."""
    cdef TargetPrediction one
    cdef TargetPrediction* instead
    if tables.targets == 1:
        predict_aside(tables, 1, values, &one)
        one.tree = scale * one.tree + shift
        return error_of(tables, y, &one)
    instead = predictions_in(tables, room_aside(tables), &one)
    predict_aside(tables, tables.targets, values, instead)
    return error_of(tables, y, instead)


cdef void weigh_units(
    TreeTables tables, const double* raw, const double* y, const TargetPrediction* predictions
) noexcept nogil:
    """Score the tree as if units had changed, for each kind of change."""
    cdef UnitDetection* detection = tables.units.detection
    cdef double now = error_of(tables, y, predictions), as_is = now, gain
    cdef int kind
    if now != now:
        return
    if tables.column.units[0].state != CALM:
        now = fabs(y[0] - predictions.corrected.prediction)
    if tables.units.hiding:
        as_is = error_aside(tables, raw, y, 1.0, 0.0)
    detection.in_force += now * now
    detection.as_is += as_is * as_is
    for kind in range(KINDS):
        now = error_in_units(tables, raw, y, kind)
        gain = as_is - now
        detection.weighed[kind] += now * now
        detection.gain[kind] += gain
        detection.square[kind] += gain * gain


cdef double error_in_units(
    TreeTables tables, const double* raw, const double* y, int kind
) noexcept nogil:
    """The absolute error if the units of suspects had changed in some way."""
    cdef double* values = tables.column.permuted
    cdef double scale, shift
    cdef Py_ssize_t feature
    for feature in range(tables.features):
        values[feature] = raw[feature]
        if tables.column.units[1 + feature].state != CALM and find_map(
            tables.column.units + 1 + feature, kind, &scale, &shift
        ):
            values[feature] = (raw[feature] - shift) / scale
    if tables.column.units[0].state == CALM or not find_map(
        tables.column.units, kind, &scale, &shift
    ):
        scale, shift = 1.0, 0.0
    return error_aside(tables, values, y, scale, shift)
