"""Simple forecasts of a series, and their combination with that of a model.

The linear forecasts are ridge regressions on lags and on the calendar: the hour, the hour of days
off, the day of the week, and in the second forecast also the position in the year. Both share one
matrix of co-moments, updated as by Welford, from which coefficients are solved after every
`SOLVE_EVERY` labels. A missing value counts as the mean of its column. A prediction is limited to
the range of the labels, extended by `ROOM` of it.

The combination minimises the squared error over weights that are not negative and sum to 1:

    min  wᵀ (E + r I + p D) w,    E = Σ γ e eᵀ,

where e are the errors of the members. The weights γ of old rows decrease by n / (n + RECENT), but
not below `RATE`, so that the errors of members that have just begun to learn are soon forgotten. r
is PRECISION times the squared error of the best member. Errors of neighbouring rows are correlated,
and the later labels are, the less the errors of one block predict those of the next: r and p grow
with the mean delay of labels. p starts at `PRIOR` and decreases by `PRIOR_RATE` with each row whose
members differ; D is 0 for the season and the last known value, so that the first rows are predicted
by these two. A missing season has the last known value in its place, and other missing members have
the prediction of the model.

Where rows are of many series, all of this happens in the unit of each series: see `to_units`.

Only predictions that were issued count: the errors are those of the moment of the prediction.
"""

from libc.math cimport INFINITY, M_PI, NAN, cos, fabs, floor, isfinite, sin, sqrt

import numpy as np

__all__ = ["FIRST_SHARE", "MEMBERS", "SIZES", "learn", "positions", "predict", "size", "to_units"]

cdef enum:
    MODEL, LINEAR, YEARLY, SEASONAL, LAST, MEAN, COUNT
cdef enum:
    HOURS = 24
    DAYS = 7
    OTHERS = 4  # columns after the lags: the season, the last known value, the time, the day off
    YEAR = 2  # the cosine and the sine of the position in the year
    CALENDAR = YEAR + 2 * HOURS + DAYS
cdef enum:
    ROWS, EFFECTIVE, WEIGHT, LOW, HIGH, DELAYS, DELAY_WEIGHT, SOLVED, INFORMED, ERRORS_WEIGHT
    ERRORS
    SHARES = ERRORS + COUNT * COUNT
    HEAD = SHARES + COUNT
cdef enum:
    SOLVE_EVERY = 24
    FIRST_ROWS = 8  # up to how many rows per solution, a share of those that were learned

cdef double RATE = 0.999
cdef double RECENT = 4.0
cdef double PRECISION = 120.0
cdef double DELAY_HALF = 20.0
cdef double PRIOR = 300.0
cdef double PRIOR_RATE = 0.98
cdef double *NOT_YET = [1.0, 1.0, 1.0, 0.0, 0.0, 0.5]  # D
cdef double MEMORY = 0.9998
cdef double RIDGE = 1.0
cdef double CALENDAR_RIDGE = 1.0
cdef double ROOM = 0.2
cdef double LEAST_PIVOT = 1e-9
cdef double LEAST_ERROR = 1e-3
cdef double DAY = 86_400.0
cdef double FARTHEST = 1e15
cdef double SHARE_WITHOUT_UNIT = 0.01
cdef double FARTHEST_LEVEL = 2.0
cdef double YEAR_SECONDS = 365.25 * 86_400.0

MEMBERS = ("model", "linear", "yearly", "seasonal", "last", "mean")
FIRST_SHARE = SHARES
SIZES = 4  # numbers at the end of a state of many series: see `to_units`


cdef struct Parts:
    Py_ssize_t columns  # of x
    Py_ssize_t lags     # the first of them
    double *mean        # of x and y
    double *moments     # co-moments of x and y
    double *factors     # of both linear forecasts


cdef Parts parts_of(double *state, Py_ssize_t lags, bint has_time) noexcept nogil:
    cdef Parts parts
    cdef Py_ssize_t width
    parts.lags = lags
    parts.columns = lags + (CALENDAR if has_time else 0)
    width = parts.columns + 1
    parts.mean = state + HEAD
    parts.moments = parts.mean + width
    parts.factors = parts.moments + width * width
    return parts


def size(Py_ssize_t lags, bint has_time):
    """Return how many numbers the state has.

    Parameters
    ----------
    lags : int
        Lags of the linear forecasts.
    has_time : bool
        Whether rows have times.
    """
    cdef Py_ssize_t columns = lags + (CALENDAR if has_time else 0)
    return HEAD + (columns + 1) * (columns + 2) + 2 * columns


# -- rows ------------------------------------------------------------------------------------------


cdef void add_calendar(double *x, double seconds, double is_off) noexcept nogil:
    """Write the position in the year, the hour, the hour of days off, and the weekday."""
    cdef double *hours = x + YEAR
    cdef double day, hour, share
    cdef Py_ssize_t place, weekday, first
    cdef bint is_known = fabs(seconds) < FARTHEST
    for place in range(CALENDAR):
        x[place] = 0.0 if is_known else NAN
    if not is_known:
        return
    day = floor(seconds / DAY)
    hour = (seconds - day * DAY) / 3600.0
    weekday = <Py_ssize_t> (day + 3.0 - 7.0 * floor((day + 3.0) / 7.0))  # 1970: a Thursday
    x[0] = cos(2.0 * M_PI * seconds / YEAR_SECONDS)
    x[1] = sin(2.0 * M_PI * seconds / YEAR_SECONDS)
    first = <Py_ssize_t> hour % HOURS
    share = hour - floor(hour)
    for place in range(2):
        if place == 0 or weekday >= 5 or is_off > 0.5:
            hours[place * HOURS + first] = 1.0 - share
            hours[place * HOURS + (first + 1) % HOURS] += share
    hours[2 * HOURS + weekday % DAYS] = 1.0


cdef inline double linear(
    const double *state, const Parts *parts, Py_ssize_t which, const double *x
) noexcept nogil:
    """Return one of the linear forecasts, NaN before there are labels."""
    cdef const double *factors = parts.factors + which * parts.columns
    cdef double found = parts.mean[parts.columns], room
    cdef Py_ssize_t place
    if state[SOLVED] <= 0.0:
        return NAN
    for place in range(parts.columns):
        if isfinite(x[place]):
            found += factors[place] * (x[place] - parts.mean[place])
    room = ROOM * (state[HIGH] - state[LOW])
    if not isfinite(found):
        return NAN
    return min(max(found, state[LOW] - room), state[HIGH] + room)


cdef void add_members(
    const double *state, const Parts *parts, const double *x, double *members
) noexcept nogil:
    """Write the forecasts that are made here; the model's in place of those that are missing."""
    cdef Py_ssize_t member
    members[LINEAR] = members[YEARLY] = members[MEAN] = NAN
    if parts.columns > 0:
        members[LINEAR] = linear(state, parts, 0, x)
    if parts.columns > parts.lags:
        members[YEARLY] = linear(state, parts, 1, x)
    if state[WEIGHT] > 0.0:
        members[MEAN] = parts.mean[parts.columns]
    if not isfinite(members[SEASONAL]):
        members[SEASONAL] = members[LAST]
    for member in range(1, COUNT):
        if not isfinite(members[member]):
            members[member] = members[MODEL]


cdef inline double first_share(Py_ssize_t member) noexcept nogil:
    return (1.0 - NOT_YET[member]) / 2.5  # the sum over all


cdef double combined(const double *state, const double *members) noexcept nogil:
    """Return the combination of the members, which is between the smallest and the largest."""
    cdef double found = 0.0, low = members[0], high = members[0], share
    cdef Py_ssize_t member
    for member in range(COUNT):
        share = state[SHARES + member] if state[ERRORS_WEIGHT] > 0.0 else first_share(member)
        found += share * members[member]
        low, high = min(low, members[member]), max(high, members[member])
    return min(max(found, low), high)


# -- learning --------------------------------------------------------------------------------------


cdef void add_row(
    double *state, const Parts *parts, double *x, double y, double w, bint fades
) noexcept nogil:
    """Add a row to the co-moments; x and y become differences to the means before."""
    cdef double memory = MEMORY if fades else 1.0
    cdef Py_ssize_t width = parts.columns + 1, row, column
    cdef double *moments
    cdef double share, factor
    state[LOW] = min(state[LOW], y) if state[ROWS] > 0.0 else y
    state[HIGH] = max(state[HIGH], y) if state[ROWS] > 0.0 else y
    state[ROWS] += 1.0
    state[EFFECTIVE] = memory * state[EFFECTIVE] + 1.0
    state[WEIGHT] = memory * state[WEIGHT] + w
    share = w / state[WEIGHT]
    x[parts.columns] = y
    for row in range(width):
        x[row] = x[row] - parts.mean[row] if isfinite(x[row]) else 0.0
    for row in range(width):
        parts.mean[row] += share * x[row]
        moments = parts.moments + row * width
        factor = w * (1.0 - share) * x[row]
        for column in range(row + 1):
            moments[column] = memory * moments[column] + factor * x[column]


cdef void solve(
    const double *state, const Parts *parts, double *work, bint is_yearly
) noexcept nogil:
    """Solve the ridge regression, by a Cholesky factorisation; columns without variance get 0."""
    cdef Py_ssize_t count = parts.columns, width = count + 1, row, column, place
    cdef double *factors = parts.factors + is_yearly * count
    cdef const double *moments
    cdef double total, pivot, ridge, unit = state[WEIGHT] / state[EFFECTIVE]
    cdef bint is_free
    for row in range(count):
        moments = parts.moments + row * width
        factors[row] = parts.moments[count * width + row]
        ridge = RIDGE * moments[row] / state[EFFECTIVE]
        if row >= parts.lags + YEAR:
            ridge = CALENDAR_RIDGE * unit
        elif row >= parts.lags and not is_yearly:
            ridge = INFINITY
        for column in range(row + 1):
            total = moments[column] + (ridge if column == row else 0.0)
            for place in range(column):
                total -= work[row * count + place] * work[column * count + place]
            if column < row:
                pivot = work[column * count + column]
                work[row * count + column] = total / pivot if pivot > 0.0 else 0.0
        is_free = moments[row] > 0.0 and isfinite(ridge)
        is_free = is_free and total > LEAST_PIVOT * (moments[row] + ridge) and isfinite(total)
        work[row * count + row] = sqrt(total) if is_free else 0.0
        if not is_free:
            for column in range(row):
                work[row * count + column] = 0.0
    for row in range(count):
        total = factors[row]
        for column in range(row):
            total -= work[row * count + column] * factors[column]
        pivot = work[row * count + row]
        factors[row] = total / pivot if pivot > 0.0 else 0.0
    for row in range(count - 1, -1, -1):
        total = factors[row]
        for column in range(row + 1, count):
            total -= work[column * count + row] * factors[column]
        pivot = work[row * count + row]
        factors[row] = total / pivot if pivot > 0.0 else 0.0


cdef void find_shares(double *state) noexcept nogil:
    """Solve the combination: members whose share would be negative are left out, one by one."""
    cdef double matrix[COUNT * COUNT]
    cdef double found[COUNT]
    cdef bint is_used[COUNT]
    cdef Py_ssize_t member, worst
    cdef double least = INFINITY, mean = 0.0, total = 0.0, unit, prior, delay = 0.0
    for member in range(COUNT):
        total = state[ERRORS + member * COUNT + member] / state[ERRORS_WEIGHT]
        least, mean = min(least, total), mean + total / COUNT
        is_used[member] = True
    if state[DELAY_WEIGHT] > 0.0:
        delay = state[DELAYS] / state[DELAY_WEIGHT]
    unit = (1.0 + delay / DELAY_HALF) * max(least, LEAST_ERROR * mean)
    prior = PRIOR * PRIOR_RATE ** state[INFORMED] * unit
    while True:
        for member in range(COUNT * COUNT):
            matrix[member] = state[ERRORS + member]
        for member in range(COUNT):
            matrix[member * COUNT + member] += PRECISION * unit + prior * NOT_YET[member]
        total = solve_shares(matrix, found, is_used)
        if not (isfinite(total) and total > 0.0):
            break
        worst = -1
        for member in range(COUNT):
            if is_used[member] and found[member] < 0.0:
                if worst < 0 or found[member] < found[worst]:
                    worst = member
        if worst < 0:
            break
        is_used[worst] = False
    for member in range(COUNT):
        if isfinite(total) and total > 0.0:
            state[SHARES + member] = found[member] / total if is_used[member] else 0.0
        else:
            state[SHARES + member] = first_share(member)


cdef double solve_shares(double *matrix, double *found, const bint *is_used) noexcept nogil:
    """Solve the matrix for ones, by Gauss; return the sum of what is found."""
    cdef Py_ssize_t row, column, place
    cdef double factor, total = 0.0
    for row in range(COUNT):
        found[row] = 1.0 if is_used[row] else 0.0
        for column in range(COUNT):
            if not (is_used[row] and is_used[column]):
                matrix[row * COUNT + column] = 1.0 if row == column else 0.0
    for row in range(COUNT):
        for place in range(row + 1, COUNT):
            factor = matrix[place * COUNT + row] / matrix[row * COUNT + row]
            for column in range(row, COUNT):
                matrix[place * COUNT + column] -= factor * matrix[row * COUNT + column]
            found[place] -= factor * found[row]
    for row in range(COUNT - 1, -1, -1):
        for column in range(row + 1, COUNT):
            found[row] -= matrix[row * COUNT + column] * found[column]
        found[row] /= matrix[row * COUNT + row]
        total += found[row]
    return total


cdef void add_errors(
    double *state, const double *members, double y, double w, double delay, bint fades
) noexcept nogil:
    """Add the errors of a row whose members differ."""
    cdef double usual = RATE if fades else 1.0, error
    cdef double rate = min(usual, state[INFORMED] / (state[INFORMED] + RECENT))
    cdef double low = members[0], high = members[0]
    cdef Py_ssize_t row, column
    for row in range(1, COUNT):
        low, high = min(low, members[row]), max(high, members[row])
    if low == high:
        return
    state[INFORMED] += 1.0
    for row in range(COUNT):
        error = w * (y - members[row])
        for column in range(COUNT):
            state[ERRORS + row * COUNT + column] *= rate
            state[ERRORS + row * COUNT + column] += error * (y - members[column])
    state[ERRORS_WEIGHT] = rate * state[ERRORS_WEIGHT] + w
    state[DELAYS] = usual * state[DELAYS] + w * delay
    state[DELAY_WEIGHT] = usual * state[DELAY_WEIGHT] + w
    find_shares(state)


cdef void learn_row(
    double *state, const Parts *parts, double *x, double y, double w, bint fades, double *work
) noexcept nogil:
    cdef double since
    add_row(state, parts, x, y, w, fades)
    since = state[ROWS] - state[SOLVED]
    if state[ROWS] > 1.0 and since >= min(SOLVE_EVERY, state[ROWS] / FIRST_ROWS):
        state[SOLVED] = state[ROWS]
        solve(state, parts, work, False)
        if parts.columns > parts.lags:
            solve(state, parts, work, True)


# -- entry points ----------------------------------------------------------------------------------


cdef void forecast(
    const double *state, const Parts *parts, const double *given, double own, double *x,
    double *members, double *result,
) noexcept nogil:
    """Make the forecasts of a row, and combine them; x gets the row as linear forecasts see it."""
    cdef const double *others = given + parts.lags
    cdef Py_ssize_t place
    for place in range(parts.lags):
        x[place] = given[place]
    if parts.columns > parts.lags:
        add_calendar(x + parts.lags, others[2], others[3])
    if members == NULL:
        return
    members[MODEL], members[SEASONAL], members[LAST] = own, others[0], others[1]
    add_members(state, parts, x, members)
    result[0] = combined(state, members)


def predict(
    double[::1] state,
    bint has_time,
    const double[:, ::1] inputs,
    const double[::1] own,
    double[:, ::1] members,
    double[::1] results,
):
    """Make the forecasts of rows, and combine them.

    Parameters
    ----------
    state : ndarray of float, shape (size(lags, has_time),)
        What was learned; zeros at first.
    has_time : bool
        Whether rows have times.
    inputs : ndarray of float, shape (n, lags + 4)
        Lags of the linear forecasts, the value a season earlier, the last known value, the local
        time in seconds, and whether the day is off; NaN where one is missing.
    own : ndarray of float, shape (n,)
        What the model predicts.
    members : ndarray of float, shape (n, len(MEMBERS))
        Gets all forecasts.
    results : ndarray of float, shape (n,)
        Gets the combinations.
    """
    cdef Parts parts = parts_of(&state[0], inputs.shape[1] - OTHERS, has_time)
    cdef double[::1] x = np.empty(parts.columns + 1)
    cdef Py_ssize_t row
    with nogil:
        for row in range(own.shape[0]):
            forecast(
                &state[0], &parts, &inputs[row, 0], own[row], &x[0], &members[row, 0],
                &results[row],
            )


def learn(
    double[::1] state,
    bint has_time,
    const double[:, ::1] inputs,
    const double[::1] own,
    double[:, ::1] members,
    double[::1] results,
    const double[::1] y,
    const double[::1] w,
    const double[::1] delays,
    const unsigned char[::1] issued,
    const double[::1] fading=None,
):
    """Learn the labels of rows, one after the other.

    Parameters
    ----------
    state : ndarray of float
        Is changed.
    has_time, inputs, own, members, results
        As for `predict`. Of a row that was predicted before, members and results are those that
        were issued then.
    y : ndarray of float, shape (n,)
        The labels; a row without one is predicted and not learned.
    w : ndarray of float, shape (n,)
        Weights.
    delays : ndarray of float, shape (n,)
        How many rows were learned between the prediction and its label.
    issued : ndarray of uint8, shape (n,)
        Whether the row was predicted before.
    fading : ndarray of float, shape (n,), optional
        Whether old rows are forgotten, 0 or 1; all forget if not given.
    """
    cdef Parts parts = parts_of(&state[0], inputs.shape[1] - OTHERS, has_time)
    cdef double[::1] x = np.empty(parts.columns + 1)
    cdef double[::1] work = np.empty(parts.columns * parts.columns + 1)
    cdef Py_ssize_t row
    cdef bint fades
    if fading is None:
        fading = np.ones(own.shape[0])
    with nogil:
        for row in range(own.shape[0]):
            forecast(
                &state[0], &parts, &inputs[row, 0], own[row], &x[0],
                NULL if issued[row] else &members[row, 0], &results[row],
            )
            if isfinite(y[row]) and w[row] > 0.0:
                fades = fading[row] > 0.0
                learn_row(&state[0], &parts, &x[0], y[row], w[row], fades, &work[0])
                add_errors(&state[0], &members[row, 0], y[row], w[row], delays[row], fades)


def to_units(
    double[:, ::1] inputs,
    const Py_ssize_t[::1] seasons,
    Py_ssize_t level,
    const double[::1] y,
    double[::1] sizes,
    double[:, ::1] units,
):
    """Centre the lags of each row on the level of its series, and divide them by its size.

    The size is the absolute level and the mean distance of lags from it. A row without lags, or
    with zeros alone, has the mean of labels before it as its level, and their mean size. It counts
    little, as its error is large. The level itself, which is always 0 in its unit, is replaced by
    the distance to the mean of all labels, as far as `FARTHEST_LEVEL`.

    Parameters
    ----------
    inputs : ndarray of float
        As for `predict`; is changed. A missing seasonal lag gets the first one that is known.
    seasons : ndarray of int
        The columns of seasonal lags.
    level : int
        The column of the recent mean. Where it is missing, the mean of the lags is the level.
    y : ndarray of float
        The labels of the rows, empty if they are predicted.
    sizes : ndarray of float, shape (SIZES,)
        How many labels there were, the sums of them and of their sizes, and the time of the last
        one; is changed.
    units : ndarray of float, shape (4, n)
        Gets the levels, the sizes, the shares of weights that count, and whether the row has
        another time than the one before: old rows are forgotten once for each time, however many
        series there are.
    """
    cdef Py_ssize_t lags = inputs.shape[1] - OTHERS, row, place, count
    cdef double *own
    cdef double season, centre, size, distance
    for row in range(inputs.shape[0]):
        own = &inputs[row, 0]
        season = NAN
        for place in range(seasons.shape[0] - 1, -1, -1):
            if isfinite(own[seasons[place]]):
                season = own[seasons[place]]
        for place in range(seasons.shape[0]):
            if not isfinite(own[seasons[place]]):
                own[seasons[place]] = season
        if not isfinite(own[lags]):
            own[lags] = season
        centre, size, count = 0.0, 0.0, 0
        for place in range(lags):
            if isfinite(own[place]):
                centre, count = centre + own[place], count + 1
        centre = own[level] if isfinite(own[level]) else centre / max(count, 1)
        for place in range(lags):
            if isfinite(own[place]):
                size += fabs(own[place] - centre)
        size = fabs(centre) + size / max(count, 1)
        units[2, row] = 1.0
        if not (size > 0.0 and isfinite(size)):
            centre, size, units[2, row] = 0.0, 1.0, 0.0
            if sizes[0] > 0.0 and sizes[2] > 0.0:
                centre, size = sizes[1] / sizes[0], sizes[2] / sizes[0]
                units[2, row] = SHARE_WITHOUT_UNIT
        for place in range(lags + 2):
            own[place] = (own[place] - centre) / size
        units[0, row], units[1, row] = centre, size
        if sizes[0] > 0.0:
            distance = (sizes[1] / sizes[0] - centre) / size
            own[level] = max(min(distance, FARTHEST_LEVEL), -FARTHEST_LEVEL)
        units[3, row] = 0.0 if own[lags + 2] == sizes[3] else 1.0
        if row < y.shape[0] and isfinite(y[row]):
            sizes[3] = own[lags + 2] if isfinite(own[lags + 2]) else 0.0
            sizes[0] += 1.0
            sizes[1] += y[row]
            sizes[2] += fabs(y[row])


def positions(const double[::1] state):
    """Return the share of each member in combinations.

    Parameters
    ----------
    state : ndarray of float
        What was learned.
    """
    if state[ERRORS_WEIGHT] <= 0.0:
        return {name: first_share(place) for place, name in enumerate(MEMBERS)}
    return {name: state[SHARES + place] for place, name in enumerate(MEMBERS)}
