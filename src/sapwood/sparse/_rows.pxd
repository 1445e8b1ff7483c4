from libc.stdint cimport uint64_t


cdef class SparseRows:
    cdef readonly Py_ssize_t count   # rows
    cdef readonly Py_ssize_t terms   # names that they have, all together
    cdef Py_ssize_t room             # for terms
    cdef Py_ssize_t* starts          # of each row the first of its terms; and one more
    cdef uint64_t* keys              # of each term
    cdef double* values
    cdef uint64_t* tokens            # of each row: a key by which its label finds its prediction

    cdef int add_row(self, object x, bint zeros_are_absent) except -1
    cdef int add(self, uint64_t key, double value) except -1


cdef uint64_t name_key(object name) except? 0
