"""The linear models of a leaf: recursive least squares on standardised features.

All models of a leaf share one covariance P, which gives the direction in which a coefficient has to
move: v = P z for a row z. The first model takes the step of least squares, v e / (1 + z'v); the
others take a step in the same direction that is never shorter than their rate, and so
forget. A step moves the prediction for its own row by a share of the error that is below 1, which
keeps every model stable. P only ever shrinks, symmetrically: by each row while the leaf is young,
then by every SAMPLE-th, which counts for those between, and after LONG_MEMORY rows no more.
"""

from libc.math cimport fabs, sqrt

from sapwood.corrector._evidence cimport weighted_share
from sapwood.tree._blocks cimport move_block, predict_and_direct, predict_block, shrink_block
from sapwood.tree._facts cimport ColumnFacts
from sapwood.tree._records cimport BLOCK, SQUARE_TERMS
from sapwood.tree._vectors cimport standardise_values

cdef enum:
    PRIOR = 1                 # the variance of a coefficient of which nothing is known
    PRIOR_OF_CONSTANT = 1000  # and of the constant
    Z_REACH = 100             # standardised features are held within this distance
    Z_CREDIBLE = 10000        # and count as missing beyond this one
    YOUNG = 64                # a leaf is, with fewer rows than this
    SAMPLE = 8
    LONG_MEMORY = 1048576
    HEAVIEST = 1000000        # a row that counts for more moves no coefficient farther


cdef inline bint standardise(
    const double* centres,
    const double* scales,
    const ColumnFacts* facts,
    const double* values,
    Py_ssize_t features,
    double* z,
) noexcept nogil:
    """The terms of a row; whether a value is beyond the range of its column.

    What is missing, or too far away to be true, counts as the mean, and other values beyond the
    range of a column as its nearest end. The terms beyond the features are to be 0 already.
    """
    cdef Py_ssize_t feature
    cdef double distance, end
    z[0] = 1.0
    if not standardise_values(
        centres, scales, values, &facts.low, sizeof(ColumnFacts) // sizeof(double), features,
        Z_CREDIBLE, Z_REACH, z + 1,
    ):
        return False
    for feature in range(features):
        if values[feature] < facts[feature].low or values[feature] > facts[feature].high:
            end = facts[feature].high
            if values[feature] < facts[feature].low:
                end = facts[feature].low
            distance = (values[feature] - centres[feature]) * scales[feature]
            # Without any value yet, low is above high.
            if fabs(distance) <= <double>Z_CREDIBLE and facts[feature].low <= facts[feature].high:
                distance = (end - centres[feature]) * scales[feature]
                distance = distance if distance < <double>Z_REACH else <double>Z_REACH
                z[feature + 1] = distance if distance > -<double>Z_REACH else -<double>Z_REACH
    return True


cdef inline double direct_models(
    const double* coefficients, const double* covariance, const double* z, Py_ssize_t terms,
    double* predicted, double* v,
) noexcept nogil:
    """Set what the models predict and v = P z; return z'v, a measure of how unusual the row is."""
    cdef double first = 0.0, second = 0.0, third = 0.0, fourth = 0.0
    cdef Py_ssize_t i, _four
    if terms <= SQUARE_TERMS:
        return predict_and_direct(coefficients, covariance, z, terms, predicted, v)
    predict_block(coefficients, z, terms, predicted)
    for i in range(terms):
        v[i] = covariance[i] * z[i]
    for _four in range(terms // BLOCK):  # four sums that need not wait for each other
        first += v[0] * z[0]
        second += v[1] * z[1]
        third += v[2] * z[2]
        fourth += v[3] * z[3]
        v += BLOCK
        z += BLOCK
    return (first + second) + (third + fourth)


cdef inline void predict_models(
    const double* coefficients, const double* z, Py_ssize_t terms, double* predicted
) noexcept nogil:
    """What the linear models predict; each sum is in the order of the terms."""
    predict_block(coefficients, z, terms, predicted)


cdef inline void move_coefficients(
    double* coefficients,
    const double* v,
    Py_ssize_t terms,
    double per_unit,
    double share,
    const double* errors,
    const double* least_shares,
    double w,
) noexcept nogil:
    """Move each model towards y, by a share of its own error.

    The share is that of least squares, or that of the model's rate if it is larger; `per_unit` is
    one over how unusual the row is.
    """
    move_block(
        coefficients, v, terms,
        step(least_shares[0], share, w) * per_unit * errors[0],
        step(least_shares[1], share, w) * per_unit * errors[1],
        step(least_shares[2], share, w) * per_unit * errors[2],
        step(least_shares[3], share, w) * per_unit * errors[3],
    )


cdef inline double step(double least, double share, double w) noexcept nogil:
    """The share of an error by which a model moves."""
    if w != 1.0:
        least = weighted_share(least, w)
    return share if share > least else least


cdef inline void shrink_covariance(
    double* covariance, const double* z, double* v, Py_ssize_t terms, double unusual, double w
) noexcept nogil:
    """P - v v' w / (1 + w z'v), symmetric to the last bit; v is used up."""
    cdef Py_ssize_t i
    if terms > SQUARE_TERMS:
        for i in range(terms):
            covariance[i] /= 1.0 + w * v[i] * z[i]
        return
    shrink_block(covariance, v, terms, sqrt(w / (1.0 + w * unusual)))
