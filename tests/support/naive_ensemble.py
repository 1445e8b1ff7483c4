"""Reference implementations of the forest and of the adaptive tree: trees, loops and NumPy.

The trees are the library's own, each with the weights that splitmix64 draws for it; how they are
combined and replaced is implemented a second time. The error-correction layer has a reference
implementation of its own.
"""

import math

import numpy as np

import naive_drift
from sapwood import HoeffdingTreeRegressor, QuantizerObserver
from sapwood.corrector._layer import ErrorCorrectionLayer

MASK = 2**64 - 1


def scrambled(z):
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def poisson(seed, number, row, mean):
    """A Poisson variable for a tree and a row, by inversion."""
    key = scrambled((scrambled((seed + 0x9E3779B97F4A7C15) & MASK) + number) & MASK)
    draw = scrambled((key + (row + 1) * 0x9E3779B97F4A7C15) & MASK)
    copies, share, total = 0, math.exp(-mean), math.exp(-mean)
    while copies < 48 and draw >= min(int(total * 2.0**64), MASK):
        copies += 1
        share *= mean / copies
        total += share
    return float(copies)


class Tree:
    """A tree, and what is known of it."""

    def __init__(self, number, role, mean, born, **parameters):
        self.model = HoeffdingTreeRegressor(track=None, **parameters)
        self.number, self.role, self.mean, self.born = number, role, mean, born
        self.square = self.weight = 0.0

    def error(self):
        return self.square / self.weight if self.weight else math.inf

    def predict(self, x):
        return self.model.predict_one(x)

    def learn(self, seed, row, x, y, w):
        copies = poisson(seed, self.number, row, self.mean) if self.mean else 1.0
        if row == self.born:
            copies = max(copies, 1.0)
        if copies:
            self.model.learn_one(x, y, w * copies)


class Ensemble:
    """What both share: clipped y, errors of trees, and the error-correction layer."""

    def __init__(self, *, seed, error_fade, interval, shortest, longest, track):
        self.seed, self.error_fade, self.interval = seed, error_fade, interval
        self.shortest, self.longest, self.lifetime = shortest, longest, shortest
        self.track, self.rows, self.replaced = track, 0, []
        self.begin()

    def begin(self):
        """Remember nothing."""
        self.layer = ErrorCorrectionLayer() if self.track else None
        self.begun, self.usual, self.errors = self.rows, 0.0, []
        self.gain = self.gain_square = 0.0

    def predict_learn(self, x, y, w=1.0):
        predicted = [tree.predict(x) for tree in self.trees]
        is_first = self.rows == self.begun
        together = predicted[0] if is_first else self.together(predicted)
        prediction = corrected = together
        notes = None
        if self.layer is not None and not is_first:
            (prediction,), notes = self.layer.predict(np.array([together]))
            corrected = notes[0, -1]  # before it is held to the range of y
        held = y if is_first else self.held(y, corrected)
        if not is_first:
            self.watch(held - corrected, held - predicted[-1], w)
            for tree, value in zip(self.trees, predicted, strict=True):
                if self.rows > tree.born:
                    tree.square = self.error_fade * tree.square + w * (held - value) ** 2
                    tree.weight = self.error_fade * tree.weight + w
            self.score(predicted, together, held, w)
        else:
            self.low = self.high = y
        if self.layer is not None:
            self.layer.learn(np.array([together]), np.array([held]), notes, np.array([w]))
        for tree in self.trees:
            tree.learn(self.seed, self.rows, x, y, w)
        self.low, self.high = min(self.low, held), max(self.high, held)
        self.rows += 1
        if self.rows % self.interval == 0:
            self.look()
        return prediction if self.rows > 1 else 0.0

    def held(self, y, prediction):
        error = y - prediction
        limit = max(1000.0 * self.usual, (0.25 * (self.high - self.low)) ** 2)
        square = error * error
        if square > limit > 0 and self.rows - self.begun >= 100:
            square = limit
            y = prediction + math.copysign(math.sqrt(limit), error)
        self.usual += (square - self.usual) / 1000.0
        return y

    def watch(self, error, others, w):
        """Store the error, and how much smaller the error of the candidate tree was."""
        self.errors.append(abs(error))
        if self.rows >= self.trees[-1].born + 100:
            self.gain = 0.999 * self.gain + w * (error**2 - others**2)
            self.gain_square = 0.999 * self.gain_square + w * (error**2 - others**2) ** 2

    def look(self):
        waiting = self.trees[-1]
        age = self.rows - waiting.born
        number = max(tree.number for tree in self.trees) + 1
        place = None
        if self.is_all_lost(age):
            self.replaced.append((self.rows, 0))
            self.begin()
            roles = range(1, len(self.trees))
            self.trees = [waiting, *(self.new_tree(number + place, place) for place in roles)]
            self.lifetime = self.shortest
        else:
            place = self.beaten(age)
            if place is not None:
                self.trees[place] = waiting
                self.replaced.append((self.rows, place))
                self.lifetime = self.shortest
            elif self.is_changed(since=waiting.born):
                self.lifetime = self.shortest
            elif age >= self.lifetime:
                self.lifetime = min(2 * self.lifetime, self.longest)
            else:
                return
            self.trees[-1] = self.fresh(number)
        self.lead = self.lead_square = self.gain = self.gain_square = 0.0

    def is_changed(self, since=-1):
        """Whether errors have been much larger after a change, which was later than some row."""
        found = naive_drift.changes(self.errors, 1e6, "up")
        if not found:
            return False
        _, first, before, _ = found[-1]
        later = self.errors[first - 1 :]
        is_later = self.begun + first > since
        return is_later and len(later) >= 100 and sum(later) > 2 * len(later) * before

    def is_all_lost(self, age):
        if age < 500 or not self.gain_square:
            return False
        gain = self.gain / math.sqrt(self.gain_square)
        return gain > 4 or (gain > -2 and self.is_changed() and self.are_lost())


class Forest(Ensemble):
    def __init__(self, members, seed=1, grace_period=200, track=True, **parameters):
        super().__init__(
            seed=seed,
            error_fade=0.998,
            interval=500,
            shortest=2_000,
            longest=16_000,
            track=track,
        )
        self.grace_period, self.parameters = grace_period, parameters
        self.trees = [self.first(number, number, members) for number in range(members)]
        self.trees.append(self.bagged(members, 6.0))
        self.begin()

    def begin(self):
        super().begin()
        members = len(getattr(self, "trees", [None])) - 1
        self.theta = np.full(members, 1 / max(members, 1))
        self.products, self.joint = np.zeros((members, members)), np.zeros(members)
        self.square = self.weight = 0.0

    def first(self, number, place, members):
        """What a member is at first."""
        plain = {"grace_period": self.grace_period, **self.parameters}
        if place < members - 2:
            return self.bagged(number, 6.0)
        if place == members - 2:
            return Tree(number, "plain", 0.0, self.rows, **plain)
        return Tree(number, "leaf", 0.0, self.rows, **{**plain, "max_depth": 0})

    def new_tree(self, number, place):
        members = len(self.trees) - 1
        return self.fresh(number) if place == members else self.first(number, place, members)

    def bagged(self, number, mean):
        slots = QuantizerObserver(slots=16)
        parameters = {"observer": slots, "grace_period": 2 * self.grace_period, **self.parameters}
        return Tree(number, "bagged", mean, self.rows, **parameters)

    def fresh(self, number):
        return self.bagged(number, 2.0 if number % 2 else 6.0)

    def together(self, predicted):
        members = np.array(predicted[:-1])
        mean = members.mean()
        blended = mean + self.theta @ (members - mean)
        return float(np.clip(blended, min(members.min(), mean), max(members.max(), mean)))

    def score(self, predicted, together, y, w):
        members = np.array(predicted[:-1])
        beyond, rest = members - members.mean(), y - members.mean()
        self.products = 0.9995 * self.products + w * np.outer(beyond, beyond)
        self.joint = 0.9995 * self.joint + w * beyond * rest
        self.square = 0.9995 * self.square + w * (y - together) ** 2
        self.weight = 0.9995 * self.weight + w
        if self.rows - self.begun < 10 or self.rows % 10 == 0:
            ridge = self.square / self.weight / 0.2**2
            count = len(members)
            for _ in range(2):
                for i in range(count):
                    others = self.products[i] @ self.theta - self.products[i, i] * self.theta[i]
                    curvature = self.products[i, i] + ridge
                    if curvature > 0:
                        best = (self.joint[i] + ridge / count - others) / curvature
                        self.theta[i] = np.clip(best, 0.0, 1.0)

    def beaten(self, age):
        if age < 1_000:
            return None
        errors = [-1.0 if tree.role == "leaf" else tree.error() for tree in self.trees[:-1]]
        worst = int(np.argmax(errors))
        return worst if self.trees[-1].error() < errors[worst] else None

    def are_lost(self):
        growing = [tree for tree in self.trees[:-1] if tree.role != "leaf"]
        worse = [tree for tree in growing if tree.error() > 2 * self.trees[-1].error()]
        return len(worse) > len(growing) / 2


class AdaptiveTree(Ensemble):
    def __init__(self, track=True, **parameters):
        super().__init__(
            seed=0, error_fade=0.995, interval=250, shortest=8_000, longest=64_000, track=track
        )
        self.parameters = parameters
        self.trees = [self.fresh(0), self.fresh(1)]
        self.lead = self.lead_square = 0.0

    def fresh(self, number):
        return Tree(number, "plain", 0.0, self.rows, **self.parameters)

    def new_tree(self, number, place):
        return self.fresh(number)

    def are_lost(self):
        return False

    def together(self, predicted):
        main, other = self.trees
        if self.rows - other.born < 250 or not other.weight or not main.square:
            return predicted[0]
        ratio = (other.square / other.weight) / (main.square / main.weight)
        return predicted[0] + (predicted[1] - predicted[0]) / (1 + ratio**4)

    def score(self, predicted, together, y, w):
        if self.rows > self.trees[1].born:
            lead = (y - predicted[0]) ** 2 - (y - predicted[1]) ** 2
            self.lead = 0.999 * self.lead + w * lead
            self.lead_square = 0.999 * self.lead_square + w * lead * lead

    def beaten(self, age):
        return 0 if age >= 500 and self.lead > 3 * math.sqrt(self.lead_square) else None
