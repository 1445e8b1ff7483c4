"""The bounds of several targets in evaluations, on the command line and in reports."""

import json

import numpy as np
import pytest

import sapwood
from cli_cases import invoke, read_csv
from sapwood.evaluate import prequential
from sapwood.evaluate.checkpoint import CheckpointFile
from sapwood.evaluate.prequential import Prequential
from sapwood.report import write_report
from sapwood.streams.memory import ArrayStream
from target_cases import arrays_of, stream_of

LEVELS = (0.5, 0.9)
NAMES = ("a", "b", "c")


def tables(rows=500):
    X, Y, _ = arrays_of(stream_of("gaps", rows))
    Y[:, 2][::5] = np.nan  # so that some rows have no target at all
    return X, Y


def bounded(kind=sapwood.HoeffdingTreeRegressor):
    return sapwood.IntervalRegressor(kind(grace_period=50), LEVELS)


def run_of(delay=None):
    X, Y = tables()
    stream = ArrayStream(X, dict(zip(NAMES, Y.T, strict=True)))
    return Prequential(bounded(), stream, delay=delay)


def by_hand(late=0):
    """The bounds that are said of each row, which is learned so many rows later."""
    X, Y = tables()
    model, said = bounded(), np.full((*Y.shape, 2, 2), np.nan)
    for place in range(len(X) + late):
        if place < len(X):
            own = {"id": place} if late else {}
            told = model.predict_intervals_one(dict(enumerate(X[place])), **own)[1]
            said[place] = [*told.values()] if isinstance(told, dict) else np.nan
        old = place - late
        if old >= 0 and not np.isnan(Y[old]).all():
            own = {"id": old} if late else {}
            y = dict(zip(NAMES, Y[old], strict=True))
            model.learn_one(dict(enumerate(X[old])), y, **own)
    return said, Y


def check(found, said, Y):
    """Whether scores are those of bounds that were said."""
    assert found.intervals is None
    for place, name in enumerate(NAMES):
        own = found.targets[name].intervals
        for at, level in enumerate(LEVELS):
            lower, upper = said[:, place, at].T
            known = ~np.isnan(Y[:, place]) & ~np.isnan(lower)
            inside = (Y[known, place] >= lower[known]) & (Y[known, place] <= upper[known])
            total = own.levels[level].total
            assert total.coverage == pytest.approx(inside.mean())
            assert total.width == pytest.approx((upper - lower)[known].mean())


@pytest.mark.parametrize("late", [None, 30])
def test_scores_are_those_of_each_target_by_hand(late):
    run = run_of(late)
    told = []
    for step in run.steps(64):
        told += [part.bounds for part in step.predicted]
    said, Y = by_hand(late or 0)
    assert np.array_equal(np.concatenate(told), said, equal_nan=True)
    check(run.finish(), said, Y)


def test_targets_of_a_model_in_another_order_keep_their_bounds():
    X, Y = tables()
    model, twin = bounded(), bounded()
    for each, order in ((model, [2, 0, 1]), (twin, [0, 1, 2])):
        known = np.flatnonzero(~np.isnan(Y[:200]).all(axis=1))
        each.learn_many(X[known], {NAMES[place]: Y[known, place] for place in order})
    later = X[200:], dict(zip(NAMES, Y[200:].T, strict=True))
    found, right = (prequential(each, *later) for each in (model, twin))
    for name in NAMES:
        assert found.targets[name].intervals.levels == right.targets[name].intervals.levels


def test_results_are_told_in_words_and_in_json():
    X, Y = tables()
    found = prequential(bounded(), X, dict(zip(NAMES, Y.T, strict=True)))
    each = found.targets["b"].intervals.levels[0.9].total
    assert f"prediction intervals 0.9 around b: coverage {each.coverage:.4f}" in repr(found)
    told = json.loads(json.dumps(found.to_dict()))
    assert "intervals" not in told
    assert told["targets"]["b"]["intervals"]["0.9"]["total"]["coverage"] == each.coverage


@pytest.mark.parametrize("late", [None, 30])
def test_a_run_that_is_resumed_tells_the_same(tmp_path, late):
    whole, first, second = (run_of(late) for _ in range(3))
    for _ in whole.steps():
        pass
    file = CheckpointFile(tmp_path / "run")
    for _ in first.steps(70):
        if first.rows_read == 210:
            file.save(first, {}, {})
            break
    saved = file.load()
    second.model = saved.model
    saved.resume(second)
    for _ in second.steps():
        pass
    found, right = second.finish(), whole.finish()
    for name in NAMES:
        own, twin = found.targets[name].intervals, right.targets[name].intervals
        assert own.levels == twin.levels
        assert own.curve.tobytes() == twin.curve.tobytes()
    assert second.model.to_bytes() == whole.model.to_bytes()


@pytest.mark.parametrize(
    "kind",
    [sapwood.HoeffdingTreeRegressor, sapwood.AdaptiveTreeRegressor],
    ids=["tree", "adaptive"],
)
def test_the_report_tells_the_bounds_of_each_target(tmp_path, kind):
    X, Y = tables()
    model = bounded(kind)
    found = prequential(model, X, dict(zip(NAMES, Y.T, strict=True)))
    write_report(tmp_path / "page.html", found, model)
    page = (tmp_path / "page.html").read_text()
    for place, name in enumerate(NAMES):
        assert f"{name}: coverage, exponentially weighted" in page
        assert f"band-of-target-{place}" in page
        assert f"width of {name}" in page
    assert page.count(f"{found.targets['a'].intervals.levels[0.9].total.coverage:.4f}"[:5]) >= 1
    write_report(tmp_path / "page.html", found)
    assert "width of a" not in (tmp_path / "page.html").read_text()


# -- the command line ------------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, Y = tables(400)
    lines = ["x0,x1,x2,x3,a,b"]
    for row in np.column_stack([X, Y[:, :2]]).tolist():
        lines.append(",".join("" if np.isnan(value) else repr(value) for value in row))
    (tmp_path / "rows.csv").write_text("\n".join([*lines, ""]))
    return tmp_path / "rows.csv"


TARGETS = ("-t", "a", "-t", "b", "--interval", "0.9")


def test_evaluate_tells_bounds_of_each_target(file):
    model = sapwood.IntervalRegressor(sapwood.HoeffdingTreeRegressor(max_bytes=12_000_000), [0.9])
    X, Y = tables(400)
    features = {f"x{place}": column for place, column in enumerate(X.T)}
    right = prequential(model, features, {"a": Y[:, 0], "b": Y[:, 1]})
    saved = ("--predictions", "said.csv", "--curve", "curve.csv", "--save", "model.sap")
    found = invoke("evaluate", file, *TARGETS, *saved, "--json")
    assert found.code == 0, found.stderr
    for name, own in right.targets.items():
        told = found.json()["targets"][name]["intervals"]["0.9"]["total"]
        assert told == own.intervals.levels[0.9].total._asdict()
    names = [
        f"{what}_{name}" for name in "ab" for what in ("target", "prediction", "lower", "upper")
    ]
    rows = read_csv("said.csv")
    assert list(rows[0]) == ["line", *names]
    assert rows[5]["lower_a"] == ""
    assert float(rows[-1]["lower_a"]) < float(rows[-1]["prediction_a"]) < float(rows[-1]["upper_a"])
    assert "weighted_coverage_0.9" in read_csv("curve.csv")[0]
    shown = invoke("evaluate", file, *TARGETS)
    assert "intervals of" in shown.stdout
    predicted = invoke("predict", "model.sap", file, "--interval", "0.9")
    assert predicted.code == 0, predicted.stderr
    told = [*predicted.stdout.splitlines()]
    kept = [name for name in names if not name.startswith("target")]
    assert told[0] == ",".join(kept)
    loaded = sapwood.load("model.sap")
    row = {name: float(column[7]) for name, column in features.items() if not np.isnan(column[7])}
    expected = loaded.predict_interval_one(row, 0.9)
    said = dict(zip(kept, map(float, told[8].split(",")), strict=True))
    assert (said["lower_b"], said["prediction_b"], said["upper_b"]) == expected["b"]
    two = invoke("evaluate", file, *TARGETS, "--interval", "0.5", "--predictions", "two.csv")
    assert two.code == 0
    assert list(read_csv("two.csv")[0])[3:5] == ["lower_a_0.5", "upper_a_0.5"]


def test_a_model_with_bounds_goes_on_and_others_refuse(file):
    assert invoke("train", file, *TARGETS, "--save", "one.sap").code == 0
    again = invoke("train", file, *TARGETS, "-m", "one.sap", "--save", "two.sap")
    assert again.code == 0, again.stderr
    assert (
        sapwood.load("two.sap").model.summary.rows == 2 * sapwood.load("one.sap").model.summary.rows
    )
    for typed, words in (
        (["-t", "a", "-m", "one.sap"], "one.sap predicts a, b"),
        (["-t", "a", "-t", "x1", "-m", "one.sap"], "one.sap predicts a, b"),
        (["-t", "a", "-t", "b", "-m", "mean", "--interval", "0.9"], "learns one target"),
        (
            ["-t", "a", "-t", "b", "-m", "one.sap", "--interval", "0.5"],
            "has prediction intervals of 0.9",
        ),
    ):
        found = invoke("train", file, *typed, "--save", "other.sap")
        assert (found.code, found.stderr.count("\n")) == (2, 1), found.stderr
        assert words in found.stderr
