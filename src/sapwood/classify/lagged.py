"""Lags around a classifier: earlier labels and earlier numbers as features of a row."""

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sapwood import validation
from sapwood.classify.classifier import Classifier
from sapwood.classify.labels import class_label, coded, is_missing, label_values
from sapwood.classify.not_offered import NotOffered
from sapwood.classify.row_methods import ClassRowMethods
from sapwood.corrector._pending import key_of_row
from sapwood.corrector.tokens import EMPTY
from sapwood.lags.lags import LaggedRows, Lags
from sapwood.lags.model import LaggedModel
from sapwood.lags.spans import Spans
from sapwood.stages.order import check_order
from sapwood.stages.rows import rows_of
from sapwood.stages.stage import passed_on, rows_learned
from sapwood.validation import Label

__all__ = ["LaggedClassifier"]

NO_NUMBERS = "its model predicts classes, not numbers"

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class ClassLags(Lags):
    """Lags whose target is a class: labels are remembered by their places among the classes.

    A lag of the label is a category: the label as text.
    """

    _classifier: Classifier | None = None

    @classmethod
    def around(cls, lags: Lags, classifier: Classifier) -> Self:
        """Return a copy of some lags for a classifier.

        Raises
        ------
        ValueError
            If they have means of labels, or remember labels that the classifier has not learned.
        """
        if not isinstance(lags.target, str):
            raise ValueError(
                f"target = {validation.shown(lags.target)}: classes are those of one target"
            )
        if lags.parameters["means"]:
            raise ValueError(
                f"means = {validation.shown(lags.parameters['means'])}: labels of classes have no "
                "mean; give lags=, or means_of= columns of numbers"
            )
        made = cls.from_state(*lags.to_state())
        made._classifier = classifier
        made._check_past()
        return made

    def _check_past(self) -> None:
        """Raise ValueError unless the remembered labels can be places among the classes."""
        if None not in self._sources:
            return
        depth, place = self._history.depth, self._sources.index(None)
        codes = self._history.values[:, place * depth : (place + 1) * depth]
        codes = codes[~np.isnan(codes)]
        if ((codes < 0) | (codes != np.floor(codes)) | (codes >= max(1, len(self._texts)))).any():
            raise ValueError("the lags remember labels that the classifier has not learned")

    @property
    def _codes(self) -> Mapping[Label, int]:
        return {} if self._classifier is None else self._classifier._held.codes

    @property
    def _texts(self) -> list[str]:
        return [str(label) for label in self._codes]

    @property
    def label_features(self) -> set[Label]:
        """The names of the features that are labels of classes."""
        return self.own_features

    def next_row(self, x: Mapping[Any, Any]) -> dict[Any, Any]:
        """Return the next row with its lags, None where one is not known."""
        row, texts = super().next_row(x), self._texts
        for name in self.own_features:
            code = row[name]
            row[name] = texts[int(code)] if code is not None and code < len(texts) else None
        return row

    def plan(self, X: Any, y: Any = None) -> LaggedRows:
        """Return rows with their lags, and a plan that adds the rows when `push` is called."""
        values, texts = None, self._texts
        if y is not None:
            y = label_values(y)
            is_known = np.array([not is_missing(label) for label in y], np.bool_)
            known = [label for label, there in zip(y, is_known, strict=True) if there]
            own = coded(known, self._codes)
            values, texts = np.full(len(y), np.nan), [str(label) for label in own.classes]
            values[is_known] = own.codes
        plan = super().plan(X, values)
        names = np.array([*texts, None], object)
        labels: dict[Label, Any] = {
            name: names[np.where(codes < len(texts), codes, len(texts)).astype(np.int64)]
            for name, codes in plan.lags.items()
            if name in self.own_features
        }
        return plan._replace(lags={**plan.lags, **labels})

    def _labels_one(self, y: Any) -> list[float]:
        """Return the place of a label among the classes; nothing is changed."""
        if is_missing(y):
            return [math.nan]
        return [float(self._codes.get(class_label(y), len(self._codes)))]


class LaggedClassifier(ClassRowMethods, LaggedModel):
    """A classifier with lag features, which are computed, stored and saved with it.

    Parameters
    ----------
    model : HoeffdingTreeClassifier, AdaptiveTreeClassifier or ForestClassifier
        It learns rows that have lags.
    lags : Lags, or int, str or sequence of such
        The lag features; the object is copied. ``[1, 2]`` stands for ``Lags([1, 2])``. Lags of the
        target are categories: the labels of earlier rows, as text. Lags and means of other columns
        are numbers.

    Notes
    -----
    Ids, delayed labels and the order of rows are as of `sapwood.lags.LaggedModel`: a row that is
    predicted with an id is added to the earlier rows immediately, any other row when it is learned.
    A row without a label is added too, with an unknown label.

    Examples
    --------
    >>> import sapwood
    >>> from sapwood.classify import LaggedClassifier
    >>> from sapwood.lags import Lags
    >>> model = LaggedClassifier(sapwood.HoeffdingTreeClassifier(), Lags([1, 2], target="light"))
    >>> for number in range(900):
    ...     model.learn_one({}, ["green", "yellow", "red"][number % 3])
    >>> model.predict_one({})
    'green'
    >>> model.model.features
    ['light.lag1', 'light.lag2']
    """

    kind = "LaggedClassifier"
    format = 5
    task: ClassVar[str] = "classes"

    def __init__(self, model: Classifier, lags: Lags | Spans) -> None:
        super().__init__(model, lags)
        if not isinstance(model, Classifier):
            raise ValueError(
                f"model = {validation.shown(model)}: a classifier of Sapwood is expected; lags of "
                "numbers are those of sapwood.lags.LaggedModel"
            )
        self._lags = ClassLags.around(self._lags, model)

    @property
    def model(self) -> Any:
        """The classifier inside, whose rows have their lags."""
        return self._model

    @model.setter
    def model(self, model: Any) -> None:
        check_order(self.kind, model)
        if not isinstance(model, Classifier):
            raise ValueError(f"model = {validation.shown(model)}: a classifier is expected")
        with self._turn():
            known = self._model.classes
            if model.classes[: len(known)] != known:
                raise ValueError(
                    f"the first classes of the new model are not those of the old one, {known}: "
                    "the lags remember labels in that order"
                )
            lags = ClassLags.around(self._lags, model)
            self._set_model(model)
            self._lags = lags

    several_targets: ClassVar[bool] = False
    classes = passed_on("The labels seen so far, in the order of their first rows.")
    classes_ = passed_on("The same as `classes`, as an array.")
    class_weights = passed_on("The weight of the rows of each class that were learned.")
    rows_unlabelled = passed_on("How many rows without a label there were.")
    predict, learn, forecast, forecast_path, of_target = (NotOffered(NO_NUMBERS) for _ in range(5))

    @property
    def _classifier(self) -> Any:
        return self._model

    # -- learning ---------------------------------------------------------------------------------

    def _learn_row(self, x: dict[Any, Any], y: Any, w: float, key: int) -> None:
        x = self._encoded_one(x)
        with self._turns:
            if key in self._pending:
                self._learn_pending_one(x, y, w, key)
                return
            row, plan = self._lags.plan_one(x, y)
            own = key or key_of_row(x) or EMPTY
            learn = lambda: self._let_learn(row, y, w, own)  # noqa: E731
            self._both(learn, plan.push, lambda: plan.is_due)

    def _let_learn(self, row: dict[Any, Any], y: Any, w: float, key: int) -> None:
        self._model._learn_row(row, y, w, key)

    @property
    def _progress(self) -> tuple[float | None, int]:
        with self._model._turn():  # rows without a label count too
            return rows_learned(self._model), self._model.rows_unlabelled

    def _learn_batch(
        self, X: Any, y: Any, w: ArrayLike | None, keys: Any, *, delayed: bool, returns: bool
    ) -> tuple[IntArray, FloatArray]:
        y = label_values(y)

        def learn(rows: Any, y: Any, keys: Any) -> tuple[IntArray, FloatArray]:
            found: tuple[IntArray, FloatArray] = self._model._learn_batch(
                rows, y, w, keys, delayed=delayed, returns=returns
            )
            return found

        with self._turn():
            if self._are_pending(keys):
                return self._learn_ratings_each(X, y, w, keys, returns=returns)
            found: tuple[IntArray, FloatArray] = self._learn_rows(learn, X, y, keys)
            return found

    def _learn_ratings_each(
        self, X: Any, y: Any, w: Any, keys: Any, *, returns: bool
    ) -> tuple[IntArray, FloatArray]:
        """Learn rows of which some are past already, one by one."""
        weights, rows = validation.weights(w, len(y)).tolist(), rows_of(self._encoded(X))
        if not len(rows) == len(y) == len(keys):
            raise ValueError(
                f"X has {len(rows)} rows, y {len(y)} values and there are {len(keys)} ids: the "
                "lengths must agree"
            )
        codes, told = [], []
        for x, label, weight, key in zip(rows, y, weights, keys.tolist(), strict=True):
            if returns:
                code, found = self._told(_table([self._rated_one(x, key, False)]))
                codes.append(code)
                told.append(found)
            self._learn_row(x, label, weight, key)
        width = len(self._model.classes)
        wide = [np.pad(each, ((0, 0), (0, width - each.shape[1]))) for each in told]
        return np.concatenate([np.zeros(0, np.int64), *codes]), np.vstack(
            [np.zeros((0, width)), *wide]
        )

    # -- predicting -------------------------------------------------------------------------------

    def _rated_one(self, x: dict[Any, Any], key: int, record: bool) -> list[float]:
        found: list[float] = self._ask(
            x, key, record, lambda row, own: self._model._rated_one(row, own, record)
        )
        return found

    def _rated(self, X: Any, keys: Any, record: bool) -> FloatArray:
        with self._turn():
            if keys is None:
                plan, own = self._planned(X)
                found: FloatArray = self._model._rated(plan.in_kind, own, record)
                return found
            rows = rows_of(self._encoded(X))
            validation.check_ids(keys, len(rows))
            pairs = zip(rows, keys.tolist(), strict=True)
            return _table([self._rated_one(x, key, record) for x, key in pairs])


def _table(ratings: list[list[float]]) -> FloatArray:
    """Return the ratings of single rows as those of a batch, in two columns or more."""
    found = np.zeros((len(ratings), max([2, *map(len, ratings)])))
    for row, own in zip(found, ratings, strict=True):
        row[: len(own)] = own
    return found
