"""A reference implementation of the tree: small objects, lists, dicts, textbook formulas.

`NaiveTree` makes the same decisions as `sapwood.HoeffdingTreeRegressor`, all in one place. They
share no code: `NaiveTree` takes y as it is, and computes every cut from its two sides.
"""

import math

from naive_layer import Layer, Memory
from naive_leaf import (
    NO_CUT,
    Categories,
    Cut,
    LinearModels,
    Moments,
    Slots,
    Sums,
    dot,
    merit_of,
    weight_of,
)
from naive_trial import (
    COARSEST,
    TRIAL_CLEARER,
    TRIAL_EVIDENCE,
    TRIAL_LEFT,
    TRIAL_PAUSE,
    TRIAL_SHARE,
    Side,
    Trial,
    decimals_of,
    round_cut,
)

FAST = 3  # the first expert that forgets fast: the mean, then linear models
FADE = 0.99  # what is left a row later of a leaf's errors
MARGIN = 0.1  # how far predictions go beyond the range of y
OTHERS = 63  # labels of a category of few
REPEATS, MOST_PRIOR = 10, 16  # rows before squares are believed; the most that shrink a level
MEMORY, MEMORY_OF_ALL = 256, 16384  # rows that the level of a category, and of all, remembers
MANY_ROWS, MOST_INHERITED, INHERITED_ERROR = 1000.0, 10.0, 0.5
OUTDATED, OUTDATED_ROWS = 1e6, 200
HELD_ROWS, HELD_ERROR, HELD_RANGE = 100, 1000, 0.25
LEAST_EVIDENCE, OPTIMISM, PATIENCE, FIRST_REVIEW = 15.0, 0.8, 10.0, 8.0
NEGLIGIBLE = 1e-4  # the share of the variance of y that is not worth a split
SAME_MERIT, SAME_SHARE = 0.8, 0.2  # of cuts that separate the same rows
APART, CLEARER, MOST_LEFT = 0.4, 4.0, 4.0  # of a split of y, compared with a split of the residual
MEASURES = {"target": ("target",), "residual": ("step", "line"), "best": ("target", "step", "line")}


class Node:
    """A leaf; once it is split, a node with two children. `side`: what the parent saw of it."""

    def __init__(self, watches, due, parent=None, side=None):
        self.watches, self.children, self.rows = watches, (), 0
        self.depth = parent.depth + 1 if parent else 0
        self.inherited = side or Sums()
        self.mean, self.mean_weight, self.models = 0.0, 0.0, LinearModels()
        if parent:
            is_known = side.weight > 0
            self.mean = side.mean("target") if is_known else parent.mean
            self.mean_weight = min(side.weight if is_known else parent.mean_weight, MOST_INHERITED)
            self.models = parent.models.child(side.mean("residual") if is_known else 0.0)
        # Exponentially weighted squares of errors: of the mean, and of each linear model.
        self.errors = [INHERITED_ERROR * e for e in parent.errors] if parent else [0.0] * 5
        # The same; half of it from the predictions that were issued.
        self.issued_errors = (
            [INHERITED_ERROR * e for e in parent.issued_errors] if parent else [0.0] * 5
        )
        self.start(due)

    def start(self, due):
        self.due = self.next_review = due
        self.next_trial = 0.0
        self.y, self.residual = Moments(), Moments()


def anytime_bound(n, delta):
    """By how much a mean of n values in [0, 1] is off, for all n at once (Howard et al., 2021)."""
    return 0.85 * math.sqrt((math.log(math.log(2 * n)) + 0.72 * math.log(5.2 / delta)) / n)


def anytime_weight(delta, lead):
    """The n from which on the bound is below a lead, by bisection."""
    low, high = math.e / 2, 1e300
    for _ in range(1100):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if anytime_bound(middle, delta) < lead else (middle, high)
    return high


class NaiveTree:
    """The parameters are those of the tree; `watch_number` makes what watches a number."""

    def __init__(
        self, *, grace_period=200, delta=1e-3, tau=0.05, min_share=0.02, max_depth=math.inf,
        leaf="adaptive", split_on="best", track="auto", slots=32, watch_number=None, no_splits=(),
        split_bound="hoeffding",
    ):  # fmt: skip
        self.grace_period, self.delta, self.tau = grace_period, delta, tau
        self.split_bound = split_bound
        self.min_share, self.max_depth, self.track = min_share, max_depth, track
        self.no_splits = no_splits
        self.explaining = range(1) if leaf == "mean" else range(1, 5)  # who leaves the residual
        self.experts = {"mean": slice(1), "linear": slice(1, None), "adaptive": slice(None)}[leaf]
        self.measures = MEASURES["target" if leaf == "mean" else split_on]
        self.watch_number = watch_number or (lambda: Slots(slots))
        self.labels = {}  # the features in their order; of a category, the code of each label
        self.levels = {}  # of a category, the moments of y by code, from the first y
        self.many = {}  # of a category of many, the moments of y and of two kinds of squares
        self.most_codes = math.inf
        self.root = Node({}, FIRST_REVIEW)
        self.leaves, self.splits, self.rows = [self.root], [], 0
        self.memory = Memory()
        self.appeared = {}  # the rows before that which first brought a value, or a feature
        self.trial, self.may_try = None, watch_number is None
        self.merit_on_trial = "target" if leaf == "mean" else "step"
        self.decimals = {}  # of a number, those that its values have
        self.ranges = {}  # of a number, the smallest and the largest that was learned
        self.weight = self.usual = 0.0

    def register(self, x):
        """Give all leaves the features of a row that are new, and labels their codes."""
        for name, value in x.items():
            if name not in self.labels:
                self.labels[name] = {}
                for leaf in self.leaves:
                    leaf.watches[name] = self.watch_number()
                    leaf.models.add_feature()
            if isinstance(value, str):
                self.levels.setdefault(name, {})
                for leaf in () if self.labels[name] else self.leaves:
                    leaf.watches[name] = Categories(leaf.watches[name].missing)
                for side in self.trial.sides if self.trial and not self.labels[name] else ():
                    side.watches[name] = Categories()
                self.labels[name].setdefault(value, len(self.labels[name]))
                if len(self.labels[name]) == OTHERS + 1 and name not in self.many:
                    self.become_many(name)

    def become_many(self, name):
        """Let the level of a category stand for it from now on, wherever numbers are meant."""
        if self.trial and self.trial.feature == name:
            self.trial = None
        for side in self.trial.sides if self.trial else ():
            side.watches.pop(name, None)
        levels = self.levels[name].values()
        self.many[name] = Moments([(own.mean, own.weight) for own in levels]), Moments(), Moments()
        for leaf in self.leaves:
            missing = leaf.watches[name].missing
            leaf.watches[name] = self.watch_number()
            leaf.watches[name].missing = missing

    @property
    def row_weight(self):
        return self.weight / self.rows

    def read_by_splits(self, name, code):
        """The number that stands for a category of many in splits."""
        return self.level(name, code)

    def level(self, name, code):
        """The mean y of a category, shrunk towards that of all as far as rows within a category
        differ more than categories do; no value before anything is known of any."""
        whole, within, about = self.many[name]
        own = self.levels[name].get(code)
        if whole.weight == 0:
            return None
        if own is None:
            return whole.mean
        row, prior = self.row_weight, 1.0
        if within.weight >= REPEATS * row:
            between = max(about.mean - within.mean, 1e-300)
            prior = min(max(within.mean / between, 1 / MOST_PRIOR), MOST_PRIOR)
        return whole.mean + (own.mean - whole.mean) * own.weight / (own.weight + prior * row)

    def learn_level(self, name, code, y, w):
        """Add a y, from the first, to its category; and to all, if they are many."""
        own = self.levels[name].setdefault(code, Moments())
        if name not in self.many:
            own.add(y, w)
            return
        row = self.row_weight
        whole, within, about = self.many[name]
        for known, squares in ((own, within), (whole, about)):
            if known.weight:
                share = known.weight / (known.weight + w)
                squares.add_recent((y - known.mean) ** 2 * share, w, MEMORY_OF_ALL * row)
        whole.add_recent(y, w, MEMORY_OF_ALL * row)
        own.add_recent(y, w, MEMORY * row)

    def find(self, x):
        """The leaf of a row, and its values: numbers, codes or levels, None where missing."""
        codes = {name: x.get(name) for name in self.labels}
        for name, labels in self.labels.items():
            if labels and codes[name] is not None:
                new = min(len(labels), self.most_codes) if len(labels) >= OTHERS else None
                codes[name] = labels.get(codes[name], new)
        row = dict(codes)
        for name in self.many:
            row[name] = None if codes[name] is None else self.read_by_splits(name, codes[name])
        node = self.root
        while node.children:
            value, left = row[node.cut.feature], node.missing_left
            if node.threshold is None:  # a category that was not seen goes as if it were missing
                left = node.codes.get(codes[node.cut.feature], left)
            elif value is not None:
                left = value < node.threshold
            node = node.children[not left]
        return node, row, codes

    def look(self, leaf, row):
        """The predictions of a leaf's experts, their combination, and the terms of the row."""
        z = leaf.models.standardise(self.read_by_models(row).values(), self.ranges_of(row))
        margin = MARGIN * (self.high - self.low)
        linear = [min(dot(beta, z), self.high + margin) for beta in leaf.models.betas]
        predicted = [leaf.mean, *(max(each, self.low - margin) for each in linear)]
        # The mean of the experts, weighted by the fourth power of one over their errors.
        experts = predicted[self.experts]
        errors = (leaf.issued_errors if self.track else leaf.errors)[self.experts]
        least = min(errors) or 1e-300
        weights = [(least / max(error, least)) ** 4 for error in errors]
        beyond = dot(weights, [each - experts[0] for each in experts])  # exactly 0 if all agree
        return predicted, experts[0] + beyond / sum(weights), z

    def ranges_of(self, row):
        return [None if name in self.levels else self.ranges.get(name) for name in row]

    def widen_ranges(self, row):
        for name, value in row.items():
            if value is not None:
                low, high = self.ranges.get(name, (value, value))
                self.ranges[name] = min(low, value), max(high, value)

    def read_by_models(self, row):
        """The values of a row for linear models: a category stands for the mean y of its rows."""
        values = dict(row)
        for name, levels in self.levels.items():
            if name not in self.many:
                values[name] = levels[row[name]].mean if row[name] in levels else None
        return values

    def predict(self, x):
        if not self.rows:
            self.memory.unrecorded += 1
            return 0.0
        leaf, row, codes = self.find(x)
        experts, tree, _ = self.look(leaf, row)
        if not self.track:
            return tree
        predicted, issued = self.layer.predict(tree)
        self.memory.leave(self.known_values(codes), self.rows, (issued, experts, self.rows))
        return predicted

    def known_values(self, codes):
        """What a row is known by: its values that are not missing, nor categories without a y."""
        return {
            name: value
            for name, value in codes.items()
            if value is not None
            and not isinstance(value, str)  # the first label of its feature
            and (name not in self.levels or value in self.levels[name])
        }

    def known_when(self, codes, rows):
        """Return what a row that is being learned was known by when so many rows were learned."""
        places = {name: value if name in self.levels else None for name, value in codes.items()}
        given = {name: value for name, value in codes.items() if value is not None}
        for name in codes:
            self.appeared.setdefault((name, places[name]), rows)
        return lambda then: {
            name: value for name, value in given.items() if self.appeared[name, places[name]] < then
        }

    def held_near(self, y, prediction):
        """A y as it is learned: not farther from its prediction than is credible."""
        error = y - prediction
        limit = max(HELD_ERROR * self.usual, (HELD_RANGE * (self.high - self.low)) ** 2)
        if self.rows >= HELD_ROWS and 0 < limit < error**2:
            error = math.copysign(math.sqrt(limit), error)
        self.usual += (error**2 - self.usual) / HELD_ERROR
        return prediction + error

    def learn(self, x, y, w=1.0):
        predicted_from = self.known_values(self.find(x)[2])  # before it brings something new
        self.register(x)
        leaf, row, codes = self.find(x)
        known_when = self.known_when(codes, self.rows)
        if self.rows == 0:
            self.first = y
            leaf.start(FIRST_REVIEW * w)  # after so many rows, whatever they weigh
            self.low = self.high = leaf.mean = y
            self.layer, self.memory.unrecorded = Layer(y), max(0, self.memory.unrecorded - 1)
            leaf.models.betas = [[y, *beta[1:]] for beta in leaf.models.betas]
        predicted, tree, z = self.look(leaf, row)
        then = predicted
        if self.rows:
            y = self.held_near(y, self.layer.predict(tree)[1][-1] if self.track else tree)
        if self.rows and self.track:
            note = self.memory.take(predicted_from, self.rows, known_when)
            then = self.recall(note, predicted, y, w)
            self.layer.follow(tree, y, w)
        self.widen_ranges(row)
        learned, _, z = self.look(leaf, row)
        self.rows, self.weight = self.rows + 1, self.weight + w
        self.low, self.high = min(y, self.low), max(y, self.high)
        errors = [y - each for each in learned]
        # The residual is the error of the linear model that was the best before this row.
        residual = errors[min(self.explaining, key=leaf.errors.__getitem__)]
        leaf.errors = [FADE * old + w * e**2 for old, e in zip(leaf.errors, errors, strict=True)]
        shares = [(e**2 + (y - each) ** 2) / 2 for e, each in zip(errors, then, strict=True)]
        leaf.issued_errors = [
            FADE * old + w * each for old, each in zip(leaf.issued_errors, shares, strict=True)
        ]
        leaf.mean_weight += w
        leaf.mean += errors[0] * w / leaf.mean_weight
        leaf.models.learn(z, errors[1:], w, leaf.rows)
        leaf.rows += 1
        leaf.y.add(y, w)
        leaf.residual.add(residual, w)
        for name, value in row.items():
            leaf.watches[name].add(value, w, y, residual)
            if name in self.levels and codes[name] is not None:
                self.learn_level(name, codes[name], y - self.first, w)
        self.see_decimals(row)
        if self.trial and self.trial.leaf is leaf:
            self.trial.add(row, residual, w)
        if leaf.y.weight >= leaf.due:
            self.attempt(leaf)

    def see_decimals(self, row):
        for name, value in row.items():
            if not self.labels[name] and value is not None:
                known = self.decimals.get(name, COARSEST)
                self.decimals[name] = None if known is None else decimals_of(value, known)

    def recall(self, note, predicted, y, w):
        """Score the error-correction layer; return the issued predictions of the experts."""
        if note is None:  # never predicted: least squares mostly replace the fast experts
            return predicted[:FAST] + [
                0.25 * each + 0.75 * predicted[1] for each in predicted[FAST:]
            ]
        issued, experts, known = note
        self.layer.judge(issued, y, w, self.rows - known)
        return experts

    def attempt(self, leaf):
        """Split a leaf that is due, or set when it will be due again."""
        weight = leaf.y.weight
        if self.is_outdated(leaf):
            self.reset(leaf)
            return
        if weight >= leaf.next_review:
            self.review(leaf)
            leaf.next_review = 2 * weight
            if self.trial and self.trial.leaf is leaf:  # once more, by the grids of now
                feature = self.trial.feature
                if not self.begin_trial(leaf, feature):
                    self.trial = Trial(leaf, feature, None, True, weight, ())
        if weight < self.grace_period:
            leaf.due = min(leaf.next_review, self.grace_period)
        elif leaf.depth >= self.max_depth:
            leaf.due = leaf.next_review
        else:
            cut, needed = self.decide(leaf)
            trial = None if cut or not self.may_try else self.go_on_trial(leaf)
            leaf.due = min(max(weight + self.grace_period, needed), 2 * weight)
            if self.trial and self.trial.leaf is leaf:
                leaf.due = min(leaf.due, self.trial.ends)
            if cut or trial:
                self.split(leaf, cut or trial, trial and self.trial.goes_left)

    def go_on_trial(self, leaf):
        """Begin, continue or decide trial splits at a leaf; return a split that has succeeded."""
        names, weight = self.names_of(leaf), leaf.y.weight
        if self.trial and self.trial.leaf is leaf:
            if weight < self.trial.ends:
                return None
            if self.shows_more(self.best_cuts(leaf, self.merit_on_trial)[0].merit):
                return self.trial_cut()
            names = names[names.index(self.trial.feature) + 1 :]
        else:
            whole = self.whole
            patient = weight >= max(PATIENCE * self.grace_period, leaf.next_trial)
            enough = leaf.residual.variance >= TRIAL_LEFT * whole > 0
            if self.trial or len(names) < 2 or not patient or not enough:
                return None
        self.trial = None
        if not any(self.begin_trial(leaf, name) for name in names):
            leaf.next_trial = TRIAL_PAUSE * weight
        return None

    @property
    def whole(self):
        """The variance of y in the root, when it was split or now."""
        return self.root.y.variance

    def names_of(self, leaf):
        """The features that a leaf may split on."""
        return list(self.offered(leaf.watches))

    def trial_cut(self):
        """The split that was on trial."""
        return Cut(self.trial.merit, None, self.trial.feature, self.merit_on_trial)

    def begin_trial(self, leaf, name):
        """Cut a feature in the middle, on trial; whether that leaves enough on either side."""
        watch, weight = leaf.watches[name], leaf.y.weight
        elements = watch.elements("target")
        present = weight_of(elements) if elements else 0.0
        is_number = isinstance(watch, Slots)
        cuts = []
        for after in range(len(elements) - 1):
            left, right = elements[: after + 1], elements[after + 1 :]
            lighter = min(weight_of(left), weight_of(right))
            if is_number and watch.width is not None and lighter >= TRIAL_SHARE * weight:
                cuts.append((lighter, after))
            elif not is_number and lighter >= TRIAL_SHARE * present >= TRIAL_SHARE * weight / 2:
                cuts.append((merit_of(left, right, "target"), -after))
        if not cuts or max(cuts)[0] <= 0:
            return False
        after = abs(max(cuts)[1])
        if is_number:
            cut = round_cut(watch.threshold(after), self.decimals.get(name))
            goes_left = lambda value: value < cut  # noqa: E731
        else:
            seen = {code: at <= after for at, (code, _) in enumerate(elements)}
            goes_left = lambda code: seen.get(code, missing_left)  # noqa: E731
        halves = elements[: after + 1], elements[after + 1 :]
        missing_left = self.missing_goes_left(watch, [Sums.of(half) for half in halves])
        own = {each: watch.on_trial() for each, watch in leaf.watches.items()}
        own = {each: watch for each, watch in own.items() if watch is not None}
        other = {each: leaf.watches[each].on_trial() for each in own}
        sides = Side(own, Moments()), Side(other, Moments())
        self.trial = Trial(leaf, name, goes_left, missing_left, weight + self.grace_period, sides)
        return True

    def shows_more(self, merit):
        """Whether a side of the trial has a split beyond noise, and better than that of the leaf."""
        for side in self.trial.sides:
            weight = side.residual.weight
            for name, watch in self.offered(side.watches).items() if weight else ():
                elements = watch.elements("target")
                present = weight_of(elements) if elements else 0.0
                for after in range(len(elements) - 1 if name != self.trial.feature else 0):
                    left, right = elements[: after + 1], elements[after + 1 :]
                    lighter = min(weight_of(left), weight_of(right))
                    found = merit_of(left, right, "target") * present / weight
                    beyond = weight * found > TRIAL_EVIDENCE * (side.residual.variance - found)
                    if (
                        lighter >= TRIAL_SHARE * present
                        and found > TRIAL_CLEARER * merit
                        and beyond
                    ):
                        return True
        return False

    def missing_goes_left(self, watch, sides, measure=None):
        """Missing values go to the side that is more like them, or to the heavier one."""
        left, right = sides
        measure = measure or self.merit_on_trial
        if watch.missing.weight == 0:
            return left.weight >= right.weight
        far = [abs(side.mean(measure) - watch.missing.mean(measure)) for side in sides]
        return far[0] <= far[1]

    def is_outdated(self, leaf):
        """Whether the errors of a leaf became nothing."""
        recent = (1 - FADE) * min(leaf.errors[self.experts]) * leaf.rows
        return leaf.rows >= OUTDATED_ROWS and recent * OUTDATED < leaf.residual.m2

    def reset(self, leaf):
        leaf.start(FIRST_REVIEW * self.weight / self.rows)
        self.trial = None if self.trial and self.trial.leaf is leaf else self.trial
        for name, labels in self.labels.items():
            few = labels and name not in self.many
            leaf.watches[name] = Categories() if few else self.watch_number()

    def review(self, leaf):
        """Look at all grids; and at the scales, in the first leaf and in those of many rows."""
        for place, (name, watch) in enumerate(leaf.watches.items()):
            centre, deviation, share = self.scale_of(name, watch)
            sure = len(self.leaves) == 1 or leaf.rows >= MANY_ROWS
            if deviation > 1e-300 and (
                sure or (leaf.models.scales[place] is None and share >= 0.5)
            ):
                leaf.models.rescale(place, centre, deviation)
            if isinstance(watch, Slots):
                watch.review()

    def scale_of(self, name, watch):
        """Mean and deviation of what stands for a feature in linear models."""
        return watch.scale(self.levels.get(name))

    def offered(self, watches):
        """Those of the features that leaves may split on."""
        return {name: each for name, each in watches.items() if name not in self.no_splits}

    def cuts(self, leaf, measure):
        """All cuts that leave enough on either side, by their merit over all rows of the leaf."""
        for name, watch in self.offered(leaf.watches).items():
            elements = watch.elements(measure)
            present = weight_of(elements)
            kind = measure if isinstance(watch, Slots) else measure.replace("line", "step")
            for after in range(len(elements) - 1):
                left, right = elements[: after + 1], elements[after + 1 :]
                least = self.min_share * present
                if least <= min(weight_of(left), weight_of(right)):
                    merit = merit_of(left, right, kind) * present / leaf.y.weight
                    yield Cut(merit, after, name, measure)

    def best_cuts(self, leaf, measure):
        """The best cut, and the best one of any other feature that separates other rows."""
        of_feature, best, second = {}, NO_CUT, NO_CUT
        for cut in self.cuts(leaf, measure):
            if cut.merit > of_feature.get(cut.feature, NO_CUT).merit:
                of_feature[cut.feature] = cut
        for cut in of_feature.values():
            is_same = best is not NO_CUT and self.separate_same_rows(leaf, cut, best)
            if is_same:  # the first of them is taken, whatever rounding makes of them
                best = cut if cut.merit > best.merit * (1 + 1e-9) else best
            elif cut.merit > best.merit:
                best, second = cut, best
            elif cut.merit > second.merit:
                second = cut
        return best, second

    def separate_same_rows(self, leaf, one, other):
        """Whether two cuts leave nearly the same on their sides, or on those exchanged."""
        if min(one.merit, other.merit) <= SAME_MERIT * max(one.merit, other.merit):
            return False
        ways = [True, True]  # left is left, or left is right
        weight = leaf.y.weight
        for node in self.nodes_of(leaf):
            means = 0.0, node.y.mean, node.residual.mean
            deviations = 1.0, *(math.sqrt(m.m2 / weight) for m in (node.y, node.residual))
            mine, its = (
                [
                    [each - side.weight * mean for each, mean in zip(
                        (side.rows, side.target, side.residual), means, strict=True
                    )]
                    for side in self.sides(leaf, node, cut)
                ]
                for cut in (one, other)
            )  # fmt: skip
            for way, order in enumerate((its, its[::-1])):
                ways[way] &= all(
                    abs(a - b) <= SAME_SHARE * weight * deviation
                    for one_side, other_side in zip(mine, order, strict=True)
                    for a, b, deviation in zip(one_side, other_side, deviations, strict=True)
                )
        return any(ways)

    @staticmethod
    def nodes_of(leaf):
        """The leaf, as each target knows it."""
        return [leaf]

    @staticmethod
    def sides(leaf, node, cut):
        """The statistics left and right of a split, of the y that a node knows."""
        elements = node.watches[cut.feature].elements(cut.measure)
        return Sums.of(elements[: cut.after + 1]), Sums.of(elements[cut.after + 1 :])

    def decide(self, leaf):
        """The cut that leaves the smallest error; that of y where it sets parts of y far apart, or
        where the residual long showed none."""
        choices, n = [], leaf.y.weight
        if leaf.residual.variance <= NEGLIGIBLE * leaf.y.variance:
            return None, math.inf
        for measure in self.measures:
            variance = (leaf.y if measure == "target" else leaf.residual).variance
            best, second = self.best_cuts(leaf, measure)
            choices.append((variance - best.merit, best, second))
        choice = min(choices, key=lambda choice: choice[0])
        if self.measures == MEASURES["best"] and choices[0][0] <= MOST_LEFT * choice[0]:
            shares = [
                choices[0][1].merit / leaf.y.variance,
                choice[1].merit / leaf.residual.variance,
            ]
            if choice is choices[0] or shares[0] >= max(APART, CLEARER * shares[1]):
                choice = choices[0]
        cut, needed = self.verdict(n, *choice)
        waited = n >= PATIENCE * self.grace_period and self.measures == MEASURES["best"]
        return self.verdict(n, *choices[0]) if waited and not cut else (cut, needed)

    def verdict(self, n, left_over, best, second):
        """A split, if it explains more than noise would and leads over those of other features by
        the split bound, or that is below tau; else none, and the weight at which it may be."""
        if best is NO_CUT:
            return None, math.inf
        enough = LEAST_EVIDENCE * max(left_over, 0.0)
        if n * best.merit <= enough:
            return None, OPTIMISM * enough / best.merit
        if self.split_bound == "none":
            return best, 0.0
        lead = max(1 - second.merit / best.merit, self.tau)
        if self.split_bound == "anytime":
            needed = anytime_weight(self.delta, lead)
            return best if n > needed else None, OPTIMISM * needed
        bound = math.sqrt(math.log(1 / self.delta) / (2 * n))
        return best if bound < lead else None, OPTIMISM * n * (bound / lead) ** 2

    def split(self, leaf, cut, goes_left=None):
        """Make two leaves of one; they start from what the split knows. A split that was on trial
        divides as it did."""
        watch = leaf.watches[cut.feature]
        elements = watch.elements(cut.measure)
        self.trial = None if self.trial and self.trial.leaf is leaf else self.trial
        if goes_left:
            by_place = isinstance(watch, Slots)
            ways = [
                goes_left(watch.border(place + 0.5) if by_place else place) for place, _ in elements
            ]
            pairs = sorted(zip(ways, elements, strict=True), key=lambda pair: not pair[0])
            elements, cut = [pair[1] for pair in pairs], cut._replace(after=sum(ways) - 1)
        halves = slice(None, cut.after + 1), slice(cut.after + 1, None)
        _left, _right = sides = [Sums.of(elements[half]) for half in halves]
        leaf.cut, leaf.codes = cut, {code: at <= cut.after for at, (code, _) in enumerate(elements)}
        leaf.threshold = None
        if isinstance(watch, Slots):
            decimals = self.decimals.get(cut.feature) if self.may_try else None
            leaf.threshold = round_cut(watch.threshold(cut.after), decimals)
        leaf.missing_left = self.missing_goes_left(watch, sides, cut.measure)
        for half, side in zip(halves, sides, strict=True):
            watches = {name: each.child() for name, each in leaf.watches.items()}
            watches[cut.feature] = watch.child(half)
            leaf.children += (Node(watches, self.grace_period, leaf, side),)
        self.leaves = [each for each in self.leaves if each is not leaf] + [*leaf.children]
        self.splits.append(leaf)
