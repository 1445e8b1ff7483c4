"""Proposed lags: seasons and the latest known values, by the autocorrelation of first rows."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["FIRST_ROWS", "Proposal", "propose"]

FIRST_ROWS = 5000
"""Rows whose autocorrelation is looked at."""
LEAST = 0.2  # autocorrelation of a season
CYCLES = 3  # of a season that the known values must last for
PAIRS = 0.25  # of the known values, that have another one at the lag of a season
EQUAL = 0.03  # difference of autocorrelations that does not count
RECENT = 3  # lags of the latest known values
MOST_STEPS = 20_000
REPEATED = 1.9  # rows of the same time on average; duplicates alone are fewer

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Proposal:
    """Lags and rolling means for a horizon.

    Parameters
    ----------
    lags, means : tuple
        Spans, as for `sapwood.lags.Lags`: rows, or durations if rows have times.
    season : int or str, optional
        The span of the season that repeats best; None if there is none.
    step : float
        Seconds between rows; 1 if rows are counted.
    naive : int or str, optional
        Which of the lags is the seasonal naive forecast.
    earlier : tuple
        The lags that are one or more whole seasons before the naive one.
    rows_per_time : float
        How many rows have the same time, on average.
    """

    lags: tuple[int | str, ...]
    means: tuple[int | str, ...]
    season: int | str | None
    step: float
    naive: int | str | None = None
    earlier: tuple[int | str, ...] = ()
    rows_per_time: float = 1.0

    @property
    def are_repeated(self) -> bool:
        """Whether several rows have the same time each time, as where dates have no hour."""
        return self.rows_per_time >= REPEATED


def propose(
    y: FloatArray,
    times: FloatArray | None = None,
    horizon: float = 0.0,
    series: NDArray[np.intp] | None = None,
) -> Proposal:
    """Propose lags within what a horizon allows.

    Parameters
    ----------
    y : array of float
        The first labels, in the order of time; NaN where one is missing.
    times : array of float, optional
        In seconds. Without them, rows are counted.
    horizon : float
        How far ahead rows are predicted: seconds, or rows.
    series : array of int, optional
        The number of the series of each row. The autocorrelations of all of them are averaged.

    Examples
    --------
    >>> hours = np.arange(2000.0)
    >>> y = np.sin(hours * 2 * np.pi / 24) + 0.5 * (hours % 168 < 24)
    >>> found = propose(y, hours * 3600, horizon=86400.0)
    >>> found.lags, found.means, found.season
    (('24h', '25h', '26h', '168h', '336h'), ('24h',), '168h')
    >>> propose(y).lags
    (1, 2, 3, 24, 168, 336)
    """
    places = [slice(None)] if series is None else [series == each for each in np.unique(series)]
    clocks = [] if times is None else [times[own] for own in places]
    step = float(np.median([_step(clock) for clock in clocks])) if clocks else 1.0
    given: list[FloatArray | None] = [*clocks] if clocks else [None] * len(places)
    grids = [_on_grid(y[own], clock, step) for own, clock in zip(places, given, strict=True)]
    found = _mean_autocorrelation(grids)
    ahead = max(1, int(np.ceil(horizon / step - 1e-9)))
    peaks = _peaks(found)
    highest = max((found[lag] for lag in peaks), default=0.0)
    best = next((lag for lag in peaks if found[lag] >= highest - EQUAL), None)
    # A season shorter than the horizon is looked at a whole number of seasons back.
    seasons = [] if best is None else sorted({peaks[0], best, 2 * best})
    lags = sorted({*range(ahead, ahead + RECENT), *(-(-ahead // lag) * lag for lag in seasons)})
    means = [peaks[0]] if peaks else [ahead]

    def span(count: int) -> int | str:
        return count if times is None else _duration(count * step)

    season = None if best is None else span(best)
    first = 0 if best is None else -(-ahead // best) * best
    naive = None if best is None else span(first)
    earlier = [lag for lag in lags if best and lag > first and lag % best == 0]
    return Proposal(
        *(tuple(map(span, lags)), tuple(map(span, means)), season, step, naive),
        earlier=tuple(map(span, earlier)),
        rows_per_time=float(np.median([*map(_rows_per_time, clocks)])) if clocks else 1.0,
    )


def _rows_per_time(times: FloatArray) -> float:
    known = times[np.isfinite(times)]
    return len(known) / max(len(np.unique(known)), 1)


def _step(times: FloatArray) -> float:
    """Return the median time between rows that have different times."""
    known = np.unique(times[np.isfinite(times)])
    return float(np.median(np.diff(known))) if len(known) > 1 else 1.0


def _on_grid(y: FloatArray, times: FloatArray | None, step: float) -> FloatArray:
    """Return labels at equal steps: the last one of each step, NaN where there is none."""
    if times is None:
        return y[:MOST_STEPS]
    is_known = np.isfinite(times)
    if not is_known.any():
        return y[:0]
    places = np.round((times[is_known] - times[is_known].min()) / step)
    kept = places < MOST_STEPS
    grid = np.full(int(places[kept].max()) + 1, np.nan)
    grid[places[kept].astype(np.int64)] = y[is_known][kept]
    return grid


def _autocorrelation(grid: FloatArray) -> FloatArray:
    """Return the autocorrelation at each lag that is seen often enough, from the known values."""
    is_known = np.isfinite(grid)
    if is_known.sum() < 2 * CYCLES:
        return np.zeros(1)
    known = np.where(is_known, grid - grid[is_known].mean(), 0.0)
    size = 1 << (2 * len(grid) - 1).bit_length()

    def correlated(values: FloatArray) -> FloatArray:
        spectrum = np.fft.rfft(values, size)
        return np.fft.irfft(spectrum * np.conj(spectrum), size)[: is_known.sum() // CYCLES + 1]

    pairs = np.round(correlated(is_known.astype(np.float64)))
    products = correlated(known) / np.maximum(pairs, 1.0)
    products[pairs < PAIRS * is_known.sum()] = 0.0
    return products / products[0] if products[0] > 0 else np.zeros(1)


def _mean_autocorrelation(grids: list[FloatArray]) -> FloatArray:
    """Return the mean over series, weighted by their known values, at each lag that any has."""
    found = [_autocorrelation(grid) for grid in grids]
    sums, weights = np.zeros((2, max(map(len, found), default=1)))
    for own, grid in zip(found, grids, strict=True):
        weight = float(np.isfinite(grid).sum())
        sums[: len(own)] += weight * own
        weights[: len(own)] += weight
    return sums / np.maximum(weights, 1.0)


def _peaks(found: FloatArray) -> list[int]:
    """Return the lags of seasons: those that are higher than all within a quarter around them."""
    peaks = []
    for lag in range(2, len(found) - 1):
        width = max(1, lag // 4)
        around = found[lag - width : lag + width + 1]
        if found[lag] >= LEAST and found[lag] == around.max() and found[lag] > found[lag - 1]:
            peaks.append(lag)
    return peaks


def _duration(seconds: float) -> str:
    """Return a duration in the largest unit up to hours that divides it."""
    for size, unit in ((3600.0, "h"), (60.0, "min")):
        if seconds % size == 0:
            return f"{seconds / size:.0f}{unit}"
    return f"{seconds:.6f}".rstrip("0").rstrip(".") + "s"
