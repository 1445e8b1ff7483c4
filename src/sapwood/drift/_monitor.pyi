import numpy as np
from numpy.typing import NDArray

BINS: int
BLOCK: int
CATEGORY: int
COLUMN_FIELDS: int
EDGES: int
ERROR_FIELDS: int
FIRST: int
MISSING: int
NUMBER: int
RECENT: int
SCALE_FIELDS: int
WAITING: int

def column_parts() -> dict[str, slice]: ...
def watch_rows(
    columns: NDArray[np.float64],
    error: NDArray[np.float64],
    scale: NDArray[np.float64],
    targets: NDArray[np.float64],
    rows: NDArray[np.float64],
    in_block: int,
    row: float,
    limit: float,
    error_limit: float,
) -> tuple[int, int, list[int], tuple[float, float, float] | None]: ...
