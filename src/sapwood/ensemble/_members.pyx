"""The trees of an ensemble: what is known of them, what they say together, and how that is judged.

With several targets, all that concerns predictions is there for each: range of y, errors and
the weights of trees, and the last layer. Who is replaced is decided for all together, by squared
errors as shares of each target's variance. A tree that has not learned a y of some target yet has
nothing to say of it: for that target it counts as saying what the others do.
"""

import numpy as np
from libc.math cimport fabs, sqrt
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy, memset

from sapwood.corrector._blend cimport (
    BlendRules, blend_doubles, blended, judge_blend, settle_blend, start_blend, weights_of,
)
from sapwood.corrector._evidence cimport LATE
from sapwood.corrector._layer cimport (
    CorrectedPrediction, follow, issued, judge, layer_rules, say, start_layer,
)
from sapwood.corrector._pending cimport (
    LEAST_ROOM, count_at_once, count_blanks, is_id, take_blank,
)
from sapwood.drift._detector cimport SHIFTS, Detector, Found, see
from sapwood.tree._guard cimport held_near

from sapwood.corrector._layer import fresh_layer
from sapwood.ensemble.layout import RULES, TARGET_RECORD, TREE_RECORD

DETECTOR_DOUBLES = sizeof(Detector) // sizeof(double)

cdef enum:
    STACK = 0  # members weighted by a blend around their mean
    DUEL = 1   # a tree and its challenger, by their errors
    SWEEPS = 2  # by which the weights of members are improved, each time

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
# A target whose variance is less has none; and no error is a larger share of a variance.
cdef double LEAST_VARIANCE = 1e-200
cdef double MOST_SHARE = 1e12

cdef Py_ssize_t SAYING_DOUBLES = sizeof(CorrectedPrediction) // sizeof(double)


def note_doubles(Py_ssize_t trees, Py_ssize_t targets=1):
    """Return how many doubles a note of what so many trees said of some targets has."""
    return note_size(trees) if targets == 1 else 1 + targets * note_size(trees)


cdef inline Py_ssize_t note_size(Py_ssize_t trees) noexcept nogil:
    """Doubles of what was said of a target."""
    return SAYING_DOUBLES + 2 + trees


def bytes_of_a_target(Py_ssize_t trees):
    """Return what an ensemble of so many trees keeps of each of several targets, notes aside."""
    tables = TARGET_RECORD.itemsize + 8 * blend_doubles(trees - 1) + fresh_layer().nbytes
    return tables + trees * (sizeof(TreeError) + 1) + sizeof(MemberPredictions)


cdef class TargetTables:
    """What an ensemble knows of its targets, and of what trees say of them.

    Parameters
    ----------
    trees : int
        How many there are.
    record_table : array of TARGET_RECORD
        One for each target.
    blend_table, layer_table : array
        The weights of trees and the last layer, of one target after the other.
    error_table : array of float, shape (trees, targets, 2)
        Faded squared errors and weights; of one target none, as the records of trees have them.
    """

    def __init__(
        self, Py_ssize_t trees, record_table, double[::1] blend_table, double[::1] layer_table,
        error_table,
    ):
        cdef Py_ssize_t targets = len(record_table)
        cdef unsigned char[::1] records = record_table.view(np.uint8)
        cdef unsigned char[::1] room = np.zeros(targets * sizeof(MemberPredictions), np.uint8)
        cdef char[::1] has_seen_target = np.zeros(trees * targets, "b")
        cdef double[::1] errors = error_table.reshape(-1)
        if len(errors) != (2 * trees * targets if targets > 1 else 0):
            raise ValueError("there are not as many errors as trees and targets")
        if len(blend_table) != targets * blend_doubles(trees - 1):
            raise ValueError("there are not as many weights as trees and targets")
        if len(layer_table) != targets * len(fresh_layer()):
            raise ValueError("there is not a corrector for each target")
        self.targets, self.record_table, self.error_table = targets, record_table, error_table
        self.blend_table, self.layer_table = blend_table.base, layer_table.base
        self.heard_table, self.room_table = has_seen_target.base, room.base
        self.records = <TargetRecord*>&records[0]
        self.blends, self.layers = &blend_table[0], <LayerState*>&layer_table[0]
        self.errors = <TreeError*>&errors[0] if targets > 1 else NULL
        self.has_seen_target, self.room = &has_seen_target[0], <MemberPredictions*>&room[0]


cdef class Members:
    """Trees, and what they say together.

    Parameters
    ----------
    rules : record
        As in `sapwood.ensemble.rules`.
    trees : list of TreeKernel
        All of them empty: the members, and last the one that waits to replace one of them.
    tree_table : array of TREE_RECORD
        What is known of each of them.
    tracking : bool
        Whether there is a last layer.
    new_notes : callable
        Makes a memory of what was said until labels come, for so many targets.
    lifetime : float
        The rows after which the reserve starts anew, if it has not replaced anybody.
    """

    def __init__(
        self, rules, list trees, tree_table, bint tracking, new_notes, double lifetime
    ):
        cdef const unsigned char[::1] rule_bytes = np.frombuffer(rules.tobytes(), np.uint8)
        sizes = sizeof(EnsembleRules), sizeof(TreeRecord), sizeof(TargetRecord)
        if tuple(each.itemsize for each in (RULES, TREE_RECORD, TARGET_RECORD)) != sizes:
            raise RuntimeError("the records of the kernel and of Python differ")
        if not 2 <= len(trees) <= MOST_TREES or len(tree_table) != len(trees):
            raise ValueError(f"there cannot be {len(trees)} trees")
        memcpy(&self.rules, &rule_bytes[0], sizeof(EnsembleRules))
        self.trees, self.members = trees, len(trees) - 1
        self.tracking, self.new_notes = tracking, new_notes
        if tracking:
            self.notes = new_notes(1)
        self.lifetime, self.events = lifetime, []
        # A reserve has no say in a stack, but is judged by what it would have said.
        self.asked = len(trees) if tracking or self.rules.combine == DUEL else self.members
        self.use_tables(tree_table, self.fresh_targets(1), np.zeros(DETECTOR_DOUBLES))

    # -- tables ---------------------------------------------------------------------------------

    def fresh_targets(self, Py_ssize_t targets):
        """Return the tables of so many targets, of which nothing is known."""
        cdef double[::1] blend = np.zeros(blend_doubles(self.members))
        cdef BlendRules blend_rules = self.blend_rules()
        start_blend(&blend[0], self.members, &blend_rules)
        return TargetTables(
            len(self.trees),
            np.zeros(targets, TARGET_RECORD),
            np.tile(blend.base, targets),
            np.tile(fresh_layer(), targets),
            fresh_errors(len(self.trees), targets),
        )

    def use_tables(self, tree_table, TargetTables tables not None, double[::1] detector):
        """Take over what is remembered of trees, of each target, and of errors."""
        cdef unsigned char[::1] records = tree_table.view(np.uint8)
        base = detector.base
        # Nothing can fail from here on.
        self.tree_table, self.detector_table = tree_table, base
        self.records = <TreeRecord*>&records[0]
        self.detector = <Detector*>&detector[0]
        self.use_targets(tables)

    cdef void use_targets(self, TargetTables tables) noexcept:
        self.tables, self.targets, self.of_targets = tables, tables.targets, tables.records
        self.count_heard()

    def use_trees(
        self, list trees, tree_table, TargetTables tables not None, detector, double lifetime,
        list events,
    ):
        """Take over trees that were saved, and what was known of them."""
        if len(trees) != len(self.trees):
            raise ValueError(f"there are {len(trees)} trees, not {len(self.trees)}")
        set_heard(tables, trees)
        if self.tracking and tables.targets != self.targets:
            self.notes = self.new_notes(tables.targets)
        self.trees, self.lifetime, self.events = trees, lifetime, events
        self.use_tables(tree_table, tables, detector)

    def set_stream(
        self, rows, weight, low, high, usual, looked_at, lead, lead_square, gain, gain_square,
        begun, changed, calm, stir,
    ):
        """Restore what is known of all rows; of several targets, each has a range of its own."""
        self.rows, self.weight, self.looked_at = rows, weight, looked_at
        self.lead, self.lead_square = lead, lead_square
        self.gain, self.gain_square, self.begun = gain, gain_square, begun
        self.changed, self.calm, self.stir = changed, calm, stir
        if self.targets == 1:
            self.of_targets[0] = TargetRecord(
                self.rows, self.begun, low, high, usual, 0.0, 0.0, 0.0, 0.0
            )

    @property
    def low(self):
        """The least y of one target; 0 of several."""
        return self.of_targets.low if self.targets == 1 else 0.0

    @property
    def high(self):
        """The greatest y of one target; 0 of several."""
        return self.of_targets.high if self.targets == 1 else 0.0

    @property
    def usual(self):
        """The faded mean squared error of one target; 0 of several."""
        return self.of_targets.usual if self.targets == 1 else 0.0

    @property
    def blend_table(self):
        """The sums and weights by which members are combined, of one target after the other."""
        return self.tables.blend_table

    @property
    def layer_table(self):
        """The last layers, of one target after the other."""
        return self.tables.layer_table

    cdef BlendRules blend_rules(self) noexcept nogil:
        return BlendRules(
            self.rules.fade, self.rules.precision, self.rules.centre, self.rules.most
        )

    def has_seen_target(self, Py_ssize_t target):
        """Return of each tree whether it has learned a y of a target."""
        cdef Py_ssize_t tree
        return [bool(has_heard(self, tree, target)) for tree in range(self.members + 1)]

    cdef void hear(self, Py_ssize_t tree, const double* y) noexcept nogil:
        """Note of which targets a tree has just learned a y."""
        cdef Py_ssize_t target
        for target in range(self.targets):
            if y[target] == y[target]:
                self.tables.has_seen_target[tree * self.targets + target] = 1

    cdef void count_heard(self) noexcept nogil:
        """See whether each tree has learned a y of each target."""
        cdef Py_ssize_t place
        self.all_heard = self.targets > 1
        for place in range((self.members + 1) * self.targets):
            self.all_heard = self.all_heard and self.tables.has_seen_target[place]

    def error_shares(self):
        """Return the squared errors of each tree lately, of each target, as shares of its variance.

        Of one target, they are the squared errors themselves. NaN where nothing is known.
        """
        cdef Py_ssize_t tree, target
        cdef double[:, ::1] shares = np.full((self.members + 1, self.targets), np.nan)
        cdef const TreeError* error
        for tree in range(self.members + 1):
            for target in range(self.targets):
                error = error_of(self, tree, target)
                if error.weight > 0.0 and unit_of(self, target) > 0.0:
                    shares[tree, target] = error.square / error.weight
                    if self.targets > 1:
                        shares[tree, target] = share_of(
                            sqrt(shares[tree, target]), unit_of(self, target)
                        )
        return shares.base

    # -- what is said ---------------------------------------------------------------------------

    cdef void say_together(self, Py_ssize_t target, MemberPredictions* said) noexcept nogil:
        """Say what comes of what the trees said of a target."""
        cdef const TargetRecord* record = self.of_targets + target
        cdef Py_ssize_t tree
        cdef double share
        said.rows = self.rows
        if self.targets > 1 and not self.all_heard:
            self.speak_for_others(target, said)
        if record.rows == record.begun:
            # But for the first tree, all have yet to learn.
            memset(&said.saying, 0, sizeof(CorrectedPrediction))
            said.base = said.together = said.saying.prediction = said.issued = said.trees[0]
            said.saying.known = record.rows
            return
        if self.rules.combine == DUEL:
            share = self.challenger_share(target)
            said.base = said.trees[0]
            said.together = said.base + share * (said.trees[1] - said.base)
        else:
            said.base = 0.0
            for tree in range(self.members):
                said.base += said.trees[tree]
            said.base /= self.members
            said.together = blended(blend_of(self, target), self.members, said.base, said.trees)
        said.saying.prediction, said.saying.known = said.together, record.rows
        said.issued = said.together
        if self.tracking:
            say(
                self.tables.layers + target, layer_rules(), said.together, record.rows,
                &said.saying,
            )
            said.issued = issued(self.tables.layers + target, &said.saying)

    cdef void speak_for_others(self, Py_ssize_t target, MemberPredictions* said) noexcept nogil:
        """Let trees that know nothing of a target say what those do that know it.

        Where none does any more, as all others were replaced, that is the mean of its y.
        """
        cdef Py_ssize_t tree, known = 0
        cdef double others = 0.0
        for tree in range(self.asked):
            # The tree that waits is asked if no member knows.
            if has_heard(self, tree, target) and (tree < self.members or known == 0):
                others += said.trees[tree]
                known += 1
        if known:
            others /= known
        else:
            others = self.of_targets[target].first + self.of_targets[target].mean
        for tree in range(self.members + 1):
            if not has_heard(self, tree, target):
                said.trees[tree] = others

    cdef double challenger_share(self, Py_ssize_t target) noexcept nogil:
        """The share of the challenger, once it is old enough: by both errors to the power -4."""
        cdef const TreeError* main = error_of(self, 0, target)
        cdef const TreeError* other = error_of(self, 1, target)
        cdef double ratio
        if self.rows - self.records[1].born < self.rules.duel_age or other.weight <= 0.0:
            return 0.0
        if main.square * other.weight == 0.0:
            return 0.0
        ratio = other.square * main.weight / (main.square * other.weight)
        ratio *= ratio
        return 1.0 / (1.0 + ratio * ratio)

    def weights(self, Py_ssize_t target=0):
        """Return the share of each tree in what they say together of a target."""
        cdef Py_ssize_t place
        cdef double share, rest = 1.0
        if not 0 <= target < self.targets:
            raise IndexError(target)
        if self.rules.combine == DUEL:
            share = self.challenger_share(target)
            return [1.0 - share, share]
        shares = [weights_of(blend_of(self, target))[place] for place in range(self.members)]
        rest -= sum(shares)
        return [share + rest / self.members for share in shares] + [0.0]

    # -- notes ----------------------------------------------------------------------------------

    cdef void take_down(self, const MemberPredictions* said, double* note) noexcept nogil:
        """Write down what was said of a row; how many labels were known comes first."""
        cdef Py_ssize_t target
        if self.targets == 1:
            self.take_down_target(0, said, note)
            return
        note[0] = self.rows
        note += 1
        for target in range(self.targets):
            self.take_down_target(target, said + target, note)
            note += note_size(self.members + 1)

    cdef void take_down_target(
        self, Py_ssize_t target, const MemberPredictions* said, double* note
    ) noexcept nogil:
        """Write down what was said of a target; nothing if no y of it was learned."""
        cdef Py_ssize_t tree
        if self.of_targets[target].rows == self.of_targets[target].begun:
            memset(note, 0, note_size(self.members + 1) * sizeof(double))
            return
        (<CorrectedPrediction*>note)[0] = said.saying
        note += SAYING_DOUBLES
        note[0], note[1] = said.base, said.together
        for tree in range(self.members + 1):
            note[2 + tree] = said.trees[tree]

    cdef const double* recall(
        self, const MemberPredictions* now, const double* row, uint64_t key, bint at_once
    ) noexcept nogil:
        """The note about what was said when a row was predicted, or NULL."""
        cdef const double* found
        if not self.tracking:
            return NULL
        if self.notes.count > 0:
            if at_once:
                self.take_down(now, self.notes.leave(key))
            found = self.notes.take(key, self.rows, row)
            if found != NULL:
                return found
        if at_once:
            count_at_once(self.notes)
        elif self.notes.count == 0 and not is_id(key):
            take_blank(self.notes)
        return NULL

    cdef bint set_then(
        self, Py_ssize_t target, const double* note, bint at_once, const MemberPredictions* now,
        MemberPredictions* then,
    ) noexcept nogil:
        """Set what was said of a target when a row was predicted; what is said now if it never was.

        Returns whether it was predicted, if only now.
        """
        cdef Py_ssize_t tree
        cdef double rows
        then[0] = now[0]
        if note == NULL:
            return at_once
        rows = note[0]
        if self.targets > 1:
            note += 1 + target * note_size(self.members + 1)
            if note[0] == 0.0:
                return at_once
        then.saying, then.rows = (<const CorrectedPrediction*>note)[0], rows
        note += SAYING_DOUBLES
        then.base, then.together = note[0], note[1]
        for tree in range(self.members + 1):
            if self.records[tree].born < rows:
                then.trees[tree] = note[2 + tree]
        return True

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
        cdef Py_ssize_t _target
        if not self.tracking:
            return
        for number in range(self.notes.first, self.notes.next):
            note = self.notes.contents + (number & (self.notes.room - 1)) * self.notes.width
            note += SAYING_DOUBLES + 2 + (self.targets > 1)
            for _target in range(self.targets):
                note[place] = note[self.members]
                note += note_size(self.members + 1)

    # -- how it is judged -----------------------------------------------------------------------

    cdef void take_labels(
        self, const double* row, const double* y, double w, uint64_t key, bint at_once
    ) noexcept nogil:
        """Judge what was said of a row, which is in the tables' room, by its labels."""
        cdef const double* note = NULL
        cdef RowTally tally
        cdef Py_ssize_t target
        memset(&tally, 0, sizeof(RowTally))
        if self.rows > self.begun:
            note = self.recall(self.tables.room, row, key, at_once)
        elif self.tracking and not at_once and not is_id(key):
            take_blank(self.notes)
        for target in range(self.targets):
            if y[target] == y[target]:
                self.take_label(target, y[target], w, note, at_once, &tally)
        self.watch(&tally, w)
        self.rows += 1.0
        self.weight += w

    cdef void take_label(
        self, Py_ssize_t target, double y, double w, const double* note, bint at_once,
        RowTally* tally,
    ) noexcept nogil:
        """Judge what was said of a target.

        If it was never predicted, trees are judged by what they say now; the last layer is not, as
        it would seem to follow more closely than it will. If it was, a tree that has begun since
        is not judged: what it says now would seem better than what others said then.
        """
        cdef TargetRecord* record = self.of_targets + target
        cdef LayerState* layer = self.tables.layers + target
        cdef const MemberPredictions* now = self.tables.room + target
        cdef MemberPredictions then
        cdef bint was_asked
        cdef double delta, share
        if record.rows == record.begun:
            record.low = record.high = record.first = y
            record.weight = record.mean = record.m2 = 0.0
            start_layer(layer, layer_rules(), y)
        else:
            y = held_near(
                y, now.saying.prediction, record.rows - record.begun, record.low, record.high,
                &record.usual,
            )
            was_asked = self.set_then(target, note, at_once, now, &then)
            self.judge_trees(target, &then, y, w, tally)
            if self.tracking:
                if was_asked:
                    judge(layer, layer_rules(), &then.saying, y, w, record.rows)
                follow(layer, now.together, y, w)
        record.low = y if y < record.low else record.low
        record.high = y if y > record.high else record.high
        record.rows += 1.0
        if self.targets > 1:
            record.weight += w
            share = w / record.weight
            delta = (y - record.first) - record.mean
            record.mean += delta * share
            record.m2 += w * delta * delta * (1.0 - share)

    cdef void judge_trees(
        self, Py_ssize_t target, const MemberPredictions* said, double y, double w, RowTally* tally
    ) noexcept nogil:
        """Judge what trees said of a target, by themselves and together."""
        cdef BlendRules blend_rules = self.blend_rules()
        cdef const TargetRecord* record = self.of_targets + target
        cdef double unit = unit_of(self, target), error, other
        cdef Py_ssize_t tree
        cdef TreeError* errors
        for tree in range(self.members + 1):
            if said.rows > self.records[tree].born and has_heard(self, tree, target):
                errors = error_of(self, tree, target)
                error = y - said.trees[tree]
                errors.square = self.rules.error_fade * errors.square + w * error * error
                errors.weight = self.rules.error_fade * errors.weight + w
        if self.rules.combine == STACK:
            judge_blend(
                blend_of(self, target), self.members, &blend_rules, said.base, said.trees,
                said.together, y, w, 1.0,
            )
            if (
                record.rows - record.begun < SETTLING_ROWS
                or <Py_ssize_t>record.rows % SETTLING_ROWS == 0
            ):
                settle_blend(blend_of(self, target), self.members, &blend_rules, SWEEPS)
        if unit == 0.0:
            return
        error = y - said.saying.prediction
        tally.judged += 1
        tally.error += fabs(error) if self.targets == 1 else sqrt(share_of(error, unit))
        if not has_heard(self, self.members, target):
            return
        other = y - said.trees[self.members]
        if self.rules.combine == DUEL and said.rows > self.records[1].born:
            tally.has_lead = True
            if self.targets == 1:
                tally.lead = (y - said.trees[0]) * (y - said.trees[0]) - other * other
            else:
                tally.lead += share_of(y - said.trees[0], unit) - share_of(other, unit)
        # Only of rows that the last tree was asked for when they were predicted.
        if said.rows >= self.records[self.members].born + HARDLY_BEGUN:
            tally.has_gain = True
            if self.targets == 1:
                tally.gain = error * error - other * other
            else:
                tally.gain += share_of(error, unit) - share_of(other, unit)

    cdef void watch(self, const RowTally* tally, double w) noexcept nogil:
        """See whether errors become larger, and whether the last tree would have erred less."""
        cdef double error
        cdef Found found
        if tally.judged == 0:
            return
        error = tally.error / tally.judged
        self.stir += error
        if see(self.detector, error, ALARM, 0, SHIFTS, &found):
            self.changed = self.rows - (self.detector.rows - found.since)
            self.calm = found.before
            self.stir = found.after * (self.rows + 1.0 - self.changed)
        if tally.has_lead:
            add_lead(tally.lead, w, &self.lead, &self.lead_square)
        if tally.has_gain:
            add_lead(tally.gain, w, &self.gain, &self.gain_square)

    # -- who is replaced --------------------------------------------------------------------------

    @property
    def worth(self):
        """What a label is worth as evidence: 1 if it comes at once, less the later it does."""
        cdef Py_ssize_t target, known = 0
        cdef double lateness = 0.0
        if not self.tracking:
            return 1.0
        for target in range(self.targets):
            if self.of_targets[target].rows > 0.0:
                lateness += self.tables.layers[target].evidence.lateness
                known += 1
        return <double>LATE / (<double>LATE + lateness / max(known, 1))

    def end_look(
        self, double lifetime, list events not None, list trees=None, table=None, errors=None,
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
        errors : array, optional
            Their errors, as `TargetTables` takes them.
        anew : bool
            Whether all trees are new but for the first, and nothing else is to be remembered.
        """
        cdef TargetTables old = self.tables, new
        cdef Py_ssize_t target
        if trees is not None:
            if len(trees) != len(self.trees) or len(table) != len(trees):
                raise ValueError(f"there are {len(trees)} trees, not {len(self.trees)}")
            fresh = self.fresh_targets(self.targets) if anew else old
            new = TargetTables(
                len(trees), old.record_table, fresh.blend_table, fresh.layer_table, errors
            )
            set_heard(new, trees)
            self.use_tables(
                table, new, np.zeros(DETECTOR_DOUBLES) if anew else self.detector_table
            )
            for place in range(0 if anew else self.members):
                if trees[place] is self.trees[self.members]:
                    self.move_notes(place)
            if anew:
                self.forget_notes()
                self.begun = self.changed = self.rows
                self.calm = self.stir = 0.0
                for target in range(self.targets):
                    self.of_targets[target].begun = self.of_targets[target].rows
                    self.of_targets[target].usual = 0.0
            self.trees = trees
            self.lead = self.lead_square = self.gain = self.gain_square = 0.0
        self.events, self.lifetime, self.looked_at = events, lifetime, self.rows


def fresh_errors(Py_ssize_t trees, Py_ssize_t targets):
    """Return the errors of trees of which none is known; of one target they are elsewhere."""
    return np.zeros((trees if targets > 1 else 0, targets, 2))


def set_heard(TargetTables tables not None, list trees not None):
    """Note of which targets trees have learned a y."""
    if tables.targets > 1:
        rows = np.array([tree.target_stream_table["rows"] for tree in trees])
        tables.heard_table[:] = (rows > 0).reshape(-1)


cdef inline double* blend_of(Members own, Py_ssize_t target) noexcept nogil:
    return own.tables.blends + target * blend_doubles(own.members)


cdef inline TreeError* error_of(Members own, Py_ssize_t tree, Py_ssize_t target) noexcept nogil:
    """What is known of the errors of a tree."""
    if own.targets == 1:
        return <TreeError*>&own.records[tree].square
    return own.tables.errors + tree * own.targets + target


cdef inline bint has_heard(Members own, Py_ssize_t tree, Py_ssize_t target) noexcept nogil:
    """Whether a tree has learned a y of a target."""
    if own.targets == 1:
        return own.rows > own.records[tree].born
    return own.all_heard or own.tables.has_seen_target[tree * own.targets + target]


cdef inline double unit_of(Members own, Py_ssize_t target) noexcept nogil:
    """One over the variance of a target, by which errors are judged together.

    It is 1 of one target, and 0 of one of several whose variance is not known.
    """
    cdef const TargetRecord* record = own.of_targets + target
    if own.targets == 1:
        return 1.0
    return record.weight / record.m2 if record.m2 > LEAST_VARIANCE * record.weight else 0.0


cdef inline void add_lead(double ahead, double w, double* lead, double* square) noexcept nogil:
    """Add what another's squared error is less by, and the square of that, to what fades."""
    ahead = min(max(ahead, -LARGEST_LEAD), LARGEST_LEAD)
    lead[0] = LEAD_FADE * lead[0] + w * ahead
    square[0] = LEAD_FADE * square[0] + w * ahead * ahead


cdef inline double share_of(double error, double unit) noexcept nogil:
    """A squared error as a share of a variance."""
    cdef double share = error * error * unit
    return share if share < MOST_SHARE else MOST_SHARE
