"""No two files that a command names are one file, by whatever names they go."""

import itertools
import os
import shutil
import subprocess
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from cli_cases import PROGRAM, assert_fails, end_of, invoke, rows_of, start, write_csv
from sapwood.cli import files
from sapwood.cli.failure import UsageError
from sapwood.cli.files import check_files

LINES = rows_of(300)
SKIP = ("--on-bad-row", "skip")
EVALUATE = ("evaluate", "a.csv", "-t", "y", *SKIP)
TRAIN = ("train", "a.csv", "-t", "y", *SKIP)
COMPARE = ("compare", *[f"{name}.csv:target=y" for name in "abcdefgh"], "-m", "tree:leaf=mean")
EVALUATE_OUTPUTS = [
    *("--report", "--save", "--curve", "--predictions", "--bad-rows", "--events"),
    "--checkpoint",
]
COMMANDS = {
    "evaluate": (EVALUATE, EVALUATE_OUTPUTS, ["a.csv"]),
    "evaluate a model": ((*EVALUATE, "-m", "m"), EVALUATE_OUTPUTS, ["a.csv", "m"]),
    "evaluate with options": (
        ("evaluate", "a.csv:target=y", *SKIP),
        EVALUATE_OUTPUTS,
        ["a.csv"],
    ),
    "evaluate a folder": (
        ("evaluate", "folder", "-t", "y", *SKIP),
        EVALUATE_OUTPUTS,
        ["folder/0.parquet", "folder/in/1.parquet"],
    ),
    "evaluate several files": (
        ("evaluate", "a.csv", "b.csv", "-t", "y", *SKIP),
        EVALUATE_OUTPUTS,
        ["a.csv", "b.csv"],
    ),
    "evaluate a pattern": (
        ("evaluate", "[ab].csv", "-t", "y", *SKIP),
        EVALUATE_OUTPUTS,
        ["a.csv", "b.csv"],
    ),
    "evaluate a folder of texts": (
        ("evaluate", "texts", "-t", "y", *SKIP),
        EVALUATE_OUTPUTS,
        ["texts/0.csv", "texts/in/1.csv"],
    ),
    "train": (TRAIN, ("--save", "--bad-rows", "--checkpoint"), ["a.csv"]),
    "predict": (("predict", "m", "a.csv", *SKIP), ("--output", "--bad-rows"), ["m", "a.csv"]),
    "inspect": (("inspect", "m"), ("--svg",), ["m"]),
    "compare": ((*COMPARE, "-m", "last", "-m", "m"), ("--diagram", "--report"), ["h.csv", "m"]),
}
CASES = [
    (name, option, there)
    for name, (_, options, read) in COMMANDS.items()
    for option, there in itertools.product(options, read)
    if (name, option, there) != ("evaluate a model", "--save", "m")  # it was read before
]
WAYS = {
    "hard": os.link,
    "soft": lambda there, link: os.symlink(os.path.abspath(there), link),
}


def in_turn(cases, ways):
    """Each case with one of the ways, which do not depend on it, in turn."""
    ways, count = [*ways], len(ways)
    return [(*case, ways[(at + at // count) % count]) for at, case in enumerate(cases)]


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("filled")
    for name in "abcdefgh":
        write_csv(folder / f"{name}.csv", LINES)
    (folder / "folder" / "in").mkdir(parents=True)
    table = pa.table({"a": [1.0, 2.0], "y": [2.0, 3.0]})
    pa.parquet.write_table(table, folder / "folder" / "0.parquet")
    pa.parquet.write_table(table, folder / "folder" / "in" / "1.parquet")
    (folder / "texts" / "in").mkdir(parents=True)
    write_csv(folder / "texts" / "0.csv", LINES)
    write_csv(folder / "texts" / "in" / "1.csv", LINES)
    assert invoke("train", folder / "a.csv", "-t", "y", "--save", folder / "m").code == 0
    return folder


@pytest.fixture
def folder(filled, tmp_path, monkeypatch):
    """A folder of files that are all there, which no command may change."""
    shutil.copytree(filled, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    before = contents(tmp_path)
    yield tmp_path
    after = contents(tmp_path)
    assert {name: after[name] for name in before} == before


def contents(folder):
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(("name", "option", "there", "way"), in_turn(CASES, WAYS))
def test_what_is_read_is_not_written_by_another_name(folder, name, option, there, way) -> None:
    link = "link.svg"
    WAYS[way](there, link)
    command = COMMANDS[name][0]
    if name == "train" and option != "--save":
        command = (*command, "--save", "new")
    for path in (link, there):
        ended = invoke(*command, option, path)
        assert_fails(ended, f"{option} {path}: the same file is read", "name another")


PAIRS = [
    (name, *pair)
    for name in ("evaluate", "train", "predict")
    for pair in itertools.combinations(COMMANDS[name][1], 2)
]


@pytest.mark.parametrize(
    ("name", "one", "another", "way"), in_turn(PAIRS, ["same", "hard", "soft", "soft to nothing"])
)
def test_no_two_outputs_are_one_file(folder, name, one, another, way) -> None:
    if way != "same":
        if way != "soft to nothing":
            (folder / "x").write_text("x")
        WAYS[way[:4]]("x", "link")
    command = COMMANDS[name][0]
    if name == "train" and "--save" not in (one, another):
        command = (*command, "--save", "new")
    named = ("x", "x" if way == "same" else "link")
    before = sorted(os.listdir(folder))
    for paths in (named, named[::-1]):
        ended = invoke(*command, one, paths[0], another, paths[1])
        assert_fails(ended, ": the same file is for --", "name another")
    assert sorted(os.listdir(folder)) == before


SETTINGS = [
    (name, option, setting)
    for name, (_, options, _) in COMMANDS.items()
    for option, setting in itertools.product(options, ("--config", "--kafka-config", "--schema"))
    if name in ("evaluate", "train", "predict", "compare", "inspect")
    if setting == "--config" or name != "inspect"
    if setting != "--schema" or name != "predict"
]


@pytest.mark.parametrize(("name", "option", "setting", "way"), in_turn(SETTINGS, ["same", *WAYS]))
def test_settings_are_not_written_over(folder, name, option, setting, way) -> None:
    there = {"--config": "my.toml", "--kafka-config": "kafka.properties", "--schema": "m"}[setting]
    (folder / "my.toml").write_text(f"[{name}]\n")
    (folder / "kafka.properties").write_text("client.id=me\n")
    before, path = (folder / there).read_bytes(), there
    if way != "same":
        path = "link.svg"
        WAYS[way](there, path)
    command = COMMANDS[name][0]
    if name == "train" and option != "--save":
        command = (*command, "--save", "new")
    for typed in ((option, path, setting, there), (setting, path, option, there)):
        ended = invoke(*command, *typed)
        use = "a model" if setting == "--schema" and name == "compare" else setting
        assert_fails(ended, f"{option} ", f"the same file is read as {use}, name another")
    assert (folder / there).read_bytes() == before


def test_the_labels_of_another_file_are_not_written_over(folder) -> None:
    typed = ("evaluate", "b.csv", "-t", "y", "--id", "a", "--labels", "a.csv")
    os.link("a.csv", "hard.csv")
    os.symlink("a.csv", "soft.csv")
    for option, path in itertools.product(EVALUATE_OUTPUTS, ("a.csv", "hard.csv", "soft.csv")):
        more = SKIP if option == "--bad-rows" else ()
        ended = invoke(*typed, *more, option, path)
        assert_fails(ended, f"{option} {path}: the same file is read", "name another")


@pytest.mark.parametrize("suffix", ["previous", "next", "lock"])
@pytest.mark.parametrize("option", EVALUATE_OUTPUTS[:-1])
def test_what_a_checkpoint_needs_is_no_other_file(folder, option, suffix) -> None:
    ended = invoke(*EVALUATE, "--checkpoint", "C", option, f"./C.{suffix}")
    assert_fails(ended, "--checkpoint C, which needs", f"C.{suffix}", f"is for {option}")
    os.link("a.csv", f"D.{suffix}")
    ended = invoke(*EVALUATE, "--checkpoint", "D")
    assert_fails(ended, "--checkpoint D, which needs", f"D.{suffix}", "the same file is read")
    os.mkdir(f"E.{suffix}")
    assert_fails(invoke(*EVALUATE, "--checkpoint", "E"), f"E.{suffix}: is a directory")
    os.link("m", f"F.{suffix}")
    ended = invoke(*EVALUATE, "-m", "m", "--checkpoint", "F")
    assert_fails(ended, "--checkpoint F, which needs", "is read as a model")


def test_a_model_goes_on_in_its_own_file_by_any_name(folder, tmp_path_factory) -> None:
    other = tmp_path_factory.mktemp("other")
    (other / "m").write_bytes((folder / "m").read_bytes())
    os.link(other / "m", other / "hard")
    for name in ("m", "hard"):
        assert invoke(*EVALUATE, "-m", other / "m", "--save", other / name).code == 0


def test_a_folder_that_is_read_gets_no_part_by_it(folder) -> None:
    command = ("evaluate", "folder", "-t", "y")
    ended = invoke(*command, "--predictions", "folder/in/new.parquet")
    assert_fails(ended, "--predictions folder/in/new.parquet", "a part of", "name another")
    assert invoke(*command, "--predictions", "folder/in/new.csv").code == 0
    assert invoke(*command, "--predictions", "folder/_new.parquet").code == 0
    os.symlink("folder", "by-link")
    ended = invoke("evaluate", "by-link", "-t", "y", "--save", "folder/new.pq")
    assert_fails(ended, "--save folder/new.pq", "a part of")


def test_a_folder_of_texts_gets_no_part_by_it(folder) -> None:
    command = ("evaluate", "texts", "-t", "y")
    for new in ("texts/new.csv", "texts/in/new.csv.gz", "texts/new.jsonl", "texts/new.parquet"):
        ended = invoke(*command, "--predictions", new)
        assert_fails(ended, f"--predictions {new}: it would be read as a part of texts")
    assert invoke(*command, "--predictions", "texts/new.txt").code == 0
    ended = invoke(*command, "--format", "tsv", "--predictions", "texts/new.csv")
    assert_fails(ended, "texts is a folder without files of tsv")


@pytest.mark.parametrize(
    ("pattern", "refused", "fine"),
    [
        ("[a-z].csv", ["n.csv", "./n.csv", "texts/../n.csv"], ["new.csv", "texts/n.csv"]),
        ("texts/*.csv", ["texts/new.csv"], ["texts/.new.csv", "texts/in/new.csv", "new.csv"]),
        ("texts/**/*.csv", ["texts/new.csv", "texts/in/new.csv"], ["texts/.in/new.csv", "n.csv"]),
        ("texts/**", ["texts/new.csv", "texts/in/new.txt"], ["new.csv"]),
    ],
)
def test_a_pattern_gets_no_file_by_it(folder, pattern, refused, fine) -> None:
    (folder / "texts" / ".in").mkdir()
    for place in (pattern, str(folder / pattern)):
        for new in refused:
            with pytest.raises(UsageError, match="it would be read as a part of"):
                check_files({"--save": Path(new)}, read=[place])
        for new in fine:
            check_files({"--save": Path(new)}, read=[place])
    ended = invoke("evaluate", pattern, "-t", "y", "--predictions", refused[0])
    assert_fails(ended, f"--predictions {refused[0]}: it would be read as a part of {pattern}")
    assert not (folder / refused[0]).exists()


def run(*arguments, **options):
    """Run a command in a process of its own, whose standard files are given."""
    return subprocess.run(
        [PROGRAM, *arguments], stderr=subprocess.PIPE, timeout=200, check=False, **options
    )


def test_standard_input_and_output_are_files_too(folder) -> None:
    with open("a.csv", "rb") as rows, open("log", "ab") as log, open("a.csv", "ab") as more:
        ended = run("evaluate", "-", "-t", "y", "--predictions", "a.csv", stdin=rows)
        assert (ended.returncode, b"the same file is read" in ended.stderr) == (2, True)
        ended = run("evaluate", "/dev/stdin", "-t", "y", "--format", "csv", "--curve", "a.csv")
        assert ended.returncode == 2
        ended = run("evaluate", "a.csv", "-t", "y", "--predictions", "log", stdout=log)
        assert (ended.returncode, b"the same file is standard output" in ended.stderr) == (2, True)
        ended = run("evaluate", "a.csv", "-t", "y", "--predictions", "-", stdout=more)
        assert (ended.returncode, b"is standard output is read, too" in ended.stderr) == (2, True)


@pytest.mark.parametrize("name", ["-", "/dev/stdout", "/dev/fd/1"])
def test_standard_output_by_its_other_names(folder, name) -> None:
    with open("log", "wb") as log:
        ended = run("evaluate", "a.csv", "-t", "y", "--predictions", name, stdout=log)
    assert ended.returncode == 0, ended.stderr
    lines = (folder / "log").read_text().splitlines()
    assert lines[0] == "line,target,prediction"
    assert len(lines) == 301
    assert b"rows: 300 read" in ended.stderr  # the result goes where it does no harm
    ended = invoke("evaluate", "a.csv", "-t", "y", "--json", "--predictions", name)
    assert_fails(ended, f"--predictions {name}: standard output is for --json")


def test_a_pipe_is_not_read_and_written(folder) -> None:
    os.mkfifo("pipe.csv")
    ended = invoke("evaluate", "pipe.csv", "-t", "y", "--predictions", "pipe.csv")
    assert_fails(ended, "--predictions pipe.csv: the same file is read")
    ended = invoke(*EVALUATE, "--predictions", "pipe.csv", "--bad-rows", "pipe.csv")
    assert_fails(ended, "--bad-rows pipe.csv: the same file is for --predictions")
    ended = invoke(*EVALUATE, "--predictions", "/dev/null", "--bad-rows", "/dev/null")
    assert ended.code == 0


@pytest.mark.parametrize("command", ["evaluate", "train"])
def test_a_named_pipe_is_opened_once(folder, command) -> None:
    """Nobody writes to it a second time, and the first rows are not lost."""
    os.mkfifo("pipe.csv")
    writer = threading.Thread(
        target=Path("pipe.csv").write_bytes, args=(Path("a.csv").read_bytes(),), daemon=True
    )
    writer.start()
    more = ("--save", "m.sapwood") if command == "train" else ()
    ended = end_of(start(command, "pipe.csv", "-t", "y", *more))
    assert ended.code == 0, ended.stderr
    assert "300 read" in ended.stdout + ended.stderr
    writer.join()


def test_links_that_lead_in_a_circle_are_told_before_the_work(folder) -> None:
    os.symlink("two", "one")
    os.symlink("one", "two")
    ended = invoke(*EVALUATE, "--save", "one")
    assert_fails(ended, "one: too many levels of symbolic links")


def test_names_that_differ_in_case_alone(folder, monkeypatch) -> None:
    """They are two files, unless the folder of both ignores case."""
    check_files({"--save": folder / "New", "--curve": folder / "new"})
    monkeypatch.setattr(files.os.path, "samefile", lambda one, other: True)
    with pytest.raises(UsageError, match=r"--curve .*: the same file is for --save"):
        check_files({"--save": folder / "New", "--curve": folder / "new"})
