import numpy as np
from numpy.typing import NDArray

from sapwood.observers._store import Store

class GridStore(Store):
    slots: int
    level: int
    def __init__(self, targets: int, slots: int) -> None: ...
    @property
    def radius(self) -> float: ...
    def absorb(
        self,
        level: int,
        keys: NDArray[np.float64],
        ends: NDArray[np.float64],
        table: NDArray[np.float64],
    ) -> None: ...
    def upper_borders(self, keys: NDArray[np.float64]) -> NDArray[np.float64]: ...

def roundest_between(keys: NDArray[np.float64]) -> NDArray[np.float64]: ...
def are_slots(level: int, keys: NDArray[np.float64], ends: NDArray[np.float64]) -> bool: ...
