"""Names and categories that are odd: learned and shown, or refused, but never a traceback."""

import json
import os
import re
import subprocess
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import sapwood
from cli_cases import PROGRAM, invoke
from sapwood.evaluate import prequential
from sapwood.report import write_report
from sapwood.rows import column, encoder
from sapwood.streams.memory import ArrayStream

# Rows may name no feature that the tree knows; that this is told is tested with its behaviour.
pytestmark = pytest.mark.filterwarnings("ignore:x names .* and no feature that the model knows")

ODD = {
    "NUL": "a\0b",
    "newline": "a\nb",
    "return": "a\rb",
    "escape": "\x1b[31mred",
    "delete": "\x7fx",
    "C1": "\x85x",
    "right to left": "\u202eabc",
    "line separator": "\u2028x",
    "no character": "\ufffex",
    "markup": "[bold]x[/] <b>&\"'</b></script><!-- ]]>",
    "formula": "$x^{2$ \\frac %s",
    "emoji": "\U0001f600",
    "empty": "",
    "as long as it may be": "x" * 999,
}
CHARTED = [ODD[each] for each in ("NUL", "no character", "right to left", "markup", "formula")]
"""Names that are saved in charts; the others are control characters like the first, or harmless."""
LONE = {"high half": "n\ud800", "low half": "\udfffn", "escaped byte": "\udcff"}
NO_LETTERS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2028\u2029\ud800-\udfff]")


def rows_with(name):
    """Columns of a number and a category, both of that name and deciding y."""
    draw = np.random.default_rng(0)
    number, code = draw.random(1200), draw.integers(0, 2, 1200)
    labels = [name if one else "other" for one in code]
    y = 5.0 * (number > 0.5) + 3.0 * code
    return {name: number, f"{name}2": labels}, y


def evaluated(name):
    tree = sapwood.HoeffdingTreeRegressor(grace_period=50, leaf="mean")
    X, y = rows_with(name)
    found = prequential(tree, ArrayStream(X, y, name=name, target=name))
    assert tree.n_leaves > 2
    return tree, found


def assert_shown(folder, tree, found):
    """All that can be looked at is well formed, and does nothing to who looks."""
    texts = [tree.to_text(), repr(tree), str(tree.summary)]
    ET.fromstring(str(tree.draw()).encode())
    assert json.loads(json.dumps(found.to_dict()))["target"] == found.target
    write_report(folder / "r.html", found, tree, settings={"stream": found.stream})
    texts.append((folder / "r.html").read_bytes().decode())
    tree.save(folder / "m")
    ended = invoke("inspect", folder / "m", "--svg", folder / "t.svg")
    assert (ended.code, ended.stderr) == (0, "")
    ET.fromstring((folder / "t.svg").read_bytes())
    texts.append(ended.stdout)
    described = json.loads(invoke("inspect", folder / "m", "--json").stdout)
    assert list(described["features"]) == tree.features
    for text in texts:
        assert NO_LETTERS.search(text) is None


@pytest.mark.parametrize("name", ODD.values(), ids=ODD)
def test_odd_names_are_learned_and_shown(tmp_path, name, request) -> None:
    if name not in CHARTED:
        request.getfixturevalue("unsaved_charts")
    tree, found = evaluated(name)
    assert tree.features == [name, f"{name}2"]
    assert_shown(tmp_path, tree, found)


@pytest.mark.parametrize("name", LONE.values(), ids=LONE)
def test_halves_of_surrogate_pairs_are_refused_as_new_names_and_labels(name) -> None:
    tree = sapwood.HoeffdingTreeRegressor()
    tree.learn_one({"a": 1.0, "c": "known"}, 2.0)
    before = tree.to_bytes()
    words = "is no text, as it has half of a surrogate pair"
    for learn in (
        lambda: tree.learn_one({name: 1.0}, 2.0),
        lambda: tree.learn_many({name: [1.0, 2.0]}, [2.0, 3.0]),
        lambda: tree.learn_one({"c": name}, 2.0),
        lambda: tree.learn_many({"c": ["known", name]}, [2.0, 3.0]),
        lambda: tree.learn_one({"new": name}, 2.0),
    ):
        with pytest.raises(ValueError, match=words):
            learn()
    assert tree.to_bytes() == before
    expected = tree.predict_one({})
    assert tree.predict_one({name: 1.0}) == expected  # what is not known is missing
    assert tree.predict_one({"c": name}) == tree.predict_one({"c": "never seen"})


@pytest.mark.parametrize("name", LONE.values(), ids=LONE)
def test_models_that_know_such_names_already_are_shown(tmp_path, monkeypatch, name) -> None:
    """As they were saved before such names were refused."""
    monkeypatch.setattr(encoder.validation, "check_text", lambda text: None)
    assert column.validation is encoder.validation
    tree, found = evaluated(name)
    monkeypatch.undo()
    tree.save(tmp_path / "m")
    tree = sapwood.load(tmp_path / "m")
    assert_shown(tmp_path, tree, found)
    tree.learn_one({name: 0.5, f"{name}2": name}, 1.0)  # they are not new


def test_json_lines_with_such_labels_are_bad_rows(tmp_path) -> None:
    good = '{"c": "x", "y": 1}\n' * 5
    (tmp_path / "a.jsonl").write_text(good + '{"c": "\\ud83d", "y": 1}\n' + good)
    command = ("evaluate", tmp_path / "a.jsonl", "-t", "y")
    ended = invoke(*command)
    assert ended.code == 2
    assert "a.jsonl, line 6, column 'c': half of a surrogate pair" in ended.stderr
    assert "10 learned, 1 rejected" in invoke(*command, "--on-bad-row", "skip").stdout


def test_json_lines_with_such_keys_are_refused(tmp_path) -> None:
    (tmp_path / "a.jsonl").write_text('{"n\\ud83d": 2, "a": 1, "y": 1}\n' * 5)
    command = ("evaluate", tmp_path / "a.jsonl", "-t", "y")
    for more in ((), ("--on-bad-row", "skip", "--save", tmp_path / "m")):
        ended = invoke(*command, *more)
        assert (ended.code, ended.stdout) == (2, "")
        assert "a.jsonl, line 1, column 'n\\ud83d': unknown column" in ended.stderr
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_terminals_that_know_few_letters_are_written_to(tmp_path, encoding) -> None:
    tree, _ = evaluated("\U0001f600")
    tree.save(tmp_path / "m")
    for command in (("inspect", "m"), ("evaluate", "friedman:rows=500"), ("--help",)):
        ended = subprocess.run(
            [PROGRAM, *command],
            cwd=tmp_path,
            env={**os.environ, "PYTHONIOENCODING": encoding},
            capture_output=True,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        assert len(ended.stdout.decode(encoding)) > 100
        assert b"Traceback" not in ended.stderr
