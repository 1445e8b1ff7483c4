"""The record of one element: the layout of a table's row, and its arithmetic.

A row is the weight, the mean of x (the element's prototype) and, for each target, a moment cell.
The paper keeps the sum of x; its mean is as good and cannot overflow.
"""

from libc.string cimport memcpy

from sapwood.moments cimport CELL, M2, PIVOT, SHIFT, cell_merge

cdef enum:
    WEIGHT = 0
    PROTOTYPE = 1
    CELLS = 2  # the first target's moment cell starts here


cdef inline Py_ssize_t row_width(Py_ssize_t targets) noexcept nogil:
    return CELLS + CELL * targets


cdef inline double mean_of_cell(const double* cell) noexcept nogil:
    return cell[PIVOT] + cell[SHIFT]


cdef inline void row_clear(double* row, Py_ssize_t targets) noexcept nogil:
    cdef Py_ssize_t column
    for column in range(row_width(targets)):
        row[column] = 0.0


cdef inline void row_add(
    double* row, Py_ssize_t targets, double x, const double* y, double w
) noexcept nogil:
    """Add an observation to a row."""
    cdef double before = row[WEIGHT]
    cdef double after = before + w
    cdef Py_ssize_t target
    cdef double* cell = row + CELLS
    row[WEIGHT] = after
    row[PROTOTYPE] += (x - row[PROTOTYPE]) * (w / after)
    for target in range(targets):
        cell[M2] += cell_merge(cell, before, y[target], 0.0, w)
        cell += CELL


cdef inline void row_merge(
    double* row, const double* other, Py_ssize_t targets
) noexcept nogil:
    """Merge another row of positive weight into a row; an empty one becomes its copy."""
    cdef double before = row[WEIGHT]
    cdef double added = other[WEIGHT]
    cdef Py_ssize_t _target
    cdef double* cell = row + CELLS
    cdef const double* other_cell = other + CELLS
    if before == 0.0:
        memcpy(row, other, row_width(targets) * sizeof(double))
        return
    row[WEIGHT] = before + added
    row[PROTOTYPE] += (other[PROTOTYPE] - row[PROTOTYPE]) * (added / row[WEIGHT])
    for _target in range(targets):
        cell[M2] += other_cell[M2] + cell_merge(
            cell, before, other_cell[PIVOT], other_cell[SHIFT], added
        )
        cell += CELL
        other_cell += CELL
