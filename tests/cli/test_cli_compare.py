"""`sapwood compare`: the same numbers as one by one, ranks by hand, and other people's models."""

import json
import re
import sys

import numpy as np
import pytest
from scipy import stats

from cli_cases import TIMES, assert_fails, invoke, rows_of, write_csv
from sapwood.evaluate import prequential
from sapwood.evaluate.others import LightGbm, River, Sgd
from sapwood.evaluate.ranking import critical_difference

STREAMS = [f"{name}:rows=600" for name in ("friedman", "mv", "planes2d", "hyperplane", "demand")]
MODELS = ["tree", "tree:leaf=mean,grace_period=50", "last"]
OTHERS = """
class Zero:
    def __init__(self, value=0.0):
        self.value = value
    def predict_one(self, x):
        return self.value
    def learn_one(self, x, y):
        pass

class Thousand(Zero):
    def predict_one(self, x):
        self.value += 1
        if self.value > 400:
            raise ArithmeticError("enough\\nis enough")
        return 0.0

class Silent(Zero):
    def predict_one(self, x):
        return None

def broken():
    raise OSError("no licence")
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def chosen(models):
    return [part for model in models for part in ("-m", model)]


def test_results_are_those_of_single_evaluations(folder) -> None:
    ended = invoke("compare", *STREAMS, *chosen(MODELS), "--json")
    assert ended.code == 0, ended.stderr
    assert ended.stderr == ""
    found = json.loads(ended.stdout)
    assert [(cell["stream"], cell["model"]) for cell in found["results"]] == [
        (stream, model) for stream in STREAMS for model in MODELS
    ]
    for cell in found["results"]:
        alone = json.loads(invoke("evaluate", cell["stream"], "-m", cell["model"], "--json").stdout)
        for name in alone.keys() - {*TIMES, "stream", "model"}:
            assert cell[name] == alone[name]


@pytest.mark.parametrize("measure", ["mae", "rmse", "r2"])
def test_ranks_and_tests_are_those_by_hand(folder, measure) -> None:
    options = [] if measure == "rmse" else ["--measure", measure]
    found = json.loads(invoke("compare", *STREAMS, *chosen(MODELS), *options, "--json").stdout)
    values = np.array([cell["total"][measure] for cell in found["results"]]).reshape(5, 3)
    ordered = -values if measure == "r2" else values
    ranks = np.array([[sum(row <= value) for value in row] for row in ordered])
    assert found["ranks"] == pytest.approx(dict(zip(MODELS, ranks.mean(axis=0), strict=True)))
    assert list(found["ranks"].values()) == sorted(found["ranks"].values())
    assert found["friedman_p"] == pytest.approx(stats.friedmanchisquare(*ordered.T).pvalue)
    # The quantile for three models, of Demšar's table 5.
    assert found["critical_difference"] == pytest.approx(2.343 * np.sqrt(3 * 4 / 30), rel=1e-3)
    assert found["critical_difference"] == critical_difference(3, 5)


def test_the_table_shows_all(folder) -> None:
    ended = invoke("compare", *STREAMS, *chosen(MODELS))
    assert ended.code == 0
    assert "RMSE over all rows" in ended.stdout
    cells = [re.split(r"\s*[│┃]\s*", line) for line in ended.stdout.splitlines()]
    shown = {row[1]: row[2:] for row in cells if len(row) > 3}
    for stream in STREAMS:
        assert shown[stream][0] == "600"
    found = json.loads(invoke("compare", *STREAMS, *chosen(MODELS), "--json").stdout)
    first = [cell["total"]["rmse"] for cell in found["results"][:3]]
    assert [float(text) for text in shown[STREAMS[0]][1:4]] == pytest.approx(first, rel=1e-3)
    ranks = [f"{found['ranks'][model]:.2f}" for model in MODELS]
    assert shown["average rank"][1:4] == ranks
    assert "Friedman" in ended.stdout
    assert f"{found['critical_difference']:.2f}" in ended.stdout


def test_too_few_streams_are_told(folder) -> None:
    ended = invoke("compare", *STREAMS[:4], *chosen(MODELS))
    assert ended.code == 0
    assert "too few to test whether ranks differ: 5 streams and 3 models" in ended.stdout
    found = json.loads(invoke("compare", *STREAMS, *chosen(MODELS[:2]), "--json").stdout)
    assert found["friedman_p"] is None
    assert found["critical_difference"] is None
    assert set(found["ranks"]) == set(MODELS[:2])


def test_a_diagram_is_drawn(folder) -> None:
    ended = invoke("compare", *STREAMS, *chosen(MODELS), "--diagram", "ranks.svg")
    assert ended.code == 0
    assert "diagram: ranks.svg" in ended.stderr
    text = (folder / "ranks.svg").read_text(encoding="utf-8")
    assert text.startswith("<?xml")
    assert "<svg" in text


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ([*STREAMS[:4], "--diagram", "r.svg"], ["--diagram r.svg", "too few", "5 streams"]),
        ([*STREAMS, "-m", "tree", "-m", "last", "--diagram", "r.svg"], ["too few", "3 models"]),
        ([*STREAMS, "--diagram", "r.xls"], ["--diagram r.xls", ".svg, .png, .pdf"]),
        ([*STREAMS, "--diagram", "gone/r.svg"], ["gone: there is no such folder"]),
        (["mv", "mv"], ["stream mv is named twice"]),
        (["mv", "-m", "tree", "-m", "tree"], ["model tree is named twice"]),
        (["-", "-t", "y"], ["save standard input to a file"]),
        (["gone.csv", "-t", "y"], ["gone.csv: no such file"]),
        (["a.csv"], ["a.csv: name the column to predict"]),
        (["a.csv:aim=y"], ["aim is none of target, drop"]),
        (["a.csv:target=y,format=xls"], ["'xls' is no format"]),
        (["a.csv:target=why"], ["'why'", "there are 'a'"]),
        (["a.csv:target=y", "-m", "tree:leaves=3"], ["no parameter leaves", "did you mean 'leaf'"]),
        (["a.csv:target=y", "-m", "mean:x=3"], ["model mean has no parameter x"]),
        (["a.csv:target=y", "-m", "others:broken"], ["others:broken", "OSError", "no licence"]),
        (["a.csv:target=y", "-m", "others:Gone"], ["no attribute 'Gone'"]),
        (["a.csv:target=y", "-m", "others:Zero:size=3"], ["unexpected keyword argument 'size'"]),
        (["a.csv:target=y", "-m", "others:Thousand"], ["Thousand: ArithmeticError: enough is eno"]),
        (["a.csv:target=y", "-m", "others:Silent"], ["Silent: TypeError", "'NoneType'"]),
        (["empty.csv:target=y"], ["empty.csv has no rows"]),
    ],
)
def test_what_goes_wrong_is_told_in_one_line(folder, command, words) -> None:
    write_csv(folder / "a.csv", rows_of(500))
    write_csv(folder / "empty.csv", [])
    (folder / "others.py").write_text(OTHERS, encoding="utf-8")
    assert_fails(invoke("compare", *command), *words)


def test_models_of_others_take_part(folder) -> None:
    (folder / "strangers.py").write_text(OTHERS, encoding="utf-8")
    write_csv(folder / "a.csv", rows_of(500))
    models = ["strangers:Zero", "strangers:Zero:value=1.5", "last"]
    found = json.loads(invoke("compare", "a.csv", "-t", "y", *chosen(models), "--json").stdout)
    targets = np.array([float(line.rpartition(",")[2]) for line in rows_of(500)])
    errors = [cell["total"]["mae"] for cell in found["results"]]
    assert errors[:2] == pytest.approx([abs(targets).mean(), abs(targets - 1.5).mean()])
    assert [cell["model"] for cell in found["results"]] == models


def test_streams_may_have_options_of_their_own(folder) -> None:
    lines = rows_of(500)
    write_csv(folder / "a.csv", lines)
    swapped = [",".join(reversed(line.split(","))) for line in lines]
    write_csv(folder / "b.csv", swapped, "z,sold,city,flag,b,a")
    streams = ["a.csv:target=y,drop=sold", "b.csv:target=z,drop=sold"]
    found = json.loads(invoke("compare", *streams, "-m", "last", "--json").stdout)
    first, second = found["results"]
    assert (first["target"], second["target"]) == ("y", "z")
    assert first["total"] == second["total"]


def test_rows_that_are_left_out_are_told(folder) -> None:
    write_csv(folder / "a.csv", [*rows_of(500), "1,2"])
    ended = invoke("compare", "a.csv", "-t", "y", *chosen(MODELS), "--on-bad-row", "skip")
    assert "a.csv: 1 rows rejected" in ended.stdout
    ended = invoke("compare", "a.csv", "-t", "y", *chosen(MODELS))
    assert_fails(ended, "a.csv, line 502: another number of fields")


def test_a_saved_model_takes_part_as_it_is(folder) -> None:
    write_csv(folder / "a.csv", rows_of(500))
    assert invoke("train", "a.csv", "-t", "y", "--save", "m").code == 0
    models = chosen(["m", "tree"])
    found = json.loads(invoke("compare", "a.csv", "-t", "y", *models, "--json").stdout)
    saved, fresh = (cell["total"]["mae"] for cell in found["results"])
    assert saved < fresh


def test_it_goes_on_when_a_model_fails(folder) -> None:
    (folder / "quitters.py").write_text(OTHERS)
    models = ["quitters:Thousand", "tree", "last"]
    streams = ["friedman:rows=600", "friedman:rows=300"]
    ended = invoke("compare", *streams, "--models", ",".join(models), "--json")
    assert ended.code == 0
    found = json.loads(ended.stdout)
    cells = {(cell["stream"], cell["model"]): cell for cell in found["results"]}
    failed = cells["friedman:rows=600", "quitters:Thousand"]
    assert failed["failed"] == "ArithmeticError: enough is enough"
    assert failed["rows"]["learned"] == 400
    assert "failed" not in cells["friedman:rows=300", "quitters:Thousand"]
    # The last of three on the first stream, and 0 is worse than the tree on the second.
    assert found["ranks"]["quitters:Thousand"] == 2.5 + 0.5 * (
        cells["friedman:rows=300", "last"]["total"]["rmse"]
        < cells["friedman:rows=300", "quitters:Thousand"]["total"]["rmse"]
    )
    told = invoke("compare", *streams, "-m", ",".join(models)).stdout
    assert (
        "friedman:rows=600: quitters:Thousand is last, for it failed after 400 rows: "
        "ArithmeticError: enough is enough"
    ) in told
    assert "failed" in told.splitlines()[4]


@pytest.mark.usefixtures("unsaved_charts")
def test_a_comparison_has_a_report(folder) -> None:
    (folder / "deserters.py").write_text(OTHERS)
    models = "tree,last,deserters:Thousand"
    ended = invoke("compare", *STREAMS[:2], "-m", models, "--report", "report.html")
    assert ended.code == 0
    assert "report: report.html" in ended.stderr
    text = (folder / "report.html").read_text()
    assert "<h1>3 models on 2 streams</h1>" in text
    assert "Thousand (deserters) failed: ArithmeticError: enough is enough" in text
    assert (
        text.count('<th scope="row">the mean so far</th>') == 1
    )  # baselines of all streams are in one table
    assert "http" not in text.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")


def numbers_and_labels(count, seed=1):
    rng = np.random.default_rng(seed)
    a, city = rng.normal(size=count), rng.choice(["Oslo", "Rome"], count)
    y = 3.0 * a + np.where(city == "Oslo", 5.0, -5.0)
    a[::17] = np.nan
    return {"a": a, "city": [None if row % 29 == 3 else str(c) for row, c in enumerate(city)]}, y


@pytest.mark.parametrize("make", [Sgd, lambda: River("linearregression")], ids=["sgd", "river"])
def test_models_of_other_libraries_learn(make) -> None:
    columns, y = numbers_and_labels(4000)
    found = prequential(make(), (columns, y), on_bad_row="skip")
    assert found.rows_learned == 4000
    assert found.window.r2 > 0.7


def test_batches_do_not_depend_on_how_rows_are_handed_over() -> None:
    columns, y = numbers_and_labels(950)
    whole, parts, singly = Sgd(), Sgd(), Sgd()
    expected = whole.predict_learn_many(columns, y)
    found = []
    for start in range(0, 950, 130):
        part = {name: column[start : start + 130] for name, column in columns.items()}
        found += parts.predict_learn_many(part, y[start : start + 130]).tolist()
    np.testing.assert_array_equal(found, expected)
    for row in range(250):
        x = {"a": float(columns["a"][row]), "city": columns["city"][row] or None}
        assert singly.predict_one(x) == expected[row]
        singly.learn_one(x, float(y[row]))


def test_names_of_models_that_are_none() -> None:
    with pytest.raises(ValueError, match=r"river has no 'HoefdingTree': did you mean"):
        River("HoefdingTree")
    ended = invoke("compare", "mv:rows=50", "-m", "forrest")
    assert_fails(ended, "neither a file nor a model", "river:CLASS")
    assert_fails(invoke("compare", "mv:rows=50", "-m", "sgd:size=3"), "model sgd", "size")
    model = Sgd()
    model.learn_one({"a": 1.0}, 1.0)
    with pytest.raises(ValueError, match="feature 'b' is new"):
        model.learn_one({"b": 1.0}, 1.0)


def test_lightgbm_is_named_if_it_is_missing(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with pytest.raises(ModuleNotFoundError):
        LightGbm()
    ended = invoke("compare", "mv:rows=50", "-m", "lightgbm")
    assert_fails(ended, "model lightgbm: lightgbm is not installed: pip install lightgbm")


def test_lightgbm_learns() -> None:
    pytest.importorskip("lightgbm")
    columns, y = numbers_and_labels(4000)
    assert prequential(LightGbm(), (columns, y)).window.r2 > 0.7
