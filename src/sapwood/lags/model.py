"""Lags in front of a model: together they are one that reads rows as they come."""

from collections.abc import Callable, Mapping
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sapwood import door
from sapwood.door import Label
from sapwood.lags.lags import Lags, Plan
from sapwood.model import State, StoredModel, from_bytes
from sapwood.rows import frames, targets

__all__ = ["LaggedModel"]

INNER = "model"
PAST = "past."


class LaggedModel(StoredModel):
    """A model whose rows get their lags, which are remembered and saved along with it.

    Parameters
    ----------
    model : object
        A model of Sapwood, such as `sapwood.HoeffdingTreeRegressor`. Other ones can be evaluated,
        but not saved.
    lags : Lags
        What is known of earlier rows.

    Examples
    --------
    >>> import sapwood
    >>> from sapwood.lags import LaggedModel, Lags
    >>> model = LaggedModel(sapwood.HoeffdingTreeRegressor(), Lags([1, 24], target="sold"))
    >>> for hour in range(500):
    ...     model.learn_one({"hour": hour % 24}, 100.0 + 10 * (hour % 24))
    >>> round(model.predict_one({"hour": 500 % 24}))
    300
    >>> list(model.feature_importances)
    ['hour', 'sold.lag1', 'sold.lag24']
    """

    kind = "LaggedModel"
    format = 1
    model: Any
    lags: Lags

    def __init__(self, model: Any, lags: Lags) -> None:
        if not isinstance(lags, Lags):
            raise ValueError(f"lags = {door.shown(lags)}: those of sapwood.lags are expected")
        known = list(model.targets) if getattr(model, "several_targets", False) else []
        if known and (isinstance(lags.target, str) or set(known) != set(lags.target)):
            told = ", ".join(map(door.shown, known))
            raise ValueError(f"the targets of the model are {told}: name them in lags, as target=")
        super().__init__()
        self.model = model
        self.lags = lags
        self._unfinished: tuple[Plan, float | None] | None = None

    @property
    def several_targets(self) -> bool:
        """Whether lags are of several targets, which the model can learn."""
        return not isinstance(self.lags.target, str) and getattr(
            self.model, "several_targets", False
        )

    def learn_one(self, x: dict[Any, Any], y: Any, w: float = 1.0) -> None:
        """Learn one row, and let it become past.

        Parameters
        ----------
        x, y, w
            As for the model itself.
        """
        self._settle()
        if not isinstance(self.lags.target, str):
            y = targets.named(self.lags.target, self.lags._labels_one(y))
        row, plan = self.lags.plan_one(x, y)
        self._unfinished = plan, self._rows()
        self.model.learn_one(row, y, *(() if w == 1.0 else (w,)))
        plan.push()
        self._unfinished = None

    def predict_one(self, x: dict[Any, Any]) -> Any:
        """Predict the next row; nothing is changed.

        Parameters
        ----------
        x : dict
            The features, without lags.
        """
        self._settle()
        found = self.model.predict_one(self.lags.plan_one(x)[0])
        return found if isinstance(found, Mapping) else float(found)

    def learn_many(self, X: Any, y: Any, w: ArrayLike | None = None) -> None:
        """Learn rows, and let them become past: the same as `learn_one` in a loop.

        Parameters
        ----------
        X, y, w
            As for the model itself.
        """
        self._learn(self.model.learn_many, X, y, w)

    def predict_many(self, X: Any) -> Any:
        """Predict the next rows, whose targets are not known; nothing is changed.

        Parameters
        ----------
        X : mapping of columns, data frame, or array
            The features, without lags. A lag of 24 is known for the first 24 rows of each series.
        """
        self._settle()
        return _in_kind(X, self.model.predict_many(self.lags.transform_many(X)))

    def predict_learn_many(self, X: Any, y: Any, w: ArrayLike | None = None) -> Any:
        """Predict each row before it is learned, and let it become past.

        Parameters
        ----------
        X, y, w
            As for the model itself.
        """
        return _in_kind(X, self._learn(self.model.predict_learn_many, X, y, w))

    def _learn(self, learn: Callable[..., Any], X: Any, y: Any, w: ArrayLike | None) -> Any:
        """Let the model learn rows in a way of its own, and return what that returns."""
        self._settle()
        if not isinstance(self.lags.target, str):
            y = targets.Targets(self.lags.target, self.lags._labels(y))
        plan = self.lags.plan(X, y)
        more = () if w is None else (w,)
        self._unfinished = plan, self._rows()
        found = learn(plan.features, y, *more)
        plan.push()
        self._unfinished = None
        return found

    def _settle(self) -> None:
        """Do what an interruption has left undone.

        Rows that the model had learned become past; those that it had not are forgotten.
        """
        if self._unfinished is not None:
            plan, rows = self._unfinished
            if plan.is_due and self._rows() != rows:
                plan.push()
            self._unfinished = None

    def _rows(self) -> float | None:
        """Return how many rows the model has learned, None if it does not tell."""
        return getattr(getattr(self.model, "_kernel", None), "rows", None)

    # -- looking inside ---------------------------------------------------------------------------

    def explain(self, x: Mapping[Any, Any]) -> Any:
        """Return how the prediction for the next row comes about."""
        return self.model.explain(self.lags.transform_one(x))

    def of_target(self, target: Label) -> NoReturn:
        """Raise ValueError: one target alone would not know the lags of others.

        Parameters
        ----------
        target : str or int
            Its name.
        """
        raise ValueError(
            f"target = {door.shown(target)}: a model with lags has no model of one target, which "
            "would not know those of others; .model.of_target reads rows that have their lags"
        )

    @property
    def features(self) -> list[Label]:
        """The features of rows as they come, without lags."""
        return [name for name in self.model.features if name not in self.lags.features]

    @property
    def feature_kinds(self) -> dict[Label, str]:
        """What each feature of rows as they come is."""
        kinds = self.model.feature_kinds
        return {name: kinds[name] for name in self.features}

    @property
    def nbytes(self) -> int:
        """Bytes of the model, and of what is remembered of earlier rows."""
        return int(self.model.nbytes) + self.lags.nbytes

    def __getattr__(self, name: str) -> Any:
        # What is asked of the model, such as its picture, is answered by it.
        if name.startswith("__") or "model" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return getattr(self.model, name)

    def __repr__(self) -> str:
        return f"<LaggedModel({self.model!r}, {self.lags!r})>"

    # -- files ------------------------------------------------------------------------------------

    def to_state(self) -> State:
        """Return all that the model is, and what it remembers."""
        self._settle()
        header, arrays = self.lags.to_state()
        own: dict[str, NDArray[Any]] = {f"{PAST}{name}": array for name, array in arrays.items()}
        own[INNER] = np.frombuffer(self.model.to_bytes(), np.uint8)
        return State({"lags": header}, own)

    @classmethod
    def from_state(cls, state: State, format: int) -> Self:
        """Restore what `to_state` returned; nothing of it is trusted.

        Raises
        ------
        ValueError, TypeError
            If there is anything wrong with it.
        """
        header, arrays = state
        if header.keys() != {"lags"} or INNER not in arrays:
            raise ValueError("its header has other entries than it should")
        past = {name.removeprefix(PAST): array for name, array in arrays.items() if name != INNER}
        lags = Lags.from_state(header["lags"], past)
        return cls(from_bytes(arrays[INNER].tobytes(), "the model with lags"), lags)


def _in_kind(X: Any, predictions: Any) -> Any:
    """Return predictions for columns as users of X expect them."""
    if not isinstance(predictions, Mapping):
        return frames.like(X, np.asarray(predictions))
    return targets.in_kind(X, np.column_stack([*predictions.values()]), tuple(predictions))
