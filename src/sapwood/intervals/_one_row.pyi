import numpy as np
from numpy.typing import NDArray

from sapwood.corrector._pending import PendingPredictions

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int32]

class OneRow:
    regions: int
    @property
    def known(self) -> float: ...
    def __init__(
        self,
        table: FloatArray,
        overall: FloatArray,
        levels: FloatArray,
        parents: IntArray,
        pending: PendingPredictions,
        labels: FloatArray,
        factors: FloatArray,
    ) -> None: ...
    def issue(self, region: int, prediction: float, key: int, group: int = 0) -> None: ...
    def score(
        self,
        region: int,
        prediction: float,
        y: float,
        w: float,
        key: int,
        group: int = 0,
        known_groups: int = 0,
    ) -> None: ...
