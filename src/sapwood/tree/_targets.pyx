"""A row of several targets is learned: _update.pxd, for a variable number of them."""

from sapwood.tree._prefetch cimport prefetch_for_write
from sapwood.tree._records cimport LeafRecord
from sapwood.tree._target_records cimport TargetLeaf, row_doubles
from sapwood.tree._update cimport learn_targets
from sapwood.tree._watch cimport Grid


def pending_size(Py_ssize_t targets):
    """Return how many doubles a pending prediction of several targets has."""
    return pending_doubles(targets)


cdef void learn_several(
    TreeTables tables, Py_ssize_t leaf, const double* row, const double* raw, const double* y,
    double w, uint64_t key, bint at_once, TargetPrediction* predictions,
) noexcept nogil:
    """Do as `learn_row` of _learning.pyx does, for several targets."""
    learn_targets(
        tables, tables.targets, leaf, row, raw, y, w, key, at_once, predictions,
        tables.column.scratch
        + row_doubles(tables.features, tables.targets, tables.column.separate),
    )


cdef void fetch_leaf(TreeTables tables, Py_ssize_t leaf) noexcept nogil:
    """Let the models and records of the leaf of the next row be fetched, and its grids."""
    fetch(tables.models[leaf], tables.model_table.doubles if tables.linear else 0)
    if tables.targets > 1:
        fetch(
            <double*>tables.target_leaf(leaf, 0),
            tables.targets * <Py_ssize_t>sizeof(TargetLeaf) // <Py_ssize_t>sizeof(double),
        )
    else:
        fetch(
            <double*>(tables.leaves + leaf),
            <Py_ssize_t>sizeof(LeafRecord) // <Py_ssize_t>sizeof(double),
        )
    if tables.leaves[leaf].watching:
        fetch(
            tables.watches[leaf],
            tables.features * <Py_ssize_t>sizeof(Grid) // <Py_ssize_t>sizeof(double),
        )


cdef inline void fetch(double* start, Py_ssize_t doubles) noexcept nogil:
    cdef Py_ssize_t place
    for place in range(0, doubles, 8):
        prefetch_for_write(start + place)
