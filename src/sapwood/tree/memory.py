"""How much a tree occupies, and which of its leaves may watch."""

import sys

import numpy as np
from numpy.typing import NDArray

from sapwood.tree import build
from sapwood.tree._kernel import TreeKernel
from sapwood.tree.features import Features
from sapwood.tree.observing import Observing
from sapwood.tree.tables import LEAF_RECORD, NODE_RECORD

__all__ = ["Memory"]

# A page is an array of its own: its object, and its places in lists and tables of pointers.
PAGE_OVERHEAD = 160
# When memory is full, leaves are ranked, and the best may fill this share of it with pages.
SHARE_AFTER_RANKING = 0.9
# Leaves are also ranked after so many rows, if some do not watch.
ROWS_BETWEEN_RANKINGS = 50_000
# What a row may add to an observer, and by how much a table may grow at once.
ELEMENT_BYTES = 400
TABLE_GROWTH = 1.15


class Memory:
    """The rules of memory: what the parameter `max_bytes` of the tree says.

    Parameters
    ----------
    max_bytes : int or None
        What the tree may occupy.
    kernel, observing, features
        Of the tree.
    """

    def __init__(
        self, max_bytes: int | None, kernel: TreeKernel, observing: Observing, features: Features
    ) -> None:
        self.max_bytes = max_bytes
        self.kernel = kernel
        self.observing = observing
        self.features = features
        self.ranked_at = 0.0  # rows

    @property
    def nbytes(self) -> int:
        """Bytes of all tables, pages, observers and names."""
        kernel = self.kernel
        arrays = (kernel.node_table, kernel.leaf_table, kernel.level_table, kernel.track_table)
        tables = sys.getsizeof(kernel) + kernel.buffer_bytes + sum(map(sys.getsizeof, arrays))
        models = kernel.leaf_count * self._model_bytes(kernel.model_doubles)
        return tables + self.features.nbytes + models + int(self._watch_bytes().sum())

    def _model_bytes(self, doubles: int) -> int:
        return 8 * doubles + PAGE_OVERHEAD

    def _watch_bytes(self) -> NDArray[np.int64]:
        """Return the bytes of what each leaf watches by; 0 where it does not."""
        kernel = self.kernel
        watching = kernel.leaf_table["watching"][: kernel.leaf_count].astype(np.int64)
        sizes = watching * (8 * kernel.watch_doubles + PAGE_OVERHEAD)
        if self.observing.by_observers:
            for leaf in np.flatnonzero(watching):
                sizes[leaf] += sum(each.nbytes for each in kernel.observers[leaf])
        return sizes

    def admits_split(self, leaf: int) -> bool:
        """Whether there is room for the children of a leaf, after a ranking if need be."""
        if self.max_bytes is None:
            return True
        if self.nbytes + self._split_bytes(leaf) > self.max_bytes:
            self.rank(self._split_bytes(leaf), keep=leaf)
        return self.nbytes + self._split_bytes(leaf) <= self.max_bytes

    def _split_bytes(self, leaf: int) -> int:
        """Bytes that a split takes for a moment: the children's pages, and tables that grow."""
        kernel = self.kernel
        pages = 2 * (8 * kernel.watch_doubles + self._model_bytes(kernel.model_doubles))
        rows = kernel.node_count + 2
        tables = build.table_room(rows) * (NODE_RECORD.itemsize + LEAF_RECORD.itemsize)
        observers = 2 * sum(each.nbytes for each in self.observing.fresh(kernel.features))
        return pages + 2 * PAGE_OVERHEAD + tables + observers

    def rank(self, reserve: int, keep: int = -1) -> None:
        """Let the most promising leaves watch, as many as there is room for beside a reserve.

        A leaf promises as much as it adds, row by row, to the squared error of the tree.

        Parameters
        ----------
        reserve : int
            Bytes that are to stay free.
        keep : int
            A leaf that watches in any case.
        """
        if self.max_bytes is None:
            return
        kernel = self.kernel
        records = kernel.leaf_table[: kernel.leaf_count]
        m2 = records["residual_m2"] if kernel.linear else records["target_m2"]
        promise = m2 / np.maximum(kernel.weight - records["born"], 1.0)
        if keep >= 0:
            promise[keep] = np.inf
        sizes = self._watch_bytes()
        room = SHARE_AFTER_RANKING * (self.max_bytes - reserve) - (self.nbytes - sizes.sum())
        empty = 8 * kernel.watch_doubles + PAGE_OVERHEAD
        if self.observing.by_observers:
            empty += sum(each.nbytes for each in self.observing.fresh(kernel.features))
        sizes[sizes == 0] = empty
        order = np.argsort(-promise, kind="stable")
        best = order[np.cumsum(sizes[order]) <= room]
        chosen = np.zeros(kernel.leaf_count, dtype=np.bool_)
        chosen[best] = True
        if keep >= 0:
            chosen[keep] = True
        watching = records["watching"].astype(np.bool_)
        for leaf in np.flatnonzero(watching & ~chosen):
            build.unwatch(kernel, int(leaf))
        for leaf in np.flatnonzero(chosen & ~watching):
            build.watch(kernel, self.observing, int(leaf))
        self.ranked_at = kernel.rows

    def rank_in_time(self) -> None:
        """Rank again after a while, if there are leaves that do not watch."""
        kernel = self.kernel
        if self.max_bytes is None or kernel.rows < self.ranked_at + ROWS_BETWEEN_RANKINGS:
            return
        if not kernel.leaf_table["watching"][: kernel.leaf_count].all():
            self.rank(self._split_bytes(0))
        self.ranked_at = kernel.rows

    def rows_until_full(self) -> int:
        """Return how many rows can be learned before observers have to be measured again."""
        if self.max_bytes is None or not self.observing.by_observers:
            return sys.maxsize
        for _ in range(2):
            used = self.nbytes - self._watch_bytes().sum()
            free = self.max_bytes - used - TABLE_GROWTH * self._watch_bytes().sum()
            rows = int(free / (ELEMENT_BYTES * max(1, self.kernel.features)))
            if rows >= 1:
                return rows
            self.rank(self.max_bytes // 4)
        return 1

    def check_features(self, is_category: NDArray[np.bool_]) -> None:
        """Raise ValueError if another set of features has no room; make room for it otherwise.

        Parameters
        ----------
        is_category : ndarray
            Of each feature that there is going to be.
        """
        if self.max_bytes is None:
            return
        kernel = self.kernel
        model, watch, levels = kernel.sizes_for(is_category)
        growth = 8 * levels - sys.getsizeof(kernel.level_table)
        used = self.nbytes - int(self._watch_bytes().sum())
        used += kernel.leaf_count * 8 * (model - kernel.model_doubles) + growth
        if used + self._model_bytes(model) > self.max_bytes:
            raise ValueError(
                f"max_bytes = {self.max_bytes}: there is no room for {len(is_category)} features "
                f"(a tree of {kernel.leaf_count} leaves needs {used}); allow more, or leave "
                "features out"
            )
        room = self.max_bytes - used - self._model_bytes(model)
        most = int(SHARE_AFTER_RANKING * room / (8 * watch + PAGE_OVERHEAD))
        watching = np.flatnonzero(kernel.leaf_table["watching"][: kernel.leaf_count])
        for leaf in watching[most:]:
            build.unwatch(kernel, int(leaf))
