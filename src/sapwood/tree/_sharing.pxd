"""Who may read or change what several threads share.

What every row passes by is here, to be compiled into its callers; if anybody else is there, the
rest is done in `sapwood/tree/_sharing.pyx`.
"""

from cpython.pythread cimport PyThread_type_lock

cdef extern from "<stdatomic.h>" nogil:
    ctypedef int atomic_int
    ctypedef enum memory_order:
        memory_order_relaxed
        memory_order_release
    int atomic_load(atomic_int*)
    int atomic_load_explicit(atomic_int*, memory_order)
    void atomic_store(atomic_int*, int)
    void atomic_store_explicit(atomic_int*, int, memory_order)

cdef extern from "pythread.h" nogil:
    unsigned long this_thread "PyThread_get_thread_ident" ()


cdef struct Reading:
    # A thread that reads, and how many of its reads are nested.
    unsigned long thread
    int depth
    Reading* next


cdef struct Waiter:
    # A thread that sleeps until somebody has seen to it; on its own stack.
    PyThread_type_lock alarm
    unsigned long thread
    int stage                # OUTSIDE, IN_LINE, IN_HAND or DONE
    Reading* reading         # of who wants to read; NULL for who only asks for a prediction:
    const double* values     # of a row
    Py_ssize_t width
    double prediction
    bint is_answered         # whether there is a prediction; if not, ask again
    Waiter* next


cdef struct Line:
    Waiter* first
    Waiter* last


cdef class Sharing:
    cdef atomic_int writing        # nobody may read
    cdef atomic_int glancing       # somebody reads who is not among `readings`
    cdef atomic_int waiting        # how many are in `askers` and `readers`
    cdef unsigned long learner     # the thread whose turn it is; 0 if there is none
    cdef bint is_torn              # half-changed by a thread that this process has not
    cdef int forks                 # that had led to this process, when it was last looked at
    cdef PyThread_type_lock guard  # of what follows
    cdef Reading* readings
    cdef Line askers               # who wait for a prediction
    cdef Line readers              # who wait until they may read
    cdef Waiter* resuming          # the learner, while it waits for readings to end
    cdef Line learners             # who wait for their turn; the GIL guards it, and `learner`

    cdef bint is_turn_of_this_thread(self) noexcept
    cdef void pass_turn(self) noexcept
    cdef void pause(self) noexcept nogil
    cdef int resume(self) except -1 nogil
    cdef bint look_for_signals(self) except -1 nogil
    cdef Waiter* who_ask(self) noexcept nogil
    cdef void answer(self, Waiter* waiter) noexcept nogil
    cdef int let_readers_in(self) except -1 nogil
    cdef bint ask(self, const double* values, Py_ssize_t width, double* prediction) except -1
    cdef int begin_reading(self) except -1
    cdef void end_reading(self) noexcept

    cdef int wait_for_turn(self) except -1
    cdef int wait_to_write(self) except -1
    cdef int wait_for_readings(self) except -1 nogil
    cdef int wait_to_read(self, Reading* reading) except -1
    cdef int sleep(self, Waiter* waiter) except -1 nogil
    cdef void lock(self) noexcept nogil
    cdef void unlock(self) noexcept nogil
    cdef Reading* reading_of(self, unsigned long thread) noexcept nogil
    cdef bint may_read(self, unsigned long thread) noexcept nogil
    cdef void add_reading(self, Reading* reading) noexcept nogil
    cdef void join_line(self, Line* line, Waiter* waiter) noexcept nogil
    cdef void leave_line(self, Line* line, Waiter* waiter) noexcept nogil
    cdef void forget_other_threads(self) noexcept nogil
    cdef int refuse_if_torn(self) except -1
    cdef int refuse_at_exit(self) except -1


cdef inline int take_turn(Sharing sharing) except -1:
    """Wait until it is this thread's turn to learn."""
    if sharing.learner == 0 and sharing.learners.first == NULL and sharing.readings == NULL:
        sharing.learner = this_thread()
        return 0
    return sharing.wait_for_turn()


cdef inline void give_turn(Sharing sharing) noexcept:
    """Let it be the turn of who waits longest, if anybody does."""
    sharing.learner = 0
    if sharing.learners.first != NULL:
        sharing.pass_turn()


cdef inline int start_writing(Sharing sharing) except -1:
    """Wait until nobody reads, and let nobody read from now on; only in a turn."""
    if sharing.readings == NULL and not atomic_load_explicit(
        &sharing.writing, memory_order_relaxed
    ):
        # Who glances has the GIL, and so has this: nobody does.
        atomic_store_explicit(&sharing.writing, 1, memory_order_relaxed)
        return 0
    return sharing.wait_to_write()


cdef inline void stop_writing(Sharing sharing) noexcept:
    """Let all in who wait; they may read until somebody writes again."""
    if atomic_load_explicit(&sharing.waiting, memory_order_relaxed):
        sharing.pause()
    else:
        # Who comes to wait has the GIL, and so has this.
        atomic_store_explicit(&sharing.writing, 0, memory_order_release)


cdef inline bint begin_glance(Sharing sharing) noexcept:
    """Whether one may read until `end_glance`, holding the GIL all the time."""
    if sharing.learner == 0:  # which changes only with the GIL
        return True
    atomic_store(&sharing.glancing, 1)
    if atomic_load(&sharing.writing):
        end_glance(sharing)
        return False
    return True


cdef inline void end_glance(Sharing sharing) noexcept:
    atomic_store_explicit(&sharing.glancing, 0, memory_order_release)
