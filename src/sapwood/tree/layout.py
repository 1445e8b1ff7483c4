"""The records that a tree is made of, each field declared once.

A tree is two tables, of nodes and of leaves, and for each leaf one or two *pages*: flat arrays of
doubles that hold its model and what it watches. Kernels declare the same records as structs, in
`_records.pxd`, `_facts.pxd`, `_units.pxd` and `_target_records.pxd`. What has to hold among the
fields, such as that nodes are a tree, is checked by `sapwood.tree.checking`.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sapwood.limits import (
    FAR,
    MOST_ERROR,
    MOST_ROWS,
    MOST_WEIGHT,
    NEAR,
    ROUNDING,
    SQUARE,
)
from sapwood.records import LARGEST, Field, Record, Times

__all__ = [
    "CATEGORY",
    "CHANGES",
    "CHANGE_RECORD",
    "COARSEST_GRID",
    "CODES",
    "ERRORS",
    "FACTS",
    "FACTS_RECORD",
    "FINER_THAN_GRIDS",
    "LEAF",
    "LEAF_RECORD",
    "LEAVES",
    "LISTED",
    "MOST_UNIT_CHANGES",
    "NODES",
    "NODE_RECORD",
    "NUMBER",
    "SAID_ERRORS",
    "SAMPLE_ROWS",
    "STREAM",
    "STREAM_NUMBERS",
    "TARGET_COST",
    "TARGET_COSTS",
    "TARGET_LEAF",
    "TARGET_LEAVES",
    "TARGET_NODE",
    "TARGET_NODES",
    "TARGET_STREAM",
    "TARGET_STREAMS",
    "TARGET_TRIAL",
    "TARGET_TRIALS",
    "TRIAL",
    "TRIAL_RECORD",
    "UNITS",
    "UNITS_RECORD",
    "UNIT_DETECTION",
    "UNIT_DETECTION_RECORD",
    "UNIT_DETECTION_ROWS",
    "Limits",
    "no_trial",
]

# The kind of a node. A high-cardinality category is split as a number, by its target encoding. A
# split by a list of codes, made while there were few of them, is LISTED from then on.
LEAF, NUMBER, CATEGORY, LISTED = 0, 1, 2, 3
CODES = 64  # of a low-cardinality category

# As kernels have it: rows that are kept as samples; grids of columns, in decimals; the changes of
# units that are remembered, the rows of an detection, and for how long a column is not suspected.
SAMPLE_ROWS = 32
COARSEST_GRID, FINER_THAN_GRIDS = -3, 5
MOST_UNIT_CHANGES, UNIT_DETECTION_ROWS, MOST_PATIENCE = 16, 128, 1_048_576


# -- what bounds of fields depend on --------------------------------------------------------------


class Limits(NamedTuple):
    """What bounds the records of one tree.

    Attributes
    ----------
    rows : float
        That the tree has learned.
    weight : float
        Of them, and what rounding may have added.
    features : int
        That it knows.
    leaves : array, optional
        Of a tree of several targets, the record of the leaf that each target of a leaf is of.
    """

    rows: float
    weight: float
    features: int
    leaves: NDArray[Any] = np.zeros(0)


def _rows(limits: Limits) -> float:
    return limits.rows


def _weight(limits: Limits) -> float:
    return limits.weight


def _weight_of_costs(limits: Limits) -> float:
    return 8.0 * limits.weight  # a row that is tried counts for up to so many, see _facts.pxd


def _squares(limits: Limits) -> float:
    return limits.weight * SQUARE


# -- the stream -----------------------------------------------------------------------------------

STREAM_NUMBERS = Record(
    Field("rows", 0, MOST_ROWS, whole=True, complaint="{value} is no number of rows"),
    Field("weight", 0, MOST_WEIGHT, complaint="{value} is no weight of all rows"),
    Field("first", -NEAR, NEAR),  # of y
    Field("low", -NEAR, NEAR),  # the range of y
    Field("high", -NEAR, NEAR),
    Field("usual", 0, complaint="the usual error is negative"),  # weighted mean of squared errors
    Field("ranked_at", 0, _rows, complaint="leaves cannot have been ranked at row {value}"),
    Field(
        "measure_at",
        0,
        2 * MOST_ROWS,
        whole=True,
        complaint="nothing can be measured at row {value}",
    ),
    Field("bound", 0, 2.0**63, complaint="{value} is no bound of memory"),
    complaint="the range of y is wrong",
)
"""What a tree knows of all rows."""
STREAM = STREAM_NUMBERS.dtype.names or ()

# -- nodes and leaves -----------------------------------------------------------------------------

NODES = Record(
    # LEAF, or the kind of feature that it splits on
    Field("kind", LEAF, LISTED, np.int32, complaint="node {place} is of no kind"),
    Field(  # which feature it splits on
        "feature",
        0,
        lambda limits: max(1, limits.features) - 1,
        np.int32,
        complaint="node {place} has a feature that there is not",
    ),
    Field("child", type=np.int32),  # its left child, the right one is next; of a leaf, its record
    Field("parent", type=np.int32),  # -1 for the root
    Field("depth", type=np.int32),
    Field(  # whether rows without a value go left
        "missing_left", 0, 1, np.int32, complaint="node {place} sends missing values nowhere"
    ),
    Field(  # smaller numbers go left
        "threshold",
        -LARGEST,
        LARGEST,
        complaint="the threshold of node {place} is not finite",
    ),
    Field("subset", type=np.uint64),  # bit k is set if category k goes left
    Field("weight", 0, _weight),  # of the rows that it saw; of a leaf, of those that it inherited
    Field("mean", -FAR, FAR),  # of their y; for a leaf, its own record has it, as the next
    Field("deviation", 0, FAR),  # of their y
    # weight times merit of the split; of a leaf, the weight from which it may try splits again
    Field("gain", 0, _squares),
    complaint="the {name} of node {place} is wrong",
)

ERRORS = ("error_mean", "error_0", "error_1", "error_2", "error_3")
"""Exponentially weighted errors of a leaf's experts: the mean, and the linear models."""
SAID_ERRORS = ("said_mean", "said_0", "said_1", "said_2", "said_3")
"""The same, half of them of issued predictions; with an error-correction layer these determine the
shares of experts. Files have these names."""

_OF_Y = (  # what leaves know of y, and leaves of several targets of each
    Field("origin", -NEAR, NEAR),  # what the y of this leaf are measured from
    Field("mean", -NEAR, NEAR),  # the mean predictor, from the origin
    # its weight, which starts with what the split knew
    Field("mean_weight", 0, lambda limits: 10.0 + limits.weight),
    Field("target_mean", -NEAR, NEAR),  # of the y since it began to watch, from the origin
    Field("target_m2", 0, Times("weight", SQUARE)),
    Field("residual_mean", -FAR, FAR),  # of what the linear model could not explain
    Field("residual_m2", 0, Times("weight", SQUARE)),
    *(Field(name, 0, MOST_ERROR, element_of="errors") for name in ERRORS),
    *(
        Field(name, 0, MOST_ERROR, since=2, before=error, element_of="issued_errors")
        for name, error in zip(SAID_ERRORS, ERRORS, strict=True)
    ),
)

LEAVES = Record(
    Field("node", type=np.int32),
    Field(  # whether it has a page of what it watches
        "watching", 0, 1, np.int32, complaint="leaf {place} neither watches nor does not"
    ),
    Field("rows", 0, _rows),  # that its models have learned
    Field("weight", 0, _weight),  # of the rows since it began to watch
    Field("due", 0),  # the weight at which it has to be decided whether to split
    Field("review", 0),  # the weight at which scales and grids are looked at again
    Field("born", 0, _weight),  # the weight that the tree had learned before
    *_OF_Y,
    complaint="the {name} of leaf {place} is wrong",
)

# -- columns --------------------------------------------------------------------------------------

_COST = "the cost of feature {place} is wrong"
_RANGE = "the range of feature {place} is wrong"
_WEIGHT_OF_COST = "the weight of the cost of feature {place} is wrong"

FACTS = Record(
    Field(  # all values are multiples of 10 ** -decimals
        "decimals",
        COARSEST_GRID,
        FINER_THAN_GRIDS,
        whole=True,
        complaint="feature {place} is on a grid that there is not",
    ),
    # of another value in place of a row's: squared errors, and the weight of these rows
    Field("cost", Times("weight", -SQUARE), Times("weight", SQUARE), complaint=_COST),
    Field("weight", 0, _weight_of_costs, complaint=_WEIGHT_OF_COST),
    Field(  # the same, exponentially weighted
        "late_cost",
        Times("late_weight", -SQUARE),
        Times("late_weight", SQUARE),
        complaint=_COST,
    ),
    Field("late_weight", 0, _weight_of_costs, complaint=_WEIGHT_OF_COST),
    Field("last", -LARGEST, LARGEST, missing=True),  # the value of the row that was sampled last
    Field(  # how often samples have risen since one was below that before it
        "rises",
        0,
        lambda limits: limits.rows + SAMPLE_ROWS,
        complaint="feature {place} has risen too often",
    ),
    # the range of its values, if leaves have linear models; of a category, that of all numbers,
    # and before the first value, from LARGEST to -LARGEST
    Field("low", -LARGEST, LARGEST, since=6, complaint=_RANGE),
    Field("high", -LARGEST, LARGEST, since=6, complaint=_RANGE),
    complaint="the last sample of feature {place} is infinite",
)
"""What is known of a column; see `sapwood/tree/_facts.pxd`."""

_NEGATIVE = "the {name} of units {place} is negative"
_counted = partial(
    Field,
    low=0,
    high=_rows,
    whole=True,
    complaint="the {name} of units {place} is no number of rows",
)

UNITS = Record(
    _counted("samples"),  # values that were sampled
    Field("low", -NEAR, NEAR),  # their range
    Field("high", -NEAR, NEAR),
    Field("mean", -NEAR, NEAR),  # exponentially weighted
    Field("variance", 0, SQUARE, below=_NEGATIVE),
    Field("last", -NEAR, NEAR),
    # the exponentially weighted mean of the steps from sample to sample, ties aside
    Field("step", 0, NEAR, below=_NEGATIVE),
    Field("lately", 0, NEAR, below=_NEGATIVE),  # the same with a short memory
    Field("ties", 0, below=_NEGATIVE),  # the weighted share of samples equal to the one before
    _counted("run"),  # rows in turn beyond the range
    _counted("still"),  # rows in turn that are next to the last sample
    Field(  # the row from which on it may be suspected
        "wait",
        0,
        lambda limits: limits.rows + MOST_PATIENCE,
        below=_NEGATIVE,
        complaint="units {place} have too long a pause",
    ),
    Field("patience", 0, MOST_PATIENCE, below=_NEGATIVE),  # for how many rows it will not be
    # 0, or a suspect: 1 by its steps, 2 by its values
    Field("state", 0, 2, whole=True, complaint="the state of units {place} is none"),
    _counted("seen"),  # values of a suspect,
    _counted("inside"),  # those that are in the range,
    Field("new_mean", -NEAR, NEAR),  # and what they are like
    Field("new_m2", 0, SQUARE, below=_NEGATIVE),
    Field("bottom", -NEAR, NEAR),
    Field("top", -NEAR, NEAR),
    complaint="the {name} of units {place} is too large",
    finite="the {name} of units {place} is not finite",
)
"""What is known of the units of y and of each column; see `sapwood/tree/_units.pxd`."""

_MAPS = ("scale", "shift", "both")  # by which units may have changed
_TOO_LARGE = "the {name} of the unit change is too large"
_NOT_WITHIN = "the {name} of the unit change is negative or too large"
_error = partial(Field, low=0, high=UNIT_DETECTION_ROWS * SQUARE)

UNIT_DETECTION = Record(
    # 0 at rest, 1 while suspects are watched, 2 while maps are weighed
    Field("phase", 0, 2, whole=True, complaint="the phase of the unit change is none"),
    _error("stirred", element_of="alert"),  # whether every row is looked at
    Field(  # of the detection
        "rows",
        0,
        np.nextafter(UNIT_DETECTION_ROWS, 0),
        complaint="the unit change is too long",
        below=_NOT_WITHIN,
    ),
    _error("errors"),  # samples of errors,
    _error("error"),  # and the exponentially weighted mean of their squares
    Field("level", -NEAR, NEAR, complaint=_TOO_LARGE),  # what is predicted while y is a suspect
    _error("erred"),  # the last row with a large error,
    _error("run"),  # how many there were in turn,
    _error("steps"),  # and by how much y changed
    _error("as_is"),  # squared errors: as if all was as before,
    _error("in_force"),  # of the issued predictions,
    # as if units had changed by one kind of map or another,
    *(_error(f"weighed_{by}", element_of="weighed") for by in _MAPS),
    # by how much that makes absolute errors smaller,
    *(
        Field(
            f"gain_{by}",
            -UNIT_DETECTION_ROWS * FAR,
            UNIT_DETECTION_ROWS * FAR,
            complaint=_TOO_LARGE,
            element_of="gain",
        )
        for by in _MAPS
    ),
    *(_error(f"square_{by}", element_of="square") for by in _MAPS),  # and the sum of its squares
    complaint=_NOT_WITHIN,
    finite="the {name} of the unit change is not finite",
)

CHANGES = Record(
    Field("row", 0, _rows),  # rows that had been learned; 0 where there is no change
    Field("column"),  # a feature, or -1 for y
    Field("scale"),  # values from then on are scale * those of before + shift
    Field("shift"),
    complaint="change {place} was never seen",
    finite="the {name} of change {place} is not finite",
)

# -- a split on trial -----------------------------------------------------------------------------

_SIDES = "the sides of the trial are wrong"

_OF_SIDES = (  # of the rows on either side, and of their residual
    Field("left_weight", 0, element_of="weight"),
    Field("right_weight", 0, element_of="weight"),
    Field("left_mean", -FAR, FAR, element_of="mean"),
    Field("right_mean", -FAR, FAR, element_of="mean"),
    Field("left_m2", 0, Times("left_weight", SQUARE), element_of="m2"),
    Field("right_m2", 0, Times("right_weight", SQUARE), element_of="m2"),
)

TRIAL = Record(
    Field("leaf", type=np.int64),  # whose rows are divided on trial; -1 if there is none
    Field(
        "feature",
        0,
        lambda limits: limits.features - 1,
        np.int64,
        complaint="the trial has a feature that there is not",
    ),
    Field("place", type=np.int64),  # of a number: the slot after which it is cut
    Field("missing_left", 0, 1, np.int64, complaint="the trial sends missing values nowhere"),
    Field("subset", type=np.uint64),  # of a category: bit k is set if category k goes left
    Field(  # of a number
        "threshold", -LARGEST, LARGEST, complaint="the threshold of the trial is not finite"
    ),
    # the weight of the leaf at which the trial is evaluated
    Field("ends", 0, 2 * MOST_WEIGHT, complaint="the trial never ends"),
    *_OF_SIDES,
    complaint=_SIDES,
)

# -- several targets: a tree has these for each of them, and not what they stand for above ---------

TARGET_STREAMS = Record(
    Field("rows", 0, _rows),  # in which it is present
    Field("weight", 0, _weight),  # of them
    Field("first"),  # of its y
    Field("low", -NEAR, NEAR),  # the range of its y
    Field("high", -NEAR, NEAR),
    Field("usual", 0, SQUARE),  # exponentially weighted mean of the squared errors
    Field("mean", -FAR, FAR),  # of its y, from the first
    Field("m2", 0, _squares),
    complaint="the {name} of target {place} is wrong",
    finite="the {name} of target {place} is not finite",
)

TARGET_LEAVES = Record(
    Field("rows", 0, lambda limits: ROUNDING * limits.leaves["rows"]),
    Field("weight", 0, lambda limits: ROUNDING * limits.leaves["weight"]),
    *_OF_Y,
    complaint="the {name} of target {place} is wrong",
    finite="the {name} of target of a leaf {place} is not finite",
)

TARGET_NODES = Record(
    Field("weight", 0, _weight),
    Field("mean", -FAR, FAR),
    Field("deviation", 0, FAR),
    # of one target, in units of its own variance over the whole tree, which may be next to none
    Field("gain", 0),
    complaint="the {name} of target of a node {place} is wrong",
    finite="the {name} of target {place} is not finite",
)

TARGET_TRIALS = Record(*_OF_SIDES, complaint="the sides of the trial are wrong for target {place}")

TARGET_COSTS = Record(  # as the fields of the same names in FACTS, of each feature and target
    Field("cost", Times("weight", -SQUARE), Times("weight", SQUARE)),
    Field("weight", 0, _weight_of_costs),
    Field("late_cost", Times("late_weight", -SQUARE), Times("late_weight", SQUARE)),
    Field("late_weight", 0, _weight_of_costs),
    complaint="the {name} of target of a feature {place} is wrong",
    finite="the {name} of target of a feature {place} is not finite",
)

# -- what arrays are made of ----------------------------------------------------------------------

NODE_RECORD = NODES.dtype
LEAF_RECORD = LEAVES.dtype
FACTS_RECORD = FACTS.dtype
UNITS_RECORD = UNITS.dtype
UNIT_DETECTION_RECORD = UNIT_DETECTION.dtype
CHANGE_RECORD = CHANGES.dtype
TRIAL_RECORD = TRIAL.dtype
TARGET_STREAM = TARGET_STREAMS.dtype
TARGET_LEAF = TARGET_LEAVES.dtype
TARGET_NODE = TARGET_NODES.dtype
TARGET_TRIAL = TARGET_TRIALS.dtype
TARGET_COST = TARGET_COSTS.dtype


def no_trial() -> NDArray[Any]:
    """Return the record of a tree in which no split is on trial."""
    trial = np.zeros(1, TRIAL_RECORD)
    trial["leaf"] = -1
    return trial
