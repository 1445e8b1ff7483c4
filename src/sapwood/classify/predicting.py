"""What classifiers predict: classes, probabilities, and what of it waits for labels."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sapwood import validation
from sapwood.classify._calibration import Calibrator
from sapwood.classify.decisions import cheapest, checked_costs, checked_weighting, cost_matrix
from sapwood.classify.growth import ClassGrowth
from sapwood.classify.held import Held, new_pending
from sapwood.classify.labels import label_array
from sapwood.classify.leaves import check_leaf, inner_leaf, leaf_bayes, values_of
from sapwood.classify.ratings import chosen, highest, ratings_of, ratings_of_one
from sapwood.corrector import tokens
from sapwood.corrector._pending import key_of_row, keys_of_columns
from sapwood.regressor import Regressor
from sapwood.rows import frames
from sapwood.stages import EncodedBatch, Stage
from sapwood.validation import Label

__all__ = ["OWN_BYTES", "PredictingClassifier", "keys_of"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

OWN_PARAMETERS = ("grace_period", "max_bytes", "class_weight", "cost", "merit")
OWN_BYTES = 4096  # of a classifier, without its model and what is pending
MODEL_SHARE = 0.8  # of max_bytes that the model may occupy


class PredictingClassifier(Stage):
    """The part of a classifier that predicts.

    Parameters
    ----------
    parameters : dict
        The arguments that make an empty model like this one.
    """

    regressor: ClassVar[type[Regressor]]

    def __init__(self, parameters: dict[str, Any]) -> None:
        super().__init__()
        sooner, merit = parameters["grace_period"] is None, parameters.get("merit")
        check_leaf(parameters, self.regressor)
        self._growth = ClassGrowth(0, sooner, merit)
        own = {name: each for name, each in parameters.items() if name not in OWN_PARAMETERS}
        if not sooner:
            own["grace_period"] = parameters["grace_period"]
        own["leaf"] = inner_leaf(own["leaf"])
        own["max_bytes"] = None  # also for a forest, which is limited by default
        if parameters["max_bytes"] is not None:
            limit = validation.whole(parameters["max_bytes"], "max_bytes", 1, 2**62)
            own["max_bytes"] = max(1, int(MODEL_SHARE * limit) - OWN_BYTES)
        try:
            model = self.regressor(**own)
        except ValueError as error:
            raise _of_classifier(error, parameters["max_bytes"], own.get("max_bytes")) from None
        self._parameters = {
            name: each if name in OWN_PARAMETERS else model.parameters[name]
            for name, each in parameters.items()
        }
        self._parameters["leaf"] = parameters["leaf"]
        self._parameters["class_weight"] = checked_weighting(parameters["class_weight"])
        self._parameters["cost"] = checked_costs(parameters["cost"])
        if not sooner:
            self._parameters["grace_period"] = model.parameters["grace_period"]
        pending, bayes = new_pending(2, self._limit), leaf_bayes(parameters["leaf"])
        self._held = Held(model, (), {}, Calibrator(), pending, np.zeros(2), bayes=bayes)

    @property
    def _limit(self) -> int | None:
        """The bytes that the classifier may occupy."""
        limit: int | None = self._parameters["max_bytes"]
        return limit

    @property
    def model(self) -> Regressor:
        """The regressor inside: of one target with two classes, of one for each with more."""
        return self._held.model

    def predict_one(self, x: dict[Any, Any], *, id: Any = None, record: bool = True) -> Any:
        """Predict the class of one row; the prediction is pending until its label arrives.

        Parameters
        ----------
        x : dict
            The features, as for `learn_one`.
        id : str, int, or tuple of such, optional
            By which `learn_one` will find the prediction when the label arrives; see there.
        record : bool
            Whether the prediction is kept; if not, the model is not scored by it. To get both the
            class and probabilities of a row, keep one of them.

        Returns
        -------
        str, int or bool
            The label; None before the first label was learned.
        """
        with self._turns:
            ratings = self._rated_one(x, id, record)
            if self._parameters["cost"] is None or not ratings:
                return self._held.classes[highest(ratings)] if ratings else None
            told = np.array([self._held.calibrator.probabilities_of(ratings)])
            return self._held.classes[int(self._decided(told, told)[0])]

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
            ratings = self._rated_one(x, id, record)
            found = self._held.calibrator.probabilities_of(ratings)
            return dict(zip(self._held.classes, found, strict=True))

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
        with self._turn():
            ratings = self._rated(X, keys_of(ids), record)
            classes, known = self._held.classes, len(self._held.classes)
            if self._parameters["cost"] is None:
                return label_array(classes, chosen(ratings, known))
            told = self._held.calibrator.probabilities(ratings, known)[:, :known]
            return label_array(classes, self._decided(ratings, told))

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
        with self._turn():
            ratings, known = self._rated(X, keys_of(ids), record), len(self._held.classes)
            found: FloatArray = self._held.calibrator.probabilities(ratings, known)
            return found[:, :known]

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
            Labels, that of the highest probability first.
        """
        with self._turns:
            least = self._held.calibrator.threshold(_checked_level(level))
            found = self._held.calibrator.probabilities_of(self._rated_one(x, id, record))
            if not found:
                return []
            order = sorted(range(len(found)), key=lambda place: -found[place])
            held = [place for place in order[1:] if found[place] >= least]
            return [self._held.classes[place] for place in (order[0], *held)]

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
        with self._turn():
            least = self._held.calibrator.threshold(_checked_level(level))
            found = self.predict_proba_many(X, ids=ids, record=record)
            sets = found >= least
            if found.shape[1]:
                sets[np.arange(len(found)), found.argmax(axis=1)] = True
            return sets

    def decide(self, probabilities: ArrayLike) -> IntArray:
        """Return the predicted classes for some probabilities: the columns of `classes_`.

        Parameters
        ----------
        probabilities : array_like of float, shape (n, classes)
            As `predict_proba_many` returns them.

        Returns
        -------
        ndarray of int, shape (n,)
            The class of the highest probability or, given `cost`, of the least expected cost.
        """
        found = np.asarray(probabilities, np.float64)
        return np.maximum(self._decided(found, found), 0)

    def _decided(self, ratings: FloatArray, probabilities: FloatArray) -> IntArray:
        """Return the codes of predicted classes: of the highest rating, or of the least cost."""
        known, costs = probabilities.shape[1], self._parameters["cost"]
        if costs is None or not known:
            return chosen(ratings, known)
        return cheapest(probabilities, cost_matrix(costs, self._held.classes[:known]))

    def _rated_one(self, x: dict[Any, Any], id: Any, record: bool) -> list[float]:
        """Return how each class is rated for a row."""
        given, x = 0 if id is None else tokens.key_of(id), self._encoded_one(x)
        held = self._held
        known = len(held.classes)
        ratings, _ = self._rated_in_leaf(x, given, record)
        if record and known:
            note = np.zeros(held.pending.width)
            note[0], note[1 : 1 + known] = held.calibrator.labels, ratings
            held.pending.put_key(given or key_of_row(x), note)
        elif record and not given:
            held.pending.add_unrecorded(1)
        return ratings

    def _rated_in_leaf(self, x: Any, given: int, record: bool) -> tuple[list[float], Any]:
        """Return how each class is rated for a row.

        If leaves rate by naive Bayes, also the leaf and how the tree rates each class, as arrays.
        """
        held = self._held
        known = len(held.classes)
        if held.bayes is None or not known:
            return ratings_of_one(held.model._predict_by_key(x, given, record), known), None
        prediction, node = held.model._place_one(x, given, record)
        leaf, shares = np.array([node], np.int32), np.zeros((1, held.bayes.classes))
        shares[0, :known] = ratings_of_one(prediction, known)
        ratings = shares.copy()
        held.bayes.rate(*values_of(held.model, x, one=True), leaf, ratings)
        return ratings[0, :known].tolist(), (leaf, shares)

    def _rated(self, X: Any, given: Any, record: bool) -> FloatArray:
        """Return how each class is rated for rows, given the keys of their ids."""
        X, held = self._encoded(frames.lasting(X)), self._held
        known = len(held.classes)
        predictions: FloatArray
        leaves: Any
        predictions, leaves = held.model._place_many(X, given, record)
        ratings = ratings_of(predictions, known)
        if held.bayes is not None and known:
            held.bayes.rate(*values_of(held.model, X), leaves, ratings)
        if record and known and len(ratings):
            notes = np.empty((len(ratings), held.pending.width))
            notes[:, 0], notes[:, 1:] = held.calibrator.labels, ratings
            keys = self._keys(X, len(ratings)) if given is None else given
            if len(keys) != len(ratings):
                raise ValueError(
                    f"ids has {len(keys)} values and X has {len(ratings)} rows: the lengths must "
                    "agree"
                )
            held.pending.put_keys(np.ascontiguousarray(keys), notes)
        elif record and given is None:
            held.pending.add_unrecorded(len(ratings))
        return ratings

    @property
    def _awaits(self) -> bool:
        """Whether any prediction waits for its label."""
        pending = self._held.pending
        return bool(pending.count or pending.unrecorded)

    def _keys(self, X: Any, rows: int) -> Any:
        """Return by what rows are known that have no ids: their own values."""
        batch = EncodedBatch.of(X, names=self._held.model.features)
        return batch.token if len(batch.columns) else keys_of_columns({}, rows)


def keys_of(ids: Any) -> Any:
    """Return the keys of ids, if there are any."""
    return None if ids is None else tokens.keys_of(ids)


def _of_classifier(error: ValueError, limit: int | None, own: int | None) -> ValueError:
    """Return an error of the model inside in terms of the classifier's own parameters."""
    start = f"max_bytes = {own}"
    if limit is None or not str(error).startswith(start):
        return error
    return ValueError(
        f"max_bytes = {limit}, of which the trees have {own}{str(error).removeprefix(start)}"
    )


def _checked_level(level: Any) -> float:
    found = validation.number(level, "level")
    if not 0.0 < found < 1.0:
        raise ValueError(
            f"level = {validation.shown(level)} must be between 0 and 1, both excluded"
        )
    return found
