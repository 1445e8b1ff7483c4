"""Convert a tree to other units, as if a column, or y, had always been scale * it + shift.

Tables are changed in place, by arithmetic alone, so that nothing can fail. `fits_column` and
`fits_target` check before whether all numbers stay within their bounds. Trees with observers do not
support changes of units.
"""

from libc.float cimport DBL_MAX
from libc.math cimport fabs

from sapwood.corrector._layer cimport CANDIDATES, LEVELS, TERMS, CorrectedPrediction
from sapwood.tree._facts cimport NO_GRID, SAMPLES, ColumnFacts, is_on_grid
from sapwood.tree._target_encoding cimport HEAD
from sapwood.tree._records cimport (
    CATEGORIES, EXPERTS, LEAF, NUMBER, RATES, LeafRecord, NodeRecord, PendingPrediction, centres_at,
    scales_at, terms_of,
)
from sapwood.tree._tables cimport TreeTables, slots_between
from sapwood.tree._target_records cimport model_of
from sapwood.tree._units cimport CALM, FIRST_PATIENCE, ColumnUnits
from sapwood.tree._watch cimport Grid, KeptRow, Slot, slot_at

# What centres, thresholds and borders of slots may be, and the width of slots at least.
cdef double FARTHEST = 1e299
cdef double NARROWEST = 1e-290
# And y, coefficients, scales.
cdef double LARGEST_Y = 1e100
cdef double LARGEST_COEFFICIENT = 1e140


cdef bint fits_column(
    TreeTables tables, Py_ssize_t feature, double scale, double shift
) noexcept nogil:
    """Whether all that is known of a column stays within bounds in other units."""
    cdef Py_ssize_t leaf, node, model
    cdef const double* page
    for node in range(tables.topology.count):
        if is_cut(tables, node, feature):
            if not fabs(scale * tables.topology.nodes[node].threshold) + fabs(shift) < FARTHEST:
                return False
    for leaf in range(tables.leaf_count):
        for model in range(models_of(tables)):
            page = model_of(tables.models[leaf], tables.features, tables.column.separate, model)
            if not (
                fabs(scale * page[centres_at(tables.features) + feature]) + fabs(shift) < FARTHEST
                and page[scales_at(tables.features) + feature] / scale < FARTHEST
            ):
                return False
        if tables.leaves[leaf].watching and not fits_page(
            tables, tables.watches[leaf], feature, scale, shift
        ):
            return False
    if tables.trial.leaf >= 0:
        return (
            fabs(scale * tables.trial.threshold) + fabs(shift) < FARTHEST
            and fits_page(tables, tables.trial_pages[0], feature, scale, shift)
            and fits_page(tables, tables.trial_pages[1], feature, scale, shift)
        )
    return True


cdef bint fits_page(
    TreeTables tables, const double* page, Py_ssize_t feature, double scale, double shift
) noexcept nogil:
    cdef const Grid* grid = <const Grid*>page + feature
    cdef Py_ssize_t row
    if grid.inverse > 0.0:
        return (
            fabs(scale * grid.low) + scale * grid.width * tables.slots + fabs(shift) < FARTHEST
            and scale * grid.width > NARROWEST
        )
    for row in range(<Py_ssize_t>grid.kept):
        if not fabs(scale * kept_x(tables, page, feature, row)[0]) + fabs(shift) < FARTHEST:
            return False
    return True


cdef inline double* kept_x(
    TreeTables tables, const double* page, Py_ssize_t feature, Py_ssize_t row
) noexcept nogil:
    """The value of a column in a row that is kept while there is no grid: it is after the sums."""
    cdef const Slot* slots = slot_at(
        <const Slot*>(<const Grid*>page + tables.features), tables.column.slot_size,
        tables.column.slot_starts[feature],
    )
    return <double*>slot_at(slots, tables.column.slot_size + 1, row) + tables.column.slot_size


cdef inline Py_ssize_t models_of(TreeTables tables) noexcept nogil:
    """How many models of a leaf have centres and scales of their own."""
    if not tables.linear:
        return 0
    return tables.targets if tables.column.separate else 1


cdef bint fits_target(TreeTables tables, double scale, double shift) noexcept nogil:
    """Whether all that is known of y stays within bounds in other units."""
    cdef Py_ssize_t leaf, term, feature
    cdef double low = tables.stream.low, high = tables.stream.high
    cdef double farthest = fabs(low) if -low > high else fabs(high)
    if not scale * farthest + fabs(shift) < LARGEST_Y:
        return False
    if tables.linear:
        for leaf in range(tables.leaf_count):
            for term in range(RATES * terms_of(tables.features)):
                if not fabs(scale * tables.models[leaf][term]) < LARGEST_COEFFICIENT:
                    return False
    for feature in range(tables.features):
        if has_encodings(tables, feature) and not fits_column(tables, feature, scale, 0.0):
            return False
    return True


cdef inline bint has_encodings(TreeTables tables, Py_ssize_t feature) noexcept nogil:
    """Whether means of y stand for the values of a feature."""
    return tables.column.is_category[feature] or tables.column.places[feature] >= 0


cdef inline bint is_cut(TreeTables tables, Py_ssize_t node, Py_ssize_t feature) noexcept nogil:
    """Whether a node has a threshold for a feature."""
    cdef const NodeRecord* record = tables.topology.nodes + node
    return record.kind == NUMBER and record.feature == feature


cdef void rescale_column(
    TreeTables tables, Py_ssize_t feature, double scale, double shift
) noexcept nogil:
    """Convert all statistics of a column to other units."""
    cdef Py_ssize_t node, leaf, sample
    cdef double* page
    cdef double* threshold
    for node in range(tables.topology.count):
        if is_cut(tables, node, feature):
            threshold = &tables.topology.nodes[node].threshold
            threshold[0] = scale * threshold[0] + shift
    rescale_terms(tables, feature, scale, shift)
    for leaf in range(tables.leaf_count):
        if tables.leaves[leaf].watching and not tables.column.is_category[feature]:
            move_grid(tables, tables.watches[leaf], feature, scale, shift)
    if tables.trial.leaf >= 0 and not tables.column.is_category[feature]:
        if tables.trial.feature == feature:
            tables.trial.threshold = scale * tables.trial.threshold + shift
        move_grid(tables, tables.trial_pages[0], feature, scale, shift)
        move_grid(tables, tables.trial_pages[1], feature, scale, shift)
    if has_encodings(tables, feature):
        return
    for sample in range(SAMPLES):
        page = tables.column.samples + sample * tables.features + feature
        page[0] = scale * page[0] + shift
    tables.column.facts[feature].last = scale * tables.column.facts[feature].last + shift
    rescale_range(tables.column.facts + feature, scale, shift)
    coarsen(tables, feature, scale, shift)
    move_units(tables.column.units + 1 + feature, scale, shift)


cdef void move_units(ColumnUnits* units, double scale, double shift) noexcept nogil:
    """Convert the unit statistics of a column, and end its suspicion."""
    units.low, units.high = scale * units.low + shift, scale * units.high + shift
    units.mean, units.last = scale * units.mean + shift, scale * units.last + shift
    units.variance *= scale * scale
    units.step *= scale
    units.lately = units.step
    units.state = CALM
    units.run = units.still = 0.0
    units.patience = FIRST_PATIENCE


cdef void rescale_terms(
    TreeTables tables, Py_ssize_t feature, double scale, double shift
) noexcept nogil:
    """Convert the terms of a column in linear models."""
    cdef Py_ssize_t leaf, model
    cdef double* page
    for leaf in range(tables.leaf_count):
        for model in range(models_of(tables)):
            page = model_of(tables.models[leaf], tables.features, tables.column.separate, model)
            page += centres_at(tables.features) + feature
            if page[tables.features] > 0.0:  # its scale, without which there is no centre
                page[0] = scale * page[0] + shift
                page[tables.features] /= scale


cdef void rescale_range(ColumnFacts* facts, double scale, double shift) noexcept nogil:
    """Convert the range of a column, if it has one."""
    if facts.low <= facts.high:
        facts.low, facts.high = scale * facts.low + shift, scale * facts.high + shift
        facts.low = facts.low if facts.low > -FARTHEST else -DBL_MAX
        facts.high = facts.high if facts.high < FARTHEST else DBL_MAX


cdef void coarsen(
    TreeTables tables, Py_ssize_t feature, double scale, double shift
) noexcept nogil:
    """Find the grid on which the values of a column lie from now on."""
    cdef double decimals = tables.column.facts[feature].decimals
    if decimals >= NO_GRID:
        return
    while scale < 0.5 and decimals < NO_GRID:
        scale *= 10.0
        decimals += 1.0
    while decimals < NO_GRID and not (
        is_on_grid(scale, <int>decimals) and is_on_grid(shift, <int>decimals)
    ):
        decimals += 1.0
    tables.column.facts[feature].decimals = decimals
    tables.gridded -= decimals == NO_GRID


cdef void move_grid(
    TreeTables tables, double* page, Py_ssize_t feature, double scale, double shift
) noexcept nogil:
    """Move the grid of a column to its values in other units, or the rows that are stored."""
    cdef Grid* grid = <Grid*>page + feature
    cdef double* x
    cdef Py_ssize_t row
    if grid.inverse > 0.0:
        grid.low = scale * grid.low + shift
        grid.width *= scale
        grid.inverse = 1.0 / grid.width
        return
    for row in range(<Py_ssize_t>grid.kept):
        x = kept_x(tables, page, feature, row)
        x[0] = scale * x[0] + shift


cdef void rescale_target(TreeTables tables, double scale, double shift) noexcept nogil:
    """Convert all statistics of the only y to other units, but for the error-correction layer."""
    cdef double square = scale * scale
    cdef Py_ssize_t node, leaf, feature, place
    cdef NodeRecord* record
    tables.stream.first = scale * tables.stream.first + shift
    tables.stream.low = scale * tables.stream.low + shift
    tables.stream.high = scale * tables.stream.high + shift
    tables.stream.usual *= square
    for node in range(tables.topology.count):
        record = tables.topology.nodes + node
        record.deviation *= scale
        if record.kind != LEAF:
            record.mean = scale * record.mean + shift
            record.gain *= square
    for leaf in range(tables.leaf_count):
        rescale_leaf(tables, leaf, scale, shift)
    if tables.trial.leaf >= 0:
        for place in range(2):
            tables.trial.mean[place] *= scale
            tables.trial.m2[place] *= square
            rescale_sums(tables, tables.trial_pages[place], scale)
    for feature in range(tables.features):
        tables.column.facts[feature].cost *= square
        tables.column.facts[feature].late_cost *= square
        if tables.column.split_encoded and tables.column.places[feature] >= 0:
            # Split encodings do not change; only linear models read target encodings.
            rescale_terms(tables, feature, scale, 0.0)
            tables.column.encoding_weights[feature] /= scale
        elif has_encodings(tables, feature):
            rescale_column(tables, feature, scale, 0.0)
    rescale_encodings(tables, scale)
    if tables.tracking:
        for place in range(tables.pending.room if tables.pending.count > 0 else 0):
            rescale_pending(
                <PendingPrediction*>(tables.pending.contents + place * tables.pending.width),
                scale, shift,
            )


cdef void rescale_leaf(
    TreeTables tables, Py_ssize_t leaf, double scale, double shift
) noexcept nogil:
    """Convert the statistics of a leaf to other units of y."""
    cdef LeafRecord* record = tables.leaves + leaf
    cdef double square = scale * scale
    cdef Py_ssize_t place
    record.part.origin = scale * record.part.origin + shift
    record.part.mean *= scale
    record.part.target_mean *= scale
    record.part.target_m2 *= square
    record.part.residual_mean *= scale
    record.part.residual_m2 *= square
    for place in range(EXPERTS):
        record.part.errors[place] *= square
        record.part.issued_errors[place] *= square
    if tables.linear:
        for place in range(RATES * terms_of(tables.features)):
            tables.models[leaf][place] *= scale
    if record.watching:
        rescale_sums(tables, tables.watches[leaf], scale)


cdef void rescale_sums(TreeTables tables, double* page, double scale) noexcept nogil:
    """Convert slots, and stored rows, to other units of y."""
    cdef Grid* grid = <Grid*>page
    cdef Slot* slots = <Slot*>(grid + tables.features)
    cdef KeptRow* kept
    cdef Py_ssize_t feature, slot, count
    for feature in range(tables.features):
        count = slots_between(tables.column.slot_starts, feature)
        rescale_slot(slots + count, scale)
        kept = <KeptRow*>slots
        for slot in range(count if grid.inverse > 0.0 else <Py_ssize_t>grid.kept):
            rescale_slot(slots + slot if grid.inverse > 0.0 else &kept[slot].sums, scale)
        grid += 1
        slots += count + 1


cdef inline void rescale_slot(Slot* slot, double scale) noexcept nogil:
    slot.target *= scale
    slot.residual *= scale


cdef void rescale_encodings(TreeTables tables, double scale) noexcept nogil:
    """Convert target encodings, which are measured from the first y, to other units."""
    cdef double* many = tables.column.many_encodings
    cdef Py_ssize_t feature, place
    if tables.column.has_categories:
        for place in range(CATEGORIES * tables.features):
            tables.column.encodings[2 * place + 1] *= scale
    for feature in range(tables.features):
        if tables.column.places[feature] >= 0:
            for place in range(HEAD + tables.column.places[feature]):
                # Those after the first of the head are squares.
                many[2 * place + 1] *= scale if place == 0 or place >= HEAD else scale * scale
            many += 2 * (HEAD + tables.column.places[feature])


cdef void rescale_pending(PendingPrediction* pending, double scale, double shift) noexcept nogil:
    """Convert a pending prediction to other units."""
    cdef CorrectedPrediction* corrected = &pending.corrected
    cdef Py_ssize_t place
    corrected.model = scale * corrected.model + shift
    corrected.prediction = scale * corrected.prediction + shift
    for place in range(LEVELS):
        corrected.distances.level[place] = scale * corrected.distances.level[place] + shift
        corrected.distances.beyond[place] *= scale
    for place in range(TERMS):
        corrected.terms[place] *= scale
    for place in range(CANDIDATES):
        corrected.candidates[place] = scale * corrected.candidates[place] + shift
    pending.origin = scale * pending.origin + shift
    for place in range(EXPERTS):
        pending.experts[place] *= scale


def in_other_units(TreeTables tables not None, Py_ssize_t feature, double scale, double shift):
    """Convert a column, or y (-1), to other units, if all stays within bounds; return whether."""
    if not -(tables.targets == 1) <= feature < tables.features or not tables.slots:
        raise IndexError(feature)
    if feature < 0:
        if fits_target(tables, scale, shift):
            rescale_target(tables, scale, shift)
            return True
    elif fits_column(tables, feature, scale, shift):
        rescale_column(tables, feature, scale, shift)
        return True
    return False
