"""What is known of features at one moment: names, kinds, and the codes of labels."""

import math
import sys
from collections.abc import Iterable, Sequence
from itertools import islice

from sapwood.rows import missing_flags
from sapwood.rows.column import (
    IDENTIFIER,
    IDS,
    OTHERS,
    Column,
    ids_at,
    places_of,
)
from sapwood.rows.encoder import MAX_FEATURES
from sapwood.validation import Label

__all__ = ["KnownFeatures"]

# IDS labels are those of ids if at least this share of the rows brought a new one.
NEW_SHARE = 0.99
PLACE = 8  # bytes of an attribute
SHARED_INTS = 257  # from 0 on, Python keeps but one of each


class KnownFeatures:
    """What is known of features at one moment; it never changes.

    The labels of a category of many are in a dict that later moments share: it only grows, and
    of it the first ones count, as many as there were at this moment. So a moment that never comes
    about leaves no trace but in the dict, which the next caller then copies.

    - `names`, `index`, `kinds`: as those of `Features`.
    - `tables`: the code of each label, and perhaps of labels that arrive later, or never.
    - `counts`: how many of the labels in each table count, from the first on.
    - `targets`: the names of the columns of y, if there are several; none if there is one, or none
      yet.
    - `content_bytes`: Bytes of names, twice, and of labels. For the row reader holds on to the keys
      by which rows last named the features, which may be strings of their own.
    """

    __slots__ = (
        "_flags",
        "content_bytes",
        "counts",
        "index",
        "kinds",
        "names",
        "tables",
        "targets",
        "version",
    )

    def __init__(self) -> None:
        self.names: list[Label] = []
        self.index: dict[Label, int] = {}
        self.kinds: list[str] = []
        self.tables: list[dict[Label, int]] = []
        self.counts: list[int] = []
        self.targets: tuple[Label, ...] = ()
        self.version = 0
        self.content_bytes = 0
        self._flags: dict[int, int] | None = None

    def and_columns(
        self, columns: Sequence[Column], before: int | None = None, rows: float = math.inf
    ) -> "KnownFeatures":
        """Return what is known once some columns are learned: itself if they bring nothing new.

        - `before`: only what they bring before this row is learned.
        - `rows`: how many rows were learned before them; by default it is not looked for ids.
        """
        news = [
            (column, fresh)
            for column in columns
            if column.learn and self._is_news(column, fresh := self._fresh(column, before), before)
        ]
        if not news:
            return self
        known = self._copy()
        for column, fresh in news:
            place = known.index.get(column.name)
            if place is None:
                known.add(column.name, column.kind_before(before), {})
                place = known.index[column.name]
            else:
                known.kinds[place] = column.kind_before(before)
                known.version += 1
            known._add_labels(place, fresh)
            wanted = ids_at(column.most)
            if known.counts[place] >= wanted > self._count(column) and _are_ids(wanted, rows + 1):
                known._forget_labels(place)
        return known

    def and_targets(self, targets: tuple[Label, ...]) -> "KnownFeatures":
        """Return what is known once y has these columns: itself if that is no news."""
        if targets == self.targets:
            return self
        known = self._copy()
        known.targets = targets
        known.content_bytes += sys.getsizeof(targets) + sum(map(sys.getsizeof, targets))
        known.version += 1
        return known

    def _copy(self) -> "KnownFeatures":
        known = KnownFeatures()
        known.names, known.index = list(self.names), dict(self.index)
        known.kinds, known.tables, known.counts = [*self.kinds], [*self.tables], [*self.counts]
        known.targets = self.targets
        known.version, known.content_bytes = self.version, self.content_bytes
        return known

    def _count(self, column: Column) -> int:
        place = self.index.get(column.name)
        return 0 if place is None else self.counts[place]

    def _fresh(self, column: Column, before: int | None) -> dict[Label, int]:
        """Return the labels of a column that are new here, and come before a row."""
        return column.fresh_before(before, self._count(column))

    def _is_news(self, column: Column, fresh: dict[Label, int], before: int | None) -> bool:
        place = self.index.get(column.name)
        if place is None:
            return before is None or column.first_row < before
        if self.kinds[place] == IDENTIFIER:  # since the column was read
            return False
        return bool(fresh) or column.kind_before(before) != self.kinds[place]

    def _add_labels(self, place: int, fresh: dict[Label, int]) -> None:
        """Add labels of a feature; only while nobody else sees this object."""
        table, count = self.tables[place], self.counts[place]
        total = count + len(fresh)
        if total <= OTHERS or len(table) != count:
            table = dict(islice(table.items(), count))
        self.content_bytes += _dict_bytes(total) - _dict_bytes(count) + _bytes_of(fresh)
        table.update(fresh)
        self.tables[place], self.counts[place] = table, total

    def _forget_labels(self, place: int) -> None:
        """Let a feature be one of ids; only while nobody else sees this object."""
        labels = islice(self.tables[place], self.counts[place])
        self.content_bytes += _dict_bytes(0) - _dict_bytes(self.counts[place]) - _bytes_of(labels)
        self.kinds[place], self.tables[place], self.counts[place] = IDENTIFIER, {}, 0

    def add(self, name: Label, kind: str, labels: dict[Label, int]) -> None:
        """Add a feature; only while nobody else sees this object."""
        self.index[name] = len(self.names)
        self.names.append(name)
        self.kinds.append(kind)
        self.tables.append(labels)
        self.counts.append(len(labels))
        self.content_bytes += 2 * sys.getsizeof(name) + _dict_bytes(len(labels)) + _bytes_of(labels)
        self.version += 1

    @property
    def flags(self) -> dict[int, int]:
        """The places of flags of missing values, and those of the columns that they belong to."""
        if self._flags is None:
            self._flags = missing_flags.flags_of(self.names, self.kinds)
        return self._flags

    @property
    def given(self) -> list[Label]:
        """The names of the features that rows bring: all but flags of missing values."""
        if not self.flags:
            return self.names
        return [name for place, name in enumerate(self.names) if place not in self.flags]

    @property
    def kinds_given(self) -> dict[Label, str]:
        """The kind of each feature that rows bring."""
        kinds = dict(zip(self.names, self.kinds, strict=True))
        return {name: kinds[name] for name in self.given}

    @property
    def categories(self) -> list[dict[Label, int]]:
        """The code of each label; not to be changed."""
        return [
            table if len(table) == count else dict(islice(table.items(), count))
            for table, count in zip(self.tables, self.counts, strict=True)
        ]

    def places(self, most: int) -> list[int]:
        """Return for how many codes each category of many needs places; -1 for other features.

        - `most`: how many labels may have codes of their own.
        """
        return [
            places_of(kind, count, most)
            for kind, count in zip(self.kinds, self.counts, strict=True)
        ]

    @property
    def nbytes(self) -> int:
        """Bytes that all names, labels and tables occupy, at the most; whatever led here."""
        count = len(self.names)
        places = max(0, count - SHARED_INTS) * sys.getsizeof(MAX_FEATURES)
        lists = 4 * (sys.getsizeof([]) + 8 * (count + count // 8 + 6))
        # Without several targets their place does not count, as in files of before.
        # Nor does what flags are found by.
        own = sys.getsizeof(self) - PLACE - (0 if self.targets else PLACE)
        return self.content_bytes + places + lists + _dict_bytes(count) + own


def _are_ids(labels: int, rows: float) -> bool:
    """Whether so many labels in so many rows are ids.

    The fewer labels there are, the fewer repeat by chance: as many equally likely ones are ids
    however many of them are looked at.
    """
    return (1 - (1 - NEW_SHARE) * labels / IDS) * rows <= labels


def _bytes_of(labels: Iterable[Label]) -> int:
    return sum(map(sys.getsizeof, labels))


def _dict_bytes(entries: int) -> int:
    """Return what a dict of so many entries occupies at the most, in whatever order it grew.

    It has up to three times as many places, a power of two of them, each with up to four bytes,
    and room for two thirds as many entries.
    """
    places = 8
    while places < 3 * entries:
        places *= 2
    return sys.getsizeof({}) + 40 + places * (1 if places <= 256 else 4) + 16 * places
