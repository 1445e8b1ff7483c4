"""Prediction intervals of one target, row by row, by the rules of `_rules.pxd`."""

import numpy as np

from libc.math cimport INFINITY, fabs
from libc.stdint cimport int32_t, uint64_t
from libc.string cimport memcpy

from sapwood.corrector._pending cimport PendingPredictions
from sapwood.intervals._rules cimport (
    BOUND, GROUPS, INHERITED, LEVELS, check, check_groups, issue, meet, nearest, score, set_moves,
)

__all__ = ["OneRow"]


cdef class OneRow:
    """Bounds of one target, row by row, around arrays that are checked once.

    Parameters
    ----------
    table, overall, levels, parents : arrays
        As for `sapwood.intervals._bounds.predict_intervals`, of one target. They are
        used as long as this object exists.
    pending : PendingPredictions
        The predictions that wait for their labels: the labels that were known, and a record.
    labels : array of float, shape (1,)
        How many labels are known.
    factors : array of float, shape (64, levels)
        Of groups.
    """

    cdef double[:, ::1] table
    cdef double[:, ::1] overall
    cdef const double[::1] levels
    cdef const int32_t[::1] parents
    cdef double[:, ::1] factors
    cdef PendingPredictions pending
    cdef double[::1] labels
    cdef Py_ssize_t count, width
    cdef double moves[2 * LEVELS]
    cdef double now[BOUND + 2 * LEVELS]
    cdef readonly Py_ssize_t regions

    def __init__(
        self,
        double[:, ::1] table not None,
        double[:, ::1] overall not None,
        const double[::1] levels not None,
        const int32_t[::1] parents not None,
        PendingPredictions pending not None,
        double[::1] labels not None,
        double[:, ::1] factors not None,
    ):
        cdef const int32_t[::1] none = parents[:0]
        check(table, overall, levels, parents, none, np.empty((0, 1)))
        check_groups(factors, none, 1, levels.shape[0], 0)
        self.count, self.width = levels.shape[0], table.shape[1]
        if labels.shape[0] != 1 or overall.shape[0] != 1:
            raise ValueError("the arrays do not fit together")
        if pending.width != 1 + BOUND + 2 * self.count:
            raise ValueError("the arrays do not fit together")
        self.table, self.overall, self.levels, self.parents = table, overall, levels, parents
        self.factors, self.pending, self.labels = factors, pending, labels
        self.regions = parents.shape[0]
        set_moves(&levels[0], self.count, self.moves)

    def issue(self, Py_ssize_t region, double prediction, uint64_t key, Py_ssize_t group=0):
        """Predict the interval of a row, and keep it under a key until the label arrives."""
        cdef double* room
        self.look(region, prediction, group)
        if fabs(prediction) < INFINITY:
            self.pending.reserve(1)
            room = self.pending.put(key)
            room[0] = self.labels[0]
            memcpy(room + 1, self.now, (BOUND + 2 * self.count) * sizeof(double))

    cdef int look(self, Py_ssize_t region, double prediction, Py_ssize_t group) except -1:
        cdef const double* own
        if not 0 <= group < GROUPS:
            raise ValueError("there is no such group")
        if not 0 <= region < self.regions:
            raise ValueError("there is no such region")
        own = nearest(&self.table[0, 0], self.width, &self.parents[0], region)
        issue(
            own, 1.0 if own == &self.table[region, 0] else INHERITED, &self.overall[0, 0],
            &self.factors[group, 0], self.count, prediction, self.now,
        )
        return 0

    @property
    def known(self):
        """How many labels are known."""
        return self.labels[0]

    def score(
        self, Py_ssize_t region, double prediction, double y, double w, uint64_t key,
        Py_ssize_t group=0, Py_ssize_t known_groups=0,
    ):
        """Learn the label of a row by its issued interval, or by the one predicted now.

        Parameters
        ----------
        region, prediction : int, float
            What they are just before the row is learned.
        y, w : float
            Its label, not beyond `LARGEST`, and its weight.
        key : int
            Under which the row was predicted, if it was.
        group : int
            Of the row, 0 if it has none.
        known_groups : int
            How many groups there are, with that of the row.
        """
        cdef const double* found
        cdef double age = 0.0
        self.look(region, prediction, group)
        # Nothing fails from here on.
        found = self.pending.take(key, self.labels[0], NULL) if self.pending.count > 0 else NULL
        self.labels[0] += 1.0
        if found != NULL:
            age = self.labels[0] - 1.0 - found[0]
            memcpy(self.now, found + 1, (BOUND + 2 * self.count) * sizeof(double))
        meet(&self.table[0, 0], self.width, &self.parents[0], region)
        score(
            &self.table[region, 0], &self.overall[0, 0],
            &self.factors[group, 0] if group > 0 else NULL, &self.levels[0], self.moves,
            self.count, self.now, y, w, age, <double>max(known_groups, 1),
        )
