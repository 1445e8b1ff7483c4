"""A row is predicted, whose leaf is known."""

from sapwood.tree._prediction cimport correct, mix_weighed, predict_experts, weigh_experts
from sapwood.tree._records cimport EXPERTS
from sapwood.tree._tables cimport TreeTables
from sapwood.tree._target_records cimport TargetPrediction


cdef void predict_several(
    TreeTables tables, Py_ssize_t leaf, const double* row, double* work,
    TargetPrediction* predictions,
) noexcept nogil


cdef inline void predict_row(
    TreeTables tables, Py_ssize_t leaf, const double* row, double* work,
    TargetPrediction* predictions,
) noexcept nogil:
    """Predict a row whose leaf is known; predictions are where `predictions_in` says."""
    cdef double powers[EXPERTS]
    if tables.targets == 1:
        weigh_experts(tables, 1, leaf, 0, powers)
        predict_experts(tables, 1, leaf, row, work, predictions, False)
        mix_weighed(tables, 1, leaf, 0, powers, predictions)
        correct(tables, 1, 0, predictions)
    else:
        predict_several(tables, leaf, row, work, predictions)
