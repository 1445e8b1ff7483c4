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

The record of an issued prediction (`said`) holds the prediction, the usual error, and the bounds of
all levels. A row is scored against it when its label arrives, however late. Until then further rows
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

from libc.math cimport INFINITY, NAN, exp, fabs, pow, sqrt
from libc.stdint cimport int32_t, uint64_t
from libc.string cimport memcpy

from sapwood.corrector._pending cimport Notes

__all__ = [
    "FIRST_BOUND", "FIRST_LEVEL", "FIRST_QUANTILE", "LARGEST", "LATENESS_PLACE", "MOST_GROUPS",
    "MOST_LEVELS", "NOT_MET", "OneRow", "WIDEST", "predict_intervals", "learn", "publish",
]

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

FIRST_LEVEL, FIRST_QUANTILE, FIRST_BOUND, MOST_LEVELS = FACTOR, QUANTILE, BOUND, LEVELS
LATENESS_PLACE, MOST_GROUPS = LATENESS, GROUPS
NOT_MET = -1.0

cdef double FIRST_ROWS = 20.0     # before bounds are issued
cdef double OWN_FADE = 0.98
cdef double FADE = 0.999
cdef double LATELY_FADE = 0.85
cdef double PRIOR = 20.0          # rows of the mean of all that a region starts with
cdef double INHERITED = 0.5
cdef double PER_SIZE = 1.2533141373155001  # deviation of a normal distribution by its mean size
cdef double MOST_LATELY = 20.0
cdef double LEAST_LATELY = 0.05
cdef double MOST_RATIO = 100.0    # of one error to what is usual
cdef double RATE = 0.03           # of the factor
cdef double LEAST_STEP = 0.02     # of a quantile, in units of the distance of both
cdef double YOUNG = 20.0          # rows; until then steps are larger
cdef double LEAST_DISTANCE = 1e-4
cdef double FARTHEST = 1e6        # of a quantile; of the factor, and one over it
cdef double SEEN_OFTEN = 10.0     # times; from then on, intervals end at the least or largest y
cdef double HEAVIEST = 10.0       # a weight by which the factor moves
cdef double LARGEST_Y = 1e140
cdef double LATE = 10.0           # labels by which steps are half as large
cdef double LEAST_RECENT = 0.01   # share of the last label in the lateness
cdef double WIDEST_GROUP = 20.0   # factor of a group, and one over it
LARGEST, WIDEST = LARGEST_Y, WIDEST_GROUP

cdef double ONES[LEVELS]  # the factors of rows without a group
for _level in range(LEVELS):
    ONES[_level] = 1.0


cdef inline const double* nearest(
    const double* table, Py_ssize_t width, const int32_t* parents, Py_ssize_t region
) noexcept nogil:
    """The record of a region, or of the nearest one above it that was met."""
    while table[width * region + OWN_WEIGHT] < 0.0 and region > 0:
        region = parents[region]
    return table + width * region


cdef inline void say(
    const double* own, double share, const double* overall, const double* group, Py_ssize_t levels,
    double prediction, double* said,
) noexcept nogil:
    """Set the bounds by the record of a region, of whose sums a share counts, and by its group."""
    cdef double mean, usual, lately, unit, reach
    cdef Py_ssize_t level
    said[PREDICTION] = prediction
    said[USUAL] = NAN
    if overall[ROWS] < FIRST_ROWS or not fabs(prediction) <= LARGEST_Y:
        for level in range(2 * levels):
            said[BOUND + level] = NAN
        return
    mean = overall[TOTAL] / overall[WEIGHT]
    usual = (share * own[OWN_TOTAL] + PRIOR * mean) / (share * own[OWN_WEIGHT] + PRIOR)
    lately = overall[LATELY]
    lately = lately if lately > LEAST_LATELY else LEAST_LATELY
    lately = lately if lately < MOST_LATELY else MOST_LATELY
    said[USUAL] = usual
    unit = PER_SIZE * usual * sqrt(sqrt(lately))
    for level in range(levels):
        reach = unit * overall[FACTOR + level] * group[level]
        said[BOUND + 2 * level] = prediction + own[QUANTILE + 2 * level] * reach
        said[BOUND + 2 * level + 1] = prediction + own[QUANTILE + 2 * level + 1] * reach


cdef inline void tell(
    const double* said, const double* overall, Py_ssize_t levels, double* bounds
) noexcept nogil:
    """Let wider levels contain narrower ones, and clip all to the range of y.

    If the narrowest interval is entirely beyond that range, as it may be if most y are at its end,
    all stay as they are: clipped intervals would contain too many y.
    """
    cdef double lowest = overall[LOWEST], highest = overall[HIGHEST], lower, upper
    cdef bint floor = overall[LOWEST_SEEN] >= SEEN_OFTEN and said[BOUND + 1] >= lowest
    cdef bint ceiling = overall[HIGHEST_SEEN] >= SEEN_OFTEN and said[BOUND] <= highest
    cdef Py_ssize_t level
    for level in range(levels):
        lower, upper = said[BOUND + 2 * level], said[BOUND + 2 * level + 1]
        if level > 0:
            lower = lower if lower < bounds[2 * level - 2] else bounds[2 * level - 2]
            upper = upper if upper > bounds[2 * level - 1] else bounds[2 * level - 1]
        if floor:
            lower = lowest if lower < lowest else lower
        if ceiling:
            upper = highest if upper > highest else upper
        bounds[2 * level] = lower
        bounds[2 * level + 1] = upper


cdef inline void judge(
    double* own, double* overall, double* group, const double* levels, const double* moves,
    Py_ssize_t count, const double* said, double y, double w, double age, double groups,
) noexcept nogil:
    """Score an issued prediction and learn from it; a new region was prepared before.

    `group` is NULL for rows without one. `moves` are those of a row of weight 1, from `set_moves`;
    `age` is the number of labels since the row was predicted, `groups` how many groups there
    are.
    """
    cdef double size, ratio, rate, step, miss, moved, heavy, share, of_group
    cdef Py_ssize_t level
    cdef double* pair
    cdef double usual = said[USUAL]
    cdef bint below, above, usually = w == 1.0
    if not fabs(said[PREDICTION]) <= LARGEST_Y:
        return
    size = fabs(y - said[PREDICTION])
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
            below, above = y < said[BOUND + 2 * level], y > said[BOUND + 2 * level + 1]
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


cdef void set_moves(const double* levels, Py_ssize_t count, double* moves) noexcept nogil:
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


cdef int check(
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


cdef int check_groups(
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


def predict_intervals(
    double[:, ::1] table not None,
    double[:, ::1] overall not None,
    const double[::1] levels not None,
    const int32_t[::1] parents not None,
    const int32_t[::1] regions not None,
    const double[:, ::1] predictions not None,
    double[:, ::1] said not None,
    double[:, ::1] factors=None,
    const int32_t[::1] groups=None,
):
    """Predict the intervals of rows; nothing but `said` is changed.

    Parameters
    ----------
    table : array of float, shape (targets times regions, 3 + 2 levels)
        The records of regions: those of one target after those of another.
    overall : array of float, shape (targets, 9 + levels)
        The statistics over all regions.
    levels : array of float
        Ascending.
    parents : array of int32
        The region that each one was split off from, which has a smaller number.
    regions : array of int32
        Of each row.
    predictions : array of float, shape (rows, targets)
        The predictions of the model.
    said : array of float, shape (rows, targets times 2 + 2 levels)
        Gets the records of each row.
    factors : array of float, shape (64 times targets, levels), optional
        Of groups: those of one target after those of another.
    groups : array of int32, optional
        Of each row, 0 for those without one.
    """
    cdef Py_ssize_t row, target, width = table.shape[1], count = levels.shape[0]
    cdef Py_ssize_t targets = overall.shape[0], record = BOUND + 2 * count, size
    cdef const double* first
    cdef const double* own
    check(table, overall, levels, parents, regions, predictions)
    check_groups(factors, groups, targets, count, regions.shape[0])
    if said.shape[0] != regions.shape[0] or said.shape[1] != targets * record:
        raise ValueError("the arrays do not fit together")
    size = table.shape[0] // targets * width
    with nogil:
        for row in range(regions.shape[0]):
            for target in range(targets):
                first = &table[0, 0] + size * target
                own = nearest(first, width, &parents[0], regions[row])
                say(
                    own,
                    1.0 if own == first + width * regions[row] else INHERITED,
                    &overall[target, 0],
                    &factors[GROUPS * target + groups[row], 0] if groups is not None else ONES,
                    count,
                    predictions[row, target],
                    &said[row, record * target],
                )


def publish(
    const double[:, ::1] said not None,
    double[:, ::1] overall not None,
    double[:, ::1] bounds not None,
):
    """Turn the records of rows into bounds: nested, and clipped to the range of y.

    Parameters
    ----------
    said, overall : arrays of float
        As for `predict_intervals`.
    bounds : array of float, shape (rows, targets times 2 levels)
        Gets the lower and the upper bound of each level.
    """
    cdef Py_ssize_t row, target, targets = overall.shape[0], count = overall.shape[1] - FACTOR
    cdef Py_ssize_t record = BOUND + 2 * count
    if said.shape[0] != bounds.shape[0] or count < 1:
        raise ValueError("the arrays do not fit together")
    if said.shape[1] != targets * record or bounds.shape[1] != targets * 2 * count:
        raise ValueError("the arrays do not fit together")
    with nogil:
        for row in range(said.shape[0]):
            for target in range(targets):
                tell(
                    &said[row, record * target],
                    &overall[target, 0],
                    count,
                    &bounds[row, 2 * count * target],
                )


def learn(
    double[:, ::1] table not None,
    double[:, ::1] overall not None,
    const double[::1] levels not None,
    const int32_t[::1] parents not None,
    const int32_t[::1] regions not None,
    const double[:, ::1] predictions not None,
    const double[:, ::1] y not None,
    const double[:] w not None,
    Notes pending=None,
    const uint64_t[::1] keys=None,
    double[::1] labels=None,
    double[:, ::1] bounds=None,
    double[:, ::1] factors=None,
    const int32_t[::1] groups=None,
    Py_ssize_t known_groups=0,
):
    """Predict the intervals of rows, then score them, row by row.

    Parameters
    ----------
    table, overall, levels, parents, regions, predictions
        As for `predict_intervals`; the first two are changed.
    y : array of float, shape (rows, targets)
        The actual values, not beyond `LARGEST`; NaN where a target is missing: then nothing changes
        for that target.
    w : array of float
        The weights of rows.
    pending : Notes, optional
        The predictions that wait for their labels; a row that has none is scored against the
        interval predicted now.
    keys : array of uint64, optional
        Under which rows were predicted; without them they were not.
    labels : array of float, shape (1,), optional
        How many labels are known; those of these rows are added.
    bounds : array of float, shape (rows, targets times 2 levels), optional
        Gets the bounds as `publish` would return them now.
    factors, groups : arrays, optional
        As for `predict_intervals`; `factors` is changed.
    known_groups : int
        How many groups there were before; a new one has the next number.
    """
    cdef Py_ssize_t row, target, width = table.shape[1], count = levels.shape[0]
    cdef Py_ssize_t targets = overall.shape[0], length = BOUND + 2 * count, size
    cdef double now[BOUND + 2 * LEVELS]
    cdef double moves[2 * LEVELS]
    cdef const double* record
    cdef const double* own
    cdef double* first
    cdef double* group
    cdef const double* found
    cdef double age, known
    cdef bint missing
    check(table, overall, levels, parents, regions, predictions)
    check_groups(factors, groups, targets, count, regions.shape[0])
    if y.shape[0] != regions.shape[0] or w.shape[0] != regions.shape[0] or y.shape[1] != targets:
        raise ValueError("the arrays do not fit together")
    if keys is not None and (
        pending is None or labels is None or keys.shape[0] != y.shape[0]
        or pending.width != 1 + targets * length
    ):
        raise ValueError("the arrays do not fit together")
    if labels is not None and labels.shape[0] != 1:
        raise ValueError("the arrays do not fit together")
    if bounds is not None and (
        bounds.shape[0] != y.shape[0] or bounds.shape[1] != targets * 2 * count
    ):
        raise ValueError("the arrays do not fit together")
    size = table.shape[0] // targets * width
    with nogil:
        set_moves(&levels[0], count, moves)
        for row in range(y.shape[0]):
            found = NULL
            if keys is not None and pending.count > 0:
                found = pending.take(keys[row], labels[0], NULL)
            known = labels[0] if labels is not None else 0.0
            if labels is not None:
                labels[0] += 1.0
            if groups is not None and groups[row] > known_groups:
                known_groups = groups[row]
            for target in range(targets):
                first = &table[0, 0] + size * target
                missing = y[row, target] != y[row, target]
                if not missing:
                    meet(first, width, &parents[0], regions[row])
                own = nearest(first, width, &parents[0], regions[row])
                record = now
                group = NULL
                if groups is not None and groups[row] > 0:
                    group = &factors[GROUPS * target + groups[row], 0]
                say(
                    own,
                    1.0 if own == first + width * regions[row] else INHERITED,
                    &overall[target, 0],
                    group if group != NULL else ONES,
                    count,
                    predictions[row, target],
                    now,
                )
                if bounds is not None:
                    tell(now, &overall[target, 0], count, &bounds[row, 2 * count * target])
                if missing:
                    continue
                age = 0.0
                if found != NULL:
                    record = found + 1 + length * target
                    age = known - found[0]
                judge(
                    first + width * regions[row],
                    &overall[target, 0],
                    group,
                    &levels[0],
                    moves,
                    count,
                    record,
                    y[row, target],
                    w[row],
                    age,
                    <double>max(known_groups, 1),
                )


cdef class OneRow:
    """Bounds of one target, row by row, around arrays that are checked once.

    Parameters
    ----------
    table, overall, levels, parents : arrays
        As for `predict_intervals`, of one target. They are looked at as long as this object lives.
    pending : Notes
        The predictions that wait for their labels: the labels that were known, and a record.
    labels : array of float, shape (1,)
        How many labels are known.
    factors : array of float, shape (64, levels)
        Of groups.
    """

    cdef double[:, ::1] table
    cdef double[:, ::1] overall
    cdef const double[::1] levels
    cdef const int32_t[::1] parents
    cdef double[:, ::1] factors
    cdef Notes pending
    cdef double[::1] labels
    cdef Py_ssize_t count, width
    cdef double moves[2 * LEVELS]
    cdef double now[BOUND + 2 * LEVELS]
    cdef readonly Py_ssize_t regions

    def __init__(
        self,
        double[:, ::1] table not None,
        double[:, ::1] overall not None,
        const double[::1] levels not None,
        const int32_t[::1] parents not None,
        Notes pending not None,
        double[::1] labels not None,
        double[:, ::1] factors not None,
    ):
        cdef const int32_t[::1] none = parents[:0]
        import numpy as np

        check(table, overall, levels, parents, none, np.empty((0, 1)))
        check_groups(factors, none, 1, levels.shape[0], 0)
        self.count, self.width = levels.shape[0], table.shape[1]
        if labels.shape[0] != 1 or overall.shape[0] != 1:
            raise ValueError("the arrays do not fit together")
        if pending.width != 1 + BOUND + 2 * self.count:
            raise ValueError("the arrays do not fit together")
        self.table, self.overall, self.levels, self.parents = table, overall, levels, parents
        self.factors, self.pending, self.labels = factors, pending, labels
        self.regions = parents.shape[0]
        set_moves(&levels[0], self.count, self.moves)

    def say(self, Py_ssize_t region, double prediction, uint64_t key, Py_ssize_t group=0):
        """Predict the interval of a row, and keep it under a key until the label arrives."""
        cdef double* room
        self.look(region, prediction, group)
        if fabs(prediction) < INFINITY:
            self.pending.reserve(1)
            room = self.pending.leave(key)
            room[0] = self.labels[0]
            memcpy(room + 1, self.now, (BOUND + 2 * self.count) * sizeof(double))

    cdef int look(self, Py_ssize_t region, double prediction, Py_ssize_t group) except -1:
        cdef const double* own
        if not 0 <= group < GROUPS:
            raise ValueError("there is no such group")
        if not 0 <= region < self.regions:
            raise ValueError("there is no such region")
        own = nearest(&self.table[0, 0], self.width, &self.parents[0], region)
        say(
            own, 1.0 if own == &self.table[region, 0] else INHERITED, &self.overall[0, 0],
            &self.factors[group, 0], self.count, prediction, self.now,
        )
        return 0

    @property
    def known(self):
        """How many labels are known."""
        return self.labels[0]

    def judge(
        self, Py_ssize_t region, double prediction, double y, double w, uint64_t key,
        Py_ssize_t group=0, Py_ssize_t known_groups=0,
    ):
        """Learn the label of a row by its issued interval, or by the one predicted now.

        Parameters
        ----------
        region, prediction : int, float
            What they are just before the row is learned.
        y, w : float
            Its label, not beyond `LARGEST`, and its weight.
        key : int
            Under which the row was predicted, if it was.
        group : int
            Of the row, 0 if it has none.
        known_groups : int
            How many groups there are, with that of the row.
        """
        cdef const double* found
        cdef double age = 0.0
        self.look(region, prediction, group)
        # Nothing fails from here on.
        found = self.pending.take(key, self.labels[0], NULL) if self.pending.count > 0 else NULL
        self.labels[0] += 1.0
        if found != NULL:
            age = self.labels[0] - 1.0 - found[0]
            memcpy(self.now, found + 1, (BOUND + 2 * self.count) * sizeof(double))
        meet(&self.table[0, 0], self.width, &self.parents[0], region)
        judge(
            &self.table[region, 0], &self.overall[0, 0],
            &self.factors[group, 0] if group > 0 else NULL, &self.levels[0], self.moves,
            self.count, self.now, y, w, age, <double>max(known_groups, 1),
        )
