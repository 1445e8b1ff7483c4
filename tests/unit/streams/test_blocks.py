"""Whole rows of bytes from files, pipes and gzip."""

import contextlib
import csv
import gzip
import io
import itertools
import os
import sys
import threading
from unittest import mock

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from naive_text import naive_rows
from sapwood.streams import blocks, compression, quotes, reader
from sapwood.streams.blocks import TextSource
from sapwood.streams.quotes import Quotes, line_ends
from sapwood.streams.stream import StreamError

COMMA = Quotes(b",")
texts = st.lists(
    st.sampled_from([b'"', b",", b"\n", b"\r\n", b"\r", b"a", b"bc", b'""', b"\0", b'",', b',"']),
    max_size=40,
).map(b"".join)


@contextlib.contextmanager
def small(block=1 << 20, longest=1 << 20):
    with (
        mock.patch.object(reader, "BLOCK", block),
        mock.patch.object(compression, "RAW", block),
        mock.patch.object(quotes, "LONGEST_ROW", longest),
    ):
        yield


def written(folder, content, name="text"):
    path = os.path.join(folder, name)
    with open(path, "wb") as file:
        file.write(content)
    return path


def piped(monkeypatch, content):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    return TextSource("-")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return str(tmp_path_factory.mktemp("texts"))


# Rows


@given(text=texts, longest=st.sampled_from([3, 10, 1 << 20]))
@example(text=b'"a\n5,"b"\n', longest=1 << 20)
@example(text=b'x"y,"a\nb"\n', longest=1 << 20)
@example(text=b'"a"b\nc', longest=1 << 20)
def test_rows_end_where_a_reader_letter_by_letter_ends_them(text, longest):
    with small(longest=longest):
        rows = COMMA.split(text, line_ends(text, ended=True), ended=True)
    starts = [0, *rows.ends.tolist()]
    found = [
        (text[start:end], place in rows.unclosed)
        for place, (start, end) in enumerate(itertools.pairwise(starts))
    ]
    assert found == naive_rows(text, longest)


@given(text=texts, block=st.integers(1, 20), longest=st.sampled_from([3, 1 << 20]))
def test_blocks_are_whole_rows_however_the_text_is_read(folder, text, block, longest):
    path = written(folder, text)
    with small(block, longest):
        found = [block.data for block in TextSource(path).blocks(most_lines=1, quotes=COMMA)]
    assert found == [row for row, _ in naive_rows(text, longest)]


@given(
    text=texts, most=st.integers(1, 6), block=st.sampled_from([2, 7, 1 << 20]), zipped=st.booleans()
)
def test_places_of_blocks(folder, text, most, block, zipped):
    path = written(folder, gzip.compress(text, 1) if zipped else text)
    with small(block):
        found = list(TextSource(path).blocks(most_lines=most, quotes=COMMA))
        again = [
            list(TextSource(path).blocks(one.end, one.line + one.lines, most, COMMA))
            for one in found
        ]
    assert b"".join(one.data for one in found) == text
    end, line = 0, 1
    for one in found:
        lines = one.data.count(b"\n") + (not one.data.endswith(b"\n"))
        assert (one.start, one.end) == (end, end + len(one.data))
        assert (one.line, one.lines) == (line, lines)
        assert lines <= most or len(naive_rows(one.data)) == 1
        end, line = one.end, line + lines
    for place, others in enumerate(again):
        assert b"".join(other.data for other in others) == text[found[place].end :]
        assert not others or others[0].line == found[place].line + found[place].lines
    rows = [row for one in found for row, _ in naive_rows(one.data)]
    assert rows == [row for row, _ in naive_rows(text)]


@given(row=texts.filter(lambda text: b"\n" not in text and b"\r" not in text))
def test_fields_of_a_row(row):
    [(_, unclosed)] = naive_rows(row) or [(b"", True)]
    if not unclosed:
        [expected] = csv.reader([row.decode()])
        assert [field.decode() for field in COMMA.fields(row)] == expected


def test_a_block_is_about_a_mebibyte_and_bounded_in_lines(folder):
    path = written(folder, b"0123456\n" * 400_000)
    found = list(TextSource(path).blocks(most_lines=300_000))
    assert [one.lines for one in found] == [131_072] * 3 + [6_784]
    found = list(TextSource(path).blocks(most_lines=100_000))
    assert [one.lines for one in found] == [100_000] * 4


def test_a_quote_that_never_closes_costs_its_line_alone(folder):
    text = b'1,"2\n' + b"3,4\n" * 400_000 + b'5,"6\n7"\n'
    rows = list(TextSource(written(folder, text)).blocks(quotes=COMMA))
    assert [one.line for one in rows if one.unclosed] == [1]
    assert sum(one.lines for one in rows) == 400_003


def test_the_mark_of_utf_8_is_left_out(folder):
    path = written(folder, b"\xef\xbb\xbfa\nb\n")
    [one] = TextSource(path).blocks()
    assert (one.data, one.start, one.end, one.line) == (b"a\nb\n", 3, 7, 1)
    [one] = TextSource(path).blocks(5, 2)
    assert (one.data, one.start, one.end, one.line) == (b"b\n", 5, 7, 2)


def test_progress_counts_the_bytes_on_disk(folder):
    text = b"".join(b"%d\n" % (number * 2654435761 % 2**32) for number in range(300_000))
    source = TextSource(written(folder, text))
    assert [one.read for one in source.blocks()] == [one.end for one in source.blocks()]
    assert source.size == len(text)
    zipped = gzip.compress(text)
    source = TextSource(written(folder, zipped))
    read = [one.read for one in source.blocks()]
    assert read == sorted(read)
    assert len(zipped) // 4 < read[len(read) // 2] < len(zipped)
    assert read[-1] == source.size == len(zipped)


# Files that change


def test_a_line_without_end_may_get_its_end_later(folder):
    path = written(folder, b"a\nb")
    *_, last = TextSource(path).blocks()
    assert (last.end, last.line + last.lines) == (3, 3)
    for appended, start in ((b"\nc\n", 4), (b"\r\nc\n", 5)):
        written(folder, b"a\nb" + appended)
        [one] = TextSource(path).blocks(3, 3)
        assert (one.data, one.line, one.start) == (b"c\n", 3, start)


def test_a_line_that_grew_and_a_text_that_shrank_are_told(folder):
    path = written(folder, b"a\nbc\n")
    with pytest.raises(StreamError, match="line 2: it has grown since it was read as the last"):
        list(TextSource(path).blocks(3, 3))
    with pytest.raises(StreamError, match="has become shorter: byte 9 is not there any more"):
        list(TextSource(path).blocks(9, 4))
    assert list(TextSource(path).blocks(5, 3)) == []


def test_the_fingerprint_stays_when_rows_are_appended(folder):
    def fingerprint(text):
        return TextSource(written(folder, text)).fingerprint(2)

    first = fingerprint(b"a,b\n1,2")
    assert len(first) == 32
    assert fingerprint(b"a,b\n1,2\n3,4\n") == first == fingerprint(b"a,b\r\n1,2\r\n")
    assert fingerprint(gzip.compress(b"a,b\n1,2\n3,4\n" * 1000)) == first
    others = {fingerprint(text) for text in (b"a,c\n1,2", b"a,b\n1,3", b"a,b\n", b"a\n,b\n1,2")}
    assert len(others - {first}) == 4
    long = b"x" * 200_000
    assert fingerprint(long + b"\n1") == fingerprint(long + b"y\n1")


# Pipes


def test_a_pipe_gives_what_was_looked_at_again_and_only_once(monkeypatch):
    source = piped(monkeypatch, b"a\nb\nc\n")
    assert source.head(1) == (b"a\nb\nc\n", False)
    fingerprint = source.fingerprint(2)
    assert (source.name, source.size) == ("standard input", None)
    assert b"".join(one.data for one in source.blocks()) == b"a\nb\nc\n"
    assert source.fingerprint(2) == fingerprint
    with pytest.raises(StreamError, match="standard input can be read only once: save it"):
        next(source.blocks())


def test_a_pipe_can_be_skipped_forward_and_inflated(monkeypatch):
    text = b"".join(b"%d\n" % number for number in range(300_000))
    source = piped(monkeypatch, gzip.compress(text))
    assert source.head(1)[0].startswith(b"0\n1\n")
    found = list(source.blocks(10, 6))
    assert b"".join(one.data for one in found) == text[10:]
    assert found[0].line == 6


def test_a_pipe_that_was_not_looked_at_can_be_skipped_forward(monkeypatch):
    [one] = piped(monkeypatch, b"a\nb\nc\n").blocks(2, 2)
    assert (one.data, one.line, one.start) == (b"b\nc\n", 2, 2)


def test_a_closed_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(StreamError, match="the standard input is closed: name a file"):
        TextSource("-")


def test_each_line_comes_out_of_a_pipe_when_it_arrives(monkeypatch):
    reading, writing = os.pipe()
    monkeypatch.setattr(sys, "stdin", os.fdopen(reading))
    os.write(writing, b"a,b\n")
    source = TextSource("-")
    found = source.blocks(quotes=COMMA)
    assert next(found).data == b"a,b\n"
    os.write(writing, b"1,2\n3,4\n5")
    assert next(found).data == b"1,2\n3,4\n"
    os.write(writing, b',"6\n')
    threading.Timer(0.05, os.write, (writing, b'7"\n')).start()
    assert next(found).data == b'5,"6\n7"\n'
    os.close(writing)
    assert list(found) == []
    sys.stdin.close()


def test_a_named_pipe_is_read_as_the_standard_input_is(folder):
    path = os.path.join(folder, "fifo")
    os.mkfifo(path)
    writer = threading.Thread(target=lambda: written(folder, b"a\nb\n" * 50_000, "fifo"))
    writer.start()
    source = TextSource(path)
    assert source.size is None
    assert b"".join(one.data for one in source.blocks()) == b"a\nb\n" * 50_000
    writer.join()


# What is no text


@pytest.mark.parametrize("cut", [1, 5, 3_000, -1])
def test_gzip_that_is_cut_off_gives_its_whole_lines_first(folder, cut):
    text = b"".join(b"%d\n" % (number * 7919 % 10007) for number in range(3_000))
    zipped = gzip.compress(text)
    source = TextSource(written(folder, zipped[:cut] if cut != 1 else zipped[:12]))
    lines = []
    with pytest.raises(StreamError, match=r"beyond line \d+: its gzip data are cut off; the lines"):
        lines.extend(source.blocks())
    read = b"".join(one.data for one in lines)
    assert text.startswith(read)
    assert read.count(b"\n") > 1_000 or cut in (1, 5)


def test_gzip_that_is_damaged_is_told(folder):
    zipped = bytearray(gzip.compress(b"a,b\n1,2\n" * 100_000))
    zipped[-20] ^= 255
    with pytest.raises(StreamError, match=r"beyond line \d+: its gzip data are damaged"):
        list(TextSource(written(folder, zipped)).blocks())
    with pytest.raises(StreamError, match="cannot be read: its gzip data are damaged"):
        TextSource(written(folder, b"\x1f\x8bno gzip")).head(1)


def test_gzip_of_several_parts_and_zeros_behind(folder):
    zipped = (
        gzip.compress(b"a\nb") + gzip.compress(b"") + bytes(7) + gzip.compress(b"c\n") + bytes(9)
    )
    for block in (1, 3, 1 << 16):
        with small(block):
            found = list(TextSource(written(folder, zipped)).blocks())
        assert b"".join(one.data for one in found) == b"a\nbc\n"


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "is empty"),
        (gzip.compress(b""), "is empty"),
        ("a,b\n1,2\n".encode("utf-16-le"), "zero bytes in its first line: it is no text, or in"),
        (b"PK\x03\x04abc", "is a damaged zip archive"),
        (b"BZh91AY", "cannot be read: its bzip2 data are cut off"),
        (b"PAR1\x15\x04", "is a Parquet file, not text"),
    ],
    ids=["nothing", "nothing, packed", "UTF-16-LE", "zip", "bzip2", "Parquet"],
)
def test_what_is_no_text_is_refused(folder, content, complaint):
    with pytest.raises(StreamError, match=complaint):
        TextSource(written(folder, content)).head(1)


def test_a_line_without_end_is_refused(folder):
    with mock.patch.object(blocks, "LONGEST_LINE", 1 << 21):
        source = TextSource(written(folder, b"a\n" + b"x" * (1 << 22)))
        with pytest.raises(StreamError, match="line 2: it has no end within 2 MiB; check that it"):
            list(source.blocks())


def test_what_cannot_be_opened(folder):
    with pytest.raises(FileNotFoundError):
        TextSource(os.path.join(folder, "missing"))
    with pytest.raises(IsADirectoryError):
        TextSource(folder)
