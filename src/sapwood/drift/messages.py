"""Messages of drift events: the quantity that changed, with its value before and after."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sapwood.drift import _monitor
from sapwood.formatting import number, plain

__all__ = ["Changed", "describe_error", "describe_feature", "stability_index"]

FloatArray = NDArray[np.float64]

LETTERS = 40
LEAST_ROWS = 5  # of a bin that is reported as the place where errors have grown
SMALLEST = 0.5  # rows of a bin, so that no share is 0
CLEARLY = 1.5  # standard errors more than elsewhere


class Changed(NamedTuple):
    """The distribution of a column before and after it changed."""

    name: str
    before: FloatArray
    edges: FloatArray
    after: FloatArray
    labels: list[str] | None


def stability_index(changed: Changed) -> float:
    """Return the population stability index of a column: 0 if its distribution is the same."""
    counts = np.bincount(_bins(changed), minlength=_monitor.BINS).astype(np.float64)
    used = (counts + changed.before) > 0
    before, after = changed.before[used] + SMALLEST, counts[used] + SMALLEST
    before, after = before / before.sum(), after / after.sum()
    return float(((after - before) * np.log(after / before)).sum())


def describe_feature(changed: Changed) -> str:
    """Return a message about the change of a column's distribution."""
    name = plain(changed.name, LETTERS)
    before = changed.before / max(changed.before.sum(), 1.0)
    after = _shares(changed)
    gain = after * np.log((after + 1e-9) / (before + 1e-3))
    most = int(gain.argmax())
    if most == _monitor.MISSING:
        return f"{name}: missing {_percent(before[most])} → {_percent(after[most])} of rows"
    if changed.labels is not None:
        label = changed.labels[most - 1] if most <= len(changed.labels) else "other categories"
        if before[most] < 1e-9:
            return f"{name}: {plain(label, LETTERS)} is new, {_percent(after[most])} of rows"
        shares = f"{_percent(before[most])} → {_percent(after[most])}"
        return f"{name}: {plain(label, LETTERS)} {shares} of rows"
    return f"{name}: {_describe_number(changed, before, after, most)}"


def _describe_number(changed: Changed, before: FloatArray, after: FloatArray, most: int) -> str:
    known = changed.after[~np.isnan(changed.after)]
    low, median, high = (_quantile(before, changed.edges, q) for q in (0.25, 0.5, 0.75))
    now = np.quantile(known, [0.25, 0.5, 0.75]) if len(known) else np.full(3, np.nan)
    if most in (1, _monitor.EDGES + 1) and after[most] < 0.5:
        side, edge = ("below", 0) if most == 1 else ("above", _monitor.EDGES - 1)
        seen = number(changed.edges[edge], 3)
        return f"{_percent(after[most])} of rows are {side} {seen}, where few were"
    if abs(now[1] - median) >= 0.2 * max(high - low, 1e-300):
        return f"median {number(median, 3)} → {number(now[1], 3)}"
    return (
        f"interquartile range {number(low, 3)} to {number(high, 3)} → {number(now[0], 3)} to "
        f"{number(now[2], 3)}"
    )


def _quantile(shares: FloatArray, edges: FloatArray, q: float) -> float:
    """Return a quantile by the shares of bins, without the bins beyond the edges."""
    inside = shares[2 : _monitor.EDGES + 1]
    total = inside.sum()
    if total <= 0:
        return float("nan")
    cumulated = np.append(0.0, np.cumsum(inside)) / total
    return float(np.interp(q, cumulated, edges))


def describe_error(
    before: float,
    after: float,
    features: list[tuple[Changed, FloatArray, FloatArray]],
    errors: FloatArray,
) -> str:
    """Return a message about the growth of errors, and where they have grown most.

    - `before`, `after`: their mean size.
    - `features`: for each feature its distributions, the sum of errors by bin, and the rows by bin.
    """
    message = f"error: mean size {number(before, 3)} → {number(after, 3)}"
    grown = after / before if before > 0 else np.inf
    if 1.8 <= grown < 2.2:
        message = f"error doubled, mean size {number(before, 3)} → {number(after, 3)}"
    best, words = CLEARLY, ""
    for changed, sums, rows in features:
        bins = _bins(changed)[-len(errors) :]
        recent = errors[-len(bins) :]
        for bin in np.unique(bins):
            here = recent[(bins == bin) & ~np.isnan(recent)]
            usual = sums[bin] / rows[bin] if rows[bin] > 0 else 0.0
            if len(here) < LEAST_ROWS or usual <= 0 or len(here) > 0.7 * len(recent):
                continue
            scatter = max(float(here.std()), usual) / np.sqrt(len(here))
            excess = (here.mean() - grown * usual) / scatter
            if excess > best:
                best = excess
                place = _place(changed, int(bin))
                words = f", most where {place}: {number(usual, 3)} → {number(here.mean(), 3)}"
    return message + words


def _bins(changed: Changed) -> NDArray[np.intp]:
    """Return the bin of each value since then."""
    values = changed.after
    if changed.labels is not None:
        found = np.where(np.isnan(values), _monitor.MISSING, 1 + np.nan_to_num(values))
        return found.astype(np.intp)
    bins = np.searchsorted(changed.edges[:-1], values, side="right")
    bins = 1 + bins + (values > changed.edges[-1])
    return np.where(np.isnan(values), _monitor.MISSING, bins).astype(np.intp)


def _shares(changed: Changed) -> FloatArray:
    counts = np.bincount(_bins(changed), minlength=_monitor.BINS).astype(np.float64)
    shares: FloatArray = counts / max(counts.sum(), 1.0)
    return shares


def _place(changed: Changed, bin: int) -> str:
    name = plain(changed.name, LETTERS)
    if bin == _monitor.MISSING:
        return f"{name} is missing"
    if changed.labels is not None:
        label = changed.labels[bin - 1] if bin <= len(changed.labels) else "another one"
        return f"{name} = {plain(label, LETTERS)}"
    if bin == 1:
        return f"{name} < {number(changed.edges[0], 3)}"
    if bin == _monitor.EDGES + 1:
        return f"{name} > {number(changed.edges[-1], 3)}"
    low, high = changed.edges[bin - 2 : bin]
    return f"{name} is {number(low, 3)} to {number(high, 3)}"


def _percent(share: float) -> str:
    return f"{number(100 * share, 2)} %"
