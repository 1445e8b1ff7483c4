"""What the tests of reachable states share: rows of all kinds, ways to come back, and checks.

A batch is drawn as a description of its columns; the numbers themselves come from a seed, so that
an example of hundreds of rows is a small one.
"""

import copy
import pickle
import tempfile
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

import sapwood
from sapwood.tree import tree_state

NUMBERS = {
    "normal": lambda rng, count: rng.normal(size=count),
    "rounded": lambda rng, count: np.round(rng.normal(size=count)),
    "two values": lambda rng, count: rng.integers(0, 2, count).astype(float),
    "constant": lambda rng, count: np.full(count, np.round(rng.normal(), 1)),
    "ascending": lambda rng, count: rng.normal() + np.arange(count) / 7,
    "elsewhere": lambda rng, count: 1e6 + rng.normal(size=count),
    "outliers": lambda rng, count: (
        rng.normal(size=count) * np.where(rng.random(count) < 0.9, 1, 1e4)
    ),
    "huge": lambda rng, count: rng.uniform(-1.7, 1.7, count) * 1e308,
    "small": lambda rng, count: rng.normal(size=count) * 1e-300,
    "subnormal": lambda rng, count: rng.integers(-9, 9, count) * 5e-324,
    "all scales": lambda rng, count: rng.normal(size=count) * 10.0 ** rng.uniform(-300, 300, count),
}
LABELS = {
    "few": lambda rng, count: [f"label {code}" for code in rng.integers(0, 3, count)],
    "dozens": lambda rng, count: [f"label {code}" for code in rng.integers(0, 40, count)],
    "many": lambda rng, count: [f"label {code}" for code in rng.integers(0, 10**6, count)],
    "long": lambda rng, count: [f"{code}" * 700 for code in rng.integers(0, 30, count)],
}
WEIGHTS = {
    "ones": lambda rng, count: np.ones(count),
    "eighths": lambda rng, count: rng.integers(1, 40, count) / 8,
    "wild": lambda rng, count: 10.0 ** rng.uniform(-6, 3, count),
    "heavy": lambda rng, count: 10.0 ** rng.uniform(4, 8, count),
    "light": lambda rng, count: 10.0 ** rng.uniform(-300, -290, count),
    "subnormal": lambda rng, count: rng.integers(1, 9, count) * 5e-324,
    "vast": lambda rng, count: 10.0 ** rng.uniform(30, 46, count),
}
# Each makes y from noise and from the signal in the columns.
TARGETS = {
    "ordinary": lambda rng, signal: signal + 0.1 * rng.normal(size=len(signal)),
    "exact": lambda rng, signal: signal,
    "noise": lambda rng, signal: rng.normal(size=len(signal)),
    "constant": lambda rng, signal: np.full(len(signal), 3.0),
    "zero": lambda rng, signal: np.zeros(len(signal)),
    "offset": lambda rng, signal: 1e9 + signal,
    "large": lambda rng, signal: 1e90 * signal,
    "largest": lambda rng, signal: 1e100 * np.sign(rng.normal(size=len(signal))),
    "beyond": lambda rng, signal: 1e170 * signal,
    "small": lambda rng, signal: 1e-200 * signal,
    "subnormal": lambda rng, signal: 5e-324 * np.round(signal),
    "one jump": lambda rng, signal: (
        signal + np.where(np.arange(len(signal)) == len(signal) // 2, 1e99, 0)
    ),
}
# The names of numbers, of categories, and of features that may become either.
NUMBER_NAMES, LABEL_NAMES, OPEN_NAMES = ("a", "b", "c", "d", 7), ("k", "l"), ("u", "v")
HOLES = (0.0, 0.0, 0.3, 1.0)


class Batch(NamedTuple):
    """Rows as columns by name, their y and their weights."""

    columns: dict[Any, list[Any]]
    y: np.ndarray
    w: np.ndarray

    def rows(self):
        """Rows as triples of what `learn_one` takes."""
        for place, (y, w) in enumerate(zip(self.y.tolist(), self.w.tolist(), strict=True)):
            yield {name: values[place] for name, values in self.columns.items()}, y, w


ordinary = st.sampled_from(["normal", "rounded", "normal", "two values"])
labels = st.sampled_from(sorted(LABELS))
numbers = st.one_of(ordinary, st.sampled_from(sorted(NUMBERS)))


def _style(name):
    if name in NUMBER_NAMES:
        return numbers
    return labels if name in LABEL_NAMES else st.one_of(numbers, labels)


@st.composite
def batches(draw, most=80, names=(*NUMBER_NAMES, *LABEL_NAMES, *OPEN_NAMES)):
    """Rows with any of the features: numbers of all sizes, labels, and holes."""
    count = draw(st.integers(1, most))
    chosen = draw(st.lists(st.sampled_from(names), unique=True, max_size=6))
    styles = {name: draw(_style(name)) for name in chosen}
    holes = {name: draw(st.sampled_from(HOLES)) for name in chosen}
    target = draw(st.one_of(st.just("ordinary"), st.sampled_from(sorted(TARGETS))))
    weight = draw(st.one_of(st.just("ones"), st.sampled_from(sorted(WEIGHTS))))
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    signal = np.zeros(count)
    columns = {}
    for name, style in styles.items():
        if style in NUMBERS:
            values = NUMBERS[style](rng, count)
            near = np.clip(values, -9, 9)
            signal += np.where(values < 0, -2.0, 3.0) + np.where(values > 0, near, 0.0)
            columns[name] = values.tolist()
        else:
            columns[name] = LABELS[style](rng, count)
            signal += [5.0 * (len(label) % 3) + ord(label[-1]) % 7 for label in columns[name]]
        for row in np.flatnonzero(rng.random(count) < holes[name]):
            columns[name][row] = None if row % 2 else np.nan
    return Batch(columns, TARGETS[target](rng, signal), WEIGHTS[weight](rng, count))


def by_file(tree):
    """What comes back from a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "my.sapwood"
        tree.save(path)
        return sapwood.load(path)


def by_bytes(model):
    """What comes back from bytes."""
    return type(model).from_bytes(model.to_bytes())


def by_pickle(model):
    """What comes back from a pickle."""
    return pickle.loads(pickle.dumps(model))


COPIES = (by_bytes, by_pickle, copy.copy, copy.deepcopy, lambda model: model.copy())


def outcome(work, *arguments):
    """What a call returned, as bytes where it is numbers; or the error and its words."""
    try:
        found = work(*arguments)
    except (ValueError, OverflowError) as error:
        return type(error), str(error)
    if isinstance(found, dict):
        return {name: np.asarray(values, dtype=float).tobytes() for name, values in found.items()}
    return None if found is None else np.asarray(found, dtype=float).tobytes()


ENDLESS = ("leaves.due", "leaves.review")  # which may be never
VALUES = ("facts.last", "samples")  # of rows, which may be missing


def infinite_or_nan(tree):
    """The names of the tables of a tree in which there is a number that is not finite."""
    _, arrays = tree_state.state_of(tree)
    fields = {}
    for table, array in arrays.items():
        if array.dtype.names is None:
            fields[table] = array
        else:
            fields |= {f"{table}.{name}": array[name] for name in array.dtype.names}
    for name in ENDLESS:
        fields.pop(name, None)
    own = [each for each in tree._kernel.observers[: tree.n_leaves] if each is not None]
    for number, observer in enumerate(chain.from_iterable(own)):
        fields[f"observer {number}"] = observer._elements()[1]
    fields |= {name: np.nan_to_num(fields[name], posinf=np.inf, neginf=-np.inf) for name in VALUES}
    return [name for name, array in fields.items() if not np.isfinite(array).all()]
