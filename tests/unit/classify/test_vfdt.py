"""VFDT as published: merits and bound of its splits, naive Bayes in its leaves, river's behaviour."""

import numpy as np
import pytest

import sapwood
from sapwood.classify.leaves import leaves_of
from sapwood.cli.models import make_classifier
from sapwood.export.flat import ExportError
from sapwood.merge import MergeError
from sapwood.observers.class_counts import split_merits
from sapwood.tree._search import best_cuts

MERITS = ("gini", "information_gain")
BAYES = ("naive_bayes", "naive_bayes_adaptive")


def rows_of(count, classes=3, seed=1):
    """Numbers, one that is missing now and then and a category; the classes depend on them."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, classes, count)
    X = {
        "a": np.round(rng.normal(size=count) + 1.5 * (codes == 1), 3),
        "b": np.where(rng.random(count) < 0.1, np.nan, rng.normal(size=count) - codes),
        "c": np.array(["u", "v", "w"], object)[(codes + (rng.random(count) < 0.4)) % 3],
    }
    return X, codes


def part(X, rows):
    return {name: column[rows] for name, column in X.items()}


def again_of(model, state):
    return type(model).from_state(state, model.format)


def counts_of(own, codes, classes):
    return np.array([np.bincount(codes[side], minlength=classes) for side in own], float)


@pytest.mark.parametrize("merit", MERITS)
@pytest.mark.parametrize("classes", [2, 4])
def test_merits_are_those_of_the_rows_on_both_sides(merit, classes):
    rng = np.random.default_rng(3)
    x = np.round(rng.random(1000), 2)
    codes = np.minimum((x + 0.3 * rng.random(1000)) * classes / 1.3, classes - 1).astype(int)
    model = sapwood.HoeffdingTreeClassifier(leaf="majority", merit=merit, max_depth=0)
    model.learn_many({"x": x}, codes)
    kernel = model.model._kernel
    found, second, feature, place, _ = best_cuts(kernel, 0, 0.02)[0]
    assert (feature, second) == (0, 0.0)
    assert place >= 0
    values = np.unique(x)
    left = counts_of([x <= value for value in values[:-1]], codes, classes)
    right = counts_of([x > value for value in values[:-1]], codes, classes)
    every = split_merits(left, right, merit)
    assert 0.9 * every.max() <= found <= every.max() + 1e-9
    assert np.abs(every - found).min() < 1e-9  # it is the merit of some border between values


@pytest.mark.parametrize("merit", MERITS)
def test_categories_are_split_by_the_best_subset_of_two_classes(merit):
    rng = np.random.default_rng(4)
    category = rng.integers(0, 5, 2000)
    codes = (rng.random(2000) < np.array([0.1, 0.7, 0.3, 0.9, 0.5])[category]).astype(int)
    model = sapwood.HoeffdingTreeClassifier(
        leaf="majority", merit=merit, max_depth=0, categorical=["x"]
    )
    model.learn_many({"x": category.astype(str)}, codes)
    subsets = [
        np.isin(category, [c for c in range(5) if bits >> c & 1]) for bits in range(1, 2**5 - 1)
    ]
    left, right = counts_of(subsets, codes, 2), counts_of([~each for each in subsets], codes, 2)
    found = best_cuts(model.model._kernel, 0, 0.02)[0]
    assert found[0] == pytest.approx(split_merits(left, right, merit).max(), abs=1e-12)


@pytest.mark.parametrize("merit", MERITS)
@pytest.mark.parametrize("classes", [2, 3])
def test_a_leaf_splits_once_hoeffdings_bound_says_so(merit, classes):
    rng = np.random.default_rng(5)
    codes = rng.integers(0, classes, 6000)
    X = {"a": rng.normal(size=6000) + 1.0 * codes, "b": rng.normal(size=6000) + 0.6 * codes}
    how = {"leaf": "majority", "merit": merit, "delta": 1e-3, "grace_period": 100, "tau": 0.01}
    model = sapwood.HoeffdingTreeClassifier(**how)
    whole = sapwood.HoeffdingTreeClassifier(**how, max_depth=0)
    spread = np.log2(classes) if merit == "information_gain" else 1.0
    for rows in range(100, 6001, 100):
        span = slice(rows - 100, rows)
        for each in (model, whole):
            each.learn_many(part(X, span), codes[span])
        first, second = best_cuts(whole.model._kernel, 0, 0.02)[0][:2]
        bound = spread * np.sqrt(np.log(1 / 1e-3) / (2 * rows))
        assert (model.n_leaves > 1) == (first > 0 and (first - second > bound or bound < 0.01)), (
            rows
        )
        if model.n_leaves > 1:
            break
    assert 100 < rows < 6000


def naive_ratings(X, codes, shares, classes, adaptive):
    """Ratings of each row by naive Bayes in a tree of one leaf, in the slowest way."""
    names, found, hits = list(X), [], [0.0, 0.0]
    for row, code in enumerate(codes):
        own, before = np.full(classes, -np.inf), codes[:row]
        for each in range(classes):
            of_class = before == each
            if not of_class.any():
                continue
            own[each] = np.log(max(shares[row, each], 1e-12))
            for name in names:
                value, past = X[name][row], X[name][:row]
                if name == "c":
                    seen = len(set(past) | {value})
                    own[each] += np.log((past[of_class] == value).sum() + 1)
                    own[each] -= np.log(of_class.sum() + seen)
                    continue
                past = past[of_class]
                past = past[~np.isnan(past)]
                if np.isnan(value) or not len(past):
                    continue
                variance = past.var(ddof=1) if len(past) > 1 else 0.0
                if variance == 0.0:
                    own[each] += 0.0 if value == past[0] else -500.0
                    continue
                density = -0.5 * np.log(2 * np.pi * variance)
                own[each] += max(density - (value - past.mean()) ** 2 / (2 * variance), -500.0)
        known = np.isfinite(own).any()
        bayes = np.exp(own - own.max()) if known else own
        bayes = bayes / bayes.sum() if known else bayes
        use = known and not (adaptive and hits[0] > hits[1])
        found.append(bayes if use else shares[row])
        hits[0] += shares[row].argmax() == code
        hits[1] += known and bayes.argmax() == code
    return np.array(found)


@pytest.mark.parametrize("leaf", BAYES)
@pytest.mark.parametrize("classes", [2, 3])
def test_leaves_are_those_of_a_slow_reference(leaf, classes, monkeypatch):
    X, codes = rows_of(400, classes)
    codes[:classes] = np.arange(classes)
    first, rest = slice(0, classes), slice(classes, None)
    how = {"merit": "gini", "max_depth": 0}
    plain = sapwood.HoeffdingTreeClassifier(leaf="majority", **how)
    model = sapwood.HoeffdingTreeClassifier(leaf=leaf, **how)
    rated = {}
    for name, each in (("plain", plain), ("bayes", model)):
        each.learn_many(part(X, first), codes[first])
        own = []
        for row in range(classes, 400):
            x = {key: column[row] for key, column in X.items()}
            own.append(each._rated([x], None, record=False)[0])
            each.learn_one(x, int(codes[row]))
        rated[name] = np.array(own)
    shares = np.zeros((400, classes))
    shares[rest] = np.clip(rated["plain"], 0, None)
    expected = naive_ratings(X, codes, shares, classes, leaf == "naive_bayes_adaptive")[rest]
    if leaf == "naive_bayes":
        assert rated["bayes"] == pytest.approx(expected, abs=1e-9)
    else:  # the first rows of each class were counted before there were shares
        assert rated["bayes"][50:] == pytest.approx(expected[50:], abs=1e-9)


@pytest.mark.parametrize("leaf", BAYES)
def test_rows_in_batches_are_learned_as_one_by_one(leaf):
    X, codes = rows_of(900)
    codes[:500] = codes[:500] % 2  # the third class comes late
    w = np.random.default_rng(2).integers(1, 4, 900).astype(float)
    how = {"leaf": leaf, "merit": "information_gain", "delta": 0.05, "grace_period": 50}
    many, one = (sapwood.HoeffdingTreeClassifier(**how) for _ in range(2))
    p = many.predict_proba_learn_many(X, codes, w)
    for row in range(900):
        x = {name: column[row] for name, column in X.items()}
        own = one.predict_proba_one(x)
        assert [own.get(label, 0.0) for label in many.classes] == p[row].tolist(), row
        one.learn_one(x, int(codes[row]), w[row])
    assert many.n_leaves > 2
    assert many.to_bytes() == one.to_bytes()


@pytest.mark.parametrize("leaf", BAYES)
def test_categories_that_a_batch_brings_are_rated_as_one_by_one(leaf):
    rng = np.random.default_rng(3)
    known = rng.integers(0, 90, 700)  # more than have counts of their own
    known[:5] = 0
    X = {
        "a": np.array([None if c % 11 == 0 else f"c{c}" for c in known], object),
        "b": np.array([f"c{c % 7}" for c in known[::-1]], object),
        "x": rng.normal(size=700),
    }
    codes = (known % 3 + (X["x"] > 0)).astype(int)
    many, one = (sapwood.HoeffdingTreeClassifier(leaf=leaf, delta=0.05) for _ in range(2))
    spans = [slice(0, 3), slice(3, 40), slice(40, 700)]
    p = [many.predict_proba_learn_many(part(X, span), codes[span]) for span in spans]
    for span, own in zip(spans, p, strict=True):
        for row, expected in zip(range(700)[span], own, strict=True):
            x = {name: column[row] for name, column in X.items()}
            shares = one.predict_proba_one(x)
            found = [shares.get(label, 0.0) for label in many.classes[: own.shape[1]]]
            assert found == expected.tolist(), row
            one.learn_one(x, int(codes[row]))
    assert many.to_bytes() == one.to_bytes()


@pytest.mark.parametrize("leaf", BAYES)
def test_a_saved_model_goes_on_and_damaged_tables_are_rejected(leaf):
    X, codes = rows_of(1200)
    model = sapwood.HoeffdingTreeClassifier(leaf=leaf, merit="gini", delta=0.05, grace_period=50)
    model.learn_many(part(X, slice(640)), codes[:640])
    state = model.to_state()
    again = again_of(model, state)
    rest, codes = part(X, slice(640, None)), codes[640:]
    for ids in (range(300), range(300, 560)):
        span = slice(ids[0], ids[-1] + 1)
        for each in (model, again):
            each.predict_many(part(rest, span), ids=list(ids))
            each.learn_many(part(rest, span), codes[span], ids=list(ids))
    assert model.to_bytes() == again.to_bytes()
    assert set(state.arrays["bayes_nodes"].tolist()) <= leaves_of(again_of(model, state).model)
    for name, damage in (
        ("bayes_nodes", lambda own: own + 10**6),
        ("bayes_moments", lambda own: -own - 1),
        ("bayes_moments", lambda own: own[:, :, :1]),
        ("bayes_categories", lambda own: own * np.nan),
        ("bayes_right", lambda own: own[:-1]),
    ):
        arrays = {**state.arrays, name: damage(state.arrays[name])}
        with pytest.raises(ValueError, match="naive Bayes"):
            again_of(model, state._replace(arrays=arrays))


def test_unlabelled_rows_and_rejected_batches_change_nothing():
    X, codes = rows_of(300)
    model = sapwood.HoeffdingTreeClassifier(leaf="naive_bayes")
    model.learn_many(X, codes)
    before = model.predict_proba_many(X, record=False)
    model.learn_one({"a": 1.0, "b": 2.0, "c": "u"}, None)
    with pytest.raises(ValueError, match="lengths must agree"):
        model.learn_many(X, codes[:-1])
    assert np.array_equal(model.predict_proba_many(X, record=False), before)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"merit": "entropy"}, "merit = 'entropy'"),
        ({"merit": "gini"}, "have no linear models"),
        ({"leaf": "naive_bayes", "max_bytes": 10**6}, "leave max_bytes out"),
        ({"leaf": "bayes"}, "leaf = 'bayes'"),
    ],
)
def test_settings_that_do_not_go_together(how, message):
    with pytest.raises(ValueError, match=message):
        sapwood.HoeffdingTreeClassifier(**how)


def test_the_command_line_sets_no_limit_of_memory_for_naive_bayes():
    limits = [
        make_classifier("tree", {"leaf": leaf}, {"a": "number"}, []).parameters["max_bytes"]
        for leaf in ("majority", *BAYES)
    ]
    assert limits[0] > 0
    assert limits[1:] == [None, None]


def test_what_leaves_of_naive_bayes_do_not_support():
    X, codes = rows_of(300)
    with pytest.raises(ValueError, match="HoeffdingTreeClassifier alone"):
        sapwood.ForestClassifier(leaf="naive_bayes")
    model = sapwood.HoeffdingTreeClassifier(leaf="naive_bayes")
    model.learn_many(X, codes)
    with pytest.raises(MergeError, match="naive Bayes"):
        model.merge(model)
    onnx = pytest.importorskip("sapwood.export.onnx")
    with pytest.raises(ExportError, match="naive Bayes"):
        onnx.to_onnx(model)


@pytest.mark.parametrize(
    ("leaf", "peer"),
    [("majority", "mc"), ("naive_bayes", "nb"), ("naive_bayes_adaptive", "nba")],
)
@pytest.mark.parametrize("stream", ["waveform", "hyperplane"])
def test_accuracy_is_that_of_river(leaf, peer, stream):
    river = pytest.importorskip("river.tree")
    from river.datasets import synth

    made = {
        "waveform": lambda: synth.Waveform(seed=7),
        "hyperplane": lambda: synth.Hyperplane(seed=7, n_features=5),
    }
    rows = list(made[stream]().take(2500))
    own = sapwood.HoeffdingTreeClassifier(
        leaf=leaf, merit="information_gain", delta=1e-3, min_share=0.01
    )
    other = river.HoeffdingTreeClassifier(leaf_prediction=peer, delta=1e-3)
    hits = 0
    for x, y in rows:
        hits += other.predict_one(x) == y
        other.learn_one(x, y)
    y = np.array([y for _, y in rows])
    accuracy = (own.predict_learn_many([x for x, _ in rows], y) == y).mean()
    assert accuracy == pytest.approx(hits / len(rows), abs=0.03)
