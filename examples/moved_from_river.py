"""A pipeline of river's, moved over in three steps; each of them can be the last.

1. The model alone is exchanged: the pipeline, the loop and the metric stay river's.
2. Scaling goes, as the tree needs none, and lags are Sapwood's, for each series.
3. The loop goes too: rows in batches, a hundred times as fast, and a model that can be saved.
"""

import time
from collections.abc import Iterator
from typing import Any

from river import compose, evaluate, metrics, preprocessing
from river import tree as rivers

import sapwood
from sapwood import streams
from sapwood.evaluate import prequential
from sapwood.lags import LaggedModel
from sapwood.lags import Lags as Past
from sapwood.river import HoeffdingTreeRegressor, Lags

ROWS = 5_000


def main() -> None:
    """Score each step on the same rows: hourly demand in three cities."""
    numbers = compose.SelectType(float)
    steps = {
        "river's tree, scaled numbers": numbers
        | preprocessing.StandardScaler()
        | rivers.HoeffdingTreeRegressor(),
        "1. our tree in its place": numbers.clone()
        | preprocessing.StandardScaler()
        | HoeffdingTreeRegressor(),
        "2. with cities and lags": Lags([1, 24], by="city") | HoeffdingTreeRegressor(),
    }
    for name, model in steps.items():
        start = time.perf_counter()
        error = evaluate.progressive_val_score(rows(), model, metrics.MAE())
        print(f"{name:30} MAE {error.get():8.2f}, {time.perf_counter() - start:6.2f} s")
    model = LaggedModel(sapwood.HoeffdingTreeRegressor(), Past([1, 24], by="city"))
    found = prequential(model, streams.demand(rows=ROWS))
    print(f"{'3. without river':30} MAE {found.total.mae:8.2f}, {found.seconds:6.2f} s")


def rows() -> Iterator[tuple[dict[str, Any], float]]:
    """Yield pairs as river takes them: what is missing is left out."""
    for x, y in streams.demand(rows=ROWS):
        yield {name: value for name, value in x.items() if value is not None}, y


if __name__ == "__main__":
    main()
