"""The tables of a tree."""

from libc.stdint cimport int64_t

from sapwood.corrector._layer cimport LayerRules, LayerState
from sapwood.corrector._pending cimport PendingPredictions
from sapwood.tree._column_tables cimport Columns
from sapwood.tree._facts cimport ColumnFacts
from sapwood.tree._pages cimport Pages
from sapwood.tree._records cimport GrowthRules, LeafRecord, MemoryRules, NodeRecord, Trial
from sapwood.tree._lock cimport ModelLock
from sapwood.tree._target_records cimport (
    TargetCost, TargetLeaf, TargetNode, TargetStream, TargetTrial,
)
from sapwood.tree._units cimport ColumnUnits, UnitChange, UnitDetection
from sapwood.tree._watch cimport Grid, Slot


cdef inline Py_ssize_t slots_between(const Py_ssize_t* starts, Py_ssize_t feature) noexcept nogil:
    """How many slots a feature has, that of missing values aside."""
    return starts[feature + 1] - starts[feature] - 1


cdef class Watchers:
    cdef readonly list observers       # one per feature
    cdef object addresses
    cdef void** stores                 # where their stores are: in `addresses`


cdef class TargetRecords:
    cdef readonly object streams       # as those of a tree's tables
    cdef readonly object leaves
    cdef readonly object nodes
    cdef readonly object trials
    cdef TargetTrial* trial_records
    cdef TargetStream* stream_records
    cdef TargetLeaf* leaf_records
    cdef TargetNode* node_records


cdef struct Ranked:
    # A leaf, while leaves are ranked.
    double promise
    Py_ssize_t leaf
    int64_t size       # bytes of what it watches by, or would
    bint chosen
    double* page       # to start from, if it has none and is chosen


cdef class TreeTables:
    cdef readonly Py_ssize_t features  # columns of a row
    cdef readonly Py_ssize_t slots     # of a number; 0 if observers watch the numbers
    cdef readonly Py_ssize_t targets   # columns of y
    cdef readonly bint linear          # whether leaves have linear models
    cdef readonly bint averaging       # whether they have the mean as an expert
    cdef readonly bint tracking        # whether it has an error-correction layer
    cdef readonly Py_ssize_t node_count
    cdef readonly Py_ssize_t leaf_count
    cdef readonly Py_ssize_t undecided   # a leaf whose decision memory did not suffice for, or -1
    cdef readonly double weight        # learned so far
    cdef readonly double rows
    cdef readonly double first         # y, and the range of y
    cdef readonly double low
    cdef readonly double high
    cdef readonly double usual         # exponentially weighted mean of the squared errors
    cdef double next_sample            # the row that is sampled next; see _columns.pxd
    cdef readonly double ranked_at     # rows that had been learned when leaves were last ranked
    cdef readonly double measure_at    # with how many rows observers have to be measured again
    cdef readonly double bound         # bytes that the tree cannot exceed before that
    cdef readonly int64_t name_bytes   # of the names of features and categories

    cdef readonly object node_table
    cdef readonly object leaf_table
    cdef readonly object layer_table   # the error-correction layer: a LayerState; empty without one
    cdef readonly PendingPredictions pending          # None without an error-correction layer
    cdef readonly object target_stream_table  # of several targets; None if there is one:
    cdef readonly object target_leaf_table    # a row for each target of each leaf
    cdef readonly object target_node_table    # and of each node
    cdef readonly object target_trial_table   # of the split on trial
    cdef readonly object unit_detection_table  # see _units.pxd
    cdef readonly object change_table
    cdef readonly object observing     # makes the observers of a leaf
    cdef readonly tuple no_splits      # the names of features that no leaf splits on
    cdef readonly Columns columns
    cdef Pages model_table
    cdef Pages watch_table             # no page where a leaf does not watch
    cdef list watchers                 # of each leaf: its observers, or None
    cdef object store_table            # where their stores are

    cdef GrowthRules growth
    cdef MemoryRules memory
    cdef NodeRecord* nodes
    cdef LeafRecord* leaves
    cdef LayerState* layer
    cdef const LayerRules* layer_rules
    cdef double** models               # of `model_table`
    cdef double** watches              # of `watch_table`
    cdef void*** stores                # of `store_table`
    cdef int* is_category              # of `columns`, as all to the end of this paragraph
    cdef int* may_split
    cdef bint has_categories
    cdef bint has_encoded
    cdef Py_ssize_t* places
    cdef double* room
    cdef double* many_encodings
    cdef Py_ssize_t encoding_doubles
    cdef bint split_encoded
    cdef double* split_encodings
    cdef double* encoding_weights
    cdef bint separate
    cdef Py_ssize_t slot_size
    cdef Py_ssize_t* slot_starts
    cdef double* scratch
    cdef Slot** found
    cdef double* levels
    cdef ColumnFacts* facts
    cdef TargetCost* costs
    cdef double* samples
    cdef double* permuted
    cdef ColumnUnits* units
    cdef Py_ssize_t gridded            # features whose values are on a grid
    cdef TargetStream* target_streams  # of `target_stream_table`, and so on
    cdef TargetLeaf* target_leaves
    cdef TargetNode* target_nodes
    cdef TargetTrial* target_trials
    cdef UnitDetection* detection                # of `unit_detection_table`
    cdef UnitChange* changes           # of `change_table`, in a ring
    cdef readonly bint watching_units         # whether it follows changes of units
    cdef bint alert                    # whether every row is looked at for that
    cdef bint holding                  # whether values of suspects count as missing
    cdef bint turned                   # whether rows go other ways since the last one
    cdef Py_ssize_t node_room          # rows of the tables
    cdef Py_ssize_t leaf_room
    cdef double* spare_model           # pages for a child, while rows are learned
    cdef double* spare_watch
    cdef Trial trial                   # of a split; see _trial.pyx
    cdef double* trial_pages[2]        # what its sides watch; NULL if there is none
    cdef Ranked* ranking               # room to rank the leaves, if `max_bytes` is given
    cdef ModelLock access

    cdef int check_width(self, Py_ssize_t width, Py_ssize_t features) except -1
    cdef void use_columns(self, Columns columns) noexcept
    cdef void use_targets(self, TargetRecords records) noexcept
    cdef int make_room(self) except -1
    cdef bint has_room(self) noexcept nogil
    cdef int get_spares(self) except -1 nogil
    cdef void drop_spares(self) noexcept nogil
    cdef bint get_trial_pages(self) noexcept nogil
    cdef void end_trial(self) noexcept nogil
    cdef void restart_statistics(self, Py_ssize_t leaf, double review) noexcept nogil
    cdef void stop_watching(self, Py_ssize_t leaf) noexcept nogil
    cdef void put_watchers(self, Py_ssize_t leaf, Watchers watchers) noexcept
    cdef TargetLeaf* target_leaf(self, Py_ssize_t leaf, Py_ssize_t target) noexcept nogil
    cdef double* gaps_of(self, Py_ssize_t leaf, Py_ssize_t feature) noexcept nogil
    cdef Slot* slots_of(self, Py_ssize_t leaf, Py_ssize_t feature) noexcept nogil
    cdef Grid* grid_of(self, Py_ssize_t leaf, Py_ssize_t feature) noexcept nogil


cdef void set_fresh_models(
    Py_ssize_t features, Py_ssize_t targets, bint separate, double* page
) noexcept nogil
