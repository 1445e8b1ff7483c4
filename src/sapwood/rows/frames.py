"""Data frames: their columns as arrays, codes or lists, and predictions as a series like theirs.

narwhals determines the library of a frame, and what its columns hold. pandas, polars and pyarrow
are not imported for their own frames: they are imported already.
"""

import importlib
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from sapwood import validation
from sapwood.rows.column import CATEGORY, Coded, Column, Values
from sapwood.rows.times import in_seconds, seconds_of_array
from sapwood.validation import FloatArray

__all__ = [
    "MOMENTS",
    "frame_like",
    "frame_of",
    "lasting",
    "like",
    "of_categorical",
    "opened",
    "seconds_of",
    "seconds_of_array",
]

READERS = ("pyarrow", "polars")  # of Arrow streams that are no frame of a library
BEYOND_NUMPY = frozenset({"Decimal", "Int128", "UInt128"})  # numbers that NumPy has no type for
NAME = "prediction"
MOMENTS = ("Datetime", "Date")
PER_SECOND = {"ms": 10**3, "us": 10**6, "ns": 10**9}

Read = Callable[[Column, Any], tuple[Values, bool]]  # -> values, are they those of a categorical


def opened(X: Any) -> tuple[Iterable[tuple[Any, Any]], Read | None, int] | None:
    """Return the names and columns of a frame, what reads a column, and the number of rows.

    - `X`: a frame of pandas, polars, pyarrow or narwhals, or any source of an Arrow stream, which
      is read to its end. For all else None is returned.
    - What reads a column returns its values, and whether they are those of a categorical. It is
      None if the columns are to be read as those of a mapping.
    - Raises ValueError if the rows are still to be computed, or cannot be had.
    - Raises ImportError if a library that is needed is not installed.
    """
    try:
        frame = frame_of(X)
    except ImportError:
        if _is_of("pandas", X, "DataFrame"):
            return X.items(), None, len(X)
        raise
    if frame is None:
        return None
    if frame.implementation.is_pandas():
        return frame.to_native().items(), _of_pandas, len(frame)
    return [(series.name, series) for series in frame.iter_columns()], _of_series, len(frame)


def lasting(X: Any) -> Any:
    """Return X itself, or what an Arrow stream holds, which may be read but once.

    - `X`: as for `opened`, which lists the errors.
    """
    if isinstance(X, np.ndarray) or hasattr(X, "__dataframe__"):
        return X
    frame = frame_of(X) if hasattr(X, "__arrow_c_stream__") else None
    return X if frame is None else frame


def frame_of(X: Any) -> Any:
    """Return a frame of narwhals; None for all that is no frame.

    - `X`: as for `opened`, which lists the errors.
    """
    if isinstance(X, np.ndarray | list | tuple):
        return None
    if type(X).__name__ == "LazyFrame":
        raise ValueError("X is a LazyFrame, whose rows are not computed yet: give X.collect()")
    if not any(hasattr(X, mark) for mark in ("__arrow_c_stream__", "__dataframe__")):
        return None
    try:
        narwhals: Any = importlib.import_module("narwhals.stable.v2")
    except ImportError:
        raise ImportError(
            f"X is a {type(X).__name__}: install narwhals to read data frames, or give a mapping "
            "of names to columns"
        ) from None
    return _as_frame(narwhals, X)


def _as_frame(narwhals: Any, X: Any) -> Any:
    """Return a frame of narwhals; None for a series, and for what is no frame at all."""
    try:
        frame = narwhals.from_native(X, eager_only=True, allow_series=True, pass_through=True)
    except narwhals.exceptions.NarwhalsError as error:
        raise ValueError(f"X is a {type(X).__name__} that cannot be read: {error}") from error
    if isinstance(frame, narwhals.DataFrame):
        return frame
    if isinstance(frame, narwhals.Series) or not hasattr(X, "__arrow_c_stream__"):
        return None
    for reader in READERS:
        try:
            return narwhals.from_arrow(X, backend=reader)
        except ModuleNotFoundError:
            continue
        except Exception as error:  # of the source itself, or of either library
            raise ValueError(f"X is a {type(X).__name__} that cannot be read: {error}") from error
    raise ImportError(
        f"X is a {type(X).__name__}: install {' or '.join(READERS)} to read Arrow streams, or give "
        "a mapping of names to columns"
    )


# Columns.


def _of_pandas(column: Column, series: Any) -> tuple[Values, bool]:
    """Read a series of pandas, by way of pyarrow if that is what it is stored in."""
    dtype = series.dtype
    if isinstance(dtype, np.dtype) and dtype.kind in "biuf":
        return series.to_numpy(), False
    narwhals: Any = importlib.import_module("narwhals.stable.v2")
    if hasattr(dtype, "pyarrow_dtype") or getattr(dtype, "storage", None) == "pyarrow":
        series = series.array.__arrow_array__()
    return _of_series(column, narwhals.from_native(series, series_only=True))


def _of_series(column: Column, series: Any) -> tuple[Values, bool]:
    """Read a series of narwhals."""
    dtype = series.dtype
    holds = type(dtype).__name__
    if dtype.is_temporal() and column.kind != CATEGORY:
        try:
            return seconds_of(series), False
        except ValueError as error:
            raise ValueError(f"x[{validation.shown(column.name)}] {error}") from None
    if dtype.is_temporal():
        raise ValueError(
            f"x[{validation.shown(column.name)}] holds {dtype}, and categories are expected"
        )
    if holds in ("Categorical", "Enum"):
        return _by_codes(series), True
    if holds == "String":
        return _by_codes(series), False
    if column.kind != CATEGORY and holds not in BEYOND_NUMPY:
        if holds == "Boolean":
            narwhals: Any = importlib.import_module("narwhals.stable.v2")
            return series.cast(narwhals.Float64).to_numpy(), False
        if dtype.is_numeric():
            return series.to_numpy(), False
    return series.to_list(), False


def seconds_of(series: Any) -> FloatArray:
    """Return dates and times of a series of narwhals as seconds since 1970, durations as seconds.

    A time without a zone counts as UTC, and a missing one is NaN.

    - Raises ValueError if they are times of a day.
    """
    narwhals: Any = importlib.import_module("narwhals.stable.v2")
    kind = type(series.dtype).__name__
    unit = getattr(series.dtype, "time_unit", "us")
    unit = unit if unit in PER_SECOND else "ms"
    if kind == "Date":
        series = series.cast(narwhals.Datetime("us"))
    if kind in MOMENTS:
        counts = series.dt.timestamp(unit)
    elif kind == "Duration":
        totals = {"ms": "milli", "us": "micro", "ns": "nano"}
        counts = getattr(series.dt, f"total_{totals[unit]}seconds")()
    else:
        raise ValueError(f"holds {series.dtype}: {validation.DATES}")
    missing = series.is_null().to_numpy()
    whole = counts.fill_null(0).cast(narwhals.Int64).to_numpy()
    return np.where(missing, np.nan, in_seconds(whole, PER_SECOND[unit]))


def _by_codes(series: Any) -> Values:
    """Return text or a categorical by codes, if its library makes some; else as a list."""
    if series.implementation.is_polars():
        return _by_codes_of_polars(series)
    if series.implementation.is_pyarrow():
        return _by_codes_of_arrow(series.to_native())
    if series.implementation.is_pandas() and hasattr(series.to_native().dtype, "categories"):
        return of_categorical(series.to_native())
    values: list[Any] = series.to_list()
    return values


def of_categorical(column: Any) -> Values:
    """Return a categorical of pandas, or a series of one, by its codes; others as a list."""
    if not _is_of("pandas", getattr(column, "dtype", None), "CategoricalDtype"):
        return list(column)
    categorical = getattr(column, "array", column)
    return Coded(categorical.codes, lambda rows: categorical.take(rows).tolist())


def _by_codes_of_polars(series: Any) -> Coded:
    narwhals: Any = importlib.import_module("narwhals.stable.v2")
    if series.dtype == narwhals.String:
        labels = series.drop_nulls().unique()
        series = series.cast(narwhals.Enum(labels.to_list()))
    codes = narwhals.from_native(series.to_native().to_physical(), series_only=True)
    codes = codes.cast(narwhals.Int64).fill_null(-1).to_numpy()
    return Coded(codes, lambda rows: series.to_native().gather(rows).to_list())


def _by_codes_of_arrow(chunks: Any) -> Values:
    pyarrow: Any = importlib.import_module("pyarrow")
    try:
        encoded = chunks.dictionary_encode().combine_chunks()
    except pyarrow.ArrowException:  # as of dictionaries that differ and have nulls in them
        values: list[Any] = chunks.to_pylist()
        return values
    codes = encoded.indices.cast("int64").fill_null(-1).to_numpy()
    return Coded(codes, lambda rows: [_from_arrow(scalar) for scalar in encoded.take(rows)])


def _from_arrow(scalar: Any) -> Any:
    """Return a scalar of a dictionary as an object of Python; text that is no UTF-8 as bytes."""
    try:
        return scalar.as_py()
    except UnicodeDecodeError:
        return scalar.value.as_buffer().to_pybytes()


# Predictions.


def like(X: Any, predictions: FloatArray) -> Any:
    """Return predictions as users of X expect them.

    - `X`: the rows that were predicted.
    - `predictions`, shape (n,): not copied for pandas and pyarrow.
    - Returns for a frame of pandas a series named "prediction" with its index, for one of polars a
      series of that name, for a table, record batch or stream of pyarrow an array; for all else the
      predictions as they are.
    """
    if type(X) is np.ndarray or isinstance(X, np.ndarray | Mapping | list | tuple):
        return predictions
    if _is_of("pandas", X, "DataFrame"):
        series = sys.modules["pandas"].Series
        return series(predictions, index=X.index, name=NAME, copy=False)
    if _is_of("polars", X, "DataFrame"):
        return sys.modules["polars"].Series(NAME, predictions)
    if _is_of("pyarrow", X, "Table", "RecordBatch", "RecordBatchReader"):
        return sys.modules["pyarrow"].array(predictions)
    return predictions


def frame_like(X: Any, columns: Mapping[Any, FloatArray], plain: FloatArray) -> Any:
    """Return columns as a frame of the library that X is of; for all else `plain`.

    Names that are no strings become so, but for pandas.

    Examples
    --------
    >>> frame_like([[1.0]], {"a": np.zeros(1)}, np.zeros((1, 1)))
    array([[0.]])
    """
    if _is_of("pandas", X, "DataFrame"):
        return sys.modules["pandas"].DataFrame(dict(columns), index=X.index)
    if _is_of("polars", X, "DataFrame"):
        return sys.modules["polars"].DataFrame(_with_texts(columns))
    if _is_of("pyarrow", X, "Table", "RecordBatch", "RecordBatchReader"):
        return sys.modules["pyarrow"].table(_with_texts(columns))
    return plain


def _with_texts(columns: Mapping[Any, FloatArray]) -> dict[str, FloatArray]:
    return {str(name): np.ascontiguousarray(column) for name, column in columns.items()}


def _is_of(library: str, instance: Any, *types: str) -> bool:
    """Whether something is an instance of types of a library, which is not imported for it."""
    module = sys.modules.get(library)
    return any(isinstance(instance, getattr(module, name, ())) for name in types)
