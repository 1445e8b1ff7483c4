"""The way in for one dict of features."""

from cpython.ref cimport PyObject

cdef struct Place:
    PyObject* key      # at this place of the dict before, if it is a name
    PyObject* held     # a scalar of NumPy, until the walk is over
    int column         # of the key
    int held_column    # of the scalar


cdef class FeatureTable:
    cdef public object known        # what is known at the moment; another object after a change
    cdef public object encoding     # the schema that rows are encoded by first, if there is one


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

    cdef int follow(self) except -1
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
