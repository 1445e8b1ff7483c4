"""Checks of the error-correction layer and the pending predictions of a model file."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.corrector._layer import (
    FIRST_WINDOW,
    LEVEL_RATES,
    RANGE_PARTS,
    layer_parts,
)
from sapwood.limits import FAR, MOST_ERROR, MOST_WEIGHT, NEAR, ROUNDING
from sapwood.records import check, check_all

__all__ = ["check_layer_of", "check_layers", "check_pending"]

Array = NDArray[Any]

MOST_TRANSFERRED = 1e6  # as CREDIBLE of the transfer model


def check_layers(layers: Array, rows: list[float]) -> None:
    """Check the error-correction layer of each target of a tree, given the rows it has learned."""
    if len(layers):
        for layer, own in zip(layers.reshape(len(rows), -1), rows, strict=True):
            check_layer_of(layer, own)


def check_layer_of(layer: Array, rows: float) -> None:
    """Check the error-correction layer of a model that has learned so many rows."""
    bounds: dict[str, tuple[float, float]] = {
        **dict.fromkeys(("level", "predicted", "known", "low", "high", "first"), (-NEAR, NEAR)),
        **dict.fromkeys(("joint", "term_joint", "stack_joint"), (-MOST_ERROR, MOST_ERROR)),
        **dict.fromkeys(("term_products", "stack_products"), (-MOST_ERROR, MOST_ERROR)),
        **dict.fromkeys(("square", "term_square", "stack_square"), (0.0, MOST_ERROR)),
        **dict.fromkeys(("term_weight", "stack_weight"), (0.0, ROUNDING * MOST_WEIGHT)),
        **dict.fromkeys(("slope", "theta"), (0.0, 1.0)),
        **dict.fromkeys(("scored", "lateness", "waiting", "seen"), (0.0, rows)),
        **dict.fromkeys(("low_records", "high_records"), (0.0, rows)),
        **dict.fromkeys(("low_before", "high_before"), (0.0, rows)),
        "window": (0.0, 2.0 * max(rows, FIRST_WINDOW)),
        "coefficient": (-MOST_TRANSFERRED, MOST_TRANSFERRED),
        "rate": (0.0, 1.0),
    }
    part = {name: layer[start : start + size] for name, start, size in layer_parts()}
    for name, values in part.items():
        low, high = bounds[name]
        good = bool(((values >= low) & (values <= high)).all())
        check(good, f"the {name} of the corrector is wrong")
    check(tuple(part["rate"]) == LEVEL_RATES, "the rates of the corrector are wrong")
    scored, waiting = float(part["scored"][0]), float(part["waiting"][0])
    good = scored == int(scored) and waiting == int(waiting) and waiting <= scored
    check(good, "the corrector cannot have scored so many rows")
    _check_range({name: float(part[name][0]) for name in ("low", "high", *RANGE_PARTS)})
    for name in ("term_products", "stack_products"):
        squares = part[name][np.cumsum(np.arange(1, len(part[name]) + 1))[: _terms(part[name])] - 1]
        check(bool((squares >= 0).all()), f"the {name} of the corrector are wrong")


def _check_range(known: dict[str, float]) -> None:
    check(known["low"] <= known["high"], "the range of the corrector is wrong")
    counts = [known[name] for name in RANGE_PARTS]
    check(all(count == int(count) for count in counts), "records of the corrector are no counts")
    doublings = np.log2(known["window"] / FIRST_WINDOW) if known["window"] else 0.0
    good = doublings >= 0 and doublings == int(doublings)
    good = good and known["seen"] < max(known["window"], 1.0)
    check(good, "the window of the corrector is wrong")


def _terms(triangle: Array) -> int:
    """Return of how many columns a triangle is half a matrix."""
    return int((np.sqrt(8 * len(triangle) + 1) - 1) / 2)


def check_pending(pending: Array, rows: float) -> None:
    """Check pending predictions."""
    known = pending[:, 0]  # labels, when it was predicted
    check_all(
        (known >= 1) & (known <= rows) & (known == np.floor(known)),
        "pending prediction {} is too old",
    )
    check_all(abs(pending[:, 1:]) <= FAR, "pending prediction {} is wrong")
