"""Scores of classes, compared with scikit-learn's and with a plain loop."""

import numpy as np
import pytest
from sklearn import metrics

import sapwood
from sapwood.evaluate.class_run import ClassRun
from sapwood.evaluate.class_scores import ClassScores, cohen_kappa
from sapwood.streams.opening import open_stream


def made(count=400, classes=3, seed=1):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(classes), count)
    actual = np.where(rng.random(count) < 0.5, p.argmax(axis=1), rng.integers(0, classes, count))
    return p, actual


def test_scores_are_those_of_scikit_learn():
    p, actual = made()
    scores = ClassScores(window=50)
    for start in range(0, 400, 70):
        rows = slice(start, start + 70)
        scores.update([0, 1, 2], actual[rows].tolist(), p[rows])
    found, predicted = scores.metrics(), p.argmax(axis=1)
    assert found["accuracy"] == pytest.approx(metrics.accuracy_score(actual, predicted))
    expected = metrics.balanced_accuracy_score(actual, predicted)
    assert found["balanced_accuracy"] == pytest.approx(expected)
    assert found["kappa"] == pytest.approx(metrics.cohen_kappa_score(actual, predicted))
    assert found["f1_macro"] == pytest.approx(metrics.f1_score(actual, predicted, average="macro"))
    assert found["log_loss"] == pytest.approx(metrics.log_loss(actual, p))
    assert found["brier"] == pytest.approx(((p - np.eye(3)[actual]) ** 2).sum(axis=1).mean())
    assert found["accuracy_window"] == (predicted[-50:] == actual[-50:]).mean()
    matrix = metrics.confusion_matrix(actual, predicted)
    assert scores.confusion.tolist() == matrix.tolist()
    assert sum(each["rows"] for each in scores.to_dict()["reliability"]) == 400


def test_baselines_are_those_of_a_loop():
    _, actual = made(classes=4)
    scores = ClassScores()
    scores.update([0, 1, 2, 3], actual.tolist(), np.full((400, 4), 0.25))
    same = sum(a == b for a, b in zip(actual[1:], actual[:-1], strict=True)) / 400
    majority = 0
    for row in range(1, 400):
        counts = {}
        for label in actual[:row].tolist():
            counts[label] = counts.get(label, 0) + 1
        best = max(counts, key=lambda label: (counts[label], -label))
        majority += best == actual[row]
    found = scores.metrics()
    assert found["accuracy_no_change"] == pytest.approx(same)
    assert found["accuracy_majority"] == pytest.approx(majority / 400, abs=0.01)
    accuracy = found["accuracy"]
    assert found["kappa_temporal"] == pytest.approx((accuracy - same) / (1 - same))


def test_classes_that_were_not_known():
    scores = ClassScores()
    scores.update([], ["a"], np.zeros((1, 0)))
    scores.update(["a"], ["b"], np.ones((1, 1)))
    found = scores.metrics()
    assert found["accuracy"] == 0.0
    assert found["log_loss"] == pytest.approx(-np.log(1e-6))
    assert found["brier"] == 2.0
    assert scores.labels == ["a", "b"]


def test_nothing_was_scored():
    assert all(np.isnan(value) for value in ClassScores().metrics().values())
    assert ClassScores().to_dict()["accuracy"] is None
    assert np.isnan(cohen_kappa(np.array([[3]])))


@pytest.mark.parametrize("delay", [None, 25])
def test_an_evaluation_is_the_loop(delay, tmp_path):
    rng = np.random.default_rng(3)
    rows = [{"a": rng.random(), "b": rng.random()} for _ in range(300)]
    labels = ["up" if row["a"] > row["b"] else "down" for row in rows]
    labels[7] = None
    lines = [f"{x['a']!r},{x['b']!r},{each or ''}" for x, each in zip(rows, labels, strict=True)]
    (tmp_path / "rows.csv").write_text("\n".join(["a,b,label", *lines]))
    stream = open_stream(tmp_path / "rows.csv", categorical=["label"])
    model, expected = (sapwood.HoeffdingTreeClassifier() for _ in range(2))
    run = ClassRun(model, stream, "label", delay=delay)
    for _ in run.steps():
        pass
    found = run.finish()
    right, waiting = 0, []
    for number, (x, label) in enumerate(zip(rows, labels, strict=True)):
        if delay:
            while waiting and waiting[0][2] <= number - delay:
                known, its_label, key = waiting.pop(0)
                expected.learn_one(known, its_label, id=key)
            predicted = expected.predict_one(x, id=number)
            waiting += [(x, label, number)] if label else []
        else:
            predicted = expected.predict_one(x, record=label is not None)
            if label:
                expected.learn_one(x, label)
        right += label is not None and predicted == label
    assert found.scores.metrics()["accuracy"] == right / 299
    assert found.unlabelled == 1
    assert found.pending == (25 if delay else 0)
    assert model.predict_proba_one(rows[0], record=False) == expected.predict_proba_one(
        rows[0], record=False
    )


def test_roc_auc_is_that_of_scikit_learn_but_for_ties_within_bins():
    rng = np.random.default_rng(4)
    p = rng.dirichlet(np.ones(3), 3000)
    actual = [int(rng.choice(3, p=row)) for row in p]
    scores = ClassScores()
    for start in range(0, 3000, 500):
        scores.update([0, 1, 2], actual[start : start + 500], p[start : start + 500])
    expected = metrics.roc_auc_score(actual, p, multi_class="ovr", average="macro")
    assert scores.metrics()["roc_auc"] == pytest.approx(expected, abs=1e-3)


def test_a_class_that_comes_late_had_the_probability_0_before():
    scores = ClassScores()
    scores.update([0, 1], [0, 1], np.array([[0.9, 0.1], [0.2, 0.8]]))
    scores.update([0, 1, 2], [2, 2], np.array([[0.1, 0.1, 0.8], [0.3, 0.3, 0.4]]))
    assert scores.ranks.sum(axis=(1, 2)).tolist() == [4, 4, 4]
    own = scores.ranks[2]
    assert own[0, 0] == 2
    assert own[1].sum() == 2


def test_the_predicted_class_can_be_another_than_the_most_probable():
    scores = ClassScores()
    scores.update([0, 1], [1, 1], np.array([[0.9, 0.1], [0.9, 0.1]]), [1, 0])
    assert scores.metrics()["accuracy"] == 0.5
