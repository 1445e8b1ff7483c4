from typing import Any

import numpy as np
from numpy.typing import NDArray

def bytes_of_a_note(width: int) -> int: ...

class Notes:
    width: int
    place_bytes: int
    most: int
    room: int
    count: int
    reach: float
    misses: int
    left: int
    blanks: int
    def __init__(self, width: int, most: int) -> None: ...
    @property
    def nbytes(self) -> int: ...
    def leave_row(self, row: NDArray[np.float64], content: NDArray[np.float64]) -> None: ...
    def leave_blanks(self, predictions: int) -> None: ...
    def take_row(self, row: NDArray[np.float64], labels: float) -> NDArray[np.float64] | None: ...
    def state(
        self,
    ) -> tuple[NDArray[np.float64], NDArray[np.uint64], NDArray[np.int64], NDArray[np.float64]]: ...
    def restore(
        self,
        sizes: NDArray[Any],
        keys: NDArray[np.uint64],
        ages: NDArray[np.int64],
        contents: NDArray[np.float64],
    ) -> None: ...
