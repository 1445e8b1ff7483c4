"""A small transfer model: y by its prediction, and by the last two pairs of both that are known.

With p the prediction of a row, and y1, p1 and y2, p2 the last pairs, it says

    p + a u + b1 (y1 - p) + b2 (y2 - p) + c1 (p1 - p) + c2 (p2 - p) + e (p - first)

where u is the usual error and first is where the stream began. It contains the last value
(b1 = 1), the prediction (all 0, from which it starts), and the prediction plus its last error
(b1 = 1, c1 = -1). The coefficients are those of a ridge regression with sums that fade; each label
is taken with the pairs that were known when its row was predicted. What it says is held to the
range of y and a tenth beyond.
"""

from libc.math cimport fabs, sqrt

from sapwood.blend._faded cimport add_products, solve

cdef enum:
    TERMS = 6
    TERM_PRODUCTS = 21
    CREDIBLE = 1000000  # a coefficient beyond this is none

cdef struct Transfer:
    double coefficient[TERMS]
    double joint[TERMS]
    double products[TERM_PRODUCTS]
    double square             # faded sum of its squared errors
    double weight             # faded sum of weights
    double usual              # its usual error
    double known[4]           # y1, y2, p1, p2
    double first              # the first y


cdef inline void start_transfer(Transfer* transfer, double y) noexcept nogil:
    """Start from the first y of all."""
    cdef Py_ssize_t i
    for i in range(TERMS):
        transfer.coefficient[i] = transfer.joint[i] = 0.0
    for i in range(TERM_PRODUCTS):
        transfer.products[i] = 0.0
    transfer.square = transfer.weight = transfer.usual = 0.0
    for i in range(4):
        transfer.known[i] = y
    transfer.first = y


cdef inline double say_transfer(
    const Transfer* transfer, double prediction, double lowest, double highest, double* terms
) noexcept nogil:
    """What it says, and the terms of the row."""
    cdef double said = prediction
    cdef Py_ssize_t i
    terms[0] = transfer.usual
    for i in range(4):
        terms[1 + i] = transfer.known[i] - prediction
    terms[5] = prediction - transfer.first
    for i in range(TERMS):
        said += transfer.coefficient[i] * terms[i]
    said = said if said > lowest else lowest
    return said if said < highest else highest


cdef inline void judge_transfer(
    Transfer* transfer, const double* terms, double prediction, double said, double y,
    double fade, double w,
) noexcept nogil:
    """Take the label of what was said."""
    cdef double error = y - said
    add_products(
        transfer.products, transfer.joint, TERMS, terms, y - prediction, fade, w
    )
    transfer.square = fade * transfer.square + w * error * error
    transfer.weight = fade * transfer.weight + w


cdef inline void settle_transfer(Transfer* transfer, double precision) noexcept nogil:
    """Compute the coefficients from all labels so far."""
    cdef double factors[TERM_PRODUCTS]
    cdef double square, size, trace = 0.0
    cdef Py_ssize_t i, at = 0
    if transfer.weight > 0.0:
        square = transfer.square / transfer.weight
        for i in range(TERMS):
            trace += transfer.products[at]
            at += i + 2
        # Terms may say the same but for rounding: then a little of the trace tells them apart.
        solve(
            transfer.products, transfer.joint, TERMS, square * precision + 1e-9 * trace,
            factors, transfer.coefficient,
        )
        for i in range(TERMS):
            size = fabs(transfer.coefficient[i])
            transfer.coefficient[i] = transfer.coefficient[i] if size <= <double>CREDIBLE else 0.0
        transfer.usual = sqrt(square)


cdef inline void follow_transfer(Transfer* transfer, double prediction, double y) noexcept nogil:
    """Know one more pair."""
    transfer.known[1], transfer.known[3] = transfer.known[0], transfer.known[2]
    transfer.known[0], transfer.known[2] = y, prediction
