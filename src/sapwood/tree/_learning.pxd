"""A row is learned, whose leaf is known."""

from libc.stdint cimport uint64_t

from sapwood.tree._outlook cimport Outlook
from sapwood.tree._tables cimport TreeTables

cdef void learn_row(
    TreeTables tables,
    const double* row,
    const double* raw,
    double y,
    double w,
    uint64_t key,
    bint at_once,
    Outlook* outlook,
) noexcept nogil
