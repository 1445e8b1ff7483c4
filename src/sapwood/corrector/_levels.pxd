"""Candidates that follow the stream: the exponentially weighted mean of y at several rates.

For each rate there are the exponentially weighted means of y (the level) and of the prediction of
the model (`predicted`). The candidate is the level, plus the distance of the prediction from its
own mean times a slope from 0 to 1. The slope is the exponentially weighted regression of y - level
on this distance, with the values of both means at the time of the prediction. With a slope of 1,
the mean of the errors is added to the prediction. With 0, the candidate is the mean of y alone,
which is best where y hardly changes from row to row and the features have little information.
"""

from sapwood.corrector._evidence cimport weighted_share

cdef enum:
    LEVELS = 3

cdef struct Levels:
    # Of each rate:
    double rate[LEVELS]     # the share of a row of weight 1 in the means
    double level[LEVELS]    # exponentially weighted mean of y
    double predicted[LEVELS]  # exponentially weighted mean of the prediction
    double slope[LEVELS]
    double joint[LEVELS]    # exponentially weighted sum of the products of both distances
    double square[LEVELS]   # exponentially weighted sum of the squares of the prediction's distance


cdef struct Distances:
    # The levels when a row was predicted.
    double level[LEVELS]
    double beyond[LEVELS]   # how far the prediction was from each predicted


cdef inline void start_levels(Levels* levels, double y) noexcept nogil:
    """Start from the first y of all."""
    cdef Py_ssize_t i
    for i in range(LEVELS):
        levels.level[i] = levels.predicted[i] = y
        levels.slope[i] = 1.0
        levels.joint[i] = levels.square[i] = 0.0


cdef inline void predict_levels(
    const Levels* levels, double prediction, Distances* distances, double* candidates
) noexcept nogil:
    """Set the candidate of each rate, and the distances that it uses."""
    cdef Py_ssize_t i
    for i in range(LEVELS):
        distances.level[i] = levels.level[i]
        distances.beyond[i] = prediction - levels.predicted[i]
        candidates[i] = levels.level[i] + levels.slope[i] * distances.beyond[i]


cdef inline void score_levels(
    Levels* levels, const Distances* distances, double y, double decay, double w
) noexcept nogil:
    """Learn the label of an issued prediction."""
    cdef Py_ssize_t i
    cdef double weighted
    for i in range(LEVELS):
        weighted = w * distances.beyond[i]
        levels.joint[i] = decay * levels.joint[i] + weighted * (y - distances.level[i])
        levels.square[i] = decay * levels.square[i] + weighted * distances.beyond[i]


cdef inline void solve_levels(Levels* levels) noexcept nogil:
    """Compute the slopes from all labels so far."""
    cdef Py_ssize_t i
    cdef double slope
    for i in range(LEVELS):
        slope = levels.joint[i] / levels.square[i] if levels.square[i] > 0.0 else 1.0
        slope = slope if slope > 0.0 else 0.0
        levels.slope[i] = slope if slope < 1.0 else 1.0


cdef inline void update_levels(
    Levels* levels, double prediction, double y, double w
) noexcept nogil:
    """Follow a y, and what is predicted for its row."""
    cdef Py_ssize_t i
    cdef double share
    for i in range(LEVELS):
        share = levels.rate[i]
        if w != 1.0:
            share = weighted_share(share, w)
        levels.level[i] += share * (y - levels.level[i])
        levels.predicted[i] += share * (prediction - levels.predicted[i])
