"""The leaves of a tree: their records, model pages, statistics pages and observers."""

from sapwood.tree._pages cimport Pages
from sapwood.tree._records cimport LeafRecord


cdef class Watchers:
    cdef readonly list observers       # one per feature
    cdef object addresses
    cdef void** stores                 # where their stores are: in `addresses`


cdef class Leaves:
    cdef readonly object leaf_table
    cdef readonly Py_ssize_t leaf_count
    cdef Py_ssize_t leaf_room          # rows of the table
    cdef readonly bint linear          # whether leaves have linear models
    cdef Pages model_table
    cdef Pages watch_table             # no page where a leaf has no statistics
    cdef list watchers                 # of each leaf: its observers, or None
    cdef object store_table            # where their stores are
    cdef LeafRecord* leaves            # of `leaf_table`
    cdef double** models               # of `model_table`
    cdef double** watches              # of `watch_table`
    cdef void*** stores                # of `store_table`
    cdef double* spare_model           # pages for a child, while rows are learned
    cdef double* spare_watch

    cdef void put_watchers(self, Py_ssize_t leaf, Watchers watchers) noexcept
    cdef int get_spares(self) except -1 nogil
    cdef void drop_spares(self) noexcept nogil
