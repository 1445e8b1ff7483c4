"""The distributions of columns: recent rows compared with the rows before them.

The values of a column are counted by bins. A number has ten bins: nine edges at the quantiles of
its first rows separate them, and the outer two hold the values beyond those rows. A category has
one bin per label. Each column has one more bin for missing values. One row of each pair is
counted, the first or the second in turn, in blocks of BLOCK rows. Let p be the shares of bins in
the rows before, and q the shares in the last RECENT blocks, shrunk towards p. A block of counts c
is more likely under q than under p by the product of (q / p)^c. The evidence for a change is
accumulated as in _detector.pyx,

    R ← (1 + R) exp((Σ c log(q / p) - toll) / overdispersion),

where the toll accounts for the uncertainty of p. The overdispersion (`unrest` in the code and in
saved files) is the factor by which counts vary more than those of independent rows, so that a slow
or seasonal column needs more evidence than a shuffled one. It is the largest of these:

- For spans of 1, 4, 16, ... blocks, the mean of chi² / degrees of freedom of the counts of a span
  against those of all other rows. Where it still grows with the length of the span, the longest
  span does not cover the cycle of the column yet; the growth is extrapolated by EXTRAPOLATED
  further lengths.
- By the number of turns, which are neighbours in different bins: (1 + r) / (1 - r) with the
  autocorrelation r = 1 - turns / turns that independent rows would have. A column that is constant
  and then switches has one turn, which is one observation, however many rows it is of.
"""

from libc.math cimport exp, fabs, log, pow, sqrt
from libc.stdint cimport int32_t, uint32_t

from sapwood.drift._detector cimport Calm, Detector, Found, see_dependent, set_calm

__all__ = [
    "BINS", "BLOCK", "CATEGORY", "COLUMN_FIELDS", "EDGES", "ERROR_FIELDS", "FIRST", "MISSING",
    "NUMBER", "RECENT", "SCALE_FIELDS", "WAITING", "column_parts", "watch_rows",
]

cdef enum:
    BLOCK_ROWS = 100
    COUNTED = 50        # of them, every second one
    RECENT_BLOCKS = 4
    SPANS = 7           # lengths of spans, 1 to 4096 blocks
    BLOCKS_A_SPAN = 4   # of the next shorter length
    EXTRAPOLATED = 2    # lengths beyond the longest that was seen often enough
    SETTLED = 2         # the length from which on the growth is that of the longest spans
    LEAST_SAMPLES = 3   # spans of a length, before it counts
    ALL_BINS = 66
    LAST_CODE = ALL_BINS - 2  # of a category: bin 0 is that of missing values
    MISSING_BIN = 0
    NUMBER_BINS = 11    # of missing values, below the edges, between them, and above
    CUTS = 9            # edges of a number
    SAMPLED = 4
    FIRST_ROWS = 500    # from which the edges are estimated
    CATEGORY_KIND = 0
    NUMBER_KIND = 1
    WAITING_KIND = 2    # for the first rows of a number
    OWN_COLUMNS = 2     # y, and the error
    SUMS = 2            # lengths of sums of errors

BLOCK, RECENT, BINS, MISSING = BLOCK_ROWS, RECENT_BLOCKS, ALL_BINS, MISSING_BIN
EDGES, FIRST = CUTS, FIRST_ROWS
CATEGORY, NUMBER, WAITING = CATEGORY_KIND, NUMBER_KIND, WAITING_KIND

cdef double MEMORY = 1e6        # rows that are before
cdef double PRIOR = 0.5         # of each bin
cdef double DRAWN = 100.0       # rows of p in q
cdef double SPAN_MEMORY = 50.0  # spans of a length
cdef double LARGEST_JUMP = 8.0  # of the overdispersion, by one span
cdef double LARGEST_U = 4.0     # deviations of an error
cdef double LEAST_KNOWN = 200.0  # errors, before sums count
cdef double LEAST_SUMS = 6.0
cdef double SUSPICION = 100.0     # evidence from which on values beyond the edges are kept apart
cdef double CAUTION = 0.75      # of the gain that blocks of a slow column have without a change
cdef double DOUBT = 0.5         # standard errors subtracted from the growth of overdispersion
cdef double USUAL_ROWS = 1000.0


cdef struct Column:
    double known          # rows since the last reset
    double weight         # of the rows before
    double evidence
    double likeliest
    double since          # the row with which that began, counted from 1
    double turns          # neighbours in different bins
    double last_bin       # of the last row that was counted
    double unrest[SPANS]  # overdispersion of spans of each length
    double spans[SPANS]   # how many there were
    double filled[SPANS]  # spans of the next shorter length in the one that is being filled
    double blocks         # that were recent, or still are
    double kind           # NUMBER, CATEGORY, or WAITING
    double low            # of the block
    double high
    double lows[RECENT_BLOCKS]   # of the recent ones
    double highs[RECENT_BLOCKS]
    double edges[CUTS]
    double block[ALL_BINS]
    double before[ALL_BINS]
    double recent[ALL_BINS]
    double span[SPANS * ALL_BINS]  # counts of the span of each length that is being filled
    double ring[RECENT_BLOCKS * ALL_BINS]
    double errors[ALL_BINS]  # the sizes of errors in one of SAMPLED blocks, added up
    double error_rows[ALL_BINS]


cdef struct Sums:
    double rows           # in the sum that is being filled
    double total          # of them, each in deviations from the mean
    double last           # the sum before
    double unrest         # overdispersion: variance of sums / variance if errors were independent
    double count          # of sums


cdef struct Errors:
    double rows
    double usual          # size
    Sums sums[SUMS]       # of BLOCK_ROWS errors, and of BLOCKS_A_SPAN times as many


SCALE_FIELDS = sizeof(Errors) // sizeof(double)
COLUMN_FIELDS = sizeof(Column) // sizeof(double)
ERROR_FIELDS = sizeof(Detector) // sizeof(double)


def column_parts():
    """Return the parts of a column's record: their names, where they start, and their lengths."""
    parts = [
        ("known", 1), ("weight", 1), ("evidence", 1), ("likeliest", 1), ("since", 1),
        ("turns", 1), ("last_bin", 1), ("unrest", SPANS), ("spans", SPANS), ("filled", SPANS),
        ("blocks", 1), ("kind", 1), ("low", 1), ("high", 1),
        ("lows", RECENT_BLOCKS), ("highs", RECENT_BLOCKS),
        ("edges", CUTS), ("block", ALL_BINS), ("before", ALL_BINS), ("recent", ALL_BINS),
        ("span", SPANS * ALL_BINS), ("ring", RECENT_BLOCKS * ALL_BINS), ("errors", ALL_BINS),
        ("error_rows", ALL_BINS),
    ]
    places, start = {}, 0
    for name, length in parts:
        places[name] = slice(start, start + length)
        start += length
    return places


cdef inline double in_units(double residual, double size, Errors* errors) noexcept nogil:
    """A residual in units of the usual size of errors, which follows it."""
    if errors.usual > 0.0:
        residual /= errors.usual
    else:
        residual = (residual > 0.0) - <double>(residual < 0.0)
    errors.rows += 1.0
    errors.usual += (size - errors.usual) / min(errors.rows, USUAL_ROWS)
    return residual


cdef inline double calm_of_errors(
    const Detector* own, Errors* errors, double size
) noexcept nogil:
    """Add an error; return one over the overdispersion of errors, or 0 while it is unknown."""
    cdef Py_ssize_t length
    cdef double u, found, most = 1.0, rows = BLOCK_ROWS
    cdef Sums* sums
    if own.known < LEAST_KNOWN or own.variance <= 0.0:
        return 1.0 if own.known >= LEAST_KNOWN else 0.0
    u = (size - own.mean) / sqrt(own.variance)
    u = min(max(u, -LARGEST_U), LARGEST_U)
    for length in range(SUMS):
        sums = &errors.sums[length]
        sums.rows += 1.0
        sums.total += u
        if sums.rows >= rows:
            # Differences of neighbours leave out the slow progress of a model that learns.
            found = (sums.total - sums.last) * (sums.total - sums.last) / (2.0 * rows)
            found = min(found, LARGEST_JUMP * max(sums.unrest, 1.0))
            sums.count += 1.0
            if sums.count > 1.0:
                sums.unrest += (found - sums.unrest) / min(sums.count - 1.0, SPAN_MEMORY)
            sums.last = sums.total
            sums.rows = sums.total = 0.0
        most = max(most, sums.unrest)
        rows *= BLOCKS_A_SPAN
    return 1.0 / most if errors.sums[0].count >= LEAST_SUMS else 0.0


cdef inline bint is_counted(Py_ssize_t place) noexcept nogil:
    """Whether a row of a block is counted: one of each pair, so that no period is missed."""
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
    cdef double value
    for row in range(rows):
        value = values[places[row] * step]
        bins[row] = <int32_t>number_bin(own.edges, value)
        own.low = value if value < own.low else own.low
        own.high = value if value > own.high else own.high
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
        # Codes that no bin is there for are counted in the last one: no value is an index as it is.
        bins[row] = <int32_t>MISSING_BIN
        if value >= 0.0:
            bins[row] = 1 + <int32_t>(value if value < LAST_CODE else <double>LAST_CODE)
        own.block[bins[row]] += 1.0


cdef void count_turns(Column* own, const int32_t* bins, Py_ssize_t rows) noexcept nogil:
    cdef Py_ssize_t row, turns = own.known > 0.0 and bins[0] != <int32_t>own.last_bin
    for row in range(1, rows):
        turns += bins[row] != bins[row - 1]
    own.turns += turns
    own.last_bin = bins[rows - 1]
    own.known += rows


cdef Py_ssize_t used_bins(const Column* own, Py_ssize_t bins) noexcept nogil:
    """Return how many bins have a row."""
    cdef Py_ssize_t bin, used = 0
    for bin in range(bins):
        used += own.before[bin] + own.recent[bin] + own.block[bin] > 0.0
    return used


cdef double diversity(const Column* own, Py_ssize_t bins) noexcept nogil:
    """Return the share of neighbours that would be in different bins if rows were independent."""
    cdef Py_ssize_t bin
    cdef double total = 0.0, squares = 0.0, own_rows
    for bin in range(bins):
        own_rows = own.before[bin] + own.recent[bin] + own.block[bin]
        total += own_rows
        squares += own_rows * own_rows
    return 1.0 - squares / (total * total) if total > 0.0 else 0.0


cdef inline double certainty(double spans, Py_ssize_t used) noexcept nogil:
    """Return the factor that reduces a ratio of overdispersions by its standard error."""
    cdef double freedom = min(spans, SPAN_MEMORY) * max(used - 1.0, 1.0)
    return 1.0 - DOUBT * sqrt(2.0 / freedom) if freedom > 0.0 else 0.0


cdef double unrest_of(const Column* own, Py_ssize_t used, Py_ssize_t bins) noexcept nogil:
    """Return the overdispersion: the factor by which counts vary more than independent rows."""
    cdef Py_ssize_t length, longest = 0
    cdef double most = 1.0, growth, share, turns
    for length in range(SPANS):
        if own.spans[length] >= LEAST_SAMPLES:
            longest = length
            most = max(most, own.unrest[length])
    growth = 1.0
    for length in range(longest + 1 if longest < SETTLED else 0):
        share = max(own.unrest[length], 1.0)
        share /= max(own.unrest[length - 1], 1.0) if length > 0 else 1.0
        growth = max(growth, share * certainty(own.spans[length], used))
    if longest >= SETTLED:
        growth = max(own.unrest[longest], 1.0) / max(own.unrest[longest - 1], 1.0)
        growth *= certainty(own.spans[longest], used)
    growth = min(growth, <double>BLOCKS_A_SPAN)
    if growth > 1.0:
        share = EXTRAPOLATED + max(SETTLED - longest, 0)
        most = max(most, max(own.unrest[longest], 1.0) * pow(growth, share))
    turns = 2.0 * own.known * diversity(own, bins) / max(own.turns, 1.0) - 1.0
    return max(most, turns)


cdef void close_block(Column* own, double row, double limit, bint* alarmed) noexcept nogil:
    """Weigh the block that has just been filled, and let it become recent."""
    cdef Py_ssize_t bin, place, used, bins = NUMBER_BINS if own.kind == NUMBER_KIND else ALL_BINS
    cdef double before, share, gain = 0.0, recent, total
    cdef double* oldest
    alarmed[0] = False
    recent = COUNTED * (own.blocks if own.blocks < RECENT_BLOCKS else <double>RECENT_BLOCKS)
    if own.weight >= FIRST_ROWS:
        used = used_bins(own, bins)
        total = 1.0 / (own.weight + PRIOR * used)
        for bin in range(bins):
            if own.before[bin] + own.recent[bin] + own.block[bin] > 0.0:
                before = (own.before[bin] + PRIOR) * total
                if own.block[bin] > 0.0:
                    share = own.recent[bin] + DRAWN * before
                    gain += own.block[bin] * log(share / (before * (recent + DRAWN)))
        gain -= COUNTED * (used - 1.0) / own.weight
        share = unrest_of(own, used, bins)
        gain -= CAUTION * (used - 1.0) * (max(own.unrest[0], 1.0) - 1.0)
        gain /= share
        own.evidence = (1.0 + own.evidence) * grown(gain)
        if own.likeliest <= 0.0:
            # The block before has led to it, as it is among the recent ones.
            own.likeliest = 0.0
            own.since = row - 2.0 * BLOCK_ROWS + 1.0
        own.likeliest += gain
        alarmed[0] = own.evidence >= limit
    weigh_spans(own, bins)
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
    if own.kind == NUMBER_KIND:
        place = (<Py_ssize_t>own.blocks - 1) % RECENT_BLOCKS
        if own.blocks > RECENT_BLOCKS and own.evidence < SUSPICION:
            widen(own, own.lows[place], own.highs[place])
        own.lows[place], own.highs[place] = own.low, own.high
        own.low, own.high = own.edges[CUTS - 1], own.edges[0]


cdef inline void fold(double* table, bint below, bint above) noexcept nogil:
    """Count the rows of outer bins in their neighbours."""
    if below:
        table[2] += table[1]
        table[1] = 0.0
    if above:
        table[NUMBER_BINS - 2] += table[NUMBER_BINS - 1]
        table[NUMBER_BINS - 1] = 0.0


cdef void widen(Column* own, double low, double high) noexcept nogil:
    """Let the outer bins be beyond the values of a block that was no change."""
    cdef Py_ssize_t each
    cdef bint below = low < own.edges[0], above = high > own.edges[CUTS - 1]
    cdef double diverse = diversity(own, NUMBER_BINS)
    if not below and not above:
        return
    own.edges[0] = min(own.edges[0], low)
    own.edges[CUTS - 1] = max(own.edges[CUTS - 1], high)
    fold(own.before, below, above)
    fold(own.recent, below, above)
    fold(own.errors, below, above)
    fold(own.error_rows, below, above)
    for each in range(RECENT_BLOCKS):
        fold(own.ring + each * ALL_BINS, below, above)
    for each in range(SPANS):
        fold(own.span + each * ALL_BINS, below, above)
    # Turns between bins that are one now are left out, as far as is known.
    own.turns *= diversity(own, NUMBER_BINS) / diverse if diverse > 0.0 else 0.0


cdef inline double grown(double gain) noexcept nogil:
    """exp(gain), held so that no sum of evidence overflows."""
    gain = gain if gain < 200.0 else 200.0
    return exp(gain if gain > -200.0 else -200.0)


cdef double dispersion(
    const Column* own, const double* span, double rows, Py_ssize_t bins
) noexcept nogil:
    """Return chi² / degrees of freedom of a span against all other rows; -1 if these are few."""
    cdef Py_ssize_t bin, used = 0
    cdef double others = 0.0, other, distance, found = 0.0
    for bin in range(bins):
        other = own.before[bin] + own.recent[bin] + own.block[bin] - span[bin]
        others += other if other > 0.0 else 0.0
    if others < rows:
        return -1.0
    for bin in range(bins):
        other = own.before[bin] + own.recent[bin] + own.block[bin] - span[bin]
        other = other if other > 0.0 else 0.0
        if other + span[bin] > 0.0:
            used += 1
            distance = span[bin] / rows - other / others
            found += distance * distance * (rows + others) / (other + span[bin])
    return found * rows * others / (rows + others) / (used - 1.0) if used > 1 else 1.0


cdef void weigh_spans(Column* own, Py_ssize_t bins) noexcept nogil:
    """Take a block into the spans of all lengths, and weigh those that are full."""
    cdef Py_ssize_t length, bin
    cdef double rows = COUNTED, found
    cdef const double* part = own.block
    for length in range(SPANS):
        found = dispersion(own, part, rows, bins)
        if found >= 0.0:
            found = min(found, LARGEST_JUMP * max(own.unrest[length], 1.0))
            own.spans[length] += 1.0
            own.unrest[length] += (found - own.unrest[length]) / min(own.spans[length], SPAN_MEMORY)
        if length + 1 < SPANS:
            for bin in range(bins):
                own.span[(length + 1) * ALL_BINS + bin] += part[bin]
            own.filled[length + 1] += 1.0
        if length > 0:
            for bin in range(bins):
                own.span[length * ALL_BINS + bin] = 0.0
            own.filled[length] = 0.0
        if length + 1 == SPANS or own.filled[length + 1] < BLOCKS_A_SPAN:
            return
        part, rows = own.span + (length + 1) * ALL_BINS, rows * BLOCKS_A_SPAN


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
    """Update the columns with rows, up to the end of a block in which drift is detected.

    - `columns`, shape (columns, COLUMN_FIELDS): the records of columns. Changed.
    - `error`: the detector of the sizes of errors. Changed.
    - `scale`, shape (SCALE_FIELDS,): how many errors there were, their usual size, and how their
      sums vary. Changed.
    - `targets`, shape (rows, 2): y, and the residual of its prediction; NaN where missing. The
      residual is changed to units of the usual size of errors, so that the progress of a model is
      not reported as drift.
    - `rows`, shape (rows, other columns): numbers, or codes of labels; NaN where missing.
    - `in_block`: how many rows the block has already.
    - `row`: how many rows there were before.
    - `limit`, `error_limit`: thresholds of the evidence of a column, in blocks, and of that of
      errors, in rows.
    - Returns how many rows were taken in, and the block has then; which columns have changed; and
      the row since when errors are larger, with their mean before and after.
    """
    cdef Py_ssize_t count = columns.shape[0], place, column, taken = 0, total = rows.shape[0]
    cdef int32_t bins[BLOCK_ROWS]
    cdef Py_ssize_t end, counted
    cdef Py_ssize_t places[BLOCK_ROWS]
    cdef Py_ssize_t step
    cdef const double* start
    cdef double size, calm
    cdef Calm errors_calm
    cdef Column* own
    cdef Found found
    cdef bint alarmed = False, larger = False, any_changed = False
    cdef double known_errors[BLOCK_ROWS]
    if columns.shape[1] != COLUMN_FIELDS or error.shape[0] != ERROR_FIELDS:
        raise ValueError("the state of the monitor has a wrong shape")
    if OWN_COLUMNS + rows.shape[1] != count or targets.shape[0] != total:
        raise ValueError("the arrays do not fit together")
    if targets.shape[1] != OWN_COLUMNS:
        raise ValueError("the arrays do not fit together")
    if scale.shape[0] != SCALE_FIELDS or not 0 <= in_block < BLOCK_ROWS:
        raise ValueError("the arrays do not fit together")
    changed = []
    with nogil:
        set_calm(&errors_calm, 1.0)
        while taken < total and not larger and not any_changed:
            end = taken + BLOCK_ROWS - in_block
            end = end if end < total else total
            place = taken
            while place < end and not larger:
                size = fabs(targets[place, 1])
                known_errors[place - taken] = 0.0
                if size == size:
                    known_errors[place - taken] = size
                    calm = calm_of_errors(<Detector*>&error[0], <Errors*>&scale[0], size)
                    if calm != errors_calm.calm:  # which changes with sums, not with rows
                        set_calm(&errors_calm, calm)
                    larger = see_dependent(
                        <Detector*>&error[0], size, &errors_calm, error_limit, 0, 3, &found
                    )
                    targets[place, 1] = in_units(targets[place, 1], size, <Errors*>&scale[0])
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
                step = OWN_COLUMNS
                if column < step:
                    start = &targets[taken, column]
                else:
                    start = &rows[taken, column - step]
                    step = rows.shape[1]
                if own.kind == NUMBER_KIND:
                    count_numbers(own, start, step, places, counted, bins)
                else:
                    count_labels(own, start, step, places, counted, bins)
                count_turns(own, bins, counted)
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
                    close_block(own, row, limit, &alarmed)
                    if alarmed:
                        any_changed = True
                        with gil:
                            changed.append(column)
    event = (found.since, found.before, found.after) if larger else None
    return taken, in_block, changed, event
