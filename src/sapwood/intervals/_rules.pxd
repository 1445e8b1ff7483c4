"""Prediction intervals, learned from the errors of issued predictions, by region.

A region r (a leaf, or any other part of the space of rows) keeps the exponentially weighted mean
size of its errors. For each level it keeps two quantiles of errors in units of that size, which
move by a small step with each error, depending on whether it is beyond them. Three more statistics
are kept over all regions: the exponentially weighted mean size, towards which a region with few
rows is shrunk; the size of recent errors in units of the usual size in their regions (`lately`);
and for each level a factor that grows when rows are outside of intervals too often:

    usual = (total_r + PRIOR mean) / (weight_r + PRIOR)
    unit = √(π/2) usual ⁴√lately factor
    lower, upper = prediction + low_r unit, prediction + high_r unit

The size of a region describes where errors are large, `lately` when they are, and the quantiles
their distribution. The factor keeps the coverage at the nominal level in any case. A region that
was split off from another starts with half of its sums, and its quantiles.

The record of an issued prediction (`issued`) holds the prediction, the usual error, and the bounds
of all levels. A row is scored against it when its label arrives, however late. Until then
further rows
are predicted with the same factors and quantiles, and all of their errors would move these in the
same direction. Therefore steps shrink with the lateness of labels, the exponentially weighted mean
number of labels between a prediction and its own:

    share = LATE / (LATE + lateness)

With labels at once the share is 1.

Rows may belong to groups as well, such as the hours of the day: errors vary with these
in ways that leaves do not follow. Each group has a factor of its own for each level, which moves as
that of all rows does, so that the level is held in each group. Each of k groups gets one in k
labels, so that its lateness counts one kth. Group 0 is that of rows without one, and its factors
stay 1.

Of several targets each has all of that for itself, but for the regions, which they share.
"""

from libc.math cimport NAN, exp, fabs, pow, sqrt
from libc.stdint cimport int32_t

cdef enum:
    LEVELS = 20  # at most
    GROUPS = 64  # with that of rows without one

# Of all regions together; a factor for each level follows.
cdef enum:
    ROWS         # errors that were seen
    TOTAL        # their exponentially weighted sum
    WEIGHT
    LATELY
    LOWEST       # y so far, and how often
    LOWEST_SEEN
    HIGHEST
    HIGHEST_SEEN
    LATENESS     # recent labels between a prediction and its own, exponentially weighted mean
    FACTOR

# Of a region; the low and the high quantile of each level follow.
cdef enum:
    OWN_TOTAL
    OWN_WEIGHT   # below 0 if it was never met
    OWN_ROWS
    QUANTILE

# Of an issued prediction; the lower and the upper bound of each level follow.
cdef enum:
    PREDICTION
    USUAL        # NaN before enough was known
    BOUND

cdef extern from *:
    """
    static const double FIRST_ROWS = 20.0;
    static const double OWN_FADE = 0.98;
    static const double FADE = 0.999;
    static const double LATELY_FADE = 0.85;
    static const double PRIOR = 20.0;
    static const double INHERITED = 0.5;
    static const double PER_SIZE = 1.2533141373155001;
    static const double MOST_LATELY = 20.0;
    static const double LEAST_LATELY = 0.05;
    static const double MOST_RATIO = 100.0;
    static const double RATE = 0.03;
    static const double LEAST_STEP = 0.02;
    static const double YOUNG = 20.0;
    static const double LEAST_DISTANCE = 1e-4;
    static const double FARTHEST = 1e6;
    static const double SEEN_OFTEN = 10.0;
    static const double HEAVIEST = 10.0;
    static const double LARGEST_Y = 1e140;
    static const double LATE = 10.0;
    static const double LEAST_RECENT = 0.01;
    static const double WIDEST_GROUP = 20.0;
    """
    const double FIRST_ROWS  # before bounds are issued
    const double OWN_FADE
    const double FADE
    const double LATELY_FADE
    const double PRIOR  # rows of the mean of all that a region starts with
    const double INHERITED
    const double PER_SIZE  # deviation of a normal distribution by its mean size
    const double MOST_LATELY
    const double LEAST_LATELY
    const double MOST_RATIO  # of one error to what is usual
    const double RATE  # of the factor
    const double LEAST_STEP  # of a quantile, in units of the distance of both
    const double YOUNG  # rows; until then steps are larger
    const double LEAST_DISTANCE
    const double FARTHEST  # of a quantile; of the factor, and one over it
    const double SEEN_OFTEN  # times; from then on, intervals end at the least or largest y
    const double HEAVIEST  # a weight by which the factor moves
    const double LARGEST_Y
    const double LATE  # labels by which steps are half as large
    const double LEAST_RECENT  # share of the last label in the lateness
    const double WIDEST_GROUP  # factor of a group, and one over it


cdef inline const double* nearest(
    const double* table, Py_ssize_t width, const int32_t* parents, Py_ssize_t region
) noexcept nogil:
    """The record of a region, or of the nearest one above it that was met."""
    while table[width * region + OWN_WEIGHT] < 0.0 and region > 0:
        region = parents[region]
    return table + width * region


cdef inline void issue(
    const double* own, double share, const double* overall, const double* group, Py_ssize_t levels,
    double prediction, double* issued,
) noexcept nogil:
    """Set the bounds by the record of a region, of whose sums a share counts, and by its group."""
    cdef double mean, usual, lately, unit, reach
    cdef Py_ssize_t level
    issued[PREDICTION] = prediction
    issued[USUAL] = NAN
    if overall[ROWS] < FIRST_ROWS or not fabs(prediction) <= LARGEST_Y:
        for level in range(2 * levels):
            issued[BOUND + level] = NAN
        return
    mean = overall[TOTAL] / overall[WEIGHT]
    usual = (share * own[OWN_TOTAL] + PRIOR * mean) / (share * own[OWN_WEIGHT] + PRIOR)
    lately = overall[LATELY]
    lately = lately if lately > LEAST_LATELY else LEAST_LATELY
    lately = lately if lately < MOST_LATELY else MOST_LATELY
    issued[USUAL] = usual
    unit = PER_SIZE * usual * sqrt(sqrt(lately))
    for level in range(levels):
        reach = unit * overall[FACTOR + level] * group[level]
        issued[BOUND + 2 * level] = prediction + own[QUANTILE + 2 * level] * reach
        issued[BOUND + 2 * level + 1] = prediction + own[QUANTILE + 2 * level + 1] * reach


cdef inline void publish_one(
    const double* issued, const double* overall, Py_ssize_t levels, double* bounds
) noexcept nogil:
    """Let wider levels contain narrower ones, and clip all to the range of y.

    If the narrowest interval is entirely beyond that range, as it may be if most y are at its end,
    all stay as they are: clipped intervals would contain too many y.
    """
    cdef double lowest = overall[LOWEST], highest = overall[HIGHEST], lower, upper
    cdef bint floor = overall[LOWEST_SEEN] >= SEEN_OFTEN and issued[BOUND + 1] >= lowest
    cdef bint ceiling = overall[HIGHEST_SEEN] >= SEEN_OFTEN and issued[BOUND] <= highest
    cdef Py_ssize_t level
    for level in range(levels):
        lower, upper = issued[BOUND + 2 * level], issued[BOUND + 2 * level + 1]
        if level > 0:
            lower = lower if lower < bounds[2 * level - 2] else bounds[2 * level - 2]
            upper = upper if upper > bounds[2 * level - 1] else bounds[2 * level - 1]
        if floor:
            lower = lowest if lower < lowest else lower
        if ceiling:
            upper = highest if upper > highest else upper
        bounds[2 * level] = lower
        bounds[2 * level + 1] = upper


cdef inline void score(
    double* own, double* overall, double* group, const double* levels, const double* moves,
    Py_ssize_t count, const double* issued, double y, double w, double age, double groups,
) noexcept nogil:
    """Score an issued prediction and learn from it; a new region was prepared before.

    `group` is NULL for rows without one. `moves` are those of a row of weight 1, from `set_moves`;
    `age` is the number of labels since the row was predicted, `groups` how many groups there
    are.
    """
    cdef double size, ratio, rate, step, miss, moved, heavy, share, of_group
    cdef Py_ssize_t level
    cdef double* pair
    cdef double usual = issued[USUAL]
    cdef bint below, above, usually = w == 1.0
    if not fabs(issued[PREDICTION]) <= LARGEST_Y:
        return
    size = fabs(y - issued[PREDICTION])
    rate = 1.0 / (overall[ROWS] + 1.0)
    overall[LATENESS] += (age - overall[LATENESS]) * (rate if rate > LEAST_RECENT else LEAST_RECENT)
    share = LATE / (LATE + overall[LATENESS])
    of_group = LATE / (LATE + overall[LATENESS] / groups)
    usually = usually and share == 1.0
    heavy = w if w < HEAVIEST else HEAVIEST
    if usual == usual:
        if usual > 0.0:
            ratio = size / usual
            ratio = ratio if ratio < MOST_RATIO else MOST_RATIO
        else:
            ratio = MOST_RATIO if size > 0.0 else 0.0
        rate = LATELY_FADE if usually else pow(1.0 - (1.0 - LATELY_FADE) * share, w)
        overall[LATELY] = rate * overall[LATELY] + (1.0 - rate) * ratio
        step = 1.0 / (own[OWN_ROWS] + YOUNG / share)
        step = step if step > LEAST_STEP * share else LEAST_STEP * share
        step = step if usually else 1.0 - pow(1.0 - step, w)
        for level in range(count):
            miss = 1.0 - levels[level]
            below, above = y < issued[BOUND + 2 * level], y > issued[BOUND + 2 * level + 1]
            moved = moves[2 * level + (below or above)]
            if group != NULL:
                rate = moved if usually else pow(moved, of_group * heavy)
                group[level] = within(group[level] * rate, 1.0 / WIDEST_GROUP, WIDEST_GROUP)
            if not usually:
                moved = pow(moved, share * heavy)
            overall[FACTOR + level] = within(
                overall[FACTOR + level] * moved, 1.0 / FARTHEST, FARTHEST
            )
            pair = own + QUANTILE + 2 * level
            rate = step * (pair[1] - pair[0])
            pair[0] = within(pair[0] + rate * (0.5 * miss - below), -FARTHEST, FARTHEST)
            pair[1] = within(pair[1] + rate * (above - 0.5 * miss), -FARTHEST, FARTHEST)
            if pair[1] - pair[0] < LEAST_DISTANCE:
                moved = 0.5 * (pair[0] + pair[1])
                pair[0] = moved - 0.5 * LEAST_DISTANCE
                pair[1] = moved + 0.5 * LEAST_DISTANCE
    rate = OWN_FADE if usually else pow(1.0 - (1.0 - OWN_FADE) * sqrt(share), w)
    own[OWN_TOTAL] = rate * own[OWN_TOTAL] + w * size
    own[OWN_WEIGHT] = rate * own[OWN_WEIGHT] + w
    own[OWN_ROWS] += 1.0
    rate = FADE if usually else pow(FADE, w)
    overall[TOTAL] = rate * overall[TOTAL] + w * size
    overall[WEIGHT] = rate * overall[WEIGHT] + w
    overall[ROWS] += 1.0
    if not y >= overall[LOWEST]:
        overall[LOWEST], overall[LOWEST_SEEN] = y, 0.0
    if not y <= overall[HIGHEST]:
        overall[HIGHEST], overall[HIGHEST_SEEN] = y, 0.0
    overall[LOWEST_SEEN] += y == overall[LOWEST]
    overall[HIGHEST_SEEN] += y == overall[HIGHEST]


cdef inline void set_moves(const double* levels, Py_ssize_t count, double* moves) noexcept nogil:
    """Set what factors are multiplied by if y is within bounds, and if not."""
    cdef Py_ssize_t level
    for level in range(count):
        moves[2 * level] = exp(RATE * (levels[level] - 1.0))
        moves[2 * level + 1] = exp(RATE * levels[level])


cdef inline double within(double value, double low, double high) noexcept nogil:
    value = value if value > low else low
    return value if value < high else high


cdef inline void meet(
    double* table, Py_ssize_t width, const int32_t* parents, Py_ssize_t region
) noexcept nogil:
    """Let a region start from the nearest one above it, if it was never met."""
    cdef const double* above
    cdef double* own = table + width * region
    cdef Py_ssize_t place
    if own[OWN_WEIGHT] >= 0.0:
        return
    above = nearest(table, width, parents, region)
    for place in range(width):
        own[place] = above[place]
    own[OWN_TOTAL] *= INHERITED
    own[OWN_WEIGHT] *= INHERITED
    own[OWN_ROWS] *= INHERITED


cdef inline int check(
    double[:, ::1] table, double[:, ::1] overall, const double[::1] levels,
    const int32_t[::1] parents, const int32_t[::1] regions, const double[:, ::1] predictions,
) except -1:
    """Raise unless all fits together, so that no index is out of range."""
    cdef Py_ssize_t row, count = levels.shape[0], targets = overall.shape[0]
    if not 0 < count <= LEVELS or overall.shape[1] != FACTOR + count:
        raise ValueError("there are too many levels, or factors for others")
    if targets < 1 or predictions.shape[1] != targets or table.shape[0] % targets:
        raise ValueError("the arrays do not fit together")
    if table.shape[1] != QUANTILE + 2 * count or parents.shape[0] > table.shape[0] // targets:
        raise ValueError("the table of regions does not fit")
    if parents.shape[0] < 1 or regions.shape[0] != predictions.shape[0]:
        raise ValueError("the arrays do not fit together")
    for row in range(1, parents.shape[0]):
        if not 0 <= parents[row] < row:
            raise ValueError("a region is not below one of those before it")
    for row in range(regions.shape[0]):
        if not 0 <= regions[row] < parents.shape[0]:
            raise ValueError("there is no such region")
    return 0


cdef inline int check_groups(
    double[:, ::1] factors, const int32_t[::1] groups, Py_ssize_t targets, Py_ssize_t count,
    Py_ssize_t rows,
) except -1:
    """Raise unless groups and their factors fit."""
    cdef Py_ssize_t row
    if groups is None:
        return 0
    if factors is None or factors.shape[0] != targets * GROUPS or factors.shape[1] != count:
        raise ValueError("the factors of groups do not fit")
    if groups.shape[0] != rows:
        raise ValueError("the arrays do not fit together")
    for row in range(rows):
        if not 0 <= groups[row] < GROUPS:
            raise ValueError("there is no such group")
    return 0
