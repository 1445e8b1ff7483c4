"""A tree that learns: rows walk through it, are learned, and their leaf is decided on if it is due.

A batch is one call, without the GIL from the first row to the last. It is asked for only to make
room for tables, for observers, and now and then to see whether somebody has pressed Ctrl-C. All
of that happens between two rows: a row is learned as a whole, or not at all. There, too, a batch
lets other threads in who want to read the tree; see `sapwood/tree/_sharing.pyx`.
"""

cimport cython
import numpy as np
from libc.stdint cimport int32_t, uint64_t

from sapwood import validation
from sapwood.corrector._pending cimport LEAST_ROOM, count_unrecorded
from sapwood.observers._store cimport Store
from sapwood.rows._dict_row cimport RowReader
from sapwood.tree._predict_tree cimport row_at
from sapwood.tree._experts cimport LEAST, MARGIN
from sapwood.tree._growth cimport decide
from sapwood.tree._guard cimport admissible, first_inadmissible, largest_y
from sapwood.tree._learning cimport learn_row
from sapwood.tree._memory cimport measure_if_due
from sapwood.tree._model cimport Z_CREDIBLE, Z_REACH
from sapwood.tree._pace cimport Pace, plan_answer, plan_look, start_pace
from sapwood.tree._predict cimport predict_row
from sapwood.tree._prediction cimport predictions_in, prepared_row
from sapwood.tree._pending_predictions cimport record_appearances, pending_key, store_prediction
from sapwood.tree._records cimport RATES, PendingPrediction
from sapwood.tree._schema_migration cimport SchemaMigration
from sapwood.tree._lock cimport (
    ModelLock, Waiter, atomic_load_explicit, end_learning, memory_order_relaxed, start_writing,
    stop_writing, begin_learning,
)
from sapwood.tree._target_records cimport TargetPrediction
from sapwood.tree._targets cimport fetch_leaf
from sapwood.tree._topology cimport AHEAD, leaf_of, walk_ahead

cdef extern from "Python.h":
    const Py_ssize_t PY_SSIZE_T_MAX

# What the weights of all rows may add up to: then squares of sums of them and of y stay doubles.
cdef double LARGEST_WEIGHT = 1e50
LEAST_SHARES = tuple([LEAST[rate] for rate in range(RATES)])
PENDING_DOUBLES = sizeof(PendingPrediction) // sizeof(double)
LARGEST_Y = largest_y()
RANGE_MARGIN, TERM_REACH, TERM_CREDIBLE = MARGIN, float(Z_REACH), float(Z_CREDIBLE)


def refuse_row(double y, double w, row=None, name="y"):
    """Raise the error for a row that may not be learned; `name` is what its y is called."""
    validation.refuse_large_row(y, w, largest_y(), row, name)


@cython.final
cdef class TreeKernel(PredictingTree):
    """A tree: its tables, and what rows do to them. The parameters are those of `TreeTables`."""

    cdef int reserve_for_row(self, Py_ssize_t leaf, double w) except -1 nogil:
        """Allocate all memory that learning a row of a leaf may need.

        A failure leaves the tree unchanged. Where memory is limited, pages are allocated later, as
        they have to be counted before.
        """
        cdef Py_ssize_t feature
        if self.leaves[leaf].weight + w >= self.leaves[leaf].due:
            if not self.has_room():
                with gil:
                    self.make_room()
            if self.memory.max_bytes == 0:
                self.get_spares()
        if self.slots == 0 and self.leaves[leaf].watching:
            for feature in range(self.features):
                if not self.column.is_category[feature]:
                    self.make_room_for_element(leaf, feature)
        return 0

    cdef int make_room_for_element(self, Py_ssize_t leaf, Py_ssize_t feature) except -1 nogil:
        """Allocate room for one more element of an observer."""
        if (<Store>self.stores[leaf][feature]).spare() == 0:
            with gil:
                (<Store>self.stores[leaf][feature]).grow(1)
        return 0

    cdef int settle(self) except -1 nogil:
        """Decide about the leaf for which memory did not suffice when the last row was learned."""
        cdef Py_ssize_t leaf = self.undecided
        if leaf >= 0:
            self.reserve_for_row(leaf, 0.0)
            decide(self, leaf)
        return 0

    # -- learning while others read -----------------------------------------------------------

    cdef inline void end_writing(self, ModelLock access) noexcept:
        """End writing, and admit readers."""
        self.drop_spares()
        if self.tracking and self.pending.room > LEAST_ROOM:
            self.pending.shrink()
        if atomic_load_explicit(&access.waiting, memory_order_relaxed):
            self.answer_requests()
        stop_writing(access)

    cdef int stop_between_rows(self, Py_ssize_t row, Pace* pace) except -1 nogil:
        """Run handlers of signals, and serve waiting threads, at intervals."""
        pace.next_stop = row + pace.rows_between_stops
        if row >= pace.next_look:
            plan_look(pace, row, self.features)
            if not self.access.look_for_signals():
                pace.next_look = PY_SSIZE_T_MAX
        if row >= pace.next_answer and atomic_load_explicit(
            &self.access.waiting, memory_order_relaxed
        ):
            self.answer_requests()
            self.access.let_readers_in()
            plan_answer(pace, row)
        return 0

    cdef void answer_requests(self) noexcept nogil:
        """Predict the rows of all requests, between two rows."""
        cdef TargetPrediction prediction
        cdef Py_ssize_t leaf
        cdef uint64_t key
        cdef Waiter* waiter = self.access.take_requests()
        cdef Waiter* following
        cdef const double* row
        while waiter != NULL:
            following = waiter.next
            if waiter.width == self.features and self.targets == 1:
                prediction.issued = 0.0
                if self.stream.rows == 0.0:
                    if self.tracking:
                        count_unrecorded(self.pending, 1)
                else:
                    row = prepared_row(self, waiter.values, self.column.room)
                    leaf = leaf_of(self.topology.nodes, row)
                    predict_row(self, leaf, row, self.column.scratch, &prediction)
                    if self.tracking:
                        key = pending_key(self, waiter.values, 0, NULL)
                        store_prediction(self, leaf, &prediction, self.pending.put(key))
                waiter.prediction = prediction.issued
                waiter.is_answered = True
            self.access.answer(waiter)
            waiter = following

    def learn(
        self,
        const double[:, ::1] X,
        const double[::1] y,
        const double[:] w,
        double[::1] predictions=None,
        register=None,
        int32_t[::1] regions=None,
        bint asked=True,
        const uint64_t[::1] ids=None,
    ):
        """Learn rows.

        Parameters
        ----------
        X, y, w : arrays
            Rows that passed validation. Rows of weight 0 are only predicted. With several targets,
            y has all targets of the first row, then of the second, and so on; NaN if missing.
        predictions : array, optional
            Gets the prediction of each row before it was learned, in the order of y.
        register : callable, optional
            Returns a SchemaMigration for new features and categories of the rows, or None. It is
            called while no other thread may change the tree, and takes effect with the first row.
        regions : array, optional
            Gets the node of the leaf by which each row was predicted.
        asked : bool
            Whether predictions, if there are any, are issued now and scored at once; otherwise rows
            are scored by the predictions that were issued earlier.
        ids : array, optional
            The keys of ids by which rows were predicted.
        """
        cdef Py_ssize_t row, rows = X.shape[0], start = 0, known = 0, leaf, target, targets
        cdef Pace pace
        cdef bint predicting = predictions is not None, placing = regions is not None
        cdef bint at_once = predicting and asked, fetching
        cdef bint has_lock = self.access.is_held_by_this_thread()
        cdef Py_ssize_t leaves[AHEAD]
        cdef TargetPrediction one
        cdef TargetPrediction* found
        cdef SchemaMigration registration = None
        cdef Py_ssize_t[::1] first_values
        cdef const Py_ssize_t* first_value = NULL
        cdef const double* taken
        if w.shape[0] != rows or placing and regions.shape[0] != rows:
            raise ValueError("the arrays do not fit together")
        if ids is not None and ids.shape[0] != rows:
            raise ValueError("the arrays do not fit together")
        if predicting and predictions.shape[0] != y.shape[0]:
            raise ValueError("the arrays do not fit together")
        if not has_lock:
            begin_learning(self.access)
        try:
            start_writing(self.access)
            try:
                self.settle()
                if register is not None and rows > 0 and X.shape[1] >= self.features:
                    # Memory for the first row is reserved before the schema changes.
                    taken = prepared_row(self, row_at(X, 0), self.column.room)
                    self.reserve_for_row(leaf_of(self.topology.nodes, taken), w[0])
                    self.access.pause()
                    registration = register()
                    start_writing(self.access)
                self.check_width(
                    X.shape[1], self.features if registration is None else registration.width
                )
                if y.shape[0] != rows * (
                    self.targets if registration is None else registration.targets
                ):
                    raise ValueError("the arrays do not fit together")
                if registration is not None:
                    if self.tracking and registration.fresh:
                        first_values = rows_of_first_values(X, registration.fresh)
                        first_value = &first_values[0]
                    registration.commit()
                pace = start_pace(self.features)
                targets = self.targets
                found = predictions_in(self, self.column.scratch, &one)
                # The leaves of a single tree are mostly in the caches, and prefetching costs more
                # than it saves. Those of the members of a forest are not.
                fetching = targets > 1 or not self.tracking
                with nogil:
                    for row in range(rows):
                        taken = prepared_row(self, row_at(X, row), self.column.room)
                        if row >= known:
                            start = row
                            known = row + walk_ahead(
                                self.topology.nodes, taken, self.features,
                                1 if self.column.has_encoded or self.units.hiding else rows - row,
                                self.column.has_categories, leaves,
                            )
                        leaf = leaves[row - start]
                        if fetching and row + 1 < known:
                            fetch_leaf(self, leaves[row + 1 - start])
                        self.learn_known(
                            leaf, taken, row_at(X, row), &y[row * targets], w[row], row,
                            first_value, at_once, 0 if ids is None else ids[row], found,
                        )
                        if predicting:
                            for target in range(targets):
                                predictions[row * targets + target] = found[target].issued
                        if placing:
                            regions[row] = self.leaves[leaf].node
                        if self.leaves[leaf].weight >= self.leaves[leaf].due:
                            known = row + 1  # the walks ahead may no longer hold
                            decide(self, leaf)
                        if self.units.rerouted:
                            known, self.units.rerouted = row + 1, False
                        if row >= pace.next_stop:
                            self.stop_between_rows(row, &pace)
            finally:
                self.end_writing(self.access)
        finally:
            if not has_lock:
                end_learning(self.access)

    cdef inline int learn_known(
        self, Py_ssize_t leaf, const double* row, const double* raw, const double* y, double w,
        Py_ssize_t number, const Py_ssize_t* first_value, bint at_once, uint64_t id,
        TargetPrediction* found,
    ) except -1 nogil:
        """Predict a row whose leaf is known, and learn it if it has weight."""
        cdef uint64_t key = id
        if w == 0.0:
            predict_row(self, leaf, row, self.column.scratch, found)
            return 0
        if self.slots == 0:
            measure_if_due(self)
        if self.slots == 0 or self.leaves[leaf].weight + w >= self.leaves[leaf].due:
            self.reserve_for_row(leaf, w)
        if self.tracking and self.pending.count > 0:
            if at_once:
                self.pending.reserve(1)
            if id == 0:
                key = pending_key(self, raw, number, first_value)
                record_appearances(self, self.pending, self.stream.rows, raw, number, first_value)
        learn_row(self, leaf, row, raw, y, w, key, at_once, found)
        return 0

    def check(self, const double[::1] y, const double[:] w, Py_ssize_t targets=1):
        """Return the first row that may not be learned, or -1; nothing is changed.

        Of several targets, each may be missing (NaN), but not all of them in one row.
        """
        cdef Py_ssize_t bad
        with nogil:
            bad = first_inadmissible(y, w, targets, self.stream.weight, LARGEST_WEIGHT)
        return bad

    def learn_one(self, RowReader reader not None, x, double y, double w, uint64_t id=0):
        """Learn a row, if the reader can read it as it is.

        Returns
        -------
        bool
            Whether it was learned; if not, it has a new feature or category, or a bad value.
        """
        cdef TargetPrediction found
        cdef ModelLock access = self.access
        begin_learning(access)
        try:
            if not admissible(y, w, self.stream.weight + w, LARGEST_WEIGHT):
                refuse_row(y, w)
            start_writing(access)
            return self.targets == 1 and self.learn_plain(reader, x, &y, w, id, &found)
        finally:
            self.end_writing(access)
            end_learning(access)

    def learn_targets_one(
        self, RowReader reader not None, x, const double[::1] y, double w, uint64_t id=0
    ):
        """Learn a row of several targets, which passed validation, as `learn_one` does."""
        cdef ModelLock access = self.access
        begin_learning(access)
        try:
            if self.check(y, np.full(1, w), y.shape[0]) >= 0 or y.shape[0] != self.targets:
                return False
            start_writing(access)
            return self.learn_plain(
                reader, x, &y[0], w, id, predictions_in(self, self.column.scratch, NULL)
            )
        finally:
            self.end_writing(access)
            end_learning(access)

    cdef bint learn_plain(
        self, RowReader reader, x, const double* y, double w, uint64_t id,
        TargetPrediction* found,
    ) except -1:
        """Learn a row; return whether the reader can read it."""
        cdef Py_ssize_t leaf
        cdef const double* row
        # Nothing here runs foreign code, so that no other row can come between.
        if not reader.fill(x, True) or reader.width != self.features:
            return False
        self.settle()
        row = prepared_row(self, reader.values, self.column.room)
        leaf = leaf_of(self.topology.nodes, row)
        self.learn_known(leaf, row, reader.values, y, w, 0, NULL, False, id, found)
        reader.count_gaps()
        if self.leaves[leaf].weight >= self.leaves[leaf].due:
            decide(self, leaf)
        return True


def rows_of_first_values(const double[:, ::1] X, fresh):
    """Return the first row in which each of these features has a value; -1 for other features."""
    cdef Py_ssize_t feature, row
    found = np.full(X.shape[1] + 1, -1, np.intp)
    for feature in fresh:
        row = 0
        while row < X.shape[0] and X[row, feature] != X[row, feature]:
            row += 1
        found[feature] = row
    return found
