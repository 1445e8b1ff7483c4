"""A model of several targets in an evaluation."""

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from sapwood.evaluate.learner import Learner
from sapwood.lags import LaggedModel
from sapwood.model import readable_part
from sapwood.streams.stream import Column, FloatArray
from sapwood.validation import Label

__all__ = ["TargetsLearner", "check_model", "without_lags"]


def without_lags(model: Any, targets: tuple[Label, ...]) -> Any:
    """Return a model itself, or that behind lags of the same targets."""
    if not isinstance(model, LaggedModel):
        return model
    if not targets:
        return model.model
    if model.several_targets and model.lags.target != targets:
        names = ", ".join(map(str, model.lags.target))
        raise ValueError(f"the lags of the model are of {names}: name the same in this order")
    return model.model if model.several_targets else model


def check_model(model: Any, targets: tuple[Label, ...]) -> None:
    """Raise unless a model can learn some targets.

    Raises
    ------
    ValueError
        If it learns one, or has learned others.
    """
    kind = type(model).__name__
    if not getattr(model, "several_targets", False):
        raise ValueError(
            f"this {kind} learns one target, and there are {len(targets)}: use a model of "
            "Sapwood, or name one target"
        )
    known = tuple(model.targets)
    if not known and readable_part(model).summary.rows > 0:
        raise ValueError(f"this {kind} has learned one target, and there are {len(targets)}")
    if known and set(known) != set(targets):
        names = ", ".join(map(str, known))
        raise ValueError(f"the targets of this {kind} are {names}: name the same")


class TargetsLearner(Learner):
    """A model of several targets; predictions and y have a column for each.

    - `model`: or another with `several_targets`.
    - `targets`: the names of the columns of y.
    """

    def __init__(self, model: Any, targets: tuple[Label, ...]) -> None:
        check_model(model, targets)
        super().__init__(model)
        self._targets = targets

    def predict_learn(self, columns: Mapping[str, Column], y: FloatArray) -> FloatArray:
        """Return the predictions of each row, made before it was learned."""
        start = time.perf_counter()
        try:
            named = {name: y[:, place] for place, name in enumerate(self._targets)}
            if self.levels:
                return self._ordered(*self.model.predict_learn_intervals(dict(columns), named))
            return self._matrix(self.model.predict_learn_many(dict(columns), named))
        finally:
            self.seconds += time.perf_counter() - start

    def predict(self, columns: Mapping[str, Column], y: FloatArray) -> FloatArray:
        """Return the predictions of each row, of which none is learned; y is not looked at."""
        start = time.perf_counter()
        try:
            if self.levels:
                return self._ordered(*self.model.predict_intervals_many(dict(columns)))
            found = self.model.predict_many(dict(columns))
            return self._matrix(found) if isinstance(found, Mapping) else np.zeros(y.shape)
        finally:
            self.seconds += time.perf_counter() - start

    def _predict(self, x: dict[str, Any], id: int | None = None) -> Any:
        own = {} if id is None else {"id": id}
        if self.levels:
            found, bounds = self.model.predict_intervals_one(x, **own)
            if not isinstance(bounds, Mapping):  # before the first row
                bounds = dict.fromkeys(self._targets, bounds)
            self.bounds = np.array([bounds[name] for name in self._targets])
        else:
            found = self.model.predict_one(x, **own)
        if isinstance(found, Mapping):
            return [float(found[name]) for name in self._targets]
        return [0.0] * len(self._targets)

    def _learn(self, x: dict[str, Any], y: Any, id: int | None = None) -> None:
        own = {} if id is None else {"id": id}
        self.model.learn_one(x, dict(zip(self._targets, y, strict=True)), **own)

    def _ordered(self, predictions: FloatArray, bounds: FloatArray) -> FloatArray:
        """Return predictions in the order of the targets here, and keep their bounds."""
        if predictions.ndim == 1:  # before the first row
            count = len(self._targets)
            self.bounds = np.repeat(bounds[:, np.newaxis], count, axis=1)
            return np.repeat(predictions[:, np.newaxis], count, axis=1)
        order = [self.model.targets.index(name) for name in self._targets]
        self.bounds = bounds[:, order]
        return predictions[:, order]

    def _matrix(self, predictions: Mapping[Label, FloatArray]) -> FloatArray:
        return np.column_stack([predictions[name] for name in self._targets])
