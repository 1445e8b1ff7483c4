"""What predictions consist of: a level, and what calendar, lags and other columns add to it."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sapwood.lags.model import LaggedModel
from sapwood.rows.encoded import marked_like
from sapwood.rows.times import parts_of
from sapwood.validation import Label

__all__ = ["Decomposition", "decompose", "groups_of"]

FloatArray = NDArray[np.float64]
BACKGROUND = 8
"""Rows from which columns are taken in place of a row's own."""
CALENDAR, LAGS, SERIES, OTHERS = "calendar", "lags", "series", "other columns"


class Decomposition(NamedTuple):
    """Predictions as a level and contributions of groups of columns, which sum to them.

    Parameters
    ----------
    level : float
        The mean prediction of the rows that stand for all of them.
    parts : dict of arrays
        The contribution of each group of columns to each prediction.
    times : array of float, optional
        The local time of each row, in seconds.
    """

    level: float
    parts: dict[str, FloatArray]
    times: FloatArray | None = None

    def by(self, part: str) -> tuple[FloatArray, dict[str, FloatArray]]:
        """Return the mean contributions in each hour, weekday or day ("hour", "weekday", "day").

        Rows without a time are left out.
        """
        if self.times is None:
            return np.empty(0), {name: np.empty(0) for name in self.parts}
        known = np.isfinite(self.times)
        times = self.times[known]
        keys = np.floor(times / 86_400) if part == "day" else parts_of(times, [part])[part]
        found, places = np.unique(keys, return_inverse=True)
        rows = np.bincount(places)
        means = {name: np.bincount(places, own[known]) / rows for name, own in self.parts.items()}
        return found, means


def groups_of(model: LaggedModel, names: Sequence[Label]) -> dict[str, list[Label]]:
    """Return the columns of each group, without empty groups.

    Parameters
    ----------
    model : LaggedModel
        Whose lags, series and time they are.
    names : sequence of names
        The columns that the model inside gets.
    """
    lags = model.lags
    times = [rule for rule in model.schema.rules if rule.role == "time"]
    calendar = {lags.time, *(name for rule in times for name in (rule.name, *rule.derived))}
    groups: dict[str, list[Label]] = {CALENDAR: [], LAGS: [], SERIES: [], OTHERS: []}
    for name in names:
        if name in lags.features:
            groups[LAGS].append(name)
        elif name in lags.by:
            groups[SERIES].append(name)
        else:
            groups[CALENDAR if name in calendar else OTHERS].append(name)
    return {group: own for group, own in groups.items() if own}


def decompose(
    predict: Callable[[Any], FloatArray],
    columns: Mapping[Label, Any],
    groups: Mapping[str, Sequence[Label]],
    times: FloatArray | None = None,
) -> Decomposition:
    """Return Shapley values of groups of columns, which sum to each prediction minus the level.

    The contribution of a group is the mean difference that its columns make to predictions in which
    the columns of other groups are those of the row or those of another row, over all orders in
    which groups may be added. The other rows are `BACKGROUND` rows at evenly spaced quantiles of
    the predictions.

    Parameters
    ----------
    predict : callable
        Predicts columns; it must not change the model.
    columns : mapping of columns
        The rows, with all that the model gets.
    groups : mapping
        The columns of each group.
    times : array of float, optional
        The local time of each row, in seconds.

    References
    ----------
    S. M. Lundberg and S.-I. Lee, "A unified approach to interpreting model predictions", NIPS,
    2017.

    Examples
    --------
    >>> columns = {"hour": np.arange(12.0), "lag": np.arange(12.0) % 3}
    >>> groups = {"calendar": ["hour"], "lags": ["lag"]}
    >>> found = decompose(lambda X: 2 * X["hour"] + X["lag"], columns, groups)
    >>> parts = sum(found.parts.values()) + found.level
    >>> bool(np.allclose(parts, 2 * columns["hour"] + columns["lag"]))
    True
    >>> float(np.ptp(found.parts["calendar"])), float(np.ptp(found.parts["lags"]))
    (22.0, 2.0)
    """
    own = np.asarray(predict(columns), np.float64)
    if not len(own):
        return Decomposition(math.nan, {group: np.empty(0) for group in groups}, times)
    shares = (np.arange(BACKGROUND) + 0.5) / BACKGROUND
    others = np.argsort(own, kind="stable")[(shares * len(own)).astype(np.intp)]
    rows, places = np.repeat(np.arange(len(own)), BACKGROUND), np.tile(others, len(own))
    values: dict[frozenset[str], FloatArray] = {
        frozenset(): np.full(len(own), own[others].mean()),
        frozenset(groups): own,
    }
    for known in _subsets(groups):
        if known not in values:
            taken = {name for group in known for name in groups[group]}
            mixed = {
                name: _taken(column, rows if name in taken else places)
                for name, column in columns.items()
            }
            found = np.asarray(predict(marked_like(columns, mixed)), np.float64)
            values[known] = found.reshape(-1, BACKGROUND).mean(axis=1)
    count = len(groups)
    parts = {group: np.zeros(len(own)) for group in groups}
    for known in _subsets(groups):
        for group in groups.keys() - known:
            orders = math.factorial(len(known)) * math.factorial(count - len(known) - 1)
            gain = values[known | {group}] - values[known]
            parts[group] += orders / math.factorial(count) * gain
    return Decomposition(float(own[others].mean()), parts, times)


def _subsets(groups: Mapping[str, Any]) -> Iterator[frozenset[str]]:
    sizes = (combinations(groups, size) for size in range(len(groups) + 1))
    return map(frozenset, chain.from_iterable(sizes))


def _taken(column: Any, places: NDArray[np.intp]) -> Any:
    if isinstance(column, np.ndarray):
        return column[places]
    return [column[place] for place in places.tolist()]
