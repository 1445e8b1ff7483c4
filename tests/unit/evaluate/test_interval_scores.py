"""The scores of bounds, and bounds along an evaluation."""

import numpy as np
import pytest

from sapwood import HoeffdingTreeRegressor, IntervalRegressor, streams
from sapwood.evaluate import prequential
from sapwood.evaluate.checkpoint import CheckpointFile
from sapwood.evaluate.interval_scores import IntervalScores
from sapwood.evaluate.prequential import Prequential
from sapwood.evaluate.recorder import LabelledRows

LEVELS = (0.5, 0.9)


def record(scores, rows):
    scores.score(rows)
    scores.record(rows)


def bounded():
    return IntervalRegressor(HoeffdingTreeRegressor(), LEVELS)


def by_hand(bounds, y, level, fade):
    """Return coverage, width and score, all and faded, by sums."""
    lower, upper = bounds
    known = lower <= upper
    lower, upper, y = lower[known], upper[known], y[known]
    inside = (lower <= y) & (y <= upper)
    beyond = np.maximum(lower - y, 0) + np.maximum(y - upper, 0)
    values = np.array([inside, upper - lower, upper - lower + 2 / (1 - level) * beyond])
    weights = fade ** np.arange(len(y))[::-1]
    return values.mean(axis=1), values @ weights / weights.sum()


@pytest.mark.parametrize("cut", [1, 7, 300])
def test_scores_are_those_by_hand_however_rows_are_cut(cut):
    rng = np.random.default_rng(1)
    y, predictions = rng.normal(size=300), rng.normal(size=300)
    bounds = np.sort(rng.normal(size=(300, 2, 2)), axis=2)
    bounds[:20] = bounds[150] = np.nan
    scores = IntervalScores(LEVELS, 0.98)
    for start in range(0, 300, cut):
        some = slice(start, start + cut)
        record(scores, LabelledRows(predictions[some], y[some], None, bounds[some]))
    found = scores.finished()
    for place, level in enumerate(LEVELS):
        total, faded = by_hand(bounds[:, place].T, y, level, 0.98)
        assert tuple(found.levels[level].total) == pytest.approx(total)
        assert tuple(found.levels[level].faded) == pytest.approx(faded)
    whole = IntervalScores(LEVELS, 0.98)
    record(whole, LabelledRows(predictions, y, None, bounds))
    assert found.levels == whole.finished().levels
    assert (found.sample["row"] == np.arange(1, 301)).all()
    assert (found.sample["upper"][20:150] == bounds[20:150, 1, 1]).all()


def test_a_long_stream_leaves_few_rows_and_points():
    scores = IntervalScores((0.5,), 0.99)
    rng = np.random.default_rng(1)
    for _ in range(30):
        y = rng.normal(size=333)
        bounds = np.stack([y - 1, y + 1], axis=1)[:, None]
        record(scores, LabelledRows(y, y, y, bounds))
    found = scores.finished()
    assert len(found.sample) < 1024
    assert found.interval == 16
    assert (np.diff((found.sample["row"] - 1) // 16) == 1).all()
    assert len(np.unique((found.sample["row"] - 1) % 16)) == 16
    assert (found.sample["time"] == found.sample["y"]).all()
    assert found.recent["row"].tolist() == list(range(30 * 333 - 299, 30 * 333 + 1))
    assert found.recent["y"].tolist() == y[-300:].tolist()


def test_an_evaluation_tells_how_good_bounds_are():
    model, plain = bounded(), HoeffdingTreeRegressor()
    found = prequential(model, streams.friedman(rows=6000))
    assert found.total == prequential(plain, streams.friedman(rows=6000)).total
    assert list(found.intervals.levels) == [0.5, 0.9]
    assert abs(found.intervals.levels[0.9].total.coverage - 0.9) < 0.005
    assert found.intervals.levels[0.5].total.width < found.intervals.levels[0.9].total.width
    curve = found.intervals.curve
    assert (curve["row"] == found.curve["row"]).all()
    assert curve["coverage_0.9"][-1] == found.intervals.levels[0.9].total.coverage
    told = found.to_dict()["intervals"]["0.9"]
    assert told["total"]["score"] == found.intervals.levels[0.9].total.score
    assert told["faded"]["coverage"] == found.intervals.levels[0.9].faded.coverage
    assert "intervals" not in prequential(plain, streams.friedman(rows=500)).to_dict()


def test_late_labels_are_scored_by_what_was_said():
    model, twin = bounded(), bounded()
    run = Prequential(model, streams.friedman(rows=900), delay=50)
    kept = []
    for step in run.steps():
        kept += [*zip(step.predicted[0].y, step.predicted[0].bounds, strict=True)]
    found = run.finish()
    rows = [*zip(*next_rows(900), strict=True)]
    said = []
    for place in range(950):
        if place < 900:
            said.append(twin.predict_intervals_one(rows[place][0])[1])
        if place >= 50:
            twin.learn_one(*rows[place - 50])
    assert np.array_equal([bounds for _, bounds in kept], said, equal_nan=True)
    y = np.array([y for _, y in rows])
    total, _ = by_hand(np.array(said)[:, 1].T, y, 0.9, 0.999)
    assert tuple(found.intervals.levels[0.9].total) == pytest.approx(total)


def next_rows(rows):
    chunk = next(streams.friedman(rows=rows).chunks())
    return list(chunk.rows()), chunk.y.tolist()


@pytest.mark.parametrize("delay", [None, 30])
def test_a_run_that_is_resumed_tells_the_same(tmp_path, delay):
    def make():
        return Prequential(bounded(), streams.friedman(rows=5000), delay=delay)

    whole = make()
    for _ in whole.steps():
        pass
    first, file = make(), CheckpointFile(tmp_path / "run")
    for _ in first.steps(700):
        if first.rows_read == 2100:
            file.save(first, {}, {})
            break
    second = make()
    saved = file.load()
    second.learner.model = saved.model
    saved.resume(second)
    for _ in second.steps():
        pass
    found, right = second.finish().intervals, whole.finish().intervals
    assert found.levels == right.levels
    assert np.array_equal(found.curve, right.curve)
    assert found.sample.tobytes() == right.sample.tobytes()
    assert second.model.to_bytes() == whole.model.to_bytes()


def lies():
    scores = IntervalScores(LEVELS, 0.99)
    record(scores, LabelledRows(np.zeros(40), np.zeros(40), None, np.zeros((40, 2, 2))))
    arrays = scores.to_arrays()
    yield "levels", {**arrays, "interval_scores": arrays["interval_scores"][:1]}
    yield "fields", {**arrays, "interval_scores": arrays["interval_scores"][:, 1:]}
    yield "points", {**arrays, "interval_points": np.zeros((1, 3))}
    yield "sample", {**arrays, "interval_sample": np.zeros(3)}
    yield "recent", {**arrays, "interval_recent": np.zeros(3)}
    yield "every", {**arrays, "interval_every": np.array([0, 40])}


@pytest.mark.parametrize("lie", list(lies()), ids=lambda lie: lie[0])
def test_what_no_scores_have_saved_is_refused(lie):
    with pytest.raises(ValueError, match="saved"):
        IntervalScores(LEVELS, 0.99).restored(lie[1])
