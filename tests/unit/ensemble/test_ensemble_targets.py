"""Forests and adaptive trees of several targets: their twins, their laws, and what they tell."""

import math
import pickle
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from river.checks import yield_checks

import naive_ensemble_targets
import sapwood
from sapwood import AdaptiveTreeRegressor, ForestRegressor, model
from sapwood.evaluate import prequential
from sapwood.report.page import render
from sapwood.river import MultiTargetAdaptiveTreeRegressor, MultiTargetForestRegressor
from sapwood.sklearn import AdaptiveTreeRegressor as Adaptive
from sapwood.sklearn import ForestRegressor as Forest
from target_cases import NAMES, columns_of, stream_of

MODELS = {
    "forest": lambda **own: ForestRegressor(**{"members": 4, "grace_period": 40, **own}),
    "adaptive": lambda **own: AdaptiveTreeRegressor(**{"grace_period": 40, **own}),
}
every_model = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS.keys())


def arrays(rows, seed=1, gaps=0.3, change=None, scale=None):
    """Features and targets, whose concept or units may change at some row; "c" is always there."""
    rng = np.random.default_rng(seed)
    X, columns = columns_of(rng, rows)
    Y = np.column_stack([columns[name] for name in NAMES])
    if change is not None:
        Y[change:] = Y[change:, [2, 0, 1]] * [30, -2, 0.1] if scale is None else Y[change:] * scale
    missing = rng.random(Y.shape) < gaps
    missing[:, 2] = False
    Y[missing] = np.nan
    X[rng.random(X.shape) < 0.03] = np.nan  # too rarely for flags of missing values
    return X, Y


def as_dicts(X, Y):
    for x, y in zip(X.tolist(), Y.tolist(), strict=True):
        own = {name: None if math.isnan(value) else value for name, value in enumerate(y)}
        yield dict(enumerate(x)), own


# -- twins ----------------------------------------------------------------------------------------


def twin_of(kind, track):
    if kind == "forest":
        twin = naive_ensemble_targets.Forest(
            range(3), 3, seed=7, grace_period=40, track=track == "auto"
        )
        return twin, ForestRegressor(members=3, seed=7, grace_period=40, track=track, threads=1)
    twin = naive_ensemble_targets.AdaptiveTree(range(3), grace_period=40, track=track == "auto")
    return twin, AdaptiveTreeRegressor(grace_period=40, track=track)


@pytest.mark.parametrize(
    ("kind", "track", "case"),
    [
        ("forest", "auto", "change"),
        ("forest", None, "units"),
        ("forest", "auto", "late"),
        ("adaptive", None, "change"),
        ("adaptive", "auto", "units"),
        ("adaptive", "auto", "late"),
    ],
)
def test_ensembles_are_what_their_twins_are(kind, track, case):
    twin, found = twin_of(kind, track)
    X, Y = {
        "change": lambda: arrays(2_200 if kind == "forest" else 2_600, change=1_000),
        "units": lambda: arrays(2_600, change=1_200, scale=[0.001, 0.0001, 0.001]),
        "late": lambda: arrays(1_300),
    }[case]()
    if case == "late":
        Y[:700, 1] = np.nan
        Y[400:1_000, 0] = np.nan
    expected = [list(twin.predict_learn(x, y).values()) for x, y in as_dicts(X, Y)]
    said = found.predict_learn_many(X, Y)
    np.testing.assert_allclose(said, expected, rtol=1e-6, atol=1e-8)
    events = [(event["rows"], event["member"]) for event in found.replacements]
    assert events == twin.replaced
    assert events or case == "late"
    told = {event["event"] for event in found.replacements}
    assert ("reset" in told) == (case == "units")


# -- laws -----------------------------------------------------------------------------------------


@every_model
def test_a_batch_is_the_same_as_one_by_one(make):
    stream = stream_of("categories", 700)
    batches, single = make(), make()
    said = []
    for start in range(0, len(stream), 300):
        part = stream[start : start + 300]
        rows, labels = [x for x, _, _ in part], [y for _, y, _ in part]
        said.append(np.asarray(batches.predict_learn_many(rows, labels)))
    said = np.concatenate(said)
    for (x, y, _), expected in zip(stream, said, strict=True):
        found = single.predict_one(x)
        assert list(found.values() if single.targets else [0.0] * 3) == list(expected)
        single.learn_one(x, y)
    assert single.to_bytes() == batches.to_bytes()


@every_model
@settings(max_examples=6)
@given(
    cuts=st.lists(st.integers(0, 1_100), max_size=3),
    threads=st.integers(1, 4),
    seed=st.integers(0, 99),
)
def test_batches_threads_and_files_change_nothing(make, cuts, threads, seed):
    X, Y = arrays(1_100, seed)
    w = np.random.default_rng(seed).integers(1, 4, len(Y)).astype(float)
    whole, pieces = make(threads=1), make(threads=threads)
    expected = whole.predict_learn_many(X, Y, w)
    found = []
    for start, stop in pairwise([0, *sorted(cuts), len(Y)]):
        if stop > start:
            found.append(pieces.predict_learn_many(X[start:stop], Y[start:stop], w[start:stop]))
            pieces = type(pieces).from_bytes(pieces.to_bytes())
    assert np.concatenate(found).tobytes() == expected.tobytes()
    assert pieces.predict_many(X[:50]).tobytes() == whole.predict_many(X[:50]).tobytes()


@every_model
@settings(max_examples=6)
@given(order=st.permutations([0, 1, 2]), seed=st.integers(0, 99))
def test_targets_in_another_order_give_the_same(make, order, seed):
    X, Y = arrays(1_100, seed)
    said = make().predict_learn_many(X, Y)
    permuted = make().predict_learn_many(X, np.ascontiguousarray(Y[:, order]))
    assert permuted.tobytes() == np.ascontiguousarray(said[:, order]).tobytes()


@every_model
@settings(max_examples=8)
@given(place=st.integers(0, 3), seed=st.integers(0, 99))
def test_a_target_that_is_always_missing_changes_nothing(make, place, seed):
    X, Y = arrays(1_100, seed, change=500)
    said = make().predict_learn_many(X, Y)
    wider = make().predict_learn_many(X, np.insert(Y, place, np.nan, axis=1))
    assert np.delete(wider, place, axis=1).tobytes() == said.tobytes()
    assert (wider[:, place] == 0.0).all()


@every_model
@settings(max_examples=8)
@given(copies=st.integers(2, 3), seed=st.integers(0, 99))
def test_copies_of_one_target_give_what_one_gives(make, copies, seed):
    X, Y = arrays(900, seed)
    expected = make().predict_learn_many(X, Y[:, 2])
    said = make().predict_learn_many(X, np.repeat(Y[:, 2:], copies, axis=1))
    assert np.abs(said - expected[:, None]).max() <= 1e-7 * np.ptp(Y[:, 2])


@every_model
def test_copies_pickles_and_files_go_on_alike(make, tmp_path):
    stream = stream_of("categories", 900)
    original = make()
    for x, y, w in stream[:600]:
        original.learn_one(x, y, w)
    for x, _, _ in stream[600:620]:
        original.predict_one(x)
    original.save(tmp_path / "m")
    twins = [
        original.copy(),
        pickle.loads(pickle.dumps(original)),
        sapwood.load(tmp_path / "m"),
        model.from_bytes(original.to_bytes()),
    ]
    for twin in twins:
        assert twin.targets == list(NAMES)
        assert twin.nbytes == original.nbytes
    for x, y, w in stream[600:]:
        for each in (original, *twins):
            each.learn_one(x, y, w)
    for twin in twins:
        assert twin.to_bytes() == original.to_bytes()


@every_model
def test_labels_that_come_late_are_judged_by_what_was_said(make):
    X, Y = arrays(1_500)
    late, batches = make(), make()
    for start in range(0, 1_500, 50):
        part = slice(start, start + 50)
        said = late.predict_many(X[part])
        for row in range(start, start + 50):
            late.learn_one(dict(enumerate(X[row].tolist())), dict(enumerate(Y[row].tolist())))
        again = batches.predict_many(X[part])
        batches.learn_many(X[part], Y[part])
        assert said.tobytes() == again.tobytes()
        assert late._kernel.pending.count == 0
    assert late.to_bytes() == batches.to_bytes()
    lateness = [late._kernel.worth, make()._kernel.worth]
    assert lateness[0] < lateness[1] == 1.0


@every_model
def test_what_it_occupies_stays_within_its_limit(make):
    X, Y = arrays(3_000)
    limit = 700_000
    bounded = make(max_bytes=limit, grace_period=20)
    for start in range(0, 3_000, 250):
        bounded.predict_many(X[start : start + 250])
        bounded.learn_many(X[start : start + 250], Y[start : start + 250])
        assert bounded.nbytes <= limit
    free = make(grace_period=20)
    free.learn_many(X, Y)
    assert free.nbytes > bounded.nbytes > limit / 4
    twin = bounded.copy()
    assert twin.nbytes == bounded.nbytes
    assert twin.predict_learn_many(X, Y).tobytes() == bounded.predict_learn_many(X, Y).tobytes()
    narrow = make(max_bytes=250_000)
    with pytest.raises(ValueError, match="there is no room"):
        narrow.learn_many(X, np.zeros((len(X), 200)))
    assert narrow.targets == narrow.features == []
    narrow.learn_many(X, Y[:, 2])


def test_what_an_ensemble_keeps_of_targets_is_counted():
    X, Y = arrays(600, gaps=0.0)
    wide = np.repeat(Y, 7, axis=1)
    forest = MODELS["forest"]()
    forest.learn_many(X, wide)
    forest.predict_many(X)
    kernel, trees = forest._kernel, 0
    for place in range(5):
        trees += sapwood.tree._memory.nbytes(kernel.trees[place])
    tables = kernel.tables
    own = [tables.record_table, tables.stack_table, tables.layer_table, tables.error_table]
    least = sum(table.nbytes for table in own) + kernel.pending.nbytes
    without = trees - 5 * forest._bytes_for_each(forest._features, forest._features.known)
    assert least + without < forest.nbytes < 1.5 * least + without + 50_000


# -- a target that comes or goes ------------------------------------------------------------------


@every_model
def test_a_target_that_pauses_is_not_forgotten(make):
    X, Y = arrays(2_600, gaps=0.0)
    Y[:, [0, 2]] += 100.0
    Y[1_000:, [0, 2]] *= 0.01  # so that all begins anew
    Y[600:, 1] = np.nan
    found = make()
    said = found.predict_learn_many(X, Y)
    assert "reset" in {event["event"] for event in found.replacements}
    assert not any(found._kernel.has_seen_target(1))
    told = found.explain({0: 0.5}, 1)
    assert told.path is None
    assert str(told).count("110") >= 2
    # Its mean is 110, its deviation 10.
    assert (np.abs(said[601:, 1] - 110) < 40).all()


# -- what is refused ------------------------------------------------------------------------------


@every_model
def test_what_is_refused_changes_nothing(make):
    X, Y = arrays(300)
    found = make()
    found.learn_many(X, Y)
    before = found.to_bytes()
    for words, y in (
        ("y is one column and the model has 0, 1 and 2 for targets", Y[:, 2]),
        ("y has 2 columns and the model has 3 targets", Y[:, :2]),
        (
            "y at position 3 has no target that is not missing",
            np.where(np.arange(300)[:, None] == 3, np.nan, 1.0) * np.ones(3),
        ),
    ):
        with pytest.raises(ValueError, match=words):
            found.learn_many(X, y)
    with pytest.raises(ValueError, match="y is one column"):
        found.learn_one({0: 0.5}, 1.0)
    assert found.to_bytes() == before
    one = make()
    one.learn_many(X, Y[:, 2])
    with pytest.raises(ValueError, match="has learned one target: give one column"):
        one.learn_many(X, Y)


@every_model
def test_a_file_that_lies_about_targets(make):
    X, Y = arrays(700)
    found = make()
    found.learn_many(X, Y)
    found.predict_many(X[:5])
    header, kept = found.to_state()

    def refused(**changed):
        data = sapwood.storage.container.pack(
            found.kind, {"format": found.format, "model": header}, {**kept, **changed}
        )
        with pytest.raises(sapwood.ModelFileError, match="is damaged: "):
            type(found).from_bytes(data)

    for field, value in (
        ("rows", 1e9),
        ("rows", 1.5),
        ("begun", -1.0),
        ("low", 1e99),
        ("usual", -1.0),
        ("weight", np.inf),
        ("m2", -1.0),
        ("first", 1e101),
        ("mean", np.nan),
    ):
        records = kept["targets"].copy()
        records[field][0] = value
        refused(targets=records)
    refused(targets=kept["targets"][:2])
    refused(errors=-kept["errors"])
    refused(errors=kept["errors"][:, :2])
    refused(layer=kept["layer"][:-1])
    refused(blend=kept["blend"][: len(kept["blend"]) // 3])
    lies = {name: array for name, array in kept.items() if name != "errors"}
    with pytest.raises(sapwood.ModelFileError, match="its arrays are others"):
        type(found).from_bytes(
            sapwood.storage.container.pack(
                found.kind, {"format": found.format, "model": header}, lies
            )
        )


# -- looking inside -------------------------------------------------------------------------------


@every_model
def test_views_tell_all_targets_or_one(make):
    X, Y = arrays(1_500)
    found = make()
    named = {name: Y[:, place] for place, name in enumerate(NAMES)}
    found.learn_many(X, named)
    x = dict(enumerate(X[0].tolist()))
    told = found.explain(x)
    assert list(told) == list(NAMES)
    for name in NAMES:
        own = told[name]
        assert own.prediction == found.predict_one(x)[name]
        assert str(found.explain(x, name)) == str(own)
        assert sum(weight for *_, weight in own.members) == pytest.approx(1.0)
        together = sum(said * weight for _, said, weight in own.members)
        assert together == pytest.approx(own.together)
        member = found.member(own.heaviest)
        assert own.path.prediction == member.predict_one(x)[name]
    with pytest.raises(ValueError, match="target = 'z': one of 'a', 'b', 'c' is expected"):
        found.explain(x, "z")
    shares = found.feature_importances
    assert sum(shares.values()) == pytest.approx(1.0)
    summary = found.summary
    assert summary.targets == summary.to_dict()["targets"] == 3
    assert "3 targets" in str(summary)
    # Errors are in units of deviations, so they do not exceed 1 by much.
    assert all(0 < member.error < 1.2 for member in summary.members[:-1])
    assert sum(member.weight for member in summary.members) == pytest.approx(1.0)
    assert " b " in found.to_text()


def test_the_tree_of_an_adaptive_tree_tells_one_target():
    X, Y = arrays(900)
    found = MODELS["adaptive"]()
    found.learn_many(X, {name: Y[:, place] for place, name in enumerate(NAMES)})
    assert found.to_text(target="b") == found.tree.of_target("b").to_text()
    assert str(found.draw(target="b")) == str(found.tree.draw(target="b"))
    with pytest.raises(ValueError, match="draw\\(target='a'\\)"):
        found.draw()


@every_model
@pytest.mark.usefixtures("unsaved_charts")
def test_the_report_tells_targets_and_members(make):
    X, Y = arrays(1_200)
    columns = {f"x{place}": X[:, place] for place in range(X.shape[1])}
    learner = make()
    named = {name: Y[:, place] for place, name in enumerate(NAMES)}
    found = prequential(learner, columns, named)
    assert list(found.targets) == list(NAMES)
    page = render(found, learner)
    assert 'id="members"' in page
    assert all(f">{name}<" in page for name in NAMES)


# -- other libraries ------------------------------------------------------------------------------

FACES = {
    "forest": lambda: MultiTargetForestRegressor(members=3, grace_period=50, threads=1),
    "adaptive": lambda: MultiTargetAdaptiveTreeRegressor(grace_period=50),
}


@pytest.mark.filterwarnings("ignore:x names .* and no feature that the model knows")
@pytest.mark.parametrize("face", FACES.values(), ids=FACES.keys())
def test_all_checks_of_rivers_pass(face):
    checks = list(yield_checks(face()))
    assert len(checks) > 20
    for check in checks:
        check(face().clone())


@pytest.mark.parametrize("kind", ["forest", "adaptive"])
def test_the_same_model_underneath_in_river(kind):
    stream = stream_of("gaps", 300)
    face = FACES[kind]()
    plain = type(face.model)(**face.model.parameters)
    assert face.predict_one(stream[0][0]) == {}
    for x, y, w in stream:
        face.learn_one(x, y, w)
        plain.learn_one(x, y, w)
    assert face.model.to_bytes() == plain.to_bytes()
    assert face.predict_one(stream[0][0]) == plain.predict_one(stream[0][0])


@pytest.mark.parametrize("estimator", [Forest(members=3, grace_period=50), Adaptive()])
def test_multi_output_in_scikit_learn(estimator):
    X, Y = arrays(600)
    full = np.where(np.isnan(Y), 0.0, Y)
    estimator.partial_fit(X[:300], Y[:300]).partial_fit(X[300:], Y[300:])
    assert estimator.n_outputs_ == 3
    assert estimator.predict(X).shape == (600, 3)
    plain = type(estimator.model_)(**estimator.model_.parameters)
    plain.learn_many(X, Y)
    assert estimator.predict(X).tolist() == plain.predict_many(X).tolist()
    assert estimator.__sklearn_tags__().target_tags.multi_output
    framed = type(estimator)(**estimator.get_params()).fit(X, pd.DataFrame(full, columns=NAMES))
    assert framed.model_.targets == list(NAMES)
    assert 0.2 < framed.score(X, full) <= 1.0
