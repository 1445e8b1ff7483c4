"""An evaluation of several targets: each has the score that it would have by hand."""

import json

import numpy as np
import pytest

import sapwood
from sapwood.evaluate import prequential
from sapwood.evaluate.baselines import RunningMean
from sapwood.evaluate.checkpoint import CheckpointFile
from sapwood.evaluate.prequential import Prequential
from sapwood.report import write_report
from sapwood.streams.memory import ArrayStream, as_stream
from sapwood.streams.stream import BadRowError, StreamError
from target_cases import NAMES, arrays_of, stream_of


def tables(rows=600, kind="gaps"):
    X, Y, _ = arrays_of(stream_of(kind, rows))
    Y[:, 2][::5] = np.nan  # so that some rows have no target at all
    return X, Y


def tree(**parameters):
    return sapwood.HoeffdingTreeRegressor(grace_period=50, **parameters)


def by_hand(X, Y):
    """What a tree predicts for each row before it learns it, if it has anything to learn."""
    model, said = tree(), np.zeros(Y.shape)
    for row, (x, y) in enumerate(zip(X, Y, strict=True)):
        if model.targets:
            said[row] = model.predict_many(x[np.newaxis])[0]
        if not np.isnan(y).all():
            model.learn_many(x[np.newaxis], y[np.newaxis])
    return said


def test_the_scores_are_those_of_a_plain_loop():
    X, Y = tables()
    said = by_hand(X, Y)
    found = prequential(tree(), X, dict(zip(NAMES, Y.T, strict=True)), window=100)
    assert list(found.targets) == list(NAMES)
    shares = []
    for place, name in enumerate(NAMES):
        own, known = found.targets[name], ~np.isnan(Y[:, place])
        y, errors = Y[known, place], said[known, place] - Y[known, place]
        assert own.rows_scored == own.rows_learned == known.sum()
        assert own.rows_without_target == (~known).sum()
        np.testing.assert_allclose(own.total.mae, np.abs(errors).mean(), rtol=1e-9)
        np.testing.assert_allclose(own.total.rmse, np.sqrt((errors**2).mean()), rtol=1e-9)
        np.testing.assert_allclose(own.total.r2, 1 - (errors**2).mean() / y.var(), rtol=1e-9)
        np.testing.assert_allclose(own.window.mae, np.abs(errors[-100:]).mean(), rtol=1e-9)
        assert own.curve["row"].tolist() == [*range(100, known.sum() + 1, 100), known.sum()]
        assert set(own.baselines) == {"last", "mean", "faded_mean"}
        shares.append([own.total.mae / y.std(), own.total.rmse / y.std(), own.total.r2])
    total = found.total
    np.testing.assert_allclose([total.mae, total.rmse, total.r2], np.mean(shares, axis=0))
    nothing = np.isnan(Y).all(axis=1).sum()
    assert nothing > 5
    assert (found.rows_read, found.rows_learned) == (600, 600 - nothing)
    assert found.rows_without_target == nothing


def test_what_is_told_of_it():
    X, Y = tables()
    model = tree()
    found = prequential(model, X, Y)
    assert list(found.targets) == ["0", "1", "2"]
    assert found.headline == f"mean R² {found.total.r2:.4f} over 3 targets"
    text = repr(found).splitlines()
    assert [line.split()[0] for line in text[3:7]] == ["0", "1", "2", "mean,"]
    assert "<table" in found._repr_html_()
    told = json.loads(json.dumps(found.to_dict()))
    assert told["targets"]["1"]["total"]["r2"] == found.targets["1"].total.r2
    assert told["total"]["r2"] == np.mean([own["total"]["r2"] for own in told["targets"].values()])


def test_the_report_has_a_line_and_a_curve_for_each_target(tmp_path):
    X, Y = tables()
    model = tree()
    found = prequential(model, X, dict(zip(("<i>x", "wet", "c"), Y.T, strict=True)))
    write_report(tmp_path / "report.html", found, model)
    page = (tmp_path / "report.html").read_text()
    assert "Mean R²" in page
    assert "RMSE of &lt;i&gt;x" in page
    assert "<i>x" not in page
    assert "wet 1" in page.partition('<section id="tree">')[2]  # the means of a leaf, all near 110
    assert "nan" not in page.partition('<section id="tree">')[2].partition("</section>")[0]
    for own in found.targets.values():
        assert f"{own.rows_scored:,}" in page


def test_a_run_that_goes_on_from_a_checkpoint_ends_as_one_without(tmp_path):
    X, Y = tables()
    whole = Prequential(tree(), ArrayStream(X, Y))
    for _ in whole.steps(100):
        pass
    run = Prequential(tree(), ArrayStream(X, Y))
    file = CheckpointFile(tmp_path / "run.checkpoint")
    for number, _ in enumerate(run.steps(100)):
        if number == 2:
            file.save(run, {}, {})
            break
    saved = file.load(run.model)
    other = Prequential(saved.model, ArrayStream(X, Y))
    saved.resume(other)
    assert other.rows_read == 300
    for _ in other.steps(100):
        pass
    assert other.model.to_bytes() == whole.model.to_bytes()
    first, second = whole.finish(), other.finish()
    for name, own in first.targets.items():
        assert own.total == second.targets[name].total
        assert own.faded == second.targets[name].faded
        assert own.curve.tolist() == second.targets[name].curve.tolist()
        for field in ("y", "prediction"):
            assert own.recent[field].tolist() == second.targets[name].recent[field].tolist()
    assert first.total == second.total


def test_rows_that_are_bad_tell_which_target_is():
    X, Y = tables(200, "plain")
    Y[17, 1] = np.inf
    with pytest.raises(BadRowError, match=r"row 18, column 'b'.* finite"):
        prequential(tree(), X, dict(zip(NAMES, Y.T, strict=True)))
    found = prequential(tree(), X, dict(zip(NAMES, Y.T, strict=True)), on_bad_row="skip")
    assert (found.rows_read, found.rows_learned, found.rejected.count) == (200, 199, 1)


def test_files_with_several_targets(tmp_path):
    X, Y = tables(300, "plain")
    lines = ["x,z,a,b"]
    lines += [
        f"{x[0]!r},{x[3]!r},{y[0]!r},{y[1]!r}" for x, y in zip(X.tolist(), Y.tolist(), strict=True)
    ]
    path = tmp_path / "rows.csv"
    path.write_text("\n".join([*lines, ""]))
    found = prequential(tree(), path, target=["b", "a"])
    plain = prequential(tree(), {"x": X[:, 0], "z": X[:, 3]}, {"b": Y[:, 1], "a": Y[:, 0]})
    assert {name: own.total for name, own in found.targets.items()} == {
        name: own.total for name, own in plain.targets.items()
    }
    with pytest.raises(
        StreamError, match="has no column 'c' to predict: there are 'x', 'z', 'a', 'b'"
    ):
        prequential(tree(), path, target=["a", "c"])
    with pytest.raises(StreamError, match="'a' is named twice"):
        prequential(tree(), path, target=["a", "a"])


MODELS = {
    "tree": tree,
    "forest": lambda: sapwood.ForestRegressor(members=3, grace_period=50, threads=1),
    "adaptive": lambda: sapwood.AdaptiveTreeRegressor(grace_period=50, threads=1),
}


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("delay", [1, 24])
def test_labels_that_are_late_are_those_of_a_loop(kind, delay):
    X, Y = tables(300, "gaps")
    Y[40:45] = np.nan  # rows without any
    model, twin = MODELS[kind](), MODELS[kind]()
    found = prequential(model, X, Y, delay=delay)
    waiting, said = [], []
    for number, (x, y) in enumerate(zip(X, Y, strict=True)):
        row = dict(zip(range(len(x)), x.tolist(), strict=True))
        told = twin.predict_one(row, id=number)
        said.append(list(told.values()) if twin.targets else [0.0] * Y.shape[1])
        waiting.append((row, y, number))
        if len(waiting) > delay:
            learn(twin, *waiting.pop(0))
    for row in waiting:
        learn(twin, *row)
    assert model.to_bytes() == twin.to_bytes()
    said = np.array(said)
    for place, own in enumerate(found.targets.values()):
        known = ~np.isnan(Y[:, place])
        errors = said[known, place] - Y[known, place]
        assert own.total.mae == pytest.approx(np.abs(errors).mean(), rel=1e-12)
        assert own.rows_learned == known.sum()
        assert own.rows_without_target == (~known).sum()
        mean = [0.0] * (delay + 1)
        for row in range(1, 300 - delay):
            seen = Y[:row, place][~np.isnan(Y[:row, place])]
            mean.append(seen.mean() if len(seen) else 0.0)
        errors = np.array(mean)[:300][known] - Y[known, place]
        assert own.baselines["mean"].total.mae == pytest.approx(np.abs(errors).mean(), rel=1e-9)
    is_labelled = ~np.isnan(Y).all(axis=1)
    assert found.rows_learned == is_labelled.sum() < 296
    assert found.rows_without_target == (~is_labelled).sum()


def learn(model, row, y, number):
    if not np.isnan(y).all():
        model.learn_one(row, dict(enumerate(y.tolist())), id=number)


def test_a_run_with_late_labels_goes_on_from_a_checkpoint(tmp_path):
    X, Y = tables(400, "gaps")
    X = {f"x{place}": X[:, place] for place in range(X.shape[1])}
    Y[100:105] = np.nan
    whole = Prequential(tree(), ArrayStream(X, Y), delay=30)
    for _ in whole.steps(50):
        pass
    expected = whole.finish()
    run = Prequential(tree(), ArrayStream(X, Y), delay=30)
    steps = run.steps(50)
    for _ in range(3):
        next(steps)
    header, arrays = run.to_state()
    header = json.loads(json.dumps(header))
    later = Prequential(run.model.copy(), ArrayStream(X, Y), delay=30)
    later.restore(header, arrays)
    for _ in later.steps(70):
        pass
    found = later.finish()
    for name, own in expected.targets.items():
        assert found.targets[name].total == own.total
        assert found.targets[name].baselines == own.baselines
    assert later.model.to_bytes() == whole.model.to_bytes()
    text = arrays["delay"].tobytes().replace(b'"prediction": [', b'"prediction": [1.0, ', 1)
    with pytest.raises(TypeError, match="is no prediction of"):
        later.restore(header, {**arrays, "delay": np.frombuffer(text, np.uint8)})


def test_what_is_not_there_for_several_targets_is_refused():
    X, Y = tables(100, "plain")
    with pytest.raises(ValueError, match="this RunningMean learns one target, and there are 3"):
        prequential(RunningMean(), X, Y)
    monitor = sapwood.drift.Monitor()
    monitor.update_many(X, Y[:, 0])
    with pytest.raises(
        ValueError, match="the monitor has seen 100 rows: several targets need a new"
    ):
        prequential(tree(), X, Y, monitor=monitor)
    with pytest.raises(StreamError, match="losses and keep_predictions are for one target"):
        prequential(tree(), X, Y, losses=["mape"])
    model = tree()
    model.learn_many(X, Y)
    with pytest.raises(ValueError, match="the targets of the model are 0, 1, 2: name all"):
        prequential(model, X, Y[:, 0])
    with pytest.raises(ValueError, match="targets of this HoeffdingTreeRegressor are 0, 1, 2"):
        prequential(model, X, Y[:, :2])
    one = tree()
    one.learn_many(X, Y[:, 0])
    with pytest.raises(ValueError, match="has learned one target, and there are 3"):
        prequential(one, X, Y)
    with pytest.raises(ValueError, match="targets of the model are 0, 1, 2: name them in lags"):
        sapwood.lags.LaggedModel(model, sapwood.lags.Lags([1]))


def drifting(rows=6000, at=4000):
    """A feature of which only target b depends, and which changes; target a grows noisy."""
    rng = np.random.default_rng(5)
    x = {"u": rng.random(rows), "v": rng.random(rows)}
    later = np.arange(rows) >= at
    a = 3 * x["u"] + np.where(later, 2.0, 0.1) * rng.normal(size=rows)
    b = np.where(later, 40.0, 4.0) * x["v"] + 0.1 * rng.normal(size=rows)
    x["v"] += 5.0 * later
    b[rng.random(rows) < 0.2] = np.nan
    return x, {"a": a, "b": b}


@pytest.mark.parametrize("delay", [None, 50])
@pytest.mark.usefixtures("unsaved_charts")
def test_drift_alerts_name_the_target_and_watch_features_once(delay):
    x, y = drifting()
    listed = []
    monitor = sapwood.drift.Monitor(100_000)
    found = prequential(tree(), x, y, monitor=monitor, delay=delay, listener=listed.append)
    assert listed == list(found.drift_events)
    assert [alarm.row for alarm in listed] == sorted(alarm.row for alarm in listed)
    features = [alarm for alarm in listed if alarm.what == "feature"]
    assert [(alarm.name, alarm.target) for alarm in features] == [("v", None)]
    for name in "ab":
        own = [alarm for alarm in listed if alarm.target == name]
        assert {"error", "target"} <= {alarm.what for alarm in own}
        assert all(alarm.words.startswith(f"{name}: ") for alarm in own)
        assert all(alarm.since > 3500 for alarm in own)  # counted over all rows, gaps included
        assert list(found.targets[name].drift_events) == own
    # Each is what a monitor of that target alone finds at its part of the rate of false alarms.
    if delay is None:
        predictions = tree().predict_learn_many(x, y)
        first = sapwood.drift.Monitor(200_000, "a").update_many(x, y["a"], predictions["a"])
        nothing = np.empty((len(y["b"]), 0))
        second = sapwood.drift.Monitor(200_000, "b").update_many(nothing, y["b"], predictions["b"])
        both = sorted([*first, *second], key=lambda alarm: alarm.row)
        assert [(each.what, each.row, each.since) for each in both] == [
            (each.what, each.row, each.since) for each in listed
        ]


def test_drift_alerts_do_not_depend_on_the_sizes_of_steps_and_are_resumed():
    x, y = drifting()
    whole = prequential(tree(), x, y, monitor=sapwood.drift.Monitor(100_000)).drift_events
    assert whole
    run = Prequential(tree(), as_stream(x, y), monitor=sapwood.drift.Monitor(100_000))
    steps = run.steps(700)
    for _ in range(7):
        next(steps)
    header, arrays = run.to_state()
    later = Prequential(run.model, as_stream(x, y), monitor=sapwood.drift.Monitor(100_000))
    later.restore(json.loads(json.dumps(header)), arrays)
    for _ in later.steps(900):
        pass
    assert later.finish().drift_events == whole
    without = Prequential(tree(), as_stream(x, y))
    with pytest.raises(ValueError, match="only one of the saved run and this one had a monitor"):
        without.restore(header, arrays)
