"""What classes are worth: how much their rows count, and what a wrong prediction costs."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood import validation
from sapwood.classify.labels import class_label
from sapwood.validation import Label

__all__ = ["BALANCED", "Costs", "Weighting", "checked_costs", "checked_weighting"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Weighting = str | dict[Label, float]
Costs = dict[Label, float] | dict[Label, dict[Label, float]]

BALANCED = "balanced"
WEIGHTS = "must be None, 'balanced', or a dict of labels and positive weights"
COSTS = (
    "must be None, a dict of labels and the cost of missing each, or a dict of actual labels, each "
    "with a dict of predicted labels and costs"
)


def checked_weighting(given: Any) -> Weighting | None:
    """Return a `class_weight` with plain labels and weights, or raise ValueError.

    Examples
    --------
    >>> checked_weighting({"rare": 10})
    {'rare': 10.0}
    >>> checked_weighting("equal")
    Traceback (most recent call last):
    ...
    ValueError: class_weight = 'equal' must be None, 'balanced', or a dict of labels and positive ...
    """
    if given is None or (isinstance(given, str) and given == BALANCED):
        return given
    if not isinstance(given, Mapping):
        raise ValueError(f"class_weight = {validation.shown(given)} {WEIGHTS}")
    found = {}
    for label, weight in given.items():
        found[_label(label, "class_weight")] = _number(weight, f"class_weight[{label!r}]", True)
    return found


def checked_costs(given: Any) -> Costs | None:
    """Return a `cost` with plain labels and numbers, or raise ValueError.

    Examples
    --------
    >>> checked_costs({"fraud": 20, "fine": 1})
    {'fraud': 20.0, 'fine': 1.0}
    >>> checked_costs({"fraud": {"fine": 20}})
    {'fraud': {'fine': 20.0}}
    """
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise ValueError(f"cost = {validation.shown(given)} {COSTS}")
    nested = {isinstance(each, Mapping) for each in given.values()}
    if len(nested) > 1:
        raise ValueError(f"cost = {validation.shown(given)} {COSTS}, not both")
    found: dict[Any, Any] = {}
    for actual, each in given.items():
        if isinstance(each, Mapping):
            found[_label(actual, "cost")] = {
                _label(label, "cost"): _number(one, f"cost[{actual!r}][{label!r}]", False)
                for label, one in each.items()
            }
        else:
            found[_label(actual, "cost")] = _number(each, f"cost[{actual!r}]", False)
    return found


def _label(value: Any, name: str) -> Label:
    try:
        return class_label(value)
    except ValueError as error:
        raise ValueError(f"{name}: a label {str(error).removeprefix('y ')}") from None


def _number(value: Any, name: str, positive: bool) -> float:
    number = validation.number(value, name)
    if not (np.isfinite(number) and (number > 0 if positive else number >= 0)):
        rule = "a positive and finite number" if positive else "a finite number, at least 0"
        raise ValueError(f"{name} = {validation.shown(value)} must be {rule}")
    return number


def weighted(
    weighting: Weighting,
    classes: tuple[Label, ...],
    codes: IntArray,
    weights: FloatArray,
    counts: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return the weights of rows in terms of their classes, and the weight of each class so far.

    "balanced" is N / (K n): N is the weight of all rows up to this one, n that of its class, and K
    how many classes are known.

    Parameters
    ----------
    weighting : "balanced" or dict
        As `checked_weighting` returned it.
    classes : tuple
        The labels.
    codes, weights : array
        Of the rows.
    counts : array
        The weight of each class before these rows, as it was given.

    Examples
    --------
    >>> codes, ones = np.array([0, 0, 0, 1]), np.ones(4)
    >>> weighted("balanced", ("a", "b"), codes, ones, np.zeros(2))
    (array([0.5, 0.5, 0.5, 2. ]), array([3., 1.]))
    >>> weighted({"b": 10.0}, ("a", "b"), codes, ones, np.zeros(2))[0]
    array([ 1.,  1.,  1., 10.])
    """
    after = counts.copy()
    if not isinstance(weighting, str):
        return weights * np.array([weighting.get(label, 1.0) for label in classes])[codes], after
    totals = np.cumsum(np.concatenate([[counts.sum()], weights]))[1:]
    own = np.empty(len(weights))
    for code in np.unique(codes):
        rows = codes == code
        sums = np.cumsum(np.concatenate([counts[code : code + 1], weights[rows]]))
        own[rows], after[code] = sums[1:], sums[-1]
    return weights * (totals / (len(classes) * own)), after


def cost_matrix(costs: Costs, classes: tuple[Label, ...]) -> FloatArray:
    """Return the cost of each prediction (a column) for each actual class (a row).

    A wrong prediction that is not named costs 1, and a right one nothing.

    Examples
    --------
    >>> cost_matrix({"b": 5.0}, ("a", "b"))
    array([[0., 1.],
           [5., 0.]])
    """
    found: FloatArray = 1.0 - np.eye(len(classes))
    for row, actual in enumerate(classes):
        own: Any = costs.get(actual)
        if isinstance(own, dict):
            for column, label in enumerate(classes):
                found[row, column] = own.get(label, found[row, column])
        elif own is not None:
            found[row] *= own
    return found


def cheapest(probabilities: FloatArray, matrix: FloatArray) -> IntArray:
    """Return the class of the least expected cost for each row; of equal ones, the first.

    Examples
    --------
    >>> cheapest(np.array([[0.8, 0.2], [0.9, 0.1]]), np.array([[0.0, 1.0], [5.0, 0.0]]))
    array([1, 0])
    """
    expected = np.zeros_like(probabilities)
    for actual, costs in enumerate(matrix):  # in this order for any number of rows
        expected += probabilities[:, actual : actual + 1] * costs
    found: IntArray = expected.argmin(axis=1)
    return found
