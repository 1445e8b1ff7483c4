"""A drift monitor of a stream, independent of the model that learns it.

A drift event names the quantity that changed, the row since when, and its value before and after.
"""

from dataclasses import asdict, dataclass, fields, replace
from types import NoneType
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sapwood import validation
from sapwood.drift import _monitor
from sapwood.drift.files import (
    CLOCK,
    KEPT,
    LATEST,
    PARTS,
    check_arrays,
    few_labels,
    of_first_format,
)
from sapwood.drift.messages import Changed, describe_error, describe_feature, stability_index
from sapwood.formatting import moment
from sapwood.model import State, StoredModel, check_unchanged
from sapwood.records import check
from sapwood.rows.encoded_rows import EncodedRows
from sapwood.rows.features import CATEGORY, OTHERS, Features

__all__ = ["DriftEvent", "Monitor"]

FloatArray = NDArray[np.float64]

OWN = ("y", "bias")  # columns before the features
LARGEST = 1e140
SEVERITIES = ("minor", "moderate", "major")
LEAST_PSI = (0.1, 0.25)  # of a moderate and of a major event
LEAST_GROWTH = (0.1, 0.5)
CLOCK_ROWS = 100  # from one time that is remembered to the next
LARGEST_EFFECT = 1e9


@dataclass(frozen=True, slots=True)
class DriftEvent:
    """A drift event: a feature, the target or the errors of a model have changed.

    Parameters
    ----------
    what : {"error", "bias", "target", "feature"}
        The size of errors, their mean, y, or a feature.
    name : str
        Of the feature or the target; else the same as `what`.
    row : int
        The row at which the change was detected, counted from 1.
    since : int
        The approximate row at which the change began.
    words : str
        The quantity that has changed, with its value before and after.
    effect : float
        The size of the change: for y, a bias or a feature the population stability index (PSI) of
        its distribution; for errors the relative growth of their mean size, 1 if it has doubled.
    severity : {"minor", "moderate", "major"}
        By the effect: a PSI from 0.1 on is moderate, from 0.25 on major; errors that have grown by
        a tenth are moderate, by a half major.
    time, since_time : float, optional
        The times of both rows, in seconds since 1970, if the rows have times.
    target : str, optional
        Of several targets, the one that a change of y, of errors or of their mean is about.
    """

    what: str
    name: str
    row: int
    since: int
    words: str
    effect: float = 0.0
    severity: str = "minor"
    time: float | None = None
    since_time: float | None = None
    target: str | None = None

    def __str__(self) -> str:
        began = "" if self.since_time is None else f" ({moment(self.since_time)})"
        return f"{self.words} since row {self.since:,}{began}, {self.severity}"

    def to_dict(self) -> dict[str, Any]:
        """Return the event in terms of JSON, without a target if it names none."""
        found = asdict(self)
        if self.target is None:
            del found["target"]
        return found

    @classmethod
    def from_dict(cls, values: Any) -> Self:
        """Return the event that `to_dict` returned, or raise TypeError or ValueError."""
        names = {each.name for each in fields(cls)}
        if not isinstance(values, dict) or values.keys() | {"target"} != names:
            raise TypeError(f"{validation.shown(values)} is no drift event")
        if "target" in values and type(values["target"]) is not str:
            raise TypeError(f"{validation.shown(values)} is no drift event")
        if not all(type(values[name]) is str for name in ("what", "name", "words", "severity")):
            raise TypeError(f"{validation.shown(values)} is no drift event")
        if values["severity"] not in SEVERITIES or type(values["effect"]) is not float:
            raise TypeError(f"{validation.shown(values)} is no drift event")
        if not all(type(values[name]) in (float, NoneType) for name in ("time", "since_time")):
            raise TypeError(f"{validation.shown(values)} is no drift event")
        rows = {name: validation.whole(values[name], name, 1, 2**53) for name in ("row", "since")}
        return cls(**{**values, **rows})


class Monitor(StoredModel):
    """Detects concept drift in a stream and in the errors of a model on it.

    It monitors the sizes of errors, their mean (the bias), y, and each feature: quantiles or shares
    of categories, missing values, new categories, and values outside the known range. Recent rows
    are compared with the rows before them. After a drift event, the monitor of the column that
    changed is reset.

    Parameters
    ----------
    once_in : float
        Expected number of rows between false alarms, of all columns together.
    target : str
        The name of y in messages.

    Notes
    -----
    Neighbouring rows are often similar, such as temperatures within a day or a season. The monitor
    measures how much more counts vary than those of independent rows, over spans of growing length,
    and requires correspondingly more evidence. While this factor still grows with the length of the
    spans, no complete cycle of the column has been observed, and only values that never occurred
    before count as a change. If a constant column switches to another constant, this is one
    observation, and no change.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> X = {"temperature": rng.normal(12, 3, 20_000), "city": rng.choice(["Oslo", "Rome"], 20_000)}
    >>> X["temperature"][15_000:] += 18.0
    >>> monitor = Monitor(once_in=100_000)
    >>> for event in monitor.update_many(X, rng.normal(size=20_000)):
    ...     print(event)
    temperature: median 11.9 → 30.4 since row 15,001, major
    """

    kind: ClassVar[str] = "Monitor"
    format: ClassVar[int] = 2

    def __init__(self, once_in: float = 1_000_000, target: str = "y") -> None:
        super().__init__()
        self._once_in = validation.between(once_in, "once_in", 1000.0, np.inf)
        self._target = str(target)
        self._features = Features(most_labels=OTHERS)
        self._columns = np.zeros((0, _monitor.COLUMN_FIELDS))
        self._error = np.zeros(_monitor.ERROR_FIELDS)
        self._scale = np.zeros(_monitor.SCALE_FIELDS)
        self._last = np.zeros((0, len(OWN)))
        self._last_errors = np.zeros(0)
        self._first: list[list[float]] = []  # values of numbers whose edges are not known yet
        self._rows = self._in_block = 0
        self._clock = np.zeros((0, 2))  # rows, and their times
        self._grow()

    @property
    def parameters(self) -> dict[str, Any]:
        """The arguments that make a monitor like this one that has seen nothing."""
        return {"once_in": self._once_in, "target": self._target}

    @property
    def nbytes(self) -> int:
        """Bytes that all tables occupy, and the names of features and categories."""
        tables = (self._columns, self._error, self._scale, self._last, self._last_errors)
        first = 8 * sum(map(len, self._first))
        return sum(int(table.nbytes) for table in tables) + first + self._features.nbytes

    def __repr__(self) -> str:
        parameters = ", ".join(f"{name}={value!r}" for name, value in self.parameters.items())
        return f"<Monitor({parameters}): {self.rows} rows of {len(self._features.names)} features>"

    @property
    def rows(self) -> int:
        """The number of rows so far."""
        return self._rows

    @property
    def names(self) -> list[str]:
        """The names of all monitored columns and errors."""
        return ["error", "bias", self._target, *map(str, self._features.names)]

    def update(
        self,
        x: dict[Any, Any],
        y: float,
        prediction: float | None = None,
        time: float | None = None,
    ) -> list[DriftEvent]:
        """Update the monitor with a row; return the drift events detected at it.

        Parameters
        ----------
        x : dict
            The features.
        y : float
            The target.
        prediction : float, optional
            The prediction of a model for the row.
        time : float, optional
            The time of the row in seconds since 1970, which drift events report.
        """
        predictions = None if prediction is None else [prediction]
        times = None if time is None else [time]
        columns = {name: [value] for name, value in x.items()}
        return self.update_many(columns, [y], predictions, times)

    def update_many(
        self,
        X: Any,
        y: ArrayLike,
        predictions: ArrayLike | None = None,
        times: ArrayLike | None = None,
    ) -> list[DriftEvent]:
        """Update the monitor with many rows: the same as `update` in a loop.

        Parameters
        ----------
        X : array_like, mapping of columns, or data frame
            The features.
        y : array_like of float
            The targets; NaN where there is none.
        predictions : array_like of float, optional
            The predictions of a model.
        times : array_like of float, optional
            The times of rows in seconds since 1970, which drift events report; NaN where unknown.

        Returns
        -------
        list of DriftEvent
            The drift events, in order.
        """
        targets = _numbers(validation.column(y, "y"))
        predicted = np.full(len(targets), np.nan)
        if predictions is not None:
            predicted = _numbers(validation.column(predictions, "predictions"))
        clock = None if times is None else validation.column(times, "times")
        if clock is not None and len(clock) != len(targets):
            raise ValueError(f"y has {len(targets)} rows and times has {len(clock)}")
        plan = X if isinstance(X, EncodedRows) else self._features.read(X, learn=True)
        if not len(plan.matrix) == len(targets) == len(predicted):
            raise ValueError(
                f"X has {len(plan.matrix)} rows, y has {len(targets)} and predictions "
                f"{len(predicted)}: the lengths must agree"
            )
        scratch = self.copy()
        scratch._features.known = plan.known()
        scratch._grow()
        own = np.empty((len(targets), len(OWN)))
        own[:, 0] = targets
        residuals = np.subtract(targets, predicted, out=own[:, 1])
        events = scratch._take(own, plan.matrix, np.abs(residuals), clock)
        self.__dict__ = scratch.__dict__  # all at once
        return events

    def copy(self) -> Self:
        """Return an independent copy."""
        scratch = type(self).__new__(type(self))
        scratch.__dict__ = dict(self.__dict__)
        scratch._features = self._features.copy()
        scratch._columns, scratch._error = self._columns.copy(), self._error.copy()
        scratch._scale = self._scale.copy()
        scratch._first = [list(values) for values in self._first]
        return scratch

    # -- rows -------------------------------------------------------------------------------------

    def _take(
        self, own: FloatArray, rows: FloatArray, errors: FloatArray, times: FloatArray | None
    ) -> list[DriftEvent]:
        events: list[DriftEvent] = []
        start = 0
        watched = len(self._columns) + 1
        limit = watched * self._once_in
        while start < len(rows):
            waiting = np.flatnonzero(self._columns[:, PARTS["kind"]] == _monitor.WAITING)
            stop = len(rows)
            if len(waiting):
                stop = min(stop, start + _monitor.BLOCK - self._in_block)
            taken, self._in_block, changed, found = _monitor.watch_rows(
                self._columns,
                self._error,
                self._scale,
                own[start:stop],
                rows[start:stop],
                self._in_block,
                float(self._rows),
                limit / _monitor.BLOCK,
                limit,
            )
            some = slice(start, start + taken)
            recent = slice(max(start, start + taken - KEPT), start + taken)
            for place in waiting.tolist():
                table, column = (own, place) if place < len(OWN) else (rows, place - len(OWN))
                self._first[place] += table[some, column].tolist()
            self._last = _latest(self._last, np.hstack([own[recent], rows[recent]]))
            self._last_errors = _latest(self._last_errors, errors[some])
            if times is not None:
                self._note_times(times[some])
            self._rows += taken
            start += taken
            if found is not None:
                events.append(self._error_event(*found))
            for column in changed:
                events.append(self._column_event(column))
                self._begin(column)
            if self._in_block == 0:
                self._set_edges(waiting)
        return events

    def _note_times(self, times: FloatArray) -> None:
        """Remember the times of some rows, and of the last one."""
        rows = np.arange(self._rows + 1, self._rows + len(times) + 1)
        kept = np.flatnonzero((rows % CLOCK_ROWS == 1) & (np.abs(times) < LATEST))
        last = np.flatnonzero(np.abs(times) < LATEST)[-1:]
        fresh = np.column_stack([rows, times])[np.union1d(kept, last)]
        # The last row of the rows before was not one to be remembered for long.
        old = self._clock[(self._clock[:, 0] % CLOCK_ROWS == 1) | (len(fresh) == 0)]
        self._clock = np.concatenate([old, fresh])[-CLOCK:]

    def _time_of(self, row: int) -> float | None:
        """Return the time of a row, or of one shortly before it; None if it is not known."""
        place = int(np.searchsorted(self._clock[:, 0], row, side="right")) - 1
        return float(self._clock[place, 1]) if place >= 0 else None

    def _set_edges(self, waiting: NDArray[Any]) -> None:
        """Set the edges of the numbers of which enough rows were seen, and start watching them."""
        for column in waiting.tolist():
            if len(self._first[column]) < _monitor.FIRST:
                continue
            values = np.array(self._first[column])
            known = values[~np.isnan(values)]
            edges = np.zeros(_monitor.EDGES)
            if len(known):
                edges[:] = np.quantile(known, np.linspace(0, 1, _monitor.EDGES))
            self._columns[column, PARTS["edges"]] = edges
            self._columns[column, PARTS["low"]] = edges[-1]  # of a block without rows
            self._columns[column, PARTS["high"]] = edges[0]
            self._columns[column, PARTS["kind"]] = _monitor.NUMBER
            self._first[column] = []

    def _grow(self) -> None:
        """Add a record for each new column."""
        count = len(OWN) + len(self._features.names)
        fresh = count - len(self._columns)
        if not fresh:
            kinds = self._columns[:, PARTS["kind"]][:, 0].tolist()
            for column in range(len(OWN), count):  # of which the first label has come
                if self._is_category(column) and kinds[column] != _monitor.CATEGORY:
                    self._begin(column)
            return
        columns = np.vstack([self._columns, np.zeros((fresh, _monitor.COLUMN_FIELDS))])
        self._first += [[] for _ in range(fresh)]
        wide = np.full((len(self._last), count), np.nan)
        wide[:, : self._last.shape[1]] = self._last
        self._columns, self._last = columns, wide
        for column in range(count - fresh, count):
            self._begin(column)

    def _begin(self, column: int) -> None:
        """Reset the record of a column."""
        own = self._columns[column]
        own[:] = 0.0
        own[PARTS["kind"]] = _monitor.CATEGORY if self._is_category(column) else _monitor.WAITING
        self._first[column] = []

    def _is_category(self, column: int) -> bool:
        place = column - len(OWN)
        return place >= 0 and self._features.kinds[place] == CATEGORY

    # -- drift events -----------------------------------------------------------------------------

    def _changed(self, column: int, since: int) -> Changed:
        """Return the distribution of a column before and after a row."""
        own = self._columns[column]
        place = column - len(OWN)
        after = self._last[max(0, len(self._last) - (self._rows - since + 1)) :, column]
        return Changed(
            name=[self._target, "bias"][column] if place < 0 else str(self._features.names[place]),
            before=own[PARTS["before"]],
            edges=own[PARTS["edges"]],
            after=after,
            labels=[str(label) for label in self._features.categories[place]]
            if self._is_category(column)
            else None,
        )

    def _column_event(self, column: int) -> DriftEvent:
        since = max(1, int(self._columns[column, PARTS["since"]][0]))
        changed = self._changed(column, since)
        what = ["target", "bias"][column] if column < len(OWN) else "feature"
        effect = stability_index(changed)
        return self._rated(
            DriftEvent(what, changed.name, self._rows, since, describe_feature(changed), effect),
            LEAST_PSI,
        )

    def _rated(self, event: DriftEvent, least: tuple[float, float]) -> DriftEvent:
        """Return an event with its severity and its times."""
        severity = SEVERITIES[int(np.searchsorted(least, event.effect, side="right"))]
        time, since_time = self._time_of(event.row), self._time_of(event.since)
        return replace(event, severity=severity, time=time, since_time=since_time)

    def _error_event(self, since: float, before: float, after: float) -> DriftEvent:
        rows = self._rows - int(since) + 1
        features = [
            (
                self._changed(column, int(since)),
                self._columns[column, PARTS["errors"]],
                self._columns[column, PARTS["error_rows"]],
            )
            for column in range(len(OWN), len(self._columns))
            if self._columns[column, PARTS["kind"]] != _monitor.WAITING
        ]
        words = describe_error(before, after, features, self._last_errors[-rows:])
        growth = after / before - 1.0 if before > 0 else LARGEST_EFFECT
        effect = float(min(growth, LARGEST_EFFECT))
        event = DriftEvent("error", "error", self._rows, int(since), words, effect)
        return self._rated(event, LEAST_GROWTH)

    # -- files ------------------------------------------------------------------------------------

    def to_state(self) -> State:
        """Return all that the monitor is: a header for JSON, and arrays."""
        header = {
            "parameters": self.parameters,
            "features": self._features.to_header(),
            "rows": self._rows,
            "in_block": self._in_block,
        }
        arrays = {
            "columns": self._columns,
            "error": self._error,
            "scale": self._scale,
            "last": self._last,
            "last_errors": self._last_errors,
            "first": np.array([value for values in self._first for value in values]),
            "first_rows": np.array([len(values) for values in self._first], np.int64),
            "clock": self._clock,
        }
        return State(header, arrays)

    @classmethod
    def from_state(cls, state: State, format: int) -> Self:
        """Restore what `to_state` returned; nothing of it is trusted."""
        header, arrays = state
        known = header.keys() == {"parameters", "features", "rows", "in_block"}
        check(known, "its header has other entries than it should")
        made = cls(**header["parameters"])
        check_unchanged(made.parameters, header["parameters"])
        made._features = Features.from_header(few_labels(header["features"]), OTHERS)
        made._grow()
        made._rows = validation.whole(header["rows"], "rows", 0, 2**53)
        made._in_block = validation.whole(header["in_block"], "in_block", 0, _monitor.BLOCK - 1)
        if format == 1:
            arrays = of_first_format(made, arrays)
        check_arrays(made, arrays)
        ends = np.cumsum(arrays["first_rows"]).tolist()
        values = arrays["first"].tolist()
        made._first = [values[a:b] for a, b in zip([0, *ends[:-1]], ends, strict=True)]
        made._columns, made._error = arrays["columns"], arrays["error"]
        made._scale = arrays["scale"]
        made._last, made._last_errors = arrays["last"], arrays["last_errors"]
        made._clock = arrays["clock"]
        return made


def _latest(last: FloatArray, rows: FloatArray) -> FloatArray:
    """Return the last KEPT rows."""
    if len(rows) >= KEPT:
        return rows[-KEPT:].copy()
    return np.concatenate([last, rows])[-KEPT:]


def _numbers(values: FloatArray) -> FloatArray:
    """Return a copy of values with NaN in place of what is infinite or too large to be watched."""
    copied = np.array(values)
    copied[~(np.abs(copied) <= LARGEST)] = np.nan
    return copied
