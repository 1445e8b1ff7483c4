"""Trees that learn the same rows: in blocks, each tree on its own, and then all of them together.

A block of rows is accepted as a whole. Should anything break off while trees learn it, the rest is
done before the next row is learned or anything is read: no tree ever misses a row, and none learns
one twice. What the trees said of the block is then taken in row by row, without the GIL.
"""

import numpy as np
from libc.math cimport NAN
from libc.stdint cimport uint64_t
from libc.string cimport memcpy

from sapwood.corrector._pending cimport Notes, count_blanks, row_key_of, value_key
from sapwood.ensemble._members cimport (
    MOST_TREES, MemberPredictions, Members, TargetTables, TreeRecord,
)
from sapwood.rows._dict_row cimport RowReader
from sapwood.tree._growth cimport decide
from sapwood.tree._guard cimport admissible, first_inadmissible
from sapwood.tree._kernel cimport TreeKernel
from sapwood.tree._learning cimport learn_row
from sapwood.tree._levels cimport HEAD
from sapwood.tree._memory cimport measure_if_due
from sapwood.tree._predict cimport predict_row
from sapwood.tree._prediction cimport predictions_in, with_levels
from sapwood.tree._recall cimport has_learned, is_known_of_any, note_appearances, note_key
from sapwood.tree._records cimport CATEGORIES
from sapwood.tree._schema_migration cimport SchemaMigration
from sapwood.tree._sharing cimport (
    Sharing, atomic_load, give_turn, start_writing, stop_writing, take_turn,
)
from sapwood.tree._target_records cimport TargetPrediction
from sapwood.tree._walk cimport leaf_of

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
    """Rows that were accepted, and how many rows each tree had learned before."""

    __slots__ = ("X", "at_once", "before", "keys", "said", "w", "y")

    def __init__(self, X, y, w, before, said, at_once):
        self.X, self.y, self.w = X, y, w
        self.before, self.said, self.at_once = before, said, at_once
        self.keys = np.zeros(len(w), np.uint64)


cdef class EnsembleKernel(Members):
    """Trees that learn the same rows.

    Parameters
    ----------
    rules, trees, tree_table, tracking, new_notes, lifetime
        As for `Members`.
    thresholds : dict of float to array of uint64
        By which the draws of a mean become weights.
    renew : callable
        Is called with the kernel whenever so many rows were learned as the rules say; it has to
        call `end_look`.
    threads : int
        How many threads learn a batch.
    """

    def __cinit__(self, *arguments, **named):
        self.sharing = Sharing()
        self.block_rows = MOST_ROWS

    def __init__(
        self, rules, list trees, tree_table, thresholds, bint tracking, new_notes, renew,
        double lifetime, Py_ssize_t threads,
    ):
        Members.__init__(self, rules, trees, tree_table, tracking, new_notes, lifetime)
        self.renew, self.thresholds, self.threads = renew, thresholds, threads

    cdef TreeKernel reference(self):
        """A tree that has learned each row."""
        return <TreeKernel>self.trees[self.members - 1]

    cdef void set_keys(
        self, TreeKernel tree, const double[:, ::1] X, const char* fresh, uint64_t* seen,
        uint64_t* keys,
    ) noexcept nogil:
        """Set by what the notes about rows are found: the values that they were predicted from.

        So neither a fresh feature nor a category of which nothing was learned is among them, up to
        the row that brings it, which is remembered while predictions wait. Of a feature, `seen`
        gets a bit for each category that is known.
        """
        cdef Py_ssize_t row, feature, code
        cdef bint is_waiting = self.notes.count > 0
        cdef uint64_t bit
        cdef double value
        cdef const double* many
        for feature in range(X.shape[1]):
            seen[feature] = 0 if fresh[feature] else ~<uint64_t>0
            if tree.is_category[feature]:
                seen[feature] = 0
                for code in range(CATEGORIES):
                    if has_learned(tree, feature, code):
                        seen[feature] |= <uint64_t>1 << code
        for row in range(X.shape[0]):
            keys[row] = 0
            many = tree.many_levels
            for feature in range(X.shape[1]):
                value = X[row, feature]
                if tree.has_many and tree.places[feature] >= 0:
                    if is_known_of_any(tree, many, feature, value) or came_before(
                        X, row, feature
                    ):
                        keys[row] += value_key(value, feature)
                    elif is_waiting and value < tree.places[feature]:
                        self.notes.appear(feature, value, self.rows + row)
                    many += 2 * (HEAD + tree.places[feature])
                    continue
                if value != value:
                    continue
                bit = ~<uint64_t>0
                if tree.is_category[feature]:
                    bit = <uint64_t>1 << <Py_ssize_t>value
                if seen[feature] & bit:
                    keys[row] += value_key(value, feature)
                elif is_waiting:
                    self.notes.appear(
                        feature, value if tree.is_category[feature] else NAN, self.rows + row
                    )
                seen[feature] |= bit
            keys[row] = row_key_of(keys[row])

    def say(self, const double[::1] row, Py_ssize_t target=0):
        """Return what each tree, their mean, all of them by their weights, and the last layer say.

        They say it of a target.

        Returns
        -------
        tuple
            The predictions of the trees, their weights, the mean, what they say together, and what
            is predicted.
        """
        cdef MemberPredictions said
        cdef Py_ssize_t place, trees = self.members + 1
        cdef double[::1] one = np.empty(self.targets)
        self.begin_reading()
        try:
            for place in range(trees):
                self.trees[place].predict(row.base[None, :], one)
                said.trees[place] = one[target]
            self.say_together(target, &said)
        finally:
            self.sharing.end_reading()
        return (
            [said.trees[place] for place in range(trees)], self.weights(target), said.base,
            said.together, said.issued,
        )

    # -- one row --------------------------------------------------------------------------------

    def predict_one(self, RowReader reader not None, x, uint64_t id=0, bint record=True):
        """Predict a row, or return None if the reader cannot read it as it is."""
        cdef MemberPredictions said
        cdef TargetPrediction found
        cdef TreeKernel tree
        cdef Py_ssize_t place
        cdef const double* row
        self.begin_reading()
        try:
            if self.targets > 1 or not self.can_read(reader, x, False):
                return None
            if self.rows == 0.0:
                if self.tracking and id == 0 and record:
                    count_blanks(self.notes, 1)
                return 0.0
            for place in range(self.asked):
                tree = <TreeKernel>self.trees[place]
                said.trees[place] = 0.0
                if tree.rows > 0.0:
                    row = with_levels(tree, reader.values, tree.room)
                    predict_row(tree, leaf_of(tree.nodes, row), row, tree.scratch, &found)
                    said.trees[place] = found.saying.prediction
            self.say_together(0, &said)
            if record:
                self.note_one(reader.values, &said, id)
        finally:
            self.sharing.end_reading()
        return said.issued

    cdef int note_one(
        self, const double* row, const MemberPredictions* said, uint64_t id
    ) except -1:
        """Remember what was said of a row, until its label comes."""
        cdef uint64_t key
        if self.tracking and self.rows == self.begun:
            if id == 0:
                count_blanks(self.notes, 1)
        elif self.tracking:
            self.notes.reserve(1)
            key = id if id else note_key(self.reference(), row, 0, NULL)
            self.take_down(said, self.notes.leave(key))
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
        cdef MemberPredictions* said = <MemberPredictions*>&room[0]
        self.begin_reading()
        try:
            if len(room) != self.targets * sizeof(MemberPredictions):
                return None
            if not self.can_read(reader, x, False):
                return None
            for place in range(self.asked):
                tree = <TreeKernel>self.trees[place]
                row = with_levels(tree, reader.values, tree.room)
                leaf = leaf_of(tree.nodes, row)
                found = predictions_in(tree, tree.scratch, NULL)
                predict_row(tree, leaf, row, tree.scratch, found)
                for target in range(self.targets):
                    said[target].trees[place] = found[target].saying.prediction
            for target in range(self.targets):
                self.say_together(target, said + target)
            if record:
                self.note_one(reader.values, said, id)
            return [said[target].issued for target in range(self.targets)]
        finally:
            self.sharing.end_reading()

    def learn_one(self, RowReader reader not None, x, double y, double w, uint64_t id=0):
        """Learn a row, if the reader can read it as it is; return whether it was."""
        take_turn(self.sharing)
        try:
            if not admissible(y, w, self.weight + w, LARGEST_WEIGHT):
                refuse_row(y, w)
            start_writing(self.sharing)
            if self.targets > 1 or not self.can_read(reader, x, True):
                return False
            self.settle()
            self.learn_one_row(reader.values, &y, w, id)
            reader.count_gaps()
            self.tidy_notes()
            self.look_if_due()
        finally:
            stop_writing(self.sharing)
            give_turn(self.sharing)
        return True

    def learn_targets_one(
        self, RowReader reader not None, x, const double[::1] y, double w, uint64_t id=0
    ):
        """Learn a row of several targets, which passed validation, as `learn_one` does."""
        take_turn(self.sharing)
        try:
            if self.check(y, np.full(1, w), y.shape[0]) >= 0 or y.shape[0] != self.targets:
                return False
            start_writing(self.sharing)
            if not self.can_read(reader, x, True):
                return False
            self.settle()
            self.learn_one_row(reader.values, &y[0], w, id)
            reader.count_gaps()
            self.tidy_notes()
            self.look_if_due()
        finally:
            stop_writing(self.sharing)
            give_turn(self.sharing)
        return True

    cdef int learn_one_row(
        self, const double* row, const double* y, double w, uint64_t id
    ) except -1:
        """Learn a row: first what may fail, then what cannot, then what may be done later."""
        cdef MemberPredictions* said = self.tables.room
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
            key = note_key(self.reference(), row, 0, NULL)
            if self.notes.count > 0:
                note_appearances(self.reference(), self.notes, self.rows, row, 0, NULL)
        for place in range(trees):
            tree = <TreeKernel>self.trees[place]
            weights[place] = w
            if self.records[place].rate > 0.0:
                thresholds = self.thresholds[self.records[place].rate]
                weights[place] *= self.copies(self.records + place, &thresholds[0], 0)
            tree.settle()
            rows[place] = with_levels(tree, row, tree.room)
            leaves[place] = leaf_of(tree.nodes, rows[place])
            if weights[place] > 0.0:
                measure_if_due(tree)
                tree.make_ready(leaves[place], weights[place])
        for place in range(trees):
            tree = <TreeKernel>self.trees[place]
            found = predictions_in(tree, tree.scratch, &one)
            if weights[place] > 0.0:
                learn_row(
                    tree, leaves[place], rows[place], row, y, weights[place], 0, True, found
                )
            else:
                predict_row(tree, leaves[place], rows[place], tree.scratch, found)
            for target in range(self.targets):
                said[target].trees[place] = found[target].saying.prediction
        for target in range(self.targets):
            self.say_together(target, said + target)
        self.take_labels(row, y, w, key, False)
        if self.targets > 1 and not self.all_heard:
            for place in range(trees):
                if weights[place] > 0.0:
                    self.hear(place, y)
            self.count_heard()
        for place in range(trees):
            tree = <TreeKernel>self.trees[place]
            if tree.leaves[leaves[place]].weight >= tree.leaves[leaves[place]].due:
                tree.pending = leaves[place]
        for place in range(trees):
            tree = <TreeKernel>self.trees[place]
            if tree.pending >= 0:
                decide(tree, tree.pending)
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
        # The first row of a tree counts in any case, so that there is something to say.
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
        cdef Notes notes = None
        cdef bint has_turn = self.sharing.is_turn_of_this_thread()
        if not has_turn:
            take_turn(self.sharing)
        try:
            start_writing(self.sharing)
            try:
                self.settle()
                if register is not None and rows > 0:
                    registration = register()
                if registration is not None and registration.targets != self.targets:
                    targets = registration.targets
                    tables = self.fresh_targets(targets)
                    notes = self.new_notes(targets) if self.tracking else None
                if len(y) != rows * targets:
                    raise ValueError("the arrays do not fit together")
                while start < rows:
                    end = min(rows, start + min(self.block_rows, self.rows_until_look()))
                    span = slice(start * targets, end * targets)
                    work = self.prepared(
                        X[start:end], y[span], w[start:end], predictions is not None and asked
                    )
                    block, keys = work.X, work.keys
                    seen, fresh = np.zeros(len(X[0]) + 1, np.uint64), np.zeros(len(X[0]) + 1, "b")
                    if registration is not None and registration.fresh:
                        fresh.base[registration.fresh] = 1
                    # What is new comes into force with the first rows.
                    if registration is not None:
                        registration.commit()
                        if tables is not None:
                            self.become_several(tables, notes)
                    registration, tables = None, None
                    if ids is not None:
                        keys.base[:] = ids[start:end]
                    elif self.tracking:
                        self.set_keys(self.reference(), block, &fresh[0], &seen[0], &keys[0])
                    self.work = work
                    self.finish_work(None if predictions is None else predictions[span])
                    self.look_if_due()
                    start = end
                    self.block_rows = min(2 * self.block_rows, <Py_ssize_t>MOST_ROWS)
                    if atomic_load(&self.sharing.waiting) > 0:
                        self.block_rows = FEW_ROWS
                    with nogil:
                        self.sharing.let_readers_in()
            finally:
                stop_writing(self.sharing)
        finally:
            if not has_turn:
                give_turn(self.sharing)

    cdef void become_several(self, TargetTables tables, Notes notes) noexcept:
        """Be of several targets from now on, as nothing was learned yet."""
        self.use_targets(tables)
        if notes is not None:
            notes.unrecorded = min(self.notes.unrecorded, notes.most)
            self.notes = notes

    cdef Py_ssize_t rows_until_look(self) noexcept nogil:
        return self.rules.interval - <Py_ssize_t>self.rows % self.rules.interval

    cdef bint is_look_due(self) noexcept nogil:
        return self.rows > self.looked_at and self.rows_until_look() == self.rules.interval

    cdef int settle(self) except -1:
        """Do what is outstanding since something broke off."""
        self.finish_work(None)
        self.look_if_due()
        return 0

    cdef int look_if_due(self) except -1:
        """See who should be replaced, after so many rows; it may fail, and is then done later."""
        if self.is_look_due():
            self.renew(self)
        return 0

    cdef object prepared(self, X, y, w, at_once):
        """Rows that trees are to learn; once they are `work`, they count as learned."""
        before = [tree.rows for tree in self.trees]
        said = np.empty((len(self.trees), len(y)))
        return Work(np.ascontiguousarray(X), y, w, before, said, at_once)

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

    cdef int finish_work(self, double[::1] predictions) except -1:
        """Let all trees learn the rows that were accepted, and take in what they said."""
        cdef double[:, ::1] said
        cdef const double[:, ::1] X
        cdef const double[::1] y
        cdef const double[:] w
        cdef Py_ssize_t row, place, target, rows, at, targets = self.targets
        cdef Py_ssize_t trees = self.members + 1
        cdef MemberPredictions* together = self.tables.room
        cdef const uint64_t[::1] keys
        cdef const char[:, ::1] counts
        cdef bint at_once, hearing = targets > 1 and not self.all_heard
        if self.work is None:
            return 0
        self.let_trees_learn()
        said, X, y, w = self.work.said, self.work.X, self.work.y, self.work.w
        keys, at_once = self.work.keys, self.work.at_once
        rows = w.shape[0]
        counts = self.counts_of(self.work.w) if hearing else np.zeros((0, 0), "b")
        if self.tracking and self.notes.count > 0:
            self.notes.reserve(rows if at_once else 1)  # each row is left, and then taken
        with nogil:
            for row in range(rows):
                at = row * targets
                for target in range(targets):
                    for place in range(trees):
                        together[target].trees[place] = said[place, at + target]
                    self.say_together(target, together + target)
                    if predictions is not None:
                        predictions[at + target] = (
                            together[target].issued if self.rows > 0.0 else 0.0
                        )
                self.take_labels(
                    &X[row, 0] if X.shape[1] else NULL, &y[at], w[row], keys[row], at_once
                )
                if hearing:
                    for place in range(trees):
                        if counts[place, row]:
                            self.hear(place, &y[at])
            if hearing:
                self.count_heard()
        self.work = None
        self.tidy_notes()
        return 0

    def counts_of(self, w):
        """Return of each tree and row whether the row counts for the tree."""
        counts = np.ones((len(self.trees), len(w)), "b")
        for place in range(len(self.trees)):
            if self.records[place].rate > 0.0:
                counts[place] = self.drawn(place, w) > 0.0
        return counts

    cdef int let_trees_learn(self) except -1:
        """Let each tree learn its part, in other threads too if there are any; or raise."""
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
        """Let one tree after the other learn, as long as some are left."""
        for place in todo:
            self.let_tree_learn(place)

    def let_tree_learn(self, Py_ssize_t place):
        """Let a tree learn what it has not learned yet of the rows that were accepted."""
        cdef TreeKernel tree = self.trees[place]
        cdef Py_ssize_t row = 0, done
        cdef const double[:] view
        work = self.work
        weights = self.drawn(place, work.w) if self.records[place].rate > 0.0 else work.w
        done = <Py_ssize_t>(tree.rows - <double>work.before[place])
        if done == 0:
            tree.learn(work.X, work.y, weights, work.said[place])
            return
        view = weights
        while done > 0:
            done -= view[row] > 0.0
            row += 1
        at = row * self.targets
        tree.learn(work.X[row:], work.y[at:], weights[row:], work.said[place, at:])

    def predict(
        self, const double[:, ::1] X, double[::1] predictions, is_current=None, bint asked=True,
        const uint64_t[::1] ids=None,
    ):
        """Predict all rows; as `TreeKernel.predict`."""
        cdef Py_ssize_t row, place, target, at, start = 0, end, rows = X.shape[0]
        cdef Py_ssize_t trees = self.asked, targets, noted = 0
        cdef double[:, ::1] said
        cdef double[:, ::1] notes
        cdef uint64_t[::1] keys
        cdef unsigned char[::1] room
        cdef MemberPredictions* together
        cdef TreeKernel tree
        self.begin_reading()
        try:
            if is_current is not None and not is_current():
                return False
            targets = self.targets
            if rows * targets != predictions.shape[0]:
                raise ValueError("the arrays do not fit together")
            if self.rows == 0.0:
                predictions[:] = 0.0
                if self.tracking and asked and ids is None:
                    count_blanks(self.notes, rows)
                return True
            if self.tracking and self.rows == self.begun:
                if ids is None:
                    count_blanks(self.notes, rows)
            elif self.tracking and asked:
                noted = min(rows, self.notes.most)
            notes = np.empty((noted, self.notes.width if noted else 0))
            keys = np.empty(noted, np.uint64)
            room = np.zeros(targets * sizeof(MemberPredictions), np.uint8)
            together = <MemberPredictions*>&room[0]
            tree = self.reference()
            while start < rows:
                end = min(rows, start + 4096)
                said = np.empty((trees, (end - start) * targets))
                for place in range(trees):
                    self.trees[place].predict(X[start:end], said[place])
                with nogil:
                    for row in range(start, end):
                        at = (row - start) * targets
                        for target in range(targets):
                            for place in range(trees):
                                together[target].trees[place] = said[place, at + target]
                            self.say_together(target, together + target)
                            predictions[row * targets + target] = together[target].issued
                        if row >= rows - noted:
                            keys[row - rows + noted] = note_key(
                                tree, &X[row, 0] if X.shape[1] else NULL, 0, NULL
                            )
                            self.take_down(together, &notes[row - rows + noted, 0])
                start = end
            if noted:
                # What was said is remembered when all of it was said.
                self.notes.reserve(noted)
                for row in range(noted):
                    memcpy(
                        self.notes.leave(keys[row] if ids is None else ids[rows - noted + row]),
                        &notes[row, 0],
                        self.notes.width * sizeof(double),
                    )
        finally:
            self.sharing.end_reading()
        return True

    # -- who may read or change it ----------------------------------------------------------------

    def read_locked(self, read, *arguments):
        """Return what a function returns, while which nothing is changed."""
        self.begin_reading()
        try:
            return read(*arguments)
        finally:
            self.sharing.end_reading()

    def write_locked(self, learn, *arguments):
        """Return what a function returns, while which no other thread learns."""
        take_turn(self.sharing)
        try:
            return learn(*arguments)
        finally:
            give_turn(self.sharing)

    def change_locked(self, change, *arguments):
        """Return what a function returns that changes trees, while which nobody reads or learns."""
        take_turn(self.sharing)
        try:
            start_writing(self.sharing)
            try:
                self.settle()
                return change(*arguments)
            finally:
                stop_writing(self.sharing)
        finally:
            give_turn(self.sharing)

    cdef int begin_reading(self) except -1:
        """Wait until one may read, and until no work is outstanding."""
        self.sharing.begin_reading()
        while self.work is not None or self.is_look_due():
            self.sharing.end_reading()
            take_turn(self.sharing)
            try:
                start_writing(self.sharing)
                self.settle()
            finally:
                stop_writing(self.sharing)
                give_turn(self.sharing)
            self.sharing.begin_reading()
        return 0
