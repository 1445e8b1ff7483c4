"""The range of y that was seen, and which of its sides predictions are held to.

A side is open while it makes records: y that are lower, or higher, than all before. They are
counted in windows of labels, each as long as all windows before it. Of rows without order there is
less than one record a window; of a trend, one after the other. A side that had MOST_RECORDS or
more in this window or in the last one is open, and so is each in the first window of all.
"""

cdef enum:
    FIRST_WINDOW = 128
    MOST_RECORDS = 4

cdef struct Range:
    double low
    double high
    double seen              # labels
    double window            # labels at which this window ends
    double low_records       # in this window
    double high_records
    double low_before        # in the window before
    double high_before


cdef inline void start_range(Range* known, double y) noexcept nogil:
    """Start from the first y of all."""
    known.low = known.high = y
    known.seen, known.window = 1.0, FIRST_WINDOW
    known.low_records = known.high_records = 0.0
    known.low_before = known.high_before = 0.0


cdef inline void update_range(Range* known, double y) noexcept nogil:
    """Know one more y."""
    if y < known.low:
        known.low = y
        known.low_records += 1.0
    elif y > known.high:
        known.high = y
        known.high_records += 1.0
    known.seen += 1.0
    if known.seen >= known.window:
        known.low_before, known.high_before = known.low_records, known.high_records
        known.low_records = known.high_records = 0.0
        known.window = 2.0 * known.window if known.window > 0.0 else <double>FIRST_WINDOW


cdef inline double held_within(const Range* known, double prediction) noexcept nogil:
    """A prediction, within the sides of the range that are not open."""
    if known.window <= FIRST_WINDOW:  # 0 of a class that was never seen
        return prediction
    if prediction < known.low:
        if known.low_records < MOST_RECORDS and known.low_before < MOST_RECORDS:
            return known.low
    elif prediction > known.high:
        if known.high_records < MOST_RECORDS and known.high_before < MOST_RECORDS:
            return known.high
    return prediction
