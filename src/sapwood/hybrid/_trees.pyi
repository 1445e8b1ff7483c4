import numpy as np
from numpy.typing import NDArray

LEAF: int
DEFAULT_LEFT: int
MISSING_ZERO: int
MISSING_NAN: int

def predict(
    X: NDArray[np.float64],
    roots: NDArray[np.int32],
    feature: NDArray[np.int32],
    number: NDArray[np.float64],
    right: NDArray[np.int32],
    flags: NDArray[np.uint8],
    base: float,
    out: NDArray[np.float64],
) -> None: ...
