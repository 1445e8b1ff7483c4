"""Events of the largest rules: divided, removed and changed; saved and restored."""

import numpy as np
import pytest

import sapwood
from sapwood import streams
from sapwood.evaluate import prequential
from sapwood.evaluate.recorder import packed, unpacked
from sapwood.evaluate.rule_log import RuleLog
from sapwood.report.page import render


def learned(rows=4000, seed=1, max_depth=None):
    random = np.random.default_rng(seed)
    x = random.random((rows, 2))
    y = np.where(x[:, 0] < 0.5, 1.0, 5.0) + random.normal(0, 0.1, rows)
    tree = sapwood.HoeffdingTreeRegressor(leaf="mean", track=None, max_depth=max_depth)
    tree.learn_many({"a": x[:, 0], "b": x[:, 1]}, y)
    return tree


def friedman_rows(rows):
    chunk = next(iter(streams.friedman(rows=rows).chunks(None, rows)))
    return chunk.columns, chunk.y


def test_a_rule_that_is_still_there_is_no_event():
    log, tree = RuleLog(), learned()
    log.add(5000, tree)
    log.add(7000, tree)  # not due
    log.add(10000, tree)
    assert log.results(None) == {"rule_events": ()}


def test_rules_of_a_pruned_tree_are_removed_and_its_own_is_divided_later():
    log, tree = RuleLog(), learned()
    rules = tree.to_rules()
    before = [" and ".join(map(str, rule.conditions)) for rule in rules]
    log.add(5000, tree)
    tree.prune(0)
    log.add(10000, tree)
    events = log.results(None)["rule_events"]
    assert [(event.row, event.kind, event.rule) for event in events] == [
        (10000, "removed", words) for words in before
    ]
    assert str(events[0]) == f"{before[0]}: removed"
    again = learned()
    log.add(15000, again)
    (event,) = log.results(None)["rule_events"][len(events) :]
    assert (event.kind, event.rule, event.rules) == ("divided", "any row", len(again.to_rules()))
    assert event.after == pytest.approx(3.0, abs=0.2)


def test_a_mean_that_moves_by_more_than_its_error_is_a_change():
    log, tree = RuleLog(), learned(max_depth=1)
    log.add(5000, tree)
    random = np.random.default_rng(2)
    b = random.random(3000)
    tree.learn_many({"a": np.full(3000, 0.9), "b": b}, np.full(3000, 9.0))
    log.add(10000, tree)
    changed = [event for event in log.results(None)["rule_events"] if event.kind == "changed"]
    assert len(changed) == 1
    assert changed[0].before == pytest.approx(5.0, abs=0.1)
    assert changed[0].after > changed[0].before + 0.1


def test_new_categories_do_not_change_a_rule():
    random = np.random.default_rng(3)
    tree = sapwood.HoeffdingTreeRegressor(leaf="mean", track=None)
    city = random.choice(["Oslo", "Rome", "Bonn"], 3000)
    tree.learn_many({"city": city}, np.where(city == "Oslo", 1.0, 5.0))
    log = RuleLog()
    log.add(5000, tree)
    tree.learn_one({"city": "Lima"}, 5.0)
    log.add(10000, tree)
    assert log.results(None)["rule_events"] == ()


def test_what_was_saved_goes_on_the_same_and_is_not_trusted():
    log, tree = RuleLog(), learned()
    log.add(5000, tree)
    tree.prune(0)
    whole, half = log.restored(log.to_arrays()), log.restored(log.to_arrays())
    for each in (log, whole):
        each.add(10000, tree)
    half.add(10000, tree)
    half = half.restored(half.to_arrays())
    assert log.results(None) == whole.results(None) == half.results(None)
    assert RuleLog().restored({}).results(None)["rule_events"] == ()
    good = unpacked(half.to_arrays()["rules"])
    event, known = good["events"][0], good["known"][0]
    bad = (
        {"interval": 3},
        {"moments": [0]},
        {"known": 3},
        {"known": [known] * 9},
        {"known": [{**known, "mean": "x"}]},
        {"known": [{**known, "path": [[[1, -2, 0.5, 0], True]]}]},
        {"known": [{**known, "path": [[[1, 2, "x", 0], True]]}]},
        {"known": [{**known, "path": [3]}]},
        {"known": [{**known, "path": 3}]},
        {"known": [{**known, "rule": 3}]},
        {"events": [{**event, "kind": "lost"}]},
        {"events": [{**event, "rule": None}]},
        {"events": [[]]},
    )
    for change in bad:
        with pytest.raises((TypeError, ValueError)):
            RuleLog().restored({"rules": packed({**good, **change})})


def test_the_rules_noted_are_those_of_to_rules():
    tree = sapwood.HoeffdingTreeRegressor()
    tree.learn_many(*friedman_rows(6000))
    log = RuleLog()
    log.add(5000, tree)
    rules = tree.to_rules()[:8]
    assert [each.rule for each in log._known] == [rule.conditions_text() for rule in rules]
    assert [each.share for each in log._known] == [rule.share for rule in rules]
    assert [each.mean for each in log._known] == [rule.mean for rule in rules]


def test_a_pruned_part_removes_only_its_own_rules():
    tree = sapwood.HoeffdingTreeRegressor()
    tree.learn_many(*friedman_rows(6000))
    frame = tree.to_frame()
    inner = frame[frame["kind"] != "leaf"]["node"]
    log = RuleLog()
    log.add(5000, tree)
    tree.prune(int(inner.iloc[-1]))  # the deepest split that there is, with two leaves below
    log.add(10000, tree)
    events = log.results(None)["rule_events"]
    assert len(events) <= 2
    assert {event.kind for event in events} <= {"removed"}


def test_moments_become_rarer():
    log, tree = RuleLog(), learned()
    for rows in range(5000, 245_000, 5000):
        log.add(rows, tree)
    assert log.interval == 40_000


@pytest.mark.usefixtures("unsaved_charts")
def test_an_evaluation_and_its_report_have_them(tmp_path):
    tree = sapwood.HoeffdingTreeRegressor()
    found = prequential(tree, streams.friedman(rows=20_000))
    assert found.rule_events
    assert {event.kind for event in found.rule_events} <= {"divided", "changed", "removed"}
    assert found.to_dict()["rule_events"][0] == found.rule_events[0].to_dict()
    page = render(found, tree)
    assert '<section id="rules">' in page
    part = page[page.index('id="rules"') : page.index('id="tree"')]
    assert part.count("<tr>") >= 1 + 8
    covered = 100 * sum(rule.share for rule in tree.to_rules()[:8])
    assert f"cover {covered:.1f} % of the rows" in part
    assert "events of the largest rules" in part


@pytest.mark.usefixtures("unsaved_charts")
def test_a_forest_shows_rules_of_its_best_member_and_no_events():
    forest = sapwood.ForestRegressor(threads=1)
    found = prequential(forest, streams.friedman(rows=3000))
    assert found.rule_events == ()
    page = render(found, forest)
    assert "of the member with the smallest recent error" in page
    assert "events of the largest rules" not in page


def test_several_targets_have_no_part_on_rules():
    random = np.random.default_rng(4)
    x = random.random(3000)
    tree = sapwood.HoeffdingTreeRegressor()
    found = prequential(tree, ({"x": x}, {"u": x > 0.5, "v": x < 0.3}))
    assert found.rule_events == ()
    assert '<section id="rules">' not in render(found, tree)
