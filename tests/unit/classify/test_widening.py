"""A model that meets another class is the one that would have known it from the first row."""

import numpy as np
import pytest

import sapwood
from naive_pages import naive_pages_are_good
from sapwood.classify.growth import ClassGrowth
from sapwood.classify.widening import widened
from sapwood.ensemble import ensemble_state
from sapwood.tree import restoring
from sapwood.tree.checking import numbers
from sapwood.tree.checking.pages import check_watches

KINDS = {
    "tree": sapwood.HoeffdingTreeRegressor,
    "mean": lambda: sapwood.HoeffdingTreeRegressor(leaf="mean"),
    "no corrector": lambda: sapwood.HoeffdingTreeRegressor(track=None),
    "adaptive": sapwood.AdaptiveTreeRegressor,
    "forest": lambda: sapwood.ForestRegressor(members=3, threads=1, max_bytes=None),
}


def rows_of(count, categories=False):
    rng = np.random.default_rng(1)
    X = {"a": rng.random(count), "b": rng.random(count), "late": rng.random(count)}
    X["late"][: count // 2 - 8] = np.nan  # so that rows are kept for which no grid is laid
    if categories:
        X["c"] = [("x", "y", "z")[code] for code in rng.integers(0, 3, count)]
    return X, ((X["a"] + X["b"]) * 1.499).astype(int)


def part(X, rows):
    return {name: values[rows] for name, values in X.items()}


def stacked(columns):
    return np.column_stack(list(columns.values()))


def made(kind, columns, X, codes):
    model = KINDS[kind]()
    model._use_growth(ClassGrowth(3))
    model.learn_many(X, np.eye(columns)[codes])
    return model


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [1, 700, 1400])
def test_a_column_of_zeros_can_be_added_at_any_row(kind, rows):
    X, codes = rows_of(1400)
    first, later = part(X, slice(0, rows)), part(X, slice(rows, None))
    narrow, wide = (made(kind, columns, first, codes[:rows]) for columns in (3, 4))
    for model in (narrow, wide):
        model.predict_many(part(X, slice(0, 9)), ids=range(9))
        model.predict_many(part(X, slice(9, 12)))
    grown = widened(narrow, 0.5)
    grown._use_growth(ClassGrowth(3))
    assert grown.to_bytes() == wide.to_bytes()
    labels = np.eye(4)[np.where(later["a"] > 0.8, 3, codes[rows:])]
    for model in (grown, wide):
        model.learn_many(part(X, slice(0, 9)), np.eye(4)[codes[:9]], ids=range(9))
        if rows < 1400:
            model.learn_many(later, labels)
    assert grown.to_bytes() == wide.to_bytes()


def test_a_column_of_zeros_can_be_added_while_a_split_is_on_trial():
    rng = np.random.default_rng(2)
    X = {"a": rng.random(3000) - 0.5, "b": rng.random(3000) - 0.5}
    codes = (X["a"] * X["b"] > 0) + 1  # which only both features together tell apart
    narrow, wide = (made("tree", columns, part(X, slice(0, 1)), codes[:1]) for columns in (3, 4))
    widenings = 0
    for start in range(1, 2900, 20):
        rows = slice(start, start + 20)
        narrow.learn_many(part(X, rows), np.eye(3)[codes[rows]])
        wide.learn_many(part(X, rows), np.eye(4)[codes[rows]])
        if narrow._kernel.has_trial:
            widenings += 1
            grown = widened(narrow, 0.5)
            grown._use_growth(ClassGrowth(3))
            assert grown.to_bytes() == wide.to_bytes()
    assert widenings > 3


@pytest.mark.parametrize("kind", KINDS)
def test_a_class_that_is_never_seen_changes_no_other_prediction(kind):
    X, codes = rows_of(1400)
    narrow, wide = (made(kind, columns, X, codes) for columns in (3, 5))
    found = stacked(wide.predict_many(X, record=False))
    assert found[:, :3].tolist() == stacked(narrow.predict_many(X, record=False)).tolist()
    assert not found[:, 3:].any()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("categories", [False, True])
def test_the_third_class_makes_two_targets_of_one(kind, categories):
    X, codes = rows_of(1400, categories)
    model = KINDS[kind]()
    codes = np.minimum(codes, 1)
    model.learn_many(X, codes.astype(float))
    grown = widened(model, codes.mean())
    assert grown.targets == [0, 1, 2]
    assert grown.n_leaves == model.n_leaves
    if kind == "no corrector":  # which starts over
        second = model.predict_many(X, record=False)
        found = stacked(grown.predict_many(X, record=False))
        assert found[:, 1] == pytest.approx(second, abs=1e-12)
        assert found[:, 0] == pytest.approx(1 - second, abs=1e-9)
        assert not found[:, 2].any()
        assert grown.feature_importances == pytest.approx(model.feature_importances, abs=0.02)
    grown.learn_many(X, np.eye(3)[codes])
    error = (stacked(grown.predict_many(X, record=False))[:, :2].argmax(axis=1) != codes).mean()
    assert error < 0.05


@pytest.mark.parametrize("categories", [False, True])
def test_two_mirrored_targets_go_on_as_mirrors(categories):
    """The linear models of both classes stay each other's mirror image while they learn."""
    X, codes = rows_of(1400, categories)
    codes = np.minimum(codes, 1)
    model = sapwood.HoeffdingTreeRegressor(track=None)
    model.learn_many(part(X, slice(0, 700)), codes[:700].astype(float))
    grown = widened(model, codes[:700].mean())
    found = stacked(grown.predict_learn_many(part(X, slice(700, None)), np.eye(3)[codes[700:]]))
    assert found[:, 0] == pytest.approx(1 - found[:, 1], abs=1e-8)


@pytest.mark.parametrize("kind", ["tree", "forest"])
def test_a_new_class_does_not_check_the_numbers_of_a_model_again(kind, monkeypatch):
    X, codes = rows_of(400)
    make = {
        "tree": sapwood.HoeffdingTreeClassifier,
        "forest": lambda: sapwood.ForestClassifier(members=3, threads=1),
    }
    model = make[kind]()
    model.learn_many(X, codes % 3)

    def fail(*_):
        raise AssertionError("a state of one's own was checked")

    monkeypatch.setattr(restoring, "check_numbers", fail)
    monkeypatch.setattr(ensemble_state, "_check_numbers", fail)
    model.learn_one({"a": 0.5, "b": 0.5}, 7)
    assert model.classes[-1] == 7
    assert len(model.classes) == 4


def pages_of_targets(rows):
    """A tree of four classes, and the arguments that `check_watches` has for its pages."""
    X, codes = rows_of(rows, categories=True)
    tree = sapwood.HoeffdingTreeRegressor(grace_period=50)
    tree.learn_many(X, {n: (codes == n).astype(float) for n in range(3)})
    kernel, found = tree._kernel, {}

    def keep(*arguments):
        found["pages"] = arguments

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numbers, "check_watches", keep)
        tree.copy()
    return kernel, found["pages"]


def is_good(arguments):
    try:
        check_watches(*arguments)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("rows", [20, 400])
def test_pages_of_classes_are_checked_as_one_target_after_the_other(rows):
    kernel, (watches, leaves, kinds, model, of_targets) = pages_of_targets(rows)
    assert is_good((watches, leaves, kinds, model, of_targets))
    rng, seen = np.random.default_rng(5), set()
    for _ in range(300):
        damaged = watches.copy()
        at = rng.integers(len(watches)), rng.integers(watches.shape[1])
        damaged[at] = rng.choice([-1.0, 1e9, 1e-9, -damaged[at], 2 * damaged[at], 1e160])
        expected = naive_pages_are_good(damaged, leaves, kinds, kernel, of_targets)
        assert is_good((damaged, leaves, kinds, model, of_targets)) == expected, at
        seen.add(expected)
    assert seen == {True, False}


@pytest.mark.parametrize(
    ("kind", "limit"),
    [(sapwood.HoeffdingTreeClassifier, 800_000), (sapwood.ForestClassifier, 7_000_000)],
)
def test_leaves_make_room_for_new_classes_within_the_memory(kind, limit):
    rng = np.random.default_rng(1)
    X = rng.random((8000, 8))
    y = (X[:, 0] * 3).astype(int)
    model, states = kind(max_bytes=limit), []
    model.learn_many(X, y)

    def learn_new_classes():
        for new in range(3, 1000):
            states.append(model.to_bytes())
            model.learn_one(dict.fromkeys(range(8), 0.5), new)
            assert model.nbytes <= limit

    with pytest.raises(ValueError, match=f"y = .* max_bytes = {limit} has no room: allow more"):
        learn_new_classes()
    assert len(states) > 12  # 4 to 6 where leaves go on watching
    assert model.to_bytes() == states[-1]
    model.learn_many(X[:500], y[:500])
    assert model.nbytes <= limit
