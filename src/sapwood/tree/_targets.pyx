"""What a row does to a tree of several targets: it is predicted, and learned for those it tells.

It is what the kernel does for one target, once for each of them. What belongs to the row alone is
done once: its leaf, its terms and their direction, its slots. Where a target is missing, its
models, moments and last layer stay as they are.
"""

from libc.math cimport fabs
from libc.stdint cimport int64_t, uint64_t

from sapwood.blend._layer cimport Saying, follow, judge, start_layer
from sapwood.blend._notes cimport count_at_once, take_blank
from sapwood.tree._experts cimport EARLY, FADE, FAST, LEAST, NEARER
from sapwood.tree._guard cimport held_near
from sapwood.tree._model cimport (
    HEAVIEST, LONG_MEMORY, SAMPLE, YOUNG, direction, move_coefficients, shrink_covariance,
)
from sapwood.tree._prefetch cimport prefetch_for_write
from sapwood.tree._records cimport (
    CATEGORIES, EXPERTS, RATES, LeafRecord, covariance_at, terms_of,
)
from sapwood.tree._tables cimport TreeTables, slots_between
from sapwood.tree._target_columns cimport TriedRow, add_costs, try_row
from sapwood.tree._target_outlook cimport look_at_targets, outlooks_in, take_down_targets
from sapwood.tree._target_records cimport (
    TargetLeaf, TargetNote, TargetOutlook, TargetStream, coefficients_of, kept_doubles,
    model_of, row_doubles, slot_doubles, terms_doubles,
)
from sapwood.tree._watch cimport RAW, Grid, KeptRow, Slot, lay_grid, most_kept, slot_at, slot_of


def note_size(Py_ssize_t targets):
    """Return how many doubles a note about several targets has."""
    return note_doubles(targets)


# -- learning ---------------------------------------------------------------------------------


cdef void learn_targets(
    TreeTables tables, Py_ssize_t leaf, const double* row, const double* y, double w,
    uint64_t key, bint at_once,
) noexcept nogil:
    """Predict and learn a row whose leaf is known; at once if it is predicted only now.

    At least one of its y is not missing.
    """
    cdef LeafRecord* record = tables.leaves + leaf
    cdef TargetOutlook* outlooks = outlooks_in(tables, tables.scratch)
    cdef double* added = tables.scratch + row_doubles(
        tables.features, tables.targets, tables.separate
    )
    cdef const TargetNote* notes
    cdef bint any_missing = False
    cdef TriedRow tried
    cdef Py_ssize_t target
    if record.watching:
        find_slots(tables, leaf, row)
    look_at_targets(tables, leaf, row, tables.scratch)
    if tables.linear:
        find_directions(tables, leaf)
    notes = recall(tables, leaf, key, at_once)
    try_row(tables, leaf, row, &tried)
    if tables.rows == 0.0:
        # The first review is due after so many rows, whatever they weigh.
        record.due *= w
        record.review *= w
    added[0] = w
    for target in range(tables.targets):
        added[1 + 2 * target] = added[2 + 2 * target] = 0.0
        if y[target] != y[target]:
            any_missing = True
            continue
        learn_target(
            tables, leaf, target, row, y[target], w, at_once, &tried,
            NULL if notes == NULL else notes + target, outlooks + target, added + 1 + 2 * target,
        )
    if tables.linear:
        for target in range(tables.targets if tables.separate else 1):
            shrink(tables, leaf, target, outlooks[target].unusual, w)
    tables.rows += 1.0
    tables.weight += w
    record.rows += 1.0
    record.weight += w
    if record.watching:
        watch_row(tables, leaf, row, y, added, any_missing)
    for target in range(tables.targets):
        if y[target] == y[target] and tables.target_streams[target].rows <= EARLY:
            move_origin_if_far(tables, leaf, target, y[target])


cdef inline void find_directions(TreeTables tables, Py_ssize_t leaf) noexcept nogil:
    """Find how unusual the row is, for all targets at once if their models share P."""
    cdef Py_ssize_t features = tables.features, terms = terms_of(features), target
    cdef TargetOutlook* outlooks = outlooks_in(tables, tables.scratch)
    cdef const double* covariance
    cdef double* z
    for target in range(tables.targets):
        if target > 0 and not tables.separate:
            outlooks[target].unusual = outlooks.unusual
            continue
        z = tables.scratch + target * terms_doubles(features) + features
        covariance = model_of(
            tables.models[leaf], features, tables.separate, target
        ) + covariance_at(features)
        outlooks[target].unusual = direction(covariance, z, terms, z + terms)


cdef const TargetNote* recall(
    TreeTables tables, Py_ssize_t leaf, uint64_t key, bint at_once
) noexcept nogil:
    """What was said about a row when it was predicted, if that was noted; else NULL."""
    cdef const double* found = NULL
    if not tables.tracking:
        return NULL
    if tables.rows > 0.0 and tables.notes.count > 0:
        if at_once:
            take_down_targets(tables, leaf, tables.scratch, tables.notes.leave(key))
        found = tables.notes.take(key, tables.rows)
        if found != NULL:
            return <const TargetNote*>(found + 1)
    if at_once and tables.rows > 0.0:
        count_at_once(tables.notes)
    elif not at_once and tables.notes.count == 0:
        take_blank(tables.notes)
    return NULL


cdef inline const Saying* set_said(
    const TargetLeaf* own, const TargetNote* note, bint at_once, TargetOutlook* outlook
) noexcept nogil:
    """Set what the experts said when the row was predicted; what was said of it, or NULL.

    As `recall` of the kernel. If it is predicted just now, there is nothing to be set.
    """
    cdef Py_ssize_t expert
    if note != NULL and note.saying.known > 0.0:
        for expert in range(EXPERTS):
            outlook.said[expert] = note.experts[expert] + (note.origin - own.origin)
        return &note.saying
    if at_once:
        return &outlook.saying
    for expert in range(FAST):
        outlook.said[expert] = outlook.experts[expert]
    for expert in range(FAST, EXPERTS):
        outlook.said[expert] = 0.25 * outlook.experts[expert] + 0.75 * outlook.experts[1]
    return NULL


cdef void learn_target(
    TreeTables tables, Py_ssize_t leaf, Py_ssize_t target, const double* row, double y, double w,
    bint at_once, const TriedRow* tried, const TargetNote* note, TargetOutlook* outlook,
    double* added,
) noexcept nogil:
    """Learn the y of a target, which was predicted just before; what slots are to add is set."""
    cdef TargetStream* stream = tables.target_streams + target
    cdef TargetLeaf* own = tables.target_leaf(leaf, target)
    cdef const Saying* said
    cdef const double* experts = outlook.experts  # as they were when the row was predicted
    cdef double distance, residual, delta, share
    if stream.rows > 0.0:
        y = held_near(
            y, outlook.saying.prediction, stream.rows, stream.low, stream.high, &stream.usual
        )
        if tables.tracking:
            said = set_said(own, note, at_once, outlook)
            experts = &outlook.experts[0] if said == &outlook.saying else &outlook.said[0]
            if said != NULL:
                judge(tables.layer + target, tables.layer_rules, said, y, w, stream.rows)
            follow(tables.layer + target, outlook.tree, y, w)
        if tried.is_tried:
            add_costs(tables, leaf, target, tried, y, w, outlook)
    else:
        start_target(tables, leaf, target, y)
    distance = y - own.origin
    add_to_stream(stream, y, w)
    residual = delta = distance - own.mean
    own.mean_weight += w
    own.mean += delta * (w / own.mean_weight)
    if tables.linear:
        residual = learn_linear(tables, leaf, target, outlook, distance, w)
    judge_experts(tables, own, outlook.experts, experts, distance, w)
    own.rows += 1.0
    own.weight += w
    share = w / own.weight
    delta = distance - own.target_mean
    own.target_mean += delta * share
    own.target_m2 += w * delta * delta * (1.0 - share)
    delta = residual - own.residual_mean
    own.residual_mean += delta * share
    own.residual_m2 += w * delta * delta * (1.0 - share)
    added[0], added[1] = w * distance, w * residual
    if tables.has_categories:
        learn_levels(tables, target, row, y - stream.first, w)


cdef void start_target(
    TreeTables tables, Py_ssize_t leaf, Py_ssize_t target, double y
) noexcept nogil:
    """Take the first y of a target: all leaves measure it from there."""
    cdef TargetStream* stream = tables.target_streams + target
    cdef Py_ssize_t each
    stream.first = stream.low = stream.high = y
    for each in range(tables.leaf_count):
        tables.target_leaf(each, target).origin = y
    if tables.tracking:
        start_layer(tables.layer + target, tables.layer_rules, y)


cdef inline void add_to_stream(TargetStream* stream, double y, double w) noexcept nogil:
    cdef double share, delta = (y - stream.first) - stream.mean
    stream.rows += 1.0
    stream.weight += w
    stream.low = y if y < stream.low else stream.low
    stream.high = y if y > stream.high else stream.high
    share = w / stream.weight
    stream.mean += delta * share
    stream.m2 += w * delta * delta * (1.0 - share)


cdef inline double learn_linear(
    TreeTables tables, Py_ssize_t leaf, Py_ssize_t target, const TargetOutlook* outlook,
    double distance, double w,
) noexcept nogil:
    """Move the linear models of a target; the error of the one that was best before.

    P shrinks by every row, shared or not, so that nothing depends on when categories came. A
    target that was missing in some of them knows as much less as it has seen fewer rows, and so
    moves by more than P says.
    """
    cdef TargetLeaf* own = tables.target_leaf(leaf, target)
    cdef Py_ssize_t features = tables.features, terms = terms_of(features), rate
    cdef double* z = tables.scratch + features
    cdef double errors[RATES]
    cdef double least = own.errors[1], residual = distance - outlook.experts[1]
    cdef double unusual = outlook.unusual, evidence
    for rate in range(RATES):
        errors[rate] = distance - outlook.experts[1 + rate]
        residual = errors[rate] if own.errors[1 + rate] < least else residual
        least = own.errors[1 + rate] if own.errors[1 + rate] < least else least
    w = w if w < <double>HEAVIEST else <double>HEAVIEST
    if not unusual > 0.0:
        return residual
    evidence = w * unusual * ((tables.leaves[leaf].rows + 1.0) / (own.rows + 1.0))
    if tables.separate:
        z += target * terms_doubles(features)
    move_coefficients(
        coefficients_of(tables.models[leaf], features, tables.separate, target), z + terms, terms,
        1.0 / unusual, evidence / (1.0 + evidence), errors, LEAST, w,
    )
    return residual


cdef inline void shrink(
    TreeTables tables, Py_ssize_t leaf, Py_ssize_t target, double unusual, double w
) noexcept nogil:
    """Let P, of a target or of all, know one row more."""
    cdef double rows = tables.leaves[leaf].rows
    cdef Py_ssize_t features = tables.features, terms = terms_of(features)
    cdef double* z = tables.scratch + target * terms_doubles(features) + features
    cdef double* covariance = model_of(
        tables.models[leaf], features, tables.separate, target
    ) + covariance_at(features)
    w = w if w < <double>HEAVIEST else <double>HEAVIEST
    if not unusual > 0.0:
        return
    if rows < YOUNG:
        shrink_covariance(covariance, z, z + terms, terms, unusual, w)
    elif rows < LONG_MEMORY and <int64_t>rows % SAMPLE == 0:
        shrink_covariance(covariance, z, z + terms, terms, unusual, SAMPLE * w)


cdef inline void judge_experts(
    TreeTables tables, TargetLeaf* own, const double* experts, const double* said,
    double distance, double w,
) noexcept nogil:
    """Let the faded errors of the experts of a target go on by a row; as those of the kernel."""
    cdef double now, then
    cdef Py_ssize_t expert
    for expert in range(EXPERTS if tables.linear else 1):
        now = distance - experts[expert]
        own.errors[expert] = FADE * own.errors[expert] + w * now * now
    if tables.tracking:
        for expert in range(EXPERTS if tables.linear else 1):
            now, then = distance - experts[expert], distance - said[expert]
            own.said[expert] = FADE * own.said[expert] + w * (0.5 * (now * now + then * then))


cdef void learn_levels(
    TreeTables tables, Py_ssize_t target, const double* row, double y, double w
) noexcept nogil:
    """Keep the mean y of each category, by which it enters the linear models of a target."""
    cdef double* levels = tables.levels + 2 * CATEGORIES * tables.features * target
    cdef Py_ssize_t feature
    cdef double* level
    for feature in range(tables.features):
        if tables.is_category[feature] and row[feature] == row[feature]:
            level = levels + 2 * (CATEGORIES * feature + <Py_ssize_t>row[feature])
            level[0] += w
            level[1] += (y - level[1]) * (w / level[0])


cdef void fetch_leaf(TreeTables tables, Py_ssize_t leaf) noexcept nogil:
    """Let the models and records of the leaf of the next row be fetched, and its grids."""
    fetch(tables.models[leaf], tables.model_table.doubles if tables.linear else 0)
    if tables.targets > 1:
        fetch(
            <double*>tables.target_leaf(leaf, 0),
            tables.targets * <Py_ssize_t>sizeof(TargetLeaf) // <Py_ssize_t>sizeof(double),
        )
    else:
        fetch(
            <double*>(tables.leaves + leaf),
            <Py_ssize_t>sizeof(LeafRecord) // <Py_ssize_t>sizeof(double),
        )
    if tables.leaves[leaf].watching:
        fetch(
            tables.watches[leaf],
            tables.features * <Py_ssize_t>sizeof(Grid) // <Py_ssize_t>sizeof(double),
        )


cdef inline void fetch(double* start, Py_ssize_t doubles) noexcept nogil:
    cdef Py_ssize_t place
    for place in range(0, doubles, 8):
        prefetch_for_write(start + place)


# -- slots ------------------------------------------------------------------------------------


cdef inline void find_slots(TreeTables tables, Py_ssize_t leaf, const double* row) noexcept nogil:
    """Find the slot of each feature, NULL where there is none yet, and let it be fetched."""
    cdef const Grid* grid = <Grid*>tables.watches[leaf]
    cdef Slot* slots = <Slot*>(grid + tables.features)
    cdef Slot* found
    cdef Py_ssize_t feature, count, line, size = tables.slot_size
    cdef double x
    for feature in range(tables.features):
        count = slots_between(tables.slot_starts, feature)
        x = row[feature]
        found = NULL
        if x != x:
            found = slot_at(slots, size, count)
        elif grid.inverse > 0.0:
            found = slot_at(slots, size, slot_of(grid, count, x))
        tables.found[feature] = found
        if found != NULL:
            for line in range(0, size, 8):
                prefetch_for_write(<double*>found + line)
        grid += 1
        slots = slot_at(slots, size, count + 1)


cdef void watch_row(
    TreeTables tables, Py_ssize_t leaf, const double* row, const double* y, const double* added,
    bint any_missing,
) noexcept nogil:
    """Let the slots that `find_slots` has found see a row."""
    cdef Py_ssize_t feature, place, size = tables.slot_size, targets = tables.targets
    cdef double* slot
    cdef double* gaps
    cdef double* kept
    for feature in range(tables.features):
        slot = <double*>tables.found[feature]
        if slot != NULL:
            add_to_slot(slot, added, size)
            if any_missing:
                place = (slot - <double*>tables.slots_of(leaf, feature)) // size
                add_gaps(tables.gaps_of(leaf, feature) + targets * place, y, added[0], targets)
        else:
            place = <Py_ssize_t>tables.grid_of(leaf, feature).kept
            kept = <double*>slot_at(tables.slots_of(leaf, feature), size + 1, place)
            gaps = tables.gaps_of(leaf, feature) + targets * place
            copy(added, size, kept)
            kept[size] = row[feature]
            for place in range(targets):
                gaps[place] = added[0] if y[place] != y[place] else 0.0
            lay_grid_if_due(tables, leaf, feature)


cdef inline void add_to_slot(double* slot, const double* added, Py_ssize_t size) noexcept nogil:
    """Add doubles; four at a time, spelt out, as compilers then do it at once."""
    cdef Py_ssize_t place
    for place in range(size // 4):
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


cdef void lay_grid_if_due(TreeTables tables, Py_ssize_t leaf, Py_ssize_t feature) noexcept nogil:
    """Count a row that was kept; with the last of them, lay the grid and put all into its slots.

    As `keep_row`: rows of one value make no grid, but become one row.
    """
    cdef Grid* grid = tables.grid_of(leaf, feature)
    cdef Slot* slots = tables.slots_of(leaf, feature)
    cdef double* gaps = tables.gaps_of(leaf, feature)
    cdef Py_ssize_t size = tables.slot_size, targets = tables.targets, count = tables.slots
    cdef Py_ssize_t enough = most_kept(count), width = kept_doubles(targets), row, slot
    cdef double* rows = slot_doubles(targets) + tables.scratch + row_doubles(
        tables.features, targets, tables.separate
    )
    cdef KeptRow places[RAW]
    cdef double* each
    cdef bint is_constant = True
    grid.kept += 1.0
    if <Py_ssize_t>grid.kept < enough:
        return
    for row in range(enough):
        each = rows + width * row
        copy(<double*>slot_at(slots, size + 1, row), size + 1, each)
        copy(gaps + targets * row, targets, each + size + 1)
        places[row].x = each[size]
        is_constant = is_constant and places[row].x == places[0].x
    for slot in range(count * size):
        (<double*>slots)[slot] = 0.0
    for slot in range(count * targets):
        gaps[slot] = 0.0
    if is_constant:
        grid.kept = 1.0
        (<double*>slots)[size] = places[0].x
    else:
        lay_grid(grid, places, enough, count)
    for row in range(enough):
        each = rows + width * row
        slot = 0 if is_constant else slot_of(grid, count, each[size])
        add_to_slot(<double*>slot_at(slots, size, slot), each, size)
        add_to_slot(gaps + targets * slot, each + size + 1, targets)


# -- the first rows ---------------------------------------------------------------------------


cdef void move_origin_if_far(
    TreeTables tables, Py_ssize_t leaf, Py_ssize_t target, double y
) noexcept nogil:
    """Measure the y of a target in a leaf from another one, if the first was very far away."""
    cdef TargetLeaf* own = tables.target_leaf(leaf, target)
    cdef double shift = own.origin - y
    cdef double* coefficients
    cdef Py_ssize_t each, feature, count, rate
    if not fabs(y) < NEARER * fabs(own.origin):
        return
    for each in range(tables.leaf_count):
        if tables.target_leaf(each, target).rows == 0.0:
            tables.target_leaf(each, target).origin = y
    own.origin = y
    own.mean += shift
    own.target_mean += shift
    if tables.linear:
        coefficients = coefficients_of(
            tables.models[leaf], tables.features, tables.separate, target
        )
        for rate in range(RATES):
            coefficients[rate] += shift
    if not tables.leaves[leaf].watching:
        return
    for feature in range(tables.features):
        count = slots_between(tables.slot_starts, feature)
        shift_slot(tables, leaf, feature, tables.slot_size, count, target, shift)
        if tables.grid_of(leaf, feature).inverse > 0.0:
            for each in range(count):
                shift_slot(tables, leaf, feature, tables.slot_size, each, target, shift)
        else:
            for each in range(<Py_ssize_t>tables.grid_of(leaf, feature).kept):
                shift_slot(tables, leaf, feature, tables.slot_size + 1, each, target, shift)


cdef inline void shift_slot(
    TreeTables tables, Py_ssize_t leaf, Py_ssize_t feature, Py_ssize_t size, Py_ssize_t place,
    Py_ssize_t target, double shift,
) noexcept nogil:
    """Add to the y of a target in a slot, or in a row that is kept."""
    cdef double* slot = <double*>slot_at(tables.slots_of(leaf, feature), size, place)
    cdef double gap = tables.gaps_of(leaf, feature)[tables.targets * place + target]
    slot[1 + 2 * target] += shift * (slot[0] - gap)
