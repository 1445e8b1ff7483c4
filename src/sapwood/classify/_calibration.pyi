from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.corrector._pending import PendingPredictions

LEAST_RATINGS: tuple[float, ...]
EXPONENT_RANGE: tuple[float, float]
SET_LEVELS: tuple[float, ...]
SET_ORDERS: tuple[float, ...]

class Calibrator:
    table: NDArray[np.float64]
    class_weights: NDArray[np.float64]
    sets: NDArray[np.float64]
    def __init__(self, table: Any = None, class_weights: Any = None, sets: Any = None) -> None: ...
    def copy(self) -> Calibrator: ...
    def threshold(self, level: float) -> float: ...
    def widen(self, classes: int) -> None: ...
    @property
    def labels(self) -> float: ...
    def probabilities_of(self, ratings: list[float]) -> list[float]: ...
    def score_one(
        self,
        ratings: list[float],
        known: int,
        code: int,
        w: float,
        pending: PendingPredictions | None = None,
        key: int = 0,
    ) -> None: ...
    def probabilities(self, ratings: NDArray[np.float64], known: int) -> NDArray[np.float64]: ...
    def score_many(
        self,
        ratings: NDArray[np.float64],
        known: int,
        codes: NDArray[np.int64],
        w: NDArray[np.float64],
        pending: PendingPredictions | None = None,
        keys: Any = None,
        returns: bool = False,
    ) -> Any: ...
