"""The trees of an ensemble: their records, their combined prediction, and their scores.

With several targets, each has its own range of y, errors and weights of trees, and error-correction
layer. Replacements are decided for all targets together, by squared errors as shares of each
target's variance. A tree that has not learned a y of a target yet predicts the mean of the others.
"""

import numpy as np
from libc.math cimport fabs, sqrt
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy, memset

from sapwood.corrector._stacking cimport (
    StackRules, stack_doubles, stacked, score_stack, solve_stack, start_stack, weights_of,
)
from sapwood.corrector._evidence cimport LATE
from sapwood.corrector._layer cimport (
    CorrectedPrediction, issued_prediction, layer_rules, predict_layer, score_layer, start_layer,
    update_layer,
)
from sapwood.corrector._pending cimport (
    LEAST_ROOM, count_immediate, count_unrecorded, is_id, take_unrecorded,
)
from sapwood.drift._detector cimport SHIFTS, Detector, Found, see
from sapwood.tree._guard cimport held_near

from sapwood.corrector._layer import fresh_layer
from sapwood.ensemble.layout import RULES, TARGET_RECORD, TREE_RECORD

DETECTOR_DOUBLES = sizeof(Detector) // sizeof(double)

cdef enum:
    STACK = 0  # members stacked around their mean
    DUEL = 1   # a tree and its challenger, by their errors
    SWEEPS = 2  # by which the weights of members are improved, each time

# Weights are computed again after so many rows, and after each of the first rows.
cdef Py_ssize_t SOLVING_ROWS = 10
# The decay per row of the sums that compare a challenger with the tree.
cdef double LEAD_FADE = 0.999
# Within which a lead is held, so that its square is finite, whatever the weight of its row.
cdef double LARGEST_LEAD = 1e120
# The evidence for larger errors that counts as a drift; rows before a new tree is compared with
# issued predictions.
cdef double ALARM = 1e6
cdef double HARDLY_BEGUN = 100.0
# A target whose variance is less has none; and no error is a larger share of a variance.
cdef double LEAST_VARIANCE = 1e-200
cdef double MOST_SHARE = 1e12

cdef Py_ssize_t CORRECTED_DOUBLES = sizeof(CorrectedPrediction) // sizeof(double)


def pending_doubles(Py_ssize_t trees, Py_ssize_t targets=1):
    """Return how many doubles a pending prediction of so many trees and targets has."""
    return pending_size(trees) if targets == 1 else 1 + targets * pending_size(trees)


cdef inline Py_ssize_t pending_size(Py_ssize_t trees) noexcept nogil:
    """Doubles of the pending predictions of a target."""
    return CORRECTED_DOUBLES + 2 + trees


def bytes_of_a_target(Py_ssize_t trees):
    """Return the bytes for each of several targets, without pending predictions."""
    tables = TARGET_RECORD.itemsize + 8 * stack_doubles(trees - 1) + fresh_layer().nbytes
    return tables + trees * (sizeof(TreeError) + 1) + sizeof(MemberPredictions)


cdef class TargetTables:
    """Records of the targets of an ensemble, and of the predictions of its trees.

    Parameters
    ----------
    trees : int
        How many there are.
    record_table : array of TARGET_RECORD
        One for each target.
    stack_table, layer_table : array
        The weights of trees and the error-correction layers, one target after the other.
    error_table : array of float, shape (trees, targets, 2)
        Exponentially weighted squared errors and weights; empty for one target, as the records of
        trees contain them.
    """

    def __init__(
        self, Py_ssize_t trees, record_table, double[::1] stack_table, double[::1] layer_table,
        error_table,
    ):
        cdef Py_ssize_t targets = len(record_table)
        cdef unsigned char[::1] records = record_table.view(np.uint8)
        cdef unsigned char[::1] room = np.zeros(targets * sizeof(MemberPredictions), np.uint8)
        cdef char[::1] has_seen_target = np.zeros(trees * targets, "b")
        cdef double[::1] errors = error_table.reshape(-1)
        if len(errors) != (2 * trees * targets if targets > 1 else 0):
            raise ValueError("there are not as many errors as trees and targets")
        if len(stack_table) != targets * stack_doubles(trees - 1):
            raise ValueError("there are not as many weights as trees and targets")
        if len(layer_table) != targets * len(fresh_layer()):
            raise ValueError("there is not a corrector for each target")
        self.targets, self.record_table, self.error_table = targets, record_table, error_table
        self.stack_table, self.layer_table = stack_table.base, layer_table.base
        self.seen_table, self.room_table = has_seen_target.base, room.base
        self.records = <TargetRecord*>&records[0]
        self.stacks, self.layers = &stack_table[0], <LayerState*>&layer_table[0]
        self.errors = <TreeError*>&errors[0] if targets > 1 else NULL
        self.has_seen_target, self.room = &has_seen_target[0], <MemberPredictions*>&room[0]


cdef class Members:
    """The trees of an ensemble and their combined prediction.

    Parameters
    ----------
    rules : record
        As in `sapwood.ensemble.rules`.
    trees : list of TreeKernel
        All of them empty: the members, and last the candidate that may replace one of them.
    tree_table : array of TREE_RECORD
        What is known of each of them.
    tracking : bool
        Whether there is an error-correction layer.
    new_pending : callable
        Returns a store of pending predictions for so many targets.
    lifetime : float
        The rows after which the candidate is reset, unless it has replaced a tree.
    """

    def __init__(
        self, rules, list trees, tree_table, bint tracking, new_pending, double lifetime
    ):
        cdef const unsigned char[::1] rule_bytes = np.frombuffer(rules.tobytes(), np.uint8)
        sizes = sizeof(EnsembleRules), sizeof(TreeRecord), sizeof(TargetRecord)
        if tuple(each.itemsize for each in (RULES, TREE_RECORD, TARGET_RECORD)) != sizes:
            raise RuntimeError("the records of the kernel and of Python differ")
        if not 2 <= len(trees) <= MOST_TREES or len(tree_table) != len(trees):
            raise ValueError(f"there cannot be {len(trees)} trees")
        memcpy(&self.rules, &rule_bytes[0], sizeof(EnsembleRules))
        self.trees, self.members = trees, len(trees) - 1
        self.tracking, self.new_pending = tracking, new_pending
        if tracking:
            self.pending = new_pending(1)
        self.lifetime, self.events = lifetime, []
        # The candidate has no weight in a stack; its predictions are only scored.
        self.predicting = len(trees) if tracking or self.rules.combine == DUEL else self.members
        self.use_tables(tree_table, self.fresh_targets(1), np.zeros(DETECTOR_DOUBLES))

    # -- tables ---------------------------------------------------------------------------------

    def fresh_targets(self, Py_ssize_t targets):
        """Return the tables of so many targets, of which nothing is known."""
        cdef double[::1] stack = np.zeros(stack_doubles(self.members))
        cdef StackRules stack_rules = self.stack_rules()
        start_stack(&stack[0], self.members, &stack_rules)
        return TargetTables(
            len(self.trees),
            np.zeros(targets, TARGET_RECORD),
            np.tile(stack.base, targets),
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
        self.check_all_seen()

    def use_trees(
        self, list trees, tree_table, TargetTables tables not None, detector, double lifetime,
        list events,
    ):
        """Take over trees that were saved, and what was known of them."""
        if len(trees) != len(self.trees):
            raise ValueError(f"there are {len(trees)} trees, not {len(self.trees)}")
        set_seen(tables, trees)
        if self.tracking and tables.targets != self.targets:
            self.pending = self.new_pending(tables.targets)
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
        """The exponentially weighted mean squared error of one target; 0 of several."""
        return self.of_targets.usual if self.targets == 1 else 0.0

    @property
    def stack_table(self):
        """The sums and weights by which members are combined, of one target after the other."""
        return self.tables.stack_table

    @property
    def layer_table(self):
        """The error-correction layers, of one target after the other."""
        return self.tables.layer_table

    cdef StackRules stack_rules(self) noexcept nogil:
        return StackRules(
            self.rules.fade, self.rules.precision, self.rules.centre, self.rules.most
        )

    def has_seen_target(self, Py_ssize_t target):
        """Return of each tree whether it has learned a y of a target."""
        cdef Py_ssize_t tree
        return [bool(has_seen(self, tree, target)) for tree in range(self.members + 1)]

    cdef void mark_seen(self, Py_ssize_t tree, const double* y) noexcept nogil:
        """Note of which targets a tree has just learned a y."""
        cdef Py_ssize_t target
        for target in range(self.targets):
            if y[target] == y[target]:
                self.tables.has_seen_target[tree * self.targets + target] = 1

    cdef void check_all_seen(self) noexcept nogil:
        """See whether each tree has learned a y of each target."""
        cdef Py_ssize_t place
        self.all_seen = self.targets > 1
        for place in range((self.members + 1) * self.targets):
            self.all_seen = self.all_seen and self.tables.has_seen_target[place]

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

    # -- predictions ----------------------------------------------------------------------------

    cdef void combine(self, Py_ssize_t target, MemberPredictions* predicted) noexcept nogil:
        """Combine and correct the predictions of the trees for a target."""
        cdef const TargetRecord* record = self.of_targets + target
        cdef Py_ssize_t tree
        cdef double share
        predicted.rows = self.rows
        if self.targets > 1 and not self.all_seen:
            self.fill_unseen(target, predicted)
        if record.rows == record.begun:
            # But for the first tree, all have yet to learn.
            memset(&predicted.corrected, 0, sizeof(CorrectedPrediction))
            predicted.base = predicted.combined = predicted.issued = predicted.trees[0]
            predicted.corrected.prediction = predicted.issued
            predicted.corrected.known = record.rows
            return
        if self.rules.combine == DUEL:
            share = self.challenger_share(target)
            predicted.base = predicted.trees[0]
            predicted.combined = predicted.base + share * (predicted.trees[1] - predicted.base)
        else:
            predicted.base = 0.0
            for tree in range(self.members):
                predicted.base += predicted.trees[tree]
            predicted.base /= self.members
            predicted.combined = stacked(
                stack_of(self, target), self.members, predicted.base, predicted.trees
            )
        predicted.corrected.prediction, predicted.corrected.known = predicted.combined, record.rows
        predicted.issued = predicted.combined
        if self.tracking:
            predict_layer(
                self.tables.layers + target, layer_rules(), predicted.combined, record.rows,
                &predicted.corrected,
            )
            predicted.issued = issued_prediction(self.tables.layers + target, &predicted.corrected)

    cdef void fill_unseen(self, Py_ssize_t target, MemberPredictions* predicted) noexcept nogil:
        """Set the predictions of trees that have not seen a target to the mean of the others.

        If all trees that had seen it were replaced, that is the mean of its y.
        """
        cdef Py_ssize_t tree, known = 0
        cdef double others = 0.0
        for tree in range(self.predicting):
            # The candidate counts only if no member has seen it.
            if has_seen(self, tree, target) and (tree < self.members or known == 0):
                others += predicted.trees[tree]
                known += 1
        if known:
            others /= known
        else:
            others = self.of_targets[target].first + self.of_targets[target].mean
        for tree in range(self.members + 1):
            if not has_seen(self, tree, target):
                predicted.trees[tree] = others

    cdef double challenger_share(self, Py_ssize_t target) noexcept nogil:
        """The share of the challenger, once it is old enough: errors to the power of -4."""
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
        """Return the weight of each tree in the combined prediction of a target."""
        cdef Py_ssize_t place
        cdef double share, rest = 1.0
        if not 0 <= target < self.targets:
            raise IndexError(target)
        if self.rules.combine == DUEL:
            share = self.challenger_share(target)
            return [1.0 - share, share]
        shares = [weights_of(stack_of(self, target))[place] for place in range(self.members)]
        rest -= sum(shares)
        return [share + rest / self.members for share in shares] + [0.0]

    # -- pending predictions --------------------------------------------------------------------

    cdef void store_prediction(
        self, const MemberPredictions* predicted, double* stored
    ) noexcept nogil:
        """Store the predictions of a row, after the number of known labels."""
        cdef Py_ssize_t target
        if self.targets == 1:
            self.store_target(0, predicted, stored)
            return
        stored[0] = self.rows
        stored += 1
        for target in range(self.targets):
            self.store_target(target, predicted + target, stored)
            stored += pending_size(self.members + 1)

    cdef void store_target(
        self, Py_ssize_t target, const MemberPredictions* predicted, double* stored
    ) noexcept nogil:
        """Store the predictions of a target; zeros if no y of it was learned."""
        cdef Py_ssize_t tree
        if self.of_targets[target].rows == self.of_targets[target].begun:
            memset(stored, 0, pending_size(self.members + 1) * sizeof(double))
            return
        (<CorrectedPrediction*>stored)[0] = predicted.corrected
        stored += CORRECTED_DOUBLES
        stored[0], stored[1] = predicted.base, predicted.combined
        for tree in range(self.members + 1):
            stored[2 + tree] = predicted.trees[tree]

    cdef const double* take_pending(
        self, const MemberPredictions* now, const double* row, uint64_t key, bint at_once
    ) noexcept nogil:
        """Take the pending prediction of a row, or NULL."""
        cdef const double* found
        if not self.tracking:
            return NULL
        if self.pending.count > 0:
            if at_once:
                self.store_prediction(now, self.pending.put(key))
            found = self.pending.take(key, self.rows, row)
            if found != NULL:
                return found
        if at_once:
            count_immediate(self.pending)
        elif self.pending.count == 0 and not is_id(key):
            take_unrecorded(self.pending)
        return NULL

    cdef bint set_issued(
        self, Py_ssize_t target, const double* stored, bint at_once, const MemberPredictions* now,
        MemberPredictions* then,
    ) noexcept nogil:
        """Set the issued predictions of a target; the current ones if none were issued.

        Returns whether the row was predicted before it is learned, if only now.
        """
        cdef Py_ssize_t tree
        cdef double rows
        then[0] = now[0]
        if stored == NULL:
            return at_once
        rows = stored[0]
        if self.targets > 1:
            stored += 1 + target * pending_size(self.members + 1)
            if stored[0] == 0.0:
                return at_once
        then.corrected, then.rows = (<const CorrectedPrediction*>stored)[0], rows
        stored += CORRECTED_DOUBLES
        then.base, then.combined = stored[0], stored[1]
        for tree in range(self.members + 1):
            if self.records[tree].born < rows:
                then.trees[tree] = stored[2 + tree]
        return True

    cdef void shrink_pending(self) noexcept:
        """Free the unused memory of pending predictions."""
        if self.tracking and self.pending.room > LEAST_ROOM:
            self.pending.shrink()

    cdef void drop_pending(self) noexcept:
        """Drop all pending predictions; their labels still count as expected."""
        if self.tracking:
            count_unrecorded(self.pending, self.pending.count)
            while self.pending.count > 0:
                self.pending.drop_oldest()

    cdef void move_pending(self, Py_ssize_t place) noexcept nogil:
        """Move the pending predictions of the candidate to the place that it takes."""
        cdef double* stored
        cdef int64_t number
        cdef Py_ssize_t _target
        if not self.tracking:
            return
        for number in range(self.pending.first, self.pending.next):
            stored = self.pending.contents + (number & (self.pending.room - 1)) * self.pending.width
            stored += CORRECTED_DOUBLES + 2 + (self.targets > 1)
            for _target in range(self.targets):
                stored[place] = stored[self.members]
                stored += pending_size(self.members + 1)

    # -- scores ---------------------------------------------------------------------------------

    cdef void score_row(
        self, const double* row, const double* y, double w, uint64_t key, bint at_once
    ) noexcept nogil:
        """Score the predictions of a row, which are in the tables' buffer, by its labels."""
        cdef const double* stored = NULL
        cdef RowTally tally
        cdef Py_ssize_t target
        memset(&tally, 0, sizeof(RowTally))
        if self.rows > self.begun:
            stored = self.take_pending(self.tables.room, row, key, at_once)
        elif self.tracking and not at_once and not is_id(key):
            take_unrecorded(self.pending)
        for target in range(self.targets):
            if y[target] == y[target]:
                self.score_target(target, y[target], w, stored, at_once, &tally)
        self.watch(&tally, w)
        self.rows += 1.0
        self.weight += w

    cdef void score_target(
        self, Py_ssize_t target, double y, double w, const double* stored, bint at_once,
        RowTally* tally,
    ) noexcept nogil:
        """Score the predictions of a target.

        If the row was never predicted, trees are scored by their current predictions. The
        error-correction layer is not scored then, as its current prediction is too good. If the row
        was predicted, trees that began later are not scored, for the same reason.
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
                y, now.corrected.prediction, record.rows - record.begun, record.low, record.high,
                &record.usual,
            )
            was_asked = self.set_issued(target, stored, at_once, now, &then)
            self.score_trees(target, &then, y, w, tally)
            if self.tracking:
                if was_asked:
                    score_layer(layer, layer_rules(), &then.corrected, y, w, record.rows)
                update_layer(layer, now.combined, y, w)
        record.low = y if y < record.low else record.low
        record.high = y if y > record.high else record.high
        record.rows += 1.0
        if self.targets > 1:
            record.weight += w
            share = w / record.weight
            delta = (y - record.first) - record.mean
            record.mean += delta * share
            record.m2 += w * delta * delta * (1.0 - share)

    cdef void score_trees(
        self, Py_ssize_t target, const MemberPredictions* predicted, double y, double w,
        RowTally* tally
    ) noexcept nogil:
        """Score the predictions of trees for a target, and the combined prediction."""
        cdef StackRules stack_rules = self.stack_rules()
        cdef const TargetRecord* record = self.of_targets + target
        cdef double unit = unit_of(self, target), error, other
        cdef Py_ssize_t tree
        cdef TreeError* errors
        for tree in range(self.members + 1):
            if predicted.rows > self.records[tree].born and has_seen(self, tree, target):
                errors = error_of(self, tree, target)
                error = y - predicted.trees[tree]
                errors.square = self.rules.error_fade * errors.square + w * error * error
                errors.weight = self.rules.error_fade * errors.weight + w
        if self.rules.combine == STACK:
            score_stack(
                stack_of(self, target), self.members, &stack_rules, predicted.base, predicted.trees,
                predicted.combined, y, w, 1.0,
            )
            if (
                record.rows - record.begun < SOLVING_ROWS
                or <Py_ssize_t>record.rows % SOLVING_ROWS == 0
            ):
                solve_stack(stack_of(self, target), self.members, &stack_rules, SWEEPS)
        if unit == 0.0:
            return
        error = y - predicted.corrected.prediction
        tally.judged += 1
        tally.error += fabs(error) if self.targets == 1 else sqrt(share_of(error, unit))
        if not has_seen(self, self.members, target):
            return
        other = y - predicted.trees[self.members]
        if self.rules.combine == DUEL and predicted.rows > self.records[1].born:
            tally.has_lead = True
            if self.targets == 1:
                tally.lead = (y - predicted.trees[0]) * (y - predicted.trees[0]) - other * other
            else:
                tally.lead += share_of(y - predicted.trees[0], unit) - share_of(other, unit)
        # Only rows for which the candidate predicted when they were predicted.
        if predicted.rows >= self.records[self.members].born + HARDLY_BEGUN:
            tally.has_gain = True
            if self.targets == 1:
                tally.gain = error * error - other * other
            else:
                tally.gain += share_of(error, unit) - share_of(other, unit)

    cdef void watch(self, const RowTally* tally, double w) noexcept nogil:
        """Detect larger errors, and compare the candidate with the issued predictions."""
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

    # -- replacement ------------------------------------------------------------------------------

    @property
    def worth(self):
        """The weight of a label as evidence: 1 if it is immediate, less the later it arrives."""
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
        """End a look at the trees, and replace them if the caller has decided so.

        Parameters
        ----------
        lifetime : float
            The rows after which the candidate is reset.
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
                len(trees), old.record_table, fresh.stack_table, fresh.layer_table, errors
            )
            set_seen(new, trees)
            self.use_tables(
                table, new, np.zeros(DETECTOR_DOUBLES) if anew else self.detector_table
            )
            for place in range(0 if anew else self.members):
                if trees[place] is self.trees[self.members]:
                    self.move_pending(place)
            if anew:
                self.drop_pending()
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


def set_seen(TargetTables tables not None, list trees not None):
    """Note of which targets trees have learned a y."""
    if tables.targets > 1:
        rows = np.array([tree.target_records.streams["rows"] for tree in trees])
        tables.seen_table[:] = (rows > 0).reshape(-1)


cdef inline double* stack_of(Members own, Py_ssize_t target) noexcept nogil:
    return own.tables.stacks + target * stack_doubles(own.members)


cdef inline TreeError* error_of(Members own, Py_ssize_t tree, Py_ssize_t target) noexcept nogil:
    """What is known of the errors of a tree."""
    if own.targets == 1:
        return <TreeError*>&own.records[tree].square
    return own.tables.errors + tree * own.targets + target


cdef inline bint has_seen(Members own, Py_ssize_t tree, Py_ssize_t target) noexcept nogil:
    """Whether a tree has learned a y of a target."""
    if own.targets == 1:
        return own.rows > own.records[tree].born
    return own.all_seen or own.tables.has_seen_target[tree * own.targets + target]


cdef inline double unit_of(Members own, Py_ssize_t target) noexcept nogil:
    """One over the variance of a target, the unit in which errors are added.

    It is 1 of one target, and 0 of one of several whose variance is not known.
    """
    cdef const TargetRecord* record = own.of_targets + target
    if own.targets == 1:
        return 1.0
    return record.weight / record.m2 if record.m2 > LEAST_VARIANCE * record.weight else 0.0


cdef inline void add_lead(double ahead, double w, double* lead, double* square) noexcept nogil:
    """Add the difference of two squared errors, and its square, to weighted sums."""
    ahead = min(max(ahead, -LARGEST_LEAD), LARGEST_LEAD)
    lead[0] = LEAD_FADE * lead[0] + w * ahead
    square[0] = LEAD_FADE * square[0] + w * ahead * ahead


cdef inline double share_of(double error, double unit) noexcept nogil:
    """A squared error as a share of a variance."""
    cdef double share = error * error * unit
    return share if share < MOST_SHARE else MOST_SHARE
