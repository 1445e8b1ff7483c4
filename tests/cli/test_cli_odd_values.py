"""Absurd values of every option of every command end in one line, never in a traceback."""

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from cli_cases import run
from sapwood.cli.app import app
from sapwood.streams import open_stream
from sapwood.streams.encoding import check_encoding
from sapwood.streams.stream import StreamError

ODD = (
    "",
    " ",
    "-1",
    "0",
    "1e400",
    "nan",
    "999999999999999999999",
    "\u00e9\ud7ff",
    "a=b",
    "[",
    "/",
    ":",
)
STREAMS = {"evaluate": ["friedman:rows=20"], "train": ["friedman:rows=20"], "predict": ["x.csv"]}
LONG = {"--engine"}  # whose addresses are tried for half a minute


def options():
    """Yield each option of each command that takes a value."""
    commands = get_command(app).commands
    for name in ("evaluate", "train", "predict", "compare", "inspect"):
        for option in commands[name].params:
            if option.param_type_name == "option" and not option.is_flag:
                yield name, option.opts[0]


@pytest.mark.parametrize(("command", "option"), list(options()))
def test_odd_values_are_rejected_in_one_line(command, option, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.csv").write_text("a,y\n1,2\n3,4\n")
    given = {"compare": ["x.csv", "-t", "y"], "inspect": ["none.sapwood"]}
    stream = given.get(command, STREAMS.get(command, []))
    for value in () if option in LONG else ODD:
        ended = CliRunner().invoke(app, [command, *stream, option, value])
        unexpected = ended.exception is not None and not isinstance(ended.exception, SystemExit)
        assert not unexpected, (command, option, value, ended.exception)
        assert "Traceback" not in ended.output


def test_too_many_workers_are_rejected(tmp_path):
    ended = run("train", "friedman:rows=9", "--workers", "1000000", "--save", "m", cwd=tmp_path)
    assert ended.code == 2
    assert "Traceback" not in ended.stderr
    assert "65536" in ended.stderr


def test_every_encoding_of_python_is_usable_or_rejected():
    from encodings.aliases import aliases

    usable = []
    for name in sorted({*aliases, *aliases.values(), "idna", "punycode", "undefined"}):
        try:
            usable.append(check_encoding(name))
        except StreamError:
            continue
    assert {"utf-8", "cp1252", "iso8859-1", "utf-16"} <= set(usable)
    assert not {"idna", "punycode", "undefined", "base64"} & set(usable)


def test_an_unreachable_scheduler_is_named():
    distributed = pytest.importorskip("distributed")

    from sapwood.merge import MergeError
    from sapwood.scale.engines import engine

    def unreachable(*_, **__):
        raise OSError("Timed out trying to connect")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distributed, "Client", unreachable)
        with (
            engine("dask://127.0.0.1:9", 2) as opened,
            pytest.raises(MergeError, match="no scheduler answers"),
        ):
            opened.submit(int)


def test_columns_between_blanks(tmp_path):
    (tmp_path / "one.csv").write_text("a b y\n1 2 3\n4 5 6\n")
    found = open_stream(tmp_path / "one.csv", target="y")
    assert list(found.features) == ["a", "b"]
    (tmp_path / "few.csv").write_text("daily sales\n1\n2\n")
    with pytest.raises(StreamError, match="no column is left"):
        open_stream(tmp_path / "few.csv", target="daily sales")
    (tmp_path / "many.csv").write_text("a   b   y\n1   2   3\n4   5   6\n")
    with pytest.raises(StreamError, match="several blanks"):
        open_stream(tmp_path / "many.csv", target="y")
