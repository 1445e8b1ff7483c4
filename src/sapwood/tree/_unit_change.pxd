"""What is done about columns that seem to be in other units; the rules are those of _units.pxd."""

from sapwood.tree._tables cimport TreeTables
from sapwood.tree._target_records cimport TargetPrediction

cdef void watch_units(
    TreeTables tables, const double* row, const double* y, const TargetPrediction* predictions,
    bint is_unusual, bint has_large_error, bint is_sampled,
) noexcept nogil
