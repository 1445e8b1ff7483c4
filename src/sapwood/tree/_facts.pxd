"""Statistics of each column besides those of leaves: the grid of its values, its permutation
importance, and a few sample rows.

All values so far are multiples of 10 ** -decimals, so split points between them can be round.

The *cost* of a column is its permutation importance: the growth of the squared error if the value
of a row is replaced by that of another. It is estimated online. One row in `stride_of` is predicted
again with each value of one of SAMPLES earlier rows: one in PERMUTED at first, fewer as evidence
accumulates, and the weight of each grows in proportion. One row in RENEWED replaces an earlier row.
A hash of the row's number selects rows and samples, as a fixed step might coincide with a period of
the stream. The exponentially weighted cost has a memory of LATELY_ROWS rows, and of at least
LEAST_LATELY rows that were permuted.

The *range* of a column is that of the values that were learned, -LARGEST to LARGEST for a category.
Linear models take a value beyond it as its nearest end: they do not extrapolate.
"""

from libc.math cimport ceil, fabs, ldexp
from libc.stdint cimport int64_t, uint64_t

cdef enum:
    COARSEST = -3   # decimals: multiples of 1,000
    FINEST = 4
    NO_GRID = 5
    SAMPLES = 32    # rows that are kept
    RENEWED = 64    # one row in so many is kept
    PERMUTED = 8    # one row in so many is tried with other values, at first
    MANY_ROWS = 2048     # from so many rows on half as many; then again whenever they have doubled,
    MOST_PERMUTED = 64   # until one row in so many is tried
    LATELY_ROWS = 2048   # the memory of the weighted cost: as long as rows of the past are kept
    LEAST_LATELY = 64    # but at least so many rows that were tried
    MOST_MOVING = 64  # columns of a row in which another value leads to another leaf

cdef struct ColumnFacts:
    # As FACTS_RECORD of layout.py. With several targets, each has a cost of its own elsewhere.
    double decimals
    double cost
    double weight
    double late_cost
    double late_weight
    double last
    double rises
    double low
    double high


cdef inline double ten_to(int power) noexcept nogil:
    """10 ** power, for 0 to FINEST."""
    if power < 2:
        return 10.0 if power else 1.0
    return 100.0 if power == 2 else 1000.0 if power == 3 else 10000.0


cdef inline bint is_on_grid(double x, int decimals) noexcept nogil:
    """Whether a number is a multiple of 10 ** -decimals, as nearly as doubles can be."""
    cdef double scaled = x * ten_to(decimals) if decimals >= 0 else x / ten_to(-decimals), whole
    if not fabs(scaled) < ldexp(1.0, 52):
        return False
    whole = <double><int64_t>(scaled + (0.5 if scaled >= 0.0 else -0.5))
    return (whole / ten_to(decimals) if decimals >= 0 else whole * ten_to(-decimals)) == x


cdef inline bint leaves_grids(ColumnFacts* facts, double x) noexcept nogil:
    """Find a finer grid if a value is not on that of its column; whether there is none."""
    cdef int decimals = <int>facts.decimals
    while decimals < NO_GRID and not is_on_grid(x, decimals):
        decimals += 1
    facts.decimals = decimals
    return decimals == NO_GRID


cdef inline double round_cut(double threshold, double on_grid) noexcept nogil:
    """The number on a grid that divides its numbers as a threshold does: x < it where x < that."""
    cdef int decimals = <int>on_grid
    cdef double scaled
    if decimals >= NO_GRID:
        return threshold
    scaled = threshold * ten_to(decimals) if decimals >= 0 else threshold / ten_to(-decimals)
    if not fabs(scaled) < ldexp(1.0, 50):
        return threshold
    scaled = ceil(scaled) - 1.0  # rounding may have moved it by one
    while on_grid_at(scaled, decimals) < threshold:
        scaled += 1.0
    return on_grid_at(scaled, decimals) + 0.0


cdef inline double on_grid_at(double number, int decimals) noexcept nogil:
    return number / ten_to(decimals) if decimals >= 0 else number * ten_to(-decimals)


cdef inline uint64_t hashed(uint64_t number) noexcept nogil:
    """Bits that look random (the finalizer of SplitMix64)."""
    number += <uint64_t>0x9E3779B97F4A7C15
    number = (number ^ (number >> 30)) * <uint64_t>0xBF58476D1CE4E5B9
    number = (number ^ (number >> 27)) * <uint64_t>0x94D049BB133111EB
    return number ^ (number >> 31)


cdef inline uint64_t stride_of(double rows) noexcept nogil:
    """One row in how many is tried with other values, after so many rows; a power of 2."""
    cdef uint64_t stride = PERMUTED
    while stride < MOST_PERMUTED and rows * PERMUTED >= <double>MANY_ROWS * stride:
        stride *= 2
    return stride


cdef inline double keep_of(uint64_t stride) noexcept nogil:
    """What is left of the exponentially weighted sums when the next row is tried."""
    return 1.0 - 1.0 / <double>max(<Py_ssize_t>(LATELY_ROWS // stride), LEAST_LATELY)


cdef inline void add_cost(double* facts, double cost, double w, double keep) noexcept nogil:
    """Add what it cost to get a column wrong, to all so far and to an exponentially weighted sum.

    They start with the field `cost` of a record: the cost, its weight, and both weighted.
    """
    facts[0] += w * cost
    facts[1] += w
    facts[2] = keep * facts[2] + w * cost
    facts[3] = keep * facts[3] + w


cdef inline double slope_of(const double* coefficients, const double* shares) noexcept nogil:
    """The slope of the combined prediction of experts in a term, given its coefficients."""
    cdef double slope = shares[1] * coefficients[0] + shares[2] * coefficients[1]
    slope = slope + shares[3] * coefficients[2]
    return slope + shares[4] * coefficients[3]
