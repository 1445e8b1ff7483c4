import numpy as np
from numpy.typing import NDArray

STATE: int
CODES: dict[str, int]

def transformed(name: str, y: NDArray[np.float64], found: NDArray[np.float64]) -> None: ...
def predict(
    name: str,
    state: NDArray[np.float64],
    members: NDArray[np.float64],
    found: NDArray[np.float64],
) -> None: ...
def learn(
    name: str,
    state: NDArray[np.float64],
    members: NDArray[np.float64],
    y: NDArray[np.float64],
    w: NDArray[np.float64],
    rows: float,
    found: NDArray[np.float64],
) -> None: ...
