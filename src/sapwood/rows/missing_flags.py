"""Features that the model derives itself: whether a number is missing.

A linear model takes the mean for a value that is missing. Where values are missing for a reason,
that loses the information in their absence. So a column of numbers that was missing in FLAG_ROWS rows and
present in as many, and neither in less than one in FLAG_SHARE + 1, gets a flag from the next row on:
a feature that is 1 where it is missing and 0 elsewhere. It is a term of linear models; no leaf
splits on it. Rows are counted from the first one on in which the column was missing, so that columns
that are never missing cost nothing. Beyond MOST_COLUMNS there are no further flags, as leaves would
no longer have room for all products of their terms.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sapwood.rows._dict_row import FLAG_ROWS, FLAG_SHARE, has_no_gap
from sapwood.rows.column import MISSING, NUMBER, Column
from sapwood.rows.encoder import EncodedRows
from sapwood.validation import FloatArray, Label

if TYPE_CHECKING:
    from sapwood.rows.features import Features, KnownFeatures

__all__ = [
    "FLAG_ROWS",
    "FLAG_SHARE",
    "are_allowed",
    "are_due",
    "checked_gaps",
    "completed",
    "counted",
    "flag_name",
    "flags_of",
    "gaps_header",
]

Counts = NDArray[np.int64]
MOST_ROWS = 2**53
LEAST_BYTES = 2**21  # of a limit of memory, for each tree of a model that has flags
MOST_COLUMNS = 39  # flags among them; with the constant they are SQUARE_TERMS of _records.pxd


def are_allowed(leaf: str, max_bytes: int | None, trees: int) -> bool:
    """Return whether a model has flags.

    Means of y do not read them, and a small limit of memory leaves no room for more columns.

    Examples
    --------
    >>> are_allowed("adaptive", 64 * 2**20, 11), are_allowed("adaptive", 2**20, 1)
    (True, False)
    >>> are_allowed("mean", None, 1)
    False
    """
    return leaf != "mean" and (max_bytes is None or max_bytes >= LEAST_BYTES * trees)


def flag_name(name: Label) -> str:
    """Return what the flag of a column is called.

    Examples
    --------
    >>> flag_name("age"), flag_name(3)
    ('age is missing', '3 is missing')
    """
    return f"{name} is missing"


def flags_of(names: Sequence[Label], kinds: Sequence[str]) -> dict[int, int]:
    """Return the place of each flag, and that of the column that it belongs to.

    - Raises ValueError if there is no such column.

    Examples
    --------
    >>> flags_of(["age", "colour", "age is missing"], ["number", "category", "missing"])
    {2: 0}
    """
    if MISSING not in kinds:
        return {}
    owners = {
        flag_name(name): place
        for place, (name, kind) in enumerate(zip(names, kinds, strict=True))
        if kind == NUMBER
    }
    flags = [place for place, kind in enumerate(kinds) if kind == MISSING]
    for place in flags:
        if names[place] not in owners:
            raise ValueError(f"{names[place]!r} is a flag of no column")
    return {place: owners[str(names[place])] for place in flags}


def completed(features: Features, plan: EncodedRows, learn: bool) -> EncodedRows:
    """Return rows with the values of flags, and with the flags that become due in them."""
    flags = plan.before.flags  # another thread may have added one meanwhile
    if flags and len(plan.matrix):
        plan.fill(list(flags), np.isnan(plan.matrix[:, list(flags.values())]))
    if not learn or not len(plan.matrix):
        return plan
    plan.is_complete = not features.any_gaps and (plan.is_complete or has_no_gap(plan.matrix))
    if plan.is_complete:
        return plan
    due = _due(features, plan)
    return plan.with_columns(due) if due else plan


def _due(features: Features, plan: EncodedRows) -> list[tuple[Column, FloatArray]]:
    """Return the flags that become due in rows, and their values."""
    is_missing = np.isnan(plan.matrix)
    known, found = features.known, list[tuple[Column, FloatArray]]()
    for row, place in sorted(_rows_of_flags(features, plan, is_missing)):
        column = plan.column_at(place)
        name = flag_name(known.names[place] if column is None else column.name)
        if plan.has_new(name) or not _may_have(
            features, known, name, plan.width_at(row) + len(found)
        ):
            continue
        flag = features._column(name, True)
        flag.kind, flag.first_row = MISSING, row
        found.append((flag, is_missing[:, place].astype(np.float64)))
    return found


def _rows_of_flags(
    features: Features, plan: EncodedRows, is_missing: NDArray[np.bool_]
) -> Iterator[tuple[int, int]]:
    """Yield from which row on a column should have a flag, and the place of the column."""
    counts, known = features.gaps, features.known
    for place in _open(counts, is_missing):
        column = plan.column_at(place)
        if (known.kinds[place] if column is None else column.kind) != NUMBER:
            continue
        was_number = place < len(known.names) and known.kinds[place] == NUMBER
        start = 0 if was_number or column is None else column.value_row
        before = counts[place, :2] if place < len(counts) else np.zeros(2, np.int64)
        reached = _is_due(_running(is_missing[start:, place], before))
        if _is_due(before):
            yield 0, place
        elif reached[:-1].any():
            yield start + int(np.argmax(reached)) + 1, place


def _open(counts: Counts, is_missing: NDArray[np.bool_]) -> list[int]:
    """Return the places of columns whose values are to be counted."""
    places = np.flatnonzero(is_missing.any(axis=0))
    if len(counts):
        places = np.union1d(places, np.flatnonzero(counts[:, 0] > 0))
        places = places[~np.isin(places, np.flatnonzero(counts[:, 2]))]
    found: list[int] = places.tolist()
    return found


def _may_have(features: Features, known: KnownFeatures, flag: str, width: int) -> bool:
    """Return whether there may be a flag: its name is free, and there is room for it."""
    return flag not in known.index and flag not in features.categorical and width < MOST_COLUMNS


def _is_due(counts: Counts) -> NDArray[np.bool_]:
    """Return whether values were missing and present often enough for a flag."""
    least, most = np.minimum(counts[..., 0], counts[..., 1]), np.max(counts, axis=-1)
    due: NDArray[np.bool_] = (least >= FLAG_ROWS) & (FLAG_SHARE * least >= most)
    return due


def _running(is_missing: NDArray[np.bool_], before: Counts) -> Counts:
    """Return how many values were missing and present by the end of each row."""
    missing = before[0] + np.cumsum(is_missing)
    present = before[1] + np.cumsum(~is_missing & (missing > 0))
    return np.column_stack([missing, present])


def counted(features: Features, known: KnownFeatures, matrix: FloatArray) -> Counts | None:
    """Return the counts once rows are learned, as `RowReader.count_gaps` counts one; None as before.

    - `features`, `known`: by which the rows were read, and what is known of them with the first of
      these.
    """
    is_missing = np.isnan(matrix)
    places = _open(features.gaps, is_missing)
    if not places:
        return None
    counts = np.zeros((len(known.names), 3), np.int64)
    counts[: len(features.gaps)] = features.gaps
    for place in places:
        if known.kinds[place] == NUMBER:
            running = _running(is_missing[:, place], counts[place, :2])
            is_reached = bool(_is_due(running).any())
            counts[place, :2] = FLAG_ROWS if is_reached else running[-1]
    return _settled(counts, features, known)


def _settled(counts: Counts, features: Features, known: KnownFeatures) -> Counts:
    """Let values count no more for columns that have a flag, or are to have one and cannot."""
    for owner in known.flags.values():
        counts[owner] = 0, 0, 1
    for place in np.flatnonzero(_is_due(counts[:, :2])).tolist():
        may_have = _may_have(features, known, flag_name(known.names[place]), len(known.names))
        counts[place] = FLAG_ROWS, FLAG_ROWS, not may_have
    return counts


def are_due(counts: Counts) -> bool:
    """Return whether a column is to get a flag."""
    return bool((_is_due(counts[:, :2]) & (counts[:, 2] == 0)).any())


def checked_gaps(header: Any, features: Features) -> NDArray[np.int64]:
    """Return the counts of a header, a list for each column that was missing; nothing is trusted.

    - Raises ValueError if there is anything wrong with them.
    """
    known = features.known
    counts = np.zeros((len(known.names), 3), np.int64)
    good = type(header) is list and all(type(each) is list and len(each) == 3 for each in header)
    good = good and all(type(each) is int for entry in header for each in entry)
    places = [entry[0] for entry in header] if good else []
    good = good and all(0 <= place < len(counts) for place in places)
    good = good and sorted(set(places)) == places
    good = good and all(known.kinds[place] == NUMBER for place in places)
    good = good and not {*known.flags.values()} & {*places}
    good = good and all(0 < each[1] <= MOST_ROWS and 0 <= each[2] <= MOST_ROWS for each in header)
    if not good:
        raise ValueError("the counts of missing values are wrong")
    for place, *own in header:
        counts[place, :2] = own
    return _settled(counts, features, known)


def gaps_header(features: Features) -> list[list[int]]:
    """Return the counts of columns that were missing, in terms of JSON."""
    counts = features.gaps[:, :2].copy()
    counts[_is_due(counts)] = FLAG_ROWS  # by how much they exceed that does not matter
    return [[place, *counts[place].tolist()] for place in np.flatnonzero(counts[:, 0]).tolist()]
