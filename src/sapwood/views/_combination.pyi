import numpy as np
from numpy.typing import NDArray

def fresh(count: int) -> NDArray[np.float64]: ...
def weights(state: NDArray[np.float64], count: int) -> list[float]: ...
def predict(
    state: NDArray[np.float64], members: NDArray[np.float64], found: NDArray[np.float64]
) -> None: ...
def learn(
    state: NDArray[np.float64],
    members: NDArray[np.float64],
    issued: NDArray[np.float64],
    y: NDArray[np.float64],
    w: NDArray[np.float64],
    found: NDArray[np.float64],
) -> None: ...
