"""A tree takes over the tables of another one, which was made aside from its own state.

All that may fail is over then: values are checked, memory is there. The exchange happens between
two rows, in one go that cannot fail.
"""

from sapwood.tree._column_tables cimport Columns
from sapwood.tree._records cimport MemoryRules, Trial
from sapwood.tree._sharing cimport start_writing, stop_writing
from sapwood.tree._tables cimport Ranked, TreeTables


def exchange(TreeTables mine not None, TreeTables made not None, dict parameters not None):
    """Let a tree have the nodes, leaves and columns of another; only in a turn of this thread.

    Parameters
    ----------
    mine : TreeTables
        Of the tree.
    made : TreeTables
        Made from a state of it, which knows the same of the stream. Gets what the tree had.
    parameters : dict
        Those of the tree, in which `no_splits` becomes what it is from now on.
    """
    start_writing(mine.sharing)
    exchange_records(mine, made)
    exchange_pages(mine, made)
    exchange_columns(mine, made)
    parameters["no_splits"] = mine.no_splits
    stop_writing(mine.sharing)


cdef void exchange_records(TreeTables mine, TreeTables made) noexcept:
    """Nodes, leaves, what they know of several targets, and which leaf is to be decided on."""
    cdef Ranked* ranking = mine.ranking
    mine.node_table, made.node_table = made.node_table, mine.node_table
    mine.leaf_table, made.leaf_table = made.leaf_table, mine.leaf_table
    mine.nodes, made.nodes = made.nodes, mine.nodes
    mine.leaves, made.leaves = made.leaves, mine.leaves
    mine.node_room, made.node_room = made.node_room, mine.node_room
    mine.leaf_room, made.leaf_room = made.leaf_room, mine.leaf_room
    mine.node_count, made.node_count = made.node_count, mine.node_count
    mine.leaf_count, made.leaf_count = made.leaf_count, mine.leaf_count
    mine.target_leaf_table, made.target_leaf_table = made.target_leaf_table, mine.target_leaf_table
    mine.target_node_table, made.target_node_table = made.target_node_table, mine.target_node_table
    mine.target_leaves, made.target_leaves = made.target_leaves, mine.target_leaves
    mine.target_nodes, made.target_nodes = made.target_nodes, mine.target_nodes
    mine.target_trial_table, made.target_trial_table = (
        made.target_trial_table, mine.target_trial_table
    )
    mine.target_trials, made.target_trials = made.target_trials, mine.target_trials
    mine.pending, made.pending = made.pending, mine.pending
    mine.ranking, made.ranking = made.ranking, ranking


cdef void exchange_pages(TreeTables mine, TreeTables made) noexcept:
    """What leaves predict by and what they watch; and the split on trial."""
    cdef Trial trial = mine.trial
    cdef Py_ssize_t side
    mine.model_table.swap(made.model_table)
    mine.watch_table.swap(made.watch_table)
    mine.models, made.models = mine.model_table.at, made.model_table.at
    mine.watches, made.watches = mine.watch_table.at, made.watch_table.at
    mine.watchers, made.watchers = made.watchers, mine.watchers
    mine.store_table, made.store_table = made.store_table, mine.store_table
    mine.stores, made.stores = made.stores, mine.stores
    mine.trial = made.trial
    made.trial = trial
    for side in range(2):
        mine.trial_pages[side], made.trial_pages[side] = (
            made.trial_pages[side], mine.trial_pages[side]
        )


cdef void exchange_columns(TreeTables mine, TreeTables made) noexcept:
    """Which features may be split on, what that occupies, and until when there is room."""
    cdef Columns columns = mine.columns
    cdef MemoryRules memory = mine.memory
    mine.use_columns(made.columns)
    made.use_columns(columns)
    mine.memory = made.memory
    made.memory = memory
    mine.measure_at, made.measure_at = made.measure_at, mine.measure_at
    mine.bound, made.bound = made.bound, mine.bound
    mine.no_splits, made.no_splits = made.no_splits, mine.no_splits
