"""Checkpoints: a run that is killed, stopped or starved goes on as if nothing had happened."""

import gzip
import json
import os
import random
import shutil
import signal
from datetime import datetime

import pyarrow as pa
import pyarrow.parquet
import pytest

from cli_cases import (
    HEADER,
    Ended,
    assert_fails,
    fields_of,
    invoke,
    rows_of,
    run,
    run_struck,
    start,
    stop,
    wait_until,
    write,
    write_csv,
)

RESULTS = ("model", "curve.csv", "predictions.csv", "bad.csv")
OUTPUTS = ("--save", "model", "--curve", "curve.csv", "--predictions", "predictions.csv")
ROWS = 40_000
BAD_ROWS = ("--on-bad-row", "skip", "--bad-rows", "bad.csv")


def broken(line, place):
    """A line, or every fiftieth time one that cannot be read."""
    if place % 50:
        return line
    return [line + ",1", line.replace(".", "x", 1), line.rpartition(",")[0] + ",-"][place % 3]


def lines_with_faults(count):
    return [broken(line, place) for place, line in enumerate(rows_of(count))]


def command(stream="a.csv", every="2000", *more):
    checkpoint = ("--checkpoint", "C", "--every", every) if every else ()
    return ("evaluate", stream, "-t", "y", *OUTPUTS, *BAD_ROWS, *checkpoint, "--json", *more)


def results(folder, ended):
    """All that a run has found, but for the times."""
    assert ended.code == 0, ended.stderr
    return {"json": ended.json(), **{name: (folder / name).read_bytes() for name in RESULTS}}


def undisturbed(folder, stream="a.csv", *more):
    """What a run finds that is never saved nor stopped."""
    found = results(folder, run(*command(stream, None, *more), cwd=folder))
    for name in RESULTS:
        (folder / name).unlink()
    return found


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """A folder with a file of many rows, and what a run finds there."""
    folder = tmp_path_factory.mktemp("plain")
    write_csv(folder / "a.csv", lines_with_faults(ROWS))
    return folder, undisturbed(folder)


@pytest.fixture
def case(plain, tmp_path):
    """Another folder with the same file, and what a run is to find there."""
    folder, expected = plain
    shutil.copy(folder / "a.csv", tmp_path / "a.csv")
    return tmp_path, expected


def rows_done(stderr):
    """Return the number of rows at which a run resumed; 0 if it did not."""
    found = [line for line in stderr.splitlines() if line.startswith("resuming after ")]
    return int(found[0].split()[2].replace(",", "")) if found else 0


# -- killed ---------------------------------------------------------------------------------------


def strike(folder, moment, typed, draw):
    """Run a command that is killed at a moment of one kind, or a little later."""
    count = draw.randrange(1, 300) if moment == "start" else 1
    seconds = draw.choice([0.001, 0.005]) if moment == "saved" else 0.0
    ended = run_struck(signal.SIGKILL, moment, *typed, cwd=folder, count=count, seconds=seconds)
    assert ended.code == -(signal.SIGPROF if seconds else signal.SIGKILL), ended.stderr


def follow_with_kills(folder, moments, seed, typed):
    """Start a command again and again, and kill it; return its end, and after which row it began.

    The last time it is let run to its end.
    """
    draw = random.Random(seed)
    for moment in moments:
        strike(folder, moment, typed, draw)
    ended = run(*typed, cwd=folder)
    return ended, rows_done(ended.stderr)


MOMENTS = ("opening", "saved", "start", "saving")


def test_killed_runs_go_on_to_the_same_end(case) -> None:
    folder, expected = case
    ended, went_on = follow_with_kills(folder, MOMENTS, 1, command())
    assert went_on == 2000
    assert results(folder, ended) == expected
    assert len(expected["bad.csv"].splitlines()) == ROWS // 50 + 1
    assert expected["json"]["rows"]["learned"] == ROWS - ROWS // 50


@pytest.mark.long
@pytest.mark.parametrize("every", ["500", "20000", "0.01s"])
def test_runs_that_are_killed_twenty_times(tmp_path, every) -> None:
    write_csv(tmp_path / "a.csv", lines_with_faults(1_000_000))
    expected = undisturbed(tmp_path)
    moments = random.Random(every).choices(MOMENTS, k=20)
    ended, went_on = follow_with_kills(tmp_path, moments, every, command("a.csv", every))
    assert went_on > 0
    assert results(tmp_path, ended) == expected


def write_as(folder, format, lines):
    """Rows without faults in another format; return what to call them."""
    path = folder / f"a.{format}"
    if format == "csv.gz":
        path.write_bytes(gzip.compress(("\n".join([HEADER, *lines]) + "\n").encode()))
        return path.name
    rows = [fields_of(line) for line in lines]
    if format == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return path.name
    for row in rows:
        row["sold"] = datetime.fromisoformat(row["sold"])
    table = pa.Table.from_pylist(rows)
    if format == "parquet":
        pa.parquet.write_table(table, path, row_group_size=len(rows) // 7)
    elif format == "arrow":
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as out:
            out.write_table(table, max_chunksize=len(rows) // 9)
    else:
        path.mkdir()
        for part in range(3):
            piece = table.slice(part * len(rows) // 3, len(rows) // 3)
            pa.parquet.write_table(piece, path / f"{part}.parquet")
    return path.name


@pytest.mark.long
@pytest.mark.parametrize("format", ["csv.gz", "jsonl", "parquet", "arrow", "folder"])
def test_runs_on_other_formats_that_are_killed(tmp_path, format) -> None:
    stream = write_as(tmp_path, format, rows_of(90_000))
    expected = undisturbed(tmp_path, stream)
    ended, went_on = follow_with_kills(tmp_path, ("saved", "saving"), format, command(stream))
    assert 0 < went_on < 90_000
    assert results(tmp_path, ended) == expected


@pytest.mark.long
@pytest.mark.parametrize(
    "more",
    [
        ["--delay", "500"],
        ["--delay", "3d", "--time", "sold"],
        ["-s", "observer=ebst"],
        ["-m", "forest", "-s", "members=4"],
        ["-m", "adaptive"],
    ],
)
def test_other_runs_that_are_killed(tmp_path, more) -> None:
    write_csv(tmp_path / "a.csv", lines_with_faults(60_000))
    expected = undisturbed(tmp_path, "a.csv", *more)
    typed = command("a.csv", "2000", *more)
    ended, went_on = follow_with_kills(tmp_path, MOMENTS, 3, typed)
    assert went_on > 0
    assert results(tmp_path, ended) == expected


# -- stopped --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_save_and_tell_how_to_go_on(case, number, code) -> None:
    folder, expected = case
    ended = run_struck(number, "saved", *command(), cwd=folder, count=3)
    assert (ended.code, ended.stdout) == (code, "")
    last = ended.stderr.splitlines()[-1]
    assert last.startswith("interrupted after ")
    assert last.endswith(" rows: the same command resumes there")
    assert not (folder / "model").exists()
    again = run(*command(), cwd=folder)
    assert rows_done(again.stderr) == int(last.split()[2].replace(",", "")) == 6000
    assert results(folder, again) == expected


def test_without_a_checkpoint_it_is_told_what_would_have_helped(tmp_path) -> None:
    process = start("evaluate", "friedman:rows=none", "--predictions", "-", cwd=tmp_path)
    for _ in range(100):
        process.stdout.readline()
    ended = stop(process, signal.SIGINT)
    assert ended.code == 130
    assert "with --checkpoint FILE, the same command would resume there" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_second_signal_does_not_wait(tmp_path) -> None:
    (tmp_path / "busy.py").write_text(
        "import signal\n"
        "class Model:\n"
        "    def predict_one(self, x):\n"
        "        signal.raise_signal(signal.SIGINT)\n"
        "        print('it goes on', flush=True)\n"
        "        signal.raise_signal(signal.SIGINT)\n"
        "        print('it still goes on', flush=True)\n"
        "        return 0.0\n"
        "    def learn_one(self, x, y): pass\n",
        encoding="utf-8",
    )
    ended = run("evaluate", "friedman:rows=1000", "-m", "busy:Model", cwd=tmp_path)
    assert ended.stdout == "it goes on\n"
    assert ended.code == 130
    assert ended.stderr == "interrupted: the last checkpoint is unchanged\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_waits_for_rows_stops_at_once_and_goes_on(case, number) -> None:
    folder, expected = case
    typed = command("-")
    process = start(*typed, cwd=folder)
    text = (folder / "a.csv").read_text(encoding="utf-8")
    write(process, "".join(text.splitlines(keepends=True)[:3001]))
    assert wait_until(lambda: count_lines(folder) == 3000, process)
    ended = stop(process, number)
    assert ended.code == 128 + number
    assert "interrupted after 3,000 rows: the same command resumes" in ended.stderr
    again = run(*typed, cwd=folder, input=text.encode())
    assert "resuming after 3,000 rows" in again.stderr
    found = results(folder, again)
    assert found["json"].pop("stream") == "standard input"
    assert found["bad.csv"].replace(b"standard input", b"a.csv") == expected["bad.csv"]
    for name in ("model", "curve.csv", "predictions.csv"):
        assert found[name] == expected[name]
    assert found["json"].items() <= expected["json"].items()


def count_lines(folder):
    """How many rows were predicted or left out so far."""
    files = [folder / name for name in ("predictions.csv", "bad.csv")]
    if not all(file.exists() for file in files):
        return 0
    return sum(file.read_bytes().count(b"\n") - 1 for file in files)


# -- going on -------------------------------------------------------------------------------------

PLAIN = ("-t", "y", "--checkpoint", "C", "--every", "1000", "--save", "model", "--json")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def grown(folder, *more):
    """A file that was evaluated when it had half of its rows, and has more now."""
    lines = rows_of(4000)
    write_csv(folder / "a.csv", lines[:2500])
    assert invoke("evaluate", "a.csv", *PLAIN, *more).code == 0
    write_csv(folder / "a.csv", lines)
    return lines


def test_rows_that_are_appended_are_learned_by_the_same_command(folder) -> None:
    grown(folder, "--delay", "100")
    ended = invoke("evaluate", "a.csv", *PLAIN, "--delay", "100")
    assert rows_done(ended.stderr) == 2500
    model = (folder / "model").read_bytes()
    afresh = invoke("evaluate", "a.csv", "-t", "y", "--save", "m", "--json", "--delay", "100")
    assert ended.json() == afresh.json()
    assert model == (folder / "m").read_bytes()
    again = invoke("evaluate", "a.csv", *PLAIN, "--delay", "100")
    assert again.json() == afresh.json()
    assert (folder / "model").read_bytes() == model


def test_a_generated_stream_goes_on(folder) -> None:
    options = ("--checkpoint", "C", "--every", "1000", "--json")
    assert invoke("evaluate", "friedman:rows=3000", *options).code == 0
    ended = invoke("evaluate", "friedman:rows=3000", *options)
    assert rows_done(ended.stderr) == 3000
    assert ended.json() == invoke("evaluate", "friedman:rows=3000", "--json").json()


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 16
    path.write_bytes(data)


def test_a_damaged_checkpoint_is_told_and_the_one_before_is_used(folder) -> None:
    grown(folder)
    expected = invoke("evaluate", "a.csv", "-t", "y", "--json").json()
    flip(folder / "C")
    ended = invoke("evaluate", "a.csv", *PLAIN)
    told = ended.stderr.splitlines()
    start = next(place for place, line in enumerate(told) if line.startswith("sapwood: "))
    warning, went_on = told[start : start + 2]
    assert warning.startswith("sapwood: ")
    assert "C" in warning
    assert warning.endswith("C.previous")
    assert went_on == "resuming after 2,000 rows, from C"
    assert ended.json() == expected


def test_if_both_checkpoints_are_damaged_nothing_is_done(folder) -> None:
    grown(folder)
    kept = (folder / "model").read_bytes()
    for name in ("C", "C.previous"):
        flip(folder / name)
    both = [(folder / name).read_bytes() for name in ("C", "C.previous")]
    assert_fails(invoke("evaluate", "a.csv", *PLAIN), "C", "C.previous", "remove it")
    assert [(folder / name).read_bytes() for name in ("C", "C.previous")] == both
    assert (folder / "model").read_bytes() == kept


def test_a_run_that_died_between_two_names_goes_on_from_the_older(folder) -> None:
    grown(folder)
    expected = invoke("evaluate", "a.csv", "-t", "y", "--json").json()
    (folder / "C").rename(folder / "C.next")
    ended = invoke("evaluate", "a.csv", *PLAIN)
    assert rows_done(ended.stderr) == 2000
    assert ended.json() == expected
    assert sorted(path.name for path in folder.glob("C*")) == ["C", "C.previous"]


OTHERS = [
    ("stream", ["evaluate", "b.csv", "-t", "y"]),
    ("target", ["evaluate", "a.csv", "-t", "a"]),
    ("features", ["evaluate", "a.csv", "-t", "y", "--drop", "b"]),
    ("features", ["evaluate", "a.csv", "-t", "y", "--categorical", "flag"]),
    (
        "time_formats was {}, not {'sold': '%Y-%d-%m %H:%M'}",
        ["evaluate", "a.csv", "-t", "y", "--time-format", "sold=%Y-%d-%m %H:%M"],
    ),
    ("model", ["evaluate", "a.csv", "-t", "y", "--set", "leaf=mean"]),
    ("delay was None, not 7", ["evaluate", "a.csv", "-t", "y", "--delay", "7"]),
    ("fade was 0.999, not 0.5", ["evaluate", "a.csv", "-t", "y", "--fade", "0.5"]),
    ("window was 1000, not 5", ["evaluate", "a.csv", "-t", "y", "--window", "5"]),
    ("on_bad_row was error, not skip", ["evaluate", "a.csv", "-t", "y", "--on-bad-row", "skip"]),
]


@pytest.mark.parametrize(("what", "typed"), OTHERS, ids=[" ".join(typed) for _, typed in OTHERS])
def test_a_checkpoint_of_another_run_is_refused(folder, what, typed) -> None:
    grown(folder)
    write_csv(folder / "b.csv", rows_of(3000, seed=2))
    kept = (folder / "C").read_bytes()
    ended = invoke(*typed, "--checkpoint", "C", "--save", "m")
    assert_fails(ended, "C belongs to another run", f"whose {what}", "name another file")
    assert (folder / "C").read_bytes() == kept
    assert not (folder / "m").exists()


def test_what_is_no_checkpoint_is_refused(folder) -> None:
    grown(folder)
    shutil.copy("model", "C")
    (folder / "C.previous").unlink()
    assert_fails(invoke("evaluate", "a.csv", *PLAIN), "C ")
    (folder / "C").write_text("a,b\n1,2\n", encoding="utf-8")
    assert_fails(invoke("evaluate", "a.csv", *PLAIN), "C ")
    assert (folder / "C").read_text(encoding="utf-8") == "a,b\n1,2\n"


def test_files_that_grow_along_have_to_be_those_of_before(folder) -> None:
    write_csv(folder / "a.csv", rows_of(3000))
    options = ("evaluate", "a.csv", "-t", "y", "--checkpoint", "C")
    predictions = ("--predictions", "p.csv")
    assert invoke(*options, *predictions).code == 0
    kept = (folder / "p.csv").read_bytes()
    assert_fails_late(invoke(*options, "--predictions", "q.csv"), "q.csv", "first 3,000 rows")
    assert not (folder / "q.csv").exists()
    (folder / "p.csv").write_bytes(kept[:-10])
    assert_fails_late(invoke(*options, *predictions), "p.csv has less than", "restore it")
    (folder / "p.csv").write_bytes(kept + b"what was written after the checkpoint")
    assert invoke(*options, *predictions).code == 0
    assert (folder / "p.csv").read_bytes() == kept


def assert_fails_late(ended, *words):
    """A command has failed after it told from where it went on."""
    _, went_on, rest = ended.stderr.partition("resuming after ")
    assert went_on
    failure = rest.partition("\n")[2]
    assert_fails(Ended(ended.code, ended.stdout, failure), *words)


def test_a_file_that_has_become_shorter_is_told(folder) -> None:
    lines = grown(folder)
    write_csv(folder / "a.csv", lines[:100])
    assert_fails_late(invoke("evaluate", "a.csv", *PLAIN), "a.csv has become shorter")


# -- starved --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("limit", "file"), [(700_000, "predictions.csv"), (330_000, "C")])
def test_a_full_disk_leaves_the_checkpoint_before(case, limit, file) -> None:
    folder, expected = case
    typed = command()
    if file == "C":
        typed = [part for part in typed if part not in ("--predictions", "predictions.csv")]
    ended = run(*typed, cwd=folder, limit=limit)
    assert (ended.code, ended.stdout) == (2, "")
    assert ended.stderr.splitlines()[-1].startswith(f"sapwood: {file}: file too large; ")
    assert "Traceback" not in ended.stderr
    assert not [name for name in os.listdir(folder) if name.endswith((".tmp", ".next"))]
    again = run(*typed, cwd=folder)
    assert 0 < rows_done(again.stderr) < ROWS
    assert again.json() == expected["json"]
    names = [name for name in RESULTS if name in typed]
    assert {name: (folder / name).read_bytes() for name in names} == {
        name: expected[name] for name in names
    }
