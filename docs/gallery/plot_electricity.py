"""
Electricity demand: one model for many series
=============================================

Forecast the hourly demand of three cities with one model. The stream is generated (`demand`), so that its
patterns are known: seasons, hours and weather act differently in each city.
"""

# %%
# ``by="city"`` gives each row the lags of its own city. One forest learns from all cities.

import matplotlib.pyplot as plt

from sapwood import AdaptiveTreeRegressor, ForestRegressor, HoeffdingTreeRegressor, plot, streams
from sapwood.evaluate import prequential
from sapwood.lags import LaggedModel, Lags

models = {
    "tree": HoeffdingTreeRegressor(),
    "tree with lags": LaggedModel(
        HoeffdingTreeRegressor(), Lags([1, 24], by="city", target="demand")
    ),
    "adaptive tree with lags": LaggedModel(
        AdaptiveTreeRegressor(), Lags([1, 24], by="city", target="demand")
    ),
    "forest with lags": LaggedModel(
        ForestRegressor(seed=1), Lags([1, 24], by="city", target="demand")
    ),
}
found = {name: prequential(model, streams.demand(rows=6000)) for name, model in models.items()}
for name, each in found.items():
    print(f"{name:24} RMSE {each.total.rmse:6.2f}  R² {each.total.r2:.3f}")

# %%
# The exponentially weighted error shows how each model recovers from changes.

figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
plot.learning_curve(found, "rmse", ax)
