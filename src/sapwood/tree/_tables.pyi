from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sapwood.corrector._pending import PendingPredictions
from sapwood.observers.base import TableObserver
from sapwood.records import Records
from sapwood.tree._column_tables import Columns
from sapwood.tree._leaves import Leaves
from sapwood.tree._target_records import TargetRecords
from sapwood.tree.leaf_observers import LeafObservers
from sapwood.validation import Label

T = TypeVar("T")

def most_kept_rows(slots: int) -> int: ...

class TreeTables(Leaves):
    features: int
    slots: int
    targets: int
    averaging: bool
    tracking: bool
    node_count: int
    undecided: int
    weight: float
    rows: float
    first: float
    stream: dict[str, float]
    target_records: TargetRecords
    low: float
    high: float
    name_bytes: int
    node_table: Records
    layer_table: NDArray[np.float64]
    unit_detection_table: NDArray[Any]
    change_table: NDArray[Any]
    watching_units: bool
    pending: PendingPredictions | None
    observing: LeafObservers
    no_splits: tuple[Label, ...]
    columns: Columns
    def __init__(
        self,
        observing: LeafObservers,
        linear: bool,
        averaging: bool,
        pending: PendingPredictions | None,
        growth: NDArray[Any],
        memory: NDArray[Any],
        name_bytes: int,
        no_splits: tuple[Label, ...],
    ) -> None: ...
    def set_rules(self, growth: NDArray[Any], memory: NDArray[Any]) -> None: ...
    def set_name_bytes(self, name_bytes: int) -> None: ...
    @property
    def grace_period(self) -> float: ...
    @property
    def max_bytes(self) -> int: ...
    @property
    def max_depth(self) -> int: ...
    @property
    def first_review(self) -> float: ...
    @property
    def encoding_table(self) -> NDArray[np.float64]: ...
    @property
    def has_trial(self) -> bool: ...
    @property
    def trial_table(self) -> tuple[NDArray[Any], NDArray[np.float64]]: ...
    def set_trial(self, record: NDArray[Any], pages: NDArray[np.float64]) -> None: ...
    def fresh_observers(self) -> list[TableObserver] | None: ...
    def set_layer(self, layer: NDArray[np.float64]) -> None: ...
    def set_unit_detection(self, detection: NDArray[Any], changes: NDArray[Any]) -> None: ...
    def stop_watching_units(self) -> None: ...
    def set_stream(
        self,
        rows: float,
        weight: float,
        first: float,
        low: float,
        high: float,
        usual: float,
        ranked_at: float,
        measure_at: float,
        bound: float,
    ) -> None: ...
    def set_tables(
        self,
        columns: Columns,
        nodes: NDArray[Any],
        leaves: NDArray[Any],
        node_count: int,
        leaf_count: int,
        records: TargetRecords | None = None,
        pending: PendingPredictions | None = None,
    ) -> None: ...
    def sizes_for(
        self, is_category: NDArray[np.bool_], places: NDArray[np.intp], targets: int
    ) -> tuple[int, int, int]: ...
    def page_parts(self) -> tuple[int, int, int, int]: ...
    def slot_start(self, feature: int) -> int: ...
    def gap_start(self, feature: int) -> int: ...
    @property
    def slot_doubles(self) -> int: ...
    @property
    def page_size(self) -> int: ...
    def model_place(self, target: int) -> tuple[int, int]: ...
    def unwatch(self, leaf: int) -> None: ...
    def set_undecided(self, leaf: int) -> None: ...
    def read_locked(self, read: Callable[..., T], *arguments: Any) -> T: ...
    def write_locked(self, learn: Callable[..., T], *arguments: Any) -> T: ...
