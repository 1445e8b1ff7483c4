"""Random samples of a stream that depend on a seed and on row numbers alone."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["SEED", "chosen", "thinned"]

SEED = 0x5EED
FACTORS = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
STEP = 0x9E3779B97F4A7C15


def chosen(rows: NDArray[np.int64], level: int, seed: int = SEED) -> NDArray[np.bool_]:
    """Return which rows are in a sample of one random row per block of 2**level rows.

    Every block has a left and a right half; a hash of the seed and of the block decides which of
    them contains the row. So a sample of longer blocks is a part of that of shorter ones, and no
    sample depends on how the rows are cut into chunks.

    - `rows`: the numbers of rows, from 0 on.
    - `level`: the binary logarithm of the length of a block.
    - `seed`: another seed gives another sample.

    Examples
    --------
    >>> np.flatnonzero(chosen(np.arange(32), 3)).tolist()
    [0, 8, 19, 31]
    >>> np.flatnonzero(chosen(np.arange(32), 4)).tolist()
    [8, 19]
    """
    found = np.ones(len(rows), dtype=np.bool_)
    left = np.arange(len(rows))
    for step in range(level):
        numbers = rows[left]
        halves = _hashes((numbers >> (step + 1)).astype(np.uint64), seed + (step << 32))
        out = (numbers >> step & 1) != (halves & np.uint64(1)).astype(np.int64)
        found[left[out]] = False
        left = left[~out]
    return found


def thinned(count: int, most: int) -> NDArray[np.intp]:
    """Return the places of at most `most` of some rows, each a random one of its block.

    Examples
    --------
    >>> thinned(3, 5).tolist(), len(thinned(2000, 500)) <= 500
    ([0, 1, 2], True)
    """
    level = max(0, (max(count, 1) - 1).bit_length() - max(most, 1).bit_length() + 1)
    if count <= most:
        level = 0
    return np.flatnonzero(chosen(np.arange(count), level))


def _hashes(numbers: NDArray[np.uint64], seed: int) -> NDArray[np.uint64]:
    """Return a hash of each number (splitmix64)."""
    state = numbers * np.uint64(STEP) + np.uint64(seed * STEP % 2**64)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(FACTORS[0])
    state = (state ^ (state >> np.uint64(27))) * np.uint64(FACTORS[1])
    return state ^ (state >> np.uint64(31))
