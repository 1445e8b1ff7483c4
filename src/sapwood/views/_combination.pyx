"""Predictions of a few models combined around their mean, by ridge regression of their errors."""

import numpy as np

from sapwood.corrector._stacking cimport (
    MOST_CANDIDATES, StackRules, stack_doubles, stacked, score_stack, solve_stack, start_stack,
    weights_of,
)

cdef enum:
    SWEEPS = 2  # by which weights are improved at each label

# As for the members of a forest.
cdef double FADE = 0.9995      # by which sums of errors shrink at each row
cdef double PRECISION = 25.0   # one over the square of the deviation of a weight
cdef double MOST = 1.0         # of a weight


cdef inline StackRules rules_of(Py_ssize_t count) noexcept nogil:
    return StackRules(FADE, PRECISION, 1.0 / count, MOST)


cdef inline double mean_of(const double* members, Py_ssize_t count) noexcept nogil:
    cdef double total = 0.0
    cdef Py_ssize_t each
    for each in range(count):
        total += members[each]
    return total / count


def fresh(Py_ssize_t count):
    """Return the state of so many models, whose combination is their mean."""
    if not 1 <= count <= MOST_CANDIDATES:
        raise ValueError(f"{count} models cannot be combined")
    cdef double[::1] state = np.zeros(stack_doubles(count))
    cdef StackRules rules = rules_of(count)
    start_stack(&state[0], count, &rules)
    return state.base


def weights(double[::1] state, Py_ssize_t count):
    """Return the weight of each model in predictions; they sum to 1."""
    cdef double* theta = weights_of(&state[0])
    cdef double total = 0.0
    cdef Py_ssize_t each
    for each in range(count):
        total += theta[each]
    return [theta[each] + (1.0 - total) / count for each in range(count)]


def predict(const double[::1] state, const double[:, ::1] members, double[::1] found):
    """Write the predictions of rows.

    - `state`: as `fresh` returns it.
    - `members`, shape (n, count): the predictions of the models.
    - `found`, shape (n,): gets the result.
    """
    cdef Py_ssize_t row, count = members.shape[1]
    for row in range(members.shape[0]):
        found[row] = stacked(
            &state[0], count, mean_of(&members[row, 0], count), &members[row, 0]
        )


def learn(
    double[::1] state,
    const double[:, ::1] members,
    const double[:, ::1] issued,
    const double[::1] y,
    const double[::1] w,
    double[::1] found,
):
    """Take in the labels of rows one after the other; write what is predicted before each.

    - `members`, shape (n, count): what the models predict just before each row is learned.
    - `issued`, shape (n, 1 + count): the prediction that was issued, and those of the models; NaN
      where none was.
    - `y`, `w`, shape (n,): the labels and weights.
    - `found`, shape (n,): gets the predictions.
    """
    cdef Py_ssize_t row, count = members.shape[1]
    cdef StackRules rules = rules_of(count)
    cdef const double* own
    cdef double base, said
    with nogil:
        for row in range(members.shape[0]):
            own = &members[row, 0]
            base = mean_of(own, count)
            said = stacked(&state[0], count, base, own)
            found[row] = said
            if issued[row, 0] == issued[row, 0]:
                said, own = issued[row, 0], &issued[row, 1]
                base = mean_of(own, count)
            score_stack(&state[0], count, &rules, base, own, said, y[row], w[row], 1.0)
            solve_stack(&state[0], count, &rules, SWEEPS)
