"""Lags and rolling means: values known when a row arrives, as its features."""

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from sapwood import validation
from sapwood.durations import duration_in_seconds, duration_text
from sapwood.lags import history
from sapwood.lags._history import History, NextRow
from sapwood.lags.history import Key
from sapwood.lags.spans import Horizon, Source, Span, Spans, SpanTable, read_horizon, read_spans
from sapwood.lags.values import (
    all_finite,
    all_seconds,
    finite,
    known_or_none,
    names_of,
    number_of,
    numbers_of,
    part_of_key,
    parts_of_keys,
    seconds_of,
    time_rule,
)
from sapwood.rows import targets
from sapwood.rows.encoded import marked_like
from sapwood.rows.encoder import is_rows
from sapwood.streams.memory import columns_of
from sapwood.streams.stream import Column, FloatArray
from sapwood.validation import Label

__all__ = ["Lags", "Ticket"]

MOST_SERIES = 10_000
MOST_OF_SERIES = 10_000_000
TOLERANCE = "30min"


class Ticket(NamedTuple):
    """Identifies a row until its label arrives.

    Parameters
    ----------
    key : tuple
        The series of the row.
    number : int
        The row's number there.
    """

    key: Key
    number: int


class LaggedRows(NamedTuple):
    """Rows with their lags, which are not past yet.

    Parameters
    ----------
    given : dict of columns
        The rows without their lags.
    lags : dict of arrays
        Their lags.
    source : object
        The rows as the caller gave them.
    where : SeriesPlaces
        Where they go when they become past.
    rows : array of float
        What is remembered of them.
    """

    given: dict[Label, Column]
    lags: dict[Label, FloatArray]
    source: Any
    where: history.SeriesPlaces
    rows: FloatArray

    @property
    def features(self) -> dict[Label, Column]:
        """The rows with their lags, as columns."""
        return marked_like(self.source, {**self.given, **self.lags})

    @property
    def in_kind(self) -> Any:
        """The rows with their lags; dicts stay dicts, of which each may lack features."""
        if not is_rows(self.source):
            return self.features
        lists = [known_or_none(column.tolist()) for column in self.lags.values()]
        return [
            marked_like(x, {**x, **dict(zip(self.lags, known, strict=True))})
            for x, known in zip(self.source, zip(*lists, strict=True), strict=True)
        ]

    @property
    def is_due(self) -> bool:
        """Whether the rows are the next to become past: neither they nor others have since then."""
        return self.where.clock == self.where.history.clock

    def push(self) -> int:
        """Let the rows become past, and return the number of the last in its series."""
        return self.where.push(self.rows)


class Lags:
    """Lag features and rolling means: earlier values of a series, and means of the last ones.

    Lags use only values that were known when a row arrived. Labels that had not arrived are
    missing, and a row never uses its own label. Lags count rows (``24``) or time (``"24h"``).

    Parameters
    ----------
    lags : int, str, or sequence of such
        Features with earlier targets. ``24`` is the target 24 rows earlier, named "y.lag24";
        ``"24h"`` is the target 24 hours earlier by the column `time`, named "y.lag24h".
    means : int, str, or sequence of such
        Features with rolling means of the known targets: ``24`` over the last 24 rows, named
        "y.mean24"; ``"24h"`` over the last 24 hours.
    lags_of, means_of : mapping of str to such, optional
        The same for numeric columns: ``{"temp": [1, 3]}`` adds "temp.lag1" and "temp.lag3".
    by : str or sequence of str
        The columns that identify series, such as a station. Lags then use rows of the same series
        only.
    target : str or sequence of names
        The name of the target, for names of features; or those of several targets, each of which
        then has its lags and means.
    max_series : int
        How many series are remembered at most: for a new one beyond these, the least recently
        used series is evicted. So memory is bounded by this, times the rows within the longest lag
        or mean, times the columns looked at, times 8 bytes.
    time : str, optional
        The column with the time of a row, for spans that are durations: a `datetime`, text of
        ISO 8601, or seconds since 1970.
    tolerance : str or timedelta
        How far the time of a value may be from the time that a lag asks for; at most half the
        lag.
    horizon : int, str or timedelta, optional
        How far ahead rows are predicted, in rows or as a duration: values within it are not used,
        even if they are known. Lags must not be shorter, and rolling means end so long before the
        row.

    Notes
    -----
    `transform_one` and `transform_many` do not change the state; `learn_one` and `learn_many` add
    rows to it. With delayed labels, call `arrive` when a row arrives, which adds the row and
    returns its features, and `label` when its label arrives.

    For a row at time t, a lag by time of length s is the known value whose time is nearest to t -
    s, within the tolerance; of two equally near values, the earlier one. If there is none, the lag
    is missing. Of several rows at the same time, the last known one is used. A rolling mean over s
    covers the known values in [t - s, t); with a horizon h, those in (t - h - s, t - h]. A row
    without a time, or with a time before the latest one of its series, counts as simultaneous with
    the latest row. A row that is earlier by more than the longest span starts its series over. At
    most 131,072 rows of a series are searched.

    `sapwood.lags.LaggedModel` puts lags in front of a model, `sapwood.river.Lags` into a pipeline
    of river's, and `sapwood.sklearn.Lags` into one of scikit-learn's.

    Examples
    --------
    >>> lags = Lags(1, means=2, by="shop", target="sold")
    >>> for shop, sold in [("A", 10.0), ("B", 50.0), ("A", 14.0)]:
    ...     lags.learn_one({"shop": shop}, sold)
    >>> lags.transform_one({"shop": "A"})
    {'shop': 'A', 'sold.lag1': 14.0, 'sold.mean2': 12.0}
    >>> lags.transform_one({"shop": "C"})
    {'shop': 'C'}

    By time, a missing hour does not shift lags:

    >>> lags = Lags("2h", time="at")
    >>> for at, y in [("2026-11-18 10:00", 3.0), ("2026-11-18 11:00", 5.0)]:
    ...     lags.learn_one({"at": at}, y)
    >>> lags.transform_one({"at": "2026-11-18 13:00"})
    {'at': '2026-11-18 13:00', 'y.lag2h': 5.0}
    >>> lags.transform_one({"at": "2026-11-18 14:00"})
    {'at': '2026-11-18 14:00'}
    """

    def __init__(
        self,
        lags: Spans = (),
        means: Spans = (),
        *,
        lags_of: Mapping[Label, Spans] | None = None,
        means_of: Mapping[Label, Spans] | None = None,
        by: Label | Sequence[Label] = (),
        target: str | Sequence[Label] = "y",
        max_series: int = MOST_SERIES,
        time: Label | None = None,
        tolerance: str | timedelta = TOLERANCE,
        horizon: Horizon = None,
    ) -> None:
        own = {"lag": read_spans(lags, "lags"), "mean": read_spans(means, "means")}
        self._target = names_of(target)
        several = isinstance(self._target, tuple)
        # One target is None, one of several its place.
        self._own = tuple((place,) for place in range(len(self._target))) if several else (None,)
        spans: dict[tuple[Source, str], tuple[Span, ...]] = {
            (of, what): each for what, each in own.items() for of in self._own
        }
        for what, given in (("lag", lags_of), ("mean", means_of)):
            for name, each in (given or {}).items():
                told = f"{what}s_of[{validation.shown(name)}]"
                spans[validation.feature_name(name), what] = read_spans(each, told)
        self._by = tuple(map(validation.feature_name, [by] if isinstance(by, str | int) else by))
        self._most = validation.whole(max_series, "max_series", 1, MOST_OF_SERIES)
        used = [name for (name, _), each in spans.items() if each]
        if not used:
            raise ValueError("no lag and no mean is given: name one, as lags=[1, 24]")
        self._sources = tuple(dict.fromkeys(used))
        near = duration_in_seconds(tolerance, "tolerance")
        self._table = SpanTable(spans, self._sources, self._target, read_horizon(horizon), near)
        self._features = self._table.wanted
        self._wanted = np.array(list(self._features.values()), dtype=np.int64)
        self._time = time_rule(time, self._table)
        typed = {key: tuple(span.given for span in each) for key, each in spans.items()}
        self._parameters: dict[str, Any] = {
            "lags": typed[self._own[0], "lag"],
            "means": typed[self._own[0], "mean"],
            **{
                f"{kind}s_of": {
                    of: each
                    for (of, what), each in typed.items()
                    if what == kind and of not in self._own
                }
                for kind in own
            },
            "by": self._by,
            "target": self._target,
            "max_series": self._most,
        }
        if self._time is not None:
            self._parameters["time"] = self._time.name
            if near != duration_in_seconds(TOLERANCE, "tolerance"):
                self._parameters["tolerance"] = duration_text(near)
        if self._table.horizon is not None:
            self._parameters["horizon"] = self._table.horizon.given
        self._unknown = [np.nan] * len(self._own)  # the labels of a row that has none
        self._columns = tuple(  # those that lags are taken of, and their places
            (of, place) for place, of in enumerate(self._sources) if of not in self._own
        )
        table = self._table
        self._use(history.empty(len(self._sources), table.depth, table.in_seconds))

    def _use(self, past: History) -> None:
        """Take a history for what is remembered."""
        past.want(tuple(self._features), self._wanted)
        self._history = past

    # -- rows one by one --------------------------------------------------------------------------

    def transform_one(self, x: Mapping[Any, Any]) -> dict[Any, Any]:
        """Return a row with its lag features; unknown lags are left out.

        Parameters
        ----------
        x : mapping
            The features; nothing is changed.
        """
        row, _ = self.plan_one(x)
        known = {
            name: value
            for name, value in row.items()
            if value is not None or name not in self._features
        }
        return marked_like(x, known)

    def learn_one(self, x: Mapping[Any, Any], y: Any = None) -> None:
        """Add a row, so that it provides lags for later rows.

        Parameters
        ----------
        x : mapping
            The features.
        y : float, optional
            The target; if not given, or NaN, it stays unknown. Several are a dict, each missing for
            itself.
        """
        self.plan_one(x, y)[1].push()

    def arrive(self, x: Mapping[Any, Any]) -> tuple[dict[Any, Any], Ticket]:
        """Add a row whose label arrives later; return its features and a ticket.

        Parameters
        ----------
        x : mapping
            The features.

        Returns
        -------
        row : dict
            The row with its lags, None where one is not known.
        ticket : Ticket
            For `label`.

        Examples
        --------
        >>> lags = Lags([1, 2])
        >>> _, first = lags.arrive({})
        >>> _, second = lags.arrive({})
        >>> lags.label(first, 7.0)
        >>> lags.arrive({})[0]
        {'y.lag1': None, 'y.lag2': 7.0}
        """
        row, plan = self.plan_one(x)
        return row, Ticket(self._key_of(x), plan.push())

    def label(self, ticket: Ticket, y: Any) -> None:
        """Learn the label of an earlier row; nothing changes if that row has been evicted.

        Of several targets, those that are missing stay unknown.
        """
        slot = self._history.places.get(ticket.key)
        labels = self._labels_one(y)
        for of, value in zip(self._own, labels, strict=True):
            if slot is not None and of in self._sources and not (of and np.isnan(value)):
                self._history.fill(slot, ticket.number, self._sources.index(of), value)

    def _labels_one(self, y: Any) -> list[float]:
        """Return the y of a row, of each target; nothing is changed."""
        if not isinstance(self._target, tuple):
            if type(y) is float and -math.inf < y < math.inf:
                return [y]
            return [finite(validation.number(y, "y"), "y", None)]
        read = targets.read_one(y)
        if read.values.ndim == 1:
            raise ValueError(f"y = {validation.shown(y)}: one is expected for each of {self._told}")
        _, values = targets.fitting(read, self._target, True, "Lags")
        return [
            finite(value, targets.target_name(name), None)
            for name, value in zip(self._target, values[0].tolist(), strict=True)
        ]

    @property
    def _told(self) -> str:
        return ", ".join(map(validation.shown, self._target))

    def plan_one(self, x: Mapping[Any, Any], y: Any = None) -> tuple[dict[Any, Any], NextRow]:
        """Return a row with its lags, and a plan that adds the row when `push` is called."""
        row = self.next_row(x)
        return row, NextRow(self._history, self._key_of(x), self._values(x, y), self._most)

    def next_row(self, x: Mapping[Any, Any]) -> dict[Any, Any]:
        """Return the next row with its lags, None where one is not known."""
        if type(x) is not dict and not isinstance(x, Mapping):
            raise ValueError(f"x = {validation.shown(x)}: a dict of features is expected")
        key = self._key_of(x) if self._by else ()
        if self._time is None:
            row = self._history.next_row(x, key)
        else:
            row = self._history.next_row_at(x, key, self._moment(x))  # type: ignore[attr-defined]
        if row is None:
            self._check_names(x)
            raise RuntimeError("the row was changed while it was read")
        return row

    def _values(self, x: Mapping[Any, Any], y: Any) -> list[float]:
        """Return what is remembered of a row."""
        labels = self._unknown if y is None else self._labels_one(y)
        moment = [] if self._time is None else [self._moment(x)]
        if self._sources == self._own:
            return [*labels, *moment] if moment else labels
        values = [
            labels[self._own.index(of)] if of in self._own else number_of(x.get(of), of)
            for of in self._sources
        ]
        return [*values, *moment]

    def _moment(self, x: Mapping[Any, Any]) -> float:
        """Return the time of a row in seconds, NaN if it is missing."""
        assert self._time is not None
        given = x.get(self._time.name)
        return given if type(given) is float else seconds_of(given, self._time)

    def plan_again(
        self, x: Mapping[Any, Any], known: Sequence[float | None], ticket: Ticket
    ) -> tuple[dict[Any, Any], list[float]]:
        """Return a row that was added before with the lags that it had, and what to `amend`.

        Parameters
        ----------
        x : mapping
            The row as it is given now.
        known : sequence
            Its lags, in the order of `features`.
        ticket : Ticket
            Of the row.
        """
        row = self.next_row(x)
        key = self._key_of(x)
        if key != ticket.key:
            raise ValueError(
                f"the row of this id is pending as one of series "
                f"{validation.shown(ticket.key)}, and is given as one of "
                f"{validation.shown(key)}: give the row as it was predicted, or another id"
            )
        row.update(zip(self._features, known, strict=True))
        return row, [number_of(x.get(of), of) for of, _ in self._columns]

    def amend(self, ticket: Ticket, values: Sequence[float]) -> None:
        """Replace values of an earlier row by those that `plan_again` returned; not targets."""
        slot = self._history.places.get(ticket.key)
        for (_, place), value in zip(self._columns, values, strict=True):
            if slot is not None:
                self._history.fill(slot, ticket.number, place, value)

    def _key_of(self, x: Mapping[Any, Any]) -> Key:
        if not self._by:
            return ()
        return tuple(part_of_key(x.get(name)) for name in self._by)

    # -- many rows --------------------------------------------------------------------------------

    def transform_many(self, X: Any) -> dict[Label, Column]:
        """Return rows with their lag features, without changing the state.

        Parameters
        ----------
        X : mapping of columns, data frame, or array
            Rows that follow each other, and whose own targets are not known: so a lag of 24 is
            known for the next 24 rows, and missing from the 25th on.

        Returns
        -------
        dict of columns
            The columns of X, and the lags as arrays, NaN if unknown.
        """
        return self.plan(X).features

    def learn_many(self, X: Any, y: Any) -> None:
        """Add rows: equals `learn_one` in a loop; on an error, no row is added.

        Parameters
        ----------
        X : mapping of columns, data frame, or array
            The features.
        y : array_like of float
            The targets, NaN where one is not known. Several are an array with a column for each, a
            mapping of columns, or a frame.
        """
        self.plan(X, y).push()

    def transform_learn_many(self, X: Any, y: Any) -> dict[Label, Column]:
        """Transform each row, then add it.

        Parameters
        ----------
        X, y
            As for `learn_many`.

        Returns
        -------
        dict of columns
            The results of `transform_one` for each row just before `learn_one`, as columns: the
            columns of X, and the lags as arrays, NaN if unknown.

        Examples
        --------
        >>> lags = Lags([1, 2])
        >>> lags.transform_learn_many({"x": [1.0, 2.0, 3.0]}, [10.0, 20.0, 30.0])
        {'x': array([1., 2., 3.]), 'y.lag1': array([nan, 10., 20.]),
         'y.lag2': array([nan, nan, 10.])}
        >>> lags.transform_many({"x": [4.0, 5.0]})
        {'x': array([4., 5.]), 'y.lag1': array([30., nan]), 'y.lag2': array([20., 30.])}
        """
        plan = self.plan(X, y)
        plan.push()
        return plan.features

    def plan(self, X: Any, y: Any = None) -> LaggedRows:
        """Return rows with their lags, and a plan that adds the rows when `push` is called."""
        columns = columns_of(X)
        self._check_names(columns)
        lengths = {len(column) for column in columns.values()}
        labels = None if y is None else self._labels(y)
        if labels is not None:
            lengths.add(len(labels))
        if len(lengths) > 1:
            raise ValueError(
                f"X and y have columns of {sorted(lengths)} values: the lengths must agree"
            )
        count = max(lengths, default=0)
        rows = np.full((count, len(self._sources) + (self._time is not None)), np.nan)
        if self._time is not None:
            rows[:, -1] = all_seconds(columns.get(self._time.name), self._time)
        for place, of in enumerate(self._sources):
            if of not in self._own:
                rows[:, place] = numbers_of(columns.get(of), of)
            elif labels is not None:
                rows[:, place] = labels[:, self._own.index(of)]
        keys = None
        if self._by:
            parts = [parts_of_keys(columns.get(name), count) for name in self._by]
            keys = list(zip(*parts, strict=True))
        where = history.planned(self._history, keys, count, self._most)
        made = dict(zip(self._features, where.features(rows, self._wanted), strict=True))
        return LaggedRows(columns, made, X, where, rows)

    def _labels(self, y: Any) -> FloatArray:
        """Return the y of rows, with a column for each target; nothing is changed."""
        if not isinstance(self._target, tuple):
            return all_finite(np.array(validation.column(y, "y")), "y")[:, np.newaxis]
        read = targets.read(y)
        if read.values.ndim == 1:
            raise ValueError(f"y is one column: one is expected for each of {self._told}")
        _, values = targets.fitting(read, self._target, True, "Lags")
        for place, name in enumerate(self._target):
            all_finite(values[:, place], targets.target_name(name))
        return values

    def _check_names(self, names: Iterable[Any]) -> None:
        clash = self._features.keys() & set(names)
        if clash:
            name = min(clash, key=str)
            raise ValueError(f"the rows have a feature {validation.shown(name)} already: rename it")

    # -- what they are ----------------------------------------------------------------------------

    @property
    def parameters(self) -> dict[str, Any]:
        """The arguments that make lags like these, of no rows yet."""
        return dict(self._parameters)

    @property
    def features(self) -> list[Label]:
        """The names of the features that are added."""
        return list(self._features)

    @property
    def own_features(self) -> set[Label]:
        """The names of the features that are of the target."""
        own = {place for place, of in enumerate(self._sources) if of in self._own}
        return {name for name, (place, *_) in self._features.items() if place in own}

    @property
    def label_features(self) -> set[Label]:
        """The names of the features that are labels of classes, not numbers."""
        return set()

    @property
    def columns(self) -> list[Label]:
        """The columns that are looked at, but for the target."""
        time = [] if self._time is None else [self._time.name]
        of = (name for name in self._sources if name not in self._own)
        return list(dict.fromkeys([*of, *self._by, *time]))

    @property
    def time(self) -> Label | None:
        """The column with the time of a row; None if lags count rows."""
        return None if self._time is None else self._time.name

    @property
    def horizon(self) -> int | str | None:
        """The horizon, or None."""
        return None if self._table.horizon is None else self._table.horizon.given

    @property
    def by(self) -> tuple[Label, ...]:
        """The columns that identify series."""
        return self._by

    @property
    def target(self) -> str | tuple[Label, ...]:
        """The name of the target; of several, all of them."""
        return self._target

    @property
    def latest_times(self) -> dict[Key, tuple[float, float]]:
        """The time of the latest row of each series, and its usual step, both in seconds.

        Series that have not two rows of different times are left out; so are all if lags count
        rows.
        """
        return {} if self._time is None else history.latest_times(self._history)

    @property
    def n_series(self) -> int:
        """The number of series in memory."""
        return len(self._history.places)

    @property
    def nbytes(self) -> int:
        """The memory of stored values and of names of series, in bytes."""
        tables = ("values", "starts", "counts", "used")
        own = sum(getattr(self._history, name).nbytes for name in tables)
        return int(own + self._history.key_bytes)

    def __repr__(self) -> str:
        arguments = ", ".join(
            f"{name}={value!r}"
            for name, value in self._parameters.items()
            if value not in ((), {}, "y" if name == "target" else MOST_SERIES)
        )
        return f"Lags({arguments})"

    # -- saving -----------------------------------------------------------------------------------

    def to_state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return all that they are: a header for JSON, and arrays."""
        past, arrays = history.to_state(self._history)
        parameters: dict[str, Any] = {}
        for name, value in self._parameters.items():
            parameters[name] = list(value) if isinstance(value, tuple) else value
        for name in ("lags_of", "means_of"):
            parameters[name] = [[of, list(spans)] for of, spans in parameters[name].items()]
        return {"parameters": parameters, "past": past}, arrays

    @classmethod
    def from_state(cls, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """Restore what `to_state` returned; nothing of it is trusted.

        Raises
        ------
        ValueError, TypeError
            If there is anything wrong with it.
        """
        expected = {"parameters", "past"}
        good = isinstance(header, dict) and header.keys() == expected
        if not good or not all(isinstance(header[name], dict) for name in expected):
            raise ValueError("the lags have other entries than they should")
        given = dict(header["parameters"])
        for name in ("lags_of", "means_of"):
            given[name] = dict(map(tuple, given.get(name, ())))
        restored = cls(**given)
        past = history.from_state(
            header["past"],
            arrays,
            len(restored._sources),
            restored._history.depth,
            len(restored._by),
            by_time=restored._table.in_seconds,
        )
        restored._use(past)
        if restored.n_series > restored._most:
            raise ValueError(
                f"the lags hold {restored.n_series} series of {restored._most} at most"
            )
        return restored

    def copy(self) -> Self:
        """Return an independent copy."""
        return type(self).from_state(*self.to_state())

    def __copy__(self) -> Self:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_state, self.to_state()
