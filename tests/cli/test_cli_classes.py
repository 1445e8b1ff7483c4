"""Classes on the command line: the numbers of Python, or a line that says why not."""

import json
from pathlib import Path

import numpy as np
import pytest

import sapwood
from cli_cases import invoke, read_csv
from sapwood.evaluate.class_run import ClassRun
from sapwood.report.html import measured
from sapwood.streams.stream import StreamError

ROWS = 600


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(4)
    temp, wind = rng.normal(15, 8, ROWS).round(2), rng.random(ROWS).round(3)
    sky = np.where(temp > 18, "clear", np.where(wind > 0.6, "storm", "rain"))
    return temp, wind, sky


@pytest.fixture
def file(tmp_path, monkeypatch, data):
    monkeypatch.chdir(tmp_path)
    lines = [f"{t},{w},{s}" for t, w, s in zip(*data, strict=True)]
    path = tmp_path / "sky.csv"
    path.write_text("\n".join(["temp,wind,sky", *lines]) + "\n")
    return path.name


def test_a_target_of_text_is_a_class(file, data):
    temp, wind, sky = data
    ended = invoke("evaluate", file, "-t", "sky", "--json", "--save", "my.sapwood")
    assert ended.code == 0, ended.stderr
    found = ended.json()
    assert found["task"] == "classes"
    model = sapwood.load("my.sapwood")
    again = sapwood.HoeffdingTreeClassifier(max_bytes=model.parameters["max_bytes"])
    predicted = again.predict_learn_many({"temp": temp, "wind": wind}, sky)
    assert found["accuracy"] == (predicted == sky).mean()
    assert found["classes"] == again.classes == model.classes
    assert np.sum(found["confusion"]) == ROWS - 1  # the first row had no prediction
    assert found["accuracy"] > found["accuracy_majority"] > found["accuracy_no_change"] - 0.3
    assert model.schema.targets == ("sky",)


def test_scores_are_printed(file):
    ended = invoke("evaluate", file, "-t", "sky", "-m", "forest:members=2")
    assert ended.code == 0, ended.stderr
    for words in ("ForestClassifier", "Cohen's kappa", "of the majority class", "log-loss"):
        assert words in ended.stdout
    assert "600 read, 600 scored" in ended.stdout


def test_train_resume_and_predict(file, data):
    temp, wind, sky = data
    assert invoke("train", file, "-t", "sky", "--save", "my.sapwood").code == 0
    first = sapwood.load("my.sapwood")
    assert invoke("train", file, "-m", "my.sapwood", "--save", "more.sapwood").code == 0
    more = sapwood.load("more.sapwood")
    assert more.rows_learned == 2 * ROWS
    first.predict_learn_many({"temp": temp, "wind": wind}, sky)
    assert more.predict_proba_one({"temp": 20.0, "wind": 0.5}, record=False) == (
        first.predict_proba_one({"temp": 20.0, "wind": 0.5}, record=False)
    )
    ended = invoke("predict", "more.sapwood", file, "--output", "told.csv")
    assert ended.code == 0, ended.stderr
    rows = read_csv("told.csv")
    assert len(rows) == ROWS
    p = more.predict_proba_many({"temp": temp, "wind": wind}, record=False)
    assert [row["prediction"] for row in rows] == more.predict_many(
        {"temp": temp, "wind": wind}, record=False
    ).tolist()
    assert [float(row[f"probability {more.classes[1]}"]) for row in rows] == p[:, 1].tolist()


def test_predictions_are_written_and_labels_come_late(file):
    ended = invoke(
        "evaluate", file, "-t", "sky", "--delay", "40", "--predictions", "told.csv", "--json"
    )
    assert ended.code == 0, ended.stderr
    rows = read_csv("told.csv")
    assert len(rows) == ROWS
    assert not any(row["prediction"] for row in rows[:40])
    right = sum(row["prediction"] == row["actual"] for row in rows)
    assert ended.json()["accuracy"] == right / ROWS
    assert ended.json()["rows_pending"] == 40


def test_whole_numbers_are_classes_if_it_is_said(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [f"{number % 7},{number % 3}" for number in range(200)]
    (tmp_path / "my.csv").write_text("\n".join(["a,kind", *lines]))
    ended = invoke("evaluate", "my.csv", "-t", "kind", "--task", "classes", "--json")
    assert ended.json()["classes"] == [0, 1, 2]
    assert "classes" not in invoke("evaluate", "my.csv", "-t", "kind", "--json").json()


def test_bad_rows(file):
    with open(file, "a") as own:
        own.write("hot,0.5,clear\n3,0.2,rain\n")
    ended = invoke("evaluate", file, "-t", "sky")
    assert ended.code == 2
    assert "line 602" in ended.stderr
    ended = invoke("evaluate", file, "-t", "sky", "--on-bad-row", "skip", "--json")
    assert (ended.json()["rows_read"], ended.json()["rows_rejected"]) == (602, 1)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--interval", "1.5"], "--interval: level = 1.5"),
        (["--means", "3"], "--means is for numbers, and the target is a class"),
        (["--lags", "auto"], "--lags auto is for numbers, and the target is a class"),
        (["--horizon", "3"], "--horizon is for numbers, and the target is a class"),
        (["--min", "0"], "--min is for numbers, and the target is a class"),
        (["--max", "9"], "--max is for numbers, and the target is a class"),
        (["--season", "24"], "--season is for numbers, and the target is a class"),
        (["--lags", "1h"], "1h before a row needs --time"),
        (["--events", "my.jsonl"], "--events my.jsonl is for what --monitor finds"),
        (["-m", "lightgbm", "--task", "classes"], "model lightgbm: there are 'tree'"),
        (["--delay", "1d"], "--delay 1d: with classes it counts rows"),
        (["-s", "members=3"], "the tree has no parameter members"),
    ],
)
def test_what_there_is_not_for_classes(file, given, words):
    ended = invoke("evaluate", file, "-t", "sky", *given)
    assert ended.code == 2
    assert words in ended.stderr
    assert len(ended.stderr.strip().splitlines()) == 1


@pytest.fixture
def hours(tmp_path, monkeypatch):
    """A file of two series, whose label mostly follows from the one before it."""
    monkeypatch.chdir(tmp_path)
    rng, lines, sky = np.random.default_rng(5), [], {"Bonn": 0, "Kiel": 1}
    for row in range(ROWS):
        city = ["Bonn", "Kiel"][row % 2]
        sky[city] = (sky[city] + (rng.random() < 0.85)) % 3
        day, hour = divmod(row // 2, 24)
        at = f"2026-01-{1 + day:02} {hour:02}:00"
        label = ["clear", "rain", "fog"][sky[city]]
        lines.append(f"{row},{at},{city},{rng.normal():.2f},{label}")
    (tmp_path / "hours.csv").write_text("\n".join(["no,at,city,temp,sky", *lines]) + "\n")
    return "hours.csv"


LAGGED = ("-t", "sky", "--id", "no", "--by", "city")


@pytest.mark.parametrize(("span", "more"), [("1", ()), ("1h", ("--time", "at"))])
def test_lags_of_labels(hours, span, more):
    ended = invoke(
        *("evaluate", hours, *LAGGED, "--lags", span, "--lags-of", f"temp:{span}", *more),
        *("--json", "--save", "my.sapwood"),
        *("--predictions", "told.csv", "--report", "my.html", "--interval", "0.9"),
    )
    assert ended.code == 0, ended.stderr
    plain = invoke("evaluate", hours, "-t", "sky", "--id", "no", "--json").json()
    assert ended.json()["accuracy"] > plain["accuracy"] + 0.15
    assert ended.json()["prediction_sets"]["0.9"]["coverage"] > 0.85
    model = sapwood.load("my.sapwood")
    assert model.lags.features == [f"sky.lag{span}", f"temp.lag{span}"]
    assert "no" not in model.features
    rows = read_csv("told.csv")
    assert [row["no"] for row in rows] == [str(row) for row in range(ROWS)]
    assert invoke("inspect", "my.sapwood").stdout.count("sky.lag") > 1


def test_lags_are_compared(hours):
    ended = invoke("compare", hours, *LAGGED, "--lags", "1", "-m", "tree,forest", "--json")
    assert ended.code == 0, ended.stderr
    assert "also lag features, for each city: sky.lag1" in ended.stderr
    found = ended.json()["results"]
    alone = invoke("evaluate", hours, *LAGGED, "--lags", "1", "--json").json()
    assert {each["model"]: each for each in found}["tree"]["accuracy"] == alone["accuracy"]


def test_predictions_behind_learned_rows_see_labels(hours):
    ended = invoke("train", hours, *LAGGED, "--lags", "1", "--save", "my.sapwood")
    assert ended.code == 0, ended.stderr
    ended = invoke("predict", "my.sapwood", hours, "--target", "sky", "--output", "told.csv")
    assert ended.code == 0, ended.stderr
    assert "not known" not in ended.stderr
    model, rows = sapwood.load("my.sapwood"), read_csv(hours)
    lags = model.lags
    for number, (told, row) in enumerate(zip(read_csv("told.csv"), rows, strict=True)):
        assert told["prediction"] == model.model.predict_one(
            {**lags.next_row({"city": row["city"], "temp": float(row["temp"])}), "at": row["at"]},
            record=False,
        ), number
        lags.learn_one({"city": row["city"], "temp": float(row["temp"])}, row["sky"])
    ended = invoke("predict", "my.sapwood", hours, "--target", "temp", "--output", "told.csv")
    assert ended.code == 2
    assert "--target temp: the lags of the model are of sky" in ended.stderr
    ended = invoke("predict", "my.sapwood", hours, "--output", "told.csv")
    assert "'sky.lag1' is not known from row" in ended.stderr
    assert "forecast" not in ended.stderr


def test_a_run_with_lags_resumes(hours):
    lines = Path(hours).read_text().splitlines(keepends=True)
    typed = ("evaluate", hours, *LAGGED, "--lags", "1", "--delay", "3", "--json")
    whole = invoke(*typed).json()
    Path(hours).write_text("".join(lines[:400]))
    assert invoke(*typed, "--checkpoint", "run.check").code == 0
    Path(hours).write_text("".join(lines))
    ended = invoke(*typed, "--checkpoint", "run.check")
    assert "resuming after 399 rows" in ended.stderr
    assert {**ended.json(), "seconds": 0} == {**whole, "seconds": 0}
    ended = invoke("train", hours, "-t", "sky", "--lags", "1", "--save", "my.sapwood")
    assert ended.code == 0, ended.stderr
    ended = invoke("train", hours, "-m", "my.sapwood", "--save", "more.sapwood")
    assert ended.code == 0, ended.stderr
    assert sapwood.load("more.sapwood").rows_learned == 2 * ROWS
    ended = invoke("train", hours, "-m", "my.sapwood", "--lags", "1", "--save", "more.sapwood")
    assert "its lags cannot be set any more" in ended.stderr


def test_models_of_the_other_task(file):
    assert invoke("train", file, "-t", "sky", "--save", "my.sapwood").code == 0
    ended = invoke("evaluate", file, "-t", "wind", "-m", "my.sapwood")
    assert ended.code == 2
    assert "my.sapwood predicts sky" in ended.stderr
    assert invoke("train", file, "-t", "wind", "--save", "other.sapwood").code == 0
    ended = invoke("evaluate", file, "-t", "sky", "-m", "other.sapwood", "--task", "classes")
    assert "holds a HoeffdingTreeRegressor" in ended.stderr


@pytest.mark.usefixtures("unsaved_charts")
def test_report_and_curve(file):
    ended = invoke(
        "evaluate", file, "-t", "sky", "--report", "my.html", "--curve", "my.csv", "--json"
    )
    assert ended.code == 0, ended.stderr
    with open("my.html", encoding="utf-8") as own:
        page = own.read()
    for words in (
        "Confusion matrix",
        "Reliability diagram",
        "ROC AUC",
        "storm",
        "accuracy of the previous class",
    ):
        assert words in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    points = read_csv("my.csv")
    assert [int(point["row"]) for point in points] == list(range(50, ROWS + 1, 50))
    assert float(points[-1]["accuracy"]) == ended.json()["accuracy"]
    assert float(points[-1]["log_loss"]) == pytest.approx(ended.json()["log_loss"])


def test_text_in_a_pipe_names_the_option(file):
    with open(file, "rb") as own:
        rows = own.read()
    ended = invoke("evaluate", "-", "-t", "sky", input=rows)
    assert ended.code == 2
    assert "pass --task classes" in ended.stderr
    ended = invoke("evaluate", "-", "-t", "sky", "--task", "classes", "--json", input=rows)
    assert (
        ended.json()["accuracy"]
        == invoke("evaluate", file, "-t", "sky", "--json").json()["accuracy"]
    )


def test_few_whole_numbers_hint_at_classes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [f"{number % 7},{number % 3},{number / 3}" for number in range(200)]
    (tmp_path / "my.csv").write_text("\n".join(["a,kind,size", *lines]))
    assert "kind has 3 values" in invoke("evaluate", "my.csv", "-t", "kind").stderr
    assert "--task" not in invoke("evaluate", "my.csv", "-t", "kind", "--task", "numbers").stderr
    assert "--task" not in invoke("evaluate", "my.csv", "-t", "size").stderr


def test_inspect_names_the_classes_of_leaves(file):
    assert invoke("train", file, "-t", "sky", "--save", "my.sapwood").code == 0
    ended = invoke("inspect", "my.sapwood")
    assert "leaves: share of each class, where 0 is" in ended.stdout
    assert "'storm'" in ended.stdout


@pytest.mark.parametrize(
    "more", [[], ["--delay", "30"], ["--monitor"], ["--interval", "0.9", "--interval", "0.8"]]
)
def test_a_run_that_is_interrupted_resumes_to_the_same_result(file, monkeypatch, more):
    command = ["evaluate", file, "-t", "sky", "-m", "forest:members=2", *more, "--json", "--quiet"]
    whole = invoke(*command, "--predictions", "whole.csv", "--save", "whole.sapwood")
    assert whole.code == 0, whole.stderr
    real, steps = ClassRun._take, []

    def broken(run, chunk):
        steps.append(chunk)
        if len(steps) == 4:
            raise StreamError("the disk is gone")
        return real(run, chunk)

    parts = ["--checkpoint", "my.check", "--every", "100", "--predictions", "parts.csv"]
    monkeypatch.setattr(ClassRun, "_take", broken)
    assert invoke(*command, *parts, "--save", "parts.sapwood").code != 0
    monkeypatch.setattr(ClassRun, "_take", real)
    ended = invoke(*command, *parts, "--save", "parts.sapwood")
    assert ended.code == 0, ended.stderr
    expected = whole.json() | {"seconds": 0}
    assert ended.json() | {"seconds": 0} == expected
    assert read_csv("parts.csv") == read_csv("whole.csv")
    assert sapwood.load("parts.sapwood").to_bytes() == sapwood.load("whole.sapwood").to_bytes()


def test_a_checkpoint_of_another_run_is_rejected(file):
    command = ["train", file, "-t", "sky", "--save", "my.sapwood", "--checkpoint", "my.check"]
    assert invoke(*command).code == 0
    ended = invoke(*command, "-m", "forest")
    assert ended.code == 2
    assert "my.check belongs to another run, whose model was tree, not forest" in ended.stderr
    ended = invoke("train", file, "-t", "wind", *command[4:])
    assert ended.code == 2
    assert "my.check" in ended.stderr


@pytest.mark.usefixtures("unsaved_charts")
def test_drift_of_the_log_loss_is_reported(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    x = rng.random(6000)
    label = np.where((x < 0.5) ^ (np.arange(6000) >= 4000), "low", "high")
    lines = [f"{a!r},{b}" for a, b in zip(x.tolist(), label, strict=True)]
    (tmp_path / "my.csv").write_text("\n".join(["x,label", *lines]))
    ended = invoke(
        *("evaluate", "my.csv", "-t", "label", "--monitor", "--events", "my.jsonl", "--json"),
        *("--report", "my.html"),
    )
    assert ended.code == 0, ended.stderr
    first = ended.json()["drift"][0]
    assert (first["what"], first["name"]) == ("error", "log-loss")
    assert first["words"].startswith("log-loss")
    assert 3990 <= first["since"] <= first["row"] <= 4100
    with open("my.jsonl", encoding="utf-8") as own:
        assert json.loads(own.readline()) == first
    with open("my.html", encoding="utf-8") as own:
        page = own.read()
    assert "Drift events" in page
    assert "log-loss" in page
    assert "drift: log-loss" in invoke("evaluate", "my.csv", "-t", "label", "--monitor").stdout


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(300, 2)).round(3)
        label = np.where(x.sum(axis=1) > 0, "up", "down")
        lines = [f"{a},{b},{c}" for (a, b), c in zip(x.tolist(), label, strict=True)]
        names.append(f"rows{seed}.csv")
        (tmp_path / names[-1]).write_text("\n".join(["a,b,label", *lines]))
    return names


def test_classifiers_are_compared(files):
    models = "tree,tree:leaf=mean,forest:members=2"
    command = ["compare", *files, "-t", "label", "-m", models]
    ended = invoke(*command, "--json")
    assert ended.code == 0, ended.stderr
    found = ended.json()
    assert len(found["results"]) == 18
    own = {(each["stream"], each["model"]): each["accuracy"] for each in found["results"]}
    alone = invoke("evaluate", files[2], "-t", "label", "-m", "tree:leaf=mean", "--json").json()
    assert own[files[2], "tree:leaf=mean"] == alone["accuracy"]
    assert found["ranks"]["tree:leaf=mean"] == 3.0
    assert found["critical_difference"] == pytest.approx(1.353, abs=1e-3)
    ended = invoke(*command, "--measure", "log_loss", "--diagram", "ranks.svg")
    assert ended.code == 0, ended.stderr
    for words in ("log-loss over all rows", "average rank", "Nemenyi", "diagram: ranks.svg"):
        assert words in ended.stdout + ended.stderr
    ended = invoke(*command, "--measure", "kappa", "--report", "my.html", "--quiet")
    assert ended.code == 0, ended.stderr
    with open("my.html", encoding="utf-8") as file:
        page = file.read()
    for words in (
        "3 classifiers",
        "kappa over all rows",
        "Nemenyi",
        "rows5.csv",
        "Balanced accuracy",
    ):
        assert words.lower() in page.lower()
    alone = invoke("evaluate", files[2], "-t", "label", "-m", "tree:leaf=mean", "--json").json()
    assert page.count(measured(alone["kappa"])) == 2  # among the ranks, and of the stream
    ended = invoke("compare", files[0], "-t", "label")
    assert ended.code == 0, ended.stderr
    for words in ("majority", "last", "adaptive", "too few to test"):
        assert words in ended.stdout


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["-t", "label", "--measure", "rmse"], "--measure rmse is for numbers"),
        (["-t", "a", "--measure", "kappa"], "--measure kappa is for classes"),
        (["-t", "label", "-m", "tree,lightgbm"], "model lightgbm: there are 'tree'"),
    ],
)
def test_comparisons_of_the_other_task(files, given, words):
    ended = invoke("compare", *files, *given)
    assert ended.code == 2
    assert words in ended.stderr


@pytest.mark.parametrize("delay", [[], ["--delay", "30"]])
def test_prediction_sets_are_scored_and_written(file, data, delay):
    command = ["evaluate", file, "-t", "sky", *delay, "--json"]
    plain = invoke(*command).json()
    ended = invoke(
        *command, "--interval", "0.95", "--predictions", "told.csv", "--report", "my.html"
    )
    assert ended.code == 0, ended.stderr
    found = ended.json()
    own = found.pop("prediction_sets")["0.95"]
    assert found | {"seconds": 0} == plain | {"seconds": 0}  # they change nothing else
    rows = [row for row in read_csv("told.csv") if row["prediction"]]
    held = [row["actual"] in row["set_0.95"].split(" | ") for row in rows]
    assert own["coverage"] == np.mean(held)
    assert own["size"] == np.mean([len(row["set_0.95"].split(" | ")) for row in rows])
    assert own["rows"] == len(rows)
    assert all(row["prediction"] == row["set_0.95"].split(" | ")[0] for row in rows)
    with open("my.html", encoding="utf-8") as page:
        assert "coverage of prediction sets, level 0.95" in page.read()
    shown = invoke("evaluate", file, "-t", "sky", "--interval", "0.95").stdout
    assert "coverage of sets, level 0.95" in shown


@pytest.mark.parametrize("task", [[], ["--task", "classes"]])
def test_a_stream_may_name_its_own_column_of_classes(file, task):
    named = invoke("compare", file, "-t", "sky", "-m", "tree", "--json").json()
    ended = invoke("compare", f"{file}:target=sky", "-m", "tree", *task, "--json")
    assert ended.code == 0, ended.stderr
    assert ended.json()["results"][0]["accuracy"] == named["results"][0]["accuracy"]
    alone = invoke("evaluate", f"{file}:target=sky,drop=wind", *task, "--json")
    assert alone.code == 0, alone.stderr
    assert alone.json()["target"] == "sky"
    assert alone.json()["accuracy"] != named["results"][0]["accuracy"]
