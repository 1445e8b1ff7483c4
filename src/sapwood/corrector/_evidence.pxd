"""The weight of a label as evidence, which decreases with its delay.

Predictions that were made from the same labels, or nearly so, have similar errors: the labels of a
batch of 1,000 rows have little more information than one label. So a label has the weight
LATE / (LATE + lateness). The lateness is the exponentially weighted mean of the number of labels
between predictions and their own labels: 0 if labels arrive at once. Sums of such labels decay
slower in the same proportion.
"""

cdef enum:
    LATE = 5            # the lateness at which a label counts for half
    RECENT = 100        # labels over which the lateness is averaged
    SOLVING_ROWS = 32  # labels after which coefficients are computed again, after as many first


cdef struct Evidence:
    double scored    # labels of rows that had been predicted
    double lateness  # exponentially weighted mean of the labels between a prediction and its own
    double waiting   # labels since coefficients were computed


cdef inline double worth(Evidence* evidence, double late) noexcept nogil:
    """Count a label that came after so many others; what it is worth."""
    evidence.scored += 1.0
    evidence.waiting += 1.0
    if late == 0.0 and evidence.lateness == 0.0:
        return 1.0
    if evidence.scored < <double>RECENT:
        evidence.lateness += (late - evidence.lateness) / evidence.scored
    else:
        evidence.lateness += (late - evidence.lateness) * (1.0 / <double>RECENT)
    if evidence.lateness < 1e-9:
        evidence.lateness = 0.0
    return <double>LATE / (<double>LATE + evidence.lateness)


cdef inline bint is_due(Evidence* evidence) noexcept nogil:
    """Whether coefficients are to be computed again: after every label at first."""
    if evidence.waiting < <double>SOLVING_ROWS and evidence.scored > <double>SOLVING_ROWS:
        return False
    evidence.waiting = 0.0
    return True


cdef inline double slower(double decay, double share) noexcept nogil:
    """What is left of a sum a row later, if that counts for such a share."""
    return 1.0 - (1.0 - decay) * share


cdef inline double weighted_share(double share, double w) noexcept nogil:
    """What a rate for rows of weight 1 becomes for another weight: its odds are multiplied."""
    cdef double odds = w * share
    return odds / (1.0 - share + odds)
