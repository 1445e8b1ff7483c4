"""Accuracy and costs of Sapwood's models compared with widely used ensembles.

All learners have their defaults and get the same rows and labels: each label before the next row is
predicted, or all of a batch of 1,000 after the last of it is. Boosters, which learn batches only,
take part in the second. R² is that of all rows but the first 1,000. A learner stops when it has used
its CPU time for a stream: tables compare over the rows that all reached, and each other learner
with the forest over the rows that it reached itself.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.ensembles.measuring import COST_STREAM, Effort, measure
from benchmarks.ensembles.roster import AT_ONCE, CONTENDERS, FOREST, LATE, OF_TEN, OURS
from benchmarks.peers import sets
from benchmarks.peers.records import FAILURE, Record
from benchmarks.tables import Answer, Bound, Cell, Table
from sapwood.evaluate.ranking import rank

__all__ = ["Findings", "run"]

RESULTS = Path(__file__).parents[1] / "results" / "ensembles"
FULL = Effort((*sets.REAL, *sets.GENERATED), rows=50_000, budget=4.0)
QUICK = Effort(("storms", "fair", "friedman"), rows=3_000, budget=1.0)
LEAST_TIMES_RIVER, LEAST_TIMES_MOA = 100.0, 5.0


class Findings:
    """The measurements, by the keys of tables.

    Parameters
    ----------
    records : sequence of Record
        What `measure` returned.
    """

    def __init__(self, records: Sequence[Record]) -> None:
        self.values = {(r.stage, r.stream, r.learner, r.measure, r.rows): r.value for r in records}
        self.failures = [record for record in records if record.measure == FAILURE]
        self.streams = list(dict.fromkeys(r.stream for r in records if r.learner == FOREST))
        self.real = [stream for stream in self.streams if stream in sets.REAL]

    def value(self, labels: str, stream: str, learner: str, measure: str, rows: int) -> float:
        """Return what was measured up to a place; NaN if there is nothing."""
        return self.values.get((labels, stream, learner, measure, rows), np.nan)

    def rows(self, labels: str, stream: str, learner: str) -> int:
        """Return how many rows a learner has processed; 0 if it was not there."""
        return max(
            (key[4] for key in self.values if key[:4] == (labels, stream, learner, "r2")),
            default=0,
        )

    def learners(self, labels: str) -> list[str]:
        """Return who took part, on whichever stream."""
        return [
            name
            for name in CONTENDERS
            if any(self.rows(labels, stream, name) for stream in self.streams)
        ]

    def done(self, labels: str) -> list[str]:
        """Return the streams that all have followed, or have failed on."""
        failed = {(record.stream, record.learner) for record in self.failures}
        return [
            stream
            for stream in self.streams
            if all(
                self.rows(labels, stream, name) or (stream, name) in failed
                for name in self.learners(labels)
            )
        ]

    def ranked(self, labels: str) -> list[str]:
        """Return who has followed all real streams, or has failed on them."""
        failed = {(record.stream, record.learner) for record in self.failures}
        return [
            name
            for name in self.learners(labels)
            if all(self.rows(labels, s, name) or (s, name) in failed for s in self.real)
        ]

    def common_rows(self, labels: str, stream: str) -> int:
        """Return the rows that all learners with any results have processed."""
        found = [self.rows(labels, stream, name) for name in self.learners(labels)]
        return min(rows for rows in found if rows)

    def losses(self, labels: str, learner: str) -> list[tuple[str, int, float, float]]:
        """Return where a learner is ahead of the forest: stream, rows, its R² and the forest's."""
        found = []
        for stream in self.streams:
            rows = self.rows(labels, stream, learner)
            theirs = self.value(labels, stream, learner, "r2", rows)
            ours = self.value(labels, stream, FOREST, "r2", rows)
            if theirs > ours:
                found.append((stream, rows, theirs, ours))
        return found


def run(quick: bool = False) -> Answer:
    """Let all follow all streams, as far as that is not done yet.

    Parameters
    ----------
    quick : bool
        Take three streams and a second for each learner, and promise nothing.
    """
    effort = QUICK if quick else FULL
    kept = RESULTS / f"others-{effort.rows}-{effort.budget:g}.csv"
    records = measure(effort, kept, partial(print, flush=True))
    found = Findings(records)
    tables = [table for labels in (AT_ONCE, LATE) for table in _tables(found, labels)]
    bounds = [] if quick else list(_bounds(found))
    return Answer([*tables, _costs(found)], Table("ensembles", Record._fields, records), bounds)


def _tables(found: Findings, labels: str) -> Iterator[Table]:
    names, streams = found.learners(labels), found.done(labels)
    rows = {stream: found.common_rows(labels, stream) for stream in streams}
    scores = np.array(
        [[found.value(labels, s, name, "r2", rows[s]) for name in names] for s in streams]
    ).reshape(len(streams), len(names))
    cells: list[Sequence[Cell]] = [
        (stream, rows[stream], *(_r2_text(value) for value in own))
        for stream, own in zip(streams, scores, strict=True)
    ]
    yield Table(f"R², labels {labels}, over the rows that all reached", ("", "rows", *names), cells)
    yield from _rankings(found, labels)
    yield Table(
        f"Where another learner is ahead of the forest, labels {labels}, over its own rows",
        ("learner", "streams", "ahead on", "stream", "rows", "its R²", "the forest's"),
        [line for name in names if name not in OURS for line in _loss_lines(found, labels, name)],
    )


def _rankings(found: Findings, labels: str) -> Iterator[Table]:
    """Yield average ranks over the real streams: of all, and of those that processed all rows."""
    names = found.ranked(labels)
    common = {
        stream: min(rows for rows in (found.rows(labels, stream, name) for name in names) if rows)
        for stream in found.real
    }
    whole = {stream: found.rows(labels, stream, FOREST) for stream in found.real}
    to_the_end = [
        name
        for name in names
        if all(found.rows(labels, stream, name) == rows for stream, rows in whole.items())
    ]
    for which, rows, learners in (
        ("the rows that all reached", common, names),
        ("all rows", whole, to_the_end),
    ):
        if found.real and len(learners) > 1:
            yield _ranking(found, labels, which, rows, learners)


def _ranking(
    found: Findings, labels: str, which: str, rows: dict[str, int], names: Sequence[str]
) -> Table:
    scores = [
        [found.value(labels, stream, name, "r2", count) for name in names]
        for stream, count in rows.items()
    ]
    ranking = rank(np.array(scores), names, larger_is_better=True)
    tests = ranking.tests
    note = "too few to test"
    if tests is not None:
        note = (
            f"Friedman's p {tests.friedman_p:.2g}, Nemenyi's critical difference "
            f"{tests.critical_difference:.2f}"
        )
    place = ranking.models.index(FOREST)
    lines = [
        (name, f"{average:.2f}", "" if tests is None else f"{tests.pair_p[place, other]:.2g}")
        for other, (name, average) in enumerate(zip(ranking.models, ranking.ranks, strict=True))
    ]
    title = f"Average ranks, labels {labels}, {which} of {len(rows)} real streams: {note}"
    return Table(title, ("learner", "average rank", "p of differing from the forest"), lines)


def _loss_lines(found: Findings, labels: str, name: str) -> Iterator[Sequence[Cell]]:
    followed = sum(bool(found.rows(labels, stream, name)) for stream in found.streams)
    losses = found.losses(labels, name)
    if not losses:
        yield name, followed, 0, "", "", "", ""
    for stream, rows, theirs, ours in losses:
        yield name, followed, len(losses), stream, f"{rows:,}", _r2_text(theirs), _r2_text(ours)


def _r2_text(value: float) -> str:
    if np.isnan(value):
        return "failed"
    return f"{value:.4f}" if value > -10 else f"{value:.1e}"


def _costs(found: Findings) -> Table:
    lines: list[Sequence[Cell]] = []
    for name in (*CONTENDERS, *(name for name in OF_TEN if name not in CONTENDERS)):
        for labels in (AT_ONCE, LATE):
            rows = found.rows(labels, COST_STREAM, name)
            if rows:
                theirs, ours = (
                    found.value(labels, COST_STREAM, each, "microseconds", rows)
                    for each in (name, FOREST)
                )
                lines.append((name, labels, rows, theirs, theirs / ours))
    columns = ("learner", "labels", "rows", "µs a row", "times the forest over as many rows")
    return Table(f"CPU time of one thread on {COST_STREAM}", columns, lines)


def _bounds(found: Findings) -> Iterator[Bound]:
    for labels in (AT_ONCE, LATE):
        for name in found.learners(labels):
            if name not in OURS:
                losses = len(found.losses(labels, name))
                yield Bound(f"streams on which {name} is ahead, labels {labels}", losses, 0)
    times = {}
    for name in OF_TEN:
        rows = found.rows(AT_ONCE, COST_STREAM, name)
        theirs, ours = (
            found.value(AT_ONCE, COST_STREAM, each, "microseconds", rows) for each in (name, FOREST)
        )
        times[name] = theirs / ours
    river = times.pop("river ARF")
    yield Bound("river's ARF of ten, times the forest", river, LEAST_TIMES_RIVER, at_least=True)
    moa = min(times.values())
    yield Bound("MOA's fastest of ten, times the forest", moa, LEAST_TIMES_MOA, at_least=True)
