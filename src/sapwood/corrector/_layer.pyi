import numpy as np
from numpy.typing import NDArray

LEVEL_RATES: tuple[float, ...]
LAYER_DOUBLES: int
MOST_RECORDS: int
FIRST_WINDOW: int
RANGE_PARTS: tuple[str, ...]
CORRECTED_DOUBLES: int

def last_label_share(state: NDArray[np.float64]) -> float: ...
def fresh_layer() -> NDArray[np.float64]: ...
def layer_parts() -> list[tuple[str, int, int]]: ...

class ErrorCorrectionLayer:
    state: NDArray[np.float64]
    rows: float
    def __init__(self, state: NDArray[np.float64] | None = None, rows: float = 0.0) -> None: ...
    def copy(self) -> ErrorCorrectionLayer: ...
    def predict(
        self, predictions: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
    def learn(
        self,
        predictions: NDArray[np.float64],
        y: NDArray[np.float64],
        records: NDArray[np.float64] | None = None,
        w: NDArray[np.float64] | None = None,
        at_once: bool = False,
    ) -> NDArray[np.float64]: ...
    def predict_learn(
        self, predictions: NDArray[np.float64], y: NDArray[np.float64]
    ) -> NDArray[np.float64]: ...
