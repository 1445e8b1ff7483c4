"""The trees of an ensemble: what is known of them, what they predict together, and its score."""

from libc.stdint cimport int64_t, uint64_t

from sapwood.corrector._stacking cimport StackRules
from sapwood.corrector._layer cimport LayerState, CorrectedPrediction
from sapwood.corrector._pending cimport PendingPredictions
from sapwood.drift._detector cimport Detector

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


cdef struct TreeError:
    # Of a tree and a target; for one target the fields of the same names in TreeRecord.
    double square
    double weight


cdef struct TargetRecord:
    # What an ensemble knows of a target.
    double rows        # in which it is present
    double begun       # how many of them there were when all of it last started over
    double low         # the range of y
    double high
    double usual       # exponentially weighted mean of the squared errors
    double weight      # of several targets: the weight of the rows since then,
    double first       # the first y of them,
    double mean        # and mean and M2 of y from there
    double m2


cdef struct MemberPredictions:
    # Predictions of an ensemble for a row and a target.
    double trees[MOST_TREES]
    double rows        # that it had learned by then
    double base        # the mean of the members
    double combined    # their weighted prediction
    CorrectedPrediction corrected      # what the error-correction layer makes of it
    double issued      # what is returned of that


cdef struct RowTally:
    # Scores of a row: sums over its targets, in units of their variances.
    Py_ssize_t judged  # targets whose variance is known
    double error       # of the predictions, in units of deviations
    double lead        # what the squared error of the challenger is less than the tree's
    double gain        # the same of the last tree, against what was predicted
    bint has_lead
    bint has_gain


cdef class TargetTables:
    cdef readonly Py_ssize_t targets
    cdef readonly object record_table
    cdef readonly object stack_table
    cdef readonly object layer_table
    cdef readonly object error_table   # of each tree and target; empty for one target
    cdef TargetRecord* records
    cdef double* stacks
    cdef LayerState* layers
    cdef TreeError* errors
    cdef char* has_seen_target                      # whether a tree has learned a y of a target
    cdef MemberPredictions* room                    # for predictions of a row that is learned
    cdef object seen_table
    cdef object room_table


cdef class Members:
    cdef readonly list trees           # kernels: the members, and then the reserve
    cdef readonly Py_ssize_t members
    cdef Py_ssize_t predicting              # trees that predict
    cdef readonly double rows
    cdef readonly double weight
    cdef readonly Py_ssize_t targets
    cdef readonly TargetTables tables  # what is known of each of them
    cdef readonly double looked_at     # rows when it was last looked who should be replaced
    cdef readonly double lead          # of the challenger: weighted sum of what its squared errors
    cdef readonly double lead_square   # are less than the tree's, and of the squares of that
    cdef readonly double gain          # the same of the last tree, against what was predicted
    cdef readonly double gain_square
    cdef readonly double begun         # rows when all of it last started over
    cdef readonly double changed       # the row with which errors last became larger,
    cdef readonly double calm          # the mean of the errors before, and their sum since then
    cdef readonly double stir
    cdef readonly bint tracking
    cdef readonly object tree_table
    cdef readonly object detector_table
    cdef readonly PendingPredictions pending          # the pending predictions
    cdef readonly double lifetime      # rows after which the reserve starts over
    cdef readonly list events          # the latest trees that took the place of others
    cdef EnsembleRules rules
    cdef TreeRecord* records
    cdef TargetRecord* of_targets
    cdef Detector* detector            # of larger errors
    cdef bint all_seen                # whether each tree has learned a y of each target
    cdef object new_pending

    cdef StackRules stack_rules(self) noexcept nogil
    cdef void use_targets(self, TargetTables tables) noexcept
    cdef void mark_seen(self, Py_ssize_t tree, const double* y) noexcept nogil
    cdef void check_all_seen(self) noexcept nogil
    cdef void combine(self, Py_ssize_t target, MemberPredictions* predicted) noexcept nogil
    cdef void fill_unseen(self, Py_ssize_t target, MemberPredictions* predicted) noexcept nogil
    cdef double challenger_share(self, Py_ssize_t target) noexcept nogil
    cdef void store_prediction(
        self, const MemberPredictions* predicted, double* stored
    ) noexcept nogil
    cdef void store_target(
        self, Py_ssize_t target, const MemberPredictions* predicted, double* stored
    ) noexcept nogil
    cdef const double* take_pending(
        self, const MemberPredictions* now, const double* row, uint64_t key, bint at_once
    ) noexcept nogil
    cdef bint set_issued(
        self, Py_ssize_t target, const double* stored, bint at_once, const MemberPredictions* now,
        MemberPredictions* then,
    ) noexcept nogil
    cdef void score_row(
        self, const double* row, const double* y, double w, uint64_t key, bint at_once
    ) noexcept nogil
    cdef void score_target(
        self, Py_ssize_t target, double y, double w, const double* stored, bint at_once,
        RowTally* tally,
    ) noexcept nogil
    cdef void score_trees(
        self, Py_ssize_t target, const MemberPredictions* predicted, double y, double w,
        RowTally* tally
    ) noexcept nogil
    cdef void watch(self, const RowTally* tally, double w) noexcept nogil
    cdef void shrink_pending(self) noexcept
    cdef void drop_pending(self) noexcept
    cdef void move_pending(self, Py_ssize_t place) noexcept nogil
