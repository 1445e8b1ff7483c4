"""What a row may do to a model: how large y and weights may be, and how far off a y is believed."""

from libc.math cimport fabs, sqrt

cdef enum:
    HELD_ROWS = 100    # rows from which on a y is held near its prediction
    HELD_ERROR = 1000  # the usual squared errors within which it is held

# How large y may be, so that squares of sums stay doubles.
cdef inline double largest_y() noexcept nogil:
    return 1e100


cdef inline bint admissible(double y, double w, double weight, double most_weight) noexcept nogil:
    """Whether a row keeps all that is derived from it within the doubles; false for NaN.

    The weight is that of all rows with this one, of which there may be so much.
    """
    return fabs(y) <= largest_y() and 0.0 < w and weight <= most_weight


cdef inline Py_ssize_t first_inadmissible(
    const double[::1] y, const double[:] w, Py_ssize_t targets, double weight, double most_weight
) noexcept nogil:
    """The first of rows that may not be learned, or -1; the weight is that of all before them.

    Of several targets, each may be missing (NaN), but not all of them in one row.
    """
    cdef Py_ssize_t row, target, known
    cdef double each
    for row in range(w.shape[0]):
        weight += w[row]
        known = 0
        for target in range(targets):
            each = y[row * targets + target]
            if targets > 1 and each != each:
                continue
            known += 1
            if not admissible(each, w[row], weight, most_weight):
                return row
        if known == 0:
            return row
    return -1


cdef inline double held_near(
    double y, double prediction, double rows, double low, double high, double* usual
) noexcept nogil:
    """A y as it is learned: not farther from its prediction than is credible.

    That is so many times the usual error, and at least a quarter of the range of y. The usual
    error at most doubles with a row, so that a real jump is followed within a few.
    """
    cdef double error = y - prediction, square = error * error
    cdef double least = 0.25 * (high - low)
    cdef double limit = <double>HELD_ERROR * usual[0]
    limit = limit if limit > least * least else least * least
    if square > limit and limit > 0.0 and rows >= <double>HELD_ROWS:
        square = limit
        y = prediction + (sqrt(limit) if error > 0.0 else -sqrt(limit))
    usual[0] += (square - usual[0]) * (1.0 / <double>HELD_ERROR)
    return y
