"""The way in for one dict of features."""

from cpython.ref cimport PyObject
from libc.stdint cimport int64_t

cdef struct Place:
    PyObject* key      # at this place of the dict before, if it is a name
    PyObject* held     # a scalar of NumPy, until the walk is over
    int column         # of the key
    int held_column    # of the scalar


cdef class Gaps:
    cdef readonly object table
    cdef int64_t* counts            # those of `table`
    cdef Py_ssize_t room
    cdef readonly bint any_missing
    cdef readonly bint flag_due


cdef class FeatureTable:
    cdef public object known        # what is known at the moment; another object after a change
    cdef public object encoding     # the schema that rows are encoded by first, if there is one
    # Of each column: rows in which it was missing and present, and whether these still count.
    cdef readonly object gaps       # int64 (n, 3)
    cdef int64_t* gap_counts        # those of `gaps`
    cdef Py_ssize_t gap_room        # columns that they have a place for
    cdef readonly bint any_gaps     # whether any column was missing
    cdef public bint flag_due       # whether a column is to get a flag of missing values

    cdef void use_gaps(self, Gaps gaps) noexcept
    cdef int count_gap(self, Py_ssize_t column, bint is_missing) except -1


cdef class RowReader:
    cdef readonly FeatureTable features
    cdef object known               # that of the features, when it was last looked at
    cdef readonly object row        # the doubles, in the order of the features' names
    cdef double* values             # those of `row`
    cdef readonly Py_ssize_t width  # how many there are
    cdef dict index                 # the features' own: name -> column
    cdef list tables                # the features' own, of each column: label -> code
    cdef object kind_array
    cdef Py_ssize_t* kinds          # of each column: in `kind_array`, as the next
    cdef Py_ssize_t* counts         # labels of each column that count
    cdef Py_ssize_t most            # labels of a column that may have codes of their own
    cdef Place* places              # of a dict, in its order
    cdef Py_ssize_t room            # how many places there are
    cdef Py_ssize_t holding         # how many scalars are held
    cdef Py_ssize_t named           # how many keys of the last dict are names of features
    cdef bint flagging              # whether columns get flags of missing values
    cdef Py_ssize_t flag_count      # how many have one; the places of flags, then of their columns
    cdef object flag_array
    cdef Py_ssize_t* flags          # those of `flag_array`

    cdef int follow(self) except -1
    cdef int count_gaps(self) except -1
    cdef bint fill_aside(self, object x, double* values) except -1
    cdef bint fill(self, object x, bint learn) except -1
    cdef bint walk(self, PyObject* items, bint learn) noexcept
    cdef int find(self, PyObject* key, Py_ssize_t count) noexcept
    cdef bint put(self, int column, PyObject* value, bint learn) noexcept
    cdef bint put_scalar(self, int column, object scalar, bint learn) except -1
    cdef bint put_number(self, int column, double number, bint learn) noexcept
    cdef bint put_label(self, int column, PyObject* label, bint learn) noexcept
    cdef bint is_long(self, PyObject* label) noexcept
    cdef int make_room(self, Py_ssize_t wanted) except -1
