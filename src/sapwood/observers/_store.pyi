import numpy as np
from numpy.typing import NDArray

LAYOUT: tuple[int, int, int, int]

class Store:
    targets: int
    count: int
    def order(self) -> NDArray[np.intp]: ...
    def arrays(self) -> list[NDArray[np.generic]]: ...
    @property
    def nbytes(self) -> int: ...
