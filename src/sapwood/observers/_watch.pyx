"""Where rows come in: checked at validation, then taken by the store, singly or in a batch."""

import sys

import numpy as np
from cpython.mem cimport PyMem_Calloc, PyMem_Free
from libc.string cimport memcpy

from sapwood import validation
from sapwood._validation cimport FIRST, REACH, SPREAD, admit_rows, within_limits
from sapwood.moments cimport CELL, M2, PIVOT, SHIFT
from sapwood.observers._rows cimport CELLS, WEIGHT

# From so many rows on, and half as many as there are elements, a batch is always taken aside.
cdef Py_ssize_t MANY_ROWS = 256


cdef inline double number(object value, str name) except? -1.0:
    """A number as a double; anything else is rejected."""
    try:
        return value
    except (TypeError, OverflowError):
        validation.refuse_kind(name, value)


cdef class Watch:
    """A store behind validation: `update`, `update_many`, and what validation remembers.

    Parameters
    ----------
    store : Store
        Where the elements are kept.
    """

    def __init__(self, Store store not None):
        if self.reach != NULL:
            raise RuntimeError("an observer is initialised once; make a new one")
        self.reach = <double*>PyMem_Calloc((2 * REACH + 1) * store.targets, sizeof(double))
        if self.reach == NULL:
            raise MemoryError
        self.trial = self.reach + REACH * store.targets
        self.row = self.trial + REACH * store.targets
        self.targets = store.targets
        self._store = store
        self.ready = True

    def __dealloc__(self):
        PyMem_Free(self.reach)

    cdef int enter(self) except -1:
        """Prepare to take rows: no other thread may be at it, or the tables may be changing."""
        if not self.ready:
            raise RuntimeError(
                "the observer is in use by another thread (or was never initialised); "
                "give each thread its own and merge them"
            )
        memcpy(self.trial, self.reach, REACH * self.targets * sizeof(double))
        return 0

    cdef void accept(self, double weight) noexcept:
        """Let validation remember what it was shown on trial."""
        memcpy(self.reach, self.trial, REACH * self.targets * sizeof(double))
        self._weight = weight

    def update(self, x, y, w=1.0):
        """Add one observation.

        Parameters
        ----------
        x : float
            The feature's value: any finite number.
        y : float or sequence of float
            The target, or `targets` many of them.
        w : float
            The weight of the observation, positive and finite.

        Raises
        ------
        ValueError
            If a value is not valid; nothing is changed then.
        OverflowError
            If y is so far from the other values that their squares would exceed the largest
            double; nothing is changed then.
        """
        cdef Py_ssize_t target
        cdef double weight, x_value = number(x, "x"), w_value = number(w, "w")
        self.enter()
        if self.targets == 1:
            self.row[0] = number(y, "y")
        else:
            if len(y) != self.targets:
                raise ValueError(f"y has {len(y)} values: {self.targets} are expected")
            for target in range(self.targets):
                self.row[target] = number(y[target], "y")
        weight = self._weight
        if admit_rows(self.trial, &weight, self.targets, &x_value, self.row, &w_value, 1, 1) < 1:
            targets = np.array([self.row[target] for target in range(self.targets)])
            validation.refuse_row(x_value, targets, w_value)
        self.ready = False
        try:
            while not self._store.take_one(x_value, self.row, w_value):
                self._store.grow(1)
            self.accept(weight)
            self._store.trim(8)
        finally:
            self.ready = True

    def update_many(self, x, y, w=None):
        """Add many observations: equals `update` in a loop; on an error, none is added.

        Parameters
        ----------
        x : array_like of float, shape (n,)
            The feature's values.
        y : array_like of float, shape (n,) or (n, targets)
            The targets.
        w : array_like of float, shape (n,), optional
            The weights; 1 by default.

        Raises
        ------
        ValueError, OverflowError
            As `update`, naming the position of the first bad row; nothing is changed then.
        """
        x, y, w = validation.rows(x, y, w, self.targets)
        cdef const double[::1] xs = x
        cdef const double[:, ::1] ys = y
        cdef const double[:] ws = w
        cdef Py_ssize_t rows = xs.shape[0], row = 0, good
        cdef double weight
        cdef bint finds_room
        cdef Store store
        if rows == 0:
            return
        self.enter()
        weight = self._weight
        self.ready = False
        try:
            with nogil:
                good = admit_rows(
                    self.trial,
                    &weight,
                    self.targets,
                    &xs[0],
                    &ys[0, 0],
                    &ws[0],
                    ws.strides[0] // sizeof(double),
                    rows,
                )
            if good < rows:
                validation.refuse_row(x[good], y[good], w[good], good)
            # Where memory may run out half-way, a copy of the store takes the rows. For many rows,
            # the copy costs less than to find out whether memory suffices.
            finds_room = rows < MANY_ROWS or 2 * rows < self._store.count
            if finds_room:
                with nogil:
                    finds_room = self._store.finds_room(xs)
            store = self._store if finds_room else self._store.duplicate()
            while row < rows:
                with nogil:
                    row = store.take(xs, ys, ws, row)
                if row < rows:
                    store.grow(rows - row)
            self.accept(weight)
            if store is not self._store:
                self._store.become(store)
            self._store.trim(0)
        finally:
            self.ready = True

    def _tables(self):
        """Return the keys, the table of rows, and the rows in use in ascending order; no copies."""
        self.enter()
        order = self._alone(self._store.order)
        return self._store.keys.base, self._store.table.base, order

    def _alone(self, work, *arguments):
        """Do some work on the store during which no other thread may use it."""
        self.enter()
        self.ready = False
        try:
            return work(*arguments)
        finally:
            self.ready = True

    def _elements(self):
        """Return copies of the keys, ascending, and of their rows."""
        keys, table, order = self._tables()
        return keys[order], table[order]

    def _take_in(self, Watch other not None, absorb):
        """Become what watching both streams would have made, as a whole or not at all.

        Parameters
        ----------
        other : Watch
            An observer of the same kind.
        absorb : callable
            Is given a copy of the store, and the keys and rows of the other, to merge them.
        """
        keys, rows = other._elements()
        cdef const double[:, ::1] table = rows
        cdef Store store
        cdef double weight, distance
        cdef double* reach
        cdef const double* cell
        cdef Py_ssize_t row, target
        self.enter()
        weight = self._weight + other._weight
        if self._weight == 0.0:
            memcpy(self.trial, other.reach, REACH * self.targets * sizeof(double))
        else:
            for row in range(table.shape[0]):
                for target in range(self.targets):
                    reach = self.trial + REACH * target
                    cell = &table[row, CELLS + CELL * target]
                    distance = (cell[PIVOT] - reach[FIRST]) + cell[SHIFT]
                    reach[SPREAD] += cell[M2] + table[row, WEIGHT] * (distance * distance)
                    if not (within_limits(distance * distance) and within_limits(reach[SPREAD])):
                        raise OverflowError(validation.SPREAD_OF_BOTH)
        if not within_limits(weight):
            raise OverflowError(validation.WEIGHT_OF_BOTH)
        self.ready = False
        try:
            store = self._store.duplicate()
            absorb(store, keys, rows)
            self.accept(weight)
            self._store.become(store)
        finally:
            self.ready = True

    @property
    def _reach(self):
        """The first value and the spread of each target, as validation remembers them."""
        self.enter()
        return np.array(<double[: self.targets, :REACH]>self.reach)

    def _set_reach(self, double weight, const double[:, ::1] reach):
        """Restore what validation remembers; the values have been checked."""
        self.enter()
        self._weight = weight
        memcpy(self.reach, &reach[0, 0], REACH * self.targets * sizeof(double))

    @property
    def nbytes(self):
        """Bytes that the observer occupies: tables, their spare room, and all objects."""
        self.enter()
        return (
            sys.getsizeof(self)
            + (2 * REACH + 1) * self.targets * sizeof(double)
            + self._store.nbytes
        )

    def __len__(self):
        return self._store.count if self._store is not None else 0
