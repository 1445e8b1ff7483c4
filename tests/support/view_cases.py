"""What the tests of views share: trees drawn by hand and by Hypothesis."""

import numpy as np
from hypothesis import strategies as st

from sapwood.inspect.view import (
    PICTURE_RECORD,
    TreePicture,
)

LEAF, NUMBER, CATEGORY = 0, 1, 2


NAMES = ["temp", "city", "wind"]


CITIES = ["Oslo", "Bonn", "Rome", "Lima", "Bern", "Kyiv"]


def leaf(mean=0.0, weight=1.0, model="mean", watching=True):
    return {"mean": mean, "weight": weight, "model": model, "watching": watching}


def split(left, right, feature=0, threshold=0.0, **others):
    kind = CATEGORY if "subset" in others else NUMBER
    fields = {"kind": kind, "feature": feature, "threshold": threshold, **others}
    return {**fields, "children": (left, right)}


def picture(root, names=NAMES, categories=((), CITIES, ())):
    """Number the nodes level by level, as a tree that grows does."""
    rows = [{**root, "parent": -1, "depth": 0}]
    for place, row in enumerate(rows):
        if "children" in row:
            row["child"] = len(rows)
            for child in row.pop("children"):
                rows.append({**child, "parent": place, "depth": row["depth"] + 1})
        else:
            row["child"] = place * 7 + 5  # of a leaf this is something else, never to be followed
    nodes = np.zeros(len(rows), PICTURE_RECORD)
    for place, row in enumerate(rows):
        for field, value in row.items():
            nodes[place][field] = value
    return TreePicture(nodes, list(names), [list(labels) for labels in categories])


def chain(depth, leaf_on_the_left=True):
    """A tree that splits one side again and again."""
    nodes = np.zeros(2 * depth + 1, PICTURE_RECORD)
    inner = np.arange(depth) * 2 + (np.arange(depth) > 0) * (0 if leaf_on_the_left else -1)
    nodes["kind"][inner] = NUMBER
    nodes["parent"][0] = -1
    for level, node in enumerate(inner.tolist()):
        first = 2 * level + 1
        nodes["child"][node] = first
        nodes["parent"][first : first + 2] = node
        nodes["depth"][first : first + 2] = level + 1
    nodes["weight"], nodes["mean"], nodes["gain"] = 1, np.arange(len(nodes)), 1
    return TreePicture(nodes, ["x"], [[]])


@st.composite
def trees(draw, max_splits=25):
    """Trees of any shape, with odd names and numbers."""
    names = draw(st.lists(st.text(max_size=30), min_size=1, max_size=4, unique=True))
    labels = st.lists(st.text(max_size=12), max_size=64)
    categories = [draw(st.just([]) | labels) for _ in names]
    nodes = np.zeros(2 * draw(st.integers(0, max_splits)) + 1, PICTURE_RECORD)
    leaves = [0]
    nodes["parent"][0] = -1
    for child in range(1, len(nodes), 2):
        node = leaves.pop(draw(st.integers(0, len(leaves) - 1)))
        feature = draw(st.integers(0, len(names) - 1))
        nodes[node]["kind"] = CATEGORY if categories[feature] else NUMBER
        nodes[node]["feature"], nodes[node]["child"] = feature, child
        nodes[node]["threshold"] = draw(st.floats(allow_nan=False))
        nodes[node]["subset"] = draw(st.integers(0, 2**64 - 1))
        nodes["parent"][child : child + 2] = node
        nodes["depth"][child : child + 2] = nodes[node]["depth"] + 1
        leaves += [child, child + 1]
    seed = np.random.default_rng(draw(st.integers(0, 2**16)))
    scale = draw(st.sampled_from([0.0, 1e-300, 1e-5, 1.0, 1e6, 1e200]))
    for field in ("mean", "deviation", "gain"):
        nodes[field] = seed.normal(size=len(nodes)) * scale
    nodes["gain"] = abs(nodes["gain"])
    nodes["weight"] = seed.integers(0, 3, len(nodes)) * 10.0 ** seed.integers(0, 9, len(nodes))
    nodes["missing_left"] = seed.integers(0, 2, len(nodes))
    nodes["watching"] = seed.integers(0, 2, len(nodes))
    nodes["model"] = "linear"
    return TreePicture(nodes, names, categories)


SMALL = picture(
    split(
        leaf(3.25, 120, "linear"),
        split(
            leaf(8, 60),
            leaf(10.5, 20, watching=False),
            feature=1,
            subset=0b101,
            missing_left=1,
            weight=40,
            mean=8.5,
            deviation=1.5,
            gain=75,
        ),
        threshold=12.5,
        weight=100,
        mean=5,
        deviation=3,
        gain=225,
    )
)


EMPTY = picture(leaf(0, 0))
