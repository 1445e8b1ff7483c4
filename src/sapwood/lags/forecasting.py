"""Recursive forecasts: predictions become the lags of later rows, in a copy of the past."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sapwood import validation
from sapwood.lags.lags import LaggedRows, Lags
from sapwood.rows.encoded import EncodedColumns, EncodedRow

__all__ = ["Path", "lost_lags", "next_rows", "recursive_path"]

MOST_ROWS = 1_000_000


class Path(NamedTuple):
    """Predictions of rows that follow each other, none of which has a label yet.

    Parameters
    ----------
    predictions : array of float, shape (rows,) or (rows, targets)
        The predictions.
    bounds : array of float, shape (rows, levels, 2) or (rows, targets, levels, 2), optional
        The prediction intervals, if they were requested.
    is_recursive : array of bool, shape (rows,)
        Whether a lag or rolling mean of the row depends on predictions of rows before it.
    rows : sequence of dict
        The rows with their lags.
    """

    predictions: NDArray[np.float64]
    bounds: NDArray[np.float64] | None
    is_recursive: NDArray[np.bool_]
    rows: Sequence[dict[Any, Any]] = ()


def recursive_path(
    model: Any, lags: Lags, rows: Sequence[Mapping[Any, Any]], intervals: bool
) -> Path:
    """Predict rows one after the other.

    Parameters
    ----------
    model : object
        Which predicts rows that have their lags; it is not changed.
    lags : Lags
        What is known of earlier rows; they are not changed.
    rows : sequence of mappings
        The rows without lags.
    intervals : bool
        Whether prediction intervals are wanted.
    """
    ahead, unaided = lags.copy(), lags.copy()
    predictions, bounds, is_recursive, lagged = [], [], [], []
    for x in rows:
        row = ahead.next_row(x)
        found, interval = _predicted(model, row, intervals)
        is_recursive.append(any(row[name] != unaided.next_row(x)[name] for name in lags.features))
        lagged.append(row)
        ahead.learn_one(x, found)
        unaided.learn_one(x)
        predictions.append([*found.values()] if isinstance(found, Mapping) else found)
        bounds.append(interval)
    values = np.array(predictions, np.float64)
    known = np.array(bounds) if intervals else None
    return Path(values, known, np.array(is_recursive, np.bool_), lagged)


def next_rows(model: Any, seconds: float, most: int = MOST_ROWS) -> tuple[list[Any], list[Any]]:
    """Return the rows after the last one of each series, and the series that have ended.

    A series has ended if rows so far after its last one would not follow the last row of all. The
    rows have their times, at the usual step of their series, and what follows from these.

    Parameters
    ----------
    model : LaggedModel
        With lags by time.
    seconds : float
        How far to go beyond the last row of each series.
    most : int
        How many rows are allowed.

    Raises
    ------
    ValueError
        If there would be more.
    """
    lags = model.lags
    rule = next((each for each in model.schema.rules if each.name == lags.time), None)
    latest = lags.latest_times
    last = max((time for time, _ in latest.values()), default=0.0)
    ended = [key for key, (time, _) in latest.items() if time + seconds < last]
    moments: list[tuple[float, Any]] = []
    for key in latest.keys() - set(ended):
        time, step = latest[key]
        steps = int(seconds / step + 1e-9)
        if len(moments) + steps > most:
            raise ValueError(f"{steps:,} rows of each of {len(latest):,} series are too many")
        moments += [(time + step * each, key) for each in range(1, steps + 1)]
    order = {key: place for place, key in enumerate(latest)}
    rows = []
    for time, key in sorted(moments, key=lambda each: (each[0], order[each[1]])):
        taken = {} if rule is None else rule.derive_one(time)
        series = dict(zip(lags.by, key, strict=True))
        rows.append(EncodedRow({lags.time: time, **taken, **series}))
    return rows, ended


def _predicted(model: Any, row: dict[Any, Any], intervals: bool) -> tuple[Any, Any]:
    """Return the prediction and the interval of one row; nothing is recorded."""
    if intervals:
        columns = {name: [value] for name, value in row.items()}
        given = EncodedColumns(columns) if isinstance(row, EncodedRow) else columns
        values, bounds = model.predict_intervals_many(given, record=False)
        if values.ndim == 1:
            return float(values[0]), bounds[0]
        return dict(zip(model.targets, values[0].tolist(), strict=True)), bounds[0]
    if hasattr(type(model), "_place_one"):
        return model.predict_one(row, record=False), None
    return model.predict_one(row), None


def lost_lags(plan: LaggedRows, lags: Lags) -> str | None:
    """Return a sentence if lags of the target are known for the first of some rows alone."""
    for name, column in plan.lags.items():
        if column.dtype == object:  # labels of classes
            is_lost = np.array([label is None for label in column.tolist()], np.bool_)
        else:
            is_lost = np.isnan(column)
        if name not in lags.own_features or not len(column) or is_lost[0]:
            continue
        if is_lost[-1]:
            first = int(np.flatnonzero(is_lost)[0]) + 1
            return (
                f"{validation.shown(name)} is not known from row {first} of {len(column)} on, as "
                "the targets of the rows before are not"
            )
    return None
