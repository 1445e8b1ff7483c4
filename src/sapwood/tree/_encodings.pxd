"""By which numbers splits read categories of many, if there are several targets."""

from sapwood.tree._tables cimport TreeTables


cdef void learn_split_encodings(
    TreeTables tables, const double* row, double row_weight
) noexcept nogil
