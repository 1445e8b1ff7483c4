"""The walk of a row through a tree: predict it, learn it, and decide on its leaf if that is due.

A batch is one call, without the GIL from the first row to the last. It is asked for only to make
room for tables, for observers, and now and then to see whether somebody has pressed Ctrl-C. All
of that happens between two rows: a row is learned as a whole, or not at all. There, too, a batch
lets other threads in who want to read the tree; see `sapwood/tree/_sharing.pyx`.
"""

cimport cython
import numpy as np
from cpython.exc cimport PyErr_CheckSignals
from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree
from libc.math cimport NAN, fabs
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memcpy

from sapwood import door
from sapwood.blend._layer cimport CANDIDATES, Saying, follow, judge, say, start_layer
from sapwood.blend._notes cimport (
    LEAST_ROOM, count_at_once, count_blanks, take_blank, value_key,
)
from sapwood.moments cimport PIVOT
from sapwood.observers._rows cimport CELLS
from sapwood.observers._store cimport Store
from sapwood.rows._dict_row cimport RowReader
from sapwood.tree._experts cimport EARLY, FADE, FAST, LEAST, MARGIN, NEARER
from sapwood.tree._facts cimport (
    NO_GRID, PERMUTED, RENEWED, SAMPLES, add_cost, hashed, leaves_grids,
)
from sapwood.tree._growth cimport decide
from sapwood.tree._guard cimport admissible, held_near, largest_y
from sapwood.tree._levels cimport HEAD, is_known, learn_level, level_of, set_many_levels
from sapwood.tree._memory cimport measure_if_due
from sapwood.tree._model cimport (
    HEAVIEST, LONG_MEMORY, SAMPLE, YOUNG, Z_CREDIBLE, Z_REACH, direction, move_coefficients,
    multiply_block, shrink_covariance, standardise,
)
from sapwood.tree._pace cimport Pace, plan_answer, plan_look, rows_between_looks, start_pace
from sapwood.tree._prefetch cimport prefetch_for_write
from sapwood.tree._records cimport (
    CATEGORIES, EXPERTS, RATES, LeafRecord, TreeNote, centres_at, covariance_at, scales_at, terms_of,
)
from sapwood.tree._relay cimport Registration
from sapwood.tree._sharing cimport (
    Sharing, Waiter, atomic_load_explicit, begin_glance, end_glance, give_turn,
    memory_order_relaxed, start_writing, stop_writing, take_turn,
)
from sapwood.tree._tables cimport TreeTables, slots_between
from sapwood.tree._target_records cimport TargetOutlook, row_doubles, terms_doubles
from sapwood.tree._targets cimport (
    fetch_leaf, learn_targets, look_at_targets, outlooks_in, take_down_targets,
)
from sapwood.tree._trial cimport try_row
from sapwood.tree._units cimport (
    BEYOND, CALM, FAR_OUT, FIRST_LOOK, KINDS, LARGE_ERROR, SAMPLED, WEIGHING, Unrest, find_map,
    is_beyond,
)
from sapwood.tree._unrest cimport mind_units
from sapwood.tree._walk cimport AHEAD, hold_within, leaf_of, mixed, walk_ahead
from sapwood.tree._watch cimport Grid, KeptRow, Slot, keep_row, slot_add, slot_of

cdef extern from "Python.h":
    const Py_ssize_t PY_SSIZE_T_MAX

# What the weights of all rows may add up to: then squares of sums of them and of y stay doubles.
cdef double LARGEST_WEIGHT = 1e50
# Whole numbers below are looked at as such.
cdef double LARGEST_WHOLE = 4503599627370496.0
LEAST_SHARES = tuple([LEAST[rate] for rate in range(RATES)])
NOTE_DOUBLES = sizeof(TreeNote) // sizeof(double)
LARGEST_Y = largest_y()
RANGE_MARGIN, TERM_REACH, TERM_CREDIBLE = MARGIN, float(Z_REACH), float(Z_CREDIBLE)


cdef inline void shift_first_target(Store store, double shift) noexcept nogil:
    """Add to the first target of all rows that an observer has seen."""
    cdef Py_ssize_t row
    for row in range(store.count):
        store.table[row, CELLS + PIVOT] += shift


def refuse_row(double y, double w, row=None, name="y"):
    """Raise the error for a row that may not be learned; `name` is what its y is called."""
    door.refuse_large_row(y, w, largest_y(), row, name)


@cython.final
cdef class TreeKernel(TreeTables):
    """A tree: its tables, and what rows do to them. The parameters are those of `TreeTables`."""

    cdef void look(self, const double* row, double* scratch, Outlook* outlook) noexcept nogil:
        """Predict a row whose leaf is known."""
        self.ask_experts(row, scratch, outlook)
        self.mix_experts(outlook)
        self.say_last(outlook)

    cdef inline void ask_experts(
        self, const double* row, double* scratch, Outlook* outlook
    ) noexcept nogil:
        """Let the mean and the linear models of a leaf predict; the terms are left in scratch."""
        cdef const double* page = self.models[outlook.leaf]
        cdef const double* values = row
        cdef double* z = scratch + self.features
        cdef Py_ssize_t terms = terms_of(self.features)
        outlook.experts[0] = self.leaves[outlook.leaf].mean
        if not self.linear:
            return
        if self.has_categories:
            self.set_levels(row, scratch)
            values = scratch
        standardise(
            page + centres_at(self.features),
            page + scales_at(self.features),
            values,
            self.features,
            z,
        )
        multiply_block(page, RATES, z, terms, outlook.experts + 1)

    cdef inline void mix_experts(self, Outlook* outlook) noexcept nogil:
        """Predict, from what the experts do."""
        cdef const LeafRecord* record = self.leaves + outlook.leaf
        cdef double margin = MARGIN * (self.high - self.low)
        cdef double lowest = self.low - margin - record.origin
        cdef double highest = self.high + margin - record.origin
        outlook.tree = record.origin + record.mean
        if self.linear:
            hold_within(outlook.experts, lowest, highest)
            outlook.tree = record.origin + mixed(
                outlook.experts, &record.said[0] if self.tracking else &record.errors[0],
                self.averaging,
            )
        outlook.saying.prediction = outlook.tree

    cdef inline void say_last(self, Outlook* outlook) noexcept nogil:
        """Let the last layer, if there is one, make a prediction of that of the tree."""
        if self.tracking:
            say(self.layer, self.layer_rules, outlook.tree, self.rows, &outlook.saying)
            if self.astir and self.units[0].state != CALM:
                outlook.saying.prediction = self.unrest.level

    cdef inline const double* with_levels(self, const double* row, double* room) noexcept nogil:
        """A row as the tree takes it: itself, or with levels if there are categories of many.

        What is too far away while units seem to change counts as missing; see _units.pxd.
        """
        if self.has_many:
            row = set_many_levels(
                row, room, self.places, self.many_levels, self.features,
                self.weight / self.rows if self.rows > 0.0 else 1.0,
            )
        if self.holding:
            return self.without_suspects(row, room)
        return row

    cdef const double* without_suspects(self, const double* row, double* room) noexcept nogil:
        """A row, in its room, without values that are beyond the range of a suspect."""
        cdef double* values = room + self.features
        cdef Py_ssize_t feature
        for feature in range(self.features):
            values[feature] = row[feature]
            if self.units[1 + feature].state == BEYOND and is_beyond(
                self.units + 1 + feature, row[feature]
            ):
                values[feature] = NAN
                if self.has_many:
                    values[-1 - feature] = NAN
        return values

    cdef void set_levels(self, const double* row, double* values) noexcept nogil:
        """Copy a row, with the mean y of a category in place of its code."""
        cdef Py_ssize_t feature, code
        for feature in range(self.features):
            values[feature] = row[feature]
            if self.is_category[feature] and row[feature] == row[feature]:
                code = CATEGORIES * feature + <Py_ssize_t>row[feature]
                # A category of which no y was learned is treated as missing.
                values[feature] = self.levels[2 * code + 1] if self.levels[2 * code] > 0.0 else NAN

    cdef void learn_row(
        self,
        const double* row,
        const double* raw,
        double y,
        double w,
        uint64_t key,
        bint at_once,
        Outlook* outlook,
    ) noexcept nogil:
        """Predict and learn a row whose leaf is known; at once if it is predicted only now.

        The row is as `with_levels` has returned it for a raw one.
        """
        cdef const Saying* said = NULL
        cdef double given = y, error
        cdef bint is_odd = False, errs = False, is_sampled
        cdef bint is_doubted = self.astir and self.units[0].state != CALM
        cdef double* z = self.scratch + self.features
        cdef Py_ssize_t terms = terms_of(self.features)
        if self.leaves[outlook.leaf].watching:
            self.find_slots(outlook.leaf, row)
        self.ask_experts(row, self.scratch, outlook)
        if self.linear:
            outlook.unusual = direction(
                self.models[outlook.leaf] + covariance_at(self.features), z, terms, z + terms
            )
            is_odd = (
                outlook.unusual * self.leaves[outlook.leaf].rows > <double>FAR_OUT * terms
                and self.rows >= FIRST_LOOK
            )
        self.mix_experts(outlook)
        outlook.said = outlook.experts
        if self.rows > 0.0:
            if self.tracking:
                if at_once:
                    self.say_last(outlook)
                said = self.recall(key, at_once, outlook)
                if said != NULL and said.known == self.rows:
                    outlook.saying.prediction = said.prediction  # as would be said now
                elif not at_once:
                    self.say_last(outlook)
            if is_doubted:
                y = outlook.tree  # whatever it is, it is not believed
            else:
                error = y - outlook.saying.prediction
                errs = self.rows >= FIRST_LOOK and error * error > <double>LARGE_ERROR * self.usual
                y = held_near(
                    y, outlook.saying.prediction, self.rows, self.low, self.high, &self.usual
                )
            if self.tracking and not is_doubted:
                if said != NULL:
                    judge(self.layer, self.layer_rules, said, y, w, self.rows)
                follow(self.layer, outlook.tree, y, w)
        else:
            self.first = self.low = self.high = y
            self.leaves[outlook.leaf].origin = y
            # The first review is due after so many rows, whatever they weigh.
            self.leaves[outlook.leaf].due *= w
            self.leaves[outlook.leaf].review *= w
            if self.tracking:
                start_layer(self.layer, self.layer_rules, y)
                if not at_once:
                    take_blank(self.notes)
        is_sampled = self.see_columns(row, y, w, outlook)
        if self.astir and self.unrest.phase == WEIGHING:
            self.weigh_units(raw, given, outlook)
        self.take(row, y, w, outlook)
        if (is_sampled | is_odd | errs | self.astir) and self.minding:
            mind_units(self, raw, given, given - outlook.tree, is_odd, errs, is_sampled)
            self.astir = self.unrest.stirred > 0.0

    cdef uint64_t key_of(
        self, const double* row, Py_ssize_t number, const Py_ssize_t* first_value
    ) noexcept nogil:
        """By what the note about a row is found again: by the values that it was predicted from.

        Categories of which no y was learned are not among them, nor a feature up to the row that
        brings its first value. Those of many count by their codes, as levels change.
        """
        cdef uint64_t key = 0
        cdef const double* many = self.many_levels
        cdef Py_ssize_t feature
        cdef double value
        if first_value == NULL and not self.has_categories and not self.has_many:
            for feature in range(self.features):
                key += value_key(row[feature], feature)
            return key
        for feature in range(self.features):
            value = row[feature]
            if self.has_many and self.places[feature] >= 0:
                if is_known(many, self.places[feature], value):
                    key += value_key(value, feature)
                many += 2 * (HEAD + self.places[feature])
                continue
            if first_value != NULL and number <= first_value[feature]:
                continue
            if self.is_category[feature] and value == value:
                if not self.has_learned(feature, <Py_ssize_t>value):
                    continue
            key += value_key(value, feature)
        return key

    cdef inline bint has_learned(self, Py_ssize_t feature, Py_ssize_t code) noexcept nogil:
        """Whether a y of a category was learned, of any target."""
        cdef Py_ssize_t target
        for target in range(self.targets):
            if self.levels[2 * (CATEGORIES * (target * self.features + feature) + code)] > 0.0:
                return True
        return False

    cdef void take_down(self, const Outlook* outlook, TreeNote* note) noexcept nogil:
        """Write down what was said about a row."""
        cdef Py_ssize_t expert
        note.saying = outlook.saying
        note.origin = self.leaves[outlook.leaf].origin
        for expert in range(EXPERTS):
            note.experts[expert] = outlook.experts[expert] if self.linear or expert == 0 else 0.0

    cdef const Saying* recall(self, uint64_t key, bint at_once, Outlook* outlook) noexcept nogil:
        """What was said about a row when it was predicted; NULL if it never was.

        What the experts said is set in the outlook. If they were not asked, it is what they say
        now. But what forgets fast is near to the row before, and who knows how near to a row that
        is far ahead: it counts as three quarters on the way to least squares.
        """
        cdef const TreeNote* found = NULL
        cdef double shift
        cdef Py_ssize_t expert
        if self.notes.count > 0:
            if at_once:
                self.take_down(outlook, <TreeNote*>self.notes.leave(key))
            found = <const TreeNote*>self.notes.take(key, self.rows)
            if found != NULL:
                shift = found.origin - self.leaves[outlook.leaf].origin
                for expert in range(EXPERTS):
                    outlook.then[expert] = found.experts[expert] + shift
                outlook.said = outlook.then
                return &found.saying
        if at_once:
            count_at_once(self.notes)
            return &outlook.saying
        if self.notes.count == 0:
            take_blank(self.notes)
        for expert in range(FAST):
            outlook.then[expert] = outlook.experts[expert]
        for expert in range(FAST, EXPERTS):
            outlook.then[expert] = 0.25 * outlook.experts[expert] + 0.75 * outlook.experts[1]
        outlook.said = outlook.then
        return NULL

    cdef inline bint see_columns(
        self, const double* row, double y, double w, const Outlook* outlook
    ) noexcept nogil:
        """Note what a row tells of its columns, see _facts.pxd; with several targets, whose outlook
        is NULL, but for what it costs to get them wrong. Whether it is a sample of units."""
        cdef uint64_t bits = hashed(<uint64_t>self.rows)
        cdef Py_ssize_t feature, sample
        cdef double value
        if self.gridded:
            for feature in range(self.features):
                value = row[feature]
                if self.facts[feature].decimals == 0.0 and (
                    fabs(value) < LARGEST_WHOLE and <double><int64_t>value == value
                ):
                    continue  # as most are that are on a grid
                if value == value and self.facts[feature].decimals < NO_GRID:
                    self.gridded -= leaves_grids(self.facts + feature, value)
        if self.rows == 0.0:
            for sample in range(SAMPLES):
                self.keep_sample(row, sample)
        elif outlook != NULL and bits % PERMUTED == 0 and self.features and not self.astir:
            self.permute(row, y, w, outlook, bits >> 16)
        if bits % RENEWED == 1 and not self.astir:
            self.keep_sample(row, <Py_ssize_t>((bits >> 16) % SAMPLES))
        return bits % SAMPLED == 3

    cdef void keep_sample(self, const double* row, Py_ssize_t sample) noexcept nogil:
        """Keep a row in place of another, and see which columns have risen since the last one."""
        cdef double* kept = self.samples + sample * self.features
        cdef Py_ssize_t feature
        for feature in range(self.features):
            kept[feature] = row[-1 - feature] if self.has_many else row[feature]
            self.facts[feature].rises = (
                self.facts[feature].rises + 1.0 if kept[feature] > self.facts[feature].last else 0.0
            )
            self.facts[feature].last = kept[feature]

    cdef void permute(
        self, const double* row, double y, double w, const Outlook* outlook, uint64_t bits
    ) noexcept nogil:
        """Predict a row with a value of the past in one column, and note what that costs."""
        cdef Py_ssize_t feature = <Py_ssize_t>(bits % <uint64_t>self.features), each
        cdef double* values = self.permuted
        cdef double change
        for each in range(self.features):
            values[each] = row[-1 - each] if self.has_many else row[each]
        values[feature] = self.samples[
            <Py_ssize_t>((bits >> 32) % SAMPLES) * self.features + feature
        ]
        change = outlook.tree - self.say_aside(values)
        # Half of what the squared error grows by, which is uncertain where errors are large, and
        # half of the squared change of the prediction: the same in the mean, if errors are noise.
        add_cost(self.facts + feature, change * (change + y - outlook.tree), w)

    cdef double say_aside(self, const double* values) noexcept nogil:
        """What the tree says of a row that is not there, the last layer aside."""
        cdef double* room = self.permuted + self.features
        cdef const double* row = values
        cdef Outlook other
        if self.has_many:
            row = set_many_levels(
                values, room, self.places, self.many_levels, self.features,
                self.weight / self.rows if self.rows > 0.0 else 1.0,
            )
        other.leaf = leaf_of(self.nodes, row)
        self.ask_experts(row, room + 2 * self.features, &other)
        self.mix_experts(&other)
        return other.tree

    cdef void weigh_units(self, const double* raw, double y, const Outlook* outlook) noexcept nogil:
        """See how the tree would have erred had units changed in one way or another."""
        cdef Unrest* unrest = self.unrest
        cdef double now = outlook.tree, as_is = outlook.tree, gain
        cdef int kind
        if self.units[0].state != CALM:
            now = outlook.saying.prediction
        if self.holding:
            as_is = self.say_aside(raw)
        now, as_is = y - now, fabs(y - as_is)
        unrest.in_force += now * now
        unrest.as_is += as_is * as_is
        for kind in range(KINDS):
            now = fabs(y - self.say_in_units(raw, kind))
            gain = as_is - now
            unrest.weighed[kind] += now * now
            unrest.gain[kind] += gain
            unrest.square[kind] += gain * gain

    cdef double say_in_units(self, const double* raw, int kind) noexcept nogil:
        """What the tree would say of a row if the units of suspects had changed in some way."""
        cdef double* values = self.permuted
        cdef double scale, shift, said
        cdef Py_ssize_t feature
        for feature in range(self.features):
            values[feature] = raw[feature]
            if self.units[1 + feature].state != CALM and find_map(
                self.units + 1 + feature, kind, &scale, &shift
            ):
                values[feature] = (raw[feature] - shift) / scale
        said = self.say_aside(values)
        if self.units[0].state != CALM and find_map(self.units, kind, &scale, &shift):
            said = scale * said + shift
        return said

    cdef inline void take(
        self, const double* row, double y, double w, const Outlook* outlook
    ) noexcept nogil:
        """Learn a row of which the experts were asked just before."""
        cdef LeafRecord* record = self.leaves + outlook.leaf
        cdef double target = y - record.origin, residual, delta, share
        self.rows += 1.0
        self.weight += w
        self.low = y if y < self.low else self.low
        self.high = y if y > self.high else self.high
        residual = delta = target - record.mean
        record.mean_weight += w
        record.mean += delta * (w / record.mean_weight)
        if self.linear:
            residual = self.learn_linear(outlook.leaf, outlook, target, w)
        self.judge_experts(target, w, outlook)
        record.rows += 1.0
        record.weight += w
        share = w / record.weight
        delta = target - record.target_mean
        record.target_mean += delta * share
        record.target_m2 += w * delta * delta * (1.0 - share)
        delta = residual - record.residual_mean
        record.residual_mean += delta * share
        record.residual_m2 += w * delta * delta * (1.0 - share)
        if record.watching:
            self.watch_row(outlook.leaf, row, target, residual, w)
            if self.trial.leaf == outlook.leaf:
                try_row(self, row, residual, w)
        if self.has_categories or self.has_many:
            self.learn_levels(row, y - self.first, w)
        if self.rows <= EARLY and fabs(y) < NEARER * fabs(record.origin):
            self.move_origin(outlook.leaf, y)

    cdef void move_origin(self, Py_ssize_t leaf, double origin) noexcept nogil:
        """Measure the y of the first leaf from another one, as the first was very far away."""
        cdef LeafRecord* record = self.leaves + leaf
        cdef double shift = record.origin - origin
        cdef Grid* grids = <Grid*>self.watches[leaf]
        cdef Py_ssize_t feature, slot, count, rate
        cdef Slot* slots
        cdef KeptRow* kept
        record.origin = origin
        record.mean += shift
        record.target_mean += shift
        if self.linear:
            for rate in range(RATES):
                self.models[leaf][rate] += shift
        if not record.watching:
            return
        for feature in range(self.features):
            slots = self.slots_of(leaf, feature)
            kept = <KeptRow*>slots
            count = slots_between(self.slot_starts, feature)
            slots[count].target += shift * slots[count].weight
            if grids[feature].inverse > 0.0:
                for slot in range(count):
                    slots[slot].target += shift * slots[slot].weight
            elif self.slots:
                for slot in range(<Py_ssize_t>grids[feature].kept):
                    kept[slot].sums.target += shift * kept[slot].sums.weight
            else:
                shift_first_target(<Store>self.stores[leaf][feature], shift)

    cdef inline void judge_experts(
        self, double target, double w, const Outlook* outlook
    ) noexcept nogil:
        """Let the faded errors of the experts of a leaf go on by a row.

        Growth is judged by what they say now. Their shares are judged, half and half, by what they
        say now and by what they said when the row was predicted.
        """
        cdef LeafRecord* record = self.leaves + outlook.leaf
        cdef double now, then
        cdef Py_ssize_t expert
        for expert in range(EXPERTS if self.linear else 1):
            now = target - outlook.experts[expert]
            record.errors[expert] = FADE * record.errors[expert] + w * now * now
        if self.tracking:
            for expert in range(EXPERTS if self.linear else 1):
                now, then = target - outlook.experts[expert], target - outlook.said[expert]
                record.said[expert] = (
                    FADE * record.said[expert] + w * (0.5 * (now * now + then * then))
                )

    cdef inline double learn_linear(
        self, Py_ssize_t leaf, const Outlook* outlook, double target, double w
    ) noexcept nogil:
        """Move the linear models of a leaf; the error of the one that was best before."""
        cdef LeafRecord* record = self.leaves + leaf
        cdef double* page = self.models[leaf]
        cdef double* covariance = page + covariance_at(self.features)
        cdef Py_ssize_t terms = terms_of(self.features), rate
        cdef double* z = self.scratch + self.features
        cdef double* v = z + terms
        cdef double errors[RATES]
        cdef double least = record.errors[1], residual, unusual = outlook.unusual
        residual = target - outlook.experts[1]
        for rate in range(RATES):
            errors[rate] = target - outlook.experts[1 + rate]
            residual = errors[rate] if record.errors[1 + rate] < least else residual
            least = record.errors[1 + rate] if record.errors[1 + rate] < least else least
        w = w if w < <double>HEAVIEST else <double>HEAVIEST
        if unusual > 0.0:
            move_coefficients(
                page, v, terms, 1.0 / unusual, w * unusual / (1.0 + w * unusual), errors, LEAST, w
            )
            if record.rows < YOUNG:
                shrink_covariance(covariance, z, v, terms, unusual, w)
            elif record.rows < LONG_MEMORY and <int64_t>record.rows % SAMPLE == 0:
                shrink_covariance(covariance, z, v, terms, unusual, SAMPLE * w)
        return residual

    cdef inline void find_slots(self, Py_ssize_t leaf, const double* row) noexcept nogil:
        """Find the slot of each feature, NULL where there is none yet, and let it be fetched."""
        cdef const Grid* grid = <Grid*>self.watches[leaf]
        cdef Slot* slots = <Slot*>(grid + self.features)
        cdef Slot** found = self.found
        cdef Py_ssize_t feature, count = self.slots
        cdef double x
        for feature in range(self.features):
            if self.has_categories:
                count = slots_between(self.slot_starts, feature)
            x = row[feature]
            if x != x:
                found[feature] = slots + count
            elif grid.inverse > 0.0:
                found[feature] = slots + slot_of(grid, count, x)
            else:
                found[feature] = NULL
            prefetch_for_write(found[feature])
            grid += 1
            slots += count + 1

    cdef inline void watch_row(
        self, Py_ssize_t leaf, const double* row, double target, double residual, double w
    ) noexcept nogil:
        """Let the slots that `find_slots` has found see a row, or the observers of the leaf."""
        cdef double weighted_target = w * target, weighted_residual = w * residual
        cdef Slot** found = self.found
        cdef Py_ssize_t feature
        for feature in range(self.features):
            if found[feature] != NULL:
                slot_add(found[feature], weighted_target, weighted_residual, w)
            elif self.slots:
                keep_row(
                    self.grid_of(leaf, feature),
                    self.slots_of(leaf, feature),
                    self.slots,
                    row[feature],
                    weighted_target,
                    weighted_residual,
                    w,
                )
            else:
                self.observe(leaf, feature, row[feature], target, residual, w)

    cdef void observe(
        self,
        Py_ssize_t leaf,
        Py_ssize_t feature,
        double x,
        double target,
        double residual,
        double w,
    ) noexcept nogil:
        """Let an observer see a value, for which `make_ready` has made room."""
        cdef double[2] both
        both[0], both[1] = target, residual
        (<Store>self.stores[leaf][feature]).take_one(x, both, w)

    cdef void learn_levels(self, const double* row, double y, double w) noexcept nogil:
        """Keep the mean y of each category, by which it enters the linear models."""
        cdef Py_ssize_t feature
        cdef double* level
        cdef double* many = self.many_levels
        if self.has_many:
            for feature in range(self.features):
                if self.places[feature] >= 0:
                    if row[-1 - feature] == row[-1 - feature]:
                        learn_level(
                            many, self.places[feature], row[-1 - feature], y, w,
                            self.weight / self.rows,
                        )
                    many += 2 * (HEAD + self.places[feature])
        for feature in range(self.features):
            if self.is_category[feature] and row[feature] == row[feature]:
                level = self.levels + 2 * (CATEGORIES * feature + <Py_ssize_t>row[feature])
                level[0] += w
                level[1] += (y - level[1]) * (w / level[0])

    cdef int make_ready(self, Py_ssize_t leaf, double w) except -1 nogil:
        """Let there be room for all that a row of a leaf may bring with it.

        Whatever may fail does so here, before anything is changed; but for pages where memory is
        limited, as they are to be counted before they are there.
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
                if not self.is_category[feature]:
                    self.make_room_for_element(leaf, feature)
        return 0

    cdef int make_room_for_element(self, Py_ssize_t leaf, Py_ssize_t feature) except -1 nogil:
        """Let an observer have room for one more element."""
        if (<Store>self.stores[leaf][feature]).spare() == 0:
            with gil:
                (<Store>self.stores[leaf][feature]).grow(1)
        return 0

    cdef int settle(self) except -1 nogil:
        """Take the decision that memory did not suffice for, when the last row was learned."""
        cdef Py_ssize_t leaf = self.pending
        if leaf >= 0:
            self.make_ready(leaf, 0.0)
            decide(self, leaf)
        return 0

    # -- learning beside readers --------------------------------------------------------------

    cdef inline void end_writing(self, Sharing sharing) noexcept:
        """Let all read who want to."""
        self.drop_spares()
        if self.tracking and self.notes.room > LEAST_ROOM:
            self.notes.tidy()
        if atomic_load_explicit(&sharing.waiting, memory_order_relaxed):
            self.answer_askers()
        stop_writing(sharing)

    cdef int stop_between_rows(self, Py_ssize_t row, Pace* pace) except -1 nogil:
        """See, now and then, to signals and to those who wait until they may read."""
        pace.next_stop = row + pace.rows_between_stops
        if row >= pace.next_look:
            plan_look(pace, row, self.features)
            if not self.sharing.look_for_signals():
                pace.next_look = PY_SSIZE_T_MAX
        if row >= pace.next_answer and atomic_load_explicit(
            &self.sharing.waiting, memory_order_relaxed
        ):
            self.answer_askers()
            self.sharing.let_readers_in()
            plan_answer(pace, row)
        return 0

    cdef void answer_askers(self) noexcept nogil:
        """Predict the rows of all who ask; between two rows."""
        cdef Outlook outlook
        cdef uint64_t key
        cdef Waiter* waiter = self.sharing.who_ask()
        cdef Waiter* following
        cdef const double* row
        while waiter != NULL:
            following = waiter.next
            if waiter.width == self.features and self.targets == 1:
                outlook.saying.prediction = 0.0
                if self.rows == 0.0:
                    if self.tracking:
                        count_blanks(self.notes, 1)
                else:
                    row = self.with_levels(waiter.values, self.room)
                    outlook.leaf = leaf_of(self.nodes, row)
                    self.look(row, self.scratch, &outlook)
                    if self.tracking:
                        key = self.key_of(waiter.values, 0, NULL)
                        self.take_down(&outlook, <TreeNote*>self.notes.leave(key))
                waiter.prediction = outlook.saying.prediction
                waiter.is_answered = True
            self.sharing.answer(waiter)
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
    ):
        """Learn rows.

        Parameters
        ----------
        X, y, w : arrays
            Rows that passed the door. Rows of weight 0 are only predicted. Of several targets, y
            has all of the first row, then all of the second, and so on; NaN where one is missing.
        predictions : array, optional
            Gets what was predicted for each row before it was learned, in the order of y.
        register : callable, optional
            Returns a Registration of what the rows bring that is new, or None. It is called when
            nobody else may change the tree; what it returns comes into force with the first row.
        regions : array, optional
            Gets the node of the leaf by which each row was predicted.
        asked : bool
            Whether somebody has asked for the predictions just before, if there are any; otherwise
            rows are judged by what was said when they were predicted.
        """
        cdef Py_ssize_t row, rows = X.shape[0], start = 0, known = 0, leaf
        cdef Pace pace
        cdef bint predicting = predictions is not None, placing = regions is not None
        cdef bint at_once = predicting and asked, several, telling
        cdef bint has_turn = self.sharing.is_turn_of_this_thread()
        cdef Py_ssize_t leaves[AHEAD]
        cdef Outlook outlook
        cdef Registration registration = None
        cdef Py_ssize_t[::1] first_values
        cdef const Py_ssize_t* first_value = NULL
        cdef uint64_t key = 0
        cdef const double* taken
        if w.shape[0] != rows or placing and regions.shape[0] != rows:
            raise ValueError("the arrays do not fit together")
        if predicting and predictions.shape[0] != y.shape[0]:
            raise ValueError("the arrays do not fit together")
        if not has_turn:
            take_turn(self.sharing)
        try:
            start_writing(self.sharing)
            try:
                self.settle()
                if register is not None and rows > 0 and X.shape[1] >= self.features:
                    # Whatever the first row needs is there before anything is registered.
                    taken = self.with_levels(row_at(X, 0), self.room)
                    self.make_ready(leaf_of(self.nodes, taken), w[0])
                    self.sharing.pause()
                    registration = register()
                    start_writing(self.sharing)
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
                several = self.targets > 1
                telling = predicting and not several
                with nogil:
                    for row in range(rows):
                        taken = self.with_levels(row_at(X, row), self.room)
                        if row >= known:
                            start = row
                            known = row + walk_ahead(
                                self.nodes, taken, self.features,
                                1 if self.has_many or self.holding else rows - row, leaves,
                            )
                        leaf = outlook.leaf = leaves[row - start]
                        if several:
                            if row + 1 < known:
                                fetch_leaf(self, leaves[row + 1 - start])
                            self.learn_row_of_targets(
                                taken, &y[row * self.targets], w[row], row, first_value,
                                at_once, leaf,
                                &predictions[row * self.targets] if predicting else NULL,
                            )
                        elif w[row] == 0.0:
                            self.look(taken, self.scratch, &outlook)
                        else:
                            if self.slots == 0:
                                measure_if_due(self)
                            self.make_ready(leaf, w[row])
                            if self.tracking and self.notes.count > 0:
                                self.notes.reserve(1)
                                key = self.key_of(row_at(X, row), row, first_value)
                            self.learn_row(
                                taken, row_at(X, row), y[row], w[row], key, at_once, &outlook
                            )
                        if telling:
                            # Before its first row a tree predicts 0.
                            predictions[row] = (
                                outlook.saying.prediction if self.rows > (w[row] > 0.0) else 0.0
                            )
                        if placing:
                            regions[row] = self.leaves[leaf].node
                        if self.leaves[leaf].weight >= self.leaves[leaf].due:
                            known = row + 1  # the walks ahead may no longer hold
                            decide(self, leaf)
                        if self.turned:
                            known, self.turned = row + 1, False
                        if row >= pace.next_stop:
                            self.stop_between_rows(row, &pace)
            finally:
                self.end_writing(self.sharing)
        finally:
            if not has_turn:
                give_turn(self.sharing)

    cdef int learn_row_of_targets(
        self, const double* row, const double* y, double w, Py_ssize_t number,
        const Py_ssize_t* first_value, bint at_once, Py_ssize_t leaf, double* predictions,
    ) except -1 nogil:
        """Predict a row of several targets, and learn it if it has weight."""
        cdef uint64_t key = 0
        cdef Py_ssize_t target
        if w == 0.0:
            look_at_targets(self, leaf, row, self.scratch)
        else:
            self.make_ready(leaf, w)
            if self.tracking and self.notes.count > 0:
                self.notes.reserve(1)
                key = self.key_of(row, number, first_value)
            self.see_columns(row, 0.0, w, NULL)
            learn_targets(self, leaf, row, y, w, key, at_once)
        if predictions != NULL:
            for target in range(self.targets):
                predictions[target] = outlooks_in(self, self.scratch)[target].saying.prediction
        return 0

    def check(self, const double[::1] y, const double[:] w, Py_ssize_t targets=1):
        """Return the first row that may not be learned, or -1; nothing is changed.

        Of several targets, each may be missing (NaN), but not all of them in one row.
        """
        cdef Py_ssize_t row, target, known, bad = -1
        cdef double weight = self.weight, each
        with nogil:
            for row in range(w.shape[0]):
                weight += w[row]
                known = 0
                for target in range(targets):
                    each = y[row * targets + target]
                    if targets > 1 and each != each:
                        continue
                    known += 1
                    if not admissible(each, w[row], weight, LARGEST_WEIGHT):
                        bad = row
                if known == 0:
                    bad = row
                if bad >= 0:
                    break
        return bad

    def learn_one(self, RowReader reader not None, x, double y, double w):
        """Learn a row, if the reader can read it as it is.

        Returns
        -------
        bool
            Whether it was learned; if not, it brings something new, or something bad.
        """
        cdef Outlook outlook
        cdef uint64_t key = 0
        cdef Sharing sharing = self.sharing
        cdef const double* row
        take_turn(sharing)
        try:
            if not admissible(y, w, self.weight + w, LARGEST_WEIGHT):
                refuse_row(y, w)
            start_writing(sharing)
            # Nothing here runs code of others, so that no other row can come in between.
            if self.targets > 1 or not reader.fill(x, True) or reader.width != self.features:
                return False
            self.settle()
            row = self.with_levels(reader.values, self.room)
            outlook.leaf = leaf_of(self.nodes, row)
            measure_if_due(self)
            self.make_ready(outlook.leaf, w)
            if self.tracking and self.notes.count > 0:
                key = self.key_of(reader.values, 0, NULL)
            self.learn_row(row, reader.values, y, w, key, False, &outlook)
            if self.leaves[outlook.leaf].weight >= self.leaves[outlook.leaf].due:
                decide(self, outlook.leaf)
        finally:
            self.end_writing(sharing)
            give_turn(sharing)
        return True

    def learn_targets_one(
        self, RowReader reader not None, x, const double[::1] y, double w
    ):
        """Learn a row of several targets, which passed the door, as `learn_one` does."""
        cdef Py_ssize_t leaf
        cdef Sharing sharing = self.sharing
        take_turn(sharing)
        try:
            if self.check(y, np.full(1, w), y.shape[0]) >= 0 or y.shape[0] != self.targets:
                return False
            start_writing(sharing)
            # Nothing here runs code of others, so that no other row can come in between.
            if not reader.fill(x, True) or reader.width != self.features:
                return False
            self.settle()
            leaf = leaf_of(self.nodes, reader.values)
            self.learn_row_of_targets(reader.values, &y[0], w, 0, NULL, False, leaf, NULL)
            if self.leaves[leaf].weight >= self.leaves[leaf].due:
                decide(self, leaf)
        finally:
            self.end_writing(sharing)
            give_turn(sharing)
        return True

    def predict_targets_one(self, RowReader reader not None, x):
        """Predict several targets as a list; None if `predict` has to do it."""
        cdef Py_ssize_t leaf, target
        cdef uint64_t key
        if reader.index is None or reader.known is not reader.features.known:
            reader.follow()
        if not begin_glance(self.sharing):
            return None
        try:
            if not reader.fill(x, False) or reader.width != self.features:
                return None
            leaf = leaf_of(self.nodes, reader.values)
            look_at_targets(self, leaf, reader.values, self.scratch)
            if self.tracking and self.rows > 0.0:
                self.notes.reserve(1)
                key = self.key_of(reader.values, 0, NULL)
                take_down_targets(self, leaf, self.scratch, self.notes.leave(key))
            return [
                outlooks_in(self, self.scratch)[target].saying.prediction
                for target in range(self.targets)
            ]
        finally:
            end_glance(self.sharing)

    def predict_one(self, RowReader reader not None, x):
        """Predict a row; None if the reader cannot read it as it is, or there are several targets."""
        cdef Outlook outlook
        if self.targets > 1:
            return None
        if reader.index is None or reader.known is not reader.features.known:
            reader.follow()
        if not begin_glance(self.sharing):
            return self.ask_learner(reader, x)
        return outlook.saying.prediction if self.foresee(reader, x, True, &outlook) else None

    def place_one(self, RowReader reader not None, x, bint asked=True):
        """Return the prediction of a row and the node of its leaf.

        It is remembered if somebody has asked for it. None if the reader cannot read it as it is, or somebody else learns.
        """
        cdef Outlook outlook
        if reader.index is None or reader.known is not reader.features.known:
            reader.follow()
        if not begin_glance(self.sharing) or not self.foresee(reader, x, asked, &outlook):
            return None
        return outlook.saying.prediction, self.leaves[outlook.leaf].node

    cdef bint foresee(self, RowReader reader, x, bint asked, Outlook* outlook) except -1:
        """Predict a row in a glance, which then ends; whether the reader can read it as it is.

        What is said is remembered if it was asked for.
        """
        cdef uint64_t key
        # Nothing here runs code of others, or lets go of the GIL.
        cdef const double* row
        try:
            if self.targets > 1 or not reader.fill(x, False) or reader.width != self.features:
                return False
            row = self.with_levels(reader.values, self.room)
            outlook.leaf = leaf_of(self.nodes, row)
            if self.rows == 0.0:
                outlook.saying.prediction = 0.0
                if self.tracking and asked:
                    count_blanks(self.notes, 1)
                return True
            self.look(row, self.scratch, outlook)
            if self.tracking and asked:
                if self.notes.count > 0:
                    self.notes.reserve(1)
                key = self.key_of(reader.values, 0, NULL)
                self.take_down(outlook, <TreeNote*>self.notes.leave(key))
        finally:
            end_glance(self.sharing)
        return True

    def ask_learner(self, RowReader reader not None, x):
        """Do as `predict_one`, while another thread learns."""
        cdef double prediction = 0.0
        cdef double* values
        cdef bint is_answered
        cdef Py_ssize_t width
        reader.follow()
        known, width = reader.known, reader.width
        values = <double*>PyMem_RawCalloc(width + 1, sizeof(double))
        if values == NULL:
            raise MemoryError
        try:
            if not reader.fill_aside(x, values):
                return None
            is_answered = self.sharing.ask(values, width, &prediction)
        finally:
            PyMem_RawFree(values)
        if is_answered and known is reader.features.known:
            return prediction
        return self.predict_one(reader, x)

    def outlook(self, const double[::1] row, Py_ssize_t target=0):
        """Return how the prediction of a target comes about for a row.

        Returns
        -------
        tuple
            The leaf, what its experts predict (from its origin), the standardised terms, what the
            tree predicts, what the candidates of its last layer say (none without one), and the
            prediction.
        """
        cdef Outlook outlook
        cdef TargetOutlook* own
        cdef Py_ssize_t terms_start = self.features
        cdef double[::1] scratch = np.zeros(
            row_doubles(self.features, self.targets, self.separate)
        )
        cdef double[::1] room = np.zeros(2 * self.features + 1)
        cdef const double* taken
        self.sharing.begin_reading()
        try:
            self.check_width(row.shape[0], self.features)
            if not 0 <= target < self.targets:
                raise IndexError(target)
            taken = self.with_levels(&row[0] if self.features else NULL, &room[0])
            outlook.leaf = leaf_of(self.nodes, taken)
            if self.targets > 1:
                look_at_targets(self, outlook.leaf, taken, &scratch[0])
                own = outlooks_in(self, &scratch[0]) + target
                memcpy(outlook.experts, own.experts, sizeof(own.experts))
                outlook.tree, outlook.saying = own.tree, own.saying
                terms_start += target * terms_doubles(self.features) if self.separate else 0
            else:
                self.look(taken, &scratch[0], &outlook)
        finally:
            self.sharing.end_reading()
        return (
            outlook.leaf,
            [outlook.experts[expert] for expert in range(EXPERTS if self.linear else 1)],
            scratch.base[terms_start : terms_start + self.features + 1].tolist()
            if self.linear
            else [],
            outlook.tree,
            [outlook.saying.candidates[place] for place in range(CANDIDATES)]
            if self.tracking
            else [],
            outlook.saying.prediction,
        )

    def levels_of(self, Py_ssize_t feature):
        """Return the level of each code of a category of many, and last that of a new one.

        They are those of y itself; NaN where there is none.
        """
        cdef double row_weight = self.weight / self.rows if self.rows > 0.0 else 1.0
        cdef const double* levels = self.many_levels
        cdef Py_ssize_t each, code
        if not 0 <= feature < self.features or self.places[feature] < 0:
            raise IndexError(feature)
        for each in range(feature):
            if self.places[each] >= 0:
                levels += 2 * (HEAD + self.places[each])
        cdef double[::1] found = np.empty(self.places[feature] + 1)
        for code in range(self.places[feature] + 1):
            found[code] = self.first + level_of(levels, self.places[feature], code, row_weight)
        return found.base

    def predict(
        self,
        const double[:, ::1] X,
        double[::1] predictions,
        is_current=None,
        int32_t[::1] regions=None,
        bint asked=True,
    ):
        """Predict all rows; any number of threads may do so at once.

        What was said is remembered when all of it was said, in the order of the rows, unless
        nobody has asked for it.

        Parameters
        ----------
        X : array
            Rows that passed the door.
        predictions : array
            Gets what is predicted; of several targets, all of a row, then all of the next.
        is_current : callable, optional
            Whether the rows are still what they would be read to. It is called when nobody may
            change the tree.
        regions : array, optional
            Gets the node of each row's leaf.

        Returns
        -------
        bool
            Whether they were predicted; if not, they are to be read again.
        """
        cdef double* scratch
        cdef double* notes = NULL
        cdef Py_ssize_t noted = 0, width = 0, row
        if regions is not None and regions.shape[0] != X.shape[0]:
            raise ValueError("the arrays do not fit together")
        self.sharing.begin_reading()
        try:
            if is_current is not None and not is_current():
                return False
            self.check_width(X.shape[1], self.features)
            if X.shape[0] * self.targets != predictions.shape[0]:
                raise ValueError("the arrays do not fit together")
            if self.rows == 0.0:
                predictions[:] = 0.0
                if regions is not None:
                    regions[:] = 0
                if self.tracking and asked:
                    count_blanks(self.notes, X.shape[0])
                return True
            if self.tracking and asked:
                noted, width = min(X.shape[0], self.notes.most), self.notes.width
            scratch = <double*>PyMem_RawCalloc(
                2 * self.features + row_doubles(self.features, self.targets, self.separate),
                sizeof(double),
            )
            if noted:
                # A note, after the key by which it is found.
                notes = <double*>PyMem_RawCalloc(noted * (1 + width), sizeof(double))
            try:
                if scratch == NULL or (noted and notes == NULL):
                    raise MemoryError
                self.predict_all(X, predictions, regions, scratch, notes, X.shape[0] - noted)
                if noted:
                    self.notes.reserve(noted)
                for row in range(noted):
                    memcpy(
                        self.notes.leave((<uint64_t*>(notes + row * (1 + width)))[0]),
                        notes + row * (1 + width) + 1,
                        width * sizeof(double),
                    )
            finally:
                PyMem_RawFree(scratch)
                PyMem_RawFree(notes)
        finally:
            self.sharing.end_reading()
        return True

    cdef int predict_all(
        self,
        const double[:, ::1] X,
        double[::1] predictions,
        int32_t[::1] regions,
        double* scratch,
        double* notes,
        Py_ssize_t first_noted,
    ) except -1:
        """Predict all rows, and see now and then whether somebody has pressed Ctrl-C."""
        cdef Py_ssize_t row, rows = X.shape[0], start = 0, known = 0, target
        cdef Py_ssize_t next_look = rows_between_looks(self.features)
        cdef Py_ssize_t leaves[AHEAD]
        cdef bint placing = regions is not None
        cdef Outlook outlook
        cdef double* room = scratch + row_doubles(self.features, self.targets, self.separate)
        cdef const double* taken
        with nogil:
            for row in range(rows):
                taken = self.with_levels(row_at(X, row), room)
                if row >= known:
                    start = row
                    known = row + walk_ahead(
                        self.nodes, taken, self.features,
                        1 if self.has_many or self.holding else rows - row, leaves,
                    )
                outlook.leaf = leaves[row - start]
                if self.targets > 1:
                    look_at_targets(self, outlook.leaf, taken, scratch)
                    for target in range(self.targets):
                        predictions[row * self.targets + target] = (
                            outlooks_in(self, scratch)[target].saying.prediction
                        )
                else:
                    self.look(taken, scratch, &outlook)
                    predictions[row] = outlook.saying.prediction
                if placing:
                    regions[row] = self.leaves[outlook.leaf].node
                if row >= first_noted:
                    (<uint64_t*>notes)[0] = self.key_of(row_at(X, row), 0, NULL)
                    if self.targets > 1:
                        take_down_targets(self, outlook.leaf, scratch, notes + 1)
                    else:
                        self.take_down(&outlook, <TreeNote*>(notes + 1))
                    notes += 1 + self.notes.width
                if row == next_look:
                    next_look += rows_between_looks(self.features)
                    with gil:
                        PyErr_CheckSignals()
        return 0


def rows_of_first_values(X, fresh):
    """Return the first row in which each of these features has a value; -1 for other features."""
    found = np.full(X.shape[1] + 1, -1, np.intp)
    for feature in fresh:
        known = ~np.isnan(np.asarray(X)[:, feature])
        found[feature] = np.argmax(known) if known.any() else len(known)
    return found


cdef inline const double* row_at(const double[:, ::1] X, Py_ssize_t row) noexcept nogil:
    return &X[row, 0] if X.shape[1] else NULL
