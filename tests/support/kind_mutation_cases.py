"""Files of every kind of model that were changed on purpose, and what they may do.

Each file is one of a few real models with one to three changes: bits, lengths, values of the
header, numbers, types and places of arrays, arrays of another model. Some are made without, most
with a right checksum, also in the files within a file. The file of a number is the same in every
run, so that it can be tried alone::

    python tests/support/kind_mutation_cases.py SEED FIRST LAST
"""

import copy
import faulthandler
import io
import sys
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path

import numpy as np
import typer

import sapwood
from mutation_cases import JSON, change_header, number, pick
from sapwood import EBSTObserver, ModelFileError, QuantizerObserver
from sapwood.classify import Classifier, LaggedClassifier
from sapwood.cli.inspect import inspect
from sapwood.drift import ChangeDetector, Monitor
from sapwood.hybrid import LightGBM
from sapwood.intervals import IntervalRegressor
from sapwood.lags import LaggedModel, Lags, NaiveStack
from sapwood.model import from_bytes
from sapwood.storage import container

ROWS = 400
LEVELS = (0.5, 0.9)
INTEGERS = (-1, 0, 1, 2, 3, 63, 64, 65, 10**6, 2**31 - 1, -(2**31), 2**62, -(2**63))


def rows_of(count, seed=1):
    """Columns of numbers and labels, few and many, and y."""
    rng = np.random.default_rng(seed)
    a, b = np.round(rng.normal(size=(2, count)), 2)
    few = [f"label {code}" for code in rng.integers(0, 4, count)]
    many = [f"shop {code}" for code in rng.integers(0, 90, count)]
    y = np.where(a > 0, b, 3.0) + 0.1 * rng.normal(size=count)
    return {"a": a.tolist(), "b": b.tolist(), "few": few, "many": many}, y


def tree(**parameters):
    return sapwood.HoeffdingTreeRegressor(grace_period=50, **parameters)


def forest(**parameters):
    return sapwood.ForestRegressor(members=2, grace_period=50, **parameters)


def lagged(model, **parameters):
    return LaggedModel(model, Lags([1, 3], means=2, lags_of={"a": 1}, **parameters))


def hybrid(**parameters):
    """A hybrid whose fits are trees that its file holds."""
    return sapwood.HybridRegressor(
        forest(threads=1), LightGBM(rounds=3), min_rows=100, background=False, **parameters
    )


def targets_of(y, several):
    return {"u": y, "v": -2 * y} if several else y


def learned(model, several=False):
    columns, y = rows_of(ROWS)
    half = ROWS // 2
    first = {name: values[:half] for name, values in columns.items()}
    model.learn_many(first, targets_of(y[:half], several))
    later = {name: values[half:] for name, values in columns.items()}
    model.predict_many(later)  # pending predictions
    later = {name: values[half:-20] for name, values in columns.items()}
    model.learn_many(later, targets_of(y[half:-20], several))
    return model


def waiting(model):
    """A model with pending predictions that have ids."""
    columns, _ = rows_of(20, seed=3)
    learned(model).predict_many(columns, ids=range(20))
    return model


def labels_of(y, classes):
    return [("no", True, 7, "ä")[code] for code in np.digitize(y, np.linspace(-1, 2, classes - 1))]


def classified(model, classes):
    """A classifier with pending predictions."""
    columns, y = rows_of(ROWS)
    if classes > 2:
        del columns["many"]
    labels, half = labels_of(y, classes), ROWS // 2
    for rows in (slice(0, half), slice(half, None)):
        part = {name: values[rows] for name, values in columns.items()}
        model.predict_many(part)
        model.learn_many(part, labels[rows])
    model.predict_many({name: values[:20] for name, values in columns.items()}, ids=range(20))
    return model


def recurring():
    """Return a model that tries a retired one."""
    columns, y = rows_of(900)
    model = sapwood.RecurringRegressor(tree(), pool=2)
    for shift in (0, 400, 0):  # the second alert is after the last
        for start in range(0, 900, 60):
            part = {name: column[start : start + 60] for name, column in columns.items()}
            model.learn_many(part, y[start : start + 60] + shift)
            if model._held.candidates:
                return model
    raise RuntimeError("there was no trial")


def monitor():
    made = Monitor()
    columns, y = rows_of(900)
    made.update_many(columns, y, y + 0.5)
    return made


def detector():
    made = ChangeDetector()
    made.update_many(rows_of(500)[1])
    return made


KINDS = {
    "tree": lambda: learned(tree()),
    "tree of observers": lambda: learned(tree(observer=EBSTObserver())),
    "tree, limited": lambda: learned(tree(max_bytes=300_000, observer=QuantizerObserver(slots=16))),
    "tree of targets": lambda: learned(tree(), True),
    "tree of targets by observers": lambda: learned(tree(observer=EBSTObserver()), True),
    "empty tree": tree,
    "forest": lambda: learned(forest()),
    "forest, limited": lambda: learned(forest(max_bytes=2_000_000)),
    "forest of targets": lambda: learned(forest(), True),
    "adaptive": lambda: learned(sapwood.AdaptiveTreeRegressor(grace_period=50)),
    "intervals": lambda: learned(IntervalRegressor(tree(), LEVELS)),
    "intervals of a forest": lambda: learned(IntervalRegressor(forest(), LEVELS)),
    "intervals of targets": lambda: learned(IntervalRegressor(tree(), LEVELS), True),
    "lags": lambda: learned(lagged(tree())),
    "lags of series": lambda: learned(lagged(tree(), by=["few", "many"])),
    "lags of a forest": lambda: learned(lagged(forest(), by="few", max_series=3)),
    "lags of targets": lambda: learned(lagged(tree(), target=["u", "v"]), True),
    "lags of intervals": lambda: learned(lagged(IntervalRegressor(tree(), LEVELS))),
    "intervals of lags": lambda: learned(IntervalRegressor(lagged(tree()), LEVELS)),
    "intervals of lags of targets": lambda: learned(
        IntervalRegressor(lagged(tree(), target=["u", "v"]), LEVELS), True
    ),
    "lags, waiting": lambda: waiting(lagged(tree(), by="few")),
    "intervals of lags, waiting": lambda: waiting(IntervalRegressor(lagged(forest()), LEVELS)),
    "hybrid": lambda: learned(hybrid()),
    "hybrid of targets": lambda: learned(hybrid(), True),
    "lags of a hybrid": lambda: learned(lagged(hybrid())),
    "intervals of a hybrid": lambda: learned(IntervalRegressor(hybrid(), LEVELS)),
    "lags of intervals of a hybrid": lambda: learned(lagged(IntervalRegressor(hybrid(), LEVELS))),
    "intervals of lags of a hybrid": lambda: waiting(IntervalRegressor(lagged(hybrid()), LEVELS)),
    "lags by time": lambda: learned(
        LaggedModel(tree(), Lags(["2s", "5s"], means="3s", time="a", by="few"))
    ),
    "naive stack": lambda: learned(lagged(NaiveStack(tree(), "y.lag3", linear=["y.lag3"]))),
    "corrected": lambda: learned(sapwood.CorrectedRegressor(tree(track=None))),
    "corrected targets": lambda: learned(sapwood.CorrectedRegressor(tree(track=None)), True),
    "monitored": lambda: waiting(sapwood.MonitoredRegressor(tree())),
    "monitored targets": lambda: learned(
        sapwood.MonitoredRegressor(IntervalRegressor(tree(), LEVELS)), True
    ),
    "sparse": lambda: learned(sapwood.SparseRegressor(tree())),
    "loss": lambda: learned(sapwood.LossRegressor(tree(), "huber")),
    "views": lambda: learned(
        sapwood.MultiViewRegressor(tree(), without=["a"], crosses=[("a", "few")])
    ),
    "screened": lambda: learned(sapwood.ScreenedRegressor(tree(), features=1)),
    "recurring": lambda: learned(sapwood.RecurringRegressor(tree(), pool=2)),
    "recurring, in a trial": recurring,
    "classes, two": lambda: classified(sapwood.HoeffdingTreeClassifier(grace_period=50), 2),
    "classes": lambda: classified(sapwood.HoeffdingTreeClassifier(grace_period=50), 4),
    "classes of a forest": lambda: classified(sapwood.ForestClassifier(members=2), 3),
    "classes, adaptive": lambda: classified(sapwood.AdaptiveTreeClassifier(grace_period=50), 3),
    "lags of classes": lambda: classified(
        LaggedClassifier(
            sapwood.HoeffdingTreeClassifier(grace_period=50), Lags([1, 3], lags_of={"a": 1})
        ),
        3,
    ),
    "monitor": monitor,
    "detector": detector,
}


@cache
def parts(name):
    """The kind, the header and the arrays of a model's file."""
    return container.unpack_any(KINDS[name]().to_bytes(), name)


# -- changes of what a file holds, each in place ---------------------------------------------------


def change_array(rng, header, arrays):
    """Change some values of an array to others, of the bounds of its type and near to them."""
    names = [name for name, each in arrays.items() if each.size]
    if not names:
        return
    array = arrays[pick(rng, names)]
    if array.dtype.names:
        array = array[pick(rng, array.dtype.names)]
    for _ in range(pick(rng, (1, 1, 1, 2, 5))):
        place = np.unravel_index(rng.integers(array.size), array.shape)
        if array.dtype.kind == "f":
            array[place] = number(rng, array[place])
        elif rng.random() < 0.3:
            array[place] = array.flat[rng.integers(array.size)]
        else:
            array[place] = np.array(pick(rng, INTEGERS)).astype(array.dtype)


def change_bits(rng, header, arrays):
    names = [name for name, each in arrays.items() if each.size]
    if names:
        data = arrays[pick(rng, names)].reshape(-1).view(np.uint8)
        data[rng.integers(len(data))] ^= 1 << rng.integers(8)


def change_shape(rng, header, arrays):
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
    elif way == 4 and array.ndim < 4:
        arrays[name] = array[None]
    elif way == 5:
        arrays[name] = np.zeros(array.shape, pick(rng, (np.float32, np.int8, np.uint8, np.int64)))
    else:
        arrays[name] = array.reshape(-1)[::-1].copy()


def swap_arrays(rng, header, arrays):
    """Let two arrays change places, or take one of another model."""
    name = pick(rng, list(arrays))
    if rng.random() < 0.5:
        other = pick(rng, list(arrays))
        arrays[name], arrays[other] = arrays[other], arrays[name]
        return
    _, _, others = parts(pick(rng, list(KINDS)))
    found = others.get(name, others[pick(rng, list(others))])
    arrays[name] = found.copy()


def change_within(rng, header, arrays):
    """Change a file that is an array of this one."""
    held = [name for name, each in arrays.items() if _is_file(each)]
    if not held:
        change_array(rng, header, arrays)
        return
    name = pick(rng, held)
    if rng.random() < 0.2:
        data = container.pack(*parts(pick(rng, list(KINDS))))
    else:
        try:
            data = changed(rng, *container.unpack_any(arrays[name].tobytes(), name))
        except ModelFileError:  # as another change has damaged it already
            return
    arrays[name] = np.frombuffer(data, np.uint8).copy()


def _is_file(array):
    magic = container.MAGIC
    return array.dtype == np.uint8 and array[: len(magic)].tobytes() == magic


CHANGES = (
    *[change_array] * 4,
    *(change_bits, change_shape, change_shape, swap_arrays, swap_arrays),
    *[change_header] * 4,
    *[change_within] * 2,
)


def changed(rng, kind, header, arrays):
    """The bytes of a file with some changes, and the right checksum."""
    header = copy.deepcopy(header)
    arrays = {name: array.copy() for name, array in arrays.items()}
    with np.errstate(all="ignore"):
        for _ in range(pick(rng, (1, 1, 1, 2, 3))):
            if arrays:
                pick(rng, CHANGES)(rng, header, arrays)
            else:
                change_header(rng, header, arrays)
    if rng.random() < 0.03:
        kind = pick(rng, (*container_kinds(), "", "another"))
    if rng.random() < 0.03:
        header["format"] = pick(rng, (*JSON, 3, 99))
    try:
        return container.pack(kind, header, arrays)
    except ValueError:  # a boolean that is none, as no file may have it
        return b""


def container_kinds():
    return tuple(sapwood.model.KINDS)


def damaged(rng, data):
    """Bytes with bits flipped, parts lost, doubled or moved; the checksum stays as it is."""
    way = rng.integers(6)
    place, other = sorted(rng.integers(0, len(data) + 1, 2).tolist())
    if way == 0:
        flipped = bytearray(data)
        for _ in range(pick(rng, (1, 2, 9))):
            flipped[rng.integers(len(data))] ^= 1 << rng.integers(8)
        return bytes(flipped)
    if way == 1:
        return data[:place]
    if way == 2:
        return data[:place] + data[other:]
    if way == 3:
        return data + data[place:other]
    if way == 4:
        return data[:place] + bytes(other - place) + data[other:]
    return data[: container.PREFIX.size] + data[place:other]


def mutated(seed, place):
    """The bytes of a changed file, and which model it was."""
    rng = np.random.default_rng([seed, place])
    name = pick(rng, list(KINDS))
    if rng.random() < 0.15:
        return damaged(rng, container.pack(*parts(name))), name
    data = changed(rng, *parts(name))
    # Some have lists in arrays: those are changed where they are.
    return (damaged(rng, data) if data and rng.random() < 0.03 else data), name


# -- what a changed file may do --------------------------------------------------------------------


def use(model):
    """Read a model, let it learn, and save it: it may reject rows, and nothing else may fail."""
    repr(model)
    if isinstance(model, ChangeDetector):
        model.update_many(rows_of(300, seed=2)[1])
    elif isinstance(model, Monitor):
        columns, y = rows_of(300, seed=2)
        model.update_many(columns, y, y)
    else:
        read_and_learn(model)
    assert model.nbytes > 0
    data = model.to_bytes()
    assert from_bytes(data).to_bytes() == data, "another file after loading"


def read_and_learn(model):
    columns, y = rows_of(60, seed=2)
    for name, kind in model.feature_kinds.items():
        if kind == "number":
            columns[name] = [1.0] * 60
        elif kind == "category":
            columns[name] = ["label 1"] * 60
    if isinstance(model, Classifier):
        y = labels_of(y, min(max(2, len(model.classes)), 4))
    several = dict.fromkeys(getattr(model, "targets", ()), y) or None
    try:
        model.predict_many(columns)
        model.predict_one({name: values[0] for name, values in columns.items()})
        model.learn_many(columns, y if several is None else several)
        for row in range(5):
            x = {name: values[row] for name, values in columns.items()}
            own = y[row] if several is None else dict.fromkeys(several, y[row])
            model.predict_one(x)
            model.learn_one(x, own)
    except (ValueError, OverflowError) as error:
        if isinstance(error, ModelFileError):
            raise


def inspected(data):
    """Show a file by the command line: it succeeds, or fails with one line."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "my.sapwood"
        path.write_bytes(data)
        for as_json in (False, True):
            shown, complaint = io.StringIO(), io.StringIO()
            with redirect_stdout(shown), redirect_stderr(complaint):
                try:
                    inspect(path, depth=3, svg=None, as_json=as_json)
                    code = 0
                except typer.Exit as end:
                    code = end.exit_code
            lines = complaint.getvalue()
            assert code == 0 or (code == 2 and lines.startswith("sapwood: "))
            assert "Traceback" not in lines


def verdict(data):
    """The result of loading a file: "rejected", "accepted", or the fault."""
    try:
        model = from_bytes(data, "the file")
    except ModelFileError:
        model = None
    except Exception as error:
        return f"wrong exception: {error!r}"
    try:
        inspected(data)
        if model is not None:
            use(model)
    except AssertionError as error:
        return f"harm: {error!r}"
    except Exception as error:
        return f"harm: {error!r}"
    return "rejected" if model is None else "accepted"


def try_files(seed, first, last):
    """Print the number of each file before it is tried, and then the result."""
    for place in range(first, last):
        print(place, end=" ", flush=True)
        data, name = mutated(seed, place)
        found = verdict(data)
        print(found if found in ("rejected", "accepted") else f"{found} ({name})", flush=True)


if __name__ == "__main__":
    faulthandler.enable()
    np.seterr(all="ignore")
    try_files(*map(int, sys.argv[1:]))
