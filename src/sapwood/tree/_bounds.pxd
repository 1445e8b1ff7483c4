"""How much weight a leaf needs before the better of two features is known: the bound of a split.

`sapwood.tree.bounds` states it; `GrowthRules.bound` says which it is. So far there is one.
"""

from libc.math cimport INFINITY

from sapwood.tree._records cimport GrowthRules


cdef inline double weight_needed(const GrowthRules* rules, double lead) noexcept nogil:
    """The weight from which on a lead, as a share of the best merit, is no accident.

    By Hoeffding: a mean of n values within [0, 1] is nearer than sqrt(-ln(delta) / 2n) to its
    expectation, but for a probability of delta; `confidence` is -ln(delta). The smallest leads
    need more rows than there can be.
    """
    if lead > 1e-100:
        return rules.confidence / (2.0 * lead * lead)
    return INFINITY
