"""False alarm rate, detection delay and costs of the change detector and the drift monitor.

False alarms: on the errors of trees on still streams (Friedman's function, and real streams in a
shuffled order), and by a monitor of all columns there; per million rows, with the interval of
95 % of a Poisson distribution. Delays: the rows from a change to the first drift alert after it,
the median of some seeds, for ten kinds of change at row 10,000 of a Friedman stream with a
category: by our detector on the errors, by river's ADWIN and Page-Hinkley on the same errors, and
by the monitor. "-" means that less than half of the seeds led to an alert within 5,000 rows.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from river import drift as rivers
from scipy import stats

from benchmarks.peers import sets
from benchmarks.tables import Answer, Bound, Cell, Table
from benchmarks.timing import nanoseconds
from sapwood import HoeffdingTreeRegressor
from sapwood.drift import ChangeDetector, Monitor

__all__ = ["run"]

FloatArray = NDArray[np.float64]
Columns = dict[str, NDArray[Any]]
Change = Callable[[Columns, FloatArray, np.random.Generator], None]

ONCE_IN = 1_000_000
AT, AFTER = 10_000, 5_000
STILL_ROWS, MOST_STILL = 2_000_000, 50_000
QUICK_ROWS = 200_000
SEEDS = 11
MOST_NANOSECONDS = 100
OURS, MONITOR, ADWIN, PAGE = "ours", "monitor", "ADWIN", "Page-Hinkley"


class Record(NamedTuple):
    """False alarms, or the delay after one kind of change."""

    question: str
    what: str
    who: str
    value: float


def run(quick: bool = False) -> Answer:
    """Measure false alarms, delays and costs.

    Parameters
    ----------
    quick : bool
        Fewer rows and seeds.
    """
    still, bounds = _still_table(quick)
    delays = _delay_records(3 if quick else SEEDS)
    costs = _costs(5 if quick else 15)
    tables = [still, _delay_table(delays)]
    tables.append(
        Table(
            "CPU time a row of a monitor of ten features, errors and y; each the best of several",
            ("rows a call", "ns a row"),
            costs,
        )
    )
    bounds += [Bound(f"monitor, {rows} rows a call: ns", own, MOST_NANOSECONDS)
               for rows, own in costs]  # fmt: skip
    return Answer(tables, Table("drift", Record._fields, delays), bounds)


# -- false alarms ----------------------------------------------------------------------------------


def _still_table(quick: bool) -> tuple[Table, list[Bound]]:
    rows, found = QUICK_ROWS if quick else STILL_ROWS, list[Sequence[Cell]]()
    bounds: list[Bound] = []
    for name, streams in (("Friedman", _friedmans(rows)), ("real, shuffled", _shuffled(rows))):
        seen, detected = 0, dict.fromkeys((OURS, MONITOR, ADWIN, PAGE), 0)
        for columns, y in streams:
            predictions = HoeffdingTreeRegressor().predict_learn_many(columns, y)
            sizes = np.abs(y - predictions)[1000:]
            seen += len(sizes)
            detected[OURS] += len(ChangeDetector(ONCE_IN, "up").update_many(sizes))
            watched = {key: column[1000:] for key, column in columns.items()}
            detected[MONITOR] += len(
                Monitor(ONCE_IN).update_many(watched, y[1000:], predictions[1000:])
            )
            for who in (ADWIN, PAGE):
                detected[who] += len(_river_detections(who, sizes))
        for who, count in detected.items():
            low, high = _poisson(count)
            per = 1e6 / seen
            found.append(
                (
                    name,
                    who,
                    seen,
                    count,
                    f"{count * per:.2f}",
                    f"{low * per:.2f} to {high * per:.2f}",
                )
            )
            if who in (OURS, MONITOR):
                # The stated rate is compared with the lower end of the interval: so few rows can
                # refute no more.
                bounds.append(Bound(f"{name}, {who}: least false alarms per million", low * per,
                                    1e6 / ONCE_IN))  # fmt: skip
    title = f"False alarms, ours held to one in {ONCE_IN:,} rows"
    heads = ("stream", "who", "rows", "false alarms", "per million", "95 % interval")
    return Table(title, heads, found), bounds


def _poisson(count: int) -> tuple[float, float]:
    low = float(stats.chi2.ppf(0.025, 2 * count) / 2) if count else 0.0
    return low, float(stats.chi2.ppf(0.975, 2 * count + 2) / 2)


def _friedmans(rows: int) -> Iterator[tuple[Columns, FloatArray]]:
    for seed in range(max(1, rows // 200_000)):
        yield _friedman(np.random.default_rng(1000 + seed), min(rows, 200_000))


def _shuffled(rows: int) -> Iterator[tuple[Columns, FloatArray]]:
    """Yield real streams in orders that mean nothing, until there are so many rows."""
    known = [data for data in map(sets.real, sets.REAL) if data is not None]
    seen = seed = 0
    while known and seen < rows:
        for data in known:
            order = np.random.default_rng(seed).permutation(len(data.y))[:MOST_STILL]
            yield {name: column[order] for name, column in data.columns.items()}, data.y[order]
            seen += len(order)
            if seen >= rows:
                return
        seed += 1


def _river_detections(who: str, sizes: FloatArray) -> list[int]:
    detector: Any = rivers.ADWIN() if who == ADWIN else rivers.PageHinkley(mode="up")
    found = []
    for place, size in enumerate(sizes.tolist()):
        detector.update(size)
        if detector.drift_detected:
            found.append(place)
    return found


# -- delays ----------------------------------------------------------------------------------------


def _friedman(rng: np.random.Generator, rows: int) -> tuple[Columns, FloatArray]:
    columns: Columns = {f"x{i}": rng.random(rows) for i in range(9)}
    columns["city"] = rng.choice(np.array(["Oslo", "Rome", "Lima"], dtype=object), rows)
    return columns, _concept(columns, "x0", "x3") + rng.normal(size=rows)


def _concept(columns: Columns, first: str, fourth: str) -> FloatArray:
    x0, x1, x2, x3, x4 = (columns[name] for name in (first, "x1", "x2", fourth, "x4"))
    found: FloatArray = 10 * np.sin(np.pi * x0 * x1) + 20 * (x2 - 0.5) ** 2 + 10 * x3 + 5 * x4
    return found


def _permuted(columns: Columns, y: FloatArray, rng: np.random.Generator) -> None:
    y[AT:] = (_concept(columns, "x7", "x8") + rng.normal(size=len(y)))[AT:]


def _weak(columns: Columns, y: FloatArray, rng: np.random.Generator) -> None:
    y[AT:] += 3 * columns["x5"][AT:]


def _local(columns: Columns, y: FloatArray, rng: np.random.Generator) -> None:
    here = (np.arange(len(y)) >= AT) & (columns["city"] == "Oslo") & (columns["x3"] < 0.5)
    y[here] += 8.0


def _gradual(columns: Columns, y: FloatArray, rng: np.random.Generator) -> None:
    share = np.clip((np.arange(len(y)) - AT) / 2000, 0, 1)
    changed = rng.random(len(y)) < share
    y[changed] = (_concept(columns, "x7", "x8") + rng.normal(size=len(y)))[changed]


def _recurring(columns: Columns, y: FloatArray, rng: np.random.Generator) -> None:
    back = (np.arange(len(y)) - AT) // 500 % 2 == 0
    back[:AT] = False
    y[back] = (_concept(columns, "x7", "x8") + rng.normal(size=len(y)))[back]


def _noise(columns: Columns, y: FloatArray, rng: np.random.Generator) -> None:
    y[AT:] += rng.normal(0, np.sqrt(1.5**2 - 1), len(y) - AT)


def _level(columns: Columns, y: FloatArray, rng: np.random.Generator) -> None:
    y[AT:] += 3.0


def _scale(columns: Columns, y: FloatArray, rng: np.random.Generator) -> None:
    columns["x3"][AT:] *= 2.0


def _missing(columns: Columns, y: FloatArray, rng: np.random.Generator) -> None:
    columns["x3"][AT:] = np.nan


def _new_category(columns: Columns, y: FloatArray, rng: np.random.Generator) -> None:
    fresh = np.flatnonzero(rng.random(len(y)) < 0.1)
    columns["city"][fresh[fresh >= AT]] = "Paris"


CHANGES: dict[str, Change] = {
    "concept permuted": _permuted,
    "weak: 3 x5 more": _weak,
    "local: a sixth of rows": _local,
    "gradual, 2,000 rows": _gradual,
    "recurring, every 500 rows": _recurring,
    "noise times 1.5": _noise,
    "level of y": _level,
    "a feature's scale": _scale,
    "a feature gone missing": _missing,
    "a new category, a tenth": _new_category,
}


def _delay_records(seeds: int) -> list[Record]:
    records = []
    for name, change in CHANGES.items():
        delays: dict[str, list[float]] = {who: [] for who in (OURS, ADWIN, PAGE, MONITOR)}
        for seed in range(seeds):
            rng = np.random.default_rng(seed)
            columns, y = _friedman(rng, AT + AFTER)
            change(columns, y, rng)
            predictions = HoeffdingTreeRegressor().predict_learn_many(columns, y)
            sizes = np.abs(y - predictions)
            ours = ChangeDetector(ONCE_IN, "up").update_many(sizes)
            events = Monitor(ONCE_IN).update_many(columns, y, predictions)
            delays[OURS].append(_first([each.row for each in ours]))
            delays[MONITOR].append(_first([each.row for each in events]))
            for who in (ADWIN, PAGE):
                delays[who].append(_first([row + 1 for row in _river_detections(who, sizes)]))
        for who, own in delays.items():
            records.append(Record("delay", name, who, float(np.median(own))))
    return records


def _first(rows: Sequence[int]) -> float:
    """Return the rows from the change to the first drift alert after it."""
    after = [row - AT for row in rows if row > AT]
    return float(after[0]) if after else np.inf


def _delay_table(records: Sequence[Record]) -> Table:
    found = {(record.what, record.who): record.value for record in records}
    rows: list[Sequence[Cell]] = [
        (name, *(_delay_text(found[name, who]) for who in (OURS, ADWIN, PAGE, MONITOR)))
        for name in CHANGES
    ]
    title = "Rows until a change is noticed, the median over seeds; the first three on errors alone"
    return Table(title, ("change", "our detector", ADWIN, PAGE, "our monitor"), rows)


def _delay_text(rows: float) -> str:
    return f"{rows:,.0f}" if np.isfinite(rows) else "-"


# -- costs -----------------------------------------------------------------------------------------


def _costs(repeats: int) -> list[tuple[int, float]]:
    rng = np.random.default_rng(1)
    rows = 100_000
    x, y = rng.random((rows, 10)), rng.normal(size=rows)
    predictions = y + rng.normal(size=rows)
    found = []
    for size in (1_000, 10_000):

        def watch(size: int = size) -> None:
            monitor = Monitor()
            for i in range(0, rows, size):
                some = slice(i, i + size)
                monitor.update_many(x[some], y[some], predictions[some])

        found.append((size, min(nanoseconds(watch) for _ in range(repeats)) / rows))
    return found
