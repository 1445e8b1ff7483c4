"""Sums of standardised labels and errors in the bins of features.

A label, and an error of the model inside, are standardised by their exponentially weighted mean and
variance before the row, and held within ±3. Of each feature each bin has the number of its rows and
the sums of both: one bin between two thresholds each, and the last one for missing values.
"""

from libc.math cimport isfinite, isnan, sqrt

__all__ = ["BINS", "THRESHOLD_COUNT", "TRACKS", "add", "standardised"]

cdef enum:
    LABEL, ERROR, ALL_SCORES
cdef enum:
    WEIGHT, MEAN, VARIANCE, TRACK
cdef enum:
    THRESHOLDS = 7
    MISSING = THRESHOLDS + 1
    ALL_BINS

cdef double LABEL_RATE = 0.999
cdef double ERROR_RATE = 0.99
cdef double LARGEST = 3.0

BINS, THRESHOLD_COUNT, TRACKS = ALL_BINS, THRESHOLDS, ALL_SCORES * TRACK


cdef double take_in(double *track, double rate, double value) noexcept nogil:
    """Return the standardised value; mean and variance take it in."""
    cdef double difference = value - track[MEAN], score = 0.0, share
    if track[WEIGHT] > 1.0 and track[VARIANCE] > 0.0:
        score = difference / sqrt(track[VARIANCE])
        score = max(-LARGEST, min(LARGEST, score)) if isfinite(score) else 0.0
    track[WEIGHT] = rate * track[WEIGHT] + 1.0
    share = 1.0 / track[WEIGHT]
    track[MEAN] += share * difference
    track[VARIANCE] = (1.0 - share) * (track[VARIANCE] + share * difference * difference)
    return score


def standardised(
    double[::1] tracks,
    const double[::1] y,
    const double[::1] before,
    bint is_first,
    double[:, ::1] scores,
):
    """Standardise labels and errors, one row after the other.

    Parameters
    ----------
    tracks : ndarray of float, shape (TRACKS,)
        Weight, mean and variance of labels and of errors; is changed.
    y, before : ndarray of float, shape (n,)
        The labels, and what the model inside predicted just before each.
    is_first : bool
        Whether the first row is the first of all, which has no prediction.
    scores : ndarray of float, shape (n, 2)
        Gets the results.
    """
    cdef Py_ssize_t row
    with nogil:
        for row in range(y.shape[0]):
            scores[row, LABEL] = take_in(&tracks[LABEL * TRACK], LABEL_RATE, y[row])
            if is_first and row == 0:
                scores[row, ERROR] = 0.0
            else:
                scores[row, ERROR] = take_in(
                    &tracks[ERROR * TRACK], ERROR_RATE, y[row] - before[row]
                )


def add(
    const double[:, ::1] X,
    const long long[::1] places,
    const double[:, ::1] thresholds,
    const double[:, ::1] scores,
    double[:, ::1] sums,
    unsigned char[::1] done,
):
    """Add rows to the bins, once.

    Parameters
    ----------
    X : ndarray of float, shape (n, columns)
        The rows, NaN where a value is missing.
    places : ndarray of int64, shape (d,)
        The columns of the features.
    thresholds : ndarray of float, shape (d, 7)
        Between the bins of each feature, ascending.
    scores : ndarray of float, shape (n, 2)
        Of the rows.
    sums : ndarray of float, shape (d, BINS * 3)
        Of each bin its rows, and the sums of both scores; is changed.
    done : ndarray of uint8, shape (1,)
        Whether this was done; nothing is done twice.
    """
    cdef Py_ssize_t row, feature, slot, each
    cdef double value
    if done[0]:
        return
    with nogil:
        for row in range(X.shape[0]):
            for feature in range(places.shape[0]):
                value = X[row, places[feature]] if places[feature] < X.shape[1] else 0.0
                if isnan(value) or places[feature] >= X.shape[1]:
                    slot = MISSING
                else:
                    slot = 0
                    for each in range(THRESHOLDS):
                        slot += value > thresholds[feature, each]
                sums[feature, 3 * slot] += 1.0
                sums[feature, 3 * slot + 1] += scores[row, LABEL]
                sums[feature, 3 * slot + 2] += scores[row, ERROR]
    done[0] = 1
