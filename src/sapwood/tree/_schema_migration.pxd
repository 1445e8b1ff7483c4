"""Another set of features for a tree."""

from libc.stdint cimport int64_t

from sapwood.corrector._layer cimport LayerState
from sapwood.corrector._pending cimport PendingPredictions
from sapwood.rows._dict_row cimport FeatureTable, Gaps
from sapwood.tree._pages cimport Pages
from sapwood.tree._column_tables cimport Columns
from sapwood.tree._tables cimport TreeTables
from sapwood.tree._target_records cimport TargetRecords

cdef class TreeMigration:
    cdef TreeTables tables
    cdef Columns columns      # None if all that depends on the features stays
    cdef bint changes_layout       # whether the layout of pages changes
    cdef Pages model_table
    cdef Pages watch_table
    cdef double* spare_model  # for a child, if the first row makes its leaf split
    cdef double* spare_watch
    cdef bint ends_trial      # whether a split that is on trial cannot go on
    cdef double* trial_pages[2]
    cdef list watchers
    cdef object store_table
    cdef void*** stores
    cdef TargetRecords records  # None if there are as many targets as before; so are these:
    cdef object layer_table
    cdef LayerState* layer
    cdef PendingPredictions pending
    cdef object stopping      # an array of bool: which leaves stop watching
    cdef const unsigned char[::1] stops
    cdef int64_t name_bytes

    cdef double* fresh_watch(self, const double* source) except NULL
    cdef void lay_models(self, double* source, double* page) noexcept
    cdef void commit(self) noexcept


cdef class SchemaMigration:
    cdef FeatureTable features
    cdef object known
    cdef Py_ssize_t width     # how many features there will be
    cdef Py_ssize_t targets   # and how many columns of y
    cdef list relays
    cdef list fresh           # features of which no value was known before
    cdef Gaps gaps            # how often columns were missing, or None

    cdef void commit(self) noexcept
