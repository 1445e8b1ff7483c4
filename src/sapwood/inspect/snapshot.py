"""The inside of a tree, for the views: its nodes as they are now, and how it predicts a row."""

from collections.abc import Mapping
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.corrector._layer import LEVEL_RATES, last_label_share, layer_parts
from sapwood.inspect.explanation import Contribution, Expert, Explanation, path_to
from sapwood.inspect.view import PICTURE_RECORD, TreePicture, UnitChange
from sapwood.records import Records
from sapwood.rows.features import IDENTIFIER, OTHERS, Features
from sapwood.tree._kernel import LEAST_SHARES, TreeKernel
from sapwood.tree.layout import CATEGORY, ERRORS, LEAF, LISTED, NUMBER, SAID_ERRORS

__all__ = ["explain", "picture", "shares_of", "unit_changes"]

FloatArray = NDArray[np.float64]

MOST_SHARE = 1e100  # of a variance; more is only where the variance is next to none


def picture(kernel: TreeKernel, features: Features) -> TreePicture:
    """Return a tree as the views see it."""
    source = kernel.node_table[: kernel.node_count]
    nodes: Records = np.zeros(kernel.node_count, PICTURE_RECORD)
    for name in source.dtype.names or ():
        nodes[name] = source[name]
    at = np.flatnonzero(source["kind"] == LEAF)
    records = kernel.leaf_table.take(source["child"][at])
    inherited = np.zeros(len(nodes))
    inherited[at] = source["weight"][at]
    nodes["weight"][at] = inherited[at] + records["weight"]
    nodes["mean"][at] = records["origin"] + records["mean"]
    with np.errstate(invalid="ignore"):
        variance = records["target_m2"] / records["weight"]
    before = source["deviation"][at]  # of a leaf that has joined those below it, as it began
    nodes["deviation"][at] = np.where(records["weight"] > 0, np.sqrt(variance), before)
    nodes["watching"][at] = records["watching"] != 0
    nodes["gain"][at] = 0.0
    errors = np.array([records[name] for name in _judges(kernel)])
    by_mean = not kernel.linear or (kernel.averaging & (errors[0] <= errors[1:].min(axis=0)))
    nodes["model"][at] = np.where(by_mean, "mean", "linear")
    nodes["kind"][nodes["kind"] == LISTED] = CATEGORY
    names, known, facts = _texts(features), features.known, _facts(kernel)
    labels = [[str(label) for label in islice(table, OTHERS + 1)] for table in known.categories]
    flags = {names[place]: names[owner] for place, owner in known.flags.items()}
    if kernel.targets > 1:
        nodes["mean"] = nodes["deviation"] = np.nan
        nodes["model"][at] = "linear" if kernel.linear else "mean"
        targets = [str(name) for name in known.targets]
        of_targets = _of_targets(kernel, at)
        return TreePicture(
            nodes,
            names,
            labels,
            _levels(kernel, features),
            facts=facts,
            targets=targets,
            of_targets=of_targets,
            inherited=inherited,
            learned=kernel.weight,
            flags=flags,
        )
    levels = _levels(kernel, features)
    if not kernel.columns.split_encoded:  # levels are those of y itself
        by_level = (nodes["kind"] == NUMBER) & np.isin(nodes["feature"], [*levels])
        nodes["threshold"][by_level] += kernel.first
    ids = [name for name, kind in zip(names, known.kinds, strict=True) if kind == IDENTIFIER]
    return TreePicture(
        nodes,
        names,
        labels,
        levels,
        ids,
        facts,
        inherited=inherited,
        learned=kernel.weight,
        flags=flags,
    )


def _levels(kernel: TreeKernel, features: Features) -> dict[int, FloatArray]:
    """Return by which number splits read each label of the features with more than 63."""
    many = np.flatnonzero(kernel.columns.place_table >= 0).tolist()
    counts = features.known.counts
    return {feature: kernel.encodings_of(feature)[: counts[feature]] for feature in many}


def _facts(kernel: TreeKernel) -> Records:
    """Return what is known of each feature; of several targets, its mean cost.

    That is the mean over targets of the squared errors as shares of each one's variance.
    """
    facts = kernel.columns.known_facts.copy()
    if kernel.targets == 1:
        return facts
    costs = kernel.columns.known_costs.reshape(-1, kernel.targets)
    streams = kernel.target_records.streams
    known = streams["m2"] > 0.0
    variance = streams["m2"][known] / streams["weight"][known]
    for prefix in ("", "late_"):
        weight, cost = costs[f"{prefix}weight"][:, known], costs[f"{prefix}cost"][:, known]
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            shares = np.where(weight > 0.0, cost / weight / variance, 0.0)
        shares = np.clip(shares, -MOST_SHARE, MOST_SHARE)
        facts[f"{prefix}cost"] = shares.sum(axis=1) / max(1, int(known.sum()))
        facts[f"{prefix}weight"] = (weight > 0.0).any(axis=1)
    return facts


def _of_targets(kernel: TreeKernel, leaves: NDArray[Any]) -> NDArray[Any]:
    """Return the statistics of each node and target; those of a leaf are in its own records."""
    table = kernel.target_records.nodes.reshape(-1, kernel.targets)[: kernel.node_count].copy()
    own = kernel.target_records.leaves.reshape(-1, kernel.targets)[
        kernel.node_table["child"][leaves]
    ]
    table["weight"][leaves] += own["weight"]
    table["mean"][leaves] = own["origin"] + own["mean"]
    with np.errstate(invalid="ignore"):
        variance = own["target_m2"] / own["weight"]
    before = table["deviation"][leaves]
    table["deviation"][leaves] = np.where(own["weight"] > 0, np.sqrt(variance), before)
    table["gain"][leaves] = np.nan
    return table


def unit_changes(kernel: TreeKernel, features: Features) -> list[UnitChange]:
    """Return the changes of units that a tree has followed, the oldest first."""
    names = _texts(features)
    return [
        UnitChange(int(row), None if column < 0 else names[int(column)], scale, shift)
        for row, column, scale, shift in kernel.change_table.tolist()
        if row > 0.0
    ]


def _texts(features: Features) -> list[str]:
    """Return the names of features as texts, of which no two are the same."""
    return [
        repr(name)
        if isinstance(name, str) and name.isdecimal() and int(name) in features.index
        else str(name)
        for name in features.names
    ]


def explain(
    kernel: TreeKernel,
    features: Features,
    x: Mapping[Any, Any],
    row: NDArray[np.float64],
) -> Explanation:
    """Explain the prediction for a row.

    - `x`: the features by name.
    """
    leaf, experts, terms, prediction, candidates, tracked = kernel.explain_row(row)
    texts = _texts(features)
    values = {text: x[name] for text, name in zip(texts, features.names, strict=True) if name in x}
    origin = float(kernel.leaf_table["origin"][leaf])
    names = ["mean"] + [
        f"linear, at least {share:g}" if share else "linear" for share in LEAST_SHARES
    ]
    shares = shares_of(kernel, kernel.leaf_table[leaf : leaf + 1])[0].tolist()
    linear = sum(shares[1:])
    contributions: list[Contribution] = []
    intercept = 0.0
    if linear > 0.0:
        coefficients = np.reshape(kernel.model_page(leaf)[: kernel.page_parts()[0]], (-1, 4))
        mixed = (coefficients @ (np.array(shares[1:]) / linear)).tolist()
        intercept = origin + mixed[0]
        contributions = [
            Contribution(text, value, coefficient)
            for text, value, coefficient in zip(texts, terms[1:], mixed[1:], strict=False)
        ]
    return Explanation(
        path=path_to(picture(kernel, features), int(kernel.leaf_table["node"][leaf]), values),
        experts=[
            Expert(name, origin + expert, share)
            for name, expert, share in zip(names, experts, shares, strict=False)
            if share > 0.0
        ],
        intercept=intercept,
        contributions=contributions,
        leaf_prediction=prediction,
        bounds=None,
        tracking=tracked - prediction,
        prediction=tracked,
        last_layer=_last_layer(kernel, candidates),
    )


def _last_layer(kernel: TreeKernel, candidates: list[float]) -> list[Expert]:
    """Return the candidates of the error-correction layer with their weights, if it has some."""
    part = {name: kernel.layer_table[start:][:size] for name, start, size in layer_parts()}
    names = [*(f"level, rate {rate:g}" for rate in LEVEL_RATES), "transfer model", "last label"]
    predicted = [*candidates, *part["known"][:1]]
    weights = [*part["theta"]]
    if len(kernel.layer_table):
        weights.append(last_label_share(kernel.layer_table))
    return [
        Expert(name, value, float(weight))
        for name, value, weight in zip(names, predicted, weights, strict=False)
        if weight > 0.0
    ]


def shares_of(kernel: TreeKernel, leaves: NDArray[Any]) -> FloatArray:
    """Return the share of the mean and of each linear model in what leaves predict.

    - Returns the weights in `mixed` of the kernel: E^-4 of the exponentially weighted error E.
    """
    if not kernel.linear:
        return np.ones((len(leaves), 1))
    errors = np.array([leaves[name] for name in _judges(kernel)]).T
    first = 0 if kernel.averaging else 1
    least = errors[:, first:].min(axis=1, keepdims=True)
    least = np.where(least == 0.0, 1e-300, least)
    weights = (least / np.maximum(errors, least)) ** 4
    weights[:, :first] = 0.0
    return np.asarray(weights / weights.sum(axis=1, keepdims=True), dtype=np.float64)


def _judges(kernel: TreeKernel) -> tuple[str, ...]:
    """Return by which errors the experts of leaves have their shares."""
    return SAID_ERRORS if kernel.tracking else ERRORS
