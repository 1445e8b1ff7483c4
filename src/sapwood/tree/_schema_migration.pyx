"""Another set of features for a tree: more of them, of other kinds, or with longer names.

Everything is made aside. Then `commit` takes it over, which cannot fail.
"""

import numpy as np
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from sapwood.corrector._layer cimport LayerState
from sapwood.corrector._pending cimport PendingPredictions
from sapwood.observers._store cimport Store
from sapwood.rows._dict_row cimport FeatureTable, Gaps
from sapwood.tree._column_tables cimport Columns, clear_watch
from sapwood.tree._target_encoding cimport HEAD
from sapwood.tree._memory cimport promised_bytes, used_bytes
from sapwood.tree._pages cimport Pages, give_back
from sapwood.tree._records cimport (
    CATEGORIES, CATEGORY, LISTED, NUMBER, RATES, SQUARE_TERMS, NodeRecord, centres_at,
    covariance_at, scales_at, terms_of,
)
from sapwood.tree._leaves cimport Watchers
from sapwood.tree._tables cimport TreeTables, set_fresh_models
from sapwood.tree._target_records cimport coefficients_of, model_of, models_size
from sapwood.tree._watch cimport Grid, Slot, slot_at

from sapwood.corrector._layer import fresh_layer
from sapwood.rows.column import UNKNOWN
from sapwood.tree._column_tables import are_separate, encoding_rows, encoding_table_rows
from sapwood.tree._target_records import fresh_targets


cdef class TreeMigration:
    """What a tree becomes with another set of features.

    Parameters
    ----------
    tables : TreeTables
        Of the tree, which stays as it is until `commit`.
    is_category : array of bool
        Of each feature that there is going to be whether it is a low-cardinality category; those
        that there are come first.
    places : array of int
        For how many codes a high-cardinality category has places; -1 for other features.
    name_bytes : int
        What the names of features and categories will occupy.
    stopping : array of bool, optional
        Which leaves have to stop watching, as there is no more room for them. None if nothing
        changes but names.
    targets : int
        Columns of y; another number than before only if the tree has learned nothing.
    pending : PendingPredictions, optional
        A store for the new number of targets, if it changes and the tree has an error-correction
        layer.
    may_split : array of bool, optional
        Of each feature that there is going to be whether leaves may split on it; all by default.
    keeps_trial : bool
        Whether there is room for the split on trial.
    """

    def __init__(
        self, TreeTables tables not None, is_category, places, int64_t name_bytes, stopping,
        Py_ssize_t targets, PendingPredictions pending=None, may_split=None, bint keeps_trial=True,
    ):
        cdef Columns old = tables.columns
        cdef double[::1] layer
        self.tables, self.name_bytes, self.stopping = tables, name_bytes, stopping
        self.ends_trial = not keeps_trial
        if stopping is None:
            return
        self.stops = stopping.view(np.uint8)
        if len(self.stops) != tables.leaf_count:
            raise ValueError("there is not one entry for each leaf")
        if targets != tables.targets and tables.stream.rows > 0.0:
            raise ValueError("a tree that has learned cannot have another number of targets")
        self.changes_layout = targets != tables.targets or not np.array_equal(
            is_category, old.is_category
        ) or tables.column.separate != are_separate(is_category, places, targets)
        if not self.changes_layout and np.array_equal(places, old.place_table):
            return
        self.columns = Columns(
            is_category, tables.slots, places, target_encodings_for(old, places, targets),
            old.known_facts, old.known_samples, old.unit_table, targets, may_split,
            encodings_for(old, places, targets),
        )
        if targets == tables.targets:
            self.columns.set_costs(old.known_costs)
        if not self.changes_layout:
            return
        if tables.trial.leaf >= 0:
            # A feature that becomes a high-cardinality category is split in another way than on
            # trial.
            self.ends_trial |= (
                self.columns.view.is_category[tables.trial.feature]
                != old.view.is_category[tables.trial.feature]
            )
        if targets != tables.targets:
            self.records = fresh_targets(targets, tables.leaf_room, tables.topology.room)
            if tables.tracking:
                layer = np.tile(fresh_layer(), targets)
                self.layer_table, self.layer = layer.base, <LayerState*>&layer[0]
                self.pending = pending
        self.model_table = Pages(
            models_size(self.columns.features, targets, self.columns.view.separate)
            if tables.linear
            else 0,
            tables.leaf_room,
        )
        self.watch_table = Pages(self.columns.watch_doubles, tables.leaf_room)
        self.lay_pages()
        self.lay_observers()

    def __dealloc__(self):
        give_back(self.spare_model)
        give_back(self.spare_watch)
        give_back(self.trial_pages[0])
        give_back(self.trial_pages[1])

    def lay_pages(self):
        """Copy the pages of all leaves to the new layout, and have some to spare."""
        cdef TreeTables tables = self.tables
        cdef Py_ssize_t leaf, side
        cdef double* page
        self.spare_model, self.spare_watch = self.model_table.fresh(), self.watch_table.fresh()
        if self.spare_model == NULL or self.spare_watch == NULL:
            raise MemoryError
        for leaf in range(tables.leaf_count):
            if tables.linear:
                page = self.model_table.fresh()
                if page == NULL:
                    raise MemoryError
                self.model_table.put(leaf, page)
                self.lay_models(tables.models[leaf], page)
            if tables.leaves[leaf].watching and not self.stops[leaf]:
                page = self.fresh_watch(tables.watches[leaf])
                self.watch_table.put(leaf, page)
        if tables.trial.leaf >= 0 and not self.ends_trial:
            for side in range(2):
                self.trial_pages[side] = self.fresh_watch(tables.trial_pages[side])

    cdef double* fresh_watch(self, const double* source) except NULL:
        """Copy what was watched to a page of its own in the new layout."""
        cdef double* page = self.watch_table.fresh()
        if page == NULL:
            raise MemoryError
        clear_watch(self.columns, page)
        copy_watch(source, self.tables.columns, page, self.columns)
        return page

    cdef void lay_models(self, double* source, double* page) noexcept:
        """Copy what the models of a leaf know to a page of zeros in the new layout.

        Where categories come to a tree of several targets, each gets a whole page of its own.
        """
        cdef TreeTables tables = self.tables
        cdef Py_ssize_t old = tables.features, new = self.columns.features, target
        set_fresh_models(new, self.columns.targets, self.columns.view.separate, page)
        for target in range(tables.targets):
            if target == 0 or self.columns.view.separate:
                copy_model(
                    model_of(source, old, tables.column.separate, target),
                    old,
                    model_of(page, new, self.columns.view.separate, target),
                    new,
                )
            memcpy(
                coefficients_of(page, new, self.columns.view.separate, target),
                coefficients_of(source, old, tables.column.separate, target),
                RATES * (old + 1) * sizeof(double),
            )

    def lay_observers(self):
        """Let there be observers for new features, too, with room for a first element."""
        cdef TreeTables tables = self.tables
        cdef Py_ssize_t leaf
        cdef Store store
        cdef Py_ssize_t[::1] places = np.zeros(tables.leaf_room, np.intp)
        self.watchers = [None] * tables.leaf_room
        self.store_table = places.base
        self.stores = <void***>&places[0]
        for leaf in range(tables.leaf_count):
            if tables.watchers[leaf] is not None and not self.stops[leaf]:
                own = (<Watchers>tables.watchers[leaf]).observers
                if self.columns.targets != tables.targets:
                    own = []  # before the first row
                new = tables.observing.fresh(
                    self.columns.features - len(own), None, self.columns.targets
                )
                for each in new:
                    store = each._store
                    store.grow(1)
                self.watchers[leaf] = Watchers(own + new)
                self.stores[leaf] = (<Watchers>self.watchers[leaf]).stores

    cdef void commit(self) noexcept:
        """Let the tree be so from now on; what it had before goes with this object.

        Nothing may have changed the tree, nor the room of its tables, since this was made.
        """
        cdef TreeTables tables = self.tables
        cdef Py_ssize_t leaf, side
        cdef bint is_fuller
        if self.ends_trial:
            tables.end_trial()
        if self.stopping is not None:
            for leaf in range(tables.leaf_count):
                if self.stops[leaf]:
                    tables.stop_watching(leaf)
        if self.changes_layout:
            tables.model_table.swap(self.model_table)
            tables.watch_table.swap(self.watch_table)
            tables.models, tables.watches = tables.model_table.at, tables.watch_table.at
            tables.watchers, self.watchers = self.watchers, tables.watchers
            tables.store_table, self.store_table = self.store_table, tables.store_table
            tables.stores = self.stores
            if self.records is not None:
                tables.use_targets(self.records)
            if self.layer_table is not None:
                tables.layer_table, tables.layer = self.layer_table, self.layer
                self.pending.unrecorded = min(tables.pending.unrecorded, self.pending.most)
                tables.pending, self.pending = self.pending, tables.pending
            tables.drop_spares()
            tables.spare_model, self.spare_model = self.spare_model, NULL
            tables.spare_watch, self.spare_watch = self.spare_watch, NULL
            if tables.trial.leaf >= 0:
                for side in range(2):
                    tables.trial_pages[side], self.trial_pages[side] = (
                        self.trial_pages[side], tables.trial_pages[side]
                    )
        if self.columns is not None:
            tables.use_columns(self.columns)
            list_codes(tables)
        is_fuller = self.columns is not None or self.name_bytes != tables.name_bytes
        tables.name_bytes = self.name_bytes
        if tables.slots == 0 and tables.memory.max_bytes and is_fuller:
            # There is room for one row more, but less than was known when that was set.
            tables.stream.measure_at = tables.stream.rows + 1.0
            tables.stream.bound = used_bytes(tables) + promised_bytes(tables)


def target_encodings_for(Columns old not None, places, Py_ssize_t targets):
    """Return the target encodings of some features for other places, of each target."""
    levels = np.zeros((targets, encoding_table_rows(places), 2))
    if targets == old.targets:  # otherwise nothing was learned
        before = old.encoding_table.reshape(targets, -1, 2)
        for target in range(targets):
            copy_target_encodings(old, before[target], places, levels[target])
    return levels.reshape(-1, 2)


def encodings_for(Columns old not None, places, Py_ssize_t targets):
    """Return by which numbers splits read some features with other places, and their weights.

    None if they do not, or nothing is known. A tree of one target that was taken out of one of
    several reads what becomes a high-cardinality category only later by its own levels.
    """
    if not old.split_encoded or targets != old.targets:
        return None
    found = np.full(encoding_rows(places), np.nan)
    weights = np.zeros((len(places), targets))
    weights[: old.features] = old.encoding_weight_table
    at = own = 0
    for feature, count in enumerate(places.tolist()):
        known = old.place_table[feature] if feature < old.features else -1
        if known >= 0:
            kept = 1 + min(known, count)
            found[own : own + kept] = old.split_encoding_table[at : at + kept]
            at += 1 + known
        elif count >= 0 and targets == 1:
            weights[feature] = 1.0
        own += 1 + count if count >= 0 else 0
    return found, weights


def copy_target_encodings(Columns old not None, before, places, levels):
    """Copy the encodings of one target to those of some features with other places.

    A category that has become a high-cardinality one keeps the means of its codes. The code of all
    other categories, which older files have, belongs to none of them, but to the overall mean.
    """
    at = CATEGORIES * len(old.place_table)
    own = CATEGORIES * len(places)
    for feature, count in enumerate(places.tolist()):
        few = slice(CATEGORIES * feature, CATEGORIES * (feature + 1))
        known = old.place_table[feature] if feature < old.features else -1
        if known >= 0:
            kept = HEAD + min(known, count)
            levels[own : own + kept] = before[at : at + kept]
            at += HEAD + known
        elif feature < old.features and count < 0:
            levels[few] = before[few]
        elif feature < old.features and count > 0:
            weight, mean = before[few].T
            levels[own] = weight.sum(), (weight @ mean) / max(weight.sum(), 1e-300)
            codes = own + HEAD + np.arange(CATEGORIES - 1)
            levels[codes] = before[few][: CATEGORIES - 1]
        own += HEAD + count if count >= 0 else 0


cdef void list_codes(TreeTables tables) noexcept nogil:
    """Let splits of a category go on by its codes, though it has become one of many.

    One of ids counts as missing, in splits by its codes, too.
    """
    cdef Py_ssize_t node
    cdef NodeRecord* split
    if not tables.column.has_encoded:
        return
    for node in range(tables.topology.count):
        split = tables.topology.nodes + node
        if split.kind == CATEGORY and tables.column.places[split.feature] >= 0:
            split.kind = LISTED
        if split.kind == LISTED and tables.column.places[split.feature] == 0:
            split.kind, split.subset = NUMBER, 0


cdef void copy_model(
    const double* source, Py_ssize_t old, double* target, Py_ssize_t new
) noexcept nogil:
    """Copy what a model knows, but for coefficients, to a page for as many features, or more."""
    cdef Py_ssize_t old_terms = terms_of(old), new_terms = terms_of(new), term
    # Terms of no feature are there to fill a block; they stay as they are unless features come.
    cdef Py_ssize_t known = old + 1 if old < new else old_terms
    cdef const double* before = source + covariance_at(old)
    cdef double* after = target + covariance_at(new)
    memcpy(target + centres_at(new), source + centres_at(old), old * sizeof(double))
    memcpy(target + scales_at(new), source + scales_at(old), old * sizeof(double))
    for term in range(known):
        if new_terms <= SQUARE_TERMS:
            memcpy(after + new_terms * term, before + old_terms * term, known * sizeof(double))
        elif old_terms <= SQUARE_TERMS:
            after[term] = before[(old_terms + 1) * term]
        else:
            after[term] = before[term]


cdef void copy_watch(
    const double* source, Columns old, double* target, Columns new
) noexcept nogil:
    """Copy what a leaf has seen to a page of another layout, if it has seen anything."""
    cdef const Slot* before = <const Slot*>(<const Grid*>source + old.features)
    cdef Slot* after = <Slot*>(<Grid*>target + new.features)
    cdef Py_ssize_t feature, count, old_start, new_start
    if old.targets != new.targets:
        return
    for feature in range(old.features):
        old_start, new_start = old.view.slot_starts[feature], new.view.slot_starts[feature]
        count = old.view.slot_starts[feature + 1] - old_start
        if old.view.is_category[feature] == new.view.is_category[feature]:
            (<Grid*>target)[feature] = (<const Grid*>source)[feature]
        else:  # it was missing so far, or becomes a high-cardinality category
            old_start += count - 1
            new_start = new.view.slot_starts[feature + 1] - 1
            count = 1
        memcpy(
            slot_at(after, new.view.slot_size, new_start),
            slot_at(before, old.view.slot_size, old_start),
            count * old.view.slot_size * sizeof(double),
        )
        if old.targets > 1:
            memcpy(
                gaps_at(after, new) + new.targets * new_start,
                gaps_at(before, old) + old.targets * old_start,
                count * old.targets * sizeof(double),
            )


cdef inline double* gaps_at(const Slot* slots, Columns columns) noexcept nogil:
    """Where the weights that are missing in slots are, in a page whose slots start here."""
    return <double*>slot_at(
        slots, columns.view.slot_size, columns.view.slot_starts[columns.features]
    )


cdef class SchemaMigration:
    """What rows bring that is new: names and categories, and what they make of trees.

    Parameters
    ----------
    features : Features
        That the rows were read by.
    known : KnownFeatures
        What is known of them from now on.
    relays : list of TreeMigration
        What the trees become.
    gaps : Gaps, optional
        How often columns were missing once the rows are learned, if that is news.
    """

    def __init__(
        self, FeatureTable features not None, known not None, list relays not None, Gaps gaps=None
    ):
        self.features, self.known, self.relays, self.gaps = features, known, relays, gaps
        self.width, self.targets = len(known.names), max(1, len(known.targets))
        before = features.known.kinds
        self.fresh = [
            place
            for place in range(self.width)
            if place >= len(before) or before[place] == UNKNOWN
        ]

    def commit_now(self):
        """Let all of it be so, for trees that nobody has seen yet."""
        self.commit()

    cdef void commit(self) noexcept:
        """Let all of it be so; nothing else runs in between."""
        cdef TreeMigration relay
        for relay in self.relays:
            relay.commit()
        self.features.known = self.known
        if self.gaps is not None:
            self.features.use_gaps(self.gaps)
