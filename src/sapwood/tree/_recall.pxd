"""What a tree said of a row, written down until its label comes; compiled into its callers."""

from libc.stdint cimport uint64_t

from sapwood.blend._layer cimport Saying
from sapwood.blend._notes cimport count_at_once, take_blank, value_key
from sapwood.tree._experts cimport FAST
from sapwood.tree._levels cimport HEAD, is_known
from sapwood.tree._outlook cimport Outlook
from sapwood.tree._records cimport CATEGORIES, EXPERTS, TreeNote
from sapwood.tree._tables cimport TreeTables


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
        return key
    for feature in range(tables.features):
        value = row[feature]
        if tables.has_many and tables.places[feature] >= 0:
            if is_known(many, tables.places[feature], value):
                key += value_key(value, feature)
            many += 2 * (HEAD + tables.places[feature])
            continue
        if first_value != NULL and number <= first_value[feature]:
            continue
        if tables.is_category[feature] and value == value:
            if not has_learned(tables, feature, <Py_ssize_t>value):
                continue
        key += value_key(value, feature)
    return key


cdef inline bint has_learned(TreeTables tables, Py_ssize_t feature, Py_ssize_t code) noexcept nogil:
    """Whether a y of a category was learned, of any target."""
    cdef Py_ssize_t target
    for target in range(tables.targets):
        if tables.levels[2 * (CATEGORIES * (target * tables.features + feature) + code)] > 0.0:
            return True
    return False


cdef inline void take_down(TreeTables tables, const Outlook* outlook, TreeNote* note) noexcept nogil:
    """Write down what was said about a row."""
    cdef Py_ssize_t expert
    note.saying = outlook.saying
    note.origin = tables.leaves[outlook.leaf].origin
    for expert in range(EXPERTS):
        note.experts[expert] = outlook.experts[expert] if tables.linear or expert == 0 else 0.0


cdef inline const Saying* recall(TreeTables tables, uint64_t key, bint at_once, Outlook* outlook) noexcept nogil:
    """What was said about a row when it was predicted; NULL if it never was.

    What the experts said is set in the outlook. If they were not asked, it is what they say
    now. But what forgets fast is near to the row before, and who knows how near to a row that
    is far ahead: it counts as three quarters on the way to least squares.
    """
    cdef const TreeNote* found = NULL
    cdef double shift
    cdef Py_ssize_t expert
    if tables.notes.count > 0:
        if at_once:
            take_down(tables, outlook, <TreeNote*>tables.notes.leave(key))
        found = <const TreeNote*>tables.notes.take(key, tables.rows)
        if found != NULL:
            shift = found.origin - tables.leaves[outlook.leaf].origin
            for expert in range(EXPERTS):
                outlook.then[expert] = found.experts[expert] + shift
            outlook.said = outlook.then
            return &found.saying
    if at_once:
        count_at_once(tables.notes)
        return &outlook.saying
    if tables.notes.count == 0:
        take_blank(tables.notes)
    for expert in range(FAST):
        outlook.then[expert] = outlook.experts[expert]
    for expert in range(FAST, EXPERTS):
        outlook.then[expert] = 0.25 * outlook.experts[expert] + 0.75 * outlook.experts[1]
    outlook.said = outlook.then
    return NULL
