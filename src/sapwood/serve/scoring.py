"""How good the predictions of the service are, for each target, and what the page shows of it."""

import json
import math
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.serve.model_host import Predicted
from sapwood.serve.target_scores import RunningScores, TargetScores

__all__ = ["Scoreboard"]

FloatArray = NDArray[np.float64]

POINTS = 500
"""Scored rows that the page shows; fewer of several targets."""
FEWEST_POINTS = 100
CURVE = 400
"""Points of the error curve; when there are as many, every second one is dropped."""
EVENTS = 200
"""Drift events that are kept."""
BLOCK = 64
"""Rows that the drift monitor takes at once."""
TEXT = "scoring"

Unwatched = tuple[dict[Any, Any], list[float], list[float], float]
"""A row, its actual values, its predictions, and when its labels arrived."""


class Scoreboard:
    """The running scores of issued predictions.

    - `targets`: the names of several targets; none if there is one.
    - `levels`: the nominal levels of the prediction intervals.
    - `monitor`: whether rows, targets and errors are watched for drift.
    """

    def __init__(self, targets: Sequence[str], levels: Sequence[float], monitor: bool) -> None:
        self.targets = list(targets)
        own = [TargetScores(name, levels, monitor) for name in self.targets or ["y"]]
        self._targets = own
        self.each: Sequence[RunningScores] = own
        self._monitored = monitor
        self._unwatched: list[Unwatched] = []
        self.drifts: deque[dict[str, Any]] = deque(maxlen=EVENTS)
        self.drift_count = 0
        most = max(FEWEST_POINTS, POINTS // len(self.each))
        self.points: deque[list[float | None]] = deque(maxlen=most)
        self.curve: list[list[float | None]] = []
        self._every, self.rows = 1, 0

    @property
    def baseline_predictions(self) -> list[list[float]]:
        """What the baselines of each target predict for the next row."""
        return [scores.baseline_predictions for scores in self.each]

    def add(
        self,
        rows: Sequence[dict[Any, Any]],
        found: Predicted,
        y: FloatArray,
        moment: float,
        baselines: Sequence[Any] | None = None,
    ) -> list[dict[str, Any]]:
        """Score predictions; return drift events.

        - `found`: the predictions as they were issued.
        - `moment`: when the labels arrived, in seconds since 1970.
        - `baselines`: `baseline_predictions` when each prediction was issued, if that was before.
        """
        values, bounds = found.values, found.bounds
        if values.shape != y.shape:  # of the very first row of several targets
            values, bounds = np.broadcast_to(values, y.shape), None
        issued = None
        if baselines is not None and all(len(each) == len(self.each) for each in baselines):
            issued = np.array(baselines, dtype=np.float64)
        for place, scores in enumerate(self._targets):
            scores.add(
                values[:, place],
                None if bounds is None else bounds[:, place],
                y[:, place],
                None if issued is None else issued[:, place],
            )
        self._keep(values, bounds, y, moment)
        return self._watch(rows, values, y, moment)

    def _keep(
        self, values: FloatArray, bounds: FloatArray | None, y: FloatArray, moment: float
    ) -> None:
        """Keep rows for the page, and points of the error curve.

        A row has a number, a moment, and for each target the prediction, the actual value and the
        bounds of the widest interval; a point of the curve likewise what `TargetScores.now` has.
        """
        table = np.full((*y.shape, 4), np.nan)
        table[..., 0], table[..., 1] = values, y
        if bounds is not None and bounds.shape[2]:
            table[..., 2:] = bounds[:, :, -1]
        flat = table.reshape(len(y), -1)
        for number, row in enumerate(flat.tolist(), self.rows + 1):
            known = (value if math.isfinite(value) else None for value in row)
            self.points.append([number, moment, *known])
        before = self.rows // self._every
        self.rows += len(y)
        if self.rows // self._every > before:
            now = [value for scores in self.each for value in scores.now]
            self.curve.append([self.rows, moment, *now])
            if len(self.curve) >= CURVE:
                self.curve = self.curve[1::2]
                self._every *= 2

    def _watch(
        self, rows: Sequence[dict[Any, Any]], values: FloatArray, y: FloatArray, moment: float
    ) -> list[dict[str, Any]]:
        """Look for drift in blocks of rows; the first target's monitor watches the features too."""
        if not self._monitored:
            return []
        moments = [moment] * len(rows)
        self._unwatched += zip(rows, y.tolist(), values.tolist(), moments, strict=True)
        if len(self._unwatched) < BLOCK:
            return []
        taken, self._unwatched = self._unwatched, []
        features: Any = [row for row, _, _, _ in taken]
        actual, predicted = np.array([[y, value] for _, y, value, _ in taken]).swapaxes(0, 1)
        times = np.array([when for _, _, _, when in taken])
        found: list[dict[str, Any]] = []
        for place, scores in enumerate(self.each):
            found += scores.watch(features, actual[:, place], predicted[:, place], times)
            features = np.empty((len(taken), 0))
        self.drifts.extend(found)
        self.drift_count += len(found)
        return found

    def summary(self) -> dict[str, Any]:
        """Return the exponentially weighted scores in terms of JSON, by target."""
        found = {scores.name: scores.summary() for scores in self.each}
        parts = {
            part: {name: each[part] for name, each in found.items()}
            for part in ("errors", "baselines", "coverage")
        }
        return {"rows": self.rows, **parts, "drifts": self.drift_count}

    # -- checkpoints ------------------------------------------------------------------------------

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return all of it for a checkpoint."""
        arrays = {
            f"target{place}.{part}": array
            for place, scores in enumerate(self.each)
            for part, array in scores.to_arrays().items()
        }
        text = {
            "unwatched": self._unwatched,
            "drifts": list(self.drifts),
            "drift_count": self.drift_count,
            "points": list(self.points),
            "curve": self.curve,
            "every": self._every,
            "rows": self.rows,
        }
        arrays[TEXT] = np.frombuffer(json.dumps(text).encode(), np.uint8)
        return arrays

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Continue from what `to_arrays` returned."""
        for place, scores in enumerate(self.each):
            head = f"target{place}."
            own = {
                name.removeprefix(head): arrays[name] for name in arrays if name.startswith(head)
            }
            scores.restore(own)
        text = json.loads(arrays[TEXT].tobytes())
        self._unwatched = [(row, y, value, when) for row, y, value, when in text["unwatched"]]
        self.drifts.extend(text["drifts"])
        self.points.extend(text["points"])
        self.curve, self._every = text["curve"], text["every"]
        self.rows, self.drift_count = text["rows"], text["drift_count"]
