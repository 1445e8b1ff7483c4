from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.rows._dict_row import RowReader
from sapwood.tree._tables import TreeTables

class PredictingTree(TreeTables):
    def predict_targets_one(
        self, reader: RowReader, x: Any, id: int = 0, record: bool = True
    ) -> list[float] | None: ...
    def predict_one(
        self, reader: RowReader, x: Any, id: int = 0, record: bool = True
    ) -> float | None: ...
    def place_one(
        self, reader: RowReader, x: Any, asked: bool = True, id: int = 0
    ) -> tuple[float, int] | None: ...
    def explain_row(
        self, row: NDArray[np.float64], target: int = 0
    ) -> tuple[int, list[float], list[float], float, list[float], float]: ...
    def encodings_of(self, feature: int, from_first: bool = False) -> NDArray[np.float64]: ...
    def add_unusualness(self, X: NDArray[np.float64], found: NDArray[np.float64]) -> None: ...
    def predict(
        self,
        X: NDArray[np.float64],
        predictions: NDArray[np.float64],
        is_current: Callable[[], bool] | None = None,
        regions: NDArray[np.int32] | None = None,
        asked: bool = True,
        ids: NDArray[np.uint64] | None = None,
    ) -> bool: ...
