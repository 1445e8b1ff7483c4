"""Options from a file, printed as one, and commands that say nothing."""

import re
import tomllib

import pytest

from cli_cases import invoke
from sapwood.cli.app import COMMANDS, loaded

ROWS = "city,x,y\n" + "".join(f"{'AB'[row % 2]},{row % 5},{row % 5 * 3.5}\n" for row in range(300))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text(ROWS)
    return tmp_path


def test_what_is_printed_is_read_again(folder):
    typed = ("rows.csv", "-t", "y", "--drop", "city", "--lags", "1,2", "-s", "leaf=mean")
    printed = invoke("evaluate", *typed, "--print-config")
    assert printed.code == 0
    (folder / "my.toml").write_text(printed.stdout)
    assert invoke("evaluate", "--config", "my.toml", "--print-config").stdout == printed.stdout
    by_file = invoke("evaluate", "--config", "my.toml", "--json")
    assert by_file.json() == invoke("evaluate", *typed, "--json").json()


def test_all_options_are_printed(folder):
    for name in COMMANDS:
        needed = {"train": ("rows.csv", "--save", "m")}
        needed |= dict.fromkeys(("predict", "forecast", "inspect", "serve"), ("m",))
        printed = invoke(name, *needed.get(name, ()), "--print-config").stdout
        found = set(re.findall(r"^(?:# )?([\w-]+) =", printed, re.MULTILINE))
        expected = {
            parameter.name
            if parameter.param_type_name == "argument"
            else next(each for each in parameter.opts if each.startswith("--"))[2:]
            for parameter in loaded(name).params
        }
        assert found == expected - {"config", "print-config"}
        assert list(tomllib.loads(printed)) == [name]


def test_what_is_typed_goes_before_and_a_commands_own_before_all(folder):
    (folder / "all.toml").write_text(
        'target = "x"\nlags = [1, 2]\nsave = "m"\nset = { leaf = "mean", max_depth = 3 }\n'
        '[train]\ntarget = "y"\nlags-of = { x = [1, 3] }\nquiet = true\n'
    )
    printed = tomllib.loads(
        invoke("train", "rows.csv", "--config", "all.toml", "--lags", "5", "--print-config").stdout
    )["train"]
    assert printed["target"] == ["y"]
    assert printed["lags"] == "5"
    assert printed["lags-of"] == ["x:1,3"]
    assert printed["set"] == ["leaf=mean", "max_depth=3"]
    assert printed["quiet"] is True
    # --save of the file is for train, and predict has none: that is no fault.
    other = invoke("inspect", "m", "--config", "all.toml", "--print-config")
    assert other.code == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("tarjet = 'y'", "tarjet is no option: did you mean 'target'?"),
        ("[evaluate]\nlag = 1", "lag is no option: did you mean 'lags'"),
        ("[evaluate]\nsave-as = 1", "save-as is no option"),
        ("evaluate = 3", "a table [evaluate] is expected"),
        ("target = ", "is no TOML"),
        ("target = 2026-11-16", "text, a number, true or false is expected"),
        ("config = 'other.toml'", "config is no option"),
    ],
)
def test_a_file_that_cannot_be_meant_is_refused(folder, text, words):
    (folder / "bad.toml").write_text(text)
    ended = invoke("evaluate", "rows.csv", "--config", "bad.toml")
    assert (ended.code, ended.stdout) == (2, "")
    assert len(ended.stderr.splitlines()) == 1
    assert words in ended.stderr


def test_a_file_that_is_not_there(folder):
    ended = invoke("evaluate", "--config", "none.toml")
    assert ended.code == 2
    assert "none.toml: no such file" in ended.stderr


@pytest.mark.parametrize(
    "command",
    [
        ("evaluate", "rows.csv", "-t", "y", "--save", "m1"),
        ("train", "rows.csv", "-t", "y", "--save", "m2"),
        ("compare", "rows.csv:target=y", "-m", "tree,last"),
        ("predict", "m", "rows.csv", "-o", "p.csv"),
    ],
)
def test_quiet_says_nothing(folder, command):
    assert invoke("train", "rows.csv", "-t", "y", "--save", "m").code == 0
    ended = invoke(*command, "--quiet")
    assert (ended.code, ended.stdout, ended.stderr) == (0, "", "")


def test_quiet_tells_errors_and_what_was_asked_for(folder):
    ended = invoke("evaluate", "rows.csv", "-t", "z", "-q")
    assert ended.code == 2
    assert "no column 'z'" in ended.stderr
    asked = invoke("evaluate", "rows.csv", "-t", "y", "-q", "--json")
    assert asked.stderr == ""
    assert asked.json()["rows"]["read"] == 300
    assert invoke("train", "rows.csv", "-t", "y", "--save", "m", "-q").code == 0
    assert invoke("predict", "m", "rows.csv", "-q").stdout.startswith("prediction\n")


@pytest.mark.parametrize("name", [None, *COMMANDS])
def test_help_is_short_too(name):
    typed = () if name is None else (name,)
    short, long = invoke(*typed, "-h"), invoke(*typed, "--help")
    assert short.code == 0
    assert "Usage: " in short.stdout
    assert short.stdout == long.stdout
