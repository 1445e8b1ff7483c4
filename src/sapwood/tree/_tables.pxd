"""The tables of a tree."""

from libc.stdint cimport int64_t

from sapwood.corrector._layer cimport LayerRules, LayerState
from sapwood.corrector._pending cimport PendingPredictions
from sapwood.tree._column_tables cimport Columns, ColumnView
from sapwood.tree._leaves cimport Leaves
from sapwood.tree._lock cimport ModelLock
from sapwood.tree._records cimport GrowthRules, MemoryRules, Trial
from sapwood.tree._stream cimport StreamStatistics
from sapwood.tree._target_records cimport TargetLeaf, TargetRecords, TargetView
from sapwood.tree._topology cimport Topology
from sapwood.tree._units cimport UnitWatch
from sapwood.tree._watch cimport Grid, Slot


cdef inline Py_ssize_t slots_between(const Py_ssize_t* starts, Py_ssize_t feature) noexcept nogil:
    """How many slots a feature has, that of missing values aside."""
    return starts[feature + 1] - starts[feature] - 1


cdef struct Ranked:
    # A leaf, while leaves are ranked.
    double promise
    Py_ssize_t leaf
    int64_t size       # bytes of what it watches by, or would
    bint chosen
    double* page       # to start from, if it has none and is chosen


cdef class TreeTables(Leaves):
    cdef readonly Py_ssize_t features  # columns of a row
    cdef readonly Py_ssize_t slots     # of a number; 0 if leaves have observers
    cdef readonly Py_ssize_t targets   # columns of y
    cdef readonly bint averaging       # whether the mean is an expert
    cdef readonly object observing     # makes the observers of a leaf
    cdef readonly tuple no_splits      # the names of features that no leaf splits on
    cdef readonly int64_t name_bytes   # of the names of features and categories
    cdef GrowthRules growth
    cdef MemoryRules memory

    cdef readonly object node_table
    cdef Topology topology             # its view: the nodes
    cdef readonly Columns columns
    cdef ColumnView column             # its view
    cdef readonly TargetRecords target_records  # of several targets; None if there is one
    cdef TargetView of_targets         # its view
    cdef readonly StreamStatistics stream
    cdef Py_ssize_t gridded            # features whose values are on a grid

    cdef readonly bint tracking        # whether there is an error-correction layer
    cdef readonly object layer_table   # its LayerState of each target
    cdef readonly PendingPredictions pending  # None without an error-correction layer
    cdef LayerState* layer
    cdef const LayerRules* layer_rules

    cdef readonly object unit_detection_table
    cdef readonly object change_table
    cdef UnitWatch units               # their view

    cdef Trial trial                   # of a split; see _trial.pyx
    cdef double* trial_pages[2]        # of its sides; NULL if there is none
    cdef readonly Py_ssize_t undecided  # a leaf whose decision memory did not suffice for, or -1
    cdef Ranked* ranking               # a buffer to rank the leaves, if `max_bytes` is given
    cdef ModelLock access

    cdef int check_width(self, Py_ssize_t width, Py_ssize_t features) except -1
    cdef void use_columns(self, Columns columns) noexcept
    cdef void use_targets(self, TargetRecords records) noexcept
    cdef int make_room(self) except -1
    cdef bint has_room(self) noexcept nogil
    cdef bint get_trial_pages(self) noexcept nogil
    cdef void end_trial(self) noexcept nogil
    cdef void restart_statistics(self, Py_ssize_t leaf, double review) noexcept nogil
    cdef void stop_watching(self, Py_ssize_t leaf) noexcept nogil
    cdef TargetLeaf* target_leaf(self, Py_ssize_t leaf, Py_ssize_t target) noexcept nogil
    cdef double* gaps_of(self, Py_ssize_t leaf, Py_ssize_t feature) noexcept nogil
    cdef Slot* slots_of(self, Py_ssize_t leaf, Py_ssize_t feature) noexcept nogil
    cdef Grid* grid_of(self, Py_ssize_t leaf, Py_ssize_t feature) noexcept nogil


cdef void set_fresh_models(
    Py_ssize_t features, Py_ssize_t targets, bint separate, double* page
) noexcept nogil
