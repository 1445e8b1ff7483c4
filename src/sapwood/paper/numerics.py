"""Section 3 of the paper, shown: what becomes of a variance when y lies far from zero.

Three ways to keep the statistics of slots and to find the two sides of every cut are tried on
the same slots: the sums of squares of the first E-BST, the paper's own formulas, whose right side
is the total less the left one, and Sapwood's `Moments`, merged from either end.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from itertools import accumulate
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from sapwood.moments import Moments
from sapwood.paper.style import SETTINGS, Look, figure, looks_of

__all__ = ["METHODS", "SCENARIOS", "describe_numerics", "draw_numerics", "measure_numerics"]

FloatArray = NDArray[np.float64]

SLOTS = 64
ROWS_PER_SLOT = 50
SEEDS = range(3)
OFFSETS = tuple(10.0**power for power in range(13))
ROUNDING = 2.0**-53
"""Errors below it are drawn as large as it."""


class Sides(NamedTuple):
    """The variances (divisor n − 1) left and right of each cut."""

    left: FloatArray
    right: FloatArray


class Scenario(NamedTuple):
    """Slots of y that grow hard to handle with an offset."""

    name: str
    make: Callable[[np.random.Generator, float], FloatArray]


class Welford(NamedTuple):
    """The paper's statistics: count, mean and M2, by its equations 2 to 7 in plain doubles."""

    n: int = 0
    mean: float = 0.0
    m2: float = 0.0

    def watch(self, y: float) -> "Welford":
        """Equations 2 and 3."""
        n = self.n + 1
        mean = self.mean + (y - self.mean) / n
        return Welford(n, mean, self.m2 + (y - self.mean) * (y - mean))

    def plus(self, other: "Welford") -> "Welford":
        """Equations 4 and 5."""
        n = self.n + other.n
        mean = (self.n * self.mean + other.n * other.mean) / n
        delta = other.mean - self.mean
        return Welford(n, mean, self.m2 + other.m2 + delta * delta * self.n * other.n / n)

    def minus(self, other: "Welford") -> "Welford":
        """Equations 6 and 7; δ, which the paper leaves open, is taken from the new mean."""
        n = self.n - other.n
        mean = (self.n * self.mean - other.n * other.mean) / n
        delta = other.mean - mean
        return Welford(n, mean, self.m2 - other.m2 - delta * delta * n * other.n / self.n)

    def variance(self) -> float:
        """M2 / (n − 1)."""
        return self.m2 / (self.n - 1)


def _everywhere(rng: np.random.Generator, offset: float) -> FloatArray:
    """Move all of y: a step of one standard deviation on top of an offset."""
    step = np.where(np.arange(SLOTS) < SLOTS // 3, 0.0, 1.0)
    return np.asarray(offset + (step[:, None] + rng.normal(size=(SLOTS, ROWS_PER_SLOT))))


def _on_the_left(rng: np.random.Generator, offset: float) -> FloatArray:
    """Move the left half of y, and leave the right half quiet."""
    quiet = 1e-3 * rng.normal(size=(SLOTS, ROWS_PER_SLOT))
    return np.asarray(quiet + np.where(np.arange(SLOTS) < SLOTS // 2, offset, 0.0)[:, None])


SCENARIOS = (
    Scenario("an offset on every y", _everywhere),
    Scenario("an offset on the left half of y", _on_the_left),
)


def _naive(slots: FloatArray) -> Sides:
    n = np.full(SLOTS, ROWS_PER_SLOT)
    # The last of the cumulative sums is the plain running sum that is meant here.
    sums = np.column_stack([n, np.cumsum(slots, 1)[:, -1], np.cumsum(slots * slots, 1)[:, -1]])
    left = np.cumsum(sums, axis=0)
    right = left[-1] - left[:-1]
    return Sides(_naive_variance(left[:-1]), _naive_variance(right))


def _naive_variance(sums: FloatArray) -> FloatArray:
    n, total, squares = sums.T
    return np.asarray((squares - total * total / n) / (n - 1))


def _papers(slots: FloatArray) -> Sides:
    of_slots = [reduce(Welford.watch, y, Welford()) for y in slots.tolist()]
    left = list(accumulate(of_slots, Welford.plus))
    right = [left[-1].minus(side) for side in left[:-1]]
    return Sides(*(np.array([s.variance() for s in sides]) for sides in (left[:-1], right)))


def _ours(slots: FloatArray) -> Sides:
    of_slots = [Moments() for _ in slots]
    for moments, y in zip(of_slots, slots, strict=True):
        moments.update_many(y)
    left = list(accumulate(of_slots))
    right = list(accumulate(reversed(of_slots)))[::-1]
    sides = (left[:-1], right[1:])
    return Sides(*(np.array([side.variance() for side in each]) for each in sides))


METHODS: dict[str, Callable[[FloatArray], Sides]] = {
    "sums of squares": _naive,
    "the paper's, by subtraction": _papers,
    "Moments, merged from both ends": _ours,
}


def _exact(slots: FloatArray) -> Sides:
    """Return the variances by two passes over the rows, each side shifted by one of its own y."""
    cuts = range(1, len(slots))
    return Sides(
        np.array([_two_pass(slots[:cut].ravel()) for cut in cuts]),
        np.array([_two_pass(slots[cut:].ravel()) for cut in cuts]),
    )


def _two_pass(y: FloatArray) -> float:
    shifted = (y - y[0]).astype(np.longdouble)
    return float(((shifted - shifted.mean()) ** 2).sum() / (len(y) - 1))


def measure_numerics() -> pd.DataFrame:
    """Try every method on every scenario, offset and seed.

    The frame has the largest relative error of a side's variance, the share of variances that are
    negative, and the regret: the share of the best merit that is lost by choosing the cut with
    that method's variances.
    """
    return pd.DataFrame(_rows())


def _rows() -> Iterator[dict[str, object]]:
    for scenario in SCENARIOS:
        for offset in OFFSETS:
            for seed in SEEDS:
                slots = scenario.make(np.random.default_rng(seed), offset)
                truth = _exact(slots)
                for name, method in METHODS.items():
                    found = method(slots)
                    yield {
                        "scenario": scenario.name,
                        "offset": offset,
                        "seed": seed,
                        "method": name,
                        "variance_error": _largest_error(found, truth),
                        "negative": float(np.mean(np.concatenate(found) < 0)),
                        "regret": _regret(found, truth, _two_pass(slots.ravel())),
                    }


def _largest_error(found: Sides, truth: Sides) -> float:
    found_all, true_all = np.concatenate(found), np.concatenate(truth)
    return float(np.max(np.abs(found_all - true_all) / true_all))


def _regret(found: Sides, truth: Sides, total: float) -> float:
    """Return what is lost by the cut that leaves the least variance as it was found."""
    merits = total - _left_over(truth)
    return float(1 - merits[np.argmin(_left_over(found))] / merits.max())


def _left_over(sides: Sides) -> FloatArray:
    share = np.arange(1, SLOTS) / SLOTS
    return np.asarray(share * sides.left + (1 - share) * sides.right)


def draw_numerics(measured: pd.DataFrame) -> Figure:
    """Draw the error of the variance and the regret of the cut by offset."""
    looks = looks_of(list(METHODS))
    with mpl.rc_context(SETTINGS):
        drawn = figure(9.0, 6.2)
        panels = drawn.subplots(2, len(SCENARIOS), sharex=True, sharey="row")
        for column, scenario in enumerate(SCENARIOS):
            chosen = measured[measured["scenario"] == scenario.name]
            worst = chosen.groupby(["offset", "method"])[["variance_error", "regret"]].max()
            for name, look in looks.items():
                points = worst.xs(name, level="method")
                _draw_row(panels[:, column], points, name, look)
            panels[0, column].set_title(scenario.name, fontsize=10)
            panels[1, column].set_xlabel("offset")
        panels[0, 0].set_ylabel("largest relative error\nof a side's variance")
        panels[1, 0].set_ylabel("regret of the cut")
        handles, labels = panels[0, 0].get_legend_handles_labels()
        drawn.legend(handles, labels, loc="outside upper center", ncols=len(looks))
    return drawn


def _draw_row(panels: Sequence[mpl.axes.Axes], points: pd.DataFrame, name: str, look: Look) -> None:
    errors, regret = panels
    style: dict[str, Any] = {"color": look.colour, "linestyle": look.dash, "marker": look.marker}
    errors.plot(points.index, points["variance_error"].clip(lower=ROUNDING), label=name, **style)
    errors.set_xscale("log")
    errors.set_yscale("log")
    regret.plot(points.index, points["regret"], **style)


def describe_numerics(measured: pd.DataFrame) -> str:
    """Describe the error of each method, and from which offset on it chooses a worse cut."""
    sentences = []
    for scenario in SCENARIOS:
        chosen = measured[measured["scenario"] == scenario.name]
        parts = [_describe_method(name, chosen[chosen["method"] == name]) for name in METHODS]
        sentences.append(f"With {scenario.name} of up to {OFFSETS[-1]:.0e}: {'; '.join(parts)}.")
    return " ".join(sentences)


def _describe_method(name: str, rows: pd.DataFrame) -> str:
    text = f"{name}: an error of up to {rows['variance_error'].max():.1e} times a side's variance"
    negative = rows["negative"].max()
    if negative > 0:
        text += f", up to {negative:.0%} of the variances are negative"
    worse = rows[rows["regret"] > 0]
    if worse.empty:
        return text + ", and the best cut is always found"
    return (
        text + f", and from an offset of {worse['offset'].min():.0e} on a worse cut may be "
        f"chosen, at a regret of up to {worse['regret'].max():.1%}"
    )
