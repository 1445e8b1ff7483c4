"""`sapwood evaluate` and `sapwood train`: the same numbers as in Python, wherever they go."""

import gzip
import json
import os
import pty
import subprocess
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

import naive_evaluate as naive
import sapwood
from cases import PATIENCE
from cli_cases import (
    HEADER,
    PROGRAM,
    TIMES,
    fields_of,
    invoke,
    read_csv,
    rows_of,
    run,
    start,
    write_csv,
)
from sapwood.evaluate import prequential
from sapwood.streams import open_stream

LINES = rows_of(3000)


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return write_csv(tmp_path / "a.csv", LINES)


def tree(**parameters):
    """A tree as the command line makes it."""
    return sapwood.HoeffdingTreeRegressor(**{"max_bytes": 12_000_000, **parameters})


def pairs():
    """The rows as Python would be given them, without the times."""
    for line in LINES:
        x = fields_of(line)
        y = x.pop("y")
        x["flag"] = float(x["flag"])
        x.pop("sold")
        yield x, y


# -- the result -----------------------------------------------------------------------------------


def test_json_is_what_python_finds(file) -> None:
    ended = invoke("evaluate", file, "-t", "y", "--drop", "sold", "--json")
    found = prequential(tree(), pairs())
    expected = {key: value for key, value in found.to_dict().items() if key not in TIMES}
    assert ended.code == 0
    assert ended.json() == {**expected, "stream": str(file), "target": "y"}
    times = json.loads(ended.stdout)
    assert 0 <= times["model_seconds"] <= times["seconds"] < 60


def test_predictions_curve_and_model_are_those_of_python(file, tmp_path) -> None:
    outputs = ("--predictions", "p.csv", "--curve", "k.csv", "--save", "m.sapwood")
    assert invoke("evaluate", file, "-t", "y", "--drop", "sold", *outputs).code == 0
    twin = tree()
    predictions = []
    for x, y in pairs():
        predictions.append(twin.predict_one(x))
        twin.learn_one(x, y)
    written = read_csv("p.csv")
    assert [int(row["line"]) for row in written] == list(range(2, 3002))
    assert [float(row["target"]) for row in written] == [y for _, y in pairs()]
    assert [float(row["prediction"]) for row in written] == predictions
    at_once = tree()
    rows, targets = zip(*pairs(), strict=True)
    at_once.predict_learn_many({name: [row[name] for row in rows] for name in rows[0]}, targets)
    saved = sapwood.load("m.sapwood")
    twin.schema = at_once.schema = saved.schema  # models made in Python have none
    assert saved.to_bytes() == at_once.to_bytes() == twin.to_bytes()
    points = naive.curve(predictions, [y for _, y in pairs()], 0.999, 1000)
    curve = read_csv("k.csv")
    assert [int(row["row"]) for row in curve] == [point[0] for point in points]
    names = ("mae", "rmse", "r2")
    columns = [f"{prefix}{name}" for prefix in ("", "weighted_", "window_") for name in names]
    for row, (_, *errors) in zip(curve, points, strict=True):
        assert [float(row[name]) for name in columns] == pytest.approx(errors, rel=1e-9)


def test_the_table_tells_errors_and_rows(file) -> None:
    ended = invoke("evaluate", file, "-t", "y")
    result = prequential(tree(), open_stream(file, target="y"))
    lines = ended.stdout.splitlines()
    assert lines[0] == f"{file}: errors in predicting y"
    [rmse] = [line.split("│") for line in lines if "│ RMSE  " in line]
    errors = (result.total.rmse, result.faded.rmse, result.window.rmse)
    assert [float(cell) for cell in rmse[2:5]] == pytest.approx(errors, rel=1e-3)
    [last] = [line.split("│") for line in lines if "RMSE of repeating the last value" in line]
    rival = result.baselines["last"]
    errors = (rival.total.rmse, rival.faded.rmse, rival.window.rmse)
    assert [float(cell) for cell in last[2:5]] == pytest.approx(errors, rel=1e-3)
    assert result.headline in lines
    assert "rows: 3,000 read, 3,000 predicted, 3,000 learned, 0 rejected" in lines
    assert lines[-1].startswith("model: ")


def test_the_table_on_the_way_has_each_line_once(file) -> None:
    shown = invoke("evaluate", "friedman:rows=40000").stderr.splitlines()
    assert shown[0].split()[0] == "rows"
    rows = [int(line.split()[0].replace(",", "")) for line in shown[1:]]
    assert rows[-1] == 40_000
    assert len(rows) <= 7
    assert all(later >= 2 * earlier for earlier, later in pairwise(rows[:-1]))


def test_without_a_stream_the_embedded_one_is_evaluated() -> None:
    found = invoke("evaluate", "--json").json()
    assert found["stream"].startswith("demand")
    assert found["rows"]["learned"] == found["rows"]["read"] > 10_000
    assert found["total"]["r2"] > 0.5


def test_a_report_is_written(file) -> None:
    ended = invoke("evaluate", file, "-t", "y", "--report", "report.html")
    assert ended.code == 0
    assert "report: report.html" in ended.stderr
    with open("report.html", encoding="utf-8") as page:
        text = page.read()
    assert text[:15].lower() == "<!doctype html>"
    assert "a.csv" in text


def test_parameters_scores_and_baselines_are_as_asked_for(file) -> None:
    given = ("--drop", "sold", "--set", "leaf=mean", "-s", "grace_period=50", "--fade", "0.9")
    found = invoke("evaluate", file, "-t", "y", *given, "--window", "77", "--json").json()
    expected = prequential(tree(leaf="mean", grace_period=50), pairs(), fade=0.9, window=77)
    assert found["total"]["mae"] == expected.total.mae
    assert found["weighted"]["mae"] == expected.faded.mae
    assert found["faded"] == found["weighted"]  # the old name
    assert found["window"]["mae"] == expected.window.mae
    assert found["window"]["rows"] == 77
    targets = [0.0] + [y for _, y in pairs()]
    errors = [abs(new - old) for old, new in pairwise(targets)]
    last = invoke("evaluate", file, "-t", "y", "-m", "last", "--json").json()
    assert last["total"]["mae"] == pytest.approx(sum(errors) / len(errors), rel=1e-12)
    assert last["leaves"] is None


def test_a_folder_named_like_a_model_is_no_model(file, tmp_path) -> None:
    (tmp_path / "tree").mkdir()
    assert invoke("evaluate", file, "-t", "y", "--json").json()["leaves"] >= 1


# -- the same rows from anywhere ------------------------------------------------------------------


def as_table(lines):
    rows = [fields_of(line) for line in lines]
    for row in rows:
        row["sold"] = datetime.fromisoformat(row["sold"])
    return pa.Table.from_pylist(rows)


def write_as(format, folder):
    """The file in another format, and what to call it."""
    text = "\n".join([HEADER, *LINES]) + "\n"
    path = folder / f"b.{format}"
    if format == "csv.gz":
        path.write_bytes(gzip.compress(text.encode()))
    elif format == "tsv":
        path.write_text(text.replace(",", "\t"), encoding="utf-8")
    elif format == "jsonl":
        path.write_text(
            "".join(json.dumps(fields_of(line)) + "\n" for line in LINES), encoding="utf-8"
        )
    elif format == "parquet":
        pa.parquet.write_table(as_table(LINES), path, row_group_size=700)
    elif format == "arrow":
        table = as_table(LINES)
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as out:
            out.write_table(table, max_chunksize=600)
    return path


@pytest.mark.parametrize("format", ["csv.gz", "tsv", "jsonl", "parquet", "arrow"])
def test_the_format_makes_no_difference(file, tmp_path, format) -> None:
    other = write_as(format, tmp_path)
    results = []
    for path in (file, other):
        ended = invoke("evaluate", path, "-t", "y", "--save", f"{path.name}.m", "--json")
        assert ended.code == 0, ended.stderr
        results.append({**ended.json(), "stream": ""})
    assert results[0] == results[1]
    assert sapwood.load("a.csv.m").to_bytes() == sapwood.load(f"{other.name}.m").to_bytes()


def test_a_pipe_is_as_good_as_a_file(file) -> None:
    from_file = run("evaluate", file, "-t", "y", "--save", "m1", "--json")
    piped = run("evaluate", "-", "-t", "y", "--save", "m2", "--json", input=file.read_bytes())
    assert piped.code == 0
    assert {**piped.json(), "stream": ""} == {**from_file.json(), "stream": ""}
    assert sapwood.load("m1").to_bytes() == sapwood.load("m2").to_bytes()


# -- where output goes ----------------------------------------------------------------------------


def test_predictions_on_standard_output_leave_the_result_to_standard_error(file) -> None:
    ended = run("evaluate", file, "-t", "y", "--predictions", "-")
    lines = ended.stdout.splitlines()
    assert lines[0] == "line,target,prediction"
    assert len(lines) == 3001
    assert all(line.count(",") == 2 for line in lines)
    assert "errors in predicting y" in ended.stderr
    assert "rows: 3,000 read" in ended.stderr


def test_predictions_come_while_the_stream_goes_on(file) -> None:
    process = start("evaluate", "-", "-t", "y", "--predictions", "-")
    process.stdin.write(file.read_bytes())
    process.stdin.flush()
    read = [process.stdout.readline() for _ in range(2001)]
    assert read[0] == b"line,target,prediction\n"
    assert read[-1].startswith(b"2001,")
    rest, _ = process.communicate(timeout=PATIENCE)
    assert rest.endswith(b"\n")
    assert process.returncode == 0


def run_shell(command, *, text=False):
    """Run a line of shell in which `sapwood` is the program under test, wherever that is."""
    programs = os.pathsep.join([str(Path(PROGRAM).parent), os.environ["PATH"]])
    return subprocess.run(
        ["bash", "-c", command],
        env={**os.environ, "PATH": programs},
        capture_output=True,
        text=text,
        timeout=PATIENCE,
        check=False,
    )


@pytest.mark.parametrize(
    "command",
    [
        "evaluate a.csv -t y | true",
        "evaluate a.csv -t y --json | true",
        "evaluate a.csv -t y --predictions - | head -1",
        "inspect m.sapwood | true",
        "predict m.sapwood a.csv | head -1",
    ],
)
def test_a_reader_that_has_enough_is_no_error(file, command) -> None:
    invoke("train", file, "-t", "y", "--save", "m.sapwood")
    piped = run_shell(f"set -o pipefail; sapwood {command}", text=True)
    assert piped.returncode == 0, piped.stderr
    assert piped.stdout.count("\n") == ("head" in command)
    assert "Traceback" not in piped.stderr
    assert "Exception" not in piped.stderr


def test_work_goes_on_although_nobody_looks(file) -> None:
    done = run_shell("sapwood train a.csv -t y --save m1 2>&1 >/dev/null | true; ls m1")
    assert done.stdout == b"m1\n"


def test_a_full_disk_behind_standard_output_is_told(file) -> None:
    done = run_shell("sapwood evaluate a.csv -t y --json > /dev/full")
    assert done.returncode == 2
    assert done.stderr.decode().splitlines()[-1].startswith("sapwood: no space left on device")
    assert b"Exception" not in done.stderr


def test_on_a_terminal_there_is_a_bar(file) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [PROGRAM, "evaluate", "friedman:rows=300000"], stdout=theirs, stderr=theirs, stdin=theirs
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            data = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not data:
            break
        shown += data
    os.close(ours)
    assert process.wait(timeout=PATIENCE) == 0
    assert b"rows/s" in shown
    assert b"friedman" in shown
    assert b"Traceback" not in shown


# -- labels that come late ------------------------------------------------------------------------


def late(delay, times=None):
    """Predictions and the tree of the slow twin."""
    twin = tree()
    rows = [(x, y) for x, y in pairs()]
    predictions, _ = naive.run(twin, rows, delay, times)
    return predictions, twin


def seconds(line):
    moment = datetime.fromisoformat(fields_of(line)["sold"]).replace(tzinfo=UTC)
    return moment.timestamp()


@pytest.mark.parametrize(
    ("given", "delay", "by_time"),
    [(["--delay", "24"], 24, False), (["--delay", "1.5d", "--time", "sold"], 129_600.0, True)],
)
def test_labels_come_late(file, given, delay, by_time) -> None:
    outputs = ["--predictions", "p.csv", "--save", "m", "--json"]
    ended = invoke("evaluate", file, "-t", "y", "--drop", "sold", *given, *outputs)
    predictions, twin = late(delay, [seconds(line) for line in LINES] if by_time else None)
    assert [float(row["prediction"]) for row in read_csv("p.csv")] == predictions
    saved = sapwood.load("m")
    twin.schema = saved.schema
    assert saved.to_bytes() == twin.to_bytes()
    targets = [y for _, y in pairs()]
    assert ended.json()["total"]["rmse"] == pytest.approx(naive.errors(predictions, targets)[1])
    assert ended.json()["rows"]["learned"] == 3000


# -- training -------------------------------------------------------------------------------------

OPTIONS = ("-t", "y", "--time-parts", "hour,weekday", "--categorical", "flag")


def test_training_leaves_the_model_of_an_evaluation(file) -> None:
    assert invoke("evaluate", file, *OPTIONS, "--save", "m1").code == 0
    ended = invoke("train", file, *OPTIONS, "--save", "m2")
    assert ended.code == 0
    assert ended.stdout == "m2\n"
    assert "rows: 3,000 read, 3,000 predicted, 3,000 learned, 0 rejected" in ended.stderr
    with open("m1", "rb") as first, open("m2", "rb") as second:
        assert first.read() == second.read()


def test_training_in_parts_is_training_on_the_whole(file, tmp_path) -> None:
    write_csv(tmp_path / "1.csv", LINES[:1234])
    # The rest in another order of columns, with times that are hard to tell at first.
    shuffled = [",".join(reversed(line.split(","))) for line in LINES[1234:]]
    write_csv(tmp_path / "2.csv", shuffled, ",".join(reversed(HEADER.split(","))))
    assert invoke("train", file, *OPTIONS, "--save", "whole").code == 0
    assert invoke("train", "1.csv", *OPTIONS, "--save", "part").code == 0
    ended = invoke("train", "2.csv", "-t", "y", "--model", "part", "--save", "part")
    assert ended.code == 0, ended.stderr
    assert sapwood.load("part").to_bytes() == sapwood.load("whole").to_bytes()


def test_a_saved_model_decides_what_columns_are(file, tmp_path) -> None:
    assert invoke("train", file, *OPTIONS, "--save", "m1").code == 0
    # Here b and city are missing in all rows, and there is a column that the model does not know.
    fields = [line.split(",") for line in rows_of(400, seed=2)]
    lines = [",".join([row[0], "", row[2], "", row[4], row[5], "7"]) for row in fields]
    write_csv(tmp_path / "gone.csv", lines, HEADER + ",new")
    ended = invoke("train", "gone.csv", "-t", "y", "--model", "m1", "--save", "m2")
    assert ended.code == 0, ended.stderr
    model = sapwood.load("m2")
    assert model.features == sapwood.load("m1").features
    assert model.summary.rows == 3400
    write_csv(tmp_path / "few.csv", [f"{row[0]},{row[5]}" for row in fields], "a,y")
    ended = invoke("train", "few.csv", "-t", "y", "--model", "m1", "--save", "m3")
    assert (
        "sapwood: few.csv lacks b, flag, city, sold, sold.hour, sold.weekday: missing in all rows\n"
    ) in ended.stderr
    assert sapwood.load("m3").summary.rows == 3400


def test_a_transform_is_learned_saved_and_kept(file) -> None:
    lines = [line for line in LINES if not line.rpartition(",")[2].startswith("-")]
    write_csv(file, lines)
    command = ("evaluate", file, "-t", "y", "--transform", "auto", "--interval", "0.9", "--json")
    ended = invoke(*command, "--save", "m")
    assert ended.code == 0, ended.stderr
    model = sapwood.load("m").model
    assert model.transform == "auto"
    assert model.model.schema == model._models[0].schema
    assert abs(ended.json()["intervals"]["0.9"]["total"]["coverage"] - 0.9) < 0.03
    again = invoke("predict", "m", file)
    assert min(map(float, again.stdout.split()[1:])) >= 0.0
    ended = invoke("evaluate", file, "-t", "y", "-m", "hybrid", "--transform", "sqrt")
    assert ended.code == 2
    assert "--transform sqrt: model = HybridRegressor" in ended.stderr


def test_a_loss_is_learned_saved_and_kept(file) -> None:
    command = ("evaluate", file, "-t", "y", "--loss", "huber", "--interval", "0.9", "--json")
    ended = invoke(*command, "--save", "m")
    assert ended.code == 0, ended.stderr
    model = sapwood.load("m").model
    assert model.loss == "huber"
    ended = invoke("evaluate", file, "-t", "y", "-m", "m", "--loss", "poisson")
    assert ended.code == 2
    assert "its parameters cannot be set any more" in ended.stderr
    ended = invoke("evaluate", file, "-t", "y", "--loss", "poisson", "--transform", "sqrt")
    assert ended.code == 2
    assert "--transform and --loss both change what is learned" in ended.stderr
    ended = invoke("evaluate", file, "-t", "y", "-m", "hybrid", "--loss", "huber")
    assert ended.code == 2
    assert "--loss huber: model = HybridRegressor" in ended.stderr
