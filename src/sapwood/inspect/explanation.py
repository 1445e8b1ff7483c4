"""Explanations of predictions, as numbers and as text."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from sapwood.formatting import MOST_LETTERS, aligned, number, plain, table
from sapwood.inspect.view import Limits, TreePicture, condition

__all__ = ["Contribution", "Expert", "Explanation", "Step", "path_to"]

MOST_TERMS = 10  # of a linear model that an explanation shows


class Step(NamedTuple):
    """A node on the way to a leaf: the condition that led there, and the rows seen there."""

    node: int
    condition: str
    feature: str | None
    value: Any
    missing: bool
    mean: float
    weight: float


class Expert(NamedTuple):
    """A predictor of a leaf, and its share in what the leaf predicts."""

    name: str
    prediction: float
    share: float


class Contribution(NamedTuple):
    """What a feature adds to the linear model: its standardised value times its coefficient."""

    feature: str
    value: float
    coefficient: float

    @property
    def amount(self) -> float:
        """The product."""
        return self.value * self.coefficient


@dataclass(frozen=True)
class Explanation:
    """The explanation of a prediction; `print` it to read it.

    Examples
    --------
    >>> from sapwood.inspect.view import sample
    >>> path = path_to(sample(), 1, {"temp": 3.5})
    >>> print(Explanation(path, [Expert("mean", 3.25, 1.0)], 0.0, [], 3.25, None, 0.5, 3.75))
    path         value    mean  weight
    root                5.0000     100
    temp < 12.5    3.5  3.2500     120
    <BLANKLINE>
    leaf model  predicts   share
    mean          3.2500  100.0%
    <BLANKLINE>
    leaf               3.2500
    recent errors add  0.5000
    prediction         3.7500
    """

    path: list[Step]  # from the root, whose condition is "root", to the leaf
    experts: list[Expert]
    intercept: float  # of the linear model
    contributions: list[Contribution]  # to the linear model; none if it had no share
    leaf_prediction: float  # of the experts together
    bounds: tuple[float, float] | None  # the range that this is held to
    tracking: float  # what the error-correction layer adds, from recent errors of the whole tree
    prediction: float
    last_layer: list[Expert] = field(default_factory=list)  # what is blended with that of the leaf

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as dicts, lists and plain values."""
        terms = [{**term._asdict(), "amount": term.amount} for term in self.contributions]
        return vars(self) | {
            "path": [step._asdict() for step in self.path],
            "experts": [expert._asdict() for expert in self.experts],
            "contributions": terms,
            "last_layer": [each._asdict() for each in self.last_layer],
            "bounds": None if self.bounds is None else list(self.bounds),
        }

    def __str__(self) -> str:
        parts = [self._path_text(), self._models_text("leaf model", self.experts, "share")]
        if self.contributions:
            parts.append(self._terms_text())
        if self.last_layer:
            parts.append(self._models_text("error correction", self.last_layer, "weight"))
        return "\n\n".join([*parts, self._sum_text()])

    def _path_text(self) -> str:
        means = aligned([step.mean for step in self.path])
        rows = [["path", "value", "mean", "weight"]]
        for step, mean in zip(self.path, means, strict=True):
            is_number = isinstance(step.value, float)
            value = number(step.value, 6) if is_number else plain(step.value, MOST_LETTERS)
            value = "missing" if step.missing else "" if step.feature is None else value
            rows.append([step.condition, value, mean, number(step.weight, 4)])
        return table(rows)

    @staticmethod
    def _models_text(title: str, models: list[Expert], share: str) -> str:
        predictions = aligned([model.prediction for model in models])
        rows = [[title, "predicts", share]]
        for model, prediction in zip(models, predictions, strict=True):
            rows.append([model.name, prediction, f"{model.share:.1%}"])
        return table(rows)

    def _terms_text(self) -> str:
        terms = sorted(self.contributions, key=lambda term: -abs(term.amount))
        rest = sum(term.amount for term in terms[MOST_TERMS:])
        terms = terms[:MOST_TERMS]
        amounts = aligned([self.intercept, *(term.amount for term in terms), rest])
        rows = [["linear model", "standardised", "coefficient", "adds"]]
        rows.append(["intercept", "", "", amounts[0]])
        for term, amount in zip(terms, amounts[1:-1], strict=True):
            name = plain(term.feature, MOST_LETTERS)
            rows.append([name, number(term.value, 4), number(term.coefficient, 4), amount])
        if more := len(self.contributions) - len(terms):
            rows.append([f"+{more} more", "", "", amounts[-1]])
        return table(rows)

    def _sum_text(self) -> str:
        low, high = self.bounds or (-math.inf, math.inf)
        held = min(max(self.leaf_prediction, low), high)
        sums = aligned([self.leaf_prediction, held, self.tracking, self.prediction])
        rows = [["leaf", sums[0]]]
        if held != self.leaf_prediction:
            rows.append([f"held to {number(low, 4)} … {number(high, 4)}", sums[1]])
        if self.tracking:
            rows.append(["recent errors add", sums[2]])
        return table([*rows, ["prediction", sums[3]]])


def path_to(picture: TreePicture, leaf: int, x: Mapping[str, Any]) -> list[Step]:
    """Return the steps from the root to a leaf for a row x.

    Examples
    --------
    >>> from sapwood.inspect.view import sample
    >>> for step in path_to(sample(), 3, {"temp": 20.0}):
    ...     print(step.condition, step.value, step.missing, step.mean)
    root None False 5.0
    temp >= 12.5 or missing 20.0 False 8.0
    city in {Oslo, Rome}, unseen or missing None True 8.0
    """
    columns = picture.columns
    steps = []
    node = leaf
    while node >= 0:
        parent = columns["parent"][node]
        name = None if parent < 0 else picture.names[columns["feature"][parent]]
        value = None if name is None else x.get(name)
        value = value.item() if isinstance(value, np.generic) else value
        shown = condition(picture, node, Limits(6))
        missing = name is not None and is_missing(value)
        steps.append(
            Step(node, shown, name, value, missing, columns["mean"][node], columns["weight"][node])
        )
        node = parent
    return steps[::-1]


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, or one of pandas' own, which are no numbers."""
    try:
        return value is None or math.isnan(value)
    except (TypeError, OverflowError):  # no number, or a whole one beyond the doubles
        return type(value).__name__ in ("NAType", "NaTType")
