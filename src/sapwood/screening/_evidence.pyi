import numpy as np
from numpy.typing import NDArray

BINS: int
THRESHOLD_COUNT: int
TRACKS: int

def standardised(
    tracks: NDArray[np.float64],
    y: NDArray[np.float64],
    before: NDArray[np.float64],
    is_first: bool,
    scores: NDArray[np.float64],
) -> None: ...
def add(
    X: NDArray[np.float64],
    places: NDArray[np.int64],
    thresholds: NDArray[np.float64],
    scores: NDArray[np.float64],
    sums: NDArray[np.float64],
    done: NDArray[np.uint8],
) -> None: ...
