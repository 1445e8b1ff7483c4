from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

ARRAYS: tuple[str, ...]

class LeafBayes:
    adaptive: bool
    classes: int
    places: dict[int, int]
    moments: NDArray[np.float64]
    categories: NDArray[np.float64]
    right: NDArray[np.float64]
    def __init__(self, adaptive: bool, classes: int) -> None: ...
    @property
    def nbytes(self) -> int: ...
    def widened(self, classes: int) -> LeafBayes: ...
    def state(self, leaves: Collection[int]) -> dict[str, NDArray[Any]]: ...
    def restore(
        self, arrays: Mapping[str, NDArray[Any]], leaves: Collection[int], features: int
    ) -> None: ...
    def reserve(self, nodes: NDArray[np.int32], features: int) -> None: ...
    def rate(
        self,
        X: NDArray[np.float64],
        is_category: NDArray[np.int8],
        nodes: NDArray[np.int32],
        ratings: NDArray[np.float64],
    ) -> None: ...
    def learn(
        self,
        X: NDArray[np.float64],
        is_category: NDArray[np.int8],
        nodes: NDArray[np.int32],
        ratings: NDArray[np.float64],
        codes: NDArray[np.int64],
        w: NDArray[np.float64],
        done: NDArray[np.int8],
        labels_before: list[int],
    ) -> None: ...
