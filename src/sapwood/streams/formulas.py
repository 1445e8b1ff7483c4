"""What generators compute: blocks of rows, and targets that drift.

All of it depends on the seed and the number of the row alone, counted from 0: so any block can be
made without those before it. `generators` has the formulas in words.
"""

import numpy as np
from numpy.typing import NDArray

from sapwood.streams.stream import Column
from sapwood.validation import Label

__all__ = [
    "BLOCK",
    "demand_block",
    "drifting_target",
    "friedman_block",
    "friedman_target",
    "hyperplane_block",
    "hyperplane_target",
    "mv_block",
    "mv_target",
    "planes2d_block",
    "planes2d_target",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Flags = NDArray[np.bool_]
Columns = dict[str, Column]

BLOCK = 4096  # another number would make other rows
OTHER_DRAWS = 1  # apart from those of the rows; not 0, which a seed takes for nothing

# Which features stand for x0, x1, x2, x3, x4 of Friedman's function, in each concept.
CONCEPTS = ((0, 1, 2, 3, 4), (3, 4, 1, 0, 2), (1, 4, 3, 2, 0))

CITIES = ("Bergen", "Oslo", "Tromsø")
BASE = np.array([320.0, 360.0, 270.0])
CLIMATE = np.array([8.0, 6.0, 3.0])
COLD = np.array([4.0, 9.0, 12.0])
GROWING = 1  # the place of Oslo
HOLIDAYS = (0, 120, 136, 358, 359)  # days of a year, from 0
DAYS = 365
PERSISTENCE = 0.98
SHOCK = 3.0


def _draws(seed: int, block: int, *purpose: int) -> np.random.Generator:
    """Return the draws of a block."""
    return np.random.default_rng([seed, block, *purpose])


def _rows_of(block: int) -> IntArray:
    """Return the numbers of the rows of a block."""
    return np.arange(block * BLOCK, (block + 1) * BLOCK)


def _named(x: FloatArray, first: int) -> Columns:
    """Return features by the names x0, x1, ..., or from another first number on."""
    return {f"x{place}": column for place, column in enumerate(x, first)}


def _labels(codes: IntArray, names: tuple[str, ...]) -> list[Label | None]:
    """Return the names that numbers from 0 stand for."""
    chosen: list[Label | None] = np.array(names, dtype=object)[codes].tolist()
    return chosen


def friedman_target(x: FloatArray, order: tuple[int, ...] = CONCEPTS[0]) -> FloatArray:
    """Return Friedman's function without noise.

    - `x`, shape (features, rows): at least five features.
    - `order`: which of them stand for the function's own five.

    Examples
    --------
    >>> friedman_target(np.full((5, 1), 0.5))
    array([14.57106781])
    """
    a, b, c, d, e = (x[place] for place in order)
    y: FloatArray = 10 * np.sin(np.pi * a * b) + 20 * (c - 0.5) ** 2 + 10 * d + 5 * e
    return y


def drifting_target(
    kind: str,
    x: FloatArray,
    row: IntArray,
    coin: FloatArray,
    *,
    changes: tuple[int, ...],
    transition: int = 0,
) -> FloatArray:
    """Return Friedman's function with drift, without noise.

    - `kind`: global recurring abrupt, global slow gradual, or local expanding abrupt.
    - `x`, shape (features, rows): at least five features.
    - `row`, `coin`: the numbers of the rows, and draws from [0, 1) that decide which concept a row
      in a transition is of.
    - `changes`: the first rows after each change: two, or three if local.
    """
    if kind == "lea":
        return _local(x, row, changes)
    if kind == "gra":
        concept = ((row >= changes[0]) & (row < changes[1])).astype(np.int64)
    else:  # the chance of the next concept rises in equal steps, to 1 after the transition
        begun = [coin * (transition + 1) < row - change + 1 for change in changes]
        concept = np.sum(begun, axis=0)
    y = friedman_target(x, CONCEPTS[concept[0]])
    for place in np.unique(concept):
        if place != concept[0]:
            y = np.where(concept == place, friedman_target(x, CONCEPTS[place]), y)
    return y


def _local(x: FloatArray, row: IntArray, changes: tuple[int, ...]) -> FloatArray:
    met = np.sum([row >= change for change in changes], axis=0)
    low = _corner((x[1] < 0.3, x[2] < 0.3, x[3] > 0.7, x[4] < 0.3), met)
    high = _corner((x[1] > 0.7, x[2] > 0.7, x[3] < 0.3, x[4] > 0.7), met)
    line = 20 * (x[2] - 0.5)
    y_low = 10 * x[0] * x[1] + line + 10 * x[3] + 5 * x[4]
    y_high = 10 * np.cos(x[0] * x[1]) + line + np.exp(x[3]) + 5 * x[4] ** 2
    return np.where(low, y_low, np.where(high, y_high, friedman_target(x)))


def _corner(bounds: tuple[Flags, ...], changes_met: IntArray) -> Flags:
    """Return which rows are in a region that each change but the first takes a bound from."""
    x1, x2, x3, x4 = bounds
    return (changes_met > 0) & x1 & x2 & (x3 | (changes_met > 2)) & (x4 | (changes_met > 1))


def friedman_block(
    seed: int,
    block: int,
    *,
    noise: float,
    kind: str | None = None,
    changes: tuple[int, ...] = (),
    transition: int = 0,
) -> tuple[Columns, FloatArray]:
    """Return the features and targets of a block, with drift or without."""
    rng = _draws(seed, block)
    x, shocks = rng.random((10, BLOCK)), rng.standard_normal(BLOCK)
    if kind is None:
        y = friedman_target(x)
    else:
        y = drifting_target(
            kind, x, _rows_of(block), rng.random(BLOCK), changes=changes, transition=transition
        )
    return _named(x, 0), y + noise * shocks


def mv_block(seed: int, block: int) -> tuple[Columns, FloatArray]:
    """Return the features and targets of a block."""
    rng = _draws(seed, block)
    x1, x2 = rng.uniform(-5, 5, BLOCK), rng.uniform(-15, -10, BLOCK)
    green, red, half_x1 = x1 > 0, rng.random(BLOCK) < 0.4, rng.random(BLOCK) < 0.3
    x4 = np.where(green, x1 + 2 * x2, np.where(half_x1, x1 / 2, x2 / 2))
    x5, x6, yes = rng.uniform(-1, 1, BLOCK), x4 * rng.uniform(0, 5, BLOCK), rng.random(BLOCK) < 0.3
    normal = x5 < 0.5
    columns: Columns = {
        "x1": x1,
        "x2": x2,
        "x3": _labels(np.where(green, 0, np.where(red, 1, 2)), ("green", "red", "brown")),
        "x4": x4,
        "x5": x5,
        "x6": x6,
        "x7": _labels(np.where(yes, 0, 1), ("yes", "no")),
        "x8": _labels(np.where(normal, 0, 1), ("normal", "large")),
        "x9": rng.uniform(100, 500, BLOCK),
        "x10": rng.integers(1000, 1201, BLOCK).astype(np.float64),
    }
    return columns, mv_target(x1, x2, x4, x6, yes=yes, normal=normal)


def mv_target(
    x1: FloatArray, x2: FloatArray, x4: FloatArray, x6: FloatArray, *, yes: Flags, normal: Flags
) -> FloatArray:
    """Return the target of `mv`."""
    near_0 = (x4 >= -2) & (x4 <= 2)
    ratio = x1 / np.where(near_0, 1.0, x4)
    return np.select(
        [x2 > 2, near_0, yes, normal], [35 - 0.5 * x4, 10 - 2 * x1, 3 - ratio, x6 + x1], x1 / 2
    )


def planes2d_block(seed: int, block: int, *, noise: float) -> tuple[Columns, FloatArray]:
    """Return the features and targets of a block."""
    rng = _draws(seed, block)
    side = rng.integers(0, 2, (1, BLOCK)) * 2 - 1
    x = np.vstack([side, rng.integers(-1, 2, (9, BLOCK))]).astype(np.float64)
    return _named(x, 1), planes2d_target(x) + noise * rng.standard_normal(BLOCK)


def planes2d_target(x: FloatArray) -> FloatArray:
    """Return the target of `planes2d`, without noise."""
    upper, lower = 3 + 3 * x[1] + 2 * x[2] + x[3], -3 + 3 * x[4] + 2 * x[5] + x[6]
    y: FloatArray = np.where(x[0] == 1, upper, lower)
    return y


def hyperplane_target(
    x: FloatArray, weights: FloatArray, row: IntArray, drifting: int, speed: float
) -> FloatArray:
    """Return how far rows are above a moving hyperplane, without noise.

    Examples
    --------
    >>> hyperplane_target(np.ones((2, 2)), np.array([0.4, 0.6]), np.array([0, 4]), 1, 0.1)
    array([0.5, 0.7])
    """
    y = np.zeros(len(row))
    for place, values in enumerate(x):
        weight = moving_weight(weights[place], row, speed if place < drifting else 0.0)
        y += weight * (values - 0.5)
    return y


def moving_weight(start: float, row: IntArray, speed: float) -> FloatArray:
    """Return a weight that rises to 1, falls to 0, and so on.

    Examples
    --------
    >>> moving_weight(0.5, np.array([0, 2, 4, 6]), 0.25)
    array([0.5, 1. , 0.5, 0. ])
    """
    weight: FloatArray = np.abs((start + speed * row + 1) % 2 - 1)
    return weight


def hyperplane_block(
    seed: int, block: int, *, features: int, drifting: int, speed: float, noise: float
) -> tuple[Columns, FloatArray]:
    """Return the features and targets of a block."""
    weights = _draws(seed, 0, OTHER_DRAWS).random(features)
    rng = _draws(seed, block)
    x = rng.random((features, BLOCK))
    y = hyperplane_target(x, weights, _rows_of(block), drifting, speed)
    return _named(x, 0), y + noise * rng.standard_normal(BLOCK)


def calendar(row: IntArray) -> dict[str, IntArray]:
    """Return city, hour, weekday and holiday of rows: each hour has one row a city.

    Examples
    --------
    >>> {name: values.tolist() for name, values in calendar(np.array([0, 1, 17, 3 * 24])).items()}
    {'city': [0, 1, 2, 0], 'hour': [0, 0, 5, 0], 'weekday': [0, 0, 0, 1], 'holiday': [1, 1, 1, 0]}
    """
    hours = row // len(CITIES)
    days = hours // 24
    return {
        "city": row % len(CITIES),
        "hour": hours % 24,
        "weekday": days % 7,
        "holiday": np.isin(days % DAYS, HOLIDAYS).astype(np.int64),
    }


def temperatures(row: IntArray, weather: FloatArray) -> FloatArray:
    """Return the temperatures of cities at some rows: the year's, the day's, and the weather."""
    hours = row // len(CITIES)
    year = np.cos(2 * np.pi * hours / (24 * DAYS))
    day = np.cos(2 * np.pi * (hours - 15) / 24)
    degrees: FloatArray = CLIMATE[row % len(CITIES)] - 10.0 * year + 3.0 * day + 3.0 * weather
    return degrees


def demand_target(row: IntArray, temperature: FloatArray, changes: tuple[int, ...]) -> FloatArray:
    """Return the demand as a function of the features, without noise."""
    when = calendar(row)
    tariff, growth = changes
    night, evening = when["hour"] < 6, (when["hour"] >= 17) & (when["hour"] < 22)
    at_home = (when["weekday"] >= 5) | (when["holiday"] == 1)
    usual = (
        BASE[when["city"]]
        + np.where(evening, np.where(row < tariff, 120.0, 20.0), 0.0)
        + np.where(night & (row >= tariff), 80.0, 0.0)
        - np.where(at_home, 40.0, 0.0)
        + COLD[when["city"]] * np.maximum(15.0 - temperature, 0.0)
    )
    grown = np.clip((row - growth) / max(growth - tariff, 1), 0.0, 1.0)
    demand: FloatArray = usual * (1.0 + 0.5 * grown * (when["city"] == GROWING))
    return demand


def wandering(shocks: FloatArray) -> FloatArray:
    """Return a level that starts at 0 and wanders: l[i] = 0.98 l[i - 1] + 3 shocks[i].

    - `shocks`: draws of N(0, 1), at most 20,000: powers of 0.98 take the place of the loop.

    Examples
    --------
    >>> wandering(np.array([1.0, 0.0, 1.0]))
    array([3.    , 2.94  , 5.8812])
    """
    decay = PERSISTENCE ** np.arange(len(shocks))
    level: FloatArray = SHOCK * decay * np.cumsum(shocks / decay)
    return level


def demand_block(seed: int, block: int, *, changes: tuple[int, ...]) -> tuple[Columns, FloatArray]:
    """Return the features and targets of a block."""
    row, rng = _rows_of(block), _draws(seed, block)
    temperature = temperatures(row, rng.standard_normal(BLOCK))
    y = demand_target(row, temperature, changes)
    # All that the level still knows is in the shocks of two blocks: 0.98 ** 4096 is 1e-36.
    shocks = [
        _draws(seed, place, OTHER_DRAWS).standard_normal(BLOCK)
        for place in (block - 1, block)
        if place >= 0
    ]
    y += wandering(np.concatenate(shocks))[-BLOCK:]
    temperature[rng.random(BLOCK) < 0.001] *= 1e9
    temperature[rng.random(BLOCK) < 0.05] = np.nan
    when = calendar(row)
    columns: Columns = {
        name: when[name].astype(np.float64) for name in ("hour", "weekday", "holiday")
    }
    columns |= {"temperature": temperature, "city": _labels(when["city"], CITIES)}
    return columns, y
