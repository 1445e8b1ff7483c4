"""Rows that a schema has encoded already: it passes them on as they are."""

from typing import Any

__all__ = ["EncodedColumns", "EncodedRow", "marked_like"]


class EncodedRow(dict[Any, Any]):
    """One row whose values are features: numbers and labels, and None for what is missing."""

    __slots__ = ()


class EncodedColumns(dict[Any, Any]):
    """Columns whose values are features: arrays of numbers, and labels."""

    __slots__ = ()


def marked_like(rows: Any, made: dict[Any, Any]) -> dict[Any, Any]:
    """Return what was made of rows with the mark that these have.

    Examples
    --------
    >>> type(marked_like(EncodedRow(a=1), {"a": 1, "b": 2})).__name__, marked_like({}, {"a": 1})
    ('EncodedRow', {'a': 1})
    """
    for kind in (EncodedRow, EncodedColumns):
        if isinstance(rows, kind):
            return kind(made)
    return made
