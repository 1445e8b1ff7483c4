import numpy as np
from numpy.typing import NDArray

from sapwood.moments import Moments

def gathered(table: NDArray[np.float64], start: int, stop: int, step: int) -> list[Moments]: ...
def merits(table: NDArray[np.float64], whole: list[Moments]) -> NDArray[np.float64]: ...
