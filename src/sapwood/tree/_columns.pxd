"""What a row tells of its columns; the rules are those of _facts.pxd and _units.pxd."""

from libc.math cimport fabs, ldexp
from libc.stdint cimport int64_t, uint64_t

from sapwood.tree._facts cimport NO_GRID, PERMUTED, RENEWED, SAMPLES, hashed, leaves_grids
from sapwood.tree._outlook cimport Outlook
from sapwood.tree._records cimport NodeRecord
from sapwood.tree._tables cimport TreeTables
from sapwood.tree._units cimport SAMPLED


cdef inline bint see_columns(
    TreeTables tables, const double* row, double y, double w, const Outlook* outlook
) noexcept nogil:
    """Note what a row tells of its columns, see _facts.pxd; with several targets, whose outlook
    is NULL, but for what it costs to get them wrong (see _target_columns.pyx). Whether it is a
    sample of units."""
    cdef uint64_t bits = hashed(<uint64_t>tables.rows)
    cdef Py_ssize_t feature, sample
    cdef double value
    if tables.gridded:
        for feature in range(tables.features):
            value = row[feature]
            if tables.facts[feature].decimals == 0.0 and (
                fabs(value) < ldexp(1.0, 52) and <double><int64_t>value == value
            ):
                continue  # as most are that are on a grid
            if value == value and tables.facts[feature].decimals < NO_GRID:
                tables.gridded -= leaves_grids(tables.facts + feature, value)
    if tables.rows == 0.0:
        for sample in range(SAMPLES):
            keep_sample(tables, row, sample)
    elif outlook != NULL and bits % PERMUTED == 0 and tables.features and not tables.astir:
        permute(tables, row, y, w, outlook, bits >> 16)
    if bits % RENEWED == 1 and not tables.astir:
        keep_sample(tables, row, <Py_ssize_t>((bits >> 16) % SAMPLES))
    return bits % SAMPLED == 3


cdef void keep_sample(TreeTables tables, const double* row, Py_ssize_t sample) noexcept nogil
cdef Py_ssize_t find_moving(
    const NodeRecord* nodes, const double* row, const double* past, Py_ssize_t* moving
) noexcept nogil
cdef void permute(
    TreeTables tables, const double* row, double y, double w, const Outlook* outlook, uint64_t bits
) noexcept nogil
cdef void weigh_units(
    TreeTables tables, const double* raw, double y, const Outlook* outlook
) noexcept nogil
