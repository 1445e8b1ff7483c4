"""What has to hold for the arrays of a delta that comes from elsewhere.

As for trees (see `sapwood.tree.checking`): indices lie within their tables, and numbers are such as
rows that passed validation can have made.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.limits import FAR, MOST_ROWS, MOST_WEIGHT, NEAR, ROUNDING, SQUARE
from sapwood.merge._delta import (
    GRID_DOUBLES,
    RATES_OF_MODELS,
    delta_doubles,
    information_doubles,
    slot_width,
)
from sapwood.merge.alignment import (
    CODES,
    LABEL_SUMS,
    are_few,
    is_separate,
    many_of,
    slot_counts,
    targets_of,
)
from sapwood.merge.column_facts import check_facts
from sapwood.merge.layout import LEAF_DELTA, SCORES, STREAM, TARGET_DELTA, WEIGHTED_ERRORS
from sapwood.records import check, doubles
from sapwood.rows.column import NUMBER
from sapwood.tree._kernel import TreeKernel
from sapwood.tree._tables import most_kept_rows
from sapwood.tree.checking.pages import MOST_COEFFICIENT

__all__ = ["check_arrays", "check_fits"]

Array = NDArray[Any]

MOST_INFORMATION = 1e32  # of one coefficient: one over the least variance that there can be


def check_arrays(arrays: dict[str, Array], features: dict[str, Any]) -> None:
    """Raise ValueError, with the reason, unless arrays are those of a delta.

    - `features`: what `Features.to_header` returns.
    """
    kinds, targets = features["kinds"], targets_of(features)
    sums, of_targets = arrays["sums"], arrays["target_sums"]
    models, places = arrays["models"], arrays["places"]
    check(sums.dtype == LEAF_DELTA and sums.ndim == 1, "its sums are no records of leaves")
    check(of_targets.dtype == TARGET_DELTA, "its sums are no records of targets")
    check(of_targets.shape == (len(sums), targets), "there is not a sum for each target")
    check(places.dtype == np.uint32 and places.ndim == 1, "the places of its slots are none")
    widths = [
        delta_doubles(len(kinds), linear, targets, is_separate(features))
        for linear in (False, True)
    ]
    check(models.ndim == 2 and models.shape[1] in widths, "its models have another size")
    doubles(models, (len(sums), models.shape[1]), "its models")
    doubles(arrays["slots"], (len(places), slot_width(targets)), "its slots")
    _check_sums(sums, len(places))
    _check_targets(of_targets, sums)
    _check_stream(arrays["stream"], of_targets)
    _check_models(models, of_targets, (len(kinds), is_separate(features)))
    slots = _check_parts(arrays["parts_at"], arrays["parts"], sums, features)
    _check_slots(sums, places, arrays["slots"], slot_counts(features, slots), targets)
    weight = float(sums["weight"].sum())
    _check_levels(arrays["levels"], targets, are_few(features), weight)
    labels = sum(len(features["labels"][place]) for place in many_of(features))
    check(targets == 1 or not labels, "a feature of several targets has too many categories")
    _check_label_sums(doubles(arrays["label_sums"], (labels, len(LABEL_SUMS)), "its sums"), weight)
    check_facts(arrays["facts"], (len(kinds), targets), weight)
    scores = doubles(arrays["scores"], (targets, len(SCORES)), "its scores")
    good = (scores[:, [0, 1, 2, 4]] >= 0).all() and (scores[:, 0] <= sums["rows"].sum()).all()
    check(bool(good), "its scores are wrong")


def check_fits(arrays: dict[str, Array], kernel: TreeKernel) -> None:
    """Raise ValueError unless the arrays of a delta are such as a tree of its features makes."""
    leaves = arrays["sums"]["leaf"]
    check(
        not len(leaves) or int(leaves[-1]) < kernel.leaf_count, "it has leaves that there are not"
    )
    check(arrays["target_sums"].shape[1] == kernel.targets, "it has other targets")
    width = GRID_DOUBLES + slot_width(kernel.targets) * kernel.slots
    check(arrays["parts"].shape[1] == width, "its numbers have another number of slots")
    linear = arrays["models"].shape[1] > 0
    check(linear == kernel.linear or not len(leaves), "its leaves predict in another way")
    total = kernel.weight + float(arrays["sums"]["weight"].sum())
    check(total <= MOST_WEIGHT, f"with it, rows would weigh {total}, more than can be")


def _check_sums(sums: Array, places: int) -> None:
    leaf, rows, weight = sums["leaf"], sums["rows"], sums["weight"]
    good = bool((leaf >= 0).all()) and bool((np.diff(leaf) > 0).all())
    check(good, "its leaves are not in order, each of them once")
    check(bool((sums["slots"] >= 0).all()) and sums["slots"].sum() == places, "slots are missing")
    good = bool(((rows >= 1) & (rows == np.floor(rows))).all()) and rows.sum() <= MOST_ROWS
    check(good, "a leaf has a wrong number of rows")
    check(bool(((weight > 0) & (weight <= MOST_WEIGHT)).all()), "the weight of a leaf is wrong")


def _check_targets(sums: Array, of_leaves: Array) -> None:
    rows, weight, mass = sums["rows"], sums["weight"], sums["mass"]
    names = sums.dtype.names or ()
    good = all(bool(np.isfinite(sums[name]).all()) for name in names)
    check(good, "sums of leaves are not finite")
    right: Array = (rows >= 0) & (rows == np.floor(rows)) & (rows <= of_leaves["rows"][:, None])
    right &= (rows == of_leaves["rows"][:, None]) | (sums.shape[1] > 1)
    check(bool(right.all()), "a target has a wrong number of rows")
    right = (weight >= 0) & (weight <= ROUNDING * of_leaves["weight"][:, None])
    check(bool((right & ((weight > 0) == (rows > 0))).all()), "the weight of a target is wrong")
    right = (mass >= 0) & (mass <= rows) & ((mass > 0) == (rows > 0))
    check(bool(right.all()), "the mass of rows is wrong")
    for name, most in (("target", 2 * NEAR), ("residual", FAR)):
        check(bool((abs(sums[f"{name}_mean"]) <= most).all()), f"the {name} of a leaf is wrong")
        spread = sums[f"{name}_m2"]
        good = bool(((spread >= 0) & (spread <= weight * SQUARE)).all())
        check(good, f"the spread of the {name} of a leaf is wrong")
    for name in WEIGHTED_ERRORS:
        some = (sums[name] >= 0) & (sums[name] <= ROUNDING * MOST_WEIGHT * SQUARE)
        check(bool(some.all()), "the error of a leaf is wrong")


def _check_stream(stream: Array, of_targets: Array) -> None:
    rows, low, high, mass, usual = doubles(
        stream, (of_targets.shape[1], len(STREAM)), "the numbers of the stream"
    ).T
    same = bool((rows == of_targets["rows"].sum(axis=0)).all())
    check(same, "its leaves have other rows than it has")
    good = (low >= -NEAR) & (low <= high) & (high <= NEAR)
    check(bool(good.all()), "the range of y is wrong")
    good = (mass >= 0) & (mass <= rows) & ((mass > 0) == (rows > 0))
    check(bool((good & (usual >= 0) & (usual <= SQUARE)).all()), "the usual error is wrong")


def _check_models(models: Array, of_targets: Array, of: tuple[int, bool]) -> None:
    """Check models of so many features, which each target may have for itself."""
    if not models.shape[1]:
        return
    features, targets = of[0], of_targets.shape[1]
    information = information_doubles(features) * (targets if of[1] else 1)
    check(bool((abs(models[:, :information]) <= MOST_INFORMATION).all()), "information is wrong")
    most = MOST_INFORMATION * MOST_COEFFICIENT
    check(bool((abs(models[:, information:]) <= most).all()), "the moves of a model are wrong")
    shape = len(models), targets, RATES_OF_MODELS, features + 1
    moves = models[:, information:].reshape(shape)[:, :, 1:]
    limits = 2 * MOST_COEFFICIENT * of_targets["rows"][..., None, None]
    check(bool((abs(moves) <= limits).all()), "the moves of a model are too large")


def _check_slots(sums: Array, places: Array, slots: Array, counts: Array, targets: int) -> None:
    ends = np.cumsum(counts)
    width = int(ends[-1]) if len(ends) else 0
    check(not len(places) or int(places.max()) < width, "there are slots of no feature")
    leaf = np.repeat(np.arange(len(sums)), sums["slots"])
    key = leaf * max(width, 1) + places
    check(bool((np.diff(key) > 0).all()), "slots are not in order")
    weight = slots[:, 0]
    check(bool((weight > 0).all()), "the weight of a slot is wrong")
    _check_sums_of_slots(slots, targets)
    feature = np.searchsorted(ends, places, "right")
    size = len(sums) * len(counts)
    seen = np.bincount(leaf * len(counts) + feature, weight, size).reshape(len(sums), len(counts))
    good = seen <= ROUNDING * sums["weight"][:, None] + 1e-300
    check(bool(good.all()), "slots have seen more rows than their leaf")


def _check_parts(at: Array, parts: Array, sums: Array, features: dict[str, Any]) -> int:
    """Return how many slots a number has."""
    check(at.dtype == np.int32 and at.ndim == parts.ndim == 2, "its parts are none")
    targets = targets_of(features)
    slots, rest = divmod(int(parts.shape[1]) - GRID_DOUBLES, slot_width(targets))
    check(slots > 0 and rest == 0 and at.shape[1] == 2, "its parts have another size")
    doubles(parts, (len(at), parts.shape[1]), "its parts")
    if not len(at):
        return slots
    leaf, feature = at.T
    check(bool(np.isin(leaf, sums["leaf"]).all()), "there is a part of no leaf")
    kinds, many = features["kinds"], set(many_of(features))
    good = bool(((feature >= 0) & (feature < len(kinds))).all())
    good = good and all(kinds[each] == NUMBER or each in many for each in feature.tolist())
    check(good, "there is a part of no number")
    _, width, inverse, kept = parts[:, :GRID_DOUBLES].T
    most = most_kept_rows(slots)
    laid = inverse > 0
    with np.errstate(divide="ignore", over="ignore"):
        good = np.where(laid, (width > 0) & (inverse == 1 / width), (inverse == 0) & (width == 0))
    check(bool(good.all()), "the width of a grid is wrong")
    good = (kept >= 1) & (kept == np.floor(kept)) & (kept <= most) & (laid | (kept < most))
    check(bool(good.all()), "the number of rows that are kept is wrong")
    weights = dict(zip(sums["leaf"].tolist(), sums["weight"].tolist(), strict=True))
    size = 1 + 2 * targets
    for place, page in enumerate(parts[:, GRID_DOUBLES:]):
        own, gaps = page[: size * slots].reshape(slots, size), page[size * slots :]
        if not laid[place]:
            rows = int(kept[place])
            own = page[: (size + 1) * rows].reshape(rows, size + 1)[:, :size]
            gaps = gaps[: rows * targets]
            check(bool((own[:, 0] > 0).all()), "a row that is kept has no weight")
        _check_sums_of_slots(np.hstack([own, gaps.reshape(len(own), -1)]), targets)
        good = own[:, 0].sum() <= ROUNDING * weights[int(leaf[place])]
        check(bool(good), "a part has seen more rows than its leaf")
    return slots


def _check_sums_of_slots(slots: Array, targets: int) -> None:
    """Raise ValueError unless slots hold a weight, sums of so many targets, and what they lack."""
    weight, gaps = slots[:, :1], slots[:, 1 + 2 * targets :]
    sums = slots[:, 1 : 1 + 2 * targets]
    good = bool((weight >= 0).all()) and bool((abs(sums[:, ::2]) <= 2 * NEAR * weight).all())
    good = good and bool((abs(sums[:, 1::2]) <= FAR * weight).all())
    check(good and bool(((gaps >= 0) & (gaps <= ROUNDING * weight)).all()), "its slots are wrong")


def _check_label_sums(sums: Array, weight: float) -> None:
    added, total, square = sums.T
    good = bool((added >= 0).all()) and bool((added <= ROUNDING * weight).all())
    check(good, "the weight of a category is wrong")
    check(bool((abs(total) <= 4 * NEAR * added).all()), "the sum of a category is wrong")
    good = bool((square >= 0).all()) and bool((square <= 16 * SQUARE * added).all())
    check(good, "the sum of squares of a category is wrong")


def _check_levels(levels: Array, targets: int, few: Array, weight: float) -> None:
    doubles(levels, (targets, CODES * len(few), len(LABEL_SUMS)), "its levels")
    table = levels.reshape(targets, len(few), CODES, len(LABEL_SUMS))
    check(not table[:, ~few].any(), "there are levels of what is no category of few")
    added, total, square = np.moveaxis(table, 3, 0)
    good = bool((added >= 0).all()) and bool((added <= ROUNDING * weight).all())
    check(good, "the weight of a category is wrong")
    check(bool((abs(total) <= 4 * NEAR * MOST_WEIGHT).all()), "the sum of a category is wrong")
    check(bool((square >= 0).all()), "the sum of squares of a category is wrong")
