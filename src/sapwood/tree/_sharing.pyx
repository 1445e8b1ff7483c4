"""Who may read or change what several threads share: a tree, or several that learn together.

Learners take turns, in the order in which they came. Whose turn it is may read rows, while others
read the tree; it *writes* when it changes the tree. Readers never fail: they come in between two
rows. There are three ways to read:

- A *glance* holds the GIL from its beginning to its end and runs nobody's code, so that it costs
  next to nothing; it is possible whenever nobody writes.
- Who *asks* while a learner writes hands it a row, and gets the prediction between two rows from
  the learner itself, which does not have to stop for that.
- A *reading* is counted: a learner that wants to write waits until all of them have ended, and
  those that come later wait for the learner to let them in.

A learner works without the GIL, and sees to those who wait without it. What it shares with others
is guarded by a lock that nobody holds for longer than it takes to join a line or leave it. All
lines are worked by hand over: whoever leaves makes the change for the one that is woken, so that
no moment is left in which an interrupt, or somebody else, could come in between.
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
    IN_LINE = 1
    IN_HAND = 2  # somebody is seeing to it
    DONE = 3
    # How often a learner looks whether a glance is over, before it waits for the GIL.
    GLANCES = 1000

cdef int forks = 0  # that have led to this process
cdef object is_finalizing = sys.is_finalizing


def count_fork():
    """Remember that this process has but one thread of those that there were."""
    global forks
    forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=count_fork)


cdef class Sharing:
    """What several threads share, and who is at it."""

    def __cinit__(self):
        self.forks = forks
        self.guard = PyThread_allocate_lock()
        if self.guard == NULL:
            raise MemoryError

    def __dealloc__(self):
        if self.guard != NULL:
            PyThread_free_lock(self.guard)

    # -- learners -----------------------------------------------------------------------------

    cdef bint is_turn_of_this_thread(self) noexcept:
        return self.learner == this_thread()

    cdef int wait_for_turn(self) except -1:
        """Wait in line for the turn, if need be; refuse who would wait for itself."""
        cdef unsigned long me = this_thread()
        cdef Waiter waiter
        cdef Waiter* other
        cdef bint is_reading
        self.lock()
        is_reading = self.reading_of(me) != NULL
        self.unlock()
        self.refuse_if_torn()
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
        join(&self.learners, &waiter)
        try:
            with nogil:
                self.sleep(&waiter)
        except BaseException:
            if waiter.stage == DONE:
                give_turn(self)
            else:
                leave(&self.learners, &waiter)
            raise
        finally:
            PyThread_free_lock(waiter.alarm)
        return 0

    cdef void pass_turn(self) noexcept:
        """Let it be the turn of who waits longest."""
        cdef Waiter* waiter
        self.lock()
        waiter = self.learners.first
        if waiter != NULL:
            leave(&self.learners, waiter)
            self.learner = waiter.thread
            wake(waiter)
        self.unlock()

    cdef int wait_to_write(self) except -1:
        """Wait until nobody reads, and let nobody read from now on."""
        if atomic_load_explicit(&self.writing, memory_order_relaxed):
            raise_learning_already()
        self.refuse_at_exit()
        with nogil:
            self.resume()
        return 0

    cdef void pause(self) noexcept nogil:
        """Let all in who wait, and who come until `resume`."""
        cdef Waiter* waiter
        self.lock()
        atomic_store(&self.writing, 0)
        while self.readers.first != NULL:
            waiter = self.readers.first
            self.leave_line(&self.readers, waiter)
            self.add_reading(waiter.reading)
            wake(waiter)
        while self.askers.first != NULL:  # they may glance now
            waiter = self.askers.first
            self.leave_line(&self.askers, waiter)
            wake(waiter)
        self.unlock()

    cdef int resume(self) except -1 nogil:
        """Wait until nobody reads, and let nobody read from now on."""
        cdef int _look
        self.lock()
        if self.readings != NULL:
            return self.wait_for_readings()
        atomic_store(&self.writing, 1)
        self.unlock()
        for _look in range(GLANCES):
            if not atomic_load(&self.glancing):
                return 0
        with gil:  # which who glances holds to the end
            return 0

    cdef int wait_for_readings(self) except -1 nogil:
        """Wait for the end of the last reading, by which this learner writes. Unlocks.

        If the handler of a signal raises, this learner does not write.
        """
        cdef Waiter waiter
        cdef bint is_interrupted = True
        waiter.thread, waiter.stage = self.learner, IN_LINE
        waiter.alarm = PyThread_allocate_lock()
        if waiter.alarm == NULL:
            self.unlock()
            with gil:
                raise MemoryError
        PyThread_acquire_lock(waiter.alarm, WAIT_LOCK)
        self.resuming = &waiter
        self.unlock()
        try:
            self.sleep(&waiter)
            is_interrupted = False
        finally:
            self.lock()
            self.resuming = NULL
            self.unlock()
            PyThread_free_lock(waiter.alarm)
            if is_interrupted and waiter.stage == DONE:
                self.pause()  # the last reading ended while the handler of a signal ran
        return 0

    # -- what a learner does for those who wait -----------------------------------------------

    cdef bint look_for_signals(self) except -1 nogil:
        """Let handlers of signals run, which may read; whether they run in this thread at all."""
        cdef bint is_main
        self.pause()
        with gil:
            PyErr_CheckSignals()
            is_main = this_thread() == threading.main_thread().ident
        self.resume()
        return is_main

    cdef Waiter* who_ask(self) noexcept nogil:
        """Take all out of the line who ask; the first of them. Each gets an `answer` now."""
        cdef Waiter* first
        cdef Waiter* waiter
        self.lock()
        first = waiter = self.askers.first
        while waiter != NULL:
            waiter.stage = IN_HAND
            atomic_store(&self.waiting, atomic_load(&self.waiting) - 1)
            waiter = waiter.next
        self.askers.first = self.askers.last = NULL
        self.unlock()
        return first

    cdef void answer(self, Waiter* waiter) noexcept nogil:
        """Wake somebody who asked."""
        self.lock()
        wake(waiter)
        self.unlock()

    cdef int let_readers_in(self) except -1 nogil:
        """Let those read who wait for it, if anybody does, and wait for them."""
        cdef bint is_awaited
        self.lock()
        is_awaited = self.readers.first != NULL
        self.unlock()
        if is_awaited:
            self.pause()
            self.resume()
        return 0

    # -- readers ------------------------------------------------------------------------------

    cdef bint ask(self, const double* values, Py_ssize_t width, double* prediction) except -1:
        """Let the learner predict a row; whether it has. If not, one may glance, or ask again."""
        cdef Waiter waiter
        self.refuse_before_waiting()
        begin_waiting(&waiter, this_thread())
        waiter.values, waiter.width = values, width
        self.lock()
        if not atomic_load(&self.writing):
            self.unlock()
            PyThread_free_lock(waiter.alarm)
            return False
        self.join_line(&self.askers, &waiter)
        self.unlock()
        try:
            with nogil:
                self.sleep(&waiter)
        except BaseException:
            self.lock()
            if waiter.stage == IN_LINE:
                self.leave_line(&self.askers, &waiter)
                waiter.stage = DONE
            self.unlock()
            if waiter.stage == IN_HAND:  # the answer is a matter of microseconds
                PyThread_acquire_lock(waiter.alarm, WAIT_LOCK)
                self.lock()
                self.unlock()
            raise
        finally:
            PyThread_free_lock(waiter.alarm)
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
        """Wait in line; the reading is freed if that is interrupted."""
        cdef Waiter waiter
        waiter.alarm, waiter.stage = NULL, OUTSIDE
        try:
            self.refuse_before_waiting()
            begin_waiting(&waiter, reading.thread)
            waiter.reading = reading
            self.lock()
            if self.may_read(reading.thread):
                self.add_reading(reading)
                waiter.stage = DONE
            else:
                self.join_line(&self.readers, &waiter)
            self.unlock()
            if waiter.stage == IN_LINE:
                with nogil:
                    self.sleep(&waiter)
        except BaseException:
            self.lock()
            if waiter.stage == IN_LINE:
                self.leave_line(&self.readers, &waiter)
            self.unlock()
            if waiter.stage == DONE:
                self.end_reading()
            else:
                PyMem_RawFree(reading)
            raise
        finally:
            if waiter.alarm != NULL:
                PyThread_free_lock(waiter.alarm)
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
                # Who glances has the GIL, and so has this: nobody does.
                atomic_store(&self.writing, 1)
                wake(self.resuming)
                self.resuming = NULL
        self.unlock()

    # -- what they have in common -------------------------------------------------------------

    cdef int sleep(self, Waiter* waiter) except -1 nogil:
        """Wait for the alarm; the handler of a signal may raise meanwhile."""
        while PyThread_acquire_lock_timed(waiter.alarm, -1, 1) != PY_LOCK_ACQUIRED:
            with gil:
                PyErr_CheckSignals()
        # Whoever rang it still had the lock, and is through with the waiter after this.
        self.lock()
        self.unlock()
        return 0

    cdef void lock(self) noexcept nogil:
        """Let nobody else see or change what is guarded, for a moment."""
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

        Not if a learner waits for the end of readings, for there might be no end of them.
        """
        if atomic_load(&self.writing):
            return False
        return self.resuming == NULL or self.learner == thread

    cdef void add_reading(self, Reading* reading) noexcept nogil:
        """Let a thread read. Locked."""
        reading.next = self.readings
        self.readings = reading

    cdef void join_line(self, Line* line, Waiter* waiter) noexcept nogil:
        """Let a reader wait. Locked."""
        join(line, waiter)
        atomic_store(&self.waiting, atomic_load(&self.waiting) + 1)

    cdef void leave_line(self, Line* line, Waiter* waiter) noexcept nogil:
        """Let a reader no longer wait. Locked."""
        leave(line, waiter)
        atomic_store(&self.waiting, atomic_load(&self.waiting) - 1)

    # -- who would wait for nobody ------------------------------------------------------------

    cdef void forget_other_threads(self) noexcept nogil:
        """Let there be but this thread, as this process was forked."""
        cdef Reading* reading
        cdef Reading* own = NULL
        self.forks = forks
        PyThread_acquire_lock(self.guard, NOWAIT_LOCK)  # whoever may have had it
        while self.readings != NULL:
            reading = self.readings
            self.readings = reading.next
            if reading.thread == this_thread():
                own = reading
                own.next = NULL
            else:
                PyMem_RawFree(reading)
        self.readings = own
        self.readers.first = self.readers.last = self.askers.first = self.askers.last = NULL
        self.learners.first = self.learners.last = self.resuming = NULL
        atomic_store(&self.waiting, 0)
        if self.learner != this_thread():
            self.is_torn = atomic_load(&self.writing)
            if not self.is_torn:
                self.learner = 0
        PyThread_release_lock(self.guard)

    def refuse_before_waiting(self):
        """Raise if this thread would wait for itself, or for one that is not there."""
        self.lock()  # which notices a fork
        self.unlock()
        self.refuse_if_torn()
        if self.learner == this_thread():
            raise RuntimeError(
                "the model is learning in this thread, and is read by what that calls, such as an "
                "observer or a finalizer; read it before or afterwards"
            )
        self.refuse_at_exit()

    cdef int refuse_if_torn(self) except -1:
        if self.is_torn:
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
    """Let there be a waiter with an alarm."""
    waiter.thread, waiter.stage, waiter.is_answered = thread, IN_LINE, False
    waiter.reading, waiter.next = NULL, NULL
    waiter.alarm = PyThread_allocate_lock()
    if waiter.alarm == NULL:
        raise MemoryError
    PyThread_acquire_lock(waiter.alarm, WAIT_LOCK)
    return 0


cdef void wake(Waiter* waiter) noexcept nogil:
    """Tell a waiter that it has been seen to. Locked, so that it stays until this is through."""
    waiter.stage = DONE
    PyThread_release_lock(waiter.alarm)


cdef void join(Line* line, Waiter* waiter) noexcept nogil:
    waiter.next = NULL
    if line.first == NULL:
        line.first = waiter
    else:
        line.last.next = waiter
    line.last = waiter


cdef void leave(Line* line, Waiter* waiter) noexcept nogil:
    cdef Waiter* before = NULL
    cdef Waiter* each = line.first
    while each != waiter:
        before, each = each, each.next
    if before == NULL:
        line.first = waiter.next
    else:
        before.next = waiter.next
    if line.last == waiter:
        line.last = before
