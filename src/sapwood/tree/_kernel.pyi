from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from sapwood.rows._dict_row import RowReader
from sapwood.tree._predict_tree import PredictingTree
from sapwood.tree._schema_migration import SchemaMigration

LARGEST_Y: float
LEAST_SHARES: tuple[float, ...]
PENDING_DOUBLES: int
RANGE_MARGIN: float
TERM_REACH: float
TERM_CREDIBLE: float

def refuse_row(y: float, w: float, row: int | None = None, name: str = "y") -> NoReturn: ...

class TreeKernel(PredictingTree):
    def learn(
        self,
        X: NDArray[np.float64],
        y: NDArray[np.float64],
        w: NDArray[np.float64],
        predictions: NDArray[np.float64] | None = None,
        register: Callable[[], SchemaMigration | None] | None = None,
        regions: NDArray[np.int32] | None = None,
        asked: bool = True,
        ids: NDArray[np.uint64] | None = None,
    ) -> None: ...
    def check(self, y: NDArray[np.float64], w: NDArray[np.float64], targets: int = 1) -> int: ...
    def learn_targets_one(
        self, reader: RowReader, x: Any, y: NDArray[np.float64], w: float, id: int = 0
    ) -> bool: ...
    def learn_one(self, reader: RowReader, x: Any, y: float, w: float, id: int = 0) -> bool: ...
