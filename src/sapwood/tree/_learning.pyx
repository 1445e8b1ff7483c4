"""A row is learned, whose leaf is known: of one target here, of several in _targets.pyx."""

from sapwood.corrector._weighted_sums cimport add_products_of_four, add_products_plainly
from sapwood.tree._blocks cimport (
    move_block, plain_step, predict_and_direct, shrink_block,
)
from sapwood.tree._records cimport EXPERTS
from sapwood.tree._targets cimport learn_several
from sapwood.tree._update cimport learn_targets
from sapwood.tree._vectors cimport (
    find_powers, find_powers_plainly, find_slots_of_numbers, find_slots_plainly, mix_plainly,
    mix_within, standardise_plainly, standardise_values,
)


cdef void learn_row(
    TreeTables tables, Py_ssize_t leaf, const double* row, const double* raw, const double* y,
    double w, uint64_t key, bint at_once, TargetPrediction* predictions,
) noexcept nogil:
    """Predict and learn a row whose leaf is known; at once if it is predicted only now.

    Parameters
    ----------
    row, raw
        The row as `prepared_row` has returned it, and as it came.
    y
        Of each target, NaN where one of several is missing; but not all of them.
    key
        Of the pending prediction of the row, if there may be one.
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


def steps_of_row(
    const double[:, ::1] columns not None, const double[:, ::1] ranges not None,
    double[::1] z not None, double[::1] experts not None, const double[::1] errors not None,
    bint averaging, bint plain,
):
    """Standardise the first row of columns by the next two, and mix experts, in place.

    Return the mean of the experts, and whether a value of the row is beyond its range.
    """
    cdef Py_ssize_t features = columns.shape[1]
    cdef double powers[EXPERTS]
    cdef bint is_beyond
    if ranges.shape[0] != features or ranges.shape[1] != 2:
        raise ValueError("there are two doubles for each feature")
    if plain:
        is_beyond = standardise_plainly(
            &columns[1, 0], &columns[2, 0], &columns[0, 0], &ranges[0, 0], 2, features, 1e4, 100.0,
            &z[0],
        )
        find_powers_plainly(&errors[0], averaging, powers)
        return mix_plainly(&experts[0], powers, averaging, -3.0, 3.0), is_beyond
    is_beyond = standardise_values(
        &columns[1, 0], &columns[2, 0], &columns[0, 0], &ranges[0, 0], 2, features, 1e4, 100.0,
        &z[0],
    )
    find_powers(&errors[0], averaging, powers)
    return mix_within(&experts[0], powers, averaging, -3.0, 3.0), is_beyond


def slots_of_row(
    const double[:, ::1] grids not None, const double[::1] row not None, Py_ssize_t count,
    Py_ssize_t size, bint plain,
):
    """Return at which double the slot of each feature starts, -1 where there is no grid."""
    cdef double start[2048]
    cdef double* found[64]
    cdef Py_ssize_t features = row.shape[0]
    if features > 64 or features * size * (count + 1) > 2048:
        raise ValueError("there is no room for so many slots")
    if grids.shape[0] != features or grids.shape[1] != 4:
        raise ValueError("there are four doubles for each feature")
    if plain:
        find_slots_plainly(&grids[0, 0], &row[0], features, count, size, start, found)
    else:
        find_slots_of_numbers(&grids[0, 0], &row[0], features, count, size, start, found)
    return [
        -1 if found[each] == NULL else found[each] - &start[0] for each in range(features)
    ]


def products_of_four(
    double[::1] products not None, double[::1] joint not None, const double[::1] d not None,
    bint plain,
):
    """Add a row to the exponentially weighted sums of four regressors, in place."""
    if plain:
        add_products_plainly(&products[0], &joint[0], &d[0], 1.7, 0.99, 0.3)
    else:
        add_products_of_four(&products[0], &joint[0], &d[0], 1.7, 0.99, 0.3)
