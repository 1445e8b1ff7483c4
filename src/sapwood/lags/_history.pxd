"""The rings of the last values of series, for kernels that read them in another way."""


cdef class History:
    cdef readonly dict places
    cdef readonly list keys
    cdef readonly object values, starts, counts, used
    cdef readonly long long key_bytes
    cdef double[:, ::1] value_view
    cdef long long[::1] start_view, count_view, used_view
    cdef const long long[:, ::1] wanted
    cdef tuple names
    cdef readonly long long clock
    cdef readonly Py_ssize_t depth
    cdef public object oldest  # where series to evict are looked for: see history.py

    cdef int set_tables(self, values, starts, counts, used) except -1
    cdef int add(self, dict added) except -1
    cdef bint starts_over(
        self, const double[:, ::1] values, const long long[::1] starts,
        const long long[::1] counts, Py_ssize_t depth, Py_ssize_t slot, double last,
    ) noexcept
