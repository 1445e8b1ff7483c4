"""The distributions of columns, lately against before.

A column is watched by bins: of a number, nine edges between the quantiles of its first rows make
ten, of which the outer two are beyond what was seen; of a category each label has one; and one is
that of missing values. Of any two rows one is counted, now the first, now the second, in blocks
of BLOCK rows. With p the shares of bins before, and q those of the last RECENT blocks (drawn towards p), a block of counts c is more
likely under q than under p by the product of (q / p)^c. The evidence for a change is gathered as
in _detector.pyx,

    R ← (1 + R) exp((Σ c log(q / p) - toll) / unrest),

where the toll makes up for what is not known of p, and the unrest is how much more the counts of
blocks, and of SUPER blocks together, vary than those of independent rows would: 1 for a stream
that was shuffled, and much more for a temperature by the hour.
"""

from libc.math cimport exp, fabs, log
from libc.stdint cimport int32_t, uint32_t

from sapwood.drift._detector cimport Detector, Found, see

__all__ = [
    "BINS", "BLOCK", "CATEGORY", "COLUMN_FIELDS", "EDGES", "ERROR_FIELDS", "FIRST", "MISSING",
    "NUMBER", "RECENT", "WAITING", "column_parts", "watch_rows",
]

cdef enum:
    BLOCK_ROWS = 100
    COUNTED = 50        # of them, every second one
    RECENT_BLOCKS = 4
    SUPER = 8           # blocks
    ALL_BINS = 66
    MISSING_BIN = 0
    NUMBER_BINS = 11    # of missing values, below the edges, between them, and above
    CUTS = 9            # edges of a number
    SAMPLED = 4
    FIRST_ROWS = 500    # that tell the edges
    CATEGORY_KIND = 0
    NUMBER_KIND = 1
    WAITING_KIND = 2    # for the first rows of a number

BLOCK, RECENT, BINS, MISSING = BLOCK_ROWS, RECENT_BLOCKS, ALL_BINS, MISSING_BIN
EDGES, FIRST = CUTS, FIRST_ROWS
CATEGORY, NUMBER, WAITING = CATEGORY_KIND, NUMBER_KIND, WAITING_KIND

cdef double MEMORY = 10_000.0   # rows that are before
cdef double PRIOR = 0.5         # of each bin
cdef double DRAWN = 100.0       # rows of p in q
cdef double UNREST_RATE = 0.04
cdef double USUAL_ROWS = 1000.0
cdef double LARGEST_JUMP = 4.0  # of the unrest, by one block


cdef struct Column:
    double known          # rows since it began anew
    double weight         # of the rows before
    double evidence
    double likeliest
    double since          # the row with which that began, counted from 1
    double unrest
    double super_unrest
    double super_blocks   # of the super block that is being filled
    double blocks         # that were recent, or still are
    double kind           # NUMBER, CATEGORY, or WAITING
    double edges[CUTS]
    double block[ALL_BINS]
    double before[ALL_BINS]
    double recent[ALL_BINS]
    double super_block[ALL_BINS]
    double ring[RECENT_BLOCKS * ALL_BINS]
    double errors[ALL_BINS]  # the sizes of errors in one of SAMPLED blocks, added up
    double error_rows[ALL_BINS]


COLUMN_FIELDS = sizeof(Column) // sizeof(double)
ERROR_FIELDS = sizeof(Detector) // sizeof(double)


def column_parts():
    """Return the parts of a column's record: their names, where they start, and their lengths."""
    parts = [
        ("known", 1), ("weight", 1), ("evidence", 1), ("likeliest", 1), ("since", 1),
        ("unrest", 1), ("super_unrest", 1), ("super_blocks", 1), ("blocks", 1), ("kind", 1),
        ("edges", CUTS), ("block", ALL_BINS), ("before", ALL_BINS), ("recent", ALL_BINS),
        ("super_block", ALL_BINS), ("ring", RECENT_BLOCKS * ALL_BINS), ("errors", ALL_BINS),
        ("error_rows", ALL_BINS),
    ]
    places, start = {}, 0
    for name, length in parts:
        places[name] = slice(start, start + length)
        start += length
    return places


cdef inline double in_units(double residual, double size, double* scale) noexcept nogil:
    """A residual in units of the usual size of errors, which follows it."""
    if scale[1] > 0.0:
        residual /= scale[1]
    else:
        residual = (residual > 0.0) - <double>(residual < 0.0)
    scale[0] += 1.0
    scale[1] += (size - scale[1]) / (scale[0] if scale[0] < USUAL_ROWS else USUAL_ROWS)
    return residual


cdef inline bint is_counted(Py_ssize_t place) noexcept nogil:
    """Whether a row of a block is counted: of each pair one, so that no period of rows is missed."""
    return (place & 1) == ((<uint32_t>(place >> 1) * <uint32_t>2654435761) >> 31)


cdef inline Py_ssize_t number_bin(const double* edges, double value) noexcept nogil:
    """The bin of a number: how many edges it reaches, the last of which it has to pass."""
    cdef Py_ssize_t bin = 4 * (value >= edges[3])
    bin += 2 * (value >= edges[bin + 1])
    bin += value >= edges[bin]
    bin += 1 + (value >= edges[7]) + (value > edges[8])
    return bin if value == value else <Py_ssize_t>MISSING_BIN


cdef void count_numbers(
    Column* own, const double* values, Py_ssize_t step, const Py_ssize_t* places,
    Py_ssize_t rows, int32_t* bins,
) noexcept nogil:
    cdef Py_ssize_t row
    for row in range(rows):
        bins[row] = <int32_t>number_bin(own.edges, values[places[row] * step])
    for row in range(rows):
        own.block[bins[row]] += 1.0


cdef void count_labels(
    Column* own, const double* values, Py_ssize_t step, const Py_ssize_t* places,
    Py_ssize_t rows, int32_t* bins,
) noexcept nogil:
    cdef Py_ssize_t row
    cdef double value
    for row in range(rows):
        value = values[places[row] * step]
        bins[row] = 1 + <int32_t>value if value == value else <int32_t>MISSING_BIN
        own.block[bins[row]] += 1.0


cdef void close_block(Column* own, double row, double limit, bint* alarmed) noexcept nogil:
    """Weigh the block that has just been filled, and let it become recent."""
    cdef Py_ssize_t bin, used = 0, bins = NUMBER_BINS if own.kind == NUMBER_KIND else ALL_BINS
    cdef double before, share, gain = 0.0, spread = 0.0, distance, recent, total
    cdef double* oldest
    alarmed[0] = False
    recent = COUNTED * (own.blocks if own.blocks < RECENT_BLOCKS else <double>RECENT_BLOCKS)
    if own.weight >= FIRST_ROWS:
        for bin in range(bins):
            used += own.before[bin] + own.recent[bin] + own.block[bin] > 0.0
        total = 1.0 / (own.weight + PRIOR * used)
        for bin in range(bins):
            if own.before[bin] + own.recent[bin] + own.block[bin] > 0.0:
                before = (own.before[bin] + PRIOR) * total
                if own.block[bin] > 0.0:
                    share = own.recent[bin] + DRAWN * before
                    gain += own.block[bin] * log(share / (before * (recent + DRAWN)))
                distance = own.block[bin] - COUNTED * before
                spread += distance * distance / before
        gain -= COUNTED * (used - 1.0) / own.weight
        gain /= max(own.unrest, own.super_unrest)
        own.evidence = (1.0 + own.evidence) * grown(gain)
        if own.likeliest <= 0.0:
            # The block before has led to it, as it is among the recent ones.
            own.likeliest = 0.0
            own.since = row - 2.0 * BLOCK_ROWS + 1.0
        own.likeliest += gain
        alarmed[0] = own.evidence >= limit
        follow_unrest(&own.unrest, spread / COUNTED, used)
        weigh_super(own, used, bins)
    # The oldest of the recent blocks is before from now on.
    oldest = own.ring + (<Py_ssize_t>own.blocks % RECENT_BLOCKS) * ALL_BINS
    if own.blocks >= RECENT_BLOCKS:
        if own.weight > MEMORY:
            share = 1.0 - COUNTED / MEMORY
            own.weight *= share
            for bin in range(bins):
                own.before[bin] *= share
                own.errors[bin] *= share
                own.error_rows[bin] *= share
        for bin in range(bins):
            own.before[bin] += oldest[bin]
            own.recent[bin] -= oldest[bin]
        own.weight += COUNTED
    own.blocks += 1.0
    for bin in range(bins):
        oldest[bin] = own.block[bin]
        own.recent[bin] += own.block[bin]
        own.block[bin] = 0.0


cdef inline double grown(double gain) noexcept nogil:
    """exp(gain), held so that no sum of evidence overflows."""
    gain = gain if gain < 200.0 else 200.0
    return exp(gain if gain > -200.0 else -200.0)


cdef inline void follow_unrest(double* unrest, double spread, Py_ssize_t used) noexcept nogil:
    """Follow how much more counts vary than those of independent rows."""
    cdef double ratio = spread / (used - 1.0) if used > 1 else 1.0
    ratio = ratio if ratio > 1.0 else 1.0
    ratio = ratio if ratio < LARGEST_JUMP * unrest[0] else LARGEST_JUMP * unrest[0]
    unrest[0] += UNREST_RATE * (ratio - unrest[0])


cdef void weigh_super(Column* own, Py_ssize_t used, Py_ssize_t bins) noexcept nogil:
    """Take a block into the super block, and weigh that once it is full."""
    cdef Py_ssize_t bin
    cdef double before, distance, spread = 0.0, rows = SUPER * COUNTED
    for bin in range(bins):
        own.super_block[bin] += own.block[bin]
    own.super_blocks += 1.0
    if own.super_blocks < SUPER:
        return
    for bin in range(bins):
        before = (own.before[bin] + PRIOR) / (own.weight + PRIOR * used)
        distance = own.super_block[bin] - rows * before
        if own.super_block[bin] > 0.0 or own.before[bin] > 0.0:
            # Shares before are known no better than those of the super block itself.
            spread += distance * distance / (rows * before * (1.0 + rows / own.weight))
        own.super_block[bin] = 0.0
    own.super_blocks = 0.0
    follow_unrest(&own.super_unrest, spread, used)


def watch_rows(
    double[:, ::1] columns not None,
    double[::1] error not None,
    double[::1] scale not None,
    double[:, ::1] targets not None,
    const double[:, ::1] rows not None,
    Py_ssize_t in_block,
    double row,
    double limit,
    double error_limit,
):
    """Take rows in, up to the end of a block in which a column has changed, or errors have.

    Parameters
    ----------
    columns : array of float, shape (columns, COLUMN_FIELDS)
        What is known of each column. Changed.
    error : array of float
        The detector of the sizes of errors. Changed.
    scale : array of float
        How many errors there were, and their usual size. Changed.
    targets : array of float, shape (rows, 2)
        y, and its distance to what was predicted; NaN where missing. The latter is changed: it is
        told in units of the usual size, as a model that learns is no change.
    rows : array of float, shape (rows, other columns)
        Numbers, or codes of labels; NaN where missing.
    in_block : int
        How many rows the block has already.
    row : float
        How many rows there were before.
    limit, error_limit : float
        What the evidence of a column, in blocks, and that of errors, in rows, has to pass.

    Returns
    -------
    taken : int
        How many rows were taken in.
    in_block : int
        How many rows the block has then.
    changed : list of int
        Which columns have changed.
    found : tuple of float, optional
        Since when errors are larger, from what to what.
    """
    cdef Py_ssize_t count = columns.shape[0], place, column, taken = 0, total = rows.shape[0]
    cdef int32_t bins[BLOCK_ROWS]
    cdef Py_ssize_t end, counted
    cdef Py_ssize_t places[BLOCK_ROWS]
    cdef Py_ssize_t step
    cdef const double* start
    cdef double size
    cdef Column* own
    cdef Found found
    cdef bint alarmed = False, larger = False, any_changed = False
    cdef double known_errors[BLOCK_ROWS]
    if columns.shape[1] != COLUMN_FIELDS or error.shape[0] != ERROR_FIELDS:
        raise ValueError("the state of the monitor has a wrong shape")
    if 2 + rows.shape[1] != count or targets.shape[0] != total or targets.shape[1] != 2:
        raise ValueError("the arrays do not fit together")
    if scale.shape[0] != 2 or not 0 <= in_block < BLOCK_ROWS:
        raise ValueError("the arrays do not fit together")
    changed = []
    with nogil:
        while taken < total and not larger and not any_changed:
            end = taken + BLOCK_ROWS - in_block
            end = end if end < total else total
            place = taken
            while place < end and not larger:
                size = fabs(targets[place, 1])
                known_errors[place - taken] = 0.0
                if size == size:
                    known_errors[place - taken] = size
                    larger = see(<Detector*>&error[0], size, error_limit, 0, 3, &found)
                    targets[place, 1] = in_units(targets[place, 1], size, &scale[0])
                else:
                    (<Detector*>&error[0]).rows += 1.0
                place += 1
            end = place
            counted = 0
            for place in range(end - taken):
                if is_counted(in_block + place):
                    places[counted] = place
                    counted += 1
                    known_errors[counted - 1] = known_errors[place]
            for column in range(count if counted > 0 else 0):
                own = <Column*>&columns[column, 0]
                if own.kind == WAITING_KIND:
                    continue
                step = 2
                if column < step:
                    start = &targets[taken, column]
                else:
                    start = &rows[taken, column - step]
                    step = rows.shape[1]
                if own.kind == NUMBER_KIND:
                    count_numbers(own, start, step, places, counted, bins)
                else:
                    count_labels(own, start, step, places, counted, bins)
                if <Py_ssize_t>own.blocks % SAMPLED == 0:
                    for place in range(counted):
                        own.errors[bins[place]] += known_errors[place]
                        own.error_rows[bins[place]] += 1.0
            in_block += end - taken
            row += end - taken
            taken = end
            if in_block == BLOCK_ROWS:
                in_block = 0
                for column in range(count):
                    own = <Column*>&columns[column, 0]
                    if own.kind == WAITING_KIND:
                        continue
                    own.known += COUNTED
                    close_block(own, row, limit, &alarmed)
                    if alarmed:
                        any_changed = True
                        with gil:
                            changed.append(column)
    told = (found.since, found.before, found.after) if larger else None
    return taken, in_block, changed, told
