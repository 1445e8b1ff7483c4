# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""What a row cannot do without: the updates of its leaf's models and slots, and nothing else.

The same functions as in the tree, on copies of the tables of one that has grown: the floor that
the machine sets for the tree's own loop.
"""

from libc.string cimport memset

from sapwood.tree._facts cimport ColumnFacts
from sapwood.tree._model cimport (
    SAMPLE,
    YOUNG,
    direct_models,
    move_coefficients,
    shrink_covariance,
    standardise,
)
from sapwood.tree._records cimport (
    RATES,
    NodeRecord,
    centres_at,
    covariance_at,
    scales_at,
    terms_of,
)
from sapwood.tree._topology cimport walk_ahead
from sapwood.tree._watch cimport Grid, Slot, slot_add, slot_of

cdef enum:
    MOST_TERMS = 64

cdef double[RATES] LEAST
LEAST[0], LEAST[1], LEAST[2], LEAST[3] = 0.0, 0.02, 0.1, 0.3


def route(const unsigned char[::1] nodes, const double[:, ::1] X, Py_ssize_t[::1] leaves):
    """Find the leaf of each row."""
    cdef Py_ssize_t row = 0, rows = X.shape[0]
    with nogil:
        while row < rows:
            row += walk_ahead(
                <const NodeRecord*>&nodes[0], &X[row, 0], X.shape[1], rows - row, False,
                &leaves[row],
            )


cdef inline double model_update(
    double* page, const ColumnFacts* facts, const double* row, Py_ssize_t features, double y,
    long learned, double* z,
) noexcept nogil:
    cdef double[MOST_TERMS] v
    cdef double[RATES] errors
    cdef Py_ssize_t terms = terms_of(features), rate
    cdef double* covariance = page + covariance_at(features)
    cdef double unusual
    standardise(page + centres_at(features), page + scales_at(features), facts, row, features, z)
    unusual = direct_models(page, covariance, z, terms, errors, v)
    for rate in range(RATES):
        errors[rate] = y - errors[rate]
    if unusual > 0.0:
        move_coefficients(
            page, v, terms, 1.0 / unusual, unusual / (1.0 + unusual), errors, LEAST, 1.0
        )
        if learned < YOUNG:
            shrink_covariance(covariance, z, v, terms, unusual, 1.0)
        elif learned % SAMPLE == 0:
            shrink_covariance(covariance, z, v, terms, unusual, SAMPLE)
    return errors[0]


cdef inline void slots_update(
    double* page, const double* row, Py_ssize_t features, Py_ssize_t count, double y, double r
) noexcept nogil:
    cdef Grid* grids = <Grid*>page
    cdef Slot* slots = <Slot*>(grids + features)
    cdef Py_ssize_t feature
    for feature in range(features):
        slot_add(slots + slot_of(grids + feature, count, row[feature]), y, r, 1.0)
        slots += count + 1


def update(
    double[:, ::1] models,
    double[:, ::1] watches,
    const unsigned char[::1] facts,
    const double[:, ::1] X,
    const double[::1] y,
    const Py_ssize_t[::1] leaves,
    const double[::1] learned,
    Py_ssize_t slots,
    bint with_slots,
):
    """Update the models, and the slots, of the leaf of each row, which had learned so many."""
    cdef Py_ssize_t row, features = X.shape[1]
    cdef double[MOST_TERMS] z
    cdef double residual
    memset(z, 0, sizeof(z))  # the terms beyond the features stay 0
    with nogil:
        for row in range(X.shape[0]):
            residual = model_update(
                &models[leaves[row], 0], <const ColumnFacts*>&facts[0], &X[row, 0], features,
                y[row], <long>learned[row], z,
            )
            if with_slots:
                slots_update(
                    &watches[leaves[row], 0], &X[row, 0], features, slots, y[row], residual
                )
