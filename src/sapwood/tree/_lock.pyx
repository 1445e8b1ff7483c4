"""The lock of a model that several threads use: a tree, or the trees of an ensemble.

One thread at a time may learn (`begin_learning`); others queue for it in order. A learner may read
rows while other threads read the model. It *writes* (`start_writing`) while it changes the model.
Readers never fail; they are admitted between two rows. There are three ways to read:

- A *quick read* holds the GIL from its beginning to its end and runs no foreign code, so it needs
no
  counting. It is possible whenever no thread writes.
- A *request*, while a learner writes, passes a row to the learner, which predicts it between two
  rows without a stop.
- A *reading* is counted. A learner that is about to write waits until all readings have ended, and
  later readings wait until the learner admits them.

A learner works, and serves waiting threads, without the GIL. Shared state is guarded by a lock that
is held only to join a queue or to leave it. The thread that releases the lock makes the change for
the thread that it wakes, so that no interrupt and no other thread can come between.
"""

import os
import sys
import threading

from cpython.exc cimport PyErr_CheckSignals
from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc

cdef extern from "pythread.h" nogil:
    enum:
        NOWAIT_LOCK
        WAIT_LOCK
        PY_LOCK_ACQUIRED
    PyThread_type_lock PyThread_allocate_lock()
    void PyThread_free_lock(PyThread_type_lock)
    int PyThread_acquire_lock(PyThread_type_lock, int)
    int PyThread_acquire_lock_timed(PyThread_type_lock, long long, int)
    void PyThread_release_lock(PyThread_type_lock)

cdef enum:
    OUTSIDE = 0
    QUEUED = 1
    IN_SERVICE = 2  # the learner predicts its row
    DONE = 3
    # How often a learner checks whether a quick read has ended, before it waits for the GIL.
    QUICK_READ_CHECKS = 1000

cdef int forks = 0  # that have led to this process
cdef object is_finalizing = sys.is_finalizing


def count_fork():
    """Count a fork: this process has only one of the threads of its parent."""
    global forks
    forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=count_fork)


cdef class ModelLock:
    """The lock of a model, and the threads that use it."""

    def __cinit__(self):
        self.forks = forks
        self.guard = PyThread_allocate_lock()
        if self.guard == NULL:
            raise MemoryError

    def __dealloc__(self):
        if self.guard != NULL:
            PyThread_free_lock(self.guard)

    # -- learners -----------------------------------------------------------------------------

    cdef bint is_held_by_this_thread(self) noexcept:
        return self.learner == this_thread()

    cdef int wait_to_learn(self) except -1:
        """Wait in the queue of learners; reject a thread that would wait for itself."""
        cdef unsigned long me = this_thread()
        cdef Waiter waiter
        cdef Waiter* other
        cdef bint is_reading
        self.lock()
        is_reading = self.reading_of(me) != NULL
        self.unlock()
        self.refuse_if_half_changed()
        if is_reading:
            raise RuntimeError(
                "the model is being read in this thread, and code that this calls, such as a value "
                "or the handler of a signal, asked it to learn; let it learn afterwards"
            )
        other = self.learners.first
        while other != NULL and other.thread != me:
            other = other.next
        if self.learner == me or other != NULL:
            raise_learning_already()
        if self.learner == 0 and self.learners.first == NULL:
            self.learner = me
            return 0
        self.refuse_at_exit()
        begin_waiting(&waiter, me)
        enqueue(&self.learners, &waiter)
        try:
            with nogil:
                self.sleep(&waiter)
        except BaseException:
            if waiter.stage == DONE:
                end_learning(self)
            else:
                dequeue(&self.learners, &waiter)
            raise
        finally:
            PyThread_free_lock(waiter.wakeup)
        return 0

    cdef void wake_next_learner(self) noexcept:
        """Pass the lock to the learner that waits longest."""
        cdef Waiter* waiter
        self.lock()
        waiter = self.learners.first
        if waiter != NULL:
            dequeue(&self.learners, waiter)
            self.learner = waiter.thread
            wake(waiter)
        self.unlock()

    cdef int wait_to_write(self) except -1:
        """Wait until no thread reads, and block readers."""
        if atomic_load_explicit(&self.writing, memory_order_relaxed):
            raise_learning_already()
        self.refuse_at_exit()
        with nogil:
            self.resume()
        return 0

    cdef void pause(self) noexcept nogil:
        """Admit all waiting readers, and those that come until `resume`."""
        cdef Waiter* waiter
        self.lock()
        atomic_store(&self.writing, 0)
        while self.readers.first != NULL:
            waiter = self.readers.first
            self.dequeue_reader(&self.readers, waiter)
            self.add_reading(waiter.reading)
            wake(waiter)
        while self.requests.first != NULL:  # they can use a quick read now
            waiter = self.requests.first
            self.dequeue_reader(&self.requests, waiter)
            wake(waiter)
        self.unlock()

    cdef int resume(self) except -1 nogil:
        """Wait until no thread reads, and block readers."""
        cdef int _look
        self.lock()
        if self.readings != NULL:
            return self.wait_for_readings()
        atomic_store(&self.writing, 1)
        self.unlock()
        for _look in range(QUICK_READ_CHECKS):
            if not atomic_load(&self.quick_reading):
                return 0
        with gil:  # a quick read holds it to its end
            return 0

    cdef int wait_for_readings(self) except -1 nogil:
        """Wait for the end of the last reading, after which this learner writes. Unlocks.

        If the handler of a signal raises, the learner does not write.
        """
        cdef Waiter waiter
        cdef bint is_interrupted = True
        waiter.thread, waiter.stage = self.learner, QUEUED
        waiter.wakeup = PyThread_allocate_lock()
        if waiter.wakeup == NULL:
            self.unlock()
            with gil:
                raise MemoryError
        PyThread_acquire_lock(waiter.wakeup, WAIT_LOCK)
        self.resuming = &waiter
        self.unlock()
        try:
            self.sleep(&waiter)
            is_interrupted = False
        finally:
            self.lock()
            self.resuming = NULL
            self.unlock()
            PyThread_free_lock(waiter.wakeup)
            if is_interrupted and waiter.stage == DONE:
                self.pause()  # the last reading ended while the handler of a signal ran
        return 0

    # -- service of waiting threads -----------------------------------------------------------

    cdef bint look_for_signals(self) except -1 nogil:
        """Run handlers of signals, which may read; return whether they run in this thread."""
        cdef bint is_main
        self.pause()
        with gil:
            PyErr_CheckSignals()
            is_main = this_thread() == threading.main_thread().ident
        self.resume()
        return is_main

    cdef Waiter* take_requests(self) noexcept nogil:
        """Take all requests out of their queue; return the first. Each has to get an `answer`."""
        cdef Waiter* first
        cdef Waiter* waiter
        self.lock()
        first = waiter = self.requests.first
        while waiter != NULL:
            waiter.stage = IN_SERVICE
            atomic_store(&self.waiting, atomic_load(&self.waiting) - 1)
            waiter = waiter.next
        self.requests.first = self.requests.last = NULL
        self.unlock()
        return first

    cdef void answer(self, Waiter* waiter) noexcept nogil:
        """Wake the thread of a request."""
        self.lock()
        wake(waiter)
        self.unlock()

    cdef int let_readers_in(self) except -1 nogil:
        """Admit waiting readers, if there are any, and wait until they have ended."""
        cdef bint is_awaited
        self.lock()
        is_awaited = self.readers.first != NULL
        self.unlock()
        if is_awaited:
            self.pause()
            self.resume()
        return 0

    # -- readers ------------------------------------------------------------------------------

    cdef bint request_prediction(
        self, const double* values, Py_ssize_t width, double* prediction
    ) except -1:
        """Request a prediction from the learner; return whether it predicted the row.

        If not, a quick read is possible, or the request can be repeated.
        """
        cdef Waiter waiter
        self.refuse_before_waiting()
        begin_waiting(&waiter, this_thread())
        waiter.values, waiter.width = values, width
        self.lock()
        if not atomic_load(&self.writing):
            self.unlock()
            PyThread_free_lock(waiter.wakeup)
            return False
        self.enqueue_reader(&self.requests, &waiter)
        self.unlock()
        try:
            with nogil:
                self.sleep(&waiter)
        except BaseException:
            self.lock()
            if waiter.stage == QUEUED:
                self.dequeue_reader(&self.requests, &waiter)
                waiter.stage = DONE
            self.unlock()
            if waiter.stage == IN_SERVICE:  # the answer takes microseconds
                PyThread_acquire_lock(waiter.wakeup, WAIT_LOCK)
                self.lock()
                self.unlock()
            raise
        finally:
            PyThread_free_lock(waiter.wakeup)
        prediction[0] = waiter.prediction
        return waiter.is_answered

    cdef int begin_reading(self) except -1:
        """Wait until one may read, until `end_reading`; may be nested."""
        cdef unsigned long me = this_thread()
        cdef bint is_in
        cdef Reading* fresh = <Reading*>PyMem_RawMalloc(sizeof(Reading))
        cdef Reading* reading
        if fresh == NULL:
            raise MemoryError
        fresh.thread, fresh.depth = me, 1
        self.lock()
        reading = self.reading_of(me)
        is_in = reading != NULL or self.may_read(me)
        if reading != NULL:
            reading.depth += 1
        elif is_in:
            self.add_reading(fresh)
        self.unlock()
        if reading != NULL:
            PyMem_RawFree(fresh)
        elif not is_in:
            self.wait_to_read(fresh)
        return 0

    cdef int wait_to_read(self, Reading* reading) except -1:
        """Wait in queue; the reading is freed if that is interrupted."""
        cdef Waiter waiter
        waiter.wakeup, waiter.stage = NULL, OUTSIDE
        try:
            self.refuse_before_waiting()
            begin_waiting(&waiter, reading.thread)
            waiter.reading = reading
            self.lock()
            if self.may_read(reading.thread):
                self.add_reading(reading)
                waiter.stage = DONE
            else:
                self.enqueue_reader(&self.readers, &waiter)
            self.unlock()
            if waiter.stage == QUEUED:
                with nogil:
                    self.sleep(&waiter)
        except BaseException:
            self.lock()
            if waiter.stage == QUEUED:
                self.dequeue_reader(&self.readers, &waiter)
            self.unlock()
            if waiter.stage == DONE:
                self.end_reading()
            else:
                PyMem_RawFree(reading)
            raise
        finally:
            if waiter.wakeup != NULL:
                PyThread_free_lock(waiter.wakeup)
        return 0

    cdef void end_reading(self) noexcept:
        """End what `begin_reading` of this thread has begun."""
        cdef Reading** place
        cdef Reading* reading
        self.lock()
        place = &self.readings
        while place[0].thread != this_thread():
            place = &place[0].next
        reading = place[0]
        reading.depth -= 1
        if reading.depth == 0:
            place[0] = reading.next
            PyMem_RawFree(reading)
            if self.readings == NULL and self.resuming != NULL:
                # A quick read holds the GIL, as this thread does: there is none.
                atomic_store(&self.writing, 1)
                wake(self.resuming)
                self.resuming = NULL
        self.unlock()

    # -- what they have in common -------------------------------------------------------------

    cdef int sleep(self, Waiter* waiter) except -1 nogil:
        """Wait for the wakeup; the handler of a signal may raise meanwhile."""
        while PyThread_acquire_lock_timed(waiter.wakeup, -1, 1) != PY_LOCK_ACQUIRED:
            with gil:
                PyErr_CheckSignals()
        # The thread that woke it held the lock, and is done with the waiter after this.
        self.lock()
        self.unlock()
        return 0

    cdef void lock(self) noexcept nogil:
        """Acquire the guard of shared state."""
        if self.forks != forks:
            self.forget_other_threads()
        PyThread_acquire_lock(self.guard, WAIT_LOCK)

    cdef void unlock(self) noexcept nogil:
        PyThread_release_lock(self.guard)

    cdef Reading* reading_of(self, unsigned long thread) noexcept nogil:
        """Return the reading of a thread; NULL if there is none. Locked."""
        cdef Reading* reading = self.readings
        while reading != NULL and reading.thread != thread:
            reading = reading.next
        return reading

    cdef bint may_read(self, unsigned long thread) noexcept nogil:
        """Whether a thread that does not read may begin to. Locked.

        Not if a learner waits for the end of readings, or it might wait forever.
        """
        if atomic_load(&self.writing):
            return False
        return self.resuming == NULL or self.learner == thread

    cdef void add_reading(self, Reading* reading) noexcept nogil:
        """Add a reading. Locked."""
        reading.next = self.readings
        self.readings = reading

    cdef void enqueue_reader(self, Queue* queue, Waiter* waiter) noexcept nogil:
        """Add a waiting reader. Locked."""
        enqueue(queue, waiter)
        atomic_store(&self.waiting, atomic_load(&self.waiting) + 1)

    cdef void dequeue_reader(self, Queue* queue, Waiter* waiter) noexcept nogil:
        """Remove a waiting reader. Locked."""
        dequeue(queue, waiter)
        atomic_store(&self.waiting, atomic_load(&self.waiting) - 1)

    # -- threads that cannot wait -------------------------------------------------------------

    cdef void forget_other_threads(self) noexcept nogil:
        """Remove all other threads, as this process was forked."""
        cdef Reading* reading
        cdef Reading* own = NULL
        self.forks = forks
        PyThread_acquire_lock(self.guard, NOWAIT_LOCK)  # whichever thread held it
        while self.readings != NULL:
            reading = self.readings
            self.readings = reading.next
            if reading.thread == this_thread():
                own = reading
                own.next = NULL
            else:
                PyMem_RawFree(reading)
        self.readings = own
        self.readers.first = self.readers.last = self.requests.first = self.requests.last = NULL
        self.learners.first = self.learners.last = self.resuming = NULL
        atomic_store(&self.waiting, 0)
        if self.learner != this_thread():
            self.is_half_changed = atomic_load(&self.writing)
            if not self.is_half_changed:
                self.learner = 0
        PyThread_release_lock(self.guard)

    def refuse_before_waiting(self):
        """Raise if this thread would wait for itself, or for one that is not there."""
        self.lock()  # which notices a fork
        self.unlock()
        self.refuse_if_half_changed()
        if self.learner == this_thread():
            raise RuntimeError(
                "the model is learning in this thread, and is read by what that calls, such as an "
                "observer or a finalizer; read it before or afterwards"
            )
        self.refuse_at_exit()

    cdef int refuse_if_half_changed(self) except -1:
        if self.is_half_changed:
            raise RuntimeError(
                "the model was learning in another thread when this process was forked, and is "
                "half-changed here; load it from a file, or fork before it learns"
            )
        return 0

    cdef int refuse_at_exit(self) except -1:
        if is_finalizing():
            raise RuntimeError(
                "another thread was using the model when the interpreter ended; join threads "
                "before that"
            )
        return 0


cdef int raise_learning_already() except -1:
    raise RuntimeError(
        "the model is learning in this thread, and code that this calls, such as a value or the "
        "handler of a signal, asked it to learn more; let it learn afterwards"
    )


cdef int begin_waiting(Waiter* waiter, unsigned long thread) except -1:
    """Initialise a waiter."""
    waiter.thread, waiter.stage, waiter.is_answered = thread, QUEUED, False
    waiter.reading, waiter.next = NULL, NULL
    waiter.wakeup = PyThread_allocate_lock()
    if waiter.wakeup == NULL:
        raise MemoryError
    PyThread_acquire_lock(waiter.wakeup, WAIT_LOCK)
    return 0


cdef void wake(Waiter* waiter) noexcept nogil:
    """Wake a waiter. Locked, so that it exists until this returns."""
    waiter.stage = DONE
    PyThread_release_lock(waiter.wakeup)


cdef void enqueue(Queue* queue, Waiter* waiter) noexcept nogil:
    waiter.next = NULL
    if queue.first == NULL:
        queue.first = waiter
    else:
        queue.last.next = waiter
    queue.last = waiter


cdef void dequeue(Queue* queue, Waiter* waiter) noexcept nogil:
    cdef Waiter* before = NULL
    cdef Waiter* each = queue.first
    while each != waiter:
        before, each = each, each.next
    if before == NULL:
        queue.first = waiter.next
    else:
        before.next = waiter.next
    if queue.last == waiter:
        queue.last = before
