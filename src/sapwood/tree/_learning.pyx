"""What a row does to a tree: to its leaf, to the levels of categories, to the last layer.

Nothing here can fail: whatever may was done before, see `TreeKernel.make_ready`.
"""

from libc.math cimport fabs
from libc.stdint cimport int64_t

from sapwood.blend._layer cimport Saying, follow, judge, start_layer
from sapwood.blend._notes cimport take_blank
from sapwood.moments cimport PIVOT
from sapwood.observers._rows cimport CELLS
from sapwood.observers._store cimport Store
from sapwood.tree._columns cimport see_columns, weigh_units
from sapwood.tree._experts cimport EARLY, FADE, LEAST, NEARER
from sapwood.tree._guard cimport held_near
from sapwood.tree._levels cimport HEAD, learn_level
from sapwood.tree._model cimport (
    HEAVIEST, LONG_MEMORY, SAMPLE, YOUNG, direction, move_coefficients, shrink_covariance,
)
from sapwood.tree._outlook cimport ask_experts, mix_experts, say_last
from sapwood.tree._prefetch cimport prefetch_for_write
from sapwood.tree._recall cimport recall
from sapwood.tree._records cimport (
    CATEGORIES, EXPERTS, RATES, LeafRecord, covariance_at, terms_of,
)
from sapwood.tree._tables cimport slots_between
from sapwood.tree._trial cimport try_row
from sapwood.tree._units cimport CALM, FAR_OUT, FIRST_LOOK, LARGE_ERROR, WEIGHING
from sapwood.tree._unrest cimport mind_units
from sapwood.tree._watch cimport Grid, KeptRow, Slot, keep_row, slot_add, slot_of


cdef void learn_row(
    TreeTables tables,
    const double* row,
    const double* raw,
    double y,
    double w,
    uint64_t key,
    bint at_once,
    Outlook* outlook,
) noexcept nogil:
    """Predict and learn a row whose leaf is known; at once if it is predicted only now.

    The row is as `with_levels` has returned it for a raw one.
    """
    cdef const Saying* said = NULL
    cdef double given = y, error
    cdef bint is_odd = False, errs = False, is_sampled
    cdef bint is_doubted = tables.astir and tables.units[0].state != CALM
    cdef double* z = tables.scratch + tables.features
    cdef Py_ssize_t terms = terms_of(tables.features)
    if tables.leaves[outlook.leaf].watching:
        find_slots(tables, outlook.leaf, row)
    ask_experts(tables, row, tables.scratch, outlook)
    if tables.linear:
        outlook.unusual = direction(
            tables.models[outlook.leaf] + covariance_at(tables.features), z, terms, z + terms
        )
        is_odd = (
            outlook.unusual * tables.leaves[outlook.leaf].rows > <double>FAR_OUT * terms
            and tables.rows >= FIRST_LOOK
        )
    mix_experts(tables, outlook)
    outlook.said = outlook.experts
    if tables.rows > 0.0:
        if tables.tracking:
            if at_once:
                say_last(tables, outlook)
            said = recall(tables, key, at_once, outlook)
            if said != NULL and said.known == tables.rows:
                outlook.saying.prediction = said.prediction  # as would be said now
            elif not at_once:
                say_last(tables, outlook)
        if is_doubted:
            y = outlook.tree  # whatever it is, it is not believed
        else:
            error = y - outlook.saying.prediction
            errs = tables.rows >= FIRST_LOOK and error * error > <double>LARGE_ERROR * tables.usual
            y = held_near(
                y, outlook.saying.prediction, tables.rows, tables.low, tables.high, &tables.usual
            )
        if tables.tracking and not is_doubted:
            if said != NULL:
                judge(tables.layer, tables.layer_rules, said, y, w, tables.rows)
            follow(tables.layer, outlook.tree, y, w)
    else:
        tables.first = tables.low = tables.high = y
        tables.leaves[outlook.leaf].origin = y
        # The first review is due after so many rows, whatever they weigh.
        tables.leaves[outlook.leaf].due *= w
        tables.leaves[outlook.leaf].review *= w
        if tables.tracking:
            start_layer(tables.layer, tables.layer_rules, y)
            if not at_once:
                take_blank(tables.notes)
    is_sampled = see_columns(tables, row, y, w, outlook)
    if tables.astir and tables.unrest.phase == WEIGHING:
        weigh_units(tables, raw, given, outlook)
    take(tables, row, y, w, outlook)
    if (is_sampled | is_odd | errs | tables.astir) and tables.minding:
        mind_units(tables, raw, given, given - outlook.tree, is_odd, errs, is_sampled)
        tables.astir = tables.unrest.stirred > 0.0


cdef inline void take(
    TreeTables tables, const double* row, double y, double w, const Outlook* outlook
) noexcept nogil:
    """Learn a row of which the experts were asked just before."""
    cdef LeafRecord* record = tables.leaves + outlook.leaf
    cdef double target = y - record.origin, residual, delta, share
    tables.rows += 1.0
    tables.weight += w
    tables.low = y if y < tables.low else tables.low
    tables.high = y if y > tables.high else tables.high
    residual = delta = target - record.mean
    record.mean_weight += w
    record.mean += delta * (w / record.mean_weight)
    if tables.linear:
        residual = learn_linear(tables, outlook.leaf, outlook, target, w)
    judge_experts(tables, target, w, outlook)
    record.rows += 1.0
    record.weight += w
    share = w / record.weight
    delta = target - record.target_mean
    record.target_mean += delta * share
    record.target_m2 += w * delta * delta * (1.0 - share)
    delta = residual - record.residual_mean
    record.residual_mean += delta * share
    record.residual_m2 += w * delta * delta * (1.0 - share)
    if record.watching:
        watch_row(tables, outlook.leaf, row, target, residual, w)
        if tables.trial.leaf == outlook.leaf:
            try_row(tables, row, residual, w)
    if tables.has_categories or tables.has_many:
        learn_levels(tables, row, y - tables.first, w)
    if tables.rows <= EARLY and fabs(y) < NEARER * fabs(record.origin):
        move_origin(tables, outlook.leaf, y)


cdef void move_origin(TreeTables tables, Py_ssize_t leaf, double origin) noexcept nogil:
    """Measure the y of the first leaf from another one, as the first was very far away."""
    cdef LeafRecord* record = tables.leaves + leaf
    cdef double shift = record.origin - origin
    cdef Grid* grids = <Grid*>tables.watches[leaf]
    cdef Py_ssize_t feature, slot, count, rate
    cdef Slot* slots
    cdef KeptRow* kept
    record.origin = origin
    record.mean += shift
    record.target_mean += shift
    if tables.linear:
        for rate in range(RATES):
            tables.models[leaf][rate] += shift
    if not record.watching:
        return
    for feature in range(tables.features):
        slots = tables.slots_of(leaf, feature)
        kept = <KeptRow*>slots
        count = slots_between(tables.slot_starts, feature)
        slots[count].target += shift * slots[count].weight
        if grids[feature].inverse > 0.0:
            for slot in range(count):
                slots[slot].target += shift * slots[slot].weight
        elif tables.slots:
            for slot in range(<Py_ssize_t>grids[feature].kept):
                kept[slot].sums.target += shift * kept[slot].sums.weight
        else:
            shift_first_target(<Store>tables.stores[leaf][feature], shift)


cdef inline void judge_experts(
    TreeTables tables, double target, double w, const Outlook* outlook
) noexcept nogil:
    """Let the faded errors of the experts of a leaf go on by a row.

    Growth is judged by what they say now. Their shares are judged, half and half, by what they
    say now and by what they said when the row was predicted.
    """
    cdef LeafRecord* record = tables.leaves + outlook.leaf
    cdef double now, then
    cdef Py_ssize_t expert
    for expert in range(EXPERTS if tables.linear else 1):
        now = target - outlook.experts[expert]
        record.errors[expert] = FADE * record.errors[expert] + w * now * now
    if tables.tracking:
        for expert in range(EXPERTS if tables.linear else 1):
            now, then = target - outlook.experts[expert], target - outlook.said[expert]
            record.said[expert] = (
                FADE * record.said[expert] + w * (0.5 * (now * now + then * then))
            )


cdef inline double learn_linear(
    TreeTables tables, Py_ssize_t leaf, const Outlook* outlook, double target, double w
) noexcept nogil:
    """Move the linear models of a leaf; the error of the one that was best before."""
    cdef LeafRecord* record = tables.leaves + leaf
    cdef double* page = tables.models[leaf]
    cdef double* covariance = page + covariance_at(tables.features)
    cdef Py_ssize_t terms = terms_of(tables.features), rate
    cdef double* z = tables.scratch + tables.features
    cdef double* v = z + terms
    cdef double errors[RATES]
    cdef double least = record.errors[1], residual, unusual = outlook.unusual
    residual = target - outlook.experts[1]
    for rate in range(RATES):
        errors[rate] = target - outlook.experts[1 + rate]
        residual = errors[rate] if record.errors[1 + rate] < least else residual
        least = record.errors[1 + rate] if record.errors[1 + rate] < least else least
    w = w if w < <double>HEAVIEST else <double>HEAVIEST
    if unusual > 0.0:
        move_coefficients(
            page, v, terms, 1.0 / unusual, w * unusual / (1.0 + w * unusual), errors, LEAST, w
        )
        if record.rows < YOUNG:
            shrink_covariance(covariance, z, v, terms, unusual, w)
        elif record.rows < LONG_MEMORY and <int64_t>record.rows % SAMPLE == 0:
            shrink_covariance(covariance, z, v, terms, unusual, SAMPLE * w)
    return residual


cdef inline void find_slots(TreeTables tables, Py_ssize_t leaf, const double* row) noexcept nogil:
    """Find the slot of each feature, NULL where there is none yet, and let it be fetched."""
    cdef const Grid* grid = <Grid*>tables.watches[leaf]
    cdef Slot* slots = <Slot*>(grid + tables.features)
    cdef Slot** found = tables.found
    cdef Py_ssize_t feature, count = tables.slots
    cdef double x
    for feature in range(tables.features):
        if tables.has_categories:
            count = slots_between(tables.slot_starts, feature)
        x = row[feature]
        if x != x:
            found[feature] = slots + count
        elif grid.inverse > 0.0:
            found[feature] = slots + slot_of(grid, count, x)
        else:
            found[feature] = NULL
        prefetch_for_write(found[feature])
        grid += 1
        slots += count + 1


cdef inline void watch_row(
    TreeTables tables, Py_ssize_t leaf, const double* row, double target, double residual, double w
) noexcept nogil:
    """Let the slots that `find_slots` has found see a row, or the observers of the leaf."""
    cdef double weighted_target = w * target, weighted_residual = w * residual
    cdef Slot** found = tables.found
    cdef Py_ssize_t feature
    for feature in range(tables.features):
        if found[feature] != NULL:
            slot_add(found[feature], weighted_target, weighted_residual, w)
        elif tables.slots:
            keep_row(
                tables.grid_of(leaf, feature),
                tables.slots_of(leaf, feature),
                tables.slots,
                row[feature],
                weighted_target,
                weighted_residual,
                w,
            )
        else:
            observe(tables, leaf, feature, row[feature], target, residual, w)


cdef void observe(
    TreeTables tables,
    Py_ssize_t leaf,
    Py_ssize_t feature,
    double x,
    double target,
    double residual,
    double w,
) noexcept nogil:
    """Let an observer see a value, for which `make_ready` has made room."""
    cdef double[2] both
    both[0], both[1] = target, residual
    (<Store>tables.stores[leaf][feature]).take_one(x, both, w)


cdef void learn_levels(TreeTables tables, const double* row, double y, double w) noexcept nogil:
    """Keep the mean y of each category, by which it enters the linear models."""
    cdef Py_ssize_t feature
    cdef double* level
    cdef double* many = tables.many_levels
    if tables.has_many:
        for feature in range(tables.features):
            if tables.places[feature] >= 0:
                if row[-1 - feature] == row[-1 - feature]:
                    learn_level(
                        many, tables.places[feature], row[-1 - feature], y, w,
                        tables.weight / tables.rows,
                    )
                many += 2 * (HEAD + tables.places[feature])
    for feature in range(tables.features):
        if tables.is_category[feature] and row[feature] == row[feature]:
            level = tables.levels + 2 * (CATEGORIES * feature + <Py_ssize_t>row[feature])
            level[0] += w
            level[1] += (y - level[1]) * (w / level[0])


cdef inline void shift_first_target(Store store, double shift) noexcept nogil:
    """Add to the first target of all rows that an observer has seen."""
    cdef Py_ssize_t row
    for row in range(store.count):
        store.table[row, CELLS + PIVOT] += shift
