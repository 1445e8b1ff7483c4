"""The frame of an evaluation: chunks of a stream, one step each, between which it can be saved."""

import math
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

from sapwood import validation
from sapwood.drift import DriftEvent
from sapwood.drift.log import DriftLog
from sapwood.model import readable_part
from sapwood.streams.stream import MOST_ROWS, Chunk, Position, Stream, StreamError

__all__ = ["Run", "position_of", "saved_place", "saved_seconds"]


class Run:
    """An evaluation in progress, chunk by chunk.

    Parameters
    ----------
    stream : Stream
        The rows.
    target : str
        The name of what is predicted, for messages.
    on_bad_row : {"error", "skip"}
        Whether a row that cannot be used stops the run.

    Attributes
    ----------
    waiting : bool
        Whether the run waits for rows: the only time at which an exception does no harm.
    before_wait : callable
        Called whenever that begins; it may raise.
    """

    counts: ClassVar[tuple[str, ...]]  # that are saved
    hears_trees: ClassVar[bool] = True  # whether steps have the events of trees
    model: Any
    rows_read: int

    def __init__(self, stream: Stream, target: Any, on_bad_row: Any) -> None:
        self.stream, self.target, self.on_bad_row = stream, target, on_bad_row
        self.drift: Any = None
        self.position: Position | None = None
        self.first_refused: str | None = None
        self.seconds = 0.0
        for name in self.counts:
            setattr(self, name, 0)
        self.waiting = False
        self.before_wait: Callable[[], object] = bool
        self._inside_a_step = False
        self._resume()

    @abstractmethod
    def _take(self, chunk: Chunk) -> Any:
        """Predict and learn the rows of a chunk, up to a bad one if that is to stop all."""

    @property
    @abstractmethod
    def _rows_rejected(self) -> int:
        """The number of rejected rows."""

    @property
    @abstractmethod
    def _is_unlabelled(self) -> bool:
        """Whether rows were read, and none of them had a label."""

    @property
    def drift_events(self) -> list[DriftEvent]:
        """The drift alerts of the monitor so far."""
        drift: DriftLog | None = self.drift
        return [] if drift is None else drift.drift_events

    def steps(self, most_rows: int = MOST_ROWS) -> Iterator[Any]:
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
            step = self._observed(lambda chunk=chunk: self._take(chunk))
            self._inside_a_step = False
            yield step
            self._resume()

    def _resume(self) -> None:
        """Let the time count from now on."""
        self._resumed_at = time.perf_counter()

    def _observed(self, take: Callable[[], Any]) -> Any:
        """Return a step with the alerts and the events of the trees of the model meanwhile."""
        known = len(self.drift_events)
        with self._hearing() as events:
            step = take()
        step.drift_events, step.events = self.drift_events[known:], events
        self.seconds += time.perf_counter() - self._resumed_at
        return step

    @contextmanager
    def _hearing(self) -> Iterator[list[dict[str, Any]]]:
        """Give a list that gets the events of the trees of a model meanwhile, if it has any."""
        events: list[dict[str, Any]] = []
        part = readable_part(self.model) if self.hears_trees else None
        listen = getattr(part, "listen", None)
        stop = None if listen is None else listen(events.append)
        try:
            yield events
        finally:
            if stop is not None:
                stop()

    @property
    def nothing_used(self) -> bool:
        """Whether rows were read, and each of them rejected."""
        return 0 < self.rows_read == self._rows_rejected

    def check_used(self) -> None:
        """Raise StreamError if no row was learned, as all were rejected or had no label.

        A score of nothing, or a model of nothing, would mislead.
        """
        if self.nothing_used:
            count = self._rows_rejected
            rows = f"all {count:,} rows were" if count > 1 else "its only row was"
            raise StreamError(
                f"{self.stream.name}: {rows} rejected, so nothing was learned; the first is "
                f"{self.first_refused}"
            )
        if self._is_unlabelled:
            raise StreamError(
                f"{self.stream.name}: no row has a value of {validation.shown(self.target)}, so "
                "nothing was learned; to predict alone, use `sapwood predict`"
            )

    # -- saving and resuming ----------------------------------------------------------------------

    def _header(self) -> dict[str, Any]:
        """Return where the run is, for `_resumed`."""
        self._check_between_steps()
        return {
            "position": self.position,
            **{name: getattr(self, name) for name in self.counts},
            "seconds": self.seconds,
            "first_refused": self.first_refused,
        }

    def _resumed(self, header: Mapping[str, Any]) -> dict[str, Any]:
        """Return the attributes that `_header` describes.

        Raises
        ------
        KeyError, TypeError, ValueError
            If there is anything wrong with them.
        """
        return {
            "position": position_of(header["position"]),
            **{name: validation.whole(header[name], name, 0, 2**53) for name in self.counts},
            "seconds": saved_seconds(header["seconds"]),
            "first_refused": saved_place(header.get("first_refused")),
        }

    def _check_between_steps(self) -> None:
        if self._inside_a_step:
            raise RuntimeError(
                "the run was stopped inside of a step, whose rows the model would learn twice: go "
                "on from what was saved before it"
            )


def position_of(saved: Any) -> Position | None:
    """Return a position that was saved, once it is known to be one."""
    if saved is None:
        return None
    if not isinstance(saved, dict) or any(type(place) is not int for place in saved.values()):
        raise TypeError(f"position = {validation.shown(saved)}: whole numbers by name are expected")
    return saved


def saved_place(saved: Any) -> str | None:
    """Return the place of a first row that was saved, None if there was no such row."""
    if not isinstance(saved, str | None):
        raise TypeError(f"the first row not scored or rejected is {validation.shown(saved)}")
    return saved


def saved_seconds(saved: Any) -> float:
    """Return a time that was saved, once it is known to be one."""
    if type(saved) not in (int, float) or not 0 <= saved < math.inf:
        raise ValueError(f"{validation.shown(saved)} seconds are saved")
    return float(saved)
