"""Deltas: what rows have added to the models and slots of a tree that did not grow meanwhile.

All of it adds. Sums of slots do so by themselves. Of a linear model that forgets nothing, the
information adds, which is the inverse L of its covariance: with d, by which its coefficients have
moved, shards bring dL and g = L d, and all of them together move the coefficients by the inverse of
(L before + sum of dL) times the sum of g. Models that forget move by the mean of their moves,
weighted by rows.

Slots whose places are not decided yet are kept apart, as *parts*, one a shard, until all are there.

All this is the same for any number of targets; those whose models share a covariance share the
information too (see tree/_target_records.pxd). Sums of leaves are those of leaf_sums.py.
"""

import numpy as np
from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree
from libc.math cimport INFINITY, sqrt
from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.string cimport memcpy, memset

from sapwood.tree._growth cimport decide
from sapwood.tree._kernel cimport TreeKernel
from sapwood.tree._records cimport RATES, SQUARE_TERMS, covariance_at, terms_of
from sapwood.tree._slots cimport add_to_slot, copy_kept, join_equal, put_rows
from sapwood.tree._tables cimport TreeTables, slots_between
from sapwood.tree._target_records cimport (
    coefficients_of, gap_doubles, kept_doubles, model_of, slot_doubles,
)
from sapwood.tree._watch cimport Grid, Slot, most_kept, slot_at

from sapwood.tree._column_tables import GRID_DOUBLES

RATES_OF_MODELS = RATES
# A variance that grows by more than rounding was computed from numbers without information.
cdef double TOLERATED_GROWTH = 1.0 + 1e-6


def delta_doubles(
    Py_ssize_t features, bint linear, Py_ssize_t targets=1, bint separate=False
):
    """Return how many doubles hold what rows have added to the models of a leaf.

    First comes the information, of each target whose models are separate; then, of each target,
    the gradient of the model that forgets nothing and the moves of the others.
    """
    if not linear:
        return 0
    return (targets if separate else 1) * information_size(features) + (
        targets * RATES * (features + 1)
    )


def information_doubles(Py_ssize_t features):
    """Return how many of them hold the information of the model that forgets nothing."""
    return information_size(features)


def slot_width(Py_ssize_t targets):
    """Return the doubles of a slot in a delta: its sums, and the weights that targets lack."""
    return slot_doubles(targets) + gap_doubles(targets)


cdef inline bint is_square(Py_ssize_t features) noexcept nogil:
    return terms_of(features) <= SQUARE_TERMS


cdef inline Py_ssize_t information_size(Py_ssize_t features) noexcept nogil:
    """Doubles of an information matrix: its lower triangle, or its diagonal alone."""
    return (features + 1) * (features + 2) // 2 if is_square(features) else features + 1


# -- symmetric matrices of order n, row by row ----------------------------------------------------


cdef bint factorise(double* matrix, Py_ssize_t n) noexcept nogil:
    """Replace a matrix by its Cholesky factor, in the lower triangle; false if it has none."""
    cdef Py_ssize_t i, j, k
    cdef double total
    for j in range(n):
        for i in range(j, n):
            total = matrix[n * i + j]
            for k in range(j):
                total -= matrix[n * i + k] * matrix[n * j + k]
            if i == j:
                if not 0.0 < total < INFINITY:
                    return False
                matrix[n * j + j] = sqrt(total)
            else:
                matrix[n * i + j] = total / matrix[n * j + j]
    return True


cdef bint invert(double* matrix, double* factor, Py_ssize_t n) noexcept nogil:
    """Invert a positive definite matrix, symmetrically to the last bit; false if it is none.

    The factor is room for another matrix, and then holds the inverse of the Cholesky factor.
    """
    cdef Py_ssize_t i, j, k
    cdef double total
    if not factorise(matrix, n):
        return False
    for j in range(n):
        for i in range(j, n):
            total = 1.0 if i == j else 0.0
            for k in range(j, i):
                total -= matrix[n * i + k] * factor[n * k + j]
            factor[n * i + j] = total / matrix[n * i + i]
    for i in range(n):
        for j in range(i + 1):
            total = 0.0
            for k in range(i, n):
                total += factor[n * k + i] * factor[n * k + j]
            matrix[n * i + j] = matrix[n * j + i] = total
    return True


cdef bint information_of(
    const double* page, Py_ssize_t features, double* matrix, double* factor
) noexcept nogil:
    """The inverse of a model's covariance, as a matrix or a diagonal; false if it has none."""
    cdef const double* covariance = page + covariance_at(features)
    cdef Py_ssize_t n = features + 1, terms = terms_of(features), i
    if not is_square(features):
        for i in range(n):
            matrix[i] = 1.0 / covariance[i]
        return True
    for i in range(n):
        memcpy(matrix + n * i, covariance + terms * i, n * sizeof(double))
    return invert(matrix, factor, n)


# -- what a shard has added -----------------------------------------------------------------------


cdef struct Models:
    # The pages of a tree's linear models.
    Py_ssize_t features
    Py_ssize_t targets
    bint separate


cdef inline Models models_of(TreeTables tables) noexcept nogil:
    return Models(
        tables.features, tables.targets, tables.targets > 1 and tables.column.separate
    )


cdef void extract_leaf_models(
    Models of, double* before, double* after, const double* rows, double* delta, double* room
) noexcept nogil:
    """What rows have added to the models of a leaf; nothing to a covariance that is none."""
    cdef Py_ssize_t n = of.features + 1, size = information_size(of.features), target, i, j, rate
    cdef double* gradient = delta + (of.targets if of.separate else 1) * size
    cdef double* moves
    cdef double* old = room
    cdef double* new = room + n * n
    cdef double* factor = room + 2 * n * n
    cdef double* was
    cdef double* now
    cdef bint is_known = False
    cdef double total
    for target in range(of.targets):
        was = coefficients_of(before, of.features, of.separate, target)
        now = coefficients_of(after, of.features, of.separate, target)
        moves = gradient + n
        for rate in range(1, RATES):
            for i in range(n):
                moves[n * (rate - 1) + i] = rows[target] * (
                    now[RATES * i + rate] - was[RATES * i + rate]
                )
        if target == 0 or of.separate:
            is_known = information_of(
                model_of(before, of.features, of.separate, target), of.features, old, factor
            ) and information_of(
                model_of(after, of.features, of.separate, target), of.features, new, factor
            )
            if is_known:
                take_information(old, new, of.features, delta)
            delta += size
        if is_known and not is_square(of.features):
            for i in range(n):
                gradient[i] = new[i] * (now[RATES * i] - was[RATES * i])
        elif is_known:
            for i in range(n):
                total = 0.0
                for j in range(n):
                    total += new[n * i + j] * (now[RATES * j] - was[RATES * j])
                gradient[i] = total
        gradient += RATES * n


cdef void take_information(
    const double* old, const double* new, Py_ssize_t features, double* delta
) noexcept nogil:
    """The information that rows have added: a lower triangle, or a diagonal."""
    cdef Py_ssize_t n = features + 1, i, j
    for i in range(n):
        if not is_square(features):
            delta[i] = new[i] - old[i]
            continue
        for j in range(i + 1):
            delta[i * (i + 1) // 2 + j] = new[n * i + j] - old[n * i + j]


def extract_models(TreeTables tables not None, const int64_t[::1] leaves, rows, models):
    """Return what rows have added to the models of some leaves.

    - `leaves`: in ascending order.
    - `rows`, shape (leaves, targets): how many rows each target has had.
    - `models`: the pages of all leaves as they were before.
    """
    cdef Models of = models_of(tables)
    cdef Py_ssize_t doubles = delta_doubles(of.features, tables.linear, of.targets, of.separate), at
    found = np.zeros((leaves.shape[0], doubles))
    cdef double[:, ::1] delta = found, before = models
    cdef const double[:, ::1] each = rows
    cdef double[::1] room = np.zeros(3 * (of.features + 1) ** 2)
    with nogil:
        for at in range(leaves.shape[0] if tables.linear else 0):
            extract_leaf_models(
                of, &before[leaves[at], 0], tables.models[leaves[at]], &each[at, 0], &delta[at, 0],
                &room[0],
            )
    return found


cdef Py_ssize_t read_slots(
    TreeTables tables, Py_ssize_t leaf, Py_ssize_t feature, Py_ssize_t first, uint32_t* places,
    double* slots,
) noexcept nogil:
    """The slots of a feature that have rows, from one on; how many there are."""
    cdef Py_ssize_t size = slot_doubles(tables.targets), own = gap_doubles(tables.targets)
    cdef Py_ssize_t count = slots_between(tables.column.slot_starts, feature), slot, used = 0
    cdef double* source
    for slot in range(first, count + 1):
        source = <double*>slot_at(tables.slots_of(leaf, feature), size, slot)
        if source[0] > 0.0:
            places[used] = <uint32_t>(tables.column.slot_starts[feature] + slot)
            memcpy(slots, source, size * sizeof(double))
            memcpy(slots + size, tables.gaps_of(leaf, feature) + own * slot, own * sizeof(double))
            slots += size + own
            used += 1
    return used


cdef void read_part(
    TreeTables tables, Py_ssize_t leaf, Py_ssize_t feature, double* page
) noexcept nogil:
    """A grid, and the slots or rows of a number whose slots were not decided before."""
    cdef Py_ssize_t count = slots_between(tables.column.slot_starts, feature)
    cdef Py_ssize_t sums = count * slot_doubles(tables.targets)
    memcpy(page, tables.grid_of(leaf, feature), sizeof(Grid))
    page += sizeof(Grid) // sizeof(double)
    memcpy(page, tables.slots_of(leaf, feature), sums * sizeof(double))
    memcpy(
        page + sums, tables.gaps_of(leaf, feature),
        count * gap_doubles(tables.targets) * sizeof(double),
    )


def extract_slots(
    TreeTables tables not None, const int64_t[::1] leaves, const unsigned char[:, ::1] laid
):
    """Return what some leaves have watched.

    - `leaves`: in ascending order.
    - `laid`, shape (all leaves, features): which grids there were before.
    - Returns how many slots of each leaf have rows, their places and sums, and the places and pages
      of parts.
    """
    cdef Py_ssize_t features = tables.features, leaf, feature, at
    cdef Py_ssize_t used = 0, parts = 0, start, width = slot_width(tables.targets)
    for at in range(leaves.shape[0]):
        if tables.leaves[leaves[at]].watching:
            used += tables.column.slot_starts[features]
            for feature in range(features):
                parts += not laid[leaves[at], feature]
    counts = np.zeros(leaves.shape[0], np.int32)
    places, slots = np.zeros(used + 1, np.uint32), np.zeros((used + 1, width))
    parts_at = np.zeros((parts + 1, 2), np.int32)
    pages = np.zeros((parts + 1, GRID_DOUBLES + width * tables.slots))
    cdef double[:, ::1] page_at = pages, sums_at = slots
    cdef uint32_t[::1] place_at = places
    cdef int32_t[:, ::1] part_at = parts_at
    cdef int32_t[::1] count_at = counts
    used = parts = 0
    for at in range(leaves.shape[0]):
        leaf, start = leaves[at], used
        for feature in range(features if tables.leaves[leaf].watching else 0):
            if not laid[leaf, feature] and tables.grid_of(leaf, feature).kept > 0.0:
                part_at[parts, 0], part_at[parts, 1] = <int32_t>leaf, <int32_t>feature
                read_part(tables, leaf, feature, &page_at[parts, 0])
                parts += 1
            used += read_slots(
                tables, leaf, feature,
                # Of a part, that of missing values alone.
                0 if laid[leaf, feature] else slots_between(tables.column.slot_starts, feature),
                &place_at[used], &sums_at[used, 0],
            )
        count_at[at] = <int32_t>(used - start)
    return counts, places[:used], slots[:used], parts_at[:parts], pages[:parts]


# -- what becomes of a tree -----------------------------------------------------------------------


cdef void add_leaf_models(
    Models of, double* page, const double* rows, const double* delta, double* room
) noexcept nogil:
    """Move the models of a leaf, and let its covariances shrink."""
    cdef Py_ssize_t n = of.features + 1, size = information_size(of.features), target, i, j, rate
    cdef const double* gradient = delta + (of.targets if of.separate else 1) * size
    cdef double* own
    cdef bint is_known = False
    cdef double total
    for target in range(of.targets):
        own = coefficients_of(page, of.features, of.separate, target)
        for rate in range(1, RATES if rows[target] > 0.0 else 1):
            for i in range(n):
                own[RATES * i + rate] += gradient[n * rate + i] / rows[target]
        if target == 0 or of.separate:
            is_known = add_information(
                model_of(page, of.features, of.separate, target), of.features, delta, room
            )
            delta += size
        if is_known and not is_square(of.features):
            for i in range(n):
                own[RATES * i] += gradient[i] / room[i]
        elif is_known:
            for i in range(n):
                total = 0.0
                for j in range(n):
                    total += room[n * i + j] * gradient[j]
                own[RATES * i] += total
        gradient += RATES * n


cdef bint add_information(
    double* page, Py_ssize_t features, const double* delta, double* room
) noexcept nogil:
    """Let the covariance of a model shrink; false, and no change, if there is no such covariance.

    The buffer gets the covariance, or the information where that is a diagonal.
    """
    cdef Py_ssize_t n = features + 1, terms = terms_of(features), i, j
    cdef double* covariance = page + covariance_at(features)
    cdef double* factor = room + n * n
    if not information_of(page, features, room, factor):
        return False
    if not is_square(features):
        for i in range(n):
            room[i] += max(0.0, delta[i])
            covariance[i] = 1.0 / room[i]
        return True
    for i in range(n):
        for j in range(i + 1):
            room[n * i + j] += delta[i * (i + 1) // 2 + j]
            room[n * j + i] = room[n * i + j]
    if not invert(room, factor, n):
        return False
    for i in range(n):
        if not 0.0 < room[n * i + i] <= TOLERATED_GROWTH * covariance[terms * i + i]:
            return False
    for i in range(n):
        memcpy(covariance + terms * i, room + n * i, n * sizeof(double))
    return True


def add_models(TreeTables tables not None, const int32_t[:] leaves, rows, models):
    """Add to the models of some leaves what `extract_models` has returned."""
    cdef Models of = models_of(tables)
    cdef const double[:, ::1] delta = models, each = rows
    cdef double[::1] room = np.zeros(2 * (of.features + 1) ** 2)
    cdef Py_ssize_t at
    with nogil:
        for at in range(leaves.shape[0] if tables.linear else 0):
            add_leaf_models(
                of, tables.models[leaves[at]], &each[at, 0], &delta[at, 0], &room[0]
            )


def add_slots(
    TreeTables tables not None, const int32_t[:] leaves, const int32_t[:] counts,
    const uint32_t[::1] places, const double[:, ::1] slots,
):
    """Add to what some leaves watch the slots that `extract_slots` has returned."""
    cdef Py_ssize_t targets = tables.targets, size = slot_doubles(targets), used = 0, at, slot
    # A split on trial has not seen these rows, and what they add is no evidence about it.
    tables.end_trial()
    for at in range(leaves.shape[0]):
        for slot in range(used, used + counts[at] if tables.leaves[leaves[at]].watching else 0):
            add_to_slot(
                <double*>slot_at(tables.slots_of(leaves[at], 0), size, places[slot]),
                &slots[slot, 0], size,
            )
            add_to_slot(
                tables.gaps_of(leaves[at], 0) + gap_doubles(targets) * places[slot],
                &slots[slot, 0] + size, gap_doubles(targets),
            )
        used += counts[at]


cdef Py_ssize_t points_of(
    const Grid* grid, const Slot* slots, const double* gaps, Py_ssize_t targets, Py_ssize_t count,
    double* points,
) noexcept nogil:
    """What was seen of a number as rows: those that were kept, or one for each slot; how many."""
    cdef Py_ssize_t size = slot_doubles(targets), own = gap_doubles(targets), slot, found = 0
    cdef const double* sums
    if grid.inverse == 0.0:
        copy_kept(targets, slots, gaps, <Py_ssize_t>grid.kept, points)
        return <Py_ssize_t>grid.kept
    for slot in range(count):
        sums = <double*>slot_at(slots, size, slot)
        if sums[0] > 0.0:
            memcpy(points, sums, size * sizeof(double))
            points[size] = grid.low + (slot + 0.5) * grid.width
            memcpy(points + size + 1, gaps + own * slot, own * sizeof(double))
            points += kept_doubles(targets)
            found += 1
    return found


cdef int lay_part(
    TreeTables tables, Py_ssize_t leaf, Py_ssize_t feature, const double* pages, Py_ssize_t width,
    Py_ssize_t parts,
) except -1:
    """Decide on the slots of a number by what all shards have seen, and put all into them."""
    cdef Py_ssize_t targets = tables.targets
    cdef Py_ssize_t count = slots_between(tables.column.slot_starts, feature)
    cdef Py_ssize_t size = slot_doubles(targets), own = gap_doubles(targets)
    cdef Py_ssize_t most = max(most_kept(count), count), each = kept_doubles(targets), found
    cdef Py_ssize_t part, row
    cdef Grid* grid = tables.grid_of(leaf, feature)
    cdef Slot* slots = tables.slots_of(leaf, feature)
    cdef double* gaps = tables.gaps_of(leaf, feature)
    cdef bint any_laid = grid.inverse > 0.0
    cdef const Grid* other
    cdef const double* sums
    cdef double* points = <double*>PyMem_RawCalloc(
        (parts + 1) * most + 1, each * sizeof(double)
    )
    if points == NULL:
        raise MemoryError
    found = points_of(grid, slots, gaps, targets, count, points)
    for part in range(parts):
        other = <const Grid*>(pages + width * part)
        sums = <const double*>(other + 1)
        any_laid = any_laid or other.inverse > 0.0
        found += points_of(
            other, <const Slot*>sums, sums + count * size, targets, count, points + each * found
        )
    if join_equal(targets, points, found):
        found, any_laid = 1, False
    if any_laid or found >= most_kept(count):
        put_rows(targets, grid, slots, gaps, count, points, found)
        grid.kept = <double>most_kept(count)
    else:
        grid[0] = Grid(0.0, 0.0, 0.0, <double>found)
        memset(slots, 0, count * size * sizeof(double))
        memset(gaps, 0, count * own * sizeof(double))
        for row in range(found):
            sums = points + each * row
            memcpy(slot_at(slots, size + 1, row), sums, (size + 1) * sizeof(double))
            memcpy(gaps + own * row, sums + size + 1, own * sizeof(double))
    PyMem_RawFree(points)
    return 0


def lay_parts(
    TreeTables tables not None, const int32_t[:, ::1] parts_at, const double[:, ::1] pages
):
    """Lay grids that leaves did not have, by parts: those of a leaf and feature are in a row."""
    cdef Py_ssize_t first = 0, last, leaf, feature, parts = parts_at.shape[0]
    while first < parts:
        last = first + 1
        leaf, feature = parts_at[first, 0], parts_at[first, 1]
        while last < parts and parts_at[last, 0] == leaf and parts_at[last, 1] == feature:
            last += 1
        if tables.leaves[leaf].watching:
            lay_part(tables, leaf, feature, &pages[first, 0], pages.shape[1], last - first)
        first = last


def grow(TreeKernel kernel not None):
    """Decide on all leaves that are due."""
    cdef Py_ssize_t leaf, leaves = kernel.leaf_count
    try:
        with nogil:
            for leaf in range(leaves):
                if kernel.leaves[leaf].weight >= kernel.leaves[leaf].due:
                    kernel.reserve_for_row(leaf, 0.0)
                    decide(kernel, leaf)
    finally:
        kernel.drop_spares()


# -- for snapshots --------------------------------------------------------------------------------


def grids_of(TreeTables tables not None):
    """Return where the slots of each leaf and feature lie; zeros where a leaf does not watch."""
    grids = np.zeros((tables.leaf_count, tables.features, GRID_DOUBLES))
    cdef double[:, ::1] content = grids.reshape(tables.leaf_count, -1)
    cdef Py_ssize_t leaf
    if tables.features:
        for leaf in range(tables.leaf_count):
            if tables.leaves[leaf].watching:
                memcpy(&content[leaf, 0], tables.watches[leaf], tables.features * sizeof(Grid))
    return grids


def lift_limit(TreeTables tables not None):
    """Let a tree occupy what it needs, as one that learns a shard does."""
    tables.memory.max_bytes = 0
