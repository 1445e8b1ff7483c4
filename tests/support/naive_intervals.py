"""A reference implementation of prediction intervals."""

import math
from statistics import NormalDist

FIRST_ROWS, PRIOR, LARGEST = 20, 20, 1e140


class Region:
    def __init__(self, total, weight, rows, quantiles):
        self.total, self.weight, self.rows = total, weight, rows
        self.quantiles = [list(pair) for pair in quantiles]

    def child(self):
        return Region(self.total / 2, self.weight / 2, self.rows / 2, self.quantiles)


class MemberPredictions:
    def __init__(self, prediction, usual=None, bounds=None):
        self.prediction, self.usual, self.bounds = prediction, usual, bounds
        self.labels = None  # that were known, if the label is delayed


class Bounds:
    """Bounds by region; regions are any names, each with the name of the one above it."""

    def __init__(self, levels, parents):
        reach = [NormalDist().inv_cdf((1 + level) / 2) for level in levels]
        self.levels, self.parents = levels, parents
        self.regions = {0: Region(0.0, 0.0, 0.0, [(-z, z) for z in reach])}
        self.rows, self.total, self.weight, self.recent = 0, 0.0, 0.0, 1.0
        self.factors = [1.0] * len(levels)
        self.seen = []
        self.labels, self.lateness = 0, 0.0
        self.groups = {}  # factors of each

    def issue(self, name, prediction, group=None):
        """Predict the interval of a row whose label arrives later."""
        issued = self.predict(name, prediction, group)
        issued.labels = self.labels
        return issued

    def region(self, name):
        if name not in self.regions:
            above = self.parents[name]
            while above not in self.regions:
                above = self.parents[above]
            return self.regions[above].child()
        return self.regions[name]

    def predict(self, name, prediction, group=None):
        if self.rows < FIRST_ROWS or not abs(prediction) <= LARGEST:
            return MemberPredictions(prediction)
        own = self.region(name)
        mean = self.total / self.weight
        usual = (own.total + PRIOR * mean) / (own.weight + PRIOR)
        unit = math.sqrt(math.pi / 2) * usual * min(max(self.recent, 0.05), 20) ** 0.25
        of_group = self.groups.get(group, [1.0] * len(self.levels))
        factors = [a * b for a, b in zip(self.factors, of_group, strict=True)]
        bounds = [
            (prediction + low * unit * factor, prediction + high * unit * factor)
            for (low, high), factor in zip(own.quantiles, factors, strict=True)
        ]
        return MemberPredictions(prediction, usual, bounds)

    def published(self, issued):
        if issued.bounds is None:
            return [(math.nan, math.nan)] * len(self.levels)
        lowest = -math.inf
        highest = math.inf
        low, high = issued.bounds[0]
        if self.seen.count(min(self.seen)) >= 10 and high >= min(self.seen):
            lowest = min(self.seen)
        if self.seen.count(max(self.seen)) >= 10 and low <= max(self.seen):
            highest = max(self.seen)
        bounds, lower, upper = [], math.inf, -math.inf
        for low, high in issued.bounds:
            lower, upper = min(lower, low), max(upper, high)
            bounds.append((max(lower, lowest), min(upper, highest)))
        return bounds

    def score(self, name, issued, y, w=1.0, group=None):
        own = self.regions[name] = self.region(name)
        late = 0 if issued.labels is None else self.labels - issued.labels
        self.labels += 1
        if not abs(issued.prediction) <= LARGEST:
            return
        if group is not None:
            self.groups.setdefault(group, [1.0] * len(self.levels))
        self.lateness += (late - self.lateness) * max(0.01, 1 / (self.rows + 1))
        share = 10 / (10 + self.lateness)
        size = abs(y - issued.prediction)
        if issued.usual is not None:
            ratio = min(size / issued.usual, 100) if issued.usual > 0 else 100 * (size > 0)
            fade = (1 - 0.15 * share) ** w
            self.recent = fade * self.recent + (1 - fade) * ratio
            step = 1 - (1 - max(0.02 * share, 1 / (own.rows + 20 / share))) ** w
            for place, level in enumerate(self.levels):
                lower, upper = issued.bounds[place]
                missed = y < lower or y > upper
                moved = math.exp(0.03 * share * (missed - (1 - level)) * min(w, 10))
                self.factors[place] = min(max(self.factors[place] * moved, 1e-6), 1e6)
                if group is not None:
                    late = 10 / (10 + self.lateness / len(self.groups))
                    factors = self.groups[group]
                    factors[place] *= math.exp(0.03 * late * (missed - (1 - level)) * min(w, 10))
                    factors[place] = min(max(factors[place], 0.05), 20)
                low, high = own.quantiles[place]
                by = step * (high - low)
                low += by * ((1 - level) / 2 - (y < lower))
                high += by * ((y > upper) - (1 - level) / 2)
                low, high = max(low, -1e6), min(high, 1e6)
                if high - low < 1e-4:
                    low, high = (low + high) / 2 - 5e-5, (low + high) / 2 + 5e-5
                own.quantiles[place] = [low, high]
        fade = (1 - 0.02 * math.sqrt(share)) ** w
        own.total = fade * own.total + w * size
        own.weight = fade * own.weight + w
        own.rows += 1
        self.total = 0.999**w * self.total + w * size
        self.weight = 0.999**w * self.weight + w
        self.rows += 1
        self.seen.append(y)
