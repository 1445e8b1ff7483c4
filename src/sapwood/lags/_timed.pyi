from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.lags._history import History
from sapwood.lags.history import Key

__all__ = ["DEEPEST", "LEAST_DEPTH", "TimedHistory"]

DEEPEST: int
LEAST_DEPTH: int

class TimedHistory(History):
    def __init__(
        self,
        places: dict[Key, int],
        values: NDArray[np.float64],
        starts: NDArray[np.int64],
        counts: NDArray[np.int64],
        used: NDArray[np.int64],
        clock: int,
        depth: int,
        spans: list[float],
        tolerances: list[float],
        horizon: float,
    ) -> None: ...
    @property
    def reach(self) -> float: ...
    def next_row_at(self, x: Any, key: Key, time: float) -> dict[Any, Any] | None: ...
