"""A row of several targets is predicted: _prediction.pxd, for a variable number of them."""

from sapwood.tree._prediction cimport mix_experts


cdef void predict_several(
    TreeTables tables, Py_ssize_t leaf, const double* row, double* work,
    TargetPrediction* predictions,
) noexcept nogil:
    """Predict a row whose leaf is known."""
    cdef Py_ssize_t targets = tables.targets, target
    predict_experts(tables, targets, leaf, row, work, predictions, False)
    for target in range(targets):
        mix_experts(tables, targets, leaf, target, predictions + target)
        correct(tables, targets, target, predictions + target)
