"""Stacking: candidates weighted around a base: base + sum of theta (candidate - base).

The result is limited to the range of the base and the candidates. The weights theta are those of a
ridge regression of y - base on the differences candidate - base, limited to 0 and an upper bound.
The ridge shrinks them to a centre, as a prior with a given deviation:

    (sum of d d' + r I) theta = sum of d (y - base) + r centre,   r = s² / deviation²

with s² the mean square of the errors of issued_prediction predictions. Before the first label, a
centre of 0 gives the base. A centre of 1 / n, with the mean of n predictions as the base, gives
that mean.

A stack of n candidates is `stack_doubles(n)` doubles: the exponentially weighted sums of squared
errors and of weights, theta, and the sums of `_weighted_sums.pxd`.
"""

from sapwood.corrector._evidence cimport slower
from sapwood.corrector._weighted_sums cimport add_products, descend, triangle

cdef enum:
    MOST_CANDIDATES = 32


cdef struct StackRules:
    double decay       # what is left of the sums a row later
    double precision   # one over the square of the deviation of a weight
    double centre      # of a weight
    double most        # of a weight


cdef struct StackErrors:
    double square      # exponentially weighted sum of squared errors
    double weight      # exponentially weighted sum of weights


cdef inline Py_ssize_t stack_doubles(Py_ssize_t n) noexcept nogil:
    return 2 + 2 * n + triangle(n)


cdef inline double* weights_of(double* stack) noexcept nogil:
    """Where the weights of the candidates are."""
    return stack + 2


cdef inline void start_stack(double* stack, Py_ssize_t n, const StackRules* rules) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(stack_doubles(n)):
        stack[i] = 0.0
    for i in range(n):
        weights_of(stack)[i] = rules.centre


cdef inline double stacked(
    const double* stack, Py_ssize_t n, double base, const double* candidates
) noexcept nogil:
    """Return the weighted combination of the base and the candidates."""
    cdef const double* theta = stack + 2
    cdef double combined = base, least = base, greatest = base
    cdef Py_ssize_t i
    for i in range(n):
        combined += theta[i] * (candidates[i] - base)
        least = candidates[i] if candidates[i] < least else least
        greatest = candidates[i] if candidates[i] > greatest else greatest
    combined = combined if combined > least else least
    return combined if combined < greatest else greatest


cdef inline void score_stack(
    double* stack, Py_ssize_t n, const StackRules* rules,
    double base, const double* candidates, double combined, double y, double w, double share,
) noexcept nogil:
    """Learn the label of an issued prediction; the share is its weight as evidence."""
    cdef StackErrors* errors = <StackErrors*>stack
    cdef double d[MOST_CANDIDATES]
    cdef double decay = slower(rules.decay, share), error = y - combined
    cdef Py_ssize_t i
    w *= share
    for i in range(n):
        d[i] = candidates[i] - base
    add_products(stack + 2 + 2 * n, stack + 2 + n, n, d, y - base, decay, w)
    errors.square = decay * errors.square + w * error * error
    errors.weight = decay * errors.weight + w


cdef inline void solve_stack(
    double* stack, Py_ssize_t n, const StackRules* rules, Py_ssize_t sweeps
) noexcept nogil:
    """Move the weights of the candidates towards the solution for all labels so far.

    Each sweep improves all of them once. They go on from where they are, so that one is enough
    for a few candidates, if it is done often.
    """
    cdef const StackErrors* errors = <const StackErrors*>stack
    cdef Py_ssize_t _sweep
    cdef double ridge
    if errors.weight > 0.0:
        ridge = errors.square / errors.weight * rules.precision
        for _sweep in range(sweeps):
            descend(
                stack + 2 + 2 * n, stack + 2 + n, n, ridge, rules.centre, rules.most,
                weights_of(stack),
            )
