"""The memory of predictions that wait for their labels.

Pending predictions are kept in a ring in the order in which they were issued_prediction. A full
ring grows up to a bound; then the oldest prediction is evicted. Each has a key of 64 bits, of one
of two kinds:

- The key of an **id** that the caller hands to the prediction and again to the label (`id_key`; its
  highest bit is set). Its label is found whatever the row has become since.
- The key of a **row**: a hash of its values, missing ones left out, so that features that appear
  later change nothing.

Equal rows have equal keys. Labels are taken to come in the order of the predictions, and some never
to come: a label takes the oldest prediction of its row that is younger than the one that the label
before it took. So a label that never comes does no harm for longer than until a label of another
row. If there is none, labels come in another order. Then a label takes the oldest prediction of its
row that is not much older, in labels, than matched predictions were recently; if all are, the
latest, and the others are dropped. The first number of a pending prediction is the number of labels
that were known when it was issued_prediction.

A value that a model does not know yet is not part of a row's key. When a label makes it known, it
is part of the keys of later predictions, but not of those that wait. Such an *appearance* is
remembered until they are gone, and a prediction is compared with the key that the row would have
had when the prediction was issued_prediction.

Behind a transformer that learns, the row that is learned is not the one that was predicted. So
where predictions and labels alternate, and none of the last twenty labels found its row, those
twenty predictions are dropped, and each further label takes the oldest prediction. Of predictions
before the first label nothing is kept but their number, unless they have ids: labels that find
nothing are theirs, and once there is such a label, all further ones, until their number is used up.
"""

from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memcpy

cimport cython

cdef enum:
    LEAST_ROOM = 16   # for predictions
    MOST_MISSES = 20  # labels in turn after which rows are taken not to be recognised
    MOST_APPEARANCES = 64  # that are remembered; of more, the latest
    MOST_KEYS = 8          # of a row, for predictions of different times


cdef struct Appearance:
    double labels     # that were known when the value was first learned
    double value      # of a category; NaN if any value of the feature counts
    Py_ssize_t feature


cdef struct RowKeys:
    Py_ssize_t count
    uint64_t[MOST_KEYS] keys
    double[MOST_KEYS] until  # labels that were known at the latest prediction with such a key


@cython.final
cdef class PendingPredictions:
    cdef readonly Py_ssize_t width   # doubles of a prediction
    cdef readonly Py_ssize_t place_bytes
    cdef readonly Py_ssize_t most    # predictions; a power of 2
    cdef readonly Py_ssize_t room    # for predictions at this time; a power of 2
    cdef readonly Py_ssize_t count   # pending predictions
    cdef readonly double reach       # how many labels lately came before that of a prediction
    cdef readonly Py_ssize_t misses  # labels, since one was, that came in turn and were not found
    cdef readonly Py_ssize_t left    # predictions since the last label
    cdef readonly Py_ssize_t unrecorded  # predictions before the first label, without their own
    cdef readonly bint owed          # whether labels of these are arriving
    cdef readonly Py_ssize_t appearance_count
    cdef int64_t turn  # the number of the prediction that was last taken in order, or -1
    cdef Appearance[MOST_APPEARANCES] appearances  # in their order
    cdef int64_t first               # the number of the oldest pending prediction, and of the next
    cdef int64_t next
    cdef void* block                 # all that follows:
    cdef double* contents
    cdef uint64_t* keys
    cdef int32_t* links              # the next prediction of the same bucket; NONE, or FREE
    cdef int32_t* heads              # the oldest prediction of each bucket, and the newest
    cdef int32_t* tails

    cdef int reserve(self, Py_ssize_t more) except -1 nogil
    cdef double* put(self, uint64_t key) noexcept nogil
    cdef const double* take(
        self, uint64_t key, double labels, const double* row
    ) noexcept nogil
    cdef void appear(self, Py_ssize_t feature, double value, double labels) noexcept nogil
    cdef void find_keys(
        self, uint64_t key, double labels, const double* row, RowKeys* found
    ) noexcept nogil
    cdef int32_t* find(self, const RowKeys* keys, double labels) noexcept nogil
    cdef void move_turn(self, int64_t number, double age) noexcept nogil
    cdef const double* take_id(self, uint64_t key) noexcept nogil
    cdef void drop_missed(self) noexcept nogil
    cdef Py_ssize_t take_in_turn(self) noexcept nogil
    cdef void shrink(self) noexcept nogil
    cdef bint resize(self, Py_ssize_t room) noexcept nogil
    cdef inline int64_t number_at(self, Py_ssize_t place) noexcept nogil
    cdef inline Py_ssize_t bucket(self, uint64_t key) noexcept nogil
    cdef inline void append(self, Py_ssize_t place) noexcept nogil
    cdef inline void remove(self, int32_t* link) noexcept nogil
    cdef void drop_oldest(self) noexcept nogil
    cdef inline void close_up(self) noexcept nogil


cdef inline void count_immediate(PendingPredictions pending) noexcept nogil:
    """Update an empty store as if a prediction was stored and taken."""
    pending.reach = 0.99 * pending.reach if pending.reach > 1.0 else 0.0
    pending.misses = pending.left = 0


cdef inline void count_unrecorded(
    PendingPredictions pending, Py_ssize_t predictions
) noexcept nogil:
    """Count predictions without a record, as no label was known."""
    pending.unrecorded = min(pending.unrecorded + predictions, pending.most)


cdef inline void take_unrecorded(PendingPredictions pending) noexcept nogil:
    """Assign a label without a pending prediction to an unrecorded one, if there is one."""
    if pending.unrecorded > 0:
        pending.unrecorded -= 1
        pending.owed = pending.owed and pending.unrecorded > 0


cdef inline bint is_id(uint64_t key) noexcept nogil:
    """Whether a key is that of an id, not of a row."""
    return key >> 63


cdef inline uint64_t row_key_of(uint64_t total) noexcept nogil:
    """The key of a row, given the sum of the hashes of its values."""
    return total & <uint64_t>0x7FFFFFFFFFFFFFFF


cdef inline uint64_t id_key_of(uint64_t number) noexcept nogil:
    """The key of an id, given a number that stands for it."""
    number += <uint64_t>0x9E3779B97F4A7C15
    number = (number ^ (number >> 30)) * <uint64_t>0xBF58476D1CE4E5B9
    number = (number ^ (number >> 27)) * <uint64_t>0x94D049BB133111EB
    return (number ^ (number >> 31)) | <uint64_t>0x8000000000000000


cdef inline uint64_t value_key(double value, Py_ssize_t feature) noexcept nogil:
    """A hash of a value and of where it stands; 0 if it is missing. Their sum is a row's."""
    cdef uint64_t bits
    if value != value:
        return 0
    value += 0.0  # 0 for -0
    memcpy(&bits, &value, sizeof(bits))
    # Whole numbers have nothing in their lower bits; each feature has an odd factor of its own.
    return (bits ^ (bits >> 32)) * (
        (<uint64_t>(feature + 1) * <uint64_t>0x9E3779B97F4A7C15 ^ <uint64_t>0xD6E8FEB86659FD93) | 1
    )


cdef uint64_t number_of(object value, uint64_t salt) except? 0
