from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.observers.base import TableObserver
from sapwood.tree._entry import RowReader

GRID_DOUBLES: int
SLOT_DOUBLES: int
LEAST_SHARES: tuple[float, ...]
TRACK_RATES: tuple[float, ...]

def most_kept_rows(slots: int) -> int: ...
def refuse_row(y: float, w: float, first: float, row: int | None = None) -> None: ...

class TreeKernel:
    features: int
    slots: int
    linear: bool
    averaging: bool
    tracking: bool
    node_count: int
    leaf_count: int
    weight: float
    rows: float
    first: float
    low: float
    high: float
    node_table: NDArray[Any]
    leaf_table: NDArray[Any]
    level_table: NDArray[np.float64]
    track_table: NDArray[np.float64]
    model_pages: list[Any]
    watch_pages: list[Any]
    observers: list[Any]
    def __init__(self, slots: int, linear: bool, averaging: bool, tracking: bool) -> None: ...
    def set_tracks(self, tracks: NDArray[np.float64]) -> None: ...
    def set_stream(
        self, rows: float, weight: float, first: float, low: float, high: float
    ) -> None: ...
    def set_features(
        self, is_category: NDArray[np.bool_], levels: NDArray[np.float64] | None = None
    ) -> None: ...
    def sizes_for(self, is_category: NDArray[np.bool_]) -> tuple[int, int, int]: ...
    @property
    def buffer_bytes(self) -> int: ...
    @property
    def model_doubles(self) -> int: ...
    @property
    def watch_doubles(self) -> int: ...
    def page_parts(self) -> tuple[int, int, int, int]: ...
    def slot_start(self, feature: int) -> int: ...
    def set_tables(self, nodes: NDArray[Any], leaves: NDArray[Any]) -> None: ...
    def set_counts(self, nodes: int, leaves: int) -> None: ...
    def set_pages(
        self,
        leaf: int,
        model: NDArray[np.float64] | None,
        watch: NDArray[np.float64] | None,
        observers: list[TableObserver] | None = None,
    ) -> None: ...
    def leaf_state(self, leaf: int) -> tuple[float, int, float, float, float]: ...
    def restart(self, leaf: int, review: float) -> None: ...
    def set_due(self, leaf: int, due: float, review: float) -> None: ...
    def learn(
        self,
        X: NDArray[np.float64],
        y: NDArray[np.float64],
        w: NDArray[np.float64],
        decide: Callable[[int], None],
        predictions: NDArray[np.float64] | None = None,
    ) -> None: ...
    def check(self, y: NDArray[np.float64], w: NDArray[np.float64]) -> int: ...
    def learn_one(
        self, reader: RowReader, y_given: Any, w_given: Any, decide: Callable[[int], None]
    ) -> None: ...
    def predict_one(self, reader: RowReader) -> float: ...
    def outlook(
        self, row: NDArray[np.float64]
    ) -> tuple[int, list[float], list[float], float, float]: ...
    def predict(self, X: NDArray[np.float64], predictions: NDArray[np.float64]) -> None: ...
