"""The tables of a tree, and who may read or change them."""

import numpy as np
from cpython.mem cimport PyMem_RawFree, PyMem_RawRealloc
from libc.math cimport INFINITY
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

from sapwood.corrector._layer cimport layer_rules
from sapwood.tree._column_tables cimport Columns
from sapwood.tree._facts cimport NO_GRID, ColumnFacts
from sapwood.tree._model cimport PRIOR, PRIOR_OF_CONSTANT
from sapwood.tree._pages cimport give_back
from sapwood.tree._records cimport (
    CATEGORIES, SQUARE_TERMS, centres_at, covariance_at, model_size, scales_at, terms_of,
)
from sapwood.tree._lock cimport ModelLock, end_learning, begin_learning
from sapwood.tree._target_records cimport (
    gap_doubles, model_of, models_size, slot_doubles,
)
from sapwood.tree._units cimport (
    BEYOND, MOST_CHANGES, ColumnUnits, UnitChange, UnitDetection,
)
from sapwood.tree._watch cimport most_kept, slot_at

from sapwood.corrector._layer import fresh_layer
from sapwood.tree._column_tables import GRID_DOUBLES, are_separate, encoding_table_rows
from sapwood.tree.layout import (
    CHANGE_RECORD,
    FACTS_RECORD,
    LEAF_RECORD,
    NODE_RECORD,
    TARGET_LEAF,
    TARGET_NODE,
    TARGET_STREAM,
    TARGET_TRIAL,
    TRIAL_RECORD,
    UNITS_RECORD,
    UNIT_DETECTION_RECORD,
)


def most_kept_rows(Py_ssize_t slots):
    """Return how many rows a leaf keeps before it lays the grid of a number."""
    return most_kept(slots)


def table_room(Py_ssize_t rows):
    """Return how many rows a table should have room for that needs so many."""
    return max(16, rows + rows // 2)


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


cdef class Watchers:
    """The observers of a leaf.

    Parameters
    ----------
    observers : list
        One per feature.
    """

    def __init__(self, list observers not None):
        cdef Py_ssize_t place
        cdef Py_ssize_t[::1] addresses = np.zeros(len(observers) + 1, np.intp)
        for place in range(len(observers)):
            addresses[place] = <Py_ssize_t><void*>observers[place]._store
        self.observers, self.addresses = observers, addresses.base
        self.stores = <void**>&addresses[0]


cdef class TargetRecords:
    """What a tree of several targets knows of each of them.

    Parameters
    ----------
    streams, leaves, nodes, trials : structured arrays
        As TARGET_STREAM, TARGET_LEAF, TARGET_NODE and TARGET_TRIAL of `sapwood.tree.layout`: a row
        for each target; for each target of each leaf, one leaf after the other; so for nodes; and
        a row for each target, of the split on trial.
    """

    def __init__(self, streams, leaves, nodes, trials):
        cdef unsigned char[::1] stream_bytes = streams.view(np.uint8)
        cdef unsigned char[::1] leaf_bytes = leaves.view(np.uint8)
        cdef unsigned char[::1] node_bytes = nodes.view(np.uint8)
        cdef unsigned char[::1] trial_bytes = trials.view(np.uint8)
        if (
            streams.itemsize != sizeof(TargetStream)
            or leaves.itemsize != sizeof(TargetLeaf)
            or nodes.itemsize != sizeof(TargetNode)
            or trials.itemsize != sizeof(TargetTrial)
        ):
            raise RuntimeError("the records of kernels and tables differ")
        self.streams, self.leaves, self.nodes, self.trials = streams, leaves, nodes, trials
        self.trial_records = <TargetTrial*>&trial_bytes[0]
        self.stream_records = <TargetStream*>&stream_bytes[0]
        self.leaf_records = <TargetLeaf*>&leaf_bytes[0]
        self.node_records = <TargetNode*>&node_bytes[0]


def fresh_targets(Py_ssize_t targets, Py_ssize_t leaf_room, Py_ssize_t node_room):
    """Return records of several targets that know nothing."""
    return TargetRecords(
        np.zeros(targets, TARGET_STREAM),
        np.zeros(targets * leaf_room, TARGET_LEAF),
        np.zeros(targets * node_room, TARGET_NODE),
        np.zeros(targets, TARGET_TRIAL),
    )


cdef class TreeTables:
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
        self.watching_units = self.slots > 0
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
        self.nodes[0].parent = -1
        model = np.zeros(model_size(0))
        cdef double[::1] view = model
        set_fresh_models(0, 1, False, &view[0])
        self.set_leaf(0, model if linear else None, np.zeros(0), self.fresh_observers())
        self.restart_statistics(0, self.growth.first_review)

    def __dealloc__(self):
        self.drop_spares()
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
        self.detection = <UnitDetection*>&detection_bytes[0]
        self.changes = <UnitChange*>&change_bytes[0]
        self.alert = self.detection.alert > 0.0

    def stop_watching_units(self):
        """Follow no change of units from now on, nor one that has begun."""
        self.watching_units = self.alert = self.holding = False
        self.columns.unit_table["state"] = 0.0
        self.unit_detection_table["phase"] = self.unit_detection_table["stirred"] = 0.0

    def set_stream(
        self, double rows, double weight, double first, double low, double high, double usual,
        double ranked_at, double measure_at, double bound,
    ):
        """Restore what the tree knows of all rows, and of its memory."""
        self.rows, self.weight = rows, weight
        self.first, self.low, self.high, self.usual = first, low, high, usual
        self.ranked_at, self.measure_at, self.bound = ranked_at, measure_at, bound
        self.next_sample = 0.0  # looked for with the next row

    def set_tables(
        self, Columns columns, nodes, leaves, Py_ssize_t node_count, Py_ssize_t leaf_count,
        TargetRecords records=None, PendingPredictions pending=None,
    ):
        """Take over tables for some features; `set_leaf` is to follow for each leaf.

        Records of several targets come with pending for as many, and `set_layer` is to follow.
        """
        cdef unsigned char[::1] node_bytes = nodes.view(np.uint8)
        cdef unsigned char[::1] leaf_bytes = leaves.view(np.uint8)
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
        self.model_table = Pages(
            models_size(columns.features, columns.targets, columns.separate) if self.linear else 0,
            len(leaves),
        )
        self.watch_table = Pages(columns.watch_doubles, len(leaves))
        self.watchers = [None] * len(leaves)
        self.store_table = np.zeros(len(leaves), np.intp)
        self.node_table, self.leaf_table = nodes, leaves
        self.node_room, self.leaf_room = len(nodes), len(leaves)
        self.node_count, self.leaf_count = node_count, leaf_count
        self.nodes = <NodeRecord*>&node_bytes[0]
        self.leaves = <LeafRecord*>&leaf_bytes[0]
        self.models, self.watches = self.model_table.at, self.watch_table.at
        self.use_stores(self.store_table)
        self.reserve_ranking(len(leaves))
        self.use_columns(columns)

    def use_stores(self, Py_ssize_t[::1] table):
        """Take over where the stores of observers are."""
        self.store_table = table.base
        self.stores = <void***>&table[0]

    cdef void use_columns(self, Columns columns) noexcept:
        """Take over what depends on the features."""
        cdef Py_ssize_t feature
        self.columns = columns
        self.features, self.has_categories = columns.features, columns.has_categories
        self.has_encoded, self.places, self.room = columns.has_encoded, columns.places, columns.room
        self.many_encodings = columns.many_encodings
        self.encoding_doubles = columns.encoding_doubles
        self.split_encoded = columns.split_encoded
        self.split_encodings = columns.split_encodings
        self.encoding_weights = columns.encoding_weights
        self.targets, self.separate = columns.targets, columns.separate
        self.slot_size = columns.slot_size
        self.is_category, self.slot_starts = columns.kinds, columns.slot_starts
        self.may_split = columns.may_split
        self.scratch, self.found = columns.scratch, columns.found
        self.levels = columns.levels
        self.facts, self.costs, self.samples = columns.facts, columns.costs, columns.samples
        self.permuted = columns.permuted
        self.units = columns.units
        self.gridded = 0
        self.holding = False
        for feature in range(columns.features):
            self.gridded += columns.facts[feature].decimals < NO_GRID
            self.holding |= columns.units[1 + feature].state == BEYOND

    cdef void use_targets(self, TargetRecords records) noexcept:
        """Take over what is known of several targets."""
        self.target_stream_table, self.target_streams = records.streams, records.stream_records
        self.target_leaf_table, self.target_leaves = records.leaves, records.leaf_records
        self.target_node_table, self.target_nodes = records.nodes, records.node_records
        self.target_trial_table, self.target_trials = records.trials, records.trial_records

    @property
    def encoding_table(self):
        """The weight and the mean y of each category of each feature."""
        return self.columns.encoding_table

    def set_leaf(self, Py_ssize_t leaf, model, watch, observers=None):
        """Give a leaf its pages, and what watches its numbers; None for what it does without."""
        watchers = None if observers is None else Watchers(observers)
        self.model_table.set(leaf, model)
        self.watch_table.set(leaf, watch)
        self.put_watchers(leaf, watchers)
        self.leaves[leaf].watching = watch is not None

    cdef void put_watchers(self, Py_ssize_t leaf, Watchers watchers) noexcept:
        """Let observers watch the numbers of a leaf, or none."""
        self.watchers[leaf] = watchers
        self.stores[leaf] = NULL if watchers is None else watchers.stores

    def fresh_observers(self, deviations=None):
        """Return what watches the numbers of a leaf from nothing; None if slots do."""
        if not self.observing.by_observers:
            return None
        return self.observing.fresh(self.features, deviations)

    def model_page(self, Py_ssize_t leaf):
        """Return a copy of the model of a leaf."""
        return self.model_table.get(leaf)

    def watch_page(self, Py_ssize_t leaf):
        """Return a copy of what a leaf watches; None if it does not."""
        return self.watch_table.get(leaf)

    @property
    def model_pages(self):
        """Copies of the model of each leaf."""
        return self.model_table.first(self.leaf_count)

    @property
    def watch_pages(self):
        """Copies of what each leaf watches; None where it does not."""
        return self.watch_table.first(self.leaf_count)

    @property
    def observers(self):
        """The observers of each leaf: a list of them, one per feature, or None."""
        cdef list observers = self.watchers[: self.leaf_count]
        cdef Py_ssize_t leaf
        for leaf in range(self.leaf_count):
            if observers[leaf] is not None:
                observers[leaf] = (<Watchers>observers[leaf]).observers
        return observers

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

    @property
    def model_doubles(self):
        """Doubles in a model page."""
        return self.model_table.doubles

    @property
    def watch_doubles(self):
        """Doubles in a watch page."""
        return self.watch_table.doubles

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
        return self.slot_size

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
        if self.separate or target == 0:
            return target * model_size(self.features), target * model_size(self.features)
        start = model_size(self.features) + (target - 1) * centres_at(self.features)
        return start, 0

    # -- room ---------------------------------------------------------------------------------

    cdef bint has_room(self) noexcept nogil:
        """Whether the tables have rows for one more split."""
        return self.node_count + 2 <= self.node_room and self.leaf_count + 1 <= self.leaf_room

    cdef int make_room(self) except -1:
        """Let the tables have room for one more split."""
        cdef unsigned char[::1] node_bytes, leaf_bytes
        nodes = longer(self.node_table, self.node_count + 2)
        leaves = longer(self.leaf_table, self.leaf_count + 1)
        cdef Py_ssize_t room = len(leaves)
        cdef TargetRecords records = None
        if self.targets > 1:
            records = TargetRecords(
                self.target_stream_table,
                lengthened(self.target_leaf_table, self.targets * room),
                lengthened(self.target_node_table, self.targets * len(nodes)),
                self.target_trial_table,
            )
        stores = np.zeros(room, np.intp)
        stores[: self.leaf_room] = self.store_table
        watchers = self.watchers + [None] * (room - self.leaf_room)
        self.model_table.reserve(room)
        self.watch_table.reserve(room)
        self.models, self.watches = self.model_table.at, self.watch_table.at
        self.reserve_ranking(room)
        node_bytes, leaf_bytes = nodes.view(np.uint8), leaves.view(np.uint8)
        self.use_stores(stores)
        self.watchers = watchers
        self.node_table, self.leaf_table = nodes, leaves
        self.node_room, self.leaf_room = len(nodes), room
        self.nodes = <NodeRecord*>&node_bytes[0]
        self.leaves = <LeafRecord*>&leaf_bytes[0]
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

    cdef int get_spares(self) except -1 nogil:
        """Let there be pages for a child."""
        if self.linear and self.spare_model == NULL:
            self.spare_model = self.model_table.fresh()
        if self.spare_watch == NULL:
            self.spare_watch = self.watch_table.fresh()
        if self.spare_watch == NULL or (self.linear and self.spare_model == NULL):
            with gil:
                raise MemoryError
        return 0

    cdef void drop_spares(self) noexcept nogil:
        """Give back what `get_spares` has got and no child has taken."""
        give_back(self.spare_model)
        give_back(self.spare_watch)
        self.spare_model = self.spare_watch = NULL

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
        record.born = self.weight
        self.nodes[record.node].gain = 0.0
        if self.trial.leaf == leaf:
            self.end_trial()
        record.due = record.review = review * (self.weight / self.rows if self.rows > 0.0 else 1.0)

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
        return self.target_leaves + leaf * self.targets + target

    cdef Slot* slots_of(self, Py_ssize_t leaf, Py_ssize_t feature) noexcept nogil:
        return slot_at(
            <Slot*>(<Grid*>self.watches[leaf] + self.features),
            self.slot_size,
            self.slot_starts[feature],
        )

    cdef double* gaps_of(self, Py_ssize_t leaf, Py_ssize_t feature) noexcept nogil:
        """The weights of each target that are missing in the slots of a feature."""
        return <double*>self.slots_of(leaf, self.features) + (
            self.targets * self.slot_starts[feature]
        )

    cdef Grid* grid_of(self, Py_ssize_t leaf, Py_ssize_t feature) noexcept nogil:
        return <Grid*>self.watches[leaf] + feature


def longer(table, Py_ssize_t rows):
    """Return a table, or a longer copy if it has fewer rows than are needed."""
    return table if rows <= len(table) else lengthened(table, table_room(rows))


def lengthened(table, Py_ssize_t rows):
    """Return a copy of a table with so many rows."""
    copy = np.zeros(rows, table.dtype)
    copy.view(np.uint8)[: table.nbytes] = table.view(np.uint8)
    return copy
