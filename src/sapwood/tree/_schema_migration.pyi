from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.corrector._pending import PendingPredictions
from sapwood.rows._dict_row import FeatureTable, Gaps
from sapwood.tree._tables import TreeTables

class TreeMigration:
    def __init__(
        self,
        tables: TreeTables,
        is_category: NDArray[np.bool_],
        places: NDArray[np.intp],
        name_bytes: int,
        stopping: NDArray[np.bool_] | None,
        targets: int,
        pending: PendingPredictions | None = None,
        may_split: NDArray[np.bool_] | None = None,
        keeps_trial: bool = True,
    ) -> None: ...

class SchemaMigration:
    def __init__(
        self,
        features: FeatureTable,
        known: Any,
        relays: list[TreeMigration],
        gaps: Gaps | None = None,
    ) -> None: ...
    def commit_now(self) -> None: ...
