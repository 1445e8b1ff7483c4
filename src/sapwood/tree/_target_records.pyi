from typing import Any

from numpy.typing import NDArray

class TargetRecords:
    streams: NDArray[Any]
    leaves: NDArray[Any]
    nodes: NDArray[Any]
    trials: NDArray[Any]
    def __init__(
        self,
        streams: NDArray[Any],
        leaves: NDArray[Any],
        nodes: NDArray[Any],
        trials: NDArray[Any],
    ) -> None: ...

def fresh_targets(targets: int, leaf_room: int, node_room: int) -> TargetRecords: ...
