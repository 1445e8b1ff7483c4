"""Many series at once: one model for all stations, each with lags of its own.

Fifty stations count bicycles by the hour. Each has its own size, its own rhythm and a level that
wanders; what one station has learned helps the others, and what it has just seen helps itself.
"""

import numpy as np

import sapwood
from sapwood.evaluate import prequential
from sapwood.lags import LaggedModel, Lags

STATIONS = 50
HOURS = 24 * 7 * 5


def counts(seed: int = 3) -> tuple[dict[str, list[str] | np.ndarray], np.ndarray]:
    """Return the rows of all stations, hour by hour, and how many bicycles came."""
    rng = np.random.default_rng(seed)
    hour = np.arange(HOURS)[:, None]
    size, phase = rng.lognormal(3.5, 0.6, STATIONS), rng.uniform(-3, 3, STATIONS)
    level = np.exp(np.cumsum(rng.normal(0.0, 0.02, (HOURS, STATIONS)), axis=0))
    rhythm = 1.1 + np.sin(2 * np.pi * (hour + phase) / 24)
    weekend = np.where(hour // 24 % 7 >= 5, 0.6, 1.0)
    y = rng.poisson(size * level * rhythm * weekend).astype(float).ravel()
    columns: dict[str, list[str] | np.ndarray] = {
        "station": [f"s{place:02d}" for place in range(STATIONS)] * HOURS,
        "hour": np.repeat(np.arange(HOURS) % 24, STATIONS).astype(float),
        "weekday": np.repeat(np.arange(HOURS) // 24 % 7, STATIONS).astype(float),
    }
    return columns, y


def main() -> None:
    """Evaluate a tree without lags, with lags, and with labels that come a day late."""
    columns, y = counts()
    day = 24 * STATIONS
    settings = {
        "without lags": (None, None),
        "with lags": (Lags([1, 24, 168], means=24, by="station"), None),
        "with lags, labels a day late": (Lags([25, 48, 168], means=48, by="station"), day),
    }
    for name, (lags, delay) in settings.items():
        tree = sapwood.HoeffdingTreeRegressor()
        model = tree if lags is None else LaggedModel(tree, lags)
        found = prequential(model, columns, y, delay=delay)
        size = "" if lags is None else f", {lags.n_series} series in {lags.nbytes / 1e6:.2f} MB"
        print(f"{name}: {found.headline}, R² {found.total.r2:.3f}{size}")


if __name__ == "__main__":
    main()
