"""The records that an ensemble is made of; `_members.pxd` declares the same for the kernel."""

import numpy as np

__all__ = ["RULES", "TARGET_RECORD", "TREE_RECORD"]

TREE_RECORD = np.dtype(
    [
        ("number", np.int64),  # of all trees that there ever were, from 0
        ("role", np.int64),  # the place in `sapwood.ensemble.rules.ROLES`
        ("rate", np.float64),  # the mean of its Poisson weights; 0 if all rows count once
        ("born", np.float64),  # the rows that the ensemble had learned before
        ("square", np.float64),  # faded sum of its squared errors; 0 of several targets
        ("weight", np.float64),  # faded sum of the weights of rows; 0 of several targets
        ("max_bytes", np.int64),  # what it may occupy; 0 if there is no limit
        ("leaves", np.int64),  # how many it had when it was last looked
    ]
)

TARGET_RECORD = np.dtype(
    [
        ("rows", np.float64),  # in which the target is present
        ("begun", np.float64),  # of them, when all last began anew
        ("low", np.float64),  # the range of y
        ("high", np.float64),
        ("usual", np.float64),  # faded mean of the squared errors
        ("weight", np.float64),  # of several targets: the weight of the rows since then,
        ("first", np.float64),  # the first y of them,
        ("mean", np.float64),  # and mean and M2 of y from there
        ("m2", np.float64),
    ]
)

RULES = np.dtype(
    [
        ("combine", np.int64),  # the place in `sapwood.ensemble.rules.COMBINE`
        ("interval", np.int64),  # rows between two looks at who should be replaced
        ("seed", np.uint64),
        ("error_fade", np.float64),
        ("fade", np.float64),  # of the blend, as the next three
        ("precision", np.float64),
        ("centre", np.float64),
        ("most", np.float64),
        ("duel_age", np.float64),
    ]
)
"""The rules as the kernel reads them: EnsembleRules of `sapwood/ensemble/_members.pxd`."""
