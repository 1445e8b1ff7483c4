"""A node of a tree becomes a leaf again, and other features may be split on: in place.

Whatever may fail is done first: tables and pages are made aside. The rest happens between two rows,
in one go that cannot fail. Pages of leaves that stay are not copied.
"""

import numpy as np
from libc.string cimport memcpy

from sapwood.tree._column_tables cimport clear_watch, set_may_split
from sapwood.tree._pages cimport give_back
from sapwood.tree._records cimport LeafRecord, MemoryRules, NodeRecord
from sapwood.tree._lock cimport start_writing, stop_writing
from sapwood.tree._leaves cimport Watchers
from sapwood.tree._tables cimport TreeTables
from sapwood.tree._target_records cimport TargetRecords


def remove_leaves(
    TreeTables tables not None, nodes, leaves, Py_ssize_t node_count, kept, below, new_numbers,
    const double[::1] model, bint watching, TargetRecords records,
):
    """Let a tree have fewer leaves; only in a turn of this thread.

    Parameters
    ----------
    tables : TreeTables
        Of the tree.
    nodes, leaves : structured arrays
        The records of nodes and leaves from now on, as long as there may be some.
    node_count : int
        How many nodes there are.
    kept : array of bool
        Which leaves stay.
    below : array of int
        The leaves that become one. The first is kept, and gets what follows.
    new_numbers : array of int
        Of all leaves; of those that are not kept, any.
    model : array
        Its model page; None if there are no linear models.
    watching : bool
        Whether it watches its features, from nothing.
    records : TargetRecords
        Those of several targets from now on; None if there is one.
    """
    cdef Py_ssize_t count = tables.leaf_count, first = below[0], leaf
    cdef unsigned char[::1] node_bytes = nodes.view(np.uint8), leaf_bytes = leaves.view(np.uint8)
    cdef const unsigned char[::1] stays = np.ascontiguousarray(kept).view(np.uint8)
    cdef Py_ssize_t[::1] numbers = np.ascontiguousarray(new_numbers, np.intp)
    cdef unsigned char[::1] is_below = np.zeros(count, np.uint8)
    cdef Py_ssize_t[::1] stores = np.zeros(tables.leaf_room, np.intp)
    cdef list watchers = [None] * tables.leaf_room
    cdef Watchers own = None
    cdef double* page = NULL
    cdef double* watch = NULL
    if len(stays) != count or len(numbers) != count or (
        len(nodes) != tables.topology.room or len(leaves) != tables.leaf_room
    ):
        raise IndexError("the tables of leaves that stay are not those of the tree")
    is_below.base[below] = 1
    if watching:
        observers = tables.fresh_observers()
        own = None if observers is None else Watchers(observers)
    for leaf in range(count):
        if stays[leaf] and leaf != first:
            watchers[numbers[leaf]] = tables.watchers[leaf]
            stores[numbers[leaf]] = <Py_ssize_t>tables.stores[leaf]
    watchers[numbers[first]] = own
    stores[numbers[first]] = 0 if own is None else <Py_ssize_t>own.stores
    if tables.linear:
        page = tables.model_table.fresh()
    if watching:
        watch = tables.watch_table.fresh()
    if (tables.linear and page == NULL) or (watching and watch == NULL):
        give_back(page)
        give_back(watch)
        raise MemoryError
    if tables.linear:
        memcpy(page, &model[0], tables.model_table.doubles * sizeof(double))
    if watching:
        clear_watch(tables.columns, watch)
    start_writing(tables.access)
    tables.node_table, tables.topology.nodes = nodes, <NodeRecord*>&node_bytes[0]
    tables.leaf_table, tables.leaves = leaves, <LeafRecord*>&leaf_bytes[0]
    tables.topology.count = node_count
    tables.watchers, tables.store_table, tables.stores = watchers, stores.base, <void***>&stores[0]
    if records is not None:
        tables.use_targets(records)
    tables.model_table.put(first, page)
    tables.watch_table.put(first, watch)
    tables.leaf_count = 0
    for leaf in range(count):
        if stays[leaf]:
            tables.leaf_count += 1
            tables.model_table.move(leaf, numbers[leaf])
            tables.watch_table.move(leaf, numbers[leaf])
        else:
            tables.model_table.put(leaf, NULL)
            tables.watch_table.put(leaf, NULL)
    if tables.undecided >= 0:
        tables.undecided = -1 if is_below[tables.undecided] else numbers[tables.undecided]
    if tables.trial.leaf >= 0 and is_below[<Py_ssize_t>tables.trial.leaf]:
        tables.end_trial()
    elif tables.trial.leaf >= 0:
        tables.trial.leaf = numbers[<Py_ssize_t>tables.trial.leaf]
    stop_writing(tables.access)


cdef class OtherSplits:
    """Leaves of a tree are to split on other features.

    Parameters
    ----------
    tables : TreeTables
        Of the tree.
    no_splits : tuple of str or int
        The names of features that no leaf splits on.
    may_split : array of bool
        The others of those that there are.
    memory : record
        The rules of memory from now on.
    measure_at, bound : float
        With how many rows observers have to be measured again, and the bytes until then.
    ends_trial : bool
        Whether the split on trial is on a feature that is named.
    """

    cdef TreeTables tables
    cdef tuple no_splits
    cdef const unsigned char[::1] may_split
    cdef const unsigned char[::1] memory
    cdef double measure_at
    cdef double bound
    cdef bint ends_trial

    def __init__(
        self, TreeTables tables not None, tuple no_splits not None, may_split, memory,
        double measure_at, double bound, bint ends_trial,
    ):
        self.tables, self.no_splits = tables, no_splits
        self.may_split = np.ascontiguousarray(may_split).view(np.uint8)
        self.memory = np.frombuffer(memory.tobytes(), np.uint8)
        self.measure_at, self.bound, self.ends_trial = measure_at, bound, ends_trial
        if len(self.may_split) != tables.features:
            raise ValueError("there is not one entry of no_splits for each feature")
        if len(self.memory) != sizeof(MemoryRules):
            raise RuntimeError("the rules of kernels and of Python differ")

    cdef void commit(self) noexcept:
        cdef TreeTables tables = self.tables
        start_writing(tables.access)
        if tables.features:
            set_may_split(tables.columns, &self.may_split[0])
        memcpy(&tables.memory, &self.memory[0], sizeof(MemoryRules))
        tables.no_splits = self.no_splits
        tables.stream.measure_at, tables.stream.bound = self.measure_at, self.bound
        if self.ends_trial:
            tables.end_trial()
        stop_writing(tables.access)


def commit_splits(list changes not None, tuple no_splits not None, dict parameters not None):
    """Let trees split on other features; only in a turn of this thread. It cannot fail.

    Parameters
    ----------
    changes : list of OtherSplits
        For each tree.
    no_splits : tuple of str or int
        The names of features that no leaf splits on.
    parameters : dict
        Those of the model, whose `no_splits` it becomes.
    """
    cdef Py_ssize_t place
    for place in range(len(changes)):
        (<OtherSplits?>changes[place]).commit()
    parameters["no_splits"] = no_splits
