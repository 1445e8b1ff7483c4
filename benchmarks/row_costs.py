"""Where the time of a row goes, and how near that is to what the machine allows.

A tree grows on Friedman's function; then the next rows are learned in parts. The floor is the bare
update of the slots and of the linear models of each row's leaf, on copies of the tree's tables, in
a loop that does nothing else. What is not avoidable is told apart from what is.
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

GROWN_ROWS = 50_000
ROWS = 20_000
DICT_ROWS = 5_000
SLOTS = 32
MOST_TIMES_FLOOR = 2.0
MOST_NS_PER_FEATURE = 60.0
# As in setup.py, so that the same loops become the same code.
COMPILE = ["-O3", "-ffp-contract=off", "-fno-tree-loop-vectorize"]


class Record(NamedTuple):
    """A part of a row's time in nanoseconds."""

    part: str
    ns: float


def run(quick: bool = False) -> Answer:
    """Take a row's time apart.

    Parameters
    ----------
    quick : bool
        Fewer repetitions.
    """
    repeats = 3 if quick else 9
    rng = np.random.default_rng(1)
    x, y = friedman(rng, GROWN_ROWS + ROWS)
    tree = HoeffdingTreeRegressor()
    tree.learn_many(x[:GROWN_ROWS], y[:GROWN_ROWS])
    x, y = np.ascontiguousarray(x[GROWN_ROWS:]), np.ascontiguousarray(y[GROWN_ROWS:])
    with TemporaryDirectory() as folder:
        bare = _bare_costs(_compiled(Path(folder)), tree, x, y, repeats)
    inner = _inner_cost(tree, x, y, repeats)
    whole = _whole_cost(tree, x, y, repeats)
    first = _first_rows_cost(repeats)
    one_by_one = _dict_cost(tree, x[:DICT_ROWS], y[:DICT_ROWS], repeats)
    floor = bare["models"] + bare["slots"]
    parts = [
        Record("routing to the leaf", bare["routing"]),
        Record("leaf models (floor)", bare["models"]),
        Record("slots (floor)", bare["slots"]),
        Record("errors, mixing, tracking, records", inner - floor - bare["routing"]),
        Record("decisions and splits", whole - inner),
    ]
    features = x.shape[1]
    entry = (one_by_one - whole) / features
    bounds = [
        Bound("predict_learn_many / bare updates, grown tree", whole / floor, MOST_TIMES_FLOOR),
        Bound("predict_learn_many / bare updates, first rows", first / floor, MOST_TIMES_FLOOR),
        Bound("a dict adds, ns a feature (both calls)", entry, MOST_NS_PER_FEATURE),
    ]
    tables = [
        Table(
            f"One row of {features} features in a tree of {tree.n_leaves} leaves, in batches",
            ("part", "ns", "share", "times the floor"),
            [
                (part.part, part.ns, f"{part.ns / whole:.0%}", part.ns / floor)
                for part in [*parts, Record("whole", whole)]
            ],
        ),
        Table(
            "Beside it",
            ("what", "ns"),
            [
                ("both floors in one loop", bare["both"]),
                (f"mean over the first {GROWN_ROWS:,} rows, growing from nothing", first),
                ("one by one from dicts, predict_one and learn_one", one_by_one),
            ],
        ),
    ]
    records = [
        *parts,
        Record("whole", whole),
        Record("first rows", first),
        Record("from dicts", one_by_one),
    ]
    return Answer(tables, Table("", Record._fields, records), bounds)


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


def _bare_costs(
    bare: Any, tree: HoeffdingTreeRegressor, x: FloatArray, y: FloatArray, repeats: int
) -> dict[str, float]:
    """Return what bare loops take for a row, in nanoseconds, on copies of the tree's tables."""
    kernel: Any = tree.copy()._kernel
    nodes = kernel.node_table.view(np.uint8).copy()
    leaves = np.empty(len(x), dtype=np.intp)
    models = np.array(kernel.model_pages)
    watches = np.array(kernel.watch_pages)

    def update(with_models: bool, with_slots: bool) -> float:
        def loop() -> None:
            bare.update(models, watches, x, y, leaves, SLOTS, with_models, with_slots)

        return best_seconds(loop, repeats) / len(x) * 1e9

    routing = best_seconds(lambda: bare.route(nodes, x, leaves), repeats) / len(x) * 1e9
    return {
        "routing": routing,
        "models": update(True, False),
        "slots": update(False, True),
        "both": update(True, True),
    }


def _inner_cost(tree: HoeffdingTreeRegressor, x: FloatArray, y: FloatArray, repeats: int) -> float:
    """Return what the kernel takes for a row if no leaf is ever decided on."""
    kernel: Any = tree.copy()._kernel
    for leaf in range(kernel.leaf_count):
        kernel.set_due(leaf, np.inf, np.inf)
    weights, predictions = np.broadcast_to(1.0, len(y)), np.empty(len(y))

    def decide(leaf: int) -> None:
        raise AssertionError("no leaf is due")

    def learn() -> None:
        kernel.learn(x, y, weights, decide, predictions)

    return best_seconds(learn, repeats) / len(x) * 1e9


def _whole_cost(tree: HoeffdingTreeRegressor, x: FloatArray, y: FloatArray, repeats: int) -> float:
    """Return what `predict_learn_many` takes for a row, with all decisions."""
    twins = [tree.copy() for _ in range(repeats)]
    best = min(nanoseconds(partial(twin.predict_learn_many, x, y)) for twin in twins)
    return best / len(x)


def _first_rows_cost(repeats: int) -> float:
    """Return the mean cost of a row while a tree grows from nothing."""
    x, y = friedman(np.random.default_rng(2), GROWN_ROWS)
    best = min(
        nanoseconds(lambda: HoeffdingTreeRegressor().predict_learn_many(x, y))
        for _ in range(repeats)
    )
    return best / GROWN_ROWS


def _dict_cost(tree: HoeffdingTreeRegressor, x: FloatArray, y: FloatArray, repeats: int) -> float:
    """Return what `predict_one` and `learn_one` take together for a row."""
    rows = [dict(enumerate(values)) for values in x.tolist()]
    targets = y.tolist()
    best = np.inf
    for _ in range(repeats):
        twin = tree.copy()

        def follow(twin: HoeffdingTreeRegressor = twin) -> None:
            for row, target in zip(rows, targets, strict=True):
                twin.predict_one(row)
                twin.learn_one(row, target)

        best = min(best, nanoseconds(follow))
    return float(best) / len(x)
