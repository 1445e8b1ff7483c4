"""Pages of doubles, one for each leaf."""

cdef class Pages:
    cdef double** at          # the page of each leaf; NULL where there is none
    cdef Py_ssize_t room      # how many leaves there is a place for
    cdef Py_ssize_t doubles   # of a page

    cdef int reserve(self, Py_ssize_t room) except -1
    cdef double* fresh(self) noexcept nogil
    cdef void put(self, Py_ssize_t leaf, double* page) noexcept nogil
    cdef void swap(self, Pages other) noexcept nogil
    cdef void move(self, Py_ssize_t leaf, Py_ssize_t place) noexcept nogil


cdef void give_back(double* page) noexcept nogil
