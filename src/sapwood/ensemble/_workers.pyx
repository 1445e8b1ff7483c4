"""Worker threads that run a task in parallel with their caller, and wait for the next one.

All ensembles of a process share them. Whoever needs some takes what is idle, and gives it back.
Waiting for the end of a task cannot be interrupted, and needs no memory: a task that has begun is
over, one way or the other, before anything else happens.
"""

import os
import threading

cdef extern from "pythread.h" nogil:
    enum:
        WAIT_LOCK
    PyThread_type_lock PyThread_allocate_lock()
    void PyThread_free_lock(PyThread_type_lock)
    int PyThread_acquire_lock(PyThread_type_lock, int)
    void PyThread_release_lock(PyThread_type_lock)

cdef list idle = []


cdef class Worker:
    """A thread that waits for something to do."""

    def __cinit__(self):
        self.wanted = PyThread_allocate_lock()
        self.finished = PyThread_allocate_lock()
        if self.wanted == NULL or self.finished == NULL:
            raise MemoryError
        PyThread_acquire_lock(self.wanted, WAIT_LOCK)
        PyThread_acquire_lock(self.finished, WAIT_LOCK)

    def __init__(self):
        threading.Thread(target=self.work, name="sapwood", daemon=True).start()

    def __dealloc__(self):
        if self.wanted != NULL:
            PyThread_free_lock(self.wanted)
        if self.finished != NULL:
            PyThread_free_lock(self.finished)

    def work(self):
        """Do what is requested, as long as there is a process."""
        while True:
            with nogil:
                PyThread_acquire_lock(self.wanted, WAIT_LOCK)
            try:
                self.task(self.argument)
            except BaseException as error:
                self.error = error
            self.task = self.argument = None
            PyThread_release_lock(self.finished)

    cdef void begin(self, task, argument) noexcept:
        """Let a function be called in the thread."""
        self.task, self.argument, self.error = task, argument, None
        PyThread_release_lock(self.wanted)

    cdef object end(self):
        """Wait until it has returned; what it has raised, or None."""
        with nogil:
            PyThread_acquire_lock(self.finished, WAIT_LOCK)
        error, self.error = self.error, None
        return error


def take_workers(Py_ssize_t count):
    """Return idle workers, some of them new, up to so many; `give_back` is to follow."""
    workers = []
    while len(workers) < count:
        workers.append(idle.pop() if idle else Worker())
    return workers


def give_back(list workers):
    """Let others have workers that are idle."""
    idle.extend(workers)


if hasattr(os, "register_at_fork"):
    # The threads of a process are not there in its child.
    os.register_at_fork(after_in_child=idle.clear)
