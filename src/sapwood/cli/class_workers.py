"""`sapwood train --workers` for classes: workers learn blocks of rows, and all become one forest."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any

from sapwood import model as models
from sapwood.classify.labels import class_label
from sapwood.classify.merging import check_mergeable, merged, start_with
from sapwood.cli.classes import ClassJob
from sapwood.cli.failure import Terminal, UsageError
from sapwood.cli.follow import check_rows_read
from sapwood.cli.models import saved_model
from sapwood.cli.workers import WorkersJob
from sapwood.merge import MergeError
from sapwood.streams.stream import MOST_ROWS, Chunk, DerivedStream, Position, Stream, StreamError
from sapwood.validation import Label

__all__ = ["ClassWorkersJob"]

BLOCK = 1000  # rows that a worker learns before the next worker's
FEWEST = 2  # members of a forest in a worker


@dataclass
class ShareLearned:
    """What a worker sends back.

    - `model`: the classifier; nothing if a row has stopped the work, or if there was no row.
    - `counts`: rows that were read, rejected, without a label, scored, and right.
    - `reasons`, `first`: how many rows were rejected for which reason, and the first of them.
    """

    model: bytes = b""
    counts: tuple[int, ...] = (0,) * 5
    log_loss: float = 0.0
    error: str = ""
    reasons: dict[str, int] = field(default_factory=dict)
    first: str | None = None


@dataclass
class TrainedClasses:
    """A forest that workers have learned, and how it went."""

    model: Any
    counts: tuple[int, ...]
    log_loss: float
    seconds: float


class _Share(DerivedStream):
    """Every so-many-th block of a stream.

    - `number`, `count`: which of how many shares.
    """

    def __init__(self, stream: Stream, number: int, count: int) -> None:
        super().__init__(stream)
        self._number, self._count = number, count

    def chunks(
        self, position: Position | None = None, most_rows: int = MOST_ROWS
    ) -> Iterator[Chunk]:
        """Yield the blocks of the share."""
        for place, chunk in enumerate(self._stream.chunks(position, most_rows)):
            if place % self._count == self._number:
                yield chunk


@dataclass(frozen=True)
class ClassWorkersJob(WorkersJob):
    """What workers are to learn of classes, as it was typed.

    Worker i of n learns each n-th block of 1,000 rows from the i-th on. The members of a forest are
    shared among them. Their classifiers become one forest.
    """

    def run(
        self, terminal: Terminal, bad_rows: Path | None, checkpoint: Path | None, every: str
    ) -> TrainedClasses:
        """Learn all files."""
        from sapwood.scale.engines import engine

        self._check(bad_rows, checkpoint)
        for option, given in (("--bad-rows", bad_rows), ("--checkpoint", checkpoint)):
            if given is not None:
                raise UsageError(
                    f"{option} is not for --workers with classes: leave one of them out"
                )
        if saved_model(self.learning.model) is not None:
            raise UsageError(
                f"{self.learning.model} is a saved model: workers with classes begin new ones"
            )
        job, begun = self.job(), time.perf_counter()
        try:
            check_mergeable(job.model)
            first = _first_label(job)
            with engine(self.engine, self.workers) as opened:
                calls = [
                    opened.submit(learn_share, self, number, first)
                    for number in range(self.workers)
                ]
                found = [call.result() for call in calls]
            stopped = [share.error for share in found if share.error]
            if stopped:
                raise StreamError(stopped[0])
            whole = _merged(found)
        except MergeError as error:
            raise UsageError(f"--workers: {error}") from None
        counts = tuple(map(sum, zip(*(share.counts for share in found), strict=True)))
        check_rows_read(counts[0], job.stream.name)
        if whole is None:
            job.run.rows_read, _, job.run.rows_unlabelled = counts[:3]
            for share in found:
                job.run.rejections.reasons.update(share.reasons)
            job.run.first_rejected = next((each.first for each in found if each.first), None)
            job.run.check_used()
            return TrainedClasses(job.model, counts, 0.0, time.perf_counter() - begun)
        whole.schema = job.model.schema
        loss = sum(share.log_loss for share in found)
        return TrainedClasses(whole, counts, loss, time.perf_counter() - begun)

    def show(self, found: TrainedClasses, terminal: Terminal) -> None:
        """Print the scores on the way, and what became of all rows."""
        read, rejected, unlabelled, scored, right = found.counts
        terminal.say(
            f"accuracy {right / max(scored, 1):.4f}, log-loss {found.log_loss / max(scored, 1):.4f}: "
            "each row predicted before its worker learned it"
        )
        terminal.say(
            f"rows: {read:,} read, {scored:,} learned, {rejected:,} rejected, {unlabelled:,} without a "
            "label"
        )
        terminal.say(
            f"time: {found.seconds:.2f} s, {read / max(found.seconds, 1e-9):,.0f} rows/s; "
            f"{found.model.n_leaves:,} leaves, {found.model.nbytes / 1e6:.2f} MB"
        )

    def job(self) -> ClassJob:
        """Return the run of one process."""
        return ClassJob(self.stream, self.reading, self.learning, self.targets)


def _merged(found: list[ShareLearned]) -> Any:
    """Return the forest of what workers have learned, None if none has learned a row."""
    parts = [models.from_bytes(each.model, "the model of a worker") for each in found if each.model]
    return reduce(merged, parts) if parts else None


def _first_label(job: ClassJob) -> Label | None:
    """Return the label of the first row that has one: the first class of all workers."""
    for chunk in job.stream.chunks(None, BLOCK):
        for label in chunk.columns[job.target]:
            if label is not None:
                return class_label(label)
    return None


def learn_share(job: ClassWorkersJob, number: int, first: Label | None) -> ShareLearned:
    """Learn a share of the rows.

    - `first`: the first class of all workers; None if no row has a label.
    """
    own = job.job()
    run = own.run
    run.model = _part_of(run.model, job.workers, number)
    if first is not None:
        start_with(run.model, first)
    run.stream = _Share(own.stream, number, job.workers)
    try:
        for _ in run.steps(BLOCK):
            pass
    except StreamError as error:
        return ShareLearned(error=str(error))
    scores = run.scores
    right = int(scores.confusion.trace())
    counts = (run.rows_read, run.rows_rejected, run.rows_unlabelled, scores.rows, right)
    data = run.model.to_bytes() if run.model.rows_learned else b""
    return ShareLearned(
        data,
        counts,
        scores.total_log_loss,
        reasons=dict(run.rejections.reasons),
        first=run.first_rejected,
    )


def _part_of(model: Any, workers: int, number: int) -> Any:
    """Return an empty classifier for a worker: that of a forest has its share of the members."""
    given = model.parameters
    if "members" not in given:
        return model
    given["members"] = max(FEWEST, given["members"] // workers)
    given["seed"] += number
    if given["max_bytes"] is not None:
        given["max_bytes"] = given["max_bytes"] // workers
    made = type(model)(**given)
    made.schema = model.schema
    return made
