"""The rules of growth: when a leaf is reviewed, when it splits, and where.

They are stated here, once; `sapwood/tree/_growth.pyx` applies them.

A leaf is *due* when its weight has reached a mark. If a review is due, its scales and grids are
brought up to its rows. From `grace_period` on, the best split point of each feature is found by
three measures: what it explains of y (*target*), and of the residual of the leaf's linear model, by
a *step* or by a change of slope (*line*). `split_on` selects the measures; "best" takes the split
point that leaves the smaller error. The leaf splits if it explains more than noise would
(`least_evidence`) and the `bound` shows that no other feature is better, or that it does not matter
(`tau`). Features whose split points separate the same rows (`same_share`), such as copies, are not
compared with each other. Otherwise the next attempt is due when the split should succeed if merits
stay as they are, but no later than when the weight of the leaf has doubled.

A feature interaction need not show in the split points of one feature. So a leaf that has found no
split, with much left to explain, makes trial splits: `sapwood/tree/_trial.pyx`.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from sapwood.tasks import SQUARED_ERROR, Task
from sapwood.tree.bounds import SplitBound

__all__ = ["RULES", "SPLIT_ON", "GrowthRules", "SplitOn"]

SplitOn = Literal["best", "residual", "target"]

SPLIT_ON: tuple[SplitOn, ...] = ("best", "residual", "target")

RULES = np.dtype(
    [
        ("split_on", np.int64),  # the place in SPLIT_ON
        ("bound", np.int64),  # its code
        ("max_depth", np.int64),
        ("confidence", np.float64),
        ("grace_period", np.float64),
        ("tau", np.float64),
        ("min_share", np.float64),
        ("same_merit", np.float64),
        ("same_share", np.float64),
        ("least_evidence", np.float64),
        ("negligible", np.float64),
        ("optimism", np.float64),
        ("apart", np.float64),
        ("clearer", np.float64),
        ("most_left", np.float64),
        ("patience", np.float64),
        ("first_review", np.float64),
        ("trial_left", np.float64),
        ("trial_share", np.float64),
        ("trial_evidence", np.float64),
        ("trial_clearer", np.float64),
        ("trial_pause", np.float64),
        ("merit_unit", np.int64),
    ]
)
"""The rules as kernels read them: GrowthRules of `sapwood/tree/_records.pxd`."""


@dataclass(frozen=True, slots=True)
class GrowthRules:
    """The parameters and constants of a tree that rule its growth.

    Parameters
    ----------
    grace_period : float
        The weight of the rows that a leaf sees before it may split.
    bound : SplitBound
        How sure it has to be that a cut is the best.
    tau : float
        If the lead over the second-best feature is smaller, as a share of the best merit, the
        two are as good as equal, and the bound is that for a lead of `tau`.
    min_share : float
        The smallest share of the rows of a leaf on each side of a split.
    max_depth : int
        How deep the tree may become.
    split_on : {"best", "residual", "target"}
        What a split has to explain.
    same_merit, same_share : float
        Cuts of two features separate the same rows if the smaller merit is at least the first
        share of the larger, and if weight and sums of y and of the residual differ, on either
        side, by no more than the second share of the leaf's rows could make out, each one
        deviation away. Such features are collinear, and neither is the second best of the other.
    least_evidence : float
        A split has to explain so many times the variance that one row's worth of noise would.
    negligible : float
        A leaf whose residual has at most this share of the variance of its y does not split: all
        splits of such leaves together could not add more than that to the R² of the tree.
    optimism : float
        After an attempt in vain the next one waits for this share of the time after which it
        should succeed.
    apart, clearer, most_left : float
        A cut separates parts of y if it explains at least the share `apart` of its variance, and
        `clearer` times the share of the residual's variance that any cut explains, and leaves at
        most `most_left` times what that leaves: then y decides, also where the residual would
        leave less.
    patience : float
        After so many grace periods a leaf no longer waits for its residual to show something.
    first_review : float
        After so many rows a leaf that knows nothing is reviewed, as its scales are yet to be
        found. Later reviews come whenever its weight has doubled.
    trial_left : float
        A leaf that found no cut for `patience` grace periods tries splits, if its residual still
        has this share of the variance of y (as the root of the tree had it when it was split).
    trial_share : float
        The share of the rows that either side of a cut has to have, in a split on trial.
    trial_evidence, trial_clearer : float
        A split on trial is made if a cut on one of its sides explains so many times the variance
        that one row's worth of noise would, and so many times what the best cut of the leaf does.
    trial_pause : float
        Once all features were tried in vain, the leaf waits until its rows are so many times as
        many.
    task : Task
        What is predicted: it decides in which unit the variances are added up that a split
        explains of several targets.
    """

    grace_period: float
    bound: SplitBound
    tau: float
    min_share: float
    max_depth: int
    split_on: SplitOn
    same_merit: float = 0.8
    same_share: float = 0.2
    least_evidence: float = 15.0
    negligible: float = 1e-4
    optimism: float = 0.8
    apart: float = 0.4
    clearer: float = 4.0
    most_left: float = 4.0
    patience: float = 10.0
    first_review: float = 8.0
    trial_left: float = 0.1
    trial_share: float = 0.1
    trial_evidence: float = 25.0
    trial_clearer: float = 2.0
    trial_pause: float = 4.0
    task: Task = SQUARED_ERROR

    def to_record(self) -> Any:
        """Return the rules as kernels read them."""
        coded = {
            "split_on": SPLIT_ON.index(self.split_on),
            "bound": self.bound.code,
            "confidence": self.bound.confidence,
            "merit_unit": self.task.merit_unit,
        }
        values = [coded.get(name, getattr(self, name, None)) for name in RULES.names or ()]
        return np.array(tuple(values), dtype=RULES)
