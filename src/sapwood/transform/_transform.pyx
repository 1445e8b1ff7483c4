"""Predictions of a transformed target as predictions of the target itself.

A model that learns t(y) predicts p, an estimate of the mean of t(y). The inverse of t at p is not
the mean of y: the errors e of the model count too. Duan's smearing estimate is the mean of the
inverse at p + e over the errors of earlier rows. For both transforms it needs sums alone:

- y = s², the square root: p² + 2 p E[e] + E[e²]
- y = exp(s) - 1, log1p: exp(p) E[exp(e)] - 1

The sums are exponentially weighted. A p beyond the largest t(y) seen is held near it, as the
inverse grows fast. Where two models predict, one of y itself and one of t(y), the result is
m + v d with m their mean and d half their difference; v in [-1, 1] is a ridge regression of y - m
on d that is shrunk towards the model of y.
"""

from libc.math cimport exp, fmax, fmin, log1p, sqrt

cdef enum:
    NONE, ROOT, LOG
cdef enum:
    WEIGHT, FIRST, SECOND, LOW, HIGH, SQUARE, PRODUCT, ERROR, ERROR_WEIGHT, ALL_NUMBERS
cdef enum:
    FIRST_ROWS = 20  # whose errors do not count: the model knows next to nothing yet

cdef double RATE = 0.998       # by which sums of errors shrink at each row
cdef double SLOW = 0.9995      # the same of the evidence for v
cdef double ERRORS = 0.999     # the same of squared errors
cdef double PRIOR_ROWS = 20.0  # without errors, that sums begin with
cdef double RIDGE = 25.0       # times the squared error
cdef double LARGEST_ERROR = 2.0     # of log1p(y), that is counted
cdef double ABOVE = 1.0        # by which log1p(y) may exceed the largest one seen

STATE = ALL_NUMBERS
CODES = {"sqrt": ROOT, "log1p": LOG}


cdef inline double forward(int code, double y) noexcept nogil:
    return sqrt(y) if code == ROOT else log1p(y) if code == LOG else y


cdef inline double inverse(const double* state, int code, double p) noexcept nogil:
    """The mean of y where the model predicts p."""
    cdef double weight = state[WEIGHT] + PRIOR_ROWS, mean
    if code == NONE:
        return p
    if code == ROOT:
        p = fmin(fmax(p, 0.0), 2.0 * state[HIGH])
        mean = p * p + 2.0 * p * state[FIRST] / weight + state[SECOND] / weight
    else:
        p = fmin(p, state[HIGH] + ABOVE)
        mean = exp(p) * (state[FIRST] + PRIOR_ROWS) / weight - 1.0
    return fmax(mean, state[LOW])


cdef inline double mixed(const double* state, double own, double other) noexcept nogil:
    """Return what the models of y and of t(y) predict together."""
    cdef double ridge = 1.0, v
    if state[ERROR_WEIGHT] > 0.0:
        ridge = RIDGE * state[ERROR] / state[ERROR_WEIGHT]
    if state[SQUARE] + ridge <= 0.0:
        return fmax(own, state[LOW])
    v = fmax(-1.0, fmin(1.0, (state[PRODUCT] + ridge) / (state[SQUARE] + ridge)))
    return fmax(0.5 * (own + other) + 0.5 * v * (own - other), state[LOW])


cdef inline double combined(
    const double* state, int code, const double* members, Py_ssize_t count
) noexcept nogil:
    cdef double found = inverse(state, code, members[count - 1])
    return found if count == 1 else mixed(state, members[0], found)


cdef void update(
    double* state, int code, const double* members, Py_ssize_t count, double result,
    double y, double w, double rows,
) noexcept nogil:
    cdef double t = forward(code, y), p = members[count - 1], e = t - p, other, half
    if rows >= FIRST_ROWS:
        state[WEIGHT] = RATE * state[WEIGHT] + w
        if code == ROOT:
            state[FIRST] = RATE * state[FIRST] + w * e
            state[SECOND] = RATE * state[SECOND] + w * e * e
        else:
            state[FIRST] = RATE * state[FIRST] + w * exp(fmin(e, LARGEST_ERROR))
        if count == 2:
            other = inverse(state, code, p)
            half = 0.5 * (members[0] - other)
            state[SQUARE] = SLOW * state[SQUARE] + w * half * half
            state[PRODUCT] = SLOW * state[PRODUCT] + w * half * (y - 0.5 * (members[0] + other))
            state[ERROR] = ERRORS * state[ERROR] + w * (y - result) * (y - result)
            state[ERROR_WEIGHT] = ERRORS * state[ERROR_WEIGHT] + w
    state[LOW] = y if rows == 0 else fmin(state[LOW], y)
    state[HIGH] = t if rows == 0 else fmax(state[HIGH], t)


def transformed(str name, const double[::1] y, double[::1] found):
    """Write t(y) of each label.

    Parameters
    ----------
    name : {"sqrt", "log1p"}
        The transform.
    y : ndarray of float, shape (n,)
        The labels.
    found : ndarray of float, shape (n,)
        Gets the result.
    """
    cdef Py_ssize_t row
    cdef int code = CODES[name]
    for row in range(y.shape[0]):
        found[row] = forward(code, y[row])


def predict(str name, const double[::1] state, const double[:, ::1] members, double[::1] found):
    """Write predictions of y.

    Parameters
    ----------
    name : {"sqrt", "log1p"}
        The transform.
    state : ndarray of float, shape (STATE,)
        The statistics of errors.
    members : ndarray of float, shape (n, 1) or (n, 2)
        The predictions of the model of t(y), in the last column; before it those of the model of
        y, if there is one.
    found : ndarray of float, shape (n,)
        Gets the predictions.
    """
    cdef Py_ssize_t row
    cdef int code = CODES[name]
    for row in range(members.shape[0]):
        found[row] = combined(&state[0], code, &members[row, 0], members.shape[1])


def learn(
    str name,
    double[::1] state,
    const double[:, ::1] members,
    const double[::1] y,
    const double[::1] w,
    double rows,
    double[::1] found,
):
    """Take in the labels of rows one after the other; write what is predicted before each.

    Parameters
    ----------
    name, members
        As for `predict`; members are what was predicted just before each row was learned.
    state : ndarray of float, shape (STATE,)
        Is changed.
    y, w : ndarray of float, shape (n,)
        The labels and weights.
    rows : float
        How many rows were learned before.
    found : ndarray of float, shape (n,)
        Gets the predictions.
    """
    cdef Py_ssize_t row, count = members.shape[1]
    cdef int code = CODES[name]
    with nogil:
        for row in range(members.shape[0]):
            found[row] = combined(&state[0], code, &members[row, 0], count)
            update(
                &state[0], code, &members[row, 0], count, found[row], y[row], w[row], rows + row
            )
