"""Prediction intervals for any model."""

import copy
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, NamedTuple, NoReturn, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sapwood import validation
from sapwood.corrector._pending import key_of_row, keys_of_columns
from sapwood.corrector.tokens import key_of, keys_of
from sapwood.deprecation import deprecated
from sapwood.intervals import _bounds, interval_state
from sapwood.intervals.bound_table import BoundTable, checked_levels
from sapwood.intervals.groups import Groups, hour_of
from sapwood.intervals.wrapped import Before, wrapped
from sapwood.model import State, can_be_saved, is_all_or_nothing
from sapwood.rows import frames, targets
from sapwood.rows.encoded import EncodedRow
from sapwood.schema import Schema
from sapwood.stages import EncodedBatch, Prediction, Stage
from sapwood.stages.order import check_order
from sapwood.stages.stage import offered, rows_learned
from sapwood.stages.surface import TransparentStage
from sapwood.validation import Label

__all__ = ["Interval", "IntervalRegressor"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int32]

Model = TypeVar("Model", bound="IntervalRegressor")

LEVELS = (0.5, 0.9)
WIDTH_RECORD = np.dtype([("region", np.int32), ("rows", np.float64), ("width", np.float64)])
HEAVIEST = 1e50  # weight of a row


class Interval(NamedTuple):
    """A prediction and its lower and upper bound, NaN before enough errors are known."""

    lower: float
    prediction: float
    upper: float


class IntervalRegressor(TransparentStage):
    """Any model, with prediction intervals that are learned from its errors.

    It is itself a model: it learns and predicts exactly as the wrapped model, bit for bit, and
    records its errors. Intervals adapt to *where* errors are large, by the leaves of a tree, and for
    other models by the leaves of a small tree that learns the size of errors; to *when* errors are
    large, as they follow the most recent ones; and to the distribution of errors. Each row is scored
    against the interval that was issued when it was predicted, however late its label arrives, and
    each level is corrected until its coverage is the nominal one.

    Parameters
    ----------
    model : object
        A tree of ours; or any model with `predict_one` and `learn_one`, `predict_many` and
        `learn_many`, or `predict` and `partial_fit`. It goes on learning in here.
    levels : iterable of float
        The shares of y that are to be within bounds, from 0 to 1, both excluded.
    by : name of a feature, optional
        Rows of each of its values, at most 63, are held to the levels on their own, such as those
        of each hour of the day. By default it is the hour of the time that the model's `schema`
        names, if there is one.

    Notes
    -----
    Bounds are NaN until 20 errors were seen. They need not contain the prediction, where that is
    usually too high or too low. If y was at its least or largest value ten times, as at 0 for
    counts, no bound goes beyond that, unless the narrowest level lies there as a whole. What was
    predicted for the last 10,000 rows whose y is still to come is kept, and found again by the row's
    features.

    If the model has several targets, each has intervals of its own, and results are given for
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
    format: ClassVar[int] = 4

    def __init__(
        self, model: Any, levels: Iterable[float] = LEVELS, by: Label | None = None
    ) -> None:
        check_order(self.kind, model)
        super().__init__()
        self._wrapped = wrapped(model)
        self._levels = checked_levels(levels)
        self._by = None if by is None else validation.feature_name(by)
        self._groups = Groups(self._by)
        self._grouped: Schema | None = None  # whose hour groups are of
        self._bounds = BoundTable(self._levels, max(1, len(self.targets)))
        self._followed = len(self._renumbered)

    @property
    def _renumbered(self) -> tuple[IntArray, ...]:
        """The new numbers of regions, for each time that their tree was pruned."""
        tree: Any = self._wrapped.errors or self._wrapped.model
        while isinstance(tree, Stage):
            tree = tree.model
        found: tuple[IntArray, ...] = getattr(tree, "_renumbered", ())
        return found

    def _follow_pruning(self) -> None:
        """Let regions be those of a tree that was pruned meanwhile."""
        renumbered = self._renumbered
        for places in renumbered[self._followed :]:
            self._bounds.renumber(places)
        self._followed = len(renumbered)

    def _one(self, region: int) -> _bounds.OneRow:
        """Return the object that handles one row of a region."""
        if len(self._renumbered) != self._followed:
            self._follow_pruning()
        return self._bounds.one(self._parents, region)

    def _group_of(self, x: dict[Any, Any], learn: bool = False) -> int:
        """Return the group of one row; it has an hour only if the schema has encoded it."""
        if self._by is None and type(x) is EncodedRow:
            self._group_by_hour()
        return self._groups.of_row(x, learn)

    def _groups_of(self, X: Any, learn: bool = False) -> IntArray | None:
        """Return the groups of many rows, None if none has one."""
        if self._by is None:
            self._group_by_hour()
        if self._groups.name is None:
            return None
        return self._groups.of_rows(X, getattr(self.model, "features", ()), learn)

    def _group_by_hour(self) -> None:
        """Let groups be those of the schema's hour; they start over if that is another one."""
        schema = self.schema
        if schema is not self._grouped:
            name, self._grouped = hour_of(schema), schema
            if name != self._groups.name:
                self._groups = Groups(name)
                self._bounds.factors[:] = 1.0

    def _meet_targets(self) -> None:
        """Start over if the model has met its targets meanwhile, as it does in its first row."""
        targets = max(1, len(self.targets))
        if targets != self._bounds.targets:
            self._bounds = BoundTable(self._levels, targets)

    # -- learning and predicting ------------------------------------------------------------------

    def learn_one(self, x: dict[Any, Any], y: Any, w: float = 1.0, *, id: Any = None) -> None:
        """Learn one row, and score the prediction interval that was issued for it.

        Parameters
        ----------
        x, y, w
            As for the model itself. A row that was not predicted before is scored by the interval
            that would be issued now.
        id : str, int, or tuple of such, optional
            The id by which the row was predicted; without one it is found by its features.
        """
        self._learn_row(x, y, w, 0 if id is None else key_of(id))

    def _learn_row(self, x: dict[Any, Any], y: Any, w: float, given: int) -> None:
        """Learn one row, given the key of its id, or 0."""
        x = self._encoded_one(x)
        if type(y) is not float and isinstance(y, Mapping | list | tuple | np.ndarray):
            self._learn_targets_one(x, targets.read_one(y), w, given)
            return
        if type(y) is not float:
            y = validation.number(y, "y")
        if type(w) is not float:
            w = validation.number(w, "w")
        if self._bounds.targets > 1 or not (abs(y) <= _bounds.LARGEST and 0.0 < w <= HEAVIEST):
            self._learn_targets_one(x, targets.Targets(None, np.array([y])), w, given)
            return
        turn, inner = self._turns, self._wrapped
        with turn:
            prediction, region = inner.predict_one(x, given, False)
            one = self._one(region)
            key = given or (key_of_row(x) if self._bounds.pending.count else 0)
            known, rows = one.known, rows_learned(inner.model)

            def finish() -> None:
                inner.finish_one(x, y, prediction, w)
                group = self._group_of(x, True)
                one.judge(region, prediction, y, w, key, group, len(self._groups))

            # As `_both` does, without its cost.
            turn.unfinished = (
                finish,
                lambda: rows_learned(inner.model) != rows and one.known == known,
            )
            try:
                inner.learn_one(x, y, w, key if inner.by_rows else given)
            except Exception:
                turn.settle()
                raise
            finish()
            turn.unfinished = None

    def _learn_targets_one(self, x: dict[Any, Any], y: targets.Targets, w: Any, given: int) -> None:
        """Learn one row of several targets, or one that is not as it should be."""
        own, weights = self._checked(y, [validation.number(w, "w")])
        columns = {name: [value] for name, value in x.items()}
        with self._turn():
            before = Before(own.values.shape)
            prediction, region = self._wrapped.predict_one(x, given, False)
            before.predictions[:] = _row(prediction, own.values.shape[1])
            before.regions[:] = region
            keys = np.array([given or key_of_row(x)], np.uint64)
            labels = _named(own.names or (), own.values[0].tolist())

            def learn() -> None:
                self._wrapped.learn_one(x, labels, float(weights[0]), given)

            def finish() -> None:
                self._wrapped.finish_many(columns, own, weights, before)
                self._score(columns, before, own.values, weights, keys=keys)

            self._both(learn, finish, self._is_due())

    def predict_one(self, x: dict[Any, Any], *, id: Any = None, record: bool = True) -> Any:
        """Return what the model predicts for one row; its interval is kept until y comes.

        Parameters
        ----------
        x : dict
            The features.
        id : str, int, or tuple of such, optional
            By which `learn_one` will find the prediction when the label comes.
        record : bool
            Whether the prediction is kept.

        Returns
        -------
        float, or dict of float
            Of several targets, a dict.
        """
        return self._place_one(x, 0 if id is None else key_of(id), record)[0]

    def _place_one(self, x: dict[Any, Any], given: int = 0, record: bool = True) -> tuple[Any, int]:
        """Predict one row, with its region; given the key of its id, or 0."""
        if self._bounds.targets > 1 and record:
            issued, region = self._issue_one(x, given)
            return self._named(issued[0, :, 0].tolist()), region
        x, inner = self._encoded_one(x), self._wrapped
        with self._turns:
            key = given or (key_of_row(x) if record else 0)
            prediction, region = inner.predict_one(x, key if inner.by_rows else given, record)
            if record and type(prediction) is float:  # else of several targets: the first row
                one = self._one(region)
                one.say(region, prediction, key, self._group_of(x))
        return prediction, region

    def _place_many(
        self, X: Any, keys: Any = None, record: bool = True
    ) -> tuple[FloatArray, IntArray]:
        """Predict many rows, with their regions; given the keys of their ids, or None."""
        issued, regions = self._issue_many(X, keys, record)
        return self._plain(issued[:, :, 0], issued[:, :, 1:])[0], regions

    def learn_many(self, X: Any, y: Any, w: ArrayLike | None = None, *, ids: Any = None) -> None:
        """Learn many rows: the same as `learn_one` in a loop.

        Parameters
        ----------
        X, y, w
            As for the model itself.
        ids : sequence, optional
            The id of each row, as for `learn_one`.
        """
        self._learn(X, y, w, ids, delayed=True)

    def predict_many(self, X: Any, *, ids: Any = None, record: bool = True) -> Any:
        """Return what the model predicts for many rows; see `predict_one`.

        Parameters
        ----------
        X : array_like, mapping of columns, or data frame
            As for the model itself.
        ids : sequence, optional
            The id of each row.
        record : bool
            As for `predict_one`.
        """
        keys = None if ids is None else keys_of(ids)
        return self._in_kind(X, self._issue_many(X, keys, record)[0][:, :, 0])

    def predict_learn_many(
        self, X: Any, y: Any, w: ArrayLike | None = None, *, delayed: bool = False, ids: Any = None
    ) -> Any:
        """Predict each row before it is learned: the prequential loop.

        Parameters
        ----------
        X, y, w
            As for the model itself.
        delayed : bool
            Whether the rows were predicted before: then they are scored by these predictions.
        ids : sequence, optional
            The id of each row, as for `learn_many`.
        """
        return self._in_kind(X, self._learn(X, y, w, ids, delayed)[0].predictions)

    def predict_learn_intervals(
        self, X: Any, y: Any, w: ArrayLike | None = None, *, ids: Any = None
    ) -> tuple[FloatArray, FloatArray]:
        """Predict each row and its interval before it is learned.

        Parameters
        ----------
        X, y, w
            As for the model itself.
        ids : sequence, optional
            The id of each row, as for `learn_many`.

        Returns
        -------
        predictions : ndarray of float, shape (n,), or (n, targets) of several
            What `predict_one` would have returned for each row just before `learn_one`.
        bounds : ndarray of float, shape (n, levels, 2), or (n, targets, levels, 2)
            The lower and the upper bound of each of `levels`.
        """
        before, bounds = self._learn(X, y, w, ids)
        return self._plain(before.predictions, bounds)

    @offered
    def predict_learn_regions(
        self, X: Any, y: Any, w: ArrayLike | None = None, asked: bool = True, *, ids: Any = None
    ) -> tuple[FloatArray, IntArray]:
        """Predict each row before it is learned, with its region in the model.

        Parameters
        ----------
        X, y, w
            As for the model itself.
        asked : bool
            Whether these are the predictions that the model is scored by.
        ids : sequence, optional
            The id of each row, as for `learn_many`.
        """
        before, bounds = self._learn(X, y, w, ids, delayed=not asked)
        return self._plain(before.predictions, bounds)[0], before.regions

    def _learn(
        self, X: Any, y: Any, w: ArrayLike | None, ids: Any = None, delayed: bool = False
    ) -> tuple[Before, FloatArray]:
        """Learn rows; return their predictions and intervals of just before."""
        own, weights = self._checked(targets.read(y), w)
        X = self._encoded(frames.lasting(X))
        with self._turn():
            given = None if ids is None else keys_of(ids)
            keys = None
            if delayed and self._bounds.pending.count:
                keys = self._keys(X, len(weights)) if given is None else given
            before = Before(own.values.shape)
            bounds = np.empty((*own.values.shape, len(self._levels), 2))

            def learn() -> None:
                self._wrapped.learn_many(X, own, weights, before, keys=given, delayed=delayed)

            def finish() -> None:
                self._wrapped.finish_many(X, own, weights, before)
                self._score(X, before, own.values, weights, keys=keys, bounds=bounds)

            self._both(learn, finish, self._is_due())
        return before, bounds

    def _is_due(self) -> Callable[[], bool]:
        """Return a function that returns whether no label was learned since now."""
        bounds, known = self._bounds, self._bounds.labels[0]
        return lambda: self._bounds is not bounds or bounds.labels[0] == known

    # -- as a stage -------------------------------------------------------------------------------

    def predict(self, batch: EncodedBatch) -> Prediction:
        """Predict the rows of a batch, with regions and intervals; see `sapwood.stages`."""
        with self._turn():
            predictions, regions = self._wrapped.predict_many(batch.columns, batch.token, True)
            issued = self._issue(regions, predictions, self._groups_of(batch.columns))
            self._bounds.remember(batch.token, issued)
            values, intervals = self._plain(issued[:, :, 0], self._bounds.published(issued))
        return Prediction(values, batch.token, regions, intervals)

    def learn(self, batch: EncodedBatch, y: Any, w: ArrayLike | None = None) -> None:
        """Learn the labels of a batch, found by its token."""
        own, weights = self._checked(targets.read(y), w)
        with self._turn():
            before = Before(own.values.shape)

            def learn() -> None:
                self._wrapped.learn_many(
                    batch.columns, own, weights, before, keys=batch.token, delayed=True
                )

            def finish() -> None:
                self._wrapped.finish_many(batch.columns, own, weights, before)
                self._score(batch.columns, before, own.values, weights, keys=batch.token)

            self._both(learn, finish, self._is_due())

    def predict_intervals_one(self, x: dict[Any, Any], *, id: Any = None) -> tuple[Any, Any]:
        """Predict one row, with the bounds of all levels.

        Parameters
        ----------
        x : dict
            The features.
        id : str, int, or tuple of such, optional
            As for `predict_one`.

        Returns
        -------
        prediction : float, or dict of float
            As `predict_one` returns it.
        bounds : ndarray of float, shape (levels, 2), or dict of such
            The lower and the upper bound of each of `levels`; of several targets, for each.
        """
        issued, _ = self._issue_one(x, 0 if id is None else key_of(id))
        return self._named(issued[0, :, 0].tolist()), self._named(self._bounds.published(issued)[0])

    def predict_intervals_many(
        self, X: Any, *, ids: Any = None, record: bool = True
    ) -> tuple[FloatArray, FloatArray]:
        """Return what `predict_intervals_one` does for many rows, as two arrays.

        Parameters
        ----------
        X : array_like, mapping of columns, or data frame
            The features.
        ids : sequence, optional
            The id of each row.
        record : bool
            Whether the predictions are kept until their labels arrive.

        Returns
        -------
        predictions, bounds : ndarrays of float
            Of the shapes that `predict_learn_intervals` returns.
        """
        issued, _ = self._issue_many(X, None if ids is None else keys_of(ids), record)
        return self._plain(issued[:, :, 0], self._bounds.published(issued))

    def predict_interval_one(self, x: dict[Any, Any], level: float = 0.9, *, id: Any = None) -> Any:
        """Predict one row, with its bounds.

        Parameters
        ----------
        x : dict
            The features.
        level : float
            The share of y within the bounds, at most the largest of `levels`. Between those, bounds
            are interpolated.
        id : str, int, or tuple of such, optional
            As for `predict_one`.

        Returns
        -------
        Interval, or dict of Interval
            lower, prediction, upper; both bounds are NaN before enough is known. Of several
            targets, for each.
        """
        share = self._bounds.reachable(validation.between(level, "level", 1e-9, 1.0), "level")
        issued, _ = self._issue_one(x, 0 if id is None else key_of(id))
        bounds = self._bounds.between(issued, share)[0].tolist()
        pairs = zip(bounds, issued[0, :, 0].tolist(), strict=True)
        return self._named([Interval(lower, own, upper) for (lower, upper), own in pairs])

    def predict_interval_many(self, X: Any, level: float = 0.9, *, ids: Any = None) -> Any:
        """Return the bounds of many rows: the same as of `predict_interval_one` in a loop.

        Parameters
        ----------
        X : array_like, mapping of columns, or data frame
            The features.
        level : float
            As for `predict_interval_one`.
        ids : sequence, optional
            The id of each row.

        Returns
        -------
        ndarray of float, shape (n, 2), or frame
            Lower and upper; for a frame a frame of the same library with columns of these names.
            Of several targets: for a frame one with columns ``lower_NAME`` and ``upper_NAME``, for
            a mapping a dict of arrays of shape (n, 2), for all else one of shape (n, targets, 2).
        """
        share = self._bounds.reachable(validation.between(level, "level", 1e-9, 1.0), "level")
        issued, _ = self._issue_many(X, None if ids is None else keys_of(ids))
        bounds = self._bounds.between(issued, share)
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

    def predict_quantile_one(self, x: dict[Any, Any], q: float, *, id: Any = None) -> Any:
        """Return the number that y is below with a given probability.

        Parameters
        ----------
        x : dict
            The features.
        q : float
            The probability; within the largest of `levels`: for 0.9 from 0.05 to 0.95.
        id : str, int, or tuple of such, optional
            As for `predict_one`.

        Returns
        -------
        float, or dict of float
            NaN before enough is known. Of several targets, for each.
        """
        share = validation.between(q, "q", 1e-9, 1.0)
        level = self._bounds.reachable(abs(2 * share - 1), "q")
        issued, _ = self._issue_one(x, 0 if id is None else key_of(id))
        bounds = self._bounds.between(issued, level)[0]
        return self._named(bounds[:, 0 if share < 0.5 else 1].tolist())

    # -- issuing and scoring intervals ------------------------------------------------------------

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
        weights = validation.weights(w, len(values))
        if names:
            return targets.Targets(names, values), weights  # which the model itself will check
        good = (np.abs(values) <= _bounds.LARGEST) & (weights > 0) & (weights <= HEAVIEST)
        if not good.all():
            bad = int(np.argmin(good))
            validation.refuse_large_row(values[bad], weights[bad], _bounds.LARGEST, bad)
        return targets.Targets(None, values.reshape(-1, 1)), weights

    def _named(self, results: Any) -> Any:
        """Return the results of targets by name; of one target, its result alone."""
        return results[0] if self._bounds.targets == 1 else _named(tuple(self.targets), results)

    def _in_kind(self, X: Any, predictions: FloatArray) -> Any:
        names = tuple(self.targets)
        if names:
            return targets.in_kind(X, np.ascontiguousarray(predictions), names)
        return frames.like(X, np.ascontiguousarray(predictions[:, 0]))

    def _plain(self, predictions: FloatArray, bounds: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return predictions and bounds; of one target, without a dimension of targets."""
        if self.targets:
            return np.ascontiguousarray(predictions), bounds
        return np.ascontiguousarray(predictions[:, 0]), bounds[:, 0]

    def _issue_one(self, x: dict[Any, Any], given: int = 0) -> tuple[FloatArray, int]:
        """Return the prediction of a row with its bounds, and its region."""
        x = self._encoded_one(x)
        with self._turn():
            prediction, region = self._wrapped.predict_one(x, given, True)
            groups = np.array([self._group_of(x)], np.int32)
            issued = self._issue(np.array([region], np.int32), _row(prediction, 1), groups)
            self._bounds.remember(np.array([given or key_of_row(x)], np.uint64), issued)
        return issued, region

    def _issue_many(
        self, X: Any, given: Any = None, record: bool = True
    ) -> tuple[FloatArray, IntArray]:
        """Return the predictions of rows with their bounds, and their regions."""
        X = self._encoded(frames.lasting(X))
        with self._turn():
            predictions, regions = self._wrapped.predict_many(X, given, record)
            issued = self._issue(regions, predictions, self._groups_of(X))
            if record:
                keys = self._keys(X, len(issued)) if given is None else given
                self._bounds.remember(keys, issued)
        return issued, regions

    def _issue(
        self, regions: IntArray, predictions: FloatArray, groups: IntArray | None = None
    ) -> FloatArray:
        if predictions.shape[1] != self._bounds.targets:
            self._meet_targets()
        self._follow_pruning()
        return self._bounds.predict(self._parents(), regions, predictions, groups)

    def _parents(self) -> IntArray:
        return self._wrapped.parents

    def _keys(self, X: Any, rows: int) -> Any:
        """Return the keys of rows that have no ids: hashes of their values."""
        batch = EncodedBatch.of(X, names=getattr(self.model, "features", ()))
        return batch.token if len(batch.columns) else keys_of_columns({}, rows)

    def _score(
        self,
        X: Any,
        before: Before,
        y: FloatArray,
        w: FloatArray,
        *,
        keys: Any,
        bounds: FloatArray | None = None,
    ) -> None:
        if y.shape[1] != self._bounds.targets:
            self._meet_targets()
            keys = None
        self._follow_pruning()
        known, groups = len(self._groups), self._groups_of(X, True)
        self._bounds.score(
            self._parents(),
            before.regions,
            before.predictions,
            y,
            w,
            keys=keys,
            bounds=bounds,
            groups=groups,
            known_groups=known,
        )

    # -- looking inside ---------------------------------------------------------------------------

    @offered
    def explain(self, x: Mapping[Any, Any], *arguments: Any, **own: Any) -> Any:
        """Return how the prediction for a row comes about, as the model explains it."""
        return self.model.explain(self._encoded_one(x), *arguments, **own)

    @offered
    def predict_region_one(self, x: dict[Any, Any], record: bool = True, *, id: Any = None) -> Any:
        """Predict one row, with its region in the model."""
        return self._place_one(x, 0 if id is None else key_of(id), record)

    @offered
    def predict_regions(self, X: Any, *, ids: Any = None, record: bool = True) -> Any:
        """Predict many rows, with their regions in the model."""
        return self._place_many(X, None if ids is None else keys_of(ids), record)

    @offered
    def tell_one(self, x: dict[Any, Any]) -> Any:
        """Predict one row: deprecated, use ``predict_one(x, record=False)``."""
        deprecated("tell_one(x)", "predict_one(x, record=False)")
        return self.predict_one(x, record=False)

    @offered
    def learn_telling(self, X: Any, y: Any, w: ArrayLike | None = None) -> Any:
        """Learn rows: deprecated, use ``predict_learn_many(X, y, w, delayed=True)``."""
        deprecated("learn_telling(X, y, w)", "predict_learn_many(X, y, w, delayed=True)")
        return self.predict_learn_many(X, y, w, delayed=True)

    def merge(self, other: Any, *more: Any) -> NoReturn:
        """Raise ValueError: a merged model has made none of the errors of its parts.

        Parameters
        ----------
        other, *more : objects
            Whatever is to be merged.
        """
        raise ValueError(
            "models with prediction intervals cannot be merged: their intervals are learned from "
            "the errors of each model, which a merged one has not made; merge the models inside "
            "(.model), and put an IntervalRegressor around the result"
        )

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
        return {"model": self.model, "levels": self.levels, "by": self._by}

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
        """What each feature is, as the model reports it."""
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
        issued = self._issue(leaves, np.zeros((len(leaves), max(1, len(self.targets)))))
        found = np.zeros((issued.shape[1], len(leaves)), WIDTH_RECORD)
        found["region"], found["rows"] = leaves, self._bounds.rows_of(leaves)
        found["width"] = (issued[:, :, -1] - issued[:, :, -2]).T
        return self._named(found)

    @property
    def nbytes(self) -> int:
        """Bytes of the model, if it reports them, and of all that bounds need."""
        errors = 0 if self._wrapped.errors is None else self._wrapped.errors.nbytes
        return int(self._bounds.nbytes + errors + getattr(self.model, "nbytes", 0))

    def __repr__(self) -> str:
        levels = ", ".join(f"{level:g}" for level in self.levels)
        return f"<IntervalRegressor({self.model!r}, levels=({levels}))>"

    def of_target(self, target: Label) -> Self:
        """Return a copy for one of several targets, with its bounds.

        It predicts values and intervals as this model does for that target, to the last bit. What was
        predicted for rows whose y is still to come is not known to it.

        Parameters
        ----------
        target : str or int
            Its name.
        """
        if target not in self.targets:
            self.model.of_target(target)  # raises an error that names the targets
        made = type(self)(self.model, self.levels, self._by)
        made._groups, made._grouped = self._groups.copy(), self._grouped
        made._wrapped = self._wrapped.of_target(target)
        made._bounds = self._bounds.of_target(self.targets.index(target))
        made._schema = self._schema
        return made

    # -- files and copies -------------------------------------------------------------------------

    @property
    def all_or_nothing(self) -> bool:  # type: ignore[override]
        """Whether rows that are rejected have changed nothing, as the model promises."""
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
        with self._turn():
            return interval_state.state_of(self)

    @classmethod
    def from_state(cls, state: State, format: int) -> Self:
        """Restore what `to_state` returned; nothing of it is trusted.

        Raises
        ------
        ValueError, TypeError, OverflowError
            If there is anything wrong with it.
        """
        return interval_state.restore(cls, state, format)

    def copy(self) -> Self:
        """Return an independent copy; a model of another library is copied by `copy.deepcopy`."""
        with self._turn():
            return pickled(*interval_state.parts_of(self, copy.deepcopy(self.model)))

    def __reduce__(self) -> tuple[Any, ...]:
        with self._turn():
            return pickled, interval_state.parts_of(self, self.model)


def pickled(kind: type[Model], model: Any, header: dict[str, Any], arrays: dict[str, Any]) -> Model:
    """Return a model with prediction intervals, made of the wrapped model and its own state."""
    made = kind(model, header["levels"], header["by"])
    interval_state.fill(made, header, arrays)
    return made


def _named(names: tuple[Label, ...], results: Any) -> Any:
    """Return the results of targets by name; of one target, its result alone."""
    return dict(zip(names, results, strict=True)) if names else results[0]


def _row(prediction: Any, targets: int) -> FloatArray:
    """Return the predictions of a row for each target; before the first row there is but one."""
    if isinstance(prediction, dict):
        return np.array([[*prediction.values()]])
    return np.array([[prediction] * targets], dtype=np.float64)
