"""How much a tree occupies, and which of its leaves may watch.

The rules are those that `sapwood.tree.memory` states. Slots are counted when pages come and go.
Observers also grow in between: they are measured after so many rows that they cannot have become
too large before.
"""

import numpy as np
from libc.math cimport INFINITY
from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport qsort

from sapwood._validation cimport REACH
from sapwood.corrector._layer cimport LayerState
from sapwood.moments cimport CELL
from sapwood.observers._store cimport Store
from sapwood.tree._column_tables cimport clear_watch
from sapwood.tree._growth cimport error_of
from sapwood.tree._target_encoding cimport HEAD
from sapwood.tree._pages cimport give_back
from sapwood.tree._records cimport (
    CATEGORIES, LeafRecord, NodeRecord, terms_of,
)
from sapwood.tree._leaves cimport Watchers
from sapwood.tree._stream cimport StreamStatistics
from sapwood.tree._tables cimport Ranked, TreeTables
from sapwood.tree._target_records cimport (
    TargetCost, TargetLeaf, TargetNode, TargetStream, TargetTrial, costs_of, observer_cells,
    permuted_doubles, terms_doubles, work_doubles,
)
from sapwood.tree._watch cimport Slot

from sapwood.tree._column_tables import are_separate, encoding_rows

cdef enum:
    LEAF_POINTERS = 7  # that a leaf has in tables and lists
    LAYER_OBJECTS = 768  # bytes of the objects of the error-correction layer and its predictions
    TARGET_OBJECTS = 768  # and of what holds the records of several targets

# -- how much there is ------------------------------------------------------------------------


cdef int64_t table_bytes(int64_t leaves, int64_t targets) noexcept nogil:
    """The bytes of the tables of a tree of so many leaves, which grow as `table_room` says."""
    cdef int64_t node_bytes = sizeof(NodeRecord)
    cdef int64_t leaf_bytes = sizeof(LeafRecord) + LEAF_POINTERS * sizeof(void*)
    cdef int64_t nodes = 2 * leaves - 1, node_room = 16, leaf_room = 16
    while node_room < nodes:
        node_room += 1 + node_room % 2
        node_room += node_room // 2
    while leaf_room < leaves:
        leaf_room += 1
        leaf_room += leaf_room // 2
    if targets > 1:
        node_bytes += targets * <int64_t>sizeof(TargetNode)
        leaf_bytes += targets * <int64_t>sizeof(TargetLeaf)
    return node_room * node_bytes + leaf_room * leaf_bytes


cdef int64_t model_bytes(TreeTables tables) noexcept nogil:
    if not tables.linear:
        return 0
    return 8 * tables.model_table.doubles + tables.memory.page_overhead


cdef int64_t page_bytes(TreeTables tables, int64_t doubles) noexcept nogil:
    """The bytes of a page of what is watched; with observers, of their lists too."""
    return 8 * doubles + (1 if tables.slots else 3) * tables.memory.page_overhead


cdef inline int64_t element_room(int64_t count) noexcept nogil:
    """For how many elements the tables of an observer have room at the most."""
    if count < 64:
        return min(max(2 * count, <int64_t>16), <int64_t>72)
    return count + max(<int64_t>8, count // 16)


cdef int64_t element_bytes(TreeTables tables, Py_ssize_t targets) noexcept nogil:
    """The bytes of an element of an observer of so many targets."""
    return tables.memory.element_bytes + CELL * <int64_t>sizeof(double) * (
        observer_cells(targets) - observer_cells(1)
    )


cdef int64_t empty_bytes(TreeTables tables, Py_ssize_t targets) noexcept nogil:
    """The bytes of an observer that has seen nothing, in the list of a leaf."""
    return 16 + tables.memory.empty_observer + (2 * REACH + 1) * <int64_t>sizeof(double) * (
        observer_cells(targets) - observer_cells(1)
    )


cdef int64_t observer_bytes(TreeTables tables, Py_ssize_t leaf) noexcept nogil:
    """The bytes of the observers of a leaf, of new ones if it is -1; those of categories are empty.
    """
    cdef int64_t total = tables.features * empty_bytes(tables, tables.targets), count = 0
    cdef Py_ssize_t feature
    if tables.slots:
        return 0
    for feature in range(tables.features):
        if not tables.column.is_category[feature]:
            if leaf >= 0:
                count = (<Store>tables.stores[leaf][feature]).count
            total += element_bytes(tables, tables.targets) * element_room(count)
    return total


cdef int64_t watch_bytes(TreeTables tables, Py_ssize_t leaf) noexcept nogil:
    """The bytes of what a leaf watches by; 0 if it does not."""
    if not tables.leaves[leaf].watching:
        return 0
    return page_bytes(tables, tables.watch_table.doubles) + observer_bytes(tables, leaf)


cdef int64_t fresh_bytes(TreeTables tables) noexcept nogil:
    """The bytes of what a leaf starts to watch by."""
    return page_bytes(tables, tables.watch_table.doubles) + observer_bytes(tables, -1)


cdef int64_t len_of_encodings(TreeTables tables) noexcept nogil:
    """How many split encodings there are."""
    cdef int64_t total = 0
    cdef Py_ssize_t feature
    if tables.column.split_encoded:
        for feature in range(tables.features):
            total += 1 + tables.column.places[feature]  # none where there is no place
    return total


cdef int64_t many_bytes(TreeTables tables) noexcept nogil:
    """The bytes of target encodings, and of encoded rows."""
    cdef int64_t total = 0
    cdef Py_ssize_t feature
    if tables.column.has_encoded:
        for feature in range(tables.features):
            total += 2 * sizeof(double)
            if tables.column.places[feature] >= 0:
                total += 2 * sizeof(double) * tables.targets * (
                    HEAD + tables.column.places[feature]
                )
        total += sizeof(double) * (
            len_of_encodings(tables)
            + tables.targets * tables.features * tables.column.split_encoded
        )
    return total


cdef int64_t rest_bytes(TreeTables tables) noexcept nogil:
    """The bytes of all but what leaves watch by."""
    cdef int64_t per_feature = sizeof(int) + sizeof(Py_ssize_t) + sizeof(double) + sizeof(Slot*)
    return (
        tables.memory.fixed_bytes
        + tables.name_bytes
        # There is, or soon will be, room for a split.
        + table_bytes(tables.leaf_count + 1, tables.targets)
        + tables.leaf_count * model_bytes(tables)
        + tables.features * (tables.memory.feature_bytes + 2 * CATEGORIES * 8 * tables.targets)
        + per_feature * (tables.features + 1)
        + many_bytes(tables)
        + 3 * <int64_t>sizeof(double) * terms_of(tables.features)
        + further_bytes(tables.features, tables.targets, tables.column.separate)
        + layer_bytes(tables)
    )


cdef int64_t further_bytes(
    Py_ssize_t features, Py_ssize_t targets, bint separate
) noexcept nogil:
    """The bytes of several targets besides tables and pages: records and buffers."""
    if targets == 1:
        return 0
    return (
        TARGET_OBJECTS
        + targets * <int64_t>(sizeof(TargetStream) + sizeof(TargetTrial))
        + costs_of(features, targets) * <int64_t>sizeof(TargetCost)
        + 8 * (
            <int64_t>work_doubles(features, targets, separate) - <int64_t>terms_doubles(features)
        )
        + 8 * (
            <int64_t>permuted_doubles(features, targets, separate)
            - <int64_t>permuted_doubles(features, 1, False)
        )
    )


cdef int64_t layer_bytes(TreeTables tables) noexcept nogil:
    """The bytes of the error-correction layer, and of what it remembers.

    Where memory is limited, the largest number of pending predictions counts from the beginning;
    otherwise predictions would affect splits.
    """
    if not tables.tracking:
        return 0
    return LAYER_OBJECTS + tables.targets * <int64_t>sizeof(LayerState) + (
        tables.pending.most if tables.memory.max_bytes else tables.pending.room
    ) * tables.pending.place_bytes


cdef int64_t used_bytes(TreeTables tables) noexcept nogil:
    """The bytes of all tables, pages, observers and names."""
    cdef int64_t total = rest_bytes(tables)
    cdef Py_ssize_t leaf
    for leaf in range(tables.leaf_count):
        total += watch_bytes(tables, leaf)
    return total + trial_bytes(tables)


cdef int64_t trial_bytes(TreeTables tables) noexcept nogil:
    """The bytes of what the sides of a split on trial watch by."""
    return 2 * page_bytes(tables, tables.watch_table.doubles) if tables.trial.leaf >= 0 else 0


cdef bint admits_trial(TreeTables tables) noexcept nogil:
    """Whether there is room for a split on trial, and for another split."""
    return tables.memory.max_bytes == 0 or (
        used_bytes(tables)
        + 2 * page_bytes(tables, tables.watch_table.doubles)
        + split_bytes(tables)
        <= tables.memory.max_bytes
    )


cdef int64_t split_bytes(TreeTables tables) noexcept nogil:
    """The bytes that a split takes: the children's pages, and tables that grow."""
    cdef int64_t total = 2 * (fresh_bytes(tables) + model_bytes(tables))
    cdef int64_t longer = table_bytes(tables.leaf_count + 2, tables.targets)
    if longer > table_bytes(tables.leaf_count + 1, tables.targets):
        total += longer
    return total


cdef int64_t row_bytes(TreeTables tables) noexcept nogil:
    """The most that a row can add to the observers of its leaf."""
    return max(<int64_t>1, 2 * element_bytes(tables, tables.targets) * tables.features)


cdef bint any_watches(TreeTables tables, bint watching) noexcept nogil:
    """Whether there is a leaf that watches, or one that does not."""
    cdef Py_ssize_t leaf
    for leaf in range(tables.leaf_count):
        if (tables.leaves[leaf].watching != 0) == watching:
            return True
    return False


cdef int64_t promised_bytes(TreeTables tables) noexcept nogil:
    """The bytes that observers may yet take before they are measured."""
    if tables.slots or not any_watches(tables, True):
        return 0
    return row_bytes(tables) * max(
        <int64_t>0, <int64_t>(tables.stream.measure_at - tables.stream.rows)
    )


# -- which leaves watch -----------------------------------------------------------------------


cdef int admits_split(TreeTables tables, Py_ssize_t leaf, bint* is_admitted) except -1 nogil:
    """Say whether there is room for the children of a leaf, after a ranking if need be."""
    cdef int64_t limit = tables.memory.max_bytes, needed, rest, total
    cdef StreamStatistics* stream = &tables.stream
    cdef Py_ssize_t each
    is_admitted[0] = True
    if limit == 0:
        return 0
    needed = split_bytes(tables)
    if tables.slots == 0 and stream.rows <= stream.measure_at and stream.bound + needed <= limit:
        stream.bound += needed
        return 0
    needed += promised_bytes(tables)
    rest = total = rest_bytes(tables)
    for each in range(tables.leaf_count):
        total += watch_bytes(tables, each)
    if total + trial_bytes(tables) + needed > limit:
        tables.end_trial()
    if total + needed > limit:
        if rest + watch_bytes(tables, leaf) + needed > limit:  # even if no other leaf watched
            is_admitted[0] = False
            return 0
        rank(tables, needed, leaf)
    tables.stream.bound = used_bytes(tables) + needed
    is_admitted[0] = tables.stream.bound <= limit
    return 0


cdef int rank_in_time(TreeTables tables) except -1 nogil:
    """Rank again after a while, if there are leaves that do not watch."""
    if tables.memory.max_bytes == 0 or (
        tables.stream.rows < tables.stream.ranked_at + tables.memory.rows_between_rankings
    ):
        return 0
    if any_watches(tables, False):
        rank(tables, split_bytes(tables) + promised_bytes(tables), -1)
    tables.stream.ranked_at = tables.stream.rows
    return 0


cdef int rank(TreeTables tables, int64_t reserve, Py_ssize_t keep) except -1 nogil:
    """Let the most promising leaves watch, as many as there is room for without a reserve.

    Parameters
    ----------
    tables : TreeTables
        Of a tree with `max_bytes`.
    reserve : int
        Bytes that are to stay free.
    keep : int
        A leaf that watches in any case; -1 if there is none.
    """
    cdef double room = (
        tables.memory.share_after_ranking * (tables.memory.max_bytes - reserve)
        - rest_bytes(tables)
    )
    cdef int64_t fresh = fresh_bytes(tables)
    cdef Py_ssize_t leaf
    tables.end_trial()
    for leaf in range(tables.leaf_count):
        tables.ranking[leaf].size = watch_bytes(tables, leaf)
        if tables.ranking[leaf].size == 0:
            tables.ranking[leaf].size = fresh
    choose_best(tables, room, keep)
    if tables.slots:
        begin_slots(tables)
    else:
        with gil:
            begin_observers(tables)
    tables.stream.ranked_at = tables.stream.rows
    tables.stream.bound = used_bytes(tables) + promised_bytes(tables)
    return 0


cdef void choose_best(TreeTables tables, double room, Py_ssize_t keep) noexcept nogil:
    """Mark the leaves that promise most, of those that find room; sizes are set."""
    cdef Ranked* ranking = tables.ranking
    cdef int64_t smallest = ranking[0].size
    cdef Py_ssize_t place
    for place in range(tables.leaf_count):
        ranking[place].leaf = place
        ranking[place].chosen = False
        ranking[place].page = NULL
        ranking[place].promise = INFINITY if place == keep else promise_of(tables, place)
        smallest = min(smallest, ranking[place].size)
    qsort(ranking, tables.leaf_count, sizeof(Ranked), &by_promise)
    for place in range(tables.leaf_count):
        if ranking[place].size <= room or ranking[place].leaf == keep:
            ranking[place].chosen = True
            room -= ranking[place].size
        if room < smallest:
            break


cdef int by_promise(const void* one, const void* other) noexcept nogil:
    """Those that promise more come first, of equals the one that is older."""
    cdef const Ranked* a = <Ranked*>one
    cdef const Ranked* b = <Ranked*>other
    if a.promise != b.promise:
        return -1 if a.promise > b.promise else 1
    return -1 if a.leaf < b.leaf else 1


cdef double promise_of(TreeTables tables, Py_ssize_t leaf) noexcept nogil:
    """By how much a leaf recently adds, row by row, to the squared error of the tree.

    That is its exponentially weighted error times its share of the rows, as if each leaf had seen a
    few more.
    """
    cdef const LeafRecord* record = tables.leaves + leaf
    cdef double few = tables.memory.few_rows * tables.stream.weight / max(tables.stream.rows, 1.0)
    cdef double passed = tables.stream.weight - record.born + few * tables.leaf_count
    return error_of(tables, leaf) * (
        (record.weight + few) / max(passed, few if few != 0.0 else 1.0)
    )


cdef int begin_slots(TreeTables tables) except -1 nogil:
    """Let the chosen leaves watch by slots, and no others."""
    cdef Ranked* ranking = tables.ranking
    cdef Py_ssize_t place
    cdef bint enough = True
    for place in range(tables.leaf_count):
        if ranking[place].chosen and not tables.leaves[ranking[place].leaf].watching:
            ranking[place].page = tables.watch_table.fresh()
            enough = enough and ranking[place].page != NULL
    if not enough:
        for place in range(tables.leaf_count):
            give_back(ranking[place].page)
        with gil:
            raise MemoryError
    exchange_pages(tables)
    return 0


cdef int begin_observers(TreeTables tables) except -1:
    """Let the chosen leaves watch by observers, and no others."""
    cdef Py_ssize_t place, leaf
    cdef list fresh = []
    for place in range(tables.leaf_count):
        leaf = tables.ranking[place].leaf
        if tables.ranking[place].chosen and not tables.leaves[leaf].watching:
            fresh.append((leaf, Watchers(tables.fresh_observers())))
    begin_slots(tables)
    for leaf, watchers in fresh:
        tables.put_watchers(leaf, watchers)
    return 0


cdef void exchange_pages(TreeTables tables) noexcept nogil:
    """Give the leaves that are to start the pages that were got for them; others stop."""
    cdef Py_ssize_t place, leaf
    for place in range(tables.leaf_count):
        leaf = tables.ranking[place].leaf
        if tables.ranking[place].page != NULL:
            clear_watch(tables.columns, tables.ranking[place].page)
            tables.watch_table.put(leaf, tables.ranking[place].page)
            tables.leaves[leaf].watching = True
            tables.restart_statistics(leaf, tables.growth.first_review)
        elif tables.leaves[leaf].watching and not tables.ranking[place].chosen:
            tables.stop_watching(leaf)


# -- observers, which grow --------------------------------------------------------------------


cdef int measure_if_due(TreeTables tables) except -1 nogil:
    """Measure observers before the next row, if they have to be.

    Leaves stop watching where there is no room.
    """
    cdef int64_t limit = tables.memory.max_bytes, used, copied, rows
    cdef Py_ssize_t leaf
    if limit == 0 or tables.slots or not tables.features:
        return 0
    if tables.stream.rows < tables.stream.measure_at:
        return 0
    tables.stream.measure_at = tables.stream.rows
    measured(tables, &used, &copied)
    if (
        limit - used - copied < tables.memory.least_free * limit
        or not any_watches(tables, True)
    ):
        rank(tables, <int64_t>(tables.memory.free_after_ranking * limit), -1)
        measured(tables, &used, &copied)
    rows = (limit - used - copied) // (2 * row_bytes(tables))  # half is left for splits
    if rows < 1:
        for leaf in range(tables.leaf_count):
            if tables.leaves[leaf].watching:
                tables.stop_watching(leaf)
        rows = <int64_t>tables.memory.rows_without_observers
    tables.stream.measure_at += rows
    tables.stream.bound = used + promised_bytes(tables)
    return 0


cdef void measured(TreeTables tables, int64_t* used, int64_t* copied) noexcept nogil:
    """The bytes of all, and those of a copy of the largest observer, made to grow."""
    cdef Py_ssize_t leaf, feature
    cdef int64_t most = 0
    for leaf in range(tables.leaf_count):
        if tables.leaves[leaf].watching:
            for feature in range(tables.features):
                most = max(most, (<Store>tables.stores[leaf][feature]).count)
    used[0] = used_bytes(tables)
    copied[0] = 2 * element_bytes(tables, tables.targets) * most


# -- for Python -------------------------------------------------------------------------------


def nbytes(TreeTables tables not None):
    """Return the bytes of all tables, pages, observers and names."""
    return used_bytes(tables)


def promises(TreeTables tables not None):
    """Return by how much each leaf recently adds, row by row, to the squared error of the tree."""
    return np.array([promise_of(tables, leaf) for leaf in range(tables.leaf_count)])


def rank_now(TreeTables tables not None, int64_t reserve):
    """Let the most promising leaves watch, as many as there is room for without a reserve."""
    rank(tables, reserve, -1)


def check_bound(TreeTables tables not None):
    """Raise ValueError if a tree that comes from a file breaks its own limit."""
    cdef int64_t limit = tables.memory.max_bytes, used = used_bytes(tables)
    if limit == 0:
        return
    if used > limit:
        raise ValueError(f"it occupies {used} bytes and its max_bytes are {limit}")
    if tables.slots == 0 and tables.stream.rows < tables.stream.measure_at:
        if not used + promised_bytes(tables) <= tables.stream.bound <= limit:
            raise ValueError(f"{tables.stream.bound} bytes are no bound of what it will occupy")


cdef (int64_t, int64_t) layout_bytes(
    TreeTables tables, is_category, places, int64_t name_bytes, int64_t new_bytes,
    Py_ssize_t targets, int64_t pending_bytes,
) except *:
    """The bytes of all but what leaves watch by, with other features; and what a page grows by."""
    cdef int64_t rest, grown
    cdef bint separate = are_separate(is_category, places, targets)
    model, watch, levels = tables.sizes_for(is_category, places, targets)
    rest = rest_bytes(tables) + name_bytes - tables.name_bytes + new_bytes
    rest += 8 * tables.leaf_count * (model - tables.model_table.doubles)
    grown = page_bytes(tables, watch) - page_bytes(tables, tables.watch_table.doubles)
    if tables.slots == 0:
        grown += len(is_category) * (
            empty_bytes(tables, targets) + 16 * element_bytes(tables, targets)
        )
        grown -= tables.features * (
            empty_bytes(tables, tables.targets) + 16 * element_bytes(tables, tables.targets)
        )
        rest += 2 * element_bytes(tables, targets) * len(is_category)  # that the first row may take
    rest += 8 * (levels - 2 * len(tables.columns.encoding_table))
    rest += 16 * len(is_category) * <int>bool(np.any(places >= 0))
    if bool(np.any(places >= 0)) and (targets > 1 or tables.column.split_encoded):
        rest += 8 * (encoding_rows(places) - len_of_encodings(tables))
        rest += 8 * targets * (len(is_category) - tables.features * tables.column.split_encoded)
    rest += further_bytes(len(is_category), targets, separate)
    rest -= further_bytes(tables.features, tables.targets, tables.column.separate)
    if targets != tables.targets:
        rest += table_bytes(tables.leaf_count + 1, targets)
        rest -= table_bytes(tables.leaf_count + 1, tables.targets)
        if tables.tracking:
            rest += (targets - tables.targets) * <int64_t>sizeof(LayerState)
            rest += pending_bytes - tables.pending.most * tables.pending.place_bytes
    return rest, grown


def has_room_to_grow(
    TreeTables tables not None, is_category, places, int64_t name_bytes, int64_t new_bytes,
    Py_ssize_t targets, int64_t pending_bytes, int64_t splits,
):
    """Return whether other features find room, even after so many splits.

    The parameters are those of `leaves_without_room`.
    """
    cdef int64_t leaves = tables.leaf_count + 1, rest, grown
    rest, grown = layout_bytes(
        tables, is_category, places, name_bytes, new_bytes, targets, pending_bytes
    )
    model = tables.sizes_for(is_category, places, targets)[0]
    rest += splits * (8 * model + tables.memory.page_overhead)
    rest += table_bytes(leaves + splits, targets) - table_bytes(leaves, targets)
    # While a category is one of few, its slots are more than those of a number.
    grown = max(grown, 0) + 8 * CATEGORIES * (1 + 2 * targets) * len(is_category)
    return rest + fresh_bytes(tables) + grown <= tables.memory.max_bytes


def has_room_for_names(
    TreeTables tables not None, const uint8_t[::1] is_category, const Py_ssize_t[::1] places,
    int64_t name_bytes, Py_ssize_t targets,
):
    """Return whether nothing changes but names, and there is room for them as the tree is.

    The parameters are those of `leaves_without_room`, which stops no leaf then.
    """
    cdef Py_ssize_t feature
    cdef int64_t needed
    if targets != tables.targets or len(is_category) != tables.features or tables.slots == 0:
        return False
    for feature in range(tables.features):
        if is_category[feature] != tables.column.is_category[feature]:
            return False
        if places[feature] != tables.column.places[feature]:
            return False
    needed = used_bytes(tables) + name_bytes - tables.name_bytes
    return needed + 16 * tables.features * tables.column.has_encoded <= tables.memory.max_bytes


def leaves_without_room(
    TreeTables tables not None, is_category, places, int64_t name_bytes, int64_t new_bytes,
    Py_ssize_t targets, int64_t pending_bytes,
):
    """Return which leaves have to stop watching so that other features find room.

    Parameters
    ----------
    tables : TreeTables
        Of a tree with `max_bytes`.
    is_category : array of bool
        Of each feature that there is going to be whether it is a low-cardinality category.
    places : array of int
        For how many codes a high-cardinality category has places; -1 for other features.
    name_bytes : int
        Of all names of features and categories that there are going to be.
    new_bytes : int
        Beside pages, of features that are new.
    targets : int
        Columns of y that there are going to be.
    pending_bytes : int
        Of the largest number of pending predictions of so many targets.

    Returns
    -------
    stopping : array of bool
        Of each leaf.
    keeps_trial : bool
        Whether there is also room for the split on trial, if there is one.

    Raises
    ------
    ValueError
        If there is no room even if no leaf but one watches.
    """
    cdef int64_t limit = tables.memory.max_bytes, rest, grown, needed, total
    cdef int64_t fresh = fresh_bytes(tables)
    cdef Py_ssize_t place
    cdef bint changes_layout = not np.array_equal(is_category, tables.columns.is_category)
    changes_layout = changes_layout or targets != tables.targets
    changes_layout = changes_layout or tables.column.separate != are_separate(
        is_category, places, targets
    )
    rest, grown = layout_bytes(
        tables, is_category, places, name_bytes, new_bytes, targets, pending_bytes
    )
    needed = rest + (fresh + grown if changes_layout else 0)
    if needed > limit:
        raise ValueError(
            f"max_bytes = {limit}: there is no room for {len(is_category)} features "
            f"and their labels (a tree of {tables.leaf_count} leaves needs {needed}); allow "
            "more, or leave features out"
        )
    total = rest
    for place in range(tables.leaf_count):
        tables.ranking[place].size = limit  # those that do not watch stay as they are
        if tables.leaves[place].watching:
            tables.ranking[place].size = watch_bytes(tables, place) + grown
            total += tables.ranking[place].size
    stopping = np.zeros(tables.leaf_count, dtype=np.bool_)
    if total > limit:
        choose_best(tables, <double>(limit - rest), -1)
        for place in range(tables.leaf_count):
            if not tables.ranking[place].chosen:
                stopping[tables.ranking[place].leaf] = (
                    tables.leaves[tables.ranking[place].leaf].watching
                )
    trial = trial_bytes(tables) + (2 * grown if tables.trial.leaf >= 0 else 0)
    return stopping, total + trial <= limit
