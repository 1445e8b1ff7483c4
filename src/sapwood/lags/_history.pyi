from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.lags.history import Key, Oldest

__all__ = ["History", "NextRow", "key_bytes"]

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]
_Tables = tuple[_Floats, _Ints, _Ints, _Ints]

class History:
    def __init__(
        self,
        places: dict[Key, int],
        values: _Floats,
        starts: _Ints,
        counts: _Ints,
        used: _Ints,
        clock: int,
        depth: int,
    ) -> None: ...
    @property
    def places(self) -> dict[Key, int]: ...
    @property
    def keys(self) -> list[Key]: ...
    oldest: Oldest | None
    @property
    def values(self) -> _Floats: ...
    @property
    def starts(self) -> _Ints: ...
    @property
    def counts(self) -> _Ints: ...
    @property
    def used(self) -> _Ints: ...
    @property
    def clock(self) -> int: ...
    @property
    def depth(self) -> int: ...
    def features(
        self,
        groups: _Ints,
        ordinals: _Ints,
        order: _Ints,
        offsets: _Ints,
        slots: _Ints,
        rows: _Floats,
        wanted: _Ints,
        out: _Floats,
    ) -> None: ...
    def push(
        self,
        groups: _Ints,
        ordinals: _Ints,
        slots: _Ints,
        is_new: NDArray[np.uint8],
        rows: _Floats,
        added: dict[Key, int],
        clock: int,
        tables: _Tables | None,
    ) -> int: ...
    @property
    def key_bytes(self) -> int: ...
    def want(self, names: tuple[Any, ...], wanted: NDArray[np.int64]) -> None: ...
    def next_row(self, x: Any, key: Key) -> dict[Any, Any] | None: ...
    def push_one(self, key: Any, row: list[float]) -> int: ...
    def fill(self, slot: int, number: int, column: int, value: float) -> None: ...

def key_bytes(key: Key) -> int: ...

class NextRow:
    def __init__(self, past: History, key: Key, values: list[float], most: int) -> None: ...
    @property
    def history(self) -> History: ...
    @property
    def key(self) -> Key: ...
    @property
    def values(self) -> list[float]: ...
    @property
    def most(self) -> int: ...
    @property
    def clock(self) -> int: ...
    @property
    def is_due(self) -> bool: ...
    @property
    def number(self) -> int: ...
    def push(self) -> int: ...
