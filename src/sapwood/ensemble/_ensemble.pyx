"""Trees that learn the same rows: in blocks, each tree on its own, and then all of them together.

A block of rows is accepted as a whole. Should anything break off while trees learn it, the rest is
done before the next row is learned or anything is read: no tree ever misses a row, and none learns
one twice. What the trees said of the block is then taken in row by row, without the GIL.
"""

import numpy as np
from libc.math cimport fabs
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy, memset

from sapwood.blend._blend cimport (
    BlendRules, blend_doubles, blended, judge_blend, settle_blend, start_blend, weights_of,
)
from sapwood.blend._evidence cimport LATE
from sapwood.blend._layer cimport Saying, follow, judge, layer_rules, say, start_layer
from sapwood.blend._notes cimport (
    LEAST_ROOM, Notes, count_at_once, count_blanks, take_blank, value_key,
)
from sapwood.drift._detector cimport SHIFTS, Detector, Found, see
from sapwood.rows._dict_row cimport RowReader
from sapwood.tree._growth cimport decide
from sapwood.tree._guard cimport admissible, held_near
from sapwood.tree._kernel cimport TreeKernel
from sapwood.tree._learning cimport learn_row
from sapwood.tree._levels cimport HEAD, is_known
from sapwood.tree._memory cimport measure_if_due
from sapwood.tree._outlook cimport Outlook, look, with_levels
from sapwood.tree._recall cimport note_key
from sapwood.tree._records cimport CATEGORIES
from sapwood.tree._relay cimport Registration
from sapwood.tree._sharing cimport Sharing, give_turn, start_writing, stop_writing, take_turn
from sapwood.tree._walk cimport leaf_of

from sapwood.blend._layer import fresh_layer
from sapwood.ensemble._workers cimport Worker
from sapwood.ensemble._draws cimport copies_of, key_of
from sapwood.ensemble._workers import give_back, take_workers
from sapwood.ensemble.layout import RULES, TREE_RECORD
from sapwood.tree._kernel import refuse_row

DETECTOR_DOUBLES = sizeof(Detector) // sizeof(double)

cdef enum:
    STACK = 0  # members weighted by a blend around their mean
    DUEL = 1   # a tree and its challenger, by their errors
    MOST_ROWS = 500  # of a block
    SWEEPS = 2  # by which the weights of members are improved, each time
    FEWEST_SHARED = 16  # rows of a block that several threads work on

# The stack's weights are computed again after so many rows, and after each of the first.
cdef Py_ssize_t SETTLING_ROWS = 10
# What is left a row later of the sums by which a challenger is ahead.
cdef double LEAD_FADE = 0.999
# Within which a lead is held, so that its square is finite, whatever the weight of its row.
cdef double LARGEST_LEAD = 1e120
# The evidence at which errors are said to have become larger; rows before a tree is compared with
# what was predicted, as it has hardly begun.
cdef double ALARM = 1e6
cdef double HARDLY_BEGUN = 100.0
# Weights of rows are multiplied by draws, and the sum of all may not exceed what a tree bears.
cdef double LARGEST_WEIGHT = 1e48


cdef inline void add_lead(
    double error, double other, double w, double* lead, double* square
) noexcept nogil:
    """Add what another's squared error is less by, and the square of that, to what fades."""
    cdef double ahead = error * error - other * other
    ahead = min(max(ahead, -LARGEST_LEAD), LARGEST_LEAD)
    lead[0] = LEAD_FADE * lead[0] + w * ahead
    square[0] = LEAD_FADE * square[0] + w * ahead * ahead


cdef Py_ssize_t SAYING_DOUBLES = sizeof(Saying) // sizeof(double)


def note_doubles(Py_ssize_t trees):
    """Return how many doubles a note of what so many trees said has."""
    return SAYING_DOUBLES + 2 + trees


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
        self.keys = np.zeros(len(y), np.uint64)


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
    most_notes : int
        Of how many rows it is remembered what was said, until their labels come.
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
        self, rules, list trees, tree_table, thresholds, bint tracking,
        Py_ssize_t most_notes, renew, double lifetime,
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
        if tracking:
            self.notes = Notes(note_doubles(len(trees)), most_notes)
        self.renew, self.thresholds, self.threads = renew, thresholds, threads
        self.lifetime, self.events = lifetime, []
        # A reserve has no say in a stack, but is judged by what it would have said.
        self.asked = len(trees) if tracking or self.rules.combine == DUEL else self.members
        self.use_tables(tree_table, self.fresh_blend(), fresh_layer(), np.zeros(DETECTOR_DOUBLES))

    def fresh_blend(self):
        """Return the doubles of weights of which nothing is known."""
        cdef double[::1] blend = np.zeros(blend_doubles(self.members))
        cdef BlendRules blend_rules = self.blend_rules()
        start_blend(&blend[0], self.members, &blend_rules)
        return blend.base

    def use_tables(
        self, tree_table, double[::1] blend, double[::1] layer, double[::1] detector
    ):
        """Take over what is remembered of trees, their weights, the last layer, and of errors."""
        cdef unsigned char[::1] records = tree_table.view(np.uint8)
        tables = blend.base, layer.base, detector.base
        # Nothing can fail from here on.
        self.tree_table = tree_table
        self.blend_table, self.layer_table, self.detector_table = tables
        self.records = <TreeRecord*>&records[0]
        self.blend, self.layer = &blend[0], <LayerState*>&layer[0]
        self.detector = <Detector*>&detector[0]

    def use_trees(
        self, list trees, tree_table, blend, layer, detector, double lifetime, list events
    ):
        """Take over trees that were saved, and what was known of them."""
        if len(trees) != len(self.trees):
            raise ValueError(f"there are {len(trees)} trees, not {len(self.trees)}")
        self.trees, self.lifetime, self.events = trees, lifetime, events
        self.use_tables(tree_table, blend, layer, detector)

    def set_stream(
        self, rows, weight, low, high, usual, looked_at, lead, lead_square, gain, gain_square,
        begun, changed, calm, stir,
    ):
        """Restore what is known of all rows."""
        self.rows, self.weight, self.low, self.high = rows, weight, low, high
        self.usual, self.looked_at = usual, looked_at
        self.lead, self.lead_square = lead, lead_square
        self.gain, self.gain_square, self.begun = gain, gain_square, begun
        self.changed, self.calm, self.stir = changed, calm, stir

    cdef BlendRules blend_rules(self) noexcept nogil:
        return BlendRules(
            self.rules.fade, self.rules.precision, self.rules.centre, self.rules.most
        )

    # -- what is said ---------------------------------------------------------------------------

    cdef void say_together(self, Said* said) noexcept nogil:
        """Say what comes of what the trees said."""
        cdef Py_ssize_t tree
        cdef double share
        if self.rows == self.begun:
            # But for the first tree, all have yet to learn.
            memset(&said.saying, 0, sizeof(Saying))
            said.base = said.together = said.saying.prediction = said.trees[0]
            said.saying.known = self.rows
            return
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
        said.saying.prediction, said.saying.known = said.together, self.rows
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

    cdef TreeKernel reference(self):
        """A tree that has learned each row."""
        return <TreeKernel>self.trees[self.members - 1]

    cdef void set_keys(
        self, TreeKernel tree, const double[:, ::1] X, const char* fresh, uint64_t* seen,
        uint64_t* keys,
    ) noexcept nogil:
        """Set by what the notes about rows are found: the values that they were predicted from.

        So neither a fresh feature nor a category of which nothing was learned is among them, up to
        the row that brings it. Of a feature, `seen` gets a bit for each category that is known.
        """
        cdef Py_ssize_t row, feature, code
        cdef uint64_t bit
        cdef double value
        cdef const double* many
        for feature in range(X.shape[1]):
            seen[feature] = 0 if fresh[feature] else ~<uint64_t>0
            if tree.is_category[feature]:
                seen[feature] = 0
                for code in range(CATEGORIES):
                    if tree.levels[2 * (CATEGORIES * feature + code)] > 0.0:
                        seen[feature] |= <uint64_t>1 << code
        for row in range(X.shape[0]):
            keys[row] = 0
            many = tree.many_levels
            for feature in range(X.shape[1]):
                value = X[row, feature]
                if tree.has_many and tree.places[feature] >= 0:
                    if is_known(many, tree.places[feature], value) or came_before(X, row, feature):
                        keys[row] += value_key(value, feature)
                    many += 2 * (HEAD + tree.places[feature])
                    continue
                if value != value:
                    continue
                bit = ~<uint64_t>0
                if tree.is_category[feature]:
                    bit = <uint64_t>1 << <Py_ssize_t>value
                if seen[feature] & bit:
                    keys[row] += value_key(value, feature)
                seen[feature] |= bit

    cdef void take_down(self, const Said* said, double* note) noexcept nogil:
        """Write down what was said of a row; how many labels were known comes first."""
        cdef Py_ssize_t tree
        (<Saying*>note)[0] = said.saying
        note += SAYING_DOUBLES
        note[0], note[1] = said.base, said.together
        for tree in range(self.members + 1):
            note[2 + tree] = said.trees[tree]

    cdef bint recall(
        self, const Said* now, uint64_t key, bint at_once, Said* then
    ) noexcept nogil:
        """Set what was said when a row was predicted; what is said now of one that never was.

        Returns whether it was predicted, if only now.
        """
        cdef const double* found
        cdef Py_ssize_t tree
        then[0] = now[0]
        if not self.tracking:
            return at_once
        if self.notes.count > 0:
            if at_once:
                self.take_down(now, self.notes.leave(key))
            found = self.notes.take(key, self.rows)
            if found != NULL:
                then.saying = (<const Saying*>found)[0]
                found += SAYING_DOUBLES
                then.base, then.together = found[0], found[1]
                for tree in range(self.members + 1):
                    if self.records[tree].born < then.saying.known:
                        then.trees[tree] = found[2 + tree]
                return True
        if at_once:
            count_at_once(self.notes)
        elif self.notes.count == 0:
            take_blank(self.notes)
        return at_once

    cdef void take_label(
        self, Said* now, double y, double w, uint64_t key, bint at_once
    ) noexcept nogil:
        """Judge what was said of a row, by its label.

        If it was never predicted, trees are judged by what they say now; the last layer is not, as
        it would seem to follow more closely than it will. If it was, a tree that has begun since
        is not judged: what it says now would seem better than what others said then.
        """
        cdef BlendRules blend_rules = self.blend_rules()
        cdef Said then
        cdef Said* said = &then
        cdef bint was_asked
        cdef Py_ssize_t tree, rows
        cdef TreeRecord* record
        cdef double error
        if self.rows == self.begun:
            self.low = self.high = y
            start_layer(self.layer, layer_rules(), y)
            if self.tracking and not at_once:
                take_blank(self.notes)
        else:
            y = held_near(
                y, now.saying.prediction, self.rows - self.begun, self.low, self.high, &self.usual
            )
            was_asked = self.recall(now, key, at_once, &then)
            for tree in range(self.members + 1):
                record = self.records + tree
                if said.saying.known > record.born:
                    error = y - said.trees[tree]
                    record.square = self.rules.error_fade * record.square + w * error * error
                    record.weight = self.rules.error_fade * record.weight + w
            if self.rules.combine == DUEL and said.saying.known > self.records[1].born:
                add_lead(
                    y - said.trees[0], y - said.trees[1], w, &self.lead, &self.lead_square
                )
            if self.rules.combine == STACK:
                judge_blend(
                    self.blend, self.members, &blend_rules, said.base, said.trees,
                    said.together, y, w, 1.0,
                )
                rows = <Py_ssize_t>self.rows
                if self.rows - self.begun < SETTLING_ROWS or rows % SETTLING_ROWS == 0:
                    settle_blend(self.blend, self.members, &blend_rules, SWEEPS)
            self.watch(said, y, w)
            if self.tracking:
                if was_asked:
                    judge(self.layer, layer_rules(), &said.saying, y, w, self.rows)
                follow(self.layer, now.together, y, w)
        self.low = y if y < self.low else self.low
        self.high = y if y > self.high else self.high
        self.rows += 1.0
        self.weight += w

    cdef void watch(self, const Said* said, double y, double w) noexcept nogil:
        """See whether errors become larger, and whether the last tree would have erred less.

        That is so only of rows that it was asked for when they were predicted.
        """
        cdef double error = y - said.saying.prediction, other
        cdef Found found
        self.stir += fabs(error)
        if see(self.detector, fabs(error), ALARM, 0, SHIFTS, &found):
            self.changed = self.rows - (self.detector.rows - found.since)
            self.calm = found.before
            self.stir = found.after * (self.rows + 1.0 - self.changed)
        if said.saying.known >= self.records[self.members].born + HARDLY_BEGUN:
            other = y - said.trees[self.members]
            add_lead(error, other, w, &self.gain, &self.gain_square)

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
        cdef uint64_t key
        cdef const double* row
        self.begin_reading()
        try:
            if not reader.fill(x, False) or reader.width != (<TreeKernel>self.trees[0]).features:
                return None
            if self.rows == 0.0:
                if self.tracking:
                    count_blanks(self.notes, 1)
                return 0.0
            for place in range(self.asked):
                tree = <TreeKernel>self.trees[place]
                said.trees[place] = 0.0
                if tree.rows > 0.0:
                    row = with_levels(tree, reader.values, tree.room)
                    outlook.leaf = leaf_of(tree.nodes, row)
                    look(tree, row, tree.scratch, &outlook)
                    said.trees[place] = outlook.saying.prediction
            self.say_together(&said)
            if self.tracking and self.rows == self.begun:
                count_blanks(self.notes, 1)
            elif self.tracking:
                self.notes.reserve(1)
                key = note_key(self.reference(), reader.values, 0, NULL)
                self.take_down(&said, self.notes.leave(key))
        finally:
            self.sharing.end_reading()
        return said.saying.prediction

    def learn_one(self, RowReader reader not None, x, double y, double w):
        """Learn a row, if the reader can read it as it is; return whether it was."""
        take_turn(self.sharing)
        try:
            if not admissible(y, w, self.weight + w, LARGEST_WEIGHT):
                refuse_row(y, w)
            start_writing(self.sharing)
            if not reader.fill(x, True) or reader.width != (<TreeKernel>self.trees[0]).features:
                return False
            self.settle()
            self.learn_row(reader.values, y, w)
            self.tidy_notes()
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
        cdef const uint64_t[::1] thresholds
        cdef (const double*)[MOST_TREES] rows
        cdef TreeKernel tree
        cdef Py_ssize_t place, trees = self.members + 1
        cdef uint64_t key = note_key(self.reference(), row, 0, NULL) if self.tracking else 0
        for place in range(trees):
            tree = <TreeKernel>self.trees[place]
            weights[place] = w
            if self.records[place].rate > 0.0:
                thresholds = self.thresholds[self.records[place].rate]
                weights[place] *= self.copies(self.records + place, &thresholds[0], 0)
            tree.settle()
            rows[place] = with_levels(tree, row, tree.room)
            outlooks[place].leaf = leaf_of(tree.nodes, rows[place])
            if weights[place] > 0.0:
                measure_if_due(tree)
                tree.make_ready(outlooks[place].leaf, weights[place])
        for place in range(trees):
            tree = <TreeKernel>self.trees[place]
            if weights[place] > 0.0:
                learn_row(
                    tree, rows[place], row, y, weights[place], 0, True, &outlooks[place]
                )
            else:
                look(tree, rows[place], tree.scratch, &outlooks[place])
            said.trees[place] = outlooks[place].saying.prediction
        self.say_together(&said)
        self.take_label(&said, y, w, key, False)
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

    def check(self, const double[::1] y, const double[:] w):
        """Return the first row that may not be learned, or -1; nothing is changed."""
        cdef Py_ssize_t row, bad = -1
        cdef double weight = self.weight
        with nogil:
            for row in range(y.shape[0]):
                weight += w[row]
                if not admissible(y[row], w[row], weight, LARGEST_WEIGHT):
                    bad = row
                    break
        return bad

    def learn(self, X, y, w, predictions=None, register=None, bint asked=True):
        """Learn rows; as `TreeKernel.learn`."""
        cdef const double[:, ::1] block
        cdef uint64_t[::1] seen, keys
        cdef char[::1] fresh
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
                    work = self.prepared(
                        X[start:end], y[start:end], w[start:end], predictions is not None and asked
                    )
                    block, keys = work.X, work.keys
                    seen, fresh = np.zeros(len(X[0]) + 1, np.uint64), np.zeros(len(X[0]) + 1, "b")
                    if registration is not None and registration.fresh:
                        fresh.base[registration.fresh] = 1
                    # What is new comes into force with the first rows.
                    if registration is not None:
                        registration.commit()
                    registration = None
                    if self.tracking:
                        self.set_keys(self.reference(), block, &fresh[0], &seen[0], &keys[0])
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
        cdef const double[::1] y
        cdef const double[:] w
        cdef Py_ssize_t row, place, rows, trees = self.members + 1
        cdef Said together
        cdef const uint64_t[::1] keys
        cdef bint at_once
        if self.work is None:
            return 0
        self.let_trees_learn()
        said, y, w = self.work.said, self.work.y, self.work.w
        keys, at_once = self.work.keys, self.work.at_once
        rows = y.shape[0]
        if self.tracking and self.notes.count > 0:
            self.notes.reserve(1)
        with nogil:
            for row in range(rows):
                for place in range(trees):
                    together.trees[place] = said[place, row]
                self.say_together(&together)
                if predictions is not None:
                    predictions[row] = together.saying.prediction if self.rows > 0.0 else 0.0
                self.take_label(&together, y[row], w[row], keys[row], at_once)
        self.work = None
        self.tidy_notes()
        return 0

    cdef void tidy_notes(self) noexcept:
        """Give back what the memory of what was said does not need."""
        if self.tracking and self.notes.room > LEAST_ROOM:
            self.notes.tidy()

    cdef void forget_notes(self) noexcept:
        """Forget what was said, but not that labels are to come."""
        if self.tracking:
            count_blanks(self.notes, self.notes.count)
            while self.notes.count > 0:
                self.notes.forget_first()

    cdef void move_notes(self, Py_ssize_t place) noexcept nogil:
        """Let what the last tree said be remembered as said by the one whose place it takes."""
        cdef double* note
        cdef int64_t number
        if self.tracking:
            for number in range(self.notes.first, self.notes.next):
                note = self.notes.contents + (number & (self.notes.room - 1)) * self.notes.width
                note += SAYING_DOUBLES + 2
                note[place] = note[self.members]

    cdef int let_trees_learn(self) except -1:
        """Let each tree learn its part, in other threads too if there are any; or raise."""
        cdef Worker worker
        # The quickest come last, so that no thread waits long for another.
        todo = iter(sorted(range(self.members + 1), key=self.is_quick))
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
        tree.learn(work.X[row:], work.y[row:], weights[row:], work.said[place, row:])

    def predict(
        self, const double[:, ::1] X, double[::1] predictions, is_current=None, bint asked=True
    ):
        """Predict all rows; as `TreeKernel.predict`."""
        cdef Py_ssize_t row, place, start = 0, end, rows = X.shape[0], trees = self.asked
        cdef Py_ssize_t noted = min(rows, self.notes.most) if self.tracking and asked else 0
        cdef double[:, ::1] said
        cdef double[:, ::1] notes = np.empty((noted, self.notes.width if noted else 0))
        cdef uint64_t[::1] keys = np.empty(noted, np.uint64)
        cdef Said together
        if rows != predictions.shape[0]:
            raise ValueError("the arrays do not fit together")
        cdef TreeKernel tree
        self.begin_reading()
        try:
            if is_current is not None and not is_current():
                return False
            if self.rows == 0.0:
                predictions[:] = 0.0
                if self.tracking and asked:
                    count_blanks(self.notes, rows)
                return True
            if self.tracking and self.rows == self.begun:
                count_blanks(self.notes, rows)
                noted = 0
            tree = self.reference()
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
                        if row >= rows - noted:
                            keys[row - rows + noted] = note_key(
                                tree, &X[row, 0] if X.shape[1] else NULL, 0, NULL
                            )
                            self.take_down(&together, &notes[row - rows + noted, 0])
                start = end
            if noted:
                # What was said is remembered when all of it was said.
                self.notes.reserve(noted)
                for row in range(noted):
                    memcpy(
                        self.notes.leave(keys[row]), &notes[row, 0],
                        self.notes.width * sizeof(double),
                    )
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

    @property
    def worth(self):
        """What a label is worth as evidence: 1 if it comes at once, less the later it does."""
        if not self.tracking:
            return 1.0
        return <double>LATE / (<double>LATE + self.layer.evidence.lateness)

    def end_look(
        self, double lifetime, list events not None, list trees=None, table=None,
        bint anew=False,
    ):
        """Remember that it was looked, and let who has earned it take another's place.

        Parameters
        ----------
        lifetime : float
            The rows after which the reserve starts anew.
        events : list
            What has happened so far.
        trees : list of TreeKernel, optional
            All trees from now on, the last of which is new.
        table : array of TREE_RECORD, optional
            What is known of them.
        anew : bool
            Whether all trees are new but for the first, and nothing else is to be remembered.
        """
        if trees is not None:
            if len(trees) != len(self.trees) or len(table) != len(trees):
                raise ValueError(f"there are {len(trees)} trees, not {len(self.trees)}")
            if anew:
                self.use_tables(
                    table, self.fresh_blend(), fresh_layer(), np.zeros(DETECTOR_DOUBLES)
                )
                self.forget_notes()
                self.begun = self.changed = self.rows
                self.usual = self.calm = self.stir = 0.0
            else:
                self.use_tables(table, self.blend_table, self.layer_table, self.detector_table)
                for place in range(self.members):
                    if trees[place] is self.trees[self.members]:
                        self.move_notes(place)
            self.trees = trees
            self.lead = self.lead_square = self.gain = self.gain_square = 0.0
        self.events, self.lifetime, self.looked_at = events, lifetime, self.rows
