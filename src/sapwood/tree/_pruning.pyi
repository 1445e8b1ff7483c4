from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.tree._tables import TreeTables
from sapwood.tree._target_records import TargetRecords

def remove_leaves(
    tables: TreeTables,
    nodes: NDArray[Any],
    leaves: NDArray[Any],
    node_count: int,
    kept: NDArray[np.bool_],
    below: NDArray[np.intp],
    new_numbers: NDArray[np.intp],
    model: NDArray[np.float64] | None,
    watching: bool,
    records: TargetRecords | None,
) -> None: ...

class OtherSplits:
    def __init__(
        self,
        tables: TreeTables,
        no_splits: tuple[Any, ...],
        may_split: NDArray[np.bool_],
        memory: NDArray[Any],
        measure_at: float,
        bound: float,
        ends_trial: bool,
    ) -> None: ...

def commit_splits(
    changes: list[OtherSplits], no_splits: tuple[Any, ...], parameters: dict[str, Any]
) -> None: ...
