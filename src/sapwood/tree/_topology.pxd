"""The path of a row down the tree, and the combined prediction of the experts of its leaf."""

from sapwood.tree._records cimport CATEGORIES, EXPERTS, LEAF, LISTED, NUMBER, NodeRecord
from sapwood.tree._vectors cimport power_of

cdef struct Topology:
    # The nodes of a tree, of which there are `count`; its tables have room for more.
    NodeRecord* nodes
    Py_ssize_t count
    Py_ssize_t room


cdef enum:
    AHEAD = 8  # rows that walk down the tree together


cdef inline Py_ssize_t step_down(
    const NodeRecord* nodes, Py_ssize_t node, const double* row
) noexcept nogil:
    """The child of an inner node to which a row goes."""
    cdef double value = row[nodes[node].feature]
    cdef bint left
    if nodes[node].kind == NUMBER:
        left = value < nodes[node].threshold
        if value != value:
            left = nodes[node].missing_left
    else:
        if nodes[node].kind == LISTED:  # by the code, which is stored before the encoded row
            value = row[-1 - nodes[node].feature]
            value = CATEGORIES - 1 if value > CATEGORIES - 1 else value
        if value != value:
            left = nodes[node].missing_left
        else:
            left = (nodes[node].subset >> <int>value) & 1
    return nodes[node].child + (not left)


cdef inline Py_ssize_t step_by_number(
    const NodeRecord* nodes, Py_ssize_t node, const double* row
) noexcept nogil:
    """As `step_down` where all features are numbers; from a leaf, the leaf itself.

    It has no branches: which way a row goes, and how far, no processor could predict.
    """
    cdef const NodeRecord* own = nodes + node
    cdef Py_ssize_t is_inner = own.kind != LEAF
    cdef double value = row[own.feature & -is_inner]
    cdef Py_ssize_t left = value < own.threshold
    left |= own.missing_left & (not value >= own.threshold)
    return node + ((own.child + 1 - left - node) & -is_inner)


cdef inline Py_ssize_t leaf_of(const NodeRecord* nodes, const double* row) noexcept nogil:
    """The leaf to which a row goes."""
    cdef Py_ssize_t node = 0
    while nodes[node].kind != LEAF:
        node = step_down(nodes, node, row)
    return nodes[node].child


cdef inline Py_ssize_t walk_ahead(
    const NodeRecord* nodes, const double* row, Py_ssize_t width, Py_ssize_t rows,
    bint has_categories, Py_ssize_t* leaves,
) noexcept nogil:
    """Find the leaves of the next AHEAD rows, or of one where fewer are left; how many it were.

    They walk level by level: a step of one need not wait for another's.
    """
    cdef Py_ssize_t i, next, moved = 1
    if rows < AHEAD or width == 0:
        leaves[0] = leaf_of(nodes, row)
        return 1
    for i in range(AHEAD):
        leaves[i] = 0
    while moved and not has_categories:
        moved = 0
        for i in range(AHEAD):
            next = step_by_number(nodes, leaves[i], row + i * width)
            moved |= next ^ leaves[i]
            leaves[i] = next
    while moved:
        moved = 0
        for i in range(AHEAD):
            if nodes[leaves[i]].kind != LEAF:
                leaves[i] = step_down(nodes, leaves[i], row + i * width)
                moved = 1
    for i in range(AHEAD):
        leaves[i] = nodes[leaves[i]].child
    return AHEAD


cdef inline void find_shares(const double* errors, bint averaging, double* shares) noexcept nogil:
    """The share that each expert has in the mean of `mix_within`, see _vectors.pxd."""
    cdef double least = min(min(errors[1], errors[2]), min(errors[3], errors[4])), total = 0.0
    cdef Py_ssize_t expert
    least = 1.0 / ((min(errors[0], least) if averaging else least) + 1e-300)
    for expert in range(EXPERTS):
        shares[expert] = 1.0 / power_of(errors[expert] * least) if expert or averaging else 0.0
        total += shares[expert]
    for expert in range(EXPERTS):
        shares[expert] /= total
