"""The methods for rows that all models of classes share, with their documentation.

A model defines how it rates and learns rows by keys: `_rated_one`, `_rated`, `_learn_row` and
`_learn_batch`. The public methods make classes, probabilities and prediction sets of ratings.
"""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sapwood import validation
from sapwood.classify.decisions import cheapest, cost_matrix
from sapwood.classify.labels import label_array
from sapwood.classify.ratings import chosen, highest
from sapwood.corrector.tokens import key_of, keys_of
from sapwood.stages._turn import Turn
from sapwood.validation import Label

__all__ = ["ClassRowMethods"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class ClassRowMethods(ABC):
    """The methods for rows of a classifier, and of stages around one."""

    _turns: Turn

    @property
    @abstractmethod
    def _classifier(self) -> Any:
        """The classifier that rates: the model itself, or the one inside."""

    @abstractmethod
    def _rated_one(self, x: dict[Any, Any], key: int, record: bool) -> list[float]:
        """Return how each class is rated for a row; the key is that of its id, or 0."""

    @abstractmethod
    def _rated(self, X: Any, keys: Any, record: bool) -> FloatArray:
        """Return how each class is rated for rows, in two columns or more."""

    @abstractmethod
    def _learn_row(self, x: dict[Any, Any], y: Any, w: float, key: int) -> None:
        """Learn one row."""

    @abstractmethod
    def _learn_batch(
        self, X: Any, y: Any, w: ArrayLike | None, keys: Any, *, delayed: bool, returns: bool
    ) -> tuple[IntArray, FloatArray]:
        """Learn rows; return the codes and probabilities of just before, if they are wanted."""

    # -- one row ----------------------------------------------------------------------------------

    def learn_one(self, x: dict[Any, Any], y: Any, w: float = 1.0, *, id: Any = None) -> None:
        """Learn one row.

        Parameters
        ----------
        x : dict
            The features: numbers, bools, strings; None, NaN or nothing where a value is missing.
        y : str, int or bool
            The class label. A new label may appear in any row; 1.0 and 1 are the same label. None
            or NaN means unknown: the row is counted by `rows_unlabelled`, its prediction is no
            longer pending, and the row is not learned.
        w : float
            The weight of the row: positive and finite.
        id : str, int, or tuple of such, optional
            The id that was passed to `predict_one`, if the label is delayed. Without an id, the
            prediction is found by the values of the row; among equal rows, in the order of
            predictions.

        Raises
        ------
        ValueError, OverflowError
            If a value is not as described; nothing is changed then.
        """
        self._learn_row(x, y, w, 0 if id is None else key_of(id))

    def predict_one(self, x: dict[Any, Any], *, id: Any = None, record: bool = True) -> Any:
        """Predict the class of one row; the prediction is pending until its label arrives.

        Parameters
        ----------
        x : dict
            The features, as for `learn_one`.
        id : str, int, or tuple of such, optional
            An id by which `learn_one` finds the prediction when the label arrives.
        record : bool
            Whether the prediction is stored until its label arrives, and then scored. If you call
            both `predict_one` and `predict_proba_one` for a row, record only one of them.

        Returns
        -------
        str, int or bool
            The label; None before the first label was learned.
        """
        with self._turns:
            ratings = self._rated_one(x, 0 if id is None else key_of(id), record)
            if not ratings:
                return None
            own = self._classifier
            held = own._held
            if own._parameters["cost"] is None:
                return held.classes[highest(ratings)]
            told = np.array([held.calibrator.probabilities_of(ratings)])
            return held.classes[int(own._decided(told, told)[0])]

    def predict_proba_one(
        self, x: dict[Any, Any], *, id: Any = None, record: bool = True
    ) -> dict[Label, float]:
        """Return the probability of each class for one row.

        Parameters
        ----------
        x, id, record
            As for `predict_one`.

        Returns
        -------
        dict
            The probability of each label seen so far, in the order of their first rows.
        """
        with self._turns:
            ratings = self._rated_one(x, 0 if id is None else key_of(id), record)
            held = self._classifier._held
            found = held.calibrator.probabilities_of(ratings)
            return dict(zip(held.classes, found, strict=True))

    def predict_set_one(
        self, x: dict[Any, Any], level: float = 0.9, *, id: Any = None, record: bool = True
    ) -> list[Label]:
        """Return the classes that one row may be of: a prediction set.

        Sets of a level hold the actual class in that share of rows, or more: the threshold of
        their probabilities follows the labels of issued predictions (adaptive conformal inference).
        A set holds at least the class of the highest probability, and all classes before 20 labels
        were scored.

        Parameters
        ----------
        x : dict
            The features, as for `learn_one`.
        level : float
            The share of rows whose set is to hold the actual class, between 0 and 1.
        id, record
            As for `predict_one`.

        Returns
        -------
        list
            Labels, in descending order of probability.
        """
        with self._turns:
            least = self._threshold(level)
            found = self.predict_proba_one(x, id=id, record=record)
            order = sorted(found, key=lambda label: -found[label])
            return order[:1] + [label for label in order[1:] if found[label] >= least]

    # -- many rows --------------------------------------------------------------------------------

    def learn_many(self, X: Any, y: Any, w: ArrayLike | None = None, *, ids: Any = None) -> None:
        """Learn many rows: the same as `learn_one` in a loop, or nothing at all.

        Parameters
        ----------
        X : array_like, mapping of columns, list of dicts, or data frame
            The features, as for a regressor.
        y : array_like or series, shape (n,)
            The labels: strings, whole numbers or bools; None or NaN where one is not known.
        w : array_like or series of float, shape (n,), optional
            The weights; 1 by default.
        ids : sequence, optional
            The id of each row, as for `learn_one`.
        """
        self._learn_batch(X, y, w, _keys(ids), delayed=True, returns=False)

    def predict_many(self, X: Any, *, ids: Any = None, record: bool = True) -> NDArray[Any]:
        """Predict the classes of many rows: the same as `predict_one` in a loop.

        Parameters
        ----------
        X : array_like, mapping of columns, list of dicts, or data frame
            The features, as for `learn_many`.
        ids : sequence, optional
            The id of each row, as for `predict_one`.
        record : bool
            As for `predict_one`.

        Returns
        -------
        ndarray, shape (n,)
            The labels: of int64 or bool if all classes are so, otherwise of objects.
        """
        with self._turns:
            ratings, own = self._rated(X, _keys(ids), record), self._classifier
            classes = own._held.classes
            if own._parameters["cost"] is None:
                return label_array(classes, chosen(ratings, len(classes)))
            return label_array(classes, self._told(ratings)[0])

    def predict_proba_many(self, X: Any, *, ids: Any = None, record: bool = True) -> FloatArray:
        """Return the probabilities of classes for many rows.

        Parameters
        ----------
        X, ids, record
            As for `predict_many`.

        Returns
        -------
        ndarray of float, shape (n, classes)
            A column for each of `classes_`.
        """
        with self._turns:
            return self._told(self._rated(X, _keys(ids), record))[1]

    def predict_set_many(
        self, X: Any, level: float = 0.9, *, ids: Any = None, record: bool = True
    ) -> NDArray[np.bool_]:
        """Return the prediction sets of many rows.

        Parameters
        ----------
        X : array_like, mapping of columns, list of dicts, or data frame
            The features, as for `learn_many`.
        level, ids, record
            As for `predict_set_one`.

        Returns
        -------
        ndarray of bool, shape (n, classes)
            Whether the set of a row holds each of `classes_`.
        """
        with self._turns:
            least = self._threshold(level)
            found = self.predict_proba_many(X, ids=ids, record=record)
            sets = found >= least
            if found.shape[1]:
                sets[np.arange(len(found)), found.argmax(axis=1)] = True
            return sets

    def predict_learn_many(
        self, X: Any, y: Any, w: ArrayLike | None = None, *, delayed: bool = False, ids: Any = None
    ) -> Any:
        """Predict the class of each row before it is learned: the prequential loop.

        Parameters
        ----------
        X, y, w
            As for `learn_many`.
        delayed : bool
            Whether the rows were predicted before: then the model is scored by the predictions
            that were issued, not by those that are returned.
        ids : sequence, optional
            The id of each row, as for `learn_many`.

        Returns
        -------
        ndarray, shape (n,)
            What `predict_one` would have returned for each row just before `learn_one`.
        """
        with self._turns:
            codes, _ = self._learn_batch(X, y, w, _keys(ids), delayed=delayed, returns=True)
            return label_array(self._classifier._held.classes, codes)

    def predict_proba_learn_many(
        self, X: Any, y: Any, w: ArrayLike | None = None, *, delayed: bool = False, ids: Any = None
    ) -> FloatArray:
        """Return what `predict_learn_many` does as probabilities of `classes_`.

        A class has the probability 0 up to the row that brings it.

        Parameters
        ----------
        X, y, w, delayed, ids
            As for `predict_learn_many`.
        """
        return self._learn_batch(X, y, w, _keys(ids), delayed=delayed, returns=True)[1]

    def decide(self, probabilities: ArrayLike) -> IntArray:
        """Return the predicted classes for some probabilities: the columns of `classes_`.

        Parameters
        ----------
        probabilities : array_like of float, shape (n, classes)
            As `predict_proba_many` returns them.

        Returns
        -------
        ndarray of int, shape (n,)
            The class with the highest probability or, given `cost`, with the smallest expected
            cost.
        """
        found = np.asarray(probabilities, np.float64)
        return np.maximum(self._decided(found, found), 0)

    # -- ratings ----------------------------------------------------------------------------------

    def _told(self, ratings: FloatArray) -> tuple[IntArray, FloatArray]:
        """Return the codes of predicted classes, and the probabilities of all, given ratings."""
        held = self._classifier._held
        known = len(held.classes)
        found: FloatArray = held.calibrator.probabilities(ratings, known)[:, :known]
        return self._decided(ratings, found), found

    def _decided(self, ratings: FloatArray, probabilities: FloatArray) -> IntArray:
        """Return the codes of predicted classes: of the highest rating, or of the least cost."""
        own = self._classifier
        known, costs = probabilities.shape[1], own._parameters["cost"]
        if costs is None or not known:
            return chosen(ratings, known)
        return cheapest(probabilities, cost_matrix(costs, own._held.classes[:known]))

    def _threshold(self, level: Any) -> float:
        """Return the least probability of a class in prediction sets of a level."""
        found = validation.number(level, "level")
        if not 0.0 < found < 1.0:
            raise ValueError(
                f"level = {validation.shown(level)} must be between 0 and 1, both excluded"
            )
        least: float = self._classifier._held.calibrator.threshold(found)
        return least


def _keys(ids: Any) -> Any:
    """Return the keys of ids, if there are any."""
    return None if ids is None else keys_of(ids)
