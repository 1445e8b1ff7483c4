"""Following the stream: the tree's prediction, corrected by what it lately got wrong.

For each of a few rates the tracker fades the mean of y (its level) and that of the tree's
prediction (its outlook). It then predicts the level, and adds how far the tree's prediction is
from its own faded mean, times a slope from 0 to 1, which is the faded regression of the one
distance on the other. With a slope of 1 this adds the faded mean of the residuals to the tree's
prediction; with 0 it follows y alone, which is best where y hardly changes from row to row and
the features say little. The first rate is none: the tree's prediction as it is.
"""

from sapwood.tree._model cimport weighted_share

cdef enum:
    TRACKS = 6

cdef struct Tracker:
    # Of each rate:
    double rate[TRACKS]     # the share of a row of weight 1 in the faded means
    double level[TRACKS]    # faded mean of y
    double outlook[TRACKS]  # faded mean of the tree's prediction
    double joint[TRACKS]    # faded sum of the products of both distances
    double square[TRACKS]   # faded sum of the squares of the prediction's distance
    double error[TRACKS]    # faded squared error


cdef inline double faded(double sum_of_squares) noexcept nogil:
    """What is left of a sum a row later."""
    return 0.999 * sum_of_squares


cdef inline double tracked(
    const Tracker* tracker, double tree, double* predictions
) noexcept nogil:
    """Set what each rate predicts; return that of the smallest error, the first of equals."""
    cdef Py_ssize_t best = 0, i
    cdef double slope
    predictions[0] = tree
    for i in range(1, TRACKS):
        slope = tracker.joint[i] / tracker.square[i] if tracker.square[i] > 0.0 else 1.0
        slope = slope if slope > 0.0 else 0.0
        slope = slope if slope < 1.0 else 1.0
        predictions[i] = tracker.level[i] + slope * (tree - tracker.outlook[i])
    for i in range(1, TRACKS):
        best = i if tracker.error[i] < tracker.error[best] else best
    return predictions[best]


cdef inline void follow(
    Tracker* tracker, double tree, const double* predictions, double y, double w
) noexcept nogil:
    """Learn y, for which `tracked` has set the predictions."""
    cdef Py_ssize_t i
    cdef double share, from_level, from_outlook
    tracker.error[0] = faded(tracker.error[0]) + w * (y - tree) * (y - tree)
    for i in range(1, TRACKS):
        tracker.error[i] = (
            faded(tracker.error[i]) + w * (y - predictions[i]) * (y - predictions[i])
        )
        from_level = y - tracker.level[i]
        from_outlook = tree - tracker.outlook[i]
        tracker.joint[i] = faded(tracker.joint[i]) + w * from_level * from_outlook
        tracker.square[i] = faded(tracker.square[i]) + w * from_outlook * from_outlook
        share = tracker.rate[i]
        if w != 1.0:
            share = weighted_share(share, w)
        tracker.level[i] += share * from_level
        tracker.outlook[i] += share * from_outlook


cdef inline void start_following(Tracker* tracker, double y) noexcept nogil:
    """Learn the first y of all."""
    cdef Py_ssize_t i
    for i in range(TRACKS):
        tracker.level[i] = tracker.outlook[i] = y
