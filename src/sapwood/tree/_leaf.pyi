import numpy as np
from numpy.typing import NDArray

from sapwood.tree._kernel import TreeKernel

FloatArray = NDArray[np.float64]

def fresh_model(kernel: TreeKernel) -> FloatArray: ...
def child_models(
    kernel: TreeKernel, leaf: int, left: float, right: float
) -> tuple[FloatArray, FloatArray]: ...
def fresh_watch(kernel: TreeKernel) -> FloatArray: ...
def child_watches(
    kernel: TreeKernel, leaf: int, cut: int, place: int
) -> tuple[FloatArray, FloatArray]: ...
def divide(
    kernel: TreeKernel,
    leaf: int,
    kind: int,
    feature: int,
    threshold: float,
    subset: int,
    missing_left: bool,
    merit: float,
    sides: list[tuple[float, float, float]],
    grace: float,
) -> None: ...
def best_cuts(
    kernel: TreeKernel, leaf: int, min_share: float
) -> list[tuple[float, float, int, int, int]]: ...
def sides_of(
    kernel: TreeKernel, leaf: int, feature: int, place: int, subset: int
) -> tuple[list[tuple[float, float, float]], int]: ...
def threshold_of(kernel: TreeKernel, leaf: int, feature: int, place: int) -> float: ...
def deviation_of(kernel: TreeKernel, leaf: int, feature: int) -> float: ...
def review(kernel: TreeKernel, leaf: int) -> None: ...
