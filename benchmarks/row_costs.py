"""Where the time of a row goes, and how near that is to what the machine allows.

A tree grows on Friedman's function, and is taken apart on its first rows and on the next ones. The
floor is the bare update of the slots and of the linear models of each row's leaf, on copies of the
tree's tables, in a loop that does nothing else: the same rows, each in the leaf that it had.
"""

import importlib
import importlib.util
import sys
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.data_sets import friedman
from benchmarks.tables import Answer, Bound, Table
from benchmarks.timing import best_seconds, nanoseconds
from sapwood import HoeffdingTreeRegressor, QuantizerObserver

__all__ = ["FLOOR", "OTHER", "PARTS", "ROWS", "WHOLE", "measure", "run"]

FloatArray = NDArray[np.float64]

ROWS = 50_000
DICT_ROWS = 20_000
MANY_ROWS = 10_000
FEATURES = 10
LIMIT = 2.0
MOST_NS_PER_FEATURE = 60.0
PARTS = (
    "routing to the leaf",
    "leaf models (floor)",
    "slots (floor)",
    "errors, mixing, tracking, records",
    "decisions and splits",
)
WHOLE = "predict_learn_many"
FLOOR = "its floor: the bare updates of models and slots"
FIRST = f"predict_learn_many, the first {ROWS:,} rows"
FIRST_FLOOR = "its floor"
FROM_DICTS = "predict_one and learn_one, from dicts"
OBSERVERS = "ten observers alone, QuantizerObserver.update_many"
OTHER = (FLOOR, FIRST, FIRST_FLOOR, FROM_DICTS, OBSERVERS)
WAYS = ("one batch, ns", "single rows, ns", "of these predict_one, ns")
# What a tree does not do with these parameters; one leaf has no splits, and fits into the caches.
WITHOUT: dict[str, dict[str, Any]] = {
    "all of the tree": {},
    "without error correction": {"track": None},
    "without linear models": {"leaf": "mean"},
    "one leaf": {"grace_period": 1e9},
    "one leaf, without error correction": {"grace_period": 1e9, "track": None},
}
# As in setup.py, so that the same loops become the same code.
COMPILE = ["-O3", "-ffp-contract=off", "-fno-tree-loop-vectorize"]


class Record(NamedTuple):
    """A part of a row's time in nanoseconds."""

    part: str
    ns: float


class Way(NamedTuple):
    """Rows, and what the tree did with each."""

    x: FloatArray
    y: FloatArray
    leaves: NDArray[np.intp]
    rows: FloatArray  # that its leaf had learned before


def run(quick: bool = False) -> Answer:
    """Take a row's time apart.

    Parameters
    ----------
    quick : bool
        Fewer repetitions.
    """
    found, by_parameters = measure(quick), _by_parameters(quick)
    bounds = [
        Bound(f"predict_learn_many / bare updates, {name}", found[whole] / found[floor], LIMIT)
        for name, whole, floor in (("first rows", FIRST, FIRST_FLOOR), ("next rows", WHOLE, FLOOR))
    ]
    entry = (found[FROM_DICTS] - found[WHOLE]) / FEATURES
    bounds.append(Bound("a dict adds, ns a feature (both calls)", entry, MOST_NS_PER_FEATURE))
    tables = [
        Table(
            f"One of the second {ROWS:,} rows of {FEATURES} features, in a tree that grows",
            ("part", "ns", "share", "times the floor"),
            [
                (part, found[part], f"{found[part] / found[WHOLE]:.0%}", found[part] / found[FLOOR])
                for part in [*PARTS, WHOLE]
            ],
        ),
        Table("Other costs", ("what", "ns"), [(name, found[name]) for name in OTHER]),
        Table(
            f"The first {ROWS:,} rows, predicted and learned by trees that do less",
            ("tree", *WAYS),
            by_parameters,
        ),
    ]
    records = [Record(*each) for each in found.items()]
    for name, *costs in by_parameters:
        records += [Record(f"{name}: {way}", ns) for way, ns in zip(WAYS, costs, strict=True)]
    return Answer(tables, Table("", Record._fields, records), bounds)


def measure(quick: bool = False) -> dict[str, float]:
    """Return what each part of a row takes, in nanoseconds: `PARTS`, `WHOLE`, and `OTHER`.

    Parameters
    ----------
    quick : bool
        Fewer repetitions.
    """
    repeats = 5 if quick else 15
    x, y = friedman(np.random.default_rng(1), 2 * ROWS)
    tree = HoeffdingTreeRegressor()
    tree.learn_one(dict(enumerate(x[0].tolist())), float(y[0]))
    young = tree.copy()
    first = _follow(tree, x[1:ROWS], y[1:ROWS])
    grown = tree.copy()
    later = _follow(tree, x[ROWS:], y[ROWS:])
    with TemporaryDirectory() as folder:
        bare = _compiled(Path(folder))
        floor = _floor(bare, tree, later, repeats)
        models = _floor(bare, tree, later, repeats, with_slots=False)
        in_old_leaves = _floor(bare, tree, _in_old_leaves(later), repeats)
        first_floor = _floor(bare, tree, first, repeats)
        routing = _routing(bare, grown, later, repeats)
    whole = _whole(grown, later, repeats)
    rest = _undecided(grown, later, repeats) - in_old_leaves - routing
    values = (routing, models, floor - models, rest, whole - floor - routing - rest)
    return {
        **dict(zip(PARTS, values, strict=True)),
        WHOLE: whole,
        FLOOR: floor,
        FIRST: _whole(young, first, repeats),
        FIRST_FLOOR: first_floor,
        FROM_DICTS: _from_dicts(grown, later, repeats),
        OBSERVERS: _observers(later, repeats),
    }


def _by_parameters(quick: bool) -> list[tuple[str, float, float, float]]:
    """Return what a row costs trees with other parameters, in nanoseconds, taking turns."""
    x, y = friedman(np.random.default_rng(1), ROWS)
    rows = [dict(enumerate(values)) for values in x[:DICT_ROWS].tolist()]
    targets = y[:DICT_ROWS].tolist()

    def at_once(tree: HoeffdingTreeRegressor) -> float:
        return nanoseconds(partial(tree.predict_learn_many, x, y)) / ROWS

    def one_by_one(tree: HoeffdingTreeRegressor, predicting: bool) -> float:
        def follow() -> None:
            for row, target in zip(rows, targets, strict=True):
                if predicting:
                    tree.predict_one(row)
                tree.learn_one(row, target)

        return nanoseconds(follow) / DICT_ROWS

    best = {name: [np.inf, np.inf, np.inf] for name in WITHOUT}
    for _ in range(3 if quick else 10):
        for name, options in WITHOUT.items():
            fresh = [HoeffdingTreeRegressor(**options) for _ in range(3)]
            own = at_once(fresh[0]), one_by_one(fresh[1], True), one_by_one(fresh[2], False)
            best[name] = [min(pair) for pair in zip(best[name], own, strict=True)]
    return [(name, batch, both, both - learn) for name, (batch, both, learn) in best.items()]


def _follow(tree: HoeffdingTreeRegressor, x: FloatArray, y: FloatArray) -> Way:
    """Let a tree learn rows one by one; return the leaf of each."""
    kernel: Any = tree._kernel
    leaves, rows = np.empty(len(y), dtype=np.intp), np.empty(len(y))
    for at in range(len(y)):
        leaves[at] = kernel.explain_row(x[at])[0]
        rows[at] = kernel.leaf_table["rows"][leaves[at]]
        tree.learn_many(x[at : at + 1], y[at : at + 1])
    return Way(np.ascontiguousarray(x), y, leaves, rows)


def _in_old_leaves(way: Way) -> Way:
    """Return rows of which the n-th comes to a leaf of n rows and many more: none is young."""
    return way._replace(rows=MANY_ROWS + np.arange(len(way.rows), dtype=float))


def _compiled(folder: Path) -> ModuleType:
    """Compile the bare loops for this machine."""
    cythonize: Any = importlib.import_module("Cython.Build").cythonize
    setuptools: Any = importlib.import_module("setuptools")
    source = Path(__file__).with_name("bare_updates.pyx")
    extension = setuptools.Extension("bare_updates", [str(source)], extra_compile_args=COMPILE)
    include = [str(Path(*path.parts)) for path in map(Path, sys.path) if path.is_dir()]
    distribution = setuptools.Distribution(
        {"ext_modules": cythonize([extension], build_dir=str(folder), include_path=include)}
    )
    command: Any = distribution.get_command_obj("build_ext")
    command.build_lib = command.build_temp = str(folder)
    command.ensure_finalized()
    command.run()
    path = command.get_ext_fullpath("bare_updates")
    spec = importlib.util.spec_from_file_location("bare_updates", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _floor(
    bare: Any, tree: HoeffdingTreeRegressor, way: Way, repeats: int, with_slots: bool = True
) -> float:
    """Return what the bare updates of a row take, in nanoseconds, on copies of a tree's tables.

    Each time on new ones, as those of a tree are when it is measured.
    """
    kernel: Any = tree._kernel
    facts = kernel.columns.fact_table.view(np.uint8)

    def loop(models: FloatArray, watches: FloatArray) -> None:
        bare.update(
            models, watches, facts, way.x, way.y, way.leaves, way.rows, kernel.slots, with_slots
        )

    best = min(
        nanoseconds(partial(loop, np.array(kernel.model_pages), np.array(kernel.watch_pages)))
        for _ in range(repeats)
    )
    return best / len(way.y)


def _routing(bare: Any, tree: HoeffdingTreeRegressor, way: Way, repeats: int) -> float:
    """Return what it takes to find the leaf of a row."""
    nodes = tree._kernel.node_table.view(np.uint8)
    leaves = np.empty(len(way.y), dtype=np.intp)
    return best_seconds(lambda: bare.route(nodes, way.x, leaves), repeats) / len(way.y) * 1e9


def _undecided(tree: HoeffdingTreeRegressor, way: Way, repeats: int) -> float:
    """Return what the kernel takes for a row if no leaf is ever decided on."""
    weights, predictions = np.broadcast_to(1.0, len(way.y)), np.empty(len(way.y))

    def learn(copy: HoeffdingTreeRegressor) -> None:
        copy._kernel.learn(way.x, way.y, weights, predictions)

    def undecided() -> HoeffdingTreeRegressor:
        copy = tree.copy()
        copy._kernel.leaf_table["due"] = np.inf
        return copy

    return min(nanoseconds(partial(learn, undecided())) for _ in range(repeats)) / len(way.y)


def _whole(tree: HoeffdingTreeRegressor, way: Way, repeats: int) -> float:
    """Return what `predict_learn_many` takes for a row, with all decisions."""
    best = min(
        nanoseconds(partial(tree.copy().predict_learn_many, way.x, way.y)) for _ in range(repeats)
    )
    return best / len(way.y)


def _from_dicts(tree: HoeffdingTreeRegressor, way: Way, repeats: int) -> float:
    """Return what `predict_one` and `learn_one` take together for a row."""
    rows = [dict(enumerate(values)) for values in way.x[:DICT_ROWS].tolist()]
    targets = way.y[:DICT_ROWS].tolist()

    def follow(copy: HoeffdingTreeRegressor) -> None:
        for row, target in zip(rows, targets, strict=True):
            copy.predict_one(row)
            copy.learn_one(row, target)

    best = min(nanoseconds(partial(follow, tree.copy())) for _ in range(repeats))
    return best / DICT_ROWS


def _observers(way: Way, repeats: int) -> float:
    """Return what it takes to let observers of their own see the features of a row."""
    columns = np.ascontiguousarray(way.x.T)

    def observe() -> None:
        for column in columns:
            QuantizerObserver().update_many(column, way.y)

    return best_seconds(observe, repeats) / len(way.y) * 1e9
