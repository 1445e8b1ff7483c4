import numpy as np
from numpy.typing import NDArray

FIRST_LEVEL: int
FIRST_QUANTILE: int
FIRST_BOUND: int
MOST_LEVELS: int
NOT_MET: float
LARGEST: float

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int32]

def foresee(
    table: FloatArray,
    overall: FloatArray,
    levels: FloatArray,
    parents: IntArray,
    regions: IntArray,
    predictions: FloatArray,
    said: FloatArray,
) -> None: ...
def publish(said: FloatArray, overall: FloatArray, bounds: FloatArray) -> None: ...
def learn(
    table: FloatArray,
    overall: FloatArray,
    levels: FloatArray,
    parents: IntArray,
    regions: IntArray,
    predictions: FloatArray,
    y: FloatArray,
    w: FloatArray,
    said: FloatArray | None = None,
    bounds: FloatArray | None = None,
) -> None: ...
