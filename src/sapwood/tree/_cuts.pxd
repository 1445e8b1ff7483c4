"""The best cut of one feature, by three measures, for any number of targets.

TARGET is the reduction of the variance of y, STEP that of the residual. LINE is the reduction of
the residual's variance by a line in this feature on either side of the cut, instead of one line
over all: where a linear model bends, the line is what its residual cannot be told by a step. All
are of the population form, over the rows in which the feature is present.

The merit of a cut is the sum over targets of what it explains of each, in the units that the caller
has set: see `begin_search` of _search.pyx. A row in which a target is missing adds nothing to its
part. `targets` is a literal 1 where there is one target, so that compilers leave out the loops.
"""

from libc.stdint cimport uint64_t

from sapwood.tree._records cimport CATEGORIES

cdef enum:
    TARGET = 0
    STEP = 1
    LINE = 2
    MEASURES = 3

cdef extern from *:
    """
    #define SAPWOOD_LEAST_PRESENT 1e-9
    #define SAPWOOD_SAME_MERIT_ROUNDING 1e-9
    """
    # A target does not count where fewer of its rows than this share of them are on a side.
    const double LEAST_PRESENT "SAPWOOD_LEAST_PRESENT"
    # Merits of the same split differ by rounding alone if they differ by less than this share.
    const double SAME_MERIT_ROUNDING "SAPWOOD_SAME_MERIT_ROUNDING"

cdef struct Slots:
    # The slots of a feature without that of missing values, or the elements of its observer.
    const double* at      # the first: its weight, then sums of y and residual for each target
    const double* gaps    # the weight that is missing of each target in each slot; NULL if none is
    const double* places  # where the slots are, ascending; NULL if they are side by side
    Py_ssize_t size       # doubles of a slot
    Py_ssize_t count

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

cdef struct TargetSums:
    # Of a target: of all rows in which it is present, and of those left of a cut.
    Sums whole
    Sums left
    double per_weight  # one over the weight of all
    double line        # what one line over all rows explains
    double unit        # of its variance, by which merits are added up; 0 if it does not count
    double worth       # the same, times the share of the rows in which it is present
    bint is_whole      # whether it was never missing


cdef inline bint is_too_light(double weight) noexcept nogil:
    """Whether rows cannot be cut, as products of their weights would no longer be doubles."""
    return weight < 1e-140


cdef inline void sums_add(
    Sums* sums, const double* slot, Py_ssize_t target, double gap, double place
) noexcept nogil:
    """Add the rows of a slot in which a target is present, as if all were at one place."""
    cdef double weight = slot[0] - gap
    sums.weight += weight
    sums.target += slot[1 + 2 * target]
    sums.residual += slot[2 + 2 * target]
    sums.place += weight * place
    sums.place_square += weight * place * place
    sums.place_residual += slot[2 + 2 * target] * place


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
    """Keep the better of two cuts, without a branch that no processor could predict."""
    cdef bint better = merit > cut.merit
    cut.place = place if better else cut.place
    cut.merit = merit if better else cut.merit


cdef inline double gap_in(
    const Slots* slots, Py_ssize_t targets, Py_ssize_t slot, Py_ssize_t target
) noexcept nogil:
    """The weight of the rows of a slot in which a target is missing."""
    if targets == 1 or slots.gaps == NULL:
        return 0.0
    return slots.gaps[targets * slot + target]


cdef inline double place_of(const Slots* slots, Py_ssize_t slot) noexcept nogil:
    return slots.places[slot] if slots.places != NULL else slot


cdef inline double sum_up(
    const Slots* slots, Py_ssize_t targets, TargetSums* sums, bint lines
) noexcept nogil:
    """Sum up all slots for each target, and see what it is worth; the weight of all rows.

    Of several targets, each counts by its unit, and by the share of the rows that it is present in.
    """
    cdef double weight = 0.0
    cdef TargetSums* own
    cdef Py_ssize_t slot, target
    for target in range(targets):
        sums[target].whole = sums[target].left = Sums(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    for slot in range(slots.count):
        weight += slots.at[slots.size * slot]
        for target in range(targets):
            sums_add(
                &sums[target].whole, slots.at + slots.size * slot, target,
                gap_in(slots, targets, slot, target), place_of(slots, slot),
            )
    if is_too_light(weight):
        return 0.0
    for target in range(targets):
        own = sums + target
        own.worth = 0.0
        if not is_too_light(own.whole.weight):
            own.worth = own.unit * (own.whole.weight / weight)
            own.per_weight = 1.0 / own.whole.weight
            own.line = line_explains(&own.whole, own.per_weight) if lines else 0.0
    return weight


cdef inline bint is_divided(const TargetSums* sums) noexcept nogil:
    """Whether a target counts, and was seen on both sides of a cut."""
    cdef double least = LEAST_PRESENT * sums.whole.weight
    if sums.is_whole:  # as the rows were
        return sums.worth > 0.0
    return sums.worth > 0.0 and (
        sums.left.weight > least and sums.whole.weight - sums.left.weight > least
    )


cdef inline void add_merits(
    const TargetSums* sums, double worth, bint lines, double* merits
) noexcept nogil:
    """Add what a cut explains of the variance of a target, by each measure."""
    cdef double share = sums.left.weight * sums.per_weight, excess, per_product, step, line
    cdef Sums right
    # n_L n_R / n^2 (mean_L - mean_R)^2, from sums.
    per_product = 1.0 / (sums.left.weight * (sums.whole.weight - sums.left.weight))
    excess = sums.left.target - sums.whole.target * share
    merits[TARGET] += worth * (excess * excess * per_product)
    if lines:
        excess = sums.left.residual - sums.whole.residual * share
        step = excess * excess * per_product
        merits[STEP] += worth * step
        right = difference(&sums.whole, &sums.left)
        line = (
            line_explains(&sums.left, right.weight * per_product)
            + line_explains(&right, sums.left.weight * per_product)
            - sums.line
        )
        merits[LINE] += worth * (step + line * sums.per_weight)


cdef inline double cut_number(
    const Slots* slots, Py_ssize_t targets, TargetSums* sums, double min_share, bint lines,
    Cut* cuts,
) noexcept nogil:
    """Find the best cuts of a number; the weight of the rows in which it is present."""
    cdef double whole = sum_up(slots, targets, sums, lines), left = 0.0, weight
    cdef double least = min_share * whole
    cdef double merits[MEASURES]
    cdef Py_ssize_t slot, target
    if whole == 0.0:
        return 0.0
    for slot in range(slots.count - 1):
        weight = slots.at[slots.size * slot]
        left += weight
        for target in range(targets):
            sums_add(
                &sums[target].left, slots.at + slots.size * slot, target,
                gap_in(slots, targets, slot, target), place_of(slots, slot),
            )
        if left < least or weight == 0.0:
            continue
        if not (whole - left >= least):
            break
        merits[TARGET] = merits[STEP] = merits[LINE] = 0.0
        for target in range(targets):
            if is_divided(sums + target):
                add_merits(sums + target, sums[target].worth, lines, merits)
        keep_better(&cuts[TARGET], merits[TARGET], slot)
        if lines:
            keep_better(&cuts[STEP], merits[STEP], slot)
            keep_better(&cuts[LINE], merits[LINE], slot)
    return whole


cdef inline double sum_of(const Sums* sums, int measure) noexcept nogil:
    return sums.target if measure == TARGET else sums.residual


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


cdef inline Py_ssize_t sort_categories(
    const Slots* slots, Py_ssize_t targets, const TargetSums* sums, Py_ssize_t target, int measure,
    Py_ssize_t* order,
) noexcept nogil:
    """The categories that were seen in the order of a target's means; how many there are.

    One of which the target was never seen counts as if it were at its mean.
    """
    cdef const double* slot
    cdef double means[CATEGORIES]
    cdef double mean, weight
    cdef Py_ssize_t present = 0, code
    for code in range(CATEGORIES):
        slot = slots.at + slots.size * code
        if slot[0] == 0.0:
            continue
        weight = slot[0] - gap_in(slots, targets, code, target)
        if weight > 0.0:
            mean = slot[1 + 2 * target + (measure != TARGET)] / weight
        else:
            mean = sum_of(&sums[target].whole, measure) / sums[target].whole.weight
        sort_in(order, means, present, code, mean)
        present += 1
    return present


cdef inline double subset_merit(const TargetSums* sums, int measure) noexcept nogil:
    """What a subset of categories explains of the variance of a target."""
    cdef double weight = sums.whole.weight, left = sums.left.weight
    cdef double expected = sum_of(&sums.whole, measure) * (left / weight)
    cdef double excess = sum_of(&sums.left, measure) - expected
    return excess * excess / (left * (weight - left))


cdef inline double cut_category(
    const Slots* slots, Py_ssize_t targets, TargetSums* sums, double min_share, int measure,
    Cut* cut,
) noexcept nogil:
    """Find the best subset of categories: a prefix of them in the order of some target's means.

    That no other subset reduces the variance of one target more is a theorem of Fisher (1958);
    where the best prefix leaves a side too light, another subset might do better than the next
    prefix. Returns the weight of the rows in which the feature is present.
    """
    cdef Py_ssize_t order[CATEGORIES]
    cdef Py_ssize_t by, target, place, code, present
    cdef double whole = sum_up(slots, targets, sums, False), left, merit
    cdef uint64_t subset
    if whole == 0.0:
        return 0.0
    for by in range(targets):
        if not sums[by].worth > 0.0:
            continue
        present = sort_categories(slots, targets, sums, by, measure, order)
        left, subset = 0.0, 0
        for target in range(targets):
            sums[target].left = Sums(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        for place in range(present - 1):
            code = order[place]
            left += slots.at[slots.size * code]
            subset |= <uint64_t>1 << code
            for target in range(targets):
                sums_add(
                    &sums[target].left, slots.at + slots.size * code, target,
                    gap_in(slots, targets, code, target), 0.0,
                )
            if not (left >= min_share * whole and whole - left >= min_share * whole):
                continue
            merit = 0.0
            for target in range(targets):
                if is_divided(sums + target):
                    merit += sums[target].worth * subset_merit(sums + target, measure)
            # A subset and its complement are prefixes in the orders of two targets: one is kept.
            if merit > (cut.merit * (1.0 + SAME_MERIT_ROUNDING) if by else cut.merit):
                cut.merit, cut.place, cut.subset = merit, place, subset
    return whole
