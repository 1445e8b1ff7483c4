"""Another set of features for a tree."""

from libc.stdint cimport int64_t

from sapwood.rows._dict_row cimport FeatureTable
from sapwood.tree._pages cimport Pages
from sapwood.tree._tables cimport Columns, TreeTables

cdef class Relay:
    cdef TreeTables tables
    cdef Columns columns      # None if all that depends on the features stays
    cdef bint is_relaid       # whether the layout of pages changes
    cdef Pages model_table
    cdef Pages watch_table
    cdef double* spare_model  # for a child, if the first row makes its leaf split
    cdef double* spare_watch
    cdef list watchers
    cdef object store_table
    cdef void*** stores
    cdef object stopping      # an array of bool: which leaves stop watching
    cdef const unsigned char[::1] stops
    cdef int64_t name_bytes

    cdef void commit(self) noexcept


cdef class Registration:
    cdef FeatureTable features
    cdef object known
    cdef Py_ssize_t width     # how many features there will be
    cdef list relays
    cdef list fresh           # features of which no value was known before

    cdef void commit(self) noexcept
