"""What a leaf knows once more, slow and obvious: sums, slots, cuts and linear models."""

import math
from collections import namedtuple
from operator import attrgetter

LEAST_SHARES = (0.0, 0.02, 0.1, 0.3)  # of an error, by which a linear model moves: its forgetting
Z_REACH, Z_CREDIBLE = 100.0, 10_000.0  # how far features go from 0, and are believed
SQUARE_TERMS = 40  # with more terms P is a diagonal
PRIOR, PRIOR_OF_CONSTANT, HEAVIEST = 1.0, 1000.0, 1e6  # variances of coefficients, weight of a row
YOUNG, SAMPLE, LONG_MEMORY = 64, 8, 2**20  # P learns from all rows, then every eighth, then none
TOLERATED_SCALE, USELESS_SCALE = 2.0, 16.0
INFLATION, MOST_UNCERTAIN = 3.0, 4.0  # of a child's P
KEPT_ROWS, FAR, TOLERATED_BEYOND = 24, 4.0, 0.125


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

    def add_recent(self, value, w, most):
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

    @classmethod
    def of(cls, elements):
        return cls(*map(sum, zip(*[PARTS(sums) for _, sums in elements], strict=True)))

    def add(self, w, target, residual):
        """Add a row; its y may be None."""
        self.rows += w
        if target is not None:
            self.weight, self.target = self.weight + w, self.target + w * target
            self.residual += w * residual
        return self

    def merge(self, other):
        both = [one + more for one, more in zip(PARTS(self), PARTS(other), strict=True)]
        self.rows, self.weight, self.target, self.residual = both

    def mean(self, measure):
        return (self.target if measure == "target" else self.residual) / self.weight


PARTS = attrgetter("rows", "weight", "target", "residual")


def weight_of(elements):
    """The weight of the rows of elements whose y is known."""
    return sum(sums.weight for _, sums in elements)


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
        """Reset the slots if much is at an end, or all in one slot."""
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
    n = weight_of(left + right)
    if measure != "line":
        a, b = Sums.of(left), Sums.of(right)
        return a.weight * b.weight / n**2 * (a.mean(measure) - b.mean(measure)) ** 2
    return (line_explains(left) + line_explains(right) - line_explains(left + right)) / n


def line_explains(elements):
    """By how much a least-squares line, r = a + b p, lowers the sum of the squared residuals."""
    n, r = weight_of(elements), sum(sums.residual for _, sums in elements)
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

    def standardise(self, values, ranges):
        """The terms of a row: 1, and each feature; what is missing counts as the mean.

        A value beyond the range of its column, if it has one, counts as the nearest end.
        """
        z = [1.0]
        for x, scale, known in zip(values, self.scales, ranges, strict=True):
            term = 0.0
            if scale and x is not None and abs((x - scale[0]) / scale[1]) <= Z_CREDIBLE:
                held = x if known is None else min(max(x, known[0]), known[1])
                term = min(max((held - scale[0]) / scale[1], -Z_REACH), Z_REACH)
            z.append(term)
        return z

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
