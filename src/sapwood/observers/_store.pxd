"""What all stores of elements have in common."""

cdef class Store:
    cdef readonly Py_ssize_t targets
    cdef readonly Py_ssize_t count
    cdef double[::1] keys       # one a row of the table; what it means is the store's affair
    cdef double[:, ::1] table   # rows as in _rows.pxd, of which the first `count` are in use

    cdef Py_ssize_t take(
        self, const double[::1] x, const double[:, ::1] y, const double[:] w, Py_ssize_t start
    ) noexcept nogil
    cdef bint take_one(self, double x, const double* y, double w) noexcept nogil
    cdef int grow(self, Py_ssize_t rows) except -1
    cdef int trim(self, Py_ssize_t spare) except -1
    cdef int resize(self, Py_ssize_t size) except -1
    cdef bint finds_room(self, const double[::1] x) noexcept nogil
    cdef bint knows(self, double x) noexcept nogil
    cdef Py_ssize_t spare(self) noexcept nogil
    cdef Store duplicate(self)
    cdef void become(self, Store other) noexcept
    cdef Py_ssize_t room(self)
