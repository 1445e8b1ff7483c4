"""Formats of times: a model keeps those of its training, and rows are read by them again."""

import pickle
from datetime import datetime

import numpy as np
import pytest

import sapwood
from cli_cases import assert_fails, invoke, read_csv, run, write_csv
from sapwood import ModelFileError
from sapwood.storage import container
from sapwood.streams.schema import ReadOptions, decide

FORMAT = "%Y%d%m"
"""Days that look like numbers, and would be silently taken for such."""


def rows(count, start=0, format=FORMAT):
    """Lines of a day, another number, and a target that depends on the month."""
    lines = []
    for place in range(start, start + count):
        day = datetime(2020 + place % 5, 1 + place % 12, 1 + place % 28)
        lines.append(f"{day.strftime(format)},{place % 7},{day.month * 10 + place % 7}")
    return lines


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path / "a.csv", rows(1500), "day,x,y")
    write_csv(tmp_path / "new.csv", rows(200, 1500), "day,x,y")
    train = ("train", "a.csv", "-t", "y", "--time-format", f"day={FORMAT}", "--time-parts", "month")
    assert invoke(*train, "--save", "m").code == 0
    return tmp_path


def predicted(*arguments, input=None):
    typed = ("predict", "m", *arguments)
    ended = invoke(*typed) if input is None else run(*typed, input=input)
    assert ended.code == 0, ended.stderr
    return ended.stdout


def test_rows_are_read_by_the_format_of_training(folder) -> None:
    assert sapwood.load("m").column_formats == {"day": FORMAT}
    wanted = predicted("new.csv", "--time-format", f"day={FORMAT}")
    days = [datetime.strptime(line.split(",")[0], FORMAT) for line in rows(200, 1500)]
    columns = {
        "day": np.array([(day - datetime(1970, 1, 1)).total_seconds() for day in days]),
        "day.month": np.array([float(day.month) for day in days]),
        "x": np.array([float(line.split(",")[1]) for line in rows(200, 1500)]),
    }
    values = sapwood.load("m").predict_many(columns)
    assert wanted.splitlines()[1:] == [repr(value) for value in values.tolist()]
    assert predicted("new.csv") == wanted
    assert predicted("-", input=(folder / "new.csv").read_bytes()) == wanted


def test_a_format_that_is_given_wins(folder) -> None:
    wanted = predicted("new.csv")
    write_csv(folder / "other.csv", rows(200, 1500, "%d.%m.%Y"), "day,x,y")
    assert predicted("other.csv", "--time-format", "day=%d.%m.%Y") == wanted
    ended = invoke("predict", "m", "other.csv", "--on-bad-row", "skip", "--bad-rows", "bad.csv")
    assert ended.code == 0
    assert {row["reason"] for row in read_csv("bad.csv")} == {"not a time"}
    lines = [line.split(",") for line in rows(200, 1500, "%Y-%m-%d")]
    attributes = "@attribute day date yyyy-MM-dd\n@attribute x real\n@attribute y real\n"
    data = "".join(",".join(line) + "\n" for line in lines)
    (folder / "own.arff").write_text(f"@relation r\n{attributes}@data\n{data}")
    assert predicted("own.arff") == wanted


def test_a_column_that_is_not_there_does_no_harm(folder) -> None:
    write_csv(folder / "few.csv", ["1", "2"], "x")
    assert len(predicted("few.csv").splitlines()) == 3
    ended = invoke("predict", "m", "new.csv", "--time-format", "dya=%Y")
    assert_fails(ended, "no column 'dya' with times", "did you mean 'day'?")


def test_training_goes_on_by_the_same_format(folder) -> None:
    write_csv(folder / "all.csv", rows(1700), "day,x,y")
    train = ("-t", "y", "--time-format", f"day={FORMAT}", "--time-parts", "month")
    assert invoke("train", "all.csv", *train, "--save", "whole").code == 0
    assert invoke("train", "new.csv", "-t", "y", "--model", "m", "--save", "parts").code == 0
    assert (folder / "parts").read_bytes() == (folder / "whole").read_bytes()
    write_csv(folder / "other.csv", rows(200, 1500, "%d.%m.%Y"), "day,x,y")
    other = ("--model", "m", "--time-format", "day=%d.%m.%Y")
    assert invoke("train", "other.csv", "-t", "y", *other, "--save", "others").code == 0
    assert sapwood.load("others").column_formats == {"day": "%d.%m.%Y"}


def test_only_features_have_formats_to_keep(folder) -> None:
    late = ("--delay", "2d", "--time", "day", "--drop", "day", "--time-format", f"day={FORMAT}")
    assert invoke("evaluate", "a.csv", "-t", "y", *late, "--save", "dropped").code == 0
    assert sapwood.load("dropped").column_formats == {}


# -- the file -------------------------------------------------------------------------------------


def test_formats_are_part_of_what_is_saved():
    tree = sapwood.HoeffdingTreeRegressor()
    tree.learn_many({"day": [1.0, 2.0]}, [1.0, 2.0])
    plain = tree.to_bytes()
    tree.column_formats = {"day": "%d.%m.é%Y"}
    assert tree.to_bytes() != plain
    for twin in (tree.copy(), pickle.loads(pickle.dumps(tree))):
        assert twin.column_formats == {"day": "%d.%m.é%Y"}
        assert twin.to_bytes() == tree.to_bytes()
    tree.column_formats = {}
    assert tree.to_bytes() == plain


@pytest.mark.parametrize("formats", [[], None, "x", {"day": 1}, {"day": None}, {"day": ["%d"]}])
def test_what_no_tree_has_saved_is_refused(formats):
    kind = "HoeffdingTreeRegressor"
    header, arrays = container.unpack(sapwood.HoeffdingTreeRegressor().to_bytes(), kind)
    del header["schema"]  # as of a file that has formats instead
    data = container.pack(kind, {**header, "column_formats": formats}, arrays)
    with pytest.raises(ModelFileError, match="the buffer is damaged"):
        sapwood.HoeffdingTreeRegressor.from_bytes(data)


@pytest.mark.parametrize("formats", [{1: "%d"}, {"day": 3}, [("day", "%d")]])
def test_what_could_not_be_loaded_is_not_taken(formats):
    tree = sapwood.HoeffdingTreeRegressor()
    with pytest.raises(ValueError, match=r"column_formats = .*: a dict of texts is expected"):
        tree.column_formats = formats
    assert tree.column_formats == {}


def test_a_known_format_goes_before_what_values_look_like():
    found = {"a": "time", "b": "number", "c": "number"}
    known = dict.fromkeys("abc", "number")
    read_options = ReadOptions(
        time_formats={"c": "%Y"}, known=known, known_formats=dict.fromkeys("abc", "%d")
    )
    assert dict(decide("f", found, read_options).time_formats) == {"a": "%d", "b": "%d", "c": "%Y"}
