"""The combination of an online model, a batch model and a corrector, in two stages of two.

A stage combines two predictions p and q: with m = (p + q) / 2 and d = (p - q) / 2 it predicts
m + v d, where -1 <= v <= 1, so that it stays between the two. The first stage has the online and
the batch model, the second one the corrector and the first stage. Each v is a ridge regression of
y - m on d over exponentially weighted rows,

    v = (b + r c) / (g + r),    g ← λ g + w d²,    b ← λ b + w d (y - m),

held within ±1, twice: with a long memory, shrunk towards a prior c, and with a short one that is
shrunk towards the first v. The prior is `START`: 0, the mean of both, or -1, the batch model alone,
where that is a fitted model of the user's. Backtests move it: predictions of rows that were never
issued, by models that had learned no row since the batch model was put into use. They are a ridge
regression of their own, which is shrunk towards `START` and decays with each row that was issued.
The short memory is the guard: it reacts within some thirty rows to a member that fails. r is
PRECISION times the squared error of the stage. Errors of neighbouring rows are correlated, and the
later labels are, the less the errors of one block predict those of the next: r grows with the mean
delay of labels.

Apart from the prior only predictions that were issued count: d, m and the error are those of the
moment of the prediction.
"""

from libc.math cimport isfinite

__all__ = ["BACKTEST_PRECISION", "DELAY_HALF", "FAST", "FIRST_DELAY", "FIRST_ERROR", "FIRST_START",
           "MEMBERS", "PRECISION", "RESULTS", "SLOW", "STAGES", "STAGE_NUMBERS", "STATE", "learn",
           "positions", "predict"]

cdef enum:
    SQUARE, PRODUCT, FAST_SQUARE, FAST_PRODUCT, ERROR, WEIGHT
    START, TEST_SQUARE, TEST_PRODUCT, TEST_ERROR, TEST_WEIGHT, STAGE
cdef enum:
    ONLINE, CORRECTOR, BATCH, ALL_MEMBERS
cdef enum:
    FIRST, LAST, ALL_RESULTS
cdef enum:
    DELAYS = 2 * STAGE
    DELAY_WEIGHT = 2 * STAGE + 1
    ERRORS = 2 * STAGE + 2  # squared, of the three members and of what was predicted
    ERRORS_WEIGHT = ERRORS + ALL_MEMBERS + 1
    ALL_NUMBERS = ERRORS_WEIGHT + 1
cdef enum:
    AT_ONCE, ISSUED, NEVER_ISSUED

cdef double SLOW_RATE = 0.9995
cdef double FAST_RATE = 0.97
cdef double ERROR_RATE = 0.999
cdef double RIDGE = 25.0
cdef double HALF = 50.0
cdef double TEST_RIDGE = 50.0

STAGES, STAGE_NUMBERS, FIRST_START, FIRST_DELAY = 2, STAGE, START, DELAYS
MEMBERS, RESULTS, STATE, FIRST_ERROR = ALL_MEMBERS, ALL_RESULTS, ALL_NUMBERS, ERRORS
SLOW, FAST, PRECISION, DELAY_HALF = SLOW_RATE, FAST_RATE, RIDGE, HALF
BACKTEST_PRECISION = TEST_RIDGE


cdef inline double held(double v) noexcept nogil:
    return -1.0 if v < -1.0 else 1.0 if v > 1.0 else v


cdef inline double shrunk(double product, double square, double ridge, double c) noexcept nogil:
    """Return the ridge regression towards c, which is kept where there is nothing to learn from."""
    if square + ridge <= 0.0:
        return c
    return held((product + ridge * c) / (square + ridge))


cdef double position(const double *state, Py_ssize_t stage) noexcept nogil:
    """Return v of a stage: 1 is its first member alone, -1 the second, 0 the mean of both."""
    cdef const double *own = state + stage * STAGE
    cdef double delay = 0.0, ridge, v = own[START]
    if own[TEST_WEIGHT] > 0.0:
        ridge = TEST_RIDGE * own[TEST_ERROR] / own[TEST_WEIGHT]
        v = shrunk(own[TEST_PRODUCT], own[TEST_SQUARE], ridge, v)
    if own[WEIGHT] <= 0.0:
        return v
    if state[DELAY_WEIGHT] > 0.0:
        delay = state[DELAYS] / state[DELAY_WEIGHT]
    ridge = RIDGE * (1.0 + delay / HALF) * own[ERROR] / own[WEIGHT]
    v = shrunk(own[PRODUCT], own[SQUARE], ridge, v)
    return shrunk(own[FAST_PRODUCT], own[FAST_SQUARE], ridge, v)


cdef inline double between(double p, double q, double v) noexcept nogil:
    """Return a prediction between two, the one that is a number if the other is not."""
    cdef double low, high, found
    if not isfinite(p):
        return q
    if not isfinite(q):
        return p
    low, high = (p, q) if p < q else (q, p)
    found = 0.5 * (p + q) + v * 0.5 * (p - q)
    return low if found < low else high if found > high else found


cdef void combine(const double *state, const double *members, double *results) noexcept nogil:
    cdef bint whole = isfinite(members[BATCH])
    results[FIRST] = between(members[ONLINE], members[BATCH], position(state, 0))
    if whole:
        results[LAST] = between(members[CORRECTOR], results[FIRST], position(state, 1))
    else:
        results[LAST] = results[FIRST]


cdef void update_stage(
    double *own, double p, double q, double issued, double y, double w
) noexcept nogil:
    cdef double d = 0.5 * (p - q), e = y - 0.5 * (p + q), error = y - issued
    own[SQUARE] = SLOW_RATE * own[SQUARE] + w * d * d
    own[PRODUCT] = SLOW_RATE * own[PRODUCT] + w * d * e
    own[FAST_SQUARE] = FAST_RATE * own[FAST_SQUARE] + w * d * d
    own[FAST_PRODUCT] = FAST_RATE * own[FAST_PRODUCT] + w * d * e
    own[ERROR] = ERROR_RATE * own[ERROR] + w * error * error
    own[WEIGHT] = ERROR_RATE * own[WEIGHT] + w
    own[TEST_SQUARE] *= ERROR_RATE
    own[TEST_PRODUCT] *= ERROR_RATE
    own[TEST_ERROR] *= ERROR_RATE
    own[TEST_WEIGHT] *= ERROR_RATE


cdef void test_stage(
    double *own, double p, double q, double found, double y, double w
) noexcept nogil:
    cdef double d = 0.5 * (p - q), e = y - 0.5 * (p + q), error = y - found
    own[TEST_SQUARE] = SLOW_RATE * own[TEST_SQUARE] + w * d * d
    own[TEST_PRODUCT] = SLOW_RATE * own[TEST_PRODUCT] + w * d * e
    own[TEST_ERROR] = SLOW_RATE * own[TEST_ERROR] + w * error * error
    own[TEST_WEIGHT] = SLOW_RATE * own[TEST_WEIGHT] + w


cdef inline void add_error(double *state, Py_ssize_t place, double error, double w) noexcept nogil:
    state[ERRORS + place] = ERROR_RATE * state[ERRORS + place] + w * error * error


cdef void update(
    double *state, const double *members, const double *results, double y, double w, double delay
) noexcept nogil:
    cdef double online = members[ONLINE], corrector = members[CORRECTOR], batch = members[BATCH]
    if not (isfinite(y) and isfinite(online) and isfinite(batch)):
        return
    update_stage(state, online, batch, results[FIRST], y, w)
    if isfinite(corrector):
        update_stage(state + STAGE, corrector, results[FIRST], results[LAST], y, w)
    else:
        corrector = results[FIRST]
    add_error(state, ONLINE, y - online, w)
    add_error(state, CORRECTOR, y - corrector, w)
    add_error(state, BATCH, y - batch, w)
    add_error(state, ALL_MEMBERS, y - results[LAST], w)
    state[ERRORS_WEIGHT] = ERROR_RATE * state[ERRORS_WEIGHT] + w
    state[DELAYS] = ERROR_RATE * state[DELAYS] + delay
    state[DELAY_WEIGHT] = ERROR_RATE * state[DELAY_WEIGHT] + 1.0


cdef void backtest(double *state, const double *members, double y, double w) noexcept nogil:
    """Let the prior follow predictions of a row that was never issued; NaN of one without them."""
    cdef double results[ALL_RESULTS]
    if not (isfinite(y) and isfinite(members[ONLINE]) and isfinite(members[BATCH])):
        return
    combine(state, members, results)
    test_stage(state, members[ONLINE], members[BATCH], results[FIRST], y, w)
    if isfinite(members[CORRECTOR]):
        test_stage(state + STAGE, members[CORRECTOR], results[FIRST], results[LAST], y, w)


def positions(const double[:, ::1] state, double[:, ::1] found):
    """Write v of both stages for each target.

    Parameters
    ----------
    state : ndarray of float, shape (targets, STATE)
        What is known of each target.
    found : ndarray of float, shape (targets, 2)
        Gets them.
    """
    cdef Py_ssize_t target
    for target in range(state.shape[0]):
        found[target, 0] = position(&state[target, 0], 0)
        found[target, 1] = position(&state[target, 0], 1)


def predict(
    const double[:, ::1] state, const double[:, ::1] members, double[:, ::1] results
):
    """Combine predictions.

    Parameters
    ----------
    state : ndarray of float, shape (targets, STATE)
        What is known of each target.
    members : ndarray of float, shape (n, targets * MEMBERS)
        Of each target what the online model, the corrector and the batch model predict; NaN where
        one of the latter two does not.
    results : ndarray of float, shape (n, targets * RESULTS)
        Gets what the first stage and both together predict.
    """
    cdef Py_ssize_t row, target, targets = state.shape[0]
    with nogil:
        for row in range(members.shape[0]):
            for target in range(targets):
                combine(
                    &state[target, 0], &members[row, target * ALL_MEMBERS],
                    &results[row, target * ALL_RESULTS],
                )


def learn(
    double[:, ::1] state,
    const double[:, ::1] members,
    double[:, ::1] results,
    const double[:, ::1] y,
    const double[::1] w,
    const double[::1] delays,
    const unsigned char[::1] issued,
    const double[:, ::1] tests=None,
    const double[:, ::1] now=None,
    double[:, ::1] found=None,
):
    """Take in the labels of rows, one after the other.

    Parameters
    ----------
    state : ndarray of float, shape (targets, STATE)
        Is changed.
    members, results
        As for `predict`. Of a row that was predicted before, both are what was issued then; of one
        that is predicted now, results are written.
    y : ndarray of float, shape (n, targets)
        The labels, NaN where one is missing.
    w : ndarray of float, shape (n,)
        Weights.
    delays : ndarray of float, shape (n,)
        How many rows were learned between the prediction and its label.
    issued : ndarray of uint8, shape (n,)
        0 if the row is predicted now, just before it is learned; 1 if it was predicted before; 2 if
        it never was: then its label changes at most the prior.
    tests : ndarray of float, shape (n, targets * MEMBERS), optional
        Backtests: as members, of models that have learned no row since the batch model was put into
        use; NaN of a row that has none.
    now, found : ndarray of float, shapes (n, targets * MEMBERS) and (n, targets), optional
        What the members predict just before each row, whether or not that was issued; the second
        gets what is predicted then.
    """
    cdef Py_ssize_t row, target, targets = state.shape[0]
    cdef double own[ALL_RESULTS]
    with nogil:
        for row in range(members.shape[0]):
            for target in range(targets):
                if now is not None:
                    combine(&state[target, 0], &now[row, target * ALL_MEMBERS], own)
                    found[row, target] = own[LAST]
                if issued[row] != ISSUED:
                    combine(
                        &state[target, 0], &members[row, target * ALL_MEMBERS],
                        &results[row, target * ALL_RESULTS],
                    )
                if tests is not None:
                    backtest(
                        &state[target, 0], &tests[row, target * ALL_MEMBERS], y[row, target], w[row]
                    )
                if issued[row] != NEVER_ISSUED:
                    update(
                        &state[target, 0], &members[row, target * ALL_MEMBERS],
                        &results[row, target * ALL_RESULTS], y[row, target], w[row], delays[row],
                    )
