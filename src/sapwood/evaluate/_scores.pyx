"""Keep the score of predictions, row by row."""

from libc.math cimport fabs

__all__ = ["FIELDS", "score"]

cdef enum:
    ROWS
    TOTAL_ABSOLUTE
    TOTAL_SQUARE
    TOTAL_Y
    TOTAL_SPREAD
    WEIGHT
    FADED_ABSOLUTE
    FADED_SQUARE
    FADED_Y
    FADED_SPREAD

FIELDS = (
    "rows",
    "total_absolute",
    "total_square",
    "total_y",
    "total_spread",
    "weight",
    "faded_absolute",
    "faded_square",
    "faded_y",
    "faded_spread",
)


cdef inline void take(
    double *sums, double weight, double kept, double error, double y
) noexcept nogil:
    """Add a row of weight 1 to means of errors and of y, and to the squares of y around its mean.

    `weight` is that of all rows with this one, `kept` what the earlier squares are multiplied by.
    """
    cdef double shift = y - sums[2]
    sums[0] += (fabs(error) - sums[0]) / weight
    sums[1] += (error * error - sums[1]) / weight
    sums[2] += shift / weight
    sums[3] = kept * sums[3] + shift * (y - sums[2])


def score(
    double[::1] state not None,
    double[:, ::1] recent not None,
    const double[::1] predictions not None,
    const double[::1] y not None,
    double fade,
):
    """Take the predictions of some rows into account.

    Parameters
    ----------
    state : array of float
        Of `FIELDS`: the rows, means of errors and of y, and sums of squares of y around its mean;
        of all rows, and exponentially weighted ones. Changed.
    recent : array of float, shape (window, 2)
        The errors and targets of the last rows, row n at place n modulo the window. Changed.
    predictions, y : arrays of float
        What was predicted, and what was right.
    fade : float
        Each new row multiplies the weights of earlier rows by this factor.
    """
    if state.shape[0] != FADED_SPREAD + 1 or recent.shape[0] < 1 or recent.shape[1] != 2:
        raise ValueError("the tables of scores have a wrong shape")
    if predictions.shape[0] != y.shape[0]:
        raise ValueError(
            f"there are {predictions.shape[0]} predictions and {y.shape[0]} targets: the lengths "
            "must agree"
        )
    cdef Py_ssize_t i, place = (<Py_ssize_t>state[ROWS]) % recent.shape[0]
    cdef double error
    with nogil:
        for i in range(y.shape[0]):
            error = y[i] - predictions[i]
            state[ROWS] += 1.0
            state[WEIGHT] = fade * state[WEIGHT] + 1.0
            take(&state[TOTAL_ABSOLUTE], state[ROWS], 1.0, error, y[i])
            take(&state[FADED_ABSOLUTE], state[WEIGHT], fade, error, y[i])
            recent[place, 0] = error
            recent[place, 1] = y[i]
            place += 1
            if place == recent.shape[0]:
                place = 0
