"""How right the statistics of a split's sides are where the paper's subtraction fails.

500 slots, a left block at 1e6 and a right side of standard deviation 1e-3: the relative error of
both sides' M2, against exact rational arithmetic.
"""

from fractions import Fraction
from typing import NamedTuple

import numpy as np
from river.stats import Var

from benchmarks.moments_accuracy import exact_m2
from benchmarks.tables import Answer, Bound, Table
from sapwood import EBSTObserver, Moments, Observer, QuantizerObserver, TEBSTObserver

__all__ = ["run"]

ALLOWED = 1e-12
SLOTS = 500
BLOCKS = (1, 5, 250, 495)
ROWS_A_SLOT = 10


class Record(NamedTuple):
    """The relative errors of the M2 of both sides; a left side that is given has none."""

    method: str
    left_slots: int
    left: float | None
    right: float


def run(quick: bool = False) -> Answer:
    """Measure the errors.

    Parameters
    ----------
    quick : bool
        Changes nothing: it is quick.
    """
    records = [record for block in BLOCKS for record in _errors(block)]
    worst: dict[str, float] = {}
    for r in records:
        if r.left is not None:
            worst[r.method] = max(worst.get(r.method, 0.0), r.left, r.right)
    bounds = [Bound(f"error of a side's M2, {name}", worst[name], ALLOWED) for name in worst]
    table = Table("Relative error of the sides' M2", Record._fields, records)
    return Answer([table], table, bounds)


def _errors(block: int) -> list[Record]:
    rng = np.random.default_rng(0)
    x = np.tile(np.arange(float(SLOTS)), ROWS_A_SLOT)
    y = np.where(x < block, 1e6, 0.0) + rng.normal(0, 1e-3, len(x))
    left, right = y[x < block].tolist(), y[x >= block].tolist()
    exact = exact_m2(left), exact_m2(right)
    observers: dict[str, Observer] = {
        "QO 1.0": QuantizerObserver(1.0),
        "QO auto": QuantizerObserver(slots=SLOTS),
        "E-BST": EBSTObserver(),
        "TE-BST": TEBSTObserver(),
    }
    records = []
    for method, observer in observers.items():
        observer.update_many(x, y)
        split = observer.best_split()
        if split is None or isinstance(split.left, list) or isinstance(split.right, list):
            raise RuntimeError("a split of one target was expected")
        errors = _error(split.left.m2, exact[0]), _error(split.right.m2, exact[1])
        records.append(Record(method, block, *errors))
    ours = (_moments(y.tolist()) - _moments(left)).m2
    rivers = (_river_var(y.tolist()) - _river_var(left))._S
    return [
        *records,
        Record("subtraction, Moments", block, None, _error(ours, exact[1])),
        Record("subtraction, river's Var", block, None, _error(rivers, exact[1])),
    ]


def _moments(y: list[float]) -> Moments:
    moments = Moments()
    moments.update_many(y)
    return moments


def _river_var(y: list[float]) -> Var:
    var = Var()
    for value in y:
        var.update(value)
    return var


def _error(m2: float, exact: Fraction) -> float:
    return float(abs(Fraction(m2) - exact) / exact)
