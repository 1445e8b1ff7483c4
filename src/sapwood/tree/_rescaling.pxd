"""A tree in other units."""

from sapwood.tree._tables cimport TreeTables
from sapwood.tree._units cimport ColumnUnits

cdef bint fits_column(
    TreeTables tables, Py_ssize_t feature, double scale, double shift
) noexcept nogil
cdef bint fits_target(TreeTables tables, double scale, double shift) noexcept nogil
cdef void move_units(ColumnUnits* units, double scale, double shift) noexcept nogil
cdef void rescale_column(
    TreeTables tables, Py_ssize_t feature, double scale, double shift
) noexcept nogil
cdef void rescale_target(TreeTables tables, double scale, double shift) noexcept nogil
