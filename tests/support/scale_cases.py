"""What the tests of distributed training share: rows, a small tree, executors."""

from concurrent.futures import Executor, Future

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

import tree_cases
from sapwood import HoeffdingTreeRegressor
from sapwood.scale import train

ROWS = 6_000


def table(rows=ROWS, seed=1):
    x, y = tree_cases.friedman(rows, seed, features=5)
    columns = {f"x{place}": column for place, column in enumerate(x.T)}
    columns["colour"] = np.array(["red", "blue", "green"], dtype=object)[np.arange(rows) % 3]
    return pa.table({**columns, "y": y + 3.0 * (np.arange(rows) % 3)})


def small_tree():
    return HoeffdingTreeRegressor(grace_period=100)


def trained(name, workers=3, engine="threads", **options):
    read_options = {"target": "y"}
    return train(
        small_tree(),
        str(name),
        workers=workers,
        engine=engine,
        read_options=read_options,
        first=2_000,
        **options,
    )


def content(result):
    return result.model.to_bytes()


class Backwards(Executor):
    """Does everything at once, the last call first, when results are asked for."""

    def __init__(self):
        self.calls = []

    def submit(self, function, /, *arguments, **named):
        future = _Later(self)
        self.calls.append((future, function, arguments, named))
        return future

    def run(self):
        while self.calls:
            future, function, arguments, named = self.calls.pop()
            try:
                future.set_result(function(*arguments, **named))
            except Exception as error:
                future.set_exception(error)


class _Later(Future):
    def __init__(self, executor):
        super().__init__()
        self.executor = executor

    def result(self, timeout=None):
        self.executor.run()
        return super().result(timeout)
