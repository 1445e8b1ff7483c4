"""Rows that are in memory already, or come from somewhere else, as a stream."""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from sapwood import door
from sapwood.streams.stream import MOST_ROWS, Chunk, Column, Position, Stream, StreamError

__all__ = ["PairStream", "as_stream"]


class PairStream(Stream):
    """Pairs of a dict of features and a target, such as river's data sets give.

    Parameters
    ----------
    pairs : iterable of pairs
        If it can be iterated only once, so can the stream.
    name, target : str
        What reports call them.

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
        """Yield the rows from a position on; those before it are skipped one by one."""
        row = 0 if start is None else start["row"]
        pairs = iter(itertools.islice(self._pairs, row, None))
        while batch := list(itertools.islice(pairs, most_rows)):
            names = dict.fromkeys(name for x, _ in batch for name in x)
            columns = {name: _column([x.get(name) for x, _ in batch]) for name in names}
            y = np.array([door.number(target, "y") for _, target in batch], dtype=np.float64)
            numbers = np.arange(row + 1, row + 1 + len(batch))
            row += len(batch)
            yield Chunk(columns, y, self.name, numbers, {"row": row}, row)

    @property
    def fingerprint(self) -> str:
        """The name: what the pairs are is not known before they are read."""
        return self.name


class ArrayStream(Stream):
    """Columns in memory.

    Parameters
    ----------
    X : array_like, mapping of columns, or data frame
        The features; columns of an array are named "x0", "x1", …
    y : array_like of float
        The targets.
    name, target : str
        What reports call them.
    """

    def __init__(self, X: Any, y: Any, name: str = "rows", target: str = "y") -> None:
        self._columns = _columns_of(X)
        self._y = np.ascontiguousarray(door.column(y, "y"))
        for column, values in self._columns.items():
            if len(values) != len(self._y):
                raise StreamError(
                    f"column {door.shown(column)} has {len(values)} values and y has "
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
        )

    def chunks(self, start: Position | None = None, most_rows: int = MOST_ROWS) -> Iterator[Chunk]:
        """Yield the rows from a position on."""
        for row in range(0 if start is None else start["row"], len(self._y), most_rows):
            end = min(row + most_rows, len(self._y))
            columns = {name: values[row:end] for name, values in self._columns.items()}
            numbers = np.arange(row + 1, end + 1)
            yield Chunk(columns, self._y[row:end], self.name, numbers, {"row": end}, end)

    @property
    def fingerprint(self) -> str:
        """The name and the columns."""
        return f"{self.name}: {', '.join(self.features)}"


def as_stream(rows: Any) -> Stream:
    """Return rows of any kind as a stream: a stream, a tuple of X and y, or pairs."""
    if isinstance(rows, Stream):
        return rows
    if isinstance(rows, tuple) and len(rows) == 2:
        return ArrayStream(*rows)
    if isinstance(rows, Iterable) and not isinstance(rows, str | bytes | Mapping):
        return PairStream(rows, type(rows).__name__)
    raise StreamError(
        f"{door.shown(rows)} is no stream: give one of sapwood.streams, X and y, or pairs of a "
        "dict and a target"
    )


def _columns_of(X: Any) -> dict[str, Column]:
    if isinstance(X, Mapping):
        return {str(name): _column(values) for name, values in X.items()}
    if hasattr(X, "__arrow_c_stream__") or hasattr(X, "__dataframe__"):
        import narwhals.stable.v2 as nw

        frame = nw.from_native(X, eager_only=True)
        return {str(series.name): _column(series.to_list()) for series in frame.iter_columns()}
    array = np.asarray(X, dtype=np.float64)
    if array.ndim != 2:
        raise StreamError(f"X has shape {array.shape}: (rows, features) is expected")
    return {f"x{place}": np.ascontiguousarray(column) for place, column in enumerate(array.T)}


def _column(values: Any) -> Column:
    """Return values as an array if all of them are numbers or missing."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        return values.astype(np.float64)
    listed = values.tolist() if isinstance(values, np.ndarray) else list(values)
    if all(value is None or isinstance(value, int | float) for value in listed):
        return np.array(listed, dtype=np.float64)
    return listed
