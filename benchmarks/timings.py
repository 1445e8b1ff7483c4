"""How well the tree predicts when labels come at once, by batches, late, or never.

The same rows, in the same order, in seven timings: each label is there before the next row is
predicted; batches of 24, 200 or 1,000 rows are predicted and then learned; each label comes 24 or
168 rows late; the first 80 % are learned as history, and the rest is predicted without a label.
The tree is compared with the same without its error-correction layer, the last known value, the
exponentially weighted mean of known values, LightGBM's continued training on the batches, and
scikit-learn's gradient boosting fitted on the history. R² leaves out the first 1,000 rows.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.data_sets import REAL, DataSet, load
from benchmarks.peers.sets import GENERATED, generated
from benchmarks.tables import Answer, Bound, Cell, Table
from sapwood import HoeffdingTreeRegressor

__all__ = ["run"]

FloatArray = NDArray[np.float64]

ROWS, QUICK_ROWS, LEFT_OUT = 50_000, 4_000, 1_000
HISTORY = 0.8
FADE = 0.99
AT_ONCE, NEVER = "at once", "never after 80 %"
BATCHES = {"by 24": 24, "by 200": 200, "by 1,000": 1_000}
LATE = {"24 late": 24, "168 late": 168}
TIMINGS = (AT_ONCE, *BATCHES, *LATE, NEVER)
DEFAULT, UNTRACKED, LAST, WEIGHTED = "default", "track=None", "last known", "weighted mean"
LIGHTGBM, BOOSTED = "LightGBM", "HistGradientBoosting"
PROMISED = {"bike": 0.936, "metro": 0.972, "Beijing PM2.5": 0.934, "demand": 0.957}
MAY_LOSE = 0.01
PAGE = Path(__file__).parents[1] / "docs" / "benchmarks" / "timings.md"


class Record(NamedTuple):
    """How well one learner did on one stream at one timing."""

    data: str
    rows: int
    timing: str
    learner: str
    r2: float


def run(quick: bool = False) -> Answer:
    """Let every learner predict every stream at every timing.

    Parameters
    ----------
    quick : bool
        Take the first 4,000 rows of each stream, and promise nothing.
    """
    rows = QUICK_ROWS if quick else ROWS
    real = [data for name in REAL if (data := load(name)) is not None]
    records: list[Record] = []
    for data in (*real, *(generated(name, rows) for name in GENERATED)):
        records += _scores(data.head(rows))
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page(records), encoding="utf-8")
    return Answer(
        [*_tables(records)],
        Table("timings", Record._fields, records),
        [] if quick else [*_bounds(records)],
    )


# -- what comes when ------------------------------------------------------------------------------

Step = tuple[str, int, int]


def steps(timing: str, rows: int) -> Iterator[Step]:
    """Yield what is done at a timing: ("both" | "predict" | "learn", first row, end)."""
    if timing == AT_ONCE:
        yield "both", 0, rows
    elif timing == NEVER:
        yield from (("learn", 0, int(HISTORY * rows)), ("predict", int(HISTORY * rows), rows))
    elif timing in BATCHES:
        for start in range(0, rows, BATCHES[timing]):
            end = min(rows, start + BATCHES[timing])
            yield from (("predict", start, end), ("learn", start, end))
    else:
        late = LATE[timing]
        for row in range(rows):
            yield "predict", row, row + 1
            if row >= late:
                yield "learn", row - late, row - late + 1


# -- learners: each returns predictions, NaN where none was asked for ------------------------------


def _tree(data: DataSet, timing: str, **parameters: Any) -> FloatArray:
    tree = HoeffdingTreeRegressor(**parameters)
    found = np.full(len(data.y), np.nan)
    columns = data.columns
    by_row = _dicts(columns) if timing in LATE else []
    for what, start, end in steps(timing, len(data.y)):
        if timing in LATE:
            if what == "predict":
                found[start] = tree.predict_one(by_row[start])
            else:
                tree.learn_one(by_row[start], float(data.y[start]))
            continue
        part = {name: column[start:end] for name, column in columns.items()}
        if what == "both":
            found[start:end] = tree.predict_learn_many(part, data.y[start:end])
        elif what == "predict":
            found[start:end] = tree.predict_many(part)
        else:
            tree.learn_many(part, data.y[start:end])
    return found


def _dicts(columns: dict[str, NDArray[Any]]) -> list[dict[str, Any]]:
    lists = [column.tolist() for column in columns.values()]
    return [dict(zip(columns, values, strict=True)) for values in zip(*lists, strict=True)]


def _baseline(data: DataSet, timing: str, fade: float) -> FloatArray:
    """Predict the mean of what is known, each label fading as others come; the last, if by 0."""
    found, total, weight = np.full(len(data.y), np.nan), 0.0, 0.0
    for what, start, end in steps(timing, len(data.y)):
        for row in range(start, end) if what == "both" else (start,):
            if what != "learn":
                found[row if what == "both" else slice(start, end)] = total / max(weight, 1e-300)
            if what != "predict":
                for label in data.y[row : row + 1] if what == "both" else data.y[start:end]:
                    total, weight = fade * total + label, fade * weight + 1.0
    return found


def _matrix(data: DataSet) -> FloatArray:
    tree = HoeffdingTreeRegressor(max_depth=0)
    tree.learn_many(data.columns, data.y)
    return np.asarray(tree._features.read(data.columns, learn=False).matrix)


def _lightgbm(data: DataSet, timing: str) -> FloatArray:
    """Continue a model's training by each batch, 10 trees a batch of 1,000."""
    lightgbm = import_module("lightgbm")
    X, y, booster = _matrix(data), data.y, None
    found = np.full(len(y), np.nan)
    for what, start, end in steps(timing, len(y)):
        if what == "predict":
            found[start:end] = 0.0 if booster is None else booster.predict(X[start:end])
        else:
            part = lightgbm.Dataset(X[start:end], y[start:end], params={"verbose": -1})
            booster = lightgbm.train({"verbose": -1}, part, 10, init_model=booster)
    return found


def _boosted(data: DataSet, timing: str) -> FloatArray:
    from sklearn.ensemble import HistGradientBoostingRegressor

    X, known = _matrix(data), int(HISTORY * len(data.y))
    found = np.full(len(data.y), np.nan)
    with import_module("threadpoolctl").threadpool_limits(
        1
    ):  # several threads take minutes on a busy machine
        model = HistGradientBoostingRegressor(random_state=0).fit(X[:known], data.y[:known])
        found[known:] = model.predict(X[known:])
    return found


def _learners(timing: str) -> dict[str, Callable[[DataSet, str], FloatArray]]:
    learners: dict[str, Callable[[DataSet, str], FloatArray]] = {
        DEFAULT: _tree,
        UNTRACKED: lambda data, timing: _tree(data, timing, track=None),
        LAST: lambda data, timing: _baseline(data, timing, 0.0),
        WEIGHTED: lambda data, timing: _baseline(data, timing, FADE),
    }
    if timing == "by 1,000" and find_spec("lightgbm") is not None:
        learners[LIGHTGBM] = _lightgbm
    if timing == NEVER and find_spec("sklearn") is not None:
        learners[BOOSTED] = _boosted
    return learners


# -- what was found --------------------------------------------------------------------------------


def _scores(data: DataSet) -> Iterator[Record]:
    for timing in TIMINGS:
        for name, learner in _learners(timing).items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = learner(data, timing)
            asked = np.flatnonzero(~np.isnan(found))
            asked = asked[asked >= LEFT_OUT]
            y = data.y[asked]
            r2 = float(1 - np.mean((y - found[asked]) ** 2) / y.var())
            yield Record(data.name, len(data.y), timing, name, r2)


def page(records: Sequence[Record]) -> str:
    """Return what was found as a page: how the default does at each timing, and all tables.

    Parameters
    ----------
    records : sequence of Record
        Of all streams.
    """
    tables = [*_tables(records)]
    parts = [HEAD, _markdown(_overview(records)), *map(_markdown, tables)]
    return "\n\n".join(parts) + "\n"


HEAD = """# Labels and accuracy

R² of the default tree at seven label timings, compared with the tree without error correction
(`track=None`), the last known value, and the exponentially weighted mean of known labels (0.99 a label).
"By 1,000" means that 1,000 rows are predicted, then learned; "24 late" that each label arrives after 24
further rows were predicted; "never after 80 %" that the first 80 % of the rows are learned without being
predicted, and the rest is predicted without labels. Streams have at most 50,000 rows; the first 1,000 are
not scored. LightGBM continues its training with each batch of 1,000; HistGradientBoosting of scikit-learn
is fitted once on the 80 %. All parameters have their defaults.

The constants of the error-correction layer were chosen on bike, Beijing PM2.5, california, friedman-gsg,
demand and daily temperatures; the other streams evaluate them. How experts of leaves count rows that were
never predicted was chosen on all of these streams. `python -m benchmarks timings` writes this page."""


def _markdown(table: Table) -> str:
    rows = [table.columns, ["---", *["--:"] * (len(table.columns) - 1)], *table.rows]
    lines = ["| " + " | ".join(map(str, row)) + " |" for row in rows]
    return "\n".join([f"## {table.title}", "", *lines])


def _overview(records: Sequence[Record]) -> Table:
    """Return the means over all streams, and where the default loses most."""
    score = {(r.data, r.timing, r.learner): r.r2 for r in records}
    names = [*dict.fromkeys(r.data for r in records)]
    rows: list[Sequence[Cell]] = []
    for timing in TIMINGS:
        lead = {
            name: score[name, timing, DEFAULT]
            - max(score[name, timing, UNTRACKED], score[name, timing, LAST])
            for name in names
        }
        worst = min(lead, key=lead.__getitem__)
        means = [
            float(np.mean([score[name, timing, each] for name in names]))
            for each in (DEFAULT, UNTRACKED, LAST, WEIGHTED)
        ]
        rows.append((timing, *(f"{mean:.4f}" for mean in means), f"{worst}, {lead[worst]:+.4f}"))
    worst_of = "least lead over the better of tree and last value"
    columns = ("labels", DEFAULT, UNTRACKED, LAST, WEIGHTED, worst_of)
    return Table(f"Means over {len(names)} streams", columns, rows)


def _tables(records: Sequence[Record]) -> Iterator[Table]:
    score = {(r.data, r.timing, r.learner): r.r2 for r in records}
    names = [*dict.fromkeys(r.data for r in records)]
    for timing in TIMINGS:
        learners = [*dict.fromkeys(r.learner for r in records if r.timing == timing)]
        rows: list[Sequence[Cell]] = [
            (name, *(f"{score[name, timing, learner]:.4f}" for learner in learners))
            for name in names
        ]
        means = [float(np.mean([score[n, timing, each] for n in names])) for each in learners]
        rows.append(("mean", *(f"{mean:.4f}" for mean in means)))
        yield Table(f"R², labels {timing}", ("stream", *learners), rows)


def _bounds(records: Sequence[Record]) -> Iterator[Bound]:
    score = {(r.data, r.timing, r.learner): r.r2 for r in records}
    names = [*dict.fromkeys(r.data for r in records)]
    for name, least in PROMISED.items():
        if name in names:
            value = score[name, AT_ONCE, DEFAULT]
            yield Bound(f"R², {name}, at once", value, least, at_least=True)
    for timing in TIMINGS:
        for name in names:
            better = max(score[name, timing, UNTRACKED], score[name, timing, LAST])
            yield Bound(
                f"R², {name}, {timing}, against the better of tree and last value - {MAY_LOSE}",
                score[name, timing, DEFAULT],
                better - MAY_LOSE,
                at_least=True,
            )
        mean = {
            each: float(np.mean([score[name, timing, each] for name in names]))
            for each in (DEFAULT, UNTRACKED, LAST)
        }
        limit = max(mean[UNTRACKED], mean[LAST])
        yield Bound(f"mean R², {timing}, against tree", mean[DEFAULT], limit, at_least=True)
