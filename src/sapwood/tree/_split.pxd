"""A leaf becomes a split with two leaves."""

from sapwood.tree._search cimport BestCut
from sapwood.tree._tables cimport TreeTables

cdef int split_leaf(
    TreeTables tables, Py_ssize_t leaf, const BestCut* cut, int measure
) except -1 nogil
