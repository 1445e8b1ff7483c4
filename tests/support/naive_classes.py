"""The calibration of classes once more, slow and obvious."""

import math

LEAST = (0.3, 0.1, 0.03, 0.01)


def held(ratings):
    """Ratings from 0 to 1, of which the highest is at least that of chance."""
    clipped = [min(max(rating, 0.0), 1.0) for rating in ratings]
    chance = 1 / len(ratings)
    if max(clipped) >= chance:
        return clipped
    if max(clipped) == 0:
        return [chance] * len(ratings)
    return [rating / max(clipped) * chance for rating in clipped]


class NaiveCalibrator:
    """Four exponents, learned by Newton steps, and their mixture."""

    def __init__(self):
        self.exponents, self.curvatures, self.losses = [1.0] * 4, [0.0] * 4, [0.0] * 4

    def candidate(self, ratings, number):
        least = LEAST[number] / len(ratings)
        logs = [math.log(max(rating, least)) for rating in held(ratings)]
        powers = [math.exp(self.exponents[number] * each) for each in logs]
        return logs, [power / sum(powers) for power in powers]

    def probabilities(self, ratings):
        if len(ratings) < 2:
            return [1.0] * len(ratings)
        shares = [math.exp(min(self.losses) - loss) for loss in self.losses]
        mixed = [0.0] * len(ratings)
        for number, share in enumerate(shares):
            for place, p in enumerate(self.candidate(ratings, number)[1]):
                mixed[place] += share / sum(shares) * p
        return mixed

    def score(self, ratings, code, w=1.0):
        if len(ratings) < 2 or code >= len(ratings):
            return
        for number in range(4):
            logs, p = self.candidate(ratings, number)
            mean = sum(each * log for each, log in zip(p, logs, strict=True))
            variance = sum(each * (log - mean) ** 2 for each, log in zip(p, logs, strict=True))
            self.losses[number] = 0.998 * self.losses[number] - w * math.log(p[code])
            self.curvatures[number] = 0.999 * self.curvatures[number] + w * variance
            step = max(self.curvatures[number], 50 * w * variance)
            if step > 0:
                moved = self.exponents[number] - w * (mean - logs[code]) / step
                self.exponents[number] = min(max(moved, 0.2), 8.0)


LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)


class NaiveSets:
    """Thresholds of prediction sets: quantiles by bins of logits, and their corrected orders."""

    def __init__(self):
        self.orders = [1 - level for level in LEVELS]
        self.bins = [0.0] * 64

    def quantile(self, order):
        total = sum(self.bins)
        missing = order * (total + 1) - 1
        if total < 20 or missing <= 0:
            return 0.0
        for place, weight in enumerate(self.bins):
            if missing < weight:
                logit = 16 * (place + missing / weight) / 64 - 8
                return 1 / (1 + math.exp(-logit))
            missing -= weight
        return 1.0

    def score(self, probabilities, code, w=1.0):
        p, highest = probabilities[code], probabilities.index(max(probabilities))
        for place, level in enumerate(LEVELS):
            share = 1 - level
            missed = code != highest and p < self.quantile(self.orders[place])
            moved = self.orders[place] + 0.05 * share * level * (share - missed)
            self.orders[place] = min(max(moved, 0.0), 2 * share)
        self.bins = [0.999 * weight for weight in self.bins]
        p = min(max(p, 1e-9), 1 - 1e-9)
        place = int(min(max((math.log(p / (1 - p)) + 8) / 16 * 64, 0), 63))
        self.bins[place] += min(w, 1.0)
