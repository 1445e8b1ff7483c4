"""Prediction intervals for any model."""

import copy
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sapwood import validation
from sapwood.corrector.tokens import key_of, keys_of
from sapwood.intervals import interval_state
from sapwood.intervals.learning import IntervalLearning
from sapwood.intervals.wrapped import Before
from sapwood.model import State
from sapwood.rows import frames, targets
from sapwood.stages import EncodedBatch, Prediction
from sapwood.validation import Label

__all__ = ["Interval", "IntervalRegressor"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int32]

Model = TypeVar("Model", bound="IntervalRegressor")

WIDTH_RECORD = np.dtype([("region", np.int32), ("rows", np.float64), ("width", np.float64)])


class Interval(NamedTuple):
    """A prediction and its lower and upper bound, NaN before enough errors are known."""

    lower: float
    prediction: float
    upper: float


class IntervalRegressor(IntervalLearning):
    """Prediction intervals for any model, learned from its errors.

    It learns and predicts exactly as the model inside, bit for bit, and records the errors. The
    width of intervals depends on the leaf of a row; for models without leaves, a small tree that
    learns the size of errors provides them. The width also depends on the size of recent errors and
    on their distribution. Each label is scored against the interval that was issued for its row,
    also if the label is delayed. The intervals of each level are corrected until their coverage is
    the nominal level.

    Parameters
    ----------
    model : object
        A model of Sapwood, or any model with `predict_one` and `learn_one`, `predict_many` and
        `learn_many`, or `predict` and `partial_fit`. The model itself learns, not a copy.
    levels : iterable of float
        The nominal levels of the intervals, between 0 and 1.
    by : name of a feature, optional
        Coverage is corrected separately for each value of this feature, for at most 63 values. By
        default, this is the hour of the rows' time, if the `schema` of the model has one.

    Notes
    -----
    Bounds are NaN until 20 errors are known. An interval may lie above or below the prediction if
    predictions are usually too high or too low. If the smallest or largest target has occurred ten
    times, such as 0 among counts, no bound lies beyond it, unless the whole interval of the
    smallest level does. The last 10,000 pending predictions are stored, and found by the features
    of the row.

    Each target of a multi-target model has its own intervals. A missing target does not change the
    intervals of this target.

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
    _cannot_merge = (
        "models with prediction intervals cannot be merged: their intervals are learned from "
        "the errors of each model, which a merged one has not made; merge the models inside "
        "(.model), and put an IntervalRegressor around the result"
    )

    # -- predictions ------------------------------------------------------------------------------

    def predict(self, batch: EncodedBatch) -> Prediction:
        """Predict the rows of a batch, with regions and intervals; see `sapwood.stages`."""
        issued, regions = self._issue_many(batch.columns, batch.token)
        values, intervals = self._published(issued)
        return Prediction(values, batch.token, regions, intervals)

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
        own = targets.read(y)
        before = Before(np.empty(own.values.shape))
        keys = None if ids is None else keys_of(ids)
        bounds = self._learn(X, own, w, keys, delayed=False, before=before)
        return self._plain(before.predictions), self._plain(bounds)

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
        return self._published(issued)

    def _published(self, issued: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the predictions and bounds of issued intervals."""
        predictions = np.ascontiguousarray(issued[:, :, 0])
        return self._plain(predictions), self._plain(self._bounds.published(issued))

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

    # -- looking inside ---------------------------------------------------------------------------

    @property
    def levels(self) -> tuple[float, ...]:
        """The levels, ascending."""
        return tuple(self._levels.tolist())

    @property
    def parameters(self) -> dict[str, Any]:
        """The arguments that make a model like this one; with the model as it is now."""
        return {"model": self.model, "levels": self.levels, "by": self._by}

    @property
    def region_tree(self) -> Any:
        """The tree whose leaves are the regions: the model itself, or the tree of its errors."""
        return self.model if self._wrapped.errors is None else self._wrapped.errors

    @property
    def widths(self) -> Any:
        """Of each region, its node in `region_tree`, its rows, and how wide its bounds are now.

        Widths refer to the largest of `levels`, and are NaN until enough errors are known. When a
        node splits, each child inherits half of its rows. For several targets, a dict of arrays.
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

        Its predictions and intervals equal those of this model for the target, bit for bit. It does
        not contain pending predictions.

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
