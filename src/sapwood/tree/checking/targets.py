"""What has to hold for what a tree of several targets knows of each."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.limits import ROUNDING
from sapwood.records import check, check_all
from sapwood.tree.layout import (
    TARGET_LEAVES,
    TARGET_NODES,
    TARGET_STREAMS,
    TARGET_TRIALS,
    TRIAL_RECORD,
    Limits,
)

__all__ = ["check_target_trials", "check_targets"]

Array = NDArray[Any]


def check_targets(
    streams: Array, leaves: Array, nodes: Array, records: Array, limits: Limits
) -> None:
    """Check what a tree of several targets knows of each.

    Parameters
    ----------
    streams, leaves, nodes : arrays
        Of TARGET_STREAM, TARGET_LEAF and TARGET_NODE.
    records : array
        The records of the leaves, all targets together.
    limits : Limits
        What bounds their numbers.
    """
    TARGET_STREAMS.check(streams, limits)
    check_all(streams["rows"] == np.floor(streams["rows"]), "target {} has no number of rows")
    known = streams["rows"] > 0
    check_all(known == (streams["weight"] > 0), "target {} has rows without weight, or weight")
    good = (streams["low"] <= streams["first"]) & (streams["first"] <= streams["high"])
    check_all(good, "the range of target {} is wrong")
    TARGET_LEAVES.check(leaves, limits._replace(leaves=np.repeat(records, len(streams))))
    TARGET_NODES.check(nodes, limits)


def check_target_trials(trials: Array, trial: Array, limits: Limits) -> None:
    """Check what the sides of the split on trial know of each target.

    Parameters
    ----------
    trials : array
        Of TARGET_TRIAL, one for each target.
    trial : array
        The split on trial, of one row.
    limits : Limits
        What bounds their numbers.
    """
    TARGET_TRIALS.check(trials, limits)
    check(trial.dtype == TRIAL_RECORD and len(trial) == 1, "there is not one trial")
    for side in ("left_weight", "right_weight"):
        most = ROUNDING * trial[side][0] if trial["leaf"][0] >= 0 else 0.0
        check_all(trials[side] <= most, "the trial has seen more of target {} than rows")
