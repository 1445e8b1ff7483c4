"""Two classifiers as one forest, whatever classes each has seen, in whatever order."""

import numpy as np
import pytest

import sapwood
from sapwood.merge import MergeError

CLASSIFIERS = (sapwood.HoeffdingTreeClassifier, lambda: sapwood.ForestClassifier(members=3))


def rows_of(seed, classes, rows=1500):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 3))
    scores = np.column_stack([X, -X[:, 0], X[:, 1] - X[:, 2]])
    return X, scores[:, : len(classes)].argmax(axis=1)


def learned(make, seed, classes, order=None):
    model = make()
    X, codes = rows_of(seed, classes)
    for code in order or ():
        row = int(np.flatnonzero(codes == code)[0])
        model.learn_many(X[row : row + 1], [classes[code]])
    model.learn_many(X, [classes[code] for code in codes])
    return model


def accuracy(model, classes):
    X, codes = rows_of(99, classes)
    found = model.predict_many(X, record=False)
    return np.mean(found == np.array(list(classes), object)[codes])


@pytest.mark.parametrize("make", CLASSIFIERS)
@pytest.mark.parametrize(
    ("order", "classes"),
    [((0, 1), "ab"), ((0, 1, 2), "abc"), ((2, 1, 0), "abc"), ((3, 0, 4, 2, 1), "abcde")],
)
def test_merged_models_know_what_both_know(make, order, classes):
    one = learned(make, 1, classes, sorted(order))
    other = learned(make, 2, classes, order)
    before = one.to_bytes(), other.to_bytes()
    both = one.merge(other)
    assert (one.to_bytes(), other.to_bytes()) == before
    assert isinstance(both, sapwood.ForestClassifier)
    assert both.classes == one.classes
    assert both.rows_learned == one.rows_learned + other.rows_learned
    alone = min(accuracy(one, classes), accuracy(other, classes))
    assert accuracy(both, classes) >= alone - 0.01
    weights = {k: one.class_weights[k] + other.class_weights[k] for k in one.classes}
    assert both.class_weights == pytest.approx(weights)
    again = sapwood.ForestClassifier.from_bytes(both.to_bytes(), "it")
    assert again.to_bytes() == both.to_bytes()
    X, codes = rows_of(3, classes)
    both.learn_many(X, [classes[code] for code in codes])
    assert accuracy(both, classes) >= alone - 0.01


def test_the_order_of_classes_changes_no_prediction():
    one = learned(sapwood.HoeffdingTreeClassifier, 1, "abcd", (0, 1, 2, 3))
    X, _ = rows_of(5, "abcd")
    parts = []
    for order in ((0, 1, 2, 3), (3, 1, 0, 2)):
        other = sapwood.HoeffdingTreeClassifier()
        Z, codes = rows_of(2, "abcd")
        first = [int(np.flatnonzero(codes == code)[0]) for code in range(4)]
        rest = np.setdiff1d(np.arange(len(codes)), first)
        rows = [*(first[code] for code in order), *rest]
        other.learn_many(Z[rows], ["abcd"[code] for code in codes[rows]])
        # The same rows in almost the same order: what was learned differs by four rows.
        parts.append(one.merge(other).predict_proba_many(X, record=False))
    assert np.mean(parts[0].argmax(axis=1) == parts[1].argmax(axis=1)) > 0.97


def test_classes_that_one_has_never_seen():
    one = learned(sapwood.HoeffdingTreeClassifier, 1, "ab")
    other = learned(sapwood.HoeffdingTreeClassifier, 2, "xyz")
    both = one.merge(other)
    assert both.classes == [*one.classes, *other.classes]
    p = both.predict_proba_many(rows_of(4, "ab")[0], record=False)
    assert p.sum(axis=1) == pytest.approx(1.0)
    assert (p.max(axis=0) > 0.2).all()
    more = other.merge(one)
    assert more.classes == [*other.classes, *one.classes]


def test_limits_and_balanced_weights_are_kept():
    def make():
        return sapwood.ForestClassifier(members=2, max_bytes=4_000_000, class_weight="balanced")

    both = learned(make, 1, "abc").merge(learned(make, 2, "abc"))
    again = sapwood.ForestClassifier.from_bytes(both.to_bytes(), "it")
    assert again.parameters == both.parameters
    assert both.parameters["class_weight"] == "balanced"


def test_what_cannot_be_merged():
    one = learned(sapwood.HoeffdingTreeClassifier, 1, "ab", (0, 1))
    with pytest.raises(MergeError, match="let both models learn a row of 'a' first"):
        one.merge(learned(sapwood.HoeffdingTreeClassifier, 2, "ab", (1, 0)))
    with pytest.raises(MergeError, match="HoeffdingTreeRegressor cannot be merged"):
        one.merge(sapwood.HoeffdingTreeRegressor())
    with pytest.raises(MergeError, match="AdaptiveTreeClassifier cannot be merged"):
        one.merge(learned(sapwood.AdaptiveTreeClassifier, 2, "ab"))
    with pytest.raises(MergeError, match=r"itself|copies"):
        one.merge(one)
    with pytest.raises(MergeError, match="class_weight is None"):
        one.merge(sapwood.HoeffdingTreeClassifier(class_weight="balanced"))
    with pytest.raises(MergeError, match="learned nothing"):
        one.merge(sapwood.HoeffdingTreeClassifier())
