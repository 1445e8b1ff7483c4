"""The tables of a tree."""

from sapwood.tree._records cimport LeafRecord, NodeRecord
from sapwood.tree._track cimport Tracker
from sapwood.tree._watch cimport Grid, Slot


cdef inline Py_ssize_t slots_between(const Py_ssize_t* starts, Py_ssize_t feature) noexcept nogil:
    """How many slots a feature has, that of missing values aside."""
    return starts[feature + 1] - starts[feature] - 1


cdef class TreeTables:
    cdef readonly Py_ssize_t features  # columns of a row
    cdef readonly Py_ssize_t slots     # of a number; 0 if observers watch the numbers
    cdef readonly bint linear          # whether leaves have linear models
    cdef readonly bint averaging       # whether they have the mean as an expert
    cdef readonly bint tracking
    cdef readonly Py_ssize_t node_count
    cdef readonly Py_ssize_t leaf_count
    cdef readonly double weight        # learned so far
    cdef readonly double rows
    cdef readonly double first         # y, and the range of y
    cdef readonly double low
    cdef readonly double high
    cdef readonly double usual         # faded mean of the squared errors

    cdef readonly object node_table
    cdef readonly object leaf_table
    cdef readonly object level_table   # for each category of each feature: weight and mean of y
    cdef readonly object track_table   # a Tracker
    cdef readonly list model_pages
    cdef readonly list watch_pages     # None where a leaf does not watch
    cdef readonly list observers       # of each leaf: a list of them, one a feature, or None
    cdef list addresses                # of their stores

    cdef NodeRecord* nodes
    cdef LeafRecord* leaves
    cdef Tracker* tracker
    cdef double* levels
    cdef double** models
    cdef double** watches
    cdef void*** stores
    cdef int* is_category
    cdef bint has_categories
    cdef Py_ssize_t* slot_starts       # where a feature's slots start, in slots; one past the end
    cdef double* scratch               # for learning: values, terms, direction
    cdef Slot** found                  # for learning: the slot of each feature of the row
    cdef int readers
    cdef bint writing

    cdef int check_width(self, Py_ssize_t width) except -1
    cdef int begin_writing(self) except -1
    cdef int begin_reading(self) except -1
    cdef Slot* slots_of(self, Py_ssize_t leaf, Py_ssize_t feature) noexcept nogil
    cdef Grid* grid_of(self, Py_ssize_t leaf, Py_ssize_t feature) noexcept nogil
