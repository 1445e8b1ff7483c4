"""The one place that calls models: any class with `predict_many` and `learn_many` can be served.

Only public methods are used. What a model offers beyond predicting and learning (prediction
intervals, explanations, importances, a tree) is found by looking at its class.
"""

import inspect
import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

import sapwood
from sapwood.model import readable_part
from sapwood.rows.encoded import EncodedColumns, EncodedRow
from sapwood.serve.rows import Batch, RowError
from sapwood.validation import Label

__all__ = ["REJECTIONS", "ModelHost", "Predicted", "plain"]

FloatArray = NDArray[np.float64]

REJECTIONS = (ValueError, TypeError, OverflowError)
"""What a model raises for rows that it rejects; it is unchanged then."""
MEAN_OF = "mean of "
"""What the columns of means begin with, of trees of several targets."""
MOST_NODES = 2_000
"""Nodes of a tree that are sent at once."""


class Predicted(NamedTuple):
    """Predictions of rows.

    - `bounds`, shape (rows, targets, levels, 2): the lower and upper bounds of the prediction
      intervals.
    - `classes`: of a classifier: `values` are the probabilities of these classes.
    """

    values: FloatArray
    bounds: FloatArray | None
    classes: Sequence[Label] | None = None


class ModelHost:
    """A model, and what the service needs of it."""

    task: ClassVar[str] = "numbers"
    classes: Sequence[Label] = ()

    def __init__(self, model: Any) -> None:
        kind = type(model)
        for name in ("predict_many", "learn_many", "predict_one", "learn_one"):
            if not callable(getattr(kind, name, None)):
                raise TypeError(
                    f"a {kind.__name__} cannot be served: it has no {name}; serve a regressor or a "
                    "classifier"
                )
        self.model = model
        self.has_intervals = hasattr(model, "predict_intervals_many") and hasattr(model, "levels")
        self._takes_ids = all(map(_takes_id, (kind.predict_one, kind.learn_one)))
        self._renamed: dict[str, Any] | None = None
        self._features: Any = None

    def to_bytes(self) -> bytes:
        """Return the model as a file holds it."""
        data: bytes = self.model.to_bytes()
        return data

    def copy(self) -> Self:
        """Return the host of an independent copy of the model."""
        if hasattr(type(self.model), "copy"):
            return type(self)(self.model.copy())
        return type(self)(sapwood.model.from_bytes(self.to_bytes()))

    # -- facts ------------------------------------------------------------------------------------

    @property
    def kind(self) -> str:
        """The class of the model."""
        return type(self.model).__name__

    @property
    def targets(self) -> list[str]:
        """The names of several targets; none if there is one."""
        return [str(name) for name in getattr(self.model, "targets", None) or ()]

    @property
    def explains(self) -> bool:
        """Whether the model explains its predictions."""
        return callable(getattr(self.model, "explain", None))

    @property
    def levels(self) -> tuple[float, ...]:
        """The nominal levels of the prediction intervals."""
        return tuple(self.model.levels) if self.has_intervals else ()

    @property
    def nbytes(self) -> int:
        """Bytes that the model occupies, 0 if that is not known."""
        return int(getattr(self.model, "nbytes", 0))

    @property
    def learned_rows(self) -> int:
        """How many rows the model has learned, 0 if it does not report that."""
        return int(getattr(self._summary, "rows", 0) or 0)

    @property
    def _summary(self) -> Any:
        """What the model, or the part of it that can be read, reports of itself."""
        found = getattr(self.model, "summary", None)
        return found or getattr(readable_part(self.model), "summary", None)

    @property
    def converted(self) -> dict[str, str]:
        """The columns whose values the schema of the model converts, each with its role."""
        schema = getattr(self.model, "schema", None)
        rules: Mapping[Any, Any] = getattr(schema, "converting", None) or {}
        return {str(name): str(rule.role) for name, rule in rules.items()}

    @property
    def feature_kinds(self) -> dict[str, str]:
        """The features that the model knows, each with its kind."""
        kinds: Mapping[Any, str] = getattr(self.model, "feature_kinds", None) or {}
        return {str(name): str(kind) for name, kind in kinds.items()}

    def describe(self) -> dict[str, Any]:
        """Return the model in terms of JSON: its class, size, parameters and schema."""
        summary = self._summary
        parameters = getattr(self.model, "parameters", None) or {}
        schema = getattr(self.model, "schema", None)
        return {
            "kind": self.kind,
            "task": self.task,
            "explains": self.explains,
            "bytes": self.nbytes,
            "summary": plain(as_dict(summary)) if summary is not None else {},
            "parameters": {str(name): short(value) for name, value in parameters.items()},
            "schema": {
                "features": self.feature_kinds,
                "targets": self.targets,
                "formats": dict(getattr(schema, "formats", None) or {}),
            },
            "levels": list(self.levels),
            "importances": self.importances(),
        }

    def importances(self) -> dict[str, float]:
        """Return the importance of each feature, none if the model reports none."""
        part = readable_part(self.model)
        found = getattr(part, "feature_importances", None) or {}
        return {str(name): float(share) for name, share in found.items()}

    def members(self) -> int:
        """Return how many trees can be looked into."""
        part = readable_part(self.model)
        if part is None:
            return 0
        if hasattr(part, "to_frame"):
            return 1
        rest = getattr(getattr(part, "summary", None), "members", ())
        return max(0, len(rest) - 1) if hasattr(part, "member") else 0

    def tree(self, member: int = 0) -> list[dict[str, Any]]:
        """Return the nodes of a tree, a parent before its children."""
        from sapwood.inspect.view import to_records

        part = readable_part(self.model)
        if part is None or not 0 <= member < self.members():
            return []
        tree = part if hasattr(part, "to_frame") else part.member(member)
        columns = to_records(tree._picture())
        wanted = ("node", "parent", "condition", "left", "right", "weight", "mean", "deviation")
        means = [name for name in columns if name.startswith(MEAN_OF)]
        for suffix in (f" of {name.removeprefix(MEAN_OF)}" for name in means):
            _sum_up(columns, suffix)
        _sum_up(columns)
        kept = {name: columns[name][:MOST_NODES] for name in (*wanted, "model")}
        nodes = [
            plain(dict(zip(kept, values, strict=True)))
            for values in zip(*kept.values(), strict=True)
        ]
        for place, node in enumerate(nodes):
            found = {name.removeprefix(MEAN_OF): columns[name][place] for name in means}
            node["means"] = plain(self._means(node["mean"], found))
        return nodes

    def _means(self, mean: float | None, means: dict[str, float]) -> dict[str, float]:
        """Return what a node predicts, by target; nothing if there is one."""
        return means

    def explain(self, x: Mapping[str, Any]) -> dict[str, Any]:
        """Explain the prediction of a row, as numbers and as text.

        - Raises RowError if the model does not explain its predictions.
        """
        if not self.explains:
            raise RowError(f"a {self.kind} does not explain predictions; leave explain out")
        model, row = self.model, self._rows_of([dict(x)])[0]
        targets = getattr(self.model, "targets", None) or ()
        if targets:
            each = {str(name): model.explain(row, name) for name in targets}
            return {
                "targets": {name: plain(as_dict(found)) for name, found in each.items()},
                "text": "\n\n".join(f"{name}\n{found}" for name, found in each.items()),
            }
        found = model.explain(row)
        return {**plain(as_dict(found)), "text": str(found)}

    # -- predicting -------------------------------------------------------------------------------

    def values(self, batch: Batch) -> list[Any]:
        """Return predictions in terms of JSON: a number a row, or an object of several targets."""
        rows = self._rows_of(batch.rows)
        if batch.count == 1:
            return [plain(self.model.predict_one(Batch(rows, 1).as_dicts()[0]))]
        return self.as_json(Predicted(self._table(self.model.predict_many(rows)), None).values)

    def predict(self, batch: Batch) -> Predicted:
        """Return predictions, with prediction intervals if the model has them.

        The model remembers predictions of rows with ids until `learn` brings their labels.
        """
        rows = self._rows_of(batch.rows)
        if batch.count == 1:
            return self._predict_one(Batch(rows, 1).as_dicts()[0], self._known_by(batch.ids, "id"))
        ids = self._known_by(batch.ids, "ids")
        if self.has_intervals:
            return self._with_bounds(*self.model.predict_intervals_many(rows, **ids))
        return Predicted(self._table(self.model.predict_many(rows, **ids)), None)

    def issued(self, values: list[list[float]], bounds: list[Any]) -> Predicted:
        """Return predictions of single rows that were issued before as those of a batch."""
        width = max(map(len, values))
        table = np.array([row if len(row) == width else row * width for row in values])
        if any(each is None or len(each) != width for each in bounds):
            return Predicted(table, None)
        return Predicted(table, np.array(bounds, dtype=np.float64))

    def answer(self, found: Predicted) -> dict[str, Any]:
        """Return the part of an answer to /predict that holds predictions."""
        return {"predictions": self.as_json(found.values)}

    def columns(self, found: Predicted, levels: Sequence[float]) -> dict[str, Any]:
        """Return predictions and the prediction intervals of some levels as columns."""
        names, columns = self.targets, {}
        for place in range(found.values.shape[1]):
            suffix = f"_{names[place]}" if names else ""
            columns[f"prediction{suffix}"] = found.values[:, place].copy()
            for level in levels:
                if found.bounds is not None:
                    pair = found.bounds[:, place, self.levels.index(level)]
                    columns[f"lower_{level:g}{suffix}"] = pair[:, 0].copy()
                    columns[f"upper_{level:g}{suffix}"] = pair[:, 1].copy()
        return columns

    def _known_by(self, ids: Sequence[str | None] | None, name: str) -> dict[str, Any]:
        """Return the argument of a model's method that connects predictions with labels."""
        if ids is None or not self._takes_ids:
            return {}
        # A row without an id gets no label. An empty text is the id of no other row.
        own = [each or "" for each in ids]
        return {name: own[0] if name == "id" else own}

    def _predict_one(self, row: dict[Any, Any], known_by: dict[str, Any]) -> Predicted:
        if not self.has_intervals:
            return Predicted(_row(self.model.predict_one(row, **known_by)), None)
        value, bounds = self.model.predict_intervals_one(row, **known_by)
        values = _row(value)
        several = list(bounds.values()) if isinstance(bounds, Mapping) else [bounds]
        stacked = np.array(several, dtype=np.float64).reshape(1, values.shape[1], -1, 2)
        return Predicted(values, stacked)

    def _with_bounds(self, values: Any, bounds: Any) -> Predicted:
        table = self._table(values)
        pairs = np.asarray(bounds, dtype=np.float64)
        return Predicted(table, pairs.reshape(*table.shape, len(self.levels), 2))

    def _table(self, found: Any) -> FloatArray:
        if isinstance(found, Mapping):
            found = np.column_stack(list(found.values()))
        table = np.asarray(found, dtype=np.float64)
        return table.reshape(len(table), -1)

    def as_json(self, values: FloatArray) -> list[Any]:
        """Return predictions, actuals or bounds of each row in terms of JSON."""
        names = self.targets
        if not names:
            return [plain(value) for value in values[:, 0].tolist()]
        return [plain(dict(zip(names, row, strict=True))) for row in values.tolist()]

    # -- learning ---------------------------------------------------------------------------------

    def predict_learn(self, batch: Batch) -> Predicted:
        """Predict each row before it is learned; rejected rows change nothing that is learned."""
        rows = self._rows_of(batch.rows)
        y, w = batch.y or [], batch.w
        if batch.count == 1:
            [row] = Batch(rows, 1).as_dicts()
            row = EncodedRow(row) if batch.encoded else row
            found = self._predict_one(row, {})
            self.model.learn_one(row, y[0], *([] if w is None else w))
            return found
        if batch.encoded:
            rows = EncodedColumns({name: [row.get(name) for row in rows] for name in rows[0]})
        return self._predict_learn_many(rows, y, w)

    def _predict_learn_many(self, rows: Any, y: list[Any], w: list[float] | None) -> Predicted:
        if self.has_intervals:
            return self._with_bounds(*self.model.predict_learn_intervals(rows, y, w))
        return Predicted(self._table(self.model.predict_learn_many(rows, y, w)), None)

    def learn(self, rows: Sequence[dict[Any, Any]], y: Sequence[Any], ids: Sequence[str]) -> None:
        """Learn rows that were predicted before under these ids."""
        own = self._rows_of(list(rows))
        if len(own) == 1:
            self.model.learn_one(own[0], y[0], **self._known_by(ids, "id"))
        else:
            self.model.learn_many(own, list(y), **self._known_by(ids, "ids"))

    def actuals(self, y: Sequence[Any]) -> FloatArray:
        """Return targets that were learned as a table, NaN where one is missing."""
        names = self.targets
        if not names:
            return np.array([float(value) for value in y]).reshape(-1, 1)
        rows = [
            [value.get(name) for name in names] if isinstance(value, Mapping) else list(value)
            for value in y
        ]
        return np.array(rows, dtype=np.float64)

    # -- names ------------------------------------------------------------------------------------

    def _rows_of(self, rows: Any) -> Any:
        """Return rows whose features are called as the model calls them.

        A model that has learned arrays calls its features 0, 1, and so on; JSON has texts.
        """
        names = getattr(self.model, "features", None) or ()
        if self._renamed is None or self._features != len(names):
            self._features = len(names)
            self._renamed = {
                str(name): name
                for name in names
                if isinstance(name, int) and str(name) not in names
            }
        renamed = self._renamed
        if not renamed:
            return rows
        if isinstance(rows, Mapping):
            return {renamed.get(name, name): column for name, column in rows.items()}
        return [{renamed.get(name, name): row[name] for name in row} for row in rows]


def _sum_up(columns: dict[str, list[Any]], suffix: str = "") -> None:
    """Let inner nodes have the weight and mean of the leaves below; they had those of the split."""
    weight, mean = columns[f"weight{suffix}"], columns[f"mean{suffix}"]
    for node in reversed(range(len(weight))):  # children come after their parents
        left, right = columns["left"][node], columns["right"][node]
        if left >= 0:
            weight[node] = weight[left] + weight[right]
            share = weight[right] / weight[node] if weight[node] else 0.5
            mean[node] = mean[left] * (1.0 - share) + mean[right] * share


def _takes_id(method: Any) -> bool:
    """Whether a method connects a prediction with its label by an id."""
    try:
        return "id" in inspect.signature(method).parameters
    except (TypeError, ValueError):
        return False


def _row(value: Any) -> FloatArray:
    values = list(value.values()) if isinstance(value, Mapping) else [value]
    return np.array([values], dtype=np.float64)


def as_dict(found: Any) -> Any:
    """Return what describes itself as a dict."""
    for name in ("to_dict", "_asdict"):
        if hasattr(found, name):
            return getattr(found, name)()
    return found


def plain(value: Any) -> Any:
    """Return a value in terms of JSON: numbers that are not finite become None.

    Examples
    --------
    >>> plain({"a": (1, float("nan")), 2: np.float64(0.5)})
    {'a': [1, None], '2': 0.5}
    """
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | bool | int):
        return value
    if hasattr(value, "to_dict") or hasattr(value, "_asdict"):
        value = as_dict(value)
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, Sequence) else short(value)


def short(value: Any) -> Any:
    """Return a parameter as it is shown."""
    if value is None or isinstance(value, bool | int | float):
        return plain(value)
    text = str(value)
    return text if len(text) <= 200 else f"{text[:199]}…"
