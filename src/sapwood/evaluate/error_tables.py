"""The errors of all rows by hour, by category and by prediction, as running sums."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sapwood.evaluate.recorder import saved_array
from sapwood.evaluate.result import BY_PREDICTION, PART, ErrorsBy

__all__ = ["BINS", "BLOCK", "ErrorTables", "grouped"]

FloatArray = NDArray[np.float64]

BLOCK = 4096
"""Rows that are summed up together. Sums do not depend on how the rows are cut into chunks."""
BINS = 128
"""Of predictions, with about as many rows each."""
HOURS = 24
MOST_ROWS = 2**53  # up to which doubles count
SECONDS, DAY = 3600.0, 86_400.0
FARTHEST = 1e15  # of times, whose hours are exact up to here
PREDICTION, Y, HOUR, FIRST_CODE = range(4)  # columns of the block
SUMS = 3  # rows, errors, sizes of errors; those of a bin of predictions begin with their sum


class ErrorTables:
    """Sums of errors by the hour of the day, the labels of some categories, and the prediction.

    - `groups`: how many categories there are at most.
    - `labels`: how many labels each of them has at most; code -1 stands for all others.

    Examples
    --------
    >>> tables = ErrorTables(1, 2)
    >>> codes = np.array([[0], [1], [1]], dtype=np.int16)
    >>> tables.take(np.array([3.0, 1.0, 1.0]), np.zeros(3), None, codes)
    >>> found = tables.finished({"city": ["Oslo", "Bonn"]})
    >>> found.groups["city"][1]["bias"].tolist()
    [3.0, 1.0]
    """

    def __init__(self, groups: int, labels: int) -> None:
        self._groups, self._labels = groups, labels
        self._block = np.zeros((BLOCK, FIRST_CODE + groups))
        self._count = 0
        self._hours = np.zeros((HOURS, SUMS))
        self._by_label = np.zeros((groups, labels, SUMS))
        self._bins = np.zeros((0, 1 + SUMS))

    def take(
        self,
        predictions: FloatArray,
        y: FloatArray,
        times: FloatArray | None,
        codes: NDArray[np.int16],
    ) -> None:
        """Take rows that were scored, in order.

        - `predictions`, `y`: what was predicted, and what was observed.
        - `times`: the seconds since 1970 of each row, NaN where they are not known.
        - `codes`: the codes of their labels.
        """
        start = 0
        while start < len(y):
            stop = min(len(y), start + BLOCK - self._count)
            rows = self._block[self._count : self._count + stop - start]
            rows[:, PREDICTION], rows[:, Y] = predictions[start:stop], y[start:stop]
            rows[:, HOUR] = -1 if times is None else _hours(times[start:stop])
            rows[:, FIRST_CODE:] = codes[start:stop]
            self._count += stop - start
            start = stop
            if self._count == BLOCK:
                self._hours, self._by_label, self._bins = self._summed()
                self._count = 0

    @property
    def rows(self) -> int:
        """The number of rows so far."""
        return self._count + int(self._bins[:, 1].sum())

    def _summed(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return all tables with the rows of the block."""
        rows = self._block[: self._count]
        error = rows[:, PREDICTION] - rows[:, Y]
        codes = rows[:, HOUR:].astype(np.intp)
        hours, by_label = self._hours.copy(), self._by_label.copy()
        hours += _sums(codes[:, 0], error, HOURS)
        for group in range(self._groups):
            by_label[group] += _sums(codes[:, 1 + group], error, self._labels)
        own = np.column_stack([rows[:, PREDICTION], np.ones(len(rows)), error, np.abs(error)])
        bins = np.concatenate([self._bins, own])
        return hours, by_label, _merged(bins, BINS)

    def finished(self, groups: Mapping[str, Sequence[Any]]) -> ErrorsBy:
        """Return the tables.

        - `groups`: the labels of each category, in the order of their codes.
        """
        hours, by_label, bins = self._summed()
        found = np.zeros(len(bins), BY_PREDICTION)
        found["prediction"] = bins[:, 0] / bins[:, 1]
        _fill(found, bins[:, 1:])
        tables = {
            name: ([str(label) for label in labels], _parts(by_label[place, : len(labels)]))
            for place, (name, labels) in enumerate(groups.items())
        }
        return ErrorsBy(_parts(hours), found, tables)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the state, to be saved."""
        return {
            "errors_block": self._block[: self._count].copy(),
            "errors_hours": self._hours.copy(),
            "errors_labels": self._by_label.copy(),
            "errors_bins": self._bins.copy(),
        }

    def restored(self, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return tables in a state that `to_arrays` returned."""
        groups, labels = self._groups, self._labels
        made = type(self)(groups, labels)
        block = saved_array(arrays, "errors_block", np.float64, (None, FIRST_CODE + groups))
        bins = saved_array(arrays, "errors_bins", np.float64, (None, 1 + SUMS))
        if len(block) >= BLOCK or not np.isfinite(block).all():
            raise ValueError("the saved rows of the error tables are invalid")
        hour, codes = block[:, HOUR], block[:, FIRST_CODE:]
        if ((hour < -1) | (hour >= HOURS)).any() or ((codes < -1) | (codes >= labels)).any():
            raise ValueError("the saved rows of the error tables have invalid codes")
        counts = bins[:, 1]
        if len(bins) > BINS or not (np.isfinite(bins).all() and (counts > 0).all()):
            raise ValueError("the saved errors by prediction are invalid")
        if counts.sum() > MOST_ROWS:
            raise ValueError("the saved errors by prediction are invalid")
        for name, own in (("errors_hours", made._hours), ("errors_labels", made._by_label)):
            saved = saved_array(arrays, name, np.float64, own.shape)
            if not (np.isfinite(saved).all() and (saved[..., [0, 2]] >= 0).all()):
                raise ValueError(f"the saved {name} have a count or an error below 0")
            own[...] = saved
        made._block[: len(block)], made._count, made._bins = block, len(block), bins
        return made


def _hours(times: FloatArray) -> NDArray[np.int8]:
    """Return the hour of the day of each time, -1 where it is not known."""
    known = np.abs(times) < FARTHEST
    clock = np.where(known, times, 0.0) % DAY // SECONDS
    return np.where(known, clock, -1).astype(np.int8)


def _sums(codes: NDArray[np.intp], error: FloatArray, count: int) -> FloatArray:
    """Return the rows, errors and sizes of errors of each code; those of -1 are left out."""
    columns = (None, error, np.abs(error))
    return np.column_stack([np.bincount(codes + 1, each, count + 1)[1:] for each in columns])


def _merged(bins: FloatArray, most: int) -> FloatArray:
    """Return bins of predictions as at most so many, of about as many rows each."""
    if not len(bins):
        return bins
    mean = bins[:, 0] / bins[:, 1]
    bins = bins[np.lexsort((bins[:, 1], mean))]
    mean.sort()
    middle = np.cumsum(bins[:, 1]) - 0.5 * bins[:, 1]
    place = (middle * (most / bins[:, 1].sum())).astype(np.intp)
    # Equal predictions are in one bin.
    first = np.append(True, np.diff(mean) > 0)
    place = place[np.maximum.accumulate(np.where(first, np.arange(len(mean)), 0))]
    starts = np.flatnonzero(np.append(True, np.diff(place) > 0))
    merged: FloatArray = np.add.reduceat(bins, starts, axis=0)
    return merged


def _parts(sums: FloatArray) -> NDArray[Any]:
    found = np.zeros(len(sums), PART)
    _fill(found, sums)
    return found


def _fill(found: NDArray[Any], sums: FloatArray) -> None:
    found["rows"] = sums[:, 0]
    with np.errstate(invalid="ignore"):
        found["bias"], found["mae"] = sums[:, 1] / sums[:, 0], sums[:, 2] / sums[:, 0]


def grouped(bins: NDArray[Any], count: int) -> NDArray[Any]:
    """Return the errors by prediction in at most so many parts of about as many rows.

    - `bins`: each of `BY_PREDICTION`.
    - `count`: how many parts there are at most.
    """
    rows = bins["rows"].astype(np.float64)
    sums = [bins["prediction"] * rows, rows, bins["bias"] * rows, bins["mae"] * rows]
    merged = _merged(np.column_stack(sums), count)
    found = np.zeros(len(merged), BY_PREDICTION)
    found["prediction"] = merged[:, 0] / merged[:, 1]
    _fill(found, merged[:, 1:])
    return found
