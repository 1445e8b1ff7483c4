from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.blend._notes import Notes
from sapwood.rows._dict_row import RowReader
from sapwood.tree._kernel import TreeKernel
from sapwood.tree._relay import Registration

FloatArray = NDArray[np.float64]

def note_doubles(trees: int) -> int: ...

class Work: ...

class EnsembleKernel:
    trees: list[TreeKernel]
    members: int
    rows: float
    weight: float
    low: float
    high: float
    usual: float
    looked_at: float
    lead: float
    lead_square: float
    gain: float
    gain_square: float
    begun: float
    changed: float
    calm: float
    stir: float
    tracking: bool
    tree_table: NDArray[Any]
    blend_table: FloatArray
    layer_table: FloatArray
    detector_table: FloatArray
    notes: Notes | None
    work: Work | None
    lifetime: float
    events: list[dict[str, Any]]
    renew: Any
    def __init__(
        self,
        rules: Any,
        trees: list[TreeKernel],
        tree_table: NDArray[Any],
        thresholds: dict[float, NDArray[np.uint64]],
        tracking: bool,
        most_notes: int,
        renew: Callable[[EnsembleKernel], None],
        lifetime: float,
        threads: int,
    ) -> None: ...
    def use_tables(
        self,
        tree_table: NDArray[Any],
        blend: FloatArray,
        layer: FloatArray,
        detector: FloatArray,
    ) -> None: ...
    def use_trees(
        self,
        trees: list[TreeKernel],
        tree_table: NDArray[Any],
        blend: FloatArray,
        layer: FloatArray,
        detector: FloatArray,
        lifetime: float,
        events: list[dict[str, Any]],
    ) -> None: ...
    def set_stream(self, *values: float) -> None: ...
    @property
    def worth(self) -> float: ...
    def predict_one(self, reader: RowReader, x: Any) -> float | None: ...
    def learn_one(self, reader: RowReader, x: Any, y: float, w: float) -> bool: ...
    def check(self, y: FloatArray, w: FloatArray) -> int: ...
    def learn(
        self,
        X: FloatArray,
        y: FloatArray,
        w: FloatArray,
        predictions: FloatArray | None = None,
        register: Callable[[], Registration | None] | None = None,
        asked: bool = True,
    ) -> None: ...
    def predict(
        self,
        X: FloatArray,
        predictions: FloatArray,
        is_current: Callable[[], bool] | None = None,
        asked: bool = True,
    ) -> bool: ...
    def say(self, row: FloatArray) -> tuple[list[float], list[float], float, float, float]: ...
    def weights(self) -> list[float]: ...
    def while_still(self, read: Callable[..., Any], *arguments: Any) -> Any: ...
    def in_turn(self, learn: Callable[..., Any], *arguments: Any) -> Any: ...
    def end_look(
        self,
        lifetime: float,
        events: list[dict[str, Any]],
        trees: list[TreeKernel] | None = None,
        table: NDArray[Any] | None = None,
        anew: bool = False,
    ) -> None: ...
