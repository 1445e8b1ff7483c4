from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.rows.features import Features, KnownFeatures

FLAG_ROWS: int
FLAG_SHARE: int

class Gaps:
    table: NDArray[np.int64]
    any_missing: bool
    flag_due: bool
    def __init__(self, table: NDArray[np.int64], flag_due: bool) -> None: ...

class FeatureTable:
    known: KnownFeatures
    gaps: NDArray[np.int64]
    any_gaps: bool
    flag_due: bool
    def set_gaps(self, gaps: NDArray[np.int64], flag_due: bool) -> None: ...

class RowReader:
    features: Features
    row: NDArray[np.float64]
    width: int
    def __init__(self, features: Features) -> None: ...
    def refresh(self) -> None: ...
    def read(self, x: Any, learn: bool) -> bool: ...
    @property
    def nbytes(self) -> int: ...

def finite_copy(
    X: NDArray[np.float64],
) -> tuple[NDArray[np.float64], bool, tuple[int, int] | None]: ...
def has_no_gap(X: NDArray[np.float64]) -> bool: ...
def first_infinite(X: NDArray[np.float64]) -> tuple[int, int] | None: ...
def shared_place(label: str | int, places: int) -> int: ...
