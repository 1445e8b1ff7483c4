"""Forecasts that need no model, and their errors, row by row."""

from libc.math cimport fabs, floor, isnan, NAN

__all__ = ["FORECASTS", "HOURS", "KNOWN", "follow", "forecast", "learn_and_score"]

cdef enum:  # of what is known
    ROWS
    MEAN
    WEIGHT
    FADED_MEAN
    LAST
    N_KNOWN

cdef enum:  # of each hour of a week
    HOUR
    SUM
    COUNT
    BEFORE
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
    WEEK = 168

cdef double LARGEST = 1e140  # whose square can be summed up

KNOWN, HOURS, FORECASTS = N_KNOWN, WEEK, N_FORECASTS


cdef inline Py_ssize_t slot_of(double hour) noexcept nogil:
    """Return the place of an hour, counted from 1970, in its week."""
    return <Py_ssize_t>(hour - WEEK * floor(hour / WEEK))


cdef inline bint is_time(double time) noexcept nogil:
    return fabs(time) < 1e15  # so that hours are exact; false for NaN


cdef inline void tell(
    const double *known, const double[:, ::1] week, double time, double *told
) noexcept nogil:
    """Forecast a row at a time, which may be NaN."""
    cdef Py_ssize_t slot
    cdef double hour, value = NAN
    told[BY_LAST] = known[LAST]
    told[BY_MEAN] = known[MEAN]
    told[BY_FADED_MEAN] = known[FADED_MEAN]
    if is_time(time):
        hour = floor(time / 3600.0)
        slot = slot_of(hour)
        if week[slot, COUNT] > 0 and week[slot, HOUR] < hour:
            value = week[slot, SUM] / week[slot, COUNT]
        elif week[slot, HOUR] == hour:
            value = week[slot, BEFORE]
    told[FROM_WEEK] = 0.0 if isnan(value) else 1.0
    told[BY_WEEK] = known[LAST] if isnan(value) else value


cdef inline void learn(
    double *known, double[:, ::1] week, double time, double y, double fade
) noexcept nogil:
    """Learn the label of a row."""
    cdef Py_ssize_t slot
    cdef double hour
    known[ROWS] += 1.0
    known[MEAN] += (y - known[MEAN]) / known[ROWS]
    known[WEIGHT] = fade * known[WEIGHT] + 1.0
    known[FADED_MEAN] += (y - known[FADED_MEAN]) / known[WEIGHT]
    known[LAST] = y
    if is_time(time):
        hour = floor(time / 3600.0)
        slot = slot_of(hour)
        if week[slot, COUNT] == 0 or hour > week[slot, HOUR]:
            if week[slot, COUNT] > 0:
                week[slot, BEFORE] = week[slot, SUM] / week[slot, COUNT]
            week[slot, HOUR] = hour
            week[slot, SUM] = y
            week[slot, COUNT] = 1.0
        elif hour == week[slot, HOUR]:
            week[slot, SUM] += y
            week[slot, COUNT] += 1.0


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
        known.shape[0] != N_KNOWN or week.shape[0] != WEEK or week.shape[1] != N_WEEK
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
        What forecasts are made from: the rows and the mean of labels, their faded weight and faded
        mean, and the last one. Changed.
    week : array of float, shape (HOURS, 4)
        For each hour of a week, the last one in which there was a label, counted from 1970, the sum
        and number of labels in it, and the mean of the one before. Changed.
    counts : array of float, shape (3,)
        The rows that were scored, their faded weight, and for how many of them the same hour of an
        earlier week was known. Changed.
    means : array of float, shape (5, 4)
        Of each baseline, the mean absolute and squared error, and both faded; the last line has the
        mean error of the model, and at place 2 its faded one. Changed.
    recent : array of float, shape (window, 4)
        The errors of the last rows. Changed.
    predictions, y : arrays of float
        What the model predicted, and what was right.
    times : array of float, optional
        In seconds since 1970, NaN where one is missing.
    fade : float
        What the weight of a row is multiplied by at each later one.
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
            if scorable(predictions[i], y[i]):
                tell(&known[0], week, time, told)
                score(&counts[0], means, recent, told, predictions[i], y[i], fade)
            if fabs(y[i]) <= LARGEST:
                learn(&known[0], week, time, y[i], fade)


def forecast(
    double[::1] known not None, double[:, ::1] week not None, double time, double[::1] told not None
):
    """Forecast a row whose label will come later; parameters as for `follow`."""
    if known.shape[0] != N_KNOWN or week.shape[0] != WEEK or told.shape[0] != N_FORECASTS:
        raise ValueError("the tables of baselines have a wrong shape")
    tell(&known[0], week, time, &told[0])


def learn_and_score(
    double[::1] known not None,
    double[:, ::1] week not None,
    double[::1] counts not None,
    double[:, ::1] means not None,
    double[:, ::1] recent not None,
    const double[::1] told not None,
    double prediction,
    double y,
    double time,
    double fade,
):
    """Score what was told of a row by `forecast`, and learn its label."""
    check(known, week, counts, means, recent)
    if told.shape[0] != N_FORECASTS:
        raise ValueError("the tables of baselines have a wrong shape")
    if scorable(prediction, y):
        score(&counts[0], means, recent, &told[0], prediction, y, fade)
    if fabs(y) <= LARGEST:
        learn(&known[0], week, time, y, fade)
