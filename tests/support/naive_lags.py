"""Lags by time, the slow way: all rows of a series in a list, each looked at for each feature."""

import math


class NaiveTimedLags:
    """All rows in lists.

    Parameters
    ----------
    lags, means : sequence of float
        Spans in seconds.
    tolerance, horizon : float
        In seconds.
    """

    def __init__(self, lags=(), means=(), *, tolerance=1800.0, horizon=0.0):
        self.lags, self.means = list(lags), list(means)
        self.tolerance, self.horizon = tolerance, horizon
        nearest = [span + min(tolerance, span / 2) for span in lags]
        self.reach = max([*nearest, *means]) + horizon
        self.series = {}

    def features(self, time, key=None):
        """Return the lags and the means of a row at a time; None where one is not known."""
        rows, time = self._settled(time, key)
        found = [self._lag(rows, time, span) for span in self.lags]
        return [*found, *(self._mean(rows, time, span) for span in self.means)]

    def arrive(self, time, y=None, key=None):
        """Let a row become past; return it, so that its label can be filled in: row[1] = y."""
        rows, time = self._settled(time, key)
        row = [time, y]
        self.series[key] = [*rows, row]
        return row

    def _settled(self, time, key):
        """Return the rows that count for a time, and the time that a row counts as."""
        rows = self.series.get(key, [])
        latest = rows[-1][0] if rows else -math.inf
        if time is None or math.isnan(time):
            return rows, latest
        if time < latest - self.reach:
            return [], time
        return rows, max(time, latest)

    def _lag(self, rows, time, span):
        goal, near = time - span, min(self.tolerance, span / 2)
        best = None
        for at, y in rows:
            if y is None or abs(at - goal) > near or at > time - self.horizon:
                continue
            closeness = abs(at - goal)
            # Of two at the same distance the earlier one, of the same time the last one.
            if best is None or closeness < best[0] or (closeness == best[0] and at == best[1]):
                best = closeness, at, y
        return None if best is None or time == -math.inf else best[2]

    def _mean(self, rows, time, span):
        if self.horizon:
            until = time - self.horizon
            known = [y for at, y in rows if y is not None and until - span < at <= until]
        else:
            known = [y for at, y in rows if y is not None and time - span <= at < time]
        return sum(known) / len(known) if known and time > -math.inf else None
