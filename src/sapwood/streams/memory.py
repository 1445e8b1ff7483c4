"""Rows that are in memory already, or come from somewhere else, as a stream."""

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood import validation
from sapwood.rows import frames
from sapwood.rows.encoder import columns_of_rows, is_empty_list, is_rows
from sapwood.rows.targets import read as read_targets
from sapwood.schema import Schema
from sapwood.streams import bad_rows
from sapwood.streams.stream import (
    MOST_ROWS,
    BadRow,
    Chunk,
    Column,
    IntArray,
    Position,
    Stream,
    StreamError,
)
from sapwood.validation import Label

__all__ = ["ArrayStream", "PairStream", "as_stream", "columns_of"]

LARGEST_WHOLE = 2**53  # up to which doubles are exact


class PairStream(Stream):
    """Pairs of a dict of features and a target, such as river's data sets give.

    Every row has all features that were there up to it, None where one is missing.

    - `pairs`: if it can be iterated only once, so can the stream.
    - `name`, `target`: what reports call them.

    Examples
    --------
    >>> stream = PairStream([({"age": 31, "city": "Oslo"}, 2.0), ({"age": None}, 3.0)])
    >>> chunk = next(stream.chunks())
    >>> chunk.columns, chunk.y
    ({'age': array([31., nan]), 'city': ['Oslo', None]}, array([2., 3.]))
    """

    def __init__(
        self,
        pairs: Iterable[tuple[Mapping[str, Any], float]],
        name: str = "rows",
        target: str = "y",
    ) -> None:
        length = len(pairs) if hasattr(pairs, "__len__") else None  # type: ignore[arg-type]
        super().__init__(name, {}, target, length, length)
        self._pairs = pairs

    def chunks(self, start: Position | None = None, most_rows: int = MOST_ROWS) -> Iterator[Chunk]:
        """Yield the rows from a position on; those before it are skipped one by one.

        A row with a new feature starts a chunk, so that rows are the same in any chunks.
        """
        first = 0 if start is None else start["row"]
        has_text: dict[Label, bool] = {}  # for each feature up to now
        batch: list[tuple[Mapping[Label, Any], Any]] = []
        end = 0
        for pair in self._pairs:
            x, target = self._checked(pair, end)
            if batch and not x.keys() <= has_text.keys():
                yield self._chunk(batch, end, has_text)
                batch = []
            for name, value in x.items():
                has_text[name] = has_text.get(name, False) or isinstance(value, str)
            end += 1
            if end > first:
                batch.append((x, target))
            if len(batch) == most_rows:
                yield self._chunk(batch, end, has_text)
                batch = []
        if batch:
            yield self._chunk(batch, end, has_text)

    def _checked(self, pair: Any, row: int) -> tuple[Mapping[Label, Any], Any]:
        if isinstance(pair, Sequence) and len(pair) == 2 and isinstance(pair[0], Mapping):
            return pair[0], pair[1]
        raise StreamError(
            f"row {row + 1} of {self.name} is {validation.shown(pair)}: a pair of a dict of features "
            "and a target is expected; give X and y as a tuple of the two"
        )

    def _chunk(
        self, batch: list[tuple[Mapping[Label, Any], Any]], end: int, has_text: Mapping[Label, bool]
    ) -> Chunk:
        columns = {
            name: _column([x.get(name) for x, _ in batch], text) for name, text in has_text.items()
        }
        numbers = np.arange(end - len(batch) + 1, end + 1)
        return _good_rows(self, columns, [target for _, target in batch], numbers)

    @property
    def fingerprint(self) -> str:
        """The name: what the pairs are is not known before they are read."""
        return self.name


class ArrayStream(Stream):
    """Columns in memory.

    - `X`: the features; the columns of an array are called 0, 1, …, as trees call them.
    - `y`: the targets; several are an array of two dimensions, a mapping of columns or a frame.
    - `name`, `target`: what reports call them; several targets have names of their own.
    - `names`: the features of a model that is there already, which the columns of an array are
      then.

    Examples
    --------
    >>> ArrayStream([[1.5, "red"]], [2.0]).features
    {0: 'number', 1: 'category'}
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        name: str = "rows",
        target: str = "y",
        names: Sequence[Label] = (),
    ) -> None:
        self._columns, self._clock = columns_of(X, names), _clock_of(X)
        read = read_targets(y)
        self._y = read.values
        several: tuple[Label, ...] = ()
        if self._y.ndim == 2:
            several = read.names or tuple(range(self._y.shape[1]))
            target = ", ".join(map(str, several))
        for column, values in self._columns.items():
            if len(values) != len(self._y):
                raise StreamError(
                    f"column {validation.shown(column)} has {len(values)} values and y has "
                    f"{len(self._y)}: the lengths must agree"
                )
        super().__init__(
            name,
            {
                column: "number" if isinstance(values, np.ndarray) else "category"
                for column, values in self._columns.items()
            },
            target,
            len(self._y),
            len(self._y),
            targets=several,
        )

    def chunks(self, start: Position | None = None, most_rows: int = MOST_ROWS) -> Iterator[Chunk]:
        """Yield the rows from a position on."""
        for row in range(0 if start is None else start["row"], len(self._y), most_rows):
            end = min(row + most_rows, len(self._y))
            columns = {name: values[row:end] for name, values in self._columns.items()}
            yield _good_rows(self, columns, self._y[row:end], np.arange(row + 1, end + 1))

    @property
    def clock(self) -> Label | None:
        """The first column of dates and times."""
        return self._clock

    @property
    def fingerprint(self) -> str:
        """The name and the columns."""
        return f"{self.name}: {', '.join(map(str, self.features))}"


def as_stream(
    rows: Any,
    y: Any = None,
    target: str | Sequence[str] | None = None,
    names: Sequence[Label] = (),
    schema: Schema | None = None,
) -> Stream:
    """Return rows of any kind as a stream: a stream, a file with its target, X and y, or pairs.

    If names are given, they are those of the columns if X is an array. With the schema of a model,
    rows that are no stream are encoded by it.
    """
    if isinstance(rows, str | os.PathLike):
        return _of_path(rows, target)
    if target is not None:
        raise StreamError(
            f"target = {validation.shown(target)}: a target is named for files; else give it as y, or "
            "with the stream"
        )
    if y is not None:
        if isinstance(rows, Stream):
            raise StreamError("y is given, but a stream has targets of its own")
        return ArrayStream(_encoded(schema, rows), y, names=names)
    if isinstance(rows, Stream):
        return rows
    if isinstance(rows, tuple) and len(rows) == 2:
        return ArrayStream(_encoded(schema, rows[0]), rows[1], names=names)
    if isinstance(rows, Iterable) and not isinstance(rows, str | bytes | Mapping):
        pairs = rows if schema is None else _EncodedPairs(rows, schema)
        return PairStream(pairs, type(rows).__name__)
    raise StreamError(
        f"{validation.shown(rows)} is no stream: give one of sapwood.streams, the path of a file, X and "
        "y, or pairs of a dict and a target"
    )


class _EncodedPairs:
    """Pairs of a dict of features and a target, each encoded by a schema as it comes."""

    def __init__(self, pairs: Iterable[Any], schema: Schema) -> None:
        self._pairs, self._schema = pairs, schema

    def __iter__(self) -> Iterator[Any]:
        for pair in self._pairs:
            good = isinstance(pair, Sequence) and len(pair) == 2
            yield (self._schema.encode_one(pair[0]), pair[1]) if good else pair


def _encoded(schema: Schema | None, X: Any) -> Any:
    """Return rows as the schema of a model encodes them; an array of features stays as it is."""
    if schema is None:
        return X
    width = np.shape(X)[1:] if isinstance(X, np.ndarray | list) and not is_rows(X) else ()
    return X if width and width != (len(schema.rules),) else schema.encode(X)


def _of_path(path: str | os.PathLike[str], target: str | Sequence[str] | None) -> Stream:
    """Open a file, or the generator of a name such as "friedman:rows=1000"."""
    if target is not None and not isinstance(target, str):
        return _of_several(path, target)
    from sapwood.streams.generators import GENERATORS, generator
    from sapwood.streams.opening import open_stream

    name = os.fspath(path)
    if name.partition(":")[0] in GENERATORS and not os.path.exists(name):
        made = generator(name)
        if target not in (None, made.target):
            raise StreamError(
                f"target = {validation.shown(target)}: that of {name} is {made.target!r}"
            )
        return made
    stream = open_stream(path, target=target)
    if stream.target is None:
        known = ", ".join(list(map(str, stream.features))[:12])
        raise StreamError(f"{name}: name the column to predict, such as target='...': {known}")
    return stream


def _of_several(path: str | os.PathLike[str], targets: Sequence[str]) -> Stream:
    """Open a file of which several columns are targets."""
    from sapwood.streams.opening import open_stream
    from sapwood.streams.targets import SeveralTargets

    if len(targets) < 2:
        return _of_path(path, targets[0] if targets else None)
    return SeveralTargets(open_stream(path, target=targets[0]), targets)


def _good_rows(
    stream: Stream, columns: dict[Label, Column], targets: Any, numbers: IntArray
) -> Chunk:
    """Return a chunk of those rows whose numbers are finite, and what is wrong with the others.

    A target may be missing: None or NaN.

    - `targets`: of an array all are numbers; of a list they may be anything.
    """
    if isinstance(targets, np.ndarray):
        y = targets
    else:
        y = np.array([_number_or_nan(target) for target in targets], dtype=np.float64)
    faults: dict[int, tuple[str, Label | None, Any]] = {}
    for name, values in columns.items():
        if isinstance(values, np.ndarray):
            for row in np.flatnonzero(np.isinf(values)).tolist():
                faults.setdefault(row, (bad_rows.NOT_FINITE, name, values[row]))
    if y.ndim == 2:
        for row, target in np.argwhere(np.isinf(y)).tolist():
            faults[row] = (bad_rows.NOT_FINITE, stream.targets[target], y[row, target])
    for row in np.flatnonzero(~np.isfinite(y)).tolist() if y.ndim == 1 else ():
        reason = _fault_of_target(targets[row], y[row])
        if reason is not None:
            faults[row] = (reason, stream.target, targets[row])
    bad = []
    for earlier, row in enumerate(sorted(faults)):
        reason, at_fault, value = faults[row]
        column = None if at_fault is None else str(at_fault)
        place = (stream.name, stream.unit, int(numbers[row]), reason, column)
        remedy = bad_rows.REMEDIES[reason]
        bad.append(BadRow(*place, _text_of(value), remedy, after=row - earlier))
    end = int(numbers[-1])
    if bad:
        kept = [row for row in range(len(y)) if row not in faults]
        y, numbers = y[kept], numbers[kept]
        columns = {
            name: values[kept] if isinstance(values, np.ndarray) else [values[row] for row in kept]
            for name, values in columns.items()
        }
    return Chunk(columns, y, stream.name, numbers, {"row": end}, end, bad)


def _text_of(value: Any) -> str:
    try:
        return str(value)
    except ValueError:  # of an int of too many digits
        return validation.shown(value)


def _fault_of_target(target: Any, number: float) -> str | None:
    """Return why a target is no finite number, None if it is missing; it was read as a number."""
    if math.isinf(number):
        return bad_rows.NOT_FINITE
    missing = target is None or (isinstance(target, float) and math.isnan(target))
    return None if missing else bad_rows.TARGET_NO_NUMBER


def _number_or_nan(target: Any) -> float:
    try:
        return validation.number(target, "y")
    except ValueError:
        return math.inf if validation.is_beyond(target) else math.nan


def _clock_of(X: Any) -> Label | None:
    """Return the name of the first column that holds moments, None if there is none."""
    if isinstance(X, Mapping):
        kinds = {name: getattr(getattr(X[name], "dtype", None), "kind", "") for name in X}
        return next(
            (validation.feature_name(name) for name, kind in kinds.items() if kind == "M"), None
        )
    frame = frames.frame_of(X)
    if frame is None:
        return None
    moments = (s.name for s in frame.iter_columns() if type(s.dtype).__name__ in frames.MOMENTS)
    return next((validation.feature_name(name) for name in moments), None)


def columns_of(X: Any, names: Sequence[Label] = ()) -> dict[Label, Column]:
    """Return the columns of an array, a mapping, a frame or dicts: numbers as arrays, else labels.

    If names are given, they are those of the columns of an array.
    """
    if is_rows(X) or is_empty_list(X):
        X = columns_of_rows(X)
    if isinstance(X, Mapping):
        return {validation.feature_name(name): _column(values) for name, values in X.items()}
    frame = frames.frame_of(X)
    if frame is not None:
        return {
            validation.feature_name(series.name): _column_of_series(series)
            for series in frame.iter_columns()
        }
    array = X if isinstance(X, np.ndarray) else np.asarray(X)
    if array.dtype.kind in "US" and not isinstance(X, np.ndarray):
        array = np.asarray(X, dtype=object)  # as numbers mixed with text became text
    if array.ndim != 2:
        raise StreamError(f"X has shape {array.shape}: (rows, features) is expected")
    width = array.shape[1]
    if names and len(names) != width:
        raise StreamError(
            f"X has shape {array.shape}, and the model has {len(names)} features: give a column "
            "for each, or columns by name"
        )
    return {name: _column(array[:, place]) for place, name in enumerate(names or range(width))}


def _column_of_series(series: Any) -> Column:
    """Return a column of a frame; dates and times as seconds since 1970."""
    if series.dtype.is_temporal():
        try:
            return frames.seconds_of(series)
        except ValueError as error:
            raise StreamError(f"column {validation.shown(series.name)}: {error}") from None
    return _column(series.to_list())


def _column(values: Any, has_text: bool = False) -> Column:
    """Return values as an array if all of them are numbers or missing, else as labels."""
    if isinstance(values, np.ndarray):
        if values.dtype.kind in "iu" and values.size and not _are_exact(values):
            return np.ma.asarray(values).tolist()  # type: ignore[no-any-return]
        if values.dtype.kind in "biuf":
            with np.errstate(over="ignore"):  # a long double becomes infinite, and is rejected
                numbers = values.astype(np.float64)
            return np.ascontiguousarray(np.ma.filled(numbers, np.nan))
        if values.dtype.kind in "mM":
            return frames.seconds_of_array(values)
        if values.dtype.kind not in "OUS":
            raise StreamError(f"a column holds {values.dtype}: numbers or text are expected")
    plain = [_plain(value) for value in values]
    if not has_text and all(value is None or _is_exact(value) for value in plain):
        return np.array(plain, dtype=np.float64)
    return plain


def _plain(value: Any) -> Any:
    """Return a value as a builtin type, None if it is missing; the model validates others."""
    try:
        value = validation.plain(value)
    except validation.Unfit:
        return value
    return None if isinstance(value, float) and math.isnan(value) else value


def _are_exact(values: NDArray[Any]) -> bool:
    """Whether doubles can hold all whole numbers of an array."""
    return bool(int(values.min()) >= -LARGEST_WHOLE and int(values.max()) <= LARGEST_WHOLE)


def _is_exact(value: Any) -> bool:
    """Whether a value is a number that a double can hold."""
    return isinstance(value, float) or (isinstance(value, int) and abs(value) <= LARGEST_WHOLE)
