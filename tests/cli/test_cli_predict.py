"""`sapwood predict` and `sapwood inspect`: what a saved model says, row by row, as rows come."""

import gzip
import json
import math
import select
import signal
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import sapwood
from cases import PATIENCE
from cli_cases import (
    HEADER,
    Ended,
    assert_fails,
    fields_of,
    invoke,
    read_csv,
    rows_of,
    run,
    start,
    stop,
    write_csv,
)

TRAINED = rows_of(4000)
ROWS = rows_of(500, seed=9)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    write_csv(folder / "a.csv", TRAINED)
    options = ("-t", "y", "--time-parts", "hour,month", "--categorical", "flag")
    assert invoke("train", folder / "a.csv", *options, "--save", folder / "m").code == 0
    return folder / "m"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path / "new.csv", ROWS)
    return tmp_path


def known(line):
    """The features of a line as the model knows them."""
    row = fields_of(line)
    moment = datetime.fromisoformat(row["sold"] + "+00:00")
    row.update({"sold": moment.timestamp(), "sold.hour": moment.hour, "sold.month": moment.month})
    row["flag"] = "true" if row["flag"] else "false"
    del row["y"]
    return row


def expected(model, rows):
    tree = sapwood.load(model)
    columns = {name: [row.get(name) for row in rows] for name in tree.features}
    numbers = {name for name, kind in tree.feature_kinds.items() if kind == "number"}
    for name in numbers:
        column = [math.nan if value is None else value for value in columns[name]]
        columns[name] = np.array(column, dtype=float)
    return tree.predict_many(columns).tolist()


def predictions(ended):
    assert ended.code == 0, ended.stderr
    header, *lines = ended.stdout.splitlines()
    assert header == "prediction"
    return [float(line) for line in lines]


def test_predictions_are_those_of_python(folder, trained) -> None:
    found = predictions(invoke("predict", trained, "new.csv"))
    assert found == expected(trained, [known(line) for line in ROWS])
    assert len(set(found)) > 400


def test_columns_may_be_missing_new_or_in_another_order(folder, trained) -> None:
    rows = [known(line) for line in ROWS]
    lines = [f"{row['city']},7,{row['a']}" for row in rows]
    write_csv(folder / "few.csv", lines, "city,other,a")
    ended = invoke("predict", trained, "few.csv")
    few = [{"city": row["city"], "a": row["a"]} for row in rows]
    assert predictions(ended) == expected(trained, few)
    missing, counts = ended.stderr.splitlines()
    assert missing == (
        "sapwood: few.csv lacks b, flag, sold, sold.hour, sold.month: missing in all rows"
    )
    assert counts == "rows: 500 read, 500 predicted, 0 rejected"


def test_labels_and_columns_are_read_as_the_model_knows_them(folder, trained) -> None:
    # A city that looks like a number, one that is new, a column b without any value.
    rows = [known(line) for line in ROWS[:30]]
    for place, row in enumerate(rows):
        row.update(city=str(place) if place else None, b=None)
    names = ["a", "b", "flag", "city", "sold"]
    texts = [dict(zip(HEADER.split(","), line.split(","), strict=True)) for line in ROWS[:30]]
    for text, row in zip(texts, rows, strict=True):
        text.update(city=row["city"] or "", b="")
    lines = [",".join(text[name] for name in names) for text in texts]
    write_csv(folder / "odd.csv", lines, ",".join(names))
    assert predictions(invoke("predict", trained, "odd.csv")) == expected(trained, rows)


@pytest.mark.parametrize("format", ["csv.gz", "jsonl", "parquet"])
def test_the_format_makes_no_difference(folder, trained, format) -> None:
    path = folder / f"new.{format}"
    rows = [fields_of(line) for line in ROWS]
    if format == "csv.gz":
        path.write_bytes(gzip.compress((folder / "new.csv").read_bytes()))
    elif format == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    else:
        for row in rows:
            row["sold"] = datetime.fromisoformat(row["sold"])
        pa.parquet.write_table(pa.Table.from_pylist(rows), path)
    found = predictions(invoke("predict", trained, path))
    assert found == predictions(invoke("predict", trained, "new.csv"))


def test_times_in_another_format_are_read_if_it_is_given_or_found(folder, trained) -> None:
    changed = [
        line.replace(moment, datetime.fromisoformat(moment).strftime("%d.%m.%y %H:%M"))
        for line in ROWS
        for moment in [fields_of(line)["sold"]]
    ]
    write_csv(folder / "days.csv", changed)
    ended = invoke("predict", trained, "days.csv", "--time-format", "sold=%d.%m.%y %H:%M")
    assert predictions(ended) == expected(trained, [known(line) for line in ROWS])
    assert predictions(invoke("predict", trained, "days.csv")) == predictions(ended)


def test_predictions_go_to_a_file_if_asked(folder, trained) -> None:
    ended = invoke("predict", trained, "new.csv", "--output", "p.txt")
    assert ended.stdout == ""
    assert (folder / "p.txt").read_text(encoding="utf-8") == invoke(
        "predict", trained, "new.csv"
    ).stdout


def test_a_header_alone_has_no_predictions(folder, trained) -> None:
    write_csv(folder / "none.csv", [])
    ended = invoke("predict", trained, "none.csv")
    assert predictions(ended) == []
    assert "sapwood: none.csv has no rows: nothing was predicted" in ended.stderr


# -- bad rows -------------------------------------------------------------------------------------


def test_a_bad_row_stops_all_after_the_predictions_before_it(folder, trained) -> None:
    write_csv(folder / "bad.csv", [*ROWS[:7], "much" + ROWS[7], *ROWS[8:]])
    ended = invoke("predict", trained, "bad.csv")
    assert_fails(Ended(ended.code, "", ended.stderr), "bad.csv, line 9, column 'a': not a number")
    good = expected(trained, [known(line) for line in ROWS[:7]])
    assert ended.stdout == "".join(f"{line}\n" for line in ["prediction", *good])


def test_bad_rows_that_are_left_out_have_empty_lines(folder, trained) -> None:
    bad = {0, 3, 4, 11, 499}
    lines = [line + ",8" if place in bad else line for place, line in enumerate(ROWS)]
    write_csv(folder / "bad.csv", lines)
    skip = ("--on-bad-row", "skip", "--bad-rows", "left.csv")
    ended = invoke("predict", trained, "bad.csv", *skip)
    assert ended.code == 0
    values = expected(trained, [known(line) for line in ROWS])
    shown = ["" if place in bad else repr(value) for place, value in enumerate(values)]
    assert ended.stdout.splitlines() == ["prediction", *shown]
    assert [row["place"] for row in read_csv("left.csv")] == [f"line {n + 2}" for n in sorted(bad)]
    assert "rows: 500 read, 495 predicted, 5 rejected" in ended.stderr


# -- as rows come ---------------------------------------------------------------------------------


def read_lines(process, count):
    """Some lines of the output of a process that goes on."""
    text = b""
    while text.count(b"\n") < count:
        ready, _, _ = select.select([process.stdout], [], [], PATIENCE)
        assert ready, f"there is nothing after {text!r}"
        data = process.stdout.read1(65536)
        assert data, f"it has ended after {text!r}"
        text += data
    return text.decode().splitlines()


@pytest.mark.parametrize("format", ["csv", "jsonl"])
def test_predictions_come_as_soon_as_rows_do(folder, trained, format) -> None:
    process = start("predict", trained, "--format", format, "--on-bad-row", "skip")
    values = [repr(value) for value in expected(trained, [known(line) for line in ROWS])]
    if format == "csv":
        texts, head, bad = ROWS, f"{HEADER}\n", "1,2,3\n"
    else:
        texts, head, bad = [json.dumps(fields_of(line)) for line in ROWS], "", "{\n"

    def send(text):
        process.stdin.write(text.encode())
        process.stdin.flush()

    send(head + "".join(f"{text}\n" for text in texts[:3]))
    assert read_lines(process, 4) == ["prediction", *values[:3]]
    for place in range(3, 10):
        send(texts[place] + "\n")
        assert read_lines(process, 1) == [values[place]]
    send(bad)
    assert read_lines(process, 1) == [""]
    half = len(texts[10]) // 2
    send(texts[10][:half])
    assert not select.select([process.stdout], [], [], 0.3)[0]
    send(texts[10][half:] + "\n" + "".join(f"{text}\n" for text in texts[11:]))
    assert read_lines(process, len(texts) - 10) == values[10:]
    assert process.poll() is None
    stdout, stderr = process.communicate(timeout=PATIENCE)
    assert (process.returncode, stdout) == (0, b"")
    assert stderr.decode().splitlines()[-1] == "rows: 501 read, 500 predicted, 1 rejected"


def test_a_pipe_that_waits_can_be_interrupted(folder, trained) -> None:
    process = start("predict", trained)
    process.stdin.write(f"{HEADER}\n{ROWS[0]}\n".encode())
    process.stdin.flush()
    assert len(read_lines(process, 2)) == 2
    ended = stop(process, signal.SIGINT)
    assert ended == Ended(130, "", "sapwood: interrupted\n")


def test_a_last_line_without_its_end_is_a_row(folder, trained) -> None:
    text = "\n".join([HEADER, *ROWS[:5]])
    found = predictions(run("predict", trained, input=text.encode()))
    assert found == expected(trained, [known(line) for line in ROWS[:5]])


# -- looking inside -------------------------------------------------------------------------------


def test_inspect_shows_features_and_the_tree(folder, trained) -> None:
    tree = sapwood.load(trained)
    ended = invoke("inspect", trained, "--depth", "1", "--svg", "tree.svg")
    assert ended.code == 0
    assert ended.stdout.splitlines()[0].split() == ["rows", "4000"]
    for name in tree.features:
        assert str(name) in ended.stdout
    assert tree.to_text(max_depth=1) in ended.stdout
    assert (folder / "tree.svg").read_text(encoding="utf-8") == str(tree.draw(max_depth=1))


def test_inspect_tells_all_as_json(folder, trained) -> None:
    tree = sapwood.load(trained)
    found = json.loads(invoke("inspect", trained, "--json").stdout)
    assert found["rows"] == 4000
    assert found["leaves"] == tree.n_leaves
    assert found["depth"] == tree.summary.depth
    assert found["bytes"] == tree.nbytes
    assert found["features"] == tree.feature_kinds
    assert found["importances"] == tree.feature_importances
    assert found["parameters"]["max_bytes"] == "12000000"


def test_a_model_that_has_learned_nothing_can_be_used(folder) -> None:
    sapwood.HoeffdingTreeRegressor(leaf="mean").save("fresh")
    assert invoke("inspect", "fresh").code == 0
    assert json.loads(invoke("inspect", "fresh", "--json").stdout)["features"] == {}
    assert set(predictions(invoke("predict", "fresh", "new.csv"))) == {0.0}
    ended = invoke("train", "new.csv", "-t", "y", "--model", "fresh", "--save", "grown")
    assert ended.code == 0
    assert sapwood.load("grown").parameters["leaf"] == "mean"
    assert sapwood.load("grown").summary.rows == 500


def test_names_that_look_like_markup_are_shown_as_they_are(folder) -> None:
    write_csv(folder / "odd.csv", [f"{n % 7},{n % 7}" for n in range(500)], "[bold]x,y")
    assert invoke("train", "odd.csv", "-t", "y", "--save", "m").code == 0
    assert invoke("inspect", "m").stdout.count("[bold]x") >= 1


def test_a_model_that_has_learned_arrays_knows_columns_by_their_numbers(tmp_path) -> None:
    x = np.random.default_rng(3).random((3000, 2))
    tree = sapwood.HoeffdingTreeRegressor()
    tree.learn_many(x, 5.0 * x[:, 0])
    tree.save(tmp_path / "m")
    names = ("1", "0", "y")
    rows = [dict(zip(names, (b, a, 5.0 * a), strict=True)) for a, b in x[:40].tolist()]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    ended = invoke("predict", tmp_path / "m", tmp_path / "a.jsonl")
    assert ended.stderr == "rows: 40 read, 40 predicted, 0 rejected\n"
    assert list(map(float, ended.stdout.split()[1:])) == tree.predict_many(x[:40]).tolist()
    go_on = ("-t", "y", "-m", tmp_path / "m", "--checkpoint", tmp_path / "C", "--json")
    for _ in range(2):  # the second time from the checkpoint
        ended = invoke("evaluate", tmp_path / "a.jsonl", *go_on, "--save", tmp_path / "n")
        assert ended.code == 0, ended.stderr
        assert ended.json()["total"]["r2"] > 0.99
    assert sapwood.load(tmp_path / "n").features == [0, 1]


@pytest.mark.parametrize(
    ("model", "targets", "option", "words"),
    [
        ("forest:members=2", ["price"], ("--svg", "t.svg"), "--svg is for one tree"),
        ("tree", ["y", "z"], ("--svg", "t.svg"), "--svg is for one target, and own predicts y, z"),
        ("tree", ["y", "z"], ("--rules", "2"), "--rules is for one target, and own predicts y, z"),
    ],
)
def test_inspect_rejects_what_a_model_does_not_have(folder, model, targets, option, words) -> None:
    names = ["a", *targets]
    lines = [",".join(str(row % 7 + place) for place in range(len(names))) for row in range(60)]
    write_csv(folder / "few.csv", lines, header=",".join(names))
    named = [part for target in targets for part in ("-t", target)]
    assert invoke("train", "few.csv", *named, "-m", model, "--save", "own").code == 0
    ended = invoke("inspect", "own", *option)
    assert ended.code == 2
    assert words in ended.stderr
    assert ended.stdout == ""
    assert not (folder / "t.svg").exists()
