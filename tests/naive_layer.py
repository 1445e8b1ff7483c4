"""The last layer and the memory of what was said once more, slow and obvious."""

import numpy as np

RATES = (0.02, 0.1, 0.4)  # at which levels follow y
FADE, PRIOR, TRANSFER_PRIOR, MARGIN = 0.999, 0.1, 0.3, 0.1
LATE, RECENT, SETTLING = 5, 100, 32
REACH_FADE = 0.99
MOST_MISSES = 20


def weighted(share, w):
    """What a share for rows of weight 1 is for another weight: its odds are multiplied."""
    return w * share / (1 - share + w * share)


class Regression:
    """Faded sums of a regression, and their mean squared error."""

    def __init__(self, terms):
        self.products, self.joint = np.zeros((terms, terms)), np.zeros(terms)
        self.square = self.weight = 0.0

    def add(self, d, target, error, fade, w):
        d = np.array(d)
        self.products = fade * self.products + w * np.outer(d, d)
        self.joint = fade * self.joint + w * target * d
        self.square = fade * self.square + w * error**2
        self.weight = fade * self.weight + w

    def ridge(self, deviation):
        return self.square / self.weight / deviation**2

    def solution(self, deviation):
        ridge = self.ridge(deviation) + 1e-9 * np.trace(self.products)
        terms = len(self.joint)
        if not ridge:
            return np.zeros(terms)
        return np.linalg.solve(self.products + ridge * np.eye(terms), self.joint)

    def descend(self, theta, deviation):
        """One sweep of coordinate descent, within 0 and 1."""
        ridge = self.ridge(deviation)
        for i in range(len(theta)):
            curvature = self.products[i, i] + ridge
            if curvature > 0:
                others = self.products[i] @ theta - self.products[i, i] * theta[i]
                theta[i] = min(max((self.joint[i] - others) / curvature, 0.0), 1.0)


class Layer:
    """A model's prediction, blended with levels of y and a small transfer model."""

    def __init__(self, y):
        self.levels = [[y, y, 1.0, 0.0, 0.0] for _ in RATES]  # level, outlook, slope, sums
        self.known, self.first, self.low, self.high = [y, y, y], y, y, y
        self.transfer, self.coefficients = Regression(4), np.zeros(4)
        self.blend, self.theta = Regression(len(RATES) + 1), np.zeros(len(RATES) + 1)
        self.judged = self.waiting = 0
        self.lateness = 0.0

    def say(self, p):
        """What is said of a prediction p, and all by which to judge it later."""
        terms = [each - p for each in self.known] + [p - self.first]
        margin = MARGIN * (self.high - self.low)
        transferred = p + float(self.coefficients @ terms)
        transferred = min(max(transferred, self.low - margin), self.high + margin)
        candidates = [level + slope * (p - outlook) for level, outlook, slope, *_ in self.levels]
        candidates.append(transferred)
        said = p + sum(t * (q - p) for t, q in zip(self.theta, candidates, strict=True))
        said = max(min(said, max(p, *candidates)), min(p, *candidates))
        distances = [(level, p - outlook) for level, outlook, *_ in self.levels]
        return said, (p, distances, terms, candidates, said)

    def judge(self, saying, y, w, late):
        """Take the label of what was said, after so many other labels."""
        p, distances, terms, candidates, said = saying
        self.judged, self.waiting = self.judged + 1, self.waiting + 1
        self.lateness += (late - self.lateness) * max(1 / RECENT, 1 / self.judged)
        share = LATE / (LATE + self.lateness)
        fade, w = 1 - (1 - FADE) * share, w * share
        for level, (then, beyond) in zip(self.levels, distances, strict=True):
            level[3] = fade * level[3] + w * beyond * (y - then)
            level[4] = fade * level[4] + w * beyond**2
        self.transfer.add(terms, y - p, y - candidates[-1], fade, w)
        self.blend.add([q - p for q in candidates], y - p, y - said, fade, w)
        if self.waiting >= SETTLING or self.judged <= SETTLING:
            self.waiting = 0
            for level in self.levels:
                slope = level[3] / level[4] if level[4] > 0 else 1.0
                level[2] = min(max(slope, 0.0), 1.0)
            if self.blend.weight > 0:
                self.coefficients = self.transfer.solution(TRANSFER_PRIOR)
                self.blend.descend(self.theta, PRIOR)

    def follow(self, p, y, w):
        """Go on by a label."""
        for rate, level in zip(RATES, self.levels, strict=True):
            level[0] += weighted(rate, w) * (y - level[0])
            level[1] += weighted(rate, w) * (p - level[1])
        self.known = [y, self.known[0], p]
        self.low, self.high = min(y, self.low), max(y, self.high)


class Memory:
    """What was said about rows, in the order in which it was said; the last few alone."""

    def __init__(self, most=2048):
        # Notes are a row, the labels that were known, and a content; or None once they are taken.
        self.most, self.notes, self.reach = most, [], 0.0
        self.misses = self.left = self.blanks = 0

    def leave(self, row, labels, content):
        self.left += 1
        self.notes.append((row, labels, content))
        if len(self.notes) > self.most:
            self.notes.pop(0)
            self.drop_taken()

    def take(self, row, labels):
        """The oldest note about a row that is within reach; or else the latest.

        Without any it is the oldest note of all, if notes and labels take turns and no row is ever
        recognised.
        """
        about = [at for at, note in enumerate(self.notes) if note is not None and note[0] == row]
        left, self.left = self.left, 0
        if not about:
            if self.blanks:
                self.blanks -= 1
                return None
            if left == 0:
                return None
            self.misses += left == 1
            _, _, content = self.notes.pop(0)
            self.drop_taken()
            return content if left == 1 and self.misses > MOST_MISSES else None
        self.misses = 0
        within = [at for at in about if labels - self.notes[at][1] <= self.reach]
        chosen = min(within, default=max(about))
        _, known, content = self.notes[chosen]
        for at in about:
            self.notes[at] = None if at <= chosen else self.notes[at]
        self.drop_taken()
        self.reach = max(labels - known, REACH_FADE * self.reach if self.reach > 1 else 0.0)
        return content

    def drop_taken(self):
        while self.notes and self.notes[0] is None:
            self.notes.pop(0)
        if not any(self.notes):
            self.notes = []
