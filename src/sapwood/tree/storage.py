"""A tree as a header and arrays, and back: every value is checked before it is used."""

import os
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sapwood import modelfile
from sapwood.atomic import StrPath
from sapwood.modelfile import damaged
from sapwood.observers import EBSTObserver, QuantizerObserver, TEBSTObserver
from sapwood.observers.base import TableObserver
from sapwood.tree import build
from sapwood.tree._kernel import GRID_DOUBLES, SLOT_DOUBLES, TRACK_RATES, TreeKernel, most_kept_rows
from sapwood.tree.features import CATEGORY as CATEGORY_KIND
from sapwood.tree.features import Features
from sapwood.tree.tables import CATEGORY, LEAF, LEAF_RECORD, NODE_RECORD, NUMBER

if TYPE_CHECKING:
    from sapwood.tree.regressor import HoeffdingTreeRegressor

__all__ = ["KIND", "load", "restore", "state_of"]

Array = NDArray[Any]
Tree = TypeVar("Tree", bound="HoeffdingTreeRegressor")

KIND = "HoeffdingTreeRegressor"
OBSERVERS: dict[str, type[TableObserver]] = {
    kind.__name__: kind for kind in (QuantizerObserver, EBSTObserver, TEBSTObserver)
}
STREAM = ("rows", "weight", "first", "low", "high", "ranked_at")


def state_of(tree: "HoeffdingTreeRegressor") -> tuple[dict[str, Any], dict[str, Array]]:
    """Return all that a tree is."""
    kernel = tree._kernel
    observer = tree._parameters["observer"]
    header = {
        "parameters": {
            **tree._parameters,
            "observer": [type(observer).__name__, observer._parameters()],
            "categorical": list(tree._parameters["categorical"]),
        },
        "features": tree._features.to_header(),
    }
    leaves = kernel.leaf_table[: kernel.leaf_count]
    watching = np.flatnonzero(leaves["watching"])
    blobs = [_observer_bytes(each) for leaf in watching for each in kernel.observers[leaf] or ()]
    stream = [getattr(kernel, name) for name in STREAM[:-1]] + [tree._memory.ranked_at]
    arrays = {
        "nodes": kernel.node_table[: kernel.node_count],
        "leaves": leaves,
        "stream": np.array(stream, dtype=np.float64),
        "tracks": kernel.track_table,
        "levels": kernel.level_table,
        "models": _stacked(
            [kernel.model_pages[leaf] for leaf in range(len(leaves))], kernel.model_doubles
        ),
        "watches": _stacked([kernel.watch_pages[leaf] for leaf in watching], kernel.watch_doubles),
        "observer_sizes": np.array([len(blob) for blob in blobs], dtype=np.int64),
        "observers": np.frombuffer(b"".join(blobs), dtype=np.uint8),
    }
    return header, arrays


def load(path: StrPath) -> "HoeffdingTreeRegressor":
    """Return the tree that was saved to a file.

    Parameters
    ----------
    path : str or path
        What `HoeffdingTreeRegressor.save` has written. It may come from anywhere: no code is run,
        and all is checked.

    Raises
    ------
    ModelFileError
        If it is not a tree, or damaged; the message says what is wrong.
    OSError
        If it cannot be read.
    """
    from sapwood.tree.regressor import HoeffdingTreeRegressor

    header, arrays = modelfile.read(path, KIND)
    return restore(HoeffdingTreeRegressor, header, arrays, os.fspath(path))


def _stacked(pages: list[Array | None], width: int) -> Array:
    if not pages or not width:
        return np.zeros((len(pages), width))
    return np.array(pages)


def _observer_bytes(observer: TableObserver) -> bytes:
    """Return an observer's bytes; what its own door would remember is made up from its elements."""
    _, table = observer._elements()
    reach = np.zeros((2, 2))
    if len(table):
        for target in range(2):
            pivot, shift, m2 = table[:, 2 + 3 * target : 5 + 3 * target].T
            reach[target, 0] = pivot[0]
            spread = m2 + table[:, 0] * np.square((pivot - pivot[0]) + shift)
            reach[target, 1] = spread.sum() * (1 + 1e-9)
    observer._set_reach(float(table[:, 0].sum()), reach)
    return observer.to_bytes()


def restore(
    kind: type[Tree], header: dict[str, Any], arrays: dict[str, Array], source: str
) -> Tree:
    """Return the tree of a header and arrays, of which nothing is trusted.

    Raises
    ------
    ModelFileError
        If there is anything wrong with them.
    """
    try:
        tree = _empty_tree(kind, header)
        _fill(tree, arrays)
    except (ValueError, TypeError, KeyError, OverflowError, IndexError) as error:
        raise damaged(source, str(error)) from None
    return tree


def _empty_tree(kind: type[Tree], header: dict[str, Any]) -> Tree:
    _check(set(header) == {"parameters", "features"}, "the header is wrong")
    parameters = dict(header["parameters"])
    name, own = parameters["observer"]
    _check(name in OBSERVERS, f"{name!r} is no observer")
    parameters["observer"] = OBSERVERS[name](**own)
    features = Features.from_header(header["features"])
    tree = kind(**parameters)
    _check(features.categorical == tree._features.categorical, "the categorical features differ")
    tree._use_features(features)
    return tree


def _fill(tree: "HoeffdingTreeRegressor", arrays: dict[str, Array]) -> None:
    kernel, features = tree._kernel, tree._features
    is_category = np.array([each == CATEGORY_KIND for each in features.kinds], dtype=np.bool_)
    build.relay(kernel, tree._observing, is_category)
    nodes, leaves = arrays["nodes"], arrays["leaves"]
    _check(nodes.dtype == NODE_RECORD and leaves.dtype == LEAF_RECORD, "a table has other columns")
    _check(
        nodes.ndim == leaves.ndim == 1 and len(nodes) == 2 * len(leaves) - 1,
        "the tables' lengths are wrong",
    )
    _check_nodes(nodes, leaves, is_category)
    _check_leaves(leaves)
    _check_stream(arrays["stream"], leaves)
    rows, weight, first, low, high, tree._memory.ranked_at = arrays["stream"].tolist()
    tracks = _doubles(arrays["tracks"], kernel.track_table.shape, "the tracks")
    _check(bool((tracks[0] == TRACK_RATES).all() and (tracks[4:] >= 0).all()), "a track is wrong")
    levels = _doubles(arrays["levels"], kernel.level_table.shape, "the levels")
    _check(bool((levels[:, 0] >= 0).all()), "the weight of a category is negative")
    models = _doubles(arrays["models"], (len(leaves), kernel.model_doubles), "the models")
    _check_models(models, kernel)
    watching = np.flatnonzero(leaves["watching"])
    watches = _doubles(arrays["watches"], (len(watching), kernel.watch_doubles), "what is watched")
    _check_watches(watches, is_category, kernel)
    observers = _observers(tree, arrays, len(watching))

    kernel.set_tables(_roomy(nodes), _roomy(leaves))
    kernel.set_counts(len(nodes), len(leaves))
    kernel.set_stream(rows, weight, first, low, high)
    kernel.set_tracks(tracks)
    kernel.set_features(is_category, levels)
    place = {int(leaf): number for number, leaf in enumerate(watching)}
    for leaf in range(len(leaves)):
        number = place.get(leaf)
        kernel.set_pages(
            leaf,
            models[leaf].copy() if kernel.linear else None,
            None if number is None else watches[number].copy(),
            None if number is None or observers is None else observers[number],
        )
    tree._reader.refresh()


def _roomy(table: Array) -> Array:
    roomy = np.zeros(build.table_room(len(table)), table.dtype)
    roomy[: len(table)] = table
    return roomy


def _check_nodes(nodes: Array, leaves: Array, is_category: NDArray[np.bool_]) -> None:
    """Check that nodes are a tree whose leaves are the leaves, each of them once."""
    count, number = len(nodes), np.arange(len(nodes))
    kind, child, parent, depth = (
        nodes[name].astype(np.int64) for name in ("kind", "child", "parent", "depth")
    )
    inner = kind != LEAF
    _check(bool(np.isin(kind, (LEAF, NUMBER, CATEGORY)).all()), "a node is of no kind")
    _check(parent[0] == -1 and depth[0] == 0, "the root is wrong")
    _check(
        bool((child[inner] > number[inner]).all() and (child[inner] + 1 < count).all()),
        "a child is no node",
    )
    children = np.sort(np.concatenate([child[inner], child[inner] + 1]))
    _check(np.array_equal(children, number[1:]), "a node has no parent, or two")
    for side in (0, 1):
        own = child[inner] + side
        _check(np.array_equal(parent[own], number[inner]), "a parent is wrong")
        _check(np.array_equal(depth[own], depth[inner] + 1), "a depth is wrong")
    rows = child[~inner]
    _check(np.array_equal(np.sort(rows), np.arange(len(leaves))), "a leaf is wrong")
    _check(np.array_equal(leaves["node"][rows], number[~inner]), "a leaf belongs to another node")
    feature = nodes["feature"].astype(np.int64)
    _check(
        bool((feature >= 0).all() and (feature[inner] < len(is_category)).all()),
        "a feature is wrong",
    )
    _check(
        np.array_equal(is_category[feature[inner]], kind[inner] == CATEGORY),
        "a feature is of another kind",
    )
    _check(bool(np.isin(nodes["missing_left"], (0, 1)).all()), "the way of missing values is wrong")
    for name in ("threshold", "weight", "mean", "deviation", "gain"):
        _check(bool(np.isfinite(nodes[name]).all()), f"the {name} of a node is not finite")
    for name in ("weight", "deviation", "gain"):
        _check(bool((nodes[name] >= 0).all()), f"the {name} of a node is negative")


def _check_leaves(leaves: Array) -> None:
    _check(bool(np.isin(leaves["watching"], (0, 1)).all()), "a leaf is wrong")
    for name in LEAF_RECORD.names or ():
        values = leaves[name].astype(np.float64)
        finite = ~np.isnan(values) if name in ("due", "review") else np.isfinite(values)
        _check(bool(finite.all()), f"the {name} of a leaf is not finite")
        if name not in ("origin", "mean", "target_mean", "residual_mean"):
            _check(bool((values >= 0).all()), f"the {name} of a leaf is negative")


def _check_stream(stream: Array, leaves: Array) -> None:
    _doubles(stream, (len(STREAM),), "the numbers of the stream")
    rows, weight, first, low, high, ranked_at = stream.tolist()
    _check(rows >= 0 and rows == int(rows) and weight >= 0, "the number of rows is wrong")
    _check(low <= first <= high, "the range of y is wrong")
    _check((rows == 0) == (weight == 0) and ranked_at >= 0, "the weight is wrong")
    _check(rows > 0 or len(leaves) == 1, "a tree without rows has grown")


def _check_models(models: Array, kernel: TreeKernel) -> None:
    if not kernel.linear:
        return
    _, scales, covariance, terms = kernel.page_parts()
    _check(bool((models[:, scales:covariance] >= 0).all()), "a scale is negative")
    matrix = models[:, covariance:]
    diagonal = matrix if matrix.shape[1] == terms else matrix[:, :: terms + 1]
    _check(bool((diagonal > 0).all()), "a variance is not positive")
    if matrix.shape[1] != terms:
        square = matrix.reshape(-1, terms, terms)
        _check(np.array_equal(square, square.transpose(0, 2, 1)), "a covariance is not symmetric")


def _check_watches(watches: Array, is_category: NDArray[np.bool_], kernel: TreeKernel) -> None:
    features = len(is_category)
    grids = watches[:, : GRID_DOUBLES * features].reshape(-1, features, GRID_DOUBLES)
    low, width, inverse, kept = np.moveaxis(grids, 2, 0)
    category = (low == 0) & (width == 1) & (inverse == 1) & (kept == 0)
    _check(bool(category[:, is_category].all()), "the grid of a category is wrong")
    _check(bool(((width >= 0) & (inverse >= 0)).all()), "the width of a slot is negative")
    most = most_kept_rows(kernel.slots)
    _check(
        bool(((kept >= 0) & (kept == np.floor(kept)) & (kept <= most)).all()),
        "the rows that are kept are wrong",
    )
    _check(bool((kept[inverse == 0] < max(most, 1)).all()), "too many rows are kept")
    for feature in range(features):
        slots = watches[:, kernel.slot_start(feature) : kernel.slot_start(feature + 1)]
        settled = slots[inverse[:, feature] > 0]
        _check(bool((settled[:, ::SLOT_DOUBLES] >= 0).all()), "the weight of a slot is negative")


def _observers(
    tree: "HoeffdingTreeRegressor", arrays: dict[str, Array], watching: int
) -> list[list[TableObserver]] | None:
    sizes, data = arrays["observer_sizes"], arrays["observers"]
    _check(
        sizes.dtype == np.int64 and data.dtype == np.uint8 and sizes.ndim == data.ndim == 1,
        "observers are wrong",
    )
    features = tree._kernel.features
    expected = watching * features if tree._observing.by_observers else 0
    _check(len(sizes) == expected and bool((sizes >= 0).all()), "the number of observers is wrong")
    _check(int(sizes.sum()) == len(data), "the observers' sizes are wrong")
    if not tree._observing.by_observers:
        return None
    kind, ends = type(tree._observing.model), np.cumsum(sizes).tolist()
    loaded = [
        kind.from_bytes(data[start:end].tobytes())
        for start, end in zip([0, *ends], ends, strict=False)
    ]
    _check(all(each.targets == 2 for each in loaded), "an observer has other targets")
    return [loaded[leaf * features : (leaf + 1) * features] for leaf in range(watching)]


def _doubles(array: Array, shape: tuple[int, ...], what: str) -> Array:
    _check(array.dtype == np.float64 and array.shape == shape, f"{what} have another shape")
    _check(bool(np.isfinite(array).all()), f"{what} are not finite")
    return array


def _check(condition: bool, complaint: str) -> None:
    if not condition:
        raise ValueError(complaint)
