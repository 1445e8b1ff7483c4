import numpy as np
from numpy.typing import NDArray

FIELDS: int
LARGEST: float

def watch(
    state: NDArray[np.float64],
    values: NDArray[np.float64],
    limit: float,
    first: int,
    last: int,
) -> tuple[int, tuple[float, float, float] | None]: ...
