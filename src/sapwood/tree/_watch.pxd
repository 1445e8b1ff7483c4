"""What a leaf watches: the slots of each feature.

A number has `count` slots of equal width, side by side; the two at the ends also take all that
lies beyond. Where they lie is decided by the slots of the parent that have rows, or, in the first
leaf of all, by the first rows, which are kept as they are until there are enough. A category has
a slot for each code, as if it were a number with slots of width 1. After the slots of a feature
comes one more, for the rows in which it is missing.
"""

from libc.float cimport DBL_MAX
from libc.math cimport INFINITY, ceil, fabs, floor, frexp, ldexp

cdef enum:
    RAW = 24  # rows that are kept before a grid is laid, if there is room for them
    FEW = 3   # x at either end, of which all but the last may be left out if they are far away

cdef struct Grid:
    double low      # where the first slot starts
    double width    # of a slot
    double inverse  # 1 / width, or 0 while rows are still kept as they are
    double kept     # how many are

cdef struct Slot:
    double weight
    double target    # weighted sum of y, from the leaf's origin
    double residual  # weighted sum of what the linear model could not explain

cdef struct KeptRow:
    # A row that is kept as it is, where slots will be.
    Slot sums
    double x


cdef inline Slot* slot_at(const Slot* slots, Py_ssize_t size, Py_ssize_t slot) noexcept nogil:
    """One of several slots, each of so many doubles: with several targets they have more sums."""
    return <Slot*>(<double*>slots + size * slot)


cdef inline Py_ssize_t slot_of(const Grid* grid, Py_ssize_t count, double x) noexcept nogil:
    """The slot of a number, which is that at an end if it lies beyond."""
    cdef double place = (x - grid.low) * grid.inverse
    cdef double last = <double>count - 0.5
    place = place if place > 0.0 else 0.0
    place = place if place < last else last
    return <Py_ssize_t>place


cdef inline double slot_border(const Grid* grid, Py_ssize_t slot) noexcept nogil:
    """Where a slot starts; in halves, as the range of the slots may exceed the largest double."""
    cdef double half = grid.low / 2 + slot * (grid.width / 2)
    half = half if half < DBL_MAX / 2 else DBL_MAX / 2
    return 2 * half


cdef inline void slot_add(
    Slot* slot, double target, double residual, double w
) noexcept nogil:
    """Add a row, whose target and residual are already weighted."""
    slot.weight += w
    slot.target += target
    slot.residual += residual


cdef inline Py_ssize_t most_kept(Py_ssize_t count) noexcept nogil:
    """How many rows there is room for in so many slots."""
    return min(RAW, count * <Py_ssize_t>sizeof(Slot) // <Py_ssize_t>sizeof(KeptRow))


cdef inline void lay_grid(
    Grid* grid, const double* x, Py_ssize_t step, Py_ssize_t kept, Py_ssize_t count
) noexcept nogil:
    """Lay the slots over all x that were kept, but for a few that are far from the rest.

    They are so many doubles apart.
    """
    cdef double smallest[FEW]
    cdef double largest[FEW]
    cdef double low, high, inner
    cdef Py_ssize_t row
    for row in range(FEW):
        smallest[row] = INFINITY
        largest[row] = INFINITY
    for row in range(kept):
        keep_smallest(smallest, x[step * row])
        keep_smallest(largest, -x[step * row])
    low, high = smallest[0], -largest[0]
    inner = -largest[FEW - 1] - smallest[FEW - 1]
    if inner > 0.0 and kept >= 4 * FEW:
        if high + largest[FEW - 1] > 4.0 * inner:
            high = -largest[FEW - 1]
        if smallest[FEW - 1] - low > 4.0 * inner:
            low = smallest[FEW - 1]
    lay_over(grid, low, high, count)


cdef inline void lay_over(Grid* grid, double low, double high, Py_ssize_t count) noexcept nogil:
    """Lay the slots over a range, with one to spare at either end.

    The width has a short mantissa and the first slot starts at a multiple of it, so that
    thresholds are short numbers.
    """
    cdef double width = high / (count - 3) - low / (count - 3), first
    cdef int exponent
    if width == 0.0:
        width = fabs(low) * ldexp(1.0, -50)
    width = width if width > 1e-290 else 1e-290
    width = frexp(width, &exponent)
    width = ldexp(ceil(width * 16.0), exponent - 4)
    first = floor(low / width) - 1.0
    grid.low = first * width if fabs(first) < ldexp(1.0, 50) else low - width
    grid.low = grid.low if grid.low > -DBL_MAX else -DBL_MAX
    grid.width = width
    grid.inverse = 1.0 / width


cdef inline void keep_smallest(double* smallest, double value) noexcept nogil:
    """Put a value into the ascending list of the FEW smallest, if it is one of them."""
    cdef Py_ssize_t place = FEW - 1
    if value >= smallest[place]:
        return
    while place > 0 and value < smallest[place - 1]:
        smallest[place] = smallest[place - 1]
        place -= 1
    smallest[place] = value
