"""A model that learns a transformed target, and predicts the target itself."""

from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from sapwood import validation
from sapwood.model import State
from sapwood.stages.one_target import (
    LabelledRows,
    OneTargetStage,
    check_entries,
    checked_model,
    checked_numbers,
)
from sapwood.stages.stage import passed_on, rows_learned
from sapwood.transform import _transform

__all__ = ["TransformedRegressor"]

FloatArray = NDArray[np.float64]
Transform = Literal["sqrt", "log1p", "auto"]

TRANSFORMS = (*_transform.CODES, "auto")
AUTO = "sqrt"  # which "auto" combines with the identity
LEAST = {"sqrt": 0.0, "log1p": -1.0}
"""What y has to be at least; of log1p, above."""
STATE = "state"


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
    _one = "a transform is for one; use a model for each"
    _numbered = True

    def __init__(self, model: Any, transform: Transform = "auto") -> None:
        if transform not in TRANSFORMS:
            known = ", ".join(map(repr, TRANSFORMS))
            raise ValueError(
                f"transform = {validation.shown(transform)}: one of {known} is expected"
            )
        first = checked_model(model, "the transformed model")
        super().__init__()
        self._transform = transform
        self._name: str = AUTO if transform == "auto" else transform
        self._models: list[Any] = [first, first.copy()] if transform == "auto" else [first]
        self._state = np.zeros(_transform.STATE)

    @property
    def model(self) -> Any:
        """The model of the transformed target; of "auto" that of the target itself."""
        return self._models[0]

    def _inside(self) -> list[Any]:
        return self._models

    @property
    def transform(self) -> str:
        """Which transform it is."""
        return self._transform

    # -- learning and predicting ------------------------------------------------------------------

    def _predicted(self, rows: Any, record: bool) -> tuple[FloatArray, Any]:
        found = [rows.place(model, record) for model in self._models]
        members = np.ascontiguousarray(np.array([predictions for predictions, _ in found]).T)
        results = np.empty(len(members))
        _transform.predict(self._name, self._state, members, results)
        return results, found[-1][1]

    def _learn(self, batch: LabelledRows) -> None:
        rows, y, w, found, regions, delayed = batch
        before = np.empty((len(self._models), len(y)))
        last = len(self._models) - 1
        calls = [
            partial(
                rows.learn_into,
                *(model, own, w, before[place], regions if place == last else None),
                delayed=delayed,
            )
            for place, (model, own) in enumerate(zip(self._models, self._labels(y), strict=True))
        ]
        learned, known = rows_learned(self.model) or 0.0, self._state

        def finish() -> None:
            state = known.copy()  # an interruption may let this begin again
            _transform.learn(
                self._name, state, np.ascontiguousarray(before.T), y, w, learned, found
            )
            self._state = state

        self._learn_all(calls, finish, lambda: self._state is known)

    def _check_labels(self, y: FloatArray) -> None:
        least, is_open = LEAST[self._name], self._name == "log1p"
        bad = y <= least if is_open else y < least
        if bad.any():
            place, bound = int(np.argmax(bad)), "above" if is_open else "at least"
            raise ValueError(
                f"y = {y[place]:g} at position {place}: {self._name} needs y {bound} {least:g}; drop "
                "the row, shift the target, or use the model without a transform"
            )

    def _labels(self, y: FloatArray) -> list[FloatArray]:
        """Return the targets of the models inside."""
        found = np.empty(len(y))
        _transform.transformed(self._name, y, found)
        return [y, found] if len(self._models) == 2 else [found]

    # -- looking inside ---------------------------------------------------------------------------

    to_rules = passed_on(
        "Return one rule for each leaf; with sqrt and log1p their numbers are of the transformed y."
    )

    def _own_bytes(self) -> int:
        return int(self._state.nbytes)

    def __repr__(self) -> str:
        return f"<TransformedRegressor({self.model!r}, {self.transform!r})>"

    # -- files ------------------------------------------------------------------------------------

    def _own_state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        return {"transform": self._transform}, {STATE: self._state.copy()}

    @classmethod
    def _restored_around(cls, models: list[Any], state: State, format: int) -> Self:
        check_entries(state, {"transform"}, {STATE})
        transform = state.header["transform"]
        if transform not in TRANSFORMS or len(models) != (2 if transform == "auto" else 1):
            raise ValueError("its models are not those of its transform")
        made = cls._made()
        made._models, made._transform = models, transform
        made._name = AUTO if transform == "auto" else transform
        made._state = checked_numbers(
            state.arrays[STATE], (_transform.STATE,), "the sums of errors"
        )
        if (made._state[[0, 2, 5, 7, 8]] < 0.0).any():
            raise ValueError("the sums of errors cannot be")
        return made
