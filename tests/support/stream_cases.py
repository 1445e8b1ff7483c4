"""What the tests of streams share: the contents of chunks, independent of their sizes."""

import numpy as np


def contents_of(stream, start=None, most_rows=8192):
    """The contents of all chunks from a position on; numbers as their bits."""
    return joined(stream.chunks(start, most_rows))


def joined(chunks):
    """The joined contents of chunks, independent of where they were cut."""
    columns, y, times, numbers, bad = {}, [], [], [], []
    for chunk in chunks:
        for name, column in chunk.columns.items():
            columns.setdefault(name, []).extend(bits(column))
        for row in chunk.bad:
            before = len(numbers) + row.after
            bad.append(
                (row.source, row.number, row.reason, row.column, row.value, row.text, before)
            )
        y.extend([] if chunk.y is None else bits(chunk.y))
        times.extend([] if chunk.times is None else bits(chunk.times))
        numbers.extend((chunk.source, number) for number in chunk.numbers.tolist())
    return {"columns": columns, "y": y, "times": times, "numbers": numbers, "bad": bad}


def bits(column):
    """A column as what can be compared: labels with their types, numbers to the last bit."""
    if isinstance(column, np.ndarray):
        assert column.dtype == np.float64
        return [value.hex() for value in column.tolist()]
    return [(type(value).__name__, value) for value in column]


def check_resuming(stream, sizes=(1, 4, 8192)):
    """Check that sizes of chunks do not matter, and that each position gives the rest."""
    whole = contents_of(stream)
    for most_rows in sizes:
        chunks = list(stream.chunks(None, most_rows))
        assert all(len(chunk) + len(chunk.bad) <= most_rows for chunk in chunks)
        assert joined(chunks) == whole
        for place, chunk in enumerate(chunks):
            following = [*chunks[: place + 1], *stream.chunks(chunk.next, most_rows)]
            assert joined(following) == whole
            assert [chunk.done for chunk in following] == sorted(chunk.done for chunk in following)
    return whole
