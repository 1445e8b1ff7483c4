"""Split encodings: the numbers that splits of several targets read for categories."""

from sapwood.tree._tables cimport TreeTables


cdef void update_split_encodings(
    TreeTables tables, const double* row, double row_weight
) noexcept nogil
