"""The tables of a tree: one object or struct for each of their jobs.

| job | part |
| --- | --- |
| leaves: records, pages, observers | `Leaves`, which `TreeTables` extends |
| topology: from a row to its leaf | `topology` |
| columns: statistics, encodings, buffers | `columns`, `column` |
| several targets | `target_records`, `of_targets` |
| statistics of all rows | `stream` |
| pending predictions, error correction | `pending`, `layer` |
| changes of units | `units` |
| threads | `access` |

Where two names are given, the first owns the memory, and the second is its view: a struct of
pointers that kernels read without a detour.
"""

import numpy as np
from cpython.mem cimport PyMem_RawFree, PyMem_RawRealloc
from libc.math cimport INFINITY
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

from sapwood.corrector._layer cimport layer_rules
from sapwood.tree._column_tables cimport Columns
from sapwood.tree._facts cimport NO_GRID, ColumnFacts
from sapwood.tree._lock cimport ModelLock, begin_learning, end_learning
from sapwood.tree._model cimport PRIOR, PRIOR_OF_CONSTANT
from sapwood.tree._pages cimport give_back
from sapwood.tree._records cimport (
    CATEGORIES, SQUARE_TERMS, LeafRecord, NodeRecord, centres_at, covariance_at, model_size,
    scales_at, terms_of,
)
from sapwood.tree._stream cimport StreamStatistics, mean_weight
from sapwood.tree._target_records cimport (
    TargetRecords, gap_doubles, model_of, models_size, slot_doubles,
)
from sapwood.tree._topology cimport Topology
from sapwood.tree._units cimport (
    BEYOND, MOST_CHANGES, ColumnUnits, UnitChange, UnitDetection,
)
from sapwood.tree._watch cimport most_kept, slot_at

from sapwood.corrector._layer import fresh_layer
from sapwood.tree._column_tables import GRID_DOUBLES, are_separate, encoding_table_rows
from sapwood.tree._leaves import lengthened, longer, table_room
from sapwood.tree.layout import (
    CHANGE_RECORD,
    FACTS_RECORD,
    LEAF_RECORD,
    NODE_RECORD,
    TRIAL_RECORD,
    UNITS_RECORD,
    UNIT_DETECTION_RECORD,
)


def most_kept_rows(Py_ssize_t slots):
    """Return how many rows a leaf keeps before it lays the grid of a number."""
    return most_kept(slots)


cdef void set_fresh_models(
    Py_ssize_t features, Py_ssize_t targets, bint separate, double* page
) noexcept nogil:
    """Turn a page of zeros into the models of a leaf that knows nothing."""
    cdef Py_ssize_t terms = terms_of(features), term, model
    cdef double* covariance
    for model in range(targets if separate else 1):
        covariance = model_of(page, features, separate, model) + covariance_at(features)
        for term in range(terms):
            covariance[(terms * term if terms <= SQUARE_TERMS else 0) + term] = (
                PRIOR_OF_CONSTANT if term == 0 else PRIOR
            )


cdef class TreeTables(Leaves):
    """The tables of one tree, which has one leaf at first, and no feature.

    Parameters
    ----------
    observing : LeafObservers
        By what leaves watch their features.
    linear, averaging : bool
        Whether leaves predict by linear models, by the mean, or by both.
    pending : PendingPredictions, optional
        Stores pending predictions, for a tree with an error-correction layer.
    growth, memory : records
        The rules, as in `sapwood.tree.growth` and `sapwood.tree.memory`.
    name_bytes : int
        Bytes of the names of features and categories.
    no_splits : tuple of str or int
        Names of features that no leaf splits on.
    """

    def __cinit__(self):
        self.undecided = self.trial.leaf = -1
        self.targets = 1
        self.access = ModelLock()

    def __init__(
        self, observing, bint linear, bint averaging, PendingPredictions pending, growth, memory,
        int64_t name_bytes, tuple no_splits,
    ):
        records = (
            NODE_RECORD, LEAF_RECORD, TRIAL_RECORD, FACTS_RECORD, UNITS_RECORD,
            UNIT_DETECTION_RECORD, CHANGE_RECORD,
        )
        sizes = (
            sizeof(NodeRecord), sizeof(LeafRecord), sizeof(Trial), sizeof(ColumnFacts),
            sizeof(ColumnUnits), sizeof(UnitDetection), sizeof(UnitChange),
        )
        if tuple(each.itemsize for each in records) != sizes:
            raise RuntimeError("the records of kernels and tables differ")
        self.observing = observing
        self.slots = observing.slots
        self.linear = linear
        self.averaging = averaging
        self.tracking, self.pending = pending is not None, pending
        self.name_bytes, self.no_splits = name_bytes, no_splits
        self.set_rules(growth, memory)
        self.layer_rules = layer_rules()
        self.set_layer(fresh_layer() if self.tracking else np.zeros(0))
        self.units.is_on = self.slots > 0
        self.set_unit_detection(
            np.zeros(1, UNIT_DETECTION_RECORD), np.zeros(MOST_CHANGES, CHANGE_RECORD)
        )
        self.set_tables(
            Columns(np.zeros(0, dtype=np.bool_), self.slots),
            np.zeros(table_room(1), NODE_RECORD),
            np.zeros(table_room(1), LEAF_RECORD),
            1,
            1,
        )
        self.topology.nodes[0].parent = -1
        model = np.zeros(model_size(0))
        cdef double[::1] view = model
        set_fresh_models(0, 1, False, &view[0])
        self.set_leaf(0, model if linear else None, np.zeros(0), self.fresh_observers())
        self.restart_statistics(0, self.growth.first_review)

    def __dealloc__(self):
        self.end_trial()
        PyMem_RawFree(self.ranking)

    # -- their contents -----------------------------------------------------------------------

    def set_rules(self, growth, memory):
        """Take over the rules of growth and of memory."""
        cdef const unsigned char[::1] growth_bytes = np.frombuffer(growth.tobytes(), np.uint8)
        cdef const unsigned char[::1] memory_bytes = np.frombuffer(memory.tobytes(), np.uint8)
        if len(growth_bytes) != sizeof(GrowthRules) or len(memory_bytes) != sizeof(MemoryRules):
            raise RuntimeError("the rules of kernels and of Python differ")
        memcpy(&self.growth, &growth_bytes[0], sizeof(GrowthRules))
        memcpy(&self.memory, &memory_bytes[0], sizeof(MemoryRules))

    def set_name_bytes(self, int64_t name_bytes):
        """Say what the names of features and categories occupy."""
        self.name_bytes = name_bytes

    @property
    def grace_period(self):
        """The weight of rows that a leaf learns before it may split."""
        return self.growth.grace_period

    @property
    def max_bytes(self):
        """What the tree may occupy; 0 if there is no limit."""
        return self.memory.max_bytes

    @property
    def max_depth(self):
        """How deep the tree may become."""
        return self.growth.max_depth

    @property
    def first_review(self):
        """After how many rows a leaf that watches from nothing is reviewed."""
        return self.growth.first_review

    def set_layer(self, double[::1] layer not None):
        """Take over the doubles of the corrector, none if there is no corrector."""
        cdef Py_ssize_t doubles = self.targets * sizeof(LayerState) // sizeof(double)
        if layer.shape[0] != (doubles if self.tracking else 0):
            raise ValueError("the corrector has another size than it should")
        self.layer_table = layer.base
        self.layer = <LayerState*>&layer[0] if self.tracking else NULL

    def set_unit_detection(self, detection not None, changes not None):
        """Take over what is known of a change of units, and those of the past."""
        cdef unsigned char[::1] detection_bytes = detection.view(np.uint8)
        cdef unsigned char[::1] change_bytes = changes.view(np.uint8)
        if len(detection_bytes) != sizeof(UnitDetection) or (
            len(change_bytes) != MOST_CHANGES * sizeof(UnitChange)
        ):
            raise ValueError("the unit change has another size than it should")
        self.unit_detection_table, self.change_table = detection, changes
        self.units.detection = <UnitDetection*>&detection_bytes[0]
        self.units.changes = <UnitChange*>&change_bytes[0]
        self.units.alert = self.units.detection.alert > 0.0

    def stop_watching_units(self):
        """Follow no change of units from now on, nor one that has begun."""
        self.units.is_on = self.units.alert = self.units.hiding = False
        self.columns.unit_table["state"] = 0.0
        self.unit_detection_table["phase"] = self.unit_detection_table["stirred"] = 0.0

    def set_stream(
        self, double rows, double weight, double first, double low, double high, double usual,
        double ranked_at, double measure_at, double bound,
    ):
        """Restore what the tree knows of all rows, and of its memory."""
        self.stream = StreamStatistics(
            rows, weight, first, low, high, usual, ranked_at, measure_at, bound,
            next_sample=0.0,  # it is searched with the next row
        )

    @property
    def rows(self):
        """The rows that the tree has learned."""
        return self.stream.rows

    @property
    def weight(self):
        """The weight of these rows."""
        return self.stream.weight

    @property
    def first(self):
        """The first y of one target."""
        return self.stream.first

    @property
    def low(self):
        """The least y of one target."""
        return self.stream.low

    @property
    def high(self):
        """The greatest y of one target."""
        return self.stream.high

    @property
    def node_count(self):
        """The number of nodes."""
        return self.topology.count

    @property
    def watching_units(self):
        """Whether changes of units are detected."""
        return self.units.is_on

    def set_tables(
        self, Columns columns, nodes, leaves, Py_ssize_t node_count, Py_ssize_t leaf_count,
        TargetRecords records=None, PendingPredictions pending=None,
    ):
        """Take over tables for some features; `set_leaf` is to follow for each leaf.

        Records of several targets come with pending for as many, and `set_layer` is to follow.
        """
        cdef unsigned char[::1] node_bytes = nodes.view(np.uint8)
        if node_count > len(nodes) or leaf_count > len(leaves):
            raise IndexError("there are more nodes or leaves than rows of the tables")
        if records is not None:
            if (
                len(records.streams) != columns.targets
                or len(records.trials) != columns.targets
                or len(records.nodes) != columns.targets * len(nodes)
                or len(records.leaves) != columns.targets * len(leaves)
            ):
                raise IndexError("the records of targets do not fit the tables")
            self.pending = pending
            self.use_targets(records)
        self.set_leaves(
            leaves,
            leaf_count,
            models_size(columns.features, columns.targets, columns.view.separate)
            if self.linear
            else 0,
            columns.watch_doubles,
        )
        self.node_table = nodes
        self.topology = Topology(<NodeRecord*>&node_bytes[0], node_count, len(nodes))
        self.reserve_ranking(len(leaves))
        self.use_columns(columns)

    cdef void use_columns(self, Columns columns) noexcept:
        """Take over what depends on the features."""
        cdef Py_ssize_t feature
        self.columns, self.column = columns, columns.view
        self.features, self.targets = columns.features, columns.targets
        self.gridded = 0
        self.units.hiding = False
        for feature in range(self.features):
            self.gridded += self.column.facts[feature].decimals < NO_GRID
            self.units.hiding |= self.column.units[1 + feature].state == BEYOND

    cdef void use_targets(self, TargetRecords records) noexcept:
        """Take over the records of several targets."""
        self.target_records, self.of_targets = records, records.view

    @property
    def encoding_table(self):
        """The weight and the mean y of each category of each feature."""
        return self.columns.encoding_table

    def fresh_observers(self, deviations=None):
        """Return what watches the numbers of a leaf from nothing; None if slots do."""
        if not self.observing.by_observers:
            return None
        return self.observing.fresh(self.features, deviations, self.targets)

    # -- their layout -------------------------------------------------------------------------

    def sizes_for(self, is_category, places, Py_ssize_t targets):
        """Return the doubles of a model page, a watch page and the levels for some features."""
        features = len(is_category)
        categories = int(np.count_nonzero(is_category))
        slots = features + categories * CATEGORIES + (features - categories) * self.slots
        return (
            models_size(features, targets, are_separate(is_category, places, targets))
            if self.linear
            else 0,
            GRID_DOUBLES * features + (slot_doubles(targets) + gap_doubles(targets)) * slots,
            2 * targets * encoding_table_rows(places),
        )

    def page_parts(self):
        """Return where centres, scales and covariance start in a model page, and the terms."""
        return (
            centres_at(self.features),
            scales_at(self.features),
            covariance_at(self.features),
            terms_of(self.features),
        )

    def slot_start(self, Py_ssize_t feature):
        """Return the double of a watch page at which the slots of a feature start."""
        return self.columns.slot_start(feature)

    def gap_start(self, Py_ssize_t feature):
        """Return the double at which the weights that are missing in its slots start."""
        return self.columns.gap_start(feature)

    @property
    def slot_doubles(self):
        """Doubles of a slot, the weights that are missing aside."""
        return self.column.slot_size

    @property
    def page_size(self):
        """Doubles of a model page of one target."""
        return model_size(self.features)

    def model_place(self, Py_ssize_t target):
        """Return where the parts of `page_parts` are counted from for a target in a model page.

        Returns
        -------
        coefficients, rest : int
            Where its coefficients start; and from where on centres, scales and covariance are.
        """
        if not 0 <= target < self.targets:
            raise IndexError(target)
        if self.column.separate or target == 0:
            return target * model_size(self.features), target * model_size(self.features)
        start = model_size(self.features) + (target - 1) * centres_at(self.features)
        return start, 0

    # -- room ---------------------------------------------------------------------------------

    cdef bint has_room(self) noexcept nogil:
        """Whether the tables have rows for one more split."""
        return (
            self.topology.count + 2 <= self.topology.room and self.leaf_count + 1 <= self.leaf_room
        )

    cdef int make_room(self) except -1:
        """Let the tables have room for one more split."""
        cdef unsigned char[::1] node_bytes
        cdef TargetRecords records = None
        nodes = longer(self.node_table, self.topology.count + 2)
        leaves = longer(self.leaf_table, self.leaf_count + 1)
        if self.targets > 1:
            records = TargetRecords(
                self.target_records.streams,
                lengthened(self.target_records.leaves, self.targets * len(leaves)),
                lengthened(self.target_records.nodes, self.targets * len(nodes)),
                self.target_records.trials,
            )
        self.reserve_ranking(len(leaves))
        node_bytes = nodes.view(np.uint8)
        self.reserve_leaves(leaves)
        self.node_table, self.topology.room = nodes, len(nodes)
        self.topology.nodes = <NodeRecord*>&node_bytes[0]
        if records is not None:
            self.use_targets(records)
        return 0

    def reserve_ranking(self, Py_ssize_t room):
        """Have room to rank so many leaves, if that is ever done."""
        if self.memory.max_bytes:
            ranking = <Ranked*>PyMem_RawRealloc(self.ranking, room * sizeof(Ranked))
            if ranking == NULL:
                raise MemoryError
            self.ranking = ranking

    # -- splits on trial ----------------------------------------------------------------------

    cdef bint get_trial_pages(self) noexcept nogil:
        """Let there be pages for the sides of a split on trial; whether memory suffices."""
        cdef double* left = self.watch_table.fresh()
        cdef double* right = self.watch_table.fresh()
        if left == NULL or right == NULL:
            give_back(left)
            give_back(right)
            return False
        self.trial_pages[0], self.trial_pages[1] = left, right
        return True

    cdef void end_trial(self) noexcept nogil:
        """Let there be no split on trial."""
        give_back(self.trial_pages[0])
        give_back(self.trial_pages[1])
        self.trial_pages[0] = self.trial_pages[1] = NULL
        memset(&self.trial, 0, sizeof(Trial))
        self.trial.leaf = -1

    @property
    def has_trial(self):
        """Whether a split is on trial."""
        return self.trial.leaf >= 0

    @property
    def trial_table(self):
        """The split on trial, as a table of one row, and what its sides watch, a row a side."""
        cdef Py_ssize_t doubles = self.watch_table.doubles, side
        record = np.zeros(1, TRIAL_RECORD)
        cdef unsigned char[::1] record_bytes = record.view(np.uint8)
        memcpy(&record_bytes[0], &self.trial, sizeof(Trial))
        pages = np.zeros((2 if self.trial.leaf >= 0 else 0, doubles))
        cdef double[:, ::1] view = pages
        for side in range(len(pages)):
            if doubles:
                memcpy(&view[side, 0], self.trial_pages[side], doubles * sizeof(double))
        return record, pages

    def set_trial(self, record, const double[:, ::1] pages not None):
        """Restore a split on trial, of which all was checked, while there is none."""
        cdef const unsigned char[::1] record_bytes = record.view(np.uint8)
        cdef Py_ssize_t side
        if record["leaf"][0] < 0:
            return
        if len(record_bytes) != sizeof(Trial) or pages.shape[0] != 2 or (
            pages.shape[1] != self.watch_table.doubles
        ):
            raise ValueError("the pages of the trial are not those of the features")
        self.end_trial()
        if not self.get_trial_pages():
            raise MemoryError
        for side in range(2):
            memcpy(self.trial_pages[side], &pages[side, 0], pages.shape[1] * sizeof(double))
        memcpy(&self.trial, &record_bytes[0], sizeof(Trial))

    # -- the records of leaves ----------------------------------------------------------------

    cdef void restart_statistics(self, Py_ssize_t leaf, double review) noexcept nogil:
        """Let a leaf count its rows from 0 again, as what it watches starts from nothing.

        It is to be reviewed after so many rows of the weight that rows have had so far.
        """
        cdef LeafRecord* record = self.leaves + leaf
        cdef TargetLeaf* own
        cdef Py_ssize_t target
        record.weight = record.part.target_mean = record.part.target_m2 = 0.0
        record.part.residual_mean = record.part.residual_m2 = 0.0
        if self.targets > 1:
            for target in range(self.targets):
                own = self.target_leaf(leaf, target)
                own.weight = own.part.target_mean = own.part.target_m2 = 0.0
                own.part.residual_mean = own.part.residual_m2 = 0.0
        record.born = self.stream.weight
        self.topology.nodes[record.node].gain = 0.0
        if self.trial.leaf == leaf:
            self.end_trial()
        record.due = record.review = review * mean_weight(&self.stream)

    cdef void stop_watching(self, Py_ssize_t leaf) noexcept nogil:
        """Let a leaf forget what it watched, and no longer watch."""
        self.watch_table.put(leaf, NULL)
        if self.trial.leaf == leaf:
            self.end_trial()
        self.leaves[leaf].watching = False
        self.leaves[leaf].due = self.leaves[leaf].review = INFINITY
        if self.slots == 0:
            with gil:
                self.put_watchers(leaf, None)

    def unwatch(self, Py_ssize_t leaf):
        """Let a leaf forget what it watched, and no longer watch."""
        if not 0 <= leaf < self.leaf_count:
            raise IndexError(leaf)
        self.stop_watching(leaf)

    def set_undecided(self, Py_ssize_t leaf):
        """Restore that a leaf is yet to be decided on."""
        if not -1 <= leaf < self.leaf_count:
            raise IndexError(leaf)
        self.undecided = leaf

    # -- who may read or change them ----------------------------------------------------------

    cdef int check_width(self, Py_ssize_t width, Py_ssize_t features) except -1:
        if width != features:
            raise RuntimeError(f"rows of {width} features were read and there are {features}")
        return 0

    def read_locked(self, read, *arguments):
        """Return what a function returns, while which nothing is changed.

        It is called from here so that no interrupt can come between its end and the release.
        """
        self.access.begin_reading()
        try:
            return read(*arguments)
        finally:
            self.access.end_reading()

    def write_locked(self, learn, *arguments):
        """Return what a function returns, while which no other thread learns.

        Others may read until it calls `learn` of the kernel.
        """
        begin_learning(self.access)
        try:
            return learn(*arguments)
        finally:
            end_learning(self.access)

    # -- what was watched ---------------------------------------------------------------------

    cdef TargetLeaf* target_leaf(self, Py_ssize_t leaf, Py_ssize_t target) noexcept nogil:
        return self.of_targets.leaves + leaf * self.targets + target

    cdef Slot* slots_of(self, Py_ssize_t leaf, Py_ssize_t feature) noexcept nogil:
        return slot_at(
            <Slot*>(<Grid*>self.watches[leaf] + self.features),
            self.column.slot_size,
            self.column.slot_starts[feature],
        )

    cdef double* gaps_of(self, Py_ssize_t leaf, Py_ssize_t feature) noexcept nogil:
        """The weights of each target that are missing in the slots of a feature."""
        return <double*>self.slots_of(leaf, self.features) + (
            self.targets * self.column.slot_starts[feature]
        )

    cdef Grid* grid_of(self, Py_ssize_t leaf, Py_ssize_t feature) noexcept nogil:
        return <Grid*>self.watches[leaf] + feature
