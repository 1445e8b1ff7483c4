import numpy as np
from numpy.typing import NDArray

STAGES: int
STAGE_NUMBERS: int
FIRST_START: int
FIRST_DELAY: int
MEMBERS: int
RESULTS: int
STATE: int
FIRST_ERROR: int
SLOW: float
FAST: float
PRECISION: float
DELAY_HALF: float
BACKTEST_PRECISION: float

def positions(state: NDArray[np.float64], found: NDArray[np.float64]) -> None: ...
def predict(
    state: NDArray[np.float64], members: NDArray[np.float64], results: NDArray[np.float64]
) -> None: ...
def learn(
    state: NDArray[np.float64],
    members: NDArray[np.float64],
    results: NDArray[np.float64],
    y: NDArray[np.float64],
    w: NDArray[np.float64],
    delays: NDArray[np.float64],
    issued: NDArray[np.uint8],
    tests: NDArray[np.float64] | None = None,
    now: NDArray[np.float64] | None = None,
    found: NDArray[np.float64] | None = None,
) -> None: ...
