"""How much a tree occupies, and which of its leaves may watch.

Bytes are counted by rules that depend on nothing but what a file keeps, so that a tree that was
loaded takes the same decisions as the one that was saved. They are never too few.
"""

import sys
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.observers.quantizer import QuantizerObserver
from sapwood.tree import build
from sapwood.tree._kernel import TreeKernel
from sapwood.tree.features import Features
from sapwood.tree.observing import Observing
from sapwood.tree.tables import ERRORS, LEAF_RECORD, NODE_RECORD

__all__ = ["Memory"]

IntArray = NDArray[np.int64]

# What a tree may occupy has to be at least this, which is more than it does without a feature.
LEAST_BYTES = 16_384
# The objects that every tree has: itself, its parts, their lists, and empty tables.
FIXED_BYTES = 5_120
# A page is an array of its own: its object, and its places in lists.
PAGE_OVERHEAD = 160
# A leaf has so many pointers in tables and lists.
LEAF_POINTERS = 7 * 8
# What a feature takes in the reader and in the buffers of the kernel; and a new one, by its name.
FEATURE_BYTES = 96
NAME_BYTES = 320
# An element of an observer of two targets: key and row; and its place in an index, at most three
# fifths and at least three tenths full, or in a search tree.
ELEMENT_BYTES, INDEX_BYTES, LINK_BYTES = 72, 14, 8

# What a leaf is taken to have seen before it was ever ranked.
FEW_ROWS = 10
# When memory is full, leaves are ranked, and the best may fill this share of it with pages.
SHARE_AFTER_RANKING = 0.9
# Leaves are also ranked after so many rows, if some do not watch.
ROWS_BETWEEN_RANKINGS = 50_000
# Leaves with observers are ranked when less than the first share is free, and leave the second.
LEAST_FREE, FREE_AFTER_RANKING = 1 / 16, 1 / 4
# Where there is not even room for observers to see one row, so many rows are learned without.
ROWS_WITHOUT_OBSERVERS = 1_000


class Memory:
    """The rules of memory: what the parameter `max_bytes` of the tree says.

    Slots are counted when pages come and go. Observers also grow in between: they are measured
    after so many rows that they cannot have become too large before.

    Parameters
    ----------
    max_bytes : int or None
        What the tree may occupy.
    kernel, observing, features
        Of the tree.

    Attributes
    ----------
    ranked_at : float
        How many rows had been learned when leaves were last ranked.
    measure_at : float
        With how many rows observers have to be measured again.
    bound : float
        Bytes that the tree cannot exceed before that.
    """

    def __init__(
        self, max_bytes: int | None, kernel: TreeKernel, observing: Observing, features: Features
    ) -> None:
        if max_bytes is not None and max_bytes < LEAST_BYTES:
            raise ValueError(
                f"max_bytes = {max_bytes}: at least {LEAST_BYTES} are expected, as a tree needs "
                "them before it has learned anything"
            )
        self.max_bytes = max_bytes
        self.kernel = kernel
        self.observing = observing
        self.features = features
        self.ranked_at = 0.0
        self.measure_at = 0.0
        self.bound = 0.0
        self._empty_observer = observing.fresh(1)[0].nbytes if observing.by_observers else 0
        indexed = isinstance(observing.model, QuantizerObserver)
        self._element = ELEMENT_BYTES + (INDEX_BYTES if indexed else LINK_BYTES)

    # -- how much there is --------------------------------------------------------------------

    @property
    def nbytes(self) -> int:
        """Bytes of all tables, pages, observers and names."""
        return self._rest_bytes() + int(self._watch_bytes(self._counts()).sum())

    def _rest_bytes(self) -> int:
        """Return the bytes of all but what leaves watch by."""
        kernel = self.kernel
        arrays = (kernel.node_table, kernel.leaf_table, kernel.level_table, kernel.track_table)
        tables = kernel.buffer_bytes + sum(array.nbytes for array in arrays)
        names = self.features.nbytes + FEATURE_BYTES * kernel.features
        return FIXED_BYTES + tables + names + kernel.leaf_count * self._model_bytes()

    def _model_bytes(self) -> int:
        return 8 * self.kernel.model_doubles + PAGE_OVERHEAD if self.kernel.linear else 0

    def _counts(self) -> IntArray:
        """Return how many elements the observers have: a row for each leaf that watches."""
        kernel = self.kernel
        if not self.observing.by_observers:
            return np.zeros((0, 0), dtype=np.int64)
        observers = [each for each in kernel.observers if each is not None]
        counts = np.fromiter((len(one) for each in observers for one in each), dtype=np.int64)
        return counts.reshape(len(observers), kernel.features)

    def _watch_bytes(self, counts: IntArray) -> IntArray:
        """Return the bytes of what each leaf watches by; 0 where it does not."""
        kernel = self.kernel
        watching = kernel.leaf_table["watching"][: kernel.leaf_count] != 0
        sizes: IntArray = np.where(watching, self._page_bytes(kernel.watch_doubles), 0)
        if self.observing.by_observers:
            sizes[watching] += self._observer_bytes(counts)
        return sizes

    def _page_bytes(self, doubles: int) -> int:
        """Return the bytes of a page of what is watched; with observers, of their lists too."""
        return 8 * doubles + (3 if self.observing.by_observers else 1) * PAGE_OVERHEAD

    def _observer_bytes(self, counts: IntArray) -> IntArray:
        """Return the bytes of the observers of each leaf; those of categories stay empty."""
        numbers = ~self.observing.is_category
        rooms: IntArray = _room(counts[:, numbers]).sum(axis=1)
        total: IntArray = self._element * rooms + counts.shape[1] * (self._empty_observer + 16)
        return total

    def _fresh_bytes(self) -> int:
        """Return the bytes of what a leaf starts to watch by."""
        page = self._page_bytes(self.kernel.watch_doubles)
        if not self.observing.by_observers:
            return page
        return page + int(self._observer_bytes(np.zeros((1, self.kernel.features), np.int64))[0])

    def _split_bytes(self) -> int:
        """Return the bytes that a split takes: the children's pages, and tables that grow."""
        kernel = self.kernel
        total = 2 * (self._fresh_bytes() + self._model_bytes())
        nodes, leaves = kernel.node_count + 2, kernel.leaf_count + 1
        if nodes > len(kernel.node_table):
            total += build.table_room(nodes) * NODE_RECORD.itemsize
        if leaves > len(kernel.leaf_table):
            total += build.table_room(leaves) * (LEAF_RECORD.itemsize + LEAF_POINTERS)
        return total

    def check_loaded(self) -> None:
        """Raise ValueError if a tree that comes from a file breaks its own limit."""
        if self.max_bytes is None:
            return
        used = self.nbytes
        if used > self.max_bytes:
            raise ValueError(f"it occupies {used} bytes and its max_bytes are {self.max_bytes}")
        is_bound = self.observing.by_observers and self.kernel.rows < self.measure_at
        if is_bound and not used + self._promised() <= self.bound <= self.max_bytes:
            raise ValueError(f"{self.bound} bytes are no bound of what it will occupy")

    # -- which leaves watch -------------------------------------------------------------------

    def admits_split(self, leaf: int) -> bool:
        """Whether there is room for the children of a leaf, after a ranking if need be."""
        if self.max_bytes is None:
            return True
        needed = self._split_bytes()
        is_bound = self.observing.by_observers and self.kernel.rows <= self.measure_at
        if is_bound and self.bound + needed <= self.max_bytes:
            self.bound += needed
            return True
        needed += self._promised()
        sizes = self._watch_bytes(self._counts())
        rest = self._rest_bytes()
        if rest + sizes.sum() + needed > self.max_bytes:
            if rest + sizes[leaf] + needed > self.max_bytes:
                return False  # even if no other leaf watched
            self.rank(needed, keep=leaf)
        self.bound = self.nbytes + needed
        return self.bound <= self.max_bytes

    def rank(self, reserve: int, keep: int = -1) -> None:
        """Let the most promising leaves watch, as many as there is room for beside a reserve.

        Parameters
        ----------
        reserve : int
            Bytes that are to stay free.
        keep : int
            A leaf that watches in any case.
        """
        if self.max_bytes is None:
            return
        sizes = self._watch_bytes(self._counts())
        sizes[sizes == 0] = self._fresh_bytes()
        room = SHARE_AFTER_RANKING * (self.max_bytes - reserve) - self._rest_bytes()
        chosen = self._best(sizes, room, keep)
        watching = self.kernel.leaf_table["watching"][: self.kernel.leaf_count] != 0
        self._stop(watching & ~chosen)
        for leaf in np.flatnonzero(chosen & ~watching):
            build.watch(self.kernel, self.observing, int(leaf))
        self.ranked_at = self.kernel.rows
        self.bound = self.nbytes + self._promised()

    def rank_in_time(self) -> None:
        """Rank again after a while, if there are leaves that do not watch."""
        kernel = self.kernel
        if self.max_bytes is None or kernel.rows < self.ranked_at + ROWS_BETWEEN_RANKINGS:
            return
        if not kernel.leaf_table["watching"][: kernel.leaf_count].all():
            self.rank(self._split_bytes() + self._promised())
        self.ranked_at = kernel.rows

    def _best(self, sizes: IntArray, room: float, keep: int = -1) -> NDArray[np.bool_]:
        """Return the leaves that promise most, of those that find room."""
        kernel = self.kernel
        promise = self._promise()
        if keep >= 0:
            promise[keep] = np.inf
        chosen = np.zeros(kernel.leaf_count, dtype=np.bool_)
        smallest = sizes.min()
        for leaf in np.argsort(-promise, kind="stable"):
            if sizes[leaf] <= room or leaf == keep:
                chosen[leaf] = True
                room -= sizes[leaf]
            if room < smallest:
                break
        return chosen

    def _promise(self) -> NDArray[np.float64]:
        """Return by how much each leaf lately adds, row by row, to the squared error of the tree.

        That is its faded error times its share of the rows, as if each leaf had seen a few more.
        """
        kernel = self.kernel
        records = kernel.leaf_table[: kernel.leaf_count]
        faded = np.min([records[name] for name in ERRORS[: 5 if kernel.linear else 1]], axis=0)
        few = FEW_ROWS * kernel.weight / max(kernel.rows, 1.0)
        passed = kernel.weight - records["born"] + few * kernel.leaf_count
        shares = (records["weight"] + few) / np.maximum(passed, few or 1.0)
        return np.asarray(faded * shares)

    def _stop(self, leaves: NDArray[np.bool_]) -> None:
        for leaf in np.flatnonzero(leaves):
            build.unwatch(self.kernel, int(leaf))

    # -- observers, which grow ----------------------------------------------------------------

    def rows_until_full(self) -> int:
        """Return how many rows can be learned before observers have to be measured again.

        If they have to be now, they are, and leaves stop watching where there is no room.
        """
        if self.max_bytes is None or not self.observing.by_observers or not self.kernel.features:
            return sys.maxsize
        if self.kernel.rows >= self.measure_at:
            self._measure(self.max_bytes)
        return int(self.measure_at - self.kernel.rows)

    def _measure(self, max_bytes: int) -> None:
        self.measure_at = self.kernel.rows
        used, copied = self._used()
        if max_bytes - used - copied < LEAST_FREE * max_bytes or not self._watching():
            self.rank(int(FREE_AFTER_RANKING * max_bytes))
            used, copied = self._used()
        rows = (max_bytes - used - copied) // (2 * self._row_bytes())  # half is left for splits
        if rows < 1:
            self._stop(np.ones(self.kernel.leaf_count, dtype=np.bool_))
            rows = ROWS_WITHOUT_OBSERVERS
        self.measure_at += rows
        self.bound = used + self._promised()

    def _watching(self) -> bool:
        return bool(self.kernel.leaf_table["watching"][: self.kernel.leaf_count].any())

    def _used(self) -> tuple[int, int]:
        """Return the bytes of all, and those of a copy of the largest observer, made to grow."""
        counts = self._counts()
        used = self._rest_bytes() + int(self._watch_bytes(counts).sum())
        return used, 2 * self._element * int(counts.max(initial=0))

    def _row_bytes(self) -> int:
        """Return the most that a row can add to the observers of its leaf."""
        return max(1, 2 * self._element * self.kernel.features)

    def _promised(self) -> int:
        """Return the bytes that observers may yet take before they are measured."""
        if not self.observing.by_observers or not self._watching():
            return 0
        return self._row_bytes() * max(0, int(self.measure_at - self.kernel.rows))

    # -- features -----------------------------------------------------------------------------

    def check_features(self, is_category: NDArray[np.bool_], columns: Iterable[Any] = ()) -> None:
        """Raise ValueError if another set of features has no room; make room for it otherwise.

        Parameters
        ----------
        is_category : ndarray
            Of each feature that there is going to be.
        columns : iterable of Column
            What was read of them: names and labels that are new.
        """
        if self.max_bytes is None:
            return
        kernel = self.kernel
        is_relaid = not np.array_equal(is_category, self.observing.is_category)
        text = sum(self._text_bytes(column) for column in columns)
        if not is_relaid and not text:
            return
        new = len(is_category) - kernel.features
        model, watch, levels = kernel.sizes_for(is_category)
        rest = self._rest_bytes() + text + new * (FEATURE_BYTES + NAME_BYTES)
        rest += 8 * kernel.leaf_count * (model - kernel.model_doubles)
        grown = self._page_bytes(watch) - self._page_bytes(kernel.watch_doubles)
        if self.observing.by_observers:
            grown += new * (self._empty_observer + 16 + 16 * self._element)
        fresh = self._fresh_bytes()
        if is_relaid:  # while pages are laid anew, there is an old one beside, and the old levels
            rest += 8 * levels + 8 * kernel.model_doubles + fresh
        needed = rest + (fresh + grown if is_relaid else 0)
        if needed > self.max_bytes:
            raise ValueError(
                f"max_bytes = {self.max_bytes}: there is no room for {len(is_category)} features "
                f"and their labels (a tree of {kernel.leaf_count} leaves needs {needed}); allow "
                "more, or leave features out"
            )
        sizes = self._watch_bytes(self._counts())
        watching = sizes > 0
        sizes += grown
        if rest + sizes[watching].sum() > self.max_bytes:
            sizes[~watching] = self.max_bytes  # those stay as they are
            self._stop(watching & ~self._best(sizes, self.max_bytes - rest))
        if self.observing.by_observers:
            self.measure_at = kernel.rows

    def _text_bytes(self, column: Any) -> int:
        """Return the bytes that the name and the labels of a column add, if they are new."""
        name = 0 if column.name in self.features.index else sys.getsizeof(column.name)
        if not column.fresh:
            return name
        tables = 2 * sys.getsizeof(column.known) + sys.getsizeof(column.fresh)
        return name + tables + sum(map(sys.getsizeof, column.fresh))


def _room(counts: IntArray) -> IntArray:
    """Return for how many elements the tables of observers have room at the most."""
    few = np.clip(2 * counts, 16, 72)
    return np.where(counts < 64, few, counts + np.maximum(8, counts // 16))
