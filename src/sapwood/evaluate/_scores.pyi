import numpy as np
from numpy.typing import NDArray

FIELDS: tuple[str, ...]

def score(
    state: NDArray[np.float64],
    recent: NDArray[np.float64],
    predictions: NDArray[np.float64],
    y: NDArray[np.float64],
    fade: float,
) -> None: ...
