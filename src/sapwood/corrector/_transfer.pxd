"""A small transfer model: y by its prediction, and by the last values that are known.

With p the prediction of a row, y1 and y2 the last two labels, and p1 what was predicted for the
first of them, the candidate is

    p + a (y1 - p) + b (y2 - p) + c (p1 - p) + d (p - first)

where first is where the stream began. It contains the last value (a = 1), the prediction (all 0,
from which it starts), and the prediction plus its last error (a = 1, c = -1). The coefficients are
those of an exponentially weighted ridge regression; each label is learned with what was known when
its row was predicted. Its predictions are limited to the range of y and a tenth beyond.
"""

from libc.math cimport fabs

from sapwood.corrector._weighted_sums cimport add_products, solve

cdef enum:
    TERMS = 4
    TERM_PRODUCTS = 10
    KNOWN = 3
    CREDIBLE = 1000000  # a coefficient beyond this is none

cdef struct Transfer:
    double coefficient[TERMS]
    double joint[TERMS]
    double products[TERM_PRODUCTS]
    double square             # exponentially weighted sum of its squared errors
    double weight             # exponentially weighted sum of weights
    double known[KNOWN]       # y1, y2, p1
    double first              # the first y


cdef inline void start_transfer(Transfer* transfer, double y) noexcept nogil:
    """Start from the first y of all."""
    cdef Py_ssize_t i
    for i in range(TERMS):
        transfer.coefficient[i] = transfer.joint[i] = 0.0
    for i in range(TERM_PRODUCTS):
        transfer.products[i] = 0.0
    transfer.square = transfer.weight = 0.0
    for i in range(KNOWN):
        transfer.known[i] = y
    transfer.first = y


cdef inline double predict_transfer(
    const Transfer* transfer, double prediction, double lowest, double highest, double* terms
) noexcept nogil:
    """Return the candidate, and set the terms of the row."""
    cdef const double* coefficient = transfer.coefficient
    cdef double candidate
    terms[0] = transfer.known[0] - prediction
    terms[1] = transfer.known[1] - prediction
    terms[2] = transfer.known[2] - prediction
    terms[3] = prediction - transfer.first
    # Two sums that need not wait for each other.
    candidate = (prediction + coefficient[0] * terms[0] + coefficient[1] * terms[1]) + (
        coefficient[2] * terms[2] + coefficient[3] * terms[3]
    )
    candidate = candidate if candidate > lowest else lowest
    return candidate if candidate < highest else highest


cdef inline void score_transfer(
    Transfer* transfer, const double* terms, double prediction, double candidate, double y,
    double decay, double w,
) noexcept nogil:
    """Learn the label of an issued prediction."""
    cdef double error = y - candidate
    add_products(
        transfer.products, transfer.joint, TERMS, terms, y - prediction, decay, w
    )
    transfer.square = decay * transfer.square + w * error * error
    transfer.weight = decay * transfer.weight + w


cdef inline void solve_transfer(Transfer* transfer, double precision) noexcept nogil:
    """Compute the coefficients from all labels so far."""
    cdef double factors[TERM_PRODUCTS]
    cdef double size, trace = 0.0
    cdef Py_ssize_t i, at = 0
    if transfer.weight > 0.0:
        for i in range(TERMS):
            trace += transfer.products[at]
            at += i + 2
        # Terms may be equal except for rounding: a small part of the trace makes them distinct.
        solve(
            transfer.products, transfer.joint, TERMS,
            transfer.square / transfer.weight * precision + 1e-9 * trace,
            factors, transfer.coefficient,
        )
        for i in range(TERMS):
            size = fabs(transfer.coefficient[i])
            transfer.coefficient[i] = transfer.coefficient[i] if size <= <double>CREDIBLE else 0.0


cdef inline void update_transfer(Transfer* transfer, double prediction, double y) noexcept nogil:
    """Know one more pair."""
    transfer.known[1] = transfer.known[0]
    transfer.known[0], transfer.known[2] = y, prediction
