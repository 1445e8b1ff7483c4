"""Pending predictions of a tree: stored when a row is predicted, taken when its label arrives."""

from libc.math cimport NAN
from libc.stdint cimport uint64_t
from libc.string cimport memset

from sapwood.corrector._layer cimport CorrectedPrediction
from sapwood.corrector._pending cimport (
    PendingPredictions, count_immediate, is_id, row_key_of, take_unrecorded, value_key,
)
from sapwood.tree._experts cimport FAST
from sapwood.tree._target_encoding cimport HEAD, is_known
from sapwood.tree._prediction cimport part_of, rows_of
from sapwood.tree._records cimport CATEGORIES, EXPERTS, TargetPart, PendingPrediction
from sapwood.tree._tables cimport TreeTables
from sapwood.tree._target_records cimport TargetPrediction


cdef inline uint64_t pending_key(
    TreeTables tables, const double* row, Py_ssize_t number, const Py_ssize_t* first_value
) noexcept nogil:
    """The key of a row without an id: a hash of the values that its prediction depends on.

    Categories without a learned y are left out, and so is a feature up to the row with its first
    value. High-cardinality categories count by their codes, as their encodings change.
    """
    cdef uint64_t key = 0
    cdef const double* many = tables.column.many_encodings
    cdef Py_ssize_t feature
    cdef double value
    if first_value == NULL and not tables.column.has_categories and not tables.column.has_encoded:
        for feature in range(tables.features):
            key += value_key(row[feature], feature)
        return row_key_of(key)
    for feature in range(tables.features):
        value = row[feature]
        if tables.column.has_encoded and tables.column.places[feature] >= 0:
            if is_known_of_any(tables, many, feature, value):
                key += value_key(value, feature)
            many += 2 * (HEAD + tables.column.places[feature])
            continue
        if first_value != NULL and number <= first_value[feature]:
            continue
        if tables.column.is_category[feature] and value == value:
            if not has_learned(tables, feature, <Py_ssize_t>value):
                continue
        key += value_key(value, feature)
    return row_key_of(key)


cdef inline void record_appearances(
    TreeTables tables, PendingPredictions pending, double labels, const double* row,
    Py_ssize_t number, const Py_ssize_t* first_value,
) noexcept nogil:
    """Record the values of a row that become part of keys when it is learned.

    `labels` is the number of labels known before it.
    """
    cdef const double* many = tables.column.many_encodings
    cdef Py_ssize_t feature, places
    cdef double value
    if first_value == NULL and not tables.column.has_categories and not tables.column.has_encoded:
        return
    for feature in range(tables.features):
        value, places = row[feature], -1
        if tables.column.has_encoded and tables.column.places[feature] >= 0:
            places = tables.column.places[feature]
            if value < places and not is_known_of_any(tables, many, feature, value):
                pending.appear(feature, value, labels)
            many += 2 * (HEAD + places)
        elif value != value:
            continue
        elif tables.column.is_category[feature]:
            if not has_learned(tables, feature, <Py_ssize_t>value):
                pending.appear(feature, value, labels)
        elif first_value != NULL and number == first_value[feature]:
            pending.appear(feature, NAN, labels)


cdef inline bint has_learned(
    TreeTables tables, Py_ssize_t feature, Py_ssize_t code
) noexcept nogil:
    """Whether a y of any target was learned for a category."""
    cdef const double* levels = tables.column.encodings + 2 * (CATEGORIES * feature + code)
    cdef Py_ssize_t target
    for target in range(tables.targets):
        if levels[tables.column.encoding_doubles * target] > 0.0:
            return True
    return False


cdef inline bint is_known_of_any(
    TreeTables tables, const double* many, Py_ssize_t feature, double code
) noexcept nogil:
    """The same for a high-cardinality category, given the encodings of the first target."""
    cdef Py_ssize_t target
    for target in range(tables.targets):
        if is_known(
            many + tables.column.encoding_doubles * target, tables.column.places[feature], code
        ):
            return True
    return False


cdef inline PendingPrediction* targets_of(double* record, Py_ssize_t targets) noexcept nogil:
    """The records of targets in a pending prediction, after the number of known labels."""
    return <PendingPrediction*>(record + (targets > 1))


cdef inline void store_prediction(
    TreeTables tables, Py_ssize_t leaf, const TargetPrediction* predictions, double* record
) noexcept nogil:
    """Store the predictions of a row; zeros for targets that were never seen."""
    cdef Py_ssize_t targets = tables.targets, target, expert
    cdef PendingPrediction* own = targets_of(record, targets)
    record[0] = tables.stream.rows
    for target in range(targets):
        if rows_of(tables, targets, target) == 0.0:
            memset(own + target, 0, sizeof(PendingPrediction))
            continue
        own[target].corrected = predictions[target].corrected
        own[target].origin = part_of(tables, targets, leaf, target).origin
        for expert in range(EXPERTS):
            own[target].experts[expert] = (
                predictions[target].experts[expert] if tables.linear or expert == 0 else 0.0
            )


cdef inline const PendingPrediction* take_pending(
    TreeTables tables, Py_ssize_t targets, Py_ssize_t leaf, const double* raw, uint64_t key,
    bint at_once, const TargetPrediction* predictions,
) noexcept nogil:
    """Take the pending prediction of a row, a record for each target; NULL if there is none."""
    cdef const double* found = NULL
    if not tables.tracking:
        return NULL
    if tables.stream.rows > 0.0 and tables.pending.count > 0:
        if at_once:
            store_prediction(tables, leaf, predictions, tables.pending.put(key))
        found = tables.pending.take(key, tables.stream.rows, raw)
        if found != NULL:
            return targets_of(<double*>found, targets)
    if at_once and tables.stream.rows > 0.0:
        count_immediate(tables.pending)
    elif not at_once and tables.pending.count == 0 and not is_id(key):
        take_unrecorded(tables.pending)
    return NULL


cdef inline const CorrectedPrediction* scored_prediction(
    const PendingPrediction* pending, bint at_once, const TargetPrediction* prediction
) noexcept nogil:
    """The issued prediction of a row, which its label scores; NULL if there is none."""
    if pending != NULL and pending.corrected.known > 0.0:
        return &pending.corrected
    return &prediction.corrected if at_once else NULL


cdef inline void set_issued_experts(
    const TargetPart* part, const PendingPrediction* pending, bint at_once,
    TargetPrediction* prediction,
) noexcept nogil:
    """Set the issued predictions of experts.

    Without an issued prediction, current predictions are used. Fast-forgetting experts do not
    extrapolate well to rows that are far ahead, so their predictions are moved three quarters of
    the way towards least squares.
    """
    cdef Py_ssize_t expert
    cdef double shift
    if pending != NULL and pending.corrected.known > 0.0:
        shift = pending.origin - part.origin
        for expert in range(EXPERTS):
            prediction.issued_experts[expert] = pending.experts[expert] + shift
        return
    for expert in range(EXPERTS):
        prediction.issued_experts[expert] = prediction.experts[expert]
    if at_once:
        return
    for expert in range(FAST, EXPERTS):
        prediction.issued_experts[expert] = (
            0.25 * prediction.experts[expert] + 0.75 * prediction.experts[1]
        )
