"""Trees that learn the same rows: each tree a block of rows, and then the ensemble row by row.

A block of rows is accepted as a whole. If learning is interrupted, the rest of the block is learned
before the next row is learned or anything is read: no tree misses a row, or learns one twice. The
predictions of the trees for the block are then combined and scored row by row, without the GIL.
"""

import numpy as np
from libc.math cimport NAN
from libc.stdint cimport uint64_t
from libc.string cimport memcpy

from sapwood.corrector._pending cimport PendingPredictions, count_unrecorded, row_key_of, value_key
from sapwood.ensemble._members cimport (
    MOST_TREES, MemberPredictions, Members, TargetTables, TreeRecord,
)
from sapwood.rows._dict_row cimport RowReader
from sapwood.tree._growth cimport decide
from sapwood.tree._guard cimport admissible, first_inadmissible
from sapwood.tree._kernel cimport TreeKernel
from sapwood.tree._learning cimport learn_row
from sapwood.tree._target_encoding cimport HEAD
from sapwood.tree._memory cimport measure_if_due
from sapwood.tree._predict cimport predict_row
from sapwood.tree._prediction cimport predictions_in, prepared_row
from sapwood.tree._pending_predictions cimport (
    has_learned, is_known_of_any, pending_key, record_appearances,
)
from sapwood.tree._records cimport CATEGORIES
from sapwood.tree._schema_migration cimport SchemaMigration
from sapwood.tree._lock cimport (
    ModelLock, atomic_load, end_learning, start_writing, stop_writing, begin_learning,
)
from sapwood.tree._target_records cimport TargetPrediction
from sapwood.tree._topology cimport leaf_of

from sapwood.ensemble._workers cimport Worker
from sapwood.ensemble._draws cimport copies_of, key_of
from sapwood.ensemble._workers import give_back, take_workers
from sapwood.tree._kernel import refuse_row

cdef enum:
    MOST_ROWS = 500  # of a block
    FEW_ROWS = 16  # of a block after one for which readers had to wait
    FEWEST_SHARED = 16  # rows of a block that several threads work on

# Weights of rows are multiplied by draws, and the sum of all may not exceed what a tree bears.
cdef double LARGEST_WEIGHT = 1e48


cdef inline bint came_before(
    const double[:, ::1] X, Py_ssize_t row, Py_ssize_t feature
) noexcept nogil:
    """Whether an earlier row of a block has the same value."""
    cdef Py_ssize_t earlier
    for earlier in range(row):
        if X[earlier, feature] == X[row, feature]:
            return True
    return False


class Work:
    """Rows that were accepted, and how many rows each tree had learned before.

    `predictions` is the part of the caller's array for them, or None.
    """

    __slots__ = ("X", "at_once", "before", "keys", "predicted", "predictions", "w", "y")

    def __init__(self, X, y, w, before, predicted, predictions, at_once):
        self.X, self.y, self.w, self.predictions = X, y, w, predictions
        self.before, self.predicted, self.at_once = before, predicted, at_once
        self.keys = np.zeros(len(w), np.uint64)


cdef class EnsembleKernel(Members):
    """Trees that learn the same rows.

    Parameters
    ----------
    rules, trees, tree_table, tracking, new_pending, lifetime
        As for `Members`.
    thresholds : dict of float to array of uint64
        By which random draws become weights of rows.
    renew : callable
        Called with the kernel after each interval of rows that the rules give; has to call
        `end_look`.
    threads : int
        How many threads learn a batch.
    """

    def __cinit__(self, *arguments, **named):
        self.access = ModelLock()
        self.block_rows = MOST_ROWS

    def __init__(
        self, rules, list trees, tree_table, thresholds, bint tracking, new_pending, renew,
        double lifetime, Py_ssize_t threads,
    ):
        Members.__init__(self, rules, trees, tree_table, tracking, new_pending, lifetime)
        self.renew, self.thresholds, self.threads = renew, thresholds, threads

    cdef TreeKernel reference(self):
        """A tree that has learned each row."""
        return <TreeKernel>self.trees[self.members - 1]

    cdef void set_keys(
        self, TreeKernel tree, const double[:, ::1] X, const char* fresh, uint64_t* seen,
        uint64_t* keys,
    ) noexcept nogil:
        """Set the keys of rows: hashes of the values that their predictions depend on.

        A new feature or category is part of keys after the row with its first value. While
        predictions are pending, such a value is recorded. `seen` gets a bit for each known category
        of a feature.
        """
        cdef Py_ssize_t row, feature, code
        cdef bint is_waiting = self.pending.count > 0
        cdef uint64_t bit
        cdef double value
        cdef const double* many
        for feature in range(X.shape[1]):
            seen[feature] = 0 if fresh[feature] else ~<uint64_t>0
            if tree.column.is_category[feature]:
                seen[feature] = 0
                for code in range(CATEGORIES):
                    if has_learned(tree, feature, code):
                        seen[feature] |= <uint64_t>1 << code
        for row in range(X.shape[0]):
            keys[row] = 0
            many = tree.column.many_encodings
            for feature in range(X.shape[1]):
                value = X[row, feature]
                if tree.column.has_encoded and tree.column.places[feature] >= 0:
                    if is_known_of_any(tree, many, feature, value) or came_before(
                        X, row, feature
                    ):
                        keys[row] += value_key(value, feature)
                    elif is_waiting and value < tree.column.places[feature]:
                        self.pending.appear(feature, value, self.rows + row)
                    many += 2 * (HEAD + tree.column.places[feature])
                    continue
                if value != value:
                    continue
                bit = ~<uint64_t>0
                if tree.column.is_category[feature]:
                    bit = <uint64_t>1 << <Py_ssize_t>value
                if seen[feature] & bit:
                    keys[row] += value_key(value, feature)
                elif is_waiting:
                    self.pending.appear(
                        feature, value if tree.column.is_category[feature] else NAN, self.rows + row
                    )
                seen[feature] |= bit
            keys[row] = row_key_of(keys[row])

    def explain_row(self, const double[::1] row, Py_ssize_t target=0):
        """Return the parts of the prediction of a target for a row.

        Returns
        -------
        tuple
            The predictions of the trees, their weights, their mean, their weighted mean, and the
            prediction.
        """
        cdef MemberPredictions predicted
        cdef Py_ssize_t place, trees = self.members + 1
        cdef double[::1] one = np.empty(self.targets)
        self.begin_reading()
        try:
            for place in range(trees):
                self.trees[place].predict(row.base[None, :], one)
                predicted.trees[place] = one[target]
            self.combine(target, &predicted)
        finally:
            self.access.end_reading()
        return (
            [predicted.trees[place] for place in range(trees)], self.weights(target),
            predicted.base, predicted.combined, predicted.issued,
        )

    # -- one row --------------------------------------------------------------------------------

    def predict_one(self, RowReader reader not None, x, uint64_t id=0, bint record=True):
        """Predict a row, or return None if the reader cannot read it as it is."""
        cdef MemberPredictions predicted
        cdef TargetPrediction found
        cdef TreeKernel tree
        cdef Py_ssize_t place, leaf
        cdef const double* row
        self.begin_reading()
        try:
            if self.targets > 1 or not self.can_read(reader, x, False):
                return None
            if self.rows == 0.0:
                if self.tracking and id == 0 and record:
                    count_unrecorded(self.pending, 1)
                return 0.0
            for place in range(self.predicting):
                tree = <TreeKernel>self.trees[place]
                predicted.trees[place] = 0.0
                if tree.stream.rows > 0.0:
                    row = prepared_row(tree, reader.values, tree.column.room)
                    leaf = leaf_of(tree.topology.nodes, row)
                    predict_row(tree, leaf, row, tree.column.scratch, &found)
                    predicted.trees[place] = found.corrected.prediction
            self.combine(0, &predicted)
            if record:
                self.store_one(reader.values, &predicted, id)
        finally:
            self.access.end_reading()
        return predicted.issued

    cdef int store_one(
        self, const double* row, const MemberPredictions* predicted, uint64_t id
    ) except -1:
        """Store the prediction of a row until its label arrives."""
        cdef uint64_t key
        if self.tracking and self.rows == self.begun:
            if id == 0:
                count_unrecorded(self.pending, 1)
        elif self.tracking:
            self.pending.reserve(1)
            key = id if id else pending_key(self.reference(), row, 0, NULL)
            self.store_prediction(predicted, self.pending.put(key))
        return 0

    cdef bint can_read(self, RowReader reader, x, bint learn) except -1:
        """Whether the reader can read a row as it is; then it has."""
        return reader.fill(x, learn) and reader.width == (<TreeKernel>self.trees[0]).features

    def predict_targets_one(self, RowReader reader not None, x, uint64_t id=0, bint record=True):
        """Predict several targets of a row as a list, or None if `predict` has to do it."""
        cdef TreeKernel tree
        cdef TargetPrediction* found
        cdef const double* row
        cdef Py_ssize_t place, target, leaf
        cdef unsigned char[::1] room = np.zeros(self.targets * sizeof(MemberPredictions), np.uint8)
        cdef MemberPredictions* predicted = <MemberPredictions*>&room[0]
        self.begin_reading()
        try:
            if len(room) != self.targets * sizeof(MemberPredictions):
                return None
            if not self.can_read(reader, x, False):
                return None
            for place in range(self.predicting):
                tree = <TreeKernel>self.trees[place]
                row = prepared_row(tree, reader.values, tree.column.room)
                leaf = leaf_of(tree.topology.nodes, row)
                found = predictions_in(tree, tree.column.scratch, NULL)
                predict_row(tree, leaf, row, tree.column.scratch, found)
                for target in range(self.targets):
                    predicted[target].trees[place] = found[target].corrected.prediction
            for target in range(self.targets):
                self.combine(target, predicted + target)
            if record:
                self.store_one(reader.values, predicted, id)
            return [predicted[target].issued for target in range(self.targets)]
        finally:
            self.access.end_reading()

    def learn_one(self, RowReader reader not None, x, double y, double w, uint64_t id=0):
        """Learn a row, if the reader can read it as it is; return whether it was."""
        begin_learning(self.access)
        try:
            if not admissible(y, w, self.weight + w, LARGEST_WEIGHT):
                refuse_row(y, w)
            start_writing(self.access)
            if self.targets > 1 or not self.can_read(reader, x, True):
                return False
            self.settle()
            self.learn_one_row(reader.values, &y, w, id)
            reader.count_gaps()
            self.shrink_pending()
            self.look_if_due()
        finally:
            stop_writing(self.access)
            end_learning(self.access)
        return True

    def learn_targets_one(
        self, RowReader reader not None, x, const double[::1] y, double w, uint64_t id=0
    ):
        """Learn a row of several targets, which passed validation, as `learn_one` does."""
        begin_learning(self.access)
        try:
            if self.check(y, np.full(1, w), y.shape[0]) >= 0 or y.shape[0] != self.targets:
                return False
            start_writing(self.access)
            if not self.can_read(reader, x, True):
                return False
            self.settle()
            self.learn_one_row(reader.values, &y[0], w, id)
            reader.count_gaps()
            self.shrink_pending()
            self.look_if_due()
        finally:
            stop_writing(self.access)
            end_learning(self.access)
        return True

    cdef int learn_one_row(
        self, const double* row, const double* y, double w, uint64_t id
    ) except -1:
        """Learn a row: first what may fail, then what cannot, then what may be done later."""
        cdef MemberPredictions* predicted = self.tables.room
        cdef TargetPrediction one
        cdef TargetPrediction* found
        cdef Py_ssize_t[MOST_TREES] leaves
        cdef double[MOST_TREES] weights
        cdef const uint64_t[::1] thresholds
        cdef (const double*)[MOST_TREES] rows
        cdef TreeKernel tree
        cdef Py_ssize_t place, target, trees = self.members + 1
        cdef uint64_t key = id
        if self.tracking and id == 0:
            key = pending_key(self.reference(), row, 0, NULL)
            if self.pending.count > 0:
                record_appearances(self.reference(), self.pending, self.rows, row, 0, NULL)
        for place in range(trees):
            tree = <TreeKernel>self.trees[place]
            weights[place] = w
            if self.records[place].rate > 0.0:
                thresholds = self.thresholds[self.records[place].rate]
                weights[place] *= self.copies(self.records + place, &thresholds[0], 0)
            tree.settle()
            rows[place] = prepared_row(tree, row, tree.column.room)
            leaves[place] = leaf_of(tree.topology.nodes, rows[place])
            if weights[place] > 0.0:
                measure_if_due(tree)
                tree.reserve_for_row(leaves[place], weights[place])
        for place in range(trees):
            tree = <TreeKernel>self.trees[place]
            found = predictions_in(tree, tree.column.scratch, &one)
            if weights[place] > 0.0:
                learn_row(
                    tree, leaves[place], rows[place], row, y, weights[place], 0, True, found
                )
            else:
                predict_row(tree, leaves[place], rows[place], tree.column.scratch, found)
            for target in range(self.targets):
                predicted[target].trees[place] = found[target].corrected.prediction
        for target in range(self.targets):
            self.combine(target, predicted + target)
        self.score_row(row, y, w, key, False)
        if self.targets > 1 and not self.all_seen:
            for place in range(trees):
                if weights[place] > 0.0:
                    self.mark_seen(place, y)
            self.check_all_seen()
        for place in range(trees):
            tree = <TreeKernel>self.trees[place]
            if tree.leaves[leaves[place]].weight >= tree.leaves[leaves[place]].due:
                tree.undecided = leaves[place]
        for place in range(trees):
            tree = <TreeKernel>self.trees[place]
            if tree.undecided >= 0:
                decide(tree, tree.undecided)
            tree.drop_spares()
        return 0

    cdef double copies(
        self, const TreeRecord* record, const uint64_t* thresholds, Py_ssize_t later
    ) noexcept nogil:
        """How often a row counts for a tree with random weights: the next one, or one later."""
        cdef double row = self.rows + later
        cdef double copies = copies_of(
            key_of(self.rules.seed, record.number), <uint64_t>row, thresholds
        )
        # The first row of a tree always counts, so that it can predict.
        return max(copies, 1.0) if row == record.born else copies

    # -- many rows ------------------------------------------------------------------------------

    def check(self, const double[::1] y, const double[:] w, Py_ssize_t targets=1):
        """Return the first row that may not be learned, or -1; as `TreeKernel.check`."""
        cdef Py_ssize_t bad
        with nogil:
            bad = first_inadmissible(y, w, targets, self.weight, LARGEST_WEIGHT)
        return bad

    def learn(self, X, y, w, predictions=None, register=None, bint asked=True, ids=None):
        """Learn rows; as `TreeKernel.learn`."""
        cdef const double[:, ::1] block
        cdef uint64_t[::1] seen, keys
        cdef char[::1] fresh
        cdef Py_ssize_t rows = len(w), start = 0, end, targets = self.targets
        cdef SchemaMigration registration = None
        cdef TargetTables tables = None
        cdef PendingPredictions pending = None
        cdef bint has_lock = self.access.is_held_by_this_thread()
        if not has_lock:
            begin_learning(self.access)
        try:
            start_writing(self.access)
            try:
                self.settle()
                if register is not None and rows > 0:
                    registration = register()
                if registration is not None and registration.targets != self.targets:
                    targets = registration.targets
                    tables = self.fresh_targets(targets)
                    pending = self.new_pending(targets) if self.tracking else None
                if len(y) != rows * targets:
                    raise ValueError("the arrays do not fit combined")
                while start < rows:
                    end = min(rows, start + min(self.block_rows, self.rows_until_look()))
                    span = slice(start * targets, end * targets)
                    work = self.prepared(
                        X[start:end], y[span], w[start:end],
                        None if predictions is None else predictions[span], asked,
                    )
                    block, keys = work.X, work.keys
                    seen, fresh = np.zeros(len(X[0]) + 1, np.uint64), np.zeros(len(X[0]) + 1, "b")
                    if registration is not None and registration.fresh:
                        fresh.base[registration.fresh] = 1
                    # New features and categories take effect with the first rows.
                    if registration is not None:
                        registration.commit()
                        if tables is not None:
                            self.become_several(tables, pending)
                    registration, tables = None, None
                    if ids is not None:
                        keys.base[:] = ids[start:end]
                    elif self.tracking:
                        self.set_keys(self.reference(), block, &fresh[0], &seen[0], &keys[0])
                    self.work = work
                    self.finish_work()
                    self.look_if_due()
                    start = end
                    self.block_rows = min(2 * self.block_rows, <Py_ssize_t>MOST_ROWS)
                    if atomic_load(&self.access.waiting) > 0:
                        self.block_rows = FEW_ROWS
                    with nogil:
                        self.access.let_readers_in()
            finally:
                stop_writing(self.access)
        finally:
            if not has_lock:
                end_learning(self.access)

    cdef void become_several(self, TargetTables tables, PendingPredictions pending) noexcept:
        """Switch to several targets, as nothing was learned yet."""
        self.use_targets(tables)
        if pending is not None:
            pending.unrecorded = min(self.pending.unrecorded, pending.most)
            self.pending = pending

    cdef Py_ssize_t rows_until_look(self) noexcept nogil:
        return self.rules.interval - <Py_ssize_t>self.rows % self.rules.interval

    cdef bint is_look_due(self) noexcept nogil:
        return self.rows > self.looked_at and self.rows_until_look() == self.rules.interval

    cdef int settle(self) except -1:
        """Finish the work that an interruption has left."""
        self.finish_work()
        self.look_if_due()
        return 0

    cdef int look_if_due(self) except -1:
        """Decide about replacements after an interval of rows; if it fails, it is repeated later.
        """
        if self.is_look_due():
            self.renew(self)
        return 0

    cdef object prepared(self, X, y, w, predictions, bint asked):
        """Return rows for the trees to learn; once they are `work`, they count as learned."""
        before = [tree.rows for tree in self.trees]
        predicted = np.empty((len(self.trees), len(y)))
        at_once = predictions is not None and asked
        return Work(np.ascontiguousarray(X), y, w, before, predicted, predictions, at_once)

    def drawn(self, Py_ssize_t place, const double[:] w not None):
        """Return the weight of each row for a tree with random weights."""
        cdef const TreeRecord* record = self.records + place
        cdef const uint64_t[::1] thresholds = self.thresholds[record.rate]
        cdef double[::1] weights = np.empty(w.shape[0])
        cdef Py_ssize_t row
        with nogil:
            for row in range(w.shape[0]):
                weights[row] = w[row] * self.copies(record, &thresholds[0], row)
        return weights.base

    cdef int finish_work(self) except -1:
        """Learn the accepted rows with all trees, and combine and score their predictions."""
        cdef double[::1] predictions
        cdef double[:, ::1] predicted
        cdef const double[:, ::1] X
        cdef const double[::1] y
        cdef const double[:] w
        cdef Py_ssize_t row, place, target, rows, at, targets = self.targets
        cdef Py_ssize_t trees = self.members + 1
        cdef MemberPredictions* combined = self.tables.room
        cdef const uint64_t[::1] keys
        cdef const char[:, ::1] counts
        cdef bint at_once, marking = targets > 1 and not self.all_seen
        if self.work is None:
            return 0
        self.let_trees_learn()
        predicted, X, y, w = self.work.predicted, self.work.X, self.work.y, self.work.w
        keys, at_once = self.work.keys, self.work.at_once
        predictions = self.work.predictions
        rows = w.shape[0]
        counts = self.counts_of(self.work.w) if marking else np.zeros((0, 0), "b")
        if self.tracking and self.pending.count > 0:
            self.pending.reserve(rows if at_once else 1)  # each row is left, and then taken
        with nogil:
            for row in range(rows):
                at = row * targets
                for target in range(targets):
                    for place in range(trees):
                        combined[target].trees[place] = predicted[place, at + target]
                    self.combine(target, combined + target)
                    if predictions is not None:
                        predictions[at + target] = (
                            combined[target].issued if self.rows > 0.0 else 0.0
                        )
                self.score_row(
                    &X[row, 0] if X.shape[1] else NULL, &y[at], w[row], keys[row], at_once
                )
                if marking:
                    for place in range(trees):
                        if counts[place, row]:
                            self.mark_seen(place, &y[at])
            if marking:
                self.check_all_seen()
        self.work = None
        self.shrink_pending()
        return 0

    def counts_of(self, w):
        """Return of each tree and row whether the row counts for the tree."""
        counts = np.ones((len(self.trees), len(w)), "b")
        for place in range(len(self.trees)):
            if self.records[place].rate > 0.0:
                counts[place] = self.drawn(place, w) > 0.0
        return counts

    cdef int let_trees_learn(self) except -1:
        """Learn the rows with each tree, in several threads if there are any; or raise."""
        cdef Worker worker
        # The quickest come last, so that no thread waits long for another.
        todo = iter(sorted(range(self.members + 1), key=self.is_quick))
        kept, workers = None, []
        if self.threads > 1 and len(self.work.w) >= FEWEST_SHARED:
            workers = take_workers(self.threads - 1)
            learn_next = self.learn_next
            for worker in workers:
                worker.begin(learn_next, todo)
        try:
            self.learn_next(todo)
        except BaseException as error:
            kept = error
        # No thread is at it any more when this is left.
        for worker in workers:
            error = worker.end()
            kept = error if kept is None else kept
        if workers:
            give_back(workers)
        if kept is not None:
            raise kept
        return 0

    def is_quick(self, Py_ssize_t place):
        """Return whether the rows of a tree count once each, so that it is small."""
        return self.records[place].rate == 0.0

    def learn_next(self, todo):
        """Learn the rows with one tree after the other, as long as some are left."""
        for place in todo:
            self.let_tree_learn(place)

    def let_tree_learn(self, Py_ssize_t place):
        """Learn those of the accepted rows that a tree has not learned yet."""
        cdef TreeKernel tree = self.trees[place]
        cdef Py_ssize_t row = 0, done
        cdef const double[:] view
        work = self.work
        weights = self.drawn(place, work.w) if self.records[place].rate > 0.0 else work.w
        done = <Py_ssize_t>(tree.stream.rows - <double>work.before[place])
        if done == 0:
            tree.learn(work.X, work.y, weights, work.predicted[place])
            return
        view = weights
        while done > 0:
            done -= view[row] > 0.0
            row += 1
        at = row * self.targets
        tree.learn(work.X[row:], work.y[at:], weights[row:], work.predicted[place, at:])

    def predict(
        self, const double[:, ::1] X, double[::1] predictions, is_current=None, bint asked=True,
        const uint64_t[::1] ids=None,
    ):
        """Predict all rows; as `TreeKernel.predict`."""
        cdef Py_ssize_t row, place, target, at, start = 0, end, rows = X.shape[0]
        cdef Py_ssize_t trees = self.predicting, targets, recorded = 0
        cdef double[:, ::1] predicted
        cdef double[:, ::1] records
        cdef uint64_t[::1] keys
        cdef unsigned char[::1] room
        cdef MemberPredictions* combined
        cdef TreeKernel tree
        self.begin_reading()
        try:
            if is_current is not None and not is_current():
                return False
            targets = self.targets
            if rows * targets != predictions.shape[0]:
                raise ValueError("the arrays do not fit combined")
            if self.rows == 0.0:
                predictions[:] = 0.0
                if self.tracking and asked and ids is None:
                    count_unrecorded(self.pending, rows)
                return True
            if self.tracking and self.rows == self.begun:
                if ids is None:
                    count_unrecorded(self.pending, rows)
            elif self.tracking and asked:
                recorded = min(rows, self.pending.most)
            records = np.empty((recorded, self.pending.width if recorded else 0))
            keys = np.empty(recorded, np.uint64)
            room = np.zeros(targets * sizeof(MemberPredictions), np.uint8)
            combined = <MemberPredictions*>&room[0]
            tree = self.reference()
            while start < rows:
                end = min(rows, start + 4096)
                predicted = np.empty((trees, (end - start) * targets))
                for place in range(trees):
                    self.trees[place].predict(X[start:end], predicted[place])
                with nogil:
                    for row in range(start, end):
                        at = (row - start) * targets
                        for target in range(targets):
                            for place in range(trees):
                                combined[target].trees[place] = predicted[place, at + target]
                            self.combine(target, combined + target)
                            predictions[row * targets + target] = combined[target].issued
                        if row >= rows - recorded:
                            keys[row - rows + recorded] = pending_key(
                                tree, &X[row, 0] if X.shape[1] else NULL, 0, NULL
                            )
                            self.store_prediction(combined, &records[row - rows + recorded, 0])
                start = end
            if recorded:
                # Predictions are stored once all rows are predicted.
                self.pending.reserve(recorded)
                for row in range(recorded):
                    memcpy(
                        self.pending.put(keys[row] if ids is None else ids[rows - recorded + row]),
                        &records[row, 0],
                        self.pending.width * sizeof(double),
                    )
        finally:
            self.access.end_reading()
        return True

    # -- who may read or change it ----------------------------------------------------------------

    def read_locked(self, read, *arguments):
        """Return what a function returns, while which nothing is changed."""
        self.begin_reading()
        try:
            return read(*arguments)
        finally:
            self.access.end_reading()

    def write_locked(self, learn, *arguments):
        """Return what a function returns, while which no other thread learns."""
        begin_learning(self.access)
        try:
            return learn(*arguments)
        finally:
            end_learning(self.access)

    def change_locked(self, change, *arguments):
        """Return what a function returns that changes trees, while which nobody reads or learns."""
        begin_learning(self.access)
        try:
            start_writing(self.access)
            try:
                self.settle()
                return change(*arguments)
            finally:
                stop_writing(self.access)
        finally:
            end_learning(self.access)

    cdef int begin_reading(self) except -1:
        """Wait until one may read, and until no work is outstanding."""
        self.access.begin_reading()
        while self.work is not None or self.is_look_due():
            self.access.end_reading()
            begin_learning(self.access)
            try:
                start_writing(self.access)
                self.settle()
            finally:
                stop_writing(self.access)
                end_learning(self.access)
            self.access.begin_reading()
        return 0
