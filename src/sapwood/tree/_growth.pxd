"""What happens when a leaf is due."""

from sapwood.tree._tables cimport TreeTables

cdef int decide(TreeTables tables, Py_ssize_t leaf) except -1 nogil
cdef double error_of(TreeTables tables, Py_ssize_t leaf) noexcept nogil
cdef double variance_of(TreeTables tables, Py_ssize_t leaf, bint of_residual) noexcept nogil
