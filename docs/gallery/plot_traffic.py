"""
Traffic volume: labels that arrive a day late
=============================================

Predict the traffic on a motorway from the weather and the hour. The stream is an excerpt of the Metro
Interstate Traffic Volume data set: 4,000 hours from October 2012 on, with text columns.
"""

# %%
# In production, labels often arrive late. ``delay=24`` means: a row is predicted when it arrives, and its
# label is scored and learned 24 rows later.

from pathlib import Path

import matplotlib.pyplot as plt

from sapwood import ForestRegressor, HoeffdingTreeRegressor, plot
from sapwood.evaluate import prequential
from sapwood.lags import LaggedModel, Lags

DATA = Path("data") if Path("data").is_dir() else Path("docs/gallery/data")
week = Lags([168], target="traffic_volume")
runs = {
    "tree, labels at once": (HoeffdingTreeRegressor(), None),
    "tree, 24 hours late": (HoeffdingTreeRegressor(), 24),
    "forest with lag, 24 hours late": (LaggedModel(ForestRegressor(seed=1), week), 24),
}
found = {}
for name, (model, delay) in runs.items():
    found[name] = prequential(model, DATA / "traffic.csv.gz", target="traffic_volume", delay=delay)
    print(f"{name}: {found[name].headline}")

# %%
# With delayed labels the tree is worse than the value one week earlier: an evaluation without delay would
# have hidden that. A forest with that value as a lag feature is better, once it has seen a few weeks.

figure, axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
plot.learning_curve(found, "mae", axes[0])
plot.actual_vs_predicted(found["forest with lag, 24 hours late"], axes[1])

# %%
# Where are the errors? By hour of the day, the mean residual shows a bias, the band 80 % of the rows.

figure, ax = plt.subplots(figsize=(5, 3.6), layout="constrained")
plot.errors_by_hour(found["forest with lag, 24 hours late"], ax)
