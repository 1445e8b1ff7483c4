"""What a leaf has seen: where it may be cut, and how its features are spread."""

from libc.float cimport DBL_MAX
from libc.math cimport fabs, sqrt
from libc.stdint cimport uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from sapwood.moments cimport CELL, PIVOT, SHIFT
from sapwood.observers._rows cimport CELLS, PROTOTYPE, WEIGHT
from sapwood.observers._store cimport Store
from sapwood.tree._cuts cimport (
    LINE, MEASURES, STEP, TARGET, Cut, cut_category, cut_number,
)
from sapwood.tree._kernel cimport TreeKernel
from sapwood.tree._model cimport PRIOR
from sapwood.tree._records cimport (
    CATEGORIES, RATES, SQUARE_TERMS, centres_at, covariance_at, scales_at, terms_of,
)
from sapwood.tree._tables cimport slots_between
from sapwood.tree._watch cimport Grid, KeptRow, Slot, slot_add

# Scales that are off by more than this factor (centres: by half of it, in scales) are set anew;
# by more than the second, the coefficient is forgotten.
cdef double TOLERATED_SCALE = 2.0
cdef double USELESS_SCALE = 16.0
cdef double MANY_ROWS = 1000.0
# A grid is laid anew if more than this share of the rows is in the slots at its ends.
cdef double TOLERATED_BEYOND = 0.125


# -- cuts -------------------------------------------------------------------------------------


cdef struct Elements:
    # The elements of an observer, as slots.
    Slot* slots
    double* places
    Py_ssize_t count


cdef Elements elements_of(Store store, const Py_ssize_t[::1] order) except *:
    """Elements of an observer as slots, in ascending order; places are from 0 to 1."""
    cdef Elements elements
    cdef Py_ssize_t row, count = order.shape[0]
    cdef const double* element
    cdef double low = 0.0, reach = 0.0
    elements.count = count
    elements.slots = <Slot*>malloc(max(count, 1) * (sizeof(Slot) + sizeof(double)))
    if elements.slots == NULL:
        raise MemoryError
    elements.places = <double*>(elements.slots + count)
    if count > 0:
        low = store.table[order[0], PROTOTYPE]
        reach = store.table[order[count - 1], PROTOTYPE] / 2 - low / 2
    for row in range(count):
        element = &store.table[order[row], 0]
        elements.slots[row] = Slot(
            element[WEIGHT],
            element[WEIGHT] * (element[CELLS + PIVOT] + element[CELLS + SHIFT]),
            element[WEIGHT] * (element[CELLS + CELL + PIVOT] + element[CELLS + CELL + SHIFT]),
        )
        elements.places[row] = 0.0
        if reach > 0.0:
            elements.places[row] = (element[PROTOTYPE] / 2 - low / 2) / reach
    return elements


cdef int cut_feature(
    TreeKernel kernel, Py_ssize_t leaf, Py_ssize_t feature, double min_share, Cut* cuts
) except -1:
    """Find the best cut of a feature by each measure; merits are those over all of the leaf."""
    cdef const Slot* slots = kernel.slots_of(leaf, feature)
    cdef Elements elements
    cdef Py_ssize_t measure
    cdef double present = 0.0
    cdef Store store
    for measure in range(MEASURES):
        cuts[measure] = Cut(0.0, -1, 0)
    if kernel.is_category[feature]:
        present = cut_category(slots, min_share, TARGET, &cuts[TARGET])
        if kernel.linear:
            cut_category(slots, min_share, STEP, &cuts[STEP])
            cuts[LINE] = cuts[STEP]
    elif kernel.slots == 0:
        store = kernel.observers[leaf][feature]._store
        elements = elements_of(store, store.order())
        present = cut_number(
            elements.slots, elements.places, elements.count, min_share, kernel.linear, cuts
        )
        free(elements.slots)
    elif kernel.grid_of(leaf, feature).inverse > 0.0:
        present = cut_number(slots, NULL, kernel.slots, min_share, kernel.linear, cuts)
    for measure in range(MEASURES):
        cuts[measure].merit *= present / kernel.leaves[leaf].weight
    return 0


def best_cuts(TreeKernel kernel not None, Py_ssize_t leaf, double min_share):
    """Return for each measure (target, step, line) the best cut of a leaf.

    Returns
    -------
    list of tuple
        The merit, the best merit of any other feature, the feature (-1 if there is no cut), the
        slot or element after which it is cut, and the codes that go left.
    """
    cdef Cut cuts[MEASURES]
    cdef Cut best[MEASURES]
    cdef double second[MEASURES]
    cdef Py_ssize_t which[MEASURES]
    cdef Py_ssize_t feature, measure
    for measure in range(MEASURES):
        best[measure] = Cut(0.0, -1, 0)
        second[measure] = 0.0
        which[measure] = -1
    for feature in range(kernel.features):
        cut_feature(kernel, leaf, feature, min_share, cuts)
        for measure in range(MEASURES):
            if cuts[measure].merit > best[measure].merit:
                second[measure] = best[measure].merit
                best[measure] = cuts[measure]
                which[measure] = feature
            elif cuts[measure].merit > second[measure]:
                second[measure] = cuts[measure].merit
    return [
        (
            best[measure].merit,
            second[measure],
            which[measure],
            best[measure].place,
            best[measure].subset,
        )
        for measure in range(MEASURES)
    ]


def sides_of(
    TreeKernel kernel not None,
    Py_ssize_t leaf,
    Py_ssize_t feature,
    Py_ssize_t place,
    uint64_t subset,
):
    """Return weight and sums of y and residual: left of a cut, right of it, and where missing.

    Returns
    -------
    sides : list of tuple
        Left, right, missing; each the weight, the sum of y from the leaf's origin, and the sum
        of the residual.
    seen : int
        Of a category, the codes that were seen.
    """
    cdef Slot sides[3]
    memset(sides, 0, 3 * sizeof(Slot))
    cdef const Slot* slots = kernel.slots_of(leaf, feature)
    cdef const Slot* missing = slots + slots_between(kernel.slot_starts, feature)
    cdef Py_ssize_t count = slots_between(kernel.slot_starts, feature), slot
    cdef Elements elements
    cdef uint64_t seen = 0
    cdef bint right
    cdef Store store
    elements.slots = NULL
    if not kernel.is_category[feature] and kernel.slots == 0:
        store = kernel.observers[leaf][feature]._store
        elements = elements_of(store, store.order())
        slots, count = elements.slots, elements.count
    for slot in range(count):
        if slots[slot].weight == 0.0:
            continue
        right = slot > place
        if kernel.is_category[feature]:
            right = not (subset >> slot) & 1
            seen |= <uint64_t>1 << slot
        slot_add(
            &sides[right], slots[slot].target, slots[slot].residual, slots[slot].weight
        )
    slot_add(&sides[2], missing.target, missing.residual, missing.weight)
    free(elements.slots)
    return [(each.weight, each.target, each.residual) for each in sides], seen


def threshold_of(TreeKernel kernel not None, Py_ssize_t leaf, Py_ssize_t feature, Py_ssize_t place):
    """Return where the grid of a number is cut after a slot."""
    cdef const Grid* grid = kernel.grid_of(leaf, feature)
    return min(grid.low + (place + 1) * grid.width, DBL_MAX)


# -- review -----------------------------------------------------------------------------------


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


cdef Scale scale_of_observer(Store store, const Py_ssize_t[::1] order) noexcept nogil:
    """Mean and deviation of a number, by the elements of an observer in ascending order."""
    cdef Places places = Places(0.0, 0.0, 0.0, 0.0)
    cdef Py_ssize_t row
    for row in range(order.shape[0]):
        add_place(&places, store.table[order[row], PROTOTYPE], store.table[order[row], WEIGHT])
    return scale_of_places(&places)


cdef Scale scale_of(TreeKernel kernel, Py_ssize_t leaf, Py_ssize_t feature):
    cdef Store store
    cdef const Slot* slots = kernel.slots_of(leaf, feature)
    if kernel.is_category[feature]:
        return scale_of_category(slots, kernel.levels + 2 * CATEGORIES * feature)
    if kernel.slots == 0:
        store = kernel.observers[leaf][feature]._store
        return scale_of_observer(store, store.order())
    return scale_of_slots(slots, kernel.slots, kernel.grid_of(leaf, feature))


def deviation_of(TreeKernel kernel not None, Py_ssize_t leaf, Py_ssize_t feature):
    """Return the standard deviation of a feature in a leaf, as far as it was watched."""
    return scale_of(kernel, leaf, feature).deviation


def review(TreeKernel kernel not None, Py_ssize_t leaf):
    """Bring the scales of a leaf's model, and the grids that it watches by, up to its rows.

    What a few rows of one region say of a scale is not worth a change: scales are found while the
    tree is one leaf, and then only in leaves of many rows, or where a feature that was constant
    or missing has come to be spread out.
    """
    cdef Py_ssize_t feature
    cdef Scale scale
    cdef const double* scales = kernel.models[leaf] + scales_at(kernel.features)
    cdef bint rescaling = kernel.linear and (
        kernel.leaf_count == 1 or kernel.leaves[leaf].rows >= MANY_ROWS
    )
    for feature in range(kernel.features):
        if rescaling or (kernel.linear and scales[feature] == 0.0):
            scale = scale_of(kernel, leaf, feature)
            if (
                1e-300 < scale.deviation < 1e300
                and fabs(scale.centre) < 1e300
                and (rescaling or scale.spread_out >= 0.5)
            ):
                rescale(kernel, leaf, feature, scale.centre, 1.0 / scale.deviation)
        if kernel.slots and not kernel.is_category[feature]:
            renew_grid(
                kernel.grid_of(leaf, feature), kernel.slots_of(leaf, feature), kernel.slots
            )


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
    TreeKernel kernel, Py_ssize_t leaf, Py_ssize_t feature, double centre, double scale
) noexcept nogil:
    """Standardise a feature by another centre and scale, predicting the same as before.

    Where the old ones were useless, the coefficient was too, and is forgotten.
    """
    cdef double* page = kernel.models[leaf]
    cdef double* old_centre = page + centres_at(kernel.features) + feature
    cdef double* old_scale = page + scales_at(kernel.features) + feature
    cdef double stretch, move
    cdef Py_ssize_t rate
    if old_scale[0] > 0.0:
        stretch = old_scale[0] / scale
        move = (centre - old_centre[0]) * old_scale[0]
        if (
            1.0 / TOLERATED_SCALE < stretch < TOLERATED_SCALE
            and fabs(move) < 0.5 * TOLERATED_SCALE
        ):
            return
        if 1.0 / USELESS_SCALE < stretch < USELESS_SCALE and fabs(move) < 0.5 * USELESS_SCALE:
            for rate in range(RATES):
                page[rate] += move * page[RATES * (feature + 1) + rate]
                page[RATES * (feature + 1) + rate] *= stretch
            change_variable(kernel, leaf, feature + 1, move, stretch)
        else:
            for rate in range(RATES):
                page[RATES * (feature + 1) + rate] = 0.0
            forget_variable(kernel, leaf, feature + 1)
    old_centre[0] = centre
    old_scale[0] = scale


cdef void change_variable(
    TreeKernel kernel, Py_ssize_t leaf, Py_ssize_t term, double move, double stretch
) noexcept nogil:
    """The covariance of the coefficients for z' = (z - move) / stretch."""
    cdef double* covariance = kernel.models[leaf] + covariance_at(kernel.features)
    cdef Py_ssize_t terms = terms_of(kernel.features), i
    if terms > SQUARE_TERMS:
        covariance[term] *= stretch * stretch
        return
    for i in range(terms):
        covariance[i] += move * covariance[terms * term + i]
    for i in range(terms):
        covariance[terms * i] += move * covariance[terms * i + term]
    for i in range(terms):
        covariance[terms * term + i] *= stretch
    for i in range(terms):
        covariance[terms * i + term] *= stretch


cdef void forget_variable(TreeKernel kernel, Py_ssize_t leaf, Py_ssize_t term) noexcept nogil:
    """Know no more of a coefficient than its prior."""
    cdef double* covariance = kernel.models[leaf] + covariance_at(kernel.features)
    cdef Py_ssize_t terms = terms_of(kernel.features), i
    if terms > SQUARE_TERMS:
        covariance[term] = PRIOR
        return
    for i in range(terms):
        covariance[terms * term + i] = 0.0
        covariance[terms * i + term] = 0.0
    covariance[terms * term + term] = PRIOR
