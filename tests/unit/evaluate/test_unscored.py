"""Predictions of other people's models that are no numbers: counted, told, and not scored."""

import json
import math
from dataclasses import astuple, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive_evaluate as naive
from cli_cases import invoke, read_csv, write_csv
from sapwood.evaluate import Prequential, prequential
from sapwood.report import render
from sapwood.storage import container

OTHERS = """
class Wild:
    def __init__(self, first=17, last=17, value=float("nan")):
        self.rows, self.first, self.last, self.value = 0, first, last, value

    def predict_one(self, x):
        return self.value if self.first <= self.rows + 1 <= self.last else 0.5

    def learn_one(self, x, y):
        self.rows += 1
"""
NO_NUMBERS = [math.nan, math.inf, -math.inf, 1e200]


class Told:
    """A model that predicts what it is told to."""

    def __init__(self, predictions):
        self.predictions = iter(predictions)

    def predict_one(self, x):
        return next(self.predictions)

    def learn_one(self, x, y):
        pass


some_predictions = st.lists(
    st.one_of(st.floats(-9, 9), st.sampled_from(NO_NUMBERS)), min_size=1, max_size=450
)


@given(
    predictions=some_predictions,
    most_rows=st.integers(1, 500),
    delay=st.sampled_from([None, 1, 30]),
    stop=st.integers(1, 5),
)
def test_the_errors_are_those_of_the_other_rows(predictions, most_rows, delay, stop):
    y = [float(row % 7) for row in range(len(predictions))]
    rows = [({"a": 1.0}, target) for target in y]
    stream, model = naive.ListStream(rows, file_rows=100), Told(predictions)
    run = Prequential(model, stream, delay=delay, fade=0.9, window=20)
    parts = []
    for number, step in enumerate(run.steps(most_rows), 1):
        parts += step.predicted
        if number == stop:
            break
    saved = container.unpack(container.pack("test", *run.to_state()), "test")
    run = Prequential(model, stream, delay=delay, fade=0.9, window=20)
    run.restore(*saved)
    parts += [part for step in run.steps(most_rows) for part in step.predicted]
    found = run.finish()

    told = [prediction for part in parts for prediction in part[2].tolist()]
    np.testing.assert_equal(told, predictions)
    assert found.rows_read == found.rows_predicted == found.rows_learned == len(rows)
    assert found.rejected.count == 0
    bad = [row for row, value in enumerate(predictions) if not abs(value) <= 1e140]
    assert found.unscored == len(bad)
    first = f"file {bad[0] // 100}, line {bad[0] % 100 + 1}" if bad else None
    assert found.first_unscored == first
    kept = [pair for row, pair in enumerate(zip(predictions, y, strict=True)) if row not in bad]
    scored, right = [list(column) for column in zip(*kept, strict=True)] if kept else ([], [])
    assert found.curve["row"].tolist() == naive.curve_rows(len(kept))
    for errors, expected in (
        (found.total, naive.errors(scored, right)),
        (found.faded, naive.faded_errors(scored, right, 0.9)),
        (found.window, naive.window_errors(scored, right, 20)),
    ):
        np.testing.assert_allclose(astuple(errors)[:2], expected[:2], rtol=1e-9)


def test_a_model_that_never_predicts_a_number_has_no_errors():
    rows = [({"a": 1.0}, float(row)) for row in range(300)]
    found = prequential(Told([math.nan] * 300), naive.ListStream(rows))
    np.testing.assert_equal(astuple(found.total), (math.nan,) * 3)
    assert (found.unscored, len(found.curve)) == (300, 0)


def test_a_target_that_is_too_large_for_a_score_is_not_scored():
    rows = [({"a": 1.0}, 1e200 if row == 4 else 1.0) for row in range(9)]
    found = prequential(Told([0.0] * 9), naive.ListStream(rows))
    assert (found.unscored, found.first_unscored) == (1, "file 0, line 5")
    assert found.total.rmse == 1.0


def test_what_no_run_has_saved_is_refused():
    run = Prequential(Told([1.0]), naive.ListStream([({"a": 1.0}, 1.0)]))
    header, arrays = run.to_state()
    for name in ("first_unscored", "first_refused"):
        with pytest.raises(TypeError, match="the first row not scored or rejected is 7"):
            run.restore({**header, name: 7}, arrays)
    header.pop("first_refused")  # as in checkpoints of older versions
    run.restore(header, arrays)
    assert run.first_rejected is None
    with pytest.warns(DeprecationWarning, match="use first_rejected"):
        assert run.first_refused is None


# -- where it is told -----------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wild_models.py").write_text(OTHERS)
    write_csv(tmp_path / "a.csv", [f"{place % 7},{place % 5}" for place in range(600)], "a,y")
    return tmp_path


WORDS = "prediction or target is not finite or beyond 1e140"


@pytest.mark.parametrize("late", [(), ("--delay", "30")])
def test_evaluate_tells_it_on_the_way_and_in_the_end(folder, late) -> None:
    model = ("-m", "wild_models:Wild:first=17,last=18", *late)
    ended = invoke("evaluate", "a.csv", "-t", "y", *model, "--predictions", "p.csv")
    assert ended.code == 0
    rows = 31 if late else 1
    first = f"a.csv, line {17 + rows}"
    note = f"sapwood: {first}: {WORDS}; such rows are learned and counted, but not scored"
    assert ended.stderr.splitlines().count(note) == 1
    lines = ended.stdout.splitlines()
    assert "rows: 600 read, 600 predicted, 600 learned, 0 rejected" in lines
    end = f"the first at {first}: the errors are those of the others"
    assert f"NOT SCORED: 2 of 600 rows, whose {WORDS}, {end}" in lines
    told = [row["prediction"] for row in read_csv("p.csv")]
    assert [place for place, text in enumerate(told) if text == "nan"] == [15 + rows, 16 + rows]
    found = invoke("evaluate", "a.csv", "-t", "y", *model, "--json").json()
    assert (found["rows"]["unscored"], found["rows"]["first_unscored"]) == (2, first)
    errors = [abs(0.5 - place % 5) for place, text in enumerate(told) if text != "nan"]
    assert found["total"]["mae"] == pytest.approx(sum(errors) / 598)


def test_a_model_without_an_error_on_all_rows_is_last(folder) -> None:
    chosen = ["wild_models:Wild:first=2,last=600", "wild_models:Wild:first=0,last=0", "mean"]
    models = [part for model in chosen for part in ("-m", model)]
    for measure in ("rmse", "r2"):
        command = ("compare", "a.csv", "-t", "y", *models, "--measure", measure)
        found = json.loads(invoke(*command, "--json").stdout)
        assert list(found["ranks"]) == ["mean", chosen[1], chosen[0]]
        assert found["results"][0]["rows"]["unscored"] == 599
    ended = invoke(*command)
    [row] = [line for line in ended.stdout.splitlines() if "a.csv " in line]
    assert row.split()[5] == "nan"
    start = f"a.csv: {chosen[0]} is last, for 599 of 600 rows have no error"
    assert f"{start}, the first at a.csv, line 3: {WORDS}" in ended.stdout.splitlines()


@pytest.mark.usefixtures("unsaved_charts")
def test_the_report_says_so_first_of_all(folder) -> None:
    rows = [({"a": 1.0}, float(row % 7)) for row in range(300)]
    found = prequential(Told([math.nan] * 8 + [1.0] * 292), naive.ListStream(rows))
    told = f"Not scored are 8 of 300 rows, whose {WORDS}; the first is"
    assert told in render(found)
    assert "Not scored" not in render(replace(found, unscored=0, first_unscored=None))
    nothing = prequential(Told([math.nan] * 300), naive.ListStream(rows))
    assert "nothing to report. Not scored are 300 of 300 rows" in render(nothing)
