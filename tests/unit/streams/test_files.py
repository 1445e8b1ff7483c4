"""Files as they come: encodings, compression, headers, and several of them in order."""

import bz2
import codecs
import gzip
import lzma
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from cli_cases import assert_fails, invoke, read_csv, rows_of, run, write_csv
from sapwood.streams import StreamError, open_stream
from stream_cases import check_resuming, contents_of

TEXT = 'stadt,fläche,y\nKöln,50,1\n"Łódź",60,2\nTromsø,70,3\n'
LATIN = TEXT.replace("Łódź", "Gävle")
ENCODED = {
    "utf-8": TEXT.encode(),
    "utf-8 with a mark": codecs.BOM_UTF8 + TEXT.encode(),
    "utf-16": TEXT.encode("utf-16"),
    "utf-16-be": codecs.BOM_UTF16_BE + TEXT.encode("utf-16-be"),
    "utf-16-le without a mark": TEXT.encode("utf-16-le"),
    "utf-32": TEXT.encode("utf-32"),
    "cp1252": LATIN.encode("cp1252"),
    "latin-1": LATIN.encode("latin-1"),
}


@pytest.mark.parametrize("name", ENCODED)
def test_encodings_are_found(tmp_path, name):
    path = tmp_path / "a.csv"
    path.write_bytes(ENCODED[name])
    stream = open_stream(path, target="y")
    second = "Gävle" if name in ("cp1252", "latin-1") else "Łódź"
    assert list(stream.features) == ["stadt", "fläche"]
    [chunk] = stream.chunks()
    assert chunk.columns["stadt"] == ["Köln", second, "Tromsø"]
    assert chunk.y.tolist() == [1.0, 2.0, 3.0]
    assert chunk.numbers.tolist() == [2, 3, 4]
    check_resuming(stream)


def test_an_encoding_can_be_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_bytes("дім,y\nЇжл,1\nлюк,2\n".encode("koi8-u"))
    [chunk] = open_stream("a.csv", target="y", encoding="koi8-u").chunks()
    assert chunk.columns == {"дім": ["Їжл", "люк"]}
    ended = invoke("evaluate", "a.csv", "-t", "y", "--encoding", "KOI8")
    assert_fails(ended, "'KOI8' is no encoding: give one such as utf-8, cp1252")
    ended = invoke("evaluate", "a.csv", "-t", "y")
    assert ended.stderr.splitlines()[0].startswith("a.csv: read as cp1252; if letters are wrong")


def test_single_bytes_that_are_no_utf_8_are_bad_rows_of_a_text_in_utf_8(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("x,y\nKöln,1\n".encode() + b"Troms\xf8,2\n")
    [chunk] = open_stream(path, target="y").chunks()
    assert [(row.number, row.reason) for row in chunk.bad] == [(3, "bad encoding")]
    assert "--encoding cp1252" in chunk.bad[0].remedy
    # Beyond the first rows nothing is guessed any more.
    path.write_bytes(b"x,y\n" + b"Oslo,1\n" * 40_000 + b"Troms\xf8,2\n")
    bad = [row for chunk in open_stream(path, target="y").chunks() for row in chunk.bad]
    assert [(row.number, row.reason) for row in bad] == [(40_002, "bad encoding")]


# -- compression ----------------------------------------------------------------------------------


def zipped(path, **members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name.replace("__", "."), text)
    return path.read_bytes()


def zstandard(data):
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


PLAIN = ("a,b,flag,city,sold,y\n" + "\n".join(rows_of(3000)) + "\n").encode()
PACKERS = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress, "zst": zstandard}


@pytest.mark.parametrize("suffix", [*PACKERS, "zip"])
def test_compressed_texts_are_read_and_resumed(tmp_path, suffix):
    (tmp_path / "a.csv").write_bytes(PLAIN)
    path = tmp_path / f"p.csv.{suffix}"
    if suffix == "zip":
        zipped(path, a__csv=PLAIN)
    else:
        path.write_bytes(PACKERS[suffix](PLAIN))
    plain, packed = (open_stream(each, target="y") for each in (tmp_path / "a.csv", path))
    wanted = contents_of(plain)
    found = contents_of(packed)
    assert found["columns"] == wanted["columns"]
    assert found["y"] == wanted["y"]
    first = next(packed.chunks(most_rows=1000))
    rest = contents_of(packed, first.next)
    assert rest["y"] == wanted["y"][1000:]
    assert [chunk.done for chunk in packed.chunks()][-1] <= path.stat().st_size
    assert packed.fingerprint == plain.fingerprint


@pytest.mark.parametrize("suffix", [*PACKERS, "zip"])
def test_what_is_cut_off_is_told(tmp_path, suffix):
    path = tmp_path / f"p.csv.{suffix}"
    data = zipped(path, a__csv=PLAIN) if suffix == "zip" else PACKERS[suffix](PLAIN)
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(StreamError, match=r"cut off|damaged"):
        contents_of(open_stream(path, target="y"))


@pytest.mark.parametrize("suffix", ["gz", "bz2", "xz"])
def test_compressed_texts_come_through_pipes(suffix):
    ended = run("evaluate", "-", "-t", "y", "--json", input=PACKERS[suffix](PLAIN))
    assert ended.json()["rows"]["learned"] == 3000


def test_what_cannot_come_through_a_pipe_is_told(tmp_path):
    for data, words in (
        (zstandard(PLAIN), "standard input is compressed by zstd, which is read from files only"),
        (zipped(tmp_path / "a.zip", a__csv=PLAIN), "unpack it before, as by `unzip -p FILE`"),
    ):
        assert_fails(run("evaluate", "-", "-t", "y", input=data), words)


def test_archives(tmp_path):
    zipped(tmp_path / "one.zip", a__jsonl='{"x": 1, "y": 2}\n', **{"__MACOSX/a__jsonl": "x"})
    assert contents_of(open_stream(tmp_path / "one.zip", target="y"))["y"] == [(2.0).hex()]
    zipped(tmp_path / "two.zip", a__csv="x,y\n", b__csv="x,y\n")
    with pytest.raises(StreamError, match=r"archive of 2 files, such as 'a.csv', 'b.csv': unpack"):
        open_stream(tmp_path / "two.zip", target="y")
    zipped(tmp_path / "none.csv.zip")
    with pytest.raises(StreamError, match="is a zip archive without a file in it"):
        open_stream(tmp_path / "none.csv.zip", target="y")
    zipped(tmp_path / "book.csv", **{"[Content_Types]__xml": "x", "xl/a__xml": "x"})
    with pytest.raises(StreamError, match="is a workbook, not text: save its sheet as CSV"):
        open_stream(tmp_path / "book.csv", target="y")


# -- headers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line", ["5.1,3.5,setosa", "1,5,3", "2026-11-15,4,5", "Oslo,7,5", "-1,x,y", "7,7,x"]
)
def test_files_without_a_header_are_noticed(tmp_path, line):
    path = write_csv(tmp_path / "a.csv", [line] * 3, line)
    with pytest.raises(StreamError, match=r"looks like a row and not .* --no-header .* c1 to c3"):
        open_stream(path)
    stream = open_stream(path, header=False)
    assert {name.partition(".")[0] for name in stream.features} == {"c1", "c2", "c3"}
    assert [number for chunk in stream.chunks() for number in chunk.numbers] == [1, 2, 3, 4]


@pytest.mark.parametrize("line", ["city,2011,2012", "0,1,2", "a,b,c 1.5", "x1,x2,y", "nan,inf,y"])
def test_numbers_may_be_names(tmp_path, line):
    path = write_csv(tmp_path / "a.csv", ["1,2,3"] * 3, line)
    assert list(open_stream(path).features) == line.split(",")


def test_a_header_can_be_insisted_on(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path / "a.csv", ["1,2,3"] * 3, "5.1,7.5,y")
    assert invoke("evaluate", "a.csv", "-t", "y", "--header").code == 0
    ended = invoke("evaluate", "a.csv", "-t", "c3", "--no-header", "--json")
    assert_fails(ended, "line 1, column 'c3': target is not a number ('y')")
    write_csv(tmp_path / "b.csv", ["1,2"] * 30, "5.1,7.5")
    assert (
        invoke("evaluate", "b.csv", "-t", "c2", "--no-header", "--json").json()["rows"]["read"]
        == 31
    )
    (tmp_path / "a.jsonl").write_text('{"y": 1}\n')
    assert_fails(invoke("evaluate", "a.jsonl", "-t", "y", "--header"), "header is for CSV files")


# -- several files --------------------------------------------------------------------------------


@pytest.fixture
def days(tmp_path, monkeypatch):
    """Files of single days, the tenth of which is not the second by its name alone."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "days").mkdir()
    for day in range(1, 12):
        write_csv(tmp_path / "days" / f"day{day}.csv", rows_of(20, start=20 * day))
    (tmp_path / "days" / "README.txt").write_text("about")
    (tmp_path / "days" / ".hidden.csv").write_text("x\n")
    lines = [line for day in range(1, 12) for line in rows_of(20, start=20 * day)]
    write_csv(tmp_path / "all.csv", lines)
    return tmp_path


def test_files_are_read_in_order_as_one(days):
    wanted = contents_of(open_stream("all.csv", target="y"))
    names = [f"days/day{day}.csv" for day in range(1, 12)]
    for source in ("days", "days/day*.csv", names):
        stream = open_stream(source, target="y")
        found = check_resuming(stream, (7, 8192))
        assert found["columns"] == wanted["columns"]
        assert found["y"] == wanted["y"]
        assert found["numbers"][:2] == [("days/day1.csv", 2), ("days/day1.csv", 3)]
        assert found["numbers"][-1] == ("days/day11.csv", 21)
        assert stream.size == sum((days / name).stat().st_size for name in names)


def test_the_command_line_takes_several_files(days):
    wanted = invoke("evaluate", "all.csv", "-t", "y", "--json").json()
    for typed in (["days"], ["days/day?.csv", "days/day1?.csv"], ["days/*.csv"]):
        found = invoke("evaluate", *typed, "-t", "y", "--json").json()
        assert found["total"] == wanted["total"]
    assert invoke("train", "days", "-t", "y", "--save", "m").code == 0
    predicted = [invoke("predict", "m", *typed).stdout for typed in (["days"], ["all.csv"])]
    assert predicted[0] == predicted[1]
    assert len(predicted[0].splitlines()) == 221


def test_a_file_that_is_added_is_learned_after_a_checkpoint(days):
    last = (days / "days" / "day11.csv").read_bytes()
    (days / "days" / "day11.csv").unlink()
    typed = ("train", "days", "-t", "y", "--checkpoint", "c", "--save")
    assert invoke(*typed, "m").code == 0
    (days / "days" / "day11.csv").write_bytes(last)
    assert invoke(*typed, "m").code == 0
    assert invoke("train", "all.csv", "-t", "y", "--save", "whole").code == 0
    assert (days / "m").read_bytes() == (days / "whole").read_bytes()
    (days / "days" / "day10.csv").unlink()
    (days / "days" / "day11.csv").unlink()
    assert_fails(invoke(*typed, "m"), "file 11 is not the one that was being read")


def test_a_folder_may_begin_with_one_file(days):
    for day in range(2, 12):
        (days / "days" / f"day{day}.csv").rename(days / f"later{day}.csv")
    typed = ("train", "days", "-t", "y", "--checkpoint", "c", "--save")
    assert invoke(*typed, "m").code == 0
    for day in range(2, 12):
        (days / f"later{day}.csv").rename(days / "days" / f"day{day}.csv")
    assert invoke(*typed, "m").code == 0
    assert invoke("train", "all.csv", "-t", "y", "--save", "whole").code == 0
    assert (days / "m").read_bytes() == (days / "whole").read_bytes()
    ended = invoke("train", "days/day1.csv", "-t", "y", "--checkpoint", "c", "--save", "m")
    assert_fails(ended, "c belongs to another run, whose stream differed")


def test_a_checkpoint_belongs_to_its_encoding(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [f"{'Köln' if place % 2 else 'Oslo'},{place % 7}" for place in range(3000)]
    (tmp_path / "a.csv").write_bytes("\n".join(["city,y", *lines, ""]).encode("cp1252"))
    typed = ("train", "a.csv", "-t", "y", "--checkpoint", "c", "--save")
    assert invoke(*typed, "m").code == 0
    with (tmp_path / "a.csv").open("ab") as file:
        file.write("Köln,3\n".encode("cp1252") * 10)
    assert invoke(*typed, "m").code == 0
    assert invoke("train", "a.csv", "-t", "y", "--save", "whole").code == 0
    assert (tmp_path / "m").read_bytes() == (tmp_path / "whole").read_bytes()
    ended = invoke(*typed, "m", "--encoding", "utf-8", "--on-bad-row", "skip")
    assert_fails(ended, "whose encoding was cp1252, not utf-8")


def test_files_must_have_the_columns_of_the_first(days):
    lines = [line.split(",") for line in rows_of(20)]
    turned = [",".join([line[5], *line[:5], "more"]) for line in lines]
    write_csv(days / "days" / "day2.csv", turned, "y,a,b,flag,city,sold,other")
    assert len(contents_of(open_stream("days", target="y"))["y"]) == 220
    write_csv(
        days / "days" / "day2.csv", [",".join(line[1:]) for line in lines], "b,flag,city,sold,y"
    )
    with pytest.raises(StreamError, match=r"day2.csv has no column 'a', unlike days/day1.csv; fix"):
        open_stream("days", target="y")
    assert len(contents_of(open_stream("days", target="y", drop=["a"]))["y"]) == 220


def test_bad_rows_of_several_files_have_their_places(days):
    write_csv(days / "days" / "day3.csv", [*rows_of(5), "1,2,true,Oslo,2026-01-01 00:30,x"])
    ended = invoke("evaluate", "days", "-t", "y", "--on-bad-row", "skip", "--bad-rows", "bad.csv")
    assert ended.code == 0
    [row] = read_csv("bad.csv")
    assert row["file"] == "days/day3.csv"
    assert (row["place"], row["reason"]) == ("line 7", "target is not a number")


def test_which_files_are_refused(days):
    (days / "empty").mkdir()
    for source, words in (
        ("empty", "empty is a folder without files of csv, tsv, jsonl; name the files"),
        ("days/*.dat", "no file has such a name; check the pattern"),
        ([], "there are no files: name one at least"),
        (["-", "all.csv"], "the standard input cannot be one of several files"),
    ):
        with pytest.raises(StreamError, match=words.replace("*", r"\*")):
            open_stream(source, target="y")
    (days / "days" / "day12.tsv").write_text("a\ty\n1\t2\n")
    with pytest.raises(StreamError, match=r"day12.tsv is tsv, while days/day1.csv is csv"):
        open_stream("days", target="y")
    assert len(contents_of(open_stream("days", target="y", format="csv"))["y"]) > 0


def test_several_tables_and_several_objects(days):
    for day in (1, 2):
        table = pa.table({"x": np.arange(3.0), "y": np.arange(3.0) + day})
        pa.parquet.write_table(table, f"{day}.parquet")
        (days / f"{day}.jsonl").write_text(f'{{"x": 1, "y": {day}}}\n')
    for source in (["2.parquet", "1.parquet"], "[12].parquet", ["1.jsonl", "2.jsonl"]):
        stream = open_stream(source, target="y")
        wanted = {2: [1.0, 2.0], 6: [1.0, 2.0, 2.0, 3.0, 3.0, 4.0]}
        y = [float.fromhex(value) for value in check_resuming(stream)["y"]]
        assert sorted(y) == wanted[len(y)]
        assert y[0] == (2.0 if source == ["2.parquet", "1.parquet"] else 1.0)
