"""How the experts of a leaf forget and are judged: the same for one target and for several."""

cdef enum:
    FAST = 3  # the first expert that forgets fast

cdef extern from *:
    """
    #define SAPWOOD_FADE 0.99
    #define SAPWOOD_MARGIN 0.1
    #define SAPWOOD_EARLY 8.0
    #define SAPWOOD_NEARER 1e-6
    static const double sapwood_least_shares[4] = {0.0, 0.02, 0.1, 0.3};
    """
    # How much of an expert's squared error a leaf still remembers a row later.
    const double FADE "SAPWOOD_FADE"
    # How far beyond the range of y that was seen a prediction may go, as a share of it.
    const double MARGIN "SAPWOOD_MARGIN"
    # If, of the first few y, one is so much nearer to 0 than the first, it becomes the origin.
    const double EARLY "SAPWOOD_EARLY"
    const double NEARER "SAPWOOD_NEARER"
    # The rates at which linear models forget: shares of an error by which a row moves them at least.
    const double* LEAST "sapwood_least_shares"
