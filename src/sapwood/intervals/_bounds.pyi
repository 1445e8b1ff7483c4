import numpy as np
from numpy.typing import NDArray

from sapwood.corrector._pending import PendingPredictions

FIRST_LEVEL: int
FIRST_QUANTILE: int
FIRST_BOUND: int
MOST_LEVELS: int
NOT_MET: float
LARGEST: float
LATENESS_PLACE: int
MOST_GROUPS: int
WIDEST: float

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int32]

def predict_intervals(
    table: FloatArray,
    overall: FloatArray,
    levels: FloatArray,
    parents: IntArray,
    regions: IntArray,
    predictions: FloatArray,
    issued: FloatArray,
    factors: FloatArray | None = None,
    groups: IntArray | None = None,
) -> None: ...
def publish(issued: FloatArray, overall: FloatArray, bounds: FloatArray) -> None: ...
def learn(
    table: FloatArray,
    overall: FloatArray,
    levels: FloatArray,
    parents: IntArray,
    regions: IntArray,
    predictions: FloatArray,
    y: FloatArray,
    w: FloatArray,
    pending: PendingPredictions | None = None,
    keys: NDArray[np.uint64] | None = None,
    labels: FloatArray | None = None,
    bounds: FloatArray | None = None,
    factors: FloatArray | None = None,
    groups: IntArray | None = None,
    known_groups: int = 0,
) -> None: ...
