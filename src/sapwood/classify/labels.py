"""Labels in: what a class may be, and the codes that stand for classes."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sapwood import validation
from sapwood.rows.features import MAX_TARGETS
from sapwood.validation import Label

__all__ = [
    "CodedLabels",
    "class_label",
    "coded",
    "is_missing",
    "label_array",
    "label_values",
    "missing_labels",
]

IntArray = NDArray[np.int64]

CLASS = (
    "must be a string, a whole number or a bool, as the label of a class, or None if it is not "
    "known; convert it by str(y), or use a regressor for numbers"
)
MOST_CLASSES = MAX_TARGETS
MISSING_KINDS = {"NAType", "NaTType"}  # of pandas


class CodedLabels(NamedTuple):
    """The labels of rows, as codes."""

    classes: tuple[Label, ...]  # those that were known, and then the new ones as they appear
    codes: IntArray
    firsts: list[int]  # the row of each new class at which it appears


def class_label(value: Any, row: int | None = None) -> Label:
    """Return the label of a class as a plain str, int or bool, or raise ValueError.

    Examples
    --------
    >>> class_label(np.int64(3)), class_label(np.True_), class_label("spam")
    (3, True, 'spam')
    >>> class_label(2.0)
    2
    >>> class_label(0.5)
    Traceback (most recent call last):
    ...
    ValueError: y = 0.5 must be a string, a whole number or a bool, as the label of a class, or ...
    """
    plain: Label
    if type(value) in (bool, int, str):
        plain = value
    elif isinstance(value, np.bool_):
        plain = bool(value)
    elif isinstance(value, np.integer | int):
        plain = int(value)
    elif isinstance(value, str):
        plain = str(value)
    elif isinstance(value, float | np.floating) and np.isfinite(value) and value == int(value):
        plain = int(value)
    else:
        raise ValueError(_sentence(value, row, CLASS))
    if isinstance(plain, str):
        if len(plain) > validation.LONGEST:
            raise ValueError(_sentence(value, row, validation.LABEL_LENGTH))
        try:
            validation.check_text(plain)
        except ValueError:
            raise ValueError(_sentence(value, row, validation.LABEL_TEXT)) from None
    elif not -(2**63) <= plain < 2**64:
        raise ValueError(_sentence(value, row, validation.LABEL_RANGE))
    return plain


def is_missing(value: Any) -> bool:
    """Whether a value stands for a label that is not known: None, NaN, or pandas's NA and NaT.

    Examples
    --------
    >>> [is_missing(value) for value in (None, float("nan"), "nan", 0)]
    [True, True, False, False]
    """
    if value is None:
        return True
    if isinstance(value, float | np.floating):
        return bool(np.isnan(value))
    return type(value).__name__ in MISSING_KINDS


def missing_labels(values: Any) -> NDArray[np.bool_] | None:
    """Return which of the labels that `label_values` returned are missing; None if none is."""
    if isinstance(values, np.ndarray):
        return None  # of whole numbers, bools or text
    found = np.array([is_missing(value) for value in values], np.bool_)
    return found if found.any() else None


def _sentence(value: Any, row: int | None, rule: str) -> str:
    place = "" if row is None else f" at position {row}"
    return f"y{place} = {validation.shown(value)} {rule}"


def coded(y: Any, known: Mapping[Label, int]) -> CodedLabels:
    """Return the codes of the labels of many rows.

    Parameters
    ----------
    y : array_like or series, shape (n,)
        The labels.
    known : mapping
        The codes of the classes that are known.

    Raises
    ------
    ValueError
        If a value cannot be the label of a class, or if there are too many classes.

    Examples
    --------
    >>> coded(["b", "a", "c", "c"], {"a": 0})
    CodedLabels(classes=('a', 'b', 'c'), codes=array([1, 0, 2, 2]), firsts=[0, 2])
    """
    values = label_values(y)
    table = dict(known)
    firsts: list[int] = []
    codes: list[int] | IntArray
    if isinstance(values, np.ndarray):
        labels, places, inverse = np.unique(values, return_index=True, return_inverse=True)
        own = np.empty(len(labels), np.int64)
        for at in np.argsort(places):
            own[at] = _code(labels[at], int(places[at]), table, firsts)
        codes = own[inverse.reshape(-1)]
    else:
        codes = [
            found
            if (found := _known(value, table)) is not None
            else _code(value, row, table, firsts)
            for row, value in enumerate(values)
        ]
    return CodedLabels(tuple(table), np.array(codes, np.int64), firsts)


def _known(value: Any, table: dict[Label, int]) -> int | None:
    return table.get(value) if type(value) in (str, int, bool) else None


def _code(value: Any, row: int, table: dict[Label, int], firsts: list[int]) -> int:
    label = class_label(value, row)
    if label not in table:
        if len(table) == MOST_CLASSES:
            raise ValueError(
                f"y at position {row} = {validation.shown(value)} would be class number "
                f"{MOST_CLASSES + 1}: at most {MOST_CLASSES} are expected; group rare classes"
            )
        table[label] = len(table)
        firsts.append(row)
    return table[label]


def label_values(y: Any) -> Any:
    """Return labels as an array of numbers, bools or text, or as a list of anything."""
    if isinstance(y, str | bytes | Mapping):
        raise ValueError(f"y is a {type(y).__name__}: a sequence of labels is expected")
    if not isinstance(y, np.ndarray | list | tuple):
        for name in ("to_pylist", "tolist", "to_list"):  # of pyarrow; of pandas; of polars
            convert = getattr(y, name, None)
            if callable(convert):
                return convert()
        y = list(y) if hasattr(y, "__iter__") else np.asarray(y)
    if isinstance(y, np.ndarray):
        if y.ndim == 2 and y.shape[1] == 1:
            y = y[:, 0]
        if y.ndim != 1:
            raise ValueError(f"y has shape {y.shape}: one dimension is expected")
        if y.dtype.kind == "f" and bool((np.isfinite(y) & (y == np.floor(y))).all()):
            return y.astype(np.int64) if bool((np.abs(y) < 2**53).all()) else y.tolist()
        return y if y.dtype.kind in "biuU" else y.tolist()
    return list(y)


def label_array(classes: tuple[Label, ...], codes: IntArray) -> NDArray[Any]:
    """Return the labels of some codes; -1 stands for None.

    Whole numbers are an array of int64, bools of bool; all else is an array of objects.
    """
    kinds = {type(label) for label in classes}
    if kinds and (codes >= 0).all():
        if kinds == {bool}:
            return np.array(classes, np.bool_)[codes]
        if kinds == {int} and all(-(2**63) <= int(label) < 2**63 for label in classes):
            return np.array(classes, np.int64)[codes]
    table = np.empty(len(classes) + 1, object)
    for place, label in enumerate(classes):
        table[place] = label
    return table[codes]
