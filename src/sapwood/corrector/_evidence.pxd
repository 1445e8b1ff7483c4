"""What the label of a prediction is worth as evidence, the later it comes the less.

Errors of predictions that were made from the same labels, or nearly so, are alike: of a batch of
1,000 rows that was predicted at once, the labels say little more than one does. So a label counts
for LATE / (LATE + lateness), where the lateness is the faded mean of how many labels came between
predictions and their own labels: 0 if each came at once. What is counted fades as much slower.
"""

cdef enum:
    LATE = 5            # the lateness at which a label counts for half
    RECENT = 100        # labels over which the lateness is averaged
    SETTLING_ROWS = 32  # labels after which coefficients are computed again, after as many first


cdef struct Evidence:
    double judged    # labels of rows that had been predicted
    double lateness  # faded mean of the labels between a prediction and its own
    double waiting   # labels since coefficients were computed


cdef inline double worth(Evidence* evidence, double late) noexcept nogil:
    """Count a label that came after so many others; what it is worth."""
    evidence.judged += 1.0
    evidence.waiting += 1.0
    if late == 0.0 and evidence.lateness == 0.0:
        return 1.0
    if evidence.judged < <double>RECENT:
        evidence.lateness += (late - evidence.lateness) / evidence.judged
    else:
        evidence.lateness += (late - evidence.lateness) * (1.0 / <double>RECENT)
    if evidence.lateness < 1e-9:
        evidence.lateness = 0.0
    return <double>LATE / (<double>LATE + evidence.lateness)


cdef inline bint is_due(Evidence* evidence) noexcept nogil:
    """Whether coefficients are to be computed again: after every label at first."""
    if evidence.waiting < <double>SETTLING_ROWS and evidence.judged > <double>SETTLING_ROWS:
        return False
    evidence.waiting = 0.0
    return True


cdef inline double slower(double fade, double share) noexcept nogil:
    """What is left of a sum a row later, if that counts for such a share."""
    return 1.0 - (1.0 - fade) * share


cdef inline double weighted_share(double share, double w) noexcept nogil:
    """What a rate for rows of weight 1 becomes for another weight: its odds are multiplied."""
    cdef double odds = w * share
    return odds / (1.0 - share + odds)
