"""The records that a delta is made of; `sapwood/merge/_delta.pyx` declares the same."""

import numpy as np

from sapwood.tree.layout import ERRORS, SAID_ERRORS

__all__ = ["FADED", "LEAF_DELTA", "SCORES", "STREAM"]

FADED = (*ERRORS, *SAID_ERRORS)
"""The fields of a leaf that fade with its rows."""

LEAF_DELTA = np.dtype(
    [
        ("leaf", np.int32),
        ("slots", np.int32),  # how many of its slots have changed
        ("rows", np.float64),
        ("weight", np.float64),
        ("target_mean", np.float64),  # of these rows alone, from the leaf's origin
        ("target_m2", np.float64),
        ("residual_mean", np.float64),
        ("residual_m2", np.float64),
        (
            "mass",
            np.float64,
        ),  # the share that these rows have in an exponentially weighted sum; summed over shards
        *((name, np.float64) for name in FADED),  # what they add to each such sum
    ]
)
"""What some rows have added to a leaf."""

STREAM = ("rows", "low", "high", "usual_mass", "usual")
"""What they have added to what a tree knows of all rows."""

SCORES = ("rows", "absolute", "square", "mean", "m2")
"""How far off predictions were before rows were learned: sums of errors, and moments of y."""
