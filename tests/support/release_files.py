"""Write example files of all kinds of models: ``python tests/support/release_files.py FOLDER``.

They are made once for each release and kept in ``tests/data``, as later releases have to read them.
"""

import json
import sys
from pathlib import Path

import sapwood
from sapwood.classify import LaggedClassifier
from sapwood.drift import ChangeDetector, Monitor
from sapwood.lags import LaggedModel, Lags, NaiveStack
from serve_cases import class_rows_of, rows_of, target_rows_of

ROWS = 300
TRIED = 20


def models():
    """Return empty models by name, each with the rows that it learns."""
    tree = sapwood.HoeffdingTreeRegressor
    return {
        "tree": (tree(), rows_of),
        "tree-targets": (tree(), target_rows_of),
        "forest": (sapwood.ForestRegressor(members=2), rows_of),
        "adaptive": (sapwood.AdaptiveTreeRegressor(), rows_of),
        "intervals": (sapwood.IntervalRegressor(tree()), rows_of),
        "lags": (LaggedModel(tree(), Lags([1, 2], target="y")), rows_of),
        "lags-intervals": (
            LaggedModel(sapwood.IntervalRegressor(tree()), Lags([1, 2], target="y")),
            rows_of,
        ),
        "hybrid": (
            sapwood.HybridRegressor(
                sapwood.ForestRegressor(members=2), min_rows=200, background=False
            ),
            rows_of,
        ),
        "transformed": (sapwood.TransformedRegressor(tree(), "log1p"), rows_of),
        "sparse": (sapwood.SparseRegressor(tree()), rows_of),
        "loss": (sapwood.LossRegressor(tree(), "huber"), rows_of),
        "recurring": (sapwood.RecurringRegressor(tree()), rows_of),
        "screened": (sapwood.ScreenedRegressor(tree(), features=1), rows_of),
        "views": (sapwood.MultiViewRegressor(tree(), without=["b"]), rows_of),
        "corrected": (sapwood.CorrectedRegressor(tree(track=None)), rows_of),
        "monitored": (sapwood.MonitoredRegressor(tree()), rows_of),
        "naive-stack": (LaggedModel(NaiveStack(tree(), "y.lag2"), Lags([1, 2])), rows_of),
        "tree-classes": (sapwood.HoeffdingTreeClassifier(), class_rows_of),
        "forest-classes": (sapwood.ForestClassifier(members=2), class_rows_of),
        "adaptive-classes": (sapwood.AdaptiveTreeClassifier(), class_rows_of),
        "lags-classes": (
            LaggedClassifier(sapwood.HoeffdingTreeClassifier(), Lags([1, 2])),
            class_rows_of,
        ),
    }


def predictions(model):
    """Return what a model predicts for some rows, in terms of JSON."""
    rows = [item["x"] for item in rows_of(TRIED, seed=9)]
    if hasattr(model, "predict_proba_many"):
        return model.predict_proba_many(rows, record=False).tolist()
    if hasattr(model, "levels"):
        return model.predict_intervals_many(rows)[1].tolist()
    return model.predict_many(rows).tolist()


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    known = {}
    for name, (model, rows) in models().items():
        items = rows(ROWS)
        model.learn_many([item["x"] for item in items], [item["y"] for item in items])
        path = folder / f"{name}.sapwood"
        model.save(path)
        known[name] = predictions(sapwood.load(path))
    items = rows_of(ROWS)
    monitor = Monitor()
    monitor.update_many([item["x"] for item in items], [item["y"] for item in items])
    monitor.save(folder / "monitor.sapwood")
    detector = ChangeDetector()
    for item in items:
        detector.update(item["y"])
    detector.save(folder / "detector.sapwood")
    (folder / "predictions.json").write_text(json.dumps(known), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
