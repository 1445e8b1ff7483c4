"""The records that a delta is made of."""

import numpy as np

from sapwood.tree.layout import ERRORS, SAID_ERRORS

__all__ = ["LEAF_DELTA", "SCORES", "STREAM", "TARGET_DELTA", "WEIGHTED_ERRORS"]

WEIGHTED_ERRORS = (*ERRORS, *SAID_ERRORS)
"""The exponentially weighted errors of a target in a leaf."""

LEAF_DELTA = np.dtype(
    [
        ("leaf", np.int32),
        ("slots", np.int32),  # how many of its slots have changed
        ("rows", np.float64),
        ("weight", np.float64),
    ]
)
"""What some rows have added to a leaf."""

TARGET_DELTA = np.dtype(
    [
        (name, np.float64)
        for name in (
            "rows",  # in which the target is present
            "weight",
            "target_mean",  # of these rows alone, from the leaf's origin
            "target_m2",
            "residual_mean",
            "residual_m2",
            "mass",  # the share of these rows in a weighted error; summed over shards
            *WEIGHTED_ERRORS,  # what they add to each
        )
    ]
)
"""What they have added to a target in a leaf."""

STREAM = ("rows", "low", "high", "usual_mass", "usual")
"""What they have added to what a tree knows of each target over all rows."""

SCORES = ("rows", "absolute", "square", "mean", "m2")
"""How far off predictions of a target were before rows were learned: sums of errors, and moments of
y."""
