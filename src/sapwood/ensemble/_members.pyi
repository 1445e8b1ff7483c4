from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.corrector._pending import PendingPredictions
from sapwood.records import Records
from sapwood.tree._kernel import TreeKernel

FloatArray = NDArray[np.float64]

def pending_doubles(trees: int, targets: int = 1) -> int: ...
def bytes_of_a_target(trees: int) -> int: ...
def fresh_errors(trees: int, targets: int) -> FloatArray: ...

class TargetTables:
    targets: int
    record_table: Records
    stack_table: FloatArray
    layer_table: FloatArray
    error_table: FloatArray
    def __init__(
        self,
        trees: int,
        record_table: NDArray[Any],
        stack_table: FloatArray,
        layer_table: FloatArray,
        error_table: FloatArray,
    ) -> None: ...

class Members:
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
    targets: int
    tables: TargetTables
    tree_table: Records
    stack_table: FloatArray
    layer_table: FloatArray
    detector_table: FloatArray
    pending: PendingPredictions | None
    lifetime: float
    events: list[dict[str, Any]]
    def fresh_targets(self, targets: int) -> TargetTables: ...
    def has_seen_target(self, target: int) -> list[bool]: ...
    def error_shares(self) -> FloatArray: ...
    def use_tables(
        self, tree_table: NDArray[Any], tables: TargetTables, detector: FloatArray
    ) -> None: ...
    def use_trees(
        self,
        trees: list[TreeKernel],
        tree_table: NDArray[Any],
        tables: TargetTables,
        detector: FloatArray,
        lifetime: float,
        events: list[dict[str, Any]],
    ) -> None: ...
    def set_stream(self, *values: float) -> None: ...
    @property
    def worth(self) -> float: ...
    def weights(self, target: int = 0) -> list[float]: ...
    def end_look(
        self,
        lifetime: float,
        events: list[dict[str, Any]],
        trees: list[TreeKernel] | None = None,
        table: NDArray[Any] | None = None,
        errors: FloatArray | None = None,
        anew: bool = False,
    ) -> None: ...
