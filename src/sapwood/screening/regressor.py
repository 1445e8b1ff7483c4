"""A model of many features, which gets those that have shown evidence."""

from collections.abc import Iterable
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sapwood import validation
from sapwood.hybrid.members import ManyRows, OneRow, StreamRows, many_rows
from sapwood.model import State, from_bytes
from sapwood.regressor import Regressor
from sapwood.row_methods import array_for, whole_batch
from sapwood.rows._dict_row import RowReader
from sapwood.rows.column import CATEGORY
from sapwood.rows.encoded import marked_like
from sapwood.rows.features import Features
from sapwood.rows.targets import Targets
from sapwood.screening import files
from sapwood.screening.evidence import FIRST, Evidence, fresh
from sapwood.stages.one_target import OneTargetStage, checked_model, labels_of
from sapwood.stages.stage import passed_on, rows_learned
from sapwood.tree._kernel import refuse_row
from sapwood.validation import Label
from sapwood.views.columns import CONSTANT

__all__ = ["ScreenedRegressor"]

FloatArray = NDArray[np.float64]

MODEL, MOST_FEATURES = "model", 4_000


class Held(NamedTuple):
    """What changes with learned rows; it is replaced as a whole.

    Attributes
    ----------
    evidence : Evidence
        What is known of features.
    hidden : frozenset
        The names that the model inside does not get.
    """

    evidence: Evidence
    hidden: frozenset[Label]


class ScreenedRegressor(OneTargetStage):
    """A model of many features, of which few matter.

    Features that have nothing to do with the target make a model slower, and less accurate: among
    hundreds, some fit by chance. Here the model inside gets a number if its values have shown
    evidence: if the mean label, or the mean error of the model, differs between them more than by
    chance. Features with less evidence follow one by one, up to 16 in all. What was chosen stays.

    Strings, and features that come after the first 100 rows, are always used. Rows of at most
    `features` numbers are not screened.

    Parameters
    ----------
    model : HoeffdingTreeRegressor, AdaptiveTreeRegressor or ForestRegressor
        A model of Sapwood of one target that has learned nothing yet.
    features : int
        How many numbers the model inside gets at most.

    Examples
    --------
    >>> import numpy as np, sapwood
    >>> rng = np.random.default_rng(1)
    >>> X = rng.normal(size=(2_000, 300))
    >>> y = 3 * X[:, 7] + np.abs(X[:, 8]) + rng.normal(0, 0.1, 2_000)
    >>> screened, alone = sapwood.ScreenedRegressor(sapwood.ForestRegressor()), sapwood.ForestRegressor()
    >>> errors = [np.mean(np.abs(m.predict_learn_many(X, y) - y)[1000:]) for m in (screened, alone)]
    >>> bool(errors[0] < 0.5 * errors[1])
    True
    >>> {7, 8} <= {*screened.names}
    True
    """

    kind: ClassVar[str] = "ScreenedRegressor"
    format: ClassVar[int] = 1

    def __init__(self, model: Any, *, features: int = 64) -> None:
        inner = checked_model(model, "the model of screened features")
        if rows_learned(inner):
            raise ValueError("the model has learned y itself: give a new one")
        super().__init__()
        self._model: Any = inner
        self._most = validation.whole(features, "features", 1, MOST_FEATURES)
        self._features = Features(inner.parameters.get("categorical", ()))
        self._reader = RowReader(self._features)
        self._held = Held(fresh(), frozenset())

    @property
    def model(self) -> Any:
        """The model inside."""
        return self._model

    @property
    def features(self) -> list[Label]:
        """The names of all features, in the order of their first appearance."""
        return list(self._features.names)

    @property
    def names(self) -> list[Label]:
        """The names that the model inside gets: those that were chosen first, in their order."""
        with self._turn():
            names, held = self._features.names, self._held
            chosen = [names[place] for place in held.evidence.chosen]
            others = [n for n in names if n not in held.hidden and n not in {*chosen}]
            return chosen + others

    # -- predictions ------------------------------------------------------------------------------

    def _place_one(self, x: dict[Any, Any], key: int = 0, record: bool = True) -> tuple[float, int]:
        row = OneRow(self._encoded_one(x))
        with self._turn():
            if record and not key and self._held.evidence.rows:
                key = int(row.keys()[0])
            found: tuple[float, int]
            found = self._model._place_one(_without(row, self._held.hidden).x, key, record)
            return found

    def _place_many(
        self, X: Any, keys: Any = None, record: bool = True
    ) -> tuple[FloatArray, NDArray[np.int32] | None]:
        encoded = self._encoded(X)
        with self._turn():
            rows = many_rows(encoded, keys, self.features)
            if record and keys is None and self._held.evidence.rows:
                keys = rows.keys()
            found: tuple[FloatArray, NDArray[np.int32] | None]
            inner = _without(rows, self._held.hidden)
            found = self._model._place_many(inner.columns, keys, record)
            return found

    # -- learning ---------------------------------------------------------------------------------

    def _learn_row(self, x: dict[Any, Any], y: Any, w: float, key: int) -> None:
        label, weight = validation.number(y, "y"), validation.number(w, "w")
        row = OneRow(self._encoded_one(x), np.array([key], np.uint64) if key else None)
        with self._turn():
            self._learn(row, np.array([label]), np.array([weight]), np.empty(1))

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
        labels = labels_of(y, "features are screened for one; use a model for each")
        weights = np.ascontiguousarray(validation.weights(w, len(labels)))
        encoded = self._encoded(X)
        found = array_for(predicting, labels.shape)
        with self._turn():
            rows = many_rows(encoded, keys, self.features)
            self._learn(rows, labels, weights, found, regions, delayed=delayed)
        return found

    def _learn(
        self,
        rows: StreamRows,
        y: FloatArray,
        w: FloatArray,
        found: FloatArray,
        regions: Any = None,
        *,
        delayed: bool = True,
    ) -> None:
        """Learn rows in parts, after each of which features may be chosen; all rows, or none."""
        plan = rows.plan(self._reader, True)
        validation.check_labels(rows.count, len(y))
        if (bad := self._model._kernel.check(y, w)) >= 0:
            refuse_row(y[bad], w[bad], bad)
        before, first = self._features.names, self._held.evidence.rows
        known, matrix = plan.known(), plan.matrix
        if delayed and rows.ids is None and rows.count:
            rows.ids = rows.keys()
            if not first:
                rows.ids[:1] = 0  # no prediction waits for the first label of all

        splits = {*rows.first_rows(), *_first_strings(known, matrix)} if first < FIRST else {}

        def learn(start: int) -> None:
            while start < rows.count:
                stop = min(rows.count, self._held.evidence.due - first)
                if first + start < FIRST:
                    stop = min([stop, *(row for row in splits if row > start)])
                own = slice(start, stop)
                part = rows.part(start, stop)
                width = len({*before, *part.names()})  # features of later rows come after
                X = np.ascontiguousarray(matrix[own, :width])
                some = None if regions is None else regions[own]
                self._learn_part(
                    part, X, known, (y[own], w[own]), found[own], regions=some, delayed=delayed
                )
                start = stop

        def rows_done() -> int:
            with self._turn():  # which finishes the part that was interrupted
                return self._held.evidence.rows - first

        whole_batch(learn, rows_done)

    def _learn_part(
        self,
        rows: StreamRows,
        X: FloatArray,
        known: Any,
        labelled: tuple[FloatArray, FloatArray],
        found: FloatArray,
        *,
        regions: Any,
        delayed: bool,
    ) -> None:
        """Learn rows between which nothing is chosen; `found` gets what is predicted before each."""
        held, done = self._held, np.zeros(1, np.uint8)
        hidden, (y, w) = held.hidden, labelled
        if held.evidence.rows < FIRST:
            numbers = {known.names[place] for place in self._numbers(known, X)}
            if len(numbers) > self._most:  # those that the model has learned already stay
                hidden |= numbers - {*self._model.features}
        inner = _without(rows, hidden)

        def learn() -> None:
            if isinstance(inner, ManyRows):
                self._model._learn_into(
                    inner.columns, y, w, found, regions, keys=inner.ids, delayed=delayed
                )
            else:
                targets = Targets(None, y[:, np.newaxis])
                inner.learn_into(self._model, targets, w, found[:, np.newaxis], delayed=delayed)

        def finish() -> None:
            tracks, scores = held.evidence.scored(y, np.ascontiguousarray(found))
            made = held.evidence.after(X, tracks, scores, done)
            after = hidden
            if made.rows == FIRST:
                places = self._numbers(known, X)
                used = [place for place in places if known.names[place] not in hidden]
                others = [place for place in places if known.names[place] in hidden]
                made = made.begun(used if hidden else [], others)
            if made.rows >= made.due:
                made = made.reviewed(self._most)
                after = hidden - {known.names[place] for place in made.chosen}
            self._features.known, self._held = known, Held(made, after)

        self._both(learn, finish, lambda: self._held is held)

    def _numbers(self, known: Any, X: FloatArray) -> list[int]:
        """Return the columns of numbers, and of features that have had no value yet."""
        first = self._held.evidence.first
        values = np.count_nonzero(~np.isnan(X), axis=0)
        values[: first.shape[1]] += np.count_nonzero(~np.isnan(first), axis=0)
        kinds = zip(known.kinds, values.tolist(), strict=False)
        return [place for place, (kind, has) in enumerate(kinds) if kind != CATEGORY or not has]

    # -- looking inside ---------------------------------------------------------------------------

    to_rules = passed_on("Return one rule for each leaf of the model inside.")

    @property
    def nbytes(self) -> int:
        """Bytes of the model inside, and of the evidence of features."""
        with self._turn():
            return int(self._model.nbytes) + self._held.evidence.nbytes + self._features.nbytes

    def __repr__(self) -> str:
        used = len(self._features.names) - len(self._held.hidden)
        return f"<ScreenedRegressor({self._model!r}): {used} of {len(self._features.names)}>"

    # -- files ------------------------------------------------------------------------------------

    def to_state(self) -> State:
        """Return all that the model is."""
        with self._turn():
            header, arrays = files.state_of(self._held.evidence)
            header |= {
                "features": self._most,
                "schema": self._features.to_header(),
                "hidden": [name for name in self._features.names if name in self._held.hidden],
            }
            return State(header, {MODEL: np.frombuffer(self._model.to_bytes(), np.uint8), **arrays})

    @classmethod
    def from_state(cls, state: State, format: int) -> Self:
        """Restore what `to_state` returned; nothing of it is trusted.

        Raises
        ------
        ValueError, TypeError
            If there is anything wrong with it.
        """
        header, arrays = dict(state.header), dict(state.arrays)
        most, schema, hidden = (header.pop(name) for name in ("features", "schema", "hidden"))
        model = from_bytes(arrays.pop(MODEL).tobytes(), "the model of screened features")
        if not isinstance(model, Regressor) or model.targets:
            raise ValueError("the model inside is none of one target")
        made = cls(type(model)(**model.parameters), features=most)
        made._model, made._features = model, Features.from_header(schema)
        made._reader = RowReader(made._features)
        names = made._features.names
        evidence = files.restored(header, arrays, len(names), made._most)
        if evidence.rows != rows_learned(model):
            raise ValueError("its evidence and the model inside have learned different rows")
        if not isinstance(hidden, list) or not {*hidden} <= {*names}:
            raise ValueError("a feature that is not used is none")
        chosen = {names[place] for place in evidence.chosen}
        if chosen & {*hidden}:
            raise ValueError("a feature was chosen, and is not used")
        made._held = Held(evidence, frozenset(hidden))
        return made


def _first_strings(known: Any, matrix: FloatArray) -> list[int]:
    """Return the rows in which features that are categories have their first values."""
    strings = [place for place, kind in enumerate(known.kinds) if kind == CATEGORY]
    values = ~np.isnan(matrix[:, strings])
    return np.argmax(values, axis=0)[values.any(axis=0)].tolist() if len(matrix) else []


def _without(rows: Any, hidden: Iterable[Label]) -> Any:
    """Return a row, or rows, without some features."""
    is_one = isinstance(rows, OneRow)
    given = rows.x if is_one else rows.columns
    if not hidden:
        return rows
    own = {name: value for name, value in given.items() if name not in hidden}
    own[CONSTANT] = 0.0 if is_one else np.zeros(rows.count)
    own = marked_like(given, own)
    return OneRow(own, rows.ids) if is_one else ManyRows(own, rows.count, rows.ids)
