"""A tree as rules: one for each leaf, with one condition for each feature on its path."""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sapwood import validation
from sapwood.export.flat import CODES, FlatTree, codes_in, flatten
from sapwood.formatting import MOST_LETTERS, number, plain
from sapwood.inspect import snapshot
from sapwood.tree.layout import CATEGORY
from sapwood.validation import Label

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Condition", "Rule", "RuleSet", "rules_of"]

MOST_LABELS = 4  # that a line of text lists
MOST_TERMS = 3  # of a linear model that a line of text lists


@dataclass(frozen=True)
class Condition:
    """What a rule requires of one feature.

    Parameters
    ----------
    feature : str or int
        The name of the feature.
    low, high : float
        The feature is at least `low` and below `high`; infinite where there is no limit.
    labels : tuple, optional
        The categories that it may have. None for a number.
    missing : bool
        Whether the rule also applies where the feature is missing, or is a category that the
        tree has not seen.
    encoded : bool
        Whether the limits apply to the target encoding of a high-cardinality category.

    Examples
    --------
    >>> print(Condition("temp", 12.5, 20.0))
    12.5 <= temp < 20
    >>> print(Condition("city", labels=("Oslo", "Rome"), missing=True))
    city in {Oslo, Rome} (or missing)
    """

    feature: Label
    low: float = -math.inf
    high: float = math.inf
    labels: tuple[Label, ...] | None = None
    missing: bool = False
    encoded: bool = False

    def __str__(self) -> str:
        return self.to_text()

    def to_text(self, digits: int = 6) -> str:
        """Return the condition as text, with a number of significant digits."""
        name = plain(self.feature, MOST_LETTERS)
        if self.encoded:
            name = f"encoding({name})"
        if self.labels == ():
            return f"{name} is unseen or missing"
        if self.labels is not None:
            text = f"{name} in {{{', '.join(_shortened(self.labels))}}}"
        elif math.isinf(self.high):
            text = f"{name} >= {number(self.low, digits)}"
        else:
            low = "" if math.isinf(self.low) else f"{number(self.low, digits)} <= "
            text = f"{low}{name} < {number(self.high, digits)}"
        return f"{text} (or missing)" if self.missing else text

    def to_dict(self) -> dict[str, Any]:
        """Return the condition as values of JSON; a limit that is infinite is None."""
        return {
            "feature": self.feature,
            "low": None if math.isinf(self.low) else self.low,
            "high": None if math.isinf(self.high) else self.high,
            "labels": None if self.labels is None else list(self.labels),
            "missing": self.missing,
            "encoded": self.encoded,
        }


def _shortened(labels: Sequence[Label]) -> list[str]:
    shown = labels if len(labels) <= MOST_LABELS else labels[: MOST_LABELS - 1]
    texts = [plain(label, MOST_LETTERS) for label in shown]
    return texts + ([f"+{len(labels) - len(shown)} more"] if len(shown) < len(labels) else [])


@dataclass(frozen=True)
class Rule:
    """One leaf of a tree: the rows that it applies to, and what it predicts for them.

    Parameters
    ----------
    conditions : tuple of Condition
        All of them hold for the rows of the leaf; one for each feature at most.
    node : int
        The number of the leaf in `to_frame`, which `prune` takes.
    weight : float
        Of the rows that the leaf has learned, and of those by which its parent has split.
    share : float
        Of the sum of the weights of all rules. Rows that nodes further up learned before they
        split count for no rule.
    mean, deviation : float
        Of the target in the leaf.
    error : float
        The root mean squared error of the leaf's best expert, over the rows since it was made.
    age : float
        The weight that the tree has learned since the leaf was made.
    intercept : float
        What the linear model of the leaf predicts where all features are 0; the mean where the
        leaf has none.
    slopes : dict
        What one unit of each feature adds to it, of features that add anything. Categories count
        by their target encoding. The tree holds the sum within the range of y that it has seen, a
        rule does not.
    """

    conditions: tuple[Condition, ...]
    node: int
    weight: float
    share: float
    mean: float
    deviation: float
    error: float
    age: float
    intercept: float
    slopes: dict[Label, float]

    def __str__(self) -> str:
        return self.to_text()

    def to_text(self, digits: int = 4) -> str:
        """Return the rule as text, with a number of significant digits."""
        conditions = " and ".join(each.to_text(digits + 2) for each in self.conditions)
        found = f"mean {number(self.mean, digits)} ± {number(self.error, digits)}"
        lines = [f"if {conditions or 'any row'}", f"  then {found}  ({self.share:.1%} of rows)"]
        if self.slopes:
            largest = sorted(self.slopes.items(), key=lambda item: -abs(item[1]))
            terms = [
                f" {'-' if slope < 0 else '+'} {number(abs(slope), digits)} {plain(name)}"
                for name, slope in largest[:MOST_TERMS]
            ]
            more = len(largest) - len(terms)
            terms += [f" + {more} more terms"] if more else []
            lines.append(f"  linear: {number(self.intercept, digits)}{''.join(terms)}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the rule as values of JSON."""
        return {
            **{name: getattr(self, name) for name in _NUMBERS},
            "conditions": [each.to_dict() for each in self.conditions],
            "slopes": {str(name): slope for name, slope in self.slopes.items()},
        }


_NUMBERS = ("node", "weight", "share", "mean", "deviation", "error", "age", "intercept")


@dataclass(frozen=True)
class RuleSet(Sequence[Rule]):
    """The rules of a tree, those of most rows first; `print` it to read them.

    Examples
    --------
    >>> from sapwood import HoeffdingTreeRegressor
    >>> tree = HoeffdingTreeRegressor(leaf="mean", track=None)
    >>> tree.learn_many({"x": [0.0, 1.0] * 500, "z": [3.0] * 1000}, [2.0, 5.0] * 500)
    >>> rules = tree.to_rules()
    >>> print(rules)
    if x < 1 (or missing)
      then mean 2 ± 0  (50.0% of rows)
    if x >= 1
      then mean 5 ± 0  (50.0% of rows)
    >>> rules[1].conditions
    (Condition(feature='x', low=1.0, high=inf, labels=None, missing=False, encoded=False),)
    """

    rules: tuple[Rule, ...]

    def __getitem__(self, place: Any) -> Any:
        return self.rules[place]

    def __len__(self) -> int:
        return len(self.rules)

    def __str__(self) -> str:
        return self.to_text()

    def to_text(self, most: int | None = None, digits: int = 4) -> str:
        """Return the first rules, or all, as text.

        Parameters
        ----------
        most : int, optional
            How many.
        digits : int
            Significant digits of a number.
        """
        if most is not None:
            validation.whole(most, "most", 1, 2**31)
        validation.whole(digits, "digits", 1, 15)
        texts = [rule.to_text(digits) for rule in self.rules[:most]]
        if more := len(self.rules) - len(texts):
            rest = sum(rule.share for rule in self.rules[len(texts) :])
            texts.append(f"… {more} more rules  ({rest:.1%} of rows)")
        return "\n".join(texts)

    def to_records(self) -> list[dict[str, Any]]:
        """Return the rules as values of JSON."""
        return [rule.to_dict() for rule in self.rules]

    def to_json(self) -> str:
        """Return the rules as a text of JSON."""
        return json.dumps(self.to_records(), allow_nan=False)

    def to_frame(self) -> "pd.DataFrame":
        """Return a pandas data frame with one row per rule, its conditions as text."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError(
                "to_frame needs pandas, which is not installed: run `pip install pandas`, "
                "or call to_records"
            ) from error
        conditions = [" and ".join(map(str, rule.conditions)) for rule in self.rules]
        columns = {name: [getattr(rule, name) for rule in self.rules] for name in _NUMBERS}
        return pd.DataFrame({"conditions": conditions, **columns})


def rules_of(tree: Any) -> RuleSet:
    """Return the rules of a tree of one target, as it is at this moment.

    Parameters
    ----------
    tree : HoeffdingTreeRegressor
        The tree.
    """
    rules: list[Rule] = tree._kernel.read_locked(_read, tree)
    return RuleSet(tuple(sorted(rules, key=lambda rule: -rule.weight)))


def _read(tree: Any) -> list[Rule]:
    kernel, flat = tree._kernel, flatten(tree)
    picture = snapshot.picture(kernel, tree._features)
    order = np.array([node for node, _ in picture.walk()])
    places = np.flatnonzero(flat.is_leaf)
    records = kernel.leaf_table.take(picture.nodes["child"][order[places]])
    with np.errstate(invalid="ignore", divide="ignore"):
        errors = np.sqrt(records["residual_m2"] / records["weight"])
    paths = dict(_paths(flat))
    encoded = {int(each) for each in np.flatnonzero(kernel.columns.place_table >= 0)}
    total = float(flat.weight[0]) or 1.0
    rules = []
    for leaf, place in enumerate(places.tolist()):
        node = picture.nodes[order[place]]
        intercept, slopes = _linear(flat, leaf, float(node["mean"]))
        weight, deviation = float(flat.weight[place]), float(node["deviation"])
        rules.append(
            Rule(
                conditions=_conditions(flat, paths[place], encoded),
                node=int(order[place]),
                weight=weight,
                share=weight / total,
                mean=float(node["mean"]),
                deviation=deviation,
                error=float(errors[leaf]) if kernel.linear and errors[leaf] >= 0 else deviation,
                age=kernel.weight - float(records["born"][leaf]),
                intercept=intercept,
                slopes=slopes,
            )
        )
    return rules


Path = tuple[tuple[int, bool], ...]  # of each split above a node: its place, and whether it is left


def _paths(flat: FlatTree) -> Iterator[tuple[int, Path]]:
    """Yield each leaf and the splits on the way to it."""
    waiting: list[tuple[int, Path]] = [(0, ())]
    while waiting:
        node, path = waiting.pop()
        if flat.is_leaf[node]:
            yield node, path
        else:
            waiting.append((int(flat.left[node]), (*path, (node, True))))
            waiting.append((int(flat.right[node]), (*path, (node, False))))


def _conditions(flat: FlatTree, path: Path, encoded: set[int]) -> tuple[Condition, ...]:
    """Return the splits of a path as one condition for each feature, in order of their depth."""
    by_feature: dict[int, list[tuple[int, bool]]] = {}
    for node, left in path:
        by_feature.setdefault(int(flat.feature[node]), []).append((node, left))
    return tuple(
        _merged(flat, feature, splits, feature in encoded) for feature, splits in by_feature.items()
    )


def _merged(
    flat: FlatTree, feature: int, splits: Sequence[tuple[int, bool]], encoded: bool
) -> Condition:
    """Return the condition that all splits on a feature make together."""
    missing = all(bool(flat.missing_left[node]) == left for node, left in splits)
    name = flat.names[feature]
    if flat.kind[splits[0][0]] == CATEGORY:
        codes = set(range(CODES))
        for node, left in splits:
            inside = set(codes_in(flat.subset[node]))
            codes &= inside if left else set(range(CODES)) - inside
        labels = flat.labels[feature]
        found = tuple(label for code, label in enumerate(labels) if code in codes)
        return Condition(name, labels=found, missing=missing)
    below = [float(flat.threshold[node]) for node, left in splits if left]
    above = [float(flat.threshold[node]) for node, left in splits if not left]
    low, high = max(above, default=-math.inf), min(below, default=math.inf)
    return Condition(name, low, high, missing=missing, encoded=encoded)


def _linear(flat: FlatTree, leaf: int, mean: float) -> tuple[float, dict[Label, float]]:
    """Return the intercept and the slopes of a leaf's experts together, in units of the columns."""
    models = flat.models
    if models is None:
        return mean, {}
    shares: NDArray[np.float64] = models.shares[leaf]
    slopes = models.scales[leaf] * (shares @ models.coefficients[leaf])
    intercept = models.base[leaf] + shares @ models.intercepts[leaf]
    intercept -= float(slopes @ models.centres[leaf])
    named = zip(flat.names, slopes.tolist(), strict=True)
    return float(intercept), {name: slope for name, slope in named if slope != 0.0}
