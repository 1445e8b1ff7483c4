from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.corrector._pending import PendingPredictions
from sapwood.ensemble._members import Members
from sapwood.rows._dict_row import RowReader
from sapwood.tree._kernel import TreeKernel
from sapwood.tree._schema_migration import SchemaMigration

FloatArray = NDArray[np.float64]

class Work: ...

class EnsembleKernel(Members):
    work: Work | None
    renew: Any
    def __init__(
        self,
        rules: Any,
        trees: list[TreeKernel],
        tree_table: NDArray[Any],
        thresholds: dict[float, NDArray[np.uint64]],
        tracking: bool,
        new_pending: Callable[[int], PendingPredictions],
        renew: Callable[[EnsembleKernel], None],
        lifetime: float,
        threads: int,
    ) -> None: ...
    def predict_one(
        self, reader: RowReader, x: Any, id: int = 0, record: bool = True
    ) -> float | None: ...
    def learn_one(self, reader: RowReader, x: Any, y: float, w: float, id: int = 0) -> bool: ...
    def predict_targets_one(
        self, reader: RowReader, x: Any, id: int = 0, record: bool = True
    ) -> list[float] | None: ...
    def learn_targets_one(
        self, reader: RowReader, x: Any, y: FloatArray, w: float, id: int = 0
    ) -> bool: ...
    def check(self, y: FloatArray, w: FloatArray, targets: int = 1) -> int: ...
    def learn(
        self,
        X: FloatArray,
        y: FloatArray,
        w: FloatArray,
        predictions: FloatArray | None = None,
        register: Callable[[], SchemaMigration | None] | None = None,
        asked: bool = True,
        ids: NDArray[np.uint64] | None = None,
    ) -> None: ...
    def predict(
        self,
        X: FloatArray,
        predictions: FloatArray,
        is_current: Callable[[], bool] | None = None,
        asked: bool = True,
        ids: NDArray[np.uint64] | None = None,
    ) -> bool: ...
    def explain_row(
        self, row: FloatArray, target: int = 0
    ) -> tuple[list[float], list[float], float, float, float]: ...
    def read_locked(self, read: Callable[..., Any], *arguments: Any) -> Any: ...
    def write_locked(self, learn: Callable[..., Any], *arguments: Any) -> Any: ...
    def change_locked(self, change: Callable[..., Any], *arguments: Any) -> Any: ...
