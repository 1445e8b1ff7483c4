"""A model that learns a transformed target, and predicts the target itself."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sapwood import validation
from sapwood.model import State, from_bytes
from sapwood.regressor import Regressor
from sapwood.row_methods import array_for
from sapwood.rows import frames
from sapwood.stages.one_target import OneTargetStage, checked_model, labels_of
from sapwood.stages.stage import Stage, passed_on, rows_learned
from sapwood.transform import _transform

__all__ = ["TransformedRegressor"]

FloatArray = NDArray[np.float64]
Transform = Literal["sqrt", "log1p", "auto"]

TRANSFORMS = (*_transform.CODES, "auto")
AUTO = "sqrt"  # which "auto" combines with the identity
LEAST = {"sqrt": 0.0, "log1p": -1.0}
"""What y has to be at least; of log1p, above."""
INNER, STATE = "model {}", "state"


class TransformedRegressor(OneTargetStage):
    """A model of the square root or the logarithm of the target, for counts and skewed targets.

    The model inside learns the transformed y. Predictions are means of y, not the inverse of the
    model's prediction: the errors of earlier rows count too (smearing). They are never below the
    smallest y seen, so counts are not negative.

    Parameters
    ----------
    model : HoeffdingTreeRegressor, AdaptiveTreeRegressor or ForestRegressor
        A model of Sapwood of one target that has learned nothing yet.
    transform : {"auto", "sqrt", "log1p"}
        "sqrt" is for counts: y must be at least 0. "log1p" is log(1 + y), for targets whose
        standard deviation is proportional to their mean; y must be above -1. "auto" combines two
        copies of the model, one of y and one of its square root, by their errors; it takes twice
        the time.

    References
    ----------
    N. Duan, "Smearing estimate: a nonparametric retransformation method", Journal of the American
    Statistical Association 78, 1983.

    Examples
    --------
    >>> import numpy as np, sapwood
    >>> rng = np.random.default_rng(1)
    >>> x = rng.uniform(0, 3, 4_000)
    >>> model = sapwood.TransformedRegressor(sapwood.HoeffdingTreeRegressor(), "log1p")
    >>> model.learn_many({"x": x}, rng.poisson(np.exp(x)).astype(float))
    >>> bool(6.5 < model.predict_one({"x": 2.0}) < 8.5)
    True
    """

    kind: ClassVar[str] = "TransformedRegressor"
    format: ClassVar[int] = 1

    def __init__(self, model: Any, transform: Transform = "auto") -> None:
        if transform not in TRANSFORMS:
            known = ", ".join(map(repr, TRANSFORMS))
            raise ValueError(
                f"transform = {validation.shown(transform)}: one of {known} is expected"
            )
        first = checked_model(model, "the transformed model")
        if rows_learned(first):
            raise ValueError("the model has learned y itself: transform the target of a new one")
        super().__init__()
        self._transform = transform
        self._name: str = AUTO if transform == "auto" else transform
        self._models = [first, first.copy()] if transform == "auto" else [first]
        self._state = np.zeros(_transform.STATE)

    @property
    def model(self) -> Any:
        """The model of the transformed target; of "auto" that of the target itself."""
        return self._models[0]

    @property
    def transform(self) -> str:
        """Which transform it is."""
        return self._transform

    # -- learning and predicting ------------------------------------------------------------------

    def _place_one(self, x: dict[Any, Any], key: int = 0, record: bool = True) -> tuple[float, int]:
        x = self._encoded_one(x)
        with self._turn():
            found = [model._place_one(x, key, record) for model in self._models]
            members = np.array([[prediction for prediction, _ in found]])
            return float(self._combined(members)[0]), found[-1][1]

    def _learn_row(self, x: dict[Any, Any], y: Any, w: float, key: int) -> None:
        label, weight = validation.number(y, "y"), validation.number(w, "w")
        own, x = self._labels(np.array([label])), self._encoded_one(x)
        with self._turn():
            found = [model._place_one(x, key, False)[0] for model in self._models]
            calls = [
                partial(model._learn_row, x, float(t[0]), weight, key)
                for model, t in zip(self._models, own, strict=True)
            ]
            members, weights = np.array([found]), np.array([weight])
            self._learn_all(calls, members, np.array([label]), weights, np.empty(1))

    def _place_many(
        self, X: Any, keys: Any = None, record: bool = True
    ) -> tuple[FloatArray, NDArray[np.int32] | None]:
        X = frames.lasting(self._encoded(X))
        with self._turn():
            found = [model._place_many(X, keys, record) for model in self._models]
            members = np.column_stack([predictions for predictions, _ in found])
            return self._combined(np.ascontiguousarray(members)), found[-1][1]

    def _learn_many(
        self,
        X: Any,
        y: Any,
        w: ArrayLike | None,
        keys: Any,
        *,
        delayed: bool,
        predicting: bool | FloatArray = True,
        regions: Any = None,
    ) -> FloatArray:
        X = frames.lasting(self._encoded(X))
        labels = labels_of(y, "a transform is for one; use a model for each")
        own = self._labels(labels)
        weights = np.ascontiguousarray(validation.weights(w, len(labels)))
        before = np.empty((len(self._models), len(labels)))
        with self._turn():
            last = len(self._models) - 1
            calls = [
                partial(
                    model._learn_into,
                    *(X, t, weights, before[place], regions if place == last else None),
                    keys=keys,
                    delayed=delayed,
                )
                for place, (model, t) in enumerate(zip(self._models, own, strict=True))
            ]
            found = array_for(predicting, labels.shape)
            self._learn_all(calls, before.T, labels, weights, found)
        return found

    # -- all of it --------------------------------------------------------------------------------

    def _labels(self, y: FloatArray) -> list[FloatArray]:
        """Return the targets of the models inside, if y has a transform."""
        least, is_open = LEAST[self._name], self._name == "log1p"
        bad = y <= least if is_open else y < least
        if bad.any():
            place, bound = int(np.argmax(bad)), "above" if is_open else "at least"
            raise ValueError(
                f"y = {y[place]:g} at position {place}: {self._name} needs y {bound} {least:g}; drop "
                "the row, shift the target, or use the model without a transform"
            )
        found = np.empty(len(y))
        _transform.transformed(self._name, np.ascontiguousarray(y), found)
        return [y, found] if len(self._models) == 2 else [found]

    def _combined(self, members: FloatArray) -> FloatArray:
        found = np.empty(len(members))
        _transform.predict(self._name, self._state, members, found)
        return found

    def _learn_all(
        self,
        calls: Sequence[Callable[[], Any]],
        members: FloatArray,
        y: FloatArray,
        w: FloatArray,
        found: FloatArray,
    ) -> None:
        """Let all models learn, and the sums of errors after them: all, or none.

        `members` may be filled by the calls.
        """
        rows = rows_learned(self.model) or 0.0
        known = self._state

        def finish() -> None:
            for call, model in zip(calls[1:], self._models[1:], strict=True):
                if rows_learned(model) == rows:
                    call()
            own = np.ascontiguousarray(members), np.ascontiguousarray(y), np.ascontiguousarray(w)
            state = known.copy()  # an interruption may let this begin again
            _transform.learn(self._name, state, *own, rows, found)
            self._state = state

        self._both(calls[0], finish, lambda: self._state is known)

    # -- looking inside ---------------------------------------------------------------------------

    to_rules = passed_on(
        "Return one rule for each leaf; with sqrt and log1p their numbers are of the transformed y."
    )

    @property
    def nbytes(self) -> int:
        """Bytes of the models inside, and of the sums of errors."""
        with self._turn():
            return sum(model.nbytes for model in self._models) + self._state.nbytes

    def __repr__(self) -> str:
        return f"<TransformedRegressor({self.model!r}, {self.transform!r})>"

    # -- files ------------------------------------------------------------------------------------

    def to_state(self) -> State:
        """Return all that the models are, and the sums of errors."""
        with self._turn():
            arrays: dict[str, NDArray[Any]] = {
                INNER.format(place): np.frombuffer(model.to_bytes(), np.uint8)
                for place, model in enumerate(self._models)
            }
            return State({"transform": self._transform}, {**arrays, STATE: self._state.copy()})

    @classmethod
    def from_state(cls, state: State, format: int) -> Self:
        """Restore what `to_state` returned; nothing of it is trusted.

        Raises
        ------
        ValueError, TypeError
            If there is anything wrong with it.
        """
        header, arrays = state
        if header.keys() != {"transform"} or header["transform"] not in TRANSFORMS:
            raise ValueError("its header has other entries than it should")
        names = [INNER.format(place) for place in range(2 if header["transform"] == "auto" else 1)]
        if arrays.keys() != {*names, STATE}:
            raise ValueError("its arrays are not those of a transformed model")
        models = [from_bytes(arrays[name].tobytes(), "the transformed model") for name in names]
        for model in models:
            if not isinstance(model, Regressor) or (model.several_targets and model.targets):
                raise ValueError("a model inside is none of one target")
        if len({rows_learned(model) for model in models}) > 1:
            raise ValueError("its models have learned different rows")
        made = cls.__new__(cls)
        Stage.__init__(made)
        made._transform, made._models = header["transform"], models
        made._name = AUTO if made._transform == "auto" else made._transform
        made._state = _checked_state(arrays[STATE])
        return made


def _checked_state(saved: NDArray[Any]) -> FloatArray:
    """Return the sums of errors of a file, if they can be such."""
    if saved.dtype != np.float64 or saved.shape != (_transform.STATE,):
        raise ValueError("the sums of errors are not as they were saved")
    state = np.array(saved, np.float64)
    if not (np.isfinite(state).all() and (state[[0, 2, 5, 7, 8]] >= 0.0).all()):
        raise ValueError("the sums of errors cannot be")
    return state
