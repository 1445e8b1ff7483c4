"""How much a tree occupies, and which of its leaves may watch."""

from libc.stdint cimport int64_t

from sapwood.tree._tables cimport TreeTables

cdef int64_t used_bytes(TreeTables tables) noexcept nogil
cdef int64_t promised_bytes(TreeTables tables) noexcept nogil
cdef bint admits_trial(TreeTables tables) noexcept nogil
cdef int admits_split(TreeTables tables, Py_ssize_t leaf, bint* is_admitted) except -1 nogil
cdef int rank_in_time(TreeTables tables) except -1 nogil
cdef int measure_if_due(TreeTables tables) except -1 nogil
