"""The sum of regression trees that are kept in flat arrays."""

from libc.math cimport fabs, isnan

__all__ = ["DEFAULT_LEFT", "LEAF", "MISSING_NAN", "MISSING_ZERO", "predict"]

cdef enum:
    OF_LEAF = -1
    LEFT_IF_MISSING = 1
    ZERO_IS_MISSING = 2  # with NaN; as LightGBM's zero_as_missing
    NAN_IS_MISSING = 4   # without either, NaN counts as zero

cdef double ALMOST_ZERO = 1.0000000180025095e-35  # LightGBM's kZeroThreshold, a float

LEAF = OF_LEAF
DEFAULT_LEFT, MISSING_ZERO, MISSING_NAN = LEFT_IF_MISSING, ZERO_IS_MISSING, NAN_IS_MISSING


def predict(
    const double[:, ::1] X,
    const int[::1] roots,
    const int[::1] feature,
    const double[::1] number,
    const int[::1] right,
    const unsigned char[::1] flags,
    double base,
    double[::1] out,
):
    """Predict rows by the sum of trees; indices are used as they are.

    Parameters
    ----------
    X : ndarray of float, shape (n, features)
        The rows, NaN where a value is missing.
    roots : ndarray of int32
        The first node of each tree.
    feature : ndarray of int32
        The column that a node compares, LEAF for a leaf.
    number : ndarray of float
        The threshold of a node, up to which a value goes to the left; the value of a leaf.
    right : ndarray of int32
        The right child; the left one follows its parent.
    flags : ndarray of uint8
        Where missing values go, and which are missing.
    base : float
        What all predictions start from.
    out : ndarray of float, shape (n,)
        Gets the predictions.
    """
    cdef Py_ssize_t row, tree
    cdef int node
    cdef unsigned char flag
    cdef double total, value
    cdef bint missing, left
    with nogil:
        for row in range(X.shape[0]):
            total = base
            for tree in range(roots.shape[0]):
                node = roots[tree]
                while feature[node] != OF_LEAF:
                    value = X[row, feature[node]]
                    flag = flags[node]
                    missing = isnan(value)
                    if missing and not flag & NAN_IS_MISSING:
                        value = 0.0
                        missing = False
                    if flag & ZERO_IS_MISSING and fabs(value) <= ALMOST_ZERO:
                        missing = True
                    if missing:
                        left = flag & LEFT_IF_MISSING != 0
                    else:
                        left = value <= number[node]
                    if left:
                        node = node + 1
                    else:
                        node = right[node]
                total += number[node]
            out[row] = total
