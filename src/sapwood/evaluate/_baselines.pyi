from numpy import float64, int64
from numpy.typing import NDArray

KNOWN: int
WEEK_COLUMNS: int
FORECASTS: int

def follow(
    known: NDArray[float64],
    week: NDArray[float64],
    counts: NDArray[float64],
    means: NDArray[float64],
    recent: NDArray[float64],
    predictions: NDArray[float64],
    y: NDArray[float64],
    times: NDArray[float64] | None,
    fade: float,
) -> None: ...
def forecast(
    known: NDArray[float64], week: NDArray[float64], time: float, told: NDArray[float64]
) -> None: ...
def follow_late(
    known: NDArray[float64],
    week: NDArray[float64],
    counts: NDArray[float64],
    means: NDArray[float64],
    recent: NDArray[float64],
    events: NDArray[int64],
    told: NDArray[float64],
    predictions: NDArray[float64],
    y: NDArray[float64],
    times: NDArray[float64],
    fade: float,
) -> None: ...
