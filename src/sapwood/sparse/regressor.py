"""A model of sparse rows: a linear model of all names, and any model of a few of them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from sapwood import validation
from sapwood.model import State
from sapwood.rows.encoded import EncodedColumns, EncodedRow
from sapwood.sparse._rows import SparseRows, key_of_name
from sapwood.sparse._weights import LEAST_BYTES, SparseWeights
from sapwood.stages.one_target import LabelledRows, OneTargetStage, check_entries, checked_model
from sapwood.stages.rows import GivenRow, GivenRows, rows_of
from sapwood.stages.stage import passed_on, rows_learned
from sapwood.validation import Label

__all__ = ["LINEAR", "SparseRegressor"]

FloatArray = NDArray[np.float64]

LINEAR = "linear prediction"
"""The name of the feature of the model inside that is the linear prediction."""
WANTED, TABLE = "wanted", ("places", "keys", "weights", "sums")
MOST_FEATURES = 1000
USUAL_BYTES = 16 << 20


class Chosen(NamedTuple):
    """The names that the model inside gets.

    Attributes
    ----------
    names : dict
        What stands for each name in rows that do not have it: 0.0, or None.
    wanted : set of int
        The keys of further names, which are not known until a row has them.
    """

    names: dict[Label, float | None]
    wanted: set[int]


class Arrival(NamedTuple):
    """A name that the model inside gets.

    Attributes
    ----------
    row : int
        Which row of a batch brings it.
    name : str or int
        The name.
    absent : float or None
        What stands for it in rows that do not have it.
    """

    row: int
    name: Label
    absent: float | None


class SparseRegressor(OneTargetStage):
    """A model of sparse rows: each has a few of very many names, such as words or tags.

    A linear model has a weight for each name, and for each string value of a name. The time per row
    depends on the number of names in the row, not on the number of all names. The model inside gets
    the linear prediction as a feature, and the most useful names: names that occur in at least half
    of the rows, then names whose weights explain most. The predictions of both models are combined
    by their errors.

    Parameters
    ----------
    model : HoeffdingTreeRegressor, AdaptiveTreeRegressor or ForestRegressor
        A model of Sapwood of one target that has learned nothing yet.
    features : int
        The largest number of names that the model inside gets, in addition to `always`.
    always : iterable of str or int
        Names that the model inside gets from the first row on. If a row lacks one of them, its
        value is missing.
    absent : {"zero", "missing"}
        How the model inside treats numbers that are absent from a row: as 0 or as missing values.
        Absent strings are always missing. The linear model has no term for absent names.
    max_bytes : int
        The memory limit of the weights: 16 MiB by default, which is enough for about 200,000 names.
        If there is no room for a new name, the least recently used name is evicted.

    Examples
    --------
    >>> import sapwood
    >>> rows = [{"red": 1, "car": 1}, {"blue": 1, "car": 1}, {"red": 1}, {"blue": 1, "old": 1}]
    >>> model = sapwood.SparseRegressor(sapwood.HoeffdingTreeRegressor())
    >>> for _ in range(200):
    ...     model.learn_many(rows, [15.0, 25.0, 5.0, 13.0])
    >>> [round(each) for each in model.predict_many(rows).tolist()]
    [15, 25, 5, 13]
    >>> model.weight("car") > 5.0 > 0.0 > model.weight("old")
    True
    """

    kind: ClassVar[str] = "SparseRegressor"
    format: ClassVar[int] = 1
    _one = "sparse rows have one; use a model for each"

    def __init__(
        self,
        model: Any,
        *,
        features: int = 16,
        always: Iterable[Label] = (),
        absent: Literal["zero", "missing"] = "zero",
        max_bytes: int = USUAL_BYTES,
    ) -> None:
        inner = checked_model(model, "the model of sparse rows")
        if absent not in ("zero", "missing"):
            raise ValueError(
                f"absent = {validation.shown(absent)}: 'zero' or 'missing' is expected"
            )
        super().__init__()
        self._model = inner
        self._most = validation.whole(features, "features", 0, MOST_FEATURES)
        self._always = tuple(dict.fromkeys(map(_checked_name, always)))
        self._absent: str = absent
        self._max_bytes = validation.whole(max_bytes, "max_bytes", LEAST_BYTES, 2**50)
        self._weights = SparseWeights(self._max_bytes)
        self._chosen = Chosen(dict.fromkeys(self._always), set())

    @property
    def model(self) -> Any:
        """The model inside."""
        return self._model

    @property
    def names(self) -> list[Label]:
        """The names that the model inside gets."""
        with self._turn():
            return list(self._chosen.names)

    def weight(self, name: Label) -> float:
        """Return what a value of 1 of a name adds to the linear prediction; NaN if it is unknown.

        Parameters
        ----------
        name : str or int
            The name.
        """
        with self._turn():
            return self._weights.weight_of(key_of_name(name))

    # -- learning and predicting ------------------------------------------------------------------

    def _encoded(self, X: Any) -> Any:
        return X if hasattr(X, "tocsr") else super()._encoded(X)

    def _rows(self, X: Any, keys: Any) -> Any:
        """Return rows as dicts; those of a matrix of SciPy have the numbers of columns as names."""
        if not hasattr(X, "tocsr"):
            return GivenRows(rows_of(X), keys)
        matrix = X.tocsr()
        columns, values = matrix.indices.tolist(), matrix.data.astype(float).tolist()
        parts = map(slice, matrix.indptr[:-1].tolist(), matrix.indptr[1:].tolist())
        rows = [dict(zip(columns[part], values[part], strict=True)) for part in parts]
        return GivenRows(rows, keys)

    def _read(self, rows: GivenRow | GivenRows) -> tuple[list[Any], SparseRows]:
        """Return rows as dicts, and as terms."""
        given = [rows.x] if isinstance(rows, GivenRow) else rows.X
        return given, SparseRows(given, self._absent == "zero")

    def _predicted(self, rows: Any, record: bool) -> tuple[FloatArray, Any]:
        given, read = self._read(rows)
        linear, found = np.empty(len(given)), np.empty(len(given))
        self._weights.predict(read, linear)
        if rows.ids is None and record and self._weights.rows:
            rows.ids = self._tokens(read)
        predictions, regions = self._inner(rows, (), linear).place(self._model, record)
        self._weights.combine(np.ascontiguousarray(predictions), linear, found)
        return found, regions

    def _learn(self, batch: LabelledRows) -> None:
        """Let the weights learn rows, and then the model inside, or neither of them."""
        rows, y, w, found, regions, delayed = batch
        given, read = self._read(rows)
        validation.check_labels(len(given), len(y))
        if not given:
            return
        if rows.ids is None:
            rows.ids = self._tokens(read)
        weights, turn, known = self._weights, self._turns, rows_learned(self._model)
        inner, linear, chosen = np.empty(len(y)), np.empty(len(y)), self._chosen

        def settle() -> None:
            if rows_learned(self._model) == known:
                weights.undo()
            else:
                self._chosen = chosen
                weights.commit(inner, linear, y, w, found)

        turn.unfinished = settle, lambda: weights.is_open
        try:
            weights.begin(read)
            arrivals, chosen = self._learn_weights(given, read, (y, w), linear)
            own = self._inner(rows, arrivals, linear)
            own.learn_into(self._model, y, w, inner, regions, delayed=delayed)
        except Exception:
            turn.settle()
            raise
        turn.settle()

    def _learn_weights(
        self,
        rows: list[Any],
        read: SparseRows,
        labelled: tuple[FloatArray, FloatArray],
        linear: FloatArray,
    ) -> tuple[list[Arrival], Chosen]:
        """Let the weights learn rows; return which names come with them, and what is chosen then."""
        arrivals: list[Arrival] = []
        names, wanted = dict(self._chosen.names), set(self._chosen.wanted)
        start = 0
        while start < len(rows):
            stop = self._weights.learn(read, *labelled, start, linear)
            for place in range(start, stop if wanted else start):
                if read.has_any(place, wanted):
                    for name, value in rows[place].items():
                        key = key_of_name(name)
                        if key in wanted and read.has_any(place, {key}):
                            wanted.discard(key)
                            if is_usable(name):
                                is_zero = self._absent == "zero" and not isinstance(value, str)
                                names[name] = 0.0 if is_zero else None
                                arrivals.append(Arrival(place, name, names[name]))
            room = self._most + len(self._always) - len(names)
            if self._weights.is_due and room > 0:
                wanted = self._weights.review({*map(key_of_name, names)}, room)
            start = stop
        return arrivals, Chosen(names, wanted)

    def _tokens(self, read: SparseRows) -> NDArray[np.uint64]:
        """Return by what rows without ids are known; before a row was learned by none."""
        tokens = read.all_tokens()
        if not self._weights.rows:
            tokens[:1] = 0
        return tokens

    def _inner_row(self, names: Mapping[Label, Any], x: Any, linear: float | None) -> Any:
        """Return a row of the model inside."""
        row: dict[Label, Any] = {} if linear is None else {LINEAR: float(linear)}
        row.update({name: x.get(name, absent) for name, absent in names.items()})
        return EncodedRow(row) if type(x) is EncodedRow else row

    def _inner(
        self, rows: GivenRow | GivenRows, arrivals: Sequence[Arrival], linear: FloatArray
    ) -> GivenRow | GivenRows:
        """Return rows of the model inside, some of which bring it further names.

        The first row of all has no linear prediction.
        """
        names = self._chosen.names
        if isinstance(rows, GivenRow):
            return GivenRow(self._inner_rows(names, arrivals, [rows.x], linear)[0], rows.key)
        if not arrivals and rows_learned(self._model) and rows.X:
            columns: dict[Label, Any] = {LINEAR: linear}
            for name, absent in names.items():
                columns[name] = [x.get(name, absent) for x in rows.X]
            kind = EncodedColumns if type(rows.X[0]) is EncodedRow else dict
            return GivenRows(kind(columns), rows.ids)
        return GivenRows(self._inner_rows(names, arrivals, rows.X, linear), rows.ids)

    def _inner_rows(
        self,
        names: Mapping[Label, Any],
        arrivals: Sequence[Arrival],
        rows: list[Any],
        linear: FloatArray,
    ) -> list[Any]:
        """Return rows of the model inside as dicts."""
        is_first = not rows_learned(self._model)
        found, now, coming = [], dict(names), list(reversed(arrivals))
        for place, x in enumerate(rows):
            while coming and coming[-1].row == place:
                arrival = coming.pop()
                now[arrival.name] = arrival.absent
            none = is_first and place == 0
            found.append(self._inner_row(now, x, None if none else linear[place]))
        return found

    # -- looking inside ---------------------------------------------------------------------------

    to_rules = passed_on("Return one rule for each leaf of the model inside.")

    def _own_bytes(self) -> int:
        return self._weights.nbytes

    def __repr__(self) -> str:
        return f"<SparseRegressor({self._model!r}): {self._weights.names} names>"

    # -- files ------------------------------------------------------------------------------------

    def _own_state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        count, *table = self._weights.state()
        names = self._chosen.names
        header = {
            "features": self._most,
            "absent": self._absent,
            "always": list(self._always),
            "max_bytes": self._max_bytes,
            "slots": count,
            "names": [[name, absent is not None] for name, absent in names.items()],
        }
        wanted = np.array(sorted(self._chosen.wanted), np.uint64)
        return header, {WANTED: wanted, **dict(zip(TABLE, table, strict=True))}

    @classmethod
    def _restored_around(cls, models: list[Any], state: State, format: int) -> Self:
        (model,), (header, arrays) = models, state
        own = ("features", "absent", "always", "max_bytes")
        check_entries(state, {*own, "slots", "names"}, {WANTED, *TABLE})
        made = cls(type(model)(**model.parameters), **{name: header[name] for name in own})
        made._model = model
        made._weights.restore(header["slots"], *(arrays[name] for name in TABLE))
        if made._weights.rows != rows_learned(model):
            raise ValueError("its weights and the model inside have learned different rows")
        names = {_checked_name(name): 0.0 if zero else None for name, zero in header["names"]}
        if list(names)[: len(made._always)] != list(made._always):
            raise ValueError("its names are not those that it should have")
        if len(names) > made._most + len(made._always) or arrays[WANTED].dtype != np.uint64:
            raise ValueError("it has too many names, or names that cannot be")
        made._chosen = Chosen(names, set(arrays[WANTED].tolist()))
        return made


def is_usable(name: Any) -> bool:
    """Whether the model inside can have a feature of this name."""
    try:
        return validation.feature_name(name) != LINEAR
    except ValueError:
        return False


def _checked_name(name: Any) -> Label:
    found = validation.feature_name(name)
    if found == LINEAR:
        raise ValueError(f"{LINEAR!r} is the name of the linear prediction: choose another name")
    return found
