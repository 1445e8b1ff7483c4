"""Deltas: what rows have added to a tree that did not grow meanwhile.

All of it adds. Sums of slots and moments do so by themselves. Of a linear model that forgets
nothing, the information adds, which is the inverse L of its covariance: with d, by which its
coefficients have moved, shards bring dL and g = L d, and all of them together move the coefficients
by the inverse of (L before + sum of dL) times the sum of g. Models that forget move by the mean of
their moves, weighted by rows. An exponentially weighted sum s becomes f^n s + c after n rows, with
the c of these rows alone and their mass 1 - f^n; c and mass add, and the sum of all c is scaled to
the mass that all rows would have had one after the other.

Slots whose places are not decided yet are kept apart, as *parts*, one a shard, until all are there.
"""

import numpy as np
from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree
from libc.math cimport INFINITY, pow, sqrt
from libc.stdint cimport int32_t, uint32_t
from libc.string cimport memcpy, memset

from sapwood.tree._growth cimport decide
from sapwood.tree._kernel cimport TreeKernel
from sapwood.tree._records cimport (
    EXPERTS, RATES, SQUARE_TERMS, LeafRecord, covariance_at, terms_of,
)
from sapwood.tree._tables cimport TreeTables, slots_between
from sapwood.tree._watch cimport (
    Grid, KeptRow, Slot, join_equal, lay_grid, most_kept, slot_add, slot_of,
)

from sapwood.merge.layout import LEAF_DELTA
from sapwood.tree._column_tables import GRID_DOUBLES, SLOT_DOUBLES

# The factor of an exponentially weighted sum per row: of the errors of a leaf, of the usual error.
cdef double FADE = 0.99
cdef double USUAL_FADE = 1.0 - 1.0 / 1000.0
RATES_OF_MODELS = RATES
# A variance that grows by more than rounding was computed from numbers without information.
cdef double TOLERATED_GROWTH = 1.0 + 1e-6

cdef enum:
    FADED = 2 * EXPERTS  # fields of a leaf whose weights decrease with age, from `errors` on

cdef struct LeafDelta:
    int32_t leaf
    int32_t slots
    double rows
    double weight
    double target_mean
    double target_m2
    double residual_mean
    double residual_m2
    double mass
    double faded[FADED]


def delta_doubles(Py_ssize_t features, bint linear):
    """Return how many doubles hold what rows have added to the models of a leaf."""
    return information_size(features) + RATES * (features + 1) if linear else 0


def information_doubles(Py_ssize_t features):
    """Return how many of them hold the information of the model that forgets nothing."""
    return information_size(features)


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


cdef void extract_model(
    const double* before, const double* after, Py_ssize_t features, double rows, double* delta,
    double* room,
) noexcept nogil:
    """What rows have added to the models of a leaf; nothing to a covariance that is none."""
    cdef Py_ssize_t n = features + 1, i, j, rate
    cdef double* old = room
    cdef double* new = room + n * n
    cdef double* factor = room + 2 * n * n
    cdef double* gradient = delta + information_size(features)
    cdef double* moves = gradient + n
    cdef double total
    for rate in range(1, RATES):
        for i in range(n):
            moves[n * (rate - 1) + i] = rows * (after[RATES * i + rate] - before[RATES * i + rate])
    if not information_of(before, features, old, factor):
        return
    if not information_of(after, features, new, factor):
        return
    if not is_square(features):
        for i in range(n):
            delta[i] = new[i] - old[i]
            gradient[i] = new[i] * (after[RATES * i] - before[RATES * i])
        return
    for i in range(n):
        total = 0.0
        for j in range(n):
            total += new[n * i + j] * (after[RATES * j] - before[RATES * j])
        gradient[i] = total
        for j in range(i + 1):
            delta[i * (i + 1) // 2 + j] = new[n * i + j] - old[n * i + j]


cdef inline const double* faded_of(const LeafRecord* record) noexcept nogil:
    """All exponentially weighted errors of a leaf, which follow each other."""
    return &record.part.errors[0]


cdef void extract_leaf(
    const LeafRecord* before, const LeafRecord* after, Py_ssize_t leaf, LeafDelta* delta
) noexcept nogil:
    """What rows have added to a leaf, whose moments began from nothing."""
    cdef double left
    cdef Py_ssize_t place
    delta.leaf = <int32_t>leaf
    delta.rows = after.rows - before.rows
    delta.weight = after.weight
    delta.target_mean, delta.target_m2 = after.part.target_mean, after.part.target_m2
    delta.residual_mean, delta.residual_m2 = after.part.residual_mean, after.part.residual_m2
    left = pow(FADE, delta.rows)
    delta.mass = 1.0 - left
    for place in range(FADED):
        delta.faded[place] = max(0.0, faded_of(after)[place] - left * faded_of(before)[place])


def extract(TreeTables tables not None, leaves, models, const unsigned char[:, ::1] laid):
    """Return what a tree has learned since it began to learn a shard.

    - `tables`: of the tree, whose slots and moments began from nothing.
    - `leaves`, `models`: the records of its leaves, and its models, as they were.
    - `laid`, shape (leaves, features): which grids there were.
    - Returns sums and models of leaves, places and sums of their slots, places and pages of parts.
    """
    cdef const LeafRecord* before = <const LeafRecord*><Py_ssize_t>leaves.ctypes.data
    cdef double[:, ::1] base = models
    cdef Py_ssize_t features = tables.features, leaf, feature, count, slot, touched = 0, used = 0
    cdef Py_ssize_t parts = 0, start, last
    for leaf in range(tables.leaf_count):
        if tables.leaves[leaf].rows > before[leaf].rows:
            touched += 1
            if tables.leaves[leaf].watching:
                used += tables.column.slot_starts[features]
                for feature in range(features):
                    parts += not laid[leaf, feature] and tables.grid_of(leaf, feature).kept > 0.0
    sums = np.zeros(touched, LEAF_DELTA)
    added = np.zeros((touched, delta_doubles(features, tables.linear)))
    places, slots = np.zeros(used + 1, np.uint32), np.zeros((used + 1, 3))
    parts_at = np.zeros((parts + 1, 2), np.int32)
    pages = np.zeros((parts + 1, GRID_DOUBLES + SLOT_DOUBLES * tables.slots))
    room = np.zeros(3 * (features + 1) ** 2)
    cdef unsigned char[::1] sum_bytes = np.append(sums.view(np.uint8), np.zeros(8, np.uint8))
    cdef LeafDelta* sum_at = <LeafDelta*>&sum_bytes[0]
    cdef double[:, ::1] added_at = added, page_at = pages
    cdef uint32_t[::1] place_at = places
    cdef double[:, ::1] slot_values = slots
    cdef int32_t[:, ::1] part_at = parts_at
    cdef double[::1] room_at = room
    cdef Slot* own
    touched = used = parts = 0
    with nogil:
        for leaf in range(tables.leaf_count):
            if tables.leaves[leaf].rows <= before[leaf].rows:
                continue
            extract_leaf(before + leaf, tables.leaves + leaf, leaf, sum_at + touched)
            if tables.linear:
                extract_model(
                    &base[leaf, 0], tables.models[leaf], features, sum_at[touched].rows,
                    &added_at[touched, 0], &room_at[0],
                )
            if tables.leaves[leaf].watching:
                start = used
                for feature in range(features):
                    own = tables.slots_of(leaf, feature)
                    count = slots_between(tables.column.slot_starts, feature)
                    last = count + 1
                    if not laid[leaf, feature]:
                        if tables.grid_of(leaf, feature).kept > 0.0:
                            part_at[parts, 0] = <int32_t>leaf
                            part_at[parts, 1] = <int32_t>feature
                            memcpy(
                                &page_at[parts, 0], tables.grid_of(leaf, feature), sizeof(Grid)
                            )
                            memcpy(
                                &page_at[parts, sizeof(Grid) // sizeof(double)], own,
                                count * sizeof(Slot),
                            )
                            parts += 1
                        own += count  # to the slot of missing values
                        count, last = 0, 1
                    for slot in range(last):
                        if own[slot].weight > 0.0:
                            place_at[used] = <uint32_t>(
                                tables.column.slot_starts[feature + 1] - last + slot
                            )
                            memcpy(&slot_values[used, 0], own + slot, sizeof(Slot))
                            used += 1
                sum_at[touched].slots = <int32_t>(used - start)
            touched += 1
    records = np.asarray(sum_bytes)[: touched * sizeof(LeafDelta)].view(LEAF_DELTA)
    return records, added, places[:used], slots[:used], parts_at[:parts], pages[:parts]


# -- sums of deltas -------------------------------------------------------------------------------


cdef inline void join_moments(
    double* weight, double* mean, double* m2, double w, double other_mean, double other_m2
) noexcept nogil:
    """Add moments to others; the weight is for the caller to add."""
    cdef double delta = other_mean - mean[0], total = weight[0] + w
    if total > 0.0:
        mean[0] += delta * (w / total)
        m2[0] += other_m2 + delta * delta * (weight[0] * (w / total))


cdef void join_leaves(LeafDelta* one, const LeafDelta* other) noexcept nogil:
    """Add what one shard has added to a leaf to what another one has."""
    cdef Py_ssize_t place
    join_moments(
        &one.weight, &one.target_mean, &one.target_m2, other.weight, other.target_mean,
        other.target_m2,
    )
    join_moments(
        &one.weight, &one.residual_mean, &one.residual_m2, other.weight, other.residual_mean,
        other.residual_m2,
    )
    one.weight += other.weight
    one.rows += other.rows
    one.mass += other.mass
    for place in range(FADED):
        one.faded[place] += other.faded[place]


cdef Py_ssize_t join_slots(
    const uint32_t* places, const double* slots, Py_ssize_t count,
    const uint32_t* other_places, const double* other_slots, Py_ssize_t others,
    uint32_t* all_places, double* all_slots,
) noexcept nogil:
    """Add the slots of a leaf, both in ascending order; how many there are."""
    cdef Py_ssize_t i = 0, j = 0, used = 0, part
    while i < count or j < others:
        if j == others or (i < count and places[i] < other_places[j]):
            all_places[used] = places[i]
            memcpy(all_slots + 3 * used, slots + 3 * i, sizeof(Slot))
            i += 1
        elif i == count or other_places[j] < places[i]:
            all_places[used] = other_places[j]
            memcpy(all_slots + 3 * used, other_slots + 3 * j, sizeof(Slot))
            j += 1
        else:
            all_places[used] = places[i]
            for part in range(3):
                all_slots[3 * used + part] = slots[3 * i + part] + other_slots[3 * j + part]
            i += 1
            j += 1
        used += 1
    return used


def join(sums, models, places, slots, other_sums, other_models, other_places, other_slots):
    """Return the sum of what two shards have added to leaves: the same four arrays of both."""
    leaves = np.union1d(sums["leaf"], other_sums["leaf"])
    cdef const int32_t[::1] leaf = leaves.astype(np.int32)
    cdef Py_ssize_t width = models.shape[1], at, i = 0, j = 0, k = 0, m = 0, used = 0, double_
    all_sums, all_models = np.zeros(len(leaves), LEAF_DELTA), np.zeros((len(leaves), width))
    most = len(places) + len(other_places)
    all_places, all_slots = np.zeros(most + 1, np.uint32), np.zeros((most + 1, 3))
    cdef const LeafDelta* one = <const LeafDelta*><Py_ssize_t>sums.ctypes.data
    cdef const LeafDelta* other = <const LeafDelta*><Py_ssize_t>other_sums.ctypes.data
    cdef LeafDelta* both = <LeafDelta*><Py_ssize_t>all_sums.ctypes.data
    cdef const double* one_model = <const double*><Py_ssize_t>models.ctypes.data
    cdef const double* other_model = <const double*><Py_ssize_t>other_models.ctypes.data
    cdef double* model = <double*><Py_ssize_t>all_models.ctypes.data
    cdef const uint32_t* one_place = <const uint32_t*><Py_ssize_t>places.ctypes.data
    cdef const uint32_t* other_place = <const uint32_t*><Py_ssize_t>other_places.ctypes.data
    cdef const double* one_slot = <const double*><Py_ssize_t>slots.ctypes.data
    cdef const double* other_slot = <const double*><Py_ssize_t>other_slots.ctypes.data
    cdef uint32_t* place = <uint32_t*><Py_ssize_t>all_places.ctypes.data
    cdef double* slot = <double*><Py_ssize_t>all_slots.ctypes.data
    cdef Py_ssize_t ones = len(sums), others = len(other_sums), own, theirs
    with nogil:
        for at in range(leaf.shape[0]):
            own = theirs = 0
            if i < ones and one[i].leaf == leaf[at]:
                both[at] = one[i]
                memcpy(model + width * at, one_model + width * i, width * sizeof(double))
                own = one[i].slots
                i += 1
                if j < others and other[j].leaf == leaf[at]:
                    join_leaves(both + at, other + j)
                    for double_ in range(width):
                        model[width * at + double_] += other_model[width * j + double_]
                    theirs = other[j].slots
                    j += 1
            else:
                both[at] = other[j]
                memcpy(model + width * at, other_model + width * j, width * sizeof(double))
                theirs = other[j].slots
                j += 1
            both[at].slots = <int32_t>join_slots(
                one_place + k, one_slot + 3 * k, own,
                other_place + m, other_slot + 3 * m, theirs,
                place + used, slot + 3 * used,
            )
            k, m, used = k + own, m + theirs, used + both[at].slots
    return all_sums, all_models, all_places[:used], all_slots[:used]


# -- what becomes of a tree -----------------------------------------------------------------------


cdef void add_model(
    double* page, Py_ssize_t features, double rows, const double* delta, double* room
) noexcept nogil:
    """Move the models of a leaf, and let its covariance shrink."""
    cdef Py_ssize_t n = features + 1, terms = terms_of(features), i, j, rate
    cdef double* covariance = page + covariance_at(features)
    cdef double* matrix = room
    cdef double* factor = room + n * n
    cdef double* gradient_room = room + 2 * n * n
    cdef const double* gradient = delta + information_size(features)
    cdef const double* moves = gradient + n
    cdef double total
    for rate in range(1, RATES):
        for i in range(n):
            page[RATES * i + rate] += moves[n * (rate - 1) + i] / rows
    if not information_of(page, features, matrix, factor):
        return
    if not is_square(features):
        for i in range(n):
            total = matrix[i] + max(0.0, delta[i])
            page[RATES * i] += gradient[i] / total
            covariance[i] = 1.0 / total
        return
    for i in range(n):
        for j in range(i + 1):
            matrix[n * i + j] += delta[i * (i + 1) // 2 + j]
            matrix[n * j + i] = matrix[n * i + j]
    if not invert(matrix, factor, n):
        return
    for i in range(n):
        if not 0.0 < matrix[n * i + i] <= TOLERATED_GROWTH * covariance[terms * i + i]:
            return
    for i in range(n):
        total = 0.0
        for j in range(n):
            total += matrix[n * i + j] * gradient[j]
        gradient_room[i] = total
    for i in range(n):
        page[RATES * i] += gradient_room[i]
        for j in range(n):
            covariance[terms * i + j] = matrix[n * i + j]


cdef void add_leaf(LeafRecord* record, const LeafDelta* delta) noexcept nogil:
    """Add to what a leaf knows."""
    cdef double left = pow(FADE, delta.rows)
    cdef double* faded = <double*>faded_of(record)
    cdef Py_ssize_t place
    record.part.mean += (delta.target_mean - record.part.mean) * (
        delta.weight / (record.part.mean_weight + delta.weight)
    )
    record.part.mean_weight += delta.weight
    join_moments(
        &record.weight, &record.part.target_mean, &record.part.target_m2, delta.weight,
        delta.target_mean, delta.target_m2,
    )
    join_moments(
        &record.weight, &record.part.residual_mean, &record.part.residual_m2, delta.weight,
        delta.residual_mean, delta.residual_m2,
    )
    record.weight += delta.weight
    record.rows += delta.rows
    for place in range(FADED):
        faded[place] = left * faded[place] + (1.0 - left) / delta.mass * delta.faded[place]


cdef Py_ssize_t points_of(
    const Grid* grid, const Slot* slots, Py_ssize_t count, KeptRow* points
) noexcept nogil:
    """What was seen of a number as rows: those that were kept, or one for each slot; how many."""
    cdef Py_ssize_t slot, found = 0
    if grid.inverse == 0.0:
        memcpy(points, slots, <Py_ssize_t>grid.kept * sizeof(KeptRow))
        return <Py_ssize_t>grid.kept
    for slot in range(count):
        if slots[slot].weight > 0.0:
            points[found].sums = slots[slot]
            points[found].x = grid.low + (slot + 0.5) * grid.width
            found += 1
    return found


cdef int lay_parts(
    Grid* grid, Slot* slots, Py_ssize_t count, const double* pages, Py_ssize_t width,
    Py_ssize_t parts,
) except -1 nogil:
    """Decide on the slots of a number by what all shards have seen, and put all into them."""
    cdef Py_ssize_t most = max(most_kept(count), count), found, part, point
    cdef bint any_laid = grid.inverse > 0.0
    cdef KeptRow* points = <KeptRow*>PyMem_RawCalloc((parts + 1) * most + 1, sizeof(KeptRow))
    cdef const Grid* other
    if points == NULL:
        with gil:
            raise MemoryError
    found = points_of(grid, slots, count, points)
    for part in range(parts):
        other = <const Grid*>(pages + width * part)
        any_laid = any_laid or other.inverse > 0.0
        found += points_of(other, <const Slot*>(other + 1), count, points + found)
    memset(slots, 0, count * sizeof(Slot))
    if join_equal(points, found):
        found, any_laid = 1, False
    if not any_laid and found < most_kept(count):
        memcpy(slots, points, found * sizeof(KeptRow))
        grid.kept = <double>found
    else:
        lay_grid(grid, points, found, count)
        grid.kept = <double>most_kept(count)
        for point in range(found):
            slot_add(
                slots + slot_of(grid, count, points[point].x),
                points[point].sums.target,
                points[point].sums.residual,
                points[point].sums.weight,
            )
    PyMem_RawFree(points)
    return 0


def apply(TreeTables tables not None, sums, models, places, slots, parts_at, pages):
    """Add a delta to the leaves of a tree.

    - `tables`: of the tree, which has the features of the delta.
    - `sums`, `models`, `places`, `slots`, `parts_at`, `pages`: as `extract` returns them; checked.
      Parts of one leaf and feature follow each other.
    """
    cdef const LeafDelta* delta = <const LeafDelta*><Py_ssize_t>sums.ctypes.data
    cdef const double[:, ::1] model = models, slot_values = slots, page = pages
    cdef const uint32_t[::1] place = places
    cdef const int32_t[:, ::1] part_at = parts_at
    cdef Py_ssize_t at, leaf, used = 0, slot, first, last, count, feature
    cdef Py_ssize_t touched = len(sums), parts = len(parts_at), features = tables.features
    cdef double[::1] room = np.zeros(2 * (features + 1) ** 2 + features + 1)
    cdef Slot* own
    with nogil:
        # A split on trial has not seen these rows, and what they add is no evidence about it.
        tables.end_trial()
        for at in range(touched):
            leaf = delta[at].leaf
            add_leaf(tables.leaves + leaf, delta + at)
            if tables.linear:
                add_model(
                    tables.models[leaf], features, delta[at].rows, &model[at, 0], &room[0]
                )
            if tables.leaves[leaf].watching and delta[at].slots:
                own = tables.slots_of(leaf, 0)
                for slot in range(used, used + delta[at].slots):
                    slot_add(
                        own + place[slot], slot_values[slot, 1], slot_values[slot, 2],
                        slot_values[slot, 0],
                    )
            used += delta[at].slots
        first = 0
        while first < parts:
            last = first + 1
            leaf, feature = part_at[first, 0], part_at[first, 1]
            while last < parts and part_at[last, 0] == leaf and part_at[last, 1] == feature:
                last += 1
            if tables.leaves[leaf].watching:
                count = slots_between(tables.column.slot_starts, feature)
                lay_parts(
                    tables.grid_of(leaf, feature), tables.slots_of(leaf, feature), count,
                    &page[first, 0], page.shape[1], last - first,
                )
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


def faded_usual(double before, double after, double rows):
    """Return what rows have added to the usual error, and their mass in it."""
    cdef double left = pow(USUAL_FADE, rows)
    return max(0.0, after - left * before), 1.0 - left


def usual_with(double before, double added, double mass, double rows):
    """Return the usual error after rows of some mass have added to it."""
    cdef double left = pow(USUAL_FADE, rows)
    return left * before + (1.0 - left) / mass * added


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
