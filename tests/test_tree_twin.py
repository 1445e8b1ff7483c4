"""The tree takes the decisions of its plain twin: the same splits, and the same predictions.

The two add the same numbers in another order, and the twin takes no pains with cancellation, so
that the last bits differ. Nothing makes those differences grow: they stay near 1e-13 of the spread
of y, and 1e-9 is what is asked for.
"""

import itertools
import math
from copy import deepcopy
from functools import cache, partial

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

import naive
from naive_tree import (
    MEASURES,
    Categories,
    Cut,
    Moments,
    NaiveTree,
    Slots,
    Sums,
    merit_of,
    scale_of,
)
from sapwood import EBSTObserver, HoeffdingTreeRegressor, QuantizerObserver, TEBSTObserver
from sapwood.tree import _leaf, build, growth
from sapwood.tree.tables import CATEGORY, LEAF

TOLERANCE = 1e-9  # of predictions, by the spread of y
NEAR = 1e-9  # merits that are no further apart may be ranked either way

SETTINGS = [  # (leaf, split_on, track)
    ("mean", "target", "auto"),
    ("linear", "target", None),
    ("linear", "residual", "auto"),
    ("linear", "best", None),
    ("adaptive", "target", "auto"),
    ("adaptive", "residual", None),
    ("adaptive", "best", "auto"),
]


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


def many_labels(rng, rows=900):
    """More labels than there are codes; the later ones are rare at first."""
    label = np.minimum(rng.geometric(0.03, rows) + np.arange(rows) // 40, 90)
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
        # That x3 is missing says something.
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
    """Values far out, so that grids are laid anew; one moves on all the time."""
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


def made(slots=None, observer=None, watch_number=None, twin=NaiveTree, **parameters):
    """A tree and its twin."""
    if slots is not None:
        observer = QuantizerObserver(slots=slots)
        parameters_of_twin = {**parameters, "slots": slots}
    else:
        parameters_of_twin = {**parameters, "watch_number": watch_number}
    return HoeffdingTreeRegressor(observer=observer, **parameters), twin(**parameters_of_twin)


def learned(stream, tree, twin):
    """Let both learn, and compare what they predict before each row, and when they split."""
    spread = np.std([y for _, y, _ in stream])
    for number, (x, y, w) in enumerate(stream):
        expected = twin.predict(x)
        assert abs(tree.predict_one(x) - expected) <= TOLERANCE * spread, number
        twin.learn(x, y, w)
        tree.learn_one(x, y, w)
        assert tree.n_leaves == len(twin.leaves), number
    return tree, twin


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


def same_splits(tree, twin):
    assert len(splits_of(tree)) == len(twin.splits)
    for node, expected in zip(splits_of(tree), twin.splits, strict=True):
        assert cut_of_node(tree, node) == cut_of_twin(expected)
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
    name, is_category = tree.features[node["feature"]], node["kind"] == CATEGORY
    return name, bool(node["missing_left"]), codes if is_category else None


def cut_of_twin(node):
    codes = [node.codes.get(code, node.missing_left) for code in range(64)]
    return node.cut.feature, node.missing_left, codes if node.threshold is None else None


def pairs(tree, twin):
    """The leaves of both: numbers of leaf records, and nodes."""
    nodes, waiting = tree._kernel.node_table, [(0, twin.root)]
    while waiting:
        at, node = waiting.pop()
        if node.children:
            waiting += [(nodes[at]["child"] + side, node.children[side]) for side in (0, 1)]
        else:
            yield int(nodes[at]["child"]), node


def same_leaves(tree, twin):
    """Compare all that leaves know."""
    for number, leaf in pairs(tree, twin):
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
    page, models = kernel.model_pages[number], leaf.models
    centres, scales, covariance, terms = kernel.page_parts()
    known = len(models.P)
    betas = page[: 4 * terms].reshape(terms, 4)[:known].T.copy()
    betas[:, 0] += kernel.leaf_table[number]["origin"]
    close(betas, models.betas)
    for place, (watch, scale) in enumerate(zip(leaf.watches.values(), models.scales, strict=True)):
        first = 0.0 if isinstance(watch, Slots) else kernel.first  # y of categories are from there
        expected = [scale[0] - first, 1 / scale[1]] if scale else [0.0, 0.0]
        close(page[[centres + place, scales + place]], expected)
    P = np.array(models.P)
    if terms > 40:
        close(page[covariance : covariance + known], P.diagonal())
    else:
        close(page[covariance:].reshape(terms, terms)[:known, :known], P)


def same_watch(kernel, number, place, watch):
    page, start, end = kernel.watch_pages[number], *map(kernel.slot_start, (place, place + 1))
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
    tree, twin = learned(stream, *made(**parameters))
    same_splits(tree, twin)
    if "observer" not in parameters:
        same_leaves(tree, twin)
    return tree, twin


# -- the same splits, and the same predictions ----------------------------------------------------


@pytest.mark.parametrize(("leaf", "split_on", "track"), SETTINGS)
@pytest.mark.parametrize("name", STREAMS)
def test_streams(name, leaf, split_on, track):
    tau = 0.2 if name == "ties" else 0.1  # of two equal columns none leads
    parameters = {"leaf": leaf, "split_on": split_on, "track": track, "tau": tau}
    _, twin = same(stream_of(name), grace_period=40, **parameters)
    # Where only scales change, a line leaves no residual to split on.
    assert len(twin.splits) >= 2 or (name, split_on) == ("changing_scales", "residual")


@pytest.mark.parametrize("leaf", ["mean", "linear", "adaptive"])
@pytest.mark.parametrize("split_on", ["target", "residual", "best"])
@pytest.mark.parametrize("track", ["auto", None])
def test_all_settings(leaf, split_on, track):
    stream = drift(np.random.default_rng(9), 500)
    parameters = {"leaf": leaf, "split_on": split_on, "track": track}
    _, twin = same(stream, grace_period=30, tau=0.2, **parameters)
    assert len(twin.splits) >= 3
    assert min(twin.tracks, key=lambda track: track.error).rate > 0.0


@pytest.mark.parametrize(
    "parameters",
    [
        {"slots": 8},
        {"slots": 17, "delta": 0.05},
        {"slots": 100, "grace_period": 55.5},
        {"min_share": 0.3},
        {"min_share": 1e-6, "delta": 1e-7},
        {"max_depth": 0},
        {"max_depth": 2, "tau": 0.5},
    ],
    ids=str,
)
def test_parameters(parameters):
    same(stream_of("missing"), **{"grace_period": 35, **parameters})


def test_scales_of_leaves_with_many_rows_are_looked_at_again():
    rng = np.random.default_rng(3)
    stream = [
        ({**x, "side": side}, y + 20 * (side < 0.5), w)
        for (x, y, w), side in zip(changing_scales(rng, 2500), rng.random(2500), strict=True)
    ]
    _, twin = same(stream, grace_period=70, max_depth=1, split_on="target")
    left, right = twin.root.children
    assert left.models.scales != right.models.scales


@pytest.mark.parametrize("max_depth", [0, 100])
def test_many_features(max_depth):
    stream = wide(np.random.default_rng(0))
    tree, twin = same(stream, grace_period=50, max_depth=max_depth, delta=0.1)
    assert bool(twin.splits) == (max_depth > 0)
    assert len(tree._kernel.model_pages[0]) < 42 * 42


@pytest.mark.parametrize("leaf", ["linear", "adaptive"])
def test_a_leaf_whose_errors_became_nothing_watches_anew(leaf):
    rng = np.random.default_rng(4)
    x = rng.random(2100)
    y = np.where(np.arange(2100) == 20, 1e6, x + 0.01 * rng.normal(size=2100))
    _, twin = same(rows_of({"x": x}, y), leaf=leaf, max_depth=0)
    assert twin.root.rows == 2100 > twin.root.y.weight


class Observed(Slots):
    """A number that an observer watches: a twin of tests/naive.py, made for a deviation."""

    def __init__(self, make, deviation=0.0):
        Categories.__init__(self)
        self.make, self.deviation, self.rows = make, deviation, []

    def add(self, x, *row):
        if x is None:
            self.missing.add(*row)
        else:
            self.rows.append((x, *row))

    def twin(self):
        x, w, target, residual = zip(*self.rows, strict=True) if self.rows else [()] * 4
        return self.make(self.deviation)(x, np.array([target, residual]).T, w)

    def prototypes(self):
        """Mean x and sums of each element, in ascending order."""
        keys = self.twin().row_keys
        for key in sorted(set(keys)):
            rows = [row for row, row_key in zip(self.rows, keys, strict=True) if row_key == key]
            sums = Sums()
            for row in rows:
                sums.add(*row[1:])
            yield Moments(row[:2] for row in rows).mean, sums

    def elements(self, _measure=None):
        """Places are from 0 to 1."""
        found = list(self.prototypes())
        low, high = (found[0][0], found[-1][0]) if found else (0.0, 0.0)
        return [((x - low) / (high - low) if high > low else 0.0, sums) for x, sums in found]

    def threshold(self, after):
        twin = self.twin()
        return twin.threshold(*twin.keys[after : after + 2])

    def scale(self, _levels=None):
        return scale_of([(x, sums.weight) for x, sums in self.prototypes()])

    def review(self):
        pass

    def child(self, _side=None):
        return Observed(self.make, self.scale()[1])


def part_of(deviation, divisor):
    return partial(naive.QuantizerTwin, radius=deviation / divisor if deviation > 0 else 0.01)


@pytest.mark.parametrize(
    ("observer", "make"),
    [
        (QuantizerObserver(radius=0.2), lambda _: partial(naive.QuantizerTwin, radius=0.2)),
        (
            QuantizerObserver(radius=0.2, cut="prototype"),
            lambda _: partial(naive.QuantizerTwin, radius=0.2, cut="prototype"),
        ),
        (QuantizerObserver(radius="std/2"), partial(part_of, divisor=2)),
        (QuantizerObserver(radius="std/3"), partial(part_of, divisor=3)),
        (EBSTObserver(), lambda _: naive.EBSTTwin),
        (TEBSTObserver(digits=1), lambda _: partial(naive.TEBSTTwin, digits=1)),
    ],
    ids=["radius", "prototype", "std/2", "std/3", "ebst", "tebst"],
)
@pytest.mark.parametrize("split_on", ["target", "residual"])
def test_observers(observer, make, split_on):
    rng = np.random.default_rng(5)
    stream = [
        ({**x, "kind": "ab"[x["a"] > 1], "gap": None if rng.random() < 0.2 else x["b"]}, y, w)
        for x, y, w in vee(rng, 300)
    ]
    number = partial(Observed, make)
    parameters = {"observer": observer, "watch_number": number, "split_on": split_on}
    _, twin = same(stream, grace_period=50, **parameters)
    assert len(twin.splits) >= 2


# -- functions of the kernel ----------------------------------------------------------------------


@cache
def both_grown(name):
    return learned(stream_of(name)[:800], *made(grace_period=40))


def grown(name):
    """A tree in the midst of its growth, its twin, and pairs of their leaves that saw rows."""
    tree, twin = deepcopy(both_grown(name))
    found = [(number, leaf) for number, leaf in pairs(tree, twin) if leaf.y.weight >= 20]
    assert len(found) > 1
    return tree, twin, found


kernel_streams = pytest.mark.parametrize("name", ["missing", "weights", "categories"])


def cut_at(leaf, cut):
    """Where a cut of the twin is, for the kernel: slot or place in the order, and subset."""
    watch = leaf.watches[cut.feature]
    elements = watch.elements(cut.measure)
    if isinstance(watch, Slots):
        return elements[cut.after][0], 0
    return cut.after, sum(1 << code for code, _ in elements[: cut.after + 1])


@kernel_streams
def test_best_cuts(name):
    tree, twin, leaves = grown(name)
    for number, leaf in leaves:
        found = _leaf.best_cuts(tree._kernel, number, twin.min_share)
        for measure, (merit, second, *where) in zip(MEASURES["best"], found, strict=True):
            best, other = twin.best_cuts(leaf, measure)
            close([merit, second], [best.merit, other.merit])
            if other.merit < (1 - 1e-9) * best.merit:  # and not a tie that rounding decides
                place = list(leaf.watches).index(best.feature)
                assert where == [place, *cut_at(leaf, best)]


@kernel_streams
def test_sides_and_thresholds_of_all_cuts(name):
    tree, _, leaves = grown(name)
    for number, leaf in leaves:
        for feature, (label, watch) in enumerate(leaf.watches.items()):
            elements = watch.elements("target")
            for after in range(len(elements) - 1):
                cut = Cut(0.0, after, label, "target")
                place, subset = cut_at(leaf, cut)
                sides, seen = _leaf.sides_of(tree._kernel, number, feature, place, subset)
                parts = elements[: after + 1], elements[after + 1 :]
                expected = [*map(Sums.of, parts), watch.missing]
                actual = np.array(sides, dtype=float)
                actual[:, 1] += actual[:, 0] * tree._kernel.leaf_table[number]["origin"]
                close(actual, [(each.weight, each.target, each.residual) for each in expected])
                if isinstance(watch, Slots):
                    threshold = _leaf.threshold_of(tree._kernel, number, feature, place)
                    assert threshold == watch.threshold(after)
                else:
                    assert seen == sum(1 << code for code, _ in elements)


@kernel_streams
def test_deviations_and_review(name):
    tree, twin, leaves = grown(name)
    for number, leaf in leaves:
        for feature, (label, watch) in enumerate(leaf.watches.items()):
            deviation = watch.scale(twin.levels.get(label))[1]
            close(_leaf.deviation_of(tree._kernel, number, feature), deviation)
    for number, leaf in leaves:
        _leaf.review(tree._kernel, number)
        twin.review(leaf)
    same_leaves(tree, twin)


@kernel_streams
@pytest.mark.parametrize("measure", MEASURES["best"])
def test_children(name, measure):
    """Every leaf is split by its best cut, earned or not."""
    tree, twin, leaves = grown(name)
    for number, leaf in leaves:
        cut = twin.best_cuts(leaf, measure)[0]
        if cut.merit == 0.0:
            continue
        feature = list(leaf.watches).index(cut.feature)
        decided = growth.Cut(feature, *cut_at(leaf, cut), cut.merit, measure == "target")
        build.split(tree._kernel, tree._observing, number, decided, twin.grace_period)
        twin.split(leaf, cut)
    same_splits(tree, twin)
    same_leaves(tree, twin)


@pytest.mark.parametrize("left", [9, 10, 11, 29, 30, 31])
def test_the_least_share_of_a_side(left):
    """Ten of forty rows are exactly a quarter."""
    rng = np.random.default_rng(left)
    a = np.arange(40) >= left
    order = rng.permutation(40)
    columns = {"a": a[order].astype(float), "b": [f"l{int(each)}" for each in a[order]]}
    stream = rows_of(columns, (a + 0.1 * rng.normal(size=40))[order])
    tree, twin = learned(stream, *made(max_depth=0, min_share=0.25))
    for measure, cut in zip(MEASURES["best"], _leaf.best_cuts(tree._kernel, 0, 0.25), strict=True):
        close(cut[:2], [each.merit for each in twin.best_cuts(twin.root, measure)], 1.0)


# -- what merits mean -----------------------------------------------------------------------------


def tree_of_one_leaf(stream, **parameters):
    tree, twin = learned(stream, *made(max_depth=0, **parameters))
    return tree._kernel, twin


@pytest.mark.parametrize("seed", range(8))
def test_no_subset_of_categories_is_better_than_the_best_prefix(seed):
    """All subsets are tried, on the rows themselves."""
    rng = np.random.default_rng(seed)
    labels, w = rng.integers(0, 7, 60), rng.integers(1, 9, 60) / 4
    y = rng.normal(size=7)[labels] + rng.normal(size=60)
    stream = rows_of({"label": [f"l{i}" for i in labels]}, y, w)
    kernel, twin = tree_of_one_leaf(stream, min_share=1e-6)
    target, step, _ = _leaf.best_cuts(kernel, 0, 1e-6)
    every = [
        np.isin(labels, subset)
        for size in range(1, 7)
        for subset in itertools.combinations(range(7), size)
    ]
    close(target[0], max(float(naive.vr(y, w, left)) for left in every))
    sums = twin.root.watches["label"].places.items()
    residuals = [
        merit_of([pair for pair in sums if pair[0] in subset], right, "step")
        for size in range(1, 7)
        for subset in itertools.combinations(dict(sums), size)
        if (right := [pair for pair in sums if pair[0] not in subset])
    ]
    close(step[0], max(residuals))


def squares_left(place, residual, w):
    """The weighted squares that a least-squares line leaves."""
    A = np.sqrt(w)[:, None] * np.column_stack([np.ones(len(place)), place])
    b = np.sqrt(w) * residual
    return np.sum((b - A @ np.linalg.lstsq(A, b)[0]) ** 2)


def test_a_line_on_either_side_is_what_least_squares_fits_to_the_rows():
    rng = np.random.default_rng(2)
    place, w = rng.integers(0, 12, 200), rng.integers(1, 9, 200) / 4
    residual = np.abs(place - 4.0) + rng.normal(size=200)
    watch = Slots(12, (1.0, 11.0))
    elements = {slot: Sums() for slot in sorted(set(place.tolist()))}
    for slot, r, weight in zip(place.tolist(), residual, w, strict=True):
        elements[slot].add(weight, 0.0, r)
        watch.add(slot + 0.5, weight, 0.0, r)
    elements = list(elements.items())
    for cut in range(len(elements) - 1):
        left = place <= elements[cut][0]
        parts = [squares_left(place[side], residual[side], w[side]) for side in (left, ~left)]
        gained = squares_left(place, residual, w) - sum(parts)
        merit = merit_of(elements[: cut + 1], elements[cut + 1 :], "line")
        close(merit, gained / w.sum(), np.var(residual))


# -- random streams -------------------------------------------------------------------------------


class NarrowTree(NaiveTree):
    """A twin that knows by how little a decision of it could have been another one."""

    narrowest = math.inf

    def note(self, one, other):
        self.narrowest = min(self.narrowest, abs(one - other) / max(abs(one), abs(other), 1e-300))

    def judge(self, n, left_over, best, second):
        cut, needed = super().judge(n, left_over, best, second)
        self.note(n * best.merit, 15 * left_over)
        self.note(n, needed / 0.8)
        return cut, needed

    def best_cuts(self, leaf, measure):
        merits = sorted((cut.merit for cut in self.cuts(leaf, measure)), reverse=True)
        if len(merits) > 1:
            self.note(*merits[:2])
        return super().best_cuts(leaf, measure)

    def decide(self, leaf):
        left = [
            (leaf.y if measure == "target" else leaf.residual).variance
            - self.best_cuts(leaf, measure)[0].merit
            for measure in self.measures
        ]
        for one, other in itertools.combinations(left, 2):
            self.note(one, other)
        return super().decide(leaf)


NUMBERS = {
    "uniform": lambda rng, rows: rng.random(rows),
    "normal": lambda rng, rows: 1e3 + 20 * rng.normal(size=rows),
    "whole": lambda rng, rows: rng.integers(-3, 6, rows).astype(float),
    "cauchy": lambda rng, rows: rng.standard_cauchy(rows),
    "moving": lambda rng, rows: rng.random(rows) + np.arange(rows) / 50,
    "constant": lambda rng, rows: np.full(rows, 0.1),
}
EFFECTS = {
    "none": np.zeros_like,
    "linear": lambda x: (x - np.median(x)) / (1 + np.ptp(x)),
    "step": lambda x: (x > np.quantile(x, 0.3)).astype(float),
    "bend": lambda x: np.abs(x - np.median(x)) / (1 + np.ptp(x)),
}


@st.composite
def random_streams(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rows = draw(st.integers(200, 400))
    columns, y = {}, draw(st.sampled_from([0.0, 1e3])) + rng.normal(size=rows)
    for place in range(draw(st.integers(1, 4))):
        if draw(st.integers(0, 3)) == 0:
            codes = rng.integers(0, draw(st.integers(2, 9)), rows)
            columns[f"x{place}"] = [f"l{code}" for code in codes]
            y += draw(st.sampled_from([0, 5])) * rng.normal(size=9)[codes]
        else:
            x = NUMBERS[draw(st.sampled_from(sorted(NUMBERS)))](rng, rows)
            columns[f"x{place}"] = x
            effect = EFFECTS[draw(st.sampled_from(sorted(EFFECTS)))]
            y += draw(st.sampled_from([5, 20])) * effect(x)
    if draw(st.booleans()):
        y[rows // 2 :] *= -1
    w = rng.uniform(0.2, 4, rows) if draw(st.booleans()) else np.ones(rows)
    stream = rows_of(columns, y, w)
    gaps = draw(st.sampled_from([0.0, 0.2]))
    return [
        ({name: None if rng.random() < gaps else value for name, value in x.items()}, y, w)
        for x, y, w in stream
    ]


parameters_of_random_trees = st.fixed_dictionaries(
    {
        "grace_period": st.integers(15, 60),
        "delta": st.sampled_from([0.1, 1e-3]),
        "tau": st.sampled_from([0.05, 0.3]),
        "min_share": st.sampled_from([1e-6, 0.02, 0.25]),
        "max_depth": st.sampled_from([2, 100]),
        "leaf": st.sampled_from(["mean", "linear", "adaptive"]),
        "split_on": st.sampled_from(["target", "residual", "best"]),
        "track": st.sampled_from(["auto", None]),
        "slots": st.sampled_from([8, 20, 32]),
    }
)


@settings(max_examples=60)
@given(random_streams(), parameters_of_random_trees)
def test_random_streams(stream, parameters):
    tree, twin = made(twin=NarrowTree, **parameters)
    try:
        learned(stream, tree, twin)
        same_splits(tree, twin)
        same_leaves(tree, twin)
    except AssertionError:
        if twin.narrowest > NEAR:
            raise
        event("a tie")
        for node, expected in zip(splits_of(tree), twin.splits, strict=False):
            close(node["gain"], gain_of(expected))
            if cut_of_node(tree, node) != cut_of_twin(expected):
                break  # another choice that is as good; what follows differs
    event(f"{min(len(twin.splits), 5)} splits")
