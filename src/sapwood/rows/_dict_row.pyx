"""The quick way in: a plain dict becomes a row of doubles; `sapwood.rows.encoder` does the rest.

No code of a caller runs while a dict is walked: keys and values are looked at only if they are of
Python's own types, and numbers of NumPy are put aside until the walk is over. Anything else is
left to the slow path, which checks it and raises the errors.
"""

import sys

import numpy as np
from cpython.mem cimport PyMem_Free, PyMem_Realloc
from libc.float cimport DBL_MAX
from libc.math cimport NAN, fabs, floor
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy, memset

from sapwood import validation
from sapwood.rows.encoded import EncodedRow

cdef extern from "Python.h":
    bint PyBool_Check(PyObject*)
    bint PyDict_CheckExact(PyObject*)
    bint PyFloat_Check(PyObject*)
    bint PyFloat_CheckExact(PyObject*)
    bint PyLong_CheckExact(PyObject*)
    bint PyUnicode_CheckExact(PyObject*)
    bint PyDict_Next(PyObject*, Py_ssize_t*, PyObject**, PyObject**)
    Py_ssize_t PyDict_Size(PyObject*)
    PyObject* PyDict_GetItemWithError(PyObject*, PyObject*)
    double PyFloat_AS_DOUBLE(PyObject*)
    double PyLong_AsDouble(PyObject*)
    long long PyLong_AsLongLongAndOverflow(PyObject*, int*)
    PyObject* PyLong_FromDouble(double)
    long PyLong_AsLong(PyObject*)
    Py_ssize_t PyUnicode_GET_LENGTH(PyObject*)
    int PyUnicode_KIND(PyObject*)
    void* PyUnicode_DATA(PyObject*)
    Py_UCS4 PyUnicode_READ(int, void*, Py_ssize_t)
    unsigned long long PyLong_AsUnsignedLongLongMask(PyObject*)
    PyObject* PyErr_Occurred()
    void PyErr_Clear()
    void* Py_TYPE(PyObject*)
    void Py_INCREF(PyObject*)
    void Py_XDECREF(PyObject*)

cdef enum:
    FLAG = -1  # kinds of a column: it is derived from another
    UNKNOWN = 0
    NUMBER = 1
    CATEGORY = 2
    DECLARED = 3  # a category of which whole floats are labels too
    FEW_LABELS = 63  # of a category of few: OTHERS of sapwood.rows.column
    LONG_LABEL = 64  # characters of a label, as in sapwood.rows.column
    ALL_LABELS = 65_536  # that may have codes, if memory is not limited: MOST_LABELS there
    SHARED = 4  # as there
    MOST_KEYS = 4096  # there are no more features
    SOME_KEYS = 16  # that are remembered, plus twice the number of features
    SCALARS = 12
    IDS = -1  # instead of the number of labels, where labels are not distinguished
    NOWHERE = -1  # no column has this name
    ODD = -2  # the key has to be looked at with care
    COPIED = 2048  # doubles that are copied and then looked at, while they are in the cache
    LONG = 100_000  # values that others need not wait for while they are looked at
    MANY_GAPS = 30  # rows in which a column is missing, and present, before it gets a flag
    SHARE_OF_GAPS = 20  # one in so many has to be of the rarer kind

cdef dict KIND_CODES = {
    "unknown": UNKNOWN, "number": NUMBER, "category": CATEGORY, "identifier": CATEGORY,
    "missing": FLAG,
}
FLAG_ROWS, FLAG_SHARE = <int>MANY_GAPS, <int>SHARE_OF_GAPS
cdef Py_ssize_t LONGEST = validation.LONGEST

# Their values are got by code of NumPy alone. A float64 is a float anyway.
cdef tuple SCALAR_TYPES = (
    np.bool, np.float16, np.float32, np.str_,
    np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64,
)  # fmt: skip
cdef object np_str = np.str_
cdef void* encoded_row = <void*>EncodedRow
cdef void* scalar_types[SCALARS]
for place in range(SCALARS):
    scalar_types[place] = <void*>SCALAR_TYPES[place]


cdef inline bint is_scalar(PyObject* value) noexcept:
    """Whether a value is a scalar of NumPy, and no float."""
    cdef int place
    if PyUnicode_CheckExact(value) or PyLong_CheckExact(value) or PyFloat_Check(value):
        return False
    for place in range(SCALARS):
        if Py_TYPE(value) == scalar_types[place]:
            return True
    return False


cdef Py_ssize_t place_by_hash(PyObject* label, Py_ssize_t places) noexcept:
    """The place of a label among those that share some: by FNV-1a, the same on all machines."""
    cdef uint64_t found = 14695981039346656037u
    cdef Py_ssize_t at
    cdef int kind
    cdef void* data
    if PyUnicode_CheckExact(label):
        kind, data = PyUnicode_KIND(label), PyUnicode_DATA(label)
        for at in range(PyUnicode_GET_LENGTH(label)):
            found = (found ^ <uint64_t>PyUnicode_READ(kind, data, at)) * 1099511628211u
    else:
        found = (found ^ PyLong_AsUnsignedLongLongMask(label)) * 1099511628211u
    found ^= found >> 32
    return <Py_ssize_t>(found % <uint64_t>places)


def shared_place(label, Py_ssize_t places):
    """Return the place of a label, a str or int, among those that share so many places.

    Examples
    --------
    >>> shared_place("Oslo", 16384), shared_place(7, 16384), shared_place(True, 16384)
    (13002, 2186, 2656)
    """
    return place_by_hash(<PyObject*>label, places)


cdef class Gaps:
    """How often columns were missing and present, ready to be used.

    - `table`, shape (columns, 3): of each column: rows in which it was missing and present, and
      whether they count no more.
    - `flag_due`: whether a column is to get a flag.
    """

    def __init__(self, table not None, bint flag_due):
        cdef int64_t[:, ::1] own = np.array(table, np.int64)
        if own.shape[1] != 3:
            raise ValueError("there are three numbers for each column")
        self.table, self.room = own.base, own.shape[0]
        self.counts = &own[0, 0] if own.shape[0] else NULL
        self.any_missing, self.flag_due = bool((own.base[:, 0] > 0).any()), flag_due


cdef class FeatureTable:
    """What `Features` is for kernels."""

    def __cinit__(self):
        self.gaps = np.zeros((0, 3), np.int64)

    def set_gaps(self, gaps not None, bint flag_due):
        """Set in how many rows each column was missing and present, see `missing_flags`."""
        self.use_gaps(Gaps(gaps, flag_due))

    cdef void use_gaps(self, Gaps gaps) noexcept:
        """Let other counts be those of the columns."""
        self.gaps, self.gap_counts, self.gap_room = gaps.table, gaps.counts, gaps.room
        self.any_gaps, self.flag_due = gaps.any_missing, gaps.flag_due

    cdef int count_gap(self, Py_ssize_t column, bint is_missing) except -1:
        """Count a value of a column of numbers; from the first one on that is missing."""
        cdef int64_t* own
        if column >= self.gap_room:
            if not is_missing:
                return 0
            more = np.zeros((column + 1, 3), np.int64)
            more[: self.gap_room] = self.gaps
            self.set_gaps(more, self.flag_due)
        own = self.gap_counts + 3 * column
        if own[2] or (own[0] == 0 and not is_missing):
            return 0
        self.any_gaps = True
        own[not is_missing] += 1
        if own[0] >= MANY_GAPS and own[1] >= MANY_GAPS:
            if own[0] * SHARE_OF_GAPS >= own[1] and own[1] * SHARE_OF_GAPS >= own[0]:
                self.flag_due = True
        return 0


cdef class RowReader:
    """Reads dicts into one row of doubles, if they are plain.

    - `features`: what is known of the columns.

    Examples
    --------
    >>> from sapwood.rows.features import Features
    >>> features = Features()
    >>> _ = features.matrix({"age": [31.0], "colour": ["red"]}, learn=True)
    >>> reader = RowReader(features)
    >>> reader.read({"colour": "red", "age": 40}, learn=True)
    True
    >>> reader.row
    array([40.,  0.])
    >>> reader.read({"age": "old"}, learn=True)  # let `features.read_one` find the words
    False
    """

    def __init__(self, features):
        self.features = features
        self.refresh()

    def __dealloc__(self):
        cdef Py_ssize_t place
        for place in range(self.room):
            Py_XDECREF(self.places[place].key)
        PyMem_Free(self.places)

    def refresh(self):
        """Take up what the features have learned; `row` is another array after it."""
        cdef Py_ssize_t column, width, place
        cdef double[::1] view
        if self.features is None or self.features.known is None:
            raise RuntimeError("the reader was never initialised")
        known = self.features.known
        cdef dict index = known.index
        cdef list names = known.names, tables = known.tables, words = known.kinds
        cdef list counted = known.counts
        width = len(names)
        if not (len(words) == len(tables) == len(counted) == width <= MOST_KEYS):
            raise ValueError("the features are in disorder")
        categorical = self.features.categorical
        cdef Py_ssize_t most = self.features.most_labels
        row = np.full(width, np.nan)
        view = row
        cdef Py_ssize_t[::1] counts = np.zeros(2 * width + 1, np.intp)
        cdef Py_ssize_t* kinds = &counts[0] + width
        places = [*known.flags, *known.flags.values()]
        cdef Py_ssize_t[::1] flags = np.array([*places, 0], np.intp)
        cdef bint flagging = self.features.flagging
        for column in range(width):
            kinds[column] = KIND_CODES[words[column]]
            counts[column] = IDS if words[column] == "identifier" else counted[column]
            if kinds[column] == CATEGORY and names[column] in categorical:
                kinds[column] = DECLARED
        # Nothing fails from here on.
        self.known, self.kind_array = known, counts.base
        self.flag_array, self.flag_count, self.flags = flags.base, len(places) // 2, &flags[0]
        self.flagging = flagging
        self.kinds, self.width = kinds, width
        self.counts, self.most = &counts[0], most
        self.index, self.tables, self.row = index, tables, row
        self.values = &view[0] if width > 0 else NULL
        for place in range(self.room):
            Py_XDECREF(self.places[place].key)
            self.places[place].key = NULL

    def read(self, x, bint learn):
        """Fill `row` from a dict, if it is plain; else `row` is in disorder.

        - `x`: names and values of features.
        - `learn`: whether the row is to be learned: then all that is new is left to the slow way.
          If not, features and labels that are not known count as missing.
        - Returns whether all was plain; if not, `features.read_one` has to read the row.
        """
        return self.fill(x, learn)

    cdef int follow(self) except -1:
        """Take up what the features have learned; other threads may run meanwhile."""
        if self.index is None:
            raise RuntimeError("the reader was never initialised")
        while self.known is not self.features.known:
            self.refresh()
        return 0

    cdef bint fill_aside(self, object x, double* values) except -1:
        """Read a row to predict into a place of its own; `row` stays as it is, and in use."""
        cdef Py_ssize_t column
        cdef double kept
        cdef bint is_plain
        for column in range(self.width):
            values[column] = self.values[column]
        try:
            is_plain = self.fill(x, False)
        finally:
            for column in range(self.width):
                kept = values[column]
                values[column] = self.values[column]
                self.values[column] = kept
        return is_plain

    cdef bint fill(self, object x, bint learn) except -1:
        """As `read`."""
        cdef PyObject* items = <PyObject*>x
        cdef Py_ssize_t column
        cdef double number
        cdef bint is_plain
        if self.index is None:
            raise RuntimeError("the reader was never initialised")
        if PyDict_CheckExact(items):
            if self.features.encoding is not None:
                return False  # the slow way encodes it first
        elif Py_TYPE(items) != encoded_row:
            return False
        if self.known is not self.features.known:
            self.follow()
        if PyDict_Size(items) > self.room and self.room < 2 * self.width + SOME_KEYS:
            self.make_room(min(PyDict_Size(items), 2 * self.width + SOME_KEYS))
        for column in range(self.width):
            self.values[column] = NAN
        while self.holding > 0:  # of a row that memory did not suffice for
            self.holding -= 1
            Py_XDECREF(self.places[self.holding].held)
        self.named = 0
        is_plain = self.walk(items, learn)
        while self.holding > 0:
            self.holding -= 1
            held = <object>self.places[self.holding].held
            Py_XDECREF(self.places[self.holding].held)
            column = self.places[self.holding].held_column
            is_plain = is_plain and self.put_scalar(column, held, learn)
        if self.named == 0 and self.width > 0 and PyDict_Size(items) > 0:
            return False  # which deserves a word
        for column in range(self.flag_count):
            number = self.values[self.flags[self.flag_count + column]]
            self.values[self.flags[column]] = number != number
        return is_plain and not (learn and self.features.flag_due)

    cdef int count_gaps(self) except -1:
        """Count the values of the row that was learned, if columns get flags."""
        cdef Py_ssize_t column
        if not self.flagging:
            return 0
        if not self.features.any_gaps and all_finite(self.values, self.width):
            return 0
        for column in range(self.width):
            if self.kinds[column] == NUMBER:
                self.features.count_gap(column, self.values[column] != self.values[column])
        return 0

    cdef bint put_scalar(self, int column, object scalar, bint learn) except -1:
        """Write a scalar of NumPy; whether it was plain."""
        cdef double number
        if self.kinds[column] == NUMBER and type(scalar) is not np_str:
            number = scalar
            self.values[column] = number
            return not fabs(number) > DBL_MAX
        value = scalar.item()
        return self.put(column, <PyObject*>value, learn)

    cdef bint walk(self, PyObject* items, bint learn) noexcept:
        """Write all values but scalars of NumPy, which are held. Allocates nothing.

        For an allocation might collect garbage, and so run code that changes the dict.
        """
        cdef PyObject *key
        cdef PyObject *value
        cdef Py_ssize_t place = 0, count = 0, named = 0
        cdef int column
        cdef double number
        # Nothing below moves these arrays, which compilers cannot know.
        cdef Py_ssize_t room = self.room
        cdef const Place* places = self.places
        cdef const Py_ssize_t* kinds = self.kinds
        cdef double* values = self.values
        while PyDict_Next(items, &place, &key, &value):
            if count < room and places[count].key == key:
                column = places[count].column
            else:
                column = self.find(key, count)
            count += 1
            if column < 0:
                if learn or column == ODD:
                    return False
                continue
            named += 1
            if PyFloat_CheckExact(value) and kinds[column] == NUMBER:
                number = PyFloat_AS_DOUBLE(value)
                if fabs(number) > DBL_MAX:
                    return False
                values[column] = number
            elif is_scalar(value):
                if self.holding == self.room:
                    return False
                Py_INCREF(value)
                self.places[self.holding].held = value
                self.places[self.holding].held_column = column
                self.holding += 1
            elif not self.put(column, value, learn):
                return False
        self.named = named
        return True

    cdef int find(self, PyObject* key, Py_ssize_t count) noexcept:
        """Column of a key, to be remembered for its place; or why there is none."""
        cdef PyObject* column
        if not (PyUnicode_CheckExact(key) or PyLong_CheckExact(key)):
            return ODD
        column = PyDict_GetItemWithError(<PyObject*>self.index, key)
        if column == NULL:
            PyErr_Clear()
            return NOWHERE
        if count < self.room:
            Py_INCREF(key)
            Py_XDECREF(self.places[count].key)
            self.places[count].key = key
            self.places[count].column = PyLong_AsLong(column)
        return PyLong_AsLong(column)

    cdef bint put(self, int column, PyObject* value, bint learn) noexcept:
        """Write a value of one of Python's own types; whether it was plain."""
        cdef Py_ssize_t kind = self.kinds[column]
        cdef double number
        cdef int overflow = 0
        cdef PyObject* label
        cdef bint done
        if value == <PyObject*>None:
            return True
        if PyFloat_Check(value):
            number = PyFloat_AS_DOUBLE(value)
            if number != number:
                return True
            if kind == DECLARED and number == floor(number) and fabs(number) < 2.0**63:
                label = PyLong_FromDouble(number)
                done = label != NULL and self.put_label(column, label, learn)
                Py_XDECREF(label)
                return done
            return fabs(number) <= DBL_MAX and self.put_number(column, number, learn)
        if PyUnicode_CheckExact(value):
            if PyUnicode_GET_LENGTH(value) > LONGEST or kind == NUMBER:
                return False
            return self.put_label(column, value, learn)
        if not (PyLong_CheckExact(value) or PyBool_Check(value)):
            return False
        if kind >= CATEGORY:
            PyLong_AsLongLongAndOverflow(value, &overflow)
            return overflow == 0 and self.put_label(column, value, learn)
        number = PyLong_AsDouble(value)
        if number == -1.0 and PyErr_Occurred() != NULL:
            PyErr_Clear()
            return False
        return self.put_number(column, number, learn)

    cdef bint put_number(self, int column, double number, bint learn) noexcept:
        """Write a number if it is one that is expected; whether it was."""
        if self.kinds[column] == NUMBER:
            self.values[column] = number
            return True
        return self.kinds[column] == UNKNOWN and not learn

    cdef bint put_label(self, int column, PyObject* label, bint learn) noexcept:
        """Write the code of a label, unless it has to be learned; whether that was done."""
        cdef PyObject* table = <PyObject*>self.tables[column]
        cdef Py_ssize_t count = self.counts[column]
        cdef PyObject* code
        if self.kinds[column] < CATEGORY:
            return self.kinds[column] == UNKNOWN and not learn
        if count == IDS:
            return True
        code = PyDict_GetItemWithError(table, label)
        if code != NULL and PyLong_AsLong(code) < count:
            self.values[column] = PyLong_AsLong(code)
            return True
        PyErr_Clear()
        if count > FEW_LABELS and (count >= self.most or self.is_long(label)):
            self.values[column] = self.most + place_by_hash(label, self.most // SHARED)
            return True
        if learn:
            return False
        if count >= FEW_LABELS:
            self.values[column] = (
                FEW_LABELS if count == FEW_LABELS else self.most + self.most // SHARED
            )
        return True

    cdef bint is_long(self, PyObject* label) noexcept:
        """Whether a label shares its code with others for its length."""
        return (
            self.most < ALL_LABELS
            and PyUnicode_CheckExact(label)
            and PyUnicode_GET_LENGTH(label) > LONG_LABEL
        )

    cdef int make_room(self, Py_ssize_t wanted) except -1:
        """Room for the keys of a longer dict."""
        places = <Place*>PyMem_Realloc(self.places, wanted * sizeof(Place))
        if places == NULL:
            raise MemoryError
        memset(places + self.room, 0, (wanted - self.room) * sizeof(Place))
        self.places, self.room = places, wanted
        return 0

    @property
    def nbytes(self):
        """Bytes that the reader occupies, and the keys that it remembers."""
        cdef Py_ssize_t place, total = 16 * self.width + self.room * sizeof(Place)
        for place in range(self.room):
            if self.places[place].key != NULL:
                total += sys.getsizeof(<object>self.places[place].key)
        return total + sys.getsizeof(self) + sys.getsizeof(self.row)


cdef bint all_finite(const double* values, Py_ssize_t count) noexcept nogil:
    """Whether no value is infinite or NaN: then products with 0, and sums of them, are 0."""
    cdef double first = 0.0, second = 0.0, third = 0.0, fourth = 0.0
    cdef Py_ssize_t _block
    for _block in range(count // 4):
        first += values[0] * 0.0
        second += values[1] * 0.0
        third += values[2] * 0.0
        fourth += values[3] * 0.0
        values += 4
    for block in range(count % 4):
        first += values[block] * 0.0
    return first + second + third + fourth == 0.0


cdef bint copy_finite(const double* values, double* copy, Py_ssize_t count) noexcept nogil:
    """Copy values block by block; whether no value of the copy is infinite or NaN."""
    cdef Py_ssize_t start = 0, size
    cdef bint is_finite = True
    while start < count:
        size = min(count - start, <Py_ssize_t>COPIED)
        memcpy(copy + start, values + start, size * sizeof(double))
        is_finite = all_finite(copy + start, size) and is_finite
        start += size
    return is_finite


def finite_copy(const double[:, ::1] X):
    """Return a copy of X, whether all its values are finite, and where the first infinite one is.

    What is found good is what is in the copy, whatever other threads write to X meanwhile.

    Examples
    --------
    >>> finite_copy(np.array([[1.0, np.nan], [-np.inf, 0.0]]))
    (array([[  1.,  nan],
           [-inf,   0.]]), False, (1, 0))
    >>> finite_copy(np.array([[1.0, np.nan]]))[1:], finite_copy(np.array([[1.0]]))[1:]
    ((False, None), (True, None))
    """
    copied = np.empty((X.shape[0], X.shape[1]))
    cdef double[:, ::1] copy = copied
    cdef Py_ssize_t count = X.shape[0] * X.shape[1]
    cdef bint is_good = True
    if 0 < count < LONG:
        is_good = copy_finite(&X[0, 0], &copy[0, 0], count)
    elif count > 0:
        with nogil:
            is_good = copy_finite(&X[0, 0], &copy[0, 0], count)
    return copied, is_good, None if is_good else find_infinite(copy)


def has_no_gap(const double[:, ::1] X):
    """Return whether no value of X is NaN; none is infinite.

    Examples
    --------
    >>> has_no_gap(np.array([[1.0, 2.0]])), has_no_gap(np.array([[1.0, np.nan]]))
    (True, False)
    """
    cdef Py_ssize_t count = X.shape[0] * X.shape[1]
    return count == 0 or all_finite(&X[0, 0], count)


def first_infinite(const double[:, ::1] X):
    """Row and column of the first value of X that is not finite and not NaN, or None.

    Examples
    --------
    >>> first_infinite(np.array([[1.0, np.nan], [-np.inf, 0.0]]))
    (1, 0)
    """
    cdef Py_ssize_t count = X.shape[0] * X.shape[1]
    cdef bint is_good = True
    if 0 < count < LONG:
        is_good = all_finite(&X[0, 0], count)
    elif count > 0:
        with nogil:
            is_good = all_finite(&X[0, 0], count)
    return None if is_good else find_infinite(X)


cdef object find_infinite(const double[:, ::1] X):
    """Where the first infinite value of X is, row by row; None if there is none."""
    cdef Py_ssize_t row, column, bad = -1
    cdef int any_bad
    with nogil:
        for row in range(X.shape[0]):
            any_bad = 0
            for column in range(X.shape[1]):
                any_bad |= fabs(X[row, column]) > DBL_MAX
            if any_bad:
                bad = row
                break
    if bad >= 0:
        for column in range(X.shape[1]):
            if fabs(X[bad, column]) > DBL_MAX:
                return bad, column
    return None
