"""The data of the paper's study: 684 kinds of samples, the same ones wherever they are made.

Table 1 of the paper, with what it leaves unsaid: the noise is a factor of its own, each normal
of a bimodal distribution gives half of the rows, and the cubic target is a·x³.
"""

from collections.abc import Callable, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "DISTRIBUTIONS",
    "FULL",
    "QUICK",
    "TARGETS",
    "Cell",
    "Distribution",
    "Plan",
    "Sample",
    "all_cells",
    "sample",
]

FloatArray = NDArray[np.float64]

SEED = 2021
"""The first word of every seed: the year of the paper."""

ROWS_PER_NOISY_ROW = 10


class Distribution(NamedTuple):
    """One of the paper's distributions, and the standard deviation of the noise it is given."""

    name: str
    draw: Callable[[np.random.Generator, int], FloatArray]
    noise: float


class Cell(NamedTuple):
    """One combination of the study's factors.

    - `n`: rows of the sample.
    - `distribution`: the name of one of `DISTRIBUTIONS`.
    - `target`: "lin" or "cub".
    - `noisy`: whether a tenth of the rows has noise on x.
    """

    n: int
    distribution: str
    target: str
    noisy: bool

    def __str__(self) -> str:
        noise = "noisy" if self.noisy else "clean"
        return f"n = {self.n:,}, {self.distribution}, {self.target}, {noise}"


class Sample(NamedTuple):
    """A feature and its target."""

    x: FloatArray
    y: FloatArray


class Plan(NamedTuple):
    """How much of the study is run: which sample sizes, and how often each cell."""

    sizes: tuple[int, ...]
    runs: int


# fmt: off
FULL = Plan(
    sizes=(50, 100, 200, 400, 500, 750, 1_000, 2_500, 5_000, 7_000, 10_000, 15_000, 25_000,
           50_000, 75_000, 100_000, 200_000, 500_000, 1_000_000),
    runs=10,
)
# fmt: on
QUICK = Plan(sizes=(50, 200, 1_000, 5_000, 10_000), runs=2)


def _normal(sd: float) -> Distribution:
    return Distribution(f"N(0, {sd:g})", lambda rng, n: rng.normal(0.0, sd, n), _noise(sd))


def _uniform(reach: float) -> Distribution:
    name = f"U[-{reach:g}, {reach:g}]"
    return Distribution(name, lambda rng, n: rng.uniform(-reach, reach, n), _noise(reach))


def _bimodal(mode: float, left_sd: float, right_sd: float) -> Distribution:
    def draw(rng: np.random.Generator, n: int) -> FloatArray:
        half = n // 2
        x = np.append(rng.normal(-mode, left_sd, half), rng.normal(mode, right_sd, n - half))
        rng.shuffle(x)
        return x

    name = f"N(-{mode:g}, {left_sd:g}) | N({mode:g}, {right_sd:g})"
    return Distribution(name, draw, _noise(mode))


def _noise(scale: float) -> float:
    """Return the noise's standard deviation: the smaller one where the dispersion is small."""
    return 0.01 if scale < 1 else 0.1


def _linear(rng: np.random.Generator, x: FloatArray) -> FloatArray:
    slope, intercept = rng.normal(size=2)
    return np.asarray(slope * x + intercept)


def _cubic(rng: np.random.Generator, x: FloatArray) -> FloatArray:
    return np.asarray(rng.normal() * (x * x * x))


DISTRIBUTIONS = {
    distribution.name: distribution
    for distribution in (
        *map(_normal, (1.0, 0.1, 7.0)),
        *map(_uniform, (1.0, 0.1, 7.0)),
        _bimodal(1.0, 1.0, 1.0),
        _bimodal(0.1, 0.1, 0.1),
        _bimodal(7.0, 7.0, 0.1),
    )
}
TARGETS = {"lin": _linear, "cub": _cubic}


def all_cells(sizes: Sequence[int]) -> list[Cell]:
    """Return every cell of the study for some sample sizes, 36 for each size.

    - `sizes`: such as ``FULL.sizes``.

    Examples
    --------
    >>> len(all_cells(FULL.sizes))
    684
    """
    return [Cell(*factors) for factors in product(sizes, DISTRIBUTIONS, TARGETS, (False, True))]


def sample(cell: Cell, run: int) -> Sample:
    """Draw the rows of one run of a cell.

    - `run`: from 0 on; each run is another sample.
    - Returns the same for the same arguments, on any machine and in any order of calls.

    Examples
    --------
    >>> x, y = sample(Cell(50, "U[-1, 1]", "lin", noisy=False), run=0)
    >>> len(x), bool(abs(x).max() < 1)
    (50, True)
    """
    rng = np.random.Generator(np.random.PCG64(_seed(cell, run)))
    distribution = DISTRIBUTIONS[cell.distribution]
    x = distribution.draw(rng, cell.n)
    y = TARGETS[cell.target](rng, x)
    if cell.noisy:
        rows = rng.choice(cell.n, cell.n // ROWS_PER_NOISY_ROW, replace=False, shuffle=False)
        x[rows] += rng.normal(0.0, distribution.noise, len(rows))
    return Sample(x, y)


def _seed(cell: Cell, run: int) -> np.random.SeedSequence:
    distribution = list(DISTRIBUTIONS).index(cell.distribution)
    target = list(TARGETS).index(cell.target)
    return np.random.SeedSequence([SEED, cell.n, distribution, target, int(cell.noisy), run])
