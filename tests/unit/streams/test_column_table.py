"""The table of columns: how each was read, and what about it is worth a warning."""

import json

import pyarrow as pa
import pyarrow.parquet
import pytest

from cli_cases import invoke, write_csv
from sapwood.streams import ColumnNote, open_stream

HEADER = "row,id,city,sold,rent,share,flat,empty,mixed,copy,twice,y"
WARNINGS = {
    "row": "counts the rows: leave it out with --drop row",
    "id": "another text in nearly every row: an id? leave it out with --drop id",
    "flat": "constant in the first rows",
    "empty": "no value in the first rows: leave it out with --drop empty",
    "mixed": "is text because of values like 'n/k', though 67% are numbers",
    "copy": "the same as the target",
    "twice": "nearly all of the target (correlation 1.0000)",
}


def line(place):
    y = place * place % 97
    values = (
        *(place + 5, f"a{place:04x}", "Oslo" if place % 3 else ""),
        *(f"{1 + place % 28}.10.2012", f'"1.{place:03},5 €"', place % 7),
        *(4, "", "n/k" if place % 3 == 0 else place, y, 2 * y + 0.001 * (place % 2), y),
    )
    return ",".join(map(str, values))


@pytest.fixture
def path(tmp_path):
    return write_csv(tmp_path / "a.csv", [line(place) for place in range(60)], HEADER)


def test_notes_say_how_columns_are_read(path):
    notes = {note.name: note for note in open_stream(path, target="y", drop=["share"]).column_notes}
    assert list(notes) == HEADER.split(",")
    assert notes["city"] == ColumnNote(
        "city",
        "category",
        example="Oslo",
        missing=20,
        distinct=1,
        rows=60,
        warnings=notes["city"].warnings,
    )
    assert notes["sold"] == ColumnNote(
        *("sold", "time", False, "%d.%m.%Y", ("weekday", "season"), "1.10.2012", 0, 28, 60)
    )
    assert (notes["rent"].kind, notes["rent"].format) == ("number", "1.234,5 €")
    assert (notes["share"].kind, notes["share"].warnings) == ("left out", ())
    assert (notes["y"].kind, notes["y"].is_target, notes["y"].warnings) == ("number", True, ())
    for name, words in WARNINGS.items():
        assert any(words in warning for warning in notes[name].warnings), notes[name]
    assert {name for name, note in notes.items() if note.warnings} == {*WARNINGS, "city"}


def test_the_table_is_printed_unless_quiet_is_asked_for(path):
    for command in (
        ["evaluate", path, "-t", "y"],
        ["train", path, "-t", "y", "--save", f"{path}.m"],
    ):
        told = invoke(*command).stderr.splitlines()
        assert told[0] == f"{path}: how columns are read, by the first 60 rows"
        assert told[1].split() == ["column", "read", "as", "example", "missing", "distinct"]
        assert told[2].split() == ["row", "number", "5", "0", "60"]
        assert told[3].startswith("  row: counts the rows")
        assert "read as" not in invoke(*command, "--quiet").stderr


def test_many_columns_are_shown_in_few_lines(tmp_path):
    names = [f"x{place}" for place in range(100)]
    rows = [",".join(str(row * place % 13) for place in range(1, 101)) for row in range(20)]
    rows = [f"{row},{number}" for number, row in enumerate(rows)]
    path = write_csv(tmp_path / "a.csv", rows, ",".join([*names, "y"]))
    told = invoke("evaluate", path, "-t", "y").stderr
    assert "x39 " in told
    assert "x40 " not in told
    assert "more columns without remarks" in told


def test_other_formats_tell_the_same(tmp_path):
    rows = [
        {"sold": f"{1 + place % 28}.10.2012", "rent": f"1.{place:03},5 €", "y": place * place % 97}
        for place in range(60)
    ]
    write_csv(
        tmp_path / "a.csv",
        [f'{row["sold"]},"{row["rent"]}",{row["y"]}' for row in rows],
        "sold,rent,y",
    )
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    pa.parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    expected = open_stream(tmp_path / "a.csv", target="y").column_notes
    assert [note.format for note in expected] == ["%d.%m.%Y", "1.234,5 €", None]
    for name in ("a.jsonl", "a.parquet"):
        stream = open_stream(tmp_path / name, target="y")
        assert stream.column_notes == expected
        [chunk] = stream.chunks()
        assert chunk.columns["rent"][:2].tolist() == [1000.5, 1001.5]
        assert chunk.columns["sold"][0] == 1_349_049_600.0


def test_streams_that_are_no_files_have_no_table():
    assert "read as" not in invoke("evaluate", "demand:rows=2000").stderr


def sums(path, rows, exact=True):
    """Write rows whose target is the sum of two columns, and minus the difference of two others."""
    lines = []
    for place in range(rows):
        casual, registered = place * 7 % 23, place * place % 97
        total = casual + registered + (0 if exact or place % 10 else 3)
        less = "" if place == 5 else 5 * place % 31
        lines.append(f"{casual},{place % 3},{registered},{less},{total + 5 * place % 31},{total}")
    return write_csv(path, lines, "casual,hour,registered,less,more,total")


def warned(path, target, **options):
    notes = open_stream(path, target=target, **options).column_notes
    return {note.name: note.warnings for note in notes if note.warnings}


def test_two_columns_that_determine_the_target_are_warned_of(tmp_path):
    path = sums(tmp_path / "a.csv", 60)
    remedy = "leave both out with --drop casual --drop registered, unless they are known beforehand"
    words = "determines the target together with registered (total = casual + registered)"
    other = "determines the target together with more (total = more - less)"
    found = warned(path, "total")
    assert found["casual"] == (f"{words}: {remedy}",)
    assert found["less"][0].startswith(f"{other}: leave both out with --drop less --drop more,")
    assert found.keys() == {"casual", "less"}
    assert warned(path, "total", drop=["registered", "less"]) == {}
    assert warned(path, "casual")["registered"][0].startswith(
        "determines the target together with total (casual = total - registered): "
    )


def test_chance_is_not_warned_of(tmp_path):
    assert warned(sums(tmp_path / "few.csv", 49), "total") == {}
    inexact = warned(sums(tmp_path / "inexact.csv", 60, exact=False), "total")
    assert inexact.keys() == {"less"}


def test_further_targets_are_not_warned_of(tmp_path):
    path = sums(tmp_path / "a.csv", 60)
    found = invoke("evaluate", path, "-t", "total", "-t", "casual", "--drop", "less")
    assert found.code == 0, found.stderr
    assert "determines" not in found.stderr
