"""What a tree says of a row: its leaf's experts, what they say together, and the last layer.

Everything here is compiled into its callers; see _targets.pyx for several targets.
"""

from libc.math cimport NAN

from sapwood.blend._layer cimport Saying, say
from sapwood.tree._experts cimport MARGIN
from sapwood.tree._levels cimport set_many_levels
from sapwood.tree._model cimport multiply_block, standardise
from sapwood.tree._records cimport (
    CATEGORIES, EXPERTS, RATES, LeafRecord, centres_at, scales_at, terms_of,
)
from sapwood.tree._tables cimport TreeTables
from sapwood.tree._units cimport BEYOND, CALM, is_beyond
from sapwood.tree._walk cimport hold_within, mixed

cdef struct Outlook:
    # What the tree thinks of a row before it learns its y.
    Py_ssize_t leaf
    double experts[EXPERTS]  # what the mean and the linear models predict, from the leaf's origin
    double unusual           # how unusual the row is; known when it is learned
    double tree              # what they predict together
    Saying saying            # what the last layer makes of it; the prediction alone without one
    const double* said       # what they said when the row was predicted: just now, or as follows
    double then[EXPERTS]


cdef inline void look(TreeTables tables, const double* row, double* scratch, Outlook* outlook) noexcept nogil:
    """Predict a row whose leaf is known."""
    ask_experts(tables, row, scratch, outlook)
    mix_experts(tables, outlook)
    say_last(tables, outlook)


cdef inline void ask_experts(
    TreeTables tables, const double* row, double* scratch, Outlook* outlook
) noexcept nogil:
    """Let the mean and the linear models of a leaf predict; the terms are left in scratch."""
    cdef const double* page = tables.models[outlook.leaf]
    cdef const double* values = row
    cdef double* z = scratch + tables.features
    cdef Py_ssize_t terms = terms_of(tables.features)
    outlook.experts[0] = tables.leaves[outlook.leaf].mean
    if not tables.linear:
        return
    if tables.has_categories:
        set_levels(tables, row, scratch)
        values = scratch
    standardise(
        page + centres_at(tables.features),
        page + scales_at(tables.features),
        values,
        tables.features,
        z,
    )
    multiply_block(page, RATES, z, terms, outlook.experts + 1)


cdef inline void mix_experts(TreeTables tables, Outlook* outlook) noexcept nogil:
    """Predict, from what the experts do."""
    cdef const LeafRecord* record = tables.leaves + outlook.leaf
    cdef double margin = MARGIN * (tables.high - tables.low)
    cdef double lowest = tables.low - margin - record.origin
    cdef double highest = tables.high + margin - record.origin
    outlook.tree = record.origin + record.mean
    if tables.linear:
        hold_within(outlook.experts, lowest, highest)
        outlook.tree = record.origin + mixed(
            outlook.experts, &record.said[0] if tables.tracking else &record.errors[0],
            tables.averaging,
        )
    outlook.saying.prediction = outlook.tree


cdef inline void say_last(TreeTables tables, Outlook* outlook) noexcept nogil:
    """Let the last layer, if there is one, make a prediction of that of the tree."""
    if tables.tracking:
        say(tables.layer, tables.layer_rules, outlook.tree, tables.rows, &outlook.saying)
        if tables.astir and tables.units[0].state != CALM:
            outlook.saying.prediction = tables.unrest.level


cdef inline const double* with_levels(TreeTables tables, const double* row, double* room) noexcept nogil:
    """A row as the tree takes it: itself, or with levels if there are categories of many.

    What is too far away while units seem to change counts as missing; see _units.pxd.
    """
    if tables.has_many:
        row = set_many_levels(
            row, room, tables.places, tables.many_levels, tables.features,
            tables.weight / tables.rows if tables.rows > 0.0 else 1.0,
        )
    if tables.holding:
        return without_suspects(tables, row, room)
    return row


cdef inline const double* without_suspects(TreeTables tables, const double* row, double* room) noexcept nogil:
    """A row, in its room, without values that are beyond the range of a suspect."""
    cdef double* values = room + tables.features
    cdef Py_ssize_t feature
    for feature in range(tables.features):
        values[feature] = row[feature]
        if tables.units[1 + feature].state == BEYOND and is_beyond(
            tables.units + 1 + feature, row[feature]
        ):
            values[feature] = NAN
            if tables.has_many:
                values[-1 - feature] = NAN
    return values


cdef inline void set_levels(TreeTables tables, const double* row, double* values) noexcept nogil:
    """Copy a row, with the mean y of a category in place of its code."""
    cdef Py_ssize_t feature, code
    for feature in range(tables.features):
        values[feature] = row[feature]
        if tables.is_category[feature] and row[feature] == row[feature]:
            code = CATEGORIES * feature + <Py_ssize_t>row[feature]
            # A category of which no y was learned is treated as missing.
            values[feature] = tables.levels[2 * code + 1] if tables.levels[2 * code] > 0.0 else NAN
