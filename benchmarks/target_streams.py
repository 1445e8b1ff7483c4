"""Streams with several targets: real ones, and Friedman's function.

The generated targets are Friedman's first function with factors of their own for each of its four
terms, from 0.5 to 1.5 and of either sign: all share the five features that matter, of ten. "Apart"
are as many such functions of other features each, of the same ten: the worst that one tree for all
can meet.
"""

import csv
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.data_sets import FOLDER, MISSING

__all__ = ["Stream", "streams"]

FloatArray = NDArray[np.float64]


class Stream(NamedTuple):
    """Rows with several targets."""

    name: str
    columns: dict[str, NDArray[Any]]
    targets: dict[str, FloatArray]
    promised: bool  # to be as good as separate trees

    @property
    def rows(self) -> int:
        """How many there are."""
        return len(next(iter(self.targets.values())))

    def head(self, rows: int) -> "Stream":
        """Return the first rows."""
        columns = {name: column[:rows] for name, column in self.columns.items()}
        targets = {name: column[:rows] for name, column in self.targets.items()}
        return self._replace(columns=columns, targets=targets)

    def without_gaps(self) -> "Stream":
        """Return the rows in which nothing is missing."""
        columns = [*self.columns.values(), *self.targets.values()]
        kept = ~np.any([column != column for column in columns], axis=0)  # noqa: PLR0124, as words are never missing
        return self._replace(
            columns={name: column[kept] for name, column in self.columns.items()},
            targets={name: column[kept] for name, column in self.targets.items()},
        )


def streams(rows: int) -> list[Stream]:
    """Return all of them, so many rows at most of each."""
    found = [_bias_correction(), _beijing()]
    found += [_friedman(4, rows), _friedman(16, rows), _rotated(4, rows), _rotated(16, rows)]
    return [stream.head(rows) for stream in found if stream is not None]


def _bias_correction() -> Stream | None:
    """Return tomorrow's warmest and coldest hour at 25 stations, by outputs of a weather model."""
    found = _read("bias_correction.csv")
    if found is None:
        return None
    dates = [datetime.strptime(text, "%Y-%m-%d") if text else None for text in found.pop("Date")]
    days = [np.nan if date is None else float(date.timetuple().tm_yday) for date in dates]
    columns = {"day": np.array(days), **{name: _numbers(texts) for name, texts in found.items()}}
    return _known("bias correction", columns, ("Next_Tmax", "Next_Tmin"))


def _beijing() -> Stream | None:
    """Return the air of Beijing: fine dust, temperature and pressure, by the rest."""
    found = _read("beijing_pm25.csv")
    if found is None:
        return None
    words = np.array(found.pop("cbwd"), dtype=object)
    found.pop("No")
    columns: dict[str, NDArray[Any]] = {name: _numbers(texts) for name, texts in found.items()}
    return _known("Beijing PM2.5", {**columns, "cbwd": words}, ("pm2.5", "TEMP", "PRES"))


def _read(file: str) -> dict[str, list[str]] | None:
    path = FOLDER / file
    if not path.exists():
        return None
    with path.open(newline="", encoding="utf-8") as source:
        rows = list(csv.DictReader(source))
    return {name: [row[name] for row in rows] for name in rows[0]}


def _numbers(texts: list[str]) -> FloatArray:
    return np.array([np.nan if text in MISSING else float(text) for text in texts])


def _known(name: str, columns: dict[str, NDArray[Any]], targets: tuple[str, ...]) -> Stream:
    """Return a stream of the rows in which any of the targets is known."""
    own = {target: columns.pop(target) for target in targets}
    kept = ~np.all([np.isnan(y) for y in own.values()], axis=0)
    return Stream(
        name,
        {feature: column[kept] for feature, column in columns.items()},
        {target: y[kept] for target, y in own.items()},
        True,
    )


def _terms(x: FloatArray) -> FloatArray:
    """Return the four terms of Friedman's first function."""
    return np.column_stack(
        [
            10 * np.sin(np.pi * x[:, 0] * x[:, 1]),
            20 * (x[:, 2] - 0.5) ** 2,
            10 * x[:, 3],
            5 * x[:, 4],
        ]
    )


def _friedman(targets: int, rows: int) -> Stream:
    """Return Friedman's function with factors of its own for each target, of the same features."""
    rng = np.random.default_rng(targets)
    x = rng.random((rows, 10))
    factors = rng.uniform(0.5, 1.5, (4, targets)) * rng.choice([-1.0, 1.0], (4, targets))
    return _generated(f"friedman, {targets}", x, _terms(x) @ factors, rng, True)


def _rotated(targets: int, rows: int) -> Stream:
    """Return Friedman's function of other features for each target: the next five of ten."""
    rng = np.random.default_rng(100 + targets)
    x = rng.random((rows, 10))
    y = [_terms(np.roll(x, -place, axis=1)).sum(axis=1) for place in range(targets)]
    return _generated(f"friedman apart, {targets}", x, np.column_stack(y), rng, False)


def _generated(
    name: str, x: FloatArray, y: FloatArray, rng: np.random.Generator, promised: bool
) -> Stream:
    y = y + rng.normal(size=y.shape)
    return Stream(
        name,
        {f"x{place}": np.ascontiguousarray(column) for place, column in enumerate(x.T)},
        {f"y{place}": np.ascontiguousarray(column) for place, column in enumerate(y.T)},
        promised,
    )
