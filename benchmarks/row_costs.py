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
from sapwood import HoeffdingTreeRegressor

__all__ = ["run"]

FloatArray = NDArray[np.float64]

ROWS = 50_000
DICT_ROWS = 20_000
MANY_ROWS = 10_000
MOST_TIMES_FLOOR = 2.0
MOST_NS_PER_FEATURE = 60.0
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
        floors = [_floor(bare, tree, way, repeats) for way in (first, later)]
        frozen = _floor(bare, tree, _in_old_leaves(later), repeats)
        models = _floor(bare, tree, later, repeats, with_slots=False)
        routing = _routing(bare, grown, later, repeats)
    wholes = [_whole(start, way, repeats) for start, way in ((young, first), (grown, later))]
    rest = _undecided(grown, later, repeats) - frozen - routing
    one_by_one = _from_dicts(grown, later, repeats)
    parts = [
        Record("routing to the leaf", routing),
        Record("leaf models (floor)", models),
        Record("slots (floor)", floors[1] - models),
        Record("errors, mixing, tracking, records", rest),
        Record("decisions and splits", wholes[1] - floors[1] - routing - rest),
    ]
    features = x.shape[1]
    names = [f"the first {ROWS:,} rows", f"the next {ROWS:,} rows"]
    bounds = [
        *(
            Bound(f"predict_learn_many / bare updates, {name}", whole / floor, MOST_TIMES_FLOOR)
            for name, whole, floor in zip(names, wholes, floors, strict=True)
        ),
        Bound(
            "a dict adds, ns a feature (both calls)",
            (one_by_one - wholes[1]) / features,
            MOST_NS_PER_FEATURE,
        ),
    ]
    tables = [
        Table(
            f"One of {names[1]}, of {features} features, in a tree that grows from "
            f"{grown.n_leaves} to {tree.n_leaves} leaves",
            ("part", "ns", "share", "times the floor"),
            [
                (part.part, part.ns, f"{part.ns / wholes[1]:.0%}", part.ns / floors[1])
                for part in [*parts, Record("whole", wholes[1])]
            ],
        ),
        Table(
            "Beside it",
            ("what", "ns"),
            [
                (f"{names[0]}: predict_learn_many", wholes[0]),
                (f"{names[0]}: bare updates", floors[0]),
                (f"{names[1]}: bare updates", floors[1]),
                (f"{names[1]}: predict_one and learn_one, from dicts", one_by_one),
            ],
        ),
    ]
    records = [
        *parts,
        Record("whole", wholes[1]),
        Record("first rows", wholes[0]),
        Record("first rows, bare", floors[0]),
        Record("from dicts", one_by_one),
    ]
    return Answer(tables, Table("", Record._fields, records), bounds)


def _follow(tree: HoeffdingTreeRegressor, x: FloatArray, y: FloatArray) -> Way:
    """Let a tree learn rows one by one, and tell the leaf of each."""
    kernel: Any = tree._kernel
    leaves, rows = np.empty(len(y), dtype=np.intp), np.empty(len(y))
    for at in range(len(y)):
        leaves[at] = kernel.outlook(x[at])[0]
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
    """Return what the bare updates of a row take, in nanoseconds, on copies of a tree's tables."""
    kernel: Any = tree._kernel
    models, watches = np.array(kernel.model_pages), np.array(kernel.watch_pages)

    def loop() -> None:
        bare.update(models, watches, way.x, way.y, way.leaves, way.rows, kernel.slots, with_slots)

    return best_seconds(loop, repeats) / len(way.y) * 1e9


def _routing(bare: Any, tree: HoeffdingTreeRegressor, way: Way, repeats: int) -> float:
    """Return what it takes to find the leaf of a row."""
    nodes = tree._kernel.node_table.view(np.uint8)
    leaves = np.empty(len(way.y), dtype=np.intp)
    return best_seconds(lambda: bare.route(nodes, way.x, leaves), repeats) / len(way.y) * 1e9


def _undecided(tree: HoeffdingTreeRegressor, way: Way, repeats: int) -> float:
    """Return what the kernel takes for a row if no leaf is ever decided on."""
    kernel: Any = tree.copy()._kernel
    for leaf in range(kernel.leaf_count):
        kernel.set_due(leaf, np.inf, np.inf)
    weights, predictions = np.broadcast_to(1.0, len(way.y)), np.empty(len(way.y))

    def decide(leaf: int) -> None:
        raise AssertionError("no leaf is due")

    def learn() -> None:
        kernel.learn(way.x, way.y, weights, decide, predictions)

    return best_seconds(learn, repeats) / len(way.y) * 1e9


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

    def follow(twin: HoeffdingTreeRegressor) -> None:
        for row, target in zip(rows, targets, strict=True):
            twin.predict_one(row)
            twin.learn_one(row, target)

    best = min(nanoseconds(partial(follow, tree.copy())) for _ in range(repeats))
    return best / DICT_ROWS
