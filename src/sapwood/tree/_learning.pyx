"""A row is learned, whose leaf is known: of one target here, of several in _targets.pyx."""

from sapwood.tree._blocks cimport (
    move_block, plain_step, predict_and_direct, shrink_block,
)
from sapwood.tree._targets cimport learn_several
from sapwood.tree._update cimport learn_targets


cdef void learn_row(
    TreeTables tables, Py_ssize_t leaf, const double* row, const double* raw, const double* y,
    double w, uint64_t key, bint at_once, TargetPrediction* predictions,
) noexcept nogil:
    """Predict and learn a row whose leaf is known; at once if it is predicted only now.

    Parameters
    ----------
    row, raw
        The row as `with_levels` has returned it, and as it came.
    y
        Of each target, NaN where one of several is missing; but not all of them.
    key
        By which the note about the row is found, if there may be one.
    predictions
        As `predictions_in` returns them for the room to work of the tables. They are set.
    """
    if tables.targets == 1:
        learn_targets(tables, 1, leaf, row, raw, y, w, key, at_once, predictions, NULL)
    else:
        learn_several(tables, leaf, row, raw, y, w, key, at_once, predictions)


# -- for tests --------------------------------------------------------------------------------


def step_of_models(
    double[:, ::1] covariance not None, double[:, ::1] block not None, const double[::1] z not None,
    const double[::1] steps not None, double[::1] v not None, double[::1] predicted not None,
    bint plain,
):
    """Predict by four models, move them and shrink their covariance, in place; return z'Pz.

    With the loops for any processor (plain), or with those for the processor at hand.
    """
    cdef Py_ssize_t terms = z.shape[0]
    cdef double unusual
    if plain:
        return plain_step(
            &covariance[0, 0], &block[0, 0], &z[0], &v[0], terms, &steps[0], &predicted[0]
        )
    unusual = predict_and_direct(
        &block[0, 0], &covariance[0, 0], &z[0], terms, &predicted[0], &v[0]
    )
    move_block(&block[0, 0], &v[0], terms, steps[0], steps[1], steps[2], steps[3])
    shrink_block(&covariance[0, 0], &v[0], terms, steps[0])
    return unusual
