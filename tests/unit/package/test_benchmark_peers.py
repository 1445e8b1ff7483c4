"""The comparison with peers: fair settings, honest scores, a run that can go on, and the page."""

import inspect
import math
import re

import numpy as np
import pytest
from benchmarks import row_costs
from benchmarks.data_sets import DataSet, friedman_set
from benchmarks.peers import run as runs
from benchmarks.peers.findings import Findings, Loss
from benchmarks.peers.jobs import Plan, run_job, scores
from benchmarks.peers.learners import category_codes, matrix
from benchmarks.peers.moa import Imputer
from benchmarks.peers.page import write_page
from benchmarks.peers.records import FAILURE, Job, Record, ResultsFile
from benchmarks.peers.roster import DEFAULT, OURS, PEERS, learners, peer
from benchmarks.peers.run import Run, run
from benchmarks.target_peers import moas_isoup
from benchmarks.target_streams import Stream

from sapwood import HoeffdingTreeRegressor

PLAN = Plan(
    name="tiny",
    generated=("friedman", "mv"),
    real=(),
    rows=1_500,
    warm_up=1_000,
    grid_rows=1_200,
    cost_rows=1_000,
    passes=2,
    growth_rows=20_000,
    budget=1.0,
    patience=60.0,
)
MIXED = DataSet(
    "mixed",
    {
        "size": np.array([1.0, np.nan, 3.0, np.nan]),
        "city": np.array(["Oslo", None, "Bergen", "Oslo"], dtype=object),
    },
    np.array([1.0, 2.0, 3.0, 4.0]),
)


def rivers_defaults(kind):
    return {name: each.default for name, each in inspect.signature(kind).parameters.items()}


# -- who takes part -------------------------------------------------------------------------------


def test_all_have_equally_many_settings_and_their_default_among_them():
    assert {len(who.grid) for who in PEERS} == {8}
    assert all(DEFAULT in who.grid for who in PEERS)
    for who in PEERS:
        assert len({repr(sorted(options.items())) for options in who.grid.values()}) == 8


def test_the_settings_called_default_are_the_defaults():
    from river.tree import HoeffdingAdaptiveTreeRegressor
    from river.tree import HoeffdingTreeRegressor as Rivers
    from sklearn.linear_model import SGDRegressor

    ours = HoeffdingTreeRegressor().parameters
    assert peer(OURS).grid[DEFAULT].items() <= ours.items()
    for kind in (Rivers, HoeffdingAdaptiveTreeRegressor):
        assert peer("river").grid[DEFAULT].items() <= rivers_defaults(kind).items()
    assert peer("SGD").grid[DEFAULT].items() <= SGDRegressor().get_params().items()
    assert peer("LightGBM").grid[DEFAULT] == {"trees": 5, "learning_rate": 0.1}


def test_twins_are_not_judged_twice():
    assert [who.name for who in learners() if who.name.startswith(OURS)] == [OURS]
    assert all(peer(who.same_as) in learners() for who in PEERS if who.same_as)


@pytest.mark.parametrize("name", [OURS, f"{OURS}, one by one", "river, QO corrected", "SGD"])
def test_a_learner_predicts_before_it_learns(name):
    data = friedman_set(300)
    who = peer(name)
    found = []
    for stop in (200, 300):  # what comes later changes nothing
        learner = who.make(data, who.grid[DEFAULT])
        predictions, nanoseconds = learner.follow(learner.calls(data.head(stop)))
        assert len(predictions) == stop
        assert nanoseconds > 0
        found.append(predictions[:200])
    assert found[0].tolist() == found[1].tolist()
    assert found[0][0] == 0.0
    assert learner.file_bytes() > 100


def test_words_become_codes_and_missing_ones_a_category():
    codes = category_codes(MIXED)
    assert codes == {"city": {"Bergen": 0, "Oslo": 1, "missing": 2}}
    table = matrix(MIXED, codes)
    assert table[:, 1].tolist() == [1, 2, 0, 1]
    assert np.isnan(table[:, 0]).tolist() == [False, True, False, True]


def test_moas_missing_numbers_become_the_mean_of_those_before():
    rows = np.array([[np.nan, 1.0], [4.0, np.nan], [np.nan, 3.0], [8.0, np.nan], [np.nan, 0.0]])
    expected = [[0, 1], [4, 1], [4, 3], [8, 2], [6, 0]]
    assert Imputer().filled(rows).tolist() == expected
    in_parts = Imputer()
    assert [*in_parts.filled(rows[:2]).tolist(), *in_parts.filled(rows[2:]).tolist()] == expected


@pytest.mark.skipif(bool(peer("MOA").missing()), reason="no Java or no capymoa")
def test_moa_goes_on_with_a_new_java_after_one_has_given_up():
    from benchmarks.moa_process import MoaProcess

    data = friedman_set(600)
    rows = np.column_stack([*data.columns.values(), data.y])
    with MoaProcess([0] * 10) as java:
        java.start("-g 50")
        at_once, nanoseconds = java.follow(rows)
        java.start("-g 50")
        singly, each = java.follow_singly(rows[:400])
        rest, _ = java.follow(rows[400:])
        assert at_once.tolist() == [*singly, *rest]
        assert nanoseconds > 0
        assert each.min() >= 0
        heap, file = java.measure()
        assert heap > 10_000
        assert file > 10_000

    who = peer("MOA")
    learner = who.make(data, who.grid[DEFAULT])
    learner.java._java.kill()
    with pytest.raises(RuntimeError, match="Java has stopped"):
        learner.follow(learner.calls(data))
    again = who.make(data, who.grid[DEFAULT])
    assert again.follow(again.calls(data))[0][0] == 0.0
    again.java.close()


@pytest.mark.skipif(bool(peer("MOA").missing()), reason="no Java or no capymoa")
def test_moas_isoup_predicts_all_targets_before_it_learns_them():
    x = np.random.default_rng(1).random((400, 2))
    stream = Stream(
        "two lines",
        {"a": x[:, 0], "b": x[:, 1]},
        {"up": 1000 + 3 * x[:, 0], "down": -2 * x[:, 1]},
        promised=True,
    )
    found = moas_isoup(stream, passes=2)
    assert found is not None
    said, microseconds = found
    assert microseconds > 0
    assert list(said) == ["up", "down"]
    assert said["up"][0] == said["down"][0] == 0.0
    assert said["up"][1] == pytest.approx(stream.targets["up"][0])
    assert said["down"][1] == pytest.approx(stream.targets["down"][0])
    for name, y in stream.targets.items():
        assert np.mean((y - said[name])[200:] ** 2) < 0.2 * np.var(y)


def test_rows_without_gaps_lack_nothing():
    columns = {"a": np.array([1.0, np.nan, 3.0]), "word": np.array(["x", "y", "z"], dtype=object)}
    targets = {"y": np.array([1.0, 2.0, 3.0]), "z": np.array([4.0, 5.0, np.nan])}
    stream = Stream("gaps", columns, targets, promised=False).without_gaps()
    assert stream.columns["word"].tolist() == ["x"]
    assert stream.targets["z"].tolist() == [4.0]


# -- what is measured -----------------------------------------------------------------------------


def test_scores_are_those_of_a_loop():
    rng = np.random.default_rng(1)
    y = rng.normal(size=300)
    predictions = y + rng.normal(size=300)
    predictions[7] = 1e6
    found = scores(y, predictions)
    errors = [abs(a - b) for a, b in zip(y, predictions, strict=True)]
    mean = sum(y) / 300
    squares = sum((value - mean) ** 2 for value in y)
    assert found["mae"] == pytest.approx(sum(errors) / 300)
    assert found["rmse"] == pytest.approx(math.sqrt(sum(e * e for e in errors) / 300))
    assert found["r2"] == pytest.approx(1 - sum(e * e for e in errors) / squares)
    kept = sorted(range(300), key=lambda place: errors[place])[:297]
    rest = np.var([y[place] for place in kept])
    expected = 1 - np.mean([errors[place] ** 2 for place in kept]) / rest
    assert found["r2_without_worst"] == pytest.approx(expected)


def test_a_prediction_that_is_no_number_spoils_the_scores_but_not_those_without_the_worst():
    y = np.arange(200.0)
    predictions = y.copy()
    predictions[3] = np.nan
    found = scores(y, predictions)
    assert math.isnan(found["r2"])
    assert math.isnan(found["mae"])
    assert found["r2_without_worst"] == 1.0


def test_a_job_that_fails_says_so(monkeypatch):
    def fail(data, options):
        raise ZeroDivisionError("no\nrows")

    monkeypatch.setattr("benchmarks.peers.jobs.peer", lambda name: peer(name)._replace(make=fail))
    (record,) = run_job(Job("cost", "friedman", OURS), PLAN, None, False)
    assert record == Record(
        "cost", "friedman", OURS, DEFAULT, 0, FAILURE, 1.0, "ZeroDivisionError: no rows"
    )


def test_the_parts_of_a_row_are_kept(monkeypatch):
    parts = {"routing to the leaf": 20.0, "predict_learn_many": 250.0}
    monkeypatch.setattr("benchmarks.row_costs.measure", lambda quick: parts if quick else {})
    job = Job("parts", "friedman", OURS)
    records = list(run_job(job, PLAN, None, False))
    assert records == [
        Record(*job, DEFAULT, 50_000, "routing to the leaf", 20.0),
        Record(*job, DEFAULT, 50_000, "predict_learn_many", 250.0),
    ]
    told = Findings(Run(PLAN, {}, {}, {}, {}, records))
    assert told.part("predict_learn_many") == 250.0
    assert math.isnan(told.part("decisions and splits"))


def test_a_run_goes_on_where_it_was(tmp_path, monkeypatch):
    both = [who for who in PEERS if OURS in (who.name, who.same_as)]
    monkeypatch.setattr(runs, "PEERS", both)
    monkeypatch.setattr(runs, "find_spec", lambda name: None)  # so that there is no compiler
    said = []
    found = run(PLAN, tmp_path, said.append)
    assert len(said) == 2 * 2 + 2 * 2  # streams, and costs and their growth, for both
    assert found.absent == {"the parts of a row": "without Cython, setuptools"}
    told = Findings(found)
    assert told.duplicates()[0][2:] == (2, 2)
    assert told.score("friedman", OURS) > 0.5
    assert [rows for rows, _ in told.growth(OURS, "microseconds")] == [10_000, 20_000]
    assert told.cost(OURS, "microseconds") < 100
    assert not told.failures()

    lines = (tmp_path / "results.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    last_job = [line for line in lines if line.startswith("growth") and "one by one" in line]
    assert lines[-len(last_job) :] == last_job
    (tmp_path / "results.csv").write_text(
        "".join(lines[:-1])[:-9], encoding="utf-8"
    )  # stopped within a line
    said.clear()
    again = run(PLAN, tmp_path, said.append)
    assert len(said) == 1
    assert {r[:6] for r in again.records} == {r[:6] for r in found.records}

    with pytest.raises(ValueError, match="another plan, machine or version"):
        run(PLAN._replace(rows=2_000), tmp_path, said.append)


def test_the_file_of_results_keeps_what_is_complete(tmp_path):
    path = tmp_path / "results.csv"
    done, stopped = Job("accuracy", "a, b", "x"), Job("accuracy", "c", "x")
    record = Record(*done, DEFAULT, 10, "r2", 0.1 + 0.2, 'a "note", with commas')
    first = ResultsFile(path)
    first.add(done, [record])
    with path.open("a") as file:
        file.write(",".join([*stopped, DEFAULT, "10", "r2", "0.5", ""]) + "\n")
    second = ResultsFile(path)
    assert second.done == {done}
    assert second.records == first.records
    assert second.records[0] == record


# -- what is told ---------------------------------------------------------------------------------

STREAMS = ("bike", "metro", "diamonds", "flights", "weather", "fair")
# R² of each learner on each stream; one has failed.
R2 = {
    OURS: [0.9, 0.9, 0.9, 0.5, 0.9, 0.1],
    "river": [0.8, 0.8, 0.8, 0.6, 0.8, 0.0],
    "MOA": [0.7, 0.7, 0.7, 0.4, 0.7, math.nan],
    "LightGBM": [0.6, 0.95, 0.6, 0.7, 0.6, 0.2],
}


def made_up_run():
    records = []
    for name, values in R2.items():
        for stream, value in zip(STREAMS, values, strict=True):
            for measure, score in (("r2", value), ("mae", 1 - value), ("rmse", 1 - value)):
                records.append(Record("accuracy", stream, name, DEFAULT, 5000, measure, score))
                best = "grace 50, δ 1e-07, mean leaves" if name == "river" else DEFAULT
                records.append(Record("accuracy", stream, name, best, 2500, measure, score + 0.01))
        for measure, value in (("microseconds", 2.0), ("file_bytes", 3e3 + len(name))):
            records.append(Record("cost", "friedman", name, DEFAULT, 1000, measure, value))
        for rows in (10_000, 20_000):
            records.append(Record("growth", "friedman", name, DEFAULT, rows, "microseconds", 2.0))
    for place, part in enumerate([*row_costs.PARTS, row_costs.WHOLE, *row_costs.OTHER], 1):
        records.append(Record("parts", "friedman", OURS, DEFAULT, 50_000, part, 10.0 * place))
    records.append(
        Record("accuracy", "fair", "MOA", DEFAULT, 0, FAILURE, 1.0, "<b>NullPointer</b> | x")
    )
    plan = PLAN._replace(real=STREAMS, generated=(), rows=5000, grid_rows=2500)
    machine = dict.fromkeys(
        ("sapwood", "river", "capymoa", "lightgbm", "scikit-learn", "Java", "Python"), "1.0"
    ) | {"processor": "a <processor>", "cores": "2"}
    absent = {who.name: "without it" for who in PEERS if who.name not in R2}
    sizes = dict.fromkeys(STREAMS, 5000)
    return Run(plan, machine, sizes, dict.fromkeys(STREAMS, "9 + 0"), absent, records)


def test_ranks_are_those_of_the_scores_and_a_failure_is_last():
    found = Findings(made_up_run())
    ranking = found.ranking(found.scores(STREAMS, found.compared, "r2"), found.compared)
    ranks = dict(zip(ranking.models, ranking.ranks, strict=True))
    assert ranks[OURS] == pytest.approx((1 + 2 + 1 + 3 + 1 + 2) / 6)
    assert ranks["MOA"] == pytest.approx((3 + 4 + 3 + 4 + 3 + 4) / 6)
    assert [who.name for who in found.trees] == [OURS, "river", "MOA"]


def test_every_loss_is_found():
    found = Findings(made_up_run())
    r2 = [loss for loss in found.losses() if loss.measure == "r2"]
    assert r2 == [
        Loss("metro", "r2", 0.9, "LightGBM", 0.95, 1),
        Loss("flights", "r2", 0.5, "LightGBM", 0.7, 2),
        Loss("fair", "r2", 0.1, "LightGBM", 0.2, 1),
    ]
    assert found.wins("LightGBM", STREAMS) == ["bike", "diamonds", "weather"]
    assert [loss.stream for loss in found.grid_losses()] == ["metro", "flights", "fair"]
    assert [(loss.measure, loss.best) for loss in found.cost_losses()] == [("file_bytes", "MOA")]


def test_the_page_tells_all_of_it_and_runs_nothing(tmp_path):
    page, markdown = (
        path.read_text(encoding="utf-8") for path in write_page(Findings(made_up_run()), tmp_path)
    )
    assert "which gets them by 1,000 rows, on 3 of 6 real streams" in markdown
    assert "| flights | R² | 0.500 | LightGBM | 0.700 | 2 |" in markdown
    assert "| fair | 5,000 | 0.100 | 0.000 | failed | **0.200** |" in markdown
    assert "<b>NullPointer</b> \\| x" in markdown
    assert "| slots (floor) | 30 | 50 % | 0.43 |" in markdown  # of a whole of 60, a floor of 70
    assert "<script" not in page
    assert "&lt;b&gt;NullPointer&lt;/b&gt;" in page
    assert "a &lt;processor&gt;" in page
    assert not re.search(r'(src|href)="(?!#)', page)
    assert page.count("<svg") == 7
    assert "failed" in page
    assert page.count('<section id="') == 12
