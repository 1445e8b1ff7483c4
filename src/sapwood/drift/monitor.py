"""A monitor of a stream beside any model: it says what changed, since when, from what to what."""

from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sapwood import door
from sapwood.drift import _monitor
from sapwood.drift.detector import check_state
from sapwood.drift.words import Changed, tell_error, tell_feature
from sapwood.model import State, StoredModel, check_unchanged
from sapwood.rows.features import CATEGORY, OTHERS, Features

__all__ = ["Alarm", "Monitor"]

FloatArray = NDArray[np.float64]

PARTS = _monitor.column_parts()
OWN = ("y", "bias")  # columns before the features
KEPT = 400  # last rows, by which an alarm is told
LARGEST = 1e140


@dataclass(frozen=True, slots=True)
class Alarm:
    """Something that has changed.

    Parameters
    ----------
    what : {"error", "bias", "target", "feature"}
        The size of errors, their mean, y, or a feature.
    name : str
        Of the feature or the target; else the same as `what`.
    row : int
        With which row it was noticed, counted from 1.
    since : int
        With about which row it began.
    words : str
        What has changed, from what to what.
    """

    what: str
    name: str
    row: int
    since: int
    words: str

    def __str__(self) -> str:
        return f"{self.words} since row {self.since:,}"

    def to_dict(self) -> dict[str, Any]:
        """Return the alarm in terms of JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, told: Any) -> Self:
        """Return the alarm that `to_dict` told of, or raise TypeError or ValueError."""
        if not isinstance(told, dict) or told.keys() != {"what", "name", "row", "since", "words"}:
            raise TypeError(f"{door.shown(told)} is no alarm")
        if not all(type(told[name]) is str for name in ("what", "name", "words")):
            raise TypeError(f"{door.shown(told)} is no alarm")
        rows = {name: door.whole(told[name], name, 1, 2**53) for name in ("row", "since")}
        return cls(**{**told, **rows})


class Monitor(StoredModel):
    """Watches a stream, and the errors of a model on it, and says when something has changed.

    Watched are the sizes of errors, their mean (a bias), y, and each feature: its quantiles or the
    shares of its categories, missing values, categories that are new, and values beyond what was
    seen. What was lately is compared with what was before; after an alarm, that part begins anew.

    Parameters
    ----------
    once_in : float
        There is at most one false alarm in so many rows, on average, of all parts together.
    target : str
        What y is called in words.

    Notes
    -----
    The rate is that of rows which do not depend on each other. Where neighbours are alike, as
    hours of a day, the monitor measures how much more counts vary than they would otherwise, and
    asks for more evidence; still, seasons are changes, and are reported.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> X = {"temperature": rng.normal(12, 3, 20_000), "city": rng.choice(["Oslo", "Rome"], 20_000)}
    >>> X["temperature"][15_000:] += 18.0
    >>> monitor = Monitor(once_in=100_000)
    >>> for alarm in monitor.update_many(X, rng.normal(size=20_000)):
    ...     print(alarm)
    temperature: median 11.9 → 30.4 since row 15,001
    """

    kind: ClassVar[str] = "Monitor"
    format: ClassVar[int] = 1

    def __init__(self, once_in: float = 1_000_000, target: str = "y") -> None:
        super().__init__()
        self._once_in = door.between(once_in, "once_in", 1000.0, np.inf)
        self._target = str(target)
        self._features = Features()
        self._columns = np.zeros((0, _monitor.COLUMN_FIELDS))
        self._error = np.zeros(_monitor.ERROR_FIELDS)
        self._scale = np.zeros(2)
        self._last = np.zeros((0, len(OWN)))
        self._last_errors = np.zeros(0)
        self._first: list[list[float]] = []  # values of numbers whose edges are not known yet
        self._rows = self._in_block = 0
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
        told = ", ".join(f"{name}={value!r}" for name, value in self.parameters.items())
        return f"<Monitor({told}): {self.rows} rows of {len(self._features.names)} features>"

    @property
    def rows(self) -> int:
        """How many rows there were."""
        return self._rows

    @property
    def names(self) -> list[str]:
        """The names of all that is watched."""
        return ["error", "bias", self._target, *map(str, self._features.names)]

    def update(self, x: dict[Any, Any], y: float, prediction: float | None = None) -> list[Alarm]:
        """Take a row in; return what has changed by it.

        Parameters
        ----------
        x : dict
            The features.
        y : float
            The target.
        prediction : float, optional
            What was predicted for it.
        """
        told = None if prediction is None else [prediction]
        return self.update_many({name: [value] for name, value in x.items()}, [y], told)

    def update_many(
        self, X: Any, y: ArrayLike, predictions: ArrayLike | None = None
    ) -> list[Alarm]:
        """Take many rows in: the same as `update` in a loop.

        Parameters
        ----------
        X : array_like, mapping of columns, or data frame
            The features.
        y : array_like of float
            The targets; NaN where there is none.
        predictions : array_like of float, optional
            What was predicted.

        Returns
        -------
        list of Alarm
            What has changed, in order.
        """
        targets = _numbers(door.column(y, "y"))
        said = np.full(len(targets), np.nan)
        if predictions is not None:
            said = _numbers(door.column(predictions, "predictions"))
        plan = self._features.read(X, learn=True)
        if not len(plan.matrix) == len(targets) == len(said):
            raise ValueError(
                f"X has {len(plan.matrix)} rows, y has {len(targets)} and predictions "
                f"{len(said)}: the lengths must agree"
            )
        twin = self._twin()
        twin._features.known = plan.known()
        twin._grow()
        own = np.empty((len(targets), len(OWN)))
        own[:, 0] = targets
        residuals = np.subtract(targets, said, out=own[:, 1])
        alarms = twin._take(own, plan.matrix, np.abs(residuals))
        self.__dict__ = twin.__dict__  # all at once
        return alarms

    def _twin(self) -> Self:
        """Return a monitor that shares with this one nothing that changes."""
        twin = type(self).__new__(type(self))
        twin.__dict__ = dict(self.__dict__)
        twin._features = self._features.copy()
        twin._columns, twin._error = self._columns.copy(), self._error.copy()
        twin._scale = self._scale.copy()
        twin._first = [list(values) for values in self._first]
        return twin

    # -- rows -------------------------------------------------------------------------------------

    def _take(self, own: FloatArray, rows: FloatArray, errors: FloatArray) -> list[Alarm]:
        alarms: list[Alarm] = []
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
            self._rows += taken
            start += taken
            if found is not None:
                alarms.append(self._error_alarm(*found))
            for column in changed:
                alarms.append(self._alarm(column))
                self._begin(column)
            if self._in_block == 0:
                self._set_edges(waiting)
        return alarms

    def _set_edges(self, waiting: NDArray[Any]) -> None:
        """Let numbers be watched of which enough rows were seen."""
        for column in waiting.tolist():
            if len(self._first[column]) < _monitor.FIRST:
                continue
            values = np.array(self._first[column])
            known = values[~np.isnan(values)]
            edges = np.zeros(_monitor.EDGES)
            if len(known):
                edges[:] = np.quantile(known, np.linspace(0, 1, _monitor.EDGES))
            self._columns[column, PARTS["edges"]] = edges
            self._columns[column, PARTS["kind"]] = _monitor.NUMBER
            self._first[column] = []

    def _grow(self) -> None:
        """Let there be a record for each column."""
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
        """Let a column begin anew."""
        own = self._columns[column]
        own[:] = 0.0
        own[PARTS["unrest"]] = own[PARTS["super_unrest"]] = 1.0
        own[PARTS["kind"]] = _monitor.CATEGORY if self._is_category(column) else _monitor.WAITING
        self._first[column] = []

    def _is_category(self, column: int) -> bool:
        place = column - len(OWN)
        return place >= 0 and self._features.kinds[place] == CATEGORY

    # -- alarms -----------------------------------------------------------------------------------

    def _changed(self, column: int, since: int) -> Changed:
        """Return what is known of a column before and after a row."""
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

    def _alarm(self, column: int) -> Alarm:
        since = max(1, int(self._columns[column, PARTS["since"]][0]))
        changed = self._changed(column, since)
        what = ["target", "bias"][column] if column < len(OWN) else "feature"
        return Alarm(what, changed.name, self._rows, since, tell_feature(changed))

    def _error_alarm(self, since: float, before: float, after: float) -> Alarm:
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
        words = tell_error(before, after, features, self._last_errors[-rows:])
        return Alarm("error", "error", self._rows, int(since), words)

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
        }
        return State(header, arrays)

    @classmethod
    def from_state(cls, state: State, format: int) -> Self:
        """Restore what `to_state` returned; nothing of it is trusted.

        Raises
        ------
        ValueError, TypeError
            If there is anything wrong with it.
        """
        header, arrays = state
        known = header.keys() == {"parameters", "features", "rows", "in_block"}
        _check(known, "its header has other entries than it should")
        made = cls(**header["parameters"])
        check_unchanged(made.parameters, header["parameters"])
        made._features = Features.from_header(header["features"])
        made._grow()
        made._rows = door.whole(header["rows"], "rows", 0, 2**53)
        made._in_block = door.whole(header["in_block"], "in_block", 0, _monitor.BLOCK - 1)
        _check_arrays(made, arrays)
        ends = np.cumsum(arrays["first_rows"]).tolist()
        values = arrays["first"].tolist()
        made._first = [values[a:b] for a, b in zip([0, *ends[:-1]], ends, strict=True)]
        made._columns, made._error = arrays["columns"], arrays["error"]
        made._scale = arrays["scale"]
        made._last, made._last_errors = arrays["last"], arrays["last_errors"]
        return made


def _check_arrays(made: Monitor, arrays: dict[str, NDArray[Any]]) -> None:
    """Raise ValueError unless arrays are those that a monitor of such features may have."""
    names = {"columns", "error", "scale", "last", "last_errors", "first", "first_rows"}
    _check(arrays.keys() == names, f"its arrays are not {', '.join(sorted(names))}")
    columns, last, lengths = arrays["columns"], arrays["last"], arrays["first_rows"]
    doubles = all(arrays[name].dtype == np.float64 for name in names - {"first_rows"})
    _check(doubles and lengths.dtype == np.int64, "an array is of another type")
    _check(columns.shape == made._columns.shape, f"its columns have shape {columns.shape}")
    _check(arrays["error"].shape == made._error.shape, "its detector has another shape")
    check_state(arrays["error"])
    scale = arrays["scale"]
    good = scale.shape == (2,) and bool(((scale >= 0) & (scale < np.inf)).all())
    _check(good, "its usual size of errors is wrong")
    wide = last.ndim == 2 and last.shape[1] == len(columns) and len(last) <= KEPT
    _check(wide and arrays["last_errors"].shape == (len(last),), "its last rows are wrong")
    whole = lengths.shape == (len(columns),) and bool((lengths >= 0).all())
    _check(whole and arrays["first"].shape == (int(lengths.sum()),), "its first rows are wrong")
    _check(bool(np.isfinite(columns).all()), "a number of a column is not finite")
    kinds = columns[:, PARTS["kind"]][:, 0]
    for column, kind in enumerate(kinds.tolist()):
        right = kind == _monitor.CATEGORY
        _check(right == made._is_category(column), "a column is of another kind")
        _check(kind in (_monitor.CATEGORY, _monitor.NUMBER, _monitor.WAITING), "a kind is wrong")
    for name, part in PARTS.items():
        if name not in ("likeliest", "edges"):
            _check(bool((columns[:, part] >= 0).all()), f"{name} of a column is below 0")
    unrest = columns[:, [PARTS["unrest"].start, PARTS["super_unrest"].start]]
    _check(bool((unrest >= 1).all()), "the unrest of a column is below 1")
    blocks = columns[:, PARTS["blocks"]]
    _check(bool(((blocks == np.floor(blocks)) & (blocks <= 2**53)).all()), "blocks are not whole")
    _check(bool((np.diff(columns[:, PARTS["edges"]], axis=1) >= 0).all()), "edges do not ascend")
    codes = last[:, kinds == _monitor.CATEGORY]
    good = np.isnan(codes) | ((codes >= 0) & (codes < OTHERS + 1) & (codes == np.floor(codes)))
    _check(bool(good.all()), "a label of the last rows is none")


def _check(good: bool, complaint: str) -> None:
    if not good:
        raise ValueError(complaint)


def _latest(last: FloatArray, rows: FloatArray) -> FloatArray:
    """Return the last KEPT rows."""
    if len(rows) >= KEPT:
        return rows[-KEPT:].copy()
    return np.concatenate([last, rows])[-KEPT:]


def _numbers(values: FloatArray) -> FloatArray:
    """Return values with NaN in place of what is infinite or too large to be watched."""
    good = np.abs(values) <= LARGEST
    return values if good.all() else np.where(good, values, np.nan)
