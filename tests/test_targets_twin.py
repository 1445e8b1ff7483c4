"""A tree of several targets takes the decisions of its plain twin, and knows what that knows."""

import math

import numpy as np
import pytest

from naive_leaf import Slots
from naive_targets import NaiveTargets
from sapwood import HoeffdingTreeRegressor, QuantizerObserver
from target_cases import NAMES, stream_of
from twin_cases import close, cut_of_node, cut_of_twin, pairs, splits_of

TOLERANCE = 1e-8


def made(names=NAMES, slots=32, **parameters):
    tree = HoeffdingTreeRegressor(observer=QuantizerObserver(slots=slots), **parameters)
    return tree, NaiveTargets(names, slots=slots, **parameters)


def learned(stream, tree, twin):
    """Let both learn, and compare what they predict before each row, and when they split."""
    spread = max(
        np.std([y[name] for _, y, _ in stream if y.get(name) is not None]) for name in NAMES
    )
    for number, (x, y, w) in enumerate(stream):
        expected, said = twin.predict(x), tree.predict_one(x)
        if number == 0:
            assert said == expected == 0.0
        else:
            assert list(said) == list(NAMES)
            for name in NAMES:
                assert abs(said[name] - expected[name]) <= TOLERANCE * spread, (number, name)
        twin.learn(x, y, w)
        tree.learn_one(x, y, w)
        assert tree.n_leaves == len(twin.leaves), number


def same_splits(tree, twin):
    kernel = tree._kernel
    for node, expected in zip(splits_of(tree), twin.splits, strict=True):
        assert cut_of_node(tree, node) == cut_of_twin(expected)
        if expected.threshold is not None:
            assert math.isclose(node["threshold"], expected.threshold, rel_tol=1e-12)
        close(node["gain"], expected.gain)
        at = int(kernel.node_table[node["child"]]["parent"])
        own = kernel.target_node_table.reshape(-1, kernel.targets)[at]
        close(own["gain"].sum() / expected.known_then, expected.gain)
        for record, leaf in zip(own, expected.nodes, strict=True):
            total = leaf.inherited.weight + leaf.y.weight
            mean = leaf.inherited.target + leaf.y.mean * leaf.y.weight
            close(record["weight"], total)
            if total:
                close(record["mean"], mean / total)
            close(record["deviation"], math.sqrt(leaf.y.variance))


def same_leaves(tree, twin):
    kernel = tree._kernel
    for number, leaf in pairs(tree, twin):
        record = kernel.leaf_table[number]
        close([record["weight"], record["rows"]], [leaf.weight, leaf.rows])
        close([record["due"], record["review"]], [leaf.due, leaf.next_review])
        for target, node in enumerate(leaf.nodes):
            own = kernel.target_leaf_table.reshape(-1, kernel.targets)[number, target]
            close([own["weight"], own["mean_weight"]], [node.y.weight, node.mean_weight])
            close(own["origin"] + own["mean"], node.mean)
            close([own["target_m2"], own["residual_m2"]], [node.y.m2, node.residual.m2])
            experts = ["mean", "0", "1", "2", "3"] if kernel.linear else ["mean"]
            for kind, errors in (("error", node.errors), ("said", node.said)):
                if kind == "error" or kernel.tracking:
                    own_errors = [own[f"{kind}_{expert}"] for expert in experts]
                    close(own_errors, errors[: len(experts)])
            if kernel.linear:
                same_model(kernel, number, target, node, own["origin"])
            for place, watch in enumerate(node.watches.values()):
                same_watch(kernel, number, place, target, watch=watch, origin=own["origin"])


def same_model(kernel, number, target, node, origin):
    page, models = kernel.model_page(number), node.models
    start, rest = kernel.model_place(target)
    centres, scales, covariance, terms = kernel.page_parts()
    known = len(models.P)
    betas = page[start : start + 4 * terms].reshape(terms, 4)[:known].T.copy()
    betas[:, 0] += origin
    close(betas, models.betas)
    own = page[rest : rest + kernel.page_size]
    for place, (watch, scale) in enumerate(zip(node.watches.values(), models.scales, strict=True)):
        first = 0.0 if isinstance(watch, Slots) else kernel.target_stream_table[target]["first"]
        expected = [scale[0] - first, 1 / scale[1]] if scale else [0.0, 0.0]
        close(own[[centres + place, scales + place]], expected)
    close(own[covariance:].reshape(terms, terms)[:known, :known], models.P)


def same_watch(kernel, number, place, target, *, watch, origin):
    page, size = kernel.watch_page(number), kernel.slot_doubles
    slots = page[kernel.slot_start(place) : kernel.slot_start(place + 1)].reshape(-1, size)
    gaps = page[kernel.gap_start(place) : kernel.gap_start(place + 1)]
    gaps = gaps.reshape(-1, kernel.targets)[:, target]
    if isinstance(watch, Slots) and watch.width is None:
        return
    found = np.column_stack(
        [slots[:, 0], slots[:, 0] - gaps, slots[:, 1 + 2 * target], slots[:, 2 + 2 * target]]
    )
    found[:, 2] += origin * found[:, 1]
    expected = np.zeros(found.shape)
    for slot, sums in watch.places.items():
        expected[slot] = sums.parts
    expected[-1] = watch.missing.parts
    for column in range(4):
        close(found[:, column], expected[:, column], 1 + np.abs(expected).max())


@pytest.mark.parametrize(
    ("leaf", "split_on", "track"),
    [
        ("mean", "target", "auto"),
        ("linear", "residual", None),
        ("linear", "best", "auto"),
        ("adaptive", "target", None),
        ("adaptive", "best", "auto"),
    ],
)
@pytest.mark.parametrize("kind", ["plain", "gaps", "categories", "weights", "late"])
def test_streams(kind, leaf, split_on, track):
    tree, twin = made(leaf=leaf, split_on=split_on, track=track, grace_period=40, tau=0.15)
    learned(stream_of(kind, 420), tree, twin)
    assert len(twin.splits) >= 2
    same_splits(tree, twin)
    same_leaves(tree, twin)


@pytest.mark.parametrize("kind", ["many", "whole"])
def test_more_categories_than_have_codes_and_cuts_that_are_round(kind):
    tree, twin = made(leaf="adaptive", split_on="best", track="auto", grace_period=40, tau=0.15)
    stream = stream_of(kind, 420)
    learned(stream, tree, twin)
    assert len(twin.splits) >= 2
    same_splits(tree, twin)
    same_leaves(tree, twin)
    if kind == "many":
        assert len({x["k"] for x, _, _ in stream}) > 250
        assert [len(labels) for labels in tree._features.categories] == [0, 0, 0, 0, 63]
        x = {**stream[-1][0], "k": "never seen"}
        assert tree.predict_one(x) == tree.predict_one({**x, "k": "nor this"})
        alone = tree.of_target("b")
        assert alone.predict_one(x) == tree.predict_one(x)["b"]


def test_labels_that_are_late():
    """Batches are predicted, and learned a batch later."""
    stream = stream_of("gaps", 400)
    tree, twin = made(grace_period=40, tau=0.15)
    batches = [stream[start : start + 20] for start in range(0, len(stream), 20)]
    for number, rows in enumerate(batches):
        for x, _, _ in rows if number else ():
            expected, said = twin.predict(x), tree.predict_one(x)
            if number > 1:
                for name in NAMES:
                    assert abs(said[name] - expected[name]) <= 1e-6
        for x, y, w in batches[number - 1] if number else ():
            twin.learn(x, y, w)
            tree.learn_one(x, y, w)
    same_leaves(tree, twin)


def test_a_leaf_whose_errors_became_nothing_in_all_targets_watches_anew():
    rng = np.random.default_rng(4)
    x = rng.random(2100)
    y = np.where(np.arange(2100) == 20, 1e6, x + 0.01 * rng.normal(size=2100))
    stream = [({"x": a}, {"a": b, "b": -b, "c": 2 * b}, 1.0) for a, b in zip(x, y, strict=True)]
    tree, twin = made(leaf="linear", max_depth=0)
    for row in stream:
        twin.learn(*row)
        tree.learn_one(*row)
    assert twin.root.rows == 2100 > twin.root.weight
    same_leaves(tree, twin)
