"""Views of rows: the same rows without some columns, or with crosses of columns.

A cross joins the values of two columns to a category. With a size, both are numbers, and the category
is the cell of a grid that they are in.
"""

import math
import numbers
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from sapwood import validation
from sapwood.hybrid.members import ManyRows
from sapwood.rows.encoded import marked_like
from sapwood.stages.rows import GivenRow, GivenRows
from sapwood.validation import Label

__all__ = ["Cross", "View", "views_of"]

Cross = tuple[Label, Label] | tuple[Label, Label, float]

MOST_CROSSES = 64
CONSTANT = "(constant)"  # a column of rows that may have no other


class View(NamedTuple):
    """What a model gets of a row.

    Attributes
    ----------
    without : tuple
        The columns that are left out.
    crosses : tuple of pairs, or of triples
        The columns whose values are joined to a category, and the size of the cells of numbers.
    """

    without: tuple[Label, ...] = ()
    crosses: tuple[Cross, ...] = ()

    def one(self, x: Any) -> Any:
        """Return a row as the model gets it.

        Examples
        --------
        >>> View(without=("lag",)).one({"shop": "a", "lag": 2.0})
        {'shop': 'a', '(constant)': 0.0}
        >>> View(crosses=(("shop", "day"),)).one({"shop": "a", "day": 3})
        {'shop': 'a', 'day': 3, 'shop & day': 'a & 3.0'}
        >>> View(crosses=(("x", "y", 0.5),)).one({"x": 1.7, "y": -0.1})
        {'x': 1.7, 'y': -0.1, 'x & y by 0.5': '3 & -1'}
        """
        own = {name: value for name, value in x.items() if name not in self.without}
        if self.without:
            own[CONSTANT] = 0.0
        for cross in self.crosses:
            own[name_of(cross)] = _joined(*(x.get(name) for name in cross[:2]), *cross[2:])
        return marked_like(x, own)

    def many(self, rows: ManyRows) -> Any:
        """Return rows as the model gets them."""
        own = {name: col for name, col in rows.columns.items() if name not in self.without}
        if self.without:
            own[CONSTANT] = np.zeros(rows.count)
        for cross in self.crosses:
            values = [_values(rows.column(name), rows.count) for name in cross[:2]]
            joined = [_joined(a, b, *cross[2:]) for a, b in zip(*values, strict=True)]
            own[name_of(cross)] = joined
        return marked_like(rows.columns, own)

    def of(self, rows: GivenRow | GivenRows) -> GivenRow | GivenRows:
        """Return a row, or rows, as the model gets them."""
        if isinstance(rows, GivenRow):
            return GivenRow(self.one(rows.x), rows.key)
        if isinstance(rows, ManyRows):
            return ManyRows(self.many(rows), rows.count, rows.ids)
        return GivenRows([self.one(x) for x in rows.X], rows.ids)


def views_of(without: Iterable[Label], crosses: Iterable[Any]) -> tuple[View, ...]:
    """Return the views of all models, the one with most columns first.

    Raises
    ------
    ValueError
        If there is only one, or a cross is no pair.
    """
    left_out = _names(without, "without")
    if isinstance(crosses, str):
        raise ValueError(f"crosses = {validation.shown(crosses)}: a list of pairs is expected")
    pairs = [_cross(given) for given in crosses]
    if len(pairs) > MOST_CROSSES or len(set(pairs)) < len(pairs):
        raise ValueError(
            f"crosses has {len(pairs)} pairs: at most {MOST_CROSSES} are expected, each once"
        )
    if not left_out and not pairs:
        raise ValueError("name columns in without, or pairs of columns in crosses")
    found = [View(crosses=tuple(pairs))] if pairs else []
    return (*found, View(), *([View(without=left_out)] if left_out else []))


def _cross(given: Any) -> Cross:
    """Return a cross, if it is a pair of columns, with a size or without."""
    has_size = (
        isinstance(given, tuple | list) and len(given) == 3 and isinstance(given[2], numbers.Real)
    )
    size = float(given[2]) if has_size else 1.0
    names = _names(given[:2] if has_size else given, "a cross")
    if len(names) != 2 or names[0] == names[1] or not 0.0 < size < math.inf:
        raise ValueError(
            f"crosses has {validation.shown(given)}: a pair of columns is expected, or a pair of "
            "numeric columns and the size of cells, a number above 0"
        )
    return (names[0], names[1], size) if has_size else (names[0], names[1])


def name_of(cross: Cross) -> str:
    """Return the name of a cross."""
    size = f" by {cross[2]:g}" if len(cross) == 3 else ""
    return f"{cross[0]} & {cross[1]}{size}"


def _names(given: Any, name: str) -> tuple[Label, ...]:
    if isinstance(given, str):
        raise ValueError(f"{name} = {validation.shown(given)}: a list of columns is expected")
    return tuple(dict.fromkeys(map(validation.feature_name, given)))


def _values(column: Any, rows: int) -> list[Any]:
    if column is None:
        return [None] * rows
    return column.tolist() if isinstance(column, np.ndarray) else list(column)


def _joined(a: Any, b: Any, size: float | None = None) -> str | None:
    """Return both values, or the cells that they are in, as a category; None if one is missing."""
    first, second = (_text(each) if size is None else _cell(each, size) for each in (a, b))
    return None if first is None or second is None else f"{first} & {second}"


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    try:
        number = float(value)
    except (TypeError, ValueError):
        return str(value)
    return None if math.isnan(number) else repr(number)


def _cell(value: Any, size: float) -> str | None:
    """Return the number of the cell that a number is in; None of what is no finite number."""
    try:
        place = float(value) / size
    except (TypeError, ValueError):
        return None
    return str(math.floor(place)) if math.isfinite(place) else None
