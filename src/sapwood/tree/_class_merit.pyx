"""The best cut of a feature by the reduction of an impurity of classes, as in VFDT.

The weight of a class in a slot is the sum of its column, which leaves keep as distances from an
origin. With two classes there is one column, that of the second. Merits are absolute: bits of the
entropy, or Gini's impurity.
"""

from libc.math cimport log2
from libc.stdint cimport uint64_t

from sapwood.tree._prediction cimport part_of
from sapwood.tree._records cimport CATEGORIES


cdef inline double class_weight(
    TreeTables tables, Py_ssize_t leaf, const double* slot, Py_ssize_t target
) noexcept nogil:
    """The weight of the rows of a class in a slot."""
    cdef double weight = slot[1 + 2 * target] + slot[0] * part_of(
        tables, tables.targets, leaf, target
    ).origin
    return weight if weight > 0.0 else 0.0


cdef inline double impurity_of_class(double share, bint by_entropy) noexcept nogil:
    """What a class of some share contributes to the impurity."""
    if not share > 0.0:
        return 0.0
    share = share if share < 1.0 else 1.0
    return -share * log2(share) if by_entropy else share * (1.0 - share)


cdef double impurity(
    const TargetSums* sums, Py_ssize_t targets, double weight, int side, bint by_entropy
) noexcept nogil:
    """The impurity of all rows (side 0), of those left of a cut (1) or right of it (2)."""
    cdef double total = 0.0, share = 0.0
    cdef Py_ssize_t target
    for target in range(targets):
        share = sums[target].left.target
        if side != 1:
            share = sums[target].whole.target - (share if side == 2 else 0.0)
        share /= weight
        total += impurity_of_class(share, by_entropy)
    if targets == 1:
        total += impurity_of_class(1.0 - share, by_entropy)
    return total


cdef double cut_classes(
    TreeTables tables, Py_ssize_t leaf, const Slots* slots, TargetSums* sums, double min_share,
    bint by_category, Cut* cut,
) noexcept nogil:
    """Find the best cut of a feature; the weight of the rows in which it is present.

    Of categories it is a prefix of them in the order of the shares of some class.
    """
    cdef Py_ssize_t order[CATEGORIES]
    cdef Py_ssize_t slot, target, by, present
    cdef double whole = 0.0
    for target in range(tables.targets):
        sums[target].whole.target = 0.0
    for slot in range(slots.count):
        whole += slots.at[slots.size * slot]
        for target in range(tables.targets):
            sums[target].whole.target += class_weight(
                tables, leaf, slots.at + slots.size * slot, target
            )
    if not whole > 0.0:
        return 0.0
    if not by_category:
        cut_order(tables, leaf, slots, sums, whole, min_share, NULL, slots.count, cut)
        return whole
    for by in range(tables.targets):
        present = sort_by_share(tables, leaf, slots, by, order)
        cut_order(tables, leaf, slots, sums, whole, min_share, order, present, cut)
    return whole


cdef Py_ssize_t sort_by_share(
    TreeTables tables, Py_ssize_t leaf, const Slots* slots, Py_ssize_t target, Py_ssize_t* order
) noexcept nogil:
    """Sort the categories that were seen by the share of a class; return how many there are."""
    cdef double shares[CATEGORIES]
    cdef const double* slot
    cdef double share
    cdef Py_ssize_t code, place, present = 0
    for code in range(min(slots.count, <Py_ssize_t>CATEGORIES)):
        slot = slots.at + slots.size * code
        if not slot[0] > 0.0:
            continue
        share, place = class_weight(tables, leaf, slot, target) / slot[0], present
        while place > 0 and shares[place - 1] > share:
            shares[place], order[place] = shares[place - 1], order[place - 1]
            place -= 1
        shares[place], order[place] = share, code
        present += 1
    return present


cdef void cut_order(
    TreeTables tables, Py_ssize_t leaf, const Slots* slots, TargetSums* sums, double whole,
    double min_share, const Py_ssize_t* order, Py_ssize_t count, Cut* cut,
) noexcept nogil:
    """Let the best cut of slots in an order, or as they are, be the cut if it is better."""
    cdef bint by_entropy = tables.growth.merit_unit == ENTROPY
    cdef Py_ssize_t place, slot, target, targets = tables.targets
    cdef double left = 0.0, least = min_share * whole, merit, all_of_it
    cdef uint64_t subset = 0
    for target in range(targets):
        sums[target].left.target = 0.0
    all_of_it = impurity(sums, targets, whole, 0, by_entropy)
    for place in range(count - 1):
        slot = order[place] if order != NULL else place
        left += slots.at[slots.size * slot]
        if order != NULL:
            subset |= <uint64_t>1 << slot
        for target in range(targets):
            sums[target].left.target += class_weight(
                tables, leaf, slots.at + slots.size * slot, target
            )
        if not (left > 0.0 and left >= least and whole - left > 0.0 and whole - left >= least):
            continue
        merit = all_of_it - (
            left * impurity(sums, targets, left, 1, by_entropy)
            + (whole - left) * impurity(sums, targets, whole - left, 2, by_entropy)
        ) / whole
        if merit > cut.merit:
            cut.merit, cut.place, cut.subset = merit, place, subset
