"""What the tests of the tree share: trees of all kinds, streams that make them grow, and checks."""

import math
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from sapwood import EBSTObserver, HoeffdingTreeRegressor, QuantizerObserver, TEBSTObserver
from sapwood.tree import tree_state

OBSERVERS = {
    "auto": QuantizerObserver,
    "auto-8": partial(QuantizerObserver, slots=8),
    "radius": partial(QuantizerObserver, 0.25),
    "prototype": partial(QuantizerObserver, 0.25, cut="prototype"),
    "std/2": partial(QuantizerObserver, "std/2"),
    "ebst": EBSTObserver,
    "tebst": TEBSTObserver,
}
LABELS = ("red", "blue", "green", "", "3")
MARGIN = 0.1  # how far beyond the range of y a leaf may predict, as a share of it


class Stream(NamedTuple):
    """Rows as columns by name, their y and their weights."""

    columns: dict[Any, list[Any]]
    y: np.ndarray
    w: np.ndarray

    def part(self, start, stop=None):
        cut = slice(start, stop)
        columns = {name: values[cut] for name, values in self.columns.items()}
        return Stream(columns, self.y[cut], self.w[cut])

    def parts(self, cuts):
        bounds = [0, *sorted(min(cut, len(self.y)) for cut in cuts), len(self.y)]
        return [self.part(*pair) for pair in pairwise(bounds)]

    def rows(self):
        return [
            dict(zip(self.columns, values, strict=True))
            for values in zip(*self.columns.values(), strict=True)
        ]

    def array(self):
        """The columns as an array of numbers."""
        return np.array([*self.columns.values()], dtype=float).T


@st.composite
def parameters(draw, observers=tuple(OBSERVERS), **fixed):
    """Arguments of a tree that is quick to split."""
    chosen = {
        "grace_period": draw(st.sampled_from([3, 10, 25])),
        "delta": draw(st.sampled_from([0.9, 0.5, 1e-3])),
        "tau": draw(st.sampled_from([0.5, 0.05])),
        "min_share": draw(st.sampled_from([0.02, 0.2])),
        "max_depth": draw(st.sampled_from([None, None, 2])),
        "leaf": draw(st.sampled_from(["adaptive", "linear", "mean"])),
        "split_on": draw(st.sampled_from(["best", "residual", "target"])),
        "track": draw(st.sampled_from(["auto", None])),
        "observer": OBSERVERS[draw(st.sampled_from(observers))](),
    }
    return chosen | fixed


@st.composite
def streams(draw, *, numbers=(0, 4), categories=(0, 2), rows=(0, 150), odd=True, tame=False):
    """Streams with steps, slopes and categories, missing values, and odd but legal ones.

    In tame ones nothing is missing or odd, no two values are equal, and weights are alike, so that
    no two cuts are equally good.
    """
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    count = draw(st.integers(*rows))
    width, labelled = draw(st.integers(*numbers)), draw(st.integers(*categories))
    x = rng.normal(size=(count, width)) * 10.0 ** rng.integers(-2, 3, width)
    rounding = None if tame else draw(st.sampled_from([None, 0, 2]))
    x = x if rounding is None else np.round(x, rounding)
    codes = rng.integers(0, len(LABELS), (count, labelled))
    y = 0.1 * rng.normal(size=count)
    for column in x.T:
        y += np.where(column < 0, -2.0, 3.0) + (column > 0) * np.clip(column, -9, 9)
    for column in codes.T:
        y += np.array([5.0, -5.0, 4.0, -4.0, 0.0])[column]
    y = draw(st.sampled_from([1.0, 1e-3, 1e4])) * y + draw(st.sampled_from([0.0, 0.0, 1e6]))
    columns = {f"x{i}": column.tolist() for i, column in enumerate(x.T)}
    columns |= {f"c{i}": [LABELS[k] for k in column] for i, column in enumerate(codes.T)}
    if not tame:
        for values in columns.values():
            share = draw(st.sampled_from([0.0, 0.1, 1.0]))
            for row in np.flatnonzero(rng.random(count) < share):
                values[row] = (None, math.nan)[row % 2]
    if width and count and odd and not tame:
        changes = st.tuples(st.integers(0, count - 1), st.integers(0, width - 1), odd_values)
        for row, place, value in draw(st.lists(changes, max_size=6)):
            columns[f"x{place}"][row] = value
    weights = draw(st.sampled_from(["ones", "eighths"] if tame else ["ones", "eighths", "wild"]))
    w = np.ones(count)
    if weights == "eighths":
        w = rng.integers(1, 40, count) / 8
    elif weights == "wild":
        w = 10.0 ** rng.uniform(-6, 3, count)
    return Stream(columns, y, w)


odd_values = st.one_of(
    st.sampled_from(
        [0, True, -0.0, 2**70, 1e308, -1e308, 1e-320, 5e-324, 1e9, np.float32(0.1), np.int8(-3)]
    ),
    st.floats(allow_nan=False, allow_infinity=False),
)


def tree_of(stream, **arguments):
    """A tree that has learned a stream in one batch."""
    tree = HoeffdingTreeRegressor(**arguments)
    tree.learn_many(stream.columns, stream.y, stream.w)
    return tree


def learn_rows(tree, stream):
    """Let a tree learn a stream row by row."""
    for x, y, w in zip(stream.rows(), stream.y.tolist(), stream.w.tolist(), strict=True):
        tree.learn_one(x, y, w)
    return tree


def friedman(count, seed=0, features=10):
    """Friedman's first problem: rows of U(0, 1), and y with noise of deviation 1."""
    rng = np.random.default_rng(seed)
    x = rng.random((count, features))
    y = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3]
    return x, y + 5 * x[:, 4] + rng.normal(size=count)


def r2(y, predictions):
    """The share of the variance of y that predictions explain."""
    return 1 - np.sum((y - predictions) ** 2) / np.sum((y - y.mean()) ** 2)


NOTES = ("note_sizes", "note_keys", "note_ages", "notes")


def beside_notes(tree):
    """The state of a tree without its pending predictions."""
    header, arrays = tree_state.state_of(tree)
    return header, {name: each.tobytes() for name, each in arrays.items() if name not in NOTES}


@contextmanager
def unchanged(tree):
    """Check that a block, whatever it raises, leaves a tree as it was."""
    before = tree.to_bytes()
    yield
    assert tree.to_bytes() == before
