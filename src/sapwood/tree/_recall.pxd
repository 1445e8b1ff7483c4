"""What a tree said of a row, written down until its label comes; compiled into its callers."""

from libc.math cimport NAN
from libc.stdint cimport uint64_t
from libc.string cimport memset

from sapwood.corrector._layer cimport CorrectedPrediction
from sapwood.corrector._pending cimport (
    Notes, count_at_once, is_id, row_key_of, take_blank, value_key,
)
from sapwood.tree._experts cimport FAST
from sapwood.tree._levels cimport HEAD, is_known
from sapwood.tree._prediction cimport part_of, rows_of
from sapwood.tree._records cimport CATEGORIES, EXPERTS, TargetPart, TreeNote
from sapwood.tree._tables cimport TreeTables
from sapwood.tree._target_records cimport TargetPrediction


cdef inline uint64_t note_key(
    TreeTables tables, const double* row, Py_ssize_t number, const Py_ssize_t* first_value
) noexcept nogil:
    """By what the note about a row is found again: by the values that it was predicted from.

    Categories of which no y was learned are not among them, nor a feature up to the row that
    brings its first value. Those of many count by their codes, as levels change.
    """
    cdef uint64_t key = 0
    cdef const double* many = tables.many_levels
    cdef Py_ssize_t feature
    cdef double value
    if first_value == NULL and not tables.has_categories and not tables.has_many:
        for feature in range(tables.features):
            key += value_key(row[feature], feature)
        return row_key_of(key)
    for feature in range(tables.features):
        value = row[feature]
        if tables.has_many and tables.places[feature] >= 0:
            if is_known_of_any(tables, many, feature, value):
                key += value_key(value, feature)
            many += 2 * (HEAD + tables.places[feature])
            continue
        if first_value != NULL and number <= first_value[feature]:
            continue
        if tables.is_category[feature] and value == value:
            if not has_learned(tables, feature, <Py_ssize_t>value):
                continue
        key += value_key(value, feature)
    return row_key_of(key)


cdef inline void note_appearances(
    TreeTables tables, Notes notes, double labels, const double* row, Py_ssize_t number,
    const Py_ssize_t* first_value,
) noexcept nogil:
    """Remember which values of a row that is being learned `note_key` counts from now on.

    So many labels are known before it.
    """
    cdef const double* many = tables.many_levels
    cdef Py_ssize_t feature, places
    cdef double value
    if first_value == NULL and not tables.has_categories and not tables.has_many:
        return
    for feature in range(tables.features):
        value, places = row[feature], -1
        if tables.has_many and tables.places[feature] >= 0:
            places = tables.places[feature]
            if value < places and not is_known_of_any(tables, many, feature, value):
                notes.appear(feature, value, labels)
            many += 2 * (HEAD + places)
        elif value != value:
            continue
        elif tables.is_category[feature]:
            if not has_learned(tables, feature, <Py_ssize_t>value):
                notes.appear(feature, value, labels)
        elif first_value != NULL and number == first_value[feature]:
            notes.appear(feature, NAN, labels)


cdef inline bint has_learned(
    TreeTables tables, Py_ssize_t feature, Py_ssize_t code
) noexcept nogil:
    """Whether a y of a category was learned, of any target."""
    cdef const double* levels = tables.levels + 2 * (CATEGORIES * feature + code)
    cdef Py_ssize_t target
    for target in range(tables.targets):
        if levels[tables.level_doubles * target] > 0.0:
            return True
    return False


cdef inline bint is_known_of_any(
    TreeTables tables, const double* many, Py_ssize_t feature, double code
) noexcept nogil:
    """The same of a category of many, given where its levels of the first target are."""
    cdef Py_ssize_t target
    for target in range(tables.targets):
        if is_known(many + tables.level_doubles * target, tables.places[feature], code):
            return True
    return False


cdef inline TreeNote* notes_in(double* note, Py_ssize_t targets) noexcept nogil:
    """The part of each target in a note, which begins with the number of labels that were known."""
    return <TreeNote*>(note + (targets > 1))


cdef inline void take_down(
    TreeTables tables, Py_ssize_t leaf, const TargetPrediction* predictions, double* note
) noexcept nogil:
    """Write down what was predicted for a row; nothing of targets that were never seen."""
    cdef Py_ssize_t targets = tables.targets, target, expert
    cdef TreeNote* own = notes_in(note, targets)
    note[0] = tables.rows
    for target in range(targets):
        if rows_of(tables, targets, target) == 0.0:
            memset(own + target, 0, sizeof(TreeNote))
            continue
        own[target].saying = predictions[target].saying
        own[target].origin = part_of(tables, targets, leaf, target).origin
        for expert in range(EXPERTS):
            own[target].experts[expert] = (
                predictions[target].experts[expert] if tables.linear or expert == 0 else 0.0
            )


cdef inline const TreeNote* recall(
    TreeTables tables, Py_ssize_t targets, Py_ssize_t leaf, const double* raw, uint64_t key,
    bint at_once, const TargetPrediction* predictions,
) noexcept nogil:
    """What was predicted for each target of a row, if that was noted; else NULL."""
    cdef const double* found = NULL
    if not tables.tracking:
        return NULL
    if tables.rows > 0.0 and tables.notes.count > 0:
        if at_once:
            take_down(tables, leaf, predictions, tables.notes.leave(key))
        found = tables.notes.take(key, tables.rows, raw)
        if found != NULL:
            return notes_in(<double*>found, targets)
    if at_once and tables.rows > 0.0:
        count_at_once(tables.notes)
    elif not at_once and tables.notes.count == 0 and not is_id(key):
        take_blank(tables.notes)
    return NULL


cdef inline const CorrectedPrediction* set_said(
    const TargetPart* part, const TreeNote* note, bint at_once, TargetPrediction* prediction
) noexcept nogil:
    """Set what experts predicted when the row was predicted; the prediction then, NULL if none.

    If there was none, it is what they predict now. But what forgets fast is near to the row before,
    and does not extrapolate well to a row that is far ahead: it counts as three quarters on the way
    to least squares.
    """
    cdef Py_ssize_t expert
    cdef double shift
    if note != NULL and note.saying.known > 0.0:
        shift = note.origin - part.origin
        for expert in range(EXPERTS):
            prediction.said[expert] = note.experts[expert] + shift
        return &note.saying
    for expert in range(EXPERTS):
        prediction.said[expert] = prediction.experts[expert]
    if at_once:
        return &prediction.saying
    for expert in range(FAST, EXPERTS):
        prediction.said[expert] = 0.25 * prediction.experts[expert] + 0.75 * prediction.experts[1]
    return NULL
