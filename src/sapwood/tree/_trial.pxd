"""Splits on trial: what two features do together, where no single cut shows anything."""

from sapwood.tree._records cimport Trial
from sapwood.tree._search cimport BestCut
from sapwood.tree._tables cimport TreeTables, slots_between
from sapwood.tree._target_records cimport TargetTrial, slot_doubles
from sapwood.tree._watch cimport Grid, slot_of


cdef inline TargetTrial* trial_of(
    TreeTables tables, Py_ssize_t targets, Py_ssize_t target
) noexcept nogil:
    """What the sides of a split on trial know of a target: the last fields of the record of the
    trial if there is but one."""
    if targets == 1:
        return <TargetTrial*>&tables.trial.weight[0]
    return tables.of_targets.trials + target


cdef inline void try_row(
    TreeTables tables, Py_ssize_t targets, const double* row, const double* y,
    const double* residuals, double w,
) noexcept nogil:
    """Let the side of a split on trial see a row of its leaf, as a child would.

    The residual of each target is the first of two numbers.
    """
    cdef Trial* trial = &tables.trial
    cdef TargetTrial* own
    cdef double x = row[trial.feature], delta, residual
    cdef bint goes_right
    cdef const Grid* grid
    cdef double* slots
    cdef double* slot
    cdef double* gaps
    cdef Py_ssize_t feature, count, target, place, size = slot_doubles(targets)
    if x != x:
        goes_right = not trial.missing_left
    elif tables.column.is_category[trial.feature]:
        goes_right = not (trial.subset >> <int>x) & 1
    else:
        goes_right = x >= trial.threshold
    grid = <const Grid*>tables.trial_pages[goes_right]
    slots = <double*>(grid + tables.features)
    gaps = slots + size * tables.column.slot_starts[tables.features]
    for feature in range(tables.features):
        count = slots_between(tables.column.slot_starts, feature)
        x = row[feature]
        if x == x and grid.inverse > 0.0:
            place = slot_of(grid, count, x)
            slot = slots + size * place
            slot[0] += w
            for target in range(targets):
                if targets > 1 and y[target] != y[target]:
                    gaps[targets * place + target] += w
                else:
                    slot[1 + 2 * target] += w * residuals[2 * target]
        grid += 1
        slots += size * (count + 1)
        gaps += targets * (count + 1)
    if targets > 1:
        trial.weight[goes_right] += w
    for target in range(targets):
        if targets > 1 and y[target] != y[target]:
            continue
        own, residual = trial_of(tables, targets, target), residuals[2 * target]
        own.weight[goes_right] += w
        delta = residual - own.mean[goes_right]
        own.mean[goes_right] += delta * (w / own.weight[goes_right])
        own.m2[goes_right] += w * delta * (residual - own.mean[goes_right])


cdef int renew_trial(TreeTables tables) except -1 nogil
cdef int continue_trial(
    TreeTables tables, Py_ssize_t leaf, double merit, BestCut* cut, bint* is_shown
) except -1 nogil
