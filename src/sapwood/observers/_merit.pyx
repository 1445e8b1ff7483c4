"""How good each cut between neighbouring elements is, and the statistics of its sides.

Elements are rows of a table (see _rows.pxd), taken in a given order, which is ascending in x.
"""

import numpy as np
from libc.math cimport isfinite

from sapwood.moments cimport CELL, M2, PIVOT, SHIFT, MomentState, Moments, gain_m2, state_merge
from sapwood.observers._rows cimport CELLS, WEIGHT


def totals(const double[:, ::1] table, const Py_ssize_t[::1] order):
    """Return a list with the moments of each target over all elements."""
    return gathered(table, order, 0, order.shape[0], 1)


def merits(const double[:, ::1] table, const Py_ssize_t[::1] order):
    """Return the merit of the cut after each element but the last.

    For one target the merit is the reduction of the population variance,
    VR = (n_L n_R / n^2) (mean_L - mean_R)^2; for several, the mean over the targets of VR divided
    by the target's variance (0 where that is 0).
    """
    result = np.zeros(max(order.shape[0] - 1, 0))
    if len(result):
        fill_merits(result, table, order)
    return result


def best_cut(const double[:, ::1] table, const Py_ssize_t[::1] order):
    """Return the best cut of at least two elements, the first of equals.

    Returns
    -------
    position : int
        The cut is after this element.
    merit : float
        As in `merits`.
    left, right : list of Moments
        The statistics of each target on either side, merged from the outer end inwards:
        nothing is subtracted from a total.
    """
    cdef Py_ssize_t cuts = order.shape[0] - 1, cut, best = 0
    cdef double[::1] merit = np.zeros(cuts)
    fill_merits(merit, table, order)
    for cut in range(1, cuts):
        if merit[cut] > merit[best]:
            best = cut
    left = gathered(table, order, 0, best + 1, 1)
    right = gathered(table, order, cuts, best, -1)
    return best, merit[best], left, right


def middles(const double[:] values):
    """Return a split point between each value and the next, as near to the middle as doubles allow.

    Between neighbouring doubles there is no middle: the upper one parts them as well.
    """
    cdef Py_ssize_t cut
    cdef double low, high, middle
    cdef double[::1] result = np.empty(max(values.shape[0] - 1, 0))
    for cut in range(result.shape[0]):
        low, high = values[cut], values[cut + 1]
        middle = (low + high) / 2  # halves of the smallest doubles are rounded
        if not isfinite(middle):
            middle = low / 2 + high / 2
        result[cut] = middle if low < middle <= high else high
    return result.base


cdef list gathered(
    const double[:, ::1] table,
    const Py_ssize_t[::1] order,
    Py_ssize_t start,
    Py_ssize_t stop,
    Py_ssize_t step,
):
    """The moments of each target over elements start, start + step, ... before stop."""
    cdef Py_ssize_t target, element
    cdef Moments moments
    cdef const double* cell
    result = []
    for target in range((table.shape[1] - CELLS) // CELL):
        moments = Moments()
        element = start
        while element != stop:
            cell = &table[order[element], CELLS + CELL * target]
            state_merge(
                &moments.state, table[order[element], WEIGHT], cell[PIVOT], cell[SHIFT], 0.0
            )
            gain_m2(&moments.state, cell[M2])
            element += step
        result.append(moments)
    return result


cdef int fill_merits(
    double[::1] result, const double[:, ::1] table, const Py_ssize_t[::1] order
) except -1:
    """Add up the merits of all targets."""
    cdef double[:, ::1] right = np.empty((result.shape[0], 2))
    cdef list whole = totals(table, order)
    cdef Py_ssize_t targets = len(whole), target
    cdef Moments moments
    cdef double scale
    for target in range(targets):
        moments = whole[target]
        scale = 1.0 if targets == 1 else targets * moments.variance(0.0)
        if scale > 0.0:
            add_merits(result, right, table, order, target, moments.state, scale)
    return 0


cdef void add_merits(
    double[::1] result,
    double[:, ::1] right,
    const double[:, ::1] table,
    const Py_ssize_t[::1] order,
    Py_ssize_t target,
    MomentState whole,
    double scale,
) noexcept nogil:
    """Add VR / scale of one target to each cut; `right` is scratch.

    Sums of distances to the mean of the whole, over prefixes and suffixes, lose no accuracy to
    where the whole lies.
    """
    cdef Py_ssize_t cuts = result.shape[0], cut, column = CELLS + CELL * target
    cdef double weight = 0.0, total = 0.0, difference
    for cut in range(cuts - 1, -1, -1):
        weight += table[order[cut + 1], WEIGHT]
        total += weighted_distance(&table[order[cut + 1], 0], column, &whole)
        right[cut, 0] = weight
        right[cut, 1] = total
    weight = total = 0.0
    for cut in range(cuts):
        weight += table[order[cut], WEIGHT]
        total += weighted_distance(&table[order[cut], 0], column, &whole)
        difference = total / weight - right[cut, 1] / right[cut, 0]
        result[cut] += (
            (weight / whole.weight * difference)
            * (right[cut, 0] / whole.weight * difference)
            / scale
        )


cdef inline double weighted_distance(
    const double* row, Py_ssize_t column, const MomentState* whole
) noexcept nogil:
    """The weight of a row times its mean's distance to the mean of the whole."""
    return row[WEIGHT] * (
        (row[column + PIVOT] - whole.pivot) + (row[column + SHIFT] - whole.shift)
    )
