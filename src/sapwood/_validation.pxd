"""What an observer may still take, checked before anything is changed.

The reach of a target is two doubles: its first value, and the sum of the weighted squared
distances of all values to the first. The M2 of any part of the stream is at most that sum, and
its variance at most the largest squared distance; so while both stay within the limit below, no
statistic derived from the rows can overflow or become NaN.
"""

from libc.float cimport DBL_MAX
from libc.math cimport fabs, isfinite

cdef enum:
    FIRST = 0
    SPREAD = 1
    REACH = 2  # doubles in a reach


cdef inline bint within_limits(double quantity) noexcept nogil:
    """Whether a weight, a square or a sum of squares leaves room for all that is derived."""
    return fabs(quantity) <= DBL_MAX / 4


cdef inline Py_ssize_t admit_weights(
    double* weight,
    const double* x,
    const double* w,
    Py_ssize_t w_step,
    Py_ssize_t rows,
) noexcept nogil:
    """Add weights up; how many rows could be admitted before x or w was bad."""
    cdef Py_ssize_t row
    cdef double total = weight[0]
    for row in range(rows):
        total += w[row * w_step]
        if not (isfinite(x[row]) and 0.0 < w[row * w_step] and within_limits(total)):
            return row
    weight[0] = total
    return rows


cdef inline Py_ssize_t admit_target(
    double* reach,
    const double* y,
    Py_ssize_t y_step,
    const double* w,
    Py_ssize_t w_step,
    Py_ssize_t rows,
) noexcept nogil:
    """Add up the spread of one target; how many rows could be admitted before y was bad."""
    cdef Py_ssize_t row
    cdef double spread = reach[SPREAD], distance
    for row in range(rows):
        distance = y[row * y_step] - reach[FIRST]
        spread += w[row * w_step] * (distance * distance)
        # Comparisons with NaN are false, so that a y that is not finite fails here too.
        if not (within_limits(distance * distance) and within_limits(spread)):
            return row
    reach[SPREAD] = spread
    return rows


cdef inline Py_ssize_t admit_rows(
    double* reach,
    double* weight,
    Py_ssize_t targets,
    const double* x,
    const double* y,
    const double* w,
    Py_ssize_t w_step,
    Py_ssize_t rows,
) noexcept nogil:
    """Account for rows in reach and weight; how many are good before the first bad one.

    If any is bad, reach and weight are in disorder: work on copies.
    """
    cdef Py_ssize_t target, good = rows
    if weight[0] == 0.0 and rows > 0:
        for target in range(targets):
            reach[REACH * target + FIRST] = y[target]
    good = admit_weights(weight, x, w, w_step, good)
    for target in range(targets):
        good = min(
            good, admit_target(reach + REACH * target, y + target, targets, w, w_step, good)
        )
    return good
