"""What a tree predicts for a row: the experts of its leaf, their mixture, and the corrector.

It is the same for any number of targets. What belongs to the row alone is done once: its leaf, and
its terms, unless categories enter them, which stand for the mean y of each target. `targets` is a
literal 1 where there is one target, so that compilers leave out what only several need. Everything
here is compiled into its callers; each calls it either with the literal or with a variable.
"""

from libc.math cimport NAN

from sapwood.corrector._layer cimport issued_prediction, predict_layer
from sapwood.tree._experts cimport MARGIN
from sapwood.tree._stream cimport mean_weight
from sapwood.tree._target_encoding cimport (
    HEAD, encoding_of, with_split_encodings, with_target_encodings,
)
from sapwood.tree._model cimport direct_models, predict_models, standardise
from sapwood.tree._records cimport (
    CATEGORIES, EXPERTS, TargetPart, centres_at, covariance_at, scales_at, terms_of,
)
from sapwood.tree._tables cimport TreeTables
from sapwood.tree._target_records cimport (
    TargetNode, TargetPrediction, coefficients_of, model_of, predictions_at, terms_doubles,
)
from sapwood.tree._units cimport BEYOND, CALM, is_beyond
from sapwood.tree._vectors cimport find_powers, mix_within


cdef inline TargetPart* part_of(
    TreeTables tables, Py_ssize_t targets, Py_ssize_t leaf, Py_ssize_t target
) noexcept nogil:
    """What a leaf knows of a target."""
    if targets == 1:
        return &tables.leaves[leaf].part
    return &tables.of_targets.leaves[leaf * targets + target].part


cdef inline double leaf_rows_of(
    TreeTables tables, Py_ssize_t targets, Py_ssize_t leaf, Py_ssize_t target
) noexcept nogil:
    """The rows of a leaf in which a target was present."""
    if targets == 1:
        return tables.leaves[leaf].rows
    return tables.of_targets.leaves[leaf * targets + target].rows


cdef inline double leaf_weight_of(
    TreeTables tables, Py_ssize_t targets, Py_ssize_t leaf, Py_ssize_t target
) noexcept nogil:
    """Their weight."""
    if targets == 1:
        return tables.leaves[leaf].weight
    return tables.of_targets.leaves[leaf * targets + target].weight


cdef inline TargetNode* target_node(
    TreeTables tables, Py_ssize_t node, Py_ssize_t target
) noexcept nogil:
    """What a node knows of a target: the last fields of its record if there is but one."""
    if tables.targets == 1:
        return <TargetNode*>&tables.topology.nodes[node].weight
    return tables.of_targets.nodes + node * tables.targets + target


cdef inline double rows_of(TreeTables tables, Py_ssize_t targets, Py_ssize_t target) noexcept nogil:
    """The rows in which a target was present."""
    return tables.stream.rows if targets == 1 else tables.of_targets.streams[target].rows


cdef inline double first_of(
    TreeTables tables, Py_ssize_t targets, Py_ssize_t target
) noexcept nogil:
    """The first y of a target."""
    return tables.stream.first if targets == 1 else tables.of_targets.streams[target].first


cdef inline double lowest_of(
    TreeTables tables, Py_ssize_t targets, Py_ssize_t target
) noexcept nogil:
    """The smallest y of a target so far."""
    return tables.stream.low if targets == 1 else tables.of_targets.streams[target].low


cdef inline double highest_of(
    TreeTables tables, Py_ssize_t targets, Py_ssize_t target
) noexcept nogil:
    """The largest y of a target so far."""
    return tables.stream.high if targets == 1 else tables.of_targets.streams[target].high


cdef inline TargetPrediction* predictions_in(
    TreeTables tables, double* work, TargetPrediction* one
) noexcept nogil:
    """Where predictions are kept: of several targets in the room to work on a row, else aside."""
    if tables.targets == 1:
        return one
    return <TargetPrediction*>(
        work + predictions_at(tables.features, tables.targets, tables.column.separate)
    )


cdef inline bint predict_experts(
    TreeTables tables, Py_ssize_t targets, Py_ssize_t leaf, const double* row, double* work,
    TargetPrediction* predictions, bint learning,
) noexcept nogil:
    """Let the mean and the linear models of each target predict; the terms are left behind.

    If the row is to be learned, find how unusual it is: once if all targets share P. Returns
    whether the models do not know the range of a value, see `standardise`.
    """
    cdef Py_ssize_t features = tables.features, terms = terms_of(features), target
    cdef bint separate = targets > 1 and tables.column.separate, any_beyond = False
    cdef double* page = tables.models[leaf]
    cdef const double* model
    cdef const double* values = row
    cdef double* room = work
    for target in range(targets):
        predictions[target].experts[0] = part_of(tables, targets, leaf, target).mean
    if not tables.linear:
        return False
    for target in range(targets):
        if target == 0 or separate:
            room = work + (target * terms_doubles(features) if separate else 0)
            if tables.column.has_categories or tables.column.split_encoded:
                set_model_values(tables, target, row, room)
                values = room
            model = model_of(page, features, separate, target)
            any_beyond = standardise(
                model + centres_at(features), model + scales_at(features), tables.column.facts,
                values, features, room + features,
            )
        if learning and (target == 0 or separate):
            predictions[target].unusual = direct_models(
                coefficients_of(page, features, separate, target), model + covariance_at(features),
                room + features, terms, predictions[target].experts + 1, room + features + terms,
            )
            continue
        if learning:
            predictions[target].unusual = predictions.unusual
        predict_models(
            coefficients_of(page, features, separate, target), room + features, terms,
            predictions[target].experts + 1,
        )
    return any_beyond


cdef inline void find_limits(
    TreeTables tables, Py_ssize_t targets, Py_ssize_t leaf, Py_ssize_t target, double* limits
) noexcept nogil:
    """Set the least and the largest prediction of linear models, relative to the leaf's origin."""
    cdef double low = lowest_of(tables, targets, target)
    cdef double high = highest_of(tables, targets, target)
    cdef double margin = MARGIN * (high - low)
    cdef double origin = part_of(tables, targets, leaf, target).origin
    limits[0] = low - margin - origin
    limits[1] = high + margin - origin


cdef inline void hold_experts(
    TreeTables tables, Py_ssize_t targets, Py_ssize_t leaf, Py_ssize_t target, double* experts
) noexcept nogil:
    """Let no linear model predict what is far beyond the range of a target."""
    cdef double limits[2]
    cdef double value
    cdef Py_ssize_t expert
    find_limits(tables, targets, leaf, target, limits)
    for expert in range(1, EXPERTS):
        value = experts[expert]
        value = value if value > limits[0] else limits[0]
        experts[expert] = value if value < limits[1] else limits[1]


cdef inline void weigh_experts(
    TreeTables tables, Py_ssize_t targets, Py_ssize_t leaf, Py_ssize_t target, double* powers
) noexcept nogil:
    """Set by how much each expert counts in `mix_weighed`, which depends on earlier rows alone."""
    cdef TargetPart* part = part_of(tables, targets, leaf, target)
    if tables.linear:
        find_powers(
            &part.issued_errors[0] if tables.tracking else &part.errors[0], tables.averaging, powers
        )


cdef inline void mix_weighed(
    TreeTables tables, Py_ssize_t targets, Py_ssize_t leaf, Py_ssize_t target,
    const double* powers, TargetPrediction* prediction,
) noexcept nogil:
    """Predict a target, from what its experts do; 0 before its first y."""
    cdef const TargetPart* part = part_of(tables, targets, leaf, target)
    cdef double limits[2]
    prediction.tree = part.origin + part.mean
    if tables.linear and rows_of(tables, targets, target) > 0.0:
        find_limits(tables, targets, leaf, target, limits)
        prediction.tree = part.origin + mix_within(
            prediction.experts, powers, tables.averaging, limits[0], limits[1]
        )
    prediction.corrected.prediction = prediction.issued = prediction.tree


cdef inline void mix_experts(
    TreeTables tables, Py_ssize_t targets, Py_ssize_t leaf, Py_ssize_t target,
    TargetPrediction* prediction,
) noexcept nogil:
    """Weigh and mix the experts of a target."""
    cdef double powers[EXPERTS]
    weigh_experts(tables, targets, leaf, target, powers)
    mix_weighed(tables, targets, leaf, target, powers, prediction)


cdef inline void correct(
    TreeTables tables, Py_ssize_t targets, Py_ssize_t target, TargetPrediction* prediction
) noexcept nogil:
    """Let the corrector, if there is one, make a prediction of that of the tree."""
    if tables.tracking and rows_of(tables, targets, target) > 0.0:
        predict_layer(
            tables.layer + target, tables.layer_rules, prediction.tree,
            rows_of(tables, targets, target), &prediction.corrected,
        )
        prediction.issued = issued_prediction(tables.layer + target, &prediction.corrected)
        if targets == 1 and tables.units.alert and tables.column.units[0].state != CALM:
            prediction.corrected.prediction = prediction.issued = tables.units.detection.level


cdef inline const double* with_encodings(
    TreeTables tables, const double* row, double* room
) noexcept nogil:
    """A row with numbers in place of the codes of high-cardinality categories, as splits read it.
    """
    if tables.column.split_encoded:
        return with_split_encodings(
            row, room, tables.column.places, tables.column.split_encodings, tables.features
        )
    return with_target_encodings(
        row, room, tables.column.places, tables.column.many_encodings, tables.features,
        mean_weight(&tables.stream),
    )


cdef inline const double* prepared_row(
    TreeTables tables, const double* row, double* room
) noexcept nogil:
    """A row as the tree takes it: itself, or with levels if there are high-cardinality categories.

    What is too far away while units seem to change counts as missing; see _units.pxd.
    """
    if tables.column.has_encoded:
        row = with_encodings(tables, row, room)
    if tables.units.hiding:
        return without_suspects(tables, row, room)
    return row


cdef inline const double* without_suspects(
    TreeTables tables, const double* row, double* room
) noexcept nogil:
    """A row, in its room, without values that are beyond the range of a suspect."""
    cdef double* values = room + tables.features
    cdef Py_ssize_t feature
    for feature in range(tables.features):
        values[feature] = row[feature]
        if tables.column.units[1 + feature].state == BEYOND and is_beyond(
            tables.column.units + 1 + feature, row[feature]
        ):
            values[feature] = NAN
            if tables.column.has_encoded:
                values[-1 - feature] = NAN
    return values


cdef inline void set_model_values(
    TreeTables tables, Py_ssize_t target, const double* row, double* values
) noexcept nogil:
    """Copy a row, with the mean y of a category in place of its code.

    One of many has its level already, unless splits read it by another number.
    """
    cdef const double* levels = tables.column.encodings + tables.column.encoding_doubles * target
    cdef const double* many = levels + 2 * CATEGORIES * tables.features
    cdef Py_ssize_t feature, code
    cdef double row_weight
    for feature in range(tables.features):
        values[feature] = row[feature]
        if tables.column.is_category[feature] and row[feature] == row[feature]:
            code = CATEGORIES * feature + <Py_ssize_t>row[feature]
            # A category of which no y was learned is treated as missing.
            values[feature] = levels[2 * code + 1] if levels[2 * code] > 0.0 else NAN
    if tables.column.split_encoded:
        row_weight = mean_weight(&tables.stream)
        for feature in range(tables.features):
            if tables.column.places[feature] >= 0:
                values[feature] = row[-1 - feature]
                if values[feature] == values[feature]:
                    values[feature] = encoding_of(
                        many, tables.column.places[feature], values[feature], row_weight
                    )
                many += 2 * (HEAD + tables.column.places[feature])
