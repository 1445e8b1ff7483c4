"""Columns, or y, that come in other units from some row on: noticed, proved by errors, followed.

A tree that watches by slots keeps of each number the range, the faded mean and variance and the
usual step of a sample of its values, one row in SAMPLED; and so of y, if it has one target and an
error-correction layer. Errors are those of the tree; of several targets, the root of the mean of
squares as shares of each one's variance. A column is *suspected* if several
rows in turn lie beyond twice its range, or if it has come to a near standstill: its steps have
become far smaller than they were, or several rows are next to one sample; y also if it hardly moves
any more while errors are large. Then there is *unrest*: for COLLECTED
rows the mean and deviation of the new values are found. Values beyond the range count as missing
meanwhile, and a y that is suspected as what the tree predicts, so that no leaf learns what it would
have to forget; the prediction of y is then an exponentially weighted mean of few rows.

What they may have become is one of KINDS: a multiple (SCALE), a shift (SHIFT), or both (BOTH); the
nearest power of ten, and the roundest shift, are taken where they are as likely. For WEIGHED more
rows each kind is tried: the tree predicts the rows as if the columns were read that way. The best
kind is believed if its squared error is plainly below that of the tree as it is, as small as the
tree usually errs, and no larger than what is said meanwhile. So no stream can look like a change of
units that its labels do not agree with. Otherwise everything stays as it is, the range becomes that
of all values, and the column is not suspected again for a while, each time for twice as long. A y
that was doubted may just have moved: if rows are predicted plainly better with a shift, the tree is
shifted, for what it was kept from learning.

When it is believed, the whole tree is told at once (`_rescaling.pyx`): cuts, scales, grids, means,
coefficients and errors are what they would be had all rows come in the new units. The last layer
starts over if y is another.
"""

from libc.math cimport fabs

cdef enum:
    SAMPLED = 128      # one row in so many is a sample
    FIRST_LOOK = 1024  # rows before any other is looked at
    LEAST_SAMPLES = 16  # before a column is suspected
    UNIT_MEMORY = 128  # samples that means remember
    CLOSER = 6         # times smaller than usual steps have to be
    RUN = 3            # rows in turn beyond the range
    STILL = 12         # rows in turn next to a sample: within a usual step by
    NEXT_TO = 24
    ERRING = 8         # rows in turn whose errors are large, while y hardly moves
    LARGE_ERROR = 4    # times the usual squared error
    FAR_OUT = 100      # times as unusual as rows of a leaf are, and a row is looked at
    JOINING = 16       # rows of an unrest in which more columns may become suspects
    COLLECTED = 64
    WEIGHED = 64
    FIRST_PATIENCE = 1024
    MOST_PATIENCE = 1048576
    MOST_CHANGES = 16  # that are remembered

cdef enum:
    CALM = 0
    CLOSE = 1          # a suspect whose steps are too small
    BEYOND = 2         # a suspect whose values are too far away

cdef enum:
    AT_REST = 0        # phases
    COLLECTING = 1
    WEIGHING = 2

cdef enum:
    SCALE = 0
    SHIFT = 1
    BOTH = 2
    KINDS = 3

cdef struct ColumnUnits:
    # As UNITS_RECORD of layout.py.
    double samples
    double low
    double high
    double mean
    double variance
    double last
    double step
    double lately
    double ties
    double run
    double still
    double wait
    double patience
    double state
    double seen
    double inside
    double new_mean
    double new_m2
    double bottom
    double top

cdef struct Unrest:
    # As UNREST_RECORD of layout.py.
    double phase
    double stirred
    double rows
    double errors
    double error
    double level
    double erred
    double run
    double steps
    double as_is
    double in_force
    double weighed[KINDS]
    double gain[KINDS]
    double square[KINDS]

cdef struct UnitChange:
    # As CHANGE_RECORD of layout.py.
    double row
    double column
    double scale
    double shift


cdef inline double largest_value() noexcept nogil:
    """Values beyond are not looked at, so that squares of all that follows stay doubles."""
    return 1e100


cdef inline bint is_told(const ColumnUnits* units) noexcept nogil:
    """Whether enough is known of a column, and it is spread out."""
    return units.samples >= LEAST_SAMPLES and units.high > units.low and units.ties < 0.5


cdef inline bint is_beyond(const ColumnUnits* units, double x) noexcept nogil:
    """Whether a value is farther out than the range is wide; false for NaN."""
    cdef double width = units.high - units.low
    return is_told(units) and (x > units.high + width or x < units.low - width)


cdef inline void sample_value(ColumnUnits* units, double x, double jump) noexcept nogil:
    """Let a column know one of its values, and how far it is from the one before."""
    cdef double share, delta
    units.last = x
    units.samples += 1.0
    if units.samples == 1.0:
        units.low = units.high = units.mean = x
        return
    share = 1.0 / units.samples if units.samples < UNIT_MEMORY else 1.0 / UNIT_MEMORY
    units.ties += share * ((jump == 0.0) - units.ties)
    units.low = x if x < units.low else units.low
    units.high = x if x > units.high else units.high
    if jump > 0.0:
        if units.lately == 0.0:
            units.lately = jump
        units.lately += 0.25 * (jump - units.lately)
    if jump == 0.0 or jump * CLOSER >= units.step or units.samples < LEAST_SAMPLES:
        # What is closer may be of other units.
        delta = x - units.mean
        units.mean += share * delta
        units.variance = (1.0 - share) * (units.variance + share * delta * delta)
        if jump > 0.0:
            units.step += (share if units.step > 0.0 else 1.0) * (jump - units.step)


cdef inline bint is_close(const ColumnUnits* units) noexcept nogil:
    """Whether a column hardly moves any more, beside what it usually does."""
    return is_told(units) and 0.0 < units.lately and CLOSER * units.lately < units.step


cdef inline bint is_next_to(const ColumnUnits* units, double x) noexcept nogil:
    """Whether a value is far closer to the last sample than samples usually are, but not the same.
    """
    cdef double jump = fabs(x - units.last)
    return is_told(units) and 0.0 < jump and NEXT_TO * jump < units.step


cdef inline void suspect(ColumnUnits* units, int state) noexcept nogil:
    """Begin to collect the values of a column that seems to be another."""
    units.state = state
    units.run = units.still = units.seen = units.inside = units.new_mean = units.new_m2 = 0.0
    units.bottom = units.top = 0.0


cdef inline void collect(ColumnUnits* units, double x) noexcept nogil:
    """Take a value of a suspect."""
    cdef double delta = x - units.new_mean
    units.bottom = x if units.seen == 0.0 or x < units.bottom else units.bottom
    units.top = x if units.seen == 0.0 or x > units.top else units.top
    units.seen += 1.0
    units.new_mean += delta / units.seen
    units.new_m2 += delta * (x - units.new_mean)
    units.inside += units.state == BEYOND and not is_beyond(units, x)


cdef inline bint is_cleared(const ColumnUnits* units) noexcept nogil:
    """Whether too many values of a suspect are as they were."""
    return units.inside > 2.0 + units.seen / 8.0


cdef inline void release(ColumnUnits* units, double rows) noexcept nogil:
    """Take a column as it is, and do not suspect it for a while."""
    if units.seen > 0.0:
        units.low = units.bottom if units.bottom < units.low else units.low
        units.high = units.top if units.top > units.high else units.high
    if units.state == CLOSE:
        units.step *= 0.5
    units.state = CALM
    units.run = units.still = 0.0
    units.patience = units.patience if units.patience > 0.0 else FIRST_PATIENCE
    units.wait = rows + units.patience
    units.patience = 2.0 * units.patience if units.patience < MOST_PATIENCE else MOST_PATIENCE


cdef bint find_map(
    const ColumnUnits* units, int kind, double* scale, double* shift
) noexcept nogil
cdef bint is_better(const Unrest* unrest, int kind) noexcept nogil
cdef bint is_proved(const Unrest* unrest, int kind, double scale_of_y) noexcept nogil
