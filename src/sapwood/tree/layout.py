"""The records that a tree is made of.

A tree is two tables, of nodes and of leaves, and for each leaf one or two *pages*: flat arrays of
doubles that hold its model and what it watches. `sapwood/tree/_records.pxd` declares the same
records for the kernels.
"""

import numpy as np

__all__ = [
    "CATEGORY",
    "CHANGE_RECORD",
    "ERRORS",
    "FACTS_RECORD",
    "LEAF",
    "LEAF_RECORD",
    "LISTED",
    "NODE_RECORD",
    "NUMBER",
    "SAID_ERRORS",
    "TARGET_LEAF",
    "TARGET_NODE",
    "TARGET_STREAM",
    "TRIAL_RECORD",
    "UNITS_RECORD",
    "UNREST_RECORD",
]

# What a node is. A category of many is cut as a number, by its level; but where it was cut by a
# list of codes while they were few, the split is LISTED from then on.
LEAF, NUMBER, CATEGORY, LISTED = 0, 1, 2, 3

NODE_RECORD = np.dtype(
    [
        ("kind", np.int32),  # LEAF, or the kind of feature that it splits on
        ("feature", np.int32),  # which feature it splits on
        ("child", np.int32),  # its left child, the right one is next; of a leaf, its leaf record
        ("parent", np.int32),  # -1 for the root
        ("depth", np.int32),
        ("missing_left", np.int32),  # whether rows without a value go left
        ("threshold", np.float64),  # smaller numbers go left
        ("subset", np.uint64),  # bit k is set if category k goes left
        ("weight", np.float64),  # of the rows that it saw; of a leaf, of those that it inherited
        ("mean", np.float64),  # of their y; a leaf tells it in its own record, as the next
        ("deviation", np.float64),  # of their y
        ("gain", np.float64),  # weight times merit of the split; of a leaf, the weight from which
        # it may try splits again
    ]
)

LEAF_RECORD = np.dtype(
    [
        ("node", np.int32),
        ("watching", np.int32),  # whether it has a page of what it watches
        ("rows", np.float64),  # that its models have learned
        ("weight", np.float64),  # of the rows since it began to watch
        ("due", np.float64),  # the weight at which it has to be decided whether to split
        ("review", np.float64),  # the weight at which scales and grids are looked at again
        ("born", np.float64),  # the weight that the tree had learned before
        ("origin", np.float64),  # what the y of this leaf are measured from
        ("mean", np.float64),  # the mean predictor, from the origin
        ("mean_weight", np.float64),  # its weight, which starts with what the split knew
        ("target_mean", np.float64),  # of the y since it began to watch, from the origin
        ("target_m2", np.float64),
        ("residual_mean", np.float64),  # of what the linear model could not explain
        ("residual_m2", np.float64),
        ("error_mean", np.float64),  # faded squared errors: of the mean predictor,
        ("error_0", np.float64),  # and of each linear model
        ("error_1", np.float64),
        ("error_2", np.float64),
        ("error_3", np.float64),
        ("said_mean", np.float64),  # the same, half of them of what was said when predicting
        ("said_0", np.float64),
        ("said_1", np.float64),
        ("said_2", np.float64),
        ("said_3", np.float64),
    ]
)

FACTS_RECORD = np.dtype(
    [
        ("decimals", np.float64),  # all values are multiples of 10 ** -decimals, up to NO_GRID
        ("cost", np.float64),  # of another value in place of a row's: squared errors, and
        ("weight", np.float64),  # the weight of these rows
        ("late_cost", np.float64),  # the same, faded
        ("late_weight", np.float64),
        ("last", np.float64),  # the value of the row that was sampled last
        ("rises", np.float64),  # samples in turn of which each was larger than the one before
    ]
)
"""What is known of a column; `sapwood/tree/_facts.pxd` tells how."""

UNITS_RECORD = np.dtype(
    [
        ("samples", np.float64),  # values that were sampled
        ("low", np.float64),  # their range
        ("high", np.float64),
        ("mean", np.float64),  # faded
        ("variance", np.float64),
        ("last", np.float64),
        ("step", np.float64),  # the faded mean of the steps from sample to sample, ties aside
        ("lately", np.float64),  # the same, quickly faded
        ("ties", np.float64),  # the faded share of samples that are as the one before
        ("run", np.float64),  # rows in turn beyond the range
        ("still", np.float64),  # rows in turn that are next to the last sample
        ("wait", np.float64),  # the row from which on it may be suspected
        ("patience", np.float64),  # for how many rows it will not be, next time
        ("state", np.float64),  # 0, or a suspect: 1 by its steps, 2 by its values
        ("seen", np.float64),  # values of a suspect,
        ("inside", np.float64),  # those that are in the range,
        ("new_mean", np.float64),  # and what they are like
        ("new_m2", np.float64),
        ("bottom", np.float64),
        ("top", np.float64),
    ]
)
"""What is known of the units of y and of each column; `sapwood/tree/_units.pxd` tells how."""

UNREST_RECORD = np.dtype(
    [
        ("phase", np.float64),  # 0 at rest, 1 while suspects are watched, 2 while maps are weighed
        ("stirred", np.float64),  # whether every row is looked at
        ("rows", np.float64),  # of the unrest
        ("errors", np.float64),  # samples of errors,
        ("error", np.float64),  # and the faded mean of their squares
        ("level", np.float64),  # what is said while y is a suspect
        ("erred", np.float64),  # the last row with a large error,
        ("run", np.float64),  # how many there were in turn,
        ("steps", np.float64),  # and by how much y changed
        ("as_is", np.float64),  # squared errors: as if all was as before,
        ("in_force", np.float64),  # of what was said,
        ("weighed_scale", np.float64),  # as if units had changed by one kind of map or another,
        ("weighed_shift", np.float64),
        ("weighed_both", np.float64),
        ("gain_scale", np.float64),  # by how much that makes absolute errors smaller,
        ("gain_shift", np.float64),
        ("gain_both", np.float64),
        ("square_scale", np.float64),  # and the sum of its squares
        ("square_shift", np.float64),
        ("square_both", np.float64),
    ]
)

CHANGE_RECORD = np.dtype(
    [
        ("row", np.float64),  # rows that had been learned; 0 where there is no change
        ("column", np.float64),  # a feature, or -1 for y
        ("scale", np.float64),  # values from then on are scale * those of before + shift
        ("shift", np.float64),
    ]
)

TRIAL_RECORD = np.dtype(
    [
        ("leaf", np.int64),  # whose rows are divided on trial; -1 if there is none
        ("feature", np.int64),
        ("place", np.int64),  # of a number: the slot after which it is cut
        ("missing_left", np.int64),
        ("subset", np.uint64),  # of a category: bit k is set if category k goes left
        ("threshold", np.float64),  # of a number
        ("ends", np.float64),  # the weight of the leaf with which the trial is judged
        ("left_weight", np.float64),  # of the rows on either side, and of their residual:
        ("right_weight", np.float64),
        ("left_mean", np.float64),
        ("right_mean", np.float64),
        ("left_m2", np.float64),
        ("right_m2", np.float64),
    ]
)

ERRORS = ("error_mean", "error_0", "error_1", "error_2", "error_3")
"""The faded errors of a leaf's experts: the mean, and the linear models."""
SAID_ERRORS = ("said_mean", "said_0", "said_1", "said_2", "said_3")
"""The same of what they said when rows were predicted; with a last layer these decide on shares."""

# A tree of several targets has these for each of them, and not what they stand for above.

TARGET_STREAM = np.dtype(
    [
        ("rows", np.float64),  # in which it is present
        ("weight", np.float64),  # of them
        ("first", np.float64),  # of its y
        ("low", np.float64),  # the range of its y
        ("high", np.float64),
        ("usual", np.float64),  # faded mean of the squared errors
        ("mean", np.float64),  # of its y, from the first
        ("m2", np.float64),
    ]
)

_OF_TARGETS = ("rows", "weight", "origin", "mean", "mean_weight", "target_mean", "target_m2")
TARGET_LEAF = np.dtype(
    [
        (name, np.float64)
        for name in (*_OF_TARGETS, "residual_mean", "residual_m2", *ERRORS, *SAID_ERRORS)
    ]
)

TARGET_NODE = np.dtype([(name, np.float64) for name in ("weight", "mean", "deviation", "gain")])
"""The gain is that of one target, in units of its own variance over the whole tree."""
