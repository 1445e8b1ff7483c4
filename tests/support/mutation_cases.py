"""Model files that were changed on purpose, with the checksum set right, and what they may do.

Each file is one of a few real trees with one to three changes: of single numbers, of whole parts,
of parts that have to fit together, of the header, of the arrays' types and shapes, of observers
within. The file of a number is the same in every run, so that it can be tried alone::

    python tests/support/mutation_cases.py SEED FIRST LAST
"""

import copy
import faulthandler
import sys
from functools import cache, partial

import numpy as np

from sapwood import (
    EBSTObserver,
    HoeffdingTreeRegressor,
    ModelFileError,
    QuantizerObserver,
    TEBSTObserver,
)
from sapwood.observers import packing
from sapwood.tree import tree_state
from sapwood.tree._column_tables import GRID_DOUBLES, SLOT_DOUBLES
from state_cases import infinite_or_nan
from tree_file_cases import COLOURS, grown, of_targets, packed, stream, with_idle_leaves


def of_one_number(rows, **parameters):
    columns, y = stream(rows)
    tree = HoeffdingTreeRegressor(grace_period=40, **parameters)
    tree.learn_many({"x0": columns["x0"]}, y)
    return tree


def of_many_categories(**parameters):
    """A tree of a feature with more categories than have places of their own."""
    rng = np.random.default_rng(2)
    codes, x = rng.integers(0, 150, 1_500), np.round(rng.normal(size=1_500), 2)
    tree = HoeffdingTreeRegressor(grace_period=40, **parameters)
    tree.predict_learn_many({"x0": x, "shop": [f"shop {code}" for code in codes]}, x + codes % 7)
    return tree


def on_trial():
    """A tree of which no single cut helps, in the midst of a split on trial."""
    rng = np.random.default_rng(3)
    x = np.round(rng.normal(size=(8_000, 2)), 3)
    tree = HoeffdingTreeRegressor(observer=QuantizerObserver(slots=16))
    for start in range(0, len(x), 100):
        rows = x[start : start + 100]
        y = np.sign(rows[:, 0] * rows[:, 1]) + 0.1 * rng.normal(size=100)
        tree.predict_learn_many({"x0": rows[:, 0], "x1": rows[:, 1]}, y)
        if tree_state.state_of(tree)[1]["trial"]["leaf"][0] >= 0:
            return tree
    raise AssertionError("no split is on trial")


def of_other_units(rows):
    """A tree of a stream in which first a feature and then y has changed its units."""
    tree = HoeffdingTreeRegressor(observer=QuantizerObserver(slots=16))
    for part, (x_units, y_units) in enumerate([(1, 1), (1_000, 1), (1_000, 1_000)]):
        columns, y = stream(rows, seed=part)
        columns["x0"] = columns["x0"] * x_units
        tree.predict_learn_many(columns, y * y_units)
    return tree


TREES = {
    "default": grown,
    "grown": partial(grown, rows=4_000, observer=QuantizerObserver(slots=16)),
    "young": partial(grown, rows=20),
    "very young": partial(grown, rows=3),
    "one row": partial(grown, rows=1),
    "no rows": partial(grown, rows=0),
    "one number": partial(of_one_number, 300),
    "one number, young": partial(of_one_number, 30),
    "idle": partial(with_idle_leaves, observer=QuantizerObserver(slots=16)),
    "limited": partial(grown, rows=2_000, max_bytes=80_000, observer=QuantizerObserver(slots=16)),
    "mean": partial(grown, observer=QuantizerObserver(slots=16), leaf="mean"),
    "linear": partial(grown, leaf="linear", split_on="residual", track=None),
    "many numbers": partial(grown, numbers=45, observer=QuantizerObserver(slots=8)),
    "radius": partial(grown, observer=QuantizerObserver(0.25)),
    "std/2": partial(grown, observer=QuantizerObserver("std/2"), leaf="linear"),
    "ebst": partial(grown, rows=300, observer=EBSTObserver()),
    "tebst": partial(grown, observer=TEBSTObserver(1), max_bytes=400_000),
    "no leaf watches": partial(of_one_number, 500, observer=EBSTObserver(), max_bytes=22_328),
    "many categories": of_many_categories,
    "on trial": on_trial,
    "other units": partial(of_other_units, 2_000),
    "units in doubt": partial(of_other_units, 40),
    "targets": partial(of_targets, observer=QuantizerObserver(slots=16)),
    "targets, numbers": partial(of_targets, categories=False),
    "targets, young": partial(of_targets, rows=20),
    "targets, ebst": partial(of_targets, rows=300, observer=EBSTObserver()),
    "targets, std/2": partial(of_targets, observer=QuantizerObserver("std/2")),
}
NUMBERS = (
    *(0.0, -0.0, 0.5, 1.0, -1.0, 2.0, 64.0, 1e9, 1e16, 2.0**53),
    *(5e-324, 1e-308, 1e-300, 1e-200, 1e-150, 1e-100, 1e-50, 1e-30, 1e-12),
    *(1e29, 1e30, 1e49, 1e50, 1e99, 4e100, 1e102, 1e149, 1e150, 1e205, 1e254, 1e299, 1e300, 1e308),
    *(-1e-308, -1e-30, -1e30, -1e50, -1e100, -1e150, -1e300, -1e308, np.nan, np.inf, -np.inf),
)
INTEGERS = (-1, 0, 1, 2, 3, 63, 64, 10**6, 2**31 - 1, -(2**31))
WORDS = (0, 1, 2**63, 2**64 - 1)
FACTORS = (-1.0, 0.0, 0.5, 2.0, 1e-300, 1e-100, 1e-20, 1e-6, 1e6, 1e20, 1e100, 1e150)
JSON = (None, True, False, -1, 0, 1, 2, 0.5, 1e-308, 1e308, 10**30, "", "auto", "mean", [], [1], {})


def pick(rng, values):
    return values[rng.integers(len(values))]


def number(rng, old):
    """Another number than the old one, at a bound or near to it."""
    if rng.random() < 0.5:
        return pick(rng, NUMBERS)
    near = (np.nextafter(old, np.inf), np.nextafter(old, -np.inf), old + 1, old - 1, -old)
    return pick(rng, (*near, *(old * factor for factor in FACTORS)))


# Changes of arrays, each in place


def floats(arrays):
    return [name for name, each in arrays.items() if each.dtype == np.float64 and each.size]


def change_numbers(rng, header, arrays):
    flat = arrays[pick(rng, floats(arrays))].reshape(-1)
    for _ in range(pick(rng, (1, 1, 1, 2, 5))):
        place = rng.integers(len(flat))
        flat[place] = number(rng, flat[place])


def change_records(rng, header, arrays):
    tables = [name for name, each in arrays.items() if each.dtype.names and len(each)]
    table = arrays[pick(rng, ("nodes", "leaves", *tables))]
    field = pick(rng, table.dtype.names)
    column, place = table[field], rng.integers(len(table))
    kind = column.dtype.kind
    if kind == "f":
        column[place] = number(rng, column[place])
    elif rng.random() < 0.3:
        column[place] = pick(rng, column)
    else:
        column[place] = pick(rng, {"i": INTEGERS, "u": WORDS}[kind])


def change_columns(rng, header, arrays):
    """Change one number of each record."""
    name = pick(rng, ("leaves", "nodes", "models", "watches", "levels", "notes"))
    array = arrays[name]
    if array.dtype.names:
        fields = [field for field in array.dtype.names if array.dtype[field].kind == "f"]
        column = array[pick(rng, fields)]
    elif not array.size:
        return
    else:
        column = array[:, rng.integers(array.shape[1])]
    column[:] = column * pick(rng, FACTORS) if rng.random() < 0.5 else pick(rng, NUMBERS)


def swap(rng, header, arrays):
    array = arrays[pick(rng, [name for name, each in arrays.items() if each.size])]
    flat = array if array.dtype.names or rng.random() < 0.3 else array.reshape(-1)
    one, other = rng.integers(len(flat), size=2)
    flat[[one, other]] = flat[[other, one]]


def flip_bits(rng, header, arrays):
    array = arrays[pick(rng, [name for name, each in arrays.items() if each.size])]
    data = array.reshape(-1).view(np.uint8)
    data[rng.integers(len(data))] ^= 1 << rng.integers(8)


def change_covariance(rng, header, arrays):
    """Change what a leaf knows of its coefficients, so that it stays symmetric."""
    models, features = arrays["models"], len(header["features"]["names"])
    terms = (features + 4) // 4 * 4
    if not models.size:
        return
    page = models[rng.integers(len(models))]
    part = page[4 * terms + 2 * features :][: terms * terms]
    if len(part) < terms * terms:
        part = part[:terms]
        place = rng.integers(terms)
        part[place] = number(rng, part[place])
        return
    matrix = part.reshape(terms, terms)
    i, j = rng.integers(min(terms, features + 1), size=2)
    way = rng.integers(5)
    if way == 0:
        matrix[i, j] = matrix[j, i] = number(rng, matrix[i, j])
    elif way == 1:
        matrix[i, i] = abs(number(rng, matrix[i, i]))
    elif way == 2:
        factor = abs(pick(rng, FACTORS))
        matrix[i, :] *= factor
        matrix[:, i] *= factor
    elif way == 3:
        matrix *= abs(pick(rng, FACTORS))
    else:
        loose = rng.normal(size=matrix.shape) * pick(rng, (1.0, 1e-9, 1e20))
        matrix[:] = loose + loose.T + np.diag(np.abs(loose).sum(axis=1) * rng.random())


def change_coefficients(rng, header, arrays):
    models, features = arrays["models"], len(header["features"]["names"])
    terms = (features + 4) // 4 * 4
    if not models.size:
        return
    page = models[rng.integers(len(models))]
    parts = [slice(0, 4 * terms), slice(4 * terms, 4 * terms + features)]
    parts.append(slice(4 * terms + features, 4 * terms + 2 * features))
    part = page[pick(rng, parts)]
    if rng.random() < 0.5:
        part *= pick(rng, FACTORS)
    elif len(part):
        place = rng.integers(len(part))
        part[place] = number(rng, part[place])


def change_grid(rng, header, arrays):
    """Lay a grid elsewhere, such that its parts fit together."""
    watches, features = arrays["watches"], len(header["features"]["names"])
    if not watches.size or not features:
        return
    at = GRID_DOUBLES * rng.integers(features)
    grid = watches[rng.integers(len(watches)), at : at + GRID_DOUBLES]
    if rng.random() < 0.4:
        grid[0] = number(rng, grid[0])
        return
    grid[1] = abs(number(rng, grid[1]))
    grid[2] = 1 / grid[1]


def change_slots(rng, header, arrays):
    """Multiply slots, or some of their sums."""
    watches, features = arrays["watches"], len(header["features"]["names"])
    if not watches.size or not features:
        return
    slots = watches[rng.integers(len(watches)), GRID_DOUBLES * features :]
    slots = slots[: len(slots) // SLOT_DOUBLES * SLOT_DOUBLES].reshape(-1, SLOT_DOUBLES)
    if rng.random() < 0.5:
        slots = slots[rng.integers(len(slots))][None]
    if rng.random() < 0.5:
        slots[:, rng.integers(SLOT_DOUBLES)] *= pick(rng, FACTORS)
    else:
        slots *= abs(pick(rng, FACTORS))


def change_leaf_and_stream(rng, header, arrays):
    """Let all weights, or all rows, be others."""
    factor = abs(pick(rng, FACTORS))
    names, place = pick(rng, ((("weight", "born", "mean_weight"), 1), (("rows",), 0)))
    for name in names:
        arrays["leaves"][name] *= factor
    arrays["stream"][place] *= factor
    if "weight" in names:
        arrays["nodes"]["weight"] *= factor


def change_type(rng, header, arrays):
    name = pick(rng, list(arrays))
    array = arrays[name]
    way = rng.integers(7)
    if way == 0:
        del arrays[name]
    elif way == 1:
        arrays["more"] = array
    elif way == 2:
        arrays[name] = np.concatenate([array, array[:1]])
    elif way == 3:
        arrays[name] = array[: rng.integers(len(array) + 1)]
    elif way == 4:
        arrays[name] = array[None]
    elif way == 5:
        arrays[name] = np.zeros(array.shape, pick(rng, (np.float32, np.int8, np.uint8, np.int64)))
    else:
        arrays[name] = array.reshape(-1)[::-1]


def change_header(rng, header, arrays):
    """Replace, remove or add an entry at any depth."""
    owner = header
    while True:
        keys = list(owner) if isinstance(owner, dict) else range(len(owner))
        if not keys:
            return
        key = pick(rng, list(keys))
        if not isinstance(owner[key], dict | list) or rng.random() < 0.15:
            break
        owner = owner[key]
    way, old = rng.random(), owner[key]
    if way < 0.1:
        del owner[key]
    elif way < 0.2 and isinstance(owner, dict):
        owner["more"] = old
    elif way < 0.2:
        owner.append(old)
    elif way < 0.6 and isinstance(old, int | float) and not isinstance(old, bool):
        with np.errstate(all="ignore"):
            new = number(rng, float(old))
        owner[key] = float(new) if np.isfinite(new) and rng.random() < 0.5 else int(old) + 1
    else:
        owner[key] = copy.deepcopy(pick(rng, JSON))


def change_observer(rng, header, arrays):
    """Change an observer within, with its own checksum set right."""
    sizes = arrays["observer_sizes"]
    if not len(sizes):
        change_numbers(rng, header, arrays)
        return
    ends = np.cumsum(sizes)
    at = rng.integers(len(sizes))
    data = arrays["observers"].tobytes()
    start, end = int(ends[at] - sizes[at]), int(ends[at])
    blob = changed_observer(rng, data[start:end])
    sizes[at] = len(blob)
    arrays["observers"] = np.frombuffer(data[:start] + blob + data[end:], np.uint8).copy()


def changed_observer(rng, data):
    """The bytes of an observer with some changes."""
    header, numbers = packing.unpack(data)
    for _ in range(rng.integers(1, 4)):
        if not len(numbers) or rng.random() < 0.2:
            change_header(rng, header, {})
        elif rng.random() < 0.1:
            numbers = pick(rng, (numbers[:-1], np.append(numbers, 1.0), numbers[::-1]))
        else:
            place = rng.integers(len(numbers))
            numbers[place] = number(rng, numbers[place])
    return packing.pack(header, [numbers])


CHANGES = (
    *[change_numbers] * 4,
    *[change_records] * 4,
    *[change_covariance] * 3,
    *[change_coefficients] * 2,
    *(change_columns, swap, flip_bits, change_grid, change_slots, change_leaf_and_stream),
    *(change_type, change_header, change_header, change_observer, change_observer),
)


@cache
def state(name):
    return tree_state.state_of(TREES[name]())


def mutated(seed, place):
    """The bytes of a changed file, and what was changed."""
    rng = np.random.default_rng([seed, place])
    name = pick(rng, list(TREES))
    header, arrays = copy.deepcopy(state(name))
    changes = [pick(rng, CHANGES) for _ in range(pick(rng, (1, 1, 1, 2, 3)))]
    # Observers are changed while they are whole, headers and types when all else is.
    changes.sort(
        key=lambda each: (each is not change_observer, each in (change_header, change_type))
    )
    with np.errstate(all="ignore"):
        for change in changes:
            change(rng, header, arrays)
    return packed(header, arrays), f"{name}: {', '.join(each.__name__ for each in changes)}"


# What a changed file may do


def columns_for(tree, rng, count):
    """Columns that fit the features of a tree, whatever they are."""
    columns = {}
    for name, kind in tree.feature_kinds.items():
        if kind == "category":
            known = [*tree._features.categories[tree._features.index[name]], *COLOURS]
            columns[name] = [pick(rng, known) for _ in range(count)]
        else:
            columns[name] = np.round(rng.normal(size=count), 2).tolist()
        for row in np.flatnonzero(rng.random(count) < 0.1):
            columns[name][row] = None
    if tree.parameters["max_bytes"] is None:
        columns["a new one"] = rng.normal(size=count).tolist()
    return columns


def learn(tree, rng, count, scale=1.0, w=None):
    """Learn rows of y of some size, first as a batch and then one by one; all predictions."""
    columns = columns_for(tree, rng, count)
    numbers = [each for each in columns.values() if isinstance(each[0], float)]
    signal = np.nan_to_num(np.array(numbers[0], dtype=float)) if numbers else np.zeros(count)
    y = scale * np.where(signal < -0.3, 3.0, signal + 0.1 * rng.normal(size=count))
    w = np.ones(count) if w is None else np.full(count, w)
    half = count // 2
    first = {name: values[:half] for name, values in columns.items()}
    found = flat(tree.predict_learn_many(first, of_all(tree, y[:half]), w[:half]))
    for row in range(half, count):
        x = {name: values[row] for name, values in columns.items()}
        found += flat(tree.predict_one(x))
        tree.learn_one(x, of_all(tree, y[row]), w[row])
    return found


def of_all(tree, y):
    """The values of y for each target of a tree, if it has several."""
    return {name: y * (1 + place) for place, name in enumerate(tree.targets)} if tree.targets else y


def flat(predictions):
    """All numbers of predictions, of one target or of several."""
    if isinstance(predictions, dict):
        return [each for values in predictions.values() for each in flat(values)]
    return np.ravel(predictions).tolist()


def assert_finite(tree, predictions, when):
    assert np.isfinite(flat(predictions)).all(), f"predictions are not finite {when}"
    assert not infinite_or_nan(tree), f"{infinite_or_nan(tree)[:3]} are not finite {when}"


def assert_comes_back(tree, when):
    data = tree.to_bytes()
    assert HoeffdingTreeRegressor.from_bytes(data, when).to_bytes() == data


def exercise(tree):
    """Let a tree learn and be saved; nothing may fail, and all stays finite."""
    rng = np.random.default_rng(0)
    assert_comes_back(tree, "at once")
    columns = columns_for(tree, rng, 50)
    assert_finite(tree, tree.predict_many(columns), "at once")
    try:
        assert_finite(tree, learn(tree, rng, 300), "after 300 rows")
        assert_comes_back(tree, "after 300 rows")
        assert_finite(tree, learn(tree, rng, 40, 1e99, 1e3), "after large y")
        assert_finite(tree, learn(tree, rng, 60), "after ordinary y again")
    except (ValueError, OverflowError) as error:
        # A tree that is full, or has seen too much weight, may raise these.
        if not str(error).startswith(("max_bytes = ", "w = ")) or isinstance(error, ModelFileError):
            raise
    assert_finite(tree, tree.predict_many(columns), "in the end")
    assert_comes_back(tree, "in the end")
    assert tree.to_text()


def verdict(data):
    """The result of loading a file: "rejected", "accepted", or the fault."""
    try:
        tree = HoeffdingTreeRegressor.from_bytes(data)
    except ModelFileError:
        return "rejected"
    except Exception as error:
        return f"wrong exception: {error!r}"
    try:
        exercise(tree)
    except AssertionError as error:
        return f"harm: {error}"
    except Exception as error:
        return f"harm: {error!r}"
    return "accepted"


def try_files(seed, first, last):
    """Print the number of each file before it is tried, and then the result."""
    for place in range(first, last):
        print(place, end=" ", flush=True)
        data, changes = mutated(seed, place)
        found = verdict(data)
        print(found if found in ("rejected", "accepted") else f"{found} ({changes})", flush=True)


if __name__ == "__main__":
    faulthandler.enable()
    np.seterr(all="ignore")
    try_files(*map(int, sys.argv[1:]))
