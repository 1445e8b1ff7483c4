"""What rows have added to categories of many: sums that add, where levels themselves forget.

The level of a category is a mean that remembers so many rows (see `sapwood/tree/_target_encoding.pxd`). A
worker counts the weight of its rows of each category, and sums of y, and these add; the tree then
takes them in as rows that arrived at once.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sapwood.merge.alignment import LABEL_SUMS, many_of
from sapwood.merge.snapshot import check_split_encodings, shared_level
from sapwood.rows.column import CATEGORY, OTHERS
from sapwood.tree._column_tables import ENCODING_HEAD
from sapwood.tree._kernel import TreeKernel
from sapwood.tree.regressor import HoeffdingTreeRegressor
from sapwood.validation import Label

__all__ = ["LabelSums", "add_labels", "levels_added", "levels_of_few"]

Array = NDArray[Any]

CODES = OTHERS + 1
MEMORY, MEMORY_OF_ALL = 256, 16_384
"""Rows that the mean of a category remembers, and that of all: as `sapwood/tree/_target_encoding.pxd`."""


def levels_of_few(kernel: TreeKernel) -> Array:
    """Return the weight and the mean y of categories of few, for each target."""
    return kernel.encoding_table.reshape(kernel.targets, -1, 2)[:, : CODES * kernel.features]


def levels_added(after: Array, before: Array) -> Array:
    """Return what rows have added to categories of few: `LABEL_SUMS`, with the least squares."""
    weight = after[..., 0] - before[..., 0]
    total = after.prod(axis=-1) - before.prod(axis=-1)
    square = np.divide(total * total, weight, out=np.zeros(weight.shape), where=weight > 0.0)
    added = np.stack([weight, total, square], axis=-1)
    added[weight <= 0.0] = 0.0
    return added


class LabelSums:
    """Sums of the rows that a worker learns, for each category of many."""

    def __init__(self, tree: HoeffdingTreeRegressor) -> None:
        self._tree = tree
        self._sums: dict[Label, Array] = {}
        self._many = self._many_now()
        self._first = self._before = levels_of_few(tree._kernel)[0].copy()

    def _many_now(self) -> dict[Label, int]:
        """Return the places of the features that are categories of many."""
        features, places = self._tree._features, self._tree._kernel.columns.place_table
        return {
            name: place
            for place, (name, kind) in enumerate(zip(features.names, features.kinds, strict=True))
            if places[place] >= 0 and kind == CATEGORY
        }

    def begin(self) -> None:
        """Prepare for rows that are about to be learned."""
        self._before = levels_of_few(self._tree._kernel)[0].copy()

    def add(self, X: Any, y: ArrayLike, w: ArrayLike | None) -> None:
        """Count rows that were learned.

        - Raises MergeError if some categories share a level, or if there are several targets.
        """
        now = self._many_now()
        if not now:
            return
        check_split_encodings(self._tree)
        for name in now.keys() - self._many.keys():
            self._begin_with_few(name, now[name])
        self._many = now
        features = self._tree._features
        matrix = features.read(X, learn=False).matrix
        values = np.asarray(y, dtype=np.float64) - self._tree._kernel.first
        weights = np.ones(len(values)) if w is None else np.asarray(w, dtype=np.float64)
        for name, place in now.items():
            codes, count = matrix[:, place], features.known.counts[place]
            there = ~np.isnan(codes)
            own = codes[there].astype(np.intp)
            if len(own) and own.max() >= count:
                raise shared_level(name, features.most_labels)
            sums = np.zeros((count, len(LABEL_SUMS)))
            old = self._sums.get(name, sums[:0])
            sums[: len(old)] = old
            added = weights[there]
            for power in range(len(LABEL_SUMS)):
                sums[:, power] += np.bincount(own, added, count)
                added = added * values[there]
            self._sums[name] = sums

    def _begin_with_few(self, name: Label, place: int) -> None:
        """Take over what was counted while a feature was a category of few."""
        own = slice(CODES * place, CODES * (place + 1))
        none = np.zeros((CODES, 2))
        before, first = (
            table[own] if len(table[own]) else none for table in (self._before, self._first)
        )
        self._sums[name] = levels_added(before, first)[:OTHERS]

    def all_of(self, header: dict[str, Any]) -> Array:
        """Return the sums of all categories of many, as a delta has them."""
        parts = [np.zeros((0, len(LABEL_SUMS)))]
        for place in many_of(header):
            sums = np.zeros((len(header["labels"][place]), len(LABEL_SUMS)))
            own = self._sums.get(header["names"][place], sums[:0])[: len(sums)]
            sums[: len(own)] = own
            parts.append(sums)
        return np.concatenate(parts)


def add_labels(kernel: TreeKernel, header: dict[str, Any], added: Array, row_weight: float) -> None:
    """Let a tree take in the sums of all categories of many."""
    many, at, start = set(many_of(header)), 0, CODES * kernel.features
    for place, places in enumerate(kernel.columns.place_table.tolist()):
        if places < 0:
            continue
        if place in many:
            count = len(header["labels"][place])
            levels = kernel.encoding_table[start : start + ENCODING_HEAD + places]
            _add_to(levels, added[at : at + count], row_weight)
            at += count
        start += ENCODING_HEAD + places


def _add_to(levels: Array, sums: Array, row_weight: float) -> None:
    weight, total, square = sums.T
    if not weight.sum() > 0.0:
        return
    most = MEMORY_OF_ALL * row_weight
    own = levels[ENCODING_HEAD : ENCODING_HEAD + len(sums)]
    some = weight > 0.0
    within = _squares(own[some], weight[some], total[some], square[some])
    seen = np.where(own[some, 0] > 0.0, weight[some], np.maximum(weight[some] - row_weight, 0.0))
    about = _squares(levels[:1], weight.sum()[None], total.sum()[None], square.sum()[None])
    for pair, (added, value) in (
        (1, (seen.sum(), within.sum())),
        (2, (weight.sum(), about.sum())),
        (0, (weight.sum(), total.sum())),
    ):
        if added > 0.0:
            levels[pair] = _joined(levels[pair : pair + 1], added[None], value[None], most)[0]
    own[some] = _joined(own[some], weight[some], total[some], MEMORY * row_weight)


def _squares(pairs: Array, weight: Array, total: Array, square: Array) -> Array:
    """Return by how much sums of squares about the mean grow, with some rows."""
    own = np.maximum(square - total * total / weight, 0.0)
    apart = total / weight - pairs[:, 1]
    return own + np.where(
        pairs[:, 0] > 0.0, apart * apart * (pairs[:, 0] * (weight / (pairs[:, 0] + weight))), 0.0
    )


def _joined(pairs: Array, weight: Array, total: Array, most: float) -> Array:
    """Return means that remember no more than so much, with some rows that arrived at once."""
    both = np.minimum(pairs[:, 0] + weight, most)
    share = np.minimum(weight / both, 1.0)
    mean = pairs[:, 1] + (total / weight - pairs[:, 1]) * share
    return np.stack([both, mean], axis=1)
