"""Prediction intervals of many rows, by the rules of `_rules.pxd`."""

from libc.stdint cimport int32_t, uint64_t

from sapwood.corrector._pending cimport PendingPredictions
from sapwood.intervals._rules cimport (
    BOUND, FACTOR, GROUPS, INHERITED, LARGEST_Y, LATENESS, LEVELS, QUANTILE, WIDEST_GROUP, check,
    check_groups, issue, meet, nearest, publish_one, score, set_moves,
)

__all__ = [
    "FIRST_BOUND", "FIRST_LEVEL", "FIRST_QUANTILE", "LARGEST", "LATENESS_PLACE", "MOST_GROUPS",
    "MOST_LEVELS", "NOT_MET", "WIDEST", "learn", "predict_intervals", "publish",
]

FIRST_LEVEL, FIRST_QUANTILE, FIRST_BOUND, MOST_LEVELS = FACTOR, QUANTILE, BOUND, LEVELS
LATENESS_PLACE, MOST_GROUPS = LATENESS, GROUPS
NOT_MET = -1.0
LARGEST, WIDEST = LARGEST_Y, WIDEST_GROUP

cdef double ONES[LEVELS]  # the factors of rows without a group
for _level in range(LEVELS):
    ONES[_level] = 1.0


def predict_intervals(
    double[:, ::1] table not None,
    double[:, ::1] overall not None,
    const double[::1] levels not None,
    const int32_t[::1] parents not None,
    const int32_t[::1] regions not None,
    const double[:, ::1] predictions not None,
    double[:, ::1] issued not None,
    double[:, ::1] factors=None,
    const int32_t[::1] groups=None,
):
    """Predict the intervals of rows; nothing but `issued` is changed.

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
    issued : array of float, shape (rows, targets times 2 + 2 levels)
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
    if issued.shape[0] != regions.shape[0] or issued.shape[1] != targets * record:
        raise ValueError("the arrays do not fit together")
    size = table.shape[0] // targets * width
    with nogil:
        for row in range(regions.shape[0]):
            for target in range(targets):
                first = &table[0, 0] + size * target
                own = nearest(first, width, &parents[0], regions[row])
                issue(
                    own,
                    1.0 if own == first + width * regions[row] else INHERITED,
                    &overall[target, 0],
                    &factors[GROUPS * target + groups[row], 0] if groups is not None else ONES,
                    count,
                    predictions[row, target],
                    &issued[row, record * target],
                )


def publish(
    const double[:, ::1] issued not None,
    double[:, ::1] overall not None,
    double[:, ::1] bounds not None,
):
    """Turn the records of rows into bounds: nested, and clipped to the range of y.

    Parameters
    ----------
    issued, overall : arrays of float
        As for `predict_intervals`.
    bounds : array of float, shape (rows, targets times 2 levels)
        Gets the lower and the upper bound of each level.
    """
    cdef Py_ssize_t row, target, targets = overall.shape[0], count = overall.shape[1] - FACTOR
    cdef Py_ssize_t record = BOUND + 2 * count
    if issued.shape[0] != bounds.shape[0] or count < 1:
        raise ValueError("the arrays do not fit together")
    if issued.shape[1] != targets * record or bounds.shape[1] != targets * 2 * count:
        raise ValueError("the arrays do not fit together")
    with nogil:
        for row in range(issued.shape[0]):
            for target in range(targets):
                publish_one(
                    &issued[row, record * target],
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
    PendingPredictions pending=None,
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
    pending : PendingPredictions, optional
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
                issue(
                    own,
                    1.0 if own == first + width * regions[row] else INHERITED,
                    &overall[target, 0],
                    group if group != NULL else ONES,
                    count,
                    predictions[row, target],
                    now,
                )
                if bounds is not None:
                    publish_one(now, &overall[target, 0], count, &bounds[row, 2 * count * target])
                if missing:
                    continue
                age = 0.0
                if found != NULL:
                    record = found + 1 + length * target
                    age = known - found[0]
                score(
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
