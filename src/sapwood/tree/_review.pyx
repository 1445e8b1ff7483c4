"""A leaf's scales and grids, brought up to its rows."""

from libc.math cimport fabs, sqrt
from libc.string cimport memset

from sapwood.observers._rows cimport PROTOTYPE, WEIGHT
from sapwood.observers._store cimport Store
from sapwood.tree._stream cimport mean_weight
from sapwood.tree._target_encoding cimport HEAD, MOST_PRIOR, REPEATS
from sapwood.tree._model cimport PRIOR
from sapwood.tree._records cimport (
    CATEGORIES, RATES, SQUARE_TERMS, centres_at, covariance_at, scales_at, terms_of,
)
from sapwood.tree._search cimport store_of
from sapwood.tree._tables cimport TreeTables
from sapwood.tree._target_records cimport coefficients_of, model_of
from sapwood.tree._watch cimport Grid, Slot, slot_at

# Scales that are off by more than this factor (centres: by half of it, in scales) are set again;
# by more than the second, the coefficient is forgotten.
cdef double TOLERATED_SCALE = 2.0
cdef double USELESS_SCALE = 16.0
# So it is where a variance, of the coefficient or of the constant, would leave these bounds: beyond
# them it has no information, and rows of large weight would turn the rest into rounding errors.
cdef double LEAST_VARIANCE = 1e-30
cdef double MOST_VARIANCE = 1e3
cdef double MOST_OF_CONSTANT = 1e6
cdef double MOST_COEFFICIENT = 1e140
cdef double MANY_ROWS = 1000.0
# A grid is laid again if more than this share of the rows is in the slots at its ends.
cdef double TOLERATED_BEYOND = 0.125


cdef struct Scale:
    double centre
    double deviation
    double spread_out  # the share of the rows that are not at the commonest place


cdef Scale scale_of_slots(
    const Slot* slots, Py_ssize_t size, Py_ssize_t count, const Grid* grid
) noexcept nogil:
    """Mean and deviation of a number, by its slots or the rows that are still kept."""
    cdef const Slot* kept
    cdef Places places = Places(0.0, 0.0, 0.0, 0.0)
    cdef Scale scale
    cdef Py_ssize_t slot
    cdef double weight
    if grid.inverse == 0.0:
        for slot in range(<Py_ssize_t>grid.kept):
            kept = slot_at(slots, size + 1, slot)  # after the sums comes x
            add_place(&places, (<const double*>kept)[size], kept.weight)
        return scale_of_places(&places)
    for slot in range(count):
        weight = slot_at(slots, size, slot).weight
        if weight > 0.0:
            add_place(&places, slot + 0.5, weight)
    if places.spread > 0.0:
        # Within a slot, rows are spread evenly, as far as anyone knows.
        places.spread += places.weight / 12.0
    scale = scale_of_places(&places)
    scale.centre = grid.low + scale.centre * grid.width
    scale.deviation *= grid.width
    return scale


cdef struct Places:
    # Weight, mean and M2 of places, and the largest weight of one of them.
    double weight
    double mean
    double spread
    double most


cdef inline void add_place(Places* places, double place, double w) noexcept nogil:
    cdef double delta = place - places.mean
    places.weight += w
    places.mean += delta * (w / places.weight)
    places.spread += w * delta * (place - places.mean)
    places.most = w if w > places.most else places.most


cdef inline Scale scale_of_places(const Places* places) noexcept nogil:
    if places.weight == 0.0:
        return Scale(0.0, 0.0, 0.0)
    return Scale(
        places.mean, sqrt(places.spread / places.weight), 1.0 - places.most / places.weight
    )


cdef Scale scale_of_category(
    TreeTables tables, Py_ssize_t leaf, Py_ssize_t feature, Py_ssize_t target
) noexcept nogil:
    """Mean and deviation of what stands for a category in the linear models of a target."""
    cdef Places places = Places(0.0, 0.0, 0.0, 0.0)
    cdef const Slot* slots = tables.slots_of(leaf, feature)
    cdef const double* gaps = tables.gaps_of(leaf, feature) + target
    cdef const double* levels = (
        tables.column.encodings + tables.column.encoding_doubles * target + 2 * CATEGORIES * feature
    )
    cdef Py_ssize_t code
    cdef double weight
    for code in range(CATEGORIES):
        weight = slot_at(slots, tables.column.slot_size, code).weight
        if tables.targets > 1:
            weight -= gaps[tables.targets * code]
        if weight > 0.0:
            add_place(&places, levels[2 * code + 1], weight)
    return scale_of_places(&places)


cdef Scale scale_of_encodings(
    TreeTables tables, Py_ssize_t feature, Py_ssize_t target
) noexcept nogil:
    """Mean and deviation of the encodings of a target over all rows, as leaves have no bins of
    them.

    The deviation is that between categories, but at least that of encodings of pure noise.
    """
    cdef const double* levels = (
        tables.column.many_encodings + tables.column.encoding_doubles * target
    )
    cdef double row_weight = mean_weight(&tables.stream)
    cdef double between
    cdef Py_ssize_t each
    for each in range(feature):
        if tables.column.places[each] >= 0:
            levels += 2 * (HEAD + tables.column.places[each])
    if tables.column.places[feature] == 0 or levels[4] == 0.0:
        return Scale(0.0, 0.0, 0.0)
    between = levels[5]
    if levels[2] >= REPEATS * row_weight:
        between = max(between - levels[3], between / (1 + MOST_PRIOR))
    return Scale(levels[1], sqrt(between), 1.0)


cdef Scale scale_of_observer(Store store) except *:
    """Mean and deviation of a number, by the elements of an observer in ascending order."""
    cdef Places places = Places(0.0, 0.0, 0.0, 0.0)
    cdef const Py_ssize_t[::1] order = store.order()
    cdef Py_ssize_t row
    for row in range(order.shape[0]):
        add_place(&places, store.table[order[row], PROTOTYPE], store.table[order[row], WEIGHT])
    return scale_of_places(&places)


cdef int find_scale(
    TreeTables tables, Py_ssize_t leaf, Py_ssize_t feature, Py_ssize_t target, Scale* scale
) except -1 nogil:
    """Find mean and deviation of what stands for a feature in the models of a target."""
    if tables.column.is_category[feature]:
        scale[0] = scale_of_category(tables, leaf, feature, target)
    elif tables.column.split_encoded and tables.column.places[feature] >= 0:
        scale[0] = scale_of_encodings(tables, feature, target)
    elif tables.slots == 0:
        with gil:
            scale[0] = scale_of_observer(store_of(tables, leaf, feature))
    else:
        scale[0] = scale_of_slots(
            tables.slots_of(leaf, feature),
            tables.column.slot_size,
            tables.slots,
            tables.grid_of(leaf, feature),
        )
    return 0


def deviation_of(TreeTables tables not None, Py_ssize_t leaf, Py_ssize_t feature):
    """Return the standard deviation of a feature in a leaf, as far as it was watched."""
    cdef Scale scale
    find_scale(tables, leaf, feature, 0, &scale)
    return scale.deviation


def review(TreeTables tables not None, Py_ssize_t leaf):
    """Bring the scales of a leaf's model, and the grids that it watches by, up to its rows."""
    review_leaf(tables, leaf)


cdef int review_leaf(TreeTables tables, Py_ssize_t leaf) except -1 nogil:
    """Bring the scales of a leaf's model, and the grids that it watches by, up to its rows.

    A few rows of one region are no evidence for another scale. Scales are computed while the tree
    is one leaf, and later only in leaves of many rows, or where a feature that was constant or
    missing has become spread out. A second call has no effect.
    """
    cdef Py_ssize_t feature, model
    cdef bint rescaling = tables.linear and (
        tables.leaf_count == 1 or tables.leaves[leaf].rows >= MANY_ROWS
    )
    for feature in range(tables.features):
        if tables.linear:
            for model in range(tables.targets if tables.column.separate else 1):
                review_scale(tables, leaf, feature, model, rescaling)
        if tables.slots and not tables.column.is_category[feature]:
            renew_grid(tables, leaf, feature)
    return 0


cdef int review_scale(
    TreeTables tables, Py_ssize_t leaf, Py_ssize_t feature, Py_ssize_t model, bint rescaling
) except -1 nogil:
    """Bring a scale up to a leaf's rows: that of a target, if each has its own, or that of all."""
    cdef const double* page = model_of(
        tables.models[leaf], tables.features, tables.column.separate, model
    )
    cdef Scale scale
    if not rescaling and page[scales_at(tables.features) + feature] != 0.0:
        return 0
    find_scale(tables, leaf, feature, model, &scale)
    if (
        1e-300 < scale.deviation < 1e300
        and fabs(scale.centre) < 1e300
        and (rescaling or scale.spread_out >= 0.5)
    ):
        rescale(tables, leaf, feature, model, scale.centre, 1.0 / scale.deviation)
    return 0


cdef void renew_grid(TreeTables tables, Py_ssize_t leaf, Py_ssize_t feature) noexcept nogil:
    """Start a grid again that has much beyond its ends, or all in one slot."""
    cdef Grid* grid = tables.grid_of(leaf, feature)
    cdef Slot* slots = tables.slots_of(leaf, feature)
    cdef Py_ssize_t size = tables.column.slot_size, count = tables.slots, slot
    cdef double weight = 0.0, most = 0.0, beyond
    if grid.inverse == 0.0:
        return
    for slot in range(count):
        weight += slot_at(slots, size, slot).weight
        most = max(most, slot_at(slots, size, slot).weight)
    beyond = max(slots.weight, slot_at(slots, size, count - 1).weight)
    if beyond > TOLERATED_BEYOND * weight or most == weight:
        memset(slots, 0, count * size * sizeof(double))
        if tables.targets > 1:
            memset(tables.gaps_of(leaf, feature), 0, count * tables.targets * sizeof(double))
        grid.inverse = grid.kept = grid.low = grid.width = 0.0


cdef inline double* coefficients_at(
    TreeTables tables, Py_ssize_t leaf, Py_ssize_t model, Py_ssize_t place
) noexcept nogil:
    """Coefficients of one of the targets that share a model page."""
    return coefficients_of(
        tables.models[leaf], tables.features, tables.column.separate, model + place
    )


cdef void rescale(
    TreeTables tables, Py_ssize_t leaf, Py_ssize_t feature, Py_ssize_t model, double centre,
    double scale,
) noexcept nogil:
    """Standardise a feature by another centre and scale, predicting the same as before.

    Where the old ones were useless, the coefficient was too, and is reset; its contribution at the
    new centre is added to the constant.
    """
    cdef double* page = model_of(
        tables.models[leaf], tables.features, tables.column.separate, model
    )
    cdef double* old_centre = page + centres_at(tables.features) + feature
    cdef double* old_scale = page + scales_at(tables.features) + feature
    cdef double stretch, move
    if old_scale[0] > 0.0:
        stretch = old_scale[0] / scale
        move = (centre - old_centre[0]) * old_scale[0]
        if (
            1.0 / TOLERATED_SCALE < stretch < TOLERATED_SCALE
            and fabs(move) < 0.5 * TOLERATED_SCALE
        ):
            return
        if (
            1.0 / USELESS_SCALE < stretch < USELESS_SCALE
            and fabs(move) < 0.5 * USELESS_SCALE
            and stays_credible(tables, leaf, feature + 1, model, move, stretch)
        ):
            move_constant(tables, leaf, feature + 1, model, move)
            stretch_variable(tables, leaf, feature + 1, model, stretch)
        else:
            forget_variable(tables, leaf, feature + 1, model, move)
    old_centre[0] = centre
    old_scale[0] = scale


cdef bint stays_credible(
    TreeTables tables, Py_ssize_t leaf, Py_ssize_t term, Py_ssize_t model, double move,
    double stretch,
) noexcept nogil:
    """Whether a coefficient and its variance stay within their bounds."""
    cdef const double* covariance = covariance_of(tables, leaf, model)
    cdef Py_ssize_t terms = terms_of(tables.features)
    cdef bint is_square = terms <= SQUARE_TERMS
    cdef double own = covariance[(terms + 1) * term if is_square else term]
    return (
        LEAST_VARIANCE < stretch * stretch * own < MOST_VARIANCE
        and constant_stays_credible(tables, leaf, term, model, move)
        and largest_coefficient(tables, leaf, term, model) * stretch < MOST_COEFFICIENT
    )


cdef inline double* covariance_of(
    TreeTables tables, Py_ssize_t leaf, Py_ssize_t model
) noexcept nogil:
    return covariance_at(tables.features) + model_of(
        tables.models[leaf], tables.features, tables.column.separate, model
    )


cdef inline Py_ssize_t targets_that_share(TreeTables tables) noexcept nogil:
    """How many targets share a covariance."""
    return 1 if tables.column.separate else tables.targets


cdef bint constant_stays_credible(
    TreeTables tables, Py_ssize_t leaf, Py_ssize_t term, Py_ssize_t model, double move
) noexcept nogil:
    """Whether the constant and its variance stay within their bounds after `move_constant`."""
    cdef const double* covariance = covariance_of(tables, leaf, model)
    cdef Py_ssize_t terms = terms_of(tables.features)
    cdef double variance = covariance[0]
    if terms <= SQUARE_TERMS:
        variance += move * (2.0 * covariance[term] + move * covariance[(terms + 1) * term])
    return (
        variance < MOST_OF_CONSTANT
        and largest_coefficient(tables, leaf, term, model) * fabs(move) < MOST_COEFFICIENT
    )


cdef double largest_coefficient(
    TreeTables tables, Py_ssize_t leaf, Py_ssize_t term, Py_ssize_t model
) noexcept nogil:
    """Of the models that forget at different rates, of all targets that share a covariance."""
    cdef double largest = 0.0
    cdef Py_ssize_t rate, place
    for place in range(targets_that_share(tables)):
        for rate in range(RATES):
            largest = max(
                largest, fabs(coefficients_at(tables, leaf, model, place)[RATES * term + rate])
            )
    return largest


cdef void move_constant(
    TreeTables tables, Py_ssize_t leaf, Py_ssize_t term, Py_ssize_t model, double move
) noexcept nogil:
    """Models and their covariance for z' = z - move."""
    cdef double* covariance = covariance_of(tables, leaf, model)
    cdef double* coefficients
    cdef Py_ssize_t terms = terms_of(tables.features), i, rate, place
    for place in range(targets_that_share(tables)):
        coefficients = coefficients_at(tables, leaf, model, place)
        for rate in range(RATES):
            coefficients[rate] += move * coefficients[RATES * term + rate]
    if terms > SQUARE_TERMS:
        return
    for i in range(terms):
        covariance[i] += move * covariance[terms * term + i]
    for i in range(terms):
        covariance[terms * i] += move * covariance[terms * i + term]


cdef void stretch_variable(
    TreeTables tables, Py_ssize_t leaf, Py_ssize_t term, Py_ssize_t model, double stretch
) noexcept nogil:
    """Models and their covariance for z' = z / stretch."""
    cdef double* covariance = covariance_of(tables, leaf, model)
    cdef Py_ssize_t terms = terms_of(tables.features), i, rate, place
    for place in range(targets_that_share(tables)):
        for rate in range(RATES):
            coefficients_at(tables, leaf, model, place)[RATES * term + rate] *= stretch
    if terms > SQUARE_TERMS:
        covariance[term] *= stretch * stretch
        return
    for i in range(terms):
        covariance[terms * term + i] *= stretch
    for i in range(terms):
        covariance[terms * i + term] *= stretch


cdef void forget_variable(
    TreeTables tables, Py_ssize_t leaf, Py_ssize_t term, Py_ssize_t model, double move
) noexcept nogil:
    """Know no more of a coefficient than its prior; predict the same where z = move."""
    cdef double* covariance = covariance_of(tables, leaf, model)
    cdef Py_ssize_t terms = terms_of(tables.features), i, rate, place
    if constant_stays_credible(tables, leaf, term, model, move):
        move_constant(tables, leaf, term, model, move)
    for place in range(targets_that_share(tables)):
        for rate in range(RATES):
            coefficients_at(tables, leaf, model, place)[RATES * term + rate] = 0.0
    if terms > SQUARE_TERMS:
        covariance[term] = PRIOR
        return
    for i in range(terms):
        covariance[terms * term + i] = 0.0
        covariance[terms * i + term] = 0.0
    covariance[terms * term + term] = PRIOR
