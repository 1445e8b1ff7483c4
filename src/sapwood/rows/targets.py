"""y in: one target, or several with names; and predictions out, in kind.

A model is of one target, or of several, from its first row on. Reading changes nothing; `fitting`
checks whether y fits the model, while the write lock is held.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from sapwood import validation
from sapwood.rows import frames
from sapwood.rows.column import MOST_LABELS, UNKNOWN, Coded, Column
from sapwood.rows.encoder import columns_of_rows, is_rows
from sapwood.rows.features import MAX_TARGETS
from sapwood.validation import FloatArray, Label

__all__ = [
    "Targets",
    "fitting",
    "in_kind",
    "is_several",
    "named",
    "read",
    "read_one",
    "target_name",
]

MISSING = "at least one of its targets is expected; leave out a row that has none"


class Targets(NamedTuple):
    """What y holds."""

    names: tuple[Label, ...] | None  # of its columns; None if their order identifies them
    values: FloatArray  # a column, or a matrix with NaN where a target is missing


def is_several(y: Any) -> bool:
    """Whether y is made to hold several targets, by its type."""
    if isinstance(y, np.ndarray):
        return y.ndim == 2
    if isinstance(y, Mapping) or is_rows(y):
        return True
    if isinstance(y, list | tuple):
        return bool(y) and isinstance(y[0], list | tuple | np.ndarray) and np.ndim(y[0]) == 1
    return len(getattr(y, "shape", ())) == 2


def read(y: Any) -> Targets:
    """Read the y of many rows.

    - `y`: one column; or several, as an array of two dimensions, or by their names. It is copied,
      as other threads may write to it. What was read already is returned.
    - Raises ValueError if it holds anything but numbers and, of several targets, missing values.

    Examples
    --------
    >>> read({"warm": [21.5, 3.0], "wet": [None, 0.2]})
    Targets(names=('warm', 'wet'), values=array([[21.5,  nan],
           [ 3. ,  0.2]]))
    """
    if isinstance(y, Targets):
        return y
    if not is_several(y):
        return Targets(None, np.array(validation.column(y, "y"), order="C"))
    if isinstance(y, np.ndarray | list | tuple) and not is_rows(y):
        return Targets(None, _matrix(y))
    columns = columns_of_rows(y) if is_rows(y) else y
    frame = None if isinstance(columns, Mapping) else frames.opened(columns)
    if frame is not None:
        series, convert, _ = frame
        items = [
            (
                name,
                _values(content if convert is None else _converted(convert, name, content), name),
            )
            for name, content in series
        ]
    elif isinstance(columns, Mapping):
        items = [(name, _values(content, name)) for name, content in columns.items()]
    else:
        raise ValueError(f"y is a {type(y).__name__}: a column, a frame or a mapping is expected")
    names = tuple(_name(name) for name, _ in items)
    _check_names(names)
    for name, column in items:
        if len(column) != len(items[0][1]):
            raise ValueError(
                f"y[{validation.shown(name)}] has {len(column)} values and "
                f"y[{validation.shown(names[0])}] has {len(items[0][1])}: the lengths must agree"
            )
    return Targets(names, np.ascontiguousarray(np.column_stack([column for _, column in items])))


def read_one(y: Any) -> Targets:
    """Read the y of one row that is no number: a mapping, or a sequence of several."""
    if isinstance(y, Mapping) and y:
        names = tuple(_name(name) for name in y)
        _check_names(names)
        values = [_number(value, name, None) for name, value in y.items()]
        return Targets(names, np.array([values], dtype=np.float64))
    if isinstance(y, list | tuple | np.ndarray) and np.ndim(y) == 1 and len(y) > 1:
        return Targets(None, _matrix([list(y)]))
    return Targets(None, np.array([validation.number(y, "y")]))


def fitting(
    read: Targets, known: tuple[Label, ...], has_learned: bool, model: str
) -> tuple[tuple[Label, ...], FloatArray]:
    """Return y as a model learns it, which knows some targets, or one (none) if it has learned.

    - `read`: what `read` returned.
    - Returns the names of several targets, in the order of the model (none of one), and one column,
      or a matrix with a column for each target.
    - Raises ValueError if y has another number of targets, or other ones.
    """
    names, values = read
    if values.ndim == 1:
        if known:
            raise ValueError(
                f"y is one column and the model has {_listed(known)} for targets: give all of "
                "them, NaN where one is missing"
            )
        return (), values
    if not known:
        if names is not None and len(names) == 1:
            raise ValueError(
                f"y has one column, {validation.shown(names[0])}: give the column itself, without a name"
            )
        if has_learned:
            raise ValueError(
                f"y has {values.shape[1]} columns and this {model} has learned one target: give "
                "one column, or let another model learn several"
            )
        return tuple(range(values.shape[1])) if names is None else names, values
    if names is None:
        if values.shape[1] != len(known):
            raise ValueError(
                f"y has {values.shape[1]} columns and the model has {len(known)} targets, "
                f"{_listed(known)}: give as many, or a mapping of names to columns"
            )
        return known, values
    if names == known:
        return known, values
    for name in names:
        if name not in known:
            raise ValueError(
                f"y names {validation.shown(name)}, and the targets of the model are {_listed(known)}: "
                "leave it out, or let another model learn it"
            )
    matrix = np.full((len(values), len(known)), np.nan)
    matrix[:, [known.index(name) for name in names]] = values
    return known, matrix


def in_kind(X: Any, predictions: FloatArray, names: tuple[Label, ...]) -> Any:
    """Return predictions of several targets as users of X expect them.

    For a frame that is one of its library with a column for each target; for a mapping of columns a
    dict of them; for all else an array of shape (rows, targets).
    """
    columns = {name: predictions[:, place] for place, name in enumerate(names)}
    if isinstance(X, Mapping):
        return columns
    return frames.frame_like(X, columns, predictions)


def named(names: tuple[Label, ...], predictions: Iterable[float]) -> dict[Label, float]:
    """Return the predictions of one row by the names of targets."""
    return dict(zip(names, predictions, strict=True))


def target_name(name: Label) -> str:
    """Return how a message calls the y of a target.

    Examples
    --------
    >>> target_name("wet")
    "y['wet']"
    """
    return f"y[{validation.shown(name)}]"


def _matrix(y: Any) -> FloatArray:
    """Return rows of several y as a matrix; None becomes NaN."""
    if not isinstance(y, np.ndarray):
        y = [[np.nan if value is None else value for value in row] for row in y]
        if len({len(row) for row in y}) > 1:
            raise ValueError(
                "y has rows of different lengths: as many targets in each are expected"
            )
    elif y.dtype.kind == "O":
        y = np.array([[np.nan if value is None else value for value in row] for row in y])
    matrix = validation.floats(y, "y")
    if matrix.ndim != 2 or matrix.shape[1] < 2:
        raise ValueError(
            f"y has shape {matrix.shape}: one dimension is expected, or several targets, one a "
            "column"
        )
    _check_count(matrix.shape[1])
    return np.array(matrix, order="C")


def _converted(convert: Any, name: Any, content: Any) -> Any:
    column = Column(name, UNKNOWN, known={}, count=0, learn=False, most=MOST_LABELS)
    values, _ = convert(column, content)
    return [values[row] for row in range(len(values))] if isinstance(values, Coded) else values


def _values(content: Any, name: Any) -> FloatArray:
    """Return a column of a target as doubles, NaN where it is missing."""
    array = content if isinstance(content, np.ndarray) else None
    if array is None and not isinstance(content, list | tuple):
        array = np.asarray(content)
    if array is not None and array.ndim != 1:
        raise ValueError(f"{target_name(name)} has shape {array.shape}: one dimension is expected")
    if array is not None and array.dtype.kind in "biuf":
        return validation.column(content, target_name(name))
    values = content if array is None else array.tolist()
    return np.array([_number(value, name, row) for row, value in enumerate(values)])


def _number(value: Any, name: Any, row: int | None) -> float:
    """Return the y of a target; NaN if it is missing."""
    if type(value) is float:
        return value
    try:
        plain = validation.plain(value)
    except validation.Unfit:
        plain = ""
    if plain is None:
        return np.nan
    if isinstance(plain, str):
        validation.refuse_kind(target_name(name), value, row)
    return validation.number(plain, target_name(name))


def _name(name: Any) -> Label:
    try:
        found = validation.feature_name(name)
        validation.check_text(found)
    except validation.Unfit as rule:
        raise ValueError(f"{validation.shown(name)}, the name of a target, {rule}") from None
    except ValueError as error:
        raise ValueError(str(error).replace("a feature", "a target")) from None
    return found


def _check_names(names: tuple[Label, ...]) -> None:
    if len(set(names)) < len(names):
        raise ValueError(f"y names a target twice: {_listed(names)}: names must differ")
    if not names:
        raise ValueError("y has no column: a column, or several targets by name, are expected")
    _check_count(len(names))


def _check_count(targets: int) -> None:
    if targets > MAX_TARGETS:
        raise ValueError(
            f"y has {targets} columns: at most {MAX_TARGETS} targets are possible; use several "
            "models"
        )


def _listed(names: tuple[Label, ...]) -> str:
    shown = [validation.shown(name) for name in names[:6]]
    if len(names) > 6:
        return ", ".join(shown) + f" and {len(names) - 6} more"
    return ", ".join(shown[:-1]) + " and " + shown[-1]
