"""Rows in: an array, a mapping of columns, a data frame or a dict becomes a matrix of doubles.

Reading changes nothing: what the rows would add to the features is kept in a `Plan`, for the
caller to commit once all else was found good too.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sapwood import door
from sapwood.door import FloatArray, Label
from sapwood.rows import frames
from sapwood.rows._dict_row import first_infinite
from sapwood.rows.column import (
    CATEGORY,
    IDENTIFIER,
    NUMBER,
    OTHERS,
    UNKNOWN,
    Column,
    Refused,
    Values,
    as_doubles,
)
from sapwood.rows.labels import Labels

if TYPE_CHECKING:
    from sapwood.rows.features import Features, Known

__all__ = ["MAX_FEATURES", "Plan", "columns_of_rows", "is_rows", "read", "read_one"]

MAX_FEATURES = 4096
BLOCK = 2**17  # doubles of a matrix that stay in the cache while they are written column by column
Convert = Callable[[Column, Any], tuple[Values, bool]]  # -> values, are they those of a categorical


class Plan:
    """A matrix whose rows are good, and what they add to the features."""

    __slots__ = ("_before", "_columns", "_end", "_features", "matrix")

    def __init__(
        self,
        features: Features,
        before: Known,
        matrix: FloatArray,
        columns: Sequence[Column] = (),
        end: int | None = None,
    ):
        self.matrix, self._end = matrix, end
        self._features, self._before, self._columns = features, before, columns

    def parts(self) -> Iterator[tuple[slice, bool, Plan]]:
        """Yield the rows in parts, whether each is a turn, and what it adds to the features.

        At a turn a category becomes one of many, or may become one of ids: if rows came one by
        one, the first of the part would be predicted before that, and learned after it. Each part
        is to be committed before the next is asked for.
        """
        turns = {row for column in self._columns for row, _ in column.turns}
        if not turns:
            yield slice(0, None), False, self
            return
        starts = [0, *sorted(turns - {0})]
        ends: list[int | None] = [*starts[1:], None]
        for start, end in zip(starts, ends, strict=True):
            before = self._before if start == 0 else self._features.known
            part = slice(start, end)
            own = Plan(self._features, before, self.matrix[part], self._columns, end)
            yield part, start in turns, own

    @property
    def width_before(self) -> int:
        """How many features there are before anything new is registered."""
        return len(self._before.names)

    @property
    def is_whole(self) -> bool:
        """Whether there is but one part."""
        return not any(row for column in self._columns for row, _ in column.turns)

    @property
    def targets(self) -> tuple[Label, ...]:
        """The names of several targets that were known when the rows were read."""
        return self._before.targets

    def is_current(self) -> bool:
        """Whether nothing was learned of the features since X was read."""
        return self._features.known is self._before

    def few_codes(self, targets: tuple[Label, ...]) -> FloatArray:
        """Return the matrix with one code for all labels of a category from the 64th on.

        Parameters
        ----------
        targets : tuple
            As for `known`.
        """
        if all(column.count + len(column.fresh) <= OTHERS for column in self._columns):
            return self.matrix
        index = self.known(targets=targets).index
        places = [index[each.name] for each in self._columns if each.kind == CATEGORY]
        matrix = self.matrix.copy()
        matrix[:, places] = np.minimum(matrix[:, places], OTHERS)
        return matrix

    def known(self, rows: float = math.inf, targets: tuple[Label, ...] = ()) -> Known:
        """Return what is known of the features once these rows are learned.

        Parameters
        ----------
        rows : float
            How many rows were learned before; by default it is not looked for ids.
        targets : tuple
            The names of several targets; none of one.

        Raises
        ------
        RuntimeError
            If the features were changed since X was read: the matrix may lack columns then.
        """
        if not self.is_current():
            raise RuntimeError("the features changed while rows were read; read them again")
        before = self._before.and_targets(targets)
        return before.and_columns(self._columns, self._end, rows)

    def commit(self) -> None:
        """Register what is new, or raise as `known`."""
        self._features.known = self.known()


def read(features: Features, X: Any, learn: bool) -> Plan:
    """Read rows, given as an array, a mapping of columns, a list of dicts or a data frame."""
    if is_rows(X):
        X = columns_of_rows(X)
    if isinstance(X, Mapping):
        items = list(X.items())
        lengths = [_length(name, column) for name, column in items]
        for (name, _), length in zip(items, lengths, strict=True):
            if length != lengths[0]:
                raise ValueError(
                    f"x[{door.shown(name)}] has {length} values and "
                    f"x[{door.shown(items[0][0])}] has {lengths[0]}: the lengths must agree"
                )
        return _read_columns(features, items, _of_mapping, max(lengths, default=0), learn)
    frame = frames.opened(X)
    if frame is not None:
        series, convert, rows = frame
        return _read_columns(features, series, convert or _of_mapping, rows, learn)
    return _read_array(features, X, learn)


def is_rows(X: Any) -> bool:
    """Whether X is a list of dicts, one for each row."""
    return isinstance(X, list | tuple) and bool(X) and isinstance(X[0], Mapping)


def columns_of_rows(rows: Sequence[Any]) -> dict[Any, list[Any]]:
    """Return dicts as columns, in the order in which their keys appear; None where a row lacks one.

    Examples
    --------
    >>> columns_of_rows([{"temp": 21.5}, {"city": "Oslo", "temp": 3.0}])
    {'temp': [21.5, 3.0], 'city': [None, 'Oslo']}
    """
    names: dict[Any, None] = {}
    for place, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise ValueError(
                f"X[{place}] = {door.shown(row)}: a dict of features is expected, as X[0] is one"
            )
        names.update(dict.fromkeys(row))
    return {name: [row.get(name) for row in rows] for name in names}


def read_one(features: Features, x: Any, learn: bool) -> Plan:
    """Read one row, given as a mapping of names to values."""
    if not isinstance(x, Mapping):
        raise ValueError(f"x = {door.shown(x)}: a dict of features is expected")
    before = features.known
    columns, width = _columns(features, x.items(), learn)
    numbers = [np.nan] * width
    for place, (column, value) in columns.items():
        try:
            numbers[place] = column.read_value(value)
        except door.Unfit as rule:
            sentence = door.feature_sentence(column.name, value, None, str(rule))
            raise ValueError(sentence) from None
    return Plan(
        features,
        before,
        np.array([numbers], dtype=np.float64),
        [column for column, _ in columns.values()],
    )


def _read_columns(
    features: Features, items: Iterable[tuple[Any, Any]], convert: Convert, rows: int, learn: bool
) -> Plan:
    """Read named columns; of several bad values that in the first row is told."""
    before = features.known
    known = len(before.names)
    columns, width = _columns(features, items, learn)
    contents: dict[int, tuple[Values, bool]] = {}
    for place, (column, content) in columns.items():
        contents[place] = values, _ = convert(column, content)
        if len(values) != rows:
            raise ValueError(f"x[{door.shown(column.name)}] has {len(values)} values, not {rows}")
    if rows == 0:
        return Plan(features, before, np.empty((0, known)))
    matrix = _in_place([contents[place][0] for place in sorted(contents)], rows, width)
    if matrix is not None and not any(_is_category(column) for column, _ in columns.values()):
        in_order = [columns[place][0] for place in range(width)]
        _check_finite(matrix, [column.name for column in in_order])
        return _read_numbers(features, before, in_order, matrix, learn)
    numbers: dict[int, FloatArray] = {}
    refused: tuple[int, str] | None = None
    for place, (column, _) in columns.items():
        values, categorical = contents.pop(place)
        try:
            numbers[place] = column.read(values, categorical)
        except Refused as error:
            if refused is None or error.row < refused[0]:
                value = values[error.row]
                sentence = door.feature_sentence(column.name, value, error.row, error.rule)
                refused = error.row, sentence
    if refused is not None:
        raise ValueError(refused[1])
    matrix = _side_by_side(numbers, rows, width)
    return Plan(features, before, matrix, [column for column, _ in columns.values()])


def _in_place(columns: Sequence[Values], rows: int, width: int) -> FloatArray | None:
    """Return the matrix in C order that the columns are parts of already; None if there is none."""
    arrays = [column for column in columns if isinstance(column, np.ndarray)]
    if not arrays or len(arrays) < width:
        return None
    start = arrays[0].__array_interface__["data"][0]
    for place, array in enumerate(arrays):
        if array.dtype != np.float64 or array.strides != (8 * width,):
            return None
        if array.__array_interface__["data"][0] != start + 8 * place:
            return None
    strides = (8 * width, 8)
    return np.lib.stride_tricks.as_strided(arrays[0], (rows, width), strides, writeable=False)


def _side_by_side(numbers: Mapping[int, FloatArray], rows: int, width: int) -> FloatArray:
    """Return a matrix in C order with a copy of the columns, and NaN where there is none."""
    matrix = np.empty((rows, width)) if len(numbers) == width else np.full((rows, width), np.nan)
    height = max(256, BLOCK // max(width, 1))
    for top in range(0, rows, height):
        part = matrix[top : top + height]
        for place, column in numbers.items():
            part[:, place] = column[top : top + height]
    return matrix


def _columns(
    features: Features, items: Iterable[tuple[Any, Any]], learn: bool
) -> tuple[dict[int, tuple[Column, Any]], int]:
    """Return the columns to read, and what is in them, by their places; and how many there are.

    New ones come last, in their order. What is no name, or not known, matters only for learning.
    """
    columns: dict[int, tuple[Column, Any]] = {}
    unknown: list[Label] = []
    width = len(features.names)
    new: dict[Label, int] = {}
    for key, content in items:
        try:
            name = door.feature_name(key)
        except ValueError:
            if learn:
                raise
            continue
        place = features.index.get(name)
        if place is None:
            if not learn:
                unknown.append(name)
                continue
            _check_text(name)
            place = new.setdefault(name, width + len(new))
        if place in columns:
            raise ValueError(f"x[{door.shown(name)}] is given twice: names must differ")
        columns[place] = features._column(name, learn), content
    _check_width(width + len(new))
    if not columns and width and unknown:
        warnings.warn(
            f"x names {door.shown(unknown[0])} and no feature that the model knows, such as "
            f"{door.shown(features.names[0])}: all of them count as missing; check the names",
            stacklevel=5,
        )
    return columns, width + len(new)


def _read_array(features: Features, X: Any, learn: bool) -> Plan:
    """Read rows without names: the columns are the features in their order."""
    before = features.known
    names = before.names
    has_categories = CATEGORY in features.kinds or IDENTIFIER in features.kinds
    array = _as_array(X, has_categories or bool(features.categorical))
    if array.ndim != 2:
        raise ValueError(f"X has shape {array.shape}: (rows, features) is expected")
    rows, width = array.shape
    if not names:
        if not learn or rows == 0:
            return Plan(features, before, np.empty((rows, 0)))
        _check_width(width)
        names = list(range(width))
    if width != len(names):
        raise ValueError(
            f"X has {width} columns and there are {len(names)} features: give as many, or a "
            "mapping of names to columns"
        )
    columns: list[Column] = []
    if not features.all_numbers:
        columns = [features._column(name, learn) for name in names]
    if array.dtype.kind == "O" or any(map(_is_category, columns)):
        return _read_columns(features, zip(names, array.T, strict=True), _of_mapping, rows, learn)
    matrix = np.ascontiguousarray(as_doubles(array))
    _check_finite(matrix, names)
    return _read_numbers(features, before, columns, matrix, learn)


def _read_numbers(
    features: Features, before: Known, columns: Sequence[Column], matrix: FloatArray, learn: bool
) -> Plan:
    """Read a matrix of finite doubles and NaN: no column is a category.

    Without columns, all features are known to be numbers.
    """
    unknown = [place for place, column in enumerate(columns) if column.kind == UNKNOWN]
    if unknown and not learn:
        matrix = matrix.copy()
        matrix[:, unknown] = np.nan
    for place in unknown:
        if not (np.isnan(matrix[:1, place]).all() and np.isnan(matrix[:, place]).all()):
            columns[place].kind = NUMBER
    return Plan(features, before, matrix, columns if learn and len(matrix) else ())


def _is_category(column: Column) -> bool:
    return column.kind in (CATEGORY, IDENTIFIER)


def _check_finite(matrix: FloatArray, names: Sequence[Label]) -> None:
    bad = first_infinite(matrix)
    if bad is not None:
        row, place = bad
        rule = door.FEATURE_FINITE
        raise ValueError(door.feature_sentence(names[place], matrix[bad], row, rule))


def _check_text(name: Label) -> None:
    try:
        door.check_text(name)
    except door.Unfit as rule:
        raise ValueError(f"{door.shown(name)}, the name of a feature, {rule}") from None


def _check_width(width: int) -> None:
    if width > MAX_FEATURES:
        raise ValueError(
            f"there would be {width} features: at most {MAX_FEATURES} are possible; leave some out"
        )


def _as_array(X: Any, keep_types: bool) -> NDArray[Any]:
    """Return X as an array of numbers or of objects, masked entries as NaN or None."""
    is_array = isinstance(X, np.ndarray)
    try:
        array = np.asarray(X, dtype=object if keep_types and not is_array else None)
        if array.dtype.kind in "US" and not is_array:  # numbers beside text became text
            array = np.asarray(X, dtype=object)
    except ValueError as error:
        raise ValueError(f"X is no table of (rows, features): {error}") from error
    if array.dtype.kind in "mM":
        array = frames.seconds_of_array(array)
    if array.dtype.kind not in "biufOUS":
        _refuse_dtype("X", array)
    if array.dtype.kind in "US":
        array = array.astype(object)
    if isinstance(X, np.ma.MaskedArray):
        mask = np.ma.getmaskarray(X)
        if mask.any():
            if array.dtype.kind == "O" or keep_types:
                array = array.astype(object)
                array[mask] = None
            else:
                array = np.where(mask, np.nan, as_doubles(array))
    return array


def _length(name: Any, column: Any) -> int:
    """Return how many values a column of a mapping has."""
    if isinstance(column, str | bytes | Mapping) or not hasattr(type(column), "__len__"):
        raise ValueError(
            f"x[{door.shown(name)}] = {door.shown(column)}: a column of values is expected"
        )
    return len(column)


def _of_mapping(column: Column, content: Any) -> tuple[Values, bool]:
    """Return the values of a column of a mapping, and whether it is a categorical."""
    if isinstance(content, Labels | list | tuple):
        return content.coded() if isinstance(content, Labels) else list(content), False
    if hasattr(getattr(content, "dtype", None), "categories"):
        return frames.of_categorical(content), True
    part = f"x[{door.shown(column.name)}]"
    array = np.asarray(content)
    if array.ndim != 1:
        raise ValueError(f"{part} has shape {array.shape}: one dimension is expected")
    if isinstance(content, np.ma.MaskedArray) and np.ma.getmaskarray(content).any():
        return list(content), False
    if array.dtype.kind in "biuf":
        return array, False
    if array.dtype.kind in "mM":
        return frames.seconds_of_array(array), False
    if array.dtype.kind not in "OUS":
        _refuse_dtype(part, array)
    return array.tolist(), False


def _refuse_dtype(part: str, array: NDArray[Any]) -> None:
    example = f", e.g. {door.shown(array.flat[0])}" if array.size else ""
    raise ValueError(f"{part} holds {array.dtype}{example}: numbers or strings are expected")
