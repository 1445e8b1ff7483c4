"""Simple forecasts and their combination as `sapwood.lags.NaiveStack` has them, slow and obvious.

All rows are kept, and every sum is made again from all of them.
"""

import numpy as np

MEMBERS = 6
NOT_YET = np.array([1.0, 1.0, 1.0, 0.0, 0.0, 0.5])
MEMORY, RATE, RECENT, EVERY = 0.9998, 0.999, 4.0, 24
DAY, YEAR = 86_400.0, 365.25 * 86_400.0


def calendar(seconds, is_off):
    """Return the position in the year, the hour, the hour of days off, and the weekday."""
    if not np.isfinite(seconds):
        return np.full(57, np.nan)
    angle = 2 * np.pi * seconds / YEAR
    hour = seconds % DAY / 3600
    hours = np.zeros(24)
    hours[int(hour)] = 1 - hour % 1
    hours[(int(hour) + 1) % 24] += hour % 1
    weekday = int(seconds // DAY + 3) % 7
    rests = weekday >= 5 or is_off > 0.5
    return np.concatenate(
        [[np.cos(angle), np.sin(angle)], hours, hours * rests, np.eye(7)[weekday]]
    )


class NaiveForecasts:
    """Predictions of rows by lags, season, last value, time and the prediction of a model."""

    def __init__(self, lags, has_time):
        self.lags, self.has_time = lags, has_time
        self.x, self.y, self.w = [], [], []
        self.errors, self.weights, self.delays = [], [], []
        self.factors, self.solved = None, 0
        self.shares = (1 - NOT_YET) / 2.5

    def row(self, given):
        return np.concatenate([given[: self.lags], calendar(*given[-2:]) if self.has_time else []])

    def decay(self):
        return MEMORY ** np.arange(len(self.y))[::-1]

    def means(self):
        """Return the means that missing values have: of the rows before, one after the other."""
        mean, weight = np.zeros(len(self.x[0]) + 1), 0.0
        for x, y, w in zip(self.x, self.y, self.w, strict=True):
            weight = MEMORY * weight + w
            both = np.append(x, y)
            mean = mean + w / weight * (np.where(np.isfinite(both), both, mean) - mean)
        return mean, weight

    def solve(self):
        mean, filled, weight = np.zeros(len(self.x[0]) + 1), [], 0.0
        for x, y, w in zip(self.x, self.y, self.w, strict=True):
            both = np.append(x, y)
            filled.append(np.where(np.isfinite(both), both, mean))
            weight = MEMORY * weight + w
            mean = mean + w / weight * (filled[-1] - mean)
        rows, weights = np.array(filled), self.decay() * self.w
        centred = rows - weights @ rows / weights.sum()
        moments = centred.T @ (centred * weights[:, None])
        count, effective = len(mean) - 1, self.decay().sum()
        self.factors = np.zeros((2, count))
        for is_yearly in (0, 1):
            ridge = np.diag(moments)[:count] / effective
            ridge[self.lags + 2 :] = weights.sum() / effective
            used = np.diag(moments)[:count] > 0
            used[self.lags : self.lags + 2] &= bool(is_yearly)
            own = moments[:count, :count][np.ix_(used, used)] + np.diag(ridge[used])
            self.factors[is_yearly, used] = np.linalg.solve(own, moments[:count, count][used])

    def members(self, given, own):
        found = np.full(MEMBERS, np.nan)
        found[0], found[3], found[4] = own, given[self.lags], given[self.lags + 1]
        if self.y:
            mean, _ = self.means()
            found[5] = mean[-1]
            room = 0.2 * (max(self.y) - min(self.y))
            x = self.row(given)
            for which in range(1 + self.has_time) if self.factors is not None and len(x) else ():
                known = np.isfinite(x)
                linear = mean[-1] + self.factors[which][known] @ (x - mean[:-1])[known]
                found[1 + which] = np.clip(linear, min(self.y) - room, max(self.y) + room)
        if np.isnan(found[3]):
            found[3] = found[4]
        return np.where(np.isfinite(found), found, own)

    def predict(self, given, own):
        found = self.members(given, own)
        return found, float(self.shares @ found)

    def learn(self, given, members, y, w, delay):
        if not w:
            return
        self.x.append(self.row(given))
        self.y.append(y)
        self.w.append(w)
        rows = len(self.y)
        if rows > 1 and rows - self.solved >= min(EVERY, rows / 8):
            self.solved = rows
            self.solve()
        if np.ptp(members) == 0:
            return
        self.errors.append(y - members)
        self.weights.append(w)
        self.delays.append(delay)
        self.combine()

    def combine(self):
        count = len(self.errors)
        rates = [min(RATE, n / (n + RECENT)) for n in range(count)]
        decay = np.array([np.prod(rates[n + 1 :]) for n in range(count)]) * self.weights
        errors = np.array(self.errors)
        matrix = errors.T @ (errors * decay[:, None])
        squares = np.diag(matrix) / decay.sum()
        late = RATE ** np.arange(count)[::-1] * self.weights
        unit = 1 + late @ self.delays / late.sum() / 20
        unit *= max(squares.min(), 1e-3 * squares.mean())
        matrix += np.diag(120 * unit + 300 * 0.98**count * unit * NOT_YET)
        used = np.arange(MEMBERS)
        while True:
            found = np.linalg.solve(matrix[np.ix_(used, used)], np.ones(len(used)))
            if (found >= 0).all():
                break
            used = np.delete(used, np.argmin(found))
        self.shares = np.zeros(MEMBERS)
        self.shares[used] = found / found.sum()
