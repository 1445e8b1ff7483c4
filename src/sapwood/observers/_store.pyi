import numpy as np
from numpy.typing import NDArray

class Store:
    targets: int
    count: int
    def elements(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
    def arrays(self) -> list[NDArray[np.generic]]: ...
    @property
    def nbytes(self) -> int: ...
