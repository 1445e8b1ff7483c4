"""A leaf's scales and grids, brought up to its rows."""

from libc.math cimport fabs, sqrt
from libc.string cimport memset

from sapwood.observers._rows cimport PROTOTYPE, WEIGHT
from sapwood.observers._store cimport Store
from sapwood.tree._model cimport PRIOR
from sapwood.tree._records cimport (
    CATEGORIES, RATES, SQUARE_TERMS, centres_at, covariance_at, scales_at, terms_of,
)
from sapwood.tree._search cimport store_of
from sapwood.tree._tables cimport TreeTables
from sapwood.tree._watch cimport Grid, KeptRow, Slot

# Scales that are off by more than this factor (centres: by half of it, in scales) are set anew;
# by more than the second, the coefficient is forgotten.
cdef double TOLERATED_SCALE = 2.0
cdef double USELESS_SCALE = 16.0
# So it is where a variance, of the coefficient or of the constant, would leave these bounds: beyond
# them it says nothing, and rows of large weight would make rounding errors of the rest.
cdef double LEAST_VARIANCE = 1e-30
cdef double MOST_VARIANCE = 1e3
cdef double MOST_OF_CONSTANT = 1e6
cdef double MOST_COEFFICIENT = 1e140
cdef double MANY_ROWS = 1000.0
# A grid is laid anew if more than this share of the rows is in the slots at its ends.
cdef double TOLERATED_BEYOND = 0.125


cdef struct Scale:
    double centre
    double deviation
    double spread_out  # the share of the rows that are not at the commonest place


cdef Scale scale_of_slots(const Slot* slots, Py_ssize_t count, const Grid* grid) noexcept nogil:
    """Mean and deviation of a number, by its slots or the rows that are still kept."""
    cdef const KeptRow* rows = <KeptRow*>slots
    cdef Places places = Places(0.0, 0.0, 0.0, 0.0)
    cdef Scale scale
    cdef Py_ssize_t slot
    if grid.inverse == 0.0:
        for slot in range(<Py_ssize_t>grid.kept):
            add_place(&places, rows[slot].x, rows[slot].sums.weight)
        return scale_of_places(&places)
    for slot in range(count):
        if slots[slot].weight > 0.0:
            add_place(&places, slot + 0.5, slots[slot].weight)
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


cdef Scale scale_of_category(const Slot* slots, const double* levels) noexcept nogil:
    """Mean and deviation of what stands for a category in the linear models."""
    cdef Places places = Places(0.0, 0.0, 0.0, 0.0)
    cdef Py_ssize_t code
    for code in range(CATEGORIES):
        if slots[code].weight > 0.0:
            add_place(&places, levels[2 * code + 1], slots[code].weight)
    return scale_of_places(&places)


cdef Scale scale_of_observer(Store store) except *:
    """Mean and deviation of a number, by the elements of an observer in ascending order."""
    cdef Places places = Places(0.0, 0.0, 0.0, 0.0)
    cdef const Py_ssize_t[::1] order = store.order()
    cdef Py_ssize_t row
    for row in range(order.shape[0]):
        add_place(&places, store.table[order[row], PROTOTYPE], store.table[order[row], WEIGHT])
    return scale_of_places(&places)


cdef int find_scale(
    TreeTables tables, Py_ssize_t leaf, Py_ssize_t feature, Scale* scale
) except -1 nogil:
    cdef const Slot* slots = tables.slots_of(leaf, feature)
    if tables.is_category[feature]:
        scale[0] = scale_of_category(slots, tables.levels + 2 * CATEGORIES * feature)
    elif tables.slots == 0:
        with gil:
            scale[0] = scale_of_observer(store_of(tables, leaf, feature))
    else:
        scale[0] = scale_of_slots(slots, tables.slots, tables.grid_of(leaf, feature))
    return 0


def deviation_of(TreeTables tables not None, Py_ssize_t leaf, Py_ssize_t feature):
    """Return the standard deviation of a feature in a leaf, as far as it was watched."""
    cdef Scale scale
    find_scale(tables, leaf, feature, &scale)
    return scale.deviation


def review(TreeTables tables not None, Py_ssize_t leaf):
    """Bring the scales of a leaf's model, and the grids that it watches by, up to its rows."""
    review_leaf(tables, leaf)


cdef int review_leaf(TreeTables tables, Py_ssize_t leaf) except -1 nogil:
    """Bring the scales of a leaf's model, and the grids that it watches by, up to its rows.

    What a few rows of one region say of a scale is not worth a change: scales are found while the
    tree is one leaf, and then only in leaves of many rows, or where a feature that was constant
    or missing has come to be spread out. To do it twice is the same as to do it once.
    """
    cdef Py_ssize_t feature
    cdef Scale scale
    cdef const double* scales = tables.models[leaf] + scales_at(tables.features)
    cdef bint rescaling = tables.linear and (
        tables.leaf_count == 1 or tables.leaves[leaf].rows >= MANY_ROWS
    )
    for feature in range(tables.features):
        if rescaling or (tables.linear and scales[feature] == 0.0):
            find_scale(tables, leaf, feature, &scale)
            if (
                1e-300 < scale.deviation < 1e300
                and fabs(scale.centre) < 1e300
                and (rescaling or scale.spread_out >= 0.5)
            ):
                rescale(tables, leaf, feature, scale.centre, 1.0 / scale.deviation)
        if tables.slots and not tables.is_category[feature]:
            renew_grid(
                tables.grid_of(leaf, feature), tables.slots_of(leaf, feature), tables.slots
            )
    return 0


cdef void renew_grid(Grid* grid, Slot* slots, Py_ssize_t count) noexcept nogil:
    """Start a grid anew that has much beyond its ends, or all in one slot."""
    cdef double weight = 0.0, most = 0.0, beyond
    cdef Py_ssize_t slot
    if grid.inverse == 0.0:
        return
    for slot in range(count):
        weight += slots[slot].weight
        most = max(most, slots[slot].weight)
    beyond = max(slots[0].weight, slots[count - 1].weight)
    if beyond > TOLERATED_BEYOND * weight or most == weight:
        memset(slots, 0, count * sizeof(Slot))
        grid.inverse = grid.kept = grid.low = grid.width = 0.0


cdef void rescale(
    TreeTables tables, Py_ssize_t leaf, Py_ssize_t feature, double centre, double scale
) noexcept nogil:
    """Standardise a feature by another centre and scale, predicting the same as before.

    Where the old ones were useless, the coefficient was too, and is forgotten; what it says at the
    new centre becomes the constant's.
    """
    cdef double* page = tables.models[leaf]
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
            and stays_credible(tables, leaf, feature + 1, move, stretch)
        ):
            move_constant(tables, leaf, feature + 1, move)
            stretch_variable(tables, leaf, feature + 1, stretch)
        else:
            forget_variable(tables, leaf, feature + 1, move)
    old_centre[0] = centre
    old_scale[0] = scale


cdef bint stays_credible(
    TreeTables tables, Py_ssize_t leaf, Py_ssize_t term, double move, double stretch
) noexcept nogil:
    """Whether a coefficient and its variance still say something afterwards."""
    cdef const double* covariance = tables.models[leaf] + covariance_at(tables.features)
    cdef Py_ssize_t terms = terms_of(tables.features)
    cdef bint is_square = terms <= SQUARE_TERMS
    cdef double own = covariance[(terms + 1) * term if is_square else term]
    return (
        LEAST_VARIANCE < stretch * stretch * own < MOST_VARIANCE
        and constant_stays_credible(tables, leaf, term, move)
        and largest_coefficient(tables, leaf, term) * stretch < MOST_COEFFICIENT
    )


cdef bint constant_stays_credible(
    TreeTables tables, Py_ssize_t leaf, Py_ssize_t term, double move
) noexcept nogil:
    """Whether the constant and its variance still say something after `move_constant`."""
    cdef const double* covariance = tables.models[leaf] + covariance_at(tables.features)
    cdef Py_ssize_t terms = terms_of(tables.features)
    cdef double variance = covariance[0]
    if terms <= SQUARE_TERMS:
        variance += move * (2.0 * covariance[term] + move * covariance[(terms + 1) * term])
    return (
        variance < MOST_OF_CONSTANT
        and largest_coefficient(tables, leaf, term) * fabs(move) < MOST_COEFFICIENT
    )


cdef double largest_coefficient(
    TreeTables tables, Py_ssize_t leaf, Py_ssize_t term
) noexcept nogil:
    """Of the models that forget at different rates."""
    cdef double largest = 0.0
    cdef Py_ssize_t rate
    for rate in range(RATES):
        largest = max(largest, fabs(tables.models[leaf][RATES * term + rate]))
    return largest


cdef void move_constant(
    TreeTables tables, Py_ssize_t leaf, Py_ssize_t term, double move
) noexcept nogil:
    """Models and their covariance for z' = z - move."""
    cdef double* page = tables.models[leaf]
    cdef double* covariance = page + covariance_at(tables.features)
    cdef Py_ssize_t terms = terms_of(tables.features), i, rate
    for rate in range(RATES):
        page[rate] += move * page[RATES * term + rate]
    if terms > SQUARE_TERMS:
        return
    for i in range(terms):
        covariance[i] += move * covariance[terms * term + i]
    for i in range(terms):
        covariance[terms * i] += move * covariance[terms * i + term]


cdef void stretch_variable(
    TreeTables tables, Py_ssize_t leaf, Py_ssize_t term, double stretch
) noexcept nogil:
    """Models and their covariance for z' = z / stretch."""
    cdef double* page = tables.models[leaf]
    cdef double* covariance = page + covariance_at(tables.features)
    cdef Py_ssize_t terms = terms_of(tables.features), i, rate
    for rate in range(RATES):
        page[RATES * term + rate] *= stretch
    if terms > SQUARE_TERMS:
        covariance[term] *= stretch * stretch
        return
    for i in range(terms):
        covariance[terms * term + i] *= stretch
    for i in range(terms):
        covariance[terms * i + term] *= stretch


cdef void forget_variable(
    TreeTables tables, Py_ssize_t leaf, Py_ssize_t term, double move
) noexcept nogil:
    """Know no more of a coefficient than its prior; predict the same where z = move."""
    cdef double* page = tables.models[leaf]
    cdef double* covariance = page + covariance_at(tables.features)
    cdef Py_ssize_t terms = terms_of(tables.features), i, rate
    if constant_stays_credible(tables, leaf, term, move):
        move_constant(tables, leaf, term, move)
    for rate in range(RATES):
        page[RATES * term + rate] = 0.0
    if terms > SQUARE_TERMS:
        covariance[term] = PRIOR
        return
    for i in range(terms):
        covariance[terms * term + i] = 0.0
        covariance[terms * i + term] = 0.0
    covariance[terms * term + term] = PRIOR
