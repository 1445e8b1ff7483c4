"""
Bike sharing: hourly forecasts with prediction intervals
========================================================

Forecast the rentals of the next hour. The stream is an excerpt of the Bike Sharing data set: 4,000 hours
from January 2011 on. Each hour is predicted before its label is learned (prequential evaluation).
"""

# %%
# A forest is wrapped twice: by conformal prediction intervals, and by lag features. The lags are the
# rentals 1, 2, 24 and 168 hours earlier.

from pathlib import Path

import matplotlib.pyplot as plt

from sapwood import ForestRegressor, IntervalRegressor, plot
from sapwood.evaluate import prequential
from sapwood.lags import LaggedModel, Lags

DATA = Path("data") if Path("data").is_dir() else Path("docs/gallery/data")
lags = Lags([1, 2, 24, 168], target="cnt")
model = LaggedModel(IntervalRegressor(ForestRegressor(seed=1), levels=(0.9,)), lags)
found = prequential(model, DATA / "bike.csv.gz", target="cnt")
print(found)

# %%
# The coverage of the 90 % prediction intervals is close to its nominal level over the whole stream.

figure, axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
plot.band(found, axes[0])
plot.coverage(found, axes[1])

# %%
# Which features matter? Permutation feature importance is estimated while the forest learns. The forest is
# the innermost of the three models.

figure, ax = plt.subplots(figsize=(5, 3.6), layout="constrained")
plot.importances(model.model.model.feature_importances, ax)
