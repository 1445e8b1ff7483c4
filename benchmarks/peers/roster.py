"""Who takes part: each learner with its defaults, and eight settings of a common grid."""

from collections.abc import Mapping
from functools import partial
from importlib.util import find_spec
from itertools import product
from shutil import which
from typing import Any, NamedTuple

from benchmarks.peers.learners import (
    LIGHTGBM_BATCH,
    SAPWOOD_BATCH,
    LightGbm,
    Make,
    Options,
    River,
    SapwoodBatches,
    SapwoodRows,
    Sgd,
    TimedLearner,
)
from benchmarks.peers.moa import CapyMoa, MoaInJava, moas_options

__all__ = ["DEFAULT", "OURS", "PEERS", "Peer", "learners", "peer"]

DEFAULT = "default"
OURS = "Sapwood"
SGD_BATCH = 25

GRACES = (50, 200)
CONFIDENCES = (1e-7, 1e-3)
LEAVES = ("model", "mean")


class Peer(NamedTuple):
    """A learner of the comparison.

    Attributes
    ----------
    name : str
        As tables show it.
    about : str
        What exactly it is, in a few words.
    make : callable
        Returns it, for some data and options.
    grid : mapping of str to options
        Other settings by name, the default ones among them as `DEFAULT`.
    batch : int
        How many rows it is given at a time.
    tree : bool
        Whether it is a single tree that learns row by row.
    same_as : str
        The entry that is the same learner: only the costs are compared.
    exact : bool
        Whether its predictions have to equal those of `same_as`, so that this can be checked.
    needs : tuple of str
        The modules and programs without which it is left out.
    """

    name: str
    about: str
    make: Make
    grid: Mapping[str, Options]
    batch: int = 1
    tree: bool = False
    same_as: str = ""
    exact: bool = False
    needs: tuple[str, ...] = ()

    def missing(self) -> list[str]:
        """Return what it needs and is not there."""
        return [name for name in self.needs if find_spec(name) is None and which(name) is None]


def peer(name: str) -> Peer:
    """Return a learner by its name.

    Parameters
    ----------
    name : str
        Of `PEERS`.
    """
    return next(each for each in PEERS if each.name == name)


def learners() -> list[Peer]:
    """Return the entries whose predictions are compared: all without `same_as`."""
    return [each for each in PEERS if not each.same_as]


def _tree_grid(default: tuple[int, float, str], translate: Any) -> dict[str, Options]:
    """Return the eight settings of a tree, in its own words."""
    return {
        DEFAULT
        if (grace, confidence, leaf) == default
        else f"grace {grace}, δ {confidence:g}, {leaf} leaves": translate(grace, confidence, leaf)
        for grace, confidence, leaf in product(GRACES, CONFIDENCES, LEAVES)
    }


def _ours(grace: int, confidence: float, leaf: str) -> Options:
    leaves = {"model": "adaptive", "mean": "mean"}
    return {"grace_period": grace, "delta": confidence, "leaf": leaves[leaf]}


def _rivers(grace: int, confidence: float, leaf: str) -> Options:
    leaves = {"model": "adaptive", "mean": "mean"}
    return {"grace_period": grace, "delta": confidence, "leaf_prediction": leaves[leaf]}


def _moas(grace: int, confidence: float, leaf: str) -> Options:
    return {
        "grace_period": grace,
        "split_confidence": confidence,
        "regression_tree": leaf == "mean",
    }


def _river(adaptive: bool, splitter: str, data: Any, options: Options) -> TimedLearner:
    from river.tree import HoeffdingAdaptiveTreeRegressor, HoeffdingTreeRegressor
    from river.tree.splitter import QOSplitter

    from benchmarks.river_corrected import CorrectedQOSplitter

    own: dict[str, Any] = {"kind": HoeffdingTreeRegressor}
    if adaptive:
        own = {"kind": HoeffdingAdaptiveTreeRegressor, "seed": 1}
    if splitter:
        own["splitter"] = {"QO": QOSplitter, "corrected": CorrectedQOSplitter}[splitter]()
    return River(data, own | dict(options))


def _moa(data: Any, options: Options) -> TimedLearner:
    return MoaInJava(data, {"cli": moas_options(**options)})


def _sgd(batch: int, data: Any, options: Options) -> TimedLearner:
    return Sgd(data, {"batch": batch, **options})


RIVER_GRID = _tree_grid((200, 1e-7, "model"), _rivers)
MOA_GRID = _tree_grid((200, 1e-7, "model"), _moas)
OUR_GRID = _tree_grid((200, 1e-3, "model"), _ours)

LIGHTGBM_GRID: dict[str, Options] = {
    DEFAULT if (trees, rate) == (5, 0.1) else f"{trees} trees, rate {rate:g}": {
        "trees": trees,
        "learning_rate": rate,
    }
    for trees, rate in product((2, 5, 10, 20), (0.1, 0.3))
}

SGD_GRID: dict[str, Options] = {
    DEFAULT if (kind, rate) == ("invscaling", 0.01) else f"{kind} rate {rate:g}": {
        "learning_rate": kind,
        "eta0": rate,
    }
    for kind, rate in product(("invscaling", "constant"), (0.001, 0.01, 0.03, 0.1))
}

PEERS = (
    Peer(
        OURS,
        f"HoeffdingTreeRegressor, batches of {SAPWOOD_BATCH:,} rows",
        SapwoodBatches,
        OUR_GRID,
        batch=SAPWOOD_BATCH,
        tree=True,
    ),
    Peer(
        f"{OURS}, one by one",
        "the same tree, rows as dicts",
        SapwoodRows,
        OUR_GRID,
        tree=True,
        same_as=OURS,
        exact=True,
    ),
    Peer(
        "river",
        "HoeffdingTreeRegressor as shipped, with TE-BST observers",
        partial(_river, False, ""),
        RIVER_GRID,
        tree=True,
        needs=("river",),
    ),
    Peer(
        "river, QO",
        "HoeffdingTreeRegressor with QOSplitter as shipped",
        partial(_river, False, "QO"),
        RIVER_GRID,
        tree=True,
        needs=("river",),
    ),
    Peer(
        "river, QO corrected",
        "the same without the two faults of QOSplitter's query",
        partial(_river, False, "corrected"),
        RIVER_GRID,
        tree=True,
        needs=("river",),
    ),
    Peer(
        "river, adaptive",
        "HoeffdingAdaptiveTreeRegressor, which replaces branches at drift",
        partial(_river, True, ""),
        RIVER_GRID,
        tree=True,
        needs=("river",),
    ),
    Peer(
        "MOA",
        "FIMT-DD in pure Java",
        _moa,
        MOA_GRID,
        tree=True,
        needs=("java", "capymoa"),
    ),
    Peer(
        "MOA by CapyMOA",
        "the same FIMT-DD through CapyMOA",
        CapyMoa,
        MOA_GRID,
        tree=True,
        same_as="MOA",
        exact=True,
        needs=("java", "capymoa", "jpype"),
    ),
    Peer(
        "LightGBM",
        f"continued training: 5 trees for each batch of {LIGHTGBM_BATCH:,} rows",
        LightGbm,
        LIGHTGBM_GRID,
        batch=LIGHTGBM_BATCH,
        needs=("lightgbm",),
    ),
    Peer(
        "SGD",
        f"scikit-learn's SGDRegressor behind StandardScaler, batches of {SGD_BATCH} rows",
        partial(_sgd, SGD_BATCH),
        SGD_GRID,
        batch=SGD_BATCH,
        needs=("sklearn",),
    ),
    Peer(
        "SGD, one by one",
        "the same, each row a call",
        partial(_sgd, 1),
        SGD_GRID,
        same_as="SGD",
        needs=("sklearn",),
    ),
)
"""In the order of tables."""
