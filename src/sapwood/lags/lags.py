"""Lags and rolling means: what was known when a row came, as features of it."""

import contextlib
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from sapwood import validation
from sapwood.lags import history
from sapwood.lags._history import History, NextRow
from sapwood.lags.history import Key
from sapwood.rows import targets
from sapwood.rows.encoded import marked_like
from sapwood.rows.encoder import is_rows
from sapwood.streams.memory import columns_of
from sapwood.streams.stream import Column, FloatArray
from sapwood.validation import Label

__all__ = ["Lags", "Ticket"]

LONGEST_SPAN = 100_000
MOST_SERIES = 10_000
MOST_OF_SERIES = 10_000_000

Spans = int | Iterable[int]
Source = Any  # a column by its name; the target as None, one of several by its place


class Ticket(NamedTuple):
    """By which the label of a row finds it, once it comes.

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
        lists = [_known(column.tolist()) for column in self.lags.values()]
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

    For each row they tell what was known when it came: labels that had not come yet are missing,
    and no row sees its own. Rows are counted, not hours: where rows are left out of a stream, a
    lag of 24 is further back.

    Parameters
    ----------
    lags : int or sequence of int
        Features with the target of so many rows before, named like "y.lag24".
    means : int or sequence of int
        Features with the mean of the known targets among the last so many rows, named like
        "y.mean24".
    lags_of, means_of : mapping of str to such, optional
        The same of columns of numbers, as ``{"temp": [1, 3]}``; named like "temp.lag3".
    by : str or sequence of str
        The columns that tell series apart, as stations: rows before are then those of the same
        series.
    target : str or sequence of names
        The name of the target, for names of features; or those of several targets, each of which
        then has its lags and means.
    max_series : int
        How many series are remembered at most: for a new one beyond these, the one is forgotten
        that has had no row for the longest time. So memory is bounded by this, times the longest
        lag or mean, times the columns looked at, times 8 bytes.

    Notes
    -----
    `transform_one` and `transform_many` change nothing; `learn_one` and `learn_many` let rows
    become past. Where labels come late, `arrive` lets a row become past and returns its features,
    and `label` fills in what its label turns out to be.

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
    ) -> None:
        own = {"lag": _spans(lags, "lags"), "mean": _spans(means, "means")}
        self._target = _names_of(target)
        several = isinstance(self._target, tuple)
        # One target is None, one of several its place.
        self._own = tuple((place,) for place in range(len(self._target))) if several else (None,)
        spans: dict[tuple[Source, str], tuple[int, ...]] = {
            (of, what): each for what, each in own.items() for of in self._own
        }
        for what, given in (("lag", lags_of), ("mean", means_of)):
            for name, each in (given or {}).items():
                told = f"{what}s_of[{validation.shown(name)}]"
                spans[validation.feature_name(name), what] = _spans(each, told)
        self._by = tuple(map(validation.feature_name, [by] if isinstance(by, str | int) else by))
        self._most = validation.whole(max_series, "max_series", 1, MOST_OF_SERIES)
        used = [name for (name, _), each in spans.items() if each]
        if not used:
            raise ValueError("no lag and no mean is given: name one, as lags=[1, 24]")
        self._sources = tuple(dict.fromkeys(used))
        self._features = _features(spans, self._sources, self._target)
        self._wanted = np.array(list(self._features.values()), dtype=np.int64)
        self._parameters: dict[str, Any] = {
            "lags": own["lag"],
            "means": own["mean"],
            **{
                f"{kind}s_of": {
                    of: each
                    for (of, what), each in spans.items()
                    if what == kind and of not in self._own
                }
                for kind in own
            },
            "by": self._by,
            "target": self._target,
            "max_series": self._most,
        }
        self._unknown = [np.nan] * len(self._own)  # the labels of a row that has none
        self._columns = tuple(  # those that lags are taken of, and their places
            (of, place) for place, of in enumerate(self._sources) if of not in self._own
        )
        self._use(history.empty(len(self._sources), int(self._wanted[:, 1].max())))

    def _use(self, past: History) -> None:
        """Take a history for what is remembered."""
        past.want(tuple(self._features), self._wanted)
        self._history = past

    # -- rows one by one --------------------------------------------------------------------------

    def transform_one(self, x: Mapping[Any, Any]) -> dict[Any, Any]:
        """Return a row with what is known of those before it; what is not known is left out.

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
        """Let a row become past.

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
        """Let a row become past whose label is still to come.

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
        """Tell the label of an earlier row; nothing is changed if that row has been forgotten.

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
            return [_finite(validation.number(y, "y"), "y", None)]
        read = targets.read_one(y)
        if read.values.ndim == 1:
            raise ValueError(f"y = {validation.shown(y)}: one is expected for each of {self._told}")
        _, values = targets.fitting(read, self._target, True, "Lags")
        return [
            _finite(value, targets.told(name), None)
            for name, value in zip(self._target, values[0].tolist(), strict=True)
        ]

    @property
    def _told(self) -> str:
        return ", ".join(map(validation.shown, self._target))

    def plan_one(self, x: Mapping[Any, Any], y: Any = None) -> tuple[dict[Any, Any], NextRow]:
        """Return a row with its lags, and what lets it become past when `push` is called."""
        row = self.next_row(x)
        return row, NextRow(self._history, self._key_of(x), self._values(x, y), self._most)

    def next_row(self, x: Mapping[Any, Any]) -> dict[Any, Any]:
        """Return the next row with its lags, None where one is not known."""
        if type(x) is not dict and not isinstance(x, Mapping):
            raise ValueError(f"x = {validation.shown(x)}: a dict of features is expected")
        row = self._history.next_row(x, self._key_of(x) if self._by else ())
        if row is None:
            self._check_names(x)
            raise RuntimeError("the row was changed while it was read")
        return row

    def _values(self, x: Mapping[Any, Any], y: Any) -> list[float]:
        """Return what is remembered of a row."""
        labels = self._unknown if y is None else self._labels_one(y)
        if self._sources == self._own:
            return labels
        return [
            labels[self._own.index(of)] if of in self._own else _number(x.get(of), of)
            for of in self._sources
        ]

    def plan_again(
        self, x: Mapping[Any, Any], known: Sequence[float | None], ticket: Ticket
    ) -> tuple[dict[Any, Any], list[float]]:
        """Return a row that is past already with the lags that it had, and what to `amend`.

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
                f"the row of this id waits for its label as one of series "
                f"{validation.shown(ticket.key)}, and is given as one of "
                f"{validation.shown(key)}: give the row as it was predicted, or another id"
            )
        row.update(zip(self._features, known, strict=True))
        return row, [_number(x.get(of), of) for of, _ in self._columns]

    def amend(self, ticket: Ticket, values: Sequence[float]) -> None:
        """Let an earlier row have other values, as `plan_again` returned them; not of targets."""
        slot = self._history.places.get(ticket.key)
        for (_, place), value in zip(self._columns, values, strict=True):
            if slot is not None:
                self._history.fill(slot, ticket.number, place, value)

    def _key_of(self, x: Mapping[Any, Any]) -> Key:
        if not self._by:
            return ()
        return tuple(_part_of_key(x.get(name)) for name in self._by)

    # -- many rows --------------------------------------------------------------------------------

    def transform_many(self, X: Any) -> dict[Label, Column]:
        """Return rows with what is known of those before them; nothing is changed.

        Parameters
        ----------
        X : mapping of columns, data frame, or array
            Rows that follow each other, and whose own targets are not known: so a lag of 24 is
            known for the next 24 rows, and missing from the 25th on.

        Returns
        -------
        dict of columns
            Those of X, and the lags as arrays, NaN where one is not known.
        """
        return self.plan(X).features

    def learn_many(self, X: Any, y: Any) -> None:
        """Let rows become past: the same as `learn_one` in a loop, or nothing at all.

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
        """Transform each row before it becomes past.

        Parameters
        ----------
        X, y
            As for `learn_many`.

        Returns
        -------
        dict of columns
            What `transform_one` would have returned for each row just before `learn_one`, as
            columns: those of X, and the lags as arrays, NaN where one is not known.

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
        """Return rows with their lags, and let them become past only when `push` is called."""
        columns = columns_of(X)
        self._check_names(columns)
        lengths = {len(column) for column in columns.values()}
        labels = None if y is None else self._labels(y)
        if labels is not None:
            lengths.add(len(labels))
        if len(lengths) != 1:
            raise ValueError(f"X and y have columns of {sorted(lengths)} values: one is expected")
        count = lengths.pop()
        rows = np.full((count, len(self._sources)), np.nan)
        for place, of in enumerate(self._sources):
            if of not in self._own:
                rows[:, place] = _numbers(columns.get(of), of)
            elif labels is not None:
                rows[:, place] = labels[:, self._own.index(of)]
        keys = None
        if self._by:
            parts = [_parts_of_keys(columns.get(name), count) for name in self._by]
            keys = list(zip(*parts, strict=True))
        where = history.planned(self._history, keys, count, self._most)
        made = dict(zip(self._features, where.features(rows, self._wanted), strict=True))
        return LaggedRows(columns, made, X, where, rows)

    def _labels(self, y: Any) -> FloatArray:
        """Return the y of rows, with a column for each target; nothing is changed."""
        if not isinstance(self._target, tuple):
            return _all_finite(np.array(validation.column(y, "y")), "y")[:, np.newaxis]
        read = targets.read(y)
        if read.values.ndim == 1:
            raise ValueError(f"y is one column: one is expected for each of {self._told}")
        _, values = targets.fitting(read, self._target, True, "Lags")
        for place, name in enumerate(self._target):
            _all_finite(values[:, place], targets.told(name))
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
    def columns(self) -> list[Label]:
        """The columns that are looked at, but for the target."""
        return list(dict.fromkeys([*(n for n in self._sources if n not in self._own), *self._by]))

    @property
    def by(self) -> tuple[Label, ...]:
        """The columns that tell series apart."""
        return self._by

    @property
    def target(self) -> str | tuple[Label, ...]:
        """The name of the target; of several, all of them."""
        return self._target

    @property
    def n_series(self) -> int:
        """How many series are remembered."""
        return len(self._history.places)

    @property
    def nbytes(self) -> int:
        """Bytes of what is remembered, and of the names of series."""
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


def _known(values: list[float]) -> list[float | None]:
    """Return values with None for NaN."""
    return [value if value == value else None for value in values]  # noqa: PLR0124


def _spans(given: Any, name: str) -> tuple[int, ...]:
    """Return spans in order, each once."""
    if isinstance(given, int | np.integer):
        given = [given]
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise ValueError(f"{name} = {validation.shown(given)}: whole numbers are expected")
    return tuple(dict.fromkeys(validation.whole(span, name, 1, LONGEST_SPAN) for span in given))


def _names_of(target: Any) -> str | tuple[Label, ...]:
    """Return the name of a target, or those of several."""
    if isinstance(target, str):
        return target
    good = isinstance(target, list | tuple) and all(type(name) in (str, int) for name in target)
    if not good or len(set(target)) < len(target) or len(target) < 2:
        raise ValueError(
            f"target = {validation.shown(target)}: a name is expected, or a list of several"
        )
    return tuple(target)


def _features(
    spans: Mapping[tuple[Source, str], Iterable[int]],
    sources: Sequence[Source],
    target: str | tuple[Label, ...],
) -> dict[Label, tuple[int, int, bool]]:
    """Return, by names of features, the column, the span, and whether a mean is wanted."""
    features: dict[Label, tuple[int, int, bool]] = {}
    for (of, what), each in spans.items():
        for span in each:
            named = target if of is None else target[of[0]] if isinstance(of, tuple) else of
            name = f"{named}.{what}{span}"
            if name in features:
                raise ValueError(
                    f"two features would be called {validation.shown(name)}: rename one"
                )
            features[name] = (sources.index(of), span, what == "mean")
    return features


def _number(value: Any, name: Label) -> float:
    """Return a value of a column that lags are taken of."""
    what = f"x[{validation.shown(name)}]"
    with contextlib.suppress(validation.Unfit):
        value = validation.plain(value)
    return np.nan if value is None else _finite(validation.number(value, what), what, None)


def _numbers(column: Column | None, name: Label) -> FloatArray | float:
    if column is None:
        return np.nan
    what = f"x[{validation.shown(name)}]"
    if not isinstance(column, np.ndarray):
        text = next((value for value in column if isinstance(value, str)), None)
        if text is not None:
            raise ValueError(f"{what} = {validation.shown(text)}: lags are taken of numbers alone")
        return _all_finite(np.array([_number(value, name) for value in column]), what)
    return _all_finite(np.array(column, np.float64), what)


def _all_finite(values: FloatArray, what: str) -> FloatArray:
    for row in np.flatnonzero(np.isinf(values)).tolist()[:1]:
        _finite(float(values[row]), what, row)
    return values


def _finite(value: float, what: str, row: int | None) -> float:
    if np.isinf(value):
        place = "" if row is None else f" at position {row}"
        raise ValueError(f"{what} = {value}{place} {validation.FEATURE_FINITE}")
    return value


def _part_of_key(value: Any) -> str | int | float | None:
    """Return what a series is told by; whole numbers are themselves, whatever their type."""
    try:
        plain = validation.plain(value)
        if isinstance(plain, float):
            if np.isinf(plain):
                raise validation.Unfit(validation.FEATURE_FINITE)
            return None if np.isnan(plain) else plain
        if plain is not None:
            validation.check_text(plain)
            plain = validation.label(plain, whole=False)
    except validation.Unfit as rule:
        raise ValueError(f"{validation.shown(value)}, which identifies a series, {rule}") from None
    return int(plain) if isinstance(plain, bool) else plain


def _parts_of_keys(column: Column | None, rows: int) -> list[Any]:
    if column is None:
        return [None] * rows
    values = column.tolist() if isinstance(column, np.ndarray) else column
    return list(map(_part_of_key, values))
