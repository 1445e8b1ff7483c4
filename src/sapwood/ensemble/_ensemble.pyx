"""Trees that learn the same rows: in blocks, each tree on its own, and then all of them together.

A block of rows is accepted as a whole. Should anything break off while trees learn it, the rest is
done before the next row is learned or anything is read: no tree ever misses a row, and none learns
one twice. What the trees said of the block is then taken in row by row, without the GIL.
"""

import numpy as np
from libc.math cimport fabs, sqrt
from libc.stdint cimport uint64_t
from libc.string cimport memcpy

from sapwood.blend._blend cimport (
    BlendRules, blend_doubles, blended, judge_blend, settle_blend, start_blend, weights_of,
)
from sapwood.blend._layer cimport follow, judge, layer_rules, say, start_layer
from sapwood.rows._dict_row cimport RowReader
from sapwood.tree._growth cimport decide
from sapwood.tree._kernel cimport Outlook, TreeKernel
from sapwood.tree._memory cimport measure_if_due
from sapwood.tree._relay cimport Registration
from sapwood.tree._sharing cimport Sharing, give_turn, start_writing, stop_writing, take_turn
from sapwood.tree._walk cimport leaf_of

from sapwood.blend._layer import fresh_layer
from sapwood.ensemble._workers cimport Worker
from sapwood.ensemble._draws cimport MOST_COPIES, copies_of, key_of
from sapwood.ensemble._workers import give_back, take_workers
from sapwood.ensemble.layout import RULES, TREE_RECORD
from sapwood.tree._kernel import refuse_row

cdef enum:
    STACK = 0  # members weighted by a blend around their mean
    DUEL = 1   # a tree and its challenger, by their errors
    MOST_ROWS = 500  # of a block
    SWEEPS = 2  # by which the weights of members are improved, each time
    FEWEST_SHARED = 16  # rows of a block that several threads work on

# The stack's weights are computed again after so many rows, and after each of the first.
cdef double SETTLING_ROWS = 10.0
# What is left a row later of the sums by which a challenger is ahead.
cdef double LEAD_FADE = 0.999
# As in a tree: from so many rows on, a y is held within so many usual squared errors of its
# prediction, or within this share of the range of y.
cdef double HELD_ROWS = 100.0
cdef double HELD_ERROR = 1000.0
cdef double HELD_RANGE = 0.25
# Weights of rows are multiplied by draws, and the sum of all may not exceed what a tree bears.
cdef double LARGEST_Y = 1e100
cdef double LARGEST_WEIGHT = 1e48


class Work:
    """Rows that were accepted, and how many rows each tree had learned before."""

    __slots__ = ("X", "before", "said", "w", "y")

    def __init__(self, X, y, w, before, said):
        self.X, self.y, self.w, self.before, self.said = X, y, w, before, said


cdef class EnsembleKernel:
    """Trees, and what they say together.

    Parameters
    ----------
    rules : record
        As in `sapwood.ensemble.rules`.
    trees : list of TreeKernel
        All of them empty: the members, and last the one that waits to replace one of them.
    tree_table : array of TREE_RECORD
        What is known of each of them.
    thresholds : dict of float to array of uint64
        By which the draws of a mean become weights.
    tracking : bool
        Whether there is a last layer.
    renew : callable
        Is called with the kernel whenever so many rows were learned as the rules say; it has to
        call `end_look`.
    lifetime : float
        The rows after which the reserve starts anew, if it has not replaced anybody.
    threads : int
        How many threads learn a batch.
    """

    def __cinit__(self, *arguments, **named):
        self.sharing = Sharing()

    def __init__(
        self, rules, list trees, tree_table, thresholds, bint tracking, renew, double lifetime,
        Py_ssize_t threads,
    ):
        cdef const unsigned char[::1] rule_bytes = np.frombuffer(rules.tobytes(), np.uint8)
        if RULES.itemsize != sizeof(EnsembleRules) or TREE_RECORD.itemsize != sizeof(TreeRecord):
            raise RuntimeError("the records of the kernel and of Python differ")
        if not 2 <= len(trees) <= MOST_TREES or len(tree_table) != len(trees):
            raise ValueError(f"there cannot be {len(trees)} trees")
        memcpy(&self.rules, &rule_bytes[0], sizeof(EnsembleRules))
        self.trees, self.members = trees, len(trees) - 1
        self.tracking = tracking
        self.renew, self.thresholds, self.threads = renew, thresholds, threads
        self.lifetime, self.events = lifetime, []
        self.use_tables(tree_table, np.zeros(blend_doubles(self.members)), fresh_layer())
        cdef BlendRules blend_rules = self.blend_rules()
        start_blend(self.blend, self.members, &blend_rules)

    def use_tables(self, tree_table, double[::1] blend, double[::1] layer):
        """Take over what is remembered of trees, their weights, and the last layer."""
        cdef unsigned char[::1] records = tree_table.view(np.uint8)
        self.tree_table, self.blend_table, self.layer_table = tree_table, blend.base, layer.base
        self.records = <TreeRecord*>&records[0]
        self.blend, self.layer = &blend[0], <LayerState*>&layer[0]

    def use_trees(self, list trees, tree_table, blend, layer, double lifetime, list events):
        """Take over trees that were saved, and what was known of them."""
        if len(trees) != len(self.trees):
            raise ValueError(f"there are {len(trees)} trees, not {len(self.trees)}")
        self.trees, self.lifetime, self.events = trees, lifetime, events
        self.use_tables(tree_table, blend, layer)

    def set_stream(self, rows, weight, low, high, usual, looked_at, lead, lead_square):
        """Restore what is known of all rows."""
        self.rows, self.weight, self.low, self.high = rows, weight, low, high
        self.usual, self.looked_at = usual, looked_at
        self.lead, self.lead_square = lead, lead_square

    cdef BlendRules blend_rules(self) noexcept nogil:
        return BlendRules(
            self.rules.fade, self.rules.precision, self.rules.centre, self.rules.most
        )

    # -- what is said ---------------------------------------------------------------------------

    cdef void say_together(self, Said* said) noexcept nogil:
        """Say what comes of what the trees said."""
        cdef Py_ssize_t tree
        cdef double share
        if self.rules.combine == DUEL:
            share = self.challenger_share()
            said.base = said.trees[0]
            said.together = said.base + share * (said.trees[1] - said.base)
        else:
            said.base = 0.0
            for tree in range(self.members):
                said.base += said.trees[tree]
            said.base /= self.members
            said.together = blended(self.blend, self.members, said.base, said.trees)
        said.saying.prediction = said.together
        if self.tracking:
            say(self.layer, layer_rules(), said.together, self.rows, &said.saying)

    cdef double challenger_share(self) noexcept nogil:
        """The share of the challenger, once it is old enough: by both errors to the power -4."""
        cdef const TreeRecord* main = self.records
        cdef const TreeRecord* other = self.records + 1
        cdef double ratio
        if self.rows - other.born < self.rules.duel_age or other.weight <= 0.0:
            return 0.0
        if main.square * other.weight == 0.0:
            return 0.0
        ratio = other.square * main.weight / (main.square * other.weight)
        ratio *= ratio
        return 1.0 / (1.0 + ratio * ratio)

    cdef void take_label(self, Said* said, double y, double w) noexcept nogil:
        """Judge what was said of a row, by its label."""
        cdef BlendRules blend_rules = self.blend_rules()
        cdef Py_ssize_t tree
        cdef TreeRecord* record
        cdef double error
        if self.rows == 0.0:
            self.low = self.high = y
            start_layer(self.layer, layer_rules(), y)
        else:
            y = self.held_near(y, said.saying.prediction)
            for tree in range(self.members + 1):
                record = self.records + tree
                if self.rows > record.born:
                    error = y - said.trees[tree]
                    record.square = self.rules.error_fade * record.square + w * error * error
                    record.weight = self.rules.error_fade * record.weight + w
            if self.rules.combine == DUEL and self.rows > self.records[1].born:
                error = (y - said.trees[0]) * (y - said.trees[0])
                error -= (y - said.trees[1]) * (y - said.trees[1])
                self.lead = LEAD_FADE * self.lead + w * error
                self.lead_square = LEAD_FADE * self.lead_square + w * error * error
            if self.rules.combine == STACK:
                judge_blend(
                    self.blend, self.members, &blend_rules, said.base, said.trees,
                    said.together, y, w, 1.0,
                )
                if self.rows < SETTLING_ROWS or self.rows % SETTLING_ROWS == 0.0:
                    settle_blend(self.blend, self.members, &blend_rules, SWEEPS)
            if self.tracking:
                judge(self.layer, layer_rules(), &said.saying, y, w, self.rows)
                follow(self.layer, said.together, y, w)
        self.low = y if y < self.low else self.low
        self.high = y if y > self.high else self.high
        self.rows += 1.0
        self.weight += w

    cdef double held_near(self, double y, double prediction) noexcept nogil:
        """A y as it is learned: not farther from its prediction than is credible."""
        cdef double error = y - prediction, square = error * error
        cdef double least = HELD_RANGE * (self.high - self.low)
        cdef double limit = HELD_ERROR * self.usual
        limit = limit if limit > least * least else least * least
        if square > limit and limit > 0.0 and self.rows >= HELD_ROWS:
            square = limit
            y = prediction + (sqrt(limit) if error > 0.0 else -sqrt(limit))
        self.usual += (square - self.usual) / HELD_ERROR
        return y

    def say(self, const double[::1] row):
        """Return what each tree, their mean, all of them by their weights, and the last layer say.

        Returns
        -------
        tuple
            The predictions of the trees, their weights, the mean, what they say together, and what
            is predicted.
        """
        cdef Said said
        cdef Py_ssize_t place, trees = self.members + 1
        cdef double[::1] one = np.empty(1)
        self.begin_reading()
        try:
            for place in range(trees):
                self.trees[place].predict(row.base[None, :], one)
                said.trees[place] = one[0]
            self.say_together(&said)
        finally:
            self.sharing.end_reading()
        return (
            [said.trees[place] for place in range(trees)], self.weights(), said.base,
            said.together, said.saying.prediction,
        )

    def weights(self):
        """Return the share of each tree in what they say together."""
        cdef Py_ssize_t place
        cdef double share, rest = 1.0
        if self.rules.combine == DUEL:
            share = self.challenger_share()
            return [1.0 - share, share]
        shares = [weights_of(self.blend)[place] for place in range(self.members)]
        rest -= sum(shares)
        return [share + rest / self.members for share in shares] + [0.0]

    # -- one row --------------------------------------------------------------------------------

    def predict_one(self, RowReader reader not None, x):
        """Predict a row, or return None if the reader cannot read it as it is."""
        cdef Said said
        cdef Outlook outlook
        cdef TreeKernel tree
        cdef Py_ssize_t place
        self.begin_reading()
        try:
            if not reader.fill(x, False) or reader.width != (<TreeKernel>self.trees[0]).features:
                return None
            if self.rows == 0.0:
                return 0.0
            for place in range(self.members + 1):
                tree = <TreeKernel>self.trees[place]
                said.trees[place] = 0.0
                if tree.rows > 0.0:
                    outlook.leaf = leaf_of(tree.nodes, reader.values)
                    tree.look(reader.values, tree.scratch, &outlook)
                    said.trees[place] = outlook.saying.prediction
            self.say_together(&said)
        finally:
            self.sharing.end_reading()
        return said.saying.prediction

    def learn_one(self, RowReader reader not None, x, double y, double w):
        """Learn a row, if the reader can read it as it is; return whether it was."""
        take_turn(self.sharing)
        try:
            if not (fabs(y) <= LARGEST_Y and 0.0 < w and self.weight + w <= LARGEST_WEIGHT):
                refuse_row(y, w)
            start_writing(self.sharing)
            if not reader.fill(x, True) or reader.width != (<TreeKernel>self.trees[0]).features:
                return False
            self.settle()
            self.learn_row(reader.values, y, w)
            self.look_if_due()
        finally:
            stop_writing(self.sharing)
            give_turn(self.sharing)
        return True

    cdef int learn_row(self, const double* row, double y, double w) except -1:
        """Learn a row: first what may fail, then what cannot, then what may be done later."""
        cdef Said said
        cdef Outlook[MOST_TREES] outlooks
        cdef double[MOST_TREES] weights
        cdef TreeKernel tree
        cdef Py_ssize_t place, trees = self.members + 1
        for place in range(trees):
            tree = <TreeKernel>self.trees[place]
            weights[place] = w * self.copies(place)
            tree.settle()
            outlooks[place].leaf = leaf_of(tree.nodes, row)
            if weights[place] > 0.0:
                measure_if_due(tree)
                tree.make_ready(outlooks[place].leaf, weights[place])
        for place in range(trees):
            tree = <TreeKernel>self.trees[place]
            if weights[place] > 0.0:
                tree.learn_row(row, y, weights[place], 0, True, &outlooks[place])
            else:
                tree.look(row, tree.scratch, &outlooks[place])
            said.trees[place] = outlooks[place].saying.prediction
        self.say_together(&said)
        self.take_label(&said, y, w)
        for place in range(trees):
            tree = <TreeKernel>self.trees[place]
            if tree.leaves[outlooks[place].leaf].weight >= tree.leaves[outlooks[place].leaf].due:
                tree.pending = outlooks[place].leaf
        for place in range(trees):
            tree = <TreeKernel>self.trees[place]
            if tree.pending >= 0:
                decide(tree, tree.pending)
            tree.drop_spares()
        return 0

    cdef double copies(self, Py_ssize_t place) except -1.0:
        """How often the next row counts for a tree."""
        cdef TreeRecord* record = self.records + place
        cdef const uint64_t[::1] thresholds
        cdef double copies
        if record.rate == 0.0:
            return 1.0
        thresholds = self.thresholds[record.rate]
        copies = copies_of(
            key_of(self.rules.seed, record.number), <uint64_t>self.rows, &thresholds[0]
        )
        return max(copies, 1.0) if self.rows == record.born else copies

    # -- many rows ------------------------------------------------------------------------------

    def check(self, const double[::1] y, const double[:] w):
        """Return the first row that may not be learned, or -1; nothing is changed."""
        cdef Py_ssize_t row, bad = -1
        cdef double weight = self.weight
        with nogil:
            for row in range(y.shape[0]):
                weight += w[row]
                if not (fabs(y[row]) <= LARGEST_Y and 0.0 < w[row] and weight <= LARGEST_WEIGHT):
                    bad = row
                    break
        return bad

    def learn(self, X, y, w, predictions=None, register=None):
        """Learn rows; as `TreeKernel.learn`."""
        cdef Py_ssize_t rows = len(y), start = 0, end
        cdef Registration registration = None
        cdef bint has_turn = self.sharing.is_turn_of_this_thread()
        if not has_turn:
            take_turn(self.sharing)
        try:
            start_writing(self.sharing)
            try:
                self.settle()
                if register is not None and rows > 0:
                    registration = register()
                while start < rows:
                    end = min(rows, start + min(<Py_ssize_t>MOST_ROWS, self.rows_until_look()))
                    work = self.prepared(X[start:end], y[start:end], w[start:end])
                    # What is new comes into force with the first rows.
                    if registration is not None:
                        registration.commit()
                        registration = None
                    self.work = work
                    self.finish_work(None if predictions is None else predictions[start:end])
                    self.look_if_due()
                    start = end
                    with nogil:
                        self.sharing.let_readers_in()
            finally:
                stop_writing(self.sharing)
        finally:
            if not has_turn:
                give_turn(self.sharing)

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

    cdef object prepared(self, X, y, w):
        """Rows that trees are to learn; once they are `work`, they count as learned."""
        before = [tree.rows for tree in self.trees]
        said = np.empty((len(self.trees), len(y)))
        weights = np.empty((len(self.trees), len(y)))
        self.draw(w, weights)
        return Work(np.ascontiguousarray(X), y, (weights, w), before, said)

    def draw(self, const double[:] w, double[:, ::1] weights):
        """Set the weight of each row for each tree."""
        cdef Py_ssize_t place, row, rows = w.shape[0]
        cdef TreeRecord* record
        cdef const uint64_t[::1] thresholds
        cdef uint64_t key
        for place in range(self.members + 1):
            record = self.records + place
            if record.rate == 0.0:
                for row in range(rows):
                    weights[place, row] = w[row]
                continue
            thresholds = self.thresholds[record.rate]
            key = key_of(self.rules.seed, record.number)
            for row in range(rows):
                weights[place, row] = w[row] * copies_of(
                    key, <uint64_t>(self.rows + row), &thresholds[0]
                )
            if self.rows == record.born and rows:
                # The first row of a tree counts in any case, so that there is something to say.
                weights[place, 0] = max(weights[place, 0], w[0])

    cdef int finish_work(self, double[::1] predictions) except -1:
        """Let all trees learn the rows that were accepted, and take in what they said."""
        cdef double[:, ::1] said
        cdef const double[::1] y
        cdef const double[:] w
        cdef Py_ssize_t row, place, rows, trees = self.members + 1
        cdef Said together
        if self.work is None:
            return 0
        self.let_trees_learn()
        said, y, w = self.work.said, self.work.y, self.work.w[1]
        rows = y.shape[0]
        with nogil:
            for row in range(rows):
                for place in range(trees):
                    together.trees[place] = said[place, row]
                self.say_together(&together)
                if predictions is not None:
                    predictions[row] = together.saying.prediction if self.rows > 0.0 else 0.0
                self.take_label(&together, y[row], w[row])
        self.work = None
        return 0

    cdef int let_trees_learn(self) except -1:
        """Let each tree learn its part, in other threads too if there are any; or raise."""
        cdef Worker worker
        todo = iter(range(self.members + 1))
        kept, workers = None, []
        if self.threads > 1 and len(self.work.y) >= FEWEST_SHARED:
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

    def learn_next(self, todo):
        """Let one tree after the other learn, as long as some are left."""
        for place in todo:
            self.let_tree_learn(place)

    def let_tree_learn(self, Py_ssize_t place):
        """Let a tree learn what it has not learned yet of the rows that were accepted."""
        cdef TreeKernel tree = self.trees[place]
        cdef Py_ssize_t row = 0, done
        work = self.work
        weights = work.w[0][place]
        cdef const double[::1] view = weights
        done = <Py_ssize_t>(tree.rows - <double>work.before[place])
        while done > 0:
            done -= view[row] > 0.0
            row += 1
        tree.learn(work.X[row:], work.y[row:], weights[row:], work.said[place, row:])

    def predict(self, const double[:, ::1] X, double[::1] predictions, is_current=None):
        """Predict all rows; as `TreeKernel.predict`."""
        cdef Py_ssize_t row, place, start = 0, end, rows = X.shape[0], trees = self.members + 1
        cdef double[:, ::1] said
        cdef Said together
        if rows != predictions.shape[0]:
            raise ValueError("the arrays do not fit together")
        self.begin_reading()
        try:
            if is_current is not None and not is_current():
                return False
            if self.rows == 0.0:
                predictions[:] = 0.0
                return True
            while start < rows:
                end = min(rows, start + 4096)
                said = np.empty((trees, end - start))
                for place in range(trees):
                    self.trees[place].predict(X[start:end], said[place])
                with nogil:
                    for row in range(start, end):
                        for place in range(trees):
                            together.trees[place] = said[place, row - start]
                        self.say_together(&together)
                        predictions[row] = together.saying.prediction
                start = end
        finally:
            self.sharing.end_reading()
        return True

    # -- who may read or change it ----------------------------------------------------------------

    def while_still(self, read, *arguments):
        """Return what a function returns, while which nothing is changed."""
        self.begin_reading()
        try:
            return read(*arguments)
        finally:
            self.sharing.end_reading()

    def in_turn(self, learn, *arguments):
        """Return what a function returns, while which no other thread learns."""
        take_turn(self.sharing)
        try:
            return learn(*arguments)
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

    # -- who is replaced --------------------------------------------------------------------------

    def end_look(
        self, double lifetime, list events not None, Py_ssize_t member=-1, TreeKernel fresh=None,
        record=None,
    ):
        """Remember that it was looked, and let who has earned it take another's place.

        Parameters
        ----------
        lifetime : float
            The rows after which the reserve starts anew.
        events : list
            What has happened so far.
        member : int
            Whose place the reserve takes; its own if it only starts anew; -1 for nobody's.
        fresh : TreeKernel, optional
            The new reserve.
        record : record, optional
            What is known of it.
        """
        cdef Py_ssize_t reserve = self.members
        cdef list trees = list(self.trees)
        cdef unsigned char[::1] records
        table = self.tree_table.copy()
        if member >= 0:
            if member > reserve or fresh is None:
                raise IndexError(member)
            trees[member], table[member] = trees[reserve], table[reserve]
            trees[reserve], table[reserve] = fresh, record
        records = table.view(np.uint8)
        # Nothing can fail from here on.
        self.trees, self.tree_table, self.events = trees, table, events
        self.records = <TreeRecord*>&records[0]
        self.lifetime, self.looked_at = lifetime, self.rows
        if member >= 0:
            self.lead = self.lead_square = 0.0
