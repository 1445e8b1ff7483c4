"""What all classifiers share: labels in, probabilities out, and a multi-target model inside."""

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray

from sapwood import validation
from sapwood.classify import classifier_state
from sapwood.classify.explanation import ClassExplanation
from sapwood.classify.labels import label_array
from sapwood.classify.learning import LearningClassifier
from sapwood.classify.leaves import inner_leaf
from sapwood.classify.predicting import OWN_BYTES
from sapwood.model import State
from sapwood.regressor import Regressor
from sapwood.stages.stage import passed_on
from sapwood.validation import Label

if TYPE_CHECKING:
    from sapwood.inspect.draw import Drawing
    from sapwood.inspect.rules import RuleSet

__all__ = ["Classifier"]

CALIBRATED = 13  # numbers that a calibration keeps of each class, and computes with


class Classifier(LearningClassifier):
    """A model that predicts the class of a row, and the probability of each class.

    Parameters
    ----------
    parameters : dict
        The arguments that make an empty model like this one.
    """

    several_targets: ClassVar[bool] = False
    task: ClassVar[str] = "classes"

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
        """The number of rows without a label. They are counted, but not learned."""
        return self._held.unlabelled

    @property
    def parameters(self) -> dict[str, Any]:
        """The arguments that make an empty model like this one."""
        return dict(self._parameters)

    @property
    def nbytes(self) -> int:
        """Bytes that the model and its pending predictions occupy."""
        with self._turn():
            held = self._held
            names = sum(map(sys.getsizeof, held.classes)) + sys.getsizeof(held.codes)
            calibrator = held.calibrator
            own = CALIBRATED * calibrator.class_weights.nbytes + calibrator.sets.nbytes + names
            own = max(own, OWN_BYTES) + (0 if held.bayes is None else held.bayes.nbytes)
            return held.model.nbytes + held.pending.nbytes + own

    features = passed_on("The names of the features, in the order of their first appearance.")
    feature_kinds = passed_on('What each feature is: "number", "category", …; as of a regressor.')
    feature_importances = passed_on("The share of each feature in what the model explains.")
    n_leaves = passed_on("The number of leaves of the model.")
    summary = passed_on("The trees in a few numbers; `print` it to read it.")

    @property
    def no_splits(self) -> tuple[Label, ...]:
        """The names of features that no leaf splits on; others can be assigned at any time.

        Splits that there are stay: see `prune`.
        """
        model: Any = self.model
        found: tuple[Label, ...] = model.no_splits
        return found

    @no_splits.setter
    def no_splits(self, names: Iterable[Label]) -> None:
        with self._turn():
            model: Any = self._held.model
            own, turn = self._parameters, self._turns

            def finish() -> None:
                own["no_splits"] = model.parameters["no_splits"]

            turn.unfinished = finish, lambda: True
            model.no_splits = names
            finish()
            turn.unfinished = None

    def prune(self, node: int, member: int | None = None) -> NDArray[np.int32]:
        """Turn a node into a leaf again, as `HoeffdingTreeRegressor.prune` does.

        Parameters
        ----------
        node : int
            Its number, as in `model.to_frame` or, of a forest, `model.member(member).to_frame`.
        member : int, optional
            Which member of a forest, from 0.

        Returns
        -------
        array of int
            The new number of each node; for removed nodes, the number of the new leaf.

        Raises
        ------
        ValueError
            If there is no such node, if it is a leaf, or if leaves predict by naive Bayes.
        """
        with self._turn():
            self._check_no_bayes("their tables cannot be joined to those of one leaf")
            model: Any = self._held.model
            found: NDArray[np.int32] = model.prune(node, *(() if member is None else (member,)))
            return found

    def explain(self, x: dict[Any, Any], most: int = 3) -> ClassExplanation:
        """Explain the ratings of classes for a row; `print` the result to read it.

        Features contribute to the rating of each class. Contributions to probabilities do not
        exist, as calibration makes them of all ratings together.

        Parameters
        ----------
        x : dict
            The features, as for `predict_one`.
        most : int
            How many classes are explained: those of the highest probability. Of two classes, the
            rating of the second is explained; that of the first is 1 minus it.

        Raises
        ------
        ValueError
            If leaves predict by naive Bayes.

        Examples
        --------
        >>> import numpy as np, sapwood
        >>> rng = np.random.default_rng(1)
        >>> X = {"temp": rng.normal(15, 8, 2000), "wind": rng.random(2000)}
        >>> model = sapwood.HoeffdingTreeClassifier()
        >>> model.learn_many(X, np.where(X["temp"] > 18, "clear", "rain"))
        >>> found = model.explain({"temp": 30.0, "wind": 0.5})
        >>> sorted(found.probabilities), list(found.ratings)
        (['clear', 'rain'], ['clear'])
        >>> found.ratings["clear"].prediction > 0.9
        True
        """
        most = validation.whole(most, "most", 1, 2**31)
        with self._turn():
            self._check_no_bayes("their ratings are no sums of contributions")
            found = self.predict_proba_one(x, record=False)
            classes, model = self._held.classes, cast(Any, self._held.model)
            x = self._encoded_one(x)
            if len(classes) < 3:
                ratings = {classes[1]: model.explain(x)} if len(classes) == 2 else {}
                return ClassExplanation(found, ratings)
            shown = sorted(range(len(classes)), key=lambda code: -found[classes[code]])[:most]
            return ClassExplanation(
                found, {classes[code]: model.explain(x, code) for code in shown}
            )

    def _check_no_bayes(self, reason: str) -> None:
        if self._held.bayes is not None:
            leaf = self._parameters["leaf"]
            raise ValueError(f"leaf = {leaf!r}: {reason}; pass another leaf, as 'majority'")

    def anomaly_score_one(self, x: dict[Any, Any]) -> float:
        """Return how unusual a row is: 0 is usual, 1 is unlike all rows that were learned.

        Parameters
        ----------
        x : dict
            The features, as for `predict_one`; classes do not matter. See
            `HoeffdingTreeRegressor.anomaly_score_one`.
        """
        return self._model_of_anomalies().anomaly_score_one(x)

    def anomaly_score_many(self, X: Any) -> NDArray[np.float64]:
        """Return how unusual each row is: the same as `anomaly_score_one` in a loop.

        Parameters
        ----------
        X : array_like, mapping of columns, list of dicts, or data frame
            The features, as for `predict_many`.
        """
        return self._model_of_anomalies().anomaly_score_many(X)

    def _model_of_anomalies(self) -> Regressor:
        """Return the model inside, whose leaves know where their rows are."""
        leaf = self._parameters["leaf"]
        if inner_leaf(leaf) == "mean":
            raise ValueError(
                f"leaf = {leaf!r}: anomaly scores need linear models (leaf='adaptive' or 'linear')"
            )
        return self.model

    def draw(
        self, max_depth: int | None = 5, *, label: Label | None = None, **options: Any
    ) -> "Drawing":
        """Return a picture of the tree, in SVG, with the share of one class in each node.

        Forests have no picture: draw a member, as in ``forest.model.member(0).draw()``.

        Parameters
        ----------
        max_depth : int, optional
            Nodes at this depth are shown without the nodes below them.
        label : str, int or bool, optional
            The class: of two classes the second, of more by default the most frequent one.
        **options
            As for `sapwood.inspect.draw.draw`: digits, target, orientation.

        Returns
        -------
        sapwood.inspect.draw.Drawing
            Notebooks show it; `svg` is its text.

        Raises
        ------
        ValueError
            If the label is not known, or is the first of two.

        Examples
        --------
        >>> import numpy as np, sapwood
        >>> x = np.random.default_rng(1).random(2000)
        >>> model = sapwood.HoeffdingTreeClassifier()
        >>> model.learn_many({"x": x}, np.where(x > 0.6, "high", np.where(x > 0.3, "mid", "low")))
        >>> model.draw(label="low")
        Drawing(... x ... pixels)
        """
        with self._turn():
            held = self._held
            model: Any = held.model
            shown = held.classes[1:] if len(held.classes) == 2 else held.classes
            if len(held.classes) > 1:
                weights = self.class_weights
                label = max(shown, key=lambda own: weights[own]) if label is None else label
                if label not in shown:
                    raise ValueError(
                        f"label = {validation.shown(label)}: the picture shows one of {list(shown)}"
                    )
                options = {"target": str(label)} | options
            if len(held.classes) > 2:
                model = model._tree_of(held.codes[cast(Label, label)])
            drawing: Drawing = model.draw(max_depth, **options)
            return drawing

    def to_rules(self) -> "RuleSet":
        """Return one rule for each leaf, ordered by the number of rows; `print` shows them.

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

    def merge(self, other: "Classifier") -> "Classifier":
        """Return a forest with the trees of two classifiers that have learned different rows.

        All trees go on learning; they weigh by the rows that each has learned until labels decide.
        The error-correction layer is reset, and predictions that wait for labels are dropped. Both
        models stay as they are.

        Parameters
        ----------
        other : HoeffdingTreeClassifier or ForestClassifier
            A classifier with the same parameters. It may know other classes. If both models know
            the same two classes, their order must be the same.

        Returns
        -------
        ForestClassifier
            Of all classes, those of this model first.

        Raises
        ------
        sapwood.merge.MergeError
            If they cannot be one model.
        """
        from sapwood.classify.merging import merged

        return merged(self, other)

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
        return classifier_state.restored(cls, state, format)
