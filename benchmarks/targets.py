"""One model for several targets beside one for each: how well it predicts, and what it costs.

Each row is predicted before it is learned, and the first 1,000 are not scored. R² is the mean over
targets, each by the rows in which it is known; times are CPU time of the calling thread, in turns,
the best of several. The generated targets are Friedman's first function with factors of their own
for each of its four terms, from 0.5 to 1.5 and of either sign: all share the five features that
matter, of ten. "Apart" are as many such functions of other features each, of the same ten: the
worst that one tree for all can meet, shown without a promise. river's iSOUP tree has too few rows
a second for whole streams: it is compared on the first ones, behind river's scaler, with a feature
of 0 or 1 for each category, and without the rows in which anything is missing. Forests and adaptive
trees learn in one thread.
"""

import csv
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.data_sets import FOLDER, MISSING, _with_none
from benchmarks.tables import Answer, Bound, Cell, Table
from benchmarks.timing import nanoseconds
from sapwood import AdaptiveTreeRegressor, ForestRegressor, HoeffdingTreeRegressor

__all__ = ["run"]

FloatArray = NDArray[np.float64]

ROWS, QUICK_ROWS, NOT_SCORED = 50_000, 3_000, 1_000
TIMED_ROWS, REPEATS = 20_000, 5
RIVER_ROWS, QUICK_RIVER_ROWS = 3_000, 1_200
MAY_LOSE = 0.01
ENSEMBLES: dict[str, Callable[[], Any]] = {
    "adaptive": partial(AdaptiveTreeRegressor, threads=1),
    "forest": partial(ForestRegressor, threads=1),
}
MOST_TIME = {4: 0.75, 16: 0.5}  # of separate trees, by the number of targets


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


def run(quick: bool = False) -> Answer:
    """Let one model, separate ones and river's tree learn all streams, and time ours.

    Parameters
    ----------
    quick : bool
        Fewer rows.
    """
    rows = QUICK_ROWS if quick else ROWS
    scores: list[list[Cell]] = []
    beside: list[list[Cell]] = []
    ensembles: list[list[Cell]] = []
    bounds: list[Bound] = []
    for stream in _streams(rows):
        one, leaves = _together(stream)
        each, own_leaves = _apart(stream)
        count = len(stream.targets)
        ratio = _time_ratio(stream.head(2_000 if quick else TIMED_ROWS), 2 if quick else REPEATS)
        scores.append(
            [stream.name, stream.rows, count, one, each, one - each, leaves, own_leaves, ratio]
        )
        if stream.promised:
            bounds.append(Bound(f"R² lost to separate trees, {stream.name}", each - one, MAY_LOSE))
        if count in MOST_TIME and stream.promised:
            bounds.append(
                Bound(f"time beside separate trees, {stream.name}", ratio, MOST_TIME[count])
            )
        for kind, make in ENSEMBLES.items():
            one, each = _together(stream, make)[0], _apart(stream, make)[0]
            ratio = _time_ratio(
                stream.head(2_000 if quick else TIMED_ROWS), 1 if quick else 2, make
            )
            ensembles.append([kind, stream.name, stream.rows, one, each, one - each, ratio])
            if stream.promised:
                named = f"R² lost to separate models, {kind}, {stream.name}"
                bounds.append(Bound(named, each - one, MAY_LOSE))
        first = stream.head(QUICK_RIVER_ROWS if quick else RIVER_ROWS)
        beside.append([stream.name, first.rows, _together(first)[0], *_of_river(first)])
    columns = (
        "stream", "rows", "targets", "R², one tree", "R², separate", "difference",
        "leaves", "leaves, separate", "time / separate",
    )  # fmt: skip
    table = Table("One tree for all targets beside one for each", columns, scores)
    trees = Table(
        "One adaptive tree or forest beside one for each target",
        ("model", "stream", "rows", "R², one", "R², separate", "difference", "time / separate"),
        ensembles,
    )
    other = Table(
        "Beside river's iSOUP tree, on the first rows",
        ("stream", "rows", "R², one tree", "R², iSOUP", "µs a row, one tree", "µs a row, iSOUP"),
        beside,
    )
    return Answer([table, trees, other], table, bounds)


def _together(
    stream: Stream, make: Callable[[], Any] = HoeffdingTreeRegressor
) -> tuple[float, int]:
    """Return the mean R² of one model for all targets, and its leaves."""
    tree = make()
    said = tree.predict_learn_many(stream.columns, stream.targets)
    return _mean_r2(stream, said), tree.n_leaves


def _apart(stream: Stream, make: Callable[[], Any] = HoeffdingTreeRegressor) -> tuple[float, int]:
    """Return the same for a model for each target, which learns the rows that have it."""
    said, leaves = {}, 0
    for name, y in stream.targets.items():
        tree, known = make(), ~np.isnan(y)
        columns = {feature: column[known] for feature, column in stream.columns.items()}
        said[name] = np.full(len(y), np.nan)
        said[name][known] = tree.predict_learn_many(columns, y[known])
        leaves += tree.n_leaves
    return _mean_r2(stream, said), leaves


def _mean_r2(stream: Stream, said: dict[str, FloatArray]) -> float:
    scores = []
    for name, y in stream.targets.items():
        scored = ~np.isnan(y)
        scored[:NOT_SCORED] = False
        error = y[scored] - said[name][scored]
        scores.append(1.0 - float(error @ error) / float(np.var(y[scored]) * scored.sum()))
    return float(np.mean(scores))


def _time_ratio(
    stream: Stream, repeats: int, make: Callable[[], Any] = HoeffdingTreeRegressor
) -> float:
    """Return how long one model takes for all targets, as a share of separate ones.

    All get what they learn as it is learned: arrays, or columns where there are words.
    """
    X: Any = stream.columns
    if not any(column.dtype == object for column in X.values()):
        X = np.column_stack(list(X.values()))
    Y = np.column_stack(list(stream.targets.values()))
    known = [~np.isnan(y) for y in stream.targets.values()]
    each = [(_rows(X, own), y[own]) for own, y in zip(known, stream.targets.values(), strict=True)]

    def together() -> None:
        make().predict_learn_many(X, Y)

    def apart() -> None:
        for x, y in each:
            make().predict_learn_many(x, y)

    actions: list[Callable[[], object]] = [together, apart]
    taken = [[nanoseconds(action) for action in actions] for _ in range(repeats)]
    one, separate = np.min(taken, axis=0).tolist()
    return float(one / separate)


def _rows(X: Any, kept: NDArray[np.bool_]) -> Any:
    """Return some rows of an array or of columns."""
    if isinstance(X, dict):
        return {name: column[kept] for name, column in X.items()}
    return X if kept.all() else X[kept]


def _of_river(stream: Stream) -> tuple[float | None, float | None, float | None]:
    """Return R² of river's iSOUP tree, and µs a row of one tree and of it; None without river."""
    try:
        from river.preprocessing import StandardScaler
        from river.tree import ISOUPTreeRegressor
    except ImportError:
        return None, None, None
    lists = [_with_none(column).tolist() for column in stream.columns.values()]
    rows = [
        {
            f"{name}={value}" if isinstance(value, str) else name: 1.0
            if isinstance(value, str)
            else value
            for name, value in zip(stream.columns, row, strict=True)
            if value is not None
        }
        for row in zip(*lists, strict=True)
    ]
    targets = [
        dict(zip(stream.targets, row, strict=True))
        for row in np.column_stack(list(stream.targets.values())).tolist()
    ]
    said = {name: np.full(len(rows), np.nan) for name in stream.targets}
    # It cannot do without any of the targets, or features that it knows.
    whole = [not any(np.isnan(list(y.values()))) and len(x) == len(lists)
             for x, y in zip(rows, targets, strict=True)]  # fmt: skip
    model = StandardScaler() | ISOUPTreeRegressor()

    def learn() -> None:
        for place, (x, y) in enumerate(zip(rows, targets, strict=True)):
            if whole[place]:
                found = model.predict_one(x)
                for name, own in said.items():
                    own[place] = found.get(name, 0.0)
                model.learn_one(x, y)

    microseconds = nanoseconds(learn) / 1e3 / sum(whole)
    known = Stream(
        stream.name, stream.columns,
        {name: np.where(whole, y, np.nan) for name, y in stream.targets.items()}, False,
    )  # fmt: skip
    ours = nanoseconds(lambda: _together(stream)) / 1e3 / stream.rows
    return _mean_r2(known, said), ours, microseconds


# -- streams ------------------------------------------------------------------------------------


def _streams(rows: int) -> list[Stream]:
    found = [_bias_correction(), _beijing()]
    found += [_friedman(4, rows), _friedman(16, rows), _rotated(4, rows), _rotated(16, rows)]
    return [stream.head(rows) for stream in found if stream is not None]


def _bias_correction() -> Stream | None:
    """Return tomorrow's warmest and coldest hour at 25 stations, by what a weather model says."""
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
