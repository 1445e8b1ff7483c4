"""Who takes part: Sapwood's three models, and the ensembles that people use now.

All have their defaults; of MOA's, those of CapyMOA, whose adaptive forests have a hundred trees.
"""

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from shutil import which
from typing import NamedTuple

from benchmarks.data_sets import DataSet
from benchmarks.ensembles.learners import (
    Contender,
    LightGbm,
    Moa,
    River,
    Sapwood,
    VowpalWabbit,
    XgBoost,
)

__all__ = ["AT_ONCE", "CONTENDERS", "FOREST", "LATE", "OF_TEN", "OURS", "Entry"]

AT_ONCE, LATE = "at once", "by 1,000"
FOREST = "Sapwood, forest"
RIVER, MOA = ("river",), ("java", "capymoa")
ADWIN = "-x (ADWINChangeDetector -a 0.001) -p (ADWINChangeDetector -a 0.01)"
SOKNL_TREE = "-l (SelfOptimisingBaseTree -s VarianceReductionSplitCriterion)"
SGBR_TREES = (
    "-l (meta.OzaBag -l (trees.FIMTDD -s VarianceReductionSplitCriterion -g 50 -c 0.01 -e)) -r 0"
)
TO_THE_END = 5.0


class Entry(NamedTuple):
    """A learner of the comparison.

    Attributes
    ----------
    make : callable
        Returns it, for some data.
    labels : tuple of str
        How its labels may come: `AT_ONCE`, `LATE`.
    needs : tuple of str
        The modules and programs without which it is left out.
    patience : float
        The time that it gets on a stream, in shares of what is usual: who is strong gets more.
    """

    make: Callable[[DataSet], Contender]
    labels: tuple[str, ...] = (AT_ONCE, LATE)
    needs: tuple[str, ...] = ()
    patience: float = 1.0

    def missing(self) -> list[str]:
        """Return what it needs and is not there."""
        return [name for name in self.needs if find_spec(name) is None and which(name) is None]


def _moa(name: str, options: str) -> Callable[[DataSet], Contender]:
    return partial(Moa, name=name, options=options)


OURS = {
    "Sapwood, tree": Entry(partial(Sapwood, name="HoeffdingTreeRegressor"), patience=TO_THE_END),
    "Sapwood, adaptive": Entry(
        partial(Sapwood, name="AdaptiveTreeRegressor", threads=1), patience=TO_THE_END
    ),
    FOREST: Entry(partial(Sapwood, name="ForestRegressor", threads=1), patience=TO_THE_END),
}

CONTENDERS = {
    **OURS,
    "river ARF": Entry(
        partial(River, name="forest.ARFRegressor", linear="leaf_model", seed=1), needs=RIVER
    ),
    "river OXT": Entry(
        partial(River, name="forest.OXTRegressor", linear="leaf_model", seed=1), needs=RIVER
    ),
    "river AMF": Entry(partial(River, name="forest.AMFRegressor", seed=1), needs=RIVER),
    # Of words as they are, its rules raise an AttributeError.
    "river AMRules": Entry(partial(River, name="rules.AMRules"), needs=RIVER),
    "MOA ARF": Entry(_moa("AdaptiveRandomForestRegressor", ADWIN), needs=MOA),
    "MOA SOKNL": Entry(_moa("SelfOptimisingKNearestLeaves", f"{SOKNL_TREE} {ADWIN}"), needs=MOA),
    "MOA SGBR": Entry(
        _moa("StreamingGradientBoostedRegression", SGBR_TREES), needs=MOA, patience=TO_THE_END
    ),
    "Vowpal Wabbit": Entry(VowpalWabbit, needs=("vowpalwabbit",)),
    "LightGBM": Entry(LightGbm, (LATE,), needs=("lightgbm",), patience=TO_THE_END),
    "XGBoost": Entry(XgBoost, (LATE,), needs=("xgboost",), patience=TO_THE_END),
}
"""In the order of tables."""

OF_TEN = {
    "river ARF": CONTENDERS["river ARF"],
    "MOA ARF of ten": Entry(_moa("AdaptiveRandomForestRegressor", f"-s 10 {ADWIN}"), needs=MOA),
    "MOA SOKNL of ten": Entry(
        _moa("SelfOptimisingKNearestLeaves", f"-s 10 {SOKNL_TREE} {ADWIN}"), needs=MOA
    ),
}
"""Ensembles of as many trees as the forest has, whose costs are compared with its own."""
