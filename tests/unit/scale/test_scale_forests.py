"""Workers that learn the members of a forest: the same result, whoever works, is lost or lies."""

from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import sapwood
import tree_cases
from sapwood import ForestRegressor
from sapwood.merge import MergeError
from sapwood.merge.members import parted, rejoined
from sapwood.scale import Rounds, members, rounds, train, worker
from sapwood.scale.engines import Engine
from sapwood.scale.processes import WorkerLostError
from sapwood.streams import BadRowError
from scale_cases import Backwards

ROWS = 3_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The same rows as Parquet and as CSV."""
    path = tmp_path_factory.mktemp("rows")
    x, y = tree_cases.friedman(ROWS, 1, features=5)
    columns = {f"x{place}": np.round(column, 3) for place, column in enumerate(x.T)}
    columns["colour"] = np.array(["red", "blue", "green"], dtype=object)[np.arange(ROWS) % 3]
    rows = pa.table({**columns, "y": np.round(y, 2)})
    pa.parquet.write_table(rows, path / "all.parquet", row_group_size=1_000)
    pa.csv.write_csv(rows, path / "all.csv")
    return path


@pytest.fixture(autouse=True)
def short_rounds(monkeypatch):
    monkeypatch.setattr(rounds, "FIRST_AT_ONCE", 1_000)
    monkeypatch.setattr(rounds, "LAST_OF_FORESTS", 500)


def small_forest(**arguments):
    # Without a limit of memory, by which parts differ from the whole.
    given = {"members": 6, "grace_period": 100, "max_bytes": None, **arguments}
    return ForestRegressor(**given)


def trained(name, workers=3, engine="threads", model=None, **options):
    return train(
        model or small_forest(),
        str(name),
        workers=workers,
        engine=engine,
        read_options={"target": "y"},
        first=1_000,
        **options,
    )


@pytest.fixture(scope="module")
def expected(folder):
    """What three workers make of the rows, whoever they are."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(rounds, "FIRST_AT_ONCE", 1_000)
        patched.setattr(rounds, "LAST_OF_FORESTS", 500)
        return content(trained(folder / "all.parquet"))


def content(result):
    return result.model.to_bytes()


def serial(name, rows, model=None):
    """The forest that one process makes of the first rows."""
    forest = model or small_forest()
    table = pa.parquet.read_table(name).slice(0, rows).to_pydict()
    y = table.pop("y")
    forest.learn_many(table, y)
    return forest


# -- parts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 3, 9])
def test_members_learn_in_parts_as_they_would_together(folder, count):
    """None has been replaced yet, so all of them are the same to the last bit."""
    forest = serial(folder / "all.parquet", 600)
    before = forest.to_bytes()
    parts = parted(forest, count)
    assert forest.to_bytes() == before
    assert [part._kernel.members for part in parts] == {
        1: [6], 2: [3, 3], 3: [2, 2, 2], 9: [2, 2, 2],
    }[count]  # fmt: skip
    numbers = [number for part in parts for number in part._kernel.tree_table["number"].tolist()]
    assert len(set(numbers)) == len(numbers) == 6 + len(parts)
    more = pa.parquet.read_table(folder / "all.parquet").slice(600, 390).to_pydict()
    y = more.pop("y")
    for part in parts:
        part.learn_many(more, y)
    forest.learn_many(more, y)
    assert forest.replacements == []
    whole = rejoined(parts, forest)
    found = [whole.member(place).to_bytes() for place in range(6)]
    assert sorted(found) == sorted(forest.member(place).to_bytes() for place in range(6))
    assert whole.parameters == forest.parameters
    assert whole.summary.rows == forest.summary.rows == 990
    roles = [each.role for each in whole.summary.members]
    assert sorted(roles[:-1]) == ["bagged"] * 4 + ["leaf", "plain"]


def test_parts_keep_within_the_memory_of_the_forest(folder):
    """That which waits in each part takes its share, so that there is a little less for each."""
    limit = 1_500_000
    forest = serial(folder / "all.parquet", 1_000, small_forest(max_bytes=limit))
    parts = parted(forest, 3)
    assert sum(part.parameters["max_bytes"] for part in parts) <= limit
    more = pa.parquet.read_table(folder / "all.parquet").slice(1_000, 2_000).to_pydict()
    y = more.pop("y")
    for part in parts:
        part.learn_many(more, y)
        assert part.nbytes <= part.parameters["max_bytes"]
    whole = rejoined(parts, forest)
    assert whole.nbytes <= whole.parameters["max_bytes"] == limit


# -- the same rows, the same result ---------------------------------------------------------------


def test_the_result_is_near_to_that_of_one_process(folder):
    found = trained(folder / "all.parquet")
    assert (found.rows_read, found.rows_learned, found.rounds) == (ROWS, ROWS, 2)
    assert found.model.summary.rows == ROWS
    assert found.model.parameters == small_forest().parameters
    assert 0.85 < found.r2 < 1.0
    x, y = tree_cases.friedman(2_000, 2, features=5)
    columns = {f"x{place}": column for place, column in enumerate(x.T)}
    alone = serial(folder / "all.parquet", ROWS)
    scores = [tree_cases.r2(y, each.predict_many(columns)) for each in (alone, found.model)]
    assert abs(scores[0] - scores[1]) < 0.02


def test_engines_formats_and_the_order_of_workers_do_not_matter(folder, expected):
    for other in ("processes", Backwards()):
        assert content(trained(folder / "all.parquet", engine=other)) == expected
    assert trained(folder / "all.csv").model.summary.rows == ROWS


def test_one_worker_and_more_workers_than_members(folder):
    for workers in (1, 50):
        found = trained(folder / "all.parquet", workers=workers)
        assert found.rows_learned == ROWS
        assert found.model.parameters["members"] == 6


def test_a_saved_forest_goes_on(folder):
    begun = serial(folder / "all.parquet", 1_500)
    found = trained(folder / "all.parquet", model=begun)
    assert found.model.summary.rows == 1_500 + ROWS
    assert begun.summary.rows == 1_500


def test_reports_tell_of_rounds(folder):
    reports = []
    trained(folder / "all.parquet", listener=reports.append)
    assert [report.rows for report in reports] == [1_000, 500]
    assert [report.total_rows for report in reports] == [2_000, 2_500]
    assert all(report.bytes_in > 10_000 and report.bytes_out > 10_000 for report in reports)
    assert all(report.leaves >= 6 for report in reports)


# -- faults ---------------------------------------------------------------------------------------


class Losing(ThreadPoolExecutor):
    """Of which the first two workers are lost that are asked for members."""

    def __init__(self, workers):
        super().__init__(workers)
        self.lost = 0

    def submit(self, function, /, *arguments, **named):
        if function is members.learn_members and self.lost < 2:
            self.lost += 1
            future = Future()
            future.set_exception(WorkerLostError("a worker has died"))
            return future
        return super().submit(function, *arguments, **named)


def test_parts_of_lost_workers_are_done_again(folder, expected):
    with Losing(2) as executor:
        assert content(trained(folder / "all.parquet", engine=executor)) == expected
        assert executor.lost == 2


def test_a_lost_driver_goes_on_to_the_same_end(folder, tmp_path, expected):
    class Killed(Exception):  # noqa: N818 - it is no error of ours
        pass

    for round_ in range(2):
        path = tmp_path / f"after {round_}"
        seen = []

        def listen(report, at=round_, seen=seen):
            seen.append(report)
            if len(seen) > at:
                raise Killed

        options = {"checkpoint": path, "every": 0.0}
        with pytest.raises(Killed):
            trained(folder / "all.parquet", listener=listen, **options)
        assert content(trained(folder / "all.parquet", **options)) == expected


class Lying(Engine):
    """Whose second worker answers as it likes."""

    def __init__(self, lie):
        self._lie = lie
        self._inner = Backwards()
        super().__init__(lambda: self._inner, "liars")

    def submit(self, function, *arguments):
        if function is not members.learn_members:
            return super().submit(function, *arguments)
        future = Future()
        done = function(*arguments)
        self._count = getattr(self, "_count", -1) + 1
        if self._count == 1:
            done = self._lie(done)
        future.set_result(done)
        return future


def more_rows(done):
    forest = sapwood.model.from_bytes(done.content)
    forest.learn_one({"x0": 1.0}, 1.0)
    return worker.ShardDone(forest.to_bytes(), done.pieces, [], done.learned)


def fewer_rows(done):
    return worker.ShardDone(done.content, done.pieces, [], done.learned - 1)


def another_forest(done):
    forest = ForestRegressor(members=2)
    forest.learn_many([[1.0]] * (done.learned + 1_000), [1.0] * (done.learned + 1_000))
    return worker.ShardDone(forest.to_bytes(), done.pieces, [], done.learned)


def damage(done):
    return worker.ShardDone(done.content[:-1], done.pieces, [], done.learned)


@pytest.mark.parametrize(
    ("lie", "words"),
    [
        (more_rows, "it has learned 1001 rows"),
        (fewer_rows, "it has read other rows than the first"),
        (another_forest, "it is a forest of other parameters"),
        (damage, "the part of worker 1 is damaged"),
    ],
)
def test_workers_that_lie_are_refused(folder, lie, words):
    job = Rounds(
        small_forest(),
        str(folder / "all.parquet"),
        workers=3,
        engine=Lying(lie),
        read_options={"target": "y"},
        first=1_000,
    )
    with pytest.raises(MergeError, match=f"^worker 1 of liars has not sent its part.*{words}"):
        job.run()


def test_a_worker_of_another_release_refuses():
    with pytest.raises(MergeError, match=r"the driver has sapwood 0\.0 and this worker has"):
        members.learn_members("0.0", b"", None, [], False)


def test_bad_rows_count_once_and_are_told_with_their_line(folder, tmp_path):
    lines = (folder / "all.csv").read_text().splitlines()
    lines[1_500] = lines[1_500].replace(",", ",bad", 1)
    path = tmp_path / "bad.csv"
    path.write_text("\n".join(lines) + "\n")
    found = trained(path, on_bad_row="skip")
    assert found.refused.total() == 1
    assert (found.rows_read, found.rows_learned) == (ROWS, ROWS - 1)
    with pytest.raises(BadRowError, match=r"bad\.csv, line 1501"):
        trained(path)


def test_more_labels_than_a_part_can_tell_apart_are_refused(tmp_path):
    shops = [f"shop {place % 150}" for place in range(ROWS)]
    path = tmp_path / "shops.parquet"
    pa.parquet.write_table(pa.table({"shop": shops, "y": np.arange(float(ROWS))}), path)
    with pytest.raises(
        MergeError, match=r"^'shop' has 150 categories .* at most 122 can be distinguished"
    ):
        trained(path, model=small_forest(max_bytes=1_500_000), workers=3)
