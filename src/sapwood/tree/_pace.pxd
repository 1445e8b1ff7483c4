"""Intervals at which a batch stops between two rows: for signals, and for waiting readers.

It stops every few microseconds, and is quick to see that nothing is to be done. Signals are looked
for after some milliseconds at first, then about every 0.05 s: another thread may be slow to give
the GIL. Those who wait are answered at most every 0.7 ms.
"""

cdef extern from "<time.h>" nogil:
    struct timespec:
        long long tv_sec
        long tv_nsec
    int TIME_UTC
    int timespec_get(timespec*, int)

cdef enum:
    VALUES_BETWEEN_SIGNALS = 200_000  # of features that are read
    VALUES_BETWEEN_STOPS = 1_000


cdef struct Mark:
    # A row of a batch, or -1, and the time when it was learned.
    Py_ssize_t row
    double seconds


cdef struct Pace:
    # When a batch stops between two rows, in rows from its beginning.
    Py_ssize_t next_stop
    Py_ssize_t rows_between_stops
    Py_ssize_t next_look       # for signals
    Mark last_look
    Py_ssize_t next_answer     # of waiting threads, at the earliest
    Mark last_answer


cdef inline Py_ssize_t rows_between_looks(Py_ssize_t features) noexcept nogil:
    """After how many rows signals are looked for, while it is not known how long rows take."""
    return 1 + VALUES_BETWEEN_SIGNALS // (features + 4)


cdef inline Pace start_pace(Py_ssize_t features) noexcept nogil:
    """When a batch is to stop: after its first row, and then every few microseconds."""
    cdef Py_ssize_t step = 1 + VALUES_BETWEEN_STOPS // (features + 4)
    return Pace(0, step, rows_between_looks(features), Mark(-1, 0.0), 0, Mark(-1, 0.0))


cdef inline Py_ssize_t rows_within(
    double seconds, Py_ssize_t row, Mark* last, Py_ssize_t least, double most
) noexcept nogil:
    """How many rows take a time, at the pace of those since the last mark; makes a new mark.

    They are at least so many, which is also for want of a mark, and at most so many times that.
    """
    cdef timespec moment
    cdef double now, rows = least
    timespec_get(&moment, TIME_UTC)
    now = <double>moment.tv_sec + 1e-9 * <double>moment.tv_nsec
    if last.row >= 0 and now > last.seconds:
        rows = seconds * (row - last.row) / (now - last.seconds)
    last.row, last.seconds = row, now
    return <Py_ssize_t>min(max(rows, <double>least), most * least)


cdef inline void plan_look(Pace* pace, Py_ssize_t row, Py_ssize_t features) noexcept nogil:
    """Look for signals after another 0.05 s, or 20 times as many rows as at first."""
    pace.next_look = row + rows_within(
        0.05, row, &pace.last_look, rows_between_looks(features), 20.0
    )


cdef inline void plan_answer(Pace* pace, Py_ssize_t row) noexcept nogil:
    """Answer again after 0.7 ms, or 200 stops: waking somebody takes as long as a dozen rows."""
    pace.next_answer = row + rows_within(
        0.7e-3, row, &pace.last_answer, pace.rows_between_stops, 200.0
    )
