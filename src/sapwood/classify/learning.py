"""How classifiers learn: known classes in place, new ones aside."""

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sapwood import validation
from sapwood.classify.decisions import weighted
from sapwood.classify.held import Held
from sapwood.classify.labels import (
    CodedLabels,
    class_label,
    coded,
    is_missing,
    label_values,
    missing_labels,
)
from sapwood.classify.leaves import label_counts, values_of
from sapwood.classify.parts import check_rows, rows_at
from sapwood.classify.predicting import PredictingClassifier
from sapwood.classify.ratings import ratings_of
from sapwood.corrector._pending import key_of_row
from sapwood.rows import frames, targets
from sapwood.tasks import CLASSES
from sapwood.validation import Label

__all__ = ["LearningClassifier"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class LabelledRows(NamedTuple):
    """Rows to be learned."""

    X: Any
    y: Any  # labels, as `label_values` returns them, or codes of classes
    weights: FloatArray
    keys: Any  # of their ids, or None

    def at(self, places: Any) -> Self:
        """Return the rows at some places: a slice, or an array of whole numbers."""
        keys = None if self.keys is None else self.keys[places]
        return type(self)(
            rows_at(self.X, places), rows_at(self.y, places), self.weights[places], keys
        )


class LearningClassifier(PredictingClassifier):
    """The part of a classifier that learns."""

    def _learn_row(self, x: dict[Any, Any], y: Any, w: float, key: int) -> None:
        if type(y) is not str and is_missing(y):
            self._leave_unlabelled(x, key)
            return
        label = y if type(y) is str else class_label(y)
        x = self._encoded_one(x)
        weight = w if type(w) is float else validation.number(w, "w")
        with self._turns:
            held = self._held
            code = held.codes.get(label)
            if code is None:
                own = CodedLabels(
                    (*held.classes, class_label(label)), np.array([len(held.classes)]), [0]
                )
                keys = np.array([key], np.uint64) if key else None
                self._learn_new(LabelledRows([x], own.codes, np.array([weight]), keys), own, True)
                return
            model, calibrator, known = held.model, held.calibrator, len(held.classes)
            ratings, placed = self._rated_in_leaf(x, key, False)
            labels_before = label_counts(model)
            is_rated = None if placed is None else np.zeros(1, np.int8)
            own_key = key or (key_of_row(x) if self._awaits else 0)
            labels, counts = calibrator.labels, held.counts
            if self._parameters["class_weight"] is not None and weight > 0:
                scaled, counts = self._weighted(held, np.array([code]), np.array([weight]))
                weight = float(scaled[0])

            def learn() -> None:
                if known < 3:
                    model._learn_row(x, float(code), weight, key)
                else:
                    row = np.zeros((1, known))
                    row[0, code] = 1.0
                    model._learn_targets_one(x, targets.Targets(None, row), weight, key)

            def finish() -> None:
                held.counts[:] = counts
                if is_rated is not None and not is_rated[0]:
                    leaf, shares = placed
                    own = LabelledRows(x, np.array([code]), np.array([weight]), None)
                    _learn_bayes(
                        held, own, leaf, shares, is_rated, labels_before=labels_before, one=True
                    )
                calibrator.score_one(ratings, known, code, weight, held.pending, own_key)

            self._both(learn, finish, lambda: calibrator.labels == labels)

    def _leave_unlabelled(self, x: dict[Any, Any], key: int) -> None:
        """Count a row without a label; its prediction no longer waits for one."""
        x = self._encoded_one(x)
        keys = np.array([key or key_of_row(x)], np.uint64)
        with self._turns:
            after = self._held.unlabelled + 1

            def finish() -> None:
                self._forget(keys)
                self._held = self._held._replace(unlabelled=after)

            self._surely(finish, lambda: self._held.unlabelled != after)

    def _forget(self, keys: Any) -> None:
        """Let the predictions of rows wait no longer, as their labels are not known."""
        if self._awaits:
            labels = np.full(len(keys), self._held.calibrator.labels)
            self._held.pending.take_keys(np.ascontiguousarray(keys), labels)

    def _weighted(
        self, held: Held, codes: IntArray, weights: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the weights of rows by `class_weight`, and the weight of each class after them."""
        weighting = self._parameters["class_weight"]
        if weighting is None:
            return weights, held.counts
        return weighted(weighting, held.classes, codes, weights, held.counts)

    def _learn_batch(
        self, X: Any, y: Any, w: ArrayLike | None, keys: Any, *, delayed: bool, returns: bool
    ) -> tuple[IntArray, FloatArray]:
        y = label_values(y)
        weights = validation.weights(w, len(y))
        rows = LabelledRows(self._encoded(frames.lasting(X)), y, weights, keys)
        missing = missing_labels(y)
        with self._turn():
            if missing is None:
                return self._learn_labelled(rows, delayed=delayed, returns=returns)
            check_rows(rows.X, len(weights))
            if returns or self._awaits:
                return self._learn_runs(rows, missing, delayed=delayed)
            known = rows.at(np.flatnonzero(~missing))
            lost = int(missing.sum())
            return self._learn_labelled(known, delayed=delayed, returns=False, unlabelled=lost)

    def _learn_labelled(
        self, rows: LabelledRows, *, delayed: bool, returns: bool, unlabelled: int = 0
    ) -> tuple[IntArray, FloatArray]:
        """Learn rows, of which all have labels; there were others without, which are counted."""
        own = coded(rows.y, self._held.codes)
        rows = rows._replace(y=own.codes)
        if own.firsts:
            return self._learn_new(rows, own, delayed, unlabelled=unlabelled)
        pending = self._keys_of(rows) if delayed and self._awaits else None
        return self._learn_known(
            rows, pending, delayed=delayed, returns=returns, unlabelled=unlabelled
        )

    def _keys_of(self, rows: LabelledRows) -> Any:
        """Return by what rows are known: the keys of their ids, or of the rows themselves."""
        return self._keys(rows.X, len(rows.weights)) if rows.keys is None else rows.keys

    def _learn_runs(
        self, rows: LabelledRows, missing: NDArray[np.bool_], *, delayed: bool
    ) -> tuple[IntArray, FloatArray]:
        """Learn rows with and without labels in their order; what they change is built aside."""
        keys = self._keys_of(rows)
        aside = type(self)(**self._parameters)
        aside._held = self._held.copied(self._limit)
        found: list[tuple[IntArray, FloatArray]] = []
        ends = [*(np.flatnonzero(np.diff(missing)) + 1).tolist(), len(missing)]
        for start, end in zip([0, *ends[:-1]], ends, strict=True):
            part = rows.at(slice(start, end))
            if missing[start]:
                found.append(aside._told(aside._rated(part.X, part.keys, record=False)))
                aside._forget(keys[start:end])
            else:
                found.append(aside._learn_labelled(part, delayed=delayed, returns=True))
        lost = int(missing.sum())
        self._held = aside._held._replace(unlabelled=self._held.unlabelled + lost)
        width = len(self._held.classes)
        tables = [np.pad(p, ((0, 0), (0, width - p.shape[1]))) for _, p in found]
        return np.concatenate([codes for codes, _ in found]), np.concatenate(tables)

    def _learn_known(
        self,
        rows: LabelledRows,
        pending: Any,
        *,
        delayed: bool,
        returns: bool,
        scored: int | None = None,
        unlabelled: int = 0,
    ) -> tuple[IntArray, FloatArray]:
        """Learn rows of known classes; of the first one of a class, only those before are scored.

        `pending` are the keys of predictions that may wait for these labels, if any do.
        """
        held, codes = self._held, rows.y
        known, calibrator = len(held.classes), held.calibrator
        values = CLASSES.columns(codes, known)
        before = np.empty(values.shape)
        labels = calibrator.labels
        weights, counts = self._weighted(held, codes, rows.weights)
        leaves = None if held.bayes is None else np.zeros(len(codes), np.int32)
        ratings, is_rated = np.empty((len(codes), max(2, known))), np.zeros(1, np.int8)
        labels_before = label_counts(held.model)
        found: list[Any] = []

        def learn() -> None:
            y = targets.Targets(None, values)
            held.model._learn_into(
                rows.X, y, weights, before, leaves, keys=rows.keys, delayed=delayed
            )

        def finish() -> None:
            held.counts[:] = counts
            self._held = held._replace(unlabelled=held.unlabelled + unlabelled)
            if not is_rated[0]:
                ratings[:] = ratings_of(before, known)
                own = rows._replace(weights=weights)
                _learn_bayes(held, own, leaves, ratings, is_rated, labels_before=labels_before)
            of = known if scored is None else scored
            found.append(
                calibrator.score_many(
                    ratings, of, codes, weights, held.pending, pending, returns=returns
                )
            )

        self._both(learn, finish, lambda: len(codes) > 0 and calibrator.labels == labels)
        if not returns:
            return codes, before
        told = found[0][:, :known]
        return self._decided(ratings, told), told

    def _learn_new(
        self, rows: LabelledRows, own: CodedLabels, delayed: bool, *, unlabelled: int = 0
    ) -> tuple[IntArray, FloatArray]:
        """Learn rows that bring new classes: all that they change is built aside."""
        known, count = len(self._held.classes), len(rows.weights)
        check_rows(rows.X, count)
        keys = self._keys_of(rows)
        aside = type(self)(**self._parameters)
        # Widening builds all of it aside, but there is nothing to widen up to the second class.
        is_shared = own.firsts[0] == 0 and delayed and known > 1
        aside._held = self._held if is_shared else self._held.copied(self._limit)
        predicted = np.full(count, -1, np.int64)
        probabilities = np.zeros((count, len(own.classes)))
        starts = [0, *(row for row in own.firsts if row > 0)]
        for first, end in zip(starts, [*starts[1:], count], strict=True):
            start = first
            if first in own.firsts:
                # As in a loop: it is predicted, unless it was before, and its label comes then.
                start += 1
                one = rows.at(slice(first, start))
                codes, told = aside._told(aside._rated(one.X, one.keys, record=not delayed))
                predicted[first], probabilities[first, :known] = codes[0], told[0]
                aside._held = self._widened(aside._held, own.classes[: known + 1])
                aside._learn_known(
                    one, keys[first:start], delayed=True, returns=False, scored=known
                )
                known += 1
            if start < end:
                pending = keys[start:end] if delayed else None
                predicted[start:end], probabilities[start:end, :known] = aside._learn_known(
                    rows.at(slice(start, end)), pending, delayed=delayed, returns=True
                )
        after = self._held.unlabelled + unlabelled
        self._held = aside._held._replace(unlabelled=after)
        return predicted, probabilities

    def _widened(self, held: Held, classes: tuple[Label, ...]) -> Held:
        """Return what knows one class more, the last of some."""
        try:
            return held.widened(classes, self._limit, self._growth)
        except ValueError:
            if self._limit is None:
                raise
            raise ValueError(
                f"y = {validation.shown(classes[-1])} would be class number {len(classes)}, for "
                f"which max_bytes = {self._limit} has no room: allow more, or group rare classes"
            ) from None


def _learn_bayes(
    held: Held,
    rows: LabelledRows,
    leaves: Any,
    ratings: FloatArray,
    is_rated: NDArray[np.int8],
    *,
    labels_before: list[int],
    one: bool = False,
) -> None:
    """Let leaves of naive Bayes rate and learn rows that their tree has learned.

    Parameters
    ----------
    held : Held
        Of the classifier.
    rows : LabelledRows
        With the codes of their classes.
    leaves : array
        Of each row, just before it was learned.
    ratings : array
        Those by the tree, which become those by naive Bayes.
    is_rated : array
        A number that the last change sets to 1; nothing can interrupt the changes.
    labels_before : list of int
        The number of categories of each feature before the tree learned the rows.
    one : bool
        Whether X is a dict of one row.
    """
    if held.bayes is None:
        return
    matrix, kinds = values_of(held.model, rows.X, one)
    held.bayes.reserve(leaves, matrix.shape[1])
    labels_before = [*labels_before, *[0] * (matrix.shape[1] - len(labels_before))]
    held.bayes.learn(matrix, kinds, leaves, ratings, rows.y, rows.weights, is_rated, labels_before)
