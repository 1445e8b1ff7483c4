import numpy as np
from numpy.typing import NDArray

from sapwood.tree._kernel import TreeKernel

FloatArray = NDArray[np.float64]

def fresh_model(kernel: TreeKernel) -> FloatArray: ...
def fresh_watch(kernel: TreeKernel) -> FloatArray: ...
def divide(
    kernel: TreeKernel,
    leaf: int,
    kind: int,
    feature: int,
    place: int,
    threshold: float,
    subset: int,
    missing_left: bool,
    merit: float,
    sides: list[tuple[float, float, float]],
    grace: float,
) -> None: ...
