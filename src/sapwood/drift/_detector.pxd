"""The state of a change detector, and the functions that update it."""

cdef enum:
    SHIFTS = 3  # sizes of a change, upwards and downwards
    SIDES = 6


cdef struct Side:
    # A change of one size in one direction.
    double evidence   # that there was one
    double likeliest  # Page's statistic, the logarithm of the largest product
    double since      # the row with which that began, counted from 1
    double before     # the mean as it was then
    double excess     # the sum of the values since then, each from that mean


cdef struct Detector:
    double rows       # of all
    double known      # rows since the detector was last reset
    double mean       # of about the last rows
    double variance
    Side sides[SIDES]


cdef struct Calm:
    # One over the factor by which sums of values vary more than those of independent ones.
    double calm
    double toll[SHIFTS]         # of each size of a change
    double toll_factor[SHIFTS]  # exp(-toll)


cdef struct Found:
    double since
    double before
    double after


cdef bint see(
    Detector* own, double value, double limit, Py_ssize_t first, Py_ssize_t last, Found* found
) noexcept nogil


cdef bint see_dependent(
    Detector* own, double value, const Calm* calm, double limit, Py_ssize_t first,
    Py_ssize_t last, Found* found,
) noexcept nogil


cdef void set_calm(Calm* own, double calm) noexcept nogil
