"""
Room sensors: compare with naive baselines first
================================================

Estimate the humidity of a room from its other sensors, once a minute. The stream is an excerpt of the
Occupancy Detection data set: 4,000 minutes of February 2015.
"""

# %%
# Sensor values change slowly, so repeating the last value is hard to beat. Every evaluation includes such
# baselines, on the same rows. A model without lag features is compared with one that has them.

from pathlib import Path

import matplotlib.pyplot as plt

from sapwood import ForestRegressor, HoeffdingTreeRegressor, plot
from sapwood.evaluate import prequential
from sapwood.lags import LaggedModel, Lags

DATA = Path("data") if Path("data").is_dir() else Path("docs/gallery/data")
models = {
    "tree": HoeffdingTreeRegressor(),
    "forest with lags": LaggedModel(ForestRegressor(seed=1), Lags([1, 2, 3], target="Humidity")),
}
found = {}
for name, model in models.items():
    found[name] = prequential(model, DATA / "sensors.csv.gz", target="Humidity")
    print(f"{name}: {found[name].headline}")

# %%
# The evaluation in full:

print(found["forest with lags"])

# %%
# Actual and predicted values over time, and the distribution of the residuals:

figure, axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
plot.predictions(found["forest with lags"], axes[0])
plot.residual_histogram(found["forest with lags"], axes[1])
