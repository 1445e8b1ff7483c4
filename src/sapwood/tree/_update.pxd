"""A row updates a tree: its leaf, the target encodings, and the error-correction layer.

The algorithm is the same for any number of targets. Values that depend on the row alone (its leaf,
terms, direction and slots) are computed once, the rest for each target whose y is known. `targets`
is a literal 1 in _learning.pyx, which learns one target, and a variable in _targets.pyx, which
learns several. Where a target is missing, its models, moments and corrector do not change.

Nothing here can fail. Memory was reserved before, see `TreeKernel.reserve_for_row`.
"""

from libc.math cimport fabs
from libc.stdint cimport int64_t, uint64_t

from sapwood.corrector._layer cimport (
    CorrectedPrediction, issued_prediction, score_layer, start_layer, update_layer,
)
from sapwood.moments cimport CELL, PIVOT
from sapwood.observers._rows cimport CELLS, mean_of_cell
from sapwood.observers._store cimport Store
from sapwood.tree._blocks cimport score_block
from sapwood.tree._columns cimport observe_columns, weigh_units, widen_ranges
from sapwood.tree._split_encoding cimport update_split_encodings
from sapwood.tree._experts cimport EARLY, FADE, LEAST, NEARER
from sapwood.tree._guard cimport held_near
from sapwood.tree._target_encoding cimport HEAD, update_encoding
from sapwood.tree._model cimport (
    HEAVIEST, LONG_MEMORY, SAMPLE, YOUNG, move_coefficients, shrink_covariance,
)
from sapwood.tree._prediction cimport (
    correct, first_of, highest_of, hold_experts, lowest_of, mix_weighed, part_of, predict_experts,
    rows_of, weigh_experts,
)
from sapwood.tree._pending_predictions cimport (
    scored_prediction, set_issued_experts, take_pending,
)
from sapwood.tree._records cimport (
    CATEGORIES, EXPERTS, RATES, LeafRecord, TargetPart, PendingPrediction, covariance_at, terms_of,
)
from sapwood.tree._slots cimport find_slots, watch_row
from sapwood.tree._tables cimport TreeTables, slots_between
from sapwood.tree._target_records cimport (
    TargetPrediction, TargetStream, coefficients_of, model_of, terms_doubles,
)
from sapwood.tree._trial cimport try_row
from sapwood.tree._units cimport CALM, FAR_OUT, FIRST_LOOK, LARGE_ERROR, WEIGHING
from sapwood.tree._unit_change cimport watch_units
from sapwood.tree._watch cimport slot_at


cdef inline void learn_targets(
    TreeTables tables, Py_ssize_t targets, Py_ssize_t leaf, const double* row, const double* raw,
    const double* y, double w, uint64_t key, bint at_once, TargetPrediction* predictions,
    double* room,
) noexcept nogil:
    """Predict and learn a row; `room` is a buffer for the sums of several targets.

    Predictions take values beyond the range of a column as the end of the range. Learning takes
    them as they are.
    """
    cdef LeafRecord* record = tables.leaves + leaf
    cdef const PendingPrediction* issued
    cdef double sums[3]
    cdef double powers[EXPERTS]
    # The weight, then y and residual of each target.
    cdef double* added = &sums[0] if targets == 1 else room
    cdef Py_ssize_t target
    cdef bint any_missing = False, is_unusual = False, has_large_error = False
    cdef bint is_sampled, is_beyond, is_followed
    cdef double known = tables.stream.rows, only_y
    if targets == 1:  # early, so that its divisions overlap with what follows
        weigh_experts(tables, targets, leaf, 0, powers)
    if record.watching:
        find_slots(tables, targets, leaf, row)
    is_beyond = predict_experts(
        tables, targets, leaf, row, tables.column.scratch, predictions, True
    )
    for target in range(targets):
        if targets > 1:
            weigh_experts(tables, targets, leaf, target, powers)
        mix_weighed(tables, targets, leaf, target, powers, predictions + target)
        if at_once or targets > 1:
            correct(tables, targets, target, predictions + target)
    issued = take_pending(tables, targets, leaf, raw, key, at_once, predictions)
    if tables.stream.rows == 0.0:
        # The first review is due after so many rows, whatever they weigh.
        record.due *= w
        record.review *= w
    added[0] = w
    for target in range(targets):
        added[1 + 2 * target] = score_target(
            tables, targets, leaf, target, y[target], w, at_once,
            NULL if issued == NULL else issued + target, predictions + target, &has_large_error,
        )
    only_y, is_followed = added[1], tables.tracking and targets == 1 and known > 0.0
    if is_followed and tables.units.alert:
        is_followed = tables.column.units[0].state == CALM
    is_sampled = observe_columns(tables, leaf, row, added + 1, w, predictions)
    if tables.units.alert and tables.units.detection.phase == WEIGHING:
        weigh_units(tables, raw, y, predictions)
    if is_beyond:
        widen_ranges(tables, row)
        predict_experts(tables, targets, leaf, row, tables.column.scratch, predictions, True)
        for target in range(targets):
            hold_experts(tables, targets, leaf, target, predictions[target].experts)
    if tables.linear:
        is_unusual = tables.stream.rows >= FIRST_LOOK and (
            predictions.unusual * record.rows > <double>FAR_OUT * terms_of(tables.features)
        )
    for target in range(targets):
        added[2 + 2 * target] = 0.0
        if targets > 1 and y[target] != y[target]:
            any_missing = True
            added[1 + 2 * target] = 0.0
            continue
        learn_target(
            tables, targets, leaf, target, row, w, predictions + target, added + 1 + 2 * target
        )
    if tables.column.split_encoded:
        update_split_encodings(tables, row, (tables.stream.weight + w) / (tables.stream.rows + 1.0))
    if tables.linear:
        for target in range(targets if targets > 1 and tables.column.separate else 1):
            shrink(tables, targets, leaf, target, predictions[target].unusual, w)
    tables.stream.rows += 1.0
    tables.stream.weight += w
    record.rows += 1.0
    record.weight += w
    if record.watching:
        if tables.trial.leaf == leaf:
            try_row(tables, targets, row, y, added + 2, w)
        watch_row(tables, targets, leaf, row, y, added, any_missing)
    for target in range(targets):
        if rows_of(tables, targets, target) <= EARLY and y[target] == y[target]:
            move_origin_if_far(tables, targets, leaf, target, y[target])
    if is_followed:  # late, as nothing else of the row waits for it
        learn_layer(
            tables, 0, known, only_y, w, scored_prediction(issued, at_once, predictions),
            predictions.tree,
        )
    if (is_sampled | is_unusual | has_large_error | tables.units.alert) and tables.units.is_on:
        watch_units(tables, raw, y, predictions, is_unusual, has_large_error, is_sampled)
        tables.units.alert = tables.units.detection.alert > 0.0


cdef inline double score_target(
    TreeTables tables, Py_ssize_t targets, Py_ssize_t leaf, Py_ssize_t target, double y, double w,
    bint at_once, const PendingPrediction* pending, TargetPrediction* prediction,
    bint* has_large_error,
) noexcept nogil:
    """Score the prediction of a target; return the y to learn, NaN if it is missing."""
    cdef double rows = rows_of(tables, targets, target), error
    cdef double* usual = &tables.stream.usual
    cdef const CorrectedPrediction* issued = NULL
    cdef Py_ssize_t expert
    if targets > 1:
        usual = &tables.of_targets.streams[target].usual
        if y != y:
            return y
    if rows == 0.0:
        start_target(tables, targets, target, y)
        for expert in range(EXPERTS):
            prediction.issued_experts[expert] = prediction.experts[expert]
        return y
    if tables.tracking:
        issued = scored_prediction(pending, at_once, prediction)
        set_issued_experts(part_of(tables, targets, leaf, target), pending, at_once, prediction)
        if targets == 1 and not at_once:
            if issued != NULL and issued.known == rows:
                prediction.corrected.prediction = issued.prediction  # as would be predicted now
                prediction.issued = issued_prediction(tables.layer + target, issued)
            else:
                correct(tables, targets, target, prediction)
    if targets == 1:
        if tables.units.alert and tables.column.units[0].state != CALM:
            return prediction.tree  # y may be in other units
        error = y - prediction.corrected.prediction
        has_large_error[0] = (
            rows >= FIRST_LOOK and error * error > <double>LARGE_ERROR * tables.stream.usual
        )
    y = held_near(
        y, prediction.corrected.prediction, rows, lowest_of(tables, targets, target),
        highest_of(tables, targets, target), usual,
    )
    if tables.tracking and targets > 1:
        learn_layer(tables, target, rows, y, w, issued, prediction.tree)
    return y


cdef inline void learn_layer(
    TreeTables tables, Py_ssize_t target, double known, double y, double w,
    const CorrectedPrediction* issued, double model,
) noexcept nogil:
    """Let the error-correction layer of a target learn a y, when so many others are known."""
    if issued != NULL:
        score_layer(tables.layer + target, tables.layer_rules, issued, y, w, known)
    update_layer(tables.layer + target, model, y, w)


cdef inline void start_target(
    TreeTables tables, Py_ssize_t targets, Py_ssize_t target, double y
) noexcept nogil:
    """Take the first y of a target as the origin of all leaves."""
    cdef TargetStream* stream
    cdef Py_ssize_t each
    if targets == 1:
        tables.stream.first = tables.stream.low = tables.stream.high = y
    else:
        stream = tables.of_targets.streams + target
        stream.first = stream.low = stream.high = y
    for each in range(tables.leaf_count):
        part_of(tables, targets, each, target).origin = y
    if tables.tracking:
        start_layer(tables.layer + target, tables.layer_rules, y)


cdef inline void add_to_stream(
    TreeTables tables, Py_ssize_t targets, Py_ssize_t target, double y, double w
) noexcept nogil:
    """Add a row to the statistics of a target over all rows."""
    cdef TargetStream* stream
    cdef double share, delta
    if targets == 1:
        tables.stream.low = y if y < tables.stream.low else tables.stream.low
        tables.stream.high = y if y > tables.stream.high else tables.stream.high
        return
    stream = tables.of_targets.streams + target
    delta = (y - stream.first) - stream.mean
    stream.rows += 1.0
    stream.weight += w
    stream.low = y if y < stream.low else stream.low
    stream.high = y if y > stream.high else stream.high
    share = w / stream.weight
    stream.mean += delta * share
    stream.m2 += w * delta * delta * (1.0 - share)


cdef inline void learn_target(
    TreeTables tables, Py_ssize_t targets, Py_ssize_t leaf, Py_ssize_t target, const double* row,
    double w, TargetPrediction* prediction, double* added,
) noexcept nogil:
    """Learn the y of a target, `added[0]`; set both numbers that are added to slots."""
    cdef TargetPart* part = part_of(tables, targets, leaf, target)
    cdef double y = added[0], distance = y - part.origin, residual, delta, share, weight
    add_to_stream(tables, targets, target, y, w)
    residual = delta = distance - part.mean
    part.mean_weight += w
    part.mean += delta * (w / part.mean_weight)
    if tables.linear:
        residual = move_models(tables, targets, leaf, target, prediction, distance, w)
    add_errors(tables, part, prediction, distance, w)
    if targets == 1:
        weight = tables.leaves[leaf].weight + w  # of which the row will be
    else:
        tables.of_targets.leaves[leaf * targets + target].rows += 1.0
        tables.of_targets.leaves[leaf * targets + target].weight += w
        weight = tables.of_targets.leaves[leaf * targets + target].weight
    share = w / weight
    delta = distance - part.target_mean
    part.target_mean += delta * share
    part.target_m2 += w * delta * delta * (1.0 - share)
    delta = residual - part.residual_mean
    part.residual_mean += delta * share
    part.residual_m2 += w * delta * delta * (1.0 - share)
    added[0], added[1] = distance, residual
    if tables.column.has_categories or tables.column.has_encoded:
        update_encodings(tables, target, row, y - first_of(tables, targets, target), w)


cdef inline void add_errors(
    TreeTables tables, TargetPart* part, const TargetPrediction* prediction, double distance,
    double w,
) noexcept nogil:
    """Add a row to the exponentially weighted errors of the experts of a target.

    Growth depends on the errors of current predictions. The shares of experts depend, half and
    half, on the errors of current and of issued predictions.
    """
    cdef double now, then
    cdef Py_ssize_t expert
    now, then = distance - prediction.experts[0], distance - prediction.issued_experts[0]
    part.errors[0] = FADE * part.errors[0] + w * now * now
    if tables.tracking:
        part.issued_errors[0] = FADE * part.issued_errors[0] + w * (0.5 * (now * now + then * then))
    if tables.linear and tables.tracking:
        score_block(
            part.errors + 1, part.issued_errors + 1, prediction.experts + 1,
            prediction.issued_experts + 1, distance, w, FADE,
        )
    elif tables.linear:
        for expert in range(1, EXPERTS):
            now = distance - prediction.experts[expert]
            part.errors[expert] = FADE * part.errors[expert] + w * now * now


cdef inline double move_models(
    TreeTables tables, Py_ssize_t targets, Py_ssize_t leaf, Py_ssize_t target,
    const TargetPrediction* prediction, double distance, double w,
) noexcept nogil:
    """Update the linear models of a target; return the error of the model that was best before.

    P shrinks with every row, shared or not, so that nothing depends on when categories arrived.
    The models of a target that was missing in some rows take a longer step than P gives, as they
    have seen fewer rows.
    """
    cdef const TargetPart* part = part_of(tables, targets, leaf, target)
    cdef Py_ssize_t features = tables.features, terms = terms_of(features), rate
    cdef bint separate = targets > 1 and tables.column.separate
    cdef const double* v = tables.column.scratch + features + terms
    cdef double errors[RATES]
    cdef double least = part.errors[1], residual = distance - prediction.experts[1]
    cdef double unusual = prediction.unusual, evidence
    for rate in range(RATES):
        errors[rate] = distance - prediction.experts[1 + rate]
        residual = errors[rate] if part.errors[1 + rate] < least else residual
        least = part.errors[1 + rate] if part.errors[1 + rate] < least else least
    w = w if w < <double>HEAVIEST else <double>HEAVIEST
    if not unusual > 0.0:
        return residual
    evidence = w * unusual
    if targets > 1:
        evidence *= (tables.leaves[leaf].rows + 1.0) / (
            tables.of_targets.leaves[leaf * targets + target].rows + 1.0
        )
    if separate:
        v += target * terms_doubles(features)
    move_coefficients(
        coefficients_of(tables.models[leaf], features, separate, target), v, terms,
        1.0 / unusual, evidence / (1.0 + evidence), errors, LEAST, w,
    )
    return residual


cdef inline void shrink(
    TreeTables tables, Py_ssize_t targets, Py_ssize_t leaf, Py_ssize_t target, double unusual,
    double w,
) noexcept nogil:
    """Update P, of one target or shared by all, with a row."""
    cdef double rows = tables.leaves[leaf].rows
    cdef Py_ssize_t features = tables.features, terms = terms_of(features)
    cdef double* z = tables.column.scratch + target * terms_doubles(features) + features
    cdef double* covariance = model_of(
        tables.models[leaf], features, targets > 1 and tables.column.separate, target
    ) + covariance_at(features)
    w = w if w < <double>HEAVIEST else <double>HEAVIEST
    if not unusual > 0.0:
        return
    if rows < YOUNG:
        shrink_covariance(covariance, z, z + terms, terms, unusual, w)
    elif rows < LONG_MEMORY and <int64_t>rows % SAMPLE == 0:
        shrink_covariance(covariance, z, z + terms, terms, unusual, SAMPLE * w)


cdef inline void update_encodings(
    TreeTables tables, Py_ssize_t target, const double* row, double y, double w
) noexcept nogil:
    """Update the mean y of the categories of a row, which the linear models of a target read."""
    cdef double* levels = tables.column.encodings + tables.column.encoding_doubles * target
    cdef Py_ssize_t feature
    cdef double* level
    cdef double* many = tables.column.many_encodings + tables.column.encoding_doubles * target
    if tables.column.has_encoded:
        for feature in range(tables.features):
            if tables.column.places[feature] >= 0:
                if row[-1 - feature] == row[-1 - feature]:
                    update_encoding(
                        many, tables.column.places[feature], row[-1 - feature], y, w,
                        (tables.stream.weight + w) / (tables.stream.rows + 1.0),
                    )
                many += 2 * (HEAD + tables.column.places[feature])
    for feature in range(tables.features):
        if tables.column.is_category[feature] and row[feature] == row[feature]:
            level = levels + 2 * (CATEGORIES * feature + <Py_ssize_t>row[feature])
            level[0] += w
            level[1] += (y - level[1]) * (w / level[0])


cdef inline void move_origin_if_far(
    TreeTables tables, Py_ssize_t targets, Py_ssize_t leaf, Py_ssize_t target, double y
) noexcept nogil:
    """Move the origin of a target, if the first y was very far from the others."""
    cdef TargetPart* part = part_of(tables, targets, leaf, target)
    cdef double shift = part.origin - y
    cdef double* coefficients
    cdef Py_ssize_t each, feature, count, rate
    if not fabs(y) < NEARER * fabs(part.origin):
        return
    if targets > 1:
        for each in range(tables.leaf_count):
            if tables.target_leaf(each, target).rows == 0.0:
                tables.target_leaf(each, target).part.origin = y
    part.origin = y
    part.mean += shift
    part.target_mean += shift
    if tables.linear:
        coefficients = coefficients_of(
            tables.models[leaf], tables.features, tables.column.separate, target
        )
        for rate in range(RATES):
            coefficients[rate] += shift
    if not tables.leaves[leaf].watching:
        return
    for feature in range(tables.features):
        count = slots_between(tables.column.slot_starts, feature)
        shift_slot(tables, leaf, feature, tables.column.slot_size, count, target, shift)
        if tables.grid_of(leaf, feature).inverse > 0.0:
            for each in range(count):
                shift_slot(tables, leaf, feature, tables.column.slot_size, each, target, shift)
        elif tables.slots:
            for each in range(<Py_ssize_t>tables.grid_of(leaf, feature).kept):
                shift_slot(tables, leaf, feature, tables.column.slot_size + 1, each, target, shift)
        else:
            shift_elements(<Store>tables.stores[leaf][feature], targets, target, shift)


cdef inline void shift_slot(
    TreeTables tables, Py_ssize_t leaf, Py_ssize_t feature, Py_ssize_t size, Py_ssize_t place,
    Py_ssize_t target, double shift,
) noexcept nogil:
    """Shift the y of a target in a slot, or in a stored row."""
    cdef double* slot = <double*>slot_at(tables.slots_of(leaf, feature), size, place)
    cdef double gap = 0.0
    if tables.targets > 1:
        gap = tables.gaps_of(leaf, feature)[tables.targets * place + target]
    slot[1 + 2 * target] += shift * (slot[0] - gap)


cdef inline void shift_elements(
    Store store, Py_ssize_t targets, Py_ssize_t target, double shift
) noexcept nogil:
    """Shift the y of a target in all elements of an observer, but for rows in which it is missing.
    """
    cdef double known = 1.0
    cdef double* cell
    cdef Py_ssize_t row
    for row in range(store.count):
        cell = &store.table[row, CELLS]
        if targets > 1:
            known = 1.0 - mean_of_cell(cell + CELL * (2 * targets + target))
        cell[CELL * 2 * target + PIVOT] += shift * known
