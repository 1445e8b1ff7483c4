"""The best cut of one feature, by three measures.

TARGET is the reduction of the variance of y, STEP that of the residual. LINE is the reduction of
the residual's variance by a line in this feature on either side of the cut, instead of one line
over all: where a linear model bends, the line is what its residual cannot be told by a step. All
are of the population form, over the rows in which the feature is present.
"""

from libc.stdint cimport uint64_t

from sapwood.tree._records cimport CATEGORIES
from sapwood.tree._watch cimport Slot

cdef enum:
    TARGET = 0
    STEP = 1
    LINE = 2
    MEASURES = 3

cdef struct Cut:
    double merit
    Py_ssize_t place   # of a number: the cut is after this slot; -1 if there is none
    uint64_t subset    # of a category: the codes that go left

cdef struct Sums:
    double weight
    double target
    double residual
    double place
    double place_square
    double place_residual


cdef inline bint is_too_light(double weight) noexcept nogil:
    """Whether rows cannot be cut, as products of their weights would no longer be doubles."""
    return weight < 1e-140


cdef inline void sums_add(Sums* sums, const Slot* slot, double place) noexcept nogil:
    """Add a slot, whose rows count as if all were at one place."""
    sums.weight += slot.weight
    sums.target += slot.target
    sums.residual += slot.residual
    sums.place += slot.weight * place
    sums.place_square += slot.weight * place * place
    sums.place_residual += slot.residual * place


cdef inline Sums difference(const Sums* whole, const Sums* left) noexcept nogil:
    return Sums(
        whole.weight - left.weight,
        whole.target - left.target,
        whole.residual - left.residual,
        whole.place - left.place,
        whole.place_square - left.place_square,
        whole.place_residual - left.place_residual,
    )


cdef inline double line_explains(const Sums* sums, double per_weight) noexcept nogil:
    """How much a slope takes off the residual's squares; 0 where places hardly differ."""
    cdef double mean = sums.place * per_weight
    cdef double spread = sums.place_square - sums.place * mean
    cdef double slope_part = sums.place_residual - sums.residual * mean
    if not spread > 1e-9 * sums.place_square:
        return 0.0
    return slope_part * slope_part / spread


cdef inline void keep_better(Cut* cut, double merit, Py_ssize_t place) noexcept nogil:
    """Keep the better of two cuts, without a branch that nobody could foresee."""
    cdef bint better = merit > cut.merit
    cut.place = place if better else cut.place
    cut.merit = merit if better else cut.merit


cdef inline double cut_number(
    const Slot* slots,
    const double* places,
    Py_ssize_t count,
    double min_share,
    bint lines,
    Cut* cuts,
) noexcept nogil:
    """Find the best cuts of a number; the weight of the rows in which it is present.

    `places` are those of the slots, ascending; NULL if they are side by side.
    """
    cdef Sums whole = Sums(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    cdef Sums left = whole, right
    cdef Py_ssize_t slot
    cdef double least, per_weight, one_line = 0.0, share, excess, per_product, step, line
    for slot in range(count):
        sums_add(&whole, slots + slot, places[slot] if places != NULL else slot)
    if is_too_light(whole.weight):
        return 0.0
    least = min_share * whole.weight
    per_weight = 1.0 / whole.weight
    if lines:
        one_line = line_explains(&whole, per_weight)
    for slot in range(count - 1):
        sums_add(&left, slots + slot, places[slot] if places != NULL else slot)
        if left.weight < least or slots[slot].weight == 0.0:
            continue
        if not (whole.weight - left.weight >= least):
            break
        share = left.weight * per_weight
        # n_L n_R / n^2 (mean_L - mean_R)^2, from sums.
        per_product = 1.0 / (left.weight * (whole.weight - left.weight))
        excess = left.target - whole.target * share
        keep_better(&cuts[TARGET], excess * excess * per_product, slot)
        if lines:
            excess = left.residual - whole.residual * share
            step = excess * excess * per_product
            keep_better(&cuts[STEP], step, slot)
            right = difference(&whole, &left)
            line = (
                line_explains(&left, right.weight * per_product)
                + line_explains(&right, left.weight * per_product)
                - one_line
            )
            keep_better(&cuts[LINE], step + line * per_weight, slot)
    return whole.weight


cdef inline double slot_sum(const Slot* slot, int measure) noexcept nogil:
    return slot.target if measure == TARGET else slot.residual


cdef inline void sort_in(
    Py_ssize_t* order, double* means, Py_ssize_t present, Py_ssize_t code, double mean
) noexcept nogil:
    """Put a category among those that are present already, in the order of their means."""
    cdef Py_ssize_t place = present
    while place > 0 and means[place - 1] > mean:
        means[place] = means[place - 1]
        order[place] = order[place - 1]
        place -= 1
    means[place] = mean
    order[place] = code


cdef inline double cut_category(
    const Slot* slots, double min_share, int measure, Cut* cut
) noexcept nogil:
    """Find the best subset of categories: a prefix of them in the order of their means.

    That no other subset reduces the variance more is a theorem of Fisher (1958); where the best
    prefix leaves a side too light, another subset might do better than the next prefix.
    """
    cdef Py_ssize_t order[CATEGORIES]
    cdef double means[CATEGORIES]
    cdef Py_ssize_t present = 0, code, place
    cdef double mean, excess, merit, weight = 0.0, total = 0.0, left_weight = 0.0, left = 0.0
    cdef uint64_t subset = 0
    for code in range(CATEGORIES):
        if slots[code].weight == 0.0:
            continue
        weight += slots[code].weight
        total += slot_sum(slots + code, measure)
        mean = slot_sum(slots + code, measure) / slots[code].weight
        sort_in(order, means, present, code, mean)
        present += 1
    if is_too_light(weight):
        return 0.0
    for place in range(present - 1):
        code = order[place]
        left_weight += slots[code].weight
        left += slot_sum(slots + code, measure)
        subset |= <uint64_t>1 << code
        if left_weight >= min_share * weight and weight - left_weight >= min_share * weight:
            excess = left - total * (left_weight / weight)
            merit = excess * excess / (left_weight * (weight - left_weight))
            if merit > cut.merit:
                cut.merit, cut.place, cut.subset = merit, place, subset
    return weight
