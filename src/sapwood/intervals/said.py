"""What was said of rows whose y is still to come, found again by the row itself."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

__all__ = ["MOST", "Said"]

FloatArray = NDArray[np.float64]

MOST = 10_000  # records; the oldest go first
KEYS, LENGTHS, RECORDS = "said_keys", "said_lengths", "said_records"


class Said:
    """A bounded memory of records, each of so many numbers, by the bytes of encoded rows.

    Equal rows are told apart by their order: the first that was said is the first to be judged.

    Parameters
    ----------
    width : int
        How many numbers a record has.

    Examples
    --------
    >>> said = Said(2)
    >>> said.put([b"row"], np.array([[1.0, 2.0]]))
    >>> said.find([b"row", b"another", b"row"])
    array([[ 1.,  2.],
           [nan, nan],
           [nan, nan]])
    >>> said.drop([b"row"])
    >>> len(said)
    0
    """

    def __init__(self, width: int) -> None:
        self._width = width
        self._records: dict[tuple[bytes, int], FloatArray] = {}
        self._numbers: dict[bytes, tuple[int, int]] = {}  # first and next of each key

    def __len__(self) -> int:
        return len(self._records)

    def put(self, keys: Sequence[bytes], records: FloatArray) -> None:
        """Remember what was said of rows."""
        for key, record in zip(keys[-MOST:], records[-MOST:].copy(), strict=True):
            first, following = self._numbers.get(key, (0, 0))
            self._records[key, following] = record
            self._numbers[key] = first, following + 1
        while len(self._records) > MOST:
            self._forget(next(iter(self._records))[0])

    def find(self, keys: Sequence[bytes]) -> FloatArray:
        """Return what was said of rows in their order, NaN where nothing was; changes nothing."""
        found = np.full((len(keys), self._width), np.nan)
        taken: dict[bytes, int] = {}
        for place, key in enumerate(keys):
            number = taken.get(key, self._numbers.get(key, (0, 0))[0])
            record = self._records.get((key, number))
            if record is not None:
                found[place] = record
                taken[key] = number + 1
        return found

    def drop(self, keys: Sequence[bytes]) -> None:
        """Forget what was said of rows that were judged."""
        for key in keys:
            if key in self._numbers:
                self._forget(key)

    def _forget(self, key: bytes) -> None:
        """Forget the first record of a key."""
        first, following = self._numbers[key]
        self._records.pop((key, first), None)
        if first + 1 == following:
            del self._numbers[key]
        else:
            self._numbers[key] = first + 1, following

    @property
    def nbytes(self) -> int:
        """Bytes that keys and records occupy."""
        return sum(len(key) + 8 * self._width for key, _ in self._records)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return all that is remembered, to be saved."""
        keys = [key for key, _ in self._records]
        records = [*self._records.values()]
        return {
            KEYS: np.frombuffer(b"".join(keys), np.uint8),
            LENGTHS: np.array([len(key) for key in keys], np.int64),
            RECORDS: np.array(records).reshape(len(records), self._width),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], width: int, each: int) -> Self:
        """Go on from what `to_arrays` returned, of which nothing is trusted.

        `each` is how many numbers of a record are of one target; the first is its prediction.
        """
        made = cls(width)
        keys, lengths, records = (arrays[name] for name in (KEYS, LENGTHS, RECORDS))
        typed = keys.dtype == np.uint8 and lengths.dtype == np.int64
        if not typed or records.dtype != np.float64 or keys.ndim != 1 or lengths.ndim != 1:
            raise ValueError("what was said of rows is of another type")
        if records.shape != (len(lengths), width) or len(lengths) > MOST:
            raise ValueError(f"what was said of rows has shape {records.shape}")
        if (lengths < 0).any() or (lengths > len(keys)).any() or lengths.sum() != len(keys):
            raise ValueError("the keys of what was said have other lengths")
        if not (np.abs(records[:, ::each]) < np.inf).all():
            raise ValueError("what was said is no prediction")
        ends, data = np.cumsum(lengths).tolist(), keys.tobytes()
        starts = [0, *ends][: len(ends)]
        made.put([data[a:b] for a, b in zip(starts, ends, strict=True)], records)
        return made
