"""Whether two trees have learned the same rows, estimated from the rows that they keep.

A tree keeps some rows of its past. Trees of the same rows have many of them in common. Trees of
different rows have some in common by chance, where features have few values: how often is estimated
by how often two rows of the same tree are equal.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sapwood.rows.features import NUMBER, Features
from sapwood.tree._kernel import TreeKernel
from sapwood.validation import Label

__all__ = ["have_same_rows"]

FloatArray = NDArray[np.float64]

LEAST = 8  # rows in common
FACTOR, DEVIATIONS = 1.5, 3.0  # by which they exceed those that are expected by chance


def have_same_rows(one: TreeKernel, other: TreeKernel, readers: Sequence[Features]) -> bool:
    """Whether two trees have learned the same rows, or most of them."""
    names = [name for name in _numbers(readers[0]) if name in set(_numbers(readers[1]))]
    if not names:
        return False
    rows = [
        _kept(kernel, [reader.index[name] for name in names])
        for kernel, reader in zip((one, other), readers, strict=True)
    ]
    mine, theirs = rows
    common = _equal_pairs(mine, theirs)
    alike = sum(_equal_pairs(own, own) - len(own) for own in rows)
    pairs = sum(len(own) * (len(own) - 1) for own in rows)
    expected = len(mine) * len(theirs) * alike / pairs if pairs else 0.0
    return common > LEAST + FACTOR * expected + DEVIATIONS * math.sqrt(expected)


def _numbers(reader: Features) -> list[Label]:
    return [name for name, kind in zip(reader.names, reader.kinds, strict=True) if kind == NUMBER]


def _kept(kernel: TreeKernel, columns: list[int]) -> FloatArray:
    """Return the rows that a tree has kept, and that have a value in a column.

    All of them are the first row until others replace it: the most frequent one counts once.
    """
    kept: FloatArray = kernel.columns.known_samples[:, columns]
    kept = kept[~np.isnan(kept).all(axis=1)]
    if len(kept):
        rows, places, counts = np.unique(kept, axis=0, return_inverse=True, return_counts=True)
        most = int(counts.argmax())
        kept = np.concatenate([kept[places.reshape(-1) != most], rows[most : most + 1]])
    return kept


def _equal_pairs(one: FloatArray, other: FloatArray) -> int:
    """Return how many rows of one are equal to rows of another, missing values to missing ones."""
    mine, theirs = one[:, None, :], other[None, :, :]
    same = (mine == theirs) | (np.isnan(mine) & np.isnan(theirs))
    return int(same.all(axis=2).sum())
