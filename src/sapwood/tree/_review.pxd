"""A leaf's scales and grids, brought up to its rows."""

from sapwood.tree._tables cimport TreeTables

cdef int review_leaf(TreeTables tables, Py_ssize_t leaf) except -1 nogil
