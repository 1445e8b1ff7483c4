"""A stage that takes in each label together with the prediction that was issued for its row."""

import copy
from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sapwood import validation
from sapwood.corrector._pending import PendingPredictions, key_of_row
from sapwood.corrector.pending_state import PENDING, pending_arrays, restore_pending
from sapwood.corrector.tokens import EMPTY, RowTokens, tokens_of_rows
from sapwood.model import Model, State, from_bytes
from sapwood.row_methods import RowsToLearn
from sapwood.rows import frames, targets
from sapwood.rows.encoder import is_rows
from sapwood.rows.targets import Targets
from sapwood.stages.any_model import bytes_of, hooks_of
from sapwood.stages.intervals import OfferedIntervals
from sapwood.stages.labels import checked_labels, named, plain_of, row_of
from sapwood.stages.order import check_order
from sapwood.stages.rows import GivenRow, GivenRows
from sapwood.stages.stage import rows_learned
from sapwood.streams.memory import columns_of
from sapwood.tree._kernel import LARGEST_Y
from sapwood.validation import Label

__all__ = ["LabelledBatch", "ScoredStage"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int32]

MODEL, LABELS = "model", "labels"
MOST_PENDING = 1 << 16
HEAVIEST = 1e46  # weight of a row


class LabelledBatch(NamedTuple):
    """Rows whose labels have come, in order.

    Parameters
    ----------
    rows : GivenRow or GivenRows
        The rows.
    members, y : arrays of float, shape (rows, targets)
        What the model inside predicts just before each row, and the labels, NaN where one is
        missing.
    w : array of float, shape (rows,)
        The weights.
    notes : array of float, shape (rows, targets * note), optional
        What was noted when rows were predicted, NaN for those that were not.
    at_once : bool
        Whether rows are predicted just before they are learned.
    """

    rows: GivenRow | GivenRows
    members: FloatArray
    y: FloatArray
    w: FloatArray
    notes: FloatArray | None
    at_once: bool


class Held(NamedTuple):
    """All that labels change; it is put in place as one."""

    targets: int
    labels: int  # how many are known
    pending: PendingPredictions
    own: Any


class ScoredStage(OfferedIntervals):
    """A stage around any model that needs the issued prediction of each row when its label comes.

    A stage defines its own state (`_fresh`), what it issues and notes (`_issued`), and what it makes
    of labels (`_learned`, which changes nothing in place).
    """

    kind: ClassVar[str]
    _takes_tokens = True
    _cannot_merge = (
        "models of such a stage cannot be merged, as what it has learned is about the errors of "
        "each; merge the models inside (.model), and put a stage around the result"
    )
    _of_target = (
        "such a stage has no model of one target; take it from the model inside (.model.of_target)"
    )
    _note: ClassVar[int]  # doubles that are noted of a target of a prediction
    _held: Held

    def __init__(self, model: Any) -> None:
        check_order(self.kind, model)
        super().__init__()
        self._model, self._inner = model, hooks_of(model)
        self._held = self._begun()

    @abstractmethod
    def _fresh(self, names: tuple[Label, ...]) -> Any:
        """Return the state of the stage before any label, given the names of several targets."""

    @abstractmethod
    def _issued(self, own: Any, members: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return what is issued given predictions of the model inside, and what is noted of it."""

    def _issued_one(self, own: Any, member: float) -> tuple[float, Sequence[float]]:
        """Return what is issued given a prediction of one target, and what is noted of it."""
        issued, notes = self._issued(own, np.array([[member]]))
        return float(issued[0, 0]), notes[0].tolist()

    def _learned_one(
        self,
        own: Any,
        row: GivenRow,
        member: float,
        *,
        y: float,
        w: float,
        note: FloatArray | None,
    ) -> Any:
        """Return another state, given the label of a row of one target."""
        notes = None if note is None else note[np.newaxis]
        labels = np.array([[y]]), np.array([w]), notes
        return self._learned(own, LabelledBatch(row, np.array([[member]]), *labels, False))[0]

    @abstractmethod
    def _learned(self, own: Any, batch: LabelledBatch) -> tuple[Any, FloatArray]:
        """Return another state, and what would have been issued just before each row."""

    def _begun(self) -> Held:
        names = self._names()
        count = max(1, len(names))
        return Held(
            count, 0, PendingPredictions(1 + count * self._note, MOST_PENDING), self._fresh(names)
        )

    @property
    def model(self) -> Any:
        """The model inside."""
        return self._model

    # -- predictions ------------------------------------------------------------------------------

    def _ask(
        self, x: Any, key: int, record: bool, ask: Callable[[dict[Any, Any], int], Any]
    ) -> Any:
        x = self._encoded_one(x)
        with self._turns:
            key = key or (key_of_row(x) or EMPTY if record else 0)
            found = ask(x, self._inward(key))
            if record:
                self._issue(self._inner._place_one(x, 0, False)[0], key)
            return found

    def _inward(self, key: int) -> int:
        """Return a key for the model inside; before its first row, it has none for rows alone."""
        return key if self._held.labels or key >> 63 or rows_learned(self._model) else 0

    def _place_one(self, x: dict[Any, Any], key: int = 0, record: bool = True) -> tuple[Any, int]:
        x = self._encoded_one(x)
        with self._turns:
            key = key or (key_of_row(x) or EMPTY if record else 0)
            found, region = self._inner._place_one(x, self._inward(key), record)
            return self._issue(found, key if record else 0), region

    def _issue(self, found: Any, key: int) -> Any:
        """Return what is issued given a prediction of the model inside; keep it under a key."""
        if type(found) is float and self._held.targets == 1:
            own, note = self._issued_one(self._held.own, found)
            if key:
                self._held.pending.put_key(key, np.array((self._held.labels, *note)))
            return own
        members = row_of(found, self._held.targets)
        if members.shape[1] != self._held.targets:
            self._held = self._begun()
        issued, notes = self._issued(self._held.own, members)
        if key:
            self._keep(np.array([key], np.uint64), notes)
        return named(self._names() if isinstance(found, dict) else (), issued[0].tolist())

    def _keep(self, keys: Any, notes: FloatArray) -> None:
        records = np.empty((len(notes), self._held.pending.width))
        records[:, 0], records[:, 1:] = self._held.labels, notes
        self._held.pending.put_keys(keys, records)

    def _place_many(
        self, X: Any, keys: Any = None, record: bool = True
    ) -> tuple[FloatArray, IntArray | None]:
        X = self._encoded(frames.lasting(X))
        with self._turn():
            keys = self._tokens(X) if keys is None and record else keys
            is_first = keys is None or not len(keys) or not self._inward(int(keys[0]))
            inward = None if is_first else keys
            members, regions = self._inner._place_many(X, inward, record)
            return self._issue_many(members, keys if record else None), regions

    def _issue_many(self, found: FloatArray, keys: Any) -> FloatArray:
        """Return what is issued given predictions of the model inside; keep it under keys."""
        if not len(found):
            return found
        members = found.reshape(len(found), -1)
        if members.shape[1] != self._held.targets:
            self._held = self._begun()
        issued, notes = self._issued(self._held.own, members)
        if keys is not None:
            self._keep(keys, notes)
        return issued.reshape(found.shape)

    def _ask_many(self, X: Any, record: bool, ask: Callable[[Any, dict[str, Any]], Any]) -> Any:
        X = self._encoded(frames.lasting(X))
        with self._turn():
            keys = self._tokens(X) if record else None
            own = {} if keys is None or not rows_learned(self._model) else {"ids": RowTokens(keys)}
            found = ask(X, own)
            if record:
                self._issue_many(self._inner._place_many(X, None, False)[0], keys)
            return found

    def _columns(self, X: Any) -> dict[Label, Any]:
        return columns_of(X, getattr(self.model, "features", ()))

    def _tokens(self, X: Any) -> Any:
        """Return the keys of rows without ids."""
        columns = {} if is_rows(X) else self._columns(X)
        rows = len(next(iter(columns.values()))) if columns else len(X)
        return tokens_of_rows(X, columns, rows)

    # -- learning ---------------------------------------------------------------------------------

    def _learn_row(self, x: dict[Any, Any], y: Any, w: float, key: int) -> None:
        x = self._encoded_one(x)
        is_plain = type(y) is type(w) is float and self._held.targets == 1
        if is_plain and abs(y) <= LARGEST_Y and 0.0 < w <= HEAVIEST:
            self._learn_plain(x, y, w, key)
            return
        own, weights = self._checked(targets.read_one(y), [validation.number(w, "w")])
        label, w = named(own.names or (), own.values[0].tolist()), float(weights[0])
        with self._turns:
            key = key or key_of_row(x) or EMPTY
            members = row_of(self._inner._place_one(x, key, False)[0], own.values.shape[1])
            self._let_learn(
                partial(self._inner._learn_row, x, label, w, key),
                GivenRow(x, key),
                (members, own.values, weights),
                np.array([key], np.uint64),
                None,
            )

    def _learn_plain(self, x: Any, y: float, w: float, key: int) -> None:
        """Learn a row of one target, as `_learn_row` does, without its cost."""
        with self._turns:
            key = key or key_of_row(x) or EMPTY
            found, inner, known = self._inner._place_one(x, key, False)[0], self._inner, self._held
            keys, taken = np.array([key], np.uint64), np.zeros(1, np.uint8)
            notes = np.empty((1, known.pending.width))
            notes[0, 0] = -1.0

            def finish() -> None:
                targets, labels, pending, own = known
                if pending.count:
                    pending.take_into(keys, float(labels), notes, taken)
                note = notes[0, 1:] if notes[0, 0] >= 0.0 else None
                own = self._learned_one(own, GivenRow(x, key), found, y=y, w=w, note=note)
                self._held = Held(targets, labels + 1, pending, own)

            learn = partial(inner._learn_row, x, y, w, key)
            self._both(learn, finish, lambda: self._held is known)

    def _learn_many(self, batch: RowsToLearn) -> FloatArray:
        read = targets.read(batch.y)
        own, weights = self._checked(read, batch.w)
        found, members = batch.found(read.values.shape), np.empty(read.values.shape)
        is_late = batch.delayed or batch.predicting is False
        X, keys = self._encoded(frames.lasting(batch.X)), batch.keys
        with self._turn():
            keys = self._tokens(X) if is_late and keys is None else keys
            learn = partial(
                self._inner._learn_into,
                *(X, plain_of(own), weights, members, batch.regions),
                keys=keys,
                delayed=is_late,
            )
            labels = members.reshape(own.values.shape), own.values, weights
            into = found.reshape(own.values.shape)
            self._let_learn(learn, GivenRows(X), labels, keys if is_late else None, into)
        return found

    def _learn_rows(
        self, learn: Callable[[Any, Any, Any], Any], X: Any, y: Any, keys: Any, w: Any = None
    ) -> Any:
        own, weights = self._checked(targets.read(y), w)
        members, results = np.empty(own.values.shape), list[Any]()
        X = self._encoded(frames.lasting(X))

        def learn_all() -> None:
            results.append(learn(X, plain_of(own), keys))
            members[...] = results[0][0].reshape(members.shape)

        with self._turn():
            labels = members, own.values, weights
            self._let_learn(learn_all, GivenRows(X), labels, None, None)
        return results[0]

    def _checked(self, y: Targets, w: ArrayLike | None) -> tuple[Targets, FloatArray]:
        several = self._held.targets > 1
        limits = {"largest": LARGEST_Y, "heaviest": HEAVIEST}
        return checked_labels(y, w, self.model, several=several, **limits)

    def _let_learn(
        self,
        learn: Callable[[], Any],
        rows: GivenRow | GivenRows,
        labels: tuple[FloatArray, FloatArray, FloatArray],
        keys: Any,
        found: FloatArray | None,
    ) -> None:
        """Let the model inside learn rows, and this stage after it: both, or neither.

        Parameters
        ----------
        learn : callable
            Lets the model learn, and may fill the first array of `labels`.
        rows : GivenRow or GivenRows
            The rows.
        labels : tuple of arrays
            Predictions of the model just before each row, labels, and weights.
        keys : array of uint64, optional
            Under which rows were predicted; None if they are predicted now.
        found : array, optional
            Gets what is issued just before each row.
        """
        known, taken = self._held, np.zeros(1, np.uint8)
        members, y, w = labels
        notes = np.empty((len(y), known.pending.width))
        notes.fill(np.nan)

        def finish() -> None:
            held = known if known.targets == y.shape[1] else self._begun()
            if keys is not None and known.pending.count and held is known:
                keys_, labels_ = np.ascontiguousarray(keys), float(known.labels)
                known.pending.take_into(keys_, labels_, notes, taken)
            then = notes[:, 1:] if taken[0] else None
            batch = LabelledBatch(rows, members, y, w, then, keys is None)
            own, issued = self._learned(held.own, batch)
            if found is not None:
                found[...] = issued
            self._held = Held(held.targets, held.labels + len(y), held.pending, own)

        if len(y):
            self._both(learn, finish, lambda: self._held is known)
        else:
            learn()

    # -- looking inside, and files ----------------------------------------------------------------

    @property
    def nbytes(self) -> int:
        """Bytes of the model inside, if it reports them, and of what the stage knows."""
        with self._turn():
            own = self._held.pending.nbytes + self._own_bytes()
            return int(getattr(self.model, "nbytes", 0)) + own

    @abstractmethod
    def _own_bytes(self) -> int:
        """Return how many bytes the state of the stage occupies."""

    @abstractmethod
    def _arguments(self) -> dict[str, Any]:
        """Return the arguments of the stage but for the model, in terms of JSON."""

    @property
    def parameters(self) -> dict[str, Any]:
        """The arguments that make a stage like this one; with the model as it is now."""
        return {"model": self.model, **self._arguments()}

    @abstractmethod
    def _arrays(self) -> dict[str, NDArray[Any]]:
        """Return the state of the stage, to be saved."""

    @classmethod
    @abstractmethod
    def _around(cls, model: Any, arguments: dict[str, Any]) -> Self:
        """Return a new stage of some arguments; nothing of them is trusted."""

    @abstractmethod
    def _restored_own(self, arrays: dict[str, NDArray[Any]], labels: int) -> Any:
        """Return the state that `_arrays` returned; nothing of it is trusted."""

    def to_state(self) -> State:
        """Return all that the model is: a header for JSON, and arrays.

        Raises
        ------
        TypeError
            If the model inside cannot be saved.
        """
        with self._turn():
            return self._state_around({MODEL: bytes_of(self.model)})

    def _state_around(self, inner: dict[str, NDArray[Any]]) -> State:
        if self._held.targets != max(1, len(self._names())):
            self._held = self._begun()
        arrays = {**inner, **self._arrays(), **pending_arrays(self._held.pending)}
        return State({LABELS: self._held.labels, **self._arguments()}, arrays)

    @classmethod
    def from_state(cls, state: State, format: int) -> Self:
        """Restore what `to_state` returned; nothing of it is trusted.

        Raises
        ------
        ValueError, TypeError
            If there is anything wrong with it.
        """
        header, arrays = dict(state.header), dict(state.arrays)
        if MODEL not in arrays or LABELS not in header:
            raise ValueError("it lacks the model inside, or its labels")
        inner = from_bytes(arrays.pop(MODEL).tobytes(), "the model inside")
        if not isinstance(inner, Model):
            raise ValueError(f"a {type(inner).__name__} does not learn")
        return cls._filled(inner, header, arrays)

    @classmethod
    def _filled(cls, inner: Any, header: dict[str, Any], arrays: dict[str, Any]) -> Self:
        labels = validation.whole(header.pop(LABELS), LABELS, 0, 2**53)
        made = cls._around(inner, header)
        pending = {name: arrays.pop(name) for name in PENDING if name in arrays}
        restore_pending(made._held.pending, pending, labels)
        own = made._restored_own(arrays, labels)
        made._held = made._held._replace(labels=labels, own=own)
        return made

    def copy(self) -> Self:
        """Return an independent copy; a model of another library is copied by `copy.deepcopy`."""
        with self._turn():
            header, arrays = self._state_around({})
            made = self._filled(copy.deepcopy(self.model), dict(header), dict(arrays))
            made._schema = self._schema
            return made
