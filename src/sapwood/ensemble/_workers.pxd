"""Worker threads that run a task in parallel with their caller."""

cdef extern from "pythread.h" nogil:
    ctypedef void* PyThread_type_lock


cdef class Worker:
    cdef PyThread_type_lock wanted   # is let go when there is something to do
    cdef PyThread_type_lock finished  # is let go when it is done
    cdef object task
    cdef object argument
    cdef object error

    cdef void begin(self, task, argument) noexcept
    cdef object end(self)
