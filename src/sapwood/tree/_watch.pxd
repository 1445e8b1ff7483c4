"""What a leaf watches: the slots of each feature.

A number has `count` slots of equal width, side by side; the two at the ends also take all that
lies beyond. Where they lie is decided by the slots of the parent that have rows, or, in the first
leaf of all, by the first rows, which are kept as they are until there are enough. A category has a slot for each code, as if it
were a number with slots of width 1. After the slots of a feature comes one more, for the rows in
which it is missing.
"""

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


cdef inline double place_of(const Grid* grid, Py_ssize_t count, double x) noexcept nogil:
    """Where x lies, in slots from the grid's low end, held within the grid; NaN stays NaN."""
    cdef double place = (x - grid.low) * grid.inverse
    place = place if not place < 0.0 else 0.0
    return place if not place > <double>count else <double>count


cdef inline Py_ssize_t slot_at(double place, Py_ssize_t count) noexcept nogil:
    """The slot of a place; the one after all others if it is NaN."""
    cdef Py_ssize_t slot
    if place != place:
        return count
    slot = <Py_ssize_t>place
    return slot if slot < count else count - 1


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


cdef inline void keep_row(
    Grid* grid, Slot* slots, Py_ssize_t count, double x, double target, double residual, double w
) noexcept nogil:
    """Keep a row as it is; with the last of them, lay the grid and put all into its slots."""
    cdef KeptRow rows[RAW]
    cdef KeptRow* kept = <KeptRow*>slots
    cdef Py_ssize_t row = <Py_ssize_t>grid.kept, enough = most_kept(count), slot
    kept[row].sums = Slot(w, target, residual)
    kept[row].x = x
    grid.kept += 1.0
    if row + 1 < enough:
        return
    for row in range(enough):
        rows[row] = kept[row]
    for slot in range(count):
        slots[slot] = Slot(0.0, 0.0, 0.0)
    lay_grid(grid, rows, enough, count)
    for row in range(enough):
        slot_add(
            slots + slot_at(place_of(grid, count, rows[row].x), count),
            rows[row].sums.target,
            rows[row].sums.residual,
            rows[row].sums.weight,
        )


cdef inline void lay_grid(
    Grid* grid, const KeptRow* rows, Py_ssize_t kept, Py_ssize_t count
) noexcept nogil:
    """Lay the slots over all x that were kept, but for a few that are far from the rest."""
    cdef double smallest[FEW]
    cdef double largest[FEW]
    cdef double low, high, inner
    cdef Py_ssize_t row
    for row in range(FEW):
        smallest[row] = INFINITY
        largest[row] = INFINITY
    for row in range(kept):
        keep_smallest(smallest, rows[row].x)
        keep_smallest(largest, -rows[row].x)
    low, high = smallest[0], -largest[0]
    inner = -largest[FEW - 1] - smallest[FEW - 1]
    if inner > 0.0:
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
    cdef double width = high / (count - 2) - low / (count - 2), first
    cdef int exponent
    if width == 0.0:
        width = (fabs(low) if low != 0.0 else 1.0) * ldexp(1.0, -20)
    width = width if width > 1e-290 else 1e-290
    width = frexp(width, &exponent)
    width = ldexp(ceil(width * 16.0), exponent - 4)
    first = floor(low / width - 0.5)
    grid.low = first * width if fabs(first) < ldexp(1.0, 50) else low - width
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
