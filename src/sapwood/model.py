"""What a model is: it learns, it predicts, it has parameters and a state; and files of models.

Evaluation, checkpoints, the command line, reports, exports and the adapters for other libraries
rely on `Model`, on what `capabilities` there are, and on nothing else. `load` finds the class of a
file by its kind.
"""

import inspect
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from importlib import import_module
from itertools import chain
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sapwood import validation
from sapwood.schema import Schema
from sapwood.storage import container
from sapwood.storage.atomic import StrPath, write_atomically
from sapwood.storage.container import ModelFileError, damaged
from sapwood.storage.copying import CopiedByBytes

__all__ = [
    "Model",
    "Readable",
    "State",
    "StoredModel",
    "can_be_saved",
    "from_bytes",
    "is_all_or_nothing",
    "load",
    "readable_part",
]

KINDS = {
    "AdaptiveTreeClassifier": "sapwood.classify.models",
    "AdaptiveTreeRegressor": "sapwood.ensemble.adaptive",
    "ChangeDetector": "sapwood.drift.detector",
    "CorrectedRegressor": "sapwood.corrector.regressor",
    "ForestClassifier": "sapwood.classify.models",
    "ForestRegressor": "sapwood.ensemble.forest",
    "HoeffdingTreeClassifier": "sapwood.classify.models",
    "HoeffdingTreeRegressor": "sapwood.tree.regressor",
    "HybridRegressor": "sapwood.hybrid.regressor",
    "IntervalRegressor": "sapwood.intervals.regressor",
    "Monitor": "sapwood.drift.monitor",
    "MonitoredRegressor": "sapwood.drift.regressor",
    "LaggedClassifier": "sapwood.classify.lagged",
    "LaggedModel": "sapwood.lags.model",
    "LossRegressor": "sapwood.loss.regressor",
    "MultiViewRegressor": "sapwood.views.regressor",
    "RecurringRegressor": "sapwood.recurring.regressor",
    "ScreenedRegressor": "sapwood.screening.regressor",
    "SparseRegressor": "sapwood.sparse.regressor",
    "TransformedRegressor": "sapwood.transform.regressor",
    "NaiveStack": "sapwood.lags.naive_stack",
}
"""The classes of files, and where they are defined."""

FORMAT, SUBCLASS, SCHEMA, OWN = "format", "subclass", "schema", "model"
EMPTY = Schema()  # of models whose rows are features already
FORMATS = "column_formats"  # of files that have no schema yet
OLD_FORMATS = "time_formats"  # as format 1 calls them


WRONG = (ValueError, TypeError, ArithmeticError, LookupError, AttributeError)
"""What values that no release has written may raise, where a check has not named them."""


@runtime_checkable
class Model(Protocol):
    """What learns from a stream and predicts at any moment."""

    def learn_one(self, x: dict[Any, Any], y: float, w: float = 1.0) -> None:
        """Learn one row."""

    def predict_one(self, x: dict[Any, Any]) -> float:
        """Predict one row."""

    def learn_many(self, X: Any, y: ArrayLike, w: ArrayLike | None = None) -> None:
        """Learn many rows: the same as one after the other, or nothing at all."""

    def predict_many(self, X: Any) -> Any:
        """Predict many rows."""

    def predict_learn_many(self, X: Any, y: ArrayLike, w: ArrayLike | None = None) -> Any:
        """Predict each row before it is learned."""

    def to_bytes(self) -> bytes:
        """Return all that the model is, for `from_bytes`."""

    @classmethod
    def from_bytes(cls, data: bytes, source: str = "the buffer") -> Self:
        """Restore what `to_bytes` made."""


@runtime_checkable
class Readable(Protocol):
    """What can be looked into: a tree, or a model that stands for one."""

    @property
    def n_leaves(self) -> int:
        """How many leaves there are."""

    @property
    def feature_importances(self) -> dict[str, float]:
        """The share of each feature; sums to 1."""

    def to_text(self, max_depth: int | None = None, digits: int = 4) -> str:
        """Return the tree as indented text."""


class State(NamedTuple):
    """All that a model is; nothing runs when it is read."""

    header: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


class StoredModel(CopiedByBytes, ABC):
    """A model of which files are made; pickles are made of the same bytes.

    Attributes
    ----------
    schema : Schema
        How the columns of rows become features: kinds, formats and units, parts of times, and the
        target. It is saved with the model, and applied to all rows that the model is given.
    """

    kind: ClassVar[str]
    format: ClassVar[int]
    all_or_nothing: ClassVar[bool] = True  # whether rejected rows have changed nothing
    _schema: Schema | None = None

    def __init__(self) -> None:
        super().__init__()

    @property
    def schema(self) -> Schema:
        """How the columns of rows become features; an empty one if they are features already."""
        holder = self._schema_holder
        return (holder.schema if holder is not None else self._schema) or EMPTY

    @schema.setter
    def schema(self, schema: Schema) -> None:
        if not isinstance(schema, Schema):
            raise TypeError(
                f"schema = {validation.shown(schema)}: a sapwood.schema.Schema is expected"
            )
        holder = self._schema_holder
        if holder is not None:
            holder.schema = schema
        else:
            self._schema = schema

    @property
    def _schema_holder(self) -> Any:
        """What applies the schema: the features of a model, or the model inside a wrapper."""
        inner = getattr(self, OWN, None)
        return inner if isinstance(inner, StoredModel) else None

    def _encoded(self, X: Any) -> Any:
        """Return many rows as the schema encodes them; as they are if it leaves all as it is."""
        schema = self.schema
        return schema.encode(X) if schema.converting else X

    def _encoded_one(self, x: Any) -> Any:
        """Return one row as the schema encodes it."""
        schema = self.schema
        return schema.encode_one(x) if schema.converting else x

    @property
    def column_formats(self) -> Mapping[str, str]:
        """The formats of `schema`, by the names of columns; deprecated."""
        return MappingProxyType(self.schema.formats)

    @column_formats.setter
    def column_formats(self, formats: Mapping[str, str]) -> None:
        kinds = getattr(self, "feature_kinds", {})
        self.schema = Schema.of_formats(kinds, _checked_formats(formats))

    @abstractmethod
    def to_state(self) -> State:
        """Return all that the model is, as between two rows."""

    @classmethod
    @abstractmethod
    def from_state(cls, state: State, format: int) -> Self:
        """Restore what `to_state` returned in some format; nothing of it is trusted.

        Raises
        ------
        ValueError, TypeError, OverflowError
            If there is anything wrong with it.
        """

    def save(self, path: StrPath) -> None:
        """Write the model to a file, whole or not at all; `sapwood.load` reads it.

        Parameters
        ----------
        path : str or path
            The file; if it exists, it is replaced.

        Examples
        --------
        >>> import sapwood, tempfile, os
        >>> tree = sapwood.HoeffdingTreeRegressor()
        >>> tree.learn_many([[1.0], [2.0]], [10.0, 20.0])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "my.sapwood")
        ...     tree.save(path)
        ...     restored = sapwood.load(path)
        >>> restored.predict_one({0: 1.5}) == tree.predict_one({0: 1.5})
        True
        """
        write_atomically(path, self.to_bytes())

    def to_bytes(self) -> bytes:
        """Return what `save` would write."""
        header, arrays = self.to_state()
        return container.pack(self.kind, self._header(header), arrays)

    def copy(self) -> Self:
        """Return an independent copy."""
        return self._restored(self._detached_state(), "the model")

    def _detached_state(self) -> State:
        """Return what a file would hold, none of which is the model's any more."""
        header, arrays = self.to_state()
        own = json.loads(json.dumps(self._header(header)))
        return State(own, {name: np.array(array) for name, array in arrays.items()})

    @classmethod
    def from_bytes(cls, data: bytes, source: str = "the buffer") -> Self:
        """Restore what `to_bytes` made.

        Parameters
        ----------
        data : bytes
            The data may be untrusted: no code is run, and everything is checked.
        source : str
            The name of the data in error messages.

        Raises
        ------
        sapwood.ModelFileError
            If they are not such a model.
        """
        return cls._restored(State(*container.unpack(data, cls.kind, source)), source)

    def _header(self, own: dict[str, Any]) -> dict[str, Any]:
        header: dict[str, Any] = {FORMAT: self.format, OWN: own}
        if type(self).__name__ != self.kind:
            header[SUBCLASS] = type(self).__qualname__
        is_own = not isinstance(self._schema_holder, StoredModel)  # else it is saved further inside
        header[SCHEMA] = self.schema.to_header() if is_own and self.schema else None
        return header

    @classmethod
    def _restored(cls, state: State, source: str) -> Self:
        """Return the model of a file, if it is one of this class."""
        header = state.header
        held = header.get(SUBCLASS, cls.kind)
        if held != (cls.__qualname__ if cls.__name__ != cls.kind else cls.kind):
            raise ModelFileError(
                f"{source} holds a model of class {held!s:.80}, not {cls.__qualname__}: load it by "
                f"its own class, as by {held!s:.80}.from_bytes(data)"
            )
        try:
            if FORMAT not in header:
                header = _of_format_1(header)
            format = validation.whole(header[FORMAT], FORMAT, 1, 2**31)
        except (ValueError, TypeError, OverflowError) as error:
            raise damaged(source, str(error)) from None
        if format > cls.format:
            raise ModelFileError(
                f"{source} holds a {cls.kind} of format {format} and this release reads up to "
                f"{cls.format}: it was written by a newer release: upgrade sapwood"
            )
        try:
            if header.keys() - {FORMATS, SCHEMA, SUBCLASS} != {FORMAT, OWN}:
                raise ValueError("its header has other entries than it should")
            if not isinstance(header[OWN], dict):
                raise ValueError("its header is no dict")
            model = cls.from_state(State(header[OWN], state.arrays), format)
            model._take_schema(header)
        except (*WRONG, RecursionError) as error:
            raise damaged(source, str(error) or type(error).__name__) from None
        return model

    def _take_schema(self, header: dict[str, Any]) -> None:
        """Take the schema of a file; of an older file, the formats and features of its columns."""
        if header.get(SCHEMA) is not None:
            self.schema = Schema.from_header(header[SCHEMA])
        elif SCHEMA not in header and (FORMATS in header or not self.schema):
            self.column_formats = _checked_formats(header.get(FORMATS, {}))


def check_unchanged(made: dict[str, Any], header: dict[str, Any]) -> None:
    """Raise ValueError unless a model's own header is as it was saved.

    No value may have been corrected, or left to a default.
    """
    if json.dumps(made, sort_keys=True) != json.dumps(header, sort_keys=True):
        raise ValueError("its parameters are not as they were saved")


def _of_format_1(header: dict[str, Any]) -> dict[str, Any]:
    """Return the header of the first format as a later one would have been."""
    own = {name: entry for name, entry in header.items() if name not in (OLD_FORMATS, SUBCLASS)}
    renamed = {FORMAT: 1, OWN: own}
    if OLD_FORMATS in header:
        renamed[FORMATS] = header[OLD_FORMATS]
    if SUBCLASS in header:
        renamed[SUBCLASS] = header[SUBCLASS]
    return renamed


def _checked_formats(formats: Any) -> dict[str, str]:
    good = isinstance(formats, Mapping) and all(
        type(text) is str for text in chain(*formats.items())
    )
    if not good:
        raise ValueError(f"{FORMATS} = {validation.shown(formats)}: a dict of texts is expected")
    return dict(formats)


# -- files -----------------------------------------------------------------------------------------


def load(path: StrPath) -> Any:
    """Return the model that was saved to a file.

    Parameters
    ----------
    path : str or path
        A file written by `save`. It may be untrusted: no code is run, and everything is checked.

    Raises
    ------
    ModelFileError
        If it is not a model, or damaged; the message names the fault.
    OSError
        If it cannot be read.
    """
    return from_bytes(*container.read_bytes(path))


def from_bytes(data: bytes, source: str = "the buffer") -> Any:
    """Return the model that some bytes are, whatever its class.

    Parameters
    ----------
    data : bytes
        What `to_bytes` of any model has made.
    source : str
        What messages call them.

    Raises
    ------
    ModelFileError
        If they are not a model.
    """
    kind, header, arrays = container.unpack_any(data, source)
    if kind not in KINDS:
        raise ModelFileError(
            f"{source} holds {validation.shown(kind)}, which is no model: one of {', '.join(KINDS)} is "
            "expected"
        )
    found: type[StoredModel] = getattr(import_module(KINDS[kind]), kind)
    return found._restored(State(header, arrays), source)


# -- what anybody's model can do -------------------------------------------------------------------


def can_be_saved(model: Any) -> bool:
    """Whether a model becomes bytes, and bytes become such a model."""
    methods = all(callable(getattr(type(model), name, None)) for name in ("to_bytes", "from_bytes"))
    return methods and getattr(model, "can_be_saved", True) is not False


def is_all_or_nothing(model: Any) -> bool:
    """Whether a model that rejects rows has certainly learned none of them.

    Ours are; another library's class can declare it by an attribute ``all_or_nothing = True``.
    """
    return getattr(model, "all_or_nothing", False) is True


def readable_part(model: Any) -> Any:
    """Return what can be looked into: a model itself, or the tree that it holds; None if nothing.

    Adapters for other libraries hold theirs as `model` or `model_`.
    """
    from sapwood.stages.stage import Stage

    while isinstance(model, Stage):
        model = model.model
    parts = (getattr(model, name, None) for name in ("tree", "model", "model_"))
    for found in chain([model], parts):  # as making a part may take time
        if _is_readable(found):
            return found
    inner = getattr(model, "model", None)  # which may be a wrapper in its turn
    return None if inner is None or inner is model else readable_part(inner)


def _is_readable(found: Any) -> bool:
    """Whether an object is `Readable`; its properties are not computed, which may take long."""
    if found is None or isinstance(found, type):
        return False
    names = ("n_leaves", "feature_importances", "to_text")
    return all(inspect.getattr_static(found, name, None) is not None for name in names)
