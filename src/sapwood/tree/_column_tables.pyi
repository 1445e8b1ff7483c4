from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.records import Records

GRID_DOUBLES: int
SLOT_DOUBLES: int
ENCODING_HEAD: int
FARTHEST_ENCODING: float

def encoding_table_rows(places: NDArray[np.intp]) -> int: ...
def encoding_rows(places: NDArray[np.intp]) -> int: ...
def are_separate(
    is_category: NDArray[np.bool_], places: NDArray[np.intp], targets: int
) -> bool: ...

class Columns:
    is_category: NDArray[np.bool_]
    place_table: NDArray[np.intp]
    encoding_table: NDArray[np.float64]
    unit_table: NDArray[Any]
    features: int
    targets: int
    has_encoded: bool
    split_encoded: bool
    split_encoding_table: NDArray[np.float64]
    encoding_weight_table: NDArray[np.float64]
    def __init__(
        self,
        is_category: NDArray[np.bool_],
        slots: int,
        places: NDArray[np.intp] | None = None,
        levels: NDArray[np.float64] | None = None,
        facts: NDArray[Any] | None = None,
        samples: NDArray[np.float64] | None = None,
        units: NDArray[Any] | None = None,
        targets: int = 1,
        may_split: NDArray[np.bool_] | None = None,
        encodings: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None,
    ) -> None: ...
    def allow_splits(self, may_split: NDArray[np.bool_]) -> None: ...
    @property
    def known_facts(self) -> Records: ...
    @property
    def known_costs(self) -> NDArray[Any]: ...
    def set_costs(self, costs: NDArray[Any] | None) -> None: ...
    @property
    def known_samples(self) -> NDArray[np.float64]: ...
    @property
    def watch_doubles(self) -> int: ...
    def slot_start(self, feature: int) -> int: ...
    def gap_start(self, feature: int) -> int: ...
