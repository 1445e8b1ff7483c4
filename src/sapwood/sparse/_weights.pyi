from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.sparse._rows import SparseRows

HEAD: int
SLOT: int
BYTES: int
LEAST_BYTES: int
FIELDS: tuple[str, ...]

class SparseWeights:
    most: int
    is_open: bool
    def __init__(self, max_bytes: int) -> None: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def rows(self) -> float: ...
    @property
    def names(self) -> int: ...
    @property
    def is_due(self) -> bool: ...
    def begin(self, rows: SparseRows) -> None: ...
    def undo(self) -> None: ...
    def commit(
        self,
        inner: NDArray[np.float64],
        linear: NDArray[np.float64],
        y: NDArray[np.float64],
        w: NDArray[np.float64],
        found: NDArray[np.float64],
    ) -> None: ...
    def predict(self, rows: SparseRows, linear: NDArray[np.float64]) -> None: ...
    def combine(
        self,
        inner: NDArray[np.float64],
        linear: NDArray[np.float64],
        found: NDArray[np.float64],
    ) -> None: ...
    def learn(
        self,
        rows: SparseRows,
        y: NDArray[np.float64],
        w: NDArray[np.float64],
        start: int,
        linear: NDArray[np.float64],
    ) -> int: ...
    def review(self, known: set[int], room: int) -> set[int]: ...
    def weight_of(self, key: int) -> float: ...
    def state(
        self,
    ) -> tuple[
        int,
        NDArray[np.int64],
        NDArray[np.uint64],
        NDArray[np.float64],
        NDArray[np.float64],
    ]: ...
    def restore(
        self,
        count: int,
        places: NDArray[Any],
        keys: NDArray[Any],
        slots: NDArray[Any],
        head: NDArray[Any],
    ) -> None: ...
