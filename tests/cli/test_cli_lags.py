"""Lags, ids and labels on the command line, in all commands and after interruptions."""

import csv
import io
import math

import pytest

import sapwood
from cli_cases import invoke, read_csv
from sapwood.lags import LaggedModel

LAGS = ("--lags", "1,3", "--means", "2", "--lags-of", "temp:1", "--means-of", "temp:2")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A file of two shops whose sales repeat after three rows of each."""
    monkeypatch.chdir(tmp_path)
    lines = ["shop,temp,sold"]
    for row in range(1200):
        shop, day = "AB"[row % 2], row // 2
        lines.append(f"{shop},{day % 7},{(10 if shop == 'A' else 100) * (1 + day % 3)}")
    (tmp_path / "shops.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_lags_by_series_are_used_and_told(folder):
    bare = invoke("evaluate", "shops.csv", "-t", "sold", "--json")
    found = invoke("evaluate", "shops.csv", "-t", "sold", *LAGS, "--by", "shop", "--json")
    assert found.code == 0, found.stderr
    assert found.json()["window"]["rmse"] < 0.1 * bare.json()["window"]["rmse"]
    names = "sold.lag1, sold.lag3, sold.mean2, temp.lag1, temp.mean2"
    assert f"also lag features, for each shop: {names}" in found.stderr


def test_a_saved_model_goes_on_where_it_was(folder):
    text = (folder / "shops.csv").read_text().splitlines(keepends=True)
    (folder / "first.csv").write_text("".join(text[:901]))
    (folder / "second.csv").write_text("".join([text[0], *text[901:]]))
    learn = ("-t", "sold", *LAGS, "--by", "shop")
    assert invoke("train", "shops.csv", *learn, "--save", "whole").code == 0
    assert invoke("train", "first.csv", *learn, "--save", "half").code == 0
    more = ("-t", "sold", "-m", "half", "--save", "both")
    assert invoke("train", "second.csv", *more).code == 0
    whole, both = sapwood.load("whole"), sapwood.load("both")
    assert type(both) is LaggedModel
    assert both.lags.to_state()[0] == whole.lags.to_state()[0]
    x = {"shop": "A", "temp": 3.0}
    assert both.predict_one(x) == pytest.approx(whole.predict_one(x), rel=1e-6)
    refused = invoke(
        "train", "second.csv", "-t", "sold", "-m", "half", "--lags", "1", "--save", "x"
    )
    assert refused.code == 2
    assert "its lags cannot be set any more" in refused.stderr


def test_a_checkpoint_holds_what_is_remembered(folder):
    command = ("evaluate", "shops.csv", "-t", "sold", *LAGS, "--by", "shop", "--delay", "5")
    whole = invoke(*command, "--save", "whole", "--json")
    text = (folder / "shops.csv").read_text()
    (folder / "shops.csv").write_text("".join(text.splitlines(keepends=True)[:701]))
    kept = (*command, "--checkpoint", "C", "--every", "100", "--json")
    assert invoke(*kept).code == 0
    (folder / "shops.csv").write_text(text)
    resumed = invoke(*kept, "--save", "resumed")
    assert "resuming after 700 rows" in resumed.stderr
    # The labels of the last rows came early, at the end of the shorter file; all else is the same.
    assert resumed.json()["rows"] == whole.json()["rows"]
    other = invoke(*kept, "--lags", "2")
    assert other.code == 2
    assert "whose lags was" in other.stderr


def test_predict_goes_on_behind_the_rows_that_were_learned(folder):
    learn = ("-t", "sold", "--lags", "3", "--by", "shop", "--save", "m")
    assert invoke("train", "shops.csv", *learn, "-q").code == 0
    (folder / "next.csv").write_text("shop,temp,sold\n" + "A,1,10\nB,1,100\n" * 6)
    model = sapwood.load("m")
    bare = invoke("predict", "m", "next.csv")
    found = [float(line) for line in bare.stdout.splitlines()[1:]]
    columns = {"shop": ["A", "B"] * 6, "temp": [1.0] * 12}
    assert found == model.predict_many(columns).tolist()
    told = invoke("predict", "m", "next.csv", "-t", "sold")
    known = [float(line) for line in told.stdout.splitlines()[1:]]
    plan = model.lags.plan(columns, [10.0, 100.0] * 6)
    assert known == model.model.predict_many(plan.features).tolist()
    assert known[:6] == found[:6]
    assert known[6:] != found[6:]


def test_compare_gives_lags_to_all_models(folder):
    ended = invoke(
        *("compare", "shops.csv:target=sold", "-m", "tree,last", "--lags", "3", "--by", "shop"),
        "--json",
    )
    assert ended.code == 0, ended.stderr
    assert "how columns are read" in ended.stderr
    tree, last = ended.json()["results"]
    assert tree["window"]["rmse"] < 0.1 * last["window"]["rmse"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--lags", "a day"), "--lags a day: rows are expected"),
        (("--lags", "0"), "a number from 1 to 100000"),
        (("--lags-of", "temp"), "NAME:ROWS is expected"),
        (("--lags-of", "tmp:1"), "no column 'tmp' for lags: did you mean 'temp'?"),
        (("--lags-of", "shop:1"), "lags are taken of numbers alone"),
        (("--lags-of", "temp:1", "--lags-of", "temp:2"), "temp is given twice"),
        (("--by", "shop"), "--by shop is for lags"),
        (("--lags", "1", "--by", "shops"), "no column 'shops' for lags"),
        (("--labels", "x.csv"), "needs --id"),
    ],
)
def test_what_cannot_be_meant_is_told(folder, options, words):
    ended = invoke("evaluate", "shops.csv", "-t", "sold", *options)
    assert ended.code == 2
    assert words in ended.stderr


# -- rows without targets, ids ---------------------------------------------------------------------


@pytest.fixture
def orders(tmp_path, monkeypatch):
    """Orders of which some have no time yet, in one file and by a file of their own."""
    monkeypatch.chdir(tmp_path)
    rows = [(f"{row:04d}", row % 10, 5.0 * (row % 10)) for row in range(600)]
    late = {key for key, x, _ in rows if x == 3}
    lines = ["order,x,minutes"]
    for place, (key, x, y) in enumerate(rows):
        lines.append(f"{key},{x},{'' if key in late else y}")
        if place >= 100 and rows[place - 100][0] in late:
            lines.append(f"{rows[place - 100][0]},,{rows[place - 100][2]}")
    (tmp_path / "orders.csv").write_text("\n".join(lines) + "\n")
    known = [f"{key},{y}" for key, _, y in rows]
    (tmp_path / "minutes.csv").write_text("\n".join(["order,minutes", *known]) + "\n")
    (tmp_path / "rows.csv").write_text(
        "\n".join(["order,x", *(f"{key},{x}" for key, x, _ in rows)]) + "\n"
    )
    return tmp_path


def test_rows_without_targets_are_predicted_and_joined_by_id(orders):
    ended = invoke(
        *("evaluate", "orders.csv", "-t", "minutes", "--id", "order", "--predictions", "p.csv"),
        "--json",
    )
    assert ended.code == 0, ended.stderr
    rows = ended.json()["rows"]
    assert rows["without_target"] == 60
    assert rows["labels_joined"] == 50
    assert rows["predicted"] == 600
    assert rows["learned"] == 590
    told = read_csv("p.csv")
    assert list(told[0]) == ["order", "line", "target", "prediction"]
    assert [row["order"] for row in told] == [f"{row:04d}" for row in range(600)]
    assert [row["order"] for row in told if row["target"] == ""] == [
        f"{row:04d}" for row in range(3, 600, 10)
    ]
    printed = invoke("evaluate", "orders.csv", "-t", "minutes", "--id", "order")
    assert "60 had no minutes: predicted, not learned; 50 had theirs later" in printed.stdout


def test_labels_of_another_file_are_joined_by_id(orders):
    joined = invoke(
        *("evaluate", "rows.csv", "-t", "minutes", "--id", "order", "--labels", "minutes.csv"),
        *("--delay", "20", "--json"),
    )
    assert joined.code == 0, joined.stderr
    assert joined.json()["rows"]["learned"] == 600
    both = io.StringIO()
    csv.writer(both, lineterminator="\n").writerows(
        [["order", "x", "minutes"], *([f"{r:04d}", r % 10, 5.0 * (r % 10)] for r in range(600))]
    )
    (orders / "both.csv").write_text(both.getvalue())
    own = invoke(
        *("evaluate", "both.csv", "-t", "minutes", "--id", "order", "--delay", "20", "--json")
    )
    assert joined.json()["total"] == own.json()["total"]


def test_predictions_carry_ids(orders):
    train = ("train", "orders.csv", "-t", "minutes", "--drop", "order", "--save", "m", "-q")
    assert invoke(*train).code == 0
    ended = invoke("predict", "m", "rows.csv", "--id", "order")
    rows = list(csv.DictReader(io.StringIO(ended.stdout)))
    assert [row["order"] for row in rows] == [f"{row:04d}" for row in range(600)]
    assert all(math.isfinite(float(row["prediction"])) for row in rows)
    bare = invoke("predict", "m", "rows.csv")
    assert [row["prediction"] for row in rows] == bare.stdout.splitlines()[1:]


def test_an_id_that_a_model_knows_stays_a_feature(orders):
    assert (
        invoke("train", "orders.csv", "-t", "minutes", "--drop", "order", "--save", "m").code == 0
    )
    ended = invoke("predict", "m", "rows.csv", "--id", "x")
    rows = list(csv.DictReader(io.StringIO(ended.stdout)))
    bare = invoke("predict", "m", "rows.csv")
    assert [row["prediction"] for row in rows] == bare.stdout.splitlines()[1:]
    assert [row["x"] for row in rows] == [str(row % 10) for row in range(600)]


def test_a_target_of_text_is_of_classes_and_has_lags_of_labels(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "iris.csv").write_text("length,species\n" + "1.5,setosa\n2.5,virginica\n" * 30)
    ended = invoke("evaluate", "iris.csv", "-t", "species")
    assert ended.code == 0, ended.stderr
    assert "classes of species, by HoeffdingTreeClassifier" in ended.stdout
    ended = invoke("evaluate", "iris.csv", "-t", "species", "--lags", "1")
    assert ended.code == 0, ended.stderr
    assert "also lag features: species.lag1" in ended.stderr


def test_a_missing_target_is_guessed_and_the_last_columns_are_shown(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = [f"x{place}" for place in range(30)]
    (tmp_path / "wide.csv").write_text(",".join([*names, "price", "note"]) + "\n" + "1," * 31 + "a")
    ended = invoke("evaluate", "wide.csv")
    assert ended.code == 2
    assert "perhaps -t price? Columns are x0, x1, x2, x3, x4, x5, …, x28, x29, price, note" in (
        ended.stderr
    )


def test_a_last_column_of_categories_is_guessed_beside_the_last_number(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "adult.csv").write_text("age,hours,income\n" + "39,40,low\n52,45,high\n" * 20)
    ended = invoke("evaluate", "adult.csv")
    assert ended.code == 2
    assert "perhaps -t hours or -t income? Columns are age, hours, income" in ended.stderr
