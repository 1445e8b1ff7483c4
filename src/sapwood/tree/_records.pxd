"""The records of `sapwood/tree/layout.py` for kernels, and the layout of a leaf's pages.

The *model page* of a leaf holds, for the terms of a linear model:

- the coefficients, RATES a term: one for each rate at which a linear model forgets;
- the centre of each feature, and one over its scale (0 while it is not known);
- the covariance of the coefficients, a matrix, or its diagonal where there are many terms.

The first term is the constant, the next are the features; then come terms that are always 0, so
that their number is a multiple of BLOCK.

The *watch page* holds a grid for each feature (see _watch.pxd) and then all slots.
"""

from libc.stdint cimport int32_t, int64_t, uint64_t

from sapwood.corrector._layer cimport CorrectedPrediction

cdef enum:
    LEAF = 0
    NUMBER = 1
    CATEGORY = 2
    LISTED = 3

cdef enum:
    RATES = 4           # linear models in a leaf
    EXPERTS = 5         # the mean, and the linear models
    CATEGORIES = 64     # codes of a categorical feature; the last is that of all others
    BLOCK = 4           # terms that are computed side by side
    SQUARE_TERMS = 40   # up to so many terms the covariance is a matrix


cdef struct NodeRecord:
    int32_t kind
    int32_t feature
    int32_t child
    int32_t parent
    int32_t depth
    int32_t missing_left
    double threshold
    uint64_t subset
    double weight
    double mean
    double deviation
    double gain


cdef struct TargetPart:
    # What a leaf knows of one target.
    double origin
    double mean
    double mean_weight
    double target_mean
    double target_m2
    double residual_mean
    double residual_m2
    double errors[EXPERTS]
    double issued_errors[EXPERTS]


cdef struct LeafRecord:
    int32_t node
    int32_t watching
    double rows
    double weight
    double due
    double review
    double born
    TargetPart part  # of the only target; several have parts elsewhere, see _target_records.pxd


cdef struct PendingPrediction:
    # A prediction of a target that waits for its label.
    CorrectedPrediction corrected
    double origin            # of the leaf at that time
    double experts[EXPERTS]  # predictions of the experts of the leaf, from the origin


cdef struct GrowthRules:
    # As RULES of sapwood/tree/growth.py.
    int64_t split_on
    int64_t bound
    int64_t max_depth
    double confidence
    double grace_period
    double tau
    double min_share
    double same_merit
    double same_share
    double least_evidence
    double negligible
    double optimism
    double apart
    double clearer
    double most_left
    double patience
    double first_review
    double trial_left
    double trial_share
    double trial_evidence
    double trial_clearer
    double trial_pause
    int64_t merit_unit


cdef struct Trial:
    # As TRIAL_RECORD of layout.py.
    int64_t leaf
    int64_t feature
    int64_t place
    int64_t missing_left
    uint64_t subset
    double threshold
    double ends
    double weight[2]
    double mean[2]
    double m2[2]


cdef struct MemoryRules:
    # As RULES of sapwood/tree/memory.py.
    int64_t max_bytes
    int64_t fixed_bytes
    int64_t page_overhead
    int64_t feature_bytes
    int64_t empty_observer
    int64_t element_bytes
    double few_rows
    double share_after_ranking
    double rows_between_rankings
    double least_free
    double free_after_ranking
    double rows_without_observers


cdef inline Py_ssize_t terms_of(Py_ssize_t features) noexcept nogil:
    return (features + BLOCK) & -<Py_ssize_t>BLOCK


cdef inline Py_ssize_t centres_at(Py_ssize_t features) noexcept nogil:
    return RATES * terms_of(features)


cdef inline Py_ssize_t scales_at(Py_ssize_t features) noexcept nogil:
    return centres_at(features) + features


cdef inline Py_ssize_t covariance_at(Py_ssize_t features) noexcept nogil:
    return scales_at(features) + features


cdef inline Py_ssize_t model_size(Py_ssize_t features) noexcept nogil:
    cdef Py_ssize_t terms = terms_of(features)
    return covariance_at(features) + (terms * terms if terms <= SQUARE_TERMS else terms)
