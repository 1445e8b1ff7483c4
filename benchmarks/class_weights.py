"""Rare classes: what `class_weight="balanced"` and `cost` bring, and what they cost.

Streams of benchmarks.class_streams whose classes differ in size, and others of which one row in ten
is kept of all classes but the most frequent. The forest with its defaults, with balanced weights, and
with the costs that balance classes by their shares in the first 500 rows; river's AMF as a peer. Each
row is predicted, then learned. All rows are scored from the 501st on. Means over the seeds.
`python -m benchmarks class_weights` writes the results; the how-to page on classification has them.
"""

import csv
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
from river import forest

from benchmarks.class_peers import ClassLearner, _River
from benchmarks.class_streams import ClassStream, load
from benchmarks.tables import Answer, Table
from sapwood import ForestClassifier
from sapwood.evaluate.class_scores import ClassScores
from sapwood.validation import Label

__all__ = ["FILE", "LEARNERS", "STREAMS", "Record", "markdown", "read", "run"]

FILE = Path(__file__).parents[1] / "docs" / "benchmarks" / "results" / "class_weights.csv"
ROWS, QUICK_ROWS, FIRST, BLOCK, SEEDS = 5_000, 900, 500, 100, (1, 2, 3)
STREAMS = {"adult": 1, "weather": 1, "covtype": 1, "random tree": 10, "rbf": 10, "sea, drift": 10}
"""The streams; of those with 10 one row in ten is kept of all classes but the most frequent."""
AMF = "river AMF"
METRICS = ("accuracy", "balanced_accuracy", "kappa", "log_loss")


class Record(NamedTuple):
    """What a learner reached on a stream: means over seeds."""

    stream: str
    rows: int
    rarest: float
    learner: str
    accuracy: float
    balanced_accuracy: float
    kappa: float
    log_loss: float


def _costs(stream: ClassStream) -> dict[str, float]:
    """Return the costs that balance the classes of the first rows."""
    counts = Counter(stream.labels[:FIRST])
    return {label: max(counts.values()) / count for label, count in counts.items()}


LEARNERS: dict[str, Callable[[ClassStream, int], Any]] = {
    "forest": lambda _, seed: ForestClassifier(threads=1, seed=seed),
    "forest, balanced weights": lambda _, seed: ForestClassifier(
        threads=1, seed=seed, class_weight="balanced"
    ),
    "forest, costs": lambda s, seed: ForestClassifier(threads=1, seed=seed, cost=_costs(s)),
    AMF: lambda _, seed: _River(forest.AMFClassifier(seed=seed), numbers_only=True),
}


def run(quick: bool = False) -> Answer:
    """Let each learner predict each stream.

    Parameters
    ----------
    quick : bool
        Use few rows of one stream and one seed, without river, and do not write the results.
    """
    names, rows, seeds = (["rbf"], QUICK_ROWS, (1,)) if quick else (list(STREAMS), ROWS, SEEDS)
    records: list[Record] = []
    for name in names:
        found = load(name, rows * STREAMS[name])
        if found is not None:
            stream = _thinned(found, STREAMS[name], rows)
            records += _measured(
                stream, seeds, [one for one in LEARNERS if not quick or one != AMF]
            )
    table = Table("Rare classes", Record._fields, records)
    if not quick:
        table.write_csv(FILE)
    return Answer([table], Table("class_weights", Record._fields, records))


def _thinned(stream: ClassStream, every: int, rows: int) -> ClassStream:
    """Return a stream with one row in so many of each class but the most frequent."""
    most, seen = Counter(stream.labels).most_common(1)[0][0], Counter[str]()
    kept = []
    for place, label in enumerate(stream.labels):
        seen[label] += 1
        if label == most or seen[label] % every == 0:
            kept.append(place)
    kept = kept[:rows]
    return ClassStream(
        stream.name, [stream.rows[at] for at in kept], [stream.labels[at] for at in kept]
    )


def _measured(stream: ClassStream, seeds: tuple[int, ...], names: list[str]) -> Iterator[Record]:
    counts = Counter(stream.labels)
    rarest = round(min(counts.values()) / len(stream.labels), 4)
    for name in names:
        own = [_scores(stream, LEARNERS[name](stream, seed)) for seed in seeds]
        means = [round(fmean(float(each[metric]) for each in own), 4) for metric in METRICS]
        yield Record(stream.name, len(stream.rows), rarest, name, *means)


def _scores(stream: ClassStream, model: Any) -> dict[str, Any]:
    scores = ClassScores()
    predicting = _by_row if hasattr(model, "learn") else _by_block
    for start, classes, shares, decided in predicting(stream, model):
        labels: list[Label] = [*stream.labels[start : start + len(shares)]]
        if start >= FIRST:
            scores.update(classes, labels, shares, decided)
    return dict(scores.metrics())


def _by_block(stream: ClassStream, model: ForestClassifier) -> Iterator[tuple[Any, ...]]:
    """Yield what a classifier of Sapwood predicts of each block: the same as one row at a time."""
    for start in range(0, len(stream.rows), BLOCK):
        rows = stream.rows[start : start + BLOCK]
        shares = model.predict_proba_learn_many(rows, stream.labels[start : start + BLOCK])
        yield start, list(model.classes), shares, model.decide(shares)


def _by_row(stream: ClassStream, model: ClassLearner) -> Iterator[tuple[Any, ...]]:
    for start, (x, y) in enumerate(zip(stream.rows, stream.labels, strict=True)):
        found = model.predict_proba(x)
        if found:
            shares = np.array([list(found.values())])
            yield start, list(found), shares, shares.argmax(axis=1)
        model.learn(x, y)


def read(path: Path = FILE) -> list[Record]:
    """Return the measurements of an earlier run.

    Parameters
    ----------
    path : Path
        What `run` wrote.
    """
    with path.open(newline="", encoding="utf-8") as file:
        kinds = (str, int, float, str, *(float,) * len(METRICS))
        return [
            Record(*(kind(row[n]) for n, kind in zip(Record._fields, kinds, strict=True)))
            for row in csv.DictReader(file)
        ]


def markdown(records: list[Record]) -> str:
    """Return the tables of the how-to page: means over streams, and balanced accuracy on each.

    Parameters
    ----------
    records : list of Record
        All measurements.
    """
    lines = ["| mean over the streams | accuracy | balanced accuracy | kappa | log-loss |"]
    lines.append("| --- | --: | --: | --: | --: |")
    for name in LEARNERS:
        own = [record for record in records if record.learner == name]
        means = [fmean(getattr(record, metric) for record in own) for metric in METRICS]
        lines.append(f"| {name} | {' | '.join(f'{mean:.3f}' for mean in means)} |")
    lines += [
        "",
        f"| balanced accuracy: stream (share of the rarest class) | {' | '.join(LEARNERS)} |",
    ]
    lines.append(f"| --- {'| --: ' * len(LEARNERS)}|")
    for stream in dict.fromkeys(record.stream for record in records):
        known = {record.learner: record for record in records if record.stream == stream}
        cells = [f"{known[name].balanced_accuracy:.3f}" for name in LEARNERS]
        rarest = next(iter(known.values())).rarest
        lines.append(f"| {stream} ({rarest:.1%}) | {' | '.join(cells)} |")
    return "\n".join(lines)
