from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.tree._kernel import TreeKernel
from sapwood.tree._tables import TreeTables

Array = NDArray[Any]

RATES_OF_MODELS: int
GRID_DOUBLES: int
SLOT_DOUBLES: int

def information_doubles(features: int) -> int: ...
def delta_doubles(features: int, linear: bool) -> int: ...
def extract(
    tables: TreeTables, leaves: Array, models: Array, laid: NDArray[np.uint8]
) -> tuple[Array, Array, Array, Array, Array, Array]: ...
def join(
    sums: Array,
    models: Array,
    places: Array,
    slots: Array,
    other_sums: Array,
    other_models: Array,
    other_places: Array,
    other_slots: Array,
) -> tuple[Array, Array, Array, Array]: ...
def apply(
    tables: TreeTables,
    sums: Array,
    models: Array,
    places: Array,
    slots: Array,
    parts_at: Array,
    pages: Array,
) -> None: ...
def grow(kernel: TreeKernel) -> None: ...
def faded_usual(before: float, after: float, rows: float) -> tuple[float, float]: ...
def usual_with(before: float, added: float, mass: float, rows: float) -> float: ...
def grids_of(tables: TreeTables) -> NDArray[np.float64]: ...
def lift_limit(tables: TreeTables) -> None: ...
