"""How much weight a leaf needs before the better of two features is known: the split bound.

`sapwood/tree/bounds.py` states the bounds; `GrowthRules.bound` is the code of the one in force.
"""

from libc.math cimport INFINITY, log

from sapwood.tree._records cimport GrowthRules

cdef enum:
    HOEFFDING = 0
    ANYTIME = 1
    NONE = 2
    ABSOLUTE = 3
    ROUNDS = 6  # the weight is a fixed point; each round leaves a fiftieth of the error


cdef inline double weight_needed(const GrowthRules* rules, double lead) noexcept nogil:
    """The weight from which on a lead, as a share of the best merit, is no accident.

    With ABSOLUTE, the lead is in the unit of merits, and their range is part of the confidence.
    The smallest leads need more rows than there can be.
    """
    if rules.bound == NONE:
        return 0.0
    if not lead > 1e-100:
        return INFINITY
    if rules.bound == ANYTIME:
        return anytime_weight(rules.confidence, lead)
    return rules.confidence / (2.0 * lead * lead)


cdef inline double anytime_weight(double confidence, double lead) noexcept nogil:
    """The n at which 0.85 sqrt((ln ln 2n + confidence) / n) has come down to a lead."""
    cdef double e = 2.718281828459045, weight = e
    cdef int _round
    for _round in range(ROUNDS):
        weight = (0.85 * 0.85) * (log(log(max(2.0 * weight, e))) + confidence) / (lead * lead)
    return weight
