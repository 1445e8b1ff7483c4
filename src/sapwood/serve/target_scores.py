"""How good the predictions of one target are: errors, baselines, coverage, drift."""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.drift import Monitor
from sapwood.evaluate import Scores
from sapwood.evaluate.baselines import LastValue, RunningMean
from sapwood.serve.model_host import REJECTIONS, plain

__all__ = ["BASELINES", "DECAY", "TargetScores"]

FloatArray = NDArray[np.float64]

DECAY = 0.999
"""The weight of a row relative to the next one: a half-life of 693 rows."""
BASELINES = ("mean", "last")
MONITOR, TEXT = "monitor", "baselines"


class RunningScores(ABC):
    """The scores of the issued predictions of one target, and its drift monitor.

    - `monitor`: whether the target and its errors are watched for drift.
    """

    def __init__(self, name: str, monitor: bool) -> None:
        self.name = name
        self._monitor = Monitor(target=name) if monitor else None

    @property
    @abstractmethod
    def baseline_predictions(self) -> list[float]:
        """What the baselines predict for the next row."""

    @property
    @abstractmethod
    def now(self) -> list[float | None]:
        """The current scores of the model and of the baselines."""

    @abstractmethod
    def summary(self) -> dict[str, Any]:
        """Return the exponentially weighted scores in terms of JSON."""

    def watch(
        self, rows: Any, y: FloatArray, values: FloatArray, times: FloatArray
    ) -> list[dict[str, Any]]:
        """Look for drift; return its events in terms of JSON.

        - `rows`: the features to watch; an array without columns to watch the target alone.
        - `y`, `values`: the actual values, and the predictions as they were issued.
        - `times`: when the labels arrived, in seconds since 1970.
        """
        if self._monitor is None:
            return []
        try:
            alerts = self._monitor.update_many(rows, y, values, times)
        except REJECTIONS:  # rows that the model accepts and the monitor does not
            return []
        found = []
        for alert in alerts:
            event = {**alert.to_dict(), "text": str(alert)}
            event["target"] = None if event["what"] == "feature" else self.name
            del event["words"]
            found.append(event)
        return found

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the monitor for a checkpoint."""
        if self._monitor is None:
            return {}
        return {MONITOR: np.frombuffer(self._monitor.to_bytes(), np.uint8)}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Continue from what `to_arrays` returned."""
        if self._monitor is not None and MONITOR in arrays:
            self._monitor = Monitor.from_bytes(arrays[MONITOR].tobytes(), "the monitor")


class TargetScores(RunningScores):
    """The running scores of the issued predictions of one target.

    - `levels`: the nominal levels of the prediction intervals.
    - `monitor`: whether the target and its errors are watched for drift.
    """

    def __init__(self, name: str, levels: Sequence[float], monitor: bool) -> None:
        super().__init__(name, monitor)
        self.levels = list(levels)
        self.errors = Scores(DECAY, 1)
        self.baselines = {each: Scores(DECAY, 1) for each in BASELINES}
        self._mean, self._last = RunningMean(), LastValue()
        self.coverage = np.full(len(self.levels), np.nan)
        self._weight = np.zeros(len(self.levels))

    @property
    def baseline_predictions(self) -> list[float]:
        """What the baselines predict for the next row."""
        return [self._mean.mean, self._last.last]

    def add(
        self,
        values: FloatArray,
        bounds: FloatArray | None,
        y: FloatArray,
        baselines: FloatArray | None = None,
    ) -> None:
        """Score predictions.

        - `values`, `y`, shape (rows,): the predictions as they were issued, and the actual values;
          NaN where one is missing.
        - `bounds`, shape (rows, levels, 2): the prediction intervals as they were issued.
        - `baselines`, shape (rows, 2): the predictions of the baselines when the predictions were
          issued. Without it, each row was predicted just before its label arrived.
        """
        self.errors.update_many(np.ascontiguousarray(values), y)
        known = np.isfinite(y)
        labels = y[known]
        mean = self._mean.predict_learn_many({}, labels)
        last = self._last.predict_learn_many({}, labels)
        issued = np.column_stack([mean, last]) if baselines is None else baselines[known]
        for place, scores in enumerate(self.baselines.values()):
            scores.update_many(np.ascontiguousarray(issued[:, place]), labels)
        if bounds is not None and self.levels:
            self._cover(bounds, y)

    def _cover(self, bounds: FloatArray, y: FloatArray) -> None:
        """Update the exponentially weighted coverage, row by row."""
        inside = (bounds[..., 0] <= y[:, None]) & (y[:, None] <= bounds[..., 1])
        known = np.isfinite(bounds).all(axis=-1) & np.isfinite(y)[:, None]
        for within, usable in zip(inside, known, strict=True):
            weight = np.where(usable, DECAY * self._weight + 1.0, self._weight)
            before = np.where(np.isnan(self.coverage), 0.0, self.coverage)
            after = before + (within - before) / np.maximum(weight, 1.0)
            self.coverage = np.where(usable, after, self.coverage)
            self._weight = weight

    @property
    def now(self) -> list[float | None]:
        """The current errors of the model and of the baselines, and the coverage."""
        scores = [self.errors, *self.baselines.values()]
        coverage = float(self.coverage[-1]) if self.levels else None
        return [*(float(each.faded.mae) for each in scores), coverage]

    def summary(self) -> dict[str, Any]:
        """Return the exponentially weighted scores in terms of JSON."""
        levels = [f"{level:g}" for level in self.levels]
        return {
            "errors": _errors(self.errors),
            "baselines": {name: _errors(scores) for name, scores in self.baselines.items()},
            "coverage": dict(zip(levels, plain(self.coverage), strict=True)),
        }

    # -- checkpoints ------------------------------------------------------------------------------

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return all of it for a checkpoint."""
        arrays: dict[str, NDArray[Any]] = {"coverage": self.coverage, "coverage_w": self._weight}
        for name, scores in {"model": self.errors, **self.baselines}.items():
            arrays |= {f"{name}.{part}": array for part, array in scores.to_arrays().items()}
        arrays |= super().to_arrays()
        text = {"mean": [self._mean.mean, self._mean.rows], "last": self._last.last}
        arrays[TEXT] = np.frombuffer(json.dumps(text).encode(), np.uint8)
        return arrays

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Continue from what `to_arrays` returned."""
        if arrays["coverage"].shape != self.coverage.shape:
            raise ValueError("the coverage is that of other levels")
        self.coverage, self._weight = arrays["coverage"].copy(), arrays["coverage_w"].copy()
        self.errors = _restored(arrays, "model")
        self.baselines = {name: _restored(arrays, name) for name in BASELINES}
        super().restore(arrays)
        text = json.loads(arrays[TEXT].tobytes())
        self._mean.mean, self._mean.rows = text["mean"]
        self._last.last = text["last"]


def _restored(arrays: Mapping[str, NDArray[Any]], name: str) -> Scores:
    own = {part: arrays[f"{name}.{part}"] for part in ("scores", "recent", "unscored")}
    return Scores(DECAY, 1).restored(own)


def _errors(scores: Scores) -> Any:
    found = scores.faded
    return plain({"mae": found.mae, "rmse": found.rmse, "r2": found.r2})
