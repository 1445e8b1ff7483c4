"""A detector of change in the mean of a stream of numbers, after Shiryaev and Roberts.

The value v of a row is measured by what was usual: u = (v - mean) / deviation, held within ±HELD,
with both over about the last MEMORY rows. If the mean moved by λ deviations at some row, the rows
since then are more likely by the product of exp(λu - λ²/2). The evidence is the sum of these
products over all rows at which that may have happened,

    R ← (1 + R) exp(λu - λ²/2 - SLACK λ),

and the mean of the R of a few λ, upwards and downwards, is what has to pass a limit. Without a
change and with independent values the mean of R is about the number of rows, so that a limit of N
is passed after N rows on average, or later. Errors of models depend on each other, and tails are
heavy: this is a rule that was measured, not a proof.

For each R the largest of its products is kept too (Page's statistic). The row at which that product
began is the row at which a change most likely happened.
"""

from libc.math cimport exp, sqrt

__all__ = ["FIELDS", "LARGEST", "watch"]

cdef double HELD = 4.0
cdef double MEMORY = 2000.0
cdef double SHARE = 1.0 / MEMORY
cdef double FIRST_ROWS = 200.0  # before there is evidence
cdef double FIRST_HELD = 30.0   # before values are held
cdef double LEAST_SHIFT = 0.1   # λ; the next ones are twice and four times as large
cdef double SLACK = 0.02
cdef double LARGEST_VALUE = 1e140
LARGEST = LARGEST_VALUE
FIELDS = sizeof(Detector) // sizeof(double)

cdef double[SHIFTS] TOLL
for _shift in range(SHIFTS):
    TOLL[_shift] = LEAST_SHIFT * 2**_shift * (0.5 * LEAST_SHIFT * 2**_shift + SLACK)


cdef void set_calm(Calm* own, double calm) noexcept nogil:
    """Set the power to which evidence is raised, and the tolls of each size of a change."""
    cdef Py_ssize_t shift
    own.calm = calm
    for shift in range(SHIFTS):
        own.toll[shift] = TOLL[shift] * calm
        own.toll_factor[shift] = exp(-own.toll[shift])


cdef Calm INDEPENDENT
set_calm(&INDEPENDENT, 1.0)


cdef inline void begin_anew(Detector* own) noexcept nogil:
    cdef Py_ssize_t side
    own.known = own.mean = own.variance = 0.0
    for side in range(SIDES):
        own.sides[side] = Side(0.0, 0.0, 0.0, 0.0, 0.0)


cdef inline void follow(Detector* own, double value) noexcept nogil:
    """Move the mean and the variance."""
    cdef double share, distance = value - own.mean
    own.known += 1.0
    share = 1.0 / own.known if own.known < MEMORY else SHARE
    own.mean += share * distance
    own.variance += share * (distance * distance * (1.0 - share) - own.variance)


cdef inline double gather(
    Side* side, const Detector* own, double value, double factor, double step
) noexcept nogil:
    """Let one side see a value; return its evidence."""
    side.evidence = (1.0 + side.evidence) * factor
    if side.likeliest <= 0.0:
        side.likeliest = 0.0
        side.since = own.rows
        side.before = own.mean
        side.excess = 0.0
    side.likeliest += step
    side.excess += value - side.before
    return side.evidence


cdef inline void describe(
    const Detector* own, Py_ssize_t first, Py_ssize_t last, Found* found
) noexcept nogil:
    """Find the row since when the mean has changed, by the side with most evidence."""
    cdef Py_ssize_t side, most = first
    for side in range(first + 1, last):
        most = side if own.sides[side].evidence > own.sides[most].evidence else most
    found.since = own.sides[most].since
    found.before = own.sides[most].before
    found.after = found.before + own.sides[most].excess / (own.rows - found.since + 1.0)


cdef bint see(
    Detector* own, double value, double limit, Py_ssize_t first, Py_ssize_t last, Found* found
) noexcept nogil:
    """Take one of independent values in, as `see_dependent` does."""
    return see_dependent(own, value, &INDEPENDENT, limit, first, last, found)


cdef bint see_dependent(
    Detector* own, double value, const Calm* calm, double limit, Py_ssize_t first,
    Py_ssize_t last, Found* found,
) noexcept nogil:
    """Take a value in; whether the sides from first to before last pass a limit together.

    If they do, the change is reported, and the detector is reset. Where values depend on each
    other, calm is one over the factor by which their sums vary more than those of independent
    values: all evidence is raised to that power. With 0, nothing is evidence.
    """
    cdef double deviation, reach, u, held, power = 1.0, size = 0.0, together = 0.0
    cdef Py_ssize_t side, shift
    own.rows += 1.0
    if own.known < FIRST_HELD:
        follow(own, value)
        return False
    deviation = sqrt(own.variance)
    reach = HELD * deviation
    u = value - own.mean
    u = u if u < reach else reach
    u = u if u > -reach else -reach
    if own.known < FIRST_ROWS:
        follow(own, own.mean + u)
        return False
    held = own.mean + u
    if deviation > 0.0:
        u /= deviation
    else:
        u = HELD * ((value > own.mean) - (value < own.mean))
    for side in range(first, last if calm.calm > 0.0 else first):
        shift = side if side < SHIFTS else side - SHIFTS
        if shift == 0 or side == first:
            size = LEAST_SHIFT * u * calm.calm
            size = size if side < SHIFTS else -size
            power = exp(size)
        together += gather(
            &own.sides[side], own, value, power * calm.toll_factor[shift], size - calm.toll[shift]
        )
        power *= power
        size *= 2.0
    if together >= limit * (last - first):
        describe(own, first, last, found)
        begin_anew(own)
        return True
    follow(own, held)
    return False


def watch(
    double[::1] state not None,
    const double[::1] values not None,
    double limit,
    Py_ssize_t first,
    Py_ssize_t last,
):
    """Update the detector with values, up to the first at which a change is detected.

    - `values`: finite numbers, not beyond `LARGEST`.
    - `limit`: the threshold of the evidence.
    - `first`, `last`: which sides are looked at: 0 to 2 are upwards, 3 to 5 downwards.
    - Returns how many values were taken in; and the row since when, the mean before and the mean
      since, if a change was detected.
    """
    cdef Py_ssize_t row, taken = values.shape[0]
    cdef bint changed = False
    cdef Found found
    if state.shape[0] != FIELDS or not 0 <= first < last <= SIDES:
        raise ValueError("the state of the detector has a wrong shape")
    with nogil:
        for row in range(values.shape[0]):
            if see(<Detector*>&state[0], values[row], limit, first, last, &found):
                taken, changed = row + 1, True
                break
    return taken, (found.since, found.before, found.after) if changed else None
