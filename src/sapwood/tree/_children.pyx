"""How a leaf starts: from nothing, or as a child of one that is split."""

import numpy as np
from libc.math cimport sqrt
from libc.stdint cimport uint64_t
from libc.string cimport memcpy, memset

from sapwood.tree._kernel cimport TreeKernel
from sapwood.tree._model cimport PRIOR, PRIOR_OF_CONSTANT
from sapwood.tree._records cimport (
    EXPERTS, LEAF, RATES, SQUARE_TERMS, LeafRecord, NodeRecord, covariance_at, model_size, terms_of,
)
from sapwood.tree._watch cimport Grid, Slot, lay_over

# A child is so much less sure of the coefficients than its parent was; but nothing becomes more
# uncertain than so many times its prior.
cdef double INFLATION = 3.0
cdef double MOST_UNCERTAIN = 4.0
# The mean of a side counts for at most so many rows when a child starts from it.
cdef double MOST_INHERITED = 10.0
# A child trusts its parent's errors half as much as its own.
cdef double INHERITED_ERROR = 0.5


cdef inline double prior_of(Py_ssize_t term) noexcept nogil:
    return PRIOR_OF_CONSTANT if term == 0 else PRIOR


def fresh_model(TreeKernel kernel not None):
    """Return the model page of a leaf that knows nothing."""
    cdef Py_ssize_t terms = terms_of(kernel.features), term
    cdef double[::1] page = np.zeros(model_size(kernel.features))
    cdef Py_ssize_t at = covariance_at(kernel.features)
    for term in range(terms):
        page[at + (terms * term if terms <= SQUARE_TERMS else 0) + term] = prior_of(term)
    return page.base


def fresh_watch(TreeKernel kernel not None):
    """Return the watch page of a leaf that has seen nothing."""
    page = np.zeros(kernel.watch_doubles)
    cdef double[::1] view
    cdef Py_ssize_t feature
    if kernel.has_categories:
        view = page
        for feature in range(kernel.features):
            if kernel.is_category[feature]:
                (<Grid*>&view[0])[feature] = Grid(0.0, 1.0, 1.0, 0.0)
    return page


def divide(
    TreeKernel kernel not None,
    Py_ssize_t leaf,
    int kind,
    int feature,
    Py_ssize_t place,
    double threshold,
    uint64_t subset,
    bint missing_left,
    double merit,
    sides,
    double grace,
):
    """Turn a leaf into a split with two leaves; the tables have room for them.

    Parameters
    ----------
    kernel : TreeKernel
        The tables of the tree.
    leaf : int
        What is split. Its record and its pages become those of the left child; the right one gets
        new ones, at the end.
    kind, feature, threshold, subset, missing_left
        As in the record of a node.
    place : int
        The slot after which a number is cut.
    merit : float
        Of the split.
    sides : sequence
        As `sides_of` returns them.
    grace : float
        When the children are to be decided on.
    """
    cdef Py_ssize_t right = kernel.leaf_count, node = kernel.node_count
    cdef double weight, target, residual
    model = np.empty(kernel.model_doubles) if kernel.linear else None
    watch = fresh_watch(kernel)
    kernel.set_counts(node + 2, right + 1)
    kernel.set_pages(right, model, watch)
    split_node(kernel, leaf, kind, feature, threshold, subset, missing_left, merit)
    if kernel.linear:
        become_less_sure(kernel, leaf)
        memcpy(
            kernel.models[right],
            kernel.models[leaf],
            model_size(kernel.features) * sizeof(double),
        )
    divide_watch(kernel, leaf, right, feature, place)
    cdef LeafRecord parent = kernel.leaves[leaf]
    for row, side in ((leaf, sides[0]), (right, sides[1])):
        weight, target, residual = side
        start_child(kernel, &parent, row, node, weight, target / weight, grace)
        if kernel.linear:
            # It measures y from its own mean, so that the constant of its model moves back by it.
            move_constants(kernel, row, (residual - target) / weight)
        node += 1


cdef void split_node(
    TreeKernel kernel, Py_ssize_t leaf, int kind, int feature, double threshold, uint64_t subset,
    bint missing_left, double merit,
) noexcept nogil:
    """Turn the node of a leaf into a split; its children are the last two nodes."""
    cdef const LeafRecord* record = kernel.leaves + leaf
    cdef NodeRecord* node = kernel.nodes + record.node
    node.kind, node.feature, node.child = kind, feature, kernel.node_count - 2
    node.missing_left, node.threshold, node.subset = missing_left, threshold, subset
    # A leaf's node holds the weight of the rows that it inherited; their mean is its origin.
    node.weight += record.weight
    node.mean = record.origin + record.target_mean * (record.weight / node.weight)
    node.deviation = sqrt(record.target_m2 / record.weight)
    node.gain = record.weight * merit


cdef void start_child(
    TreeKernel kernel, const LeafRecord* parent, Py_ssize_t leaf, Py_ssize_t at, double weight,
    double mean, double grace,
) noexcept nogil:
    """Write the records of a child, of whose rows its parent knows weight and mean."""
    cdef NodeRecord* node = kernel.nodes + at
    cdef LeafRecord* child = kernel.leaves + leaf
    cdef int watching = child.watching
    cdef Py_ssize_t error
    memset(node, 0, sizeof(NodeRecord))
    node.kind, node.child, node.parent, node.weight = LEAF, leaf, parent.node, weight
    node.depth = kernel.nodes[parent.node].depth + 1
    memset(child, 0, sizeof(LeafRecord))
    child.node, child.watching = at, watching
    child.due = child.review = grace
    child.born = kernel.weight
    child.origin = parent.origin + mean
    child.mean_weight = min(weight, MOST_INHERITED)
    for error in range(EXPERTS):
        child.errors[error] = INHERITED_ERROR * parent.errors[error]


cdef void become_less_sure(TreeKernel kernel, Py_ssize_t leaf) noexcept nogil:
    """Let the coefficients of a leaf be as uncertain as those of its children."""
    cdef double* covariance = kernel.models[leaf] + covariance_at(kernel.features)
    cdef Py_ssize_t terms = terms_of(kernel.features), i, j
    cdef double factors[SQUARE_TERMS]
    if terms > SQUARE_TERMS:
        for i in range(terms):
            covariance[i] = min(INFLATION * covariance[i], MOST_UNCERTAIN * prior_of(i))
        return
    for i in range(terms):
        factors[i] = sqrt(min(INFLATION, MOST_UNCERTAIN * prior_of(i) / covariance[terms * i + i]))
    for i in range(terms):
        for j in range(terms):
            covariance[terms * i + j] *= factors[i] * factors[j]


cdef void move_constants(TreeKernel kernel, Py_ssize_t leaf, double shift) noexcept nogil:
    """Add to all that the linear models of a leaf predict."""
    cdef Py_ssize_t rate
    for rate in range(RATES):
        kernel.models[leaf][rate] += shift


cdef void divide_watch(
    TreeKernel kernel, Py_ssize_t leaf, Py_ssize_t right, Py_ssize_t cut, Py_ssize_t place
) noexcept nogil:
    """Lay empty grids over what a leaf saw on each side of a cut; those of the left are its own."""
    cdef Grid* grids = <Grid*>kernel.watches[leaf]
    cdef const Slot* slots
    cdef Grid grid
    cdef Py_ssize_t feature, last = kernel.slots - 1
    for feature in range(kernel.features):
        if kernel.is_category[feature]:
            continue
        grid = grids[feature]
        grids[feature] = Grid(0.0, 0.0, 0.0, 0.0)
        if grid.inverse == 0.0:
            continue
        slots = kernel.slots_of(leaf, feature)
        lay_over_slots(
            grids + feature, kernel.slots, &grid, slots, 0, place if feature == cut else last
        )
        lay_over_slots(
            kernel.grid_of(right, feature),
            kernel.slots,
            &grid,
            slots,
            place + 1 if feature == cut else 0,
            last,
        )
    if kernel.features:
        memset(
            kernel.slots_of(leaf, 0), 0, kernel.slot_starts[kernel.features] * sizeof(Slot)
        )


cdef void lay_over_slots(
    Grid* child, Py_ssize_t count, const Grid* grid, const Slot* slots, Py_ssize_t first,
    Py_ssize_t last,
) noexcept nogil:
    """Lay a grid over those of some slots that have rows."""
    while first < last and slots[first].weight == 0.0:
        first += 1
    while last > first and slots[last].weight == 0.0:
        last -= 1
    lay_over(child, grid.low + first * grid.width, grid.low + (last + 1) * grid.width, count)
