"""Lags in front of a model: together they are one that reads rows as they come."""

import json
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sapwood import validation
from sapwood.corrector._pending import key_of_id
from sapwood.deprecation import deprecated
from sapwood.lags.lags import Lags, Ticket
from sapwood.model import Model, State, from_bytes, is_all_or_nothing
from sapwood.rows import frames, targets
from sapwood.stages.protocol import EncodedBatch, Prediction
from sapwood.stages.stage import Stage, offered, passed_on
from sapwood.validation import Label

__all__ = ["LaggedModel"]

INNER = "model"
PAST = "past."
PENDING = "pending"
MOST_PENDING = 100_000  # rows with ids that wait for their labels; the oldest go first


class LaggedModel(Stage):
    """A model whose rows get their lags, which are remembered and saved along with it.

    Parameters
    ----------
    model : object
        A model of Sapwood, such as `sapwood.HoeffdingTreeRegressor`. Other ones can be evaluated,
        but not saved.
    lags : Lags
        What is known of earlier rows.

    Notes
    -----
    A row that is predicted with an id becomes past at once, and is learned with the lags that it
    was predicted with, when `learn_one` brings its label under the same id: as in a stream whose
    labels are delayed. Without ids, a row becomes past when it is learned.

    Every method that takes rows gives them their lags first. `.model` is the model inside, which
    takes rows that have them.

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
    format = 3
    lags: Lags

    def __init__(self, model: Any, lags: Lags) -> None:
        if not isinstance(lags, Lags):
            raise ValueError(f"lags = {validation.shown(lags)}: those of sapwood.lags are expected")
        if isinstance(model, LaggedModel):
            raise ValueError(
                "the model has lags already, and a row has one past: name all lags in one Lags"
            )
        known = list(model.targets) if getattr(model, "several_targets", False) else []
        if known and (isinstance(lags.target, str) or set(known) != set(lags.target)):
            told = ", ".join(map(validation.shown, known))
            raise ValueError(f"the targets of the model are {told}: name them in lags, as target=")
        super().__init__()
        self._model = model
        self.lags = lags
        self._pending: dict[int, tuple[dict[Any, Any], Ticket]] = {}

    @property
    def model(self) -> Any:
        """The model inside, whose rows have their lags."""
        return self._model

    @model.setter
    def model(self, model: Any) -> None:
        self._model = model

    @property
    def several_targets(self) -> bool:
        """Whether lags are of several targets, which the model can learn."""
        return not isinstance(self.lags.target, str) and getattr(
            self.model, "several_targets", False
        )

    @property
    def all_or_nothing(self) -> bool:  # type: ignore[override]
        """Whether rows that are rejected have changed nothing, as the model promises."""
        return is_all_or_nothing(self.model)

    # -- one row ----------------------------------------------------------------------------------

    def learn_one(self, x: dict[Any, Any], y: Any, w: float = 1.0, *, id: Any = None) -> None:
        """Learn one row, and let it become past.

        Parameters
        ----------
        x, y, w
            As for the model itself.
        id : str, int, or tuple of such, optional
            The id by which the row was predicted: then it is past already, and learned with the
            lags that it had.
        """
        own = () if w == 1.0 else (w,)
        more = {} if id is None else {"id": id}
        self._learn_one(x, y, id, lambda row, y: self.model.learn_one(row, y, *own, **more))

    def _learn_row(self, x: dict[Any, Any], y: Any, w: float, key: int) -> None:
        """Learn one row, for a stage around this one; given the key of its id, or 0."""
        self._learn_one(x, y, None, lambda row, y: self.model._learn_row(row, y, w, key), key)

    def _learn_one(
        self, x: Any, y: Any, id: Any, learn: Callable[[Any, Any], Any], key: int = 0
    ) -> None:
        x = self._encoded_one(x)
        with self._turn():
            if not isinstance(self.lags.target, str):
                y = targets.named(self.lags.target, self.lags._labels_one(y))
            key = key_of_id(id) if id is not None else key
            if key in self._pending:
                row, ticket = self._pending[key]
                self.lags._labels_one(y)  # which raises if it is no label

                def label() -> None:
                    self.lags.label(ticket, y)
                    self._pending.pop(key, None)

                self._both(lambda: learn(row, y), label, lambda: True)
                return
            row, plan = self.lags.plan_one(x, y)
            self._both(lambda: learn(row, y), plan.push, lambda: plan.is_due)

    def _next(self, x: Any, key: int) -> dict[Any, Any]:
        """Return the next row with its lags; one with an id becomes past, and waits."""
        if key in self._pending:
            return self._pending[key][0]
        row, plan = self.lags.plan_one(x)
        if key:
            ticket = Ticket(self.lags._key_of(x), plan.number)

            def arrive() -> None:
                self._pending[key] = row, ticket
                if plan.is_due:
                    plan.push()

            self._surely(arrive, lambda: True)
            while len(self._pending) > MOST_PENDING:
                del self._pending[next(iter(self._pending))]
        return row

    def _ask_one(self, method: str, x: Any, *arguments: Any, id: Any = None, **own: Any) -> Any:
        """Call a method of the model inside with a row that has its lags."""
        x = self._encoded_one(x)
        with self._turn():
            row = self._next(x, 0 if id is None else key_of_id(id))
            if id is not None:
                own["id"] = id
            return getattr(self.model, method)(row, *arguments, **own)

    def predict_one(self, x: dict[Any, Any], *, id: Any = None, **own: Any) -> Any:
        """Predict the next row; nothing is changed, unless it has an id.

        Parameters
        ----------
        x : dict
            The features, without lags.
        id : str, int, or tuple of such, optional
            By which `learn_one` will bring the label. The row becomes past at once.
        **own
            ``record=False``, as for models of Sapwood.
        """
        found = self._ask_one("predict_one", x, id=id, **own)
        return found if isinstance(found, Mapping) else float(found)

    @offered
    def explain(self, x: Mapping[Any, Any], *arguments: Any, **own: Any) -> Any:
        """Return how the prediction for the next row comes about."""
        with self._turn():
            row = self.lags.transform_one(self._encoded_one(x))
            return self.model.explain(row, *arguments, **own)

    @offered
    def predict_region_one(self, x: dict[Any, Any], record: bool = True, *, id: Any = None) -> Any:
        """Predict the next row, with its region."""
        return self._ask_one("predict_region_one", x, record, id=id)

    @offered
    def predict_interval_one(self, x: dict[Any, Any], level: float = 0.9) -> Any:
        """Predict the next row, with its prediction interval."""
        return self._ask_one("predict_interval_one", x, level)

    @offered
    def predict_intervals_one(self, x: dict[Any, Any], *, id: Any = None) -> Any:
        """Predict the next row, with the intervals of all levels."""
        return self._ask_one("predict_intervals_one", x, id=id)

    @offered
    def predict_quantile_one(self, x: dict[Any, Any], q: float) -> Any:
        """Return a quantile of y for the next row."""
        return self._ask_one("predict_quantile_one", x, q)

    @offered
    def tell_one(self, x: dict[Any, Any]) -> Any:
        """Predict the next row: deprecated, use ``predict_one(x, record=False)``."""
        deprecated("tell_one(x)", "predict_one(x, record=False)")
        return self._ask_one("predict_one", x, record=False)

    # -- many rows --------------------------------------------------------------------------------

    def learn_many(self, X: Any, y: Any, w: ArrayLike | None = None, *, ids: Any = None) -> None:
        """Learn rows, and let them become past: the same as `learn_one` in a loop.

        Parameters
        ----------
        X, y, w
            As for the model itself.
        ids : sequence, optional
            The id of each row, as for `learn_one`: rows are then learned one by one.
        """
        if ids is None:
            self._learn(self.model.learn_many, X, y, w)
            return
        batch = EncodedBatch.of(X, ids)
        self.learn(EncodedBatch(batch.columns, np.array(ids, dtype=object)), y, w)

    def predict_many(self, X: Any, *, ids: Any = None, **own: Any) -> Any:
        """Predict the next rows, whose targets are not known; nothing is changed without ids.

        Parameters
        ----------
        X : mapping of columns, data frame, or array
            The features, without lags. A lag of 24 is known for the first 24 rows of each series.
        ids : sequence, optional
            The id of each row, as for `predict_one`.
        **own
            ``record=False``, as for models of Sapwood.
        """
        if ids is None:
            return _in_kind(X, self._ask_many("predict_many", X, **own))
        columns = EncodedBatch.of(self._encoded(X), ids).columns
        found = [
            self.predict_one(x, id=id, **own) for x, id in zip(_rows(columns), ids, strict=True)
        ]
        if found and isinstance(found[0], Mapping):
            return _in_kind(X, {name: np.array([x[name] for x in found]) for name in found[0]})
        return _in_kind(X, np.array(found))

    def _ask_many(self, method: str, X: Any, *arguments: Any, **own: Any) -> Any:
        """Call a method of the model inside with rows that have their lags."""
        X = self._encoded(X)
        with self._turn():
            return getattr(self.model, method)(self.lags.transform_many(X), *arguments, **own)

    def predict_learn_many(self, X: Any, y: Any, w: ArrayLike | None = None, **own: Any) -> Any:
        """Predict each row before it is learned, and let it become past.

        Parameters
        ----------
        X, y, w
            As for the model itself.
        **own
            ``delayed=True``, as for models of Sapwood.
        """
        return _in_kind(X, self._learn(self.model.predict_learn_many, X, y, w, **own))

    @offered
    def predict_regions(self, X: Any, **own: Any) -> Any:
        """Predict the next rows, with their regions."""
        return self._ask_many("predict_regions", X, **own)

    @offered
    def predict_intervals_many(self, X: Any) -> Any:
        """Predict the next rows, with the intervals of all levels."""
        return self._ask_many("predict_intervals_many", X)

    @offered
    def predict_interval_many(self, X: Any, level: float = 0.9) -> Any:
        """Return the prediction intervals of the next rows."""
        found = self._ask_many("predict_interval_many", X, level)
        if isinstance(found, Mapping):
            return found
        return frames.frame_like(X, {"lower": found[:, 0], "upper": found[:, 1]}, found)

    @offered
    def predict_learn_regions(self, X: Any, y: Any, w: ArrayLike | None = None, **own: Any) -> Any:
        """Predict each row before it is learned, with its region."""
        return self._learn(self.model.predict_learn_regions, X, y, w, **own)

    @offered
    def predict_learn_intervals(self, X: Any, y: Any, w: ArrayLike | None = None) -> Any:
        """Predict each row before it is learned, with the intervals of all levels."""
        return self._learn(self.model.predict_learn_intervals, X, y, w)

    @offered
    def learn_telling(self, X: Any, y: Any, w: ArrayLike | None = None) -> Any:
        """Learn rows: deprecated, use ``predict_learn_many(X, y, w, delayed=True)``."""
        deprecated("learn_telling(X, y, w)", "predict_learn_many(X, y, w, delayed=True)")
        return self._learn(self.model.predict_learn_many, X, y, w, delayed=True)

    def _learn(
        self, learn: Callable[..., Any], X: Any, y: Any, w: ArrayLike | None, **own: Any
    ) -> Any:
        """Let the model learn rows in a way of its own, and return what that returns."""
        with self._turn():
            if not isinstance(self.lags.target, str):
                y = targets.Targets(self.lags.target, self.lags._labels(y))
            plan = self.lags.plan(self._encoded(X), y)
            more = () if w is None else (w,)
            return self._both(
                lambda: learn(plan.features, y, *more, **own), plan.push, lambda: plan.is_due
            )

    # -- as a stage -------------------------------------------------------------------------------

    def predict(self, batch: EncodedBatch) -> Prediction:
        """Predict the rows of a batch, which become past; see `sapwood.stages`."""
        ids = [("token", int(each)) for each in batch.token]
        found = [
            self.predict_one(x, id=id) for x, id in zip(_rows(batch.columns), ids, strict=True)
        ]
        values = [[*each.values()] if isinstance(each, Mapping) else each for each in found]
        return Prediction(np.array(values, np.float64), batch.token)

    def learn(self, batch: EncodedBatch, y: Any, w: ArrayLike | None = None) -> None:
        """Learn the labels of a batch, found by its token."""
        read = targets.read(y)
        weights = validation.weights(w, len(read.values)).tolist()
        for x, id, label, weight in zip(
            _rows(batch.columns), batch.token.tolist(), read.values, weights, strict=True
        ):
            own = label.tolist()
            if read.names:
                own = dict(zip(read.names, own, strict=True))
            token = ("token", id) if batch.token.dtype == np.uint64 else id
            self.learn_one(x, own, weight, id=token)

    # -- for stages around it ---------------------------------------------------------------------

    def _place_one(self, x: dict[Any, Any], key: int = 0, record: bool = True) -> Any:
        x = self._encoded_one(x)
        with self._turn():
            if record:
                row = self._next(x, key)
            else:
                pending = self._pending.get(key)
                row = self.lags.plan_one(x)[0] if pending is None else pending[0]
            return self.model._place_one(row, key, record)

    def _place_many(self, X: Any, keys: Any = None, record: bool = True) -> Any:
        if keys is None:
            return self._ask_many("_place_many", X, None, record)
        columns = EncodedBatch.of(X, keys).columns
        found = [
            self._place_one(x, key, record)
            for x, key in zip(_rows(columns), keys.tolist(), strict=True)
        ]
        values = [[*each.values()] if isinstance(each, Mapping) else each for each, _ in found]
        regions = np.array([region for _, region in found], np.int32)
        return np.array(values, np.float64), regions

    def _learn_into(
        self, X: Any, y: Any, w: Any, predictions: Any, regions: Any = None, **own: Any
    ) -> None:
        keys = own.get("keys")
        if keys is None or not any(key in self._pending for key in keys.tolist()):
            own["keys"] = keys

            def learn(features: Any, y: Any, *more: Any) -> None:
                weights = more[0] if more else None
                self.model._learn_into(features, y, weights, predictions, regions, **own)

            self._learn(learn, X, y, w)
            return
        self._learn_pending(X, y, w, (predictions, regions), keys)

    def _learn_pending(self, X: Any, y: Any, w: Any, before: tuple[Any, Any], keys: Any) -> None:
        """Learn rows of which some are past already, one by one."""
        predictions, regions = before
        read, columns = targets.read(y), EncodedBatch.of(X, keys).columns
        for place, (x, key) in enumerate(zip(_rows(columns), keys.tolist(), strict=True)):
            found, region = self._place_one(x, key, False)
            values = [*found.values()] if isinstance(found, Mapping) else found
            predictions[place] = values
            if regions is not None:
                regions[place] = region
            label = read.values[place].tolist()
            if read.names:
                label = dict(zip(read.names, label, strict=True))
            self._learn_row(x, label, float(w[place]), key)

    # -- looking inside ---------------------------------------------------------------------------

    parameters = passed_on("The arguments that make an empty model like the one inside.")
    n_leaves = passed_on("How many leaves the model has.")
    summary = passed_on("The model in a few numbers.")
    feature_importances = passed_on("The share of each feature, lags included.")
    overall_importances = passed_on("The share of each feature over all targets.")
    to_text = passed_on("Return the model as indented text.")
    to_rules = passed_on("Return one rule for each leaf of the tree.")
    to_frame = passed_on("Return the nodes of the tree as a frame.")
    draw = passed_on("Return a picture of the tree.")
    tree = passed_on("The tree that stands for the model.")
    member = passed_on("Return a member of an ensemble.")
    replacements = passed_on("How often trees of an ensemble were replaced.")
    listen = passed_on("Call a function whenever something happens to the trees.")
    unit_changes = passed_on("The changes of units that were found.")
    prune = passed_on("Turn a node into a leaf again.")
    region_parents = passed_on("The node that each node was split off from.")
    region_tree = passed_on("The tree whose leaves are the regions of intervals.")
    levels = passed_on("The levels of the prediction intervals.")
    widths = passed_on("How wide intervals are in each region.")
    targets = passed_on("The names of several targets, in their order.")

    @property
    def no_splits(self) -> Any:
        """The names of features that no leaf splits on; others can be assigned."""
        return self.model.no_splits

    @no_splits.setter
    def no_splits(self, names: Any) -> None:
        self.model.no_splits = names

    def merge(self, other: Any, *more: Any) -> NoReturn:
        """Raise ValueError: the pasts of two streams are not one past."""
        raise ValueError(
            "models with lags cannot be merged: each has its own past; merge the models inside, "
            "and put the lags of one of them around the result"
        )

    def of_target(self, target: Label) -> NoReturn:
        """Raise ValueError: one target alone would not know the lags of others.

        Parameters
        ----------
        target : str or int
            Its name.
        """
        raise ValueError(
            f"target = {validation.shown(target)}: a model with lags has no model of one target, which "
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
        with self._turn():
            return int(self.model.nbytes) + self.lags.nbytes

    def __repr__(self) -> str:
        return f"<LaggedModel({self.model!r}, {self.lags!r})>"

    # -- files ------------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """Return what `save` would write."""
        with self._turn():  # the state holds arrays of the lags themselves
            return super().to_bytes()

    def _detached_state(self) -> State:
        with self._turn():
            return super()._detached_state()

    def to_state(self) -> State:
        """Return all that the model is, and what it remembers."""
        with self._turn():
            header, arrays = self.lags.to_state()
            own: dict[str, NDArray[Any]] = {f"{PAST}{name}": each for name, each in arrays.items()}
            own[INNER] = np.frombuffer(self.model.to_bytes(), np.uint8)
            waiting = [
                [key, [*map(list, row.items())], list(ticket.key), ticket.number]
                for key, (row, ticket) in self._pending.items()
            ]
            own[PENDING] = np.frombuffer(json.dumps(waiting).encode(), np.uint8)
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
        wanted = {INNER} if format < 3 else {INNER, PENDING}
        if header.keys() != {"lags"} or not wanted <= arrays.keys():
            raise ValueError("its header has other entries than it should")
        if not isinstance(header["lags"], dict):
            raise ValueError("its lags are no dict")
        past = {
            name.removeprefix(PAST): each for name, each in arrays.items() if name not in wanted
        }
        if {*wanted, *(f"{PAST}{name}" for name in past)} != arrays.keys():
            raise ValueError("its arrays are not those of a model and of its past")
        lags = Lags.from_state(header["lags"], past)
        inner = from_bytes(arrays[INNER].tobytes(), "the model with lags")
        if not isinstance(inner, Model):
            raise ValueError(f"it has lags around a {type(inner).__name__}, which does not learn")
        made = cls(inner, lags)
        if PENDING in wanted:
            made._pending = _restored(arrays[PENDING])
        return made


def _restored(array: NDArray[Any]) -> dict[int, tuple[dict[Any, Any], Ticket]]:
    """Return the rows that wait for their labels, if they can be such."""
    saved = json.loads(array.tobytes())
    if not isinstance(saved, list) or len(saved) > MOST_PENDING:
        raise ValueError("the rows that wait for labels are not as they were saved")
    pending = {}
    for entry in saved:
        if not isinstance(entry, list) or len(entry) != 4:
            raise ValueError("a row that waits for its label is not as it was saved")
        key, items, series, number = entry
        good = isinstance(items, list) and all(
            isinstance(item, list) and len(item) == 2 and type(item[0]) in (str, int)
            for item in items
        )
        if not good or not isinstance(series, list) or type(key) is not int:
            raise ValueError("a row that waits for its label is not as it was saved")
        plain = (str, int, float, bool, type(None))
        if not all(isinstance(value, plain) for _, value in items):
            raise ValueError("a row that waits for its label has a value that cannot be")
        if not all(isinstance(part, plain) for part in series):
            raise ValueError("the series of a row that waits cannot be")
        ticket = Ticket(tuple(series), validation.whole(number, "the number of a row", 0, 2**53))
        pending[key] = dict(map(tuple, items)), ticket
    return pending


def _rows(columns: Mapping[Any, Any]) -> list[dict[Any, Any]]:
    """Return columns as dicts, one for each row."""
    lists = [each.tolist() if isinstance(each, np.ndarray) else each for each in columns.values()]
    return [dict(zip(columns, row, strict=True)) for row in zip(*lists, strict=True)]


def _in_kind(X: Any, predictions: Any) -> Any:
    """Return predictions for columns as users of X expect them."""
    if not isinstance(predictions, Mapping):
        return frames.like(X, np.asarray(predictions))
    return targets.in_kind(X, np.column_stack([*predictions.values()]), tuple(predictions))
