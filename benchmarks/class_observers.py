"""Observers of classes: how good their splits are, what they keep, and how long they take.

A feature is watched together with the class. The merit of a split is measured on all rows, by the
Gini impurity, as a share of that of the best of all splits. Features are normal in each class,
uniform, skewed, and of few values. river's splitters see the same rows. `python -m benchmarks
class_observers` writes the results and the page of them.
"""

import csv
import pickle
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from river.tree import splitter
from river.tree.split_criterion import GiniSplitCriterion

from benchmarks.tables import Answer, Table
from sapwood.observers import (
    ClassObserver,
    ExhaustiveClassObserver,
    GaussianClassObserver,
    HistogramClassObserver,
    QuantizerClassObserver,
)
from sapwood.observers.class_counts import split_merits

__all__ = ["FILE", "PAGE", "page", "read", "run"]

FILE = Path(__file__).parents[1] / "docs" / "benchmarks" / "results" / "class_observers.csv"
PAGE = FILE.parents[1] / "class_observers.md"
ROWS, QUICK_ROWS, SEEDS, QUERIES = 10_000, 1_000, 5, 20
FloatArray = NDArray[np.float64]

OURS: dict[str, Callable[[float], ClassObserver]] = {
    "exhaustive": lambda _: ExhaustiveClassObserver(),
    "histogram, 64 bins": lambda _: HistogramClassObserver(64),
    "Gaussian, 10 splits": lambda _: GaussianClassObserver(10),
    "Gaussian, 100 splits": lambda _: GaussianClassObserver(100),
    "QO, radius std/4": lambda deviation: QuantizerClassObserver(deviation / 4),
    "QO, radius std/16": lambda deviation: QuantizerClassObserver(deviation / 16),
}
THEIRS: dict[str, Callable[[], Any]] = {
    "river exhaustive": splitter.ExhaustiveSplitter,
    "river histogram": splitter.HistogramSplitter,
    "river Gaussian": splitter.GaussianSplitter,
}


class Record(NamedTuple):
    """What an observer has made of a feature."""

    feature: str
    classes: int
    observer: str
    merit: float
    bytes: int
    microseconds_per_row: float
    microseconds_per_query: float


def _normal(rng: np.random.Generator, codes: NDArray[np.int64]) -> FloatArray:
    return rng.normal(1.2 * codes, 1.0)


def _uniform(rng: np.random.Generator, codes: NDArray[np.int64]) -> FloatArray:
    return rng.random(len(codes)) + 0.4 * codes


def _skewed(rng: np.random.Generator, codes: NDArray[np.int64]) -> FloatArray:
    return rng.lognormal(0.6 * codes, 1.0)


def _two_peaks(rng: np.random.Generator, codes: NDArray[np.int64]) -> FloatArray:
    sides = np.where(rng.random(len(codes)) < 0.5, -1.0, 1.0)
    return rng.normal(sides * (1.0 + 2.0 * codes), 0.6)


def _few_values(rng: np.random.Generator, codes: NDArray[np.int64]) -> FloatArray:
    return rng.binomial(12, 0.2 + 0.5 * codes / max(1, codes.max())).astype(float)


FEATURES = {
    "normal": _normal,
    "uniform": _uniform,
    "skewed": _skewed,
    "two peaks": _two_peaks,
    "few values": _few_values,
}


def run(quick: bool = False) -> Answer:
    """Let all observers watch all features.

    Parameters
    ----------
    quick : bool
        Use fewer rows and one seed, and write neither results nor page.
    """
    rows, seeds = (QUICK_ROWS, 1) if quick else (ROWS, SEEDS)
    records = []
    for feature, make in FEATURES.items():
        for classes in (2, 10):
            for seed in range(seeds):
                rng = np.random.default_rng(seed)
                codes = rng.integers(0, classes, rows)
                records += _measured(feature, make(rng, codes), codes)
    if not quick:
        Table("", Record._fields, records).write_csv(FILE)
        PAGE.write_text(page(records), encoding="utf-8")
    return Answer([table(records)], Table("class_observers", Record._fields, records))


def _measured(feature: str, x: FloatArray, codes: NDArray[np.int64]) -> list[Record]:
    classes, best, found = int(codes.max()) + 1, 0.0, []
    for name, make in OURS.items():
        observer = make(float(x.std()))
        before = process_time()
        for start in range(0, len(x), 100):
            observer.update_many(x[start : start + 100], codes[start : start + 100])
        learned = process_time()
        for _ in range(QUERIES):
            split = observer.best_split()
        queried = process_time()
        threshold = np.nan if split is None else split.threshold
        merit = _merit(x < threshold, codes, classes)
        best = best or merit  # that of the exhaustive one
        times = _rounded((learned - before) / len(x), (queried - learned) / QUERIES)
        share = round(merit / best, 5)
        found.append(Record(feature, classes, name, share, observer.nbytes, *times))
    for name, make_theirs in THEIRS.items():
        theirs = make_theirs()
        before = process_time()
        for value, code in zip(x.tolist(), codes.tolist(), strict=True):
            theirs.update(value, code, 1.0)
        learned = process_time()
        counts = dict(enumerate(np.bincount(codes).astype(float).tolist()))
        suggested = theirs.best_evaluated_split_suggestion(
            GiniSplitCriterion(0.0), counts, "x", True
        )
        times = _rounded((learned - before) / len(x), process_time() - learned)
        merit = _merit(x <= (np.nan if suggested is None else suggested.split_info), codes, classes)
        size, share = len(pickle.dumps(theirs)), round(merit / best, 5)
        found.append(Record(feature, classes, name, share, size, *times))
    return found


def _rounded(row: float, query: float) -> tuple[float, float]:
    """Return seconds as microseconds."""
    return round(1e6 * row, 3), round(1e6 * query, 3)


def _merit(is_left: NDArray[np.bool_], codes: NDArray[np.int64], classes: int) -> float:
    """Return the reduction of the Gini impurity that a split brings on all rows."""
    left = np.bincount(codes[is_left], minlength=classes).astype(float)[None]
    whole = np.bincount(codes, minlength=classes).astype(float)[None]
    return max(0.0, float(split_merits(left, whole - left, "gini")[0]))


def table(records: list[Record]) -> Table:
    """Return the means of each observer over all features and seeds.

    Parameters
    ----------
    records : list of Record
        All measurements.
    """
    rows = []
    for name in dict.fromkeys(record.observer for record in records):
        own = [record for record in records if record.observer == name]
        merits = [record.merit for record in own]
        rows.append(
            (
                name,
                f"{np.mean(merits):.4f}",
                f"{np.min(merits):.4f}",
                f"{np.median([record.bytes for record in own]):,.0f}",
                f"{np.median([record.microseconds_per_row for record in own]):.2f}",
                f"{np.median([record.microseconds_per_query for record in own]):,.0f}",
            )
        )
    columns = (
        *("observer", "merit (mean)", "merit (worst)", "bytes (median)"),
        *("µs per row (median)", "µs per query (median)"),
    )
    return Table("Splits of classes", columns, rows)


def page(records: list[Record]) -> str:
    """Return the page of the results in Markdown.

    Parameters
    ----------
    records : list of Record
        All measurements.
    """
    found = table(records)
    rule = ["---", *("--:" for _ in found.columns[1:])]
    lines = [found.columns, rule, *([str(cell) for cell in row] for row in found.rows)]
    shown = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return (
        "\n\n".join(
            [
                "# Observers of classes",
                "Written by `python -m benchmarks class_observers`. Each observer watches one feature "
                f"together with the class, {ROWS:,} rows, of 2 or 10 classes, {SEEDS} seeds; features "
                f"are {', '.join(FEATURES)}. Merit is the reduction of the Gini impurity that the "
                "chosen split brings on all rows, as a share of the best split. Our observers learn "
                "batches of 100 rows, those of river one row at a time; their bytes are those of a "
                "pickle.",
                shown,
                "The trees of Sapwood watch features by slots of class sums in their own kernel; these "
                "observers are for studies, and for trees of your own.",
                "All measurements: {download}`class_observers.csv <results/class_observers.csv>`.",
            ]
        )
        + "\n"
    )


def read(path: Path = FILE) -> list[Record]:
    """Return the measurements of an earlier run.

    Parameters
    ----------
    path : Path
        What `run` wrote.
    """
    kinds = (str, int, str, float, int, float, float)
    with path.open(newline="", encoding="utf-8") as file:
        return [
            Record(*(kind(row[name]) for name, kind in zip(Record._fields, kinds, strict=True)))
            for row in csv.DictReader(file)
        ]
