"""Detection of changes of units, of columns and of y.

A tree with slots keeps statistics of each numeric column: the range, the exponentially weighted
mean and variance, and the usual step between samples, which are one row in SAMPLED. It keeps the
same of y, if it has one target and an error-correction layer. Errors are those of the tree; with
several targets, the root of the mean of squares as shares of each target's variance.

A column is *suspected* if several rows in a row are beyond twice its range, or if it hardly moves:
its steps are far smaller than they were, or several rows are next to one sample. y is also
suspected if it hardly moves while errors are large. Then *detection* begins. For COLLECTED rows the
mean and deviation of the new values are computed. Meanwhile, values beyond the range count as
missing, and a suspected y is replaced by the prediction of the tree, so that leaves learn nothing
wrong. The prediction of y is then an exponentially weighted mean of few rows.

A change is one of KINDS: a factor (SCALE), a shift (SHIFT), or both (BOTH). The nearest power of
ten and the roundest shift are preferred where they are as likely. For WEIGHED more rows the tree
predicts each row as if units had changed in each way. The best kind is accepted if its squared
error is clearly below that of the unchanged tree, as small as usual, and not larger than that of
the issued predictions. So a stream cannot imitate a change of units against its labels. Otherwise
nothing changes, the range is extended to all values, and the column is not suspected for a while,
each time for twice as long. A suspected y may just have moved: if a shift predicts rows clearly
better, the tree is shifted by what it did not learn.

An accepted change is applied to the whole tree at once (`_rescaling.pyx`): split points, scales,
grids, means, coefficients and errors become what they would be had all rows been in the new units.
The error-correction layer starts over if the units of y changed.
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
    JOINING = 16       # first rows of a detection, in which more columns may be suspected
    COLLECTED = 64
    WEIGHED = 64
    FIRST_PATIENCE = 1024
    MOST_PATIENCE = 1048576
    MOST_CHANGES = 16  # that are remembered

cdef enum:
    CALM = 0
    CLOSE = 1          # suspected, as its steps are too small
    BEYOND = 2         # suspected, as its values are too far away

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

cdef struct UnitDetection:
    # As UNIT_DETECTION_RECORD of layout.py.
    double phase
    double alert
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


cdef struct UnitWatch:
    # The detection of changes of units in a tree.
    UnitDetection* detection
    UnitChange* changes    # the latest ones, in a ring
    bint is_on             # whether changes are detected
    bint alert             # whether the next row has to be looked at
    bint hiding            # whether values of suspected columns count as missing
    bint rerouted          # whether rows may reach other leaves since the last row


cdef inline double largest_value() noexcept nogil:
    """Larger values are ignored, so that all squares are finite."""
    return 1e100


cdef inline bint is_measured(const ColumnUnits* units) noexcept nogil:
    """Whether a column has enough samples, and varies."""
    return units.samples >= LEAST_SAMPLES and units.high > units.low and units.ties < 0.5


cdef inline bint is_beyond(const ColumnUnits* units, double x) noexcept nogil:
    """Whether a value is farther out than the range is wide; false for NaN."""
    cdef double width = units.high - units.low
    return is_measured(units) and (x > units.high + width or x < units.low - width)


cdef inline void sample_value(ColumnUnits* units, double x, double jump) noexcept nogil:
    """Add a sample to a column, and its distance from the sample before."""
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
    """Whether a column hardly moves, compared with its usual steps."""
    return is_measured(units) and 0.0 < units.lately and CLOSER * units.lately < units.step


cdef inline bint is_next_to(const ColumnUnits* units, double x) noexcept nogil:
    """Whether a value is far closer to the last sample than samples usually are, but not the same.
    """
    cdef double jump = fabs(x - units.last)
    return is_measured(units) and 0.0 < jump and NEXT_TO * jump < units.step


cdef inline void suspect(ColumnUnits* units, int state) noexcept nogil:
    """Begin to collect the values of a suspected column."""
    units.state = state
    units.run = units.still = units.seen = units.inside = units.new_mean = units.new_m2 = 0.0
    units.bottom = units.top = 0.0


cdef inline void collect(ColumnUnits* units, double x) noexcept nogil:
    """Add a value of a suspected column."""
    cdef double delta = x - units.new_mean
    units.bottom = x if units.seen == 0.0 or x < units.bottom else units.bottom
    units.top = x if units.seen == 0.0 or x > units.top else units.top
    units.seen += 1.0
    units.new_mean += delta / units.seen
    units.new_m2 += delta * (x - units.new_mean)
    units.inside += units.state == BEYOND and not is_beyond(units, x)


cdef inline bint is_cleared(const ColumnUnits* units) noexcept nogil:
    """Whether too many values of a suspected column are within its range."""
    return units.inside > 2.0 + units.seen / 8.0


cdef inline void release(ColumnUnits* units, double rows) noexcept nogil:
    """End the suspicion of a column, and do not suspect it again for a while."""
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
cdef bint is_better(const UnitDetection* detection, int kind) noexcept nogil
cdef bint is_proved(const UnitDetection* detection, int kind, double scale_of_y) noexcept nogil
