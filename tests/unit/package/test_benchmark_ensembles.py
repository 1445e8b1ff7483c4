"""The comparison of ensembles: the same labels for all, honest places, and every loss named."""

import pickle

import numpy as np
import pytest
from benchmarks.data_sets import friedman_set
from benchmarks.ensembles.following import PLACES, follow
from benchmarks.ensembles.question import Findings, _rankings
from benchmarks.ensembles.roster import AT_ONCE, CONTENDERS, FOREST, LATE
from benchmarks.peers.records import Job, Record

from sapwood import HoeffdingTreeRegressor

ROWS = 3_000


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "friedman"
    path.write_bytes(pickle.dumps(friedman_set(ROWS)))
    return path


def score(data, predictions):
    y, said = data.y[1_000 : len(predictions)], predictions[1_000:]
    return 1 - np.mean((y - said) ** 2) / y.var()


@pytest.mark.parametrize("labels", [AT_ONCE, LATE])
def test_labels_come_at_once_or_after_a_batch(file, labels):
    data, tree = friedman_set(ROWS), HoeffdingTreeRegressor()
    said = []
    for start in range(0, ROWS, 1_000):
        part = {name: column[start : start + 1_000] for name, column in data.columns.items()}
        y = data.y[start : start + 1_000]
        if labels == AT_ONCE:
            said.append(tree.predict_learn_many(part, y))
        else:
            said.append(tree.predict_many(part))
            tree.learn_many(part, y)
    found = {
        r.rows: r.value
        for r in follow(Job(labels, "friedman", "Sapwood, tree"), file, 60.0)
        if r.measure == "r2"
    }
    whole = np.concatenate(said)
    assert found == {rows: pytest.approx(score(data, whole[:rows])) for rows in (2_000, 3_000)}


def test_whoever_has_no_time_left_stops_at_the_first_place(file):
    found = list(follow(Job(AT_ONCE, "friedman", "river AMRules"), file, 0.0))
    assert {record.rows for record in found} == {PLACES[0]}
    assert {record.measure for record in found} == {"r2", "microseconds"}


def test_learners_of_batches_alone_get_no_labels_at_once():
    assert [name for name, entry in CONTENDERS.items() if entry.labels == (LATE,)] == [
        "LightGBM",
        "XGBoost",
    ]


def test_all_are_compared_over_the_rows_that_all_came_to_and_losses_are_named():
    def records(learner, scores):
        return [Record(AT_ONCE, "bike", learner, "", n, "r2", r2) for n, r2 in scores.items()]

    found = Findings(
        [
            *records(FOREST, {2_000: 0.7, 3_000: 0.8, 5_000: 0.9}),
            *records("river ARF", {2_000: 0.75}),
            *records("MOA SGBR", {2_000: 0.6, 3_000: 0.79}),
        ]
    )
    assert found.done(AT_ONCE) == ["bike"]
    assert found.common_rows(AT_ONCE, "bike") == 2_000
    assert found.losses(AT_ONCE, "river ARF") == [("bike", 2_000, 0.75, 0.7)]
    assert found.losses(AT_ONCE, "MOA SGBR") == []


def test_ranks_are_of_all_over_common_rows_and_of_those_who_came_to_the_end():
    def records(stream, learner, scores):
        return [Record(AT_ONCE, stream, learner, "", n, "r2", r2) for n, r2 in scores.items()]

    streams = ["bike", "metro", "storms"]
    found = Findings(
        [
            record
            for stream in streams
            for record in (
                *records(stream, "Sapwood, tree", {2_000: 0.65, 5_000: 0.85}),
                *records(stream, FOREST, {2_000: 0.7, 5_000: 0.9}),
                *records(stream, "river ARF", {2_000: 0.75}),
                *(records(stream, "river OXT", {2_000: 0.9}) if stream == "bike" else ()),
            )
        ]
    )
    assert found.ranked(AT_ONCE) == ["Sapwood, tree", FOREST, "river ARF"]
    first, whole = _rankings(found, AT_ONCE)
    assert "the rows that all reached of 3 real streams" in first.title
    assert {line[0]: line[1] for line in first.rows} == {
        "river ARF": "1.00",
        FOREST: "2.00",
        "Sapwood, tree": "3.00",
    }
    assert "all rows of 3 real streams" in whole.title
    assert {line[0]: line[1] for line in whole.rows} == {FOREST: "1.00", "Sapwood, tree": "2.00"}
