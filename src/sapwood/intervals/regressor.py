"""Bounds around the predictions of any model."""

import copy
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sapwood import door
from sapwood.door import Label
from sapwood.intervals import _bounds, interval_state
from sapwood.intervals.bound_table import BoundTable, checked_levels
from sapwood.intervals.said import Said
from sapwood.intervals.wrapped import wrapped
from sapwood.model import State, StoredModel, can_be_saved, is_all_or_nothing
from sapwood.rows import frames, targets

__all__ = ["Interval", "IntervalRegressor"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int32]

Model = TypeVar("Model", bound="IntervalRegressor")

LEVELS = (0.5, 0.9)
WIDTH_RECORD = np.dtype([("region", np.int32), ("rows", np.float64), ("width", np.float64)])
HEAVIEST = 1e50  # weight of a row


class Interval(NamedTuple):
    """A prediction and its bounds, NaN before enough is known."""

    lower: float
    prediction: float
    upper: float


class IntervalRegressor(StoredModel):
    """Any model, with bounds around its predictions that are learned from its errors.

    It is itself a model: it learns and predicts as the one that it is given, to the last bit, and
    watches how far off that was. Bounds adapt to *where* errors are large, by the leaves of a tree,
    and for other models by those of a small tree that learns the size of errors; to *when*, as
    they follow the last errors; and to how errors are distributed. Each row is judged by what was
    said when it was predicted, however late its y comes, and each level is corrected until as
    many y are within its bounds as it says.

    Parameters
    ----------
    model : object
        A tree of ours; or any model with `predict_one` and `learn_one`, `predict_many` and
        `learn_many`, or `predict` and `partial_fit`. It goes on learning in here.
    levels : iterable of float
        The shares of y that are to be within bounds, from 0 to 1, both excluded.

    Notes
    -----
    Bounds are NaN until 20 errors were seen. They need not contain the prediction, where that is
    usually too high or too low. If y was at its least or largest value ten times, as at 0 for
    counts, no bound goes beyond that, unless the narrowest level lies there as a whole. What was
    said of the last 10,000 rows whose y is still to come is kept, and found again by the row's
    features.

    If the model has several targets, each has bounds of its own: all that is told is then told for
    each. A target that is missing in a row changes nothing that is known of it.

    References
    ----------
    I. Gibbs and E. Candès, "Adaptive conformal inference under distribution shift", NeurIPS, 2021.

    Examples
    --------
    >>> import numpy as np, sapwood
    >>> rng = np.random.default_rng(1)
    >>> x = rng.uniform(-1, 1, 20_000)
    >>> y = np.where(x < 0, rng.normal(0, 1, 20_000), rng.normal(10, 3, 20_000))
    >>> model = IntervalRegressor(sapwood.HoeffdingTreeRegressor())
    >>> model.learn_many({"x": x}, y)
    >>> lower, prediction, upper = model.predict_interval_one({"x": -0.5}, level=0.9)
    >>> bool(-2 < lower < -1 and -0.3 < prediction < 0.3 and 1 < upper < 2)
    True
    >>> bool(12 < model.predict_quantile_one({"x": 0.5}, 0.95) < 16)
    True
    """

    kind: ClassVar[str] = "IntervalRegressor"
    format: ClassVar[int] = 1

    def __init__(self, model: Any, levels: Iterable[float] = LEVELS) -> None:
        super().__init__()
        self._wrapped = wrapped(model)
        self._levels = checked_levels(levels)
        self._bounds, self._said = self._begun(max(1, len(self.targets)))

    def _begun(self, targets: int) -> tuple[BoundTable, Said]:
        """Return what is known of so many targets at first: nothing."""
        bounds = BoundTable(self._levels, targets)
        return bounds, Said(targets * bounds.record)

    def _meet_targets(self) -> None:
        """Begin anew if the model has met its targets meanwhile, as it does in its first row."""
        targets = max(1, len(self.targets))
        if targets != self._bounds.targets:
            self._bounds, self._said = self._begun(targets)

    # -- learning and predicting ------------------------------------------------------------------

    def learn_one(self, x: dict[Any, Any], y: Any, w: float = 1.0) -> None:
        """Learn one row, and judge what was said of it.

        Parameters
        ----------
        x, y, w
            As for the model itself. A row that was not predicted before is judged by what would
            be said now.
        """
        if type(y) is not float and isinstance(y, Mapping | list | tuple | np.ndarray):
            read = targets.read_one(y)
        else:
            read = targets.Targets(None, np.array([door.number(y, "y")]))
        own, weights = self._checked(read, [door.number(w, "w")])
        keys, said = self._find([self._wrapped.key_one(x)] if len(self._said) else [])
        known = None
        if said is not None:
            known = self._named(said[0, :, 0].tolist())
        prediction, region = self._wrapped.learn_one(
            x, _named(own.names or (), own.values[0].tolist()), float(weights[0]), known
        )
        predictions = _row(prediction, own.values.shape[1])
        self._judge(np.array([region], np.int32), predictions, own.values, weights, said=said)
        self._said.drop(keys)

    def predict_one(self, x: dict[Any, Any]) -> Any:
        """Return what the model predicts for one row; its bounds are remembered until y comes.

        Of several targets, a dict.
        """
        return self._named(self._say_one(x)[0, :, 0].tolist())

    def learn_many(self, X: Any, y: Any, w: ArrayLike | None = None) -> None:
        """Learn many rows: the same as `learn_one` in a loop.

        Parameters
        ----------
        X, y, w
            As for the model itself.
        """
        own, weights = self._checked(targets.read(y), w)
        keys, said = self._find(self._wrapped.keys(X) if len(self._said) else [])
        known = None
        if said is not None:
            known = np.ascontiguousarray(said[:, :, 0])
        predictions, regions = self._wrapped.learn_many(X, own, weights, known, asked=False)
        self._judge(regions, predictions, own.values, weights, said=said)
        self._said.drop(keys)

    def predict_many(self, X: Any) -> Any:
        """Return what the model predicts for many rows; see `predict_one`.

        Parameters
        ----------
        X : array_like, mapping of columns, or data frame
            As for the model itself.
        """
        return self._in_kind(X, self._say_many(X)[:, :, 0])

    def predict_learn_many(self, X: Any, y: Any, w: ArrayLike | None = None) -> Any:
        """Predict each row before it is learned: the prequential loop.

        Parameters
        ----------
        X, y, w
            As for the model itself.
        """
        return self._in_kind(X, self._predict_learn(X, y, w)[0])

    def predict_learn_intervals(
        self, X: Any, y: Any, w: ArrayLike | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Predict each row and say its bounds before it is learned.

        Parameters
        ----------
        X, y, w
            As for the model itself.

        Returns
        -------
        predictions : ndarray of float, shape (n,), or (n, targets) of several
            What `predict_one` would have returned for each row just before `learn_one`.
        bounds : ndarray of float, shape (n, levels, 2), or (n, targets, levels, 2)
            The lower and the upper bound of each of `levels`.
        """
        return self._plain(*self._predict_learn(X, y, w))

    def _predict_learn(self, X: Any, y: Any, w: ArrayLike | None) -> tuple[FloatArray, FloatArray]:
        own, weights = self._checked(targets.read(y), w)
        predictions, regions = self._wrapped.learn_many(X, own, weights, None, asked=True)
        bounds = np.empty((*own.values.shape, len(self._levels), 2))
        self._judge(regions, predictions, own.values, weights, bounds=bounds)
        return predictions, bounds

    def predict_intervals_one(self, x: dict[Any, Any]) -> tuple[Any, Any]:
        """Predict one row, with the bounds of all levels.

        Parameters
        ----------
        x : dict
            The features.

        Returns
        -------
        prediction : float, or dict of float
            As `predict_one` returns it.
        bounds : ndarray of float, shape (levels, 2), or dict of such
            The lower and the upper bound of each of `levels`; of several targets, for each.
        """
        said = self._say_one(x)
        return self._named(said[0, :, 0].tolist()), self._named(self._bounds.told(said)[0])

    def predict_intervals_many(self, X: Any) -> tuple[FloatArray, FloatArray]:
        """Return what `predict_intervals_one` does for many rows, as two arrays.

        Parameters
        ----------
        X : array_like, mapping of columns, or data frame
            The features.

        Returns
        -------
        predictions, bounds : ndarrays of float
            Of the shapes that `predict_learn_intervals` returns.
        """
        said = self._say_many(X)
        return self._plain(said[:, :, 0], self._bounds.told(said))

    def predict_interval_one(self, x: dict[Any, Any], level: float = 0.9) -> Any:
        """Predict one row, with its bounds.

        Parameters
        ----------
        x : dict
            The features.
        level : float
            The share of y within the bounds, at most the largest of `levels`. Between those, bounds
            are interpolated.

        Returns
        -------
        Interval, or dict of Interval
            lower, prediction, upper; both bounds are NaN before enough is known. Of several
            targets, for each.
        """
        share = self._bounds.reachable(door.between(level, "level", 1e-9, 1.0), "level")
        said = self._say_one(x)
        bounds = self._bounds.between(said, share)[0].tolist()
        told = zip(bounds, said[0, :, 0].tolist(), strict=True)
        return self._named([Interval(lower, own, upper) for (lower, upper), own in told])

    def predict_interval_many(self, X: Any, level: float = 0.9) -> Any:
        """Return the bounds of many rows: the same as of `predict_interval_one` in a loop.

        Parameters
        ----------
        X : array_like, mapping of columns, or data frame
            The features.
        level : float
            As for `predict_interval_one`.

        Returns
        -------
        ndarray of float, shape (n, 2), or frame
            Lower and upper; for a frame a frame of the same library with columns of these names.
            Of several targets: for a frame one with columns ``lower_NAME`` and ``upper_NAME``, for
            a mapping a dict of arrays of shape (n, 2), for all else one of shape (n, targets, 2).
        """
        share = self._bounds.reachable(door.between(level, "level", 1e-9, 1.0), "level")
        bounds = self._bounds.between(self._say_many(X), share)
        if not self.targets:
            bounds = bounds[:, 0]
            return frames.frame_like(X, {"lower": bounds[:, 0], "upper": bounds[:, 1]}, bounds)
        if isinstance(X, Mapping):
            return self._named(bounds.transpose(1, 0, 2))
        columns = {
            f"{side}_{name}": bounds[:, place, end]
            for place, name in enumerate(self.targets)
            for end, side in enumerate(("lower", "upper"))
        }
        return frames.frame_like(X, columns, bounds)

    def predict_quantile_one(self, x: dict[Any, Any], q: float) -> Any:
        """Return the number that y is below with a given probability.

        Parameters
        ----------
        x : dict
            The features.
        q : float
            The probability; within the largest of `levels`: for 0.9 from 0.05 to 0.95.

        Returns
        -------
        float, or dict of float
            NaN before enough is known. Of several targets, for each.
        """
        share = door.between(q, "q", 1e-9, 1.0)
        level = self._bounds.reachable(abs(2 * share - 1), "q")
        bounds = self._bounds.between(self._say_one(x), level)[0]
        return self._named(bounds[:, 0 if share < 0.5 else 1].tolist())

    # -- what is said, and what comes of it -------------------------------------------------------

    def _checked(
        self, y: targets.Targets, w: ArrayLike | None
    ) -> tuple[targets.Targets, FloatArray]:
        """Return y, with names if there are several targets and a column for each, and weights."""
        if y.values.ndim == 2 and not self.several_targets:
            raise ValueError(
                f"y has {y.values.shape[1]} columns and a {type(self.model).__name__} learns one "
                "target: give one column, or a model of Sapwood"
            )
        names: tuple[Label, ...] = ()
        values = y.values
        if values.ndim == 2 or self._bounds.targets > 1:
            known, kind = tuple(self.targets), type(self.model).__name__
            if not known and (lags := getattr(self.model, "lags", None)) is not None:
                known = tuple(lags.target)  # whose order is that of an array without names
            names, values = targets.fitting(y, known, False, kind)
        weights = door.weights(w, len(values))
        if names:
            return targets.Targets(names, values), weights  # which the model itself will check
        good = (np.abs(values) <= _bounds.LARGEST) & (weights > 0) & (weights <= HEAVIEST)
        if not good.all():
            bad = int(np.argmin(good))
            door.refuse_large_row(values[bad], weights[bad], _bounds.LARGEST, bad)
        return targets.Targets(None, values.reshape(-1, 1)), weights

    def _named(self, told: Any) -> Any:
        """Return what is told of each target, by name; of one target, that alone."""
        return told[0] if self._bounds.targets == 1 else _named(tuple(self.targets), told)

    def _in_kind(self, X: Any, predictions: FloatArray) -> Any:
        names = tuple(self.targets)
        if names:
            return targets.in_kind(X, np.ascontiguousarray(predictions), names)
        return frames.like(X, np.ascontiguousarray(predictions[:, 0]))

    def _plain(self, predictions: FloatArray, bounds: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return what is told of rows; of one target, without a dimension of targets."""
        if self.targets:
            return np.ascontiguousarray(predictions), bounds
        return np.ascontiguousarray(predictions[:, 0]), bounds[:, 0]

    def _say_one(self, x: dict[Any, Any]) -> FloatArray:
        prediction, region = self._wrapped.predict_one(x)
        said = self._say(np.array([region], np.int32), _row(prediction, 1))
        self._remember([self._wrapped.key_one(x)], said)
        return said

    def _say_many(self, X: Any) -> FloatArray:
        predictions, regions = self._wrapped.predict_many(X)
        said = self._say(regions, predictions)
        self._remember(self._wrapped.keys(X), said)
        return said

    def _say(self, regions: IntArray, predictions: FloatArray) -> FloatArray:
        if predictions.shape[1] != self._bounds.targets:
            self._meet_targets()
        return self._bounds.say(self._wrapped.parents, regions, predictions)

    def _remember(self, keys: list[bytes], said: FloatArray) -> None:
        # A model may predict what is no number; before it knows features all rows are alike.
        if len(keys) == len(said) and any(keys):
            records = said.reshape(len(said), said.shape[1] * said.shape[2])
            good = np.isfinite(said[:, :, 0])
            if not good.all():
                whole = np.flatnonzero(good.all(axis=1)).tolist()
                keys, records = [keys[place] for place in whole], records[whole]
            self._said.put(keys, records)

    def _find(self, keys: list[bytes]) -> tuple[list[bytes], FloatArray | None]:
        """Return the keys of rows of which something was said, and what, by row."""
        if not keys:
            return [], None
        said = self._said.find(keys)
        known = ~np.isnan(said[:, 0])
        if not known.any():
            return [], None
        found = said.reshape(len(keys), self._bounds.targets, self._bounds.record)
        return [key for key, each in zip(keys, known.tolist(), strict=True) if each], found

    def _judge(
        self,
        regions: IntArray,
        predictions: FloatArray,
        y: FloatArray,
        w: FloatArray,
        *,
        said: FloatArray | None = None,
        bounds: FloatArray | None = None,
    ) -> None:
        if y.shape[1] != self._bounds.targets:
            self._meet_targets()
        self._bounds.judge(
            self._wrapped.parents, regions, predictions, y, w, said=said, bounds=bounds
        )

    # -- looking inside ---------------------------------------------------------------------------

    @property
    def model(self) -> Any:
        """The model that is wrapped."""
        return self._wrapped.model

    @property
    def levels(self) -> tuple[float, ...]:
        """The levels, ascending."""
        return tuple(self._levels.tolist())

    @property
    def parameters(self) -> dict[str, Any]:
        """The arguments that make a model like this one; with the model as it is now."""
        return {"model": self.model, "levels": self.levels}

    @property
    def several_targets(self) -> bool:
        """Whether the model can learn several targets."""
        return bool(getattr(self.model, "several_targets", False))

    @property
    def targets(self) -> list[Label]:
        """The names of several targets, in their order; none if there is one, or none yet."""
        return list(self.model.targets) if self.several_targets else []

    @property
    def features(self) -> list[Any]:
        """The names of the features that the model knows."""
        return list(self.model.features)

    @property
    def feature_kinds(self) -> dict[Any, str]:
        """What each feature is, as the model tells it."""
        return dict(self.model.feature_kinds)

    @property
    def n_leaves(self) -> int:
        """How many leaves the model has."""
        return int(self.model.n_leaves)

    @property
    def region_tree(self) -> Any:
        """The tree whose leaves are the regions: the model itself, or that of its errors."""
        return self.model if self._wrapped.errors is None else self._wrapped.errors

    @property
    def widths(self) -> Any:
        """Of each region, its node in `region_tree`, its rows, and how wide its bounds are now.

        The width is that of the largest of `levels`, NaN before enough is known. Rows of a node
        that was split are counted half for each child. Of several targets, a dict of such arrays.
        """
        parents = self._wrapped.parents
        leaves = np.setdiff1d(np.arange(len(parents), dtype=np.int32), parents)
        said = self._say(leaves, np.zeros((len(leaves), max(1, len(self.targets)))))
        found = np.zeros((said.shape[1], len(leaves)), WIDTH_RECORD)
        found["region"], found["rows"] = leaves, self._bounds.rows_of(leaves)
        found["width"] = (said[:, :, -1] - said[:, :, -2]).T
        return self._named(found)

    @property
    def nbytes(self) -> int:
        """Bytes of the model, if it tells them, and of all that bounds need."""
        errors = 0 if self._wrapped.errors is None else self._wrapped.errors.nbytes
        own = self._bounds.nbytes + self._said.nbytes
        return int(own + errors + getattr(self.model, "nbytes", 0))

    def __repr__(self) -> str:
        told = ", ".join(f"{level:g}" for level in self.levels)
        return f"<IntervalRegressor({self.model!r}, levels=({told}))>"

    def of_target(self, target: Label) -> Self:
        """Return a copy for one of several targets, with its bounds.

        It predicts and tells bounds as this model does for that target, to the last bit. What was
        said of rows whose y is still to come is not known to it.

        Parameters
        ----------
        target : str or int
            Its name.
        """
        if target not in self.targets:
            self.model.of_target(target)  # which says what is wrong
        made = type(self)(self.model, self.levels)
        made._wrapped = self._wrapped.of_target(target)
        made._said = Said(self._bounds.record)
        made._bounds = self._bounds.of_target(self.targets.index(target))
        made.column_formats = dict(self.column_formats)
        return made

    # -- files and copies -------------------------------------------------------------------------

    @property
    def all_or_nothing(self) -> bool:  # type: ignore[override]
        """Whether rows that are refused have changed nothing, as the model promises."""
        return is_all_or_nothing(self.model)

    @property
    def can_be_saved(self) -> bool:
        """Whether the model that is wrapped can be saved."""
        return can_be_saved(self.model)

    def to_state(self) -> State:
        """Return all that the model is: a header for JSON, and arrays.

        Raises
        ------
        TypeError
            If the model that is wrapped cannot be saved.
        """
        return interval_state.state_of(self)

    @classmethod
    def from_state(cls, state: State, format: int) -> Self:
        """Restore what `to_state` returned; nothing of it is trusted.

        Raises
        ------
        ValueError, TypeError, OverflowError
            If there is anything wrong with it.
        """
        return interval_state.restore(cls, state)

    def copy(self) -> Self:
        """Return an independent copy; of somebody else's model by `copy.deepcopy`."""
        return pickled(*interval_state.parts_of(self, copy.deepcopy(self.model)))

    def __reduce__(self) -> tuple[Any, ...]:
        return pickled, interval_state.parts_of(self, self.model)


def pickled(kind: type[Model], model: Any, header: dict[str, Any], arrays: dict[str, Any]) -> Model:
    """Return a model with bounds of the model itself and all that is known beside it."""
    made = kind(model, header["levels"])
    interval_state.fill(made, header, arrays)
    return made


def _named(names: tuple[Label, ...], told: Any) -> Any:
    """Return what is told of each target, by name; of one target, that alone."""
    return dict(zip(names, told, strict=True)) if names else told[0]


def _row(prediction: Any, targets: int) -> FloatArray:
    """Return the predictions of a row for each target; before the first row there is but one."""
    if isinstance(prediction, dict):
        return np.array([[*prediction.values()]])
    return np.array([[prediction] * targets], dtype=np.float64)
