"""Evaluations for plots and reports, made by a plain loop."""

import functools
import time

import numpy as np

import naive_evaluate as naive
import sapwood
from sapwood.evaluate import prequential
from sapwood.evaluate.result import CURVE, Errors, Evaluation, Rejections

FADE, WINDOW = 0.999, 1000


def errors_of(predictions, y, weights=None):
    """The errors of predictions by their definitions."""
    error = np.abs(predictions - y)
    spread = np.average((y - np.average(y, weights=weights)) ** 2, weights=weights)
    square = np.average(error**2, weights=weights)
    r2 = 1 - square / spread if spread > 0 else np.nan
    return Errors(float(np.average(error, weights=weights)), float(np.sqrt(square)), float(r2))


def evaluate(model, X, y, *, stream="stream", target="y", every=500, refused=None):
    """Predict and learn rows, a batch for each point of the curve."""
    rows = len(y)
    predictions = np.empty(rows)
    points, speed, seconds = [], [], 0.0
    for first in range(0, rows, every):
        began = time.perf_counter()
        part = slice(first, min(first + every, rows))
        columns = {name: column[part] for name, column in X.items()}
        predictions[part] = model.predict_learn_many(columns, y[part])
        took = time.perf_counter() - began
        seconds += took
        speed.append((seconds, (part.stop - first) / took))
        points.append(
            (part.stop, *_errors(predictions, y, part.stop), model.n_leaves, model.nbytes)
        )
    refused = refused or Rejections(0, {}, np.array([[rows, 0]]))
    total, weighted, window = (Errors(*_errors(predictions, y, rows)[k : k + 3]) for k in (0, 3, 6))
    return Evaluation(
        stream=stream,
        target=target,
        model=type(model).__name__,
        rows_read=rows + refused.count,
        rows_predicted=rows,
        rows_learned=rows,
        rejected=refused,
        total=total,
        faded=weighted,
        window=window,
        fade=FADE,
        window_rows=WINDOW,
        curve=np.array(points, CURVE),
        speed=np.array(speed),
        seconds=seconds,
        model_seconds=0.75 * seconds,
        leaves=model.n_leaves,
        model_bytes=model.nbytes,
        target_mean=float(y.mean()),
        target_deviation=float(y.std()),
    )


def _errors(predictions, y, rows):
    predictions, y = predictions[:rows], y[:rows]
    weights = FADE ** np.arange(rows)[::-1]
    found = [
        errors_of(predictions, y),
        errors_of(predictions[-20_000:], y[-20_000:], weights[-20_000:]),
        errors_of(predictions[-WINDOW:], y[-WINDOW:]),
    ]
    return [value for each in found for value in (each.mae, each.rmse, each.r2)]


def drifting(rows, seed=1):
    """A stream with a number that matters, a category, a gap, and a change in the middle."""
    rng = np.random.default_rng(seed)
    temp, wind = rng.normal(10, 8, rows), rng.gamma(2.0, 2.0, rows)
    city = rng.choice(["Bergen", "Oslo", "Rome"], rows)
    y = 300 + np.where(city == "Oslo", 9, 4) * np.maximum(15 - temp, 0) + rng.normal(0, 8, rows)
    late = np.arange(rows) > rows // 2
    y = np.where(late, y + 6 * wind - 40, y)
    temp[rng.random(rows) < 0.02] = np.nan
    return {"temp": temp, "wind": wind, "city": city, "noise": rng.random(rows)}, y


@functools.cache
def drifting_run(rows=100_000):
    """An evaluation of a tree on a drifting stream, and the tree."""
    X, y = drifting(rows)
    tree = sapwood.HoeffdingTreeRegressor()
    where = np.column_stack([np.linspace(rows / 40, rows, 40), np.zeros(40)]).astype(np.int64)
    where[[3, 20, 21], 1] = 2, 11, 4
    refused = Rejections(17, {"target is missing": 12, "not a number": 5}, where)
    made = evaluate(tree, X, y, stream="drifting", target="demand", refused=refused)
    return made, tree


@functools.cache
def timed_run(rows=20_000):
    """An evaluation of a tree on the same rows, an hour apart from 2024 on, and the tree."""
    X, y = drifting(rows)
    columns = {name: column.tolist() for name, column in X.items()}
    stream = naive.ListStream(
        [
            ({name: values[row] for name, values in columns.items()}, float(y[row]), HOURS[row])
            for row in range(rows)
        ]
    )
    stream.name, stream.target = "/data/a folder/drifting.csv", "demand"
    tree = sapwood.HoeffdingTreeRegressor()
    return prequential(tree, stream), tree


START = 1_704_067_200.0
HOURS = (START + 3600.0 * np.arange(20_000)).tolist()
