"""Labels that come late, after a delay or in a row of the same id: rows that are pending."""

import math
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from sapwood import validation
from sapwood.durations import in_words
from sapwood.evaluate._baselines import FORECASTS
from sapwood.lags.lags import Ticket
from sapwood.streams.labelled import Key

__all__ = ["Delay", "Label", "Late", "LateEvents", "Unlabelled", "Waiting", "is_missing"]

Label = float | list[float]
"""The label of a row; of several targets, that of each, NaN where it is missing."""

MOST_WAITING = 100_000
"""Rows without labels that are remembered: for a new one, the oldest is forgotten."""

SAVED_TYPES = {
    "x": dict,
    "y": (float, list),
    "prediction": (float, list),
    "source": str,
    "number": int,
    "row": int,
    "time": float,
    "forecasts": list,
    "bounds": list,
}


def is_missing(y: Label) -> bool:
    """Whether a label is missing; of several targets, whether all are.

    Examples
    --------
    >>> is_missing(math.nan), is_missing([math.nan, 2.0])
    (True, False)
    """
    return math.isnan(y) if isinstance(y, float) else all(map(math.isnan, y))


@dataclass(slots=True)
class Waiting:
    """A row whose label is still to come.

    - `x`, `y`, `prediction`: its features, its label, and what was predicted; the last two of each
      target, if there are several.
    - `source`, `number`: the file, and the line or row there.
    - `row`: how many rows of the stream were read before it.
    - `time`: its time in seconds since 1970, NaN if that is not known.
    - `forecasts`: what baselines forecast for it, as `BaselineScores.forecast` returned it; of several
      targets, of one after the other.
    - `ticket`: by which lags know the row.
    - `due`: when its label arrives; minus infinity as long as no row had a time.
    - `bounds`: the lower and the upper bound of each level of the prediction intervals, if the
      model has some. Of several targets, those of one after the other.
    """

    x: dict[str, Any]
    y: Label
    prediction: Label
    source: str
    number: int
    row: int
    time: float
    forecasts: list[float]
    ticket: Ticket | None = None
    due: float = -math.inf
    bounds: list[float] = field(default_factory=list)

    def to_header(self) -> dict[str, Any]:
        """Return all that is known in terms of JSON, None for minus infinity."""
        ticket = None if self.ticket is None else [list(self.ticket.key), self.ticket.number]
        own = {name: getattr(self, name) for name in SAVED_TYPES}
        # Names may be numbers, which those of an object in JSON are not.
        x = [[name, value] for name, value in self.x.items()]
        return {**own, "x": x, "ticket": ticket, "due": _or_none(self.due)}

    @classmethod
    def from_header(cls, header: dict[str, Any]) -> Self:
        """Restore what `to_header` returned, or raise KeyError, TypeError or ValueError."""
        # Earlier formats have no bounds, and call forecasts by another name.
        known = {"bounds": [], **header}
        known = {"forecasts": known.get("told"), **known}
        values = {name: known[name] for name in SAVED_TYPES}
        if isinstance(values["x"], list):  # an object, with names that are text, in earlier formats
            values["x"] = dict(values["x"])
        for name, kinds in SAVED_TYPES.items():
            if type(values[name]) not in (kinds if isinstance(kinds, tuple) else (kinds,)):
                raise TypeError(f"{name} of a pending row is {validation.shown(values[name])}")
        y, prediction = values["y"], values["prediction"]
        targets = len(y) if isinstance(y, list) else 1
        if type(prediction) is not type(y) or (type(y) is list and len(prediction) != targets):
            raise TypeError(
                f"{validation.shown(prediction)} is no prediction of {validation.shown(y)}"
            )
        for own in (y, prediction):
            if isinstance(own, list) and {*map(type, own)} != {float}:
                raise TypeError(f"{validation.shown(own)} are no labels")
        if len(values["forecasts"]) != targets * FORECASTS or {*map(type, values["forecasts"])} != {
            float
        }:
            raise TypeError(
                f"{validation.shown(values['forecasts'])} are no forecasts of baselines"
            )
        if not all(type(bound) is float for bound in values["bounds"]):
            raise TypeError(f"{validation.shown(values['bounds'])} are no bounds")
        ticket = header["ticket"]
        if ticket is not None:
            key, number = ticket
            ticket = Ticket(tuple(key), validation.whole(number, "the number of a row", 0, 2**53))
        return cls(**values, ticket=ticket, due=_or_minus_infinity(header["due"]))


class Late(NamedTuple):
    """Rows of one target whose labels are delayed, and what happened to them, in order.

    - `rows`: the rows.
    - `events`: row i was predicted at i; its label arrived at -1 - i.
    - `y`, `predictions`, `times`: their labels, what was predicted, and their times as
      `Waiting.time`.
    - `forecasts`: what baselines forecast for them; filled in for rows that were predicted.
    - `bounds`: the prediction intervals, if the model has some.
    """

    rows: list[Waiting]
    events: NDArray[np.int64]
    y: NDArray[np.float64]
    predictions: NDArray[np.float64]
    times: NDArray[np.float64]
    forecasts: NDArray[np.float64]
    bounds: NDArray[np.float64]


class LateEvents:
    """Predictions and labels of delayed rows that are not scored yet, so that many are at once."""

    def __init__(self) -> None:
        self._rows: list[Waiting] = []
        self._places: dict[int, int] = {}
        self._events: list[int] = []
        self.labels = 0

    def __bool__(self) -> bool:
        return bool(self._events)

    def predicted(self, row: Waiting) -> None:
        """Note that a row was predicted."""
        place = self._places[id(row)] = len(self._rows)
        self._rows.append(row)
        self._events.append(place)

    def labelled(self, row: Waiting) -> None:
        """Note that the label of a row has arrived."""
        place = self._places.get(id(row))
        if place is None:
            place = self._places[id(row)] = len(self._rows)
            self._rows.append(row)
        self._events.append(-1 - place)
        self.labels += 1

    def by_target(self, targets: int) -> list[Late]:
        """Return the rows as those of each target; of one, there is one part."""
        rows, count = self._rows, len(self._rows)
        events = np.array(self._events, dtype=np.int64)
        empty = [0.0] * (targets * FORECASTS)
        forecasts = np.array([row.forecasts or empty for row in rows]).reshape(
            count, targets, FORECASTS
        )
        y = np.array([row.y for row in rows], dtype=np.float64).reshape(count, targets)
        predictions = np.array([row.prediction for row in rows], dtype=np.float64)
        predictions = predictions.reshape(count, targets)
        times = np.array([row.time for row in rows], dtype=np.float64)
        levels = len(rows[0].bounds) // (2 * targets) if rows else 0
        bounds = np.array([row.bounds for row in rows]).reshape(count, targets, levels, 2)
        return [
            Late(
                rows,
                events,
                y[:, place].copy(),
                predictions[:, place].copy(),
                times,
                forecasts[:, place].copy(),
                bounds[:, place],
            )
            for place in range(targets)
        ]

    def keep_forecasts(self, parts: list[Late]) -> None:
        """Let rows that still wait keep the forecasts of baselines."""
        arrived = {-1 - event for event in self._events if event < 0}
        forecasts = np.concatenate([part.forecasts for part in parts], axis=1).tolist()
        for place, row in enumerate(self._rows):
            if place not in arrived:
                row.forecasts = forecasts[place]


class Delay:
    """The rows that wait for their labels, in order.

    - `amount`: how late labels are: so many rows, or seconds.
    - `by_time`: whether these are seconds of the stream's own time. A row whose time is missing, or
      before that of an earlier one, counts as simultaneous with the latest; rows before the first
      time count as simultaneous with that.
    """

    def __init__(self, amount: float, by_time: bool) -> None:
        if by_time:
            self.amount = validation.positive(amount, "delay")
        else:
            self.amount = float(validation.whole(amount, "delay", 1, 10**9))
        self.by_time = by_time
        self.clock = -math.inf if by_time else 0.0
        self.waiting: deque[Waiting] = deque()

    @property
    def in_words(self) -> str:
        """The delay for readers, such as "24 rows" or "2 hours"."""
        if not self.by_time:
            return _counted(self.amount, "row")
        return in_words(self.amount)

    def advance(self, time: float | None) -> None:
        """Let the clock go on to the time of the next row, if it counts seconds."""
        if self.by_time and time is not None and self.clock < time < math.inf:
            if self.clock == -math.inf:
                for row in self.waiting:
                    row.due = time + self.amount
            self.clock = time

    def pass_by(self) -> None:
        """Let a clock of rows go on by one that was predicted."""
        if not self.by_time:
            self.clock += 1.0

    def put(self, row: Waiting) -> None:
        """Let a row wait that was just predicted; a clock of rows goes on by it."""
        self.pass_by()
        row.due = self.clock + self.amount
        self.waiting.append(row)

    def arrived(self) -> Iterator[Waiting]:
        """Yield the rows whose labels are there by now."""
        while self.waiting and -math.inf < self.waiting[0].due <= self.clock:
            yield self.waiting.popleft()

    def rest(self) -> Iterator[Waiting]:
        """Yield all rows that still wait: the stream is at its end."""
        while self.waiting:
            yield self.waiting.popleft()

    def to_header(self) -> dict[str, Any]:
        """Return all that is known in terms of JSON, None for minus infinity."""
        rows = [row.to_header() for row in self.waiting]
        return {"clock": _or_none(self.clock), "waiting": rows}

    def restore(self, header: dict[str, Any]) -> Self:
        """Go on from what `to_header` returned."""
        clock, waiting = _or_minus_infinity(header["clock"]), deque[Waiting]()
        waiting.extend(map(Waiting.from_header, header["waiting"]))
        if not self.by_time and clock < len(waiting):
            raise ValueError(f"{len(waiting)} rows are pending after {clock:g} of them")
        self.clock, self.waiting = clock, waiting
        return self


class Unlabelled:
    """Rows that were predicted, by their ids, until their labels come.

    - `most`: no more rows are remembered: for a new one, the oldest is forgotten.
    """

    def __init__(self, most: int = MOST_WAITING) -> None:
        self.most = most
        self.rows: dict[Key, Waiting] = {}

    def __contains__(self, key: Key) -> bool:
        return key in self.rows

    def put(self, key: Key, row: Waiting) -> None:
        """Remember a row; an earlier one of the same id is forgotten."""
        self.rows.pop(key, None)
        if len(self.rows) >= self.most:
            del self.rows[next(iter(self.rows))]
        self.rows[key] = row

    def pop(self, key: Key) -> Waiting:
        """Return a row whose label has come, and forget it."""
        return self.rows.pop(key)

    def to_header(self) -> list[Any]:
        """Return all that is known in terms of JSON."""
        return [[list(key), row.to_header()] for key, row in self.rows.items()]

    def restore(self, header: Sequence[Any]) -> Self:
        """Go on from what `to_header` returned, or raise KeyError, TypeError or ValueError."""
        rows = {tuple(key): Waiting.from_header(row) for key, row in header}
        if len(rows) > self.most:
            raise ValueError(f"{len(rows)} rows are pending, at most {validation.shown(self.most)}")
        self.rows = rows
        return self


def _counted(amount: float, unit: str) -> str:
    return f"{amount:,.6g} {unit}{'' if amount == 1 else 's'}"


def _or_none(moment: float) -> float | None:
    return None if moment == -math.inf else moment


def _or_minus_infinity(moment: float | None) -> float:
    if moment is None:
        return -math.inf
    if type(moment) is not float:
        raise TypeError(f"{validation.shown(moment)} is no time")
    return moment
