"""Views of rows: the same rows without some columns, or with crosses of columns."""

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from sapwood import validation
from sapwood.hybrid.members import ManyRows
from sapwood.rows.encoded import marked_like
from sapwood.stages.rows import GivenRow, GivenRows
from sapwood.validation import Label

__all__ = ["View", "views_of"]

MOST_CROSSES = 64
CONSTANT = "(constant)"  # a column of rows that may have no other


class View(NamedTuple):
    """What a model gets of a row.

    Attributes
    ----------
    without : tuple
        The columns that are left out.
    crosses : tuple of pairs
        The columns whose values are joined to a category.
    """

    without: tuple[Label, ...] = ()
    crosses: tuple[tuple[Label, Label], ...] = ()

    def one(self, x: Any) -> Any:
        """Return a row as the model gets it.

        Examples
        --------
        >>> View(without=("lag",)).one({"shop": "a", "lag": 2.0})
        {'shop': 'a', '(constant)': 0.0}
        >>> View(crosses=(("shop", "day"),)).one({"shop": "a", "day": 3})
        {'shop': 'a', 'day': 3, 'shop & day': 'a & 3.0'}
        """
        own = {name: value for name, value in x.items() if name not in self.without}
        if self.without:
            own[CONSTANT] = 0.0
        for pair in self.crosses:
            own[name_of(pair)] = _joined(*(x.get(name) for name in pair))
        return marked_like(x, own)

    def many(self, rows: ManyRows) -> Any:
        """Return rows as the model gets them."""
        own = {name: col for name, col in rows.columns.items() if name not in self.without}
        if self.without:
            own[CONSTANT] = np.zeros(rows.count)
        for pair in self.crosses:
            values = [_values(rows.column(name), rows.count) for name in pair]
            own[name_of(pair)] = [_joined(a, b) for a, b in zip(*values, strict=True)]
        return marked_like(rows.columns, own)

    def of(self, rows: GivenRow | GivenRows) -> GivenRow | GivenRows:
        """Return a row, or rows, as the model gets them."""
        if isinstance(rows, GivenRow):
            return GivenRow(self.one(rows.x), rows.key)
        if isinstance(rows, ManyRows):
            return GivenRows(self.many(rows), rows.ids)
        return GivenRows([self.one(x) for x in rows.X], rows.ids)


def views_of(without: Iterable[Label], crosses: Iterable[Sequence[Label]]) -> tuple[View, ...]:
    """Return the views of all models, the one with most columns first.

    Raises
    ------
    ValueError
        If there is only one, or a cross is no pair.
    """
    left_out = _names(without, "without")
    if isinstance(crosses, str):
        raise ValueError(f"crosses = {validation.shown(crosses)}: a list of pairs is expected")
    pairs = []
    for pair in crosses:
        names = _names(pair, "a cross")
        if len(names) != 2 or names[0] == names[1]:
            raise ValueError(f"crosses has {validation.shown(pair)}: a pair of columns is expected")
        pairs.append((names[0], names[1]))
    if len(pairs) > MOST_CROSSES or len(set(pairs)) < len(pairs):
        raise ValueError(
            f"crosses has {len(pairs)} pairs: at most {MOST_CROSSES} are expected, each once"
        )
    if not left_out and not pairs:
        raise ValueError("name columns in without, or pairs of columns in crosses")
    found = [View(crosses=tuple(pairs))] if pairs else []
    return (*found, View(), *([View(without=left_out)] if left_out else []))


def name_of(pair: tuple[Label, Label]) -> str:
    """Return the name of a cross."""
    return f"{pair[0]} & {pair[1]}"


def _names(given: Any, name: str) -> tuple[Label, ...]:
    if isinstance(given, str):
        raise ValueError(f"{name} = {validation.shown(given)}: a list of columns is expected")
    return tuple(dict.fromkeys(map(validation.feature_name, given)))


def _values(column: Any, rows: int) -> list[Any]:
    if column is None:
        return [None] * rows
    return column.tolist() if isinstance(column, np.ndarray) else list(column)


def _joined(a: Any, b: Any) -> str | None:
    """Return both values as a category; None if one is missing."""
    first, second = _text(a), _text(b)
    return None if first is None or second is None else f"{first} & {second}"


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    try:
        number = float(value)
    except (TypeError, ValueError):
        return str(value)
    return None if math.isnan(number) else repr(number)
