"""The rules of memory: what a tree occupies, and which of its leaves may watch.

They are stated here, once; `sapwood/tree/_memory.pyx` applies them. Bytes are counted by rules that
depend on nothing but what a file keeps, so that a tree that was loaded takes the same decisions as
the one that was saved. They are never too few. `max_bytes` holds between two rows; only while new
features are laid in, the old pages and the new ones are there side by side.

When memory is full, leaves are ranked by how much they recently add to the squared error of the
tree. Those that promise least stop watching, which they need for splits.
"""

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.corrector._pending import PendingPredictions, pending_bytes
from sapwood.observers.quantizer import QuantizerObserver
from sapwood.rows.features import CATEGORY, MISSING, Features, KnownFeatures
from sapwood.tree import _memory
from sapwood.tree._kernel import PENDING_DOUBLES
from sapwood.tree._schema_migration import TreeMigration
from sapwood.tree._tables import TreeTables
from sapwood.tree._targets import pending_size
from sapwood.tree.leaf_observers import LeafObservers
from sapwood.validation import Label

__all__ = [
    "LEAST_BYTES",
    "RULES",
    "ColumnKinds",
    "MemoryRules",
    "bytes_of_names",
    "column_kinds",
    "has_room",
    "may_split",
    "most_pending",
    "most_splits",
    "name_bytes",
    "new_pending",
    "relay",
]

ColumnKinds = tuple[NDArray[np.bool_], NDArray[np.intp]]  # as `column_kinds` returns them

# What a tree may occupy has to be at least this, which is more than it does without a feature.
LEAST_BYTES = 16_384
# The objects that every tree has.
FIXED_BYTES = 6_784
# Bytes of a feature in the reader and in its statistics; and those of the name of a new feature.
FEATURE_BYTES = 624
NAME_BYTES = 320
# An element of an observer of two targets: key and row; and its place in an index, at most three
# fifths and at least three tenths full, or in a search tree.
ELEMENT_BYTES, INDEX_BYTES, LINK_BYTES = 72, 14, 8

# How many predictions are remembered until their labels come; where memory is limited, as many as
# take this share of it.
MOST_PENDING, SHARE = 2_048, 1 / 16

RULES = np.dtype(
    [
        ("max_bytes", np.int64),  # 0 if there is no limit
        ("fixed_bytes", np.int64),
        ("page_overhead", np.int64),
        ("feature_bytes", np.int64),
        ("empty_observer", np.int64),
        ("element_bytes", np.int64),
        ("few_rows", np.float64),
        ("share_after_ranking", np.float64),
        ("rows_between_rankings", np.float64),
        ("least_free", np.float64),
        ("free_after_ranking", np.float64),
        ("rows_without_observers", np.float64),
    ]
)
"""The rules as kernels read them: MemoryRules of `sapwood/tree/_records.pxd`."""


@dataclass(frozen=True, slots=True)
class MemoryRules:
    """The limits of memory that follow from `max_bytes` of a tree and a few constants.

    Parameters
    ----------
    max_bytes : int
        What the tree may occupy; 0 if there is no limit.
    empty_observer, element_bytes : int
        The bytes of an observer that has seen nothing, and of each of its elements.
    fixed_bytes : int
        The objects that every tree has: itself, its parts, their lists, and empty tables; and the
        names of features that it does not split on.
    page_overhead : int
        The bytes of a page besides its doubles.
    feature_bytes : int
        What a feature takes in the reader, and by what is known of it.
    few_rows : float
        What a leaf is taken to have seen before it was ever ranked.
    share_after_ranking : float
        The best leaves may fill this share of the memory with pages.
    rows_between_rankings : float
        Leaves are also ranked after so many rows, if some do not watch.
    least_free, free_after_ranking : float
        Leaves with observers are ranked when less than the first share is free, and leave the
        second.
    rows_without_observers : float
        Where there is not even room for observers to see one row, so many are learned without.
    """

    max_bytes: int
    empty_observer: int
    element_bytes: int
    fixed_bytes: int = FIXED_BYTES
    page_overhead: int = 160
    feature_bytes: int = FEATURE_BYTES
    few_rows: float = 10.0
    share_after_ranking: float = 0.9
    rows_between_rankings: float = 50_000.0
    least_free: float = 1 / 16
    free_after_ranking: float = 1 / 4
    rows_without_observers: float = 1_000.0

    @classmethod
    def of(
        cls, max_bytes: int | None, observing: LeafObservers, no_splits: tuple[Label, ...] = ()
    ) -> "MemoryRules":
        """Return the rules for a limit, or for none.

        Parameters
        ----------
        max_bytes : int, optional
            What the tree may occupy.
        observing : LeafObservers
            By what its leaves watch.
        no_splits : tuple of str or int
            Names that it keeps.

        Raises
        ------
        ValueError
            If the limit is below what every tree needs.
        """
        if max_bytes is not None and max_bytes < LEAST_BYTES:
            raise ValueError(
                f"max_bytes = {max_bytes}: at least {LEAST_BYTES} are expected, as a tree needs "
                "them before it has learned anything"
            )
        indexed = isinstance(observing.model, QuantizerObserver)
        return cls(
            max_bytes or 0,
            observing.fresh(1)[0].nbytes if observing.by_observers else 0,
            ELEMENT_BYTES + (INDEX_BYTES if indexed else LINK_BYTES),
            FIXED_BYTES + bytes_of_names(no_splits),
        )

    def to_record(self) -> Any:
        """Return the rules as kernels read them."""
        return np.array(tuple(getattr(self, name) for name in RULES.names or ()), dtype=RULES)


def relay(
    tables: TreeTables,
    features: Features,
    known: KnownFeatures,
    names: int | None = None,
    columns: ColumnKinds | None = None,
) -> TreeMigration:
    """Return what a tree becomes once more is known of its features.

    Parameters
    ----------
    tables : TreeTables
        Of the tree.
    features, known
        By which its rows are read, and what will be known of them.
    names : int, optional
        What counts for their names; what they will occupy by default.
    columns : tuple of arrays, optional
        What `column_kinds` returns, where it is known.

    Raises
    ------
    ValueError
        If `max_bytes` has no room for it.
    """
    if columns is None:
        columns = column_kinds(features, known)
    if names is None:
        names = name_bytes(features, known)
    targets = max(1, len(known.targets))
    is_category, places = columns
    if tables.max_bytes and _memory.has_room_for_names(
        tables, is_category.view(np.uint8), places, names, targets
    ):
        return TreeMigration(tables, is_category, places, names, None, targets)
    pending = None
    if targets != tables.targets and tables.tracking:
        pending = new_pending(tables.max_bytes, targets)
    stopping, keeps_trial = np.zeros(tables.leaf_count, dtype=np.bool_), True
    if tables.max_bytes:
        sizes = _sizes(tables, columns, names, targets, pending)
        stopping, keeps_trial = _memory.leaves_without_room(tables, *columns, *sizes)
    allowed = may_split(tables.no_splits, known)
    return TreeMigration(tables, *columns, names, stopping, targets, pending, allowed, keeps_trial)


def has_room(
    tables: TreeTables,
    features: Features,
    known: KnownFeatures,
    splits: int,
    names: int | None = None,
) -> bool:
    """Return whether there is room for more features and labels, even after so many splits.

    Parameters
    ----------
    tables, features, known, names
        As for `relay`.
    splits : int
        That rows may make until all of it is known, see `most_splits`.
    """
    if not tables.max_bytes:
        return True
    columns, targets = column_kinds(features, known), max(1, len(known.targets))
    if names is None:
        names = name_bytes(features, known)
    pending = new_pending(tables.max_bytes, targets) if tables.tracking else None
    sizes = _sizes(tables, columns, names, targets, pending)
    return _memory.has_room_to_grow(tables, *columns, *sizes, splits)


def most_splits(tables: TreeTables, rows: int, weight: float) -> int:
    """Return how many splits rows can make at most.

    Each takes a row, and a grace period of weight in its leaf, of which leaves may have all but a
    little already.

    Parameters
    ----------
    tables : TreeTables
        Of the tree.
    rows, weight
        That are learned, and what they weigh together.
    """
    return int(min(rows, tables.leaf_count + weight / tables.grace_period + 1))


def column_kinds(features: Features, known: KnownFeatures) -> ColumnKinds:
    """Return for each feature whether it is a low-cardinality category, and its places.

    Parameters
    ----------
    features, known
        By which rows are read, and what is known of them.
    """
    places = np.array(known.places(features.most_labels), dtype=np.intp)
    is_category = np.array([kind == CATEGORY for kind in known.kinds], dtype=np.bool_)
    return is_category & (places < 0), places


def may_split(no_splits: tuple[Label, ...], known: KnownFeatures) -> NDArray[np.bool_]:
    """Return of each feature that is known whether leaves may split on it."""
    return np.array(
        [
            name not in no_splits and kind != MISSING
            for name, kind in zip(known.names, known.kinds, strict=True)
        ],
        dtype=np.bool_,
    )


def new_pending(max_bytes: int | None, targets: int) -> PendingPredictions:
    """Return the store of predictions of so many targets until their labels come."""
    width = pending_size(targets) if targets > 1 else PENDING_DOUBLES
    return PendingPredictions(width, most_pending(max_bytes, width))


def most_pending(max_bytes: int | None, doubles: int = PENDING_DOUBLES) -> int:
    """Return how many predictions are remembered until their labels come: a power of 2.

    Parameters
    ----------
    max_bytes : int, optional
        What the model may occupy.
    doubles : int
        Of a pending prediction; by default, of that of a tree.
    """
    pending = MOST_PENDING
    while max_bytes and pending > 1 and pending * pending_bytes(doubles) > SHARE * max_bytes:
        pending //= 2
    return pending


def bytes_of_names(no_splits: tuple[Label, ...]) -> int:
    """Return what the names of features that no leaf splits on occupy."""
    return sum(map(sys.getsizeof, (no_splits, *no_splits))) if no_splits else 0


def name_bytes(features: Features, known: KnownFeatures) -> int:
    """Return what the names of features and categories occupy."""
    return features.nbytes - features.known.nbytes + known.nbytes


def _sizes(
    tables: TreeTables,
    columns: ColumnKinds,
    names: int,
    targets: int,
    pending: PendingPredictions | None,
) -> tuple[int, int, int, int]:
    """Return bytes of names, of new features, the number of targets, bytes of predictions."""
    new = len(columns[0]) - tables.features
    pending_bytes = pending.most * pending.place_bytes if pending is not None else 0
    return names, new * (FEATURE_BYTES + NAME_BYTES), targets, pending_bytes
