"""How many digits of a standard deviation are right.

The log relative error of the standard deviation on NIST's sets NumAcc1 to NumAcc4, against exact
rational arithmetic on the stored doubles.
"""

from collections.abc import Callable, Sequence
from decimal import Context, Decimal
from fractions import Fraction
from functools import partial
from math import log10, sqrt
from typing import NamedTuple

import numpy as np
from river.stats import Var

from benchmarks.tables import Answer, Bound, Cell, Table
from sapwood import Moments

__all__ = ["exact_m2", "run"]

ENOUGH = 14.0
ALL_DIGITS = 16.0
PARTITIONS = 300
PRECISE = Context(prec=60)

Method = Callable[[Sequence[float]], float]


def _alternating(middle: float, low: float, high: float) -> list[float]:
    return [middle, *([low, high] * 500)]


SETS = {
    "NumAcc1": [10000001.0, 10000003.0, 10000002.0],
    "NumAcc2": _alternating(1.2, 1.1, 1.3),
    "NumAcc3": _alternating(1000000.2, 1000000.1, 1000000.3),
    "NumAcc4": _alternating(10000000.2, 10000000.1, 10000000.3),
}


def _by_update(y: Sequence[float]) -> float:
    moments = Moments()
    for value in y:
        moments.update(value)
    return moments.variance()


def _by_update_many(y: Sequence[float]) -> float:
    moments = Moments()
    moments.update_many(y)
    return moments.variance()


def _by_merging(y: Sequence[float], seed: int) -> float:
    """Scatter the values over some parts, and merge these two at a time in a random order."""
    rng = np.random.default_rng(seed)
    parts = [Moments() for _ in range(rng.integers(2, len(y) + 1))]
    for value, part in zip(y, rng.integers(0, len(parts), len(y)), strict=True):
        parts[part].update(value)
    while len(parts) > 1:
        first, second = (parts.pop(rng.integers(0, len(parts))) for _ in range(2))
        parts.append(first + second)
    return parts[0].variance()


def _by_welford(y: Sequence[float]) -> float:
    mean = m2 = 0.0
    for n, value in enumerate(y, 1):
        delta = value - mean
        mean += delta / n
        m2 += delta * (value - mean)
    return m2 / (len(y) - 1)


def _by_river(y: Sequence[float]) -> float:
    var = Var()
    for value in y:
        var.update(value)
    return var.get()


def _by_numpy(y: Sequence[float]) -> float:
    return float(np.var(y, ddof=1))


OURS: dict[str, list[Method]] = {
    "Moments.update": [_by_update],
    "Moments.update_many": [_by_update_many],
    f"Moments merged, worst of {PARTITIONS} partitions": [
        partial(_by_merging, seed=seed) for seed in range(PARTITIONS)
    ],
}
OTHERS: dict[str, list[Method]] = {
    "plain Welford": [_by_welford],
    "river's Var": [_by_river],
    "NumPy, two passes": [_by_numpy],
}


class Record(NamedTuple):
    """The right digits of one method on one set: the fewest, where it was tried several times."""

    data: str
    method: str
    digits: float


def run(quick: bool = False) -> Answer:
    """Measure the digits.

    Parameters
    ----------
    quick : bool
        Changes nothing: it is quick.
    """
    exact = {data: _exact_sd(y) for data, y in SETS.items()}
    records = [
        Record(data, method, min(_digits(way(y), exact[data]) for way in ways))
        for method, ways in (OURS | OTHERS).items()
        for data, y in SETS.items()
    ]
    bounds = [
        Bound(f"fewest right digits, {method}", _fewest(records, method), ENOUGH, at_least=True)
        for method in OURS
    ]
    return Answer([_table(records)], Table("accuracy", Record._fields, records), bounds)


def exact_m2(y: Sequence[float]) -> Fraction:
    """Return the sum of the squared deviations from the mean, without any rounding.

    Parameters
    ----------
    y : sequence of float
        At least one value.
    """
    exact = [Fraction(value) for value in y]
    mean = sum(exact, Fraction()) / len(exact)
    return sum(((value - mean) ** 2 for value in exact), Fraction())


def _exact_sd(y: Sequence[float]) -> Decimal:
    variance = exact_m2(y) / (len(y) - 1)
    quotient = PRECISE.divide(Decimal(variance.numerator), Decimal(variance.denominator))
    return PRECISE.sqrt(quotient)


def _digits(variance: float, exact_sd: Decimal) -> float:
    difference = PRECISE.subtract(Decimal(sqrt(variance)), exact_sd)
    error = abs(float(PRECISE.divide(difference, exact_sd)))
    return min(-log10(error), ALL_DIGITS) if error else ALL_DIGITS


def _fewest(records: Sequence[Record], method: str) -> float:
    return min(r.digits for r in records if r.method == method)


def _table(records: Sequence[Record]) -> Table:
    digits = {(r.method, r.data): r.digits for r in records}
    rows: list[Sequence[Cell]] = [
        (method, *(digits[method, data] for data in SETS)) for method in OURS | OTHERS
    ]
    columns = ("method", *SETS)
    return Table("Right digits (log relative error) of the standard deviation", columns, rows)
