"""The arithmetic of weight, mean and M2, for kernels.

A *moment cell* is three consecutive doubles: a pivot, which is one of the values; the mean less
the pivot; and M2, the sum of the weighted squared deviations from the mean. Deviations are taken
from the pivot first, so that values far from zero cost no accuracy. The weight stands apart,
because the targets of one row share it.
"""

cdef enum:
    PIVOT = 0
    SHIFT = 1  # the mean less the pivot
    M2 = 2
    CELL = 3   # doubles in a moment cell


cdef inline double two_sum(double a, double b, double* error) noexcept nogil:
    """a + b, and exactly what rounding it lost (Knuth)."""
    cdef double total = a + b
    cdef double b_seen = total - a
    error[0] = (a - (total - b_seen)) + (b - b_seen)
    return total


cdef inline double cell_merge(
    double* cell, double weight, double pivot, double shift, double added
) noexcept nogil:
    """Merge a mean of weight `added` into a cell; return the gain of M2 beyond that of the parts.

    Chan's merge (equations 4 and 5 of the paper). With one value, as its own pivot, it is
    Welford's update (equations 2 and 3). The gain is in a form that is never negative.
    """
    cdef double total = weight + added
    cdef double delta
    if weight == 0.0:
        cell[PIVOT] = pivot
    delta = (pivot - cell[PIVOT]) + (shift - cell[SHIFT])
    cell[SHIFT] += delta * (added / total)
    return added * (weight / total) * delta * delta


cdef struct MomentState:
    # A weight and a moment cell, with what did not fit into the doubles of shift and M2.
    double weight
    double pivot
    double shift
    double shift_error
    double m2
    double m2_error


cdef inline void gain_m2(MomentState* state, double m2) noexcept nogil:
    state.m2 = two_sum(state.m2, state.m2_error + m2, &state.m2_error)


cdef inline void state_merge(
    MomentState* state, double added, double pivot, double shift, double shift_error
) noexcept nogil:
    """Merge a mean as `cell_merge` does, compensated; the M2 of the other part is yet to add."""
    cdef double total = state.weight + added
    cdef double delta
    if state.weight == 0.0:
        state.pivot = pivot
    delta = (pivot - state.pivot) + (
        (shift - state.shift) + (shift_error - state.shift_error)
    )
    state.shift = two_sum(
        state.shift, state.shift_error + delta * (added / total), &state.shift_error
    )
    gain_m2(state, added * (state.weight / total) * delta * delta)
    state.weight = total


cdef class Moments:
    cdef MomentState state
