"""The features that observers are tried on: the paper's nine distributions, and hostile ones."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["DISTRIBUTIONS", "HOSTILE", "Distribution", "Hostile", "cubic", "linear", "noisy"]

FloatArray = NDArray[np.float64]
Sampler = Callable[[np.random.Generator, int], FloatArray]


class Distribution(NamedTuple):
    """One of the paper's distributions, and the standard deviation of the noise it is given."""

    name: str
    sample: Sampler
    noise: float


def _normal(mean: float, sd: float) -> Sampler:
    return lambda rng, n: rng.normal(mean, sd, n)


def _uniform(reach: float) -> Sampler:
    return lambda rng, n: rng.uniform(-reach, reach, n)


def _bimodal(left: tuple[float, float], right: tuple[float, float]) -> Sampler:
    def sample(rng: np.random.Generator, n: int) -> FloatArray:
        half = n // 2
        return rng.permutation(np.append(rng.normal(*left, half), rng.normal(*right, n - half)))

    return sample


DISTRIBUTIONS = (
    Distribution("N(0, 1)", _normal(0, 1), 0.1),
    Distribution("N(0, 0.1)", _normal(0, 0.1), 0.01),
    Distribution("N(0, 7)", _normal(0, 7), 0.1),
    Distribution("U[-1, 1]", _uniform(1), 0.1),
    Distribution("U[-0.1, 0.1]", _uniform(0.1), 0.01),
    Distribution("U[-7, 7]", _uniform(7), 0.1),
    Distribution("N(-1, 1) | N(1, 1)", _bimodal((-1, 1), (1, 1)), 0.1),
    Distribution("N(-0.1, 0.1) | N(0.1, 0.1)", _bimodal((-0.1, 0.1), (0.1, 0.1)), 0.01),
    Distribution("N(-7, 7) | N(7, 0.1)", _bimodal((-7, 7), (7, 0.1)), 0.1),
)


def linear(rng: np.random.Generator, x: FloatArray) -> FloatArray:
    """Return a·x + b, a and b standard normal.

    Parameters
    ----------
    rng : numpy.random.Generator
        Gives a and b.
    x : array
        The feature.
    """
    a, b = rng.normal(size=2)
    return np.asarray(a * x + b)


def cubic(rng: np.random.Generator, x: FloatArray) -> FloatArray:
    """Return a·x³, a standard normal.

    Parameters
    ----------
    rng : numpy.random.Generator
        Gives a.
    x : array
        The feature.
    """
    return np.asarray(rng.normal() * x**3)


def noisy(rng: np.random.Generator, x: FloatArray, sd: float) -> FloatArray:
    """Return x with normal noise on a tenth of the rows.

    Parameters
    ----------
    rng : numpy.random.Generator
        Chooses the rows and gives the noise.
    x : array
        The feature; it is not changed.
    sd : float
        Standard deviation of the noise.
    """
    rows = rng.choice(len(x), len(x) // 10, replace=False)
    result = x.copy()
    result[rows] += rng.normal(0, sd, len(rows))
    return result


class Hostile(NamedTuple):
    """A feature made from a harmless one by `distort`; with None, the harmless one itself."""

    name: str
    sample: Sampler
    distort: Callable[[np.random.Generator, FloatArray], FloatArray] | None
    named: bool = False


def _outliers(rng: np.random.Generator, z: FloatArray) -> FloatArray:
    return np.where(rng.random(len(z)) < 0.001, z * 1e9, z)


def _first(value: float) -> Callable[[np.random.Generator, FloatArray], FloatArray]:
    return lambda _, z: np.append(value, z[1:])


def _codes(rng: np.random.Generator, z: FloatArray) -> FloatArray:
    return np.where(rng.random(len(z)) < 0.001, 9999.0, z)


def _integers(rng: np.random.Generator, n: int) -> FloatArray:
    return rng.integers(0, 101, n).astype(np.float64)


def _regimes(_: np.random.Generator, z: FloatArray) -> FloatArray:
    return z + np.where(np.arange(len(z)) < len(z) // 2, 0.0, 1000.0)


HOSTILE = (
    Hostile("1 in 1000 times 1e9", _normal(0, 1), _outliers, named=True),
    Hostile("first value 1e9", _normal(0, 1), _first(1e9), named=True),
    Hostile("first value 1e308", _normal(0, 1), _first(1e308), named=True),
    Hostile("1e12 ± 1", _uniform(1), lambda _, z: 1e12 + z, named=True),
    Hostile("scale 1e-12", _normal(0, 1), lambda _, z: 1e-12 * z, named=True),
    Hostile("Cauchy", _uniform(1), lambda _, z: np.tan(z * np.pi / 2)),
    Hostile("lognormal, sigma 1", _normal(0, 1), lambda _, z: np.exp(z)),
    Hostile("lognormal, sigma 2", _normal(0, 1), lambda _, z: np.exp(2 * z)),
    Hostile("log-uniform, 24 decades", _uniform(1), lambda _, z: 10 ** (12 * z)),
    Hostile("exponential", lambda rng, n: rng.exponential(size=n), None),
    Hostile("0..100, rarely 9999", _integers, _codes),
    Hostile("N(0, 1), later N(1000, 1)", _normal(0, 1), _regimes),
    Hostile("N(0, 1), sorted", lambda rng, n: np.sort(rng.normal(size=n)), None),
)
