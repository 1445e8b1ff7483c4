"""Forecasts that need no model, and their errors, row by row.

The weekly forecast of a row at time t is the label of the row at t - 1 week. Where several rows
have the same time (dates without hours, several series), the k-th row at t is forecast by the k-th
row at that time. If no row has exactly that time, the latest one within the hour before it counts.
"""

from libc.math cimport fabs, isnan, NAN

__all__ = ["FORECASTS", "KNOWN", "WEEK_COLUMNS", "follow", "follow_late", "forecast"]

cdef enum:  # of what is known
    ROWS
    MEAN
    WEIGHT
    FADED_MEAN
    LAST
    MOMENT      # the time of the last row that was forecast
    ORDINAL     # how many rows of the same time were forecast before it
    FIRST       # the place of the oldest row of the ring of a week
    IN_WEEK     # how many rows the ring holds
    N_KNOWN

cdef enum:  # of each row of the ring
    TIME
    LABEL
    N_WEEK

cdef enum:  # of a row
    BY_LAST
    BY_MEAN
    BY_FADED_MEAN
    BY_WEEK
    FROM_WEEK
    N_FORECASTS

cdef enum:  # of the errors
    SCORED
    SCORED_WEIGHT
    SCORED_BY_WEEK
    N_COUNTS

cdef enum:
    N_MEANS = 4  # absolute and square errors, and both faded
    N_BASELINES = 4

cdef double LARGEST = 1e140  # whose square can be summed up
cdef double WEEK = 604800.0
cdef double HOUR = 3600.0

KNOWN, WEEK_COLUMNS, FORECASTS = N_KNOWN, N_WEEK, N_FORECASTS


cdef inline bint is_time(double time) noexcept nogil:
    return fabs(time) < 1e15  # so that seconds are exact; false for NaN


cdef inline Py_ssize_t place_of(
    const double *known, const double[:, ::1] week, Py_ssize_t number
) noexcept nogil:
    """Return where a row of the ring is, counted from the oldest."""
    cdef Py_ssize_t place = <Py_ssize_t>known[FIRST] + number
    return place if place < week.shape[0] else place - week.shape[0]


cdef inline Py_ssize_t rows_until(
    const double *known, const double[:, ::1] week, double time, bint inclusive
) noexcept nogil:
    """Return how many rows of the ring, whose times ascend, are before a time, or up to it."""
    cdef Py_ssize_t low = 0, high = <Py_ssize_t>known[IN_WEEK], middle
    cdef double at
    while low < high:
        middle = (low + high) // 2
        at = week[place_of(known, week, middle), TIME]
        if at < time or (inclusive and at == time):
            low = middle + 1
        else:
            high = middle
    return low


cdef inline double a_week_before(
    const double *known, const double[:, ::1] week, double time
) noexcept nogil:
    """Return the label of the row a week before a time; NaN if there is none."""
    cdef Py_ssize_t end = rows_until(known, week, time - WEEK, True), start
    cdef double at
    if end == 0:
        return NAN
    at = week[place_of(known, week, end - 1), TIME]
    if at < time - WEEK - HOUR:
        return NAN
    start = rows_until(known, week, at, False) + <Py_ssize_t>known[ORDINAL]
    return week[place_of(known, week, start if start < end else end - 1), LABEL]


cdef inline void tell(
    double *known, const double[:, ::1] week, double time, double *told
) noexcept nogil:
    """Forecast a row at a time, which may be NaN."""
    cdef double value = NAN
    told[BY_LAST] = known[LAST]
    told[BY_MEAN] = known[MEAN]
    told[BY_FADED_MEAN] = known[FADED_MEAN]
    if is_time(time):
        known[ORDINAL] = known[ORDINAL] + 1.0 if time == known[MOMENT] else 0.0
        known[MOMENT] = time
        value = a_week_before(known, week, time)
    told[FROM_WEEK] = 0.0 if isnan(value) else 1.0
    told[BY_WEEK] = known[LAST] if isnan(value) else value


cdef inline void keep(double *known, double[:, ::1] week, double time, double y) noexcept nogil:
    """Append a row to the ring, and remove rows that no later row needs."""
    cdef Py_ssize_t place
    cdef double last
    if known[IN_WEEK] > 0.0:
        last = week[place_of(known, week, <Py_ssize_t>known[IN_WEEK] - 1), TIME]
        if time < last - WEEK:  # another series begins
            known[IN_WEEK] = 0.0
        elif time < last:
            return
    while known[IN_WEEK] > 0.0 and (
        week[<Py_ssize_t>known[FIRST], TIME] < time - WEEK - HOUR
        or <Py_ssize_t>known[IN_WEEK] == week.shape[0]
    ):
        known[FIRST] = <double>place_of(known, week, 1)
        known[IN_WEEK] -= 1.0
    place = place_of(known, week, <Py_ssize_t>known[IN_WEEK])
    week[place, TIME] = time
    week[place, LABEL] = y
    known[IN_WEEK] += 1.0


cdef inline void learn(
    double *known, double[:, ::1] week, double time, double y, double fade
) noexcept nogil:
    """Learn the label of a row."""
    known[ROWS] += 1.0
    known[MEAN] += (y - known[MEAN]) / known[ROWS]
    known[WEIGHT] = fade * known[WEIGHT] + 1.0
    known[FADED_MEAN] += (y - known[FADED_MEAN]) / known[WEIGHT]
    known[LAST] = y
    if is_time(time):
        keep(known, week, time, y)


cdef inline void score(
    double *counts, double[:, ::1] means, double[:, ::1] recent, const double *told,
    double prediction, double y, double fade,
) noexcept nogil:
    """Take the errors of a row into account: those of all forecasts, and that of the model."""
    cdef Py_ssize_t place = (<Py_ssize_t>counts[SCORED]) % recent.shape[0], each
    cdef double error, share, faded_share
    counts[SCORED] += 1.0
    counts[SCORED_WEIGHT] = fade * counts[SCORED_WEIGHT] + 1.0
    counts[SCORED_BY_WEEK] += told[FROM_WEEK]
    share, faded_share = 1.0 / counts[SCORED], 1.0 / counts[SCORED_WEIGHT]
    for each in range(N_BASELINES):
        error = y - told[each]
        recent[place, each] = error
        means[each, 0] += (fabs(error) - means[each, 0]) * share
        means[each, 1] += (error * error - means[each, 1]) * share
        means[each, 2] += (fabs(error) - means[each, 2]) * faded_share
        means[each, 3] += (error * error - means[each, 3]) * faded_share
    error = prediction - y
    means[N_BASELINES, 0] += (error - means[N_BASELINES, 0]) * share
    means[N_BASELINES, 2] += (error - means[N_BASELINES, 2]) * faded_share


cdef inline bint scorable(double prediction, double y) noexcept nogil:
    return fabs(prediction) <= LARGEST and fabs(y) <= LARGEST


cdef int check(
    double[::1] known, double[:, ::1] week, double[::1] counts, double[:, ::1] means,
    double[:, ::1] recent,
) except -1:
    if (
        known.shape[0] != N_KNOWN or week.shape[0] < 1 or week.shape[1] != N_WEEK
        or not 0.0 <= known[FIRST] < week.shape[0] or not 0.0 <= known[IN_WEEK] <= week.shape[0]
        or counts.shape[0] != N_COUNTS or means.shape[0] != N_BASELINES + 1
        or means.shape[1] != N_MEANS or recent.shape[0] < 1 or recent.shape[1] != N_BASELINES
    ):
        raise ValueError("the tables of baselines have a wrong shape")
    return 0


def follow(
    double[::1] known not None,
    double[:, ::1] week not None,
    double[::1] counts not None,
    double[:, ::1] means not None,
    double[:, ::1] recent not None,
    const double[::1] predictions not None,
    const double[::1] y not None,
    const double[::1] times,
    double fade,
):
    """Forecast each row, score that and the model's prediction, and learn the label.

    Parameters
    ----------
    known : array of float, shape (KNOWN,)
        What forecasts are made from: the rows and the mean of labels, their decayed weight
        and exponentially weighted mean, the last one, and the place of the rows of a week in their
        ring. Changed.
    week : array of float, shape (capacity, WEEK_COLUMNS)
        A ring of the rows of the last week: times in ascending order, and labels. If it is full,
        the oldest row is replaced. Changed.
    counts : array of float, shape (3,)
        The scored rows, their exponentially weighted weight, and the number of rows whose label a
        week before was known. Changed.
    means : array of float, shape (5, 4)
        Of each baseline, the mean absolute and squared error, and both exponentially weighted; the
        last line has the mean error of the model, and at place 2 the weighted one. Changed.
    recent : array of float, shape (window, 4)
        The errors of the last rows. Changed.
    predictions, y : arrays of float
        What the model predicted, and what was right.
    times : array of float, optional
        In seconds since 1970, NaN where one is missing.
    fade : float
        Each new row multiplies the weights of earlier rows by this factor.
    """
    check(known, week, counts, means, recent)
    if predictions.shape[0] != y.shape[0] or (times is not None and times.shape[0] != y.shape[0]):
        raise ValueError("predictions, targets and times have different lengths")
    cdef Py_ssize_t i
    cdef double time = NAN
    cdef double told[N_FORECASTS]
    cdef bint timed = times is not None
    with nogil:
        for i in range(y.shape[0]):
            if timed:
                time = times[i]
            tell(&known[0], week, time, told)
            if scorable(predictions[i], y[i]):
                score(&counts[0], means, recent, told, predictions[i], y[i], fade)
            if fabs(y[i]) <= LARGEST:
                learn(&known[0], week, time, y[i], fade)


def forecast(
    double[::1] known not None, double[:, ::1] week not None, double time, double[::1] told not None
):
    """Forecast a row; parameters as for `follow`."""
    if known.shape[0] != N_KNOWN or week.shape[1] != N_WEEK or told.shape[0] != N_FORECASTS:
        raise ValueError("the tables of baselines have a wrong shape")
    tell(&known[0], week, time, &told[0])


def follow_late(
    double[::1] known not None,
    double[:, ::1] week not None,
    double[::1] counts not None,
    double[:, ::1] means not None,
    double[:, ::1] recent not None,
    const long long[::1] events not None,
    double[:, ::1] told not None,
    const double[::1] predictions not None,
    const double[::1] y not None,
    const double[::1] times not None,
    double fade,
):
    """Forecast rows, and score and learn rows whose labels arrive later, in the order of events.

    Parameters
    ----------
    known, week, counts, means, recent, fade
        As for `follow`.
    events : array of int
        Row i is forecast at i; its label arrives at -1 - i.
    told : array of float, shape (rows, FORECASTS)
        The forecasts of each row: read when its label arrives, written when it is forecast.
    predictions, y, times : arrays of float
        Of each row. A label that is NaN is left out.
    """
    check(known, week, counts, means, recent)
    cdef Py_ssize_t rows = y.shape[0], i, row
    if (
        predictions.shape[0] != rows or times.shape[0] != rows or told.shape[0] != rows
        or told.shape[1] != N_FORECASTS
    ):
        raise ValueError("predictions, targets, times and forecasts have different lengths")
    for i in range(events.shape[0]):
        if not -rows <= events[i] < rows:
            raise ValueError(f"event {events[i]} is of none of {rows} rows")
    with nogil:
        for i in range(events.shape[0]):
            row = events[i]
            if row >= 0:
                tell(&known[0], week, times[row], &told[row, 0])
                continue
            row = -1 - row
            if scorable(predictions[row], y[row]):
                score(&counts[0], means, recent, &told[row, 0], predictions[row], y[row], fade)
            if fabs(y[row]) <= LARGEST:
                learn(&known[0], week, times[row], y[row], fade)
