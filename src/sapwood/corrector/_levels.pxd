"""Candidates that follow the stream: the faded mean of y at several rates.

For each rate there are the faded mean of y (its level) and that of a model's prediction (its
outlook). It says the level, and adds how far the prediction is from its own faded mean, times a
slope from 0 to 1: the faded regression of the one distance on the other, judged by what the level
and the outlook were when the row was predicted. With a slope of 1 this adds the faded mean of the
errors to the prediction; with 0 it follows y alone, which is best where y hardly changes from row
to row and the features say little.
"""

from sapwood.corrector._evidence cimport weighted_share

cdef enum:
    LEVELS = 3

cdef struct Levels:
    # Of each rate:
    double rate[LEVELS]     # the share of a row of weight 1 in the faded means
    double level[LEVELS]    # faded mean of y
    double outlook[LEVELS]  # faded mean of the prediction
    double slope[LEVELS]
    double joint[LEVELS]    # faded sum of the products of both distances
    double square[LEVELS]   # faded sum of the squares of the prediction's distance


cdef struct Distances:
    # What levels were when a row was predicted.
    double level[LEVELS]
    double beyond[LEVELS]   # how far the prediction was from each outlook


cdef inline void start_levels(Levels* levels, double y) noexcept nogil:
    """Start from the first y of all."""
    cdef Py_ssize_t i
    for i in range(LEVELS):
        levels.level[i] = levels.outlook[i] = y
        levels.slope[i] = 1.0
        levels.joint[i] = levels.square[i] = 0.0


cdef inline void say_levels(
    const Levels* levels, double prediction, Distances* distances, double* said
) noexcept nogil:
    """Set what each rate says, and from what."""
    cdef Py_ssize_t i
    for i in range(LEVELS):
        distances.level[i] = levels.level[i]
        distances.beyond[i] = prediction - levels.outlook[i]
        said[i] = levels.level[i] + levels.slope[i] * distances.beyond[i]


cdef inline void judge_levels(
    Levels* levels, const Distances* distances, double y, double fade, double w
) noexcept nogil:
    """Take the label of what was said."""
    cdef Py_ssize_t i
    cdef double weighted
    for i in range(LEVELS):
        weighted = w * distances.beyond[i]
        levels.joint[i] = fade * levels.joint[i] + weighted * (y - distances.level[i])
        levels.square[i] = fade * levels.square[i] + weighted * distances.beyond[i]


cdef inline void settle_levels(Levels* levels) noexcept nogil:
    """Compute the slopes from all labels so far."""
    cdef Py_ssize_t i
    cdef double slope
    for i in range(LEVELS):
        slope = levels.joint[i] / levels.square[i] if levels.square[i] > 0.0 else 1.0
        slope = slope if slope > 0.0 else 0.0
        levels.slope[i] = slope if slope < 1.0 else 1.0


cdef inline void follow_levels(
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
        levels.outlook[i] += share * (prediction - levels.outlook[i])
