"""What a tree of several targets says of a row; as `_outlook.pxd` for one target.

What belongs to the row alone is done once: its leaf, and its terms, unless categories enter them.
"""

from libc.math cimport NAN

from sapwood.blend._layer cimport say
from sapwood.tree._experts cimport MARGIN
from sapwood.tree._model cimport multiply_block, standardise
from sapwood.tree._records cimport (
    CATEGORIES, EXPERTS, RATES, centres_at, scales_at, terms_of,
)
from sapwood.tree._target_records cimport (
    TargetLeaf, TargetNote, TargetStream, coefficients_of, model_of, terms_doubles,
)
from sapwood.tree._walk cimport hold_within, mixed


cdef void look_at_targets(
    TreeTables tables, Py_ssize_t leaf, const double* row, double* work
) noexcept nogil:
    """Predict a row whose leaf is known; outlooks are left in the room to work."""
    cdef TargetOutlook* outlooks = outlooks_in(tables, work)
    cdef Py_ssize_t target
    ask_experts(tables, leaf, row, work)
    for target in range(tables.targets):
        mix_experts(tables, leaf, target, outlooks + target)


cdef void ask_experts(
    TreeTables tables, Py_ssize_t leaf, const double* row, double* work
) noexcept nogil:
    """Let the mean and the linear models of each target predict; the terms are left behind."""
    cdef Py_ssize_t features = tables.features, terms = terms_of(features), target
    cdef TargetOutlook* outlooks = outlooks_in(tables, work)
    cdef double* page = tables.models[leaf]
    cdef const double* model
    cdef const double* values = row
    cdef double* room = work
    for target in range(tables.targets):
        outlooks[target].experts[0] = tables.target_leaf(leaf, target).mean
    if not tables.linear:
        return
    for target in range(tables.targets):
        if target == 0 or tables.separate:
            room = work + (target * terms_doubles(features) if tables.separate else 0)
            if tables.separate:
                set_levels(tables, target, row, room)
                values = room
            model = model_of(page, features, tables.separate, target)
            standardise(
                model + centres_at(features), model + scales_at(features), values, features,
                room + features,
            )
        multiply_block(
            coefficients_of(page, features, tables.separate, target), RATES, room + features,
            terms, outlooks[target].experts + 1,
        )


cdef void set_levels(
    TreeTables tables, Py_ssize_t target, const double* row, double* values
) noexcept nogil:
    """Copy a row, with the mean y of a category in place of its code."""
    cdef const double* levels = tables.levels + 2 * CATEGORIES * tables.features * target
    cdef Py_ssize_t feature, code
    for feature in range(tables.features):
        values[feature] = row[feature]
        if tables.is_category[feature] and row[feature] == row[feature]:
            code = CATEGORIES * feature + <Py_ssize_t>row[feature]
            # A category of which no y was learned is treated as missing.
            values[feature] = levels[2 * code + 1] if levels[2 * code] > 0.0 else NAN


cdef inline void mix_experts(
    TreeTables tables, Py_ssize_t leaf, Py_ssize_t target, TargetOutlook* outlook
) noexcept nogil:
    """Predict a target, from what its experts do; 0 before its first y."""
    cdef const TargetLeaf* own = tables.target_leaf(leaf, target)
    cdef const TargetStream* stream = tables.target_streams + target
    cdef double margin = MARGIN * (stream.high - stream.low)
    cdef double lowest = stream.low - margin - own.origin
    cdef double highest = stream.high + margin - own.origin
    outlook.tree = own.origin + own.mean
    if tables.linear and stream.rows > 0.0:
        hold_within(outlook.experts, lowest, highest)
        outlook.tree = own.origin + mixed(
            outlook.experts, &own.said[0] if tables.tracking else &own.errors[0],
            tables.averaging,
        )
    outlook.saying.prediction = outlook.tree
    if tables.tracking and stream.rows > 0.0:
        say(
            tables.layer + target, tables.layer_rules, outlook.tree, stream.rows, &outlook.saying
        )


cdef void take_down_targets(
    TreeTables tables, Py_ssize_t leaf, const double* work, double* note
) noexcept nogil:
    """Write down what was said about a row; nothing of targets that were never seen."""
    cdef const TargetOutlook* outlooks = outlooks_in(tables, <double*>work)
    cdef TargetNote* notes = <TargetNote*>(note + 1)
    cdef Py_ssize_t target, expert, place
    note[0] = tables.rows
    for target in range(tables.targets):
        if tables.target_streams[target].rows == 0.0:
            for place in range(<Py_ssize_t>(sizeof(TargetNote) // sizeof(double))):
                (<double*>(notes + target))[place] = 0.0
            continue
        notes[target].saying = outlooks[target].saying
        notes[target].origin = tables.target_leaf(leaf, target).origin
        for expert in range(EXPERTS):
            notes[target].experts[expert] = (
                outlooks[target].experts[expert] if tables.linear or expert == 0 else 0.0
            )
