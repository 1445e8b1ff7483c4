"""
Migrating from river: the same loop, a faster tree
==================================================

Replace a model of river by one of Sapwood. The loop stays: `predict_one`, then `learn_one`. The stream is
the excerpt of the Bike Sharing data set.
"""

# %%
# Read the rows once, as dicts, as river does.

import csv
import gzip
import time
from pathlib import Path

import matplotlib.pyplot as plt
from river import metrics, tree

from sapwood import HoeffdingTreeRegressor

DATA = Path("data") if Path("data").is_dir() else Path("docs/gallery/data")
with gzip.open(DATA / "bike.csv.gz", "rt", newline="", encoding="utf-8") as file:
    rows = [{k: float(v) for k, v in row.items() if k != "dteday"} for row in csv.DictReader(file)]
targets = [row.pop("cnt") for row in rows]

# %%
# The same function evaluates both models with a metric of river.


def evaluated(model):
    """Return the mean absolute error over the stream, and the seconds that it took."""
    metric, curve, start = metrics.MAE(), [], time.perf_counter()
    for x, y in zip(rows, targets, strict=True):
        metric.update(y, model.predict_one(x))
        model.learn_one(x, y)
        curve.append(metric.get())
    return curve, time.perf_counter() - start


models = {"river": tree.HoeffdingTreeRegressor(), "Sapwood": HoeffdingTreeRegressor()}
curves = {}
for name, model in models.items():
    curves[name], seconds = evaluated(model)
    print(f"{name}: MAE {curves[name][-1]:.1f}, {1e6 * seconds / len(rows):.0f} µs a row")

# %%
# The guide on migrating from river lists the names of both libraries side by side.

figure, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
for name, curve in curves.items():
    ax.plot(curve, label=name)
best = max(map(max, (curve[500:] for curve in curves.values())))
ax.set(xlabel="rows", ylabel="MAE over all rows so far", ylim=(0, min(1.2 * best, 200)))
ax.legend()
