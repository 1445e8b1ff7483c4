"""What has to hold for what a tree knows of its columns: categories, samples, units."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.limits import NEAR, SQUARE
from sapwood.records import check, check_all, doubles
from sapwood.tree._column_tables import ENCODING_HEAD, FARTHEST_ENCODING, encoding_rows
from sapwood.tree.layout import CHANGES, CODES, UNIT_DETECTION, UNITS, Limits

__all__ = [
    "check_changes",
    "check_levels",
    "check_samples",
    "check_unit_detection",
    "check_units",
    "checked_encodings",
]

Array = NDArray[Any]
BoolArray = NDArray[np.bool_]


def check_levels(
    levels: Array, limits: Limits, is_category: BoolArray, places: NDArray[np.intp]
) -> None:
    """Check the weights and means of categories; other features have none.

    Parameters
    ----------
    levels : array
        The table.
    limits : Limits
        What bounds its numbers.
    is_category : array
        Of each feature whether it is a low-cardinality category.
    places : array
        Those of a high-cardinality category; -1 for other features.
    """
    features = len(is_category)
    few = len(levels) - int((places[places >= 0] + ENCODING_HEAD).sum())
    table = levels[:few].reshape(features, few // max(1, features), 2)
    check_all(is_category[:, None, None] | (table == 0), "feature {} is no category, but has one")
    good = (table[..., 0] >= 0) & (table[..., 0] <= limits.weight)
    check_all(good, "the weight of a category of feature {} is wrong")
    check_all(abs(table[..., 1]) <= NEAR, "the mean of a category of feature {} is wrong")
    many = levels[few:]
    check_all((many[:, 0] >= 0) & (many[:, 0] <= limits.weight), "the weight of level {} is wrong")
    for feature in np.flatnonzero(places >= 0):
        end = ENCODING_HEAD + places[feature]
        squares, own = many[1:ENCODING_HEAD], many[ENCODING_HEAD:end]
        means = abs(np.append(own[:, 1], many[0, 1])) <= NEAR
        check_all(means, f"the mean of a category of feature {feature} is wrong")
        good = (squares[:, 1] >= 0) & (squares[:, 1] <= SQUARE)
        check_all(good, f"the squares of the categories of feature {feature} are wrong")
        many = many[end:]


def checked_encodings(
    arrays: dict[str, Array], targets: int, places: NDArray[np.intp]
) -> tuple[Array, Array]:
    """Return split encodings and their weights, if they are valid.

    Parameters
    ----------
    arrays : dict
        Of a file; `split_encodings` and `encoding_weights` are among them.
    targets : int
        Columns of y.
    places : array
        Those of a high-cardinality category; -1 for other features.
    """
    rows = encoding_rows(places)
    own = doubles(arrays["split_encodings"], (rows,), "the split encodings", missing=True)
    good = np.isnan(own) | (abs(own) <= FARTHEST_ENCODING)
    check_all(good, "split encoding {} is too large")
    shape = (len(places), targets)
    weights = doubles(arrays["encoding_weights"], shape, "the weights of split encodings")
    check_all(abs(weights) <= NEAR, "the weights of feature {} are too large")
    check_all((places >= 0)[:, None] | (weights == 0), "feature {} has weights of no category")
    return own, weights


def check_samples(samples: Array, kinds: tuple[BoolArray, BoolArray, BoolArray]) -> None:
    """Check rows of the past: categories are codes, what is not known is missing.

    Parameters
    ----------
    samples : array
        The rows.
    kinds : tuple of arrays
        As for `check_nodes`.
    """
    is_category, is_unknown, is_many = kinds
    codes = samples[:, is_category | is_many]
    with np.errstate(invalid="ignore"):
        good = np.isnan(codes) | ((codes >= 0) & (codes == np.floor(codes)))
        check_all(good, "sample {} has a category that is no code")
        good = ~(samples[:, is_category] >= CODES)
    check_all(good, "sample {} has a category that there is not")
    check_all(np.isnan(samples[:, is_unknown]), "sample {} has what was never seen")


def check_units(units: Array, watched: BoolArray, limits: Limits) -> None:
    """Check what is known of the units of y, which come first, and of each feature.

    Parameters
    ----------
    units : array
        The records.
    watched : array
        Of each whether changes of its units are followed.
    limits : Limits
        What bounds their numbers.
    """
    UNITS.check(units, limits)
    # Numbers, as NumPy calls it a TypeError if memory fails while records are compared.
    blank = (units.view(np.float64).reshape(len(units), -1) == 0).all(axis=1)
    check_all(blank | watched, "units {} are those of no number")
    check_all(units["low"] <= units["high"], "the range of units {} is wrong")


def check_unit_detection(detection: Array, units: Array) -> None:
    """Check the state of the detection of unit changes."""
    UNIT_DETECTION.check(detection)
    suspects = bool((units["state"] > 0).any())
    check(
        suspects == bool(detection["phase"][0] > 0),
        "there is a unit change without a suspect, or none with one",
    )


def check_changes(changes: Array, limits: Limits) -> None:
    """Check the changes of units that are remembered."""
    CHANGES.check(changes, limits)
    column, real = changes["column"], changes["row"] > 0
    good = (column >= -1) & (column < limits.features) & (column == np.floor(column))
    check_all(~real | good, "change {} is that of a column that there is not")
    check_all(~real | (changes["scale"] > 0), "the scale of change {} is none")
    check(bool((real[:-1] >= real[1:]).all()), "the changes of units are not in order")
