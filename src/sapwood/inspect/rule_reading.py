"""Reading rules off a tree, of numbers or of classes."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sapwood.export.flat import CODES, codes_in, leaf_models
from sapwood.inspect import snapshot
from sapwood.inspect.rules import ClassRule, Condition, Rule, RuleSet
from sapwood.inspect.view import TreePicture
from sapwood.rows.column import CATEGORY as CATEGORY_KIND
from sapwood.rows.features import OTHERS, Features
from sapwood.tree.layout import CATEGORY, LEAF
from sapwood.validation import Label

__all__ = ["class_rules_of", "conditions_of", "largest_leaves", "rules_of"]


def rules_of(tree: Any) -> RuleSet:
    """Return the rules of a tree of one target, as it is at this moment."""
    return _sorted(tree._kernel.read_locked(_read, tree))


def class_rules_of(tree: Any, classes: Sequence[Label]) -> RuleSet:
    """Return the rules of a tree of classes.

    - `tree`: its target is 1 in the rows of the second class; of more than two classes it has one
      for each.
    """
    return _sorted(tree._kernel.read_locked(_read_classes, tree, classes))


def _sorted(rules: list[Any]) -> RuleSet:
    return RuleSet(tuple(sorted(rules, key=lambda rule: -rule.weight)))


class _Leaf(NamedTuple):
    """A leaf, its record in the table of the kernel, and what all rules have."""

    node: int
    record: int
    common: dict[str, Any]


def _leaves(tree: Any, picture: TreePicture) -> list[_Leaf]:
    """Return the leaves of a tree; none if it has learned nothing."""
    kernel = tree._kernel
    if kernel.rows == 0:
        return []
    columns, total = picture.columns, picture.reached[0] or 1.0
    born = kernel.leaf_table["born"]
    found = []
    for node, path in _paths(picture):
        record = columns["child"][node]
        common = {
            "conditions": conditions_of(picture, tree._features, path),
            "node": node,
            "weight": picture.reached[node],
            "share": picture.reached[node] / total,
            "age": kernel.weight - float(born[record]),
        }
        found.append(_Leaf(node, record, common))
    return found


def _read(tree: Any) -> list[Rule]:
    kernel = tree._kernel
    picture = snapshot.picture(kernel, tree._features)
    leaves = _leaves(tree, picture)
    places = np.array([leaf.record for leaf in leaves], np.intp)
    records = kernel.leaf_table.take(places)
    with np.errstate(invalid="ignore", divide="ignore"):
        errors = np.sqrt(records["residual_m2"] / records["weight"]).tolist()
    models = leaf_models(kernel, places) if kernel.linear and leaves else None
    rules = []
    for place, leaf in enumerate(leaves):
        mean, deviation = (picture.columns[name][leaf.node] for name in ("mean", "deviation"))
        error = errors[place] if kernel.linear and errors[place] >= 0 else deviation
        unknown = records["weight"][place] == 0 or (error == 0 < deviation)  # of one row
        if unknown and leaf.node:  # since it was made
            error = picture.columns["deviation"][picture.columns["parent"][leaf.node]]
        linear = _linear(models, tree._features, place, mean)
        for condition in leaf.common["conditions"]:
            if condition.labels is None and condition.feature in linear["centres"]:
                linear["centres"][condition.feature] = _inside(
                    condition, linear["centres"][condition.feature]
                )
        rules.append(Rule(**leaf.common, mean=mean, deviation=deviation, error=error, **linear))
    return rules


def _read_classes(tree: Any, classes: Sequence[Label]) -> list[ClassRule]:
    picture = snapshot.picture(tree._kernel, tree._features)
    rules = []
    for leaf in _leaves(tree, picture):
        if picture.of_targets is None:
            second = min(max(picture.columns["mean"][leaf.node], 0.0), 1.0)
            shares = np.array([1.0 - second, second][: len(classes)])
        else:
            shares = np.clip(picture.of_targets["mean"][leaf.node][: len(classes)], 0.0, 1.0)
        whole = float(shares.sum())
        shares = shares / whole if whole > 0.0 else np.full(len(shares), 1.0 / len(shares))
        named = sorted(zip(classes, shares.tolist(), strict=True), key=lambda item: -item[1])
        rules.append(ClassRule(**leaf.common, probabilities=dict(named)))
    return rules


Path = tuple[tuple[int, bool], ...]  # of each split above a node, and whether the path goes left


def _paths(picture: TreePicture) -> list[tuple[int, Path]]:
    """Return each leaf and the splits on the way to it."""
    kind, child = picture.columns["kind"], picture.columns["child"]
    waiting: list[tuple[int, Path]] = [(0, ())]
    found = []
    while waiting:
        node, path = waiting.pop()
        if kind[node] == LEAF:
            found.append((node, path))
        else:
            waiting.append((child[node] + 1, (*path, (node, False))))
            waiting.append((child[node], (*path, (node, True))))
    return found


def largest_leaves(picture: TreePicture, most: int) -> list[tuple[int, Path]]:
    """Return the leaves of most rows and the splits on the way to each."""
    return sorted(_paths(picture), key=lambda leaf: -picture.reached[leaf[0]])[:most]


def conditions_of(picture: TreePicture, features: Features, path: Path) -> tuple[Condition, ...]:
    """Return the splits of a path as one condition for each feature, in order of their depth.

    A feature that was split by categories, and by their encoding when there were many, has two.

    - `path`: the splits, and whether the path goes left at each.
    """
    columns = picture.columns
    together: dict[tuple[int, bool], list[tuple[int, bool]]] = {}
    for node, left in path:
        key = columns["feature"][node], columns["kind"][node] == CATEGORY
        together.setdefault(key, []).append((node, left))
    return tuple(
        _merged(picture, features, splits, feature in picture.levels and not by_code)
        for (feature, by_code), splits in together.items()
    )


def _merged(
    picture: TreePicture, features: Features, splits: Sequence[tuple[int, bool]], encoded: bool
) -> Condition:
    """Return the condition that all splits on a feature make together."""
    columns = picture.columns
    missing = all(bool(columns["missing_left"][node]) == left for node, left in splits)
    feature = columns["feature"][splits[0][0]]
    name = features.names[feature]
    if columns["kind"][splits[0][0]] == CATEGORY:
        codes = set(range(CODES))
        for node, left in splits:
            inside = set(codes_in(columns["subset"][node]))
            codes &= inside if left else set(range(CODES)) - inside
        labels = enumerate(features.categories[feature])
        found = tuple(label for code, label in labels if min(code, OTHERS) in codes)
        return Condition(name, labels=found, missing=missing)
    below = [float(columns["threshold"][node]) for node, left in splits if left]
    above = [float(columns["threshold"][node]) for node, left in splits if not left]
    low, high = max(above, default=-math.inf), min(below, default=math.inf)
    return Condition(name, low, high, missing=missing, encoded=encoded)


def _inside(condition: Condition, centre: float) -> float:
    """Return a centre that meets a condition: the middle of two limits, or the nearest value."""
    if math.isinf(condition.low) or math.isinf(condition.high):
        return min(max(centre, condition.low), condition.high)
    return 0.5 * condition.low + 0.5 * condition.high


def _linear(models: Any, features: Features, place: int, mean: float) -> dict[str, Any]:
    """Return the experts of a leaf as one linear model, in units of the columns."""
    if models is None:
        plain = {"intercept": mean, "slopes": {}, "centres": {}, "encoded": frozenset()}
        return {**plain, "low": -math.inf, "high": math.inf}
    shares: NDArray[np.float64] = models.shares[place]
    width = len(features.names)
    effects = (shares @ models.coefficients[place])[:width]
    slopes, centres = models.scales[place][:width] * effects, models.centres[place][:width]
    intercept = models.base[place] + shares @ models.intercepts[place] - float(slopes @ centres)
    order = [each for each in np.argsort(-np.abs(effects), kind="stable") if slopes[each] != 0.0]
    names, kinds = features.names, features.kinds
    return {
        "intercept": float(intercept),
        "slopes": {names[each]: float(slopes[each]) for each in order},
        "centres": {names[each]: float(centres[each]) for each in order},
        "encoded": frozenset(names[each] for each in order if kinds[each] == CATEGORY_KIND),
        "low": float(models.origins[place] + models.lowest[place]),
        "high": float(models.origins[place] + models.highest[place]),
    }
