"""How good each cut between neighbouring elements is, and the statistics of its sides."""

import numpy as np

from sapwood.moments cimport CELL, M2, PIVOT, SHIFT, Moments, gain_m2, state_merge
from sapwood.observers._rows cimport CELLS, WEIGHT


def gathered(const double[:, ::1] table, Py_ssize_t start, Py_ssize_t stop, Py_ssize_t step):
    """Return a list with the moments of each target over rows start, start + step, ... ."""
    cdef Py_ssize_t target, row
    cdef Moments moments
    cdef const double* cell
    result = []
    for target in range((table.shape[1] - CELLS) // CELL):
        moments = Moments()
        row = start
        while row != stop:
            cell = &table[row, CELLS + CELL * target]
            state_merge(&moments.state, table[row, WEIGHT], cell[PIVOT], cell[SHIFT], 0.0)
            gain_m2(&moments.state, cell[M2])
            row += step
        result.append(moments)
    return result


def merits(const double[:, ::1] table, list whole):
    """Return the merit of the cut after each row but the last.

    For one target the merit is the reduction of the population variance,
    VR = (n_L n_R / n^2) (mean_L - mean_R)^2; for several, the mean over the targets of VR divided
    by the target's variance (0 where that is 0). Means are sums of distances to the mean of
    the whole, over prefixes and suffixes: nothing is subtracted from a total.

    Parameters
    ----------
    table : array of shape (elements, width)
        Rows of statistics, ascending in x.
    whole : list of Moments
        The moments of each target over all rows.
    """
    cdef Py_ssize_t cuts = max(table.shape[0] - 1, 0)
    cdef Py_ssize_t targets = len(whole), target, row, column
    cdef double[::1] result = np.zeros(cuts)
    cdef double[::1] right_weight = np.empty(cuts)
    cdef double[::1] right_sum = np.empty(cuts)
    cdef double weight, total, difference, pivot, shift, scale
    cdef Moments all_rows
    for target in range(targets):
        column = CELLS + CELL * target
        all_rows = whole[target]
        pivot = all_rows.state.pivot
        shift = all_rows.state.shift
        scale = 1.0 if targets == 1 else targets * all_rows.variance(0.0)
        if scale == 0.0:
            continue
        with nogil:
            weight = total = 0.0
            for row in range(cuts, 0, -1):
                weight += table[row, WEIGHT]
                total += table[row, WEIGHT] * (
                    (table[row, column + PIVOT] - pivot)
                    + (table[row, column + SHIFT] - shift)
                )
                right_weight[row - 1] = weight
                right_sum[row - 1] = total
            weight = total = 0.0
            for row in range(cuts):
                weight += table[row, WEIGHT]
                total += table[row, WEIGHT] * (
                    (table[row, column + PIVOT] - pivot)
                    + (table[row, column + SHIFT] - shift)
                )
                difference = total / weight - right_sum[row] / right_weight[row]
                result[row] += (
                    (weight / all_rows.state.weight * difference)
                    * (right_weight[row] / all_rows.state.weight * difference)
                    / scale
                )
    return np.asarray(result)
