"""Split encodings: the numbers that splits of several targets read for categories.

Each target has target encodings of its own (see _target_encoding.pxd), but a split divides the rows
of all targets. It reads the *split encoding* of a category: the weighted sum of its target
encodings. The weights are those of their first principal component, in the units in which the
merits of splits are added. So targets that rise and fall with the same categories support each
other, whatever their signs, and a target that does not depend on them hardly counts. A tree of one
target that was taken out of a tree of several keeps the numbers by which its splits were made.

The weights are computed once, after REPEATED_ROWS rows of categories that were seen before. They
do not change later, because thresholds depend on them; target encodings continue to follow y. Until
then the feature counts as missing in splits.
"""

from libc.math cimport fabs, sqrt

from sapwood.tree._target_encoding cimport HEAD, encoding_of
from sapwood.tree._search cimport unit_of

from sapwood.tree._column_tables import FARTHEST_ENCODING

cdef enum:
    REPEATED_ROWS = 256  # rows of categories that had been seen, before weights are found
    STEPS = 32           # of the power iteration

# Beyond this a number is no longer of use to a split; nor are squares of it doubles.
cdef double FARTHEST = FARTHEST_ENCODING

cdef struct Encoded:
    # A high-cardinality feature, and its target encodings.
    const double* levels  # of the first target
    Py_ssize_t stride     # doubles from those of a target to those of the next
    Py_ssize_t places
    Py_ssize_t targets
    double row_weight


cdef void update_split_encodings(
    TreeTables tables, const double* row, double row_weight
) noexcept nogil:
    """Update the split encodings of a row's categories, whose target encodings have learned its y.
    """
    cdef double* encodings = tables.column.split_encodings
    cdef double* weights
    cdef Encoded own = Encoded(
        tables.column.many_encodings, tables.column.encoding_doubles, 0, tables.targets, row_weight
    )
    cdef Py_ssize_t feature, place
    cdef double code
    for feature in range(tables.features):
        own.places = tables.column.places[feature]
        if own.places < 0:
            continue
        weights = tables.column.encoding_weights + tables.targets * feature
        code = row[-1 - feature]
        if not is_chosen(weights, own.targets):
            if own.targets > 1 and is_enough(&own):
                choose_weights(tables, &own, weights)
                for place in range(own.places + 1):
                    encodings[place] = split_encoding_for(&own, weights, place - 1)
        elif code == code:
            encodings[0] = split_encoding_for(&own, weights, -1)
            if code < own.places:
                place = <Py_ssize_t>code
                encodings[1 + place] = split_encoding_for(&own, weights, place)
        own.levels += 2 * (HEAD + own.places)
        encodings += 1 + own.places


cdef bint is_chosen(const double* weights, Py_ssize_t targets) noexcept nogil:
    """Whether any target has a weight."""
    cdef Py_ssize_t target
    for target in range(targets):
        if weights[target] != 0.0:
            return True
    return False


cdef bint is_enough(const Encoded* own) noexcept nogil:
    """Whether enough rows were learned to find weights."""
    cdef Py_ssize_t target
    for target in range(own.targets):
        if own.levels[own.stride * target + 2] >= REPEATED_ROWS * own.row_weight:
            return own.places > 0
    return False


cdef double weight_of(const Encoded* own, Py_ssize_t place) noexcept nogil:
    """The weight of the rows of a category, of all targets together."""
    cdef double weight = 0.0
    cdef Py_ssize_t target
    for target in range(own.targets):
        weight += own.levels[own.stride * target + 2 * (HEAD + place)]
    return weight


cdef double encoding_from_mean(
    const Encoded* own, Py_ssize_t target, Py_ssize_t place
) noexcept nogil:
    """The encoding of a category minus the overall mean; 0 if the target is unknown."""
    cdef const double* levels = own.levels + own.stride * target
    cdef double level = encoding_of(levels, own.places, <double>place, own.row_weight)
    return level - levels[1] if level == level else 0.0


cdef double split_encoding_for(
    const Encoded* own, const double* weights, Py_ssize_t place
) noexcept nogil:
    """The weighted sum of the target encodings of a category, or of the overall means (-1)."""
    cdef double total = 0.0
    cdef Py_ssize_t target
    for target in range(own.targets):
        total += weights[target] * own.levels[own.stride * target + 1]
        if place >= 0:
            total += weights[target] * encoding_from_mean(own, target, place)
    total = total if total < FARTHEST else FARTHEST
    return total if total > -FARTHEST else -FARTHEST


cdef void choose_weights(TreeTables tables, const Encoded* own, double* weights) noexcept nogil:
    """Compute the first principal component of the target encodings, in the units of merits."""
    cdef double* moved = tables.column.encoding_weights + tables.targets * tables.features
    cdef Py_ssize_t target, _step, lead = 0
    cdef double most = 0.0, norm
    # From the target that categories explain most of, with the signs of its covariances.
    for target in range(own.targets):
        moved[target] = covariance_of(tables, own, target, target)
        if moved[target] > most:
            most, lead = moved[target], target
    for target in range(own.targets):
        weights[target] = sqrt(moved[target])
        if covariance_of(tables, own, target, lead) < 0.0:
            weights[target] = -weights[target]
    for _step in range(STEPS):
        multiply(tables, own, weights, moved)
        norm = 0.0
        for target in range(own.targets):
            norm = max(norm, fabs(moved[target]))
        if not norm > 0.0:
            break
        for target in range(own.targets):
            weights[target] = moved[target] / norm
    if not is_chosen(weights, own.targets):
        weights[lead] = 1.0
    for target in range(own.targets):
        weights[target] *= sqrt(unit_of(tables, target))
    if not is_chosen(weights, own.targets):
        weights[lead] = 1.0  # as no target varies


cdef double covariance_of(
    TreeTables tables, const Encoded* own, Py_ssize_t first, Py_ssize_t second
) noexcept nogil:
    """The covariance of the encodings of two targets, times the weight of all rows."""
    cdef double total = 0.0
    cdef Py_ssize_t place
    for place in range(own.places):
        total += weight_of(own, place) * (
            encoding_from_mean(own, first, place) * encoding_from_mean(own, second, place)
        )
    return total * sqrt(unit_of(tables, first)) * sqrt(unit_of(tables, second))


cdef void multiply(
    TreeTables tables, const Encoded* own, const double* vector, double* product
) noexcept nogil:
    """The covariance matrix of all targets times a vector."""
    cdef Py_ssize_t place, target
    cdef double weight, along
    for target in range(own.targets):
        product[target] = 0.0
    for place in range(own.places):
        weight, along = weight_of(own, place), 0.0
        if weight == 0.0:
            continue
        for target in range(own.targets):
            along += vector[target] * (
                sqrt(unit_of(tables, target)) * encoding_from_mean(own, target, place)
            )
        along *= weight
        for target in range(own.targets):
            product[target] += along * (
                sqrt(unit_of(tables, target)) * encoding_from_mean(own, target, place)
            )
