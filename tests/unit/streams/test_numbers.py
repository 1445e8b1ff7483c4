"""Numbers as people write them: what is read, in which doubt, and what is refused."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sapwood
from cli_cases import assert_fails, invoke, run, write_csv
from sapwood.streams import StreamError, open_stream
from sapwood.streams.numbers import NumberFormat, read_numbers, recognise_written


@pytest.mark.parametrize(
    ("values", "format", "numbers"),
    [
        (["12,5", "7", "0,25"], "1.234,5", [12.5, 7, 0.25]),
        (["1.234,56", "99,90"], "1.234,5", [1234.56, 99.9]),
        (["1,234.56", "99.90"], "1,234.5", [1234.56, 99.9]),
        (["1,234,567", "12"], "1,234.5", [1_234_567, 12]),
        (["1.234.567", "12"], "1.234,5", [1_234_567, 12]),
        (["1 234,5", "12"], "1 234,5", [1234.5, 12]),
        (["1\u202f234,5", "1\u00a0234"], "1 234,5", [1234.5, 1234]),
        (["1'234.50", "12"], "1'234.5", [1234.5, 12]),
        (["1\u2019234,50", "12"], "1'234,5", [1234.5, 12]),
        (["12 %", "12.5%", "3"], "1,234.5 %", [12, 12.5, 3]),
        (["12,5 %"], "1.234,5 %", [12.5]),
        (["$1,200.00", "-$5", "$-5", "($5.50)"], "1,234.5 $", [1200, -5, -5, -5.5]),
        (["1.200 €", "15,5 €"], "1.234,5 €", [1200, 15.5]),
        (["EUR 5", "7 EUR"], "1,234.5 EUR", [5, 7]),
        (["\u22125.5", "5"], "1,234.5", [-5.5, 5]),
        (["1,5e3", "2,5"], "1.234,5", [1500, 2.5]),
        ([",5", "12,"], "1.234,5", [0.5, 12]),
    ],
)
def test_unambiguous_numbers_are_read(values, format, numbers):
    found = recognise_written({"x": values})["x"]
    assert (str(found.format), found.doubt) == (format, "")
    read, bad = read_numbers(pa.array(values), format)
    assert read.tolist() == numbers
    assert not bad.any()


@pytest.mark.parametrize(
    "values",
    [
        ["1", "2.5"],
        ["1.234", "5.678"],
        ["1e5", "nan", "inf"],
        ["Oslo", "Bonn"],
        ["5 €", "6 $"],
        ["ABC 123", "ABC 124"],
        ["1,2,3", "4,5,6"],
        ["1.2.3", "4.5.6"],
        ["12 34 56", "12 34 57"],
        ["1,5", "x", "y"],
        [],
    ],
)
def test_plain_numbers_and_text_stay_as_they_are(values):
    assert recognise_written({"x": values}) == {}


@pytest.mark.parametrize(
    ("others", "comma_between", "format", "taken"),
    [
        ([], True, "1,234.5", "1234 and could be 1.234; pass --decimal ,"),
        ([], False, "1.234,5", "1.234 and could be 1234; pass --decimal ."),
        (["0.5"], False, "1,234.5", "1234 and could be 1.234"),
        (["0,5"], True, "1.234,5", "1.234 and could be 1234"),
    ],
)
def test_what_could_be_both_is_told(others, comma_between, format, taken):
    found = recognise_written({"x": ["1,234", "5,678"], "z": others}, comma_between)
    assert str(found["x"].format) == format
    assert taken in found["x"].doubt


def test_points_between_thousands_are_found_by_other_columns():
    found = recognise_written({"x": ["1.234", "12"], "z": ["0,5"], "u": ["17"]})
    assert str(found["x"].format) == "1.234,5"
    assert "is taken for 1234 and could be 1.234" in found["x"].doubt
    assert "u" not in found


def test_marks_that_are_given_win():
    values = {"x": ["1,234", "5,678"]}
    for decimal, format in ((",", "1.234,5"), (".", "1,234.5")):
        found = recognise_written(values, decimal=decimal)["x"]
        assert (str(found.format), found.doubt) == (format, "")
    assert str(recognise_written(values, thousands=",")["x"].format) == "1,234.5"


@given(
    number=st.decimals(-(10**9), 10**9, places=2),
    decimal=st.sampled_from(".,"),
    thousands=st.sampled_from(["", ".", ",", " ", "'"]),
    sign=st.sampled_from(["", "€", "%", "US$"]),
)
def test_what_is_written_is_read(number, decimal, thousands, sign):
    if decimal == thousands:
        return
    plain = f"{number:,.2f}"
    marks = str.maketrans({",": thousands, ".": decimal})
    written = plain.translate(marks) + (f" {sign}" if sign else "")
    format = NumberFormat(decimal, thousands, sign)
    read, bad = read_numbers(pa.array([written, "x", None]), str(format))
    assert read[0] == float(number)
    assert bad.tolist() == [False, True, False]
    assert NumberFormat.of(str(format)) == format


@pytest.mark.parametrize("example", ["", "1,234,5", "1234", "%Y", "milliseconds"])
def test_what_is_no_format(example):
    with pytest.raises(StreamError, match="is no format of numbers"):
        read_numbers(pa.array(["1"]), example)


# -- files ----------------------------------------------------------------------------------------


def flats(count, start=0):
    return [
        f"{20 + place % 90},{place % 10};{1000 + 10 * (place % 90)},50 €;{place % 7} %"
        for place in range(start, start + count)
    ]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path / "a.csv", flats(1500), "area;rent;rise")
    return tmp_path


def test_features_and_targets_are_read(folder):
    [chunk] = open_stream("a.csv", target="rent").chunks()
    np.testing.assert_array_equal(chunk.columns["area"][:3], [20.0, 21.1, 22.2])
    np.testing.assert_array_equal(chunk.columns["rise"][:3], [0.0, 1.0, 2.0])
    assert chunk.y[:2].tolist() == [1000.5, 1010.5]
    assert not chunk.bad


def test_a_model_remembers_how_numbers_were_written(folder):
    assert invoke("train", "a.csv", "-t", "rent", "--save", "m").code == 0
    assert sapwood.load("m").column_formats == {"area": "1.234,5", "rise": "1.234,5 %"}
    write_csv(folder / "new.csv", ["20,5;1 %", "1.021,0;2"], "area;rise")
    wanted = sapwood.load("m").predict_many({"area": [20.5, 1021.0], "rise": [1.0, 2.0]})
    for ended in (
        invoke("predict", "m", "new.csv"),
        run("predict", "m", "-", input=(folder / "new.csv").read_bytes()),
    ):
        assert ended.stdout.splitlines()[1:] == [repr(value) for value in wanted.tolist()]


def test_a_value_of_another_kind_is_a_bad_row(folder):
    write_csv(folder / "a.csv", [*flats(1200), "17.25;1;1"], "area;rent;rise")
    ended = invoke("evaluate", "a.csv", "-t", "rent")
    assert ended.code == 2
    assert "line 1202, column 'area': not a number ('17.25')" in ended.stderr


def test_marks_of_the_command_line(folder):
    write_csv(folder / "b.csv", [f"{place},{place:03};{place}" for place in range(1, 9)], "x;y")
    found = {}
    for typed in ((), ("--decimal", "."), ("--decimal", ","), ("--thousands", ",")):
        assert invoke("train", "b.csv", "-t", "y", *typed, "--save", "m").code == 0
        found[typed] = sapwood.load("m").column_formats["x"]
    assert list(found.values()) == ["1.234,5", "1,234.5", "1.234,5", "1,234.5"]
    ended = invoke("evaluate", "b.csv", "-t", "y", "--decimal", ";")
    assert_fails(ended, "decimal = ';'", "'.' or ',' is expected")
    ended = invoke("evaluate", "b.csv", "-t", "y", "--decimal", ",", "--thousands", ",")
    assert_fails(ended, "decimal and thousands are both ','")
    assert_fails(invoke("evaluate", "demand", "--decimal", ","), "--decimal is for files")
