"""A slow, obvious form of the retransformation of predictions."""

import math

FORWARD = {"sqrt": math.sqrt, "log1p": math.log1p}


class NaiveTransform:
    """All errors of earlier rows are kept, with their weights, and summed again for each row."""

    def __init__(self, name, auto=False):
        self.name, self.auto = name, auto
        self.rows = []  # of each: what models predicted, the result, y, w

    def _weighted(self, value, rate, rows=None):
        rows = self.rows[20:] if rows is None else rows
        return sum(
            rate ** (len(rows) - 1 - place) * row[-1] * value(row) for place, row in enumerate(rows)
        )

    def inverse(self, p, count=None):
        rows = self.rows[:count]
        late = rows[20:]
        largest = max((FORWARD[self.name](row[-2]) for row in rows), default=0.0)
        smallest = min((row[-2] for row in rows), default=0.0)
        weight = self._weighted(lambda row: 1.0, 0.998, late) + 20.0

        def error(row):
            return FORWARD[self.name](row[-2]) - row[0][-1]

        if self.name == "sqrt":
            p = min(max(p, 0.0), 2.0 * largest)
            first = self._weighted(error, 0.998, late) / weight
            second = self._weighted(lambda row: error(row) ** 2, 0.998, late) / weight
            return max(p * p + 2.0 * p * first + second, smallest)
        p = min(p, largest + 1.0)
        mean = self._weighted(lambda row: math.exp(min(error(row), 2.0)), 0.998, late) + 20.0
        return max(math.exp(p) * mean / weight - 1.0, smallest)

    def predict(self, members):
        found = self.inverse(members[-1])
        if not self.auto:
            return found
        late = list(enumerate(self.rows))[20:]
        square = product = error = weight = 0.0
        for place, (before, result, y, w) in late:
            # The sums of errors have taken in the row itself when its members are compared, its
            # range has not.
            other = self._inverse_after(before[-1], place)
            half = 0.5 * (before[0] - other)
            square = 0.9995 * square + w * half * half
            product = 0.9995 * product + w * half * (y - 0.5 * (before[0] + other))
            error = 0.999 * error + w * (y - result) ** 2
            weight = 0.999 * weight + w
        ridge = 25.0 * error / weight if weight else 1.0
        smallest = min((row[-2] for row in self.rows), default=0.0)
        if square + ridge <= 0.0:
            return max(members[0], smallest)
        v = max(-1.0, min(1.0, (product + ridge) / (square + ridge)))
        return max(0.5 * (members[0] + found) + 0.5 * v * (members[0] - found), smallest)

    def _inverse_after(self, p, place):
        """The inverse by the sums after a row, and by the range before it."""
        kept = self.rows
        largest = max((FORWARD[self.name](row[-2]) for row in kept[:place]), default=0.0)
        smallest = min((row[-2] for row in kept[:place]), default=0.0)
        late = kept[20 : place + 1]
        weight = self._weighted(lambda row: 1.0, 0.998, late) + 20.0
        errors = [FORWARD[self.name](row[-2]) - row[0][-1] for row in late]
        shares = [0.998 ** (len(late) - 1 - at) * row[-1] for at, row in enumerate(late)]
        p = min(max(p, 0.0), 2.0 * largest)
        first = sum(share * e for share, e in zip(shares, errors, strict=True)) / weight
        second = sum(share * e * e for share, e in zip(shares, errors, strict=True)) / weight
        return max(p * p + 2.0 * p * first + second, smallest)

    def learn(self, members, y, w):
        result = self.predict(members)
        self.rows.append((list(members), result, y, w))
        return result
