"""What all classifiers share: labels in, probabilities out, and a multi-target model inside."""

import sys
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sapwood import validation
from sapwood.classify import classifier_state
from sapwood.classify._calibration import Calibrator
from sapwood.classify.decisions import (
    cheapest,
    checked_costs,
    checked_weighting,
    cost_matrix,
    weighted,
)
from sapwood.classify.growth import ClassGrowth
from sapwood.classify.labels import (
    CodedLabels,
    class_label,
    coded,
    is_missing,
    label_array,
    label_values,
    missing_labels,
)
from sapwood.classify.parts import check_rows, part_of, rows_at
from sapwood.classify.widening import restore_latest, widened
from sapwood.corrector._pending import Notes, key_of_id, key_of_row, keys_of_columns, keys_of_ids
from sapwood.model import State
from sapwood.regressor import Regressor
from sapwood.rows import frames, targets
from sapwood.stages import EncodedBatch, Stage
from sapwood.stages.stage import passed_on
from sapwood.tasks import CLASSES
from sapwood.tree.memory import most_notes
from sapwood.validation import Label

if TYPE_CHECKING:
    from sapwood.inspect.rules import RuleSet

__all__ = ["Classifier", "Held"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

OWN_PARAMETERS = ("grace_period", "max_bytes", "class_weight", "cost")
OWN_BYTES = 4096  # of a classifier beside its model and what is pending
MODEL_SHARE = 0.8  # of max_bytes that the model may occupy


class Held(NamedTuple):
    """All that changes when a class appears: built aside, and then put in place as one."""

    model: Regressor
    classes: tuple[Label, ...]
    codes: dict[Label, int]
    calibrator: Calibrator
    pending: Notes
    counts: FloatArray  # the weight of each class as it was given, for balanced weights
    unlabelled: int = 0  # rows without a label


class Classifier(Stage):
    """A model that predicts the class of a row, and the probability of each class.

    Parameters
    ----------
    parameters : dict
        The arguments that make an empty model like this one.
    """

    several_targets: ClassVar[bool] = False
    task: ClassVar[str] = "classes"
    regressor: ClassVar[type[Regressor]]

    def __init__(self, parameters: dict[str, Any]) -> None:
        super().__init__()
        self._sooner = parameters["grace_period"] is None
        own = {name: each for name, each in parameters.items() if name not in OWN_PARAMETERS}
        if not self._sooner:
            own["grace_period"] = parameters["grace_period"]
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
        self._parameters["class_weight"] = checked_weighting(parameters["class_weight"])
        self._parameters["cost"] = checked_costs(parameters["cost"])
        if not self._sooner:
            self._parameters["grace_period"] = model.parameters["grace_period"]
        self._held = Held(model, (), {}, Calibrator(), self._new_pending(2), np.zeros(2))

    def _new_pending(self, width: int) -> Notes:
        """Return a memory of ratings of so many classes that wait for their labels."""
        limit = self._parameters["max_bytes"]
        return Notes(1 + width, most_notes(None if limit is None else limit // 2, 1 + width))

    # -- learning -----------------------------------------------------------------------------------

    def learn_one(self, x: dict[Any, Any], y: Any, w: float = 1.0, *, id: Any = None) -> None:
        """Learn one row.

        Parameters
        ----------
        x : dict
            The features: numbers, bools, strings; None, NaN or nothing where a value is missing.
        y : str, int or bool
            The label of its class, which may be a new one at any row; 1.0 is 1. None or NaN if it
            is not known: the row is counted by `rows_unlabelled`, its prediction is no longer
            pending, and nothing is learned.
        w : float
            The weight of the row: positive and finite.
        id : str, int, or tuple of such, optional
            The id by which the row was predicted, if its label is delayed. Without one, the
            prediction is found by the row itself; of equal rows, in the order of predictions.

        Raises
        ------
        ValueError, OverflowError
            If a value is not as described; nothing is changed then.
        """
        if type(y) is not str and is_missing(y):
            self._leave_unlabelled(x, id)
            return
        label = y if type(y) is str else class_label(y)
        x = self._encoded_one(x)
        weight = w if type(w) is float else validation.number(w, "w")
        given = 0 if id is None else key_of_id(id)
        with self._turns:
            held = self._held
            code = held.codes.get(label)
            if code is None:
                own = CodedLabels(
                    (*held.classes, class_label(label)), np.array([len(held.classes)]), [0]
                )
                ids = np.array([given], np.uint64) if given else None
                self._learn_new([x], own, np.array([weight]), ids, True)
                return
            model, calibrator, known = held.model, held.calibrator, len(held.classes)
            ratings = _ratings_one(model._place_one(x, given, False)[0], known)
            key = given or (key_of_row(x) if self._awaits else 0)
            labels, counts = calibrator.labels, held.counts
            if self._parameters["class_weight"] is not None and weight > 0:
                scaled, counts = self._weighted(held, np.array([code]), np.array([weight]))
                weight = float(scaled[0])

            def learn() -> None:
                if known < 3:
                    model._learn_row(x, float(code), weight, given)
                else:
                    row = np.zeros((1, known))
                    row[0, code] = 1.0
                    model._learn_targets_one(x, targets.Targets(None, row), weight, given)

            def finish() -> None:
                held.counts[:] = counts
                calibrator.score_one(ratings, known, code, weight, held.pending, key)

            self._both(learn, finish, lambda: calibrator.labels == labels)

    def _leave_unlabelled(self, x: dict[Any, Any], id: Any) -> None:
        """Count a row without a label; its prediction no longer waits for one."""
        x, given = self._encoded_one(x), 0 if id is None else key_of_id(id)
        keys = np.array([given or key_of_row(x)], np.uint64)
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

    def learn_many(self, X: Any, y: Any, w: ArrayLike | None = None, *, ids: Any = None) -> None:
        """Learn many rows: the same as `learn_one` in a loop, or nothing at all.

        Parameters
        ----------
        X : array_like, mapping of columns, list of dicts, or data frame
            The features, as for a regressor.
        y : array_like or series, shape (n,)
            The labels: strings, whole numbers or bools; None or NaN where one is not known.
        w : array_like or series of float, shape (n,), optional
            The weights; 1 each if not given.
        ids : sequence, optional
            The id of each row, as for `learn_one`.
        """
        self._learn(X, y, w, ids, delayed=True, returns=False)

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
        with self._turn():
            found = self._learn(X, y, w, ids, delayed=delayed, returns=True)
            return label_array(self._held.classes, found[0])

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
        return self._learn(X, y, w, ids, delayed=delayed, returns=True)[1]

    def _learn(
        self, X: Any, y: Any, w: ArrayLike | None, ids: Any, *, delayed: bool, returns: bool
    ) -> tuple[IntArray, FloatArray]:
        """Learn rows; return the codes and probabilities of just before, if they are wanted."""
        y = label_values(y)
        weights = validation.weights(w, len(y))
        given = _keys_of(ids)
        X = self._encoded(frames.lasting(X))
        missing = missing_labels(y)
        with self._turn():
            if missing is None:
                return self._learn_labelled(X, y, weights, given, delayed=delayed, returns=returns)
            check_rows(X, len(weights))
            if returns or self._awaits:
                return self._learn_runs(X, y, weights, given, missing=missing, delayed=delayed)
            at = np.flatnonzero(~missing)
            ids, lost = None if given is None else given[at], int(missing.sum())
            X, y, weights = rows_at(X, at), rows_at(y, at), weights[at]
            return self._learn_labelled(
                X, y, weights, ids, delayed=delayed, returns=False, unlabelled=lost
            )

    def _learn_labelled(
        self,
        X: Any,
        y: Any,
        weights: FloatArray,
        given: Any,
        *,
        delayed: bool,
        returns: bool,
        unlabelled: int = 0,
    ) -> tuple[IntArray, FloatArray]:
        """Learn rows, of which all have labels; there were others without, which are counted."""
        own = coded(y, self._held.codes)
        if own.firsts:
            return self._learn_new(X, own, weights, given, delayed, unlabelled=unlabelled)
        keys = None
        if delayed and self._awaits:
            keys = self._keys(X, len(weights)) if given is None else given
        return self._learn_known(
            X,
            own.codes,
            weights,
            given,
            keys,
            delayed=delayed,
            returns=returns,
            unlabelled=unlabelled,
        )

    def _learn_runs(
        self,
        X: Any,
        y: list[Any],
        weights: FloatArray,
        given: Any,
        *,
        missing: NDArray[np.bool_],
        delayed: bool,
    ) -> tuple[IntArray, FloatArray]:
        """Learn rows with and without labels in their order; what they change is built aside."""
        keys = self._keys(X, len(weights)) if given is None else given
        aside = type(self)(**self._parameters)
        aside._held = self._copied()
        found: list[tuple[IntArray, FloatArray]] = []
        ends = [*(np.flatnonzero(np.diff(missing)) + 1).tolist(), len(missing)]
        for start, end in zip([0, *ends[:-1]], ends, strict=True):
            part, ids = part_of(X, start, end), None if given is None else given[start:end]
            if not missing[start]:
                own = weights[start:end]
                found.append(
                    aside._learn_labelled(
                        part, y[start:end], own, ids, delayed=delayed, returns=True
                    )
                )
                continue
            ratings, known = aside._rated(part, ids, record=False), len(aside._held.classes)
            told = aside._held.calibrator.probabilities(ratings, known)[:, :known]
            found.append((aside._decided(ratings, told), told))
            aside._forget(keys[start:end])
        lost = int(missing.sum())
        self._held = aside._held._replace(unlabelled=self._held.unlabelled + lost)
        width = len(self._held.classes)
        tables = [np.pad(p, ((0, 0), (0, width - p.shape[1]))) for _, p in found]
        return np.concatenate([codes for codes, _ in found]), np.concatenate(tables)

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
            return _chosen(ratings, known)
        return cheapest(probabilities, cost_matrix(costs, self._held.classes[:known]))

    def _learn_known(
        self,
        X: Any,
        codes: IntArray,
        weights: FloatArray,
        given: Any,
        keys: Any,
        *,
        delayed: bool,
        returns: bool,
        scored: int | None = None,
        unlabelled: int = 0,
    ) -> tuple[IntArray, FloatArray]:
        """Learn rows of known classes; of the first one of a class, only those before are scored."""
        held = self._held
        known, calibrator = len(held.classes), held.calibrator
        values = CLASSES.columns(codes, known)
        before = np.empty(values.shape)
        labels = calibrator.labels
        weights, counts = self._weighted(held, codes, weights)
        found: list[Any] = []

        def learn() -> None:
            own = targets.Targets(None, values)
            held.model._learn_into(X, own, weights, before, keys=given, delayed=delayed)

        def finish() -> None:
            held.counts[:] = counts
            self._held = held._replace(unlabelled=held.unlabelled + unlabelled)
            found.append(
                calibrator.score_many(
                    _ratings(before, known),
                    known if scored is None else scored,
                    codes,
                    weights,
                    held.pending,
                    keys,
                    returns=returns,
                )
            )

        self._both(learn, finish, lambda: len(codes) > 0 and calibrator.labels == labels)
        if not returns:
            return codes, before
        told = found[0][:, :known]
        return self._decided(_ratings(before, known), told), told

    def _learn_new(
        self,
        X: Any,
        own: CodedLabels,
        weights: FloatArray,
        given: Any,
        delayed: bool,
        *,
        unlabelled: int = 0,
    ) -> tuple[IntArray, FloatArray]:
        """Learn rows that bring new classes: all that they change is built aside."""
        check_rows(X, len(weights))
        keys = self._keys(X, len(weights)) if given is None else given
        known, rows = len(self._held.classes), len(weights)
        aside = type(self)(**self._parameters)
        # Widening builds all of it aside, but there is nothing to widen up to the second class.
        aside._held = self._held if own.firsts[0] == 0 and delayed and known > 1 else self._copied()
        predicted = np.full(rows, -1, np.int64)
        probabilities = np.zeros((rows, len(own.classes)))

        def learn(start: int, end: int, **how: Any) -> tuple[IntArray, FloatArray]:
            ids = None if given is None else given[start:end]
            own_keys = keys[start:end] if how["delayed"] else None
            weight, codes = weights[start:end], own.codes[start:end]
            return aside._learn_known(part_of(X, start, end), codes, weight, ids, own_keys, **how)

        starts = [0, *(row for row in own.firsts if row > 0)]
        for first, end in zip(starts, [*starts[1:], rows], strict=True):
            start = first
            if first in own.firsts:
                # As in a loop: it is predicted, unless it was before, and its label comes then.
                ids = None if given is None else given[start : start + 1]
                ratings = aside._rated(part_of(X, start, start + 1), ids, record=not delayed)
                told = aside._held.calibrator.probabilities(ratings, known)[:, :known]
                predicted[start], probabilities[start, :known] = (
                    aside._decided(ratings, told)[0],
                    told[0],
                )
                aside._widen(own.classes[: known + 1])
                learn(start, start + 1, delayed=True, returns=False, scored=known)
                known, start = known + 1, start + 1
            if start < end:
                predicted[start:end], found = learn(start, end, delayed=delayed, returns=True)
                probabilities[start:end, :known] = found
        after = self._held.unlabelled + unlabelled
        self._held = aside._held._replace(unlabelled=after)
        return predicted, probabilities

    def _copied(self) -> Held:
        """Return an independent copy of all that a new class changes."""
        held = self._held
        own = self._new_pending(held.pending.width - 1)
        own.restore(*held.pending.state())
        return held._replace(
            model=held.model.copy(),
            calibrator=held.calibrator.copy(),
            pending=own,
            counts=held.counts.copy(),
        )

    def _widen(self, classes: tuple[Label, ...]) -> None:
        """Know one class more; nobody else sees this classifier yet."""
        held, known = self._held, len(classes)
        model, calibrator, pending = held.model, held.calibrator, held.pending
        if known > 2:
            first, second = calibrator.class_weights[:2].tolist()
            model = widened(model, second / (first + second))
            sizes, keys, ages, contents = pending.state()
            pending = self._new_pending(known)
            contents = np.hstack(
                [contents, np.zeros((len(contents), known + 1 - contents.shape[1]))]
            )
            restore_latest(pending, sizes, keys, ages, contents)
        model._use_growth(ClassGrowth(known, self._sooner))
        calibrator = calibrator.copy()
        calibrator.widen(known)
        codes = {label: code for code, label in enumerate(classes)}
        counts = np.pad(held.counts, (0, max(2, known) - len(held.counts)))
        self._held = Held(model, classes, codes, calibrator, pending, counts, held.unlabelled)

    # -- predicting -----------------------------------------------------------------------------

    def predict_one(self, x: dict[Any, Any], *, id: Any = None, record: bool = True) -> Any:
        """Predict the class of one row; the prediction is kept until its label comes.

        Parameters
        ----------
        x : dict
            The features, as for `learn_one`.
        id : str, int, or tuple of such, optional
            By which `learn_one` will find the prediction when the label comes; see there.
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
                return self._held.classes[_highest(ratings)] if ratings else None
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
            ratings = self._rated(X, _keys_of(ids), record)
            classes, known = self._held.classes, len(self._held.classes)
            if self._parameters["cost"] is None:
                return label_array(classes, _chosen(ratings, known))
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
            ratings, known = self._rated(X, _keys_of(ids), record), len(self._held.classes)
            found: FloatArray = self._held.calibrator.probabilities(ratings, known)
            return found[:, :known]

    def _rated_one(self, x: dict[Any, Any], id: Any, record: bool) -> list[float]:
        """Return how each class is rated for a row."""
        given, x = 0 if id is None else key_of_id(id), self._encoded_one(x)
        held = self._held
        known = len(held.classes)
        ratings = _ratings_one(held.model._place_one(x, given, record)[0], known)
        if record and known:
            note = np.zeros(held.pending.width)
            note[0], note[1 : 1 + known] = held.calibrator.labels, ratings
            held.pending.leave_key(given or key_of_row(x), note)
        elif record and not given:
            held.pending.leave_blanks(1)
        return ratings

    def _rated(self, X: Any, given: Any, record: bool) -> FloatArray:
        """Return how each class is rated for rows, given the keys of their ids."""
        X, held = self._encoded(frames.lasting(X)), self._held
        known = len(held.classes)
        ratings = _ratings(held.model._place_many(X, given, record)[0], known)
        if record and known and len(ratings):
            notes = np.empty((len(ratings), held.pending.width))
            notes[:, 0], notes[:, 1:] = held.calibrator.labels, ratings
            keys = self._keys(X, len(ratings)) if given is None else given
            if len(keys) != len(ratings):
                raise ValueError(
                    f"ids has {len(keys)} values and X has {len(ratings)} rows: the lengths must "
                    "agree"
                )
            held.pending.leave_keys(np.ascontiguousarray(keys), notes)
        elif record and given is None:
            held.pending.leave_blanks(len(ratings))
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

    # -- what it is -------------------------------------------------------------------------------

    @property
    def model(self) -> Regressor:
        """The regressor inside: of one target with two classes, of one for each with more."""
        return self._held.model

    @property
    def classes(self) -> list[Label]:
        """The labels seen so far, in the order of their first rows."""
        return list(self._held.classes)

    @property
    def classes_(self) -> NDArray[Any]:
        """The same as `classes`, as an array: the columns of `predict_proba_many`."""
        classes = self._held.classes
        return label_array(classes, np.arange(len(classes)))

    @property
    def class_weights(self) -> dict[Label, float]:
        """The weight of the rows of each class that were learned."""
        with self._turn():
            weights = self._held.calibrator.class_weights.tolist()
            return dict(zip(self._held.classes, weights, strict=False))

    @property
    def rows_unlabelled(self) -> int:
        """How many rows without a label there were; nothing was learned of them."""
        return self._held.unlabelled

    @property
    def parameters(self) -> dict[str, Any]:
        """The arguments that make an empty model like this one."""
        return dict(self._parameters)

    @property
    def nbytes(self) -> int:
        """Bytes that the model occupies, and predictions that wait for their labels."""
        with self._turn():
            held = self._held
            names = sum(map(sys.getsizeof, held.classes)) + sys.getsizeof(held.codes)
            own = 5 * held.calibrator.class_weights.nbytes + names
            return held.model.nbytes + held.pending.nbytes + max(own, OWN_BYTES)

    features = passed_on("The names of the features, in the order of their first appearance.")
    feature_kinds = passed_on('What each feature is: "number", "category", …; as of a regressor.')
    feature_importances = passed_on("The share of each feature in what the model explains.")
    n_leaves = passed_on("How many leaves the model has.")
    summary = passed_on("The trees in a few numbers; `print` it to read it.")
    draw = passed_on("Return the tree as an SVG picture, as of a regressor.")

    def to_rules(self) -> "RuleSet":
        """Return one rule for each leaf, those of most rows first; `print` them to read them.

        A rule has the share of each class in its leaf. Of a forest they are the rules of the member
        that has the smallest error of late.

        Returns
        -------
        RuleSet
            A sequence of `sapwood.inspect.rules.ClassRule`.
        """
        from sapwood.inspect.rule_reading import class_rules_of

        with self._turn():
            model: Any = self._held.model
            return class_rules_of(model._one_tree(), self._held.classes)

    def to_text(self, max_depth: int | None = None, digits: int = 4) -> str:
        """Return the trees as indented text, after a line that names the classes of leaves.

        Parameters
        ----------
        max_depth : int, optional
            How deep; all by default.
        digits : int
            Significant digits of numbers.
        """
        with self._turn():
            classes = list(self._held.classes)
            told = str(self._held.model.to_text(max_depth, digits))
        if len(classes) < 2:
            return told
        if len(classes) == 2:
            line = f"leaves: share of class {classes[1]!r}; the rest is {classes[0]!r}"
        else:
            named = ", ".join(f"{code} is {label!r}" for code, label in enumerate(classes))
            line = f"leaves: share of each class, where {named}"
        return f"{line}\n{told}"

    def __repr__(self) -> str:
        default: dict[str, Any] = type(self)()._parameters  # type: ignore[call-arg]
        arguments = ", ".join(
            f"{name}={value!r}"
            for name, value in self._parameters.items()
            if repr(value) != repr(default[name])
        )
        size = f"{len(self._held.classes)} classes, {self.model._size()}"
        return f"<{self.kind}({arguments}): {size}, {int(self.rows_learned or 0)} rows learned>"

    # -- its state --------------------------------------------------------------------------------

    def to_state(self) -> State:
        """Return all that the classifier is, as between two rows."""
        with self._turn():
            return classifier_state.state_of(self)

    def to_bytes(self) -> bytes:
        """Return what `save` would write."""
        with self._turn():
            return super().to_bytes()

    @classmethod
    def from_state(cls, state: State, format: int) -> Self:
        """Restore what `to_state` returned; nothing of it is trusted."""
        return classifier_state.restored(cls, state)


def _keys_of(ids: Any) -> Any:
    return None if ids is None else keys_of_ids(ids)


def _ratings(predictions: FloatArray, known: int) -> FloatArray:
    """Return the ratings of classes, given the predictions of the model inside."""
    if predictions.ndim == 2:
        return np.ascontiguousarray(predictions)
    if known > 2:  # of a model that has learned nothing
        return np.zeros((len(predictions), known))
    second = np.clip(predictions, 0.0, 1.0)
    return np.column_stack([1.0 - second, second])


def _ratings_one(prediction: Any, known: int) -> list[float]:
    """Return what `_ratings` does for one row, of as many classes as there are."""
    if isinstance(prediction, dict):
        return list(prediction.values())
    if known > 2:
        return [0.0] * known
    second = min(max(prediction, 0.0), 1.0)
    return [1.0 - second, second][:known]


def _highest(ratings: list[float]) -> int:
    """Return the first class of the highest rating; ratings beyond 0 and 1 are as these."""
    held = [min(max(rating, 0.0), 1.0) for rating in ratings]
    return held.index(max(held))


def _chosen(ratings: FloatArray, known: int) -> IntArray:
    """Return what `_highest` does for many rows; -1 before any class is known."""
    if not known:
        return np.full(len(ratings), -1, np.int64)
    found: IntArray = np.clip(ratings[:, :known], 0.0, 1.0).argmax(axis=1)
    return found


def _of_classifier(error: ValueError, limit: int | None, own: int | None) -> ValueError:
    """Return an error of the model inside in terms of the classifier's own parameters."""
    start = f"max_bytes = {own}"
    if limit is None or not str(error).startswith(start):
        return error
    return ValueError(
        f"max_bytes = {limit}, of which the trees have {own}{str(error).removeprefix(start)}"
    )
