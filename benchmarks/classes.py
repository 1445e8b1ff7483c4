"""How well classifiers predict, compared with those of river and MOA, LightGBM, and baselines.

The same rows in the same order, at two timings: each label is there before the next row is
predicted, and all rows are scored; or 1,000 rows are predicted and then learned, and rows are scored
from the second 1,000 on. All learners have their defaults, ensembles have ten members. A learner
that has no prediction yet counts as one that gives all classes seen so far the same probability.
Microseconds are those of the processor to predict and learn a row; those of MOA's learners include
CapyMOA's bridge. `python -m benchmarks classes` writes the results and the page of them. What an
earlier run has measured of other libraries is kept, so that a run that was interrupted resumes;
delete the file of results to measure all of it again.
"""

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from time import process_time
from typing import Any, NamedTuple

import numpy as np

from benchmarks.class_peers import (
    AT_ONCE_ONLY,
    LONG_SEEDED,
    OURS,
    SEEDED,
    SHORT_ONLY,
    VFDT,
    ClassLearner,
    Shares,
    learners,
    seeded,
)
from benchmarks.class_streams import STREAMS, ClassStream, load
from benchmarks.tables import Answer, Table
from sapwood.evaluate.class_scores import ClassScores
from sapwood.evaluate.ranking import Ranking, rank

__all__ = ["FILE", "LONG_FILE", "PAGE", "run"]

FILE = Path(__file__).parents[1] / "docs" / "benchmarks" / "results" / "classes.csv"
LONG_FILE = FILE.with_name("classes_long.csv")
PAGE = FILE.parents[1] / "classes.md"

ROWS, LONG_ROWS, QUICK_ROWS, BLOCK = 3_000, 8_000, 1_200, 1_000
QUICK_STREAMS = ("sea, drift", "led")
AT_ONCE, BY_BLOCK = "at once", "by 1,000"
TIMINGS = (AT_ONCE, BY_BLOCK)
LONG_TIMINGS = (AT_ONCE,)


class Record(NamedTuple):
    """How well one learner did on one stream at one timing."""

    stream: str
    classes: int
    rows: int
    timing: str
    learner: str
    accuracy: float
    kappa: float
    log_loss: float
    microseconds: float

    @property
    def key(self) -> "Key":
        """What was measured."""
        return self.stream, self.timing, self.learner


Key = tuple[str, str, str]


def run(quick: bool = False) -> Answer:
    """Let every learner predict every stream at both timings.

    Parameters
    ----------
    quick : bool
        Use two streams and few rows, and write neither results nor page.
    """
    if quick:
        records = [each for s in _loaded(QUICK_STREAMS, QUICK_ROWS) for each in measured(s)]
        return Answer(tables(records), Table("classes", Record._fields, records))
    short = _round(_loaded(STREAMS, ROWS), FILE)
    PAGE.write_text(page(short, read(LONG_FILE)), encoding="utf-8")
    streams = [each for each in _loaded(STREAMS, LONG_ROWS) if len(each.rows) > ROWS]
    long = _round(streams, LONG_FILE, is_long=True)
    PAGE.write_text(page(short, long), encoding="utf-8")
    return Answer(tables(short) + tables(long), Table("classes", Record._fields, short))


def _loaded(names: Iterable[str], rows: int) -> list[ClassStream]:
    """Return the streams whose files are there."""
    return [stream for name in names if (stream := load(name, rows)) is not None]


def _round(streams: Sequence[ClassStream], file: Path, *, is_long: bool = False) -> list[Record]:
    """Measure what an earlier run has not, and write each measurement to a file at once."""
    kept = kept_of(read(file), streams)
    records: list[Record] = []
    for stream in streams:
        for record in measured(stream, kept, is_long=is_long):
            records.append(record)
            kept[record.key] = record
            Table("", Record._fields, list(kept.values())).write_csv(file)
    records += not_installed(kept, streams)
    Table("", Record._fields, records).write_csv(file)
    return records


def kept_of(earlier: Sequence[Record], streams: Sequence[ClassStream]) -> dict[Key, Record]:
    """Return what need not be measured again: other libraries on as many rows of a stream.

    Parameters
    ----------
    earlier : sequence of Record
        Of an earlier run.
    streams : sequence of ClassStream
        Those of this run.
    """
    rows = {stream.name: len(stream.rows) for stream in streams}
    return {
        record.key: record
        for record in earlier
        if record.learner not in (*OURS, VFDT) and rows.get(record.stream) == record.rows
    }


def not_installed(kept: Mapping[Key, Record], streams: Sequence[ClassStream]) -> list[Record]:
    """Return what an earlier run measured on all streams of learners that are not installed here.

    Parameters
    ----------
    kept : mapping
        What is measured already.
    streams : sequence of ClassStream
        Those of this run.
    """
    names = {key[2] for key in kept} - learners().keys()
    found = []
    for timing in TIMINGS:
        for name in sorted(names):
            own = [kept.get((stream.name, timing, name)) for stream in streams]
            known = [record for record in own if record is not None]
            found += known if len(known) == len(streams) else []
    return found


def measured(
    stream: ClassStream, kept: Mapping[Key, Record] | None = None, *, is_long: bool = False
) -> Iterator[Record]:
    """Yield the scores of all learners on a stream.

    Parameters
    ----------
    stream : ClassStream
        The rows.
    kept : mapping, optional
        What is measured already.
    is_long : bool
        Whether they are those of the longer streams, for which some learners are too slow.
    """
    for timing in LONG_TIMINGS if is_long else TIMINGS:
        for name, make in learners().items():
            if name in (SHORT_ONLY if is_long else AT_ONCE_ONLY if timing != AT_ONCE else ()):
                continue
            known = None if kept is None else kept.get((stream.name, timing, name))
            yield known or _mean(
                [
                    _measured(stream, timing, name, learner)
                    for learner in (make(stream), *seeded(name, stream, is_long=is_long))
                ]
            )


def _measured(stream: ClassStream, timing: str, name: str, learner: ClassLearner) -> Record:
    before = process_time()
    shares = list(_predicted(learner, stream, 1 if timing == AT_ONCE else BLOCK))
    taken = process_time() - before
    metrics = _scored(stream, shares, 0 if timing == AT_ONCE else BLOCK).metrics()
    return Record(
        stream.name,
        len(stream.classes),
        len(stream.rows),
        timing,
        name,
        round(metrics["accuracy"], 5),
        round(metrics["kappa"], 5),
        round(metrics["log_loss"], 5),
        round(1e6 * taken / len(stream.rows), 1),
    )


def _mean(records: Sequence[Record]) -> Record:
    """Return the means over the seeds of a learner."""
    names = ("accuracy", "kappa", "log_loss", "microseconds")
    means: dict[str, Any] = {
        name: round(fmean(getattr(each, name) for each in records), 5) for name in names
    }
    return records[0]._replace(**means)


def _predicted(learner: ClassLearner, stream: ClassStream, block: int) -> Iterable[Shares]:
    """Yield the probabilities of each row; a block is learned after all of it is predicted."""
    for start in range(0, len(stream.rows), block):
        rows = stream.rows[start : start + block]
        yield from [learner.predict_proba(x) for x in rows]
        for x, y in zip(rows, stream.labels[start : start + block], strict=True):
            learner.learn(x, y)


def _scored(stream: ClassStream, shares: Sequence[Shares], start: int) -> ClassScores:
    scores, seen = ClassScores(), dict.fromkeys(stream.labels[:start])
    for label, own in zip(stream.labels[start:], shares[start:], strict=True):
        known = own or dict.fromkeys(seen, 1 / max(1, len(seen)))
        if known:
            scores.update(list(known), [label], np.array([list(known.values())]))
        seen[label] = None
    return scores


# -- what is shown -------------------------------------------------------------------------------


def ranking(records: Sequence[Record], timing: str, measure: str) -> Ranking:
    """Return the average ranks of learners over streams.

    Parameters
    ----------
    records : sequence of Record
        All measurements.
    timing : str
        Of labels.
    measure : str
        "accuracy" or "log_loss".
    """
    own = [record for record in records if record.timing == timing]
    names = list(dict.fromkeys(record.learner for record in own))
    streams = list(dict.fromkeys(record.stream for record in own))
    values = {(record.stream, record.learner): getattr(record, measure) for record in own}
    table = np.array([[values[stream, name] for name in names] for stream in streams])
    return rank(table, names, larger_is_better=measure == "accuracy")


def tables(records: Sequence[Record]) -> list[Table]:
    """Return average ranks and means of each learner, a table for each timing.

    Parameters
    ----------
    records : sequence of Record
        All measurements.
    """
    return [_table_of(records, timing) for timing in dict.fromkeys(r.timing for r in records)]


def _table_of(records: Sequence[Record], timing: str) -> Table:
    by_accuracy, by_loss = (ranking(records, timing, m) for m in ("accuracy", "log_loss"))
    loss_rank = dict(zip(by_loss.models, by_loss.ranks, strict=True))
    rows = []
    for name, average in zip(by_accuracy.models, by_accuracy.ranks, strict=True):
        own = [r for r in records if r.timing == timing and r.learner == name]
        means = [
            f"{np.mean([getattr(r, m) for r in own]):.3f}"
            for m in ("accuracy", "kappa", "log_loss")
        ]
        median = f"{np.median([r.microseconds for r in own]):,.0f}"
        rows.append((name, f"{average:.2f}", f"{loss_rank[name]:.2f}", *means, median))
    columns = (
        *("learner", "rank by accuracy", "rank by log-loss"),
        *("accuracy", "kappa", "log-loss", "µs per row (median)"),
    )
    return Table(f"Labels {timing}", columns, rows)


def page(short: Sequence[Record], long: Sequence[Record]) -> str:
    """Return the page of the results in Markdown.

    Parameters
    ----------
    short, long : sequence of Record
        All measurements.
    """
    streams = _streams_of(short)
    parts = [
        "# Classifiers",
        f"Written by `python -m benchmarks classes`. {len(streams)} streams, the first {ROWS:,} rows "
        "of each: generators of river, data bundled with river and scikit-learn, and public CSV "
        "files. Ensembles have ten members; all other settings are defaults. MOA runs through "
        "CapyMOA, and its times include that bridge. The times of Sapwood and SGBT were measured "
        "while other programs used all cores, which makes them longer; those of the others were not. "
        "SGBT has ten iterations. "
        "MOA's learners know all classes and categories before the first row. A learner without a "
        "prediction counts as one that gives all classes seen so far the same probability; no "
        "probability is below 10⁻⁶ in the log-loss.",
        "Streams this short measure how fast learners learn. Results on long streams may differ. Where "
        "a stream drifts abruptly, it does so after half of its rows, so that with labels by 1,000 "
        "half of a block was predicted by a model of the concept before. Results of the Sapwood "
        "forest are means over three seeds; all others are of one. Sapwood VFDT is "
        "`HoeffdingTreeClassifier(leaf='naive_bayes_adaptive', merit='information_gain', "
        "delta=1e-7, min_share=0.01)`.",
    ]
    absent = [name for name in STREAMS if name not in streams]
    if absent:
        parts.append(f"Not measured: {'; '.join(absent)}.")
    for timing in TIMINGS:
        scored = "all rows" if timing == AT_ONCE else "rows from the second 1,000 on"
        parts += _section(f"Labels {timing}", f"Means over {scored}.", short, timing)
    parts += _long_section(_complete(long))
    files = " ".join(
        f"{{download}}`{file.name} <results/{file.name}>`"
        for file, records in ((FILE, short), (LONG_FILE, long))
        if records
    )
    parts.append(f"All measurements: {files}.")
    return "\n\n".join(parts) + "\n"


def _long_section(records: Sequence[Record]) -> list[str]:
    """Return what was found on the longer streams, if any was measured completely."""
    if not records:
        return []
    streams = _streams_of(records)
    seeded = [name for name in LONG_SEEDED if name not in SEEDED]
    text = (
        f"Means over all rows of {len(streams)} streams with more than {ROWS:,} rows: "
        f"{'; '.join(streams)}. Results of {', '.join(seeded)} are means over three seeds too. The "
        "times of all learners were measured while other programs used all cores. Not measured, as "
        f"they take a millisecond or more for a row: {', '.join(SHORT_ONLY)}."
    )
    return _section(f"{LONG_ROWS:,} rows, labels at once", text, records, AT_ONCE)


def _complete(records: Sequence[Record]) -> list[Record]:
    """Return the measurements of the streams on which all learners were measured."""
    learners_of: dict[str, set[str]] = {}
    for record in records:
        learners_of.setdefault(record.stream, set()).add(record.learner)
    most = max(map(len, learners_of.values()), default=0)
    return [record for record in records if len(learners_of[record.stream]) == most]


def _streams_of(records: Sequence[Record]) -> list[str]:
    return list(dict.fromkeys(record.stream for record in records))


def _section(title: str, text: str, records: Sequence[Record], timing: str) -> list[str]:
    """Return what was found at one timing: average ranks, and accuracy on each stream."""
    streams = _streams_of(records)
    by_accuracy = ranking(records, timing, "accuracy")
    if by_accuracy.tests is not None:
        difference = by_accuracy.tests.critical_difference
        text += f" Critical difference of average ranks: {difference:.2f} (Nemenyi, alpha = 0.05). "
        text += _alike(by_accuracy)
    return [
        f"## {title}",
        text,
        _markdown(_table_of(records, timing)),
        "Accuracy on each stream:",
        _markdown(_by_stream(records, timing, streams)),
        _behind(records, timing, streams),
    ]


def _alike(found: Ranking) -> str:
    """Return which learners do not differ significantly from the first by accuracy."""
    assert found.tests is not None
    most = found.ranks[0] + found.tests.critical_difference
    near = [m for m, r in zip(found.models, found.ranks, strict=True) if r < most][1:]
    if not near:
        return f"By accuracy, {found.models[0]} differs significantly from all others."
    return f"By accuracy, not significantly different from {found.models[0]}: {', '.join(near)}."


def _behind(records: Sequence[Record], timing: str, streams: Sequence[str]) -> str:
    """Return on which streams the forest is not the most accurate, and who is."""
    found = []
    for stream in streams:
        own = {r.learner: r for r in records if r.stream == stream and r.timing == timing}
        best = max(own.values(), key=lambda r: r.accuracy)
        forest = own[OURS[-1]].accuracy
        if best.accuracy > forest:
            found.append(f"{stream} ({best.learner} by {best.accuracy - forest:.3f})")
    if not found:
        return "The forest is the most accurate on all streams."
    return f"The forest is not the most accurate on {len(found)} streams: {'; '.join(found)}."


def _by_stream(records: Sequence[Record], timing: str, streams: Sequence[str]) -> Table:
    """Return the accuracy of our learners and of the best of all others on each stream."""
    rows = []
    for stream in streams:
        own = {r.learner: r for r in records if r.stream == stream and r.timing == timing}
        others = [r for r in own.values() if r.learner not in (*OURS, VFDT)]
        best = max(others, key=lambda r: r.accuracy)
        first = next(iter(own.values()))
        rows.append(
            (
                f"{stream} ({first.classes})",
                *(f"{own[name].accuracy:.3f}" for name in OURS),
                f"{best.accuracy:.3f} {best.learner}",
                f"{own[OURS[-1]].log_loss:.3f} / {min(r.log_loss for r in others):.3f}",
            )
        )
    columns = (
        *("stream (classes)", "tree", "adaptive tree", "forest", "best other"),
        "log-loss: forest / best other",
    )
    return Table("", columns, rows)


def _markdown(table: Table) -> str:
    rule = ["---", *("--:" for _ in table.columns[1:])]
    lines = [table.columns, rule, *([str(cell) for cell in row] for row in table.rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def read(path: Path = FILE) -> list[Record]:
    """Return the measurements of an earlier run; none if there was none.

    Parameters
    ----------
    path : Path
        What `run` wrote.
    """
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return [
            Record(
                *(
                    kind(row[name])
                    for name, kind in zip(
                        Record._fields, (str, int, int, str, str, *(float,) * 4), strict=True
                    )
                )
            )
            for row in csv.DictReader(file)
        ]
