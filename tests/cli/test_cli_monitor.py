"""The monitor in evaluations: in Python, late labels, from the command line, resumed, reported."""

import json
import re

import numpy as np
import pytest

from cli_cases import assert_fails, invoke
from sapwood import HoeffdingTreeRegressor
from sapwood.drift import DriftEvent, Monitor
from sapwood.evaluate import prequential
from sapwood.report import render

ROWS, AT = 6000, 4000


def columns():
    rng = np.random.default_rng(3)
    x = {"a": rng.random(ROWS), "city": rng.choice(["Oslo", "Rome"], ROWS).astype(object)}
    y = 5 * x["a"] + rng.normal(0, 0.1, ROWS)
    x["a"][AT:] += 10
    x["city"][AT:][rng.random(ROWS - AT) < 0.3] = "<Lima>"
    return x, y


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    x, y = columns()
    rows = zip(x["a"].tolist(), x["city"], y.tolist(), strict=True)
    lines = ["a,city,y", *(",".join(map(str, row)) for row in rows)]
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path


RUN = ("evaluate", "a.csv", "-t", "y", "--monitor", "--once-in", "100000")


def test_an_evaluation_tells_what_has_changed_and_a_listener_hears_it():
    x, y = columns()
    has_seen_target = []
    found = prequential(
        HoeffdingTreeRegressor(), x, y, monitor=Monitor(100_000), listener=has_seen_target.append
    )
    assert has_seen_target == list(found.drift_events)
    names = {alarm.name: alarm for alarm in has_seen_target}
    assert names["a"].words.startswith("a: median 0.4")
    assert names["city"].words.startswith("city: <Lima> is new, ")
    assert all(abs(alarm.since - AT) <= 200 for alarm in (names["a"], names["city"]))
    assert found.to_dict()["changes"] == [alarm.to_dict() for alarm in has_seen_target]
    assert f"drift: {names['a']}" in str(found)
    right = Monitor(100_000)
    predictions = HoeffdingTreeRegressor().predict_learn_many(x, y)
    assert right.update_many(x, y, predictions) == has_seen_target
    assert prequential(HoeffdingTreeRegressor(), x, y).drift_events is None


def test_late_labels_are_watched_when_they_come():
    x, y = columns()
    found = prequential(HoeffdingTreeRegressor(), x, y, delay=100, monitor=Monitor(100_000))
    assert "a" in {alarm.name for alarm in found.drift_events}


def test_events_are_written_and_resumed(folder):
    ended = invoke(*RUN, "--events", "e.jsonl", "--json")
    told = [json.loads(line) for line in (folder / "e.jsonl").read_text("utf-8").splitlines()]
    assert told == ended.json()["changes"]
    assert {"a", "city"} <= {event["name"] for event in told}
    first = (*RUN, "--events", "f.jsonl", "--checkpoint", "run", "--every", "1000")
    assert invoke(*first).code == 0
    again = invoke(*first, "--json")
    assert again.json()["changes"] == told
    assert (folder / "e.jsonl").read_bytes() == (folder / "f.jsonl").read_bytes()
    assert "drift: a: median 0." in invoke(*RUN).stdout
    quiet = ("evaluate", "friedman:rows=3000", "--monitor")
    assert "drift: none detected" in invoke(*quiet).stdout
    assert "changes" not in invoke("evaluate", "friedman:rows=300", "--json").json()


@pytest.mark.parametrize("kind", ["forest", "adaptive"])
def test_events_of_trees_are_written_and_resumed(folder, kind):
    typed = (*RUN[:4], "-m", kind, "-s", "grace_period=40", "--events")
    assert invoke(*typed, "e.jsonl").code == 0
    told = (folder / "e.jsonl").read_text("utf-8")
    events = [json.loads(line) for line in told.splitlines()]
    assert {"split"} <= {event["event"] for event in events}
    assert all(event["error"] > 0 and event["age"] > 0 for event in events)
    saved = (*typed, "f.jsonl", "--checkpoint", "run", "--every", "700")
    assert invoke(*saved).code == 0
    assert (folder / "f.jsonl").read_text("utf-8") == told


def test_what_cannot_be_is_told(folder):
    assert_fails(
        invoke("evaluate", "a.csv", "-t", "y", "--events", "e"), "add --monitor, or -m forest"
    )
    assert_fails(invoke(*RUN[:5], "--once-in", "3"), "once_in = 3")


def test_the_report_lists_changes_and_marks_them():
    x, y = columns()
    model = HoeffdingTreeRegressor()
    found = prequential(model, x, y, monitor=Monitor(100_000))
    page = render(found, model)
    part = re.search(r'<section id="drift".*?</section>', page, re.DOTALL)[0]
    assert "city: &lt;Lima&gt; is new" in part
    assert page == render(found, model)
    still = prequential(HoeffdingTreeRegressor(), x, y)
    assert 'id="drift"' not in render(still, model)
    assert page.count("stroke-dasharray") > render(still, model).count("stroke-dasharray")


def test_an_alarm_is_restored_from_what_it_told_and_nothing_else():
    alarm = DriftEvent("feature", "a", 20, 10, "a: median 1 → 2")
    assert DriftEvent.from_dict(alarm.to_dict()) == alarm
    for wrong in ({}, 3, {**alarm.to_dict(), "row": 0}, {**alarm.to_dict(), "words": 3}):
        with pytest.raises((TypeError, ValueError)):
            DriftEvent.from_dict(wrong)


@pytest.mark.usefixtures("unsaved_charts")
def test_alerts_of_several_targets_name_them_in_events_and_reports(folder):
    x, y = columns()
    rows = zip(x["a"].tolist(), x["city"], y.tolist(), (y**2).tolist(), strict=True)
    lines = ["a,city,y,z", *(",".join(map(str, row)) for row in rows)]
    (folder / "b.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    run = ("evaluate", "b.csv", "-t", "y", "-t", "z", "--monitor", "--once-in", "100000")
    ended = invoke(*run, "--events", "e.jsonl", "--json", "--report", "r.html")
    events = [json.loads(line) for line in (folder / "e.jsonl").read_text("utf-8").splitlines()]
    assert events == ended.json()["changes"]
    named = [event["name"] for event in events if event["what"] == "feature"]
    assert sorted(named) == ["a", "city"]
    about = {event["target"] for event in events if event["what"] != "feature"}
    assert about == {"y", "z"}
    for event in events:
        if event["what"] == "error":
            assert event["words"].startswith(f"{event['target']}: error")
    assert "y: error" in (folder / "r.html").read_text("utf-8")
    assert "drift: a: median 0." in invoke(*run).stdout
