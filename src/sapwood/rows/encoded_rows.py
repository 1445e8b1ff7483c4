"""Rows that were read: a matrix, and what the rows would add to the features."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sapwood import validation
from sapwood.rows.column import UNKNOWN, Column
from sapwood.validation import FloatArray, Label

if TYPE_CHECKING:
    from sapwood.rows.features import Features, KnownFeatures

__all__ = ["EncodedRows"]


class EncodedRows:
    """A matrix whose rows are good, and what they add to the features."""

    __slots__ = ("_before", "_columns", "_end", "_features", "is_complete", "matrix")

    def __init__(
        self,
        features: Features,
        before: KnownFeatures,
        matrix: FloatArray,
        columns: Sequence[Column] = (),
        end: int | None = None,
    ):
        self.matrix, self._end = matrix, end
        self.is_complete = False  # whether it is known that no value is missing
        self._features, self._before, self._columns = features, before, columns

    @property
    def before(self) -> KnownFeatures:
        """What was known when the rows were read."""
        return self._before

    def parts(self, limited: bool) -> Iterator[tuple[slice, bool, EncodedRows]]:
        """Yield the rows in parts, whether each is a turn, and what it adds to the features.

        At a turn a category becomes one of many, or may become one of ids: if rows arrived one by
        one, the first of the part would be predicted before that, and learned after it. Each part
        is to be committed before the next is requested.
        """
        if not self._columns:
            yield slice(0, None), False, self
            return
        starts = self.starts(limited)
        turns = {row for column in self._columns for row in column.turns}
        if starts == [0] and not turns:
            yield slice(0, None), False, self
            return
        ends: list[int | None] = [*starts[1:], None]
        later = [column.first_row for column in self._columns if column.first_row > 0]
        for start, end in zip(starts, ends, strict=True):
            before = self._before if start == 0 else self._features.known
            part, width = slice(start, end), self.matrix.shape[1]
            if end is not None:
                width -= sum(row >= end for row in later)
            matrix = np.ascontiguousarray(self.matrix[part, :width])
            own = EncodedRows(self._features, before, matrix, self._columns, end)
            own.is_complete = self.is_complete
            yield part, start in turns, own

    def starts(self, limited: bool) -> list[int]:
        """Return the first row of each part: rows with which something new has to be registered.

        That is a new feature, its first value, or a turn of a category; and where memory is limited
        every new label, as what names occupy decides on splits.
        """
        if not self._columns:
            return [0]
        rows = {0}
        for column in self._columns:
            rows |= {column.first_row, column.value_row}
            rows.update(column.fresh_rows if limited else column.turns)
        return sorted(rows)

    def for_features(self, features: Features) -> EncodedRows:
        """Return the same for equal features of another model."""
        rows = EncodedRows(features, features.known, self.matrix, self._columns, self._end)
        rows.is_complete = self.is_complete
        return rows

    def set_first_rows(self, rows: Sequence[Mapping[Any, Any]]) -> None:
        """Set which row brings each feature that is new, if the rows were read from dicts."""
        new = [column for column in self._columns if column.name not in self._before.index]
        if not new:
            return
        first: dict[Any, int] = {}
        for number, row in enumerate(rows):
            if not row.keys() <= first.keys():
                first = dict.fromkeys(row, number) | first
        names = {validation.feature_name(key): number for key, number in first.items()}
        for column in new:
            column.first_row = names.get(column.name, 0)  # 0: derived by a schema

    def fill(self, places: list[int], values: NDArray[Any]) -> None:
        """Set the values of some columns, which are derived from others."""
        if not self.matrix.flags.writeable:
            self.matrix = self.matrix.copy()
        self.matrix[:, places] = values

    def column_at(self, place: int) -> Column | None:
        """Return the column that was read for a place of the matrix, if there is one."""
        known = len(self._before.names)
        if place < known:
            name = self._before.names[place]
            return next((column for column in self._columns if column.name == name), None)
        return self._new()[place - known]

    def width_at(self, row: int) -> int:
        """Return how many columns there are once a row is learned."""
        return len(self._before.names) + sum(column.first_row <= row for column in self._new())

    def has_new(self, name: Label) -> bool:
        """Return whether a column of this name is new."""
        return any(column.name == name for column in self._new())

    def _new(self) -> list[Column]:
        """Return the columns that are new, in the order of the matrix."""
        return [column for column in self._columns if column.name not in self._before.index]

    def with_columns(self, added: Sequence[tuple[Column, FloatArray]]) -> EncodedRows:
        """Return the same rows with further columns; those that are new come by their first rows.

        - `added`: new columns with their first rows, and their values in all rows.
        """
        known, new = len(self._before.names), self._new()
        parts = [*zip(new, self.matrix[:, known:].T, strict=True), *added]
        parts.sort(key=lambda part: part[0].first_row)
        columns = [column for column in self._columns if column.name in self._before.index]
        return EncodedRows(
            self._features,
            self._before,
            np.column_stack([self.matrix[:, :known], *(values for _, values in parts)]),
            [*columns, *(column for column, _ in parts)],
            self._end,
        )

    def first_row_before(self) -> FloatArray:
        """Return the first row as it is predicted before anything new is registered."""
        kinds = self._before.kinds
        row = self.matrix[:1, : len(kinds)].copy()
        row[0, [place for place, kind in enumerate(kinds) if kind == UNKNOWN]] = np.nan
        return row

    @property
    def targets(self) -> tuple[Label, ...]:
        """The names of several targets that were known when the rows were read."""
        return self._before.targets

    def adds_nothing(self, targets: tuple[Label, ...]) -> bool:
        """Whether the rows bring no feature, category or target that is new."""
        return not self._columns and self.is_current() and targets == self._before.targets

    def is_current(self) -> bool:
        """Whether nothing was learned of the features since X was read."""
        return self._features.known is self._before

    def known(self, rows: float = math.inf, targets: tuple[Label, ...] = ()) -> KnownFeatures:
        """Return what is known of the features once these rows are learned.

        - `rows`: how many rows were learned before; by default it is not looked for ids.
        - `targets`: the names of several targets; none of one.
        - Raises RuntimeError if the features were changed since X was read: the matrix may lack
          columns then.
        """
        if not self.is_current():
            raise RuntimeError("the features changed while rows were read; read them again")
        before = self._before.and_targets(targets)
        return before.and_columns(self._columns, self._end, rows)

    def commit(self) -> None:
        """Register what is new, or raise as `known`."""
        self._features.known = self.known()
