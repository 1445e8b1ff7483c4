"""Rows that are kept, and rows that are predicted once more: as if a column said something else.

See _facts.pxd for what a column is worth, and _units.pxd for columns that come in other units.
"""

from libc.math cimport fabs

from sapwood.tree._facts cimport add_cost
from sapwood.tree._levels cimport set_many_levels
from sapwood.tree._outlook cimport ask_experts, mix_experts
from sapwood.tree._units cimport CALM, KINDS, Unrest, find_map
from sapwood.tree._walk cimport leaf_of


cdef void keep_sample(TreeTables tables, const double* row, Py_ssize_t sample) noexcept nogil:
    """Keep a row in place of another, and see which columns have risen since the last one."""
    cdef double* kept = tables.samples + sample * tables.features
    cdef Py_ssize_t feature
    for feature in range(tables.features):
        kept[feature] = row[-1 - feature] if tables.has_many else row[feature]
        tables.facts[feature].rises = (
            tables.facts[feature].rises + 1.0 if kept[feature] > tables.facts[feature].last else 0.0
        )
        tables.facts[feature].last = kept[feature]


cdef void permute(
    TreeTables tables, const double* row, double y, double w, const Outlook* outlook, uint64_t bits
) noexcept nogil:
    """Predict a row with a value of the past in one column, and note what that costs."""
    cdef Py_ssize_t feature = <Py_ssize_t>(bits % <uint64_t>tables.features), each
    cdef double* values = tables.permuted
    cdef double change
    for each in range(tables.features):
        values[each] = row[-1 - each] if tables.has_many else row[each]
    values[feature] = tables.samples[
        <Py_ssize_t>((bits >> 32) % SAMPLES) * tables.features + feature
    ]
    change = outlook.tree - say_aside(tables, values)
    # Half of what the squared error grows by, which is uncertain where errors are large, and
    # half of the squared change of the prediction: the same in the mean, if errors are noise.
    add_cost(tables.facts + feature, change * (change + y - outlook.tree), w)


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
