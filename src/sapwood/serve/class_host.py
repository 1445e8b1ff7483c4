"""Classifiers as the service calls them: labels in, classes and probabilities out."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

import sapwood
from sapwood.classify.leaves import NAIVE_BAYES
from sapwood.serve.model_host import ModelHost, Predicted, plain
from sapwood.serve.rows import Batch
from sapwood.validation import Label

__all__ = ["ClassHost", "host_from_bytes", "host_of"]

FloatArray = NDArray[np.float64]


def host_of(model: Any) -> ModelHost:
    """Return the host of a model.

    - Raises TypeError if the model cannot be served.
    """
    return ClassHost(model) if getattr(model, "task", None) == "classes" else ModelHost(model)


def host_from_bytes(data: bytes, source: str = "the model") -> ModelHost:
    """Return the host of a saved model."""
    return host_of(sapwood.model.from_bytes(data, source))


class ClassHost(ModelHost):
    """A classifier, and what the service needs of it.

    Classes are only ever appended, so that probabilities which were issued before belong to the
    first of `classes`.
    """

    task: ClassVar[str] = "classes"

    @property
    def classes(self) -> list[Label]:  # type: ignore[override]
        """The labels that the model has learned, in the order of their first rows."""
        found: list[Label] = self.model.classes
        return found

    @property
    def explains(self) -> bool:
        """Whether the model explains its ratings; leaves of naive Bayes do not."""
        return super().explains and self.model.parameters["leaf"] not in NAIVE_BAYES

    @property
    def targets(self) -> list[str]:
        """None: a classifier has one target; its model inside may have several."""
        return []

    def describe(self) -> dict[str, Any]:
        """Return the model in terms of JSON, with its classes."""
        return {**super().describe(), "classes": plain(self.classes)}

    def _means(self, mean: float | None, means: dict[str, float]) -> dict[str, float]:
        """Return the share of each class in a node."""
        classes = [str(label) for label in self.classes]
        if means:  # of one target for each class
            return dict(zip(classes, means.values(), strict=False))
        return dict(zip(classes, (1.0 - mean, mean), strict=False)) if mean is not None else {}

    # -- predicting -------------------------------------------------------------------------------

    def values(self, batch: Batch) -> Any:
        """Return the probabilities of classes; the model does not remember them."""
        rows = self._rows_of(batch.rows)
        return self._predicted(self.model.predict_proba_many(rows, record=False))

    def predict(self, batch: Batch) -> Predicted:
        """Return the probabilities of classes, which the model remembers by ids."""
        rows, ids = self._rows_of(batch.rows), self._known_by(batch.ids, "ids")
        return self._predicted(self.model.predict_proba_many(rows, **ids))

    def _predict_one(self, row: dict[Any, Any], known_by: dict[str, Any]) -> Predicted:
        found = self.model.predict_proba_one(row, **known_by)
        return self._predicted(np.array([list(found.values())], dtype=np.float64))

    def _predict_learn_many(self, rows: Any, y: list[Any], w: list[float] | None) -> Predicted:
        return self._predicted(self.model.predict_proba_learn_many(rows, y, w))

    def _predicted(self, probabilities: FloatArray) -> Predicted:
        return Predicted(probabilities, None, self.classes[: probabilities.shape[1]])

    def issued(self, values: list[list[float]], bounds: list[Any]) -> Predicted:
        """Return predictions that were issued before; classes that were new since then have 0."""
        table = np.zeros((len(values), max(map(len, values))))
        for row, known in zip(table, values, strict=True):
            row[: len(known)] = known
        return self._predicted(table)

    def answer(self, found: Predicted) -> dict[str, Any]:
        """Return the most probable class of each row, and the probabilities of all classes."""
        return {
            "predictions": plain(chosen(found)),
            "classes": plain(list(found.classes or ())),
            "probabilities": plain(found.values),
        }

    def columns(self, found: Predicted, levels: Sequence[float]) -> dict[str, Any]:
        """Return the most probable class, and the probability of each class, as columns."""
        classes, labels = found.classes or (), chosen(found)
        if len({type(label) for label in classes}) > 1:  # a column is of one type
            labels = [None if label is None else str(label) for label in labels]
        shares = {f"probability_{label}": found.values[:, i] for i, label in enumerate(classes)}
        return {"prediction": labels, **{name: each.copy() for name, each in shares.items()}}

    # -- learning ---------------------------------------------------------------------------------

    def actuals(self, y: Sequence[Any]) -> FloatArray:
        """Return the places of labels that were learned in `classes`, as a column."""
        codes = {label: code for code, label in enumerate(self.classes)}
        return np.array([codes[label] for label in y], dtype=np.float64).reshape(-1, 1)


def chosen(found: Predicted) -> list[Label | None]:
    """Return the most probable class of each row; None before any class was known."""
    classes = found.classes or ()
    if not classes:
        return [None] * len(found.values)
    most, best = found.values.max(axis=1).tolist(), found.values.argmax(axis=1).tolist()
    return [
        classes[place] if share > 0.0 else None for place, share in zip(best, most, strict=True)
    ]
