"""A slow and obvious twin of the bounds around predictions."""

import math
from statistics import NormalDist

FIRST_ROWS, PRIOR, LARGEST = 20, 20, 1e140


class Region:
    def __init__(self, total, weight, rows, quantiles):
        self.total, self.weight, self.rows = total, weight, rows
        self.quantiles = [list(pair) for pair in quantiles]

    def child(self):
        return Region(self.total / 2, self.weight / 2, self.rows / 2, self.quantiles)


class Said:
    def __init__(self, prediction, usual=None, bounds=None):
        self.prediction, self.usual, self.bounds = prediction, usual, bounds


class Bounds:
    """Bounds by region; regions are any names, each with the name of the one above it."""

    def __init__(self, levels, parents):
        reach = [NormalDist().inv_cdf((1 + level) / 2) for level in levels]
        self.levels, self.parents = levels, parents
        self.regions = {0: Region(0.0, 0.0, 0.0, [(-z, z) for z in reach])}
        self.rows, self.total, self.weight, self.lately = 0, 0.0, 0.0, 1.0
        self.factors = [1.0] * len(levels)
        self.seen = []

    def region(self, name):
        if name not in self.regions:
            above = self.parents[name]
            while above not in self.regions:
                above = self.parents[above]
            return self.regions[above].child()
        return self.regions[name]

    def say(self, name, prediction):
        if self.rows < FIRST_ROWS or not abs(prediction) <= LARGEST:
            return Said(prediction)
        own = self.region(name)
        mean = self.total / self.weight
        usual = (own.total + PRIOR * mean) / (own.weight + PRIOR)
        unit = math.sqrt(math.pi / 2) * usual * min(max(self.lately, 0.05), 20) ** 0.25
        bounds = [
            (prediction + low * unit * factor, prediction + high * unit * factor)
            for (low, high), factor in zip(own.quantiles, self.factors, strict=True)
        ]
        return Said(prediction, usual, bounds)

    def tell(self, said):
        if said.bounds is None:
            return [(math.nan, math.nan)] * len(self.levels)
        lowest = -math.inf
        highest = math.inf
        low, high = said.bounds[0]
        if self.seen.count(min(self.seen)) >= 10 and high >= min(self.seen):
            lowest = min(self.seen)
        if self.seen.count(max(self.seen)) >= 10 and low <= max(self.seen):
            highest = max(self.seen)
        told, lower, upper = [], math.inf, -math.inf
        for low, high in said.bounds:
            lower, upper = min(lower, low), max(upper, high)
            told.append((max(lower, lowest), min(upper, highest)))
        return told

    def judge(self, name, said, y, w=1.0):
        own = self.regions[name] = self.region(name)
        if not abs(said.prediction) <= LARGEST:
            return
        size = abs(y - said.prediction)
        if said.usual is not None:
            ratio = min(size / said.usual, 100) if said.usual > 0 else 100 * (size > 0)
            self.lately = 0.85**w * self.lately + (1 - 0.85**w) * ratio
            step = 1 - (1 - max(0.02, 1 / (own.rows + 20))) ** w
            for place, level in enumerate(self.levels):
                lower, upper = said.bounds[place]
                missed = y < lower or y > upper
                moved = math.exp(0.03 * (missed - (1 - level)) * min(w, 10))
                self.factors[place] = min(max(self.factors[place] * moved, 1e-6), 1e6)
                low, high = own.quantiles[place]
                by = step * (high - low)
                low += by * ((1 - level) / 2 - (y < lower))
                high += by * ((y > upper) - (1 - level) / 2)
                low, high = max(low, -1e6), min(high, 1e6)
                if high - low < 1e-4:
                    low, high = (low + high) / 2 - 5e-5, (low + high) / 2 + 5e-5
                own.quantiles[place] = [low, high]
        own.total = 0.98**w * own.total + w * size
        own.weight = 0.98**w * own.weight + w
        own.rows += 1
        self.total = 0.999**w * self.total + w * size
        self.weight = 0.999**w * self.weight + w
        self.rows += 1
        self.seen.append(y)
