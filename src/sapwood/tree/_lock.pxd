"""The lock of a model that several threads use.

The fast paths are here, and are compiled into their callers. `sapwood/tree/_lock.pyx` handles
contention, and describes the lock.
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
    # A thread that reads, and the number of its nested reads.
    unsigned long thread
    int depth
    Reading* next


cdef struct Waiter:
    # A waiting thread; on its own stack.
    PyThread_type_lock wakeup
    unsigned long thread
    int stage                # OUTSIDE, QUEUED, IN_SERVICE or DONE
    Reading* reading         # of a reader; NULL for a request for a prediction:
    const double* values     # of a row
    Py_ssize_t width
    double prediction
    bint is_answered         # whether there is a prediction; if not, repeat the request
    Waiter* next


cdef struct Queue:
    Waiter* first
    Waiter* last


cdef class ModelLock:
    cdef atomic_int writing        # a learner writes: no thread may read
    cdef atomic_int quick_reading       # a quick read, which is not in `readings`
    cdef atomic_int waiting        # threads in `requests` and `readers`
    cdef unsigned long learner     # the thread that holds the lock; 0 if none does
    cdef bint is_half_changed              # by a thread that a fork has not copied
    cdef int forks                 # of this process, when they were last counted
    cdef PyThread_type_lock guard  # of what follows
    cdef Reading* readings
    cdef Queue requests               # threads that wait for a prediction
    cdef Queue readers              # threads that wait to read
    cdef Waiter* resuming          # the learner, while it waits for readings to end
    cdef Queue learners             # threads that wait to learn; guarded by the GIL, as `learner`

    cdef bint is_held_by_this_thread(self) noexcept
    cdef void wake_next_learner(self) noexcept
    cdef void pause(self) noexcept nogil
    cdef int resume(self) except -1 nogil
    cdef bint look_for_signals(self) except -1 nogil
    cdef Waiter* take_requests(self) noexcept nogil
    cdef void answer(self, Waiter* waiter) noexcept nogil
    cdef int let_readers_in(self) except -1 nogil
    cdef bint request_prediction(
        self, const double* values, Py_ssize_t width, double* prediction
    ) except -1
    cdef int begin_reading(self) except -1
    cdef void end_reading(self) noexcept

    cdef int wait_to_learn(self) except -1
    cdef int wait_to_write(self) except -1
    cdef int wait_for_readings(self) except -1 nogil
    cdef int wait_to_read(self, Reading* reading) except -1
    cdef int sleep(self, Waiter* waiter) except -1 nogil
    cdef void lock(self) noexcept nogil
    cdef void unlock(self) noexcept nogil
    cdef Reading* reading_of(self, unsigned long thread) noexcept nogil
    cdef bint may_read(self, unsigned long thread) noexcept nogil
    cdef void add_reading(self, Reading* reading) noexcept nogil
    cdef void enqueue_reader(self, Queue* queue, Waiter* waiter) noexcept nogil
    cdef void dequeue_reader(self, Queue* queue, Waiter* waiter) noexcept nogil
    cdef void forget_other_threads(self) noexcept nogil
    cdef int refuse_if_half_changed(self) except -1
    cdef int refuse_at_exit(self) except -1


cdef inline int begin_learning(ModelLock access) except -1:
    """Acquire the lock for learning; wait if another thread holds it."""
    if access.learner == 0 and access.learners.first == NULL and access.readings == NULL:
        access.learner = this_thread()
        return 0
    return access.wait_to_learn()


cdef inline void end_learning(ModelLock access) noexcept:
    """Release the lock to the thread that waits longest, if there is one."""
    access.learner = 0
    if access.learners.first != NULL:
        access.wake_next_learner()


cdef inline int start_writing(ModelLock access) except -1:
    """Wait until no thread reads, and block readers; the caller holds the lock."""
    if access.readings == NULL and not atomic_load_explicit(
        &access.writing, memory_order_relaxed
    ):
        # A quick read holds the GIL, as this thread does: there is none.
        atomic_store_explicit(&access.writing, 1, memory_order_relaxed)
        return 0
    return access.wait_to_write()


cdef inline void stop_writing(ModelLock access) noexcept:
    """Admit all waiting readers, until a learner writes again."""
    if atomic_load_explicit(&access.waiting, memory_order_relaxed):
        access.pause()
    else:
        # A thread that begins to wait holds the GIL, as this thread does.
        atomic_store_explicit(&access.writing, 0, memory_order_release)


cdef inline bint begin_quick_read(ModelLock access) noexcept:
    """Return whether a quick read is possible until `end_quick_read`, with the GIL held."""
    if access.learner == 0:  # which changes only with the GIL
        return True
    atomic_store(&access.quick_reading, 1)
    if atomic_load(&access.writing):
        end_quick_read(access)
        return False
    return True


cdef inline void end_quick_read(ModelLock access) noexcept:
    atomic_store_explicit(&access.quick_reading, 0, memory_order_release)
