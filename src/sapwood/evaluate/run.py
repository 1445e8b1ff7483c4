"""The frame of an evaluation: chunks of a stream, one step each, between which it can be saved."""

import time
from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from sapwood import validation
from sapwood.deprecation import deprecated
from sapwood.drift import DriftEvent
from sapwood.drift.log import ALARMS, DriftLog
from sapwood.evaluate.record import Recorders
from sapwood.evaluate.recorder import saved_place, saved_seconds
from sapwood.evaluate.rejections import RejectionLog
from sapwood.model import readable_part
from sapwood.streams.stream import (
    MOST_ROWS,
    BadRow,
    BadRowError,
    Chunk,
    Position,
    Stream,
    StreamError,
)

__all__ = [
    "SAMPLE",
    "OnBadRow",
    "Run",
    "Step",
    "calendar_columns",
    "position_of",
    "sample_arrays",
]

OnBadRow = Literal["error", "skip"]
REJECTED = "rejected by the model"
TARGETS, SAMPLE = "targets", "sample"


@dataclass(slots=True)
class Step:
    """What one chunk of the stream has led to.

    Parameters
    ----------
    done : int
        How much of the stream's size is behind.
    predicted : list of Predicted or PredictedRows
        Rows in order.
    bad : list of BadRow
        The rows that were rejected.
    drift_events : list of DriftEvent
        What a monitor has found to be changed.
    events : list of dict
        The events of the trees of a model, if it has any.
    """

    done: int
    predicted: list[Any] = field(default_factory=list)
    bad: list[BadRow] = field(default_factory=list)
    drift_events: list[DriftEvent] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)


class Run:
    """An evaluation in progress, chunk by chunk.

    - `stream`: the rows.
    - `target`: the name of what is predicted, for messages.
    - `on_bad_row`: whether a row that cannot be used stops the run.
    - `records`: what is recorded of each target.
    - `drift`: what watches the rows that are scored.

    - `waiting`: whether the run waits for rows: the only time at which an exception does no harm.
    - `before_wait`: called whenever that begins; it may raise.
    """

    counts: ClassVar[tuple[str, ...]]  # that are saved
    task: ClassVar[str | None] = None  # that a saved state names
    reports_trees: ClassVar[bool] = True  # whether steps have the events of trees
    model: Any
    rows_read: int

    def __init__(
        self,
        stream: Stream,
        target: Any,
        on_bad_row: OnBadRow,
        records: Sequence[Recorders],
        drift: DriftLog | None,
    ) -> None:
        self.stream, self.target, self.on_bad_row = stream, target, on_bad_row
        self.records, self.drift = list(records), drift
        self.position: Position | None = None
        self.rejections = RejectionLog()
        self.first_rejected: str | None = None
        self.seconds = 0.0
        for name in self.counts:
            setattr(self, name, 0)
        self.waiting = False
        self.before_wait: Callable[[], object] = bool
        self._inside_a_step = False
        self._resume()

    @abstractmethod
    def _take_rows(self, chunk: Chunk, stop: int, step: Step) -> None:
        """Predict and learn the first rows of a chunk."""

    @property
    @abstractmethod
    def _is_unlabelled(self) -> bool:
        """Whether rows were read, and none of them had a label."""

    @property
    def drift_events(self) -> list[DriftEvent]:
        """The drift alerts of the monitor so far."""
        return [] if self.drift is None else self.drift.drift_events

    def steps(self, most_rows: int = MOST_ROWS) -> Iterator[Step]:
        """Go on to the end of the stream; between any two steps the work can be saved."""
        self._check_between_steps()
        self._resume()
        chunks = self.stream.chunks(self.position, most_rows)
        while True:
            self.waiting = True
            self.before_wait()  # from here on, a request to stop interrupts the run
            chunk = next(chunks, None)
            self.waiting = False
            if chunk is None:
                return
            self._inside_a_step = True
            step = self._observed(partial(self._take, chunk))
            self._inside_a_step = False
            yield step
            self._resume()

    def learn_rest(self) -> Step:
        """Process the labels that are pending at the end of the stream, if they still arrive."""
        return Step(self.stream.size or 0)

    def _take(self, chunk: Chunk) -> Step:
        """Predict and learn the rows of a chunk, up to a bad one if that is to stop all."""
        step = Step(chunk.done)
        stops = chunk.bad and self.on_bad_row == "error"
        self._take_rows(chunk, chunk.bad[0].after if stops else len(chunk), step)
        for earlier, bad in enumerate(chunk.bad):
            self._reject(bad, self.rows_read + bad.after + earlier, step)
        # In the order of the stream, whatever its chunks are.
        step.bad.sort(key=lambda bad: (bad.after, bad.reason == REJECTED))
        self._note_rejected(step)
        self.rows_read += len(chunk) + len(chunk.bad)
        self.position = chunk.next
        return step

    def _resume(self) -> None:
        """Let the time count from now on."""
        self._resumed_at = time.perf_counter()

    def _observed(self, take: Callable[[], Step]) -> Step:
        """Return a step with the alerts and the events of the trees of the model meanwhile."""
        known = len(self.drift_events)
        with self._listening() as events:
            step = take()
        step.drift_events, step.events = self.drift_events[known:], events
        self.seconds += time.perf_counter() - self._resumed_at
        return step

    @contextmanager
    def _listening(self) -> Iterator[list[dict[str, Any]]]:
        """Give a list that gets the events of the trees of a model meanwhile, if it has any."""
        events: list[dict[str, Any]] = []
        part = readable_part(self.model) if self.reports_trees else None
        listen = getattr(part, "listen", None)
        stop = None if listen is None else listen(events.append)
        try:
            yield events
        finally:
            if stop is not None:
                stop()

    # -- rows that cannot be used -----------------------------------------------------------------

    def _row_of(self, chunk: Chunk, place: int) -> int:
        """Return how many rows of the stream are before a good one of a chunk."""
        return self.rows_read + place + bisect_right(chunk.bad, place, key=lambda bad: bad.after)

    def _rejected(self, source: str, number: int, error: Exception, after: int) -> BadRow:
        """Return the report of a row that the model has rejected."""
        unit = self.stream.unit
        return BadRow(source, unit, number, REJECTED, remedy=str(error), after=after)

    def _reject(self, bad: BadRow, row: int, step: Step) -> None:
        """Count a bad row, before which so many were read; or let it stop all."""
        if self.on_bad_row == "error":
            raise BadRowError(bad)
        self.rejections.add(bad.reason, row)
        step.bad.append(bad)

    def _note_rejected(self, step: Step) -> None:
        """Remember the first row that was rejected."""
        if self.first_rejected is None and step.bad:
            self.first_rejected = str(step.bad[0])

    @property
    def rows_rejected(self) -> int:
        """The number of rejected rows."""
        return self.rejections.count

    @property
    def first_refused(self) -> str | None:
        """Deprecated: use `first_rejected`."""
        deprecated("first_refused of a run", "first_rejected")
        return self.first_rejected

    @property
    def nothing_used(self) -> bool:
        """Whether rows were read, and each of them rejected."""
        return 0 < self.rows_read == self.rows_rejected

    def check_used(self) -> None:
        """Raise StreamError if no row was learned, as all were rejected or had no label.

        A score of nothing, or a model of nothing, would mislead.
        """
        if self.nothing_used:
            count = self.rows_rejected
            rows = f"all {count:,} rows were" if count > 1 else "its only row was"
            raise StreamError(
                f"{self.stream.name}: {rows} rejected, so nothing was learned; the first is "
                f"{self.first_rejected}"
            )
        if self._is_unlabelled:
            raise StreamError(
                f"{self.stream.name}: no row has a value of {validation.shown(self.target)}, so "
                "nothing was learned; to predict alone, use `sapwood predict`"
            )

    # -- saving and resuming ----------------------------------------------------------------------

    def to_state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return what `restore` needs, but for the model: a header for JSON, and arrays."""
        self._check_between_steps()
        own, arrays = self._pending_state()
        header: dict[str, Any] = {
            **({} if self.task is None else {"task": self.task}),
            "position": self.position,
            **{name: getattr(self, name) for name in self.counts},
            "seconds": self.seconds,
            "first_refused": self.first_rejected,
            "refusals": self.rejections.to_header(),
            **own,
        }
        if self.drift is not None:
            arrays |= self.drift.to_arrays()
        several = bool(self.stream.targets)
        header |= {TARGETS: []} if several else {}
        for place, record in enumerate(self.records):
            described, more = record.to_state()
            if several:
                header[TARGETS].append(described)
                arrays |= {f"{place}.{name}": array for name, array in more.items()}
            else:
                header, arrays = {**described, **header}, arrays | more
        return header, {**arrays, **sample_arrays(self.stream)}

    def restore(self, header: dict[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Resume from a state that `to_state` returned, with the model of that time.

        Raises
        ------
        KeyError, TypeError, ValueError
            If the state is not one that `to_state` returned; nothing is changed then.
        """
        if header.get("task") != self.task:
            raise ValueError("only one of the saved run and this one predicts classes")
        if (self.drift is None) != (ALARMS not in arrays):
            raise ValueError("only one of the saved run and this one had a monitor")
        made = {
            "records": self._restored_records(header, arrays),
            "drift": None if self.drift is None else self.drift.restored(arrays),
            "position": position_of(header["position"]),
            **{name: validation.whole(header[name], name, 0, 2**53) for name in self.counts},
            "seconds": saved_seconds(header["seconds"]),
            "first_rejected": saved_place(header.get("first_refused")),
            "rejections": RejectionLog.from_header(header["refusals"]),
        }
        made |= self._restored_pending(header, arrays)
        for name, value in made.items():
            setattr(self, name, value)
        self._inside_a_step = False

    def _restored_records(
        self, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
    ) -> list[Recorders]:
        several = bool(self.stream.targets)
        headers = header[TARGETS] if several else [header]
        if not isinstance(headers, list) or len(headers) != len(self.records):
            raise ValueError("it has another number of targets")
        records = []
        for place, (own, record) in enumerate(zip(headers, self.records, strict=True)):
            start = f"{place}." if several else ""
            named = {
                name.removeprefix(start): array
                for name, array in arrays.items()
                if name.startswith(start)
            }
            records.append(record.restored(own, named))
        return records

    @abstractmethod
    def _pending_state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the state of rows whose labels are pending: a part of the header, and arrays."""

    @abstractmethod
    def _restored_pending(
        self, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
    ) -> dict[str, Any]:
        """Return the attributes that `_pending_state` describes."""

    def _check_between_steps(self) -> None:
        if self._inside_a_step:
            raise RuntimeError(
                "the run was stopped inside of a step, whose rows the model would learn twice: go "
                "on from what was saved before it"
            )


def calendar_columns(stream: Stream) -> frozenset[str]:
    """Return the columns of times and their parts, which change with the calendar alone."""
    times = [note for note in stream.column_notes if note.kind == "time"]
    parts = {f"{note.name}.{part}" for note in times for part in note.parts}
    return frozenset({*(note.name for note in times), *parts})


def sample_arrays(stream: Stream) -> dict[str, NDArray[Any]]:
    """Return the first rows of a stream for a checkpoint, if it has to keep them."""
    if stream.sample is None:
        return {}
    return {SAMPLE: np.frombuffer(stream.sample, np.uint8)}


def position_of(saved: Any) -> Position | None:
    """Return a position that was saved, once it is known to be one."""
    if saved is None:
        return None
    if not isinstance(saved, dict) or any(type(place) is not int for place in saved.values()):
        raise TypeError(f"position = {validation.shown(saved)}: whole numbers by name are expected")
    return saved
