"""Trees that learn the same rows, and what they say together."""

from libc.stdint cimport int64_t, uint64_t

from sapwood.blend._blend cimport BlendRules
from sapwood.blend._layer cimport LayerState, Saying
from sapwood.blend._notes cimport Notes
from sapwood.drift._detector cimport Detector
from sapwood.tree._kernel cimport TreeKernel
from sapwood.tree._sharing cimport Sharing

cdef enum:
    MOST_TREES = 33  # that predict or wait to


cdef struct TreeRecord:
    int64_t number
    int64_t role
    double rate
    double born
    double square
    double weight
    int64_t max_bytes
    int64_t leaves


cdef struct EnsembleRules:
    int64_t combine
    int64_t interval
    uint64_t seed
    double error_fade
    double fade
    double precision
    double centre
    double most
    double duel_age


cdef struct Said:
    # What an ensemble says of a row.
    double trees[MOST_TREES]
    double base        # the mean of the members
    double together    # what they say by their weights
    Saying saying      # what the last layer makes of it


cdef class EnsembleKernel:
    cdef readonly list trees           # kernels: the members, and then the reserve
    cdef readonly Py_ssize_t members
    cdef Py_ssize_t asked              # trees that have a say in predictions
    cdef readonly double rows
    cdef readonly double weight
    cdef readonly double low           # the range of y
    cdef readonly double high
    cdef readonly double usual         # faded mean of the squared errors
    cdef readonly double looked_at     # rows when it was last looked who should be replaced
    cdef readonly double lead          # of the challenger: faded sum of what its squared errors
    cdef readonly double lead_square   # are less than the tree's, and of the squares of that
    cdef readonly double gain          # the same of the last tree, against what was predicted
    cdef readonly double gain_square
    cdef readonly double begun         # rows when all of it last began anew
    cdef readonly double changed       # the row with which errors last became larger,
    cdef readonly double calm          # the mean of the errors before, and their sum since then
    cdef readonly double stir
    cdef readonly bint tracking
    cdef readonly object tree_table
    cdef readonly object blend_table
    cdef readonly object layer_table
    cdef readonly object detector_table
    cdef readonly Notes notes          # what was said of rows whose labels are to come
    cdef readonly object work          # rows that not all trees have learned yet, or None
    cdef readonly double lifetime      # rows after which the reserve starts anew
    cdef readonly list events          # the latest trees that took the place of others
    cdef readonly object renew         # answers when it is time to look
    cdef Py_ssize_t threads
    cdef object thresholds
    cdef EnsembleRules rules
    cdef TreeRecord* records
    cdef double* blend
    cdef LayerState* layer
    cdef Detector* detector            # of larger errors
    cdef Sharing sharing

    cdef BlendRules blend_rules(self) noexcept nogil
    cdef int learn_row(self, const double* row, double y, double w) except -1
    cdef double copies(
        self, const TreeRecord* record, const uint64_t* thresholds, Py_ssize_t later
    ) noexcept nogil
    cdef double challenger_share(self) noexcept nogil
    cdef Py_ssize_t rows_until_look(self) noexcept nogil
    cdef object prepared(self, X, y, w, at_once)
    cdef int let_trees_learn(self) except -1
    cdef void tidy_notes(self) noexcept
    cdef void forget_notes(self) noexcept
    cdef void move_notes(self, Py_ssize_t place) noexcept nogil
    cdef int begin_reading(self) except -1
    cdef void say_together(self, Said* said) noexcept nogil
    cdef void take_label(
        self, Said* said, double y, double w, uint64_t key, bint at_once
    ) noexcept nogil
    cdef TreeKernel reference(self)
    cdef void set_keys(
        self, TreeKernel tree, const double[:, ::1] X, const char* fresh, uint64_t* seen,
        uint64_t* keys,
    ) noexcept nogil
    cdef void take_down(self, const Said* said, double* note) noexcept nogil
    cdef void watch(self, const Said* said, double y, double w) noexcept nogil
    cdef bint recall(
        self, const Said* now, uint64_t key, bint at_once, Said* then
    ) noexcept nogil
    cdef int finish_work(self, double[::1] predictions) except -1
    cdef int settle(self) except -1
    cdef bint is_look_due(self) noexcept nogil
    cdef int look_if_due(self) except -1
