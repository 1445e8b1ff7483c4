"""A classifier in ONNX: ratings of classes become probabilities, and a class is chosen."""

from typing import Any, Protocol

import numpy as np

from sapwood.classify import Classifier
from sapwood.classify._calibration import LEAST_RATINGS
from sapwood.classify.decisions import cost_matrix
from sapwood.export.flat import ExportError

__all__ = ["add_classes", "rated_models"]


class Graph(Protocol):
    """What nodes are added to; see `sapwood.export.onnx`."""

    types: Any

    def add(self, operator: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """Add a node, and return the name of its result."""

    def constant(self, value: Any, dtype: Any = np.float64) -> str:
        """Add a constant, and return its name."""


def rated_models(classifier: Classifier) -> list[Any]:
    """Return the regressors that rate classes: of two the second one alone, of more each."""
    known = len(classifier.classes)
    if not known:
        raise ExportError("the classifier has learned no class yet; let it learn some rows first")
    if classifier._held.bayes is not None:
        raise ExportError("its leaves predict by naive Bayes, which is not exported")
    if known < 3:
        return [classifier.model]
    model: Any = classifier.model
    try:
        return [model.of_target(code) for code in range(known)]
    except ValueError as error:
        raise ExportError(f"a class has too few rows to be exported: {error}") from error


def add_classes(graph: Graph, classifier: Classifier, rated: list[str]) -> tuple[str, str]:
    """Add what a classifier makes of ratings; see `_calibration.pyx`.

    - `rated`: what the models of `rated_models` predict, (rows, 1) each.
    - Returns the place of the predicted class, (rows,).
    - Returns (rows, classes).
    """
    known, table = len(classifier.classes), classifier._held.calibrator.table
    one = graph.constant(1.0)
    if known == 1:
        ones = graph.add("Add", graph.add("Mul", rated[0], graph.constant(0.0)), one)
        return graph.add("ArgMax", ones, axis=1, keepdims=0), ones
    ratings = rated[0] if known == 2 else graph.add("Concat", *rated, axis=1)
    ratings = graph.add("Clip", ratings, graph.constant(0.0), one)
    if known == 2:
        ratings = graph.add("Concat", graph.add("Sub", one, ratings), ratings, axis=1)
    held = _held(graph, ratings, known)
    exponents, _, losses = table[1:].reshape(3, len(LEAST_RATINGS))
    shares = np.exp(losses.min() - losses)
    mixture = None
    for least, exponent, share in zip(LEAST_RATINGS, exponents, shares / shares.sum(), strict=True):
        logs = graph.add("Log", graph.add("Max", held, graph.constant(least / known)))
        powers = graph.add("Softmax", graph.add("Mul", logs, graph.constant(exponent)), axis=1)
        own = graph.add("Mul", powers, graph.constant(share))
        mixture = own if mixture is None else graph.add("Add", mixture, own)
    assert mixture is not None
    costs = classifier.parameters["cost"]
    if costs is None:
        return graph.add("ArgMax", ratings, axis=1, keepdims=0), mixture
    matrix = graph.constant(cost_matrix(costs, tuple(classifier.classes)))
    expected = graph.add("MatMul", mixture, matrix)
    return graph.add("ArgMin", expected, axis=1, keepdims=0), mixture


def _held(graph: Graph, ratings: str, known: int) -> str:
    """Add ratings of which the highest is at least that of chance."""
    chance, zero = graph.constant(1.0 / known), graph.constant(0.0)
    highest = graph.add("ReduceMax", ratings, graph.constant([1], np.int64), keepdims=1)
    is_none = graph.add("Equal", highest, zero)
    divisor = graph.add("Where", is_none, graph.constant(1.0), highest)
    larger = graph.add("Mul", graph.add("Div", ratings, divisor), chance)
    larger = graph.add("Where", is_none, chance, larger)
    return graph.add("Where", graph.add("Less", highest, chance), larger, ratings)
