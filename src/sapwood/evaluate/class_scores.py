"""How good predictions of classes are: confusion matrix, probabilities, and simple baselines."""

from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.validation import Label

__all__ = ["ClassScores", "cohen_kappa"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

LEAST_PROBABILITY = 1e-6  # that counts in the log-loss
BINS = 15  # of the reliability diagram


class ClassScores:
    """Scores of predictions, updated chunk by chunk.

    A row whose class was not known when it was predicted has the probability 0 for it. In the
    log-loss no probability is less than 1e-6. A row that was predicted before any class was known
    counts as wrong, and has no part in the scores of probabilities.

    Parameters
    ----------
    window : int
        Rows of the windowed accuracy.

    Examples
    --------
    >>> scores = ClassScores()
    >>> p = np.array([[0.9, 0.1], [0.4, 0.6], [0.8, 0.2], [0.3, 0.7]])
    >>> scores.update(["no", "yes"], ["no", "yes", "yes", "yes"], p)
    >>> found = scores.to_dict()
    >>> found["accuracy"], round(found["log_loss"], 3)
    (0.75, 0.646)
    """

    def __init__(self, window: int = 1000) -> None:
        self.labels: list[Label] = []
        self.confusion: IntArray = np.zeros((0, 0), np.int64)  # actual, predicted
        self.bins: FloatArray = np.zeros((BINS, 3))  # rows, confidence, right
        self.rows = 0
        self._codes: dict[Label, int] = {}
        self._log_loss = self._brier = 0.0
        self._majority = self._same = 0
        self._last: int | None = None
        self._recent: deque[bool] = deque(maxlen=window)
        self._unpredicted = 0

    def _code(self, label: Label) -> int:
        code = self._codes.get(label)
        if code is None:
            code = self._codes[label] = len(self.labels)
            self.labels.append(label)
            self.confusion = np.pad(self.confusion, (0, 1))
        return code

    def update(self, classes: list[Label], actual: list[Label], p: FloatArray) -> None:
        """Take rows that were predicted.

        Parameters
        ----------
        classes : list
            The labels that the columns of `p` are of.
        actual : list
            The labels of the rows.
        p : array of float, shape (rows, classes)
            The probabilities; all 0 for a row that was predicted before any class was known.
        """
        columns = {label: place for place, label in enumerate(classes)}
        codes = [self._code(label) for label in classes]
        chosen = p.argmax(axis=1).tolist() if p.shape[1] else [0] * len(actual)
        for row, label in enumerate(actual):
            own = self._code(label)
            self._baselines(own)
            told = p[row]
            total = float(told.sum()) if len(told) else 0.0
            mine = float(told[columns[label]]) if label in columns else 0.0
            self.rows += 1
            if not total:
                self._unpredicted += 1
                self._recent.append(False)
                continue
            self._log_loss -= np.log(max(mine, LEAST_PROBABILITY))
            self._brier += float(told @ told) - 2 * mine + 1.0
            best = codes[chosen[row]]
            self.confusion[own, best] += 1
            self._recent.append(own == best)
            confidence = float(told[chosen[row]])
            place = min(int(confidence * BINS), BINS - 1)
            self.bins[place] += (1.0, confidence, own == best)

    def _baselines(self, code: int) -> None:
        """Count what the majority class and the class of the row before would have got right."""
        counts = self.confusion.sum(axis=1) if self._last is None else self._counts
        if self._last is not None:
            self._majority += int(counts.argmax()) == code
            self._same += self._last == code
        if len(counts) < len(self.labels):
            counts = np.pad(counts, (0, len(self.labels) - len(counts)))
        counts[code] += 1
        self._counts: IntArray = counts
        self._last = code

    def metrics(self) -> dict[str, float]:
        """Return all scores by name; NaN where they have no value."""
        right = float(np.trace(self.confusion))
        rows, told = self.rows or np.nan, (self.rows - self._unpredicted) or np.nan
        accuracy, same = right / rows, self._same / rows
        actual, predicted = self.confusion.sum(axis=1), self.confusion.sum(axis=0)
        hits = np.diag(self.confusion)
        seen = actual > 0
        recalls = hits[seen] / actual[seen] if seen.any() else np.array([np.nan])
        both = (actual + predicted)[seen]
        f1 = 2 * hits[seen] / both if seen.any() else np.array([np.nan])
        share = self.bins[:, 0] > 0
        gaps = np.abs(self.bins[share, 1] - self.bins[share, 2])
        return {
            "accuracy": accuracy,
            "accuracy_window": float(np.mean(self._recent)) if self._recent else np.nan,
            "balanced_accuracy": float(recalls.mean()),
            "kappa": cohen_kappa(self.confusion),
            "kappa_temporal": (accuracy - same) / (1 - same) if same < 1 else np.nan,
            "f1_macro": float(f1.mean()),
            "log_loss": self._log_loss / told,
            "brier": self._brier / told,
            "calibration_error": float(gaps.sum() / told),
            "accuracy_majority": self._majority / rows,
            "accuracy_no_change": same,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return all of it in terms of JSON; None where a score has no value."""
        return {
            "rows": self.rows,
            **{
                name: None if np.isnan(value) else float(value)
                for name, value in self.metrics().items()
            },
            "classes": list(self.labels),
            "confusion": self.confusion.tolist(),
            "reliability": [
                {"rows": int(n), "confidence": c / n, "accuracy": right / n}
                for n, c, right in self.bins.tolist()
                if n
            ],
        }


def cohen_kappa(confusion: IntArray) -> float:
    """Return Cohen's kappa of a confusion matrix; NaN if there is but one class.

    Examples
    --------
    >>> cohen_kappa(np.array([[20, 5], [10, 15]]))
    0.4
    """
    rows = float(confusion.sum())
    if not rows:
        return np.nan
    agreed = float(np.trace(confusion)) / rows
    chance = float(confusion.sum(axis=0) @ confusion.sum(axis=1)) / rows**2
    return round((agreed - chance) / (1 - chance), 12) if chance < 1 else np.nan
