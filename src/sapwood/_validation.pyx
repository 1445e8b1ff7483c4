"""Find the first bad value of an array; `sapwood.validation` finds the words."""

from libc.math cimport INFINITY, isfinite


def first_bad_value(const double[:] y, const double[:] w):
    """Position of the first y that is not finite or w that is not positive and finite, or -1."""
    cdef Py_ssize_t row, bad = -1
    with nogil:
        for row in range(y.shape[0]):
            if not (isfinite(y[row]) and 0.0 < w[row] < INFINITY):
                bad = row
                break
    return bad
