import numpy as np
from numpy.typing import NDArray

from sapwood.observers._store import Store

class SearchTreeStore(Store):
    scale: float
    def __init__(self, targets: int, scale: float = 0.0) -> None: ...
    def absorb(self, keys: NDArray[np.float64], table: NDArray[np.float64]) -> None: ...
