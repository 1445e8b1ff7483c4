"""The records that an ensemble is made of, each field declared once.

`_members.pxd` declares the same for the kernel. What has to hold among fields is checked by
`sapwood.ensemble.ensemble_state`.
"""

from functools import partial

import numpy as np

from sapwood.limits import FAR, MOST_ROWS, MOST_WEIGHT, NEAR, SQUARE
from sapwood.records import Field, Record

__all__ = [
    "MOST_SQUARES",
    "RULES",
    "STREAM_NUMBERS",
    "TARGETS",
    "TARGET_RECORD",
    "TREES",
    "TREE_RECORD",
]

MOST_SQUARES = 1e300  # what exponentially weighted sums of squares come to at the most


def _rows(rows: float) -> float:
    """Return the bound of what is counted in rows: those that the ensemble has learned."""
    return rows


_RANGE = "the range of y is none"
_NEGATIVE = "an error is negative"
_lead = partial(
    Field,
    low=-SQUARE * MOST_WEIGHT,
    high=SQUARE * MOST_WEIGHT,
    complaint="the lead of a tree is too large",
)
_square = partial(Field, low=0, complaint=_NEGATIVE)

STREAM_NUMBERS = Record(
    Field("rows", 0, MOST_ROWS, whole=True, complaint="{value} is no number of rows"),
    Field("weight", 0, MOST_WEIGHT, complaint="{value} is no weight of rows"),
    Field("low", -NEAR, NEAR, complaint=_RANGE),  # of y
    Field("high", -NEAR, NEAR, complaint=_RANGE),
    Field(
        "usual", 0, SQUARE, complaint=_NEGATIVE
    ),  # exponentially weighted mean of the squared errors
    # rows that had been learned when it was last looked who should be replaced
    Field("looked_at", 0, _rows, complaint="it was looked at trees after the last row"),
    _lead("lead"),  # of the tree that waits, and its squares
    _square("lead_square"),
    _lead("gain"),
    _square("gain_square"),
    Field("begun", 0, _rows, whole=True, complaint="it cannot have been reset then"),
    Field("changed", 0, _rows, whole=True, complaint="no change can have been then"),
    _square("calm"),
    _square("stir"),
    complaint="the {name} of the stream is wrong",
)
"""What an ensemble knows of all rows."""

_NO_ERROR = "tree {place} has no error"

TREES = Record(
    # of all trees that there ever were, from 0
    Field("number", 0, type=np.int64, complaint="the number of a tree is negative"),
    Field("role", type=np.int64),  # the place in `sapwood.ensemble.rules.ROLES`
    Field("rate"),  # the mean of its Poisson weights; 0 if all rows count once
    # the rows that the ensemble had learned before
    Field("born", 0, _rows, whole=True, complaint="tree {place} was never born"),
    # exponentially weighted sums of its squared errors, and of the weights of rows; 0 of several
    # targets
    Field("square", 0, MOST_SQUARES, complaint=_NO_ERROR),
    Field("weight", 0, MOST_WEIGHT, complaint=_NO_ERROR),
    Field("max_bytes", type=np.int64),  # what it may occupy; 0 if there is no limit
    # how many it had when it was last looked
    Field("leaves", 1, type=np.int64, complaint="tree {place} had no leaves"),
    complaint="the {name} of tree {place} is wrong",
)

_NO_ROWS = "a target cannot have so many rows"
_NO_RANGE = "the range of a target is none"
_NO_VARIANCE = "the variance of a target is none"
_WRONG_MEAN = "the mean of a target is wrong"

TARGETS = Record(
    Field("rows", 0, _rows, whole=True, complaint=_NO_ROWS),  # in which the target is present
    Field("begun", 0, _rows, whole=True, complaint=_NO_ROWS),  # of them, when all last started over
    Field("low", -NEAR, NEAR, complaint=_NO_RANGE),  # the range of y
    Field("high", -NEAR, NEAR, complaint=_NO_RANGE),
    Field(  # exponentially weighted mean of the squared errors
        "usual", 0, SQUARE, complaint="the error of a target is negative"
    ),
    # of several targets: the weight of the rows since then,
    Field("weight", 0, MOST_WEIGHT, complaint=_NO_VARIANCE),
    Field("first", -NEAR, NEAR, complaint=_WRONG_MEAN),  # the first y of them,
    Field("mean", -FAR, FAR, complaint=_WRONG_MEAN),  # and mean and M2 of y from there
    Field("m2", 0, MOST_WEIGHT * SQUARE, complaint=_NO_VARIANCE),
    complaint="the {name} of target {place} is wrong",
    finite="the {name} of a target is not finite",
)

TREE_RECORD = TREES.dtype
TARGET_RECORD = TARGETS.dtype

RULES = np.dtype(
    [
        ("combine", np.int64),  # the place in `sapwood.ensemble.rules.COMBINE`
        ("interval", np.int64),  # rows between two looks at who should be replaced
        ("seed", np.uint64),
        ("error_fade", np.float64),
        ("fade", np.float64),  # of the stack, as the next three
        ("precision", np.float64),
        ("centre", np.float64),
        ("most", np.float64),
        ("duel_age", np.float64),
    ]
)
"""The rules as the kernel reads them: EnsembleRules of `sapwood/ensemble/_members.pxd`."""
