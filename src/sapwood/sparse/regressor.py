"""A model of sparse rows: a linear model of all names, and any model of a few of them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sapwood import validation
from sapwood.model import State, from_bytes
from sapwood.regressor import Regressor
from sapwood.row_methods import array_for
from sapwood.rows import frames
from sapwood.rows.encoded import EncodedColumns, EncodedRow
from sapwood.sparse._rows import SparseRows, key_of_name
from sapwood.sparse._weights import LEAST_BYTES, SparseWeights
from sapwood.stages.one_target import OneTargetStage, checked_model, labels_of
from sapwood.stages.rows import rows_of
from sapwood.stages.stage import passed_on, rows_learned
from sapwood.validation import Label

__all__ = ["LINEAR", "SparseRegressor"]

FloatArray = NDArray[np.float64]

LINEAR = "linear prediction"
"""The name of the feature of the model inside that is the linear prediction."""
MODEL, WANTED, TABLE = "model", "wanted", ("places", "keys", "weights", "sums")
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
        if rows_learned(inner):
            raise ValueError("the model has learned rows itself: give a new one")
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

    def _place_one(self, x: dict[Any, Any], key: int = 0, record: bool = True) -> tuple[float, int]:
        x = self._encoded_one(x)
        read = self._read([x])
        with self._turn():
            if not self._weights.rows:
                return self._model._place_one({}, key, record)
            key = (key or read.token(0)) if record else 0
            linear, found = np.empty(1), np.empty(1)
            self._weights.predict(read, linear)
            row = self._inner_row(self._chosen.names, x, linear[0])
            prediction, region = self._model._place_one(row, key, record)
            self._weights.combine(np.array([prediction]), linear, found)
            return float(found[0]), region

    def _place_many(
        self, X: Any, keys: Any = None, record: bool = True
    ) -> tuple[FloatArray, NDArray[np.int32] | None]:
        rows = self._rows(X)
        read = self._read(rows)
        with self._turn():
            own = self._tokens(read) if keys is None and record and self._weights.rows else keys
            linear, found = np.empty(len(rows)), np.empty(len(rows))
            self._weights.predict(read, linear)
            inner = self._inner_rows(self._chosen.names, (), rows, linear)
            predictions, regions = self._model._place_many(inner, own, record)
            self._weights.combine(np.ascontiguousarray(predictions), linear, found)
            return found, regions

    def _learn_row(self, x: dict[Any, Any], y: Any, w: float, key: int) -> None:
        label, weight = validation.number(y, "y"), validation.number(w, "w")
        x = self._encoded_one(x)
        read = self._read([x])
        inner = np.empty(1)

        def learn(linear: FloatArray, arrivals: Sequence[Arrival]) -> None:
            names = self._chosen.names
            row = {} if not rows_learned(self._model) else self._inner_row(names, x, linear[0])
            inner[0] = self._model._place_one(row, 0, False)[0]
            if not row or arrivals:
                row = self._inner_rows(names, arrivals, [x], linear)[0]
            self._model._learn_row(row, label, weight, own)

        with self._turn():
            own = key or int(self._tokens(read)[0])
            labelled = np.array([label]), np.array([weight])
            self._learn_all([x], read, labelled, inner, learn, found=np.empty(1))

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
        rows = self._rows(X)
        labels = np.ascontiguousarray(labels_of(y, "sparse rows have one; use a model for each"))
        weights = np.ascontiguousarray(validation.weights(w, len(labels)))
        if len(rows) != len(labels):
            raise ValueError(f"X has {len(rows)} rows and y has {len(labels)}: they must agree")
        read = self._read(rows)
        inner, found = np.empty(len(rows)), array_for(predicting, labels.shape)

        def learn(linear: FloatArray, arrivals: Sequence[Arrival]) -> None:
            batch = self._inner_rows(self._chosen.names, arrivals, rows, linear)
            self._model._learn_into(
                batch, labels, weights, inner, regions, keys=own, delayed=delayed
            )

        with self._turn():
            own = self._tokens(read) if keys is None else keys
            if rows:
                self._learn_all(rows, read, (labels, weights), inner, learn, found=found)
        return found

    def _learn_all(
        self,
        rows: list[Any],
        read: SparseRows,
        labelled: tuple[FloatArray, FloatArray],
        inner: FloatArray,
        learn: Callable[[FloatArray, Sequence[Arrival]], None],
        *,
        found: FloatArray,
    ) -> None:
        """Let the weights learn rows, and then the model inside, or neither of them.

        Parameters
        ----------
        rows, read, labelled
            The rows, as dicts and as terms, and their labels and weights.
        inner : array
            Gets from `learn` what the model inside predicts just before each row.
        learn : callable
            Lets the model inside learn, given linear predictions and the names that come.
        found : array
            Gets what both predict just before each row.
        """
        weights, turn, known = self._weights, self._turns, rows_learned(self._model)
        linear, chosen = np.empty(len(rows)), self._chosen

        def settle() -> None:
            if rows_learned(self._model) == known:
                weights.undo()
            else:
                self._chosen = chosen
                weights.commit(inner, linear, *labelled, found)

        turn.unfinished = settle, lambda: weights.is_open
        try:
            weights.begin(read)
            arrivals, chosen = self._learn_weights(rows, read, labelled, linear)
            learn(linear, arrivals)
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

    def _rows(self, X: Any, names: Sequence[Label] = ()) -> list[Any]:
        """Return rows as dicts; those of a matrix of SciPy have the numbers of columns as names."""
        if not hasattr(X, "tocsr"):
            return rows_of(self._encoded(frames.lasting(X)), names)
        matrix = X.tocsr()
        columns, values = matrix.indices.tolist(), matrix.data.astype(float).tolist()
        parts = map(slice, matrix.indptr[:-1].tolist(), matrix.indptr[1:].tolist())
        return [dict(zip(columns[part], values[part], strict=True)) for part in parts]

    def _read(self, rows: list[Any]) -> SparseRows:
        return SparseRows(rows, self._absent == "zero")

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

    def _inner_rows(
        self,
        names: Mapping[Label, Any],
        arrivals: Sequence[Arrival],
        rows: list[Any],
        linear: FloatArray,
    ) -> Any:
        """Return rows of the model inside, some of which bring it further names.

        The first row of all has no linear prediction.
        """
        is_first = not rows_learned(self._model)
        if not arrivals and not is_first and rows:
            columns: dict[Label, Any] = {LINEAR: linear}
            for name, absent in names.items():
                columns[name] = [x.get(name, absent) for x in rows]
            return EncodedColumns(columns) if type(rows[0]) is EncodedRow else columns
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

    @property
    def nbytes(self) -> int:
        """Bytes of the model inside, and of the weights."""
        with self._turn():
            return int(self._model.nbytes) + self._weights.nbytes

    def __repr__(self) -> str:
        return f"<SparseRegressor({self._model!r}): {self._weights.names} names>"

    # -- files ------------------------------------------------------------------------------------

    def to_state(self) -> State:
        """Return all that the model is."""
        with self._turn():
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
            arrays: dict[str, NDArray[Any]] = {
                MODEL: np.frombuffer(self._model.to_bytes(), np.uint8),
                WANTED: np.array(sorted(self._chosen.wanted), np.uint64),
                **dict(zip(TABLE, table, strict=True)),
            }
            return State(header, arrays)

    @classmethod
    def from_state(cls, state: State, format: int) -> Self:
        """Restore what `to_state` returned; nothing of it is trusted.

        Raises
        ------
        ValueError, TypeError
            If there is anything wrong with it.
        """
        header, arrays = state
        if header.keys() != {"features", "absent", "always", "max_bytes", "slots", "names"}:
            raise ValueError("its header has other entries than it should")
        if arrays.keys() != {MODEL, WANTED, *TABLE}:
            raise ValueError("its arrays are not those of a model of sparse rows")
        own = {name: header[name] for name in ("features", "absent", "always", "max_bytes")}
        model = from_bytes(arrays[MODEL].tobytes(), "the model of sparse rows")
        if not isinstance(model, Regressor) or model.targets:
            raise ValueError("the model inside is none of one target")
        made = cls(type(model)(**model.parameters), **own)
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
