"""The entry of observations into a store."""

from sapwood.observers._store cimport Store

cdef class Watch:
    cdef readonly Py_ssize_t targets
    cdef readonly Store _store
    cdef readonly double _weight
    cdef double* reach  # of each target, as in sapwood/_validation.pxd
    cdef double* trial  # a copy of it, for rows that may be rejected
    cdef double* row    # the targets of one observation
    cdef bint ready     # set up, and its tables not about to change

    cdef int enter(self) except -1
    cdef void accept(self, double weight) noexcept
