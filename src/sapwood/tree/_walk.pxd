"""The way of a row down the tree, and what the experts of its leaf say together."""

from libc.math cimport INFINITY

from sapwood.tree._records cimport EXPERTS, LEAF, NUMBER, NodeRecord

cdef enum:
    AHEAD = 8  # rows that walk down the tree together


cdef inline Py_ssize_t step_down(
    const NodeRecord* nodes, Py_ssize_t node, const double* row
) noexcept nogil:
    """The child of an inner node to which a row goes."""
    cdef double value = row[nodes[node].feature]
    cdef bint left
    if value != value:
        left = nodes[node].missing_left
    elif nodes[node].kind == NUMBER:
        left = value < nodes[node].threshold
    else:
        left = (nodes[node].subset >> <int>value) & 1
    return nodes[node].child + (not left)


cdef inline Py_ssize_t leaf_of(const NodeRecord* nodes, const double* row) noexcept nogil:
    """The leaf to which a row goes."""
    cdef Py_ssize_t node = 0
    while nodes[node].kind != LEAF:
        node = step_down(nodes, node, row)
    return nodes[node].child


cdef inline Py_ssize_t walk_ahead(
    const NodeRecord* nodes, const double* row, Py_ssize_t width, Py_ssize_t rows,
    Py_ssize_t* leaves,
) noexcept nogil:
    """Find the leaves of the next AHEAD rows, or of one where fewer are left; how many it were.

    They walk level by level: a step of one need not wait for another's.
    """
    cdef Py_ssize_t i
    cdef bint walking = True
    if rows < AHEAD:
        leaves[0] = leaf_of(nodes, row)
        return 1
    for i in range(AHEAD):
        leaves[i] = 0
    while walking:
        walking = False
        for i in range(AHEAD):
            if nodes[leaves[i]].kind != LEAF:
                leaves[i] = step_down(nodes, leaves[i], row + i * width)
                walking = True
    for i in range(AHEAD):
        leaves[i] = nodes[leaves[i]].child
    return AHEAD


cdef inline double mixed(
    const double* experts, const double* errors, bint averaging
) noexcept nogil:
    """The mean of experts, weighted by the fourth power of one over their faded error."""
    cdef double least = errors[0] if averaging else INFINITY
    cdef double total = 0.0, result = 0.0, ratio
    cdef Py_ssize_t expert
    for expert in range(1, EXPERTS):
        least = errors[expert] if errors[expert] < least else least
    if least == 0.0:
        least = 1e-300  # so that who made no error gets all of the weight
    for expert in range(EXPERTS):
        ratio = least / (errors[expert] if errors[expert] > least else least)
        ratio *= ratio
        ratio *= ratio
        if expert == 0 and not averaging:
            ratio = 0.0
        total += ratio
        result += ratio * experts[expert]
    return result / total
