"""A tree or an ensemble as a model of ONNX, linear leaves and all, in doubles."""

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.classify import Classifier, LaggedClassifier
from sapwood.export.flat import (
    CODES,
    ExportError,
    FlatTree,
    LeafModels,
    Tracking,
    codes_in,
    needed,
    readable_in,
)
from sapwood.export.flat_model import FlatModel, flatten_model
from sapwood.export.onnx_classes import add_classes, rated_models
from sapwood.model import Readable
from sapwood.rows.column import OTHERS
from sapwood.storage.atomic import StrPath, write_atomically
from sapwood.tree._kernel import TERM_CREDIBLE, TERM_REACH
from sapwood.tree.layout import CATEGORY

__all__ = ["to_onnx"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]

# TreeEnsemble exists since version 5 of ai.onnx.ml, of the ONNX release with version 21 of ai.onnx.
OPSETS = {"ai.onnx.ml": 5, "": 21}
IR_VERSION = 10
MOST_BYTES = 2**31 - 2**20  # of a model: protobuf ends at 2 GiB
NODE_BYTES = 64  # of a node, without the codes in its condition

BRANCH_LT, BRANCH_MEMBER = 1, 6


def to_onnx(tree: Readable, path: StrPath | None = None) -> Any:
    """Return an `onnx.ModelProto` that predicts as a tree or an ensemble does now.

    Parameters
    ----------
    tree : HoeffdingTreeRegressor, ForestRegressor, AdaptiveTreeRegressor, or a classifier
        Of any kind, of one target or several. What recent errors add (`track`) is contained in the
        model, and so are the weights of members and the calibration of probabilities.
    path : str or path-like, optional
        Where to write the model too, whole or not at all.

    Returns
    -------
    onnx.ModelProto
        Its input "X" is what `encode` returns, (rows, features) of doubles, categories and
        missing values among it; its output "prediction" is (rows,) of doubles, or (rows, targets)
        of several. A classifier has two outputs: "label", the place of the predicted class in
        `classes`, and "probabilities", (rows, classes). The names of the features, the categories of
        each in the order of their codes, and the names of several targets or classes are in its
        metadata as JSON.

    Raises
    ------
    ExportError
        If the model would be larger than 2 GiB, which is where ONNX ends. The trees of a
        classifier of three classes and more are contained once for each class.

    Notes
    -----
    All is computed in doubles. Constant leaves agree bit for bit, linear leaves except for the
    order in which terms are summed. ONNX Runtime has to be 1.23 or newer.

    Examples
    --------
    >>> import numpy as np, onnxruntime
    >>> from sapwood.export import encode
    >>> from sapwood import HoeffdingTreeRegressor
    >>> tree = HoeffdingTreeRegressor()
    >>> x = np.arange(3000.0) % 100
    >>> tree.learn_many({"x": x}, np.where(x < 30, 2 * x, 60 - x))
    >>> session = onnxruntime.InferenceSession(to_onnx(tree).SerializeToString())
    >>> (exported,) = session.run(None, {"X": encode(tree, {"x": x})})
    >>> np.allclose(exported, tree.predict_many({"x": x}), rtol=1e-12)
    True
    """
    graph = _Graph(needed("onnx", "onnx", "to_onnx"))
    tree = tree.model if isinstance(tree, LaggedClassifier) else tree
    if isinstance(tree, Classifier):
        model, facts = _classifier_of(graph, tree)
    else:
        model, facts = _regressor_of(graph, tree)
    graph.helper.set_model_props(model, {name: json.dumps(fact) for name, fact in facts.items()})
    if path is not None:
        write_atomically(path, model.SerializeToString())
    return model


def _predicted(graph: "_Graph", flat: FlatModel) -> str:
    """Add the predictions of a model of one target, (rows, 1)."""
    predictions = [
        _tree_prediction(graph, each, _columns(graph, flat, each, levels))
        for each, levels in zip(flat.trees, flat.levels, strict=True)
    ]
    result = _together(graph, predictions, flat.shares) if len(predictions) > 1 else predictions[0]
    return result if flat.tracking is None else _track(graph, flat.tracking, result)


def _regressor_of(graph: "_Graph", tree: Any) -> tuple[Any, dict[str, Any]]:
    """Return the model of a regressor, and what is known of its columns."""
    found = readable_in(tree)
    names = list(found.targets)
    if names:
        found = found.copy()  # so that all targets are those of one moment
    flats = [flatten_model(found.of_target(name)) for name in names] or [flatten_model(found)]
    _check_size([each for flat in flats for each in flat.trees])
    made = graph.model(len(flats[0].names), [_predicted(graph, flat) for flat in flats])
    facts: dict[str, Any] = {"features": flats[0].names, "categories": flats[0].labels}
    return made, {**facts, "targets": names} if names else facts


def _classifier_of(graph: "_Graph", classifier: Classifier) -> tuple[Any, dict[str, Any]]:
    """Return the model of a classifier, and what is known of its columns."""
    model = classifier.copy()  # which nobody changes meanwhile
    flats = [flatten_model(each) for each in rated_models(model)]
    _check_size([tree for flat in flats for tree in flat.trees])
    rated = [_predicted(graph, flat) for flat in flats]
    made = graph.classifier(len(flats[0].names), *add_classes(graph, model, rated))
    facts = {"features": flats[0].names, "categories": flats[0].labels}
    return made, {**facts, "classes": model.classes}


def _check_size(trees: list[FlatTree]) -> None:
    """Raise if trees are too large for a model."""
    size = 0
    for flat in trees:
        tables = [] if flat.models is None else list(vars(flat.models).values())
        codes = CODES * np.count_nonzero(flat.kind == CATEGORY)
        size += NODE_BYTES * len(flat.kind) + 8 * (codes + sum(table.size for table in tables))
    if size > MOST_BYTES:
        raise ExportError(
            f"the model would have about {size / 2**30:.3g} GiB, and ONNX ends at 2 GiB; hold the "
            "tree smaller by max_bytes or max_depth"
        )


class _Graph:
    """The nodes of a model while it is made; a result is known by its name."""

    def __init__(self, onnx: Any) -> None:
        self.helper = onnx.helper
        self.types = onnx.TensorProto
        self.to_tensor = onnx.numpy_helper.from_array
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def add(self, operator: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """Add a node, and return the name of its result."""
        name = f"{operator}_{len(self.nodes)}"
        node = self.helper.make_node(operator, inputs, [name], name, domain=domain, **attributes)
        self.nodes.append(node)
        return name

    def constant(self, value: Any, dtype: Any = np.float64) -> str:
        """Add a constant, and return its name."""
        name = f"constant_{len(self.constants)}"
        self.constants.append(self.to_tensor(np.ascontiguousarray(value, dtype=dtype), name))
        return name

    def model(self, width: int, results: list[str]) -> Any:
        """Return the model whose prediction of each target is a result, (rows, 1)."""
        helper, doubles = self.helper, self.types.DOUBLE
        shape: list[str | int] = ["rows"] if len(results) == 1 else ["rows", len(results)]
        if len(results) == 1:
            inputs = [results[0], self.constant([1], np.int64)]
            last = helper.make_node("Squeeze", inputs, ["prediction"], "Squeeze")
        else:
            last = helper.make_node("Concat", results, ["prediction"], "Concat", axis=1)
        self.nodes.append(last)
        return self._made(width, [helper.make_tensor_value_info("prediction", doubles, shape)])

    def classifier(self, width: int, label: str, probabilities: str) -> Any:
        """Return the model of a classifier: the place of its class, and probabilities."""
        helper, types = self.helper, self.types
        for result, name in ((label, "label"), (probabilities, "probabilities")):
            self.nodes.append(helper.make_node("Identity", [result], [name], name))
        outputs = [
            helper.make_tensor_value_info("label", types.INT64, ["rows"]),
            helper.make_tensor_value_info("probabilities", types.DOUBLE, ["rows", None]),
        ]
        return self._made(width, outputs)

    def _made(self, width: int, outputs: list[Any]) -> Any:
        """Return the model of all nodes."""
        helper = self.helper
        given = helper.make_tensor_value_info("X", self.types.DOUBLE, ["rows", width])
        graph = helper.make_graph(self.nodes, "sapwood", [given], outputs, self.constants)
        return helper.make_model(
            graph,
            producer_name="sapwood",
            ir_version=IR_VERSION,
            opset_imports=[helper.make_opsetid(*item) for item in OPSETS.items()],
        )


def _columns(graph: _Graph, flat: FlatModel, tree: FlatTree, levels: dict[int, FloatArray]) -> str:
    """Add what a tree reads: X, or that with levels in place of the codes that are many."""
    if not levels:
        return "X"
    parts = []
    for feature in range(len(flat.names)):
        column = graph.add("Gather", "X", graph.constant([feature], np.int64), axis=1)
        if feature in levels:
            missing = graph.constant(len(levels[feature]) - 1)
            code = graph.add("Where", graph.add("IsNaN", column), missing, column)
            code = graph.add("Cast", code, to=graph.types.INT64)
            column = graph.add("Gather", graph.constant(levels[feature]), code)
        parts.append(column)
    for name in tree.names[len(flat.names) :]:  # codes that it was cut by while they were few
        feature = next(each for each in levels if name == f"code of {flat.names[each]}")
        code = graph.add("Gather", "X", graph.constant([feature], np.int64), axis=1)
        most = graph.constant(OTHERS)
        is_beyond = graph.add("Greater", code, most)  # which NaN is not
        parts.append(graph.add("Where", is_beyond, most, code))
    return graph.add("Concat", *parts, axis=1)


def _tree_prediction(graph: _Graph, flat: FlatTree, x: str) -> str:
    """Add the predictions of a tree for its columns x, (rows, 1)."""
    if flat.models is None:
        return _walk(graph, flat, x, flat.constants("ONNX")[flat.is_leaf])
    leaf = _walk(graph, flat, x, np.arange(len(flat.models.base)))
    result = _predict(graph, flat, flat.models, x, leaf)
    return result if flat.tracking is None else _track(graph, flat.tracking, result)


def _together(graph: _Graph, predictions: list[str], shares: list[float]) -> str:
    """Add the predictions of trees combined by their shares; see `FlatModel`."""
    both = graph.add("Concat", *predictions, axis=1)
    total = graph.add("MatMul", both, graph.constant(np.array(shares)[:, None]))
    return graph.add(
        "Min",
        graph.add("Max", total, graph.add("Min", *predictions)),
        graph.add("Max", *predictions),
    )


def _walk(graph: _Graph, flat: FlatTree, x: str, values: NDArray[Any]) -> str:
    """Add the walk of rows to their leaves; return the value of each row's leaf, (rows, 1)."""
    is_leaf = flat.is_leaf
    # A tree of one leaf is a node both of whose branches are that leaf.
    inner = np.flatnonzero(~is_leaf) if len(is_leaf) > 1 else np.zeros(1, np.intp)
    left, right, feature = (
        np.maximum(column[inner], 0) for column in (flat.left, flat.right, flat.feature)
    )
    place = np.where(is_leaf, np.cumsum(is_leaf), np.cumsum(~is_leaf)) - 1
    splits_set = flat.kind[inner] == CATEGORY
    # Each set ends with NaN. Runtimes rely on it that none is empty, so that it gets a code that no
    # category has.
    codes = [
        [*(codes_in(subset) or [CODES]), np.nan]
        for subset in flat.subset[inner][splits_set].tolist()
    ]
    sets = {"membership_values": graph.to_tensor(np.concatenate(codes))} if codes else {}
    return graph.add(
        "TreeEnsemble",
        x,
        domain="ai.onnx.ml",
        n_targets=1,
        aggregate_function=1,
        post_transform=0,
        tree_roots=[0],
        nodes_featureids=feature,
        nodes_splits=graph.to_tensor(flat.threshold[inner]),
        nodes_modes=graph.to_tensor(
            np.where(splits_set, BRANCH_MEMBER, BRANCH_LT).astype(np.uint8)
        ),
        nodes_missing_value_tracks_true=flat.missing_left[inner].astype(np.int64),
        nodes_truenodeids=place[left],
        nodes_trueleafs=is_leaf[left].astype(np.int64),
        nodes_falsenodeids=place[right],
        nodes_falseleafs=is_leaf[right].astype(np.int64),
        leaf_targetids=np.zeros(len(values), np.int64),
        leaf_weights=graph.to_tensor(values.astype(np.float64)),
        **sets,
    )


def _terms(
    graph: _Graph, x: str, levels: FloatArray, is_category: BoolArray
) -> tuple[str, IntArray]:
    """Add the terms of linear models, levels in place of codes; return the columns' features."""
    numbers, categories = np.flatnonzero(~is_category), np.flatnonzero(is_category)
    if not len(categories):
        return x, numbers
    # Missing values have a code of their own here, after all others, and NaN for a level.
    table = np.pad(levels[categories], ((0, 0), (0, 1)), constant_values=np.nan)
    starts = graph.constant(np.arange(len(categories)) * table.shape[1], np.int64)
    codes = graph.add("Gather", x, graph.constant(categories, np.int64), axis=1)
    codes = graph.add("Where", graph.add("IsNaN", codes), graph.constant(CODES), codes)
    codes = graph.add("Add", graph.add("Cast", codes, to=graph.types.INT64), starts)
    terms = graph.add("Gather", graph.constant(table.ravel()), codes)
    if len(numbers):
        rest = graph.add("Gather", x, graph.constant(numbers, np.int64), axis=1)
        terms = graph.add("Concat", rest, terms, axis=1)
    return terms, np.concatenate([numbers, categories])


def _predict(graph: _Graph, flat: FlatTree, models: LeafModels, x: str, leaf: str) -> str:
    """Add what leaves predict, (rows, 1); see `LeafModels`."""
    x, columns = _terms(graph, x, models.levels, np.array([bool(each) for each in flat.labels]))
    leaf = graph.add("Cast", leaf, to=graph.types.INT64)
    leaf = graph.add("Squeeze", leaf, graph.constant([1], np.int64))

    def of_leaf(table: Any) -> str:
        return graph.add("Gather", graph.constant(table), leaf)

    centres, scales = of_leaf(models.centres[:, columns]), of_leaf(models.scales[:, columns])

    def standardised(values: str) -> str:
        return graph.add("Mul", graph.add("Sub", values, centres), scales)

    # NaN is not less than anything, so that what is missing becomes 0 here, too.
    distance = graph.add("Abs", standardised(x))
    credible = graph.add("LessOrEqual", distance, graph.constant(TERM_CREDIBLE))
    held = graph.add("Max", x, graph.constant(models.least[columns]))
    held = graph.add("Min", held, graph.constant(models.greatest[columns]))
    z = graph.add("Where", credible, standardised(held), graph.constant(0.0))
    z = graph.add("Clip", z, graph.constant(-TERM_REACH), graph.constant(TERM_REACH))
    z = graph.add("Unsqueeze", z, graph.constant([2], np.int64))
    terms = graph.add("MatMul", of_leaf(models.coefficients[:, :, columns]), z)
    terms = graph.add("Squeeze", terms, graph.constant([2], np.int64))
    experts = graph.add("Add", of_leaf(models.intercepts), terms)
    experts = graph.add("Max", experts, of_leaf(models.lowest[:, None]))
    experts = graph.add("Min", experts, of_leaf(models.highest[:, None]))
    experts = graph.add("Mul", experts, of_leaf(models.shares))
    total = graph.add("ReduceSum", experts, graph.constant([1], np.int64), keepdims=1)
    return graph.add("Add", of_leaf(models.base[:, None]), total)


def _track(graph: _Graph, tracking: Tracking, p: str) -> str:
    """Add the error-correction layer after predictions p; see `Tracking`."""

    def line(start: str, factor: float, distance: str) -> str:
        return graph.add("Add", start, graph.add("Mul", graph.constant(factor), distance))

    def from_p(value: float) -> str:
        return graph.add("Sub", graph.constant(value), p)

    def beyond(value: float) -> str:
        return graph.add("Sub", p, graph.constant(value))

    rates = zip(tracking.level, tracking.slope, tracking.weighted_mean, strict=True)
    candidates = [line(graph.constant(level), slope, beyond(mean)) for level, slope, mean in rates]
    terms = [*map(from_p, tracking.known), beyond(tracking.first)]
    transferred = p
    for coefficient, term in zip(tracking.coefficients, terms, strict=True):
        transferred = line(transferred, coefficient, term)
    transferred = graph.add("Max", transferred, graph.constant(tracking.lowest))
    candidates.append(graph.add("Min", transferred, graph.constant(tracking.highest)))
    total = p
    for weight, candidate in zip(tracking.weights, candidates, strict=True):
        total = line(total, weight, graph.add("Sub", candidate, p))
    total = graph.add("Max", total, graph.add("Min", p, *candidates))
    total = graph.add("Min", total, graph.add("Max", p, *candidates))
    if tracking.last_share:
        last = graph.add("Sub", graph.constant(tracking.known[0]), total)
        total = line(total, tracking.last_share, last)
    for name, bound in (("Max", tracking.least), ("Min", tracking.greatest)):
        total = graph.add(name, total, graph.constant(bound)) if np.isfinite(bound) else total
    return total
