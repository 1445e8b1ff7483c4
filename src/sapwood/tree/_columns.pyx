"""Rows that are kept, and rows that are predicted once more: as if a column said something else.

See _facts.pxd for what a column is worth, and _units.pxd for columns that come in other units.
"""

from libc.math cimport fabs

from sapwood.tree._experts cimport MARGIN
from sapwood.tree._facts cimport MOST_MOVING, SAMPLES, ColumnFacts, add_cost, slope_of
from sapwood.tree._levels cimport set_many_levels
from sapwood.tree._model cimport standardise
from sapwood.tree._outlook cimport ask_experts, mix_experts, set_levels
from sapwood.tree._records cimport (
    EXPERTS, LEAF, RATES, LeafRecord, centres_at, scales_at,
)
from sapwood.tree._units cimport CALM, KINDS, Unrest, find_map
from sapwood.tree._walk cimport find_shares, leaf_of, step_down


cdef void keep_sample(TreeTables tables, const double* row, Py_ssize_t sample) noexcept nogil:
    """Keep a row in place of another, and see which columns have risen since the last one.

    Times may be the same in many rows, so that a column need not rise each time, but never fall.
    """
    cdef double* kept = tables.samples + sample * tables.features
    cdef ColumnFacts* facts = tables.facts
    cdef Py_ssize_t feature
    for feature in range(tables.features):
        kept[feature] = row[-1 - feature] if tables.has_many else row[feature]
        if kept[feature] > facts[feature].last:
            facts[feature].rises += 1.0
        elif kept[feature] != facts[feature].last:  # as what is missing is, too
            facts[feature].rises = 0.0
        facts[feature].last = kept[feature]


cdef void permute(
    TreeTables tables, const double* row, double y, double w, const Outlook* outlook, uint64_t bits
) noexcept nogil:
    """Note what it costs to have the value of a row of the past in a column, for each of them.

    Where that leads to the same leaf, a term of its models changes, and no more. Of the columns in
    which it leads elsewhere one is tried, by every second row, and counts for twice as many as there
    are.
    """
    cdef const double* sample = tables.samples + (
        <Py_ssize_t>((bits >> 32) % SAMPLES) * tables.features
    )
    cdef const double* past = sample
    cdef Py_ssize_t moving[MOST_MOVING]
    cdef Py_ssize_t feature, count, place
    cdef double* changes = tables.permuted + 4 * tables.features + 1
    cdef double error = y - outlook.tree, change
    if tables.has_many:
        past = set_many_levels(
            sample, tables.permuted + tables.features, tables.places, tables.many_levels,
            tables.features, tables.weight / tables.rows,
        )
    count = find_moving(tables.nodes, row, past, moving)
    find_changes(tables, past, outlook)
    for place in range(count):
        changes[moving[place]] = 0.0
    place = moving[bits % <uint64_t>count] if count and bits >> 47 else -1
    for feature in range(tables.features):
        if feature != place:
            # Half of what the squared error grows by, which is uncertain where errors are large,
            # and half of the squared change of the prediction: the same in the mean, if errors
            # are noise.
            add_cost(
                &tables.facts[feature].cost, changes[feature] * (changes[feature] + error), w
            )
    if place >= 0:
        for feature in range(tables.features):
            tables.permuted[feature] = row[-1 - feature] if tables.has_many else row[feature]
        tables.permuted[place] = sample[place]
        change = outlook.tree - say_aside(tables, tables.permuted)
        add_cost(&tables.facts[place].cost, 2.0 * count * (change * (change + error)), w)


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


cdef void find_changes(
    TreeTables tables, const double* past, const Outlook* outlook
) noexcept nogil:
    """Set, in the room for terms, by how much the leaf would say less with a value of another row.

    What its experts say together is held within the range of y, rather than each of them.
    """
    cdef const LeafRecord* record = tables.leaves + outlook.leaf
    cdef const double* page = tables.models[outlook.leaf]
    cdef const double* z = tables.scratch + tables.features  # the terms of the row
    cdef double* values = tables.permuted + 3 * tables.features
    cdef double* terms = values + tables.features
    cdef double margin = MARGIN * (tables.high - tables.low)
    cdef double most = outlook.tree - tables.low + margin
    cdef double least = outlook.tree - tables.high - margin
    cdef double shares[EXPERTS]
    cdef double change
    cdef Py_ssize_t feature
    if not tables.linear:
        for feature in range(tables.features):
            terms[1 + feature] = 0.0
        return
    if tables.has_categories:
        set_levels(tables, past, values)
        past = values
    standardise(
        page + centres_at(tables.features), page + scales_at(tables.features), past,
        tables.features, terms,
    )
    find_shares(&record.said[0] if tables.tracking else &record.errors[0], tables.averaging, shares)
    for feature in range(1, 1 + tables.features):
        page += RATES
        change = slope_of(page, shares) * (z[feature] - terms[feature])
        change = change if change < most else most
        terms[feature] = change if change > least else least


cdef double say_aside(TreeTables tables, const double* values) noexcept nogil:
    """What the tree says of a row that is not there, the last layer aside."""
    cdef double* room = tables.permuted + tables.features
    cdef const double* row = values
    cdef Outlook other
    if tables.has_many:
        row = set_many_levels(
            values, room, tables.places, tables.many_levels, tables.features,
            tables.weight / tables.rows if tables.rows > 0.0 else 1.0,
        )
    other.leaf = leaf_of(tables.nodes, row)
    ask_experts(tables, row, room + 2 * tables.features, &other)
    mix_experts(tables, &other)
    return other.tree


cdef void weigh_units(
    TreeTables tables, const double* raw, double y, const Outlook* outlook
) noexcept nogil:
    """See how the tree would have erred had units changed in one way or another."""
    cdef Unrest* unrest = tables.unrest
    cdef double now = outlook.tree, as_is = outlook.tree, gain
    cdef int kind
    if tables.units[0].state != CALM:
        now = outlook.saying.prediction
    if tables.holding:
        as_is = say_aside(tables, raw)
    now, as_is = y - now, fabs(y - as_is)
    unrest.in_force += now * now
    unrest.as_is += as_is * as_is
    for kind in range(KINDS):
        now = fabs(y - say_in_units(tables, raw, kind))
        gain = as_is - now
        unrest.weighed[kind] += now * now
        unrest.gain[kind] += gain
        unrest.square[kind] += gain * gain


cdef double say_in_units(TreeTables tables, const double* raw, int kind) noexcept nogil:
    """What the tree would say of a row if the units of suspects had changed in some way."""
    cdef double* values = tables.permuted
    cdef double scale, shift, said
    cdef Py_ssize_t feature
    for feature in range(tables.features):
        values[feature] = raw[feature]
        if tables.units[1 + feature].state != CALM and find_map(
            tables.units + 1 + feature, kind, &scale, &shift
        ):
            values[feature] = (raw[feature] - shift) / scale
    said = say_aside(tables, values)
    if tables.units[0].state != CALM and find_map(tables.units, kind, &scale, &shift):
        said = scale * said + shift
    return said
