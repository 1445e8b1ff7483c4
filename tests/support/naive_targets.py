"""A reference implementation of the multi-target tree: one plain tree for each target.

Each face of the tree predicts and learns one target. They have the same shape, as none of them
decides when to split, and where: that they do together, by the mean of the shares of variance that
a split explains. For a row without their y, they know everything else.
"""

import math

import naive_tree
from naive_encodings import Encodings
from naive_layer import Layer, Memory
from naive_leaf import Categories, Cut, Moments, Slots, Sums, merit_of
from naive_tree import MOST_PRIOR, REPEATS, NaiveTree, Node
from naive_trial import TRIAL_CLEARER, TRIAL_EVIDENCE, TRIAL_SHARE, Trial, round_cut


class Row(dict):
    """The values of a row as splits read them, and the codes of its categories."""

    codes = None


class Face(NaiveTree):
    """One target of several."""

    def __init__(self, **parameters):
        super().__init__(**parameters)
        self.all_rows, self.memory, self.seen = 0, Memory(), Moments()
        self.all_weight, self.encodings = 0.0, {}

    @property
    def row_weight(self):
        return self.all_weight / self.all_rows if self.all_rows else 1.0

    def read_by_splits(self, name, code):
        """One number for all targets; there is none at first."""
        return self.encodings[name].of(code) if name in self.encodings else None

    def find(self, x):
        leaf, row, codes = super().find(x)
        row = Row(row)
        row.codes = codes
        return leaf, row, codes

    def read_by_models(self, row):
        values = super().read_by_models(row)
        for name in self.many:
            code = row.codes[name]
            values[name] = None if code is None else self.level(name, code)
        return values

    def scale_of(self, name, watch):
        """That of the levels of a category of many over all rows: of what lies between them."""
        if name not in self.many:
            return super().scale_of(name, watch)
        whole, within, about = self.many[name]
        between = about.mean
        if within.weight >= REPEATS * self.row_weight:
            between = max(between - within.mean, between / (1 + MOST_PRIOR))
        return whole.mean, math.sqrt(between), 1.0

    def known_values(self, codes):
        return {
            name: value
            for name, value in codes.items()
            if value is not None
            and not isinstance(value, str)
            and (name not in self.levels or (name, value) in self.appeared)
        }

    def attempt(self, leaf):
        """A face never decides."""

    def say(self, x):
        """Predict a row and record the prediction, also before anything was learned."""
        leaf, row, _ = self.find(x)
        predicted, note = 0.0, None
        if self.rows:
            experts, predicted, _ = self.look(leaf, row)
            if self.track:
                predicted, issued = self.layer.predict(predicted)
                note = issued, experts, self.rows
        if self.track and self.all_rows:
            self.memory.leave(self.known_values(row.codes), self.all_rows, note)
        return predicted

    def take(self, x, y, w):
        """Learn a row, whose y may be missing; return its leaf."""
        predicted_from = self.known_values(self.find(x)[2])  # before it brings something new
        self.register(x)
        leaf, row, _ = self.find(x)
        self.see_decimals(row)
        known_when = self.known_when(row.codes, self.all_rows)
        note = None
        if self.track:
            note = self.memory.take(predicted_from, self.all_rows, known_when)
        if y is None:
            self.pass_by(leaf, row, w)
        else:
            self.learn_y(leaf, row, y, w, note)
        self.all_rows, self.all_weight = self.all_rows + 1, self.all_weight + w
        leaf.all_rows += 1
        if y is not None:
            for name in self.levels:
                if row.codes[name] is not None:
                    self.learn_level(name, row.codes[name], self.learned_y, w)
        return leaf

    def pass_by(self, leaf, row, w):
        for name, value in row.items():
            leaf.watches[name].add(value, w, None, None)
        self.widen_ranges(row)
        terms = leaf.models.standardise(self.read_by_models(row).values(), self.ranges_of(row))
        leaf.models.learn_row(terms, w, leaf.all_rows)

    def learn_y(self, leaf, row, y, w, note):
        if self.rows == 0:
            self.first = self.low = self.high = y
            self.layer = Layer(y)
            for each in self.leaves:
                each.mean = y
                each.models.betas = [[y, *beta[1:]] for beta in each.models.betas]
        predicted, tree, z = self.look(leaf, row)
        then = predicted
        if self.rows:
            y = self.held_near(y, self.layer.predict(tree)[1][-1] if self.track else tree)
        if self.rows and self.track:
            then = self.recall(note, predicted, y, w)
            self.layer.follow(tree, y, w)
        self.widen_ranges(row)
        learned, _, z = self.look(leaf, row)
        self.rows, self.weight = self.rows + 1, self.weight + w
        self.low, self.high = min(y, self.low), max(y, self.high)
        self.seen.add(y, w)
        errors = [y - each for each in learned]
        residual = self.residual = errors[min(self.explaining, key=leaf.errors.__getitem__)]
        fade = naive_tree.FADE
        leaf.errors = [fade * old + w * e**2 for old, e in zip(leaf.errors, errors, strict=True)]
        shares = [(e**2 + (y - each) ** 2) / 2 for e, each in zip(errors, then, strict=True)]
        leaf.issued_errors = [
            fade * old + w * each for old, each in zip(leaf.issued_errors, shares, strict=True)
        ]
        leaf.mean_weight += w
        leaf.mean += errors[0] * w / leaf.mean_weight
        ahead = (leaf.all_rows + 1) / (leaf.rows + 1)  # P learns from all rows
        leaf.models.learn(z, errors[1:], w, leaf.all_rows, ahead)
        leaf.rows += 1
        leaf.y.add(y, w)
        leaf.residual.add(residual, w)
        for name, value in row.items():
            leaf.watches[name].add(value, w, y, residual)
        self.learned_y = y - self.first

    def split_by(self, leaf, name, lefts, missing_left):
        """Make two leaves of one, by the places of a feature that go left."""
        watch = leaf.watches[name]
        leaf.missing_left = missing_left
        leaf.cut = Cut(0.0, -1, name, None)
        leaf.codes = {place: place in lefts for place in watch.places}
        is_number = isinstance(watch, Slots)
        leaf.threshold = None
        if is_number:
            leaf.threshold = round_cut(watch.border(max(lefts) + 1), self.decimals.get(name))
        for is_left in (True, False):
            side = Sums.of(
                [(p, sums) for p, sums in watch.places.items() if (p in lefts) == is_left]
            )
            watches = {each: own.child() for each, own in leaf.watches.items()}
            if is_number:
                at = [(slot in lefts) == is_left for slot, _ in watch.elements()]
                watches[name] = watch.child(slice(at.index(True), at.index(True) + sum(at)))
            leaf.children += (Node(watches, self.grace_period, leaf, side),)
            leaf.children[-1].all_rows = 0
        self.leaves = [each for each in self.leaves if each is not leaf] + [*leaf.children]


class Together:
    """What all targets know of a leaf: mean variances, as shares of those over the whole tree."""

    def __init__(self, faces, nodes, due):
        self.faces, self.nodes, self.rows = faces, nodes, 0
        self.depth = nodes[0].depth
        self.children = ()
        self.next_trial = 0.0
        self.start(due)

    def start(self, due):
        self.due, self.next_review, self.weight = due, due, 0.0
        for node in self.nodes:
            node.y, node.residual = Moments(), Moments()

    @property
    def units(self):
        """One over the variance of each target; 0 where there is none."""
        return [1 / face.seen.variance if face.seen.variance else 0.0 for face in self.faces]

    @property
    def known(self):
        return sum(unit > 0 for unit in self.units) or 1

    def mean_share(self, squares):
        total = sum(unit * square for unit, square in zip(self.units, squares, strict=True))
        return total / (self.known * self.weight)

    @property
    def y(self):
        share = self.mean_share([node.y.m2 for node in self.nodes])
        return Variance(self.weight, share)

    @property
    def residual(self):
        share = self.mean_share([node.residual.m2 for node in self.nodes])
        return Variance(self.weight, share)


class SideOfTargets(Together):
    """One side of a split on trial: what it watches of each target, and the moments of residuals."""

    def __init__(self, leaf):
        self.faces, self.weight = leaf.faces, 0.0
        self.nodes = [OnTrial(node) for node in leaf.nodes]

    def add(self, row, residuals, w):
        self.weight += w
        for node, residual in zip(self.nodes, residuals, strict=True):
            if residual is not None:
                node.residual.add(residual, w)
            for name, watch in node.watches.items():
                if row[name] is not None:
                    known = residual is not None
                    watch.add(row[name], w, residual, 0.0 if known else None)


class OnTrial:
    def __init__(self, node):
        watches = {name: watch.on_trial() for name, watch in node.watches.items()}
        self.watches = {name: watch for name, watch in watches.items() if watch is not None}
        self.residual = Moments()


class TrialOfTargets:
    """As `Trial`, whose merit is the mean over targets."""

    def __init__(self, trial, place_goes_left):
        self.__dict__.update(trial.__dict__)
        self.place_goes_left = place_goes_left

    add = Trial.add

    @property
    def merit(self):
        rows, squares = sum(side.weight for side in self.sides), []
        for own in zip(*(side.nodes for side in self.sides), strict=True):
            left, right = (node.residual for node in own)
            whole = left.weight + right.weight
            distance = (left.mean - right.mean) ** 2 if left.weight and right.weight else 0.0
            squares.append(left.weight * right.weight / whole * distance if distance else 0.0)
        pairs = zip(self.leaf.units, squares, strict=True)
        return sum(unit * square for unit, square in pairs) / (self.leaf.known * rows)


class Variance:
    def __init__(self, weight, variance):
        self.weight, self.variance = weight, variance


class NaiveTargets(NaiveTree):
    """The parameters are those of the tree; `targets` are the names of the columns of y."""

    def __init__(self, targets, **parameters):
        super().__init__(**parameters)
        self.targets = targets
        self.faces = [Face(**parameters) for _ in targets]
        for face in self.faces:
            face.root.all_rows = 0
        self.root = Together(
            self.faces, [face.root for face in self.faces], naive_tree.FIRST_REVIEW
        )
        self.leaves = [self.root]

    def predict(self, x):
        predicted = [face.say(x) for face in self.faces]
        return dict(zip(self.targets, predicted, strict=True)) if self.rows else predicted[0]

    def learn(self, x, y, w=1.0):
        pairs = zip(self.targets, self.faces, strict=True)
        nodes = [face.take(x, y.get(name), w) for name, face in pairs]
        leaf = next(each for each in self.leaves if each.nodes == nodes)
        row = self.faces[0].find(x)[1]
        if self.rows == 0:
            leaf.due, leaf.next_review = leaf.due * w, leaf.next_review * w
        self.rows, self.weight, leaf.rows = self.rows + 1, self.weight + w, leaf.rows + 1
        leaf.weight += w
        if self.trial and self.trial.leaf is leaf:
            residuals = [
                None if y.get(name) is None else face.residual
                for name, face in zip(self.targets, self.faces, strict=True)
            ]
            self.trial.add(row, residuals, w)
        self.learn_encodings(row)
        if leaf.weight >= leaf.due:
            self.attempt(leaf)

    def learn_encodings(self, row):
        """Let the numbers by which splits read categories of many follow their levels."""
        own = self.faces[0].encodings
        for name in self.faces[0].many:
            if name not in own:
                self.end_trial_of(name)
                for face in self.faces:
                    face.encodings[name] = own.setdefault(name, Encodings(self.faces, name))
            own[name].learn(row.codes[name], self.root.units)

    def end_trial_of(self, name):
        """A split on trial does not outlive its feature, nor watch what it watched of another."""
        self.trial = None if self.trial and self.trial.feature == name else self.trial
        for side in self.trial.sides if self.trial else ():
            for node in side.nodes:
                node.watches.pop(name, None)

    def is_outdated(self, leaf):
        known = [node for node in leaf.nodes if node.rows]
        return all(super(NaiveTargets, self).is_outdated(node) for node in known)

    def reset(self, leaf):
        leaf.start(naive_tree.FIRST_REVIEW * self.weight / self.rows)
        self.trial = None if self.trial and self.trial.leaf is leaf else self.trial
        for face, node in zip(self.faces, leaf.nodes, strict=True):
            for name, labels in face.labels.items():
                few = labels and name not in face.many
                node.watches[name] = Categories() if few else face.watch_number()

    def review(self, leaf):
        for face, node in zip(self.faces, leaf.nodes, strict=True):
            own, node.rows = node.rows, leaf.rows  # scales are reviewed after many rows
            face.review(node)
            node.rows = own

    def cuts(self, leaf, measure):
        """All cuts that leave enough on either side; of categories, in the order of any target."""
        for name, watch in self.offered(leaf.nodes[0].watches).items():
            is_number = isinstance(watch, Slots)
            kind = measure if is_number else measure.replace("line", "step")
            orders = [[place for place, _ in watch.elements(measure)]] if is_number else []
            for node, unit in zip(leaf.nodes, leaf.units, strict=True):
                if (
                    not is_number
                    and unit
                    and any(s.weight for s in node.watches[name].places.values())
                ):
                    orders.append(self.order(node.watches[name], measure))
            present = sum(sums.rows for sums in watch.places.values())
            for order in orders:
                for after in range(len(order) - 1):
                    lefts = order[: after + 1]
                    left = sum(watch.places[place].rows for place in lefts)
                    if self.min_share * present <= min(left, present - left):
                        merit = self.merit(leaf, name, lefts, kind)
                        yield Cut(merit, frozenset(lefts), name, measure)

    @staticmethod
    def nodes_of(leaf):
        return leaf.nodes

    @staticmethod
    def sides(leaf, node, cut):
        places = node.watches[cut.feature].places.items()
        return [
            Sums.of([(p, s) for p, s in places if (p in cut.after) == is_left])
            for is_left in (True, False)
        ]

    @staticmethod
    def order(watch, measure):
        """The places of a category in the order of a target's means; the mean where it is none."""
        together = Sums.of(list(watch.places.items())).mean(measure)
        means = {p: s.mean(measure) if s.weight else together for p, s in watch.places.items()}
        return sorted(sorted(means), key=means.get)

    @property
    def whole(self):
        """The mean over targets of the variance of y in the root, when it was split or now."""
        root = self.root
        if not root.children:
            return root.y.variance
        pairs = zip(root.units, root.nodes, strict=True)
        return sum(unit * node.y.variance for unit, node in pairs) / root.known

    def names_of(self, leaf):
        return list(self.offered(leaf.nodes[0].watches))

    def trial_cut(self):
        """The split that was on trial, by the places that were seen."""
        trial = self.trial
        places = trial.leaf.nodes[0].watches[trial.feature].places
        lefts = frozenset(place for place in places if trial.place_goes_left(place))
        return Cut(trial.merit, lefts, trial.feature, self.merit_on_trial)

    def begin_trial(self, leaf, name):
        """Cut a feature in the middle, on trial; whether that leaves enough on either side."""
        watch = leaf.nodes[0].watches[name]
        is_number = isinstance(watch, Slots)
        present = sum(sums.rows for sums in watch.places.values())
        lefts = self.middle(leaf, name, present) if not is_number or watch.width else None
        if not lefts:
            return False
        missing_left = self.missing_of_targets(leaf, name, lefts, self.merit_on_trial)
        if is_number:
            cut = round_cut(watch.border(max(lefts) + 1), self.faces[0].decimals.get(name))
            place_goes_left, goes_left = max(lefts).__ge__, cut.__gt__
        else:
            seen = {code: code in lefts for code in watch.places}
            place_goes_left = goes_left = lambda code: seen.get(code, missing_left)
        sides = tuple(SideOfTargets(leaf) for _ in range(2))
        ends = leaf.weight + self.grace_period
        self.trial = Trial(leaf, name, goes_left, missing_left, ends, sides)
        self.trial = TrialOfTargets(self.trial, place_goes_left)
        return True

    def middle(self, leaf, name, present):
        """The places left of the median of a number, or the best subset of categories."""
        watch, best, found = leaf.nodes[0].watches[name], 0.0, None
        is_number = isinstance(watch, Slots)
        orders = [sorted(watch.places)]
        if not is_number:
            known = zip(leaf.nodes, leaf.units, strict=True)
            orders = [self.order(node.watches[name], "target") for node, unit in known if unit]
        for order in orders:
            for after in range(len(order) - 1):
                lefts = order[: after + 1]
                left = sum(watch.places[place].rows for place in lefts)
                lighter = min(left, present - left)
                if is_number and lighter >= max(TRIAL_SHARE * leaf.weight, best):
                    best, found = lighter, lefts
                elif not is_number and lighter >= TRIAL_SHARE * present >= TRIAL_SHARE * (
                    leaf.weight / 2
                ):
                    merit = self.merit(leaf, name, lefts, "target")
                    if merit > best * (1 + 1e-9):
                        best, found = merit, lefts
        return found

    def shows_more(self, merit):
        """Whether a side of the trial has a split beyond noise, and better than that of the leaf."""
        for side in self.trial.sides:
            for name in self.offered(side.nodes[0].watches) if side.weight else ():
                watch = side.nodes[0].watches[name]
                present = sum(sums.rows for sums in watch.places.values())
                orders = [sorted(watch.places)]
                if not isinstance(watch, Slots):
                    orders = [self.order(node.watches[name], "target") for node in side.nodes]
                for order in orders if name != self.trial.feature else ():
                    for after in range(len(order) - 1):
                        lefts = order[: after + 1]
                        left = sum(watch.places[place].rows for place in lefts)
                        found = self.merit(side, name, lefts, "target")
                        noise = TRIAL_EVIDENCE * (side.residual.variance - found)
                        if (
                            min(left, present - left) >= TRIAL_SHARE * present
                            and found > TRIAL_CLEARER * merit
                            and side.weight * found > noise
                        ):
                            return True
        return False

    def merit(self, leaf, name, lefts, kind):
        explained = []
        for node in leaf.nodes:
            places = sorted(node.watches[name].places.items())
            left = [(p, s) for p, s in places if p in lefts]
            right = [(p, s) for p, s in places if p not in lefts]
            weights = [Sums.of(side).weight for side in (left, right)]
            squares = 0.0
            if min(weights) > 0:
                squares = merit_of(left, right, kind) * sum(weights)
            explained.append(squares)
        return leaf.mean_share(explained)

    @staticmethod
    def missing_of_targets(leaf, name, lefts, measure):
        """Missing values go to the side that is more like them, or to the heavier one."""
        watches = [node.watches[name] for node in leaf.nodes]
        sides = [
            [
                Sums.of([(p, s) for p, s in watch.places.items() if (p in lefts) == is_left])
                for is_left in (True, False)
            ]
            for watch in watches
        ]
        known = [
            (unit, pair, watch.missing)
            for unit, pair, watch in zip(leaf.units, sides, watches, strict=True)
            if watch.missing.weight and pair[0].weight and pair[1].weight
        ]
        if not known:
            return sides[0][0].rows >= sides[0][1].rows
        far = [
            sum(
                unit * (pair[side].mean(measure) - missing.mean(measure)) ** 2
                for unit, pair, missing in known
            )
            for side in (0, 1)
        ]
        return far[0] <= far[1]

    def split(self, leaf, cut, goes_left=None):
        missing_left = self.missing_of_targets(leaf, cut.feature, cut.after, cut.measure)
        self.trial = None if self.trial and self.trial.leaf is leaf else self.trial
        leaf.cut, leaf.missing_left, leaf.was_on_trial = cut, missing_left, goes_left is not None
        leaf.gain, leaf.known_then = cut.merit * leaf.weight, leaf.known
        for face, node in zip(self.faces, leaf.nodes, strict=True):
            face.split_by(node, cut.feature, cut.after, missing_left)
        leaf.threshold, leaf.codes = leaf.nodes[0].threshold, leaf.nodes[0].codes
        for side in (0, 1):
            nodes = [node.children[side] for node in leaf.nodes]
            leaf.children += (Together(self.faces, nodes, self.grace_period),)
        self.leaves = [each for each in self.leaves if each is not leaf] + [*leaf.children]
        self.splits.append(leaf)
