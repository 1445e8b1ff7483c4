"""The records of a tree of several targets, and where its pages hold what.

A tree of one target has none of these: it keeps all in `LeafRecord`, and its pages are those that
`_records.pxd` and `_watch.pxd` describe. A tree of several has, for each target,

- a TargetStream: what is known of its y over all rows;
- a TargetLeaf a leaf: where its y are measured from, its mean, moments and experts' errors;
- a TargetNode a node;
- a TargetCost a feature.

Its *model page* is that of one target, followed by the coefficients of each further one: they share
centres, scales and covariance. Where there are categories, which enter the models by the mean of
each target's own y, nothing can be shared: there is a whole page for each target.

Its *watch page* holds the grids, then the slots, then the weights that are missing. A slot is the
weight of its rows, and for each target the weighted sums of y and of the residual. Beside it, and
seldom touched, is the weight of those of its rows in which a target is missing.
"""

from sapwood.corrector._layer cimport CorrectedPrediction
from sapwood.tree._cuts cimport TargetSums
from sapwood.tree._records cimport EXPERTS, RATES, TargetPart, model_size, terms_of
from sapwood.tree._watch cimport RAW

cdef struct TargetStream:
    # What is known of a target over all rows.
    double rows       # in which it is present
    double weight     # of them
    double first      # of its y; and their range
    double low
    double high
    double usual      # exponentially weighted mean of the squared errors
    double mean       # of its y, from the first
    double m2


cdef struct TargetLeaf:
    # Of the rows of a leaf in which the target is present.
    double rows
    double weight
    TargetPart part


cdef struct TargetNode:
    # As the fields of the same names in NodeRecord; the gain in units of the target's variance.
    double weight
    double mean
    double deviation
    double gain


cdef struct TargetTrial:
    # As the fields of the same names in Trial, of the rows in which the target is present.
    double weight[2]
    double mean[2]
    double m2[2]


cdef struct TargetView:
    # The memory of `TargetRecords` that kernels use.
    TargetStream* streams
    TargetLeaf* leaves
    TargetNode* nodes
    TargetTrial* trials


cdef class TargetRecords:
    cdef readonly object streams
    cdef readonly object leaves
    cdef readonly object nodes
    cdef readonly object trials
    cdef TargetView view


cdef struct TargetCost:
    # As the fields of the same names in ColumnFacts; of a feature and a target.
    double cost
    double weight
    double late_cost
    double late_weight


cdef inline Py_ssize_t models_size(
    Py_ssize_t features, Py_ssize_t targets, bint separate
) noexcept nogil:
    """Doubles of a model page, which may be a separate one for each target."""
    if separate:
        return targets * model_size(features)
    return model_size(features) + (targets - 1) * RATES * terms_of(features)


cdef inline double* model_of(
    double* page, Py_ssize_t features, bint separate, Py_ssize_t target
) noexcept nogil:
    """Where the page is that holds centres, scales and covariance for a target."""
    return page + (target * model_size(features) if separate else 0)


cdef inline double* coefficients_of(
    double* page, Py_ssize_t features, bint separate, Py_ssize_t target
) noexcept nogil:
    """Where the coefficients of a target are."""
    if separate or target == 0:
        return model_of(page, features, separate, target)
    return page + model_size(features) + (target - 1) * RATES * terms_of(features)


cdef inline Py_ssize_t slot_doubles(Py_ssize_t targets) noexcept nogil:
    """Doubles of a slot, the weights that are missing aside; also of one target's."""
    return 1 + 2 * targets


cdef inline Py_ssize_t gap_doubles(Py_ssize_t targets) noexcept nogil:
    """Weights that may be missing in a slot."""
    return targets if targets > 1 else 0


cdef inline Py_ssize_t observer_cells(Py_ssize_t targets) noexcept nogil:
    """Columns that an observer averages: y and residual of each target, and whether each of several
    is missing."""
    return 2 * targets + gap_doubles(targets)


cdef inline Py_ssize_t costs_of(Py_ssize_t features, Py_ssize_t targets) noexcept nogil:
    """How many costs of columns there are: of all targets, feature by feature."""
    return features * targets if targets > 1 else 0


cdef struct TargetPrediction:
    # What a tree predicts for a target of a row before it learns its y.
    double experts[EXPERTS]  # what the mean and the linear models predict, from the leaf's origin
    double unusual           # how unusual the row is; known when it is learned
    double tree              # what they predict together
    CorrectedPrediction corrected  # of the error-correction layer, if there is one
    double issued_experts[EXPERTS]  # issued predictions of experts, when it is learned
    double issued            # what is returned of the corrector's prediction


cdef inline Py_ssize_t terms_doubles(Py_ssize_t features) noexcept nogil:
    """Doubles to work on a row for one model: values, terms, direction."""
    return features + 2 * terms_of(features)


cdef inline Py_ssize_t predictions_at(
    Py_ssize_t features, Py_ssize_t targets, bint separate
) noexcept nogil:
    """Where the predictions of several targets start in the room to work on a row."""
    return terms_doubles(features) * (targets if separate else 1)


cdef inline Py_ssize_t row_doubles(
    Py_ssize_t features, Py_ssize_t targets, bint separate
) noexcept nogil:
    """Doubles to predict a row."""
    if targets == 1:
        return terms_doubles(features)
    return predictions_at(features, targets, separate) + (
        targets * <Py_ssize_t>sizeof(TargetPrediction) // <Py_ssize_t>sizeof(double)
    )


cdef inline Py_ssize_t permuted_doubles(
    Py_ssize_t features, Py_ssize_t targets, bint separate
) noexcept nogil:
    """Doubles to predict a row with other values: the values, the encoded values, and a buffer,
    which needs no direction for one target."""
    if targets == 1:
        return 4 * features + terms_of(features)
    return 3 * features + row_doubles(features, targets, separate)


cdef inline Py_ssize_t kept_doubles(Py_ssize_t targets) noexcept nogil:
    """Doubles of a row that is kept while its grid is laid: its sums, x, and what is missing."""
    return slot_doubles(targets) + 1 + gap_doubles(targets)


cdef inline Py_ssize_t work_doubles(
    Py_ssize_t features, Py_ssize_t targets, bint separate
) noexcept nogil:
    """Doubles to predict and learn a row, to lay a grid, and to look for cuts."""
    cdef Py_ssize_t doubles = row_doubles(features, targets, separate)
    if targets > 1:
        doubles += slot_doubles(targets) + RAW * kept_doubles(targets) + (
            targets * <Py_ssize_t>sizeof(TargetSums) // <Py_ssize_t>sizeof(double)
        )
    return doubles


cdef inline TargetSums* sums_in(
    double* work, Py_ssize_t features, Py_ssize_t targets, bint separate
) noexcept nogil:
    """Where the sums of a search are in the room to work of several targets."""
    return <TargetSums*>(
        work
        + row_doubles(features, targets, separate)
        + slot_doubles(targets)
        + RAW * kept_doubles(targets)
    )
