"""Rounds: the same result whoever does the work, and nothing lost or counted twice."""

import signal
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sapwood
import sapwood.merge
from sapwood.evaluate.checkpoint import CheckpointError
from sapwood.merge import Delta, MergeError
from sapwood.scale import Rounds, train
from sapwood.scale.engines import Engine, engine
from sapwood.scale.sources import Cursor, Piece, Source, SourceFile, open_file, survey
from sapwood.scale.worker import learn_shard
from sapwood.streams import BadRowError, StreamError
from scale_cases import ROWS, Backwards, content, small_tree, table, trained


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The same rows in one Parquet file, in one CSV file, and in several of each."""
    path = tmp_path_factory.mktemp("rows")
    rows = table()
    pa.parquet.write_table(rows, path / "all.parquet", row_group_size=1_000)
    pa.csv.write_csv(rows, path / "all.csv")
    for place in range(4):
        part = rows.slice(place * 1_500, 1_500)
        pa.parquet.write_table(part, path / f"part-{place}.parquet", row_group_size=700)
        pa.csv.write_csv(part, path / f"text-{place}.csv")
    return path


# -- the same rows, the same result ---------------------------------------------------------------


def test_formats_and_files_give_about_the_same(folder):
    for name in ("all.parquet", "all.csv", "part-*.parquet", "text-*.csv"):
        found = trained(folder / name)
        assert (found.rows_read, found.rows_learned) == (ROWS, ROWS), name
        assert int(found.model._kernel.rows) == ROWS
        assert found.model.feature_kinds["colour"] == "category"
        assert found.rounds in (2, 3)  # of a text, rows are told by bytes
        assert 0.8 < found.r2 < 1.0
        levels = found.model._kernel.encoding_table[64 * 5 : 64 * 5 + 3, 0]
        assert levels.tolist() == [2_000.0] * 3


def test_rows_are_those_of_a_serial_run(folder):
    """Sums do not depend on how rows were shared out: those of all leaves together."""
    serial = small_tree()
    rows = table().to_pydict()
    y = rows.pop("y")
    serial.predict_learn_many(rows, y)
    found = trained(folder / "all.parquet").model
    for name in ("rows", "weight", "low", "high"):
        assert getattr(found._kernel, name) == getattr(serial._kernel, name)
    np.testing.assert_allclose(
        found._kernel.encoding_table, serial._kernel.encoding_table, rtol=1e-9
    )


def test_threads_and_processes_give_the_same_model(folder):
    expected = content(trained(folder / "all.csv", workers=2))
    assert content(trained(folder / "all.csv", workers=2, engine="processes")) == expected


def test_the_order_in_which_workers_end_does_not_matter(folder):
    expected = content(trained(folder / "all.parquet"))
    assert content(trained(folder / "all.parquet", engine=Backwards())) == expected


def test_workers_sum_the_deltas_of_many(folder):
    """Twenty deltas are summed by groups of eight, wherever that is done."""
    found = trained(folder / "all.parquet", workers=20)
    assert found.rows_learned == ROWS
    assert int(found.model._kernel.rows) == ROWS
    lost = trained(folder / "all.parquet", workers=20, engine=Unlucky({5, 24}))
    assert content(lost) == content(found)
    levels = found.model._kernel.encoding_table[64 * 5 : 64 * 5 + 3, 0]
    assert levels.tolist() == [2_000.0] * 3


def test_a_model_goes_on_learning(folder):
    first = train(
        small_tree(),
        str(folder / "part-0.parquet"),
        workers=2,
        engine="threads",
        read_options={"target": "y"},
    ).model
    found = train(
        first,
        str(folder / "part-1.parquet"),
        workers=2,
        engine="threads",
        read_options={"target": "y"},
    )
    assert int(found.model._kernel.rows) == 3_000
    assert found.rows_learned == 1_500


# -- pieces ---------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(
    st.lists(st.integers(1, 5_000), min_size=1, max_size=5),
    st.integers(1, 3_000),
    st.integers(1, 9),
    st.sampled_from([1.0, 0.4, 37.5]),
)
def test_cuts_cover_all_once_and_in_order(sizes, rows, parts, per_row):
    files = tuple(SourceFile(f"f{size}", "bytes", size, per_row) for size in sizes)
    source, cursor, seen = Source("s", files, {}, {}), Cursor(), []
    while not source.is_read(cursor):
        lists, cursor = source.cut(cursor, rows, parts)
        assert 1 <= len(lists) <= parts
        assert all(lists)
        seen += [piece for pieces in lists for piece in pieces]
    place = (0, 0)
    for piece in seen:
        assert (piece.file, piece.start) == place
        assert piece.start < piece.end <= sizes[piece.file]
        place = (piece.file, piece.end) if piece.end < sizes[piece.file] else (piece.file + 1, 0)
    assert place == (len(sizes), 0)


def test_pieces_end_at_row_groups_that_are_near():
    files = (SourceFile("f", "rows", 10_000, 1.0, (1_000,) * 10),)
    lists, place = Source("s", files, {}, {}).cut(Cursor(), 4_200, 2)
    assert [[(piece.start, piece.end) for piece in pieces] for pieces in lists] == [
        [(0, 2_000)],
        [(2_000, 4_000)],
    ]
    assert (place.file, place.at) == (0, 4_000)


texts = st.lists(
    st.tuples(st.integers(0, 9), st.sampled_from(["a", "b c", 'x "" y', "two\nlines", ",;", ""])),
    min_size=1,
    max_size=40,
)


@settings(max_examples=80)
@given(texts, st.data())
def test_pieces_of_a_text_with_quotes_are_its_rows(tmp_path_factory, rows, data):
    """Each piece starts where the one before has ended, as the driver sees to."""
    path = tmp_path_factory.mktemp("csv") / "rows.csv"
    lines = ["n,c,y"] + [f'{n},"{text}",{place}' for place, (n, text) in enumerate(rows)]
    path.write_text("\n".join(lines) + ("\n" if data.draw(st.booleans()) else ""))
    stream = sapwood.streams.open_stream(str(path), target="y", categorical=["c"])
    size = path.stat().st_size
    cuts = sorted(data.draw(st.lists(st.integers(1, size), max_size=5)))
    seen, at, lines_seen = [], 0, 1
    for start, end in zip([0, *cuts], [*cuts, size], strict=True):
        position = stream.between(at if at else start, max(end, at), exact=at > 0)
        first_line, begun = position["line"], position["byte"]
        if begun >= size:
            continue
        at = begun
        for chunk in stream.chunks(position):
            seen += chunk.y.tolist()
            at = chunk.next["byte"]
            lines_seen += chunk.next["line"] - first_line
            first_line = chunk.next["line"]
            assert not chunk.bad
    assert seen == list(range(len(rows)))
    assert lines_seen >= len(rows) + 1


def test_a_shard_that_began_within_a_row_is_done_again(tmp_path):
    """Half of the rows have two lines, so that some cut is sure to be within one."""
    rng = np.random.default_rng(3)
    lines = ["a,c,y"]
    for place in range(3_000):
        text = '"one\n2,3,4"' if place % 2 else "one"
        lines.append(f"{rng.random():.6f},{text},{place % 7}")
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
    found = trained(tmp_path / "rows.csv", workers=5)
    assert (found.rows_read, found.rows_learned) == (3_000, 3_000)
    labels = dict(zip(found.model.features, found.model._features.categories, strict=True))["c"]
    assert set(labels) == {"one", "one\n2,3,4"}


def test_compressed_texts_are_read_whole(tmp_path):
    import gzip

    for place in range(3):
        part = table().slice(place * 2_000, 2_000)
        sink = pa.BufferOutputStream()
        pa.csv.write_csv(part, sink)
        (tmp_path / f"{place}.csv.gz").write_bytes(gzip.compress(sink.getvalue().to_pybytes()))
    source = survey(str(tmp_path), {"target": "y"})
    assert {file.unit for file in source.files} == {"whole"}
    assert trained(tmp_path).rows_learned == ROWS


# -- bad rows -------------------------------------------------------------------------------------


def with_bad_rows(path, bad):
    """A text of 3,000 rows, some of which have no number where one is expected."""
    lines = ["a,y"] + [f"{place % 10},{place % 7}" for place in range(3_000)]
    for line in bad:
        lines[line - 1] = "1,many"
    path.write_text("\n".join(lines) + "\n")


def test_bad_rows_are_told_by_file_and_line(tmp_path):
    path = tmp_path / "rows.csv"
    with_bad_rows(path, [2_500, 2_900])
    with pytest.raises(BadRowError, match=r"rows\.csv, line 2500.*target is not a number"):
        trained(path, workers=4)
    seen = []
    found = trained(path, workers=4, on_bad_row="skip", on_bad_rows=seen.extend)
    assert [row.number for row in seen] == [2_500, 2_900]
    assert seen[0].text == b"1,many"
    assert found.refused == {"target is not a number": 2}
    assert (found.rows_read, found.rows_learned) == (3_000, 2_998)


def test_rows_without_a_target_are_counted(tmp_path):
    lines = ["a,y"] + [f"{place % 10},{place % 7 if place % 5 else ''}" for place in range(3_000)]
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
    found = trained(tmp_path / "rows.csv")
    assert (found.rows_learned, found.rows_without_target) == (2_400, 600)


# -- faults ---------------------------------------------------------------------------------------


class Unlucky(Executor):
    """Threads, of which some are lost: the calls of certain numbers are done, but never told."""

    def __init__(self, lost):
        self.lost, self.calls = set(lost), 0
        self.inner = ThreadPoolExecutor(2)

    def submit(self, function, /, *arguments, **named):
        number, self.calls = self.calls, self.calls + 1
        future = self.inner.submit(function, *arguments, **named)
        if number in self.lost:
            future = Future()
            future.set_exception(BrokenProcessPool("a worker has died"))
        return future


def test_a_lost_worker_changes_nothing(folder):
    expected = content(trained(folder / "all.parquet"))
    reports = []
    found = trained(folder / "all.parquet", engine=Unlucky({0, 3, 4}), listener=reports.append)
    assert content(found) == expected
    assert found.rows_learned == ROWS
    assert sum(report.lost for report in reports) == 1


def test_workers_that_are_always_lost_end_the_job(folder):
    with pytest.raises(MergeError, match="were lost 6 times in one round"):
        trained(folder / "all.parquet", engine=Unlucky(range(100)))


def test_a_process_that_is_killed_changes_nothing(folder):
    expected = content(trained(folder / "all.parquet", workers=2))
    killed, reports = [], []

    class Struck(Engine):
        """The first worker that is to learn a shard is killed instead."""

        def submit(self, function, *arguments):
            if function is learn_shard and not killed:
                killed.append(arguments)
                return super().submit(signal.raise_signal, signal.SIGKILL)
            return super().submit(function, *arguments)

    with engine("processes", 2) as made:
        struck = Struck(made._open, "processes")
        rounds = Rounds(
            small_tree(),
            str(folder / "all.parquet"),
            workers=2,
            engine=struck,
            read_options={"target": "y"},
            first=2_000,
            listener=reports.append,
        )
        found = rounds.run()
        struck.close()
    assert killed
    assert sum(report.lost for report in reports) >= 1
    assert content(found) == expected
    assert found.rows_learned == ROWS


class Died(BaseException):
    """The driver was lost."""


@pytest.mark.parametrize("at", [0, 1])
def test_a_lost_driver_goes_on_to_the_same_end(folder, tmp_path, at):
    expected = trained(folder / "all.csv")

    def strike(report):
        if report.round == at:
            raise Died

    path = tmp_path / "job"
    with pytest.raises(Died):
        trained(folder / "all.csv", checkpoint=path, every=0.0, listener=strike)
    found = trained(folder / "all.csv", checkpoint=path, every=0.0)
    assert content(found) == content(expected)
    assert (found.rows_read, found.rows_learned) == (ROWS, ROWS)
    assert found.rounds == expected.rounds
    np.testing.assert_array_equal(found.scores, expected.scores)
    again = trained(folder / "all.csv", checkpoint=path)  # nothing is left to do
    assert content(again) == content(expected)
    with pytest.raises(CheckpointError, match="of a job with another workers"):
        trained(folder / "all.csv", checkpoint=path, workers=2)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CheckpointError, match="damaged"):
        trained(folder / "all.csv", checkpoint=path)


class Foreign(Executor):
    """Its workers send what they should not."""

    def __init__(self, change):
        self.change = change

    def submit(self, function, /, *arguments, **named):
        future = Future()
        result = function(*arguments, **named)
        if function is learn_shard:
            result.content = self.change(Delta.from_bytes(result.content)).to_bytes()
        future.set_result(result)
        return future


def changed(**fields):
    return lambda delta: Delta(
        **{
            "base": delta.base,
            "round": delta.round,
            "shards": delta.shards,
            "features": delta.features,
            "known": delta.known,
            "arrays": delta.arrays,
            **fields,
        }
    )


@pytest.mark.parametrize(
    "change",
    [changed(base="0" * 32), changed(round=5), changed(shards=(7,)), changed(shards=(0, 1))],
    ids=["model", "round", "shard", "shards"],
)
def test_what_a_foreign_worker_sends_is_refused(folder, change):
    with pytest.raises(MergeError, match="a worker of Foreign has sent shards"):
        trained(folder / "all.parquet", engine=Foreign(change))


def test_a_worker_of_another_release_is_refused_by_name(folder, monkeypatch):
    class Old(Foreign):
        def submit(self, function, /, *arguments, **named):
            with monkeypatch.context() as patch:
                patch.setattr(sapwood, "__version__", "0.0.1")
                if function is learn_shard:
                    return _failing(function, arguments)
                return super().submit(function, *arguments, **named)

    with pytest.raises(MergeError, match=r"made by sapwood .* and this worker has 0\.0\.1"):
        trained(folder / "all.parquet", engine=Old(lambda delta: delta))


def _failing(function, arguments):
    future = Future()
    try:
        future.set_result(function(*arguments))
    except Exception as error:
        future.set_exception(error)
    return future


def test_a_file_with_other_columns_is_refused_by_name(tmp_path):
    pa.parquet.write_table(table(3_000), tmp_path / "1.parquet")
    pa.parquet.write_table(table(3_000).drop_columns(["x2"]), tmp_path / "2.parquet")
    with pytest.raises(StreamError, match=r"2\.parquet"):
        trained(tmp_path / "*.parquet")


# -- what cannot be -------------------------------------------------------------------------------


def test_what_cannot_be_shared_out_is_refused(folder):
    with pytest.raises(StreamError, match="name the column to predict"):
        train(small_tree(), str(folder / "all.csv"), workers=2, engine="threads")
    with pytest.raises(StreamError, match="never ends"):
        train(small_tree(), "friedman:rows=none", workers=2, engine="threads")
    with pytest.raises(MergeError, match="this is AdaptiveTreeRegressor"):
        train(
            sapwood.AdaptiveTreeRegressor(),
            str(folder / "all.csv"),
            workers=2,
            engine="threads",
            read_options={"target": "y"},
        )
    with pytest.raises(ValueError, match="celery is no engine"), engine("celery", 2):
        pass
    with (
        pytest.raises(ValueError, match="threads://here is no engine"),
        engine("threads://here", 2),
    ):
        pass


def test_a_survey_tells_how_each_file_can_be_cut(folder):
    source = survey(str(folder / "all.parquet"), {"target": "y"})
    assert source.files[0].groups == (1_000,) * 6
    assert source.features["colour"] == "category"
    source = survey([str(folder / "text-0.csv"), str(folder / "text-1.csv")], {"target": "y"})
    assert [file.unit for file in source.files] == ["bytes", "bytes"]
    assert source.files[0].per_row == pytest.approx(source.files[0].size / 1_500, rel=0.05)
    stream = open_file(source.files[0].path, source.reading)
    assert list(stream.features) == list(source.features)
    done = learn_shard_of(folder)
    assert [(read.start, read.end, read.rows) for read in done.pieces] == [(2_500, 3_200, 700)]


def learn_shard_of(folder):
    tree = small_tree()
    rows = table(100).to_pydict()
    y = rows.pop("y")
    tree.learn_many(rows, y)
    source = survey(str(folder / "all.parquet"), {"target": "y"})
    return learn_shard(
        sapwood.merge.take_snapshot(tree), 0, source, [Piece(0, 2_500, 3_200)], False
    )


def test_the_old_name_of_read_options_warns(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("x,y\n" + "".join(f"{row % 7},{row % 7}\n" for row in range(200)))
    old = {"workers": 1, "wishes": {"target": "y"}}
    warns = "wishes= is deprecated .* use read_options="
    with pytest.warns(DeprecationWarning, match=warns):
        found = train(sapwood.HoeffdingTreeRegressor(), str(path), engine="threads", **old)
    with engine("threads", 1) as ready, pytest.warns(DeprecationWarning, match=warns):
        again = Rounds(sapwood.HoeffdingTreeRegressor(), path, engine=ready, **old).run()
    assert found.rows_learned == again.rows_learned == 200
