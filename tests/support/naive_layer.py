"""Reference implementations of the error-correction layer and of the pending predictions."""

import numpy as np

RATES = (0.02, 0.1, 0.4)  # at which levels follow y
FADE, PRIOR, TRANSFER_PRIOR, MARGIN = 0.999, 0.1, 0.3, 0.1
LATE, RECENT, SETTLING = 5, 100, 32
REACH_FADE = 0.99
MOST_MISSES = 20
FIRST_WINDOW, MOST_RECORDS = 128, 4
COLD_LABELS, FIRST_LABELS, LAST_PRIOR = 200, 8, 8
NEAR, FAR = 3, 64  # predictions that a label may skip, and among how many


def weighted(share, w):
    """What a share for rows of weight 1 is for another weight: its odds are multiplied."""
    return w * share / (1 - share + w * share)


class Regression:
    """Exponentially weighted sums of a regression, and their mean squared error."""

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
        self.levels = [[y, y, 1.0, 0.0, 0.0] for _ in RATES]  # level, mean, slope, sums
        self.known, self.first, self.all = [y, y, y], y, [y]
        self.transfer, self.coefficients = Regression(4), np.zeros(4)
        self.weighting, self.theta = Regression(len(RATES) + 1), np.zeros(len(RATES) + 1)
        self.scored = self.waiting = 0
        self.lateness = 0.0

    def predict(self, p):
        """The corrected prediction for p, and the record by which it is scored later."""
        terms = [each - p for each in self.known] + [p - self.first]
        low, high = min(self.all), max(self.all)
        margin = MARGIN * (high - low)
        transferred = p + float(self.coefficients @ terms)
        transferred = min(max(transferred, low - margin), high + margin)
        candidates = [level + slope * (p - mean) for level, mean, slope, *_ in self.levels]
        candidates.append(transferred)
        predicted = p + sum(t * (q - p) for t, q in zip(self.theta, candidates, strict=True))
        predicted = max(min(predicted, max(p, *candidates)), min(p, *candidates))
        distances = [(level, p - mean) for level, mean, *_ in self.levels]
        least, greatest = self.held_to()
        with_last = predicted + self.last_share() * (self.known[0] - predicted)
        return min(max(with_last, least), greatest), (p, distances, terms, candidates, predicted)

    def last_share(self):
        """The share of the last label while few labels are known: by how y - p follows y1 - p."""
        labels = self.scored * LATE / (LATE + self.lateness)
        square = self.transfer.products[0, 0]
        if self.scored >= COLD_LABELS or labels <= FIRST_LABELS or square == 0:
            return 0.0
        slope = self.transfer.joint[0] / square * labels / (labels + LAST_PRIOR)
        left = min(1.0, 2 - 2 * self.scored / COLD_LABELS)
        return left * min(max((slope - 0.5) / 0.3, 0.0), 1.0)

    def judge(self, issued, y, w, late):
        """Score an issued prediction against its label, after so many other labels."""
        p, distances, terms, candidates, predicted = issued
        self.scored, self.waiting = self.scored + 1, self.waiting + 1
        self.lateness += (late - self.lateness) * max(1 / RECENT, 1 / self.scored)
        share = LATE / (LATE + self.lateness)
        fade, w = 1 - (1 - FADE) * share, w * share
        for level, (then, beyond) in zip(self.levels, distances, strict=True):
            level[3] = fade * level[3] + w * beyond * (y - then)
            level[4] = fade * level[4] + w * beyond**2
        self.transfer.add(terms, y - p, y - candidates[-1], fade, w)
        self.weighting.add([q - p for q in candidates], y - p, y - predicted, fade, w)
        if self.waiting >= SETTLING or self.scored <= SETTLING:
            self.waiting = 0
            for level in self.levels:
                slope = level[3] / level[4] if level[4] > 0 else 1.0
                level[2] = min(max(slope, 0.0), 1.0)
            if self.weighting.weight > 0:
                self.coefficients = self.transfer.solution(TRANSFER_PRIOR)
                self.weighting.descend(self.theta, PRIOR)

    def follow(self, p, y, w):
        """Go on by a label."""
        for rate, level in zip(RATES, self.levels, strict=True):
            level[0] += weighted(rate, w) * (y - level[0])
            level[1] += weighted(rate, w) * (p - level[1])
        self.known = [y, self.known[0], p]
        self.all.append(y)

    def held_to(self):
        """The sides of the range of y that had few records since the last window but one began."""
        ends = [0, FIRST_WINDOW]
        while ends[-1] <= len(self.all):
            ends.append(2 * ends[-1])
        if len(ends) == 2:  # this is the first window of all
            return -np.inf, np.inf
        sides = []
        for sign in (-1, 1):
            greatest = np.maximum.accumulate(sign * np.array(self.all))
            rounding = 1e-12 * np.abs(greatest).max()  # of y, which was held near a prediction
            records = 1 + np.flatnonzero(np.diff(greatest) > rounding)
            bounds = (ends[-3], ends[-2]), (ends[-2], len(self.all))
            counts = [((records >= start) & (records < end)).sum() for start, end in bounds]
            is_open = max(counts) >= MOST_RECORDS
            sides.append(sign * np.inf if is_open else sign * greatest[-1])
        return tuple(sides)


class Memory:
    """Pending predictions in the order in which they were issued; the last few alone."""

    def __init__(self, most=2048):
        # A row, the labels that were known, and a content; or None once they are taken.
        self.most, self.notes, self.reach = most, [], 0.0
        self.misses = self.left = self.unrecorded = 0
        self.owed = False  # whether labels of predictions before the first label arrive
        self.gone = 0  # predictions before the first that is listed
        self.turn = -1  # the number of the last prediction that was taken in order

    def leave(self, row, labels, content):
        if isinstance(row, str):
            self.take(row, labels)  # an earlier prediction of the same id is replaced
        self.left += not isinstance(row, str)
        self.notes.append((row, labels, content))
        if len(self.notes) > self.most:
            self.notes.pop(0)
            self.gone += 1
            self.drop_taken()

    def take(self, row, labels, row_when=None):
        """Take the prediction of an id, a text; or that of a row, in the order of arrival.

        That is the oldest of this row after the last one that was taken in order; or the oldest of
        this row that is not much older than others recently were; or the latest. Without any it is
        the oldest of all, if predictions and labels take turns and no row is ever recognised.
        `row_when` returns what the row was known by when so many labels were known.
        """
        about = [
            at
            for at, note in enumerate(self.notes)
            if note is not None and note[0] == (row_when(note[1]) if row_when else row)
        ]
        if isinstance(row, str):
            return self.taken(about[0]) if about else None
        left, self.left = self.left, 0
        if self.owed or (not about and self.unrecorded):
            self.unrecorded -= 1
            self.owed = self.unrecorded > 0
            return None
        if not about:
            return self.missed(left) if left else None
        self.misses = 0
        limit = 1.1 * self.reach + 2 if self.reach else 0.0
        after = [at for at in about if self.gone + at > self.turn]
        before = [at for at in about if at not in after]
        within = [at for at in before if labels - self.notes[at][1] <= limit]
        usable = min(within, default=max(before, default=None))
        chosen = min(after, default=usable)
        for at in before:
            is_late = usable not in within if after else at < usable
            self.notes[at] = None if is_late else self.notes[at]
        age = labels - self.notes[chosen][1]
        self.move_turn(chosen, age)
        self.reach = max(age, REACH_FADE * self.reach if self.reach > 1 else 0.0)
        return self.taken(chosen)

    def move_turn(self, chosen, age):
        """Go on in order, unless a label skips many predictions and is far ahead of its time."""
        number = self.gone + chosen
        start = max(self.gone, self.turn + 1)
        waiting = self.notes[start - self.gone : chosen]
        skipped = sum(note is not None and not isinstance(note[0], str) for note in waiting)
        is_near = number - start <= FAR and skipped < NEAR
        if number < self.turn or age >= 0.9 * self.reach - 2 or is_near:
            self.turn = number

    def missed(self, left):
        """Take the oldest, once twenty labels found nothing, and theirs were dropped."""
        if left == 1 and self.misses == MOST_MISSES:
            waits = self.notes and not isinstance(self.notes[0][0], str)
            return self.taken(0) if waits else None
        self.misses = self.misses + 1 if left == 1 else 1
        for _ in range(MOST_MISSES if self.misses == MOST_MISSES else 0):
            if self.notes and not isinstance(self.notes[0][0], str):
                self.taken(0)
        return None

    def taken(self, at):
        _, _, content = self.notes[at]
        self.notes[at] = None
        self.drop_taken()
        return content

    def drop_taken(self):
        while self.notes and self.notes[0] is None:
            self.notes.pop(0)
            self.gone += 1
        if not any(self.notes):
            self.notes, self.gone, self.turn = [], 0, -1
