"""Statistics of columns, updated by each row; _facts.pxd and _units.pxd have the rules."""

from libc.math cimport fabs, ldexp
from libc.stdint cimport int64_t, uint64_t

from sapwood.tree._facts cimport NO_GRID, RENEWED, SAMPLES, hashed, leaves_grids, stride_of
from sapwood.tree._records cimport NodeRecord
from sapwood.tree._tables cimport TreeTables
from sapwood.tree._target_records cimport TargetPrediction
from sapwood.tree._units cimport SAMPLED


cdef inline bint observe_columns(
    TreeTables tables, Py_ssize_t leaf, const double* row, const double* y, double w,
    const TargetPrediction* predictions,
) noexcept nogil:
    """Update the statistics of columns; return whether the row is a sample of units.

    The y of each target is the first of two numbers, and NaN if it is missing.
    """
    cdef Py_ssize_t feature
    cdef double value
    if tables.gridded:
        for feature in range(tables.features):
            value = row[feature]
            if tables.column.facts[feature].decimals == 0.0 and (
                fabs(value) < ldexp(1.0, 52) and <double><int64_t>value == value
            ):
                continue  # as most are that are on a grid
            if value == value and tables.column.facts[feature].decimals < NO_GRID:
                tables.gridded -= leaves_grids(tables.column.facts + feature, value)
    if tables.stream.rows < tables.stream.next_sample:
        return False
    return sample_row(tables, leaf, row, y, w, predictions)


cdef inline bint is_permuted(uint64_t bits, double rows) noexcept nogil:
    """Whether a row is tried with other values, by the hash of its number."""
    return bits & (stride_of(rows) - 1) == 0


cdef inline double next_sample_after(double rows) noexcept nogil:
    """The number of the next row that is tried, kept, or a sample of units."""
    cdef uint64_t number = <uint64_t>rows, bits, beyond = stride_of(rows + 1.0) - 1
    while True:
        number += 1
        bits = hashed(number)
        # Strides only become longer: a row that is none by then is looked at in vain.
        if bits & beyond == 0 or bits % RENEWED == 1 or bits % SAMPLED == 3:
            return <double>number


cdef bint sample_row(
    TreeTables tables, Py_ssize_t leaf, const double* row, const double* y, double w,
    const TargetPrediction* predictions,
) noexcept nogil
cdef void widen_ranges(TreeTables tables, const double* row) noexcept nogil
cdef double error_of(
    TreeTables tables, const double* y, const TargetPrediction* predictions
) noexcept nogil
cdef void weigh_units(
    TreeTables tables, const double* raw, const double* y, const TargetPrediction* predictions
) noexcept nogil
