"""What goes wrong is told in one line that says what helps, before work is done in vain."""

import errno
import os
import re
import shlex
import signal
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet
import pytest

import sapwood
from cli_cases import (
    HEADER,
    PROGRAM,
    Ended,
    assert_fails,
    invoke,
    rows_of,
    run,
    start,
    stop,
    write,
    write_csv,
)
from sapwood.cli.models import DEFAULTS_SHOWN
from sapwood.streams import blocks

LINES = rows_of(300)
COMMANDS = ("evaluate", "train", "predict", "inspect", "serve", "compare", "paper")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path / "a.csv", LINES)
    return tmp_path


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def assert_refused(folder, command, *words):
    """A command fails in one line that has some words, and leaves nothing behind."""
    before = names(folder)
    assert_fails(invoke(*command), *words)
    assert names(folder) == before


EVALUATE = ("evaluate", "a.csv", "-t", "y")

# -- what is typed --------------------------------------------------------------------------------

TYPED = [
    (("evaluate", "gone.csv", "-t", "y"), ["gone.csv: no such file", "check the path"]),
    (("evaluate", "gone/a.csv", "-t", "y"), ["gone/a.csv: no such file", "check the path"]),
    (("evaluate", "a.csv", "-t", "sodl"), ["'sodl'", "did you mean 'sold'?"]),
    (("evaluate", "a.csv", "-t", "Y"), ["'Y'", "did you mean 'y'?"]),
    (("evaluate", "a.csv", "-t", "zzz"), ["'zzz'", "there are 'a', 'b', 'flag', 'city'"]),
    (("evaluate", "a.csv"), ["name the column", "a, b, flag, city, sold, y"]),
    (("evaluate", "friedmann"), ["neither a file nor a generator", "did you mean 'friedman'"]),
    (("evaluate", "nothing"), ["neither a file nor a generator", "friedman-gra"]),
    (("evaluate", "friedman:rowz=9"), ["'rowz'", "did you mean 'rows'?"]),
    (("evaluate", "friedman:9"), ["'9' gives no parameter a value", "friedman:rows=1000"]),
    (("evaluate", "friedman:rows=many"), ["rows = 'many'"]),
    (("evaluate", "friedman", "-t", "z"), ["--target z", "is y"]),
    (("evaluate", "friedman", "--drop", "x1"), ["--drop", "leave it out"]),
    (("evaluate", "friedman", "--delay", "2h", "--time", "t"), ["--time", "leave it out"]),
    ((*EVALUATE, "--drop", "y"), ["target 'y' cannot be dropped"]),
    ((*EVALUATE, "--drop", "ctiy"), ["'ctiy' to drop", "did you mean 'city'?"]),
    ((*EVALUATE, "--categorical", "ctiy"), ["'ctiy'", "did you mean 'city'?"]),
    ((*EVALUATE, "--time-format", "sold"), ["--time-format sold", "name=value"]),
    ((*EVALUATE, "--time-format", "slod=%d"), ["'slod'", "did you mean 'sold'?"]),
    ((*EVALUATE, "--time-format", "sold=%Q"), ["'%Q'", "no format of times"]),
    ((*EVALUATE, "--time-parts", "hours"), ["'hours'", "hour, weekday, month"]),
    ((*EVALUATE, "--delay", "2h"), ["--delay 2h", "needs --time"]),
    ((*EVALUATE, "--delay", "24", "--time", "sold"), ["--delay 24", "counts rows"]),
    ((*EVALUATE, "--delay", "0"), ["--delay 0", "rows (5000) or a duration"]),
    ((*EVALUATE, "--delay", "soon"), ["--delay soon", "rows (5000) or a duration"]),
    ((*EVALUATE, "--delay", "2000000000"), ["delay = 2000000000"]),
    ((*EVALUATE, "--delay", "2h", "--time", "city"), ["'city' holds no times", "--time-format"]),
    ((*EVALUATE, "--every", "often"), ["--every often", "rows (5000) or a duration"]),
    ((*EVALUATE, "--fade", "1.5"), ["fade = 1.5", "from 0 to below 1"]),
    ((*EVALUATE, "--fade", "nan"), ["fade = nan"]),
    ((*EVALUATE, "--window", "0"), ["window = 0"]),
    ((*EVALUATE, "--set", "leaf"), ["--set leaf", "name=value"]),
    ((*EVALUATE, "--set", "grace_perod=9"), ["grace_perod", "did you mean 'grace_period'?"]),
    ((*EVALUATE, "--set", "grace_period=long"), ["grace_period = 'long'", "positive"]),
    ((*EVALUATE, "--set", "delta=-1"), ["delta = -1"]),
    ((*EVALUATE, "--set", "leaf=leafy"), ["leaf = 'leafy'", "'adaptive', 'linear', 'mean'"]),
    ((*EVALUATE, "--set", "leaf=[1]"), ["leaf = [1]"]),
    ((*EVALUATE, "--set", "leaf={[]: 1}"), ["leaf = '{[]: 1}'"]),
    ((*EVALUATE, "--set", "max_depth=deep"), ["max_depth = 'deep'"]),
    ((*EVALUATE, "--set", "max_bytes=lots"), ["max_bytes=lots", "64MB"]),
    ((*EVALUATE, "--set", "max_bytes=9"), ["max_bytes = 9", "at least"]),
    ((*EVALUATE, "--set", "observer=best"), ["observer=best", "qo, qo:RADIUS, ebst"]),
    ((*EVALUATE, "--set", "observer=qo:-1"), ["observer=qo:-1", "radius = -1"]),
    ((*EVALUATE, "--set", "observer=tebst:x"), ["observer=tebst:x", "digits = 'x'"]),
    ((*EVALUATE, "--set", "categorical=city"), ["--categorical"]),
    (
        (*EVALUATE, "-m", "woods"),
        ["model woods", "'tree', 'adaptive', 'forest', 'hybrid',", "MODULE:FACTORY"],
    ),
    ((*EVALUATE, "-m", "mean", "-s", "a=1"), ["model mean has no parameter a"]),
    ((*EVALUATE, "-m", "nowhere:Model"), ["model nowhere:Model", "No module named 'nowhere'"]),
    ((*EVALUATE, "-m", "sapwood:Forest"), ["model sapwood:Forest", "no attribute 'Forest'"]),
    ((*EVALUATE, "-m", "builtins:dict"), ["dict is no model", "predict_one and learn_one"]),
    ((*EVALUATE, "-m", "mean", "--save", "m"), ["--save m", "cannot be saved"]),
    ((*EVALUATE, "-m", "mean", "--checkpoint", "c"), ["--checkpoint c", "cannot be saved"]),
    (("train", "a.csv", "-t", "y", "-m", "last", "--save", "m"), ["--save m", "cannot be saved"]),
    ((*EVALUATE, "--json", "--predictions", "-"), ["--predictions -", "--json"]),
    ((*EVALUATE, "--predictions", "-", "--checkpoint", "c"), ["cannot be resumed"]),
    ((*EVALUATE, "--predictions", "/dev/null", "--checkpoint", "c"), ["cannot be resumed"]),
]


@pytest.mark.parametrize(("command", "words"), TYPED, ids=[" ".join(c) for c, _ in TYPED])
def test_what_cannot_be_meant_is_told(folder, command, words) -> None:
    assert_refused(folder, command, *words)


def test_the_program_tells_usage_errors_with_the_same_code(folder) -> None:
    for command in (
        ("evaluate", "a.csv", "-t", "y", "--format", "xls"),
        ("evaluate", "a.csv", "--on-bad-row", "maybe"),
        ("evaluate", "a.csv", "--window", "wide"),
        ("train", "a.csv", "-t", "y"),
        ("predict",),
        ("grow",),
    ):
        ended = invoke(*command)
        assert ended.code == 2
        assert ended.stdout == ""
        assert "Usage: sapwood" in ended.stderr
        assert "Traceback" not in ended.stderr


# -- what is read ---------------------------------------------------------------------------------


def damaged_parquet(path):
    pa.parquet.write_table(pa.table({"a": [1.0] * 5000, "y": [2.0] * 5000}), path)
    data = bytearray(path.read_bytes())
    data[len(data) // 3 : len(data) // 3 + 40] = b"\0" * 40
    path.write_bytes(data)


FILES = {
    "empty.csv": (lambda path: path.write_bytes(b""), ["is empty"]),
    "blank.csv": (lambda path: path.write_bytes(b"\n\n\n"), ["no header"]),
    "header.csv": (lambda path: path.write_text(HEADER + "\n"), ["has no rows"]),
    "garbage.csv": (lambda path: path.write_bytes(bytes(range(256)) * 40), ["garbage.csv"]),
    "numbers.csv": (
        lambda path: path.write_text("1.5,2\n1,2\n"),
        ["looks like a row", "--no-header"],
    ),
    "twice.csv": (lambda path: path.write_text("y,y\n1,2\n"), ["columns 1 and 2", "'y'"]),
    "alone.csv": (lambda path: path.write_text("y\n1\n"), ["has no features"]),
    "a.xyz": (lambda path: path.write_text("y,a\n1,2\n"), [".csv", "--format"]),
    "zeros.csv": (lambda path: path.write_bytes(b"y,a\0\n1,2\n"), ["zero bytes", "--encoding"]),
    "empty.jsonl": (lambda path: path.write_bytes(b""), ["is empty"]),
    "array.jsonl": (
        lambda path: path.write_text('[{"y": 1}]'),
        ["is one JSON array", "one object a line"],
    ),
    "cut.csv.gz": (
        lambda path: path.write_bytes(b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03"),
        ["gzip data are cut off"],
    ),
    "text.parquet": (lambda path: path.write_text("y,a\n1,2\n"), ["cannot be read"]),
    "damaged.parquet": (damaged_parquet, ["damaged.parquet cannot be read"]),
    "text.arrow": (lambda path: path.write_text("y,a\n1,2\n"), ["cannot be read"]),
    "folder": (lambda path: path.mkdir(), ["is a folder without files of csv, tsv, jsonl"]),
}


@pytest.mark.parametrize("name", FILES)
def test_what_cannot_be_read_is_told(folder, name) -> None:
    make, words = FILES[name]
    make(folder / name)
    assert_refused(folder, ("evaluate", name, "-t", "y", "--save", "m"), name, *words)


def test_standard_input_that_is_empty_is_told(folder) -> None:
    assert_fails(run("evaluate", "-", "-t", "y", input=b""), "standard input is empty")


def test_a_file_that_may_not_be_read_is_told(folder, monkeypatch) -> None:
    def open_as_others(file, *arguments, **options):  # as root may read all
        if os.fspath(file).endswith("a.csv"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), file)
        return open(file, *arguments, **options)

    monkeypatch.setattr(blocks, "open", open_as_others, raising=False)
    assert_refused(folder, EVALUATE, "a.csv: permission denied", "check the permissions")


@pytest.fixture
def model(folder):
    assert invoke("train", "a.csv", "-t", "y", "--save", "m").code == 0
    return folder / "m"


@pytest.mark.parametrize(
    "command",
    [("predict", "{}", "a.csv"), ("inspect", "{}"), (*EVALUATE, "-m", "{}")],
    ids=["predict", "inspect", "evaluate"],
)
def test_a_bad_model_is_told(folder, model, command) -> None:
    damaged = bytearray(model.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    (folder / "damaged").write_bytes(damaged)
    (folder / "cut").write_bytes(model.read_bytes()[:-100])
    (folder / "none").write_bytes(b"")
    cases = {"damaged": "damaged", "cut": "cut", "a.csv": "not a model", "none": "none", ".": "."}
    for name, word in cases.items():
        assert_refused(folder, [part.format(name) for part in command], word)


def test_the_model_that_is_gone_is_told(folder) -> None:
    assert_refused(folder, ("predict", "m", "a.csv"), "m: no such file")
    assert_refused(folder, ("inspect", "m"), "m: no such file")


def test_parameters_of_a_saved_model_cannot_be_set(folder, model) -> None:
    assert_refused(folder, (*EVALUATE, "-m", "m", "-s", "leaf=mean"), "m is a saved model")


def test_a_stream_without_the_features_of_the_model_is_told(folder, model) -> None:
    (folder / "other.csv").write_text("area,y\n1,2\n")
    words = ("other.csv has none of the model's features", "'area'")
    assert_refused(folder, ("predict", "m", "other.csv"), *words)
    assert_refused(folder, ("train", "other.csv", "-t", "y", "-m", "m", "--save", "m2"), *words)


# -- what is written ------------------------------------------------------------------------------

OUTPUTS = ("--report", "--save", "--curve", "--predictions", "--bad-rows", "--checkpoint")
SKIP = ("--on-bad-row", "skip")


@pytest.mark.parametrize("option", OUTPUTS)
def test_outputs_that_cannot_be_written_are_told_before_the_work(folder, option) -> None:
    (folder / "there").mkdir()
    command = (*EVALUATE, *SKIP, option)
    assert_refused(folder, (*command, "there"), "there: is a directory", "name a file")
    assert_refused(folder, (*command, "gone/file"), "gone: there is no such folder")
    assert_refused(folder, (*command, "a.csv/file"), "a.csv: there is no such folder")
    assert_refused(folder, (*command, "a.csv"), f"{option} a.csv", "is read")
    assert_refused(folder, (*command, "./there/../a.csv"), "the same file is read")
    other = "--save" if option != "--save" else "--curve"
    assert_refused(folder, (*command, "x", other, "x"), " x: the same file is for --", "another")
    if option in ("--report", "--save", "--curve", "--checkpoint"):
        assert_refused(folder, (*command, "-"), f"{option} -", "name a file")
        assert_refused(folder, (*command, "/dev/null"), f"{option} /dev/null", "name a file")
    assert (folder / "a.csv").read_text().splitlines()[1:] == LINES


@pytest.mark.parametrize("option", OUTPUTS)
def test_folders_that_may_not_be_written_are_told(folder, option) -> None:
    (folder / "kept").mkdir(mode=0o500)
    if os.access("kept", os.W_OK):
        pytest.skip("root may write anywhere")
    command = (*EVALUATE, *SKIP, option, "kept/x")
    assert_refused(folder, command, "kept/x: permission denied", "check the permissions")


def test_no_command_writes_over_what_it_reads(folder, model) -> None:
    kept = model.read_bytes()
    assert_refused(folder, ("predict", "m", "a.csv", "-o", "m"), "--output m", "is read")
    assert_refused(folder, ("predict", "m", "a.csv", "-o", "a.csv"), "--output a.csv", "is read")
    assert_refused(folder, ("inspect", "m", "--svg", "m"), "--svg m", "is read")
    assert_refused(folder, ("train", "a.csv", "-t", "y", "--save", "a.csv"), "a.csv", "is read")
    assert model.read_bytes() == kept
    assert invoke("train", "a.csv", "-t", "y", "-m", "m", "--save", "m").code == 0


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no full device")
def test_a_full_disk_is_told_with_the_file(folder) -> None:
    ended = invoke(*EVALUATE, "--predictions", "/dev/full")
    assert ended.code == 2
    assert ended.stderr.splitlines()[-1] == (
        "sapwood: /dev/full: no space left on device; make room, or choose another place"
    )


# -- the program itself ---------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_fits_a_narrow_terminal(monkeypatch, command) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERMINAL_WIDTH", "80")
    ended = invoke(*command.split(), "--help")
    assert ended.code == 0
    assert ended.stderr == ""
    lines = ended.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    text = re.sub(r"[\s│╭╮╰╯─]+", " ", ended.stdout)
    assert f"Usage: sapwood {command}".strip() in text
    if command == "":
        assert all(name in text for name in COMMANDS)
    if command in ("evaluate", "train"):
        assert all(setting in text for setting in DEFAULTS_SHOWN.split(", "))
        parameters = sapwood.HoeffdingTreeRegressor().parameters
        assert all(name in text for name in parameters)
        assert f"delta={parameters['delta']}" in text
        assert "csv, tsv, parquet, arrow, arff or jsonl" in text
    assert "[default: error]" in text or command not in ("evaluate", "train", "predict", "compare")


def test_without_a_command_there_is_help() -> None:
    assert "Usage: sapwood" in invoke().stdout


def test_an_interrupted_start_leaves_no_traceback(folder) -> None:
    process = start("evaluate", "-", "-t", "y")
    write(process, "a,y\n1,2\n")  # too few rows to know what columns are
    ended = stop(process, signal.SIGINT)
    assert ended == Ended(130, "", "sapwood: interrupted\n")


def run_in_shell(folder, typed):
    """Run a command by the shell, that can close standard streams; return its end."""
    program = f"{shlex.quote(PROGRAM)} {typed}"
    ended = subprocess.run(["sh", "-c", program], cwd=folder, capture_output=True, check=False)
    return Ended(ended.returncode, ended.stdout.decode(), ended.stderr.decode())


@pytest.mark.parametrize(
    "typed", ["evaluate a.csv -t y", "evaluate a.csv -t y --predictions -", "--version"]
)
def test_a_closed_standard_output_is_told(folder, typed) -> None:
    assert_fails(run_in_shell(folder, f"{typed} >&-"), "standard output is closed", "to a file")


def test_a_closed_standard_error_is_no_file_that_is_written(folder) -> None:
    ended = run_in_shell(folder, "evaluate a.csv -t y --predictions p.csv 2>&-")
    assert (ended.code, ended.stderr) == (0, "")
    assert "rows: 300 read" in ended.stdout
    lines = (folder / "p.csv").read_text().splitlines()
    assert (lines[0], len(lines)) == ("line,target,prediction", 301)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no full device")
@pytest.mark.parametrize(
    "typed", ["evaluate a.csv -t y --json", "train a.csv -t y --save m", "--version", "--help"]
)
def test_a_standard_output_that_is_full_is_told(folder, typed) -> None:
    ended = run_in_shell(folder, f"{typed} > /dev/full")
    assert ended.code == 2
    assert "no space left on device" in ended.stderr.splitlines()[-1]
    assert "Traceback" not in ended.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no full device")
def test_what_standard_output_does_not_take_at_the_very_end_is_told() -> None:
    program = "import sys; from sapwood.cli import _leave; sys.stdout.write('a line'); _leave(0)"
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with open("/dev/full", "w") as full:
        ended = subprocess.run(
            [sys.executable, "-c", program],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env=buffered,
        )
    assert ended.returncode == 2
    assert ended.stderr == "sapwood: standard output: no space left on device\n"


def test_who_has_read_enough_of_the_predictions_does_no_harm(folder) -> None:
    typed = "evaluate friedman:rows=100000 --predictions /dev/stdout | head -2"
    ended = run_in_shell(folder, typed)
    assert ended.code == 0
    assert ended.stdout.splitlines()[0] == "row,target,prediction"
    assert len(ended.stdout.splitlines()) == 2
    assert "Traceback" not in ended.stderr
