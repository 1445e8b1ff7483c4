"""Splits on trial: what two features do together, where no single cut shows anything."""

from sapwood.tree._records cimport Trial
from sapwood.tree._search cimport BestCut
from sapwood.tree._tables cimport TreeTables, slots_between
from sapwood.tree._watch cimport Grid, Slot, slot_add, slot_of


cdef inline void try_row(
    TreeTables tables, const double* row, double residual, double w
) noexcept nogil:
    """Let the side of a split on trial see a row of its leaf, as a child would."""
    cdef Trial* trial = &tables.trial
    cdef double x = row[trial.feature], delta
    cdef bint goes_right
    cdef const Grid* grid
    cdef Slot* slots
    cdef Py_ssize_t feature, count
    if x != x:
        goes_right = not trial.missing_left
    elif tables.is_category[trial.feature]:
        goes_right = not (trial.subset >> <int>x) & 1
    else:
        goes_right = x >= trial.threshold
    grid = <const Grid*>tables.trial_pages[goes_right]
    slots = <Slot*>(grid + tables.features)
    for feature in range(tables.features):
        count = slots_between(tables.slot_starts, feature)
        x = row[feature]
        if x == x and grid.inverse > 0.0:
            slot_add(slots + slot_of(grid, count, x), w * residual, 0.0, w)
        grid += 1
        slots += count + 1
    trial.weight[goes_right] += w
    delta = residual - trial.mean[goes_right]
    trial.mean[goes_right] += delta * (w / trial.weight[goes_right])
    trial.m2[goes_right] += w * delta * (residual - trial.mean[goes_right])


cdef int renew_trial(TreeTables tables) except -1 nogil
cdef int go_on_trial(
    TreeTables tables, Py_ssize_t leaf, double merit, BestCut* cut, bint* is_shown
) except -1 nogil
