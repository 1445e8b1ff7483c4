"""How members of an ensemble go on over a stream: noted, saved and drawn."""

import numpy as np
import pytest

from sapwood import AdaptiveTreeRegressor, ForestRegressor, HoeffdingTreeRegressor, plot
from sapwood.evaluate import prequential
from sapwood.evaluate.model_log import MemberLog
from sapwood.report.page import render
from sapwood.streams import generator

ROWS = 18_000
FIRST_MOMENT, MOMENTS = MemberLog.first, MemberLog.most
LOOKS = (100, 400, *range(1000, ROWS, 1000))  # rows after which the model is looked at


@pytest.fixture(scope="module")
def followed():
    """A forest on a stream that changes, what was found, and who took whose place."""
    forest = ForestRegressor(members=4, threads=1)
    return forest, prequential(forest, generator(f"friedman-gra:rows={ROWS}"))


def test_errors_and_ages_are_those_of_the_summary(followed):
    forest, found = followed
    history, members = found.members, forest.summary.members
    assert history.rows.tolist() == [*LOOKS, ROWS]
    assert history.errors[-1].tolist() == [member.error for member in members]
    assert history.ages[-1].tolist() == [member.age for member in members]
    assert history.ages[0].tolist() == [LOOKS[0]] * 5
    np.testing.assert_array_equal(history.born, history.rows[:, None] - history.ages)


def test_a_moment_is_that_of_a_run_which_ends_there(followed):
    _, found = followed
    forest = ForestRegressor(members=4, threads=1)
    chunk = next(iter(generator(f"friedman-gra:rows={ROWS}").chunks(None, ROWS)))
    forest.predict_learn_many(*chunk.part(0, LOOKS[1]))
    assert found.members.errors[1].tolist() == [each.error for each in forest.summary.members]


def test_who_takes_a_place_is_marked(followed):
    forest, found = followed
    # Of trees that began with the first row it cannot be told.
    events = [event for event in forest.replacements if event["age"] < event["rows"]]
    assert {event["event"] for event in events} == {"replaced"}
    ax = plot.member_errors(found)
    (marks,) = (line for line in ax.get_lines() if line.get_marker() == "v")
    shown = set(marks.get_xdata().tolist())
    # A mark is at the first moment after it happened.
    later = {min(row for row in (*LOOKS, ROWS) if row >= event["rows"]) for event in events}
    assert later <= shown
    waiting = next(line for line in ax.get_lines() if line.get_label() == "candidate")
    expected = found.members.errors[:, -1]
    np.testing.assert_array_equal(
        waiting.get_ydata(), np.where(np.isfinite(expected), expected, np.nan)
    )
    (ages,) = (line for line in plot.member_ages(found).get_lines() if line.get_label() != "_")
    assert ages.get_ydata().tolist() == found.members.ages[:, -1].tolist()


@pytest.mark.usefixtures("unsaved_charts")
def test_the_page_shows_both(followed):
    forest, found = followed
    page = render(found, forest)
    for title in ("Recent errors over the stream", "Ages over the stream"):
        assert page.count(f"<b>{title}</b>") == 1
    tree = HoeffdingTreeRegressor()
    alone = prequential(tree, generator("friedman:rows=1000"))
    assert alone.members is None
    assert "Ages over the stream" not in render(alone, tree)
    for draw in (plot.member_errors, plot.member_ages):
        assert [text.get_text() for text in draw(alone).texts] == ["the model has no members"]


def test_moments_are_few_and_go_on_from_what_was_saved():
    model = AdaptiveTreeRegressor(threads=1)
    model.learn_many([[1.0], [2.0]], [1.0, 2.0])
    whole, half = MemberLog(), MemberLog()
    rows = range(0, 100 * FIRST_MOMENT * MOMENTS // 40, FIRST_MOMENT)
    for row in rows:
        whole.add(row, model)
        half.add(row, model)
        if row == rows[len(rows) // 2]:
            half = half.restored(half.to_arrays())
    found = whole.finished(rows[-1] + 7, model)
    assert len(found.rows) <= MOMENTS + 1
    assert np.diff(found.rows[:-1]).tolist() == [whole.interval] * (len(found.rows) - 2)
    assert whole.interval == 4 * FIRST_MOMENT
    for one, other in zip(found, half.finished(rows[-1] + 7, model), strict=True):
        np.testing.assert_array_equal(one, other)


def test_what_was_saved_is_not_trusted():
    good = MemberLog().to_arrays()
    assert MemberLog().restored({}).to_arrays()["members"].shape == (0, 2)  # of a run of before
    bad = (
        ({"members": np.zeros((2, 3))}, "members are none"),
        ({"members": np.zeros(4)}, "members are float64"),
        ({"members_interval": np.array([3])}, "interval of members is 3"),
        ({"members": np.ones((2, 4))}, "too close"),
        ({"members": np.zeros((MOMENTS, 4))}, "too many"),
    )
    for change, words in bad:
        with pytest.raises(ValueError, match=words):
            MemberLog().restored({**good, **change})
