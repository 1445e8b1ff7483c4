"""Batch learners, which are fitted on the rows of a window, and the models they return.

`LightGBM` and `HistGradientBoosting` are known by name, so that a file can name them. Anything else
with `fit` and `predict` serves as well; a file then names its class, and it has to be given again
after loading.
"""

import copy
import inspect
import json
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from sapwood import validation
from sapwood.hybrid.trees import flattened

__all__ = [
    "LEARNERS",
    "BatchLearner",
    "EstimatorLearner",
    "Fitted",
    "HistGradientBoosting",
    "LightGBM",
    "default_learner",
    "fitted",
    "learner_of",
    "reject_classifier",
]

FloatArray = NDArray[np.float64]
DEFAULTS = {
    **{"objective": "regression", "seed": 1},
    **{"bagging_fraction": 0.8, "bagging_freq": 1, "feature_fraction": 0.8},
}
ALIASES = {
    "objective": ("objective_type", "app", "application", "loss"),
    "seed": ("random_seed", "random_state"),
    "bagging_fraction": ("sub_row", "subsample", "bagging"),
    "bagging_freq": ("subsample_freq",),
    "feature_fraction": ("sub_feature", "colsample_bytree"),
}
"""Other names of LightGBM for these parameters, which it ignores if both are given."""
REPEATABLE = {"deterministic": True, "force_row_wise": True, "num_threads": 1, "verbosity": -1}


class Fitted(Protocol):
    """A model of one target that predicts encoded rows."""

    def predict(self, X: FloatArray) -> FloatArray:
        """Predict rows."""


class BatchLearner(Protocol):
    """What is fitted on encoded rows."""

    @property
    def name(self) -> str:
        """Its name, or that of its class."""

    @property
    def parameters(self) -> dict[str, Any]:
        """What makes a learner like this one, in terms of JSON."""

    def fit(self, X: FloatArray, y: FloatArray, w: FloatArray | None) -> Fitted:
        """Return a model of rows; the same rows give the same model.

        Parameters
        ----------
        X : ndarray of float, shape (n, features)
            The features: numbers, codes of categories, NaN where a value is missing.
        y : ndarray of float, shape (n,)
            The target.
        w : ndarray of float, shape (n,), optional
            Weights, if they are not all 1.
        """


class LightGBM:
    """LightGBM's gradient boosting.

    By default 100 trees, each of 80 % of the rows and of the features, in one thread: this takes
    0.1 to 0.4 seconds for 20,000 rows.

    Parameters
    ----------
    rounds : int
        The number of trees.
    **parameters
        Parameters of LightGBM that replace the defaults.
    """

    name: ClassVar[str] = "lightgbm"

    def __init__(self, rounds: int = 100, **parameters: Any) -> None:
        _needed("lightgbm", "lightgbm", "hybrid")
        self._rounds = validation.whole(rounds, "rounds", 1, 100_000)
        self._given = _of_json(parameters, "LightGBM")

    @property
    def parameters(self) -> dict[str, Any]:
        """The arguments that were given."""
        return {"rounds": self._rounds, **self._given}

    def fit(self, X: FloatArray, y: FloatArray, w: FloatArray | None) -> Fitted:
        """Return the trees of rows."""
        lightgbm = import_module("lightgbm")
        given = self._given
        own = {n: v for n, v in DEFAULTS.items() if not any(each in given for each in ALIASES[n])}
        parameters = {**own, **REPEATABLE, **given}
        rows = lightgbm.Dataset(X, y, weight=w, params=parameters)
        return fitted(lightgbm.train(parameters, rows, self._rounds))


class HistGradientBoosting:
    """The histogram gradient boosting of scikit-learn, in one thread.

    Parameters
    ----------
    **parameters
        Of `sklearn.ensemble.HistGradientBoostingRegressor`.
    """

    name: ClassVar[str] = "hist_gradient_boosting"

    def __init__(self, **parameters: Any) -> None:
        _needed("sklearn", "scikit-learn", "sklearn")
        self._given = _of_json(parameters, "HistGradientBoosting")

    @property
    def parameters(self) -> dict[str, Any]:
        """The arguments that were given."""
        return dict(self._given)

    def fit(self, X: FloatArray, y: FloatArray, w: FloatArray | None) -> Fitted:
        """Return the trees of rows."""
        kind = import_module("sklearn.ensemble").HistGradientBoostingRegressor
        model = kind(**{"random_state": 1, "early_stopping": False, **self._given})
        # It cannot bin a column without any value; a constant one is never split.
        X = np.where(np.isnan(X).all(axis=0), 0.0, X)
        # Several threads take minutes on a busy machine, as each is blocked by the others.
        with import_module("threadpoolctl").threadpool_limits(1):
            return fitted(model.fit(X, y, sample_weight=w))


class EstimatorLearner:
    """Any estimator with `fit` and `predict`, such as those of scikit-learn; a copy is fitted.

    Parameters
    ----------
    estimator : object
        Should give the same model for the same rows, as by a fixed random_state.
    """

    def __init__(self, estimator: Any) -> None:
        reject_classifier(estimator)
        if not all(callable(getattr(estimator, each, None)) for each in ("fit", "predict")):
            raise TypeError(
                f"batch = {validation.shown(estimator)}: {', '.join(LEARNERS)} or an estimator with fit "
                "and predict is expected"
            )
        self.name = f"{type(estimator).__module__}.{type(estimator).__qualname__}"
        self._estimator = estimator
        self._weighted = _takes_weights(estimator.fit)

    @property
    def parameters(self) -> dict[str, Any]:
        """Nothing: it has to be given again."""
        return {}

    def fit(self, X: FloatArray, y: FloatArray, w: FloatArray | None) -> Fitted:
        """Return a copy that is fitted."""
        model = _unfitted(self._estimator)
        weights = {} if w is None or not self._weighted else {"sample_weight": w}
        return fitted(model.fit(X, y, **weights) or model)


LEARNERS: dict[str, Callable[..., BatchLearner]] = {
    LightGBM.name: LightGBM,
    HistGradientBoosting.name: HistGradientBoosting,
}


def learner_of(batch: Any) -> BatchLearner:
    """Return the learner that a parameter names, or is.

    Raises
    ------
    ValueError, TypeError
        If it is none.
    ModuleNotFoundError
        If its library is not installed.
    """
    if isinstance(batch, str):
        if batch not in LEARNERS:
            raise ValueError(
                f"batch = {validation.shown(batch)}: {', '.join(LEARNERS)} or an estimator is expected"
            )
        return LEARNERS[batch]()
    if isinstance(batch, LightGBM | HistGradientBoosting | EstimatorLearner):
        return batch
    return EstimatorLearner(batch)


def default_learner() -> BatchLearner:
    """Return LightGBM where it is installed, else scikit-learn's histogram gradient boosting."""
    if find_spec("lightgbm") is None and find_spec("sklearn") is not None:
        return HistGradientBoosting()
    return LightGBM()


def reject_classifier(batch: Any) -> None:
    """Raise TypeError if an estimator predicts classes, as those of scikit-learn report it."""
    tagged = hasattr(batch, "__sklearn_tags__") and not isinstance(batch, type)
    if hasattr(batch, "predict_proba") or (
        tagged and batch.__sklearn_tags__().estimator_type == "classifier"
    ):
        raise TypeError(
            f"batch = {validation.shown(batch)}: a hybrid predicts numbers, and this estimator "
            "predicts classes; give a regressor, such as LGBMRegressor()"
        )


def fitted(model: Any) -> Fitted:
    """Return a fitted model as flat trees where it can be, else itself."""
    trees = flattened(model)
    return trees if trees is not None else _Foreign(model)


class _Foreign:
    """A fitted model of another library."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def predict(self, X: FloatArray) -> FloatArray:
        """Predict rows."""
        return np.asarray(self._model.predict(X), np.float64).reshape(-1)


def _unfitted(estimator: Any) -> Any:
    if hasattr(estimator, "get_params") and find_spec("sklearn") is not None:
        return import_module("sklearn.base").clone(estimator)
    return copy.deepcopy(estimator)


def _takes_weights(fit: Any) -> bool:
    try:
        return "sample_weight" in inspect.signature(fit).parameters
    except (TypeError, ValueError):
        return False


def _of_json(parameters: dict[str, Any], learner: str) -> dict[str, Any]:
    """Return parameters, if they are what a file can hold."""
    try:
        return dict(json.loads(json.dumps(parameters)))
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"a parameter of {learner} cannot be saved ({error}): numbers, texts and lists of them "
            "are expected; give an estimator instead"
        ) from None


def _needed(module: str, package: str, extra: str) -> None:
    if find_spec(module) is None:
        raise ModuleNotFoundError(
            f"{package} is not installed: pip install 'sapwood[{extra}]'", name=module
        )
