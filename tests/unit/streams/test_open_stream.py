"""One way to open all formats: the rows are the same, and so are the complaints."""

import gzip
import io
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from sapwood.streams import StreamError, open_stream

ROWS = {"x": [1.5, None, 3.0], "city": ["Oslo", "Bonn", None], "y": [1.0, 2.0, 3.0]}
CSV = "x,city,y\n1.5,Oslo,1\n,Bonn,2\n3,,3\n"
ARFF = (
    "@relation r\n@attribute x real\n@attribute city {Oslo,Bonn}\n@attribute y real\n@data\n"
    "1.5,Oslo,1\n?,Bonn,2\n3,?,3\n"
)
JSON = "".join(
    json.dumps(dict(zip(ROWS, row, strict=True))) + "\n" for row in zip(*ROWS.values(), strict=True)
)
EXPECTED = [
    ({"x": 1.5, "city": "Oslo"}, 1.0),
    ({"x": None, "city": "Bonn"}, 2.0),
    ({"x": 3.0, "city": None}, 3.0),
]
TEXTS = {
    "rows.csv": CSV,
    "rows.TXT": CSV.replace(",", "|"),
    "rows.tsv": CSV.replace(",", "\t"),
    "rows.arff": ARFF,
    "rows.jsonl": JSON,
    "rows.ndjson": JSON,
}


@pytest.fixture
def folder(tmp_path):
    for name, text in TEXTS.items():
        (tmp_path / name).write_text(text)
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
    table = pa.table(ROWS)
    pa.parquet.write_table(table, tmp_path / "rows.parquet")
    pa.feather.write_feather(table, tmp_path / "rows.feather")
    (tmp_path / "parts").mkdir()
    pa.parquet.write_table(table.slice(0, 1), tmp_path / "parts" / "a.parquet")
    pa.parquet.write_table(table.slice(1), tmp_path / "parts" / "b.parquet")
    return tmp_path


@pytest.mark.parametrize("name", [*TEXTS, *(f"{name}.gz" for name in TEXTS)])
def test_texts(folder, name):
    stream = open_stream(folder / name, target="y")
    assert list(stream) == EXPECTED
    assert dict(stream.features) == {"x": "number", "city": "category"}
    assert (stream.name, stream.size) == (str(folder / name), (folder / name).stat().st_size)


@pytest.mark.parametrize("name", ["rows.parquet", "rows.feather", "parts"])
def test_tables(folder, name):
    assert list(open_stream(folder / name, target="y")) == EXPECTED


@pytest.mark.parametrize(
    ("format", "text"),
    [(None, CSV), ("csv", CSV), ("TSV", TEXTS["rows.tsv"]), ("arff", ARFF), ("jsonl", JSON)],
)
def test_the_standard_input(monkeypatch, format, text):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert list(open_stream("-", target="y", format=format)) == EXPECTED


def test_the_format_can_be_told(folder):
    (folder / "rows.csv").rename(folder / "rows")
    assert list(open_stream(folder / "rows", target="y", format="csv")) == EXPECTED
    (folder / "rows.parquet").rename(folder / "rows.csv")
    assert list(open_stream(folder / "rows.csv", target="y", format="parquet")) == EXPECTED


def test_a_named_pipe(tmp_path):
    path = tmp_path / "pipe.csv"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_text, args=(CSV,))
    writer.start()
    assert list(open_stream(path, target="y")) == EXPECTED
    writer.join()


def test_read_options_are_passed_on(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("id,zone,sold,y\n1,7,2026.11.15,2\n2,8,2026.11.16,3\n")
    stream = open_stream(
        str(path),
        target="y",
        drop=["id"],
        categorical=["zone"],
        time_formats={"sold": "%Y.%m.%d"},
        time_parts=["weekday"],
        time="sold",
    )
    assert dict(stream.features) == {"zone": "category", "sold": "number", "sold.weekday": "number"}
    [chunk] = stream.chunks()
    assert (chunk.columns["zone"], chunk.columns["sold.weekday"].tolist()) == ([7, 8], [6.0, 0.0])
    assert (chunk.times[1] - chunk.times[0], stream.time) == (86_400.0, "sold")
    stream = open_stream(path, known={"zone": "number", "other": "number"})
    assert dict(stream.features) == {"zone": "number"}
    assert stream.target is None


@pytest.mark.parametrize(
    ("name", "options", "complaint"),
    [
        ("rows", {}, "rows: the name does not show the format; end it by one of .csv, .txt,"),
        ("rows.dat", {}, "or give the format, as by --format csv"),
        ("rows.xls", {}, "rows.xls is a workbook, not text: save its sheet as CSV"),
        ("rows.csv", {"format": "xml"}, "'xml' is no format: one of csv, tsv, arff, jsonl, parq"),
        ("rows.csv", {"drop": "x"}, "drop = 'x': a list of names is expected"),
        (
            "rows.csv",
            {"target": "prize"},
            "has no column 'prize' to predict: did you mean 'price'?",
        ),
        ("rows.parquet.gz", {}, "is compressed as a whole: unpack it"),
        ("-", {"format": "parquet"}, "the standard input cannot be read as parquet: save it to"),
    ],
)
def test_complaints(tmp_path, monkeypatch, name, options, complaint):
    monkeypatch.chdir(tmp_path)
    Path(name).write_text("x,price\n1,2\n")
    with pytest.raises(StreamError, match=complaint.replace("?", r"\?")):
        open_stream(name, **options)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "is empty"),
        (bytes(range(256)) * 10, "has zero bytes in its first line|not UTF-8"),
        (b"PK\x03\x04", "is a damaged zip archive"),
        (b"\x1f\x8b\x08\x00", "cannot be read: its gzip data are cut off"),
    ],
)
@pytest.mark.parametrize("suffix", ["csv", "tsv", "arff", "jsonl"])
def test_what_is_no_text(tmp_path, content, complaint, suffix):
    path = tmp_path / f"rows.{suffix}"
    path.write_bytes(content)
    with pytest.raises(StreamError, match=complaint):
        open_stream(path)


def test_what_cannot_be_opened(tmp_path):
    with pytest.raises(FileNotFoundError):
        open_stream(tmp_path / "missing")
    with pytest.raises(StreamError, match="is a folder without files of csv; name the files"):
        open_stream(tmp_path, format="csv")


def test_pyarrow_is_needed_for_files_alone():
    script = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "from sapwood.streams import friedman, open_stream\n"
        "print(len(next(friedman(rows=10).chunks())))\n"
        "try:\n    open_stream('-')\n"
        "except ModuleNotFoundError as error:\n    print(error.name)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["10", "pyarrow"]
