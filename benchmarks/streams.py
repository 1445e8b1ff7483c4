"""Hostile features that observers are tried on; the harmless ones are the paper's."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["HOSTILE", "Hostile"]

FloatArray = NDArray[np.float64]
Sampler = Callable[[np.random.Generator, int], FloatArray]


def _normal(mean: float, sd: float) -> Sampler:
    return lambda rng, n: rng.normal(mean, sd, n)


def _uniform(reach: float) -> Sampler:
    return lambda rng, n: rng.uniform(-reach, reach, n)


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
