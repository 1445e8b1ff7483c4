"""How well a hybrid predicts, compared with its members and with other ways to use a batch learner.

The same rows in the same order at four timings, as in `timings`: each label is there before the
next row is predicted; 1,000 rows are predicted and then learned; each label comes 24 rows late; the
first 80 % are learned, and the rest is predicted without a label. Learners: the hybrid, the forest,
LightGBM and HistGradientBoosting refitted by the same schedule as in the hybrid, and LightGBM's
continued training, by 10 trees for each 1,000 rows. R² leaves out the first 1,000 rows; in means and
differences one below -1 counts as -1. Seconds are those of the processor, in one thread. The answer is
written to docs/benchmarks/results/hybrid.csv, and tables made of it to docs/howto/hybrid.md.

The constants of the combination were chosen on every second stream in alphabetical order of those of
`benchmarks.peers.sets` (`CHOSE`); the other ones, and those of `data_sets.FURTHER`, evaluate them.
"""

import argparse
import csv
import math
import statistics
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks import data_sets
from benchmarks.data_sets import DataSet
from benchmarks.peers.sets import GENERATED, REAL, generated, real
from benchmarks.tables import Answer, Bound, Cell, Table
from benchmarks.timings import AT_ONCE, LATE, NEVER, steps
from sapwood import ForestRegressor, HybridRegressor
from sapwood.hybrid.learners import BatchLearner, HistGradientBoosting, LightGBM
from sapwood.hybrid.schedule import Schedule
from sapwood.rows.features import Features

__all__ = ["run"]

FloatArray = NDArray[np.float64]

ROWS, QUICK_ROWS, LEFT_OUT = 8_000, 3_000, 1_000
WINDOW = 20_000
TIMINGS = (AT_ONCE, "by 1,000", "24 late", NEVER)
HYBRID, FOREST, CONTINUED = "hybrid", "forest", "LightGBM continued"
LIGHTGBM, BOOSTED = "LightGBM refitted", "HistGradientBoosting refitted"
QUICK_STREAMS = ("bike", "friedman-gra")
CHOSE = (
    *("Beijing PM2.5", "births", "check times", "demand", "electricity", "flights"),
    *("friedman-gra", "friedman-lea", "hyperplane", "movies", "planes2d", "randhie"),
    *("txhousing", "weather"),
)
MAY_LOSE = 0.005
LEAST = (
    -1.0
)  # what a lower R² counts as in means: that of a part where y hardly varies has no bound
PACE, PACED_ROWS = 0.002, 4_000  # seconds between two rows
LATENCY, HISTORY, LAG = "latency", 16_000, 450
BEFORE_PACED = 2 * LAG  # rows between the last fit on the history and the first paced row
DOCS = Path(__file__).parents[1] / "docs"
RESULTS, PAGE = DOCS / "benchmarks" / "results" / "hybrid.csv", DOCS / "howto" / "hybrid.md"
MARK = "<!-- written by python -m benchmarks hybrid -->\n"


class Record(NamedTuple):
    """How well one learner did on one stream at one timing, or how long calls took.

    Attributes
    ----------
    data, rows, chose
        The stream; whether it chose constants.
    timing : str
        When labels come; of a latency, the method that was called.
    learner : str
        Its name; of a latency, what ran meanwhile.
    r2, seconds : float
        The score, and seconds of the processor.
    fits : int
        Of a latency, how many fits ran meanwhile.
    median, p99, largest : float
        Of a latency, microseconds.
    """

    data: str
    rows: int
    chose: bool
    timing: str
    learner: str
    r2: float = math.nan
    seconds: float = math.nan
    fits: int = 0
    median: float = math.nan
    p99: float = math.nan
    largest: float = math.nan


def run(quick: bool = False) -> Answer:
    """Let every learner predict every stream at every timing.

    Parameters
    ----------
    quick : bool
        Take the first 3,000 rows of two streams, and promise nothing.
    """
    names = QUICK_STREAMS if quick else (*REAL, *data_sets.FURTHER, *GENERATED)
    records: list[Record] = []
    for name in names:
        records += scores(name, QUICK_ROWS if quick else ROWS)
    records += _latency(PACED_ROWS // 8 if quick else PACED_ROWS)
    if not quick:
        Table("hybrid", Record._fields, records).write_csv(RESULTS)
        text = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(text.split(MARK)[0] + page(records), encoding="utf-8")
    return answer(records, quick)


def read_records() -> list[Record]:
    """Return the records of the last full run."""
    with RESULTS.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    kinds: dict[str, Callable[[str], Any]] = {
        **dict.fromkeys(("r2", "seconds", "median", "p99", "largest"), float),
        **dict.fromkeys(("rows", "fits"), int),
        "chose": lambda text: text == "True",
    }
    return [Record(**{n: kinds.get(n, str)(text) for n, text in row.items()}) for row in rows]


def page(records: Sequence[Record]) -> str:
    """Return the part of the page that shows the results.

    Parameters
    ----------
    records : sequence of Record
        Of all streams.
    """
    tables = (_overview(records), _by_stream(records), _latency_table(records))
    return MARK + "\n" + "\n\n".join(map(_markdown, tables)) + "\n"


def _markdown(table: Table) -> str:
    rows = [table.columns, ["---", *["--:"] * (len(table.columns) - 1)], *table.rows]
    lines = ["| " + " | ".join(map(str, row)) + " |" for row in rows]
    return "\n".join([f"### {table.title}", "", *lines])


def answer(records: Sequence[Record], quick: bool) -> Answer:
    """Return tables, records and bounds.

    Parameters
    ----------
    records : sequence of Record
        Of all streams.
    quick : bool
        Whether nothing is promised.
    """
    tables = [_overview(records), *_tables(records), _latency_table(records)]
    return Answer(
        tables,
        Table("hybrid", Record._fields, records),
        [] if quick else [*_bounds(records)],
    )


# -- learners -------------------------------------------------------------------------------------


def scores(name: str, rows: int) -> list[Record]:
    """Return the scores of all learners on a stream; none where its file is not there.

    Parameters
    ----------
    name : str
        Of a generator or a real stream.
    rows : int
        How many at most.
    """
    if name in GENERATED:
        data: DataSet | None = generated(name, rows)
    else:
        data = real(name) if name in REAL else data_sets.load(name)
    if data is None:
        return []
    data = data.head(rows)
    found: list[Record] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for timing in TIMINGS:
            for learner, make in ((HYBRID, _hybrid), (FOREST, _forest)):
                start = time.process_time()
                predictions = _online(make(), data, timing)
                seconds = time.process_time() - start
                found.append(_record(data, timing, learner, predictions, seconds))
        learners: dict[str, Callable[[], BatchLearner]] = {BOOSTED: HistGradientBoosting}
        if find_spec("lightgbm") is not None:
            learners[LIGHTGBM] = LightGBM
            start = time.process_time()
            predictions = _continued(data)
            seconds = time.process_time() - start
            found.append(_record(data, "by 1,000", CONTINUED, predictions, seconds))
        for learner, kind in learners.items():
            for timing, predictions, seconds in _refitted(kind(), data):
                found.append(_record(data, timing, learner, predictions, seconds))
    return found


def _record(
    data: DataSet, timing: str, learner: str, predictions: FloatArray, seconds: float
) -> Record:
    asked = np.flatnonzero(~np.isnan(predictions))
    asked = asked[asked >= LEFT_OUT]
    y = data.y[asked]
    r2 = float(1 - np.mean((y - predictions[asked]) ** 2) / y.var())
    return Record(data.name, len(data.y), data.name in CHOSE, timing, learner, r2, seconds)


def _hybrid() -> HybridRegressor:
    return HybridRegressor(_forest())


def _forest() -> ForestRegressor:
    return ForestRegressor(threads=1)


def _online(model: Any, data: DataSet, timing: str) -> FloatArray:
    found = np.full(len(data.y), np.nan)
    dicts = data.dicts() if timing in LATE else []
    for what, start, end in steps(timing, len(data.y)):
        if timing in LATE:
            if what == "predict":
                found[start] = model.predict_one(dicts[start])
            else:
                model.learn_one(dicts[start], float(data.y[start]))
            continue
        part = {name: column[start:end] for name, column in data.columns.items()}
        if what == "both":
            found[start:end] = model.predict_learn_many(part, data.y[start:end])
        elif what == "predict":
            found[start:end] = model.predict_many(part)
        else:
            model.learn_many(part, data.y[start:end])
    return found


def _refitted(learner: BatchLearner, data: DataSet) -> Iterator[tuple[str, FloatArray, float]]:
    """Yield timings, predictions and seconds; each fit serves all timings."""
    X, y, count = Features().matrix(data.columns, learn=True), data.y, len(data.y)
    schedule = Schedule.checked(0.25, 200, None, WINDOW)
    known = {timing: _labels_known(timing, count) for timing in TIMINGS}
    found = {timing: np.zeros(count) for timing in TIMINGS}
    spent = dict.fromkeys(TIMINGS, 0.0)
    found[NEVER][: int(0.8 * count)] = np.nan
    start = schedule.start_after(0)
    while start is not None and start <= count:
        following = schedule.start_after(start) or count
        first, last = schedule.used_from(start), schedule.used_from(following)
        begun = time.process_time()
        model = learner.fit(
            X[max(0, start - WINDOW) : start], y[max(0, start - WINDOW) : start], None
        )
        seconds = time.process_time() - begun
        for timing in TIMINGS:
            rows = np.flatnonzero((known[timing] >= first) & (known[timing] < last))
            rows = rows[~np.isnan(found[timing][rows])]
            begun = time.process_time()
            if len(rows):
                found[timing][rows] = model.predict(np.ascontiguousarray(X[rows]))
                spent[timing] += seconds + time.process_time() - begun
        start = following
    for timing in TIMINGS:
        yield timing, found[timing], spent[timing]


def _labels_known(timing: str, count: int) -> NDArray[np.int64]:
    """Return how many labels there are when each row is predicted."""
    known, labels = np.zeros(count, np.int64), 0
    if timing == AT_ONCE:
        return np.arange(count)
    for what, start, end in steps(timing, count):
        if what == "learn":
            labels += end - start
        else:
            known[start:end] = labels
    return known


def _continued(data: DataSet) -> FloatArray:
    lightgbm = import_module("lightgbm")
    X, y, booster = Features().matrix(data.columns, learn=True), data.y, None
    found, own = np.zeros(len(y)), {"verbose": -1, "num_threads": 1}
    for what, start, end in steps("by 1,000", len(y)):
        if what == "predict" and booster is not None:
            found[start:end] = booster.predict(X[start:end], num_threads=1)
        elif what == "learn":
            part = lightgbm.Dataset(X[start:end], y[start:end], params=own)
            booster = lightgbm.train(own, part, 10, init_model=booster)
    return found


# -- latency while fits run -----------------------------------------------------------------------


def _latency(rows: int) -> Iterator[Record]:
    """Yield how long single calls take at 500 rows a second, with and without fits."""
    data = generated("friedman", HISTORY + rows)
    dicts = data.dicts()
    for label, refit in (("fits every 500 rows", 500), ("no fits", 10**6)):
        model = HybridRegressor(_forest(), lag=LAG, min_rows=200, refit=refit)
        columns = {name: column[:HISTORY] for name, column in data.columns.items()}
        _learn_history(model, columns, data.y[:HISTORY])
        times, fits = _paced(model, dicts[HISTORY:], data.y[HISTORY:].tolist())
        for call, own in zip(("predict_one", "learn_one"), times, strict=True):
            quantiles = [1e6 * float(np.quantile(own, q)) for q in (0.5, 0.99, 1.0)]
            yield Record(LATENCY, rows, False, call, label, math.nan, math.nan, fits, *quantiles)


def _latency_table(records: Sequence[Record]) -> Table:
    shown: list[Sequence[Cell]] = [
        (
            f"{r.timing}, {r.learner}",
            r.fits,
            *(round(each) for each in (r.median, r.p99, r.largest)),
        )
        for r in records
        if r.data == LATENCY
    ]
    title = f"Latency at {1 / PACE:.0f} rows a second after {HISTORY:,} rows"
    return Table(title, ("call", "fits", "median µs", "99 % µs", "largest µs"), shown)


def _learn_history(model: HybridRegressor, columns: Any, y: FloatArray) -> None:
    core = model._core
    schedule = core.schedule
    core.schedule = schedule._replace(refit=len(y) - BEFORE_PACED)
    model.learn_many(columns, y)
    model._core.schedule = schedule


def _paced(
    model: HybridRegressor, dicts: Sequence[dict[str, Any]], y: Sequence[float]
) -> tuple[tuple[list[float], list[float]], int]:
    """Return the seconds of each call, at a fixed pace, and how many fits there were meanwhile."""
    before, due = len(model.refits), time.perf_counter()
    predicting, learning = [], []
    for x, label in zip(dicts, y, strict=True):
        due += PACE
        time.sleep(max(0.0, due - time.perf_counter()))
        start = time.perf_counter()
        model.predict_one(x)
        middle = time.perf_counter()
        model.learn_one(x, label)
        predicting.append(middle - start)
        learning.append(time.perf_counter() - middle)
    return (predicting, learning), len(model.refits) - before


# -- what was found -------------------------------------------------------------------------------


def _overview(records: Sequence[Record]) -> Table:
    """Return means over streams, where the hybrid is ahead, and where it loses most."""
    score = _scores(records)
    names = [*dict.fromkeys(name for name, _, _ in score)]
    learners = [*dict.fromkeys(learner for _, _, learner in score)]
    shown = []
    for choice, subset in (
        ("all", names),
        ("held-out", [name for name in names if name not in CHOSE]),
    ):
        for timing in TIMINGS:
            if not subset:
                continue
            means = {}
            for learner in learners:
                own = [
                    score[name, timing, learner]
                    for name in subset
                    if (name, timing, learner) in score
                ]
                if own:
                    means[learner] = (
                        statistics.fmean(each.r2 for each in own),
                        statistics.fmean(each.seconds for each in own),
                    )
            lead = {name: _lead(score, name, timing) for name in subset}
            avoided = statistics.fmean(_avoided(score, name, timing) for name in subset)
            worst = min(lead, key=lead.__getitem__)
            shown.append(
                (
                    f"{timing}, {choice} {len(subset)}",
                    *(
                        f"{means[e][0]:.4f} ({means[e][1]:.1f} s)" if e in means else ""
                        for e in learners
                    ),
                    f"{100 * avoided:.1f} %",
                    f"{sum(each > 0 for each in lead.values())} of {len(subset)}",
                    f"{sum(each < -MAY_LOSE for each in lead.values())}",
                    f"{worst}, {lead[worst]:+.4f}",
                )
            )
    columns = (
        *("labels", *learners, "squared error of the forest that the hybrid avoids"),
        "streams with the hybrid better than both members",
        f"streams with the hybrid more than {MAY_LOSE} below the better member",
        "stream with the smallest difference of R² (hybrid − better member)",
    )
    return Table("Mean R² (CPU seconds of a stream)", columns, shown)


def _by_stream(records: Sequence[Record]) -> Table:
    """Return the scores of the hybrid and of its members on each stream."""
    score = {(r.data, r.timing, r.learner): r.r2 for r in records}
    names = [*dict.fromkeys(r.data for r in records if r.data != LATENCY)]
    rows = [
        (
            name,
            *(
                " / ".join(
                    f"{score[name, timing, learner]:.3f}"
                    for learner in (HYBRID, FOREST, LIGHTGBM, BOOSTED, CONTINUED)
                    if (name, timing, learner) in score
                )
                for timing in TIMINGS
            ),
        )
        for name in names
    ]
    columns = ("stream", *(f"labels {timing}" for timing in TIMINGS))
    title = "R²: hybrid / forest / refitted LightGBM / refitted HistGradientBoosting / continued"
    return Table(title, columns, rows)


def _scores(records: Sequence[Record]) -> dict[tuple[str, str, str], Record]:
    """Return what means and differences are made of, by stream, timing and learner."""
    return {
        (r.data, r.timing, r.learner): r._replace(r2=max(LEAST, r.r2))
        for r in records
        if r.data != LATENCY
    }


def _lead(score: dict[tuple[str, str, str], Record], name: str, timing: str) -> float:
    """Return how far the hybrid is ahead of the better of its members."""
    members = [
        score[name, timing, each].r2 for each in (FOREST, LIGHTGBM) if (name, timing, each) in score
    ]
    return score[name, timing, HYBRID].r2 - max(members)


def _avoided(score: dict[tuple[str, str, str], Record], name: str, timing: str) -> float:
    """Return the share of the forest's squared error that the hybrid does not have."""
    return 1 - (1 - score[name, timing, HYBRID].r2) / (1 - score[name, timing, FOREST].r2)


def _tables(records: Sequence[Record]) -> Iterator[Table]:
    records = [r for r in records if r.data != LATENCY]
    score = {(r.data, r.timing, r.learner): r.r2 for r in records}
    names = [*dict.fromkeys(r.data for r in records)]
    for timing in TIMINGS:
        learners = [*dict.fromkeys(r.learner for r in records if r.timing == timing)]
        rows = [
            (name, *(f"{score[name, timing, learner]:.4f}" for learner in learners))
            for name in names
        ]
        yield Table(f"R², labels {timing}", ("stream", *learners), rows)


def _bounds(records: Sequence[Record]) -> Iterator[Bound]:
    score = _scores(records)
    names = [*dict.fromkeys(name for name, _, _ in score)]
    for timing in TIMINGS:
        leads = [_lead(score, name, timing) for name in names]
        what = f"lead over the better member, {timing}"
        yield Bound(f"mean {what}", statistics.fmean(leads), -MAY_LOSE, at_least=True)
        if timing in (AT_ONCE, *LATE):  # with later labels a drift decides
            yield Bound(f"least {what}", min(leads), -MAY_LOSE, at_least=True)


def main() -> None:
    """Measure some streams, and print their records as lines of CSV."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("streams", nargs="+")
    parser.add_argument("--rows", type=int, default=ROWS)
    options = parser.parse_args()
    for name in options.streams:
        for record in scores(name, options.rows):
            print(*record, sep=",", flush=True)


if __name__ == "__main__":
    main()
