"""Keep the score of bounds around predictions, row by row."""

__all__ = ["FIELDS", "score_bounds"]

cdef enum:
    ROWS            # that had bounds
    INSIDE          # the share of y within them
    WIDTH           # their mean width
    SCORE           # the mean interval score
    WEIGHT          # exponentially weighted ones
    FADED_INSIDE
    FADED_WIDTH
    FADED_SCORE

FIELDS = (
    "rows",
    "coverage",
    "width",
    "score",
    "weight",
    "faded_coverage",
    "faded_width",
    "faded_score",
)


def score_bounds(
    double[:, ::1] state not None,
    const double[::1] levels not None,
    const double[:, ::1] bounds not None,
    const double[::1] y not None,
    double fade,
):
    """Take the bounds of some rows into account; rows whose bounds are NaN are left out.

    Parameters
    ----------
    state : array of float, shape (levels, 8)
        Of `FIELDS`, for each level. Changed.
    levels : array of float
        The shares of y that are to be within bounds.
    bounds : array of float, shape (rows, 2 levels)
        Lower and upper of each level.
    y : array of float
        What came.
    fade : float
        Each new row multiplies the weights of earlier rows by this factor.
    """
    cdef Py_ssize_t row, level, count = levels.shape[0]
    cdef double lower, upper, inside, width, score
    if state.shape[0] != count or state.shape[1] != FADED_SCORE + 1:
        raise ValueError("the table of scores has a wrong shape")
    if bounds.shape[0] != y.shape[0] or bounds.shape[1] != 2 * count:
        raise ValueError("the bounds have a wrong shape")
    with nogil:
        for row in range(y.shape[0]):
            for level in range(count):
                lower, upper = bounds[row, 2 * level], bounds[row, 2 * level + 1]
                if not lower <= upper:
                    continue
                inside = lower <= y[row] <= upper
                width = upper - lower
                score = lower - y[row] if y[row] < lower else 0.0
                score += y[row] - upper if y[row] > upper else 0.0
                score = width + 2.0 / (1.0 - levels[level]) * score
                state[level, ROWS] += 1.0
                state[level, WEIGHT] = fade * state[level, WEIGHT] + 1.0
                take(&state[level, INSIDE], state[level, ROWS], inside, width, score)
                take(&state[level, FADED_INSIDE], state[level, WEIGHT], inside, width, score)


cdef inline void take(
    double* means, double weight, double inside, double width, double score
) noexcept nogil:
    """Add a row of weight 1 to means; `weight` is that of all rows with this one."""
    means[0] += (inside - means[0]) / weight
    means[1] += (width - means[1]) / weight
    means[2] += (score - means[2]) / weight
