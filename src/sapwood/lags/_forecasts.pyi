import numpy as np
from numpy.typing import NDArray

FIRST_SHARE: int
MEMBERS: tuple[str, ...]
SIZES: int

def size(lags: int, has_time: bool) -> int: ...
def predict(
    state: NDArray[np.float64],
    has_time: bool,
    inputs: NDArray[np.float64],
    own: NDArray[np.float64],
    members: NDArray[np.float64],
    results: NDArray[np.float64],
) -> None: ...
def learn(
    state: NDArray[np.float64],
    has_time: bool,
    inputs: NDArray[np.float64],
    own: NDArray[np.float64],
    members: NDArray[np.float64],
    results: NDArray[np.float64],
    y: NDArray[np.float64],
    w: NDArray[np.float64],
    delays: NDArray[np.float64],
    issued: NDArray[np.uint8],
    fading: NDArray[np.float64] | None = None,
) -> None: ...
def positions(state: NDArray[np.float64]) -> dict[str, float]: ...
def to_units(
    inputs: NDArray[np.float64],
    seasons: NDArray[np.intp],
    level: int,
    y: NDArray[np.float64],
    sizes: NDArray[np.float64],
    units: NDArray[np.float64],
) -> None: ...
