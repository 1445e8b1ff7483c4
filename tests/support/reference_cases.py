"""Streams, and comparisons of the tree with its reference implementation.

The two add the same numbers in another order, and the reference implementation does not avoid
cancellation, so that the last bits differ. These differences do not grow: they stay near 1e-13 of
the spread of y, and the tests require 1e-9.
"""

import math

import numpy as np

from naive_leaf import Slots
from naive_tree import NaiveTree
from sapwood import HoeffdingTreeRegressor, QuantizerObserver
from sapwood.tree.layout import CATEGORY, LEAF, LISTED

TOLERANCE = 1e-9  # of predictions, by the spread of y


# -- streams --------------------------------------------------------------------------------------


def rows_of(columns, y, w=None):
    """Rows as dicts, from columns by name."""
    names = list(columns)
    values = zip(*(np.asarray(column).tolist() for column in columns.values()), strict=True)
    w = np.ones(len(y)) if w is None else w
    dicts = (dict(zip(names, row, strict=True)) for row in values)
    return [(x, float(each), float(weight)) for x, each, weight in zip(dicts, y, w, strict=True)]


def friedman(rng, rows=900):
    X = rng.random((rows, 6))
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
    y += 10 * X[:, 3] + 5 * X[:, 4] + rng.normal(size=rows)
    return rows_of({f"x{i}": X[:, i] for i in range(6)}, y)


def step(rng, rows=800):
    X = rng.random((rows, 3))
    y = 1000 + np.where(X[:, 1] < 0.37, 5.0, -3.0) + np.where(X[:, 0] < 0.7, 0, 2.5)
    return rows_of({i: X[:, i] for i in range(3)}, y + 0.5 * rng.normal(size=rows))


def vee(rng, rows=800):
    X = rng.normal(size=(rows, 2))
    y = 3 * np.abs(X[:, 0] - 0.3) + np.abs(X[:, 1]) + 0.2 * rng.normal(size=rows)
    return rows_of({"a": X[:, 0], "b": X[:, 1]}, y)


def categories(rng, rows=900):
    """The slope of a number depends on one category, the level on two."""
    colour, town = rng.integers(0, 6, rows), rng.integers(0, 3, rows)
    x = rng.uniform(-1, 1, rows)
    y = np.array([3, -3, 2, 0, -1, 5])[colour] * x + np.array([0, 4, 0, -5, 4, 1])[colour]
    y += 2.0 * (town == colour % 3) + 0.3 * rng.normal(size=rows)
    columns = {"colour": [f"c{i}" for i in colour], "x": x, "town": [f"t{i}" for i in town]}
    return rows_of(columns, y)


def many_labels(rng, rows=1500):
    """More labels than there are codes; the later ones are rare at first, but for one, of which
    more rows come than a level remembers."""
    label = np.minimum(rng.geometric(0.03, rows) + np.arange(rows) // 40, 90)
    label[2 * rows // 3 :][rng.random(rows - 2 * rows // 3) < 0.7] = 90
    x = rng.random(rows)
    y = 3.0 * (label % 3 == 0) + x + 0.3 * rng.normal(size=rows)
    return rows_of({"label": [f"l{i}" for i in label], "x": x}, y)


def missing(rng, rows=900):
    """A fifth of all cells is missing, as None or because the key is; one is never there."""
    stream = []
    for (numbers, y, w), colour in zip(friedman(rng, rows), rng.integers(0, 6, rows), strict=True):
        x = {**numbers, "colour": f"c{colour}", "never": None}
        gone = [name for name in x if rng.random() < 0.2]
        kept = {name: None if name in gone else value for name, value in x.items()}
        if rng.random() < 0.5 and stream:
            kept = {name: value for name, value in kept.items() if value is not None}
        # A missing x3 is informative.
        stream.append((kept, y + 4 * (colour in (1, 4)) + 6 * ("x3" in gone), w))
    return stream


def coming_and_going(rng, rows=900):
    """A number appears late, a number vanishes, and a category is long missing."""
    X = rng.random((rows, 4))
    stream = []
    for row, x in enumerate(X.tolist()):
        cells = {"always": x[0], "kind": None}
        y = 3 * x[0] + 0.2 * rng.normal()
        if row < 500:
            cells["early"], y = x[1], y + 5 * (x[1] < 0.4)
        if row >= 250:
            cells["late"], y = x[2], y + 6 * abs(x[2] - 0.5)
        if row >= 150:
            cells["kind"], y = "abc"[int(3 * x[3])], y + 4 * (0.33 < x[3] < 0.66)
        stream.append((cells, y, 1.0))
    return stream


def weights(rng, rows=900):
    stream = friedman(rng, rows)
    w = rng.choice([0.125, 0.3, 1.0, 2.0, 7.7], rows)
    return [(x, y, float(each)) for (x, y, _), each in zip(stream, w, strict=True)]


def constants(rng, rows=600):
    stream = vee(rng, rows)
    return [({"zero": 0.0, **x, "same": 7.3, "one": "label"}, y, w) for x, y, w in stream]


def ties(rng, rows=900):
    """Small whole numbers and bools, each row three times, and one column twice."""
    a, b = rng.integers(0, 5, rows), rng.integers(0, 2, rows)
    c = rng.integers(-20, 20, rows) / 4
    y = np.round(a * (1 + 2 * b) + 3 * (c > 1.25) + rng.normal(size=rows), 1)
    stream = rows_of({"a": a, "twice": a, "b": b.astype(bool), "c": c}, y)
    return [row for row in stream[: rows // 3] for _ in range(3)]


def heavy_tails(rng, rows=900):
    """Outliers, so that grids are reset; one feature moves on all the time."""
    a, b = rng.standard_cauchy(rows), np.exp(3 * rng.normal(size=rows))
    c = np.arange(rows) / 10 + rng.random(rows)
    y = 3.0 * (a > 0.4) + np.log(b) + np.sin(c / 7) + 0.3 * rng.normal(size=rows)
    return rows_of({"a": a, "b": b, "c": c}, y)


def drift(rng, rows=900):
    """The rule changes half-way, and the errors are correlated in time."""
    stream, disturbance = [], 0.0
    for row, (x, y, w) in enumerate(friedman(rng, rows)):
        disturbance = 0.97 * disturbance + rng.normal()
        stream.append((x, (y if row < rows // 2 else 30 - 2 * y) + disturbance, w))
    return stream


def changing_scales(rng, rows=2100):
    """No reason to split, but numbers that outgrow their scales, little by little or at once."""
    row = np.arange(rows)
    a = rng.normal(size=rows) * np.where(row < 12, 0.1, np.where(row < 40, 0.5, 3.0))
    b = rng.normal(size=rows) + np.where(row < 20, 0.0, 50.0)
    c = rng.normal(size=rows) * np.where(row < 500, 1.0, 6.0)
    y = a + 0.1 * b + 0.5 * c + 2 * rng.normal(size=rows)
    return rows_of({"a": a, "b": b, "c": c}, y)


def product(rng, rows=900):
    """What two numbers do together shows in no residual of one; y has to decide at last."""
    X = rng.random((rows, 3))
    return rows_of(
        dict(zip("abc", X.T, strict=True)), 10 * X[:, 0] * X[:, 1] + rng.normal(size=rows)
    )


def wide(rng, rows=200):
    """So many features, from some row on, that the covariance becomes a diagonal."""
    X = rng.normal(size=(rows, 42))
    y = X[:, 0] + 3 * (X[:, 1] > 0) + 2 * np.abs(X[:, 2]) + 0.3 * rng.normal(size=rows)
    X[60:, 4] *= 4
    stream = rows_of({i: X[:, i] for i in range(42)}, y)
    narrow = [({name: x[name] for name in range(37)}, y, w) for x, y, w in stream[:40]]
    return narrow + stream[40:]


STREAMS = {
    stream.__name__: stream
    for stream in (
        friedman, step, vee, categories, many_labels, missing, coming_and_going, weights,
        constants, ties, heavy_tails, drift, changing_scales, product,
    )
}  # fmt: skip


def stream_of(name):
    return STREAMS[name](np.random.default_rng(sorted(STREAMS).index(name)))


# -- comparisons ----------------------------------------------------------------------------------


def made(slots=None, observer=None, watch_number=None, reference=NaiveTree, **parameters):
    """A tree and its reference implementation."""
    if slots is not None:
        observer = QuantizerObserver(slots=slots)
        reference_parameters = {**parameters, "slots": slots}
    else:
        reference_parameters = {**parameters, "watch_number": watch_number}
    tree = HoeffdingTreeRegressor(observer=observer, **parameters)
    return without_flags(tree), reference(**reference_parameters)


def without_flags(tree):
    """The same tree without flags of missing values: reference trees derive no features."""
    tree._features.flagging = False
    tree._reader.refresh()
    return tree


def learned(stream, tree, reference):
    """Let both learn; compare their predictions before each row, and when they split."""
    spread = np.std([y for _, y, _ in stream])
    for number, (x, y, w) in enumerate(stream):
        expected = reference.predict(x)
        assert abs(tree.predict_one(x) - expected) <= TOLERANCE * spread, number
        reference.learn(x, y, w)
        tree.learn_one(x, y, w)
        assert tree.n_leaves == len(reference.leaves), number
    return tree, reference


def close(actual, expected, scale=None):
    """Compare two arrays, by the largest number of the expected one if no scale is given."""
    actual, expected = np.asarray(actual, dtype=float), np.asarray(expected, dtype=float)
    assert actual.shape == expected.shape
    scale = np.max(np.abs(expected), initial=0.0) if scale is None else scale
    assert np.max(np.abs(actual - expected), initial=0.0) <= 1e-8 * scale + 1e-300


def splits_of(tree):
    """The nodes that are split, in the order in which they were: each gets the next children."""
    nodes = tree._kernel.node_table[: tree._kernel.node_count]
    return sorted(nodes[nodes["kind"] != LEAF], key=lambda node: node["child"])


def same_splits(tree, reference):
    assert len(splits_of(tree)) == len(reference.splits)
    for node, expected in zip(splits_of(tree), reference.splits, strict=True):
        assert cut_of_node(tree, node) == cut_of_reference(expected)
        if expected.threshold is not None:
            assert math.isclose(node["threshold"], expected.threshold, rel_tol=1e-12)
        close(node["gain"], gain_of(expected))
        total = expected.inherited.weight + expected.y.weight
        mean = expected.inherited.target + expected.y.mean * expected.y.weight
        close([node["weight"], node["mean"]], [total, mean / total])
        close(node["deviation"], math.sqrt(expected.y.variance))


def gain_of(node):
    return node.cut.merit * node.y.weight


def cut_of_node(tree, node):
    """Of a node of the tree: the feature, where missing values go, and what codes do."""
    codes = [bool(int(node["subset"]) >> code & 1) for code in range(64)]
    name, is_category = tree.features[node["feature"]], node["kind"] in (CATEGORY, LISTED)
    return name, bool(node["missing_left"]), codes if is_category else None


def cut_of_reference(node):
    codes = [node.codes.get(code, node.missing_left) for code in range(64)]
    return node.cut.feature, node.missing_left, codes if node.threshold is None else None


def pairs(tree, reference):
    """The leaves of both: numbers of leaf records, and nodes."""
    nodes, waiting = tree._kernel.node_table, [(0, reference.root)]
    while waiting:
        at, node = waiting.pop()
        if node.children:
            waiting += [(nodes[at]["child"] + side, node.children[side]) for side in (0, 1)]
        else:
            yield int(nodes[at]["child"]), node


def same_leaves(tree, reference):
    """Compare all statistics of leaves."""
    for number, leaf in pairs(tree, reference):
        same_record(tree._kernel.leaf_table[number], leaf, tree._kernel.linear)
        if tree._kernel.linear:
            same_model(tree._kernel, number, leaf)
        for place, watch in enumerate(leaf.watches.values()):
            same_watch(tree._kernel, number, place, watch)


def same_record(record, leaf, linear):
    close([record["weight"], record["mean_weight"]], [leaf.y.weight, leaf.mean_weight])
    close([record["due"], record["review"]], [leaf.due, leaf.next_review])
    close(record["origin"] + record["mean"], leaf.mean)
    close(record["target_m2"], leaf.y.m2)
    close(record["residual_m2"], leaf.residual.m2)
    experts = ["mean", "0", "1", "2", "3"] if linear else ["mean"]
    close([record[f"error_{expert}"] for expert in experts], leaf.errors[: len(experts)])


def same_model(kernel, number, leaf):
    page, models = kernel.model_page(number), leaf.models
    centres, scales, covariance, terms = kernel.page_parts()
    known = len(models.P)
    betas = page[: 4 * terms].reshape(terms, 4)[:known].T.copy()
    betas[:, 0] += kernel.leaf_table[number]["origin"]
    close(betas, models.betas)
    for place, scale in enumerate(models.scales):
        expected = [scale[0], 1 / scale[1]] if scale else [0.0, 0.0]
        close(page[[centres + place, scales + place]], expected)
    P = np.array(models.P)
    if terms > 40:
        close(page[covariance : covariance + known], P.diagonal())
    else:
        close(page[covariance:].reshape(terms, terms)[:known, :known], P)


def same_watch(kernel, number, place, watch):
    page, start, end = kernel.watch_page(number), *map(kernel.slot_start, (place, place + 1))
    slots = page[start:end].reshape(-1, 3).copy()
    origin = kernel.leaf_table[number]["origin"]
    slots[:, 1] += slots[:, 0] * origin
    low, width, inverse, kept = page[4 * place : 4 * place + 4]
    if isinstance(watch, Slots):
        if watch.width is None:
            assert inverse == 0.0
            rows = page[start : start + 4 * int(kept)].reshape(-1, 4)
            kept = [(x, sums.weight) for x, sums in watch.kept]
            close(rows[:, [3, 0]], np.reshape(kept, (-1, 2)))
            slots[:-1] = 0.0
        else:
            assert (low, width) == (watch.low, watch.width)
    expected = np.zeros(slots.shape)
    for slot, sums in watch.places.items():
        expected[slot] = sums.weight, sums.target, sums.residual
    expected[-1] = watch.missing.weight, watch.missing.target, watch.missing.residual
    for column in range(3):
        close(slots[:, column], expected[:, column], 1 + np.abs(expected).max())


def same(stream, **parameters):
    tree, reference = learned(stream, *made(**parameters))
    same_splits(tree, reference)
    if "observer" not in parameters:
        same_leaves(tree, reference)
    return tree, reference
