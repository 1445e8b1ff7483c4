"""How good the classes and probabilities of the service are: accuracy, log-loss, baselines."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.evaluate.class_scores import LEAST_PROBABILITY
from sapwood.serve.model_host import ModelHost, Predicted, plain
from sapwood.serve.scoring import Scoreboard
from sapwood.serve.target_scores import DECAY, RunningScores

__all__ = ["ClassScoreboard", "ClassTargetScores", "scoreboard_of"]

FloatArray = NDArray[np.float64]

NAME = "y"
BASELINES = ("majority", "last")
MEANS = ("accuracy", "log_loss", *BASELINES)
NONE = -1
"""The place of the predicted class where none is known yet."""
TEXT = "classes"


def scoreboard_of(host: ModelHost, monitor: bool) -> Scoreboard:
    """Return what scores the predictions of a model."""
    if host.task == "classes":
        return ClassScoreboard(monitor)
    return Scoreboard(host.targets, host.levels, monitor)


class ClassTargetScores(RunningScores):
    """The running scores of the issued predictions of classes.

    Accuracy and log-loss are exponentially weighted. In the log-loss no probability is less than
    1e-6; a row that was predicted before any class was known counts as wrong there and has no
    log-loss.

    - `monitor`: whether rows and errors are watched for drift.
    """

    def __init__(self, monitor: bool) -> None:
        super().__init__(NAME, monitor)
        self._means = dict.fromkeys(MEANS, float("nan"))
        self._weights = dict.fromkeys(MEANS, 0.0)
        self._counts: list[int] = []
        self._majority = self._last = NONE

    @property
    def baseline_predictions(self) -> list[float]:
        """The places of the classes that the baselines predict for the next row."""
        return [float(self._majority), float(self._last)]

    def score(self, predicted: FloatArray, own: FloatArray, y: FloatArray, issued: Any) -> None:
        """Score predictions.

        - `predicted`, `y`, shape (rows,): the places of the predicted and of the actual classes.
        - `own`, shape (rows,): the probabilities that were issued for the actual classes; NaN if
          none was.
        - `issued`, shape (rows, 2): what the baselines predicted when the predictions were issued.
        """
        for row, (guess, share, actual) in enumerate(zip(predicted, own, y, strict=True)):
            baselines = self.baseline_predictions if issued is None else issued[row]
            self._add("accuracy", float(guess == actual))
            if np.isfinite(share):
                self._add("log_loss", -float(np.log(max(share, LEAST_PROBABILITY))))
            for name, place in zip(BASELINES, baselines, strict=True):
                self._add(name, float(place == actual))
            self._count(int(actual))

    def _add(self, name: str, value: float) -> None:
        weight = self._weights[name] = DECAY * self._weights[name] + 1.0
        before = self._means[name] if weight > 1.0 else 0.0
        self._means[name] = before + (value - before) / weight

    def _count(self, code: int) -> None:
        self._counts += [0] * (code + 1 - len(self._counts))
        self._counts[code] += 1
        if self._majority == NONE or self._counts[code] > self._counts[self._majority]:
            self._majority = code
        self._last = code

    @property
    def now(self) -> list[float | None]:
        """The current accuracy of the model and of the baselines, and the log-loss."""
        return [self._means[name] for name in ("accuracy", *BASELINES, "log_loss")]

    def summary(self) -> dict[str, Any]:
        """Return the exponentially weighted scores in terms of JSON."""
        found = plain(self._means)
        return {
            "errors": {name: found[name] for name in ("accuracy", "log_loss")},
            "baselines": {name: {"accuracy": found[name]} for name in BASELINES},
            "coverage": {},
        }

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return all of it for a checkpoint."""
        text = {
            "means": plain(self._means),
            "weights": self._weights,
            "counts": self._counts,
            "majority": self._majority,
            "last": self._last,
        }
        return {TEXT: np.frombuffer(json.dumps(text).encode(), np.uint8), **super().to_arrays()}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Continue from what `to_arrays` returned."""
        super().restore(arrays)
        text = json.loads(arrays[TEXT].tobytes())
        means = text["means"]
        self._means = {n: float("nan") if means[n] is None else means[n] for n in MEANS}
        self._weights = {name: text["weights"][name] for name in MEANS}
        self._counts = text["counts"]
        self._majority, self._last = text["majority"], text["last"]


class ClassScoreboard(Scoreboard):
    """The running scores of issued predictions of classes.

    A row of `points` has the places of the predicted and of the actual class, and the
    probabilities that were issued for the actual and for the predicted class.

    - `monitor`: whether rows and errors are watched for drift.
    """

    def __init__(self, monitor: bool) -> None:
        super().__init__((), (), monitor)
        self._scores = ClassTargetScores(monitor)
        self.each = [self._scores]

    def add(
        self,
        rows: Sequence[dict[Any, Any]],
        found: Predicted,
        y: FloatArray,
        moment: float,
        baselines: Sequence[Any] | None = None,
    ) -> list[dict[str, Any]]:
        """Score predictions; return drift events. See `Scoreboard.add`."""
        actual, values = y[:, 0], found.values
        known = values.shape[1]
        padded = np.column_stack([values, np.zeros(len(values))])  # for classes new since then
        is_known = values.max(axis=1, initial=0.0) > 0.0
        predicted = np.where(is_known, padded.argmax(axis=1), NONE).astype(np.float64)
        own = padded[np.arange(len(actual)), np.minimum(actual, known).astype(np.int64)]
        own = np.where(is_known, own, np.nan)
        issued = None if baselines is None else np.array(baselines, dtype=np.float64)[:, 0]
        self._scores.score(predicted, own, actual, issued)
        most = np.where(is_known, padded.max(axis=1), np.nan)
        shares = np.stack([own, most], axis=-1)[:, None, None, :]
        self._keep(predicted[:, None], shares, y, moment)
        # The error that is watched is the probability of all other classes.
        wrong = np.where(is_known, 1.0 - own, np.nan)[:, None]
        return self._watch(rows, wrong, np.zeros_like(y), moment)
