"""How the experts of a leaf forget, are scored and are inherited."""

cdef enum:
    FAST = 3  # the first expert that forgets fast

cdef extern from *:
    """
    #define SAPWOOD_FADE 0.99
    #define SAPWOOD_MARGIN 0.1
    #define SAPWOOD_EARLY 8.0
    #define SAPWOOD_NEARER 1e-6
    #define SAPWOOD_MOST_INHERITED 10.0
    #define SAPWOOD_INHERITED_ERROR 0.5
    #define SAPWOOD_LARGEST_MERIT 1e204
    static const double sapwood_least_shares[4] = {0.0, 0.02, 0.1, 0.3};
    """
    # How much of an expert's squared error a leaf still remembers a row later.
    const double FADE "SAPWOOD_FADE"
    # How far beyond the range of y that was seen a prediction may go, as a share of it.
    const double MARGIN "SAPWOOD_MARGIN"
    # If, of the first few y, one is so much nearer to 0 than the first, it becomes the origin.
    const double EARLY "SAPWOOD_EARLY"
    const double NEARER "SAPWOOD_NEARER"
    # The rates at which linear models forget: the least share of an error that a row moves them by.
    const double* LEAST "sapwood_least_shares"
    # The mean of a side counts for at most so many rows when a child starts from it.
    const double MOST_INHERITED "SAPWOOD_MOST_INHERITED"
    # A child trusts its parent's errors half as much as its own.
    const double INHERITED_ERROR "SAPWOOD_INHERITED_ERROR"
    # The merit of a split that is kept: of targets that hardly varied before, it has no bounds.
    const double LARGEST_MERIT "SAPWOOD_LARGEST_MERIT"
    # Of an exponentially weighted sum of squares, which counts for about one over this many rows.
    const double FADED_SHARE "(1.0 - SAPWOOD_FADE)"
