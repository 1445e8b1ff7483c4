"""Bounds around the predictions of any model."""

import copy
import math
from collections.abc import Iterable
from statistics import NormalDist
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sapwood import door
from sapwood.intervals import _bounds, interval_state
from sapwood.intervals.said import Said
from sapwood.intervals.wrapped import wrapped
from sapwood.model import State, StoredModel, can_be_saved, is_all_or_nothing
from sapwood.rows import frames

__all__ = ["Interval", "IntervalRegressor"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int32]

Model = TypeVar("Model", bound="IntervalRegressor")

LEVELS = (0.5, 0.9)
LATELY, LOWEST, HIGHEST = 3, 4, 6
ROWS = 2  # of a region
WIDTH_RECORD = np.dtype([("region", np.int32), ("rows", np.float64), ("width", np.float64)])
ROOM = 64  # regions at first
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
        if getattr(model, "several_targets", False) and model.targets:
            raise ValueError(
                f"the model has {len(model.targets)} targets, and bounds are around one: give "
                f"model.of_target({model.targets[0]!r})"
            )
        super().__init__()
        self._wrapped = wrapped(model)
        self._levels = _checked(levels)
        count = len(self._levels)
        table = np.full((ROOM, _bounds.FIRST_QUANTILE + 2 * count), _bounds.NOT_MET)
        spread = [NormalDist().inv_cdf((1 + level) / 2) for level in self._levels]
        table[0, : _bounds.FIRST_QUANTILE] = 0.0
        table[0, _bounds.FIRST_QUANTILE :: 2] = [-reach for reach in spread]
        table[0, _bounds.FIRST_QUANTILE + 1 :: 2] = spread
        self._table = table
        self._overall = np.zeros(_bounds.FIRST_LEVEL + count)
        self._overall[LATELY] = 1.0
        self._overall[LOWEST], self._overall[HIGHEST] = np.inf, -np.inf
        self._overall[_bounds.FIRST_LEVEL :] = 1.0
        self._said = Said(_bounds.FIRST_BOUND + 2 * count)

    # -- learning and predicting ------------------------------------------------------------------

    def learn_one(self, x: dict[Any, Any], y: float, w: float = 1.0) -> None:
        """Learn one row, and judge what was said of it.

        Parameters
        ----------
        x, y, w
            As for the model itself. A row that was not predicted before is judged by what would
            be said now.
        """
        targets, weights = _checked_rows([door.number(y, "y")], [door.number(w, "w")])
        keys, said = self._find([self._wrapped.key_one(x)] if len(self._said) else [])
        known = None if said is None or math.isnan(said[0, 0]) else float(said[0, 0])
        prediction, region = self._wrapped.learn_one(x, float(y), float(w), known)
        self._judge(
            np.array([region], np.int32), np.array([prediction]), targets, weights, said=said
        )
        self._said.drop(keys)

    def predict_one(self, x: dict[Any, Any]) -> float:
        """Return what the model predicts for one row; its bounds are remembered until y comes."""
        return float(self._say_one(x)[0, 0])

    def learn_many(self, X: Any, y: ArrayLike, w: ArrayLike | None = None) -> None:
        """Learn many rows: the same as `learn_one` in a loop.

        Parameters
        ----------
        X, y, w
            As for the model itself.
        """
        targets, weights = _checked_rows(y, w)
        keys, said = self._find(self._wrapped.keys(X) if len(self._said) else [])
        known = None if said is None else np.ascontiguousarray(said[:, 0])
        predictions, regions = self._wrapped.learn_many(X, targets, weights, known, asked=False)
        self._judge(regions, predictions, targets, weights, said=said)
        self._said.drop(keys)

    def predict_many(self, X: Any) -> Any:
        """Return what the model predicts for many rows; see `predict_one`.

        Parameters
        ----------
        X : array_like, mapping of columns, or data frame
            As for the model itself.
        """
        return frames.like(X, np.ascontiguousarray(self._say_many(X)[:, 0]))

    def predict_learn_many(self, X: Any, y: ArrayLike, w: ArrayLike | None = None) -> Any:
        """Predict each row before it is learned: the prequential loop.

        Parameters
        ----------
        X, y, w
            As for the model itself.
        """
        return frames.like(X, self.predict_learn_intervals(X, y, w)[0])

    def predict_learn_intervals(
        self, X: Any, y: ArrayLike, w: ArrayLike | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Predict each row and say its bounds before it is learned.

        Parameters
        ----------
        X, y, w
            As for the model itself.

        Returns
        -------
        predictions : ndarray of float, shape (n,)
            What `predict_one` would have returned for each row just before `learn_one`.
        bounds : ndarray of float, shape (n, levels, 2)
            The lower and the upper bound of each of `levels`.
        """
        targets, weights = _checked_rows(y, w)
        predictions, regions = self._wrapped.learn_many(X, targets, weights, None, asked=True)
        bounds = np.empty((len(targets), 2 * len(self._levels)))
        self._judge(regions, predictions, targets, weights, bounds=bounds)
        return predictions, bounds.reshape(len(targets), -1, 2)

    def predict_intervals_one(self, x: dict[Any, Any]) -> tuple[float, FloatArray]:
        """Predict one row, with the bounds of all levels.

        Parameters
        ----------
        x : dict
            The features.

        Returns
        -------
        prediction : float
            As `predict_one` returns it.
        bounds : ndarray of float, shape (levels, 2)
            The lower and the upper bound of each of `levels`.
        """
        said = self._say_one(x)
        return float(said[0, 0]), self._told(said)[0]

    def predict_intervals_many(self, X: Any) -> tuple[FloatArray, FloatArray]:
        """Return what `predict_intervals_one` does for many rows, as two arrays.

        Parameters
        ----------
        X : array_like, mapping of columns, or data frame
            The features.
        """
        said = self._say_many(X)
        return np.ascontiguousarray(said[:, 0]), self._told(said)

    def predict_interval_one(self, x: dict[Any, Any], level: float = 0.9) -> Interval:
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
        Interval
            lower, prediction, upper; both bounds are NaN before enough is known.
        """
        share = self._reachable(door.between(level, "level", 1e-9, 1.0), "level")
        said = self._say_one(x)
        lower, upper = self._between(said, share)[0]
        return Interval(float(lower), float(said[0, 0]), float(upper))

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
        """
        share = self._reachable(door.between(level, "level", 1e-9, 1.0), "level")
        bounds = self._between(self._say_many(X), share)
        return frames.frame_like(X, {"lower": bounds[:, 0], "upper": bounds[:, 1]}, bounds)

    def predict_quantile_one(self, x: dict[Any, Any], q: float) -> float:
        """Return the number that y is below with a given probability.

        Parameters
        ----------
        x : dict
            The features.
        q : float
            The probability; within the largest of `levels`: for 0.9 from 0.05 to 0.95.

        Returns
        -------
        float
            NaN before enough is known.
        """
        share = door.between(q, "q", 1e-9, 1.0)
        lower, upper = self._between(self._say_one(x), self._reachable(abs(2 * share - 1), "q"))[0]
        return float(lower if share < 0.5 else upper)

    # -- what is said, and what comes of it -------------------------------------------------------

    def _say_one(self, x: dict[Any, Any]) -> FloatArray:
        prediction, region = self._wrapped.predict_one(x)
        said = self._foresee(np.array([region], np.int32), np.array([prediction]))
        self._remember([self._wrapped.key_one(x)], said)
        return said

    def _say_many(self, X: Any) -> FloatArray:
        predictions, regions = self._wrapped.predict_many(X)
        said = self._foresee(regions, predictions)
        self._remember(self._wrapped.keys(X), said)
        return said

    def _foresee(self, regions: IntArray, predictions: FloatArray) -> FloatArray:
        said = np.empty((len(predictions), _bounds.FIRST_BOUND + 2 * len(self._levels)))
        table, parents = self._roomy(self._wrapped.parents)
        _bounds.foresee(table, self._overall, self._levels, parents, regions, predictions, said)
        return said

    def _remember(self, keys: list[bytes], said: FloatArray) -> None:
        # A model may predict what is no number; before it knows features all rows are alike.
        if len(keys) == len(said) and any(keys):
            good = np.isfinite(said[:, 0])
            kept = [key for key, each in zip(keys, good.tolist(), strict=True) if each]
            self._said.put(kept, said[good])

    def _find(self, keys: list[bytes]) -> tuple[list[bytes], FloatArray | None]:
        """Return the keys of rows of which something was said, and what, by row."""
        if not keys:
            return [], None
        said = self._said.find(keys)
        known = ~np.isnan(said[:, 0])
        if not known.any():
            return [], None
        return [key for key, each in zip(keys, known.tolist(), strict=True) if each], said

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
        self._table, parents = self._roomy(self._wrapped.parents)
        _bounds.learn(
            self._table,
            self._overall,
            self._levels,
            parents,
            regions,
            np.ascontiguousarray(predictions),
            y,
            w,
            said,
            bounds,
        )

    def _roomy(self, parents: IntArray) -> tuple[FloatArray, IntArray]:
        """Return the table, with room for all regions, and which ones they were split off from."""
        parents = np.ascontiguousarray(parents)
        if len(parents) <= len(self._table):
            return self._table, parents
        roomy = np.full((2 * len(parents), self._table.shape[1]), _bounds.NOT_MET)
        roomy[: len(self._table)] = self._table
        return roomy, parents

    def _told(self, said: FloatArray) -> FloatArray:
        """Return the bounds of all levels as they are told, of shape (rows, levels, 2)."""
        bounds = np.empty((len(said), 2 * len(self._levels)))
        _bounds.publish(said, self._overall, bounds)
        return bounds.reshape(len(said), -1, 2)

    def _between(self, said: FloatArray, level: float) -> FloatArray:
        """Return the bounds of a level, interpolated along a normal distribution."""
        bounds = self._told(said).reshape(len(said), -1)
        known = np.flatnonzero(self._levels == level)
        if len(known):
            return bounds[:, 2 * known[0] : 2 * known[0] + 2]
        place = int(np.searchsorted(self._levels, level))
        outer = bounds[:, 2 * place : 2 * place + 2]
        if place:
            inner = bounds[:, 2 * place - 2 : 2 * place]
        else:
            inner = np.clip(said[:, :1], outer[:, :1], outer[:, 1:])
        reach = [NormalDist().inv_cdf((1 + each) / 2) for each in (*self._levels, level)]
        start = reach[place - 1] if place else 0.0
        share = (reach[-1] - start) / (reach[place] - start)
        return np.asarray(inner + share * (outer - inner))

    def _reachable(self, level: float, name: str) -> float:
        """Return a level, that of `levels` which is meant if rounding alone tells them apart."""
        nearest = float(self._levels[np.abs(self._levels - level).argmin()])
        if abs(nearest - level) < 1e-9:
            return nearest
        if level > self._levels[-1]:
            told = f"the level {level:.6g} of this q" if name == "q" else f"level = {level:.6g}"
            raise ValueError(
                f"{told} is beyond the widest of levels, {self._levels[-1]:g}: name it there, as "
                "only errors can tell it"
            )
        return level

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
    def widths(self) -> NDArray[Any]:
        """Of each region, its node in `region_tree`, its rows, and how wide its bounds are now.

        The width is that of the largest of `levels`, NaN before enough is known. Rows of a node
        that was split are counted half for each child.
        """
        parents = self._wrapped.parents
        leaves = np.setdiff1d(np.arange(len(parents), dtype=np.int32), parents)
        said = self._foresee(leaves, np.zeros(len(leaves)))
        found = np.zeros(len(leaves), WIDTH_RECORD)
        table, _ = self._roomy(parents)
        found["region"], found["rows"] = leaves, np.maximum(table[leaves, ROWS], 0.0)
        found["width"] = said[:, -1] - said[:, -2]
        return found

    @property
    def nbytes(self) -> int:
        """Bytes of the model, if it tells them, and of all that bounds need."""
        errors = 0 if self._wrapped.errors is None else self._wrapped.errors.nbytes
        own = self._table.nbytes + self._overall.nbytes + self._levels.nbytes + self._said.nbytes
        return int(own + errors + getattr(self.model, "nbytes", 0))

    def __repr__(self) -> str:
        told = ", ".join(f"{level:g}" for level in self.levels)
        return f"<IntervalRegressor({self.model!r}, levels=({told}))>"

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


def _checked(levels: Iterable[float]) -> FloatArray:
    if isinstance(levels, str) or not isinstance(levels, Iterable):
        raise ValueError(f"levels = {door.shown(levels)}: a list of shares is expected")
    shares = sorted({door.between(level, "levels", 1e-3, 0.9995) for level in levels})
    if not 0 < len(shares) <= _bounds.MOST_LEVELS:
        raise ValueError(
            f"levels = {door.shown(levels)}: from 1 to {_bounds.MOST_LEVELS} levels are expected"
        )
    return np.array(shares)


def _checked_rows(y: ArrayLike, w: ArrayLike | None) -> tuple[FloatArray, FloatArray]:
    """Return targets and weights, if they are good."""
    targets = np.ascontiguousarray(door.column(y, "y"))
    weights = door.weights(w, len(targets))
    good = (np.abs(targets) <= _bounds.LARGEST) & (weights > 0) & (weights <= HEAVIEST)
    if not good.all():
        bad = int(np.argmin(good))
        door.refuse_large_row(targets[bad], weights[bad], _bounds.LARGEST, bad)
    return targets, weights
