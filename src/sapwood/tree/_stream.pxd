"""Statistics of all rows that a tree has learned."""


cdef struct StreamStatistics:
    double rows
    double weight
    double first        # y, and the range of y
    double low
    double high
    double usual        # exponentially weighted mean of the squared errors
    double ranked_at    # rows when leaves were last ranked, see _memory.pyx
    double measure_at   # rows at which observers have to be measured again
    double bound        # bytes that the tree cannot exceed before that
    double next_sample  # the row that is sampled next, see _columns.pxd


cdef inline double mean_weight(const StreamStatistics* stream) noexcept nogil:
    """The mean weight of rows; 1 before the first row."""
    return stream.weight / stream.rows if stream.rows > 0.0 else 1.0
