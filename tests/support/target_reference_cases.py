"""Comparisons of a multi-target tree with its reference implementation."""

import math

import numpy as np

from naive_leaf import PARTS, Slots
from naive_targets import NaiveTargets
from reference_cases import close, cut_of_node, cut_of_reference, pairs, splits_of, without_flags
from sapwood import HoeffdingTreeRegressor, QuantizerObserver
from target_cases import NAMES

TOLERANCE = 1e-8


def made(names=NAMES, slots=32, **parameters):
    tree = HoeffdingTreeRegressor(observer=QuantizerObserver(slots=slots), **parameters)
    tree = without_flags(tree)
    return tree, NaiveTargets(names, slots=slots, **parameters)


def learned(stream, tree, reference):
    """Let both learn; compare their predictions before each row, and when they split."""
    spread = max(
        np.std([y[name] for _, y, _ in stream if y.get(name) is not None]) for name in NAMES
    )
    for number, (x, y, w) in enumerate(stream):
        expected, predicted = reference.predict(x), tree.predict_one(x)
        if number == 0:
            assert predicted == expected == 0.0
        else:
            assert list(predicted) == list(NAMES)
            for name in NAMES:
                assert abs(predicted[name] - expected[name]) <= TOLERANCE * spread, (number, name)
        reference.learn(x, y, w)
        tree.learn_one(x, y, w)
        assert tree.n_leaves == len(reference.leaves), number


def same_splits(tree, reference):
    kernel = tree._kernel
    for node, expected in zip(splits_of(tree), reference.splits, strict=True):
        assert cut_of_node(tree, node) == cut_of_reference(expected)
        if expected.threshold is not None:
            assert math.isclose(node["threshold"], expected.threshold, rel_tol=1e-12)
        close(node["gain"], expected.gain)
        at = int(kernel.node_table[node["child"]]["parent"])
        own = kernel.target_records.nodes.reshape(-1, kernel.targets)[at]
        if not expected.was_on_trial:  # whose gain is that of the rows of the trial
            close(own["gain"].sum() / expected.known_then, expected.gain)
        for record, leaf in zip(own, expected.nodes, strict=True):
            total = leaf.inherited.weight + leaf.y.weight
            mean = leaf.inherited.target + leaf.y.mean * leaf.y.weight
            close(record["weight"], total)
            if total:
                close(record["mean"], mean / total)
            close(record["deviation"], math.sqrt(leaf.y.variance))


def same_leaves(tree, reference):
    kernel = tree._kernel
    for number, leaf in pairs(tree, reference):
        record = kernel.leaf_table[number]
        close([record["weight"], record["rows"]], [leaf.weight, leaf.rows])
        close([record["due"], record["review"]], [leaf.due, leaf.next_review])
        for target, node in enumerate(leaf.nodes):
            own = kernel.target_records.leaves.reshape(-1, kernel.targets)[number, target]
            close([own["weight"], own["mean_weight"]], [node.y.weight, node.mean_weight])
            close(own["origin"] + own["mean"], node.mean)
            close([own["target_m2"], own["residual_m2"]], [node.y.m2, node.residual.m2])
            experts = ["mean", "0", "1", "2", "3"] if kernel.linear else ["mean"]
            for kind, errors in (("error", node.errors), ("said", node.issued_errors)):
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
    for place, scale in enumerate(models.scales):
        expected = [scale[0], 1 / scale[1]] if scale else [0.0, 0.0]
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
        expected[slot] = PARTS(sums)
    expected[-1] = PARTS(watch.missing)
    for column in range(4):
        close(found[:, column], expected[:, column], 1 + np.abs(expected).max())
