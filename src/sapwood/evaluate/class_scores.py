"""How good predictions of classes are: confusion matrix, probabilities, and simple baselines."""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sapwood import validation
from sapwood.classify.labels import class_label
from sapwood.evaluate.classes import LEAST_PROBABILITY, PredictedRows
from sapwood.evaluate.recorder import Moment, Recorder, packed, unpacked
from sapwood.formatting import finite
from sapwood.validation import Label

__all__ = [
    "CLASS_METRICS",
    "LEAST_PROBABILITY",
    "ClassScores",
    "SetScores",
    "cohen_kappa",
    "roc_auc",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

BINS = 15  # of the reliability diagram
RANKS, STEEPEST = 400, 10.0  # bins of the ROC curve, equally wide from logit -10 to 10

CLASS_METRICS = {
    "accuracy": "accuracy",
    "accuracy_majority": "accuracy of the majority class",
    "accuracy_no_change": "accuracy of the previous class",
    "accuracy_window": "accuracy of the last rows",
    "balanced_accuracy": "balanced accuracy",
    "kappa": "Cohen's kappa",
    "kappa_temporal": "kappa temporal",
    "f1_macro": "F1 (macro)",
    "roc_auc": "ROC AUC (macro)",
    "log_loss": "log-loss",
    "brier": "Brier score",
    "calibration_error": "calibration error",
}
"""How each score is called; the majority class and the previous class are baselines."""

CURVE = np.dtype(
    [("row", np.int64), ("accuracy", float), ("accuracy_window", float), ("log_loss", float)]
)
SUMS = ("log_loss", "brier", "majority", "same", "unpredicted", "step")
FIRST_STEP, MOST_POINTS = 50, 400  # rows between points of the curve, doubled as they are too many


class ClassScores(Recorder):
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
        self.ranks: IntArray = np.zeros((0, 2, RANKS), np.int64)  # rows of other classes, and own
        self.rows = 0
        self._codes: dict[Label, int] = {}
        self._log_loss = self._brier = 0.0
        self._majority = self._same = 0
        self._last: int | None = None
        self._counts: IntArray = np.zeros(0, np.int64)  # rows of each class
        self._recent: deque[bool] = deque(maxlen=window)
        self._unpredicted = 0
        self._points: list[tuple[int, float, float, float]] = []
        self._step = FIRST_STEP

    def _code(self, label: Label) -> int:
        code = self._codes.get(label)
        if code is None:
            code = self._codes[label] = len(self.labels)
            self.labels.append(label)
            self.confusion = np.pad(self.confusion, (0, 1))
            self.ranks = np.pad(self.ranks, ((0, 1), (0, 0), (0, 0)))
            self.ranks[code, 0, 0] = self.rows - self._unpredicted  # with the probability 0
        return code

    def update(
        self,
        classes: list[Label],
        actual: list[Label],
        p: FloatArray,
        chosen: Sequence[int] | None = None,
    ) -> None:
        """Take rows that were predicted.

        Parameters
        ----------
        classes : list
            The labels that the columns of `p` are of.
        actual : list
            The labels of the rows.
        p : array of float, shape (rows, classes)
            The probabilities; all 0 for a row that was predicted before any class was known.
        chosen : sequence of int, optional
            The column of the class that was predicted; that of the highest probability by default.
        """
        columns = {label: place for place, label in enumerate(classes)}
        codes = [self._code(label) for label in classes]
        if chosen is None:
            chosen = p.argmax(axis=1).tolist() if p.shape[1] else [0] * len(actual)
        for label in actual:
            self._code(label)
        self._rank(codes, actual, p)
        for row, label in enumerate(actual):
            own = self._code(label)
            self._baselines(own)
            if self.rows and self.rows % self._step == 0:
                self._add_point()
            shares = p[row]
            total = float(shares.sum()) if len(shares) else 0.0
            mine = float(shares[columns[label]]) if label in columns else 0.0
            self.rows += 1
            if not total:
                self._unpredicted += 1
                self._recent.append(False)
                continue
            self._log_loss -= np.log(max(mine, LEAST_PROBABILITY))
            self._brier += float(shares @ shares) - 2 * mine + 1.0
            best = codes[chosen[row]]
            self.confusion[own, best] += 1
            self._recent.append(own == best)
            confidence = float(shares[chosen[row]])
            place = min(int(confidence * BINS), BINS - 1)
            self.bins[place] += (1.0, confidence, own == best)

    def record(self, rows: PredictedRows) -> None:
        """Take those rows of a chunk that have labels."""
        chosen = np.array(rows.chosen, np.intp)[rows.has_label].tolist()
        self.update(rows.classes, rows.actual, rows.probabilities[rows.has_label], chosen)

    @property
    def total_log_loss(self) -> float:
        """The sum of the log-loss over all rows."""
        return float(self._log_loss)

    @property
    def curve(self) -> NDArray[Any]:
        """The scores of all rows up to some points, and of the last one."""
        points = list(self._points)
        if self.rows and (not points or points[-1][0] != self.rows):
            points.append(self._point())
        return np.array(points, CURVE)

    def _point(self) -> tuple[int, float, float, float]:
        right = int(np.trace(self.confusion))
        predicted = self.rows - self._unpredicted
        loss = self._log_loss / predicted if predicted else np.nan
        window = sum(self._recent) / len(self._recent)
        return self.rows, right / self.rows, window, float(loss)

    def _add_point(self) -> None:
        self._points.append(self._point())
        if len(self._points) > MOST_POINTS:
            self._step *= 2
            self._points = [each for each in self._points if each[0] % self._step == 0]

    def _rank(self, codes: list[int], actual: list[Label], p: FloatArray) -> None:
        """Count rows by the probability of each class, apart for those of the class."""
        predicted = np.flatnonzero(p.any(axis=1))
        own = np.array([self._codes[label] for label in actual], np.int64)[predicted]
        shares = np.zeros((len(predicted), len(self.labels)))
        shares[:, codes] = p[predicted]
        with np.errstate(divide="ignore"):
            logits = np.clip(np.log(shares) - np.log1p(-shares), -STEEPEST, STEEPEST)
        bins = ((logits + STEEPEST) * ((RANKS - 1) / (2 * STEEPEST))).astype(np.int64)
        for code in range(len(self.labels)):
            for is_own, rows in enumerate((own != code, own == code)):
                self.ranks[code, is_own] += np.bincount(bins[rows, code], minlength=RANKS)

    def _baselines(self, code: int) -> None:
        """Count what the majority class and the class of the row before would have got right."""
        counts = self._counts
        if self._last is not None:
            self._majority += int(counts.argmax()) == code
            self._same += self._last == code
        if len(counts) < len(self.labels):
            counts = np.pad(counts, (0, len(self.labels) - len(counts)))
        counts[code] += 1
        self._counts = counts
        self._last = code

    def results(self, end: Moment) -> dict[str, Any]:
        """Return the scores."""
        return {"scores": self}

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the state, to be saved."""
        state = {
            "window": self._recent.maxlen,
            "labels": list(self.labels),
            "last": self._last,
            "counts": self._counts.tolist(),
            "recent": [int(each) for each in self._recent],
            "points": [list(each) for each in self._points],
            **{name: getattr(self, name).tolist() for name in ("confusion", "bins", "ranks")},
            **{name: getattr(self, f"_{name}") for name in SUMS},
            "rows": self.rows,
        }
        return {"scores": packed(state)}

    def restored(self, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return scores in a state that `to_arrays` returned."""
        state = unpacked(arrays["scores"])
        made = type(self)(validation.whole(state["window"], "window", 1, 2**53))
        made.labels = [class_label(label) for label in state["labels"]]
        made._codes = {label: code for code, label in enumerate(made.labels)}
        known = len(made.labels)
        shapes = {"confusion": (known, known), "bins": (BINS, 3), "ranks": (known, 2, RANKS)}
        for name, shape in shapes.items():
            kind = getattr(made, name).dtype
            setattr(made, name, np.array(state[name], kind).reshape(shape))
        made._counts = np.array(state["counts"], np.int64).reshape(-1)
        if len(made._counts) > known or len(made._codes) != known:
            raise ValueError("the classes of its scores are wrong")
        made._recent.extend(bool(each) for each in state["recent"])
        made._points = [
            (int(n), float(a), float(w), float(loss)) for n, a, w, loss in state["points"]
        ]
        made.rows = validation.whole(state["rows"], "rows", 0, 2**53)
        last = state["last"]
        made._last = None if last is None else validation.whole(last, "last", 0, known - 1)
        for name in SUMS:
            kind = type(getattr(made, f"_{name}"))
            setattr(made, f"_{name}", kind(state[name]))
        return made

    def metrics(self) -> dict[str, float]:
        """Return all scores by name; NaN where they have no value."""
        right = float(np.trace(self.confusion))
        rows, issued = self.rows or np.nan, (self.rows - self._unpredicted) or np.nan
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
            "log_loss": self._log_loss / issued,
            "brier": self._brier / issued,
            "roc_auc": roc_auc(self.ranks),
            "calibration_error": float(gaps.sum() / issued),
            "accuracy_majority": self._majority / rows,
            "accuracy_no_change": same,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return all of it in terms of JSON; None where a score has no value."""
        return {
            "rows": self.rows,
            **finite({name: float(value) for name, value in self.metrics().items()}),
            "classes": list(self.labels),
            "confusion": self.confusion.tolist(),
            "reliability": [
                {"rows": int(n), "confidence": c / n, "accuracy": right / n}
                for n, c, right in self.bins.tolist()
                if n
            ],
        }


class SetScores(Recorder):
    """The coverage and the mean size of prediction sets of some levels.

    - `levels`: the nominal levels, between 0 and 1.

    Examples
    --------
    >>> scores = SetScores([0.9])
    >>> scores.update([["a", "b"]], "a")
    >>> scores.update([["a"]], "b")
    >>> scores.to_dict()
    {'0.9': {'coverage': 0.5, 'size': 1.5, 'rows': 2}}
    """

    def __init__(self, levels: Iterable[float]) -> None:
        found = {validation.between(level, "level", 1e-3, 0.9995) for level in levels}
        self.levels = tuple(sorted(found))
        self.rows = 0
        self._held = [0] * len(self.levels)
        self._sizes = [0] * len(self.levels)

    def update(self, sets: Sequence[Sequence[Label]], actual: Label) -> None:
        """Take a row.

        - `sets`: the prediction set of each level.
        - `actual`: the label of the row.
        """
        self.rows += 1
        for place, own in enumerate(sets):
            self._held[place] += actual in own
            self._sizes[place] += len(own)

    def to_dict(self) -> dict[str, dict[str, float]]:
        """Return coverage, mean size and rows by level; nothing before the first row."""
        if not self.rows:
            return {}
        return {
            f"{level:g}": {
                "coverage": held / self.rows,
                "size": size / self.rows,
                "rows": self.rows,
            }
            for level, held, size in zip(self.levels, self._held, self._sizes, strict=True)
        }

    def record(self, rows: PredictedRows) -> None:
        """Take those rows of a chunk that have labels, and were predicted when classes were known."""
        for place in np.flatnonzero(rows.has_label & rows.is_known) if rows.sets else ():
            label = rows.labels[place]
            assert label is not None
            self.update(rows.sets[place], label)

    def results(self, end: Moment) -> dict[str, Any]:
        """Return coverage, mean size and rows by level."""
        return {"sets": self.to_dict()}

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the state, to be saved."""
        return {"sets": packed({"rows": self.rows, "held": self._held, "sizes": self._sizes})}

    def restored(self, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return scores of the same levels in a state that `to_arrays` returned."""
        state = unpacked(arrays["sets"])
        made = type(self)(self.levels)
        made.rows = validation.whole(state["rows"], "rows", 0, 2**53)
        made._held = [validation.whole(each, "held", 0, made.rows) for each in state["held"]]
        made._sizes = [validation.whole(each, "sizes", 0, 2**53) for each in state["sizes"]]
        if not len(made._held) == len(made._sizes) == len(self.levels):
            raise ValueError("its prediction sets have other levels")
        return made


def roc_auc(ranks: IntArray) -> float:
    """Return the area under the ROC curve, of each class against all others, as a mean.

    - `ranks`: how many rows of other classes, and of the class, have its probability in each bin;
      rows of one bin are ties.

    Examples
    --------
    >>> roc_auc(np.array([[[2, 1, 0], [0, 1, 1]]]))
    0.9166666666666666
    """
    others, own = ranks[:, 0].astype(np.float64), ranks[:, 1].astype(np.float64)
    below = np.cumsum(others, axis=1) - others / 2
    pairs = others.sum(axis=1) * own.sum(axis=1)
    both = pairs > 0
    if not both.any():
        return np.nan
    return float(np.mean((own * below).sum(axis=1)[both] / pairs[both]))


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
