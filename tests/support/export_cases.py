"""What the tests of exports share: trees, rows, and a reference implementation of flat arrays."""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from sapwood import HoeffdingTreeRegressor
from sapwood.export import encode
from sapwood.export.flat import flatten
from sapwood.tree._kernel import TERM_CREDIBLE, TERM_REACH
from sapwood.tree.layout import CATEGORY, LEAF, NUMBER

ROWS = 10_000


class Case(NamedTuple):
    """A tree, and rows that it has not learned."""

    tree: HoeffdingTreeRegressor
    X: dict[str, Any]

    @property
    def matrix(self):
        return encode(self.tree, self.X)

    @property
    def expected(self):
        return self.tree.predict_many(self.X)


def rows_of(kind, count, seed):
    """Columns and y. Numbers are such as a float32 can hold."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(4, count)).astype(np.float32).astype(np.float64)
    y = np.where(x[0] < 0.2, 3.0, -2.0) * x[1] + 4 * np.sin(2 * x[2]) + 0.1 * rng.normal(size=count)
    columns = {f"x{i}": column for i, column in enumerate(x)}
    if kind == "whole numbers":
        x[:] = np.round(8 * x)
    if kind == "missing":
        for column in x[:3]:
            gone = rng.random(count) < 0.15
            column[gone] = np.nan
            y[gone] += 5.0
    if kind == "two categories":
        columns["sex"] = rng.choice(["f", "m"], count)
        y[columns["sex"] == "m"] += 6.0
    if kind == "categories":
        effect = np.random.default_rng(0).normal(size=63) * 4
        codes = rng.integers(0, 63, count)
        columns["city"] = np.array([f"city {code}" for code in codes])
        columns["day"] = rng.choice(["mon", "tue", "wed", "thu", "fri"], count)
        y += effect[codes] + 3.0 * (columns["day"] == "wed")
    if kind == "many categories":  # few at first, so that the tree cuts them by their codes
        effect = np.random.default_rng(0).normal(size=400) * 4
        codes = rng.integers(0, np.where(np.arange(count) < 1500, 40, 400))
        columns["city"] = np.array([f"city {code}" for code in codes])
        y += effect[codes]
    if kind == "drift":
        y += np.cumsum(rng.normal(size=count)) * 0.3
    return columns, y


@cache
def case(kind, leaf="mean", track="auto"):
    """A tree of a kind, and rows to predict."""
    arguments = {"leaf": leaf, "track": track, "grace_period": 40, "delta": 0.5, "tau": 0.5}
    if kind == "one leaf":
        arguments["max_depth"] = 0
    if kind == "deep":
        arguments |= {"grace_period": 10, "delta": 0.9, "tau": 0.9}
    tree = HoeffdingTreeRegressor(**arguments)
    tree.predict_learn_many(*rows_of(kind, 250_000 if kind == "deep" else 30_000, seed=1))
    test, _ = rows_of(kind, ROWS, seed=2)
    rng = np.random.default_rng(3)
    for column in test.values():
        if column.dtype == np.float64:
            column[rng.random(ROWS) < 0.05] = np.nan
            column[rng.random(ROWS) < 0.02] *= 256  # far beyond what was learned
        else:
            column[rng.random(ROWS) < 0.05] = "new"  # a category that was never learned
    return Case(tree, test)


def with_subset(subset):
    """A tree that splits categories at its root by this subset, and rows for it."""
    tree = HoeffdingTreeRegressor(leaf="mean")
    tree.learn_many({"city": ["Oslo", "Rome", "Lima"] * 500}, [2.0, 8.0, 1.0] * 500)
    assert tree._kernel.node_table["kind"][0] == CATEGORY
    tree._kernel.node_table["subset"][0] = subset
    return Case(tree, {"city": ["Oslo", "Rome", "Lima", "Bonn", None]})


def rows_at_thresholds(tree, dtype, before=True):
    """Rows of numbers that lie on a threshold, or next to it: after it, and before it if wanted."""
    flat = flatten(tree)
    splits = np.flatnonzero(flat.kind == NUMBER)
    ways = (np.inf, -np.inf) if before else (np.inf,)
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(1 + len(ways), len(splits), len(flat.names))).astype(dtype)
    for place, node in enumerate(splits):
        threshold = dtype(flat.threshold[node])
        near = [np.nextafter(threshold, dtype(way)) for way in ways]
        rows[:, place, flat.feature[node]] = [threshold, *near]
    return rows.reshape(-1, len(flat.names)).astype(np.float64)


def predict_flat(flat, X):
    """What a tree predicts, from its flat arrays, node by node and row by row."""
    return np.array([_predict_row(flat, row) for row in X])


def leaf_of(flat, row):
    """The node at which a row ends."""
    node = 0
    while flat.kind[node] != LEAF:
        value = row[flat.feature[node]]
        if np.isnan(value):
            left = flat.missing_left[node]
        elif flat.kind[node] == CATEGORY:
            left = int(flat.subset[node]) >> int(value) & 1
        else:
            left = value < flat.threshold[node]
        node = flat.left[node] if left else flat.right[node]
    return node


def _predict_row(flat, row):
    node, models = leaf_of(flat, row), flat.models
    if models is None:
        return flat.values[node]
    leaf = np.count_nonzero(flat.kind[:node] == LEAF)
    x = [
        models.levels[feature, int(value)]
        if flat.labels[feature] and not np.isnan(value)
        else value
        for feature, value in enumerate(row)
    ]
    with np.errstate(over="ignore", invalid="ignore"):
        z = (np.array(x) - models.centres[leaf]) * models.scales[leaf]
        held = np.clip(np.array(x), models.least, models.greatest)
        held = (held - models.centres[leaf]) * models.scales[leaf]
    z = np.clip(np.where(np.abs(z) <= TERM_CREDIBLE, held, 0.0), -TERM_REACH, TERM_REACH)
    experts = models.intercepts[leaf] + models.coefficients[leaf] @ z
    held = np.clip(experts, models.lowest[leaf], models.highest[leaf])
    prediction = models.base[leaf] + models.shares[leaf] @ held
    return prediction if flat.tracking is None else flat.tracking.corrected(prediction)
