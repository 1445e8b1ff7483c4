"""The memory of what was said about rows whose labels are yet to come.

Notes stand in a ring in the order in which they were left, and are found again by the row itself:
by a hash of its values, those that are missing left out, so that features that come later change
nothing. A full ring grows, up to a bound; then the oldest note gives way.

The first number of a note is how many labels were known when it was left. Of several notes about
the same row, a label takes the oldest of those since which no more labels came than lately came
between a prediction and its own; for predictions that are asked for and never labelled stay
behind, and are not to be taken for those that are. Older ones about that row are then dropped.

Behind a transformer that learns, the row that is learned is not the one that was predicted. So
where predictions and labels take turns, one by one, and not one of the last twenty labels found a
note about its row, labels are taken to come in the order of predictions: each takes the oldest
note, as those twenty were given theirs to no use. Questions that are never answered are mistaken
for such predictions only if a row that was never asked for is learned after each of them. Of
predictions before the first label nothing is noted but their number, and as many labels that find
nothing are theirs.
"""

from libc.stdint cimport int32_t, int64_t, uint64_t

cimport cython

cdef enum:
    LEAST_ROOM = 16   # for notes
    MOST_MISSES = 20  # labels in turn after which rows are taken not to be recognised


@cython.final
cdef class Notes:
    cdef readonly Py_ssize_t width   # doubles of a note
    cdef readonly Py_ssize_t place_bytes
    cdef readonly Py_ssize_t most    # notes; a power of 2
    cdef readonly Py_ssize_t room    # for notes at this time; a power of 2
    cdef readonly Py_ssize_t count   # notes that wait
    cdef readonly double reach       # how many labels lately came before that of a note
    cdef readonly Py_ssize_t misses  # labels, since one was, that came in turn and were not found
    cdef readonly Py_ssize_t left    # notes since the last label
    cdef readonly Py_ssize_t blanks  # predictions before the first label, whose own did not come
    cdef int64_t first               # the number of the oldest note that waits, and of the next
    cdef int64_t next
    cdef void* block                 # all that follows:
    cdef double* contents
    cdef uint64_t* keys
    cdef int32_t* links              # the next note of the same bucket; NONE, or FREE
    cdef int32_t* heads              # the oldest note of each bucket, and the newest
    cdef int32_t* tails

    cdef int reserve(self, Py_ssize_t more) except -1 nogil
    cdef double* leave(self, uint64_t key) noexcept nogil
    cdef const double* take(self, uint64_t key, double labels) noexcept nogil
    cdef Py_ssize_t take_in_turn(self) noexcept nogil
    cdef void tidy(self) noexcept nogil
    cdef bint resize(self, Py_ssize_t room) noexcept nogil
    cdef inline Py_ssize_t bucket(self, uint64_t key) noexcept nogil
    cdef inline void append(self, Py_ssize_t place) noexcept nogil
    cdef inline void remove(self, int32_t* link) noexcept nogil
    cdef void forget_first(self) noexcept nogil
    cdef inline void close_up(self) noexcept nogil


cdef inline void count_at_once(Notes notes) noexcept nogil:
    """Do to a memory without notes what leaving one and taking it does."""
    notes.reach = 0.99 * notes.reach if notes.reach > 1.0 else 0.0
    notes.misses = notes.left = 0


cdef inline void count_blanks(Notes notes, Py_ssize_t predictions) noexcept nogil:
    """Count predictions of which nothing is noted, as there was nothing to say."""
    notes.blanks = min(notes.blanks + predictions, notes.most)


cdef inline void take_blank(Notes notes) noexcept nogil:
    """Let a label that finds no note be that of such a prediction, if one waits."""
    notes.blanks -= 1 if notes.blanks > 0 else 0


cdef inline uint64_t value_key(double value, Py_ssize_t feature) noexcept nogil:
    """A hash of a value and of where it stands; 0 if it is missing. Their sum is a row's."""
    cdef uint64_t bits
    if value != value:
        return 0
    value += 0.0  # 0 for -0
    bits = (<uint64_t*>&value)[0]
    # Whole numbers have nothing in their lower bits; each feature has an odd factor of its own.
    return (bits ^ (bits >> 32)) * (
        (<uint64_t>(feature + 1) * <uint64_t>0x9E3779B97F4A7C15 ^ <uint64_t>0xD6E8FEB86659FD93) | 1
    )
