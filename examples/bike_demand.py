"""Bike demand in ten lines: how well the next hour can be predicted, and what tells it.

``python examples/bike_demand.py hour.csv`` reads the hourly file of UCI's Bike Sharing data set.
Its columns casual and registered add up to the target, so they are left out.
"""

import sys

import sapwood
from sapwood.evaluate import prequential
from sapwood.lags import LaggedModel, Lags
from sapwood.streams import open_stream

rows = open_stream(sys.argv[1], target="cnt", drop=["instant", "casual", "registered"])
model = LaggedModel(sapwood.HoeffdingTreeRegressor(), Lags([1, 24, 168], target="cnt"))
found = prequential(model, rows, progress=True)
print(found)
shares = sorted(model.feature_importances.items(), key=lambda pair: -pair[1])
print(*(f"{share:7.1%}  {name}" for name, share in shares[:5]), sep="\n")
