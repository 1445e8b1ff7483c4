"""The tree once more, slow and obvious: small objects, lists, dicts, and the formulas of textbooks.

`NaiveTree` takes the decisions of `sapwood.HoeffdingTreeRegressor`, and says in one place which.
They share no code: it takes y as it is, and computes every cut from its two sides.
"""

import math
from collections import namedtuple

from naive_layer import Layer, Memory
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

LEAST_SHARES = (0.0, 0.02, 0.1, 0.3)  # of an error, by which a linear model moves: its forgetting
FAST = 3  # the first expert that forgets fast: the mean, then linear models
FADE = 0.99  # what is left a row later of a leaf's errors
MARGIN = 0.1  # how far predictions go beyond the range of y
Z_REACH, Z_CREDIBLE = 100.0, 10_000.0  # how far features go from 0, and are believed
OTHERS, SQUARE_TERMS = 63, 40  # labels of a category of few; more terms: P is a diagonal
REPEATS, MOST_PRIOR = 10, 16  # rows before squares are believed; the most that shrink a level
MEMORY, MEMORY_OF_ALL = 256, 16384  # rows that the level of a category, and of all, remembers
PRIOR, PRIOR_OF_CONSTANT, HEAVIEST = 1.0, 1000.0, 1e6  # variances of coefficients, weight of a row
YOUNG, SAMPLE, LONG_MEMORY = 64, 8, 2**20  # P learns from all rows, then every eighth, then none
TOLERATED_SCALE, USELESS_SCALE, MANY_ROWS = 2.0, 16.0, 1000.0
INFLATION, MOST_UNCERTAIN, MOST_INHERITED, INHERITED_ERROR = 3.0, 4.0, 10.0, 0.5  # of a child
KEPT_ROWS, FAR, TOLERATED_BEYOND, OUTDATED, OUTDATED_ROWS = 24, 4.0, 0.125, 1e6, 200
HELD_ROWS, HELD_ERROR, HELD_RANGE = 100, 1000, 0.25
LEAST_EVIDENCE, OPTIMISM, PATIENCE, FIRST_REVIEW = 15.0, 0.8, 10.0, 8.0
APART, CLEARER, MOST_LEFT = 0.4, 4.0, 4.0  # of a cut of y, beside that of the residual
MEASURES = {"target": ("target",), "residual": ("step", "line"), "best": ("target", "step", "line")}


class Moments:
    """Weight, mean and sum of squares about it, by Welford's update."""

    def __init__(self, pairs=()):
        self.weight = self.mean = self.m2 = 0.0
        for value, w in pairs:
            self.add(value, w)

    def add(self, value, w):
        before = value - self.mean
        self.weight += w
        self.mean += before * (w / self.weight)  # exact while the value is always the same
        self.m2 += w * before * (value - self.mean)

    def add_lately(self, value, w, most):
        """Add a value to a mean that weighs no more than so much, or than the value."""
        self.weight = max(min(self.weight + w, most), w)
        self.mean += (value - self.mean) * (w / self.weight)

    @property
    def variance(self):
        return self.m2 / self.weight if self.weight else 0.0


class Sums:
    """Rows at a place: weight, and weighted sums of y and residual. With the place, an element.

    `rows` is the weight of all of them, `weight` that of those whose y is known.
    """

    def __init__(self, rows=0.0, weight=0.0, target=0.0, residual=0.0):
        self.rows, self.weight, self.target, self.residual = rows, weight, target, residual

    @property
    def parts(self):
        return self.rows, self.weight, self.target, self.residual

    @classmethod
    def of(cls, elements):
        parts = [sums.parts for _, sums in elements]
        return cls(*map(sum, zip(*parts, strict=True)))

    def add(self, w, target, residual):
        """Add a row; its y may be None."""
        self.rows += w
        if target is not None:
            self.weight, self.target = self.weight + w, self.target + w * target
            self.residual += w * residual
        return self

    def merge(self, other):
        both = [one + more for one, more in zip(self.parts, other.parts, strict=True)]
        self.rows, self.weight, self.target, self.residual = both

    def mean(self, measure):
        return (self.target if measure == "target" else self.residual) / self.weight


def scale_of(pairs):
    """Mean and deviation of weighted places, and the share of all but the heaviest of them."""
    found, heaviest = Moments(pairs), max((w for _, w in pairs), default=0.0)
    return found.mean, math.sqrt(found.variance), 1 - heaviest / found.weight if pairs else 0.0


class Categories:
    """What a leaf sees of a category: an element for each code, and the rows without a value."""

    def __init__(self, missing=None):
        self.places, self.missing = {}, missing or Sums()

    def add(self, place, *row):
        (self.missing if place is None else self.places.setdefault(place, Sums())).add(*row)

    def elements(self, measure):
        """In the order of their means: the best subset is a prefix (Fisher 1958)."""
        return sorted(sorted(self.places.items()), key=lambda pair: pair[1].mean(measure))

    def scale(self, levels):
        """That of what stands for categories in linear models."""
        known = [(code, sums.weight) for code, sums in self.places.items() if sums.weight]
        return scale_of([(levels[code].mean, weight) for code, weight in known])

    def child(self, _side=None):
        return Categories()

    def on_trial(self):
        """An empty watch by the same places; None if there are none yet."""
        return Categories()


class Slots(Categories):
    """A number: slots of equal width over the span of the first rows, or of the parent's."""

    def __init__(self, count, span=None):
        super().__init__()
        self.count, self.kept, self.low, self.width = count, [], None, None
        if span:
            self.lay(*span)

    def lay(self, low, high):
        """Lay the slots over a span; width and low end are short numbers."""
        width = high / (self.count - 3) - low / (self.count - 3) or abs(low) * 2.0**-50
        mantissa, exponent = math.frexp(max(width, 1e-290))
        self.width = math.ldexp(math.ceil(16 * mantissa) / 16, exponent)
        first = math.floor(low / self.width) - 1
        self.low = first * self.width if abs(first) < 2**50 else low - self.width

    def add(self, x, *row):
        """Put a row into its slot; the first ones are kept until the slots are laid."""
        if x is None:
            self.missing.add(*row)
        elif self.width is not None:
            super().add(self.slot_of(x), *row)
        else:
            self.kept.append((x, Sums().add(*row)))
            if len(self.kept) == min(KEPT_ROWS, 3 * self.count // 4):
                self.use_kept(sorted(x for x, _ in self.kept))

    def slot_of(self, x):
        """The slots at the ends also take what lies beyond."""
        return math.floor(min(max((x - self.low) / self.width, 0), self.count - 1))

    def use_kept(self, x):
        """Put the rows that were kept into slots; or join them, if x is the same in all."""
        if x[0] == x[-1]:
            self.kept = [(x[0], Sums.of(self.kept))]
            return
        # From the smallest to the largest, but for two at an end that are far from the rest.
        far = (FAR * (x[-3] - x[2]) if len(x) >= 12 else 0.0) or math.inf
        self.lay(x[2] if x[2] - x[0] > far else x[0], x[-3] if x[-1] - x[-3] > far else x[-1])
        for place, sums in self.kept:
            self.places.setdefault(self.slot_of(place), Sums()).merge(sums)

    def elements(self, _measure=None):
        return sorted(self.places.items())

    def border(self, slot):
        return self.low + slot * self.width

    def threshold(self, after):
        return self.border(self.elements()[after][0] + 1)

    def scale(self, _levels=None):
        """Within a slot, rows count as spread evenly."""
        if self.width is None:
            return scale_of([(x, sums.rows) for x, sums in self.kept])
        centre, deviation, share = scale_of([(p + 0.5, sums.rows) for p, sums in self.elements()])
        deviation = math.hypot(deviation, 12**-0.5) if share else 0.0
        return self.border(centre), deviation * self.width, share

    def review(self):
        """Start anew if there is much at an end, or all in one slot."""
        weights = [self.places.get(slot, Sums()).rows for slot in range(self.count)]
        much = max(weights[0], weights[-1]) > TOLERATED_BEYOND * sum(weights)
        if self.width is not None and (much or len(self.places) <= 1):
            self.places, self.kept, self.width = {}, [], None

    def on_trial(self):
        watch = Slots(self.count)
        watch.low, watch.width = self.low, self.width
        return None if self.width is None else watch

    def child(self, side=slice(None)):
        """An empty watch over the slots that have rows, of one side if this feature is cut."""
        used = [slot for slot, _ in self.elements()][side]
        return Slots(self.count, used and (self.border(used[0]), self.border(used[-1] + 1)))


Cut = namedtuple("Cut", "merit after feature measure")  # after which element of the feature
NO_CUT = Cut(0.0, -1, None, None)


def merit_of(left, right, measure):
    """By how much the variance falls if either side has its own mean, of y ("target") or of the
    residual ("step"); or its own line for the residual, instead of one over all ("line")."""
    a, b, n = Sums.of(left), Sums.of(right), Sums.of(left + right).weight
    if measure != "line":
        return a.weight * b.weight / n**2 * (a.mean(measure) - b.mean(measure)) ** 2
    return (line_explains(left) + line_explains(right) - line_explains(left + right)) / n


def line_explains(elements):
    """By how much a least-squares line, r = a + b p, lowers the sum of the squared residuals."""
    n, r = Sums.of(elements).weight, Sums.of(elements).residual
    p, pp = (sum(sums.weight * place**power for place, sums in elements) for power in (1, 2))
    pr = sum(sums.residual * place for place, sums in elements)
    if pp - p * p / n <= 1e-9 * pp:  # places hardly differ: a constant
        return r * r / n
    # The normal equations: n a + p b = r and p a + pp b = pr.
    determinant = n * pp - p * p
    a, b = (pp * r - p * pr) / determinant, (n * pr - p * r) / determinant
    return a * r + b * pr


def weighted(share, w):
    """What a share for rows of weight 1 is for another weight: its odds are multiplied."""
    return w * share / (1 - share + w * share)


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


class LinearModels:
    """Recursive least squares, at four rates of forgetting, which share the covariance P."""

    def __init__(self):
        self.betas = [[0.0] for _ in LEAST_SHARES]
        self.P = [[PRIOR_OF_CONSTANT]]
        self.scales = []  # of each feature: centre and deviation, or None

    def add_feature(self):
        self.betas = [[*beta, 0.0] for beta in self.betas]
        self.P = [[*row, 0.0] for row in self.P] + [[0.0] * len(self.P) + [PRIOR]]
        self.scales.append(None)
        if len(self.P) > SQUARE_TERMS:
            self.P = [[p * (i == j) for j, p in enumerate(row)] for i, row in enumerate(self.P)]

    def standardise(self, values):
        """The terms of a row: 1, and each feature; what is missing counts as the mean."""
        pairs = zip(values, self.scales, strict=True)
        z = [(x - scale[0]) / scale[1] if scale and x is not None else 0.0 for x, scale in pairs]
        z = [each if abs(each) <= Z_CREDIBLE else 0.0 for each in z]
        return [1.0, *(min(max(each, -Z_REACH), Z_REACH) for each in z)]

    def learn(self, z, errors, w, rows, ahead=1.0):
        """Move each model by the share of its error that least squares takes, or by its rate.

        P may be so many times `ahead` of the models, as it learns from rows without a y, too.
        """
        v = [dot(row, z) for row in self.P]
        unusual, evidence = dot(z, v), min(w, HEAVIEST) * dot(z, v) * ahead
        share = evidence / (1 + evidence)
        for beta, least, error in zip(self.betas, LEAST_SHARES, errors, strict=True):
            step = max(share, weighted(least, min(w, HEAVIEST))) * error / unusual
            beta[:] = [b + step * each for b, each in zip(beta, v, strict=True)]
        self.learn_row(z, w, rows)

    def learn_row(self, z, w, rows):
        """Let P learn a row."""
        w = min(w, HEAVIEST)
        v = [dot(row, z) for row in self.P]
        unusual = dot(z, v)
        if rows >= YOUNG:
            w = SAMPLE * w if rows < LONG_MEMORY and rows % SAMPLE == 0 else 0.0
        # P - P z z' P w / (1 + w z' P z); in a diagonal each variance for itself.
        for i, row in enumerate(self.P if w > 0 else ()):
            if len(self.P) > SQUARE_TERMS:
                row[i] /= 1 + w * row[i] * z[i] ** 2
            else:
                factor = w * v[i] / (1 + w * unusual)
                row[:] = [p - factor * vj for p, vj in zip(row, v, strict=True)]

    def rescale(self, feature, centre, deviation):
        """Standardise a feature by another centre and deviation, if those in use are far off."""
        old, term, terms = self.scales[feature], feature + 1, range(len(self.P))
        if old:
            stretch, move = deviation / old[1], (centre - old[0]) / old[1]
            off = max(stretch, 1 / stretch, 2 * abs(move))
            if off < TOLERATED_SCALE:
                return
            own, both, constant = self.P[term][term], self.P[0][term], self.P[0][0]
            if len(self.P) <= SQUARE_TERMS:
                constant += move * (2 * both + move * own)
            largest = max(abs(beta[term]) for beta in self.betas)
            if constant >= 1e6 or largest * abs(move) >= 1e140:
                stretch = move = 0.0
            elif off >= USELESS_SCALE or not 1e-30 < stretch**2 * own < 1e3:
                stretch = 0.0  # what is known of its coefficient is forgotten
            # The same models for z' = (z - move) / stretch: T beta and T P T'.
            T = [[float(i == j) for j in terms] for i in terms]
            T[0][term], T[term][term] = move, stretch
            self.betas = [[dot(row, beta) for row in T] for beta in self.betas]
            if len(self.P) > SQUARE_TERMS:
                self.P[term][term] *= stretch**2
            else:
                self.P = [[dot(u, [dot(row, v) for row in self.P]) for v in T] for u in T]
            self.P[term][term] = self.P[term][term] if stretch else PRIOR
        self.scales[feature] = centre, deviation

    def child(self, shift):
        """The same models, moved by a shift, and less sure of themselves."""
        child = LinearModels()
        child.scales = list(self.scales)
        child.betas = [[beta[0] + shift, *beta[1:]] for beta in self.betas]
        most = [MOST_UNCERTAIN * (PRIOR if i else PRIOR_OF_CONSTANT) for i in range(len(self.P))]
        f = [math.sqrt(min(INFLATION, m / self.P[i][i])) for i, m in enumerate(most)]
        child.P = [[f[i] * f[j] * p for j, p in enumerate(row)] for i, row in enumerate(self.P)]
        return child


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
        # Faded squares of errors: of the mean, and of each linear model.
        self.errors = [INHERITED_ERROR * e for e in parent.errors] if parent else [0.0] * 5
        # The same, half of what they said when rows were predicted.
        self.said = [INHERITED_ERROR * e for e in parent.said] if parent else [0.0] * 5
        self.start(due)

    def start(self, due):
        self.due = self.next_review = due
        self.next_trial = 0.0
        self.y, self.residual = Moments(), Moments()


class NaiveTree:
    """The parameters are those of the tree; `watch_number` makes what watches a number."""

    def __init__(
        self, *, grace_period=200, delta=1e-3, tau=0.05, min_share=0.02, max_depth=math.inf,
        leaf="adaptive", split_on="best", track="auto", slots=32, watch_number=None,
    ):  # fmt: skip
        self.grace_period, self.delta, self.tau = grace_period, delta, tau
        self.min_share, self.max_depth, self.track = min_share, max_depth, track
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
        self.trial, self.may_try = None, watch_number is None
        self.merit_on_trial = "target" if leaf == "mean" else "step"
        self.decimals = {}  # of a number, those that its values have
        self.weight = self.usual = 0.0

    def register(self, x):
        """Give all leaves the features of a row that are new, and labels their codes."""
        for name, value in x.items():
            if name not in self.labels:
                self.labels[name], self.trial = {}, None
                for leaf in self.leaves:
                    leaf.watches[name] = self.watch_number()
                    leaf.models.add_feature()
            if isinstance(value, str):
                self.levels.setdefault(name, {})
                self.trial = self.trial if self.labels[name] else None
                for leaf in () if self.labels[name] else self.leaves:
                    leaf.watches[name] = Categories(leaf.watches[name].missing)
                self.labels[name].setdefault(value, len(self.labels[name]))
                if len(self.labels[name]) == OTHERS + 1 and name not in self.many:
                    self.become_many(name)

    def become_many(self, name):
        """Let the level of a category stand for it from now on, wherever numbers are meant."""
        self.trial = None
        levels = self.levels[name].values()
        self.many[name] = Moments([(own.mean, own.weight) for own in levels]), Moments(), Moments()
        for leaf in self.leaves:
            missing = leaf.watches[name].missing
            leaf.watches[name] = self.watch_number()
            leaf.watches[name].missing = missing

    def level(self, name, code):
        """The mean y of a category, shrunk towards that of all as far as rows within a category
        differ more than categories do; no value before anything is known of any."""
        whole, within, about = self.many[name]
        own = self.levels[name].get(code)
        if whole.weight == 0:
            return None
        if own is None:
            return whole.mean
        row, prior = self.weight / self.rows, 1.0
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
        row = self.weight / self.rows
        whole, within, about = self.many[name]
        for known, squares in ((own, within), (whole, about)):
            if known.weight:
                share = known.weight / (known.weight + w)
                squares.add_lately((y - known.mean) ** 2 * share, w, MEMORY_OF_ALL * row)
        whole.add_lately(y, w, MEMORY_OF_ALL * row)
        own.add_lately(y, w, MEMORY * row)

    def find(self, x):
        """The leaf of a row, and its values: numbers, codes or levels, None where missing."""
        codes = {name: x.get(name) for name in self.labels}
        for name, labels in self.labels.items():
            if labels and codes[name] is not None:
                new = min(len(labels), self.most_codes) if len(labels) >= OTHERS else None
                codes[name] = labels.get(codes[name], new)
        row = dict(codes)
        for name in self.many:
            row[name] = None if codes[name] is None else self.level(name, codes[name])
        node = self.root
        while node.children:
            value, left = row[node.cut.feature], node.missing_left
            if value is not None and node.threshold is not None:
                left = value < node.threshold
            elif value is not None:  # a category that was not seen goes as if it were missing
                left = node.codes.get(codes[node.cut.feature], left)
            node = node.children[not left]
        return node, row, codes

    def look(self, leaf, row):
        """What the experts of a leaf say, what they say together, and the terms of the row."""
        values = dict(row)
        for name, levels in self.levels.items():  # a category stands for the mean y of its rows
            if name not in self.many:
                values[name] = levels[row[name]].mean if row[name] in levels else None
        z = leaf.models.standardise(values.values())
        margin = MARGIN * (self.high - self.low)
        linear = [min(dot(beta, z), self.high + margin) for beta in leaf.models.betas]
        said = [leaf.mean, *(max(each, self.low - margin) for each in linear)]
        # The mean of the experts, weighted by the fourth power of one over their errors.
        experts = said[self.experts]
        errors = (leaf.said if self.track else leaf.errors)[self.experts]
        least = min(errors) or 1e-300
        weights = [(least / max(error, least)) ** 4 for error in errors]
        beyond = dot(weights, [each - experts[0] for each in experts])  # exactly 0 if all agree
        return said, experts[0] + beyond / sum(weights), z

    def predict(self, x):
        if not self.rows:
            self.memory.blanks += 1
            return 0.0
        leaf, row, codes = self.find(x)
        experts, tree, _ = self.look(leaf, row)
        if not self.track:
            return tree
        said, saying = self.layer.say(tree)
        self.memory.leave(self.known_values(codes), self.rows, (saying, experts, self.rows))
        return said

    def known_values(self, codes):
        """What a row is known by: its values that are not missing, nor categories without a y."""
        return {
            name: value
            for name, value in codes.items()
            if value is not None and (name not in self.levels or value in self.levels[name])
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
        if self.rows == 0:
            self.first = y
            leaf.start(FIRST_REVIEW * w)  # after so many rows, whatever they weigh
            self.low = self.high = leaf.mean = y
            self.layer, self.memory.blanks = Layer(y), max(0, self.memory.blanks - 1)
            leaf.models.betas = [[y, *beta[1:]] for beta in leaf.models.betas]
        said, tree, z = self.look(leaf, row)
        then = said
        if self.rows:
            y = self.held_near(y, self.layer.say(tree)[0] if self.track else tree)
        if self.rows and self.track:
            then = self.recall(self.memory.take(predicted_from, self.rows), said, y, w)
            self.layer.follow(tree, y, w)
        self.rows, self.weight = self.rows + 1, self.weight + w
        self.low, self.high = min(y, self.low), max(y, self.high)
        errors = [y - each for each in said]
        # The residual is the error of the linear model that was the best before this row.
        residual = errors[min(self.explaining, key=leaf.errors.__getitem__)]
        leaf.errors = [FADE * old + w * e**2 for old, e in zip(leaf.errors, errors, strict=True)]
        shares = [(e**2 + (y - each) ** 2) / 2 for e, each in zip(errors, then, strict=True)]
        leaf.said = [FADE * old + w * each for old, each in zip(leaf.said, shares, strict=True)]
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

    def recall(self, note, said, y, w):
        """Judge the last layer by what it said; return what the experts of the leaf said."""
        if note is None:  # never predicted: mostly, least squares stand for what is fast
            return said[:FAST] + [0.25 * each + 0.75 * said[1] for each in said[FAST:]]
        saying, experts, known = note
        self.layer.judge(saying, y, w, self.rows - known)
        return experts

    def attempt(self, leaf):
        """Split a leaf that is due, or say when it will be due again."""
        weight = leaf.y.weight
        if self.is_outdated(leaf):
            self.start_anew(leaf)
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
        """Begin, judge or go on with trials at a leaf; a cut if one has shown something."""
        names, weight = list(leaf.watches), leaf.y.weight
        if self.trial and self.trial.leaf is leaf:
            if weight < self.trial.ends:
                return None
            if self.shows_more(self.best_cuts(leaf, self.merit_on_trial)[0].merit):
                return Cut(self.trial.merit, None, self.trial.feature, self.merit_on_trial)
            names = names[names.index(self.trial.feature) + 1 :]
        else:
            whole = self.root.y.variance
            patient = weight >= max(PATIENCE * self.grace_period, leaf.next_trial)
            enough = leaf.residual.variance >= TRIAL_LEFT * whole > 0
            if self.trial or len(names) < 2 or not patient or not enough:
                return None
        self.trial = None
        if not any(self.begin_trial(leaf, name) for name in names):
            leaf.next_trial = TRIAL_PAUSE * weight
        return None

    def begin_trial(self, leaf, name):
        """Cut a feature in the middle, on trial; whether that leaves enough on either side."""
        watch, weight = leaf.watches[name], leaf.y.weight
        elements = watch.elements("target")
        present = Sums.of(elements).weight if elements else 0.0
        is_number = isinstance(watch, Slots)
        cuts = []
        for after in range(len(elements) - 1):
            left, right = elements[: after + 1], elements[after + 1 :]
            lighter = min(Sums.of(left).weight, Sums.of(right).weight)
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
        """Whether a side of the trial has a cut beyond noise, and beyond that of the leaf."""
        for side in self.trial.sides:
            weight = side.residual.weight
            for name, watch in side.watches.items() if weight else ():
                elements = watch.elements("target")
                present = Sums.of(elements).weight if elements else 0.0
                for after in range(len(elements) - 1 if name != self.trial.feature else 0):
                    left, right = elements[: after + 1], elements[after + 1 :]
                    lighter = min(Sums.of(left).weight, Sums.of(right).weight)
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
        lately = (1 - FADE) * min(leaf.errors[self.experts]) * leaf.rows
        return leaf.rows >= OUTDATED_ROWS and lately * OUTDATED < leaf.residual.m2

    def start_anew(self, leaf):
        leaf.start(FIRST_REVIEW * self.weight / self.rows)
        self.trial = None if self.trial and self.trial.leaf is leaf else self.trial
        for name, labels in self.labels.items():
            few = labels and name not in self.many
            leaf.watches[name] = Categories() if few else self.watch_number()

    def review(self, leaf):
        """Look at all grids; and at the scales, in the first leaf and in those of many rows."""
        for place, (name, watch) in enumerate(leaf.watches.items()):
            centre, deviation, share = watch.scale(self.levels.get(name))
            sure = len(self.leaves) == 1 or leaf.rows >= MANY_ROWS
            if deviation > 1e-300 and (
                sure or (leaf.models.scales[place] is None and share >= 0.5)
            ):
                leaf.models.rescale(place, centre, deviation)
            if isinstance(watch, Slots):
                watch.review()

    def cuts(self, leaf, measure):
        """All cuts that leave enough on either side, by their merit over all rows of the leaf."""
        for name, watch in leaf.watches.items():
            elements = watch.elements(measure)
            present = Sums.of(elements).weight
            kind = measure if isinstance(watch, Slots) else measure.replace("line", "step")
            for after in range(len(elements) - 1):
                left, right = elements[: after + 1], elements[after + 1 :]
                least = self.min_share * present
                if least <= min(Sums.of(left).weight, Sums.of(right).weight):
                    merit = merit_of(left, right, kind) * present / leaf.y.weight
                    yield Cut(merit, after, name, measure)

    def best_cuts(self, leaf, measure):
        """The best cut, and the best one of any other feature."""
        cuts = sorted(self.cuts(leaf, measure), key=lambda cut: -cut.merit)
        cuts = [cut for cut in cuts if cut.merit > 0] or [NO_CUT]
        return cuts[0], next((cut for cut in cuts if cut.feature != cuts[0].feature), NO_CUT)

    def decide(self, leaf):
        """The cut that leaves the smallest error; that of y where it sets parts of y far apart, or
        where the residual long showed none."""
        choices, n = [], leaf.y.weight
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
        cut, needed = self.judge(n, *choice)
        waited = n >= PATIENCE * self.grace_period and self.measures == MEASURES["best"]
        return self.judge(n, *choices[0]) if waited and not cut else (cut, needed)

    def judge(self, n, left_over, best, second):
        """A cut, if it explains more than noise would and leads over those of other features by
        the Hoeffding bound, or that is below tau; else none, and the weight at which it may be."""
        if best is NO_CUT:
            return None, math.inf
        enough = LEAST_EVIDENCE * max(left_over, 0.0)
        if n * best.merit <= enough:
            return None, OPTIMISM * enough / best.merit
        lead = max(1 - second.merit / best.merit, self.tau)
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
