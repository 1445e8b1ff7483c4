"""Rows without a target: predicted, counted, and learned when their labels come."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sapwood
from sapwood.evaluate import Prequential, prequential
from sapwood.evaluate.delay import Unlabelled
from sapwood.lags import LaggedModel, Lags
from sapwood.streams import StreamError, open_stream
from sapwood.streams.stream import Chunk, Stream
from tree_cases import beside_notes


class Diary:
    """A model that notes what is asked of it, and predicts how much it has learned."""

    def __init__(self):
        self.events = []

    def predict_one(self, x):
        self.events.append(("predict", x["i"]))
        return float(sum(event[0] == "learn" for event in self.events))

    def learn_one(self, x, y):
        self.events.append(("learn", x["i"], y))


class IdStream(Stream):
    """Rows (id, i, y) in memory, with or without their ids."""

    def __init__(self, rows, with_ids=True):
        super().__init__("rows", {"i": "number"}, "y", len(rows), ids=("id",) if with_ids else ())
        self.rows = rows

    def chunks(self, start=None, most_rows=8192):
        """Yield the rows from a position on."""
        for first in range(0 if start is None else start["row"], len(self.rows), most_rows):
            part = self.rows[first : first + most_rows]
            end = first + len(part)
            yield Chunk(
                {"i": np.array([float(i) for _, i, _ in part])},
                np.array([math.nan if y is None else y for _, _, y in part]),
                "rows",
                np.arange(first + 1, end + 1),
                {"row": end},
                end,
                ids={"id": [key for key, _, _ in part]} if self.ids else {},
            )

    @property
    def fingerprint(self):
        """Always the same."""
        return "rows"


def naive(rows, with_ids):
    """What is predicted and learned, and how often, by an obvious loop."""
    events, waiting, counts = [], {}, dict.fromkeys(("without", "joined", "learned"), 0)
    for key, i, y in rows:
        if y is not None and with_ids and key in waiting:
            events.append(("learn", waiting.pop(key), y))
            counts["joined"] += 1
            counts["learned"] += 1
            continue
        events.append(("predict", float(i)))
        if y is not None:
            events.append(("learn", float(i), y))
            counts["learned"] += 1
            continue
        counts["without"] += 1
        if with_ids:
            waiting[key] = float(i)
    return events, counts


streams = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(0, 99), st.none() | st.integers(0, 9).map(float)),
    max_size=30,
)


@given(rows=streams, with_ids=st.booleans(), most_rows=st.integers(1, 9))
def test_rows_without_targets_are_predicted_and_labels_find_them(rows, with_ids, most_rows):
    model = Diary()
    run = Prequential(model, IdStream(rows, with_ids))
    steps = list(run.steps(most_rows))
    expected, counts = naive(rows, with_ids)
    assert model.events == expected
    assert run.rows_read == len(rows)
    assert run.rows_without_target == counts["without"]
    assert run.labels_joined == counts["joined"]
    assert run.rows_learned == run.scores.rows == counts["learned"]
    assert run.rows_predicted == len(rows) - counts["joined"]
    told = [part for step in steps for part in step.predicted]
    targets = [y for part in told for y in part.y.tolist()]
    assert sum(map(math.isnan, targets)) == counts["without"]
    if with_ids:
        ids = [key for part in told for key in part.ids["id"]]
        assert len(ids) == len(targets) == run.rows_predicted


@given(rows=streams, stop=st.integers(1, 5), delay=st.none() | st.integers(1, 4))
def test_a_run_goes_on_with_rows_that_wait_for_labels(rows, stop, delay):
    whole, model = Diary(), Diary()
    run = Prequential(whole, IdStream(rows), delay=delay)
    for _ in run.steps(3):
        pass
    expected = run.finish()
    run = Prequential(model, IdStream(rows), delay=delay)
    for number, _ in enumerate(run.steps(3), 1):
        if number == stop:
            break
    saved = run.to_state()
    run = Prequential(model, IdStream(rows), delay=delay)
    run.restore(*saved)
    for _ in run.steps(3):
        pass
    found = run.finish()
    assert model.events == whole.events
    assert repr(found.total) == repr(expected.total)
    assert found.labels_joined == expected.labels_joined
    assert found.rows_without_target == expected.rows_without_target


@given(rows=streams, delay=st.integers(1, 4))
def test_rows_without_targets_pass_by_where_labels_are_late(rows, delay):
    run = Prequential(Diary(), IdStream(rows, with_ids=False), delay=delay)
    for _ in run.steps(4):
        pass
    events, waiting = [], []
    for place, (_, i, y) in enumerate(rows):
        events.append(("predict", float(i)))
        if y is not None:
            waiting.append((place + delay, float(i), y))
        while waiting and waiting[0][0] <= place:
            events.append(("learn", *waiting.pop(0)[1:]))
    events += [("learn", i, y) for _, i, y in waiting]
    found = run.finish()
    assert run.model.events == events
    assert found.rows_without_target == sum(y is None for *_, y in rows)


def test_the_oldest_row_is_forgotten_when_too_many_wait():
    rows = Unlabelled(most=2)
    for key in "abc":
        rows.put((key,), key)
    rows.put(("b",), "again")
    assert ("a",) not in rows
    rows.put(("d",), "d")
    assert list(rows.rows) == [("b",), ("d",)]


def test_a_tree_learns_what_it_would_have_learned_from_the_labelled_rows():
    rng = np.random.default_rng(4)
    x = rng.random((900, 2))
    y = np.where(x[:, 0] < 0.5, 3.0, 9.0)
    gaps = y.copy()
    gaps[::3] = np.nan
    tree, twin = sapwood.HoeffdingTreeRegressor(), sapwood.HoeffdingTreeRegressor()
    found = prequential(tree, x, gaps, keep_predictions=True)
    labelled = np.delete(np.arange(900), slice(None, None, 3))
    twin.predict_learn_many(x[labelled], y[labelled])
    assert beside_notes(tree) == beside_notes(twin)
    assert (found.rows_predicted, found.rows_learned, found.rows_without_target) == (900, 600, 300)
    assert len(found.predictions) == 900
    assert np.isnan(found.predictions["y"]).sum() == 300
    assert not np.isnan(found.predictions["prediction"]).any()
    assert found.unscored == 0


def test_a_stream_without_any_target_is_refused():
    with pytest.raises(StreamError, match=r"no row has a value of 'y'.*sapwood predict"):
        prequential(sapwood.HoeffdingTreeRegressor(), [[1.0], [2.0]], [math.nan, math.nan])


@pytest.mark.parametrize("format", ["csv", "jsonl", "parquet"])
def test_ids_are_text_and_no_features(tmp_path, format):
    import pyarrow as pa
    from pyarrow import parquet

    path = tmp_path / f"orders.{format}"
    if format == "csv":
        path.write_text("order,x,y\n007,1,2\n008,2,\n,3,4\n")
    elif format == "jsonl":
        path.write_text('{"order":"007","x":1,"y":2}\n{"order":"008","x":2}\n{"x":3,"y":4}\n')
    else:
        columns = {"order": ["007", "008", None], "x": [1, 2, 3], "y": [2.0, None, 4.0]}
        parquet.write_table(pa.table(columns), path)
    stream = open_stream(path, target="y", ids=["order"])
    assert stream.features == {"x": "number"}
    assert stream.ids == ("order",)
    (chunk,) = stream.chunks()
    assert chunk.ids == {"order": ["007", "008", None]}
    np.testing.assert_array_equal(chunk.y, [2.0, math.nan, 4.0])
    assert {note.name: note.kind for note in stream.column_notes}["order"] == "id"


def test_ids_of_rows_left_out_are_left_out(tmp_path):
    path = tmp_path / "orders.csv"
    lines = [f"{row},{row},2" for row in range(20)]
    lines[3] = "3,much,2"
    path.write_text("\n".join(["order,x,y", *lines]))
    (chunk,) = open_stream(path, target="y", ids=["order"]).chunks()
    assert [bad.number for bad in chunk.bad] == [5]
    assert chunk.ids["order"] == [str(row) for row in range(20) if row != 3]


@pytest.mark.parametrize(
    ("ids", "words"), [(["ordre"], "did you mean 'order'"), (["y"], "cannot be an id")]
)
def test_ids_that_cannot_be_are_refused(tmp_path, ids, words):
    path = tmp_path / "orders.csv"
    path.write_text("order,x,y\n1,1,2\n")
    with pytest.raises(StreamError, match=words):
        open_stream(path, target="y", ids=ids)


# -- lags ------------------------------------------------------------------------------------------


class Noted:
    """A model that keeps the rows that it predicts and learns."""

    def __init__(self):
        self.predicted, self.learned = [], []

    def predict_one(self, x):
        self.predicted.append(dict(x))
        return 0.0

    def learn_one(self, x, y):
        self.learned.append((dict(x), y))


@given(
    rows=streams.map(lambda rows: [(key, i, 1.0 + i) for key, i, _ in rows]),
    delay=st.none() | st.integers(1, 5),
    most_rows=st.integers(1, 9),
)
def test_a_row_is_learned_with_the_lags_it_was_predicted_with(rows, delay, most_rows):
    inner = Noted()
    lags = Lags([1, 3], lags_of={"i": [1]})
    run = Prequential(LaggedModel(inner, lags), IdStream(rows, with_ids=False), delay=delay)
    for _ in run.steps(most_rows):
        pass
    run.finish()
    late = delay or 0
    assert [x for x, _ in inner.learned] == inner.predicted

    for row, x in enumerate(inner.predicted):
        for back in (1, 3):
            at = row - back
            assert x[f"y.lag{back}"] == (rows[at][2] if 0 <= at < row - late else None)
        assert x["i.lag1"] == (float(rows[row - 1][1]) if row else None)


@given(rows=streams, delay=st.none() | st.integers(1, 3), stop=st.integers(1, 4))
def test_a_run_with_lags_goes_on_to_the_same_bits(rows, delay, stop):
    def made(model):
        return Prequential(model, IdStream(rows), delay=delay)

    def model():
        return LaggedModel(sapwood.HoeffdingTreeRegressor(), Lags([1, 2], means=3))

    run = made(model())
    for _ in run.steps(3):
        pass
    expected = run.finish()
    whole = run.model.to_bytes()
    run = made(model())
    for number, _ in enumerate(run.steps(3), 1):
        if number == stop:
            break
    saved = run.to_state(), run.model.to_bytes()
    run = made(LaggedModel.from_bytes(saved[1]))
    run.restore(*saved[0])
    for _ in run.steps(3):
        pass
    found = run.finish()
    assert run.model.to_bytes() == whole
    assert repr(found.total) == repr(expected.total)
    assert found.model_bytes == run.model.nbytes


def test_lags_of_what_a_stream_has_not_are_refused():
    stream = IdStream([("a", 1, 2.0)])

    def run_with(**settings):
        return Prequential(LaggedModel(Noted(), Lags(**settings)), stream)

    with pytest.raises(StreamError, match="no column 'temp' for lags: there are 'i'"):
        run_with(lags_of={"temp": 1})
    with pytest.raises(StreamError, match="no column 'shop' for lags"):
        run_with(lags=1, by="shop")
    stream.features = {"i": "category", "y.lag2": "number"}
    with pytest.raises(StreamError, match="lags are taken of numbers"):
        run_with(lags_of={"i": 1})
    with pytest.raises(StreamError, match=r"has a column 'y.lag2' already"):
        run_with(lags=2)
