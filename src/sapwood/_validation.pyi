import numpy as np
from numpy.typing import NDArray

def first_bad_value(y: NDArray[np.float64], w: NDArray[np.float64]) -> int: ...
