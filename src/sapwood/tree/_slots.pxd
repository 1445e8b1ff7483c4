"""What a leaf watches of a row: the slots of each feature, once for all targets.

A slot has the weight of its rows, and for each target two sums. With several targets there is also
the weight of the rows in which one is missing, after all slots of the page: see
_target_records.pxd. `targets` is a literal 1 where there is one target, as in _update.pxd.
"""

from sapwood.observers._store cimport Store
from sapwood.tree._prefetch cimport prefetch_for_write
from sapwood.tree._tables cimport TreeTables, slots_between
from sapwood.tree._target_records cimport gap_doubles, kept_doubles, row_doubles, slot_doubles
from sapwood.tree._vectors cimport find_slots_of_numbers, slot_in
from sapwood.tree._watch cimport (
    RAW, Grid, Slot, lay_grid, most_kept, slot_add, slot_at, slot_of,
)


cdef inline void find_slots(
    TreeTables tables, Py_ssize_t targets, Py_ssize_t leaf, const double* row
) noexcept nogil:
    """Find the slot of each feature, NULL where there is none yet, and let it be fetched."""
    cdef const Grid* grid = <Grid*>tables.watches[leaf]
    cdef Slot* slots = <Slot*>(grid + tables.features)
    cdef Slot** found = tables.column.found
    cdef Py_ssize_t feature, line, count, size = slot_doubles(targets)
    cdef bint has_categories = tables.column.has_categories
    if not has_categories:
        find_slots_of_numbers(
            <const double*>grid, row, tables.features, tables.slots, size, <double*>slots,
            <double**>found,
        )
    for feature in range(tables.features):
        if has_categories:
            count = slots_between(tables.column.slot_starts, feature)
            found[feature] = <Slot*>slot_in(
                <const double*>(grid + feature), row[feature], count, size, <double*>slots
            )
            slots = slot_at(slots, size, count + 1)
        prefetch_for_write(found[feature])
        if targets > 1 and found[feature] != NULL:
            for line in range(8, size, 8):
                prefetch_for_write(<double*>found[feature] + line)


cdef inline void watch_row(
    TreeTables tables, Py_ssize_t targets, Py_ssize_t leaf, const double* row, const double* y,
    double* added, bint any_missing,
) noexcept nogil:
    """Let the slots that `find_slots` has found see a row, or the observers of the leaf.

    What is added is the weight, then y and residual of each target, which are weighted here.
    """
    cdef Py_ssize_t feature, place, size = slot_doubles(targets)
    cdef Slot** found = tables.column.found
    cdef double* slot
    cdef double w = added[0], target, residual
    cdef bint has_slots = tables.slots > 0
    if not has_slots:
        observe_row(tables, targets, leaf, row, y, added + 1, w)
    for place in range(1, size):
        added[place] *= w
    target, residual = added[1], added[2]
    for feature in range(tables.features):
        slot = <double*>found[feature]
        if slot != NULL and targets == 1:
            slot_add(<Slot*>slot, target, residual, w)
        elif slot != NULL:
            add_to_slot(slot, added, size)
            if targets > 1 and any_missing:
                place = (slot - <double*>tables.slots_of(leaf, feature)) // size
                add_gaps(tables.gaps_of(leaf, feature) + targets * place, y, w, targets)
        elif has_slots:
            keep_row(tables, targets, leaf, feature, row[feature], y, added)


cdef inline void observe_row(
    TreeTables tables, Py_ssize_t targets, Py_ssize_t leaf, const double* row, const double* y,
    double* each, double w,
) noexcept nogil:
    """Let observers see y and residual of each target, for which `reserve_for_row` has made room.

    Of several targets, they also see which are missing; there is room for that behind residuals.
    """
    cdef Py_ssize_t feature, target
    for target in range(gap_doubles(targets)):
        each[2 * targets + target] = 1.0 if y[target] != y[target] else 0.0
    for feature in range(tables.features):
        if tables.column.found[feature] == NULL:
            (<Store>tables.stores[leaf][feature]).take_one(row[feature], each, w)


cdef inline void add_to_slot(double* slot, const double* added, Py_ssize_t size) noexcept nogil:
    """Add doubles; four at a time, spelt out, as compilers then do it at once."""
    cdef Py_ssize_t place, _four
    for _four in range(size // 4):
        slot[0] += added[0]
        slot[1] += added[1]
        slot[2] += added[2]
        slot[3] += added[3]
        slot += 4
        added += 4
    for place in range(size % 4):
        slot[place] += added[place]


cdef inline void add_gaps(
    double* gaps, const double* y, double w, Py_ssize_t targets
) noexcept nogil:
    """Add the weight of a row to that which is missing of those targets that it lacks."""
    cdef Py_ssize_t target
    for target in range(targets):
        if y[target] != y[target]:
            gaps[target] += w


cdef inline void copy(const double* source, Py_ssize_t doubles, double* goal) noexcept nogil:
    cdef Py_ssize_t place
    for place in range(doubles):
        goal[place] = source[place]


cdef inline void keep_row(
    TreeTables tables, Py_ssize_t targets, Py_ssize_t leaf, Py_ssize_t feature, double x,
    const double* y, const double* added,
) noexcept nogil:
    """Keep a row as it is; with the last of them, lay the grid and put all into its slots.

    Rows of one value make no grid: they become one row, and others are waited for.
    """
    cdef Grid* grid = tables.grid_of(leaf, feature)
    cdef Slot* slots = tables.slots_of(leaf, feature)
    cdef double* gaps = tables.gaps_of(leaf, feature)
    cdef Py_ssize_t size = slot_doubles(targets), count = tables.slots, target
    cdef Py_ssize_t row = <Py_ssize_t>grid.kept
    cdef double* kept = <double*>slot_at(slots, size + 1, row)
    copy(added, size, kept)
    kept[size] = x
    for target in range(gap_doubles(targets)):
        gaps[targets * row + target] = added[0] if y[target] != y[target] else 0.0
    grid.kept += 1.0
    if row + 1 == most_kept(count):
        use_kept(tables, targets, grid, slots, gaps)


cdef inline void use_kept(
    TreeTables tables, Py_ssize_t targets, Grid* grid, Slot* slots, double* gaps
) noexcept nogil:
    """Lay a grid over the rows that were kept, and put them into its slots."""
    cdef double of_one[RAW * 4]
    cdef Py_ssize_t size = slot_doubles(targets), count = tables.slots
    cdef double* rows = &of_one[0]
    if targets > 1:
        rows = slot_doubles(targets) + tables.column.scratch + row_doubles(
            tables.features, targets, tables.column.separate
        )
    copy_kept(targets, slots, gaps, most_kept(count), rows)
    if join_equal(targets, rows, most_kept(count)):
        grid.kept = 1.0
        copy(rows, size, <double*>slots)
        copy(rows + size + 1, gap_doubles(targets), gaps)
        return
    put_rows(targets, grid, slots, gaps, count, rows, most_kept(count))


cdef inline void copy_kept(
    Py_ssize_t targets, const Slot* slots, const double* gaps, Py_ssize_t kept, double* rows
) noexcept nogil:
    """Copy the rows that are kept in the place of slots, each with what it lacks behind its x."""
    cdef Py_ssize_t size = slot_doubles(targets), own = gap_doubles(targets), row
    for row in range(kept):
        copy(<double*>slot_at(slots, size + 1, row), size + 1, rows)
        copy(gaps + own * row, own, rows + size + 1)
        rows += kept_doubles(targets)


cdef inline bint join_equal(Py_ssize_t targets, double* rows, Py_ssize_t count) noexcept nogil:
    """Join all rows to the first if x is the same in all; whether it is."""
    cdef Py_ssize_t size = slot_doubles(targets), width = kept_doubles(targets), row
    for row in range(1, count):
        if rows[width * row + size] != rows[size]:
            return False
    for row in range(1, count):
        add_to_slot(rows, rows + width * row, size)
        add_to_slot(rows + size + 1, rows + width * row + size + 1, gap_doubles(targets))
    return True


cdef inline void put_rows(
    Py_ssize_t targets, Grid* grid, Slot* slots, double* gaps, Py_ssize_t count,
    const double* rows, Py_ssize_t found,
) noexcept nogil:
    """Lay a grid over rows, and put them into its slots."""
    cdef Py_ssize_t size = slot_doubles(targets), width = kept_doubles(targets)
    cdef Py_ssize_t own = gap_doubles(targets), slot, _row
    for slot in range(count * size):
        (<double*>slots)[slot] = 0.0
    for slot in range(count * own):
        gaps[slot] = 0.0
    lay_grid(grid, rows + size, width, found, count)
    for _row in range(found):
        slot = slot_of(grid, count, rows[size])
        add_to_slot(<double*>slot_at(slots, size, slot), rows, size)
        add_to_slot(gaps + own * slot, rows + size + 1, own)
        rows += width
