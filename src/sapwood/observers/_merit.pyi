import numpy as np
from numpy.typing import NDArray

from sapwood.moments import Moments

def totals(table: NDArray[np.float64], order: NDArray[np.intp]) -> list[Moments]: ...
def merits(table: NDArray[np.float64], order: NDArray[np.intp]) -> NDArray[np.float64]: ...
def best_cut(
    table: NDArray[np.float64], order: NDArray[np.intp]
) -> tuple[int, float, list[Moments], list[Moments]]: ...
