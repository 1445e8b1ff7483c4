"""The way of a row down the tree, and what the experts of its leaf say together."""

from libc.math cimport ldexp

from sapwood.tree._records cimport CATEGORIES, EXPERTS, LEAF, LISTED, NUMBER, NodeRecord

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
        if nodes[node].kind == LISTED:  # by the code, which is before the row; see _levels.pxd
            value = row[-1 - nodes[node].feature]
            value = CATEGORIES - 1 if value > CATEGORIES - 1 else value
        if value != value:
            left = nodes[node].missing_left
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


cdef inline void hold_within(double* experts, double lowest, double highest) noexcept nogil:
    """Let no linear model say what is beyond a range."""
    cdef Py_ssize_t expert
    cdef double value
    for expert in range(1, EXPERTS):
        value = experts[expert]
        value = value if value > lowest else lowest
        experts[expert] = value if value < highest else highest


cdef inline double mixed(
    const double* experts, const double* errors, bint averaging
) noexcept nogil:
    """The mean of experts, weighted by the fourth power of one over their faded error.

    All weights are multiplied by the powers of all errors, which saves divisions.
    """
    cdef double least = min(min(errors[1], errors[2]), min(errors[3], errors[4]))
    cdef double per_least, mean, first, second, third, fourth, low, high, models, weight
    per_least = 1.0 / ((min(errors[0], least) if averaging else least) + 1e-300)
    first = power_of(errors[1] * per_least)
    second = power_of(errors[2] * per_least)
    third = power_of(errors[3] * per_least)
    fourth = power_of(errors[4] * per_least)
    low, high = first * second, third * fourth
    models = (second * experts[1] + first * experts[2]) * high
    models += (fourth * experts[3] + third * experts[4]) * low
    weight = (first + second) * high + (third + fourth) * low
    if not averaging:
        return models / weight
    # A power of 2 on both sides of the fraction, or the product of four large powers and a large y
    # would overflow.
    mean = ldexp(1.0, -200) * power_of(errors[0] * per_least)
    low *= ldexp(1.0, -200)
    return (mean * models + low * high * experts[0]) / (mean * weight + low * high)


cdef inline void find_shares(const double* errors, bint averaging, double* shares) noexcept nogil:
    """The share that each expert has in the mean of `mixed`."""
    cdef double least = min(min(errors[1], errors[2]), min(errors[3], errors[4])), total = 0.0
    cdef Py_ssize_t expert
    least = 1.0 / ((min(errors[0], least) if averaging else least) + 1e-300)
    for expert in range(EXPERTS):
        shares[expert] = 1.0 / power_of(errors[expert] * least) if expert or averaging else 0.0
        total += shares[expert]
    for expert in range(EXPERTS):
        shares[expert] /= total


cdef inline double power_of(double times_least) noexcept nogil:
    """The fourth power of an error in units of the least; within bounds, if that is 0."""
    times_least = times_least if times_least > 1.0 else 1.0
    times_least = times_least if times_least < 1e15 else 1e15
    times_least *= times_least
    return times_least * times_least
