"""A model of many features, which gets those that have shown evidence."""

from collections.abc import Iterable
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from sapwood import validation
from sapwood.hybrid.members import ManyRows, OneRow, many_rows
from sapwood.model import State
from sapwood.row_methods import whole_batch
from sapwood.rows._dict_row import RowReader
from sapwood.rows.column import CATEGORY
from sapwood.rows.encoded import marked_like
from sapwood.rows.features import Features
from sapwood.screening import files
from sapwood.screening.evidence import FIRST, Evidence, fresh
from sapwood.stages.one_target import LabelledRows, OneTargetStage, checked_model
from sapwood.stages.stage import passed_on, rows_learned
from sapwood.tree._kernel import refuse_row
from sapwood.validation import Label
from sapwood.views.columns import CONSTANT

__all__ = ["ScreenedRegressor"]

FloatArray = NDArray[np.float64]

MOST_FEATURES = 4_000


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
    _one = "features are screened for one; use a model for each"

    def __init__(self, model: Any, *, features: int = 64) -> None:
        inner = checked_model(model, "the model of screened features")
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
    def feature_kinds(self) -> dict[Label, str]:
        """What each feature is, whether the model inside gets it or not."""
        return self._features.known.kinds_given

    @property
    def names(self) -> list[Label]:
        """The names that the model inside gets: those that were chosen first, in their order."""
        with self._turn():
            names, held = self._features.names, self._held
            chosen = [names[place] for place in held.evidence.chosen]
            others = [n for n in names if n not in held.hidden and n not in {*chosen}]
            return chosen + others

    # -- learning and predicting ------------------------------------------------------------------

    def _row(self, x: Any, key: int) -> Any:
        return OneRow(x, key)

    def _rows(self, X: Any, keys: Any) -> Any:
        return many_rows(X, keys, self.features)

    def _predicted(self, rows: Any, record: bool) -> tuple[FloatArray, Any]:
        if record and rows.ids is None and self._held.evidence.rows:
            rows.ids = rows.keys()
        found: tuple[FloatArray, Any] = _without(rows, self._held.hidden).place(self._model, record)
        return found

    def _learn(self, batch: LabelledRows) -> None:
        """Learn rows in parts, after each of which features may be chosen; all rows, or none."""
        rows, y, w, *_ = batch
        plan = rows.plan(self._reader, True)
        validation.check_labels(rows.count, len(y))
        if (bad := self._model._kernel.check(y, w)) >= 0:
            refuse_row(y[bad], w[bad], bad)
        before, first = self._features.names, self._held.evidence.rows
        known, matrix = plan.known(), plan.matrix
        if batch.delayed and rows.ids is None and rows.count:
            keys = rows.keys()
            if not first:
                keys[:1] = 0  # no prediction waits for the first label of all
            rows.ids = keys

        splits = {*rows.first_rows(), *_first_strings(known, matrix)} if first < FIRST else {}

        def learn(start: int) -> None:
            while start < rows.count:
                stop = min(rows.count, self._held.evidence.due - first)
                if first + start < FIRST:
                    stop = min([stop, *(row for row in splits if row > start)])
                own = slice(start, stop)
                part = rows.part(start, stop)
                width = len({*before, *part.names()})  # features of later rows come after
                some = None if batch.regions is None else batch.regions[own]
                found = batch.found[own]
                self._learn_part(
                    batch._replace(rows=part, y=y[own], w=w[own], found=found, regions=some),
                    np.ascontiguousarray(matrix[own, :width]),
                    known,
                )
                start = stop

        def rows_done() -> int:
            with self._turn():  # which finishes the part that was interrupted
                return self._held.evidence.rows - first

        whole_batch(learn, rows_done)

    def _learn_part(self, batch: LabelledRows, X: FloatArray, known: Any) -> None:
        """Learn rows between which nothing is chosen."""
        rows, y, w, found, regions, delayed = batch
        held, done = self._held, np.zeros(1, np.uint8)
        hidden = held.hidden
        if held.evidence.rows < FIRST:
            numbers = {known.names[place] for place in self._numbers(known, X)}
            if len(numbers) > self._most:  # those that the model has learned already stay
                hidden |= numbers - {*self._model.features}
        inner = _without(rows, hidden)

        def learn() -> None:
            inner.learn_into(self._model, y, w, found, regions, delayed=delayed)

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

    def _own_bytes(self) -> int:
        return self._held.evidence.nbytes + self._features.nbytes

    def __repr__(self) -> str:
        used = len(self._features.names) - len(self._held.hidden)
        return f"<ScreenedRegressor({self._model!r}): {used} of {len(self._features.names)}>"

    # -- files ------------------------------------------------------------------------------------

    def _own_state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        header, arrays = files.state_of(self._held.evidence)
        header |= {
            "features": self._most,
            "schema": self._features.to_header(),
            "hidden": [name for name in self._features.names if name in self._held.hidden],
        }
        return header, arrays

    @classmethod
    def _restored_around(cls, models: list[Any], state: State, format: int) -> Self:
        header, (model,) = dict(state.header), models
        most, schema, hidden = (header.pop(name) for name in ("features", "schema", "hidden"))
        made = cls(type(model)(**model.parameters), features=most)
        made._model, made._features = model, Features.from_header(schema)
        made._reader = RowReader(made._features)
        names = made._features.names
        evidence = files.restored(header, state.arrays, len(names), made._most)
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
    return OneRow(own, rows.key) if is_one else ManyRows(own, rows.count, rows.ids)
