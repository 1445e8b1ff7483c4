"""Rows in: an array, a mapping of columns, a data frame or a dict becomes a matrix of doubles.

Reading changes nothing: what the rows would add to the features is kept in a `EncodedRows`, for the
caller to commit once all else was found good too.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sapwood import validation
from sapwood.rows import frames, schema_columns
from sapwood.rows._dict_row import finite_copy, first_infinite
from sapwood.rows.column import (
    CATEGORY,
    IDENTIFIER,
    MISSING,
    NUMBER,
    UNKNOWN,
    Column,
    Rejected,
    Values,
    as_doubles,
)
from sapwood.rows.encoded import EncodedColumns, EncodedRow
from sapwood.rows.encoded_rows import EncodedRows
from sapwood.rows.labels import Labels
from sapwood.validation import FloatArray, Label

if TYPE_CHECKING:
    from sapwood.rows.features import Features, KnownFeatures
    from sapwood.schema import Schema

__all__ = [
    "MAX_FEATURES",
    "EncodedRows",
    "columns_of_rows",
    "is_empty_list",
    "is_rows",
    "read",
    "read_one",
]

MAX_FEATURES = 4096
BLOCK = 2**17  # doubles of a matrix that stay in the cache while they are written column by column
Convert = Callable[[Column, Any], tuple[Values, bool]]  # -> values, are they those of a categorical


def read(features: Features, X: Any, learn: bool, count: int = 0) -> EncodedRows:
    """Read rows, given as an array, a mapping of columns, a list of dicts or a data frame.

    `count` is how many rows a mapping without columns has.
    """
    schema = None if isinstance(X, EncodedColumns) else features.encoding
    if type(X) is np.ndarray and schema is None:
        return _read_array(features, X, learn)
    if is_empty_list(X):
        X = {}
    if is_rows(X):
        columns = columns_of_rows(X)
        if learn and len(X[0]) <= MAX_FEATURES:
            columns = _within_limit(features, columns)
        plan = read(features, columns, learn, len(X))
        if learn:
            plan.set_first_rows(X)
        return plan
    if schema is not None and list(schema.features) == features.known.given:
        X = schema_columns.named(X, [rule.name for rule in schema.rules])
    if isinstance(X, Mapping):
        items = list(X.items())
        lengths = [_length(name, column) for name, column in items]
        for (name, _), length in zip(items, lengths, strict=True):
            if length != lengths[0]:
                raise ValueError(
                    f"x[{validation.shown(name)}] has {length} values and "
                    f"x[{validation.shown(items[0][0])}] has {lengths[0]}: the lengths must agree"
                )
        rows = max(lengths, default=count)
        return _read_columns(features, *_by_schema(schema, items, _of_mapping), rows, learn)
    frame = frames.opened(X)
    if frame is not None:
        series, convert, rows = frame
        read_by = _by_schema(schema, series, convert or _of_mapping)
        return _read_columns(features, *read_by, rows, learn)
    return _read_array(features, X, learn)


def _by_schema(
    schema: Schema | None, items: Iterable[tuple[Any, Any]], convert: Convert
) -> tuple[Iterable[tuple[Any, Any]], Convert]:
    """Return columns, and what reads them, as the schema of the model encodes them."""
    return (items, convert) if schema is None else schema_columns.applied(schema, items, convert)


def is_rows(X: Any) -> bool:
    """Whether X is a list of dicts, one for each row."""
    return isinstance(X, list | tuple) and bool(X) and isinstance(X[0], Mapping)


def is_empty_list(X: Any) -> bool:
    """Whether X is a list of no rows, which has no columns."""
    return isinstance(X, list | tuple) and not X


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
                f"X[{place}] = {validation.shown(row)}: a dict of features is expected, as X[0] is one"
            )
        names.update(dict.fromkeys(row))
    columns = {name: [row.get(name) for row in rows] for name in names}
    return EncodedColumns(columns) if all(type(row) is EncodedRow for row in rows) else columns


def read_one(features: Features, x: Any, learn: bool) -> EncodedRows:
    """Read one row, given as a mapping of names to values."""
    if not isinstance(x, Mapping):
        raise ValueError(f"x = {validation.shown(x)}: a dict of features is expected")
    if features.encoding is not None:
        x = features.encoding.encode_one(x)
    before = features.known
    columns, width = _columns(features, x.items(), learn)
    numbers = [np.nan] * width
    for place, (column, value) in columns.items():
        try:
            numbers[place] = column.read_value(value)
        except validation.Unfit as rule:
            sentence = validation.feature_sentence(column.name, value, None, str(rule))
            raise ValueError(sentence) from None
    return EncodedRows(
        features,
        before,
        np.array([numbers], dtype=np.float64),
        [column for column, _ in columns.values()],
    )


def _read_columns(
    features: Features, items: Iterable[tuple[Any, Any]], convert: Convert, rows: int, learn: bool
) -> EncodedRows:
    """Read named columns; of several bad values, the one in the first row is reported."""
    before = features.known
    known = len(before.names)
    columns, width = _columns(features, items, learn)
    contents: dict[int, tuple[Values, bool]] = {}
    for place, (column, content) in columns.items():
        contents[place] = values, _ = convert(column, content)
        if len(values) != rows:
            raise ValueError(
                f"x[{validation.shown(column.name)}] has {len(values)} values, not {rows}"
            )
    if rows == 0:
        return EncodedRows(features, before, np.empty((0, known)))
    matrix = _in_place([contents[place][0] for place in sorted(contents)], rows, width)
    if matrix is not None and not any(_is_category(column) for column, _ in columns.values()):
        in_order = [columns[place][0] for place in range(width)]
        names = [column.name for column in in_order]
        matrix, is_complete = _finite(matrix, names, owned=False)
        return _read_numbers(features, before, in_order, matrix, learn, is_complete=is_complete)
    numbers: dict[int, FloatArray] = {}
    rejected: tuple[int, str] | None = None
    for place, (column, _) in columns.items():
        values, categorical = contents.pop(place)
        try:
            numbers[place] = column.read(values, categorical)
        except Rejected as error:
            if rejected is None or error.row < rejected[0]:
                value = values[error.row]
                sentence = validation.feature_sentence(column.name, value, error.row, error.rule)
                rejected = error.row, sentence
    if rejected is not None:
        raise ValueError(rejected[1])
    in_order = [column for column, _ in columns.values()]
    names = [
        *before.names,
        *(column.name for column in in_order if column.name not in before.index),
    ]
    matrix, _ = _finite(_side_by_side(numbers, rows, width), names, owned=True)
    return EncodedRows(features, before, matrix, in_order)


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
    Once there are MAX_FEATURES, further names are ignored, so that a stream is not stopped.
    """
    columns: dict[int, tuple[Column, Any]] = {}
    unknown: list[Label] = []
    is_full = False
    width = len(features.names)
    new: dict[Label, int] = {}
    for key, content in items:
        try:
            name = validation.feature_name(key)
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
            if width and width + len(new) >= MAX_FEATURES and name not in new:
                is_full = True
                continue
            place = new.setdefault(name, width + len(new))
        elif features.kinds[place] == MISSING:
            if learn:
                raise ValueError(
                    f"x[{validation.shown(name)}]: the model derives this feature itself; give it "
                    "another name, or leave it out"
                )
            continue
        if place in columns:
            raise ValueError(f"x[{validation.shown(name)}] is given twice: names must differ")
        columns[place] = features._column(name, learn), content
    _check_width(width + len(new))
    if is_full:
        _warn_of_ignored()
    if not columns and width and unknown:
        warnings.warn(
            f"x names {validation.shown(unknown[0])} and no feature that the model knows, such as "
            f"{validation.shown(features.names[0])}: all of them count as missing; check the names",
            stacklevel=5,
        )
    return columns, width + len(new)


def _within_limit(features: Features, columns: dict[Any, list[Any]]) -> dict[Any, list[Any]]:
    """Return the columns of rows without those that come when there are MAX_FEATURES already."""
    new = [name for name in columns if name not in features.index]
    beyond = new[max(0, MAX_FEATURES - len(features.names)) :]
    if not beyond:
        return columns
    _warn_of_ignored()
    kept = {name: column for name, column in columns.items() if name not in {*beyond}}
    return EncodedColumns(kept) if isinstance(columns, EncodedColumns) else kept


def _warn_of_ignored() -> None:
    # The text is always the same, so that Python shows it once.
    warnings.warn(
        f"the model has {MAX_FEATURES} features, the most that it can have: further names are ignored; "
        "leave rare features out, or put sapwood.SparseRegressor around the model",
        stacklevel=6,
    )


def _read_array(features: Features, X: Any, learn: bool) -> EncodedRows:
    """Read rows without names: the columns are the features in their order."""
    before = features.known
    names = before.given
    has_categories = CATEGORY in before.kinds or IDENTIFIER in before.kinds
    array = _as_array(X, has_categories or bool(features.categorical))
    if array.ndim != 2:
        raise ValueError(f"X has shape {array.shape}: (rows, features) is expected")
    rows, width = array.shape
    if not names:
        if not learn or rows == 0:
            return EncodedRows(features, before, np.empty((rows, 0)))
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
    if array.dtype.kind == "O" or any(map(_is_category, columns)) or before.flags:
        return _read_columns(features, zip(names, array.T, strict=True), _of_mapping, rows, learn)
    matrix = np.ascontiguousarray(as_doubles(array))
    owned = matrix is not X and isinstance(X, list | tuple | np.ndarray)
    if owned and isinstance(X, np.ndarray):
        owned = not np.may_share_memory(matrix, X)
    matrix, is_complete = _finite(matrix, names, owned=owned)
    return _read_numbers(features, before, columns, matrix, learn, is_complete=is_complete)


def _read_numbers(
    features: Features,
    before: KnownFeatures,
    columns: Sequence[Column],
    matrix: FloatArray,
    learn: bool,
    *,
    is_complete: bool,
) -> EncodedRows:
    """Read a matrix of finite doubles and, unless it is complete, NaN: no column is a category.

    Without columns, all features are known to be numbers.
    """
    unknown = [place for place, column in enumerate(columns) if column.kind == UNKNOWN]
    if unknown and not learn:
        matrix = matrix.copy()
        matrix[:, unknown] = np.nan
    for place in unknown:
        if not (np.isnan(matrix[:1, place]).all() and np.isnan(matrix[:, place]).all()):
            columns[place].kind = NUMBER
            is_first = not np.isnan(matrix[0, place])  # mostly, so the others are not looked at
            columns[place].value_row = 0 if is_first else int(np.argmin(np.isnan(matrix[:, place])))
    rows = EncodedRows(features, before, matrix, columns if learn and len(matrix) else ())
    rows.is_complete = is_complete
    return rows


def _is_category(column: Column) -> bool:
    return column.kind in (CATEGORY, IDENTIFIER)


def _finite(matrix: FloatArray, names: Sequence[Label], owned: bool) -> tuple[FloatArray, bool]:
    """Return a matrix that no other code can write to, and whether it is known to have no NaN.

    - `owned`: whether it is no caller's memory. That of a caller is copied before it is looked at,
      as another thread may write to it at any time.
    - Raises ValueError if one of its values is infinite.
    """
    is_complete = False
    if owned:
        bad = first_infinite(matrix)
    else:
        matrix, is_complete, bad = finite_copy(matrix)
    if bad is not None:
        row, place = bad
        rule = validation.FEATURE_FINITE
        raise ValueError(validation.feature_sentence(names[place], matrix[bad], row, rule))
    return matrix, is_complete


def _check_text(name: Label) -> None:
    try:
        validation.check_text(name)
    except validation.Unfit as rule:
        raise ValueError(f"{validation.shown(name)}, the name of a feature, {rule}") from None


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
        if array.dtype.kind in "US" and not is_array:  # numbers among text became text
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
            f"x[{validation.shown(name)}] = {validation.shown(column)}: a column of values is expected"
        )
    return len(column)


def _of_mapping(column: Column, content: Any) -> tuple[Values, bool]:
    """Return the values of a column of a mapping, and whether it is a categorical."""
    if isinstance(content, Labels | list | tuple):
        return content.coded() if isinstance(content, Labels) else list(content), False
    if hasattr(getattr(content, "dtype", None), "categories"):
        return frames.of_categorical(content), True
    part = f"x[{validation.shown(column.name)}]"
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
    example = f", e.g. {validation.shown(array.flat[0])}" if array.size else ""
    raise ValueError(f"{part} holds {array.dtype}{example}: numbers or strings are expected")
