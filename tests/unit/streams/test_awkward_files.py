"""Awkward files as people have them: each is read right, or refused with what helps."""

import bz2
import codecs
import gzip
import io
import lzma
import zipfile
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sapwood.streams import StreamError, open_stream

OCTOBER_2 = 1_349_136_000.0
NINE = OCTOBER_2 + 9 * 3600.0
DAYS = [OCTOBER_2 + day * 86_400.0 for day in range(14)]
"""The days from 2 to 15 October 2012, of which some are above 12."""


@dataclass(frozen=True)
class Case:
    """A file, and what is expected of it.

    Either the features by their names, and the targets, of all good rows and the reasons of bad
    ones; or the words by which the file is refused.
    """

    content: bytes
    columns: dict[str, list[Any]] = field(default_factory=dict)
    y: list[float] = field(default_factory=list)
    bad: list[str] = field(default_factory=list)
    refused: str | None = None
    name: str = "a.csv"
    options: dict[str, Any] = field(default_factory=dict)
    warned: str | None = None


def dates(*texts: str, seconds: list[float] | None = None, **more: Any) -> Case:
    """A column of dates of some days from 2 October 2012 on."""
    content = "t;y\n" + "".join(f"{text};{row}\n" for row, text in enumerate(texts))
    expected = DAYS[: len(texts)] if seconds is None else seconds
    y = [float(row) for row in range(len(texts))]
    return Case(content.encode(), {"t": expected}, y, **more)


def october(format: str, hour: float = 0.0, **more: Any) -> Case:
    """A column of 14 days in a format."""
    from datetime import UTC, datetime

    moments = [datetime.fromtimestamp(day + hour * 3600.0, UTC) for day in DAYS]
    texts = [moment.strftime(format) for moment in moments]
    return dates(*texts, seconds=[day + hour * 3600.0 for day in DAYS], **more)


def numbers(text: str, values: list[float], **more: Any) -> Case:
    """A column of numbers that are separated by unrecorded here, and a target."""
    rows = text.split("|")
    content = "x;y\n" + "".join(f"{value};{row}\n" for row, value in enumerate(rows))
    return Case(content.encode(), {"x": values}, [float(row) for row in range(len(rows))], **more)


def in_zip(**members: str) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, text in members.items():
            archive.writestr(name.replace("_", "."), text)
    return content.getvalue()


def in_zstd(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


CITIES = "city,y\nKöln,1\nTromsø,2\n"
READ = {"city": ["Köln", "Tromsø"]}
PLAIN = b"x,y\n1,2\n3,4\n"
ONE = {"x": [1.0, 3.0]}

CASES = {
    # encodings
    "UTF-8": Case(CITIES.encode(), READ, [1, 2]),
    "UTF-8 with a byte order mark": Case(codecs.BOM_UTF8 + CITIES.encode(), READ, [1, 2]),
    "UTF-16 with a mark": Case(CITIES.encode("utf-16"), READ, [1, 2]),
    "UTF-16, big end first": Case(codecs.BOM_UTF16_BE + CITIES.encode("utf-16-be"), READ, [1, 2]),
    "UTF-16 without a mark": Case(CITIES.encode("utf-16-le"), READ, [1, 2]),
    "Latin-1": Case(CITIES.encode("latin-1"), READ, [1, 2]),
    "Windows-1252 with its own signs": Case(
        "x,y\n“5 €”,1\n".encode("cp1252"), {"x": ["“5 €”"]}, [1]
    ),
    "an encoding that is told": Case(
        CITIES.encode("cp865"), READ, [1, 2], options={"encoding": "cp865"}
    ),
    "UTF-8 with one broken letter": Case(
        CITIES.encode() + b"Troms\xf8,3\n", READ, [1, 2], bad=["bad encoding"]
    ),
    # dates
    "d/m/y": october("%d/%m/%Y"),
    "m/d/y": october("%m/%d/%Y"),
    "m/d/yy h:mm": october("%m/%d/%y %H:%M", 9),
    "d.m.y h:mm:ss": october("%d.%m.%Y %H:%M:%S", 9),
    "y/m/d": october("%Y/%m/%d"),
    "ISO with a zone": october("%Y-%m-%dT%H:%M:%SZ", 9),
    "ISO with fractions": october("%Y-%m-%d %H:%M:%S.%f", 9),
    "2 Oct 2012": october("%d %b %Y"),
    "October 2, 2012": october("%B %d, %Y"),
    "Tue, 02 Oct 2012 09:00:00 +0000": october("%a, %d %b %Y %H:%M:%S +0000", 9),
    "02/Oct/2012:09:00:00 +0000": october("%d/%b/%Y:%H:%M:%S +0000", 9),
    "9 AM": october("%m/%d/%Y %I:%M %p", 9),
    "20121002": october("%Y%m%d"),
    "201210020900": october("%Y%m%d%H%M", 9),
    "yy-mm-dd in order": october("%y-%m-%d", warned="is taken for short year first, for then"),
    "day or month, nothing tells": dates(
        "3/3/12",
        "3/3/12",
        seconds=[1_330_732_800.0] * 2,
        warned="it is ambiguous; if not, pass --time",
    ),
    "seconds since 1970": Case(
        b"ts,y\n1349168400,1\n1349172000,2\n", {"ts": [NINE, NINE + 3600]}, [1, 2]
    ),
    "milliseconds since 1970": Case(
        b"ts,y\n1349168400000,1\n1349172000000,2\n", {"ts": [NINE, NINE + 3600]}, [1, 2]
    ),
    "a time of day": dates("9:00", "17:30", seconds=[32_400.0, 63_000.0]),
    "one broken date among ten": Case(
        b"t,y\n" + b"".join(b"%d.10.2012,1\n" % day for day in range(2, 12)) + b"soon,1\n",
        {"t": DAYS[:10]},
        [1.0] * 10,
        ["not a time"],
    ),
    # numbers
    "decimal commas": numbers("12,5|0,25", [12.5, 0.25]),
    "1.234,56": numbers("1.234,56|7", [1234.56, 7.0]),
    "1,234.56": numbers("1,234.56|7", [1234.56, 7.0]),
    "1 234,5 with thin unrecorded": numbers("1\u202f234,5|7", [1234.5, 7.0]),
    "1'234.50": numbers("1'234.50|7", [1234.5, 7.0]),
    "percent": numbers("12,5 %|7 %", [12.5, 7.0]),
    "euros": numbers("1.200,50 €|-7 €", [1200.5, -7.0]),
    "dollars in brackets": numbers("$1,200.50|($7.00)", [1200.5, -7.0]),
    "1,234 could be both": numbers(
        "1,234|5,678", [1.234, 5.678], warned="could be 1234; pass --dec"
    ),
    "1,234 with --decimal .": numbers("1,234|5,678", [1234, 5678], options={"decimal": "."}),
    "two currencies": Case(
        "x,y\n5 €,1\n6 $,2\n".encode(),
        {"x": ["5 €", "6 $"]},
        [1, 2],
        warned="holds amounts of € and $, which stay text",
    ),
    # shapes
    "empty": Case(b"", refused="a.csv is empty"),
    "blank lines alone": Case(b"\n\r\n\n", refused="all of its lines are blank"),
    "a header alone": Case(b"x,y\n", {"x": []}, []),
    "no newline at the end": Case(PLAIN[:-1], ONE, [2, 4]),
    "Windows' line ends": Case(PLAIN.replace(b"\n", b"\r\n"), ONE, [2, 4]),
    "old Macintosh's line ends": Case(
        PLAIN.replace(b"\n", b"\r"), refused="lines end by carriage returns alone"
    ),
    "a huge line": Case(b"x,y\n" + b"1" * (17 << 20), refused="no end within 16 MiB"),
    "a huge field": Case(
        b"x,y\na,1\n" + b"b" * 5000 + b",2\n", {"x": ["a"]}, [1], ["label too long"]
    ),
    "no header": Case(b"5.1,3.5\n4.9,3.0\n", refused="--no-header"),
    "no header, and told so": Case(
        b"5.1,3.5\n4.9,3.0\n",
        {"c1": [5.1, 4.9]},
        [3.5, 3.0],
        options={"header": False, "target": "c2"},
    ),
    "two columns of one name": Case(b"x,x,y\n1,2,3\n", refused="are both named 'x'; rename one"),
    "a column without a name": Case(b",y\n1,2\n", refused="column 1 has no name; give it one"),
    "semicolons": Case(b"x;y\n1;2\n3;4\n", ONE, [2, 4]),
    "tabs": Case(b"x\ty\n1\t2\n3\t4\n", ONE, [2, 4]),
    "bars": Case(b"x|y\n1|2\n3|4\n", ONE, [2, 4]),
    "lines within quotes": Case(b'x,y\n"a\nb",1\n', {"x": ["a\nb"]}, [1]),
    "a quote that never closes": Case(b'x,y\n"a,1\nb,2\n', {"x": ["b"]}, [2], ["unclosed quote"]),
    "rows of other lengths": Case(
        b"x,y\n1,2\n3\n5,6,7\n", {"x": [1.0]}, [2], ["another number of fields"] * 2
    ),
    "numbers with words among them": Case(
        b"x,y\n" + b"1,1\n" * 10 + b"n/k,2\n", {"x": [1.0] * 10}, [1] * 10, ["not a number"]
    ),
    "an id in every row": Case(
        b"id,y\n" + b"".join(b"a%04d,1\n" % row for row in range(30)),
        {"id": [f"a{row:04d}" for row in range(30)]},
        [1.0] * 30,
        warned="an id? leave it out with --drop id",
    ),
    "a column that counts": Case(
        b"row,y\n" + b"".join(b"%d,%d\n" % (row, row % 3) for row in range(30)),
        {"row": [float(row) for row in range(30)]},
        [float(row % 3) for row in range(30)],
        warned="counts the rows: leave it out with --drop row",
    ),
    # compression
    "gzip": Case(gzip.compress(PLAIN), ONE, [2, 4], name="a.csv.gz"),
    "bzip2": Case(bz2.compress(PLAIN), ONE, [2, 4], name="a.csv.bz2"),
    "xz": Case(lzma.compress(PLAIN), ONE, [2, 4], name="a.csv.xz"),
    "zstd": Case(in_zstd(PLAIN), ONE, [2, 4], name="a.csv.zst"),
    "zip": Case(in_zip(a_csv=PLAIN.decode()), ONE, [2, 4], name="a.zip"),
    "zip of two files": Case(
        in_zip(a_csv="x,y\n", b_csv="x,y\n"), refused="archive of 2 files", name="a.zip"
    ),
    "gzip that is cut off": Case(
        gzip.compress(PLAIN)[:20], refused="gzip data are cut off", name="a.csv.gz"
    ),
    "gzip with another name": Case(gzip.compress(PLAIN), ONE, [2, 4]),
    "a workbook": Case(
        in_zip(**{"[Content.Types]_xml": ""}),
        refused="is a workbook, not text: save its sheet as CSV",
        name="a.xlsx",
    ),
    "Parquet with another name": Case(b"PAR1\x15\x04\n", refused="is a Parquet file, not text"),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_an_awkward_file(tmp_path, case):
    path = tmp_path / case.name
    path.write_bytes(case.content)
    options = {"target": "y", "time_parts": (), **case.options}
    if case.refused is not None:
        with pytest.raises(StreamError, match=case.refused) as refused:
            [*open_stream(path, **options).chunks()]
        assert str(refused.value).startswith(str(path))
        return
    stream = open_stream(path, **options)
    chunks = [*stream.chunks()]
    for name, expected in case.columns.items():
        found = [value for chunk in chunks for value in chunk.columns[name]]
        if expected and isinstance(expected[0], str):
            assert found == expected
        else:
            np.testing.assert_array_equal(found, expected)
    assert [value for chunk in chunks for value in chunk.y] == case.y
    assert [row.reason for chunk in chunks for row in chunk.bad] == case.bad
    warnings = [warning for note in stream.column_notes for warning in note.warnings]
    assert (case.warned is None) or any(case.warned in warning for warning in warnings), warnings


def test_there_are_fifty_of_them():
    assert len(CASES) >= 50
