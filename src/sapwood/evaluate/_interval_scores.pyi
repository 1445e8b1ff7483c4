import numpy as np
from numpy.typing import NDArray

FIELDS: tuple[str, ...]

def score_bounds(
    state: NDArray[np.float64],
    levels: NDArray[np.float64],
    bounds: NDArray[np.float64],
    y: NDArray[np.float64],
    fade: float,
) -> None: ...
