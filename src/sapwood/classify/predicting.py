"""How classifiers rate rows, and what of it waits for labels."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sapwood import validation
from sapwood.classify._calibration import Calibrator
from sapwood.classify.decisions import checked_costs, checked_weighting
from sapwood.classify.growth import ClassGrowth
from sapwood.classify.held import Held, new_pending
from sapwood.classify.leaves import check_leaf, inner_leaf, leaf_bayes, values_of
from sapwood.classify.ratings import ratings_of, ratings_of_one
from sapwood.classify.row_methods import ClassRowMethods
from sapwood.corrector._pending import key_of_row, keys_of_columns
from sapwood.regressor import Regressor
from sapwood.rows import frames
from sapwood.stages import EncodedBatch, Stage

__all__ = ["OWN_BYTES", "PredictingClassifier"]

FloatArray = NDArray[np.float64]

OWN_PARAMETERS = ("grace_period", "max_bytes", "class_weight", "cost", "merit")
OWN_BYTES = 4096  # of a classifier, without its model and what is pending
MODEL_SHARE = 0.8  # of max_bytes that the model may occupy


class PredictingClassifier(ClassRowMethods, Stage):
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

    @property
    def _classifier(self) -> "PredictingClassifier":
        return self

    def _rated_one(self, x: dict[Any, Any], key: int, record: bool) -> list[float]:
        x = self._encoded_one(x)
        with self._turns:
            held = self._held
            known = len(held.classes)
            ratings, _ = self._rated_in_leaf(x, key, record)
            if record and known:
                note = np.zeros(held.pending.width)
                note[0], note[1 : 1 + known] = held.calibrator.labels, ratings
                held.pending.put_key(key or key_of_row(x), note)
            elif record and not key:
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

    def _rated(self, X: Any, keys: Any, record: bool) -> FloatArray:
        X = self._encoded(frames.lasting(X))
        with self._turns:
            held = self._held
            known = len(held.classes)
            predictions: FloatArray
            leaves: Any
            predictions, leaves = held.model._place_many(X, keys, record)
            ratings = ratings_of(predictions, known)
            if held.bayes is not None and known:
                held.bayes.rate(*values_of(held.model, X), leaves, ratings)
            if record and known and len(ratings):
                notes = np.empty((len(ratings), held.pending.width))
                notes[:, 0], notes[:, 1:] = held.calibrator.labels, ratings
                keys = self._keys(X, len(ratings)) if keys is None else keys
                validation.check_ids(keys, len(ratings))
                held.pending.put_keys(np.ascontiguousarray(keys), notes)
            elif record and keys is None:
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


def _of_classifier(error: ValueError, limit: int | None, own: int | None) -> ValueError:
    """Return an error of the model inside in terms of the classifier's own parameters."""
    start = f"max_bytes = {own}"
    if limit is None or not str(error).startswith(start):
        return error
    return ValueError(
        f"max_bytes = {limit}, of which the trees have {own}{str(error).removeprefix(start)}"
    )
