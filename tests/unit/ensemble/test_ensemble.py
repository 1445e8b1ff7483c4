"""The forest and the adaptive tree: against their twins, and the laws that every model obeys."""

import contextlib
import pickle
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_ensemble
import sapwood
from sapwood import AdaptiveTreeRegressor, ForestRegressor, HoeffdingTreeRegressor, model
from sapwood.ensemble.rules import poisson_thresholds
from sapwood.evaluate import prequential
from sapwood.report.page import render

MODELS = {
    "forest": lambda **own: ForestRegressor(**{"members": 4, "grace_period": 40, **own}),
    "adaptive": lambda **own: AdaptiveTreeRegressor(**{"grace_period": 40, **own}),
}
every_model = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS.keys())


def rows(count, seed=1, change=None):
    """Numbers, a category, missing values, and y whose concept may change at some row."""
    rng = np.random.default_rng(seed)
    x = rng.random((count, 3))
    city = rng.integers(0, 3, count)
    y = np.where(x[:, 0] < 0.5, 5 * x[:, 1], -3 * x[:, 2]) + city + 0.2 * rng.normal(size=count)
    if change is not None:
        y[change:] = 4 - 2 * y[change:]
    x[rng.random(x.shape) < 0.03] = np.nan  # too rarely for flags of missing values
    columns = {name: x[:, place] for place, name in enumerate("abc")}
    return {**columns, "city": [["Oslo", "Rome", "Bern"][code] for code in city]}, y


def part(columns, start, stop):
    return {name: values[start:stop] for name, values in columns.items()}


def as_dicts(columns):
    for values in zip(*columns.values(), strict=True):
        row = zip(columns, values, strict=True)
        yield {name: value if isinstance(value, str) else float(value) for name, value in row}


# -- twins ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("track", ["auto", None])
def test_the_forest_is_what_its_twin_is(track):
    columns, y = rows(3_400, change=1_700)
    twin = naive_ensemble.Forest(4, seed=7, grace_period=40, track=track == "auto")
    forest = ForestRegressor(members=4, seed=7, grace_period=40, track=track, threads=1)
    expected = [twin.predict_learn(x, label) for x, label in zip(as_dicts(columns), y, strict=True)]
    np.testing.assert_allclose(forest.predict_learn_many(columns, y), expected, rtol=1e-7)
    found = [(event["rows"], event["member"]) for event in forest.replacements]
    assert found == twin.replaced != []


@pytest.mark.parametrize("track", ["auto", None])
@pytest.mark.parametrize("kind", ["forest", "adaptive"])
def test_both_begin_anew_as_their_twins_do(kind, track):
    columns, y = rows(3_000)
    y += 50.0
    y[1_200:] *= 0.001  # in other units
    if kind == "forest":
        twin = naive_ensemble.Forest(4, seed=7, grace_period=40, track=track == "auto")
        found = ForestRegressor(members=4, seed=7, grace_period=40, track=track)
    else:
        twin = naive_ensemble.AdaptiveTree(grace_period=40, track=track == "auto")
        found = AdaptiveTreeRegressor(grace_period=40, track=track)
    expected = [twin.predict_learn(x, label) for x, label in zip(as_dicts(columns), y, strict=True)]
    predicted = found.predict_learn_many(columns, y)
    np.testing.assert_allclose(predicted, expected, rtol=1e-6, atol=1e-12)
    assert "reset" in [event["event"] for event in found.replacements]
    assert np.mean((predicted - y)[-500:] ** 2) < 0.3 * y[-500:].var()


@pytest.mark.parametrize("track", ["auto", None])
def test_the_adaptive_tree_is_what_its_twin_is(track):
    columns, y = rows(3_000, change=1_000)
    twin = naive_ensemble.AdaptiveTree(grace_period=40, track=track == "auto")
    tree = AdaptiveTreeRegressor(grace_period=40, track=track)
    # A challenger that began with the tree learns what the tree does, so that neither is ahead.
    twin.trees[1] = twin.fresh(1)
    expected = [twin.predict_learn(x, label) for x, label in zip(as_dicts(columns), y, strict=True)]
    np.testing.assert_allclose(tree.predict_learn_many(columns, y), expected, rtol=1e-7)


@every_model
def test_beginning_anew_is_the_same_in_batches_threads_and_files(make):
    columns, y = rows(2_600)
    y += 50.0
    y[1_200:] *= 0.001
    whole, pieces = make(threads=3), make(threads=3)
    expected = make(threads=1).predict_learn_many(columns, y)
    assert whole.predict_learn_many(columns, y).tolist() == expected.tolist()
    assert "reset" in [event["event"] for event in whole.replacements]
    found = []
    for start, stop in pairwise((0, 1_999, 2_000, 2_001, 2_130, 2_600)):
        pieces = type(pieces).from_bytes(pieces.to_bytes())
        own = part(columns, start, stop)
        found.append(pieces.predict_learn_many(own, y[start:stop]))
    assert np.concatenate(found).tolist() == expected.tolist()
    assert pieces.to_bytes() == whole.to_bytes()


@every_model
def test_notes_from_before_all_began_anew_are_not_judged(make):
    columns, y = rows(3_000)
    y += 50.0
    y[1_000:] *= 0.001
    late = make()
    late.learn_many(part(columns, 0, 1_000), y[:1_000])
    for start in range(1_000, 3_000, 20):
        own = part(columns, start, start + 20)
        predicted = late.predict_many(own)
        late.learn_many(own, y[start : start + 20])
    events = [event["event"] for event in late.replacements]
    assert "reset" in events
    assert late._kernel.pending.count == 0
    assert np.mean((predicted - y[-20:]) ** 2) < 0.5 * y[-500:].var()


def test_weights_are_poisson_variables():
    drawn = [naive_ensemble.poisson(3, 5, row, 6.0) for row in range(20_000)]
    assert np.mean(drawn) == pytest.approx(6.0, abs=0.06)
    assert np.var(drawn) == pytest.approx(6.0, abs=0.2)
    assert poisson_thresholds(6.0)[-1] == 2**64 - 1


# -- laws -----------------------------------------------------------------------------------------


@every_model
def test_a_batch_is_the_same_as_one_by_one(make):
    columns, y = rows(1_300)
    batches, single = make(), make()
    predicted = np.concatenate(
        [
            batches.predict_learn_many(part(columns, start, start + 600), y[start : start + 600])
            for start in range(0, 1_300, 600)
        ]
    )
    for x, label, expected in zip(as_dicts(columns), y, predicted, strict=True):
        assert single.predict_one(x) == expected
        single.learn_one(x, label)
    assert single.to_bytes() == batches.to_bytes()


@every_model
@settings(max_examples=settings.default.max_examples // 3)
@given(
    cuts=st.lists(st.integers(0, 1_200), max_size=4),
    threads=st.integers(1, 4),
    seed=st.integers(0, 99),
)
def test_batches_threads_and_files_change_nothing(make, cuts, threads, seed):
    columns, y = rows(1_200, seed)
    w = np.random.default_rng(seed).integers(1, 4, len(y)).astype(float)
    whole, pieces = make(threads=1), make(threads=threads)
    expected = whole.predict_learn_many(columns, y, w)
    found = []
    bounds = [0, *sorted(cuts), len(y)]
    for start, stop in pairwise(bounds):
        part_of = part(columns, start, stop)
        found.append(pieces.predict_learn_many(part_of, y[start:stop], w[start:stop]))
        pieces = type(pieces).from_bytes(pieces.to_bytes())
    assert np.concatenate(found).tobytes() == expected.tobytes()
    asked = part(columns, 0, 50)
    assert pieces.predict_many(asked).tobytes() == whole.predict_many(asked).tobytes()


@every_model
def test_copies_pickles_and_files_go_on_alike(make, tmp_path):
    columns, y = rows(900)
    original = make()
    original.learn_many(columns, y)
    original.save(tmp_path / "m")
    twins = [
        original.copy(),
        pickle.loads(pickle.dumps(original)),
        sapwood.load(tmp_path / "m"),
        model.from_bytes(original.to_bytes()),
    ]
    more, labels = rows(700, seed=2)
    expected = original.predict_learn_many(more, labels)
    for twin in twins:
        assert type(twin) is type(original)
        assert twin.predict_learn_many(more, labels).tobytes() == expected.tobytes()
        assert twin.to_bytes() == original.to_bytes()
        assert twin.nbytes == original.nbytes


@every_model
def test_predicting_changes_nothing_and_new_columns_may_come(make):
    columns, y = rows(600)
    grown = make()
    grown.learn_many({"a": columns["a"]}, y)
    assert grown.features == ["a"]
    grown.learn_many(columns, y)
    assert grown.features == ["a", "b", "c", "city"]
    assert grown.feature_kinds["city"] == "category"
    before = grown.predict_many(columns)
    with pytest.raises(ValueError, match="x\\['a'\\] = inf"):
        grown.learn_one({"a": float("inf")}, 1.0)
    with pytest.raises(ValueError, match="y"):
        grown.learn_many(columns, np.full(len(y), np.nan))
    assert grown.predict_many(columns).tobytes() == before.tobytes()


@every_model
def test_before_and_after_the_first_row(make):
    young = make()
    assert young.predict_one({"a": 1.0}) == 0.0
    young.learn_one({"a": 1.0}, 5.0)
    assert young.predict_one({"a": 1.0}) == 5.0
    assert young.predict_many({"a": [1.0, 2.0]}).tolist() == [5.0, 5.0]


@every_model
def test_what_it_occupies_stays_within_its_limit(make):
    columns, y = rows(6_000)
    limit = 900_000
    bounded = make(max_bytes=limit, grace_period=20)
    for start in range(0, 6_000, 500):
        bounded.learn_many(part(columns, start, start + 500), y[start : start + 500])
        assert bounded.nbytes <= limit
    free = make(grace_period=20)
    free.learn_many(columns, y)
    assert free.nbytes > bounded.nbytes > limit / 4
    twin = bounded.copy()
    assert twin.predict_learn_many(columns, y).tobytes() == (
        bounded.predict_learn_many(columns, y).tobytes()
    )


def test_too_little_memory_is_refused_in_words():
    with pytest.raises(ValueError, match=r"max_bytes = 1000: at least .* as 11 trees"):
        ForestRegressor(max_bytes=1000)


@pytest.mark.parametrize(
    ("parameter", "words"),
    [
        ({"members": 1}, "members = 1"),
        ({"seed": -1}, "seed = -1"),
        ({"threads": 0}, "threads = 0"),
        ({"track": "yes"}, "track = 'yes'"),
        ({"grace_period": 0}, "grace_period = 0"),
    ],
)
def test_bad_parameters_are_refused(parameter, words):
    with pytest.raises(ValueError, match=words):
        ForestRegressor(**parameter)


# -- looking inside -------------------------------------------------------------------------------


@every_model
def test_an_explanation_adds_up(make):
    columns, y = rows(1_500)
    grown = make()
    grown.learn_many(columns, y)
    x = next(as_dicts(columns))
    told = grown.explain(x)
    assert told.prediction == grown.predict_one(x)
    assert sum(weight for *_, weight in told.members) == pytest.approx(1.0)
    together = sum(said * weight for _, said, weight in told.members)
    assert together == pytest.approx(told.together)
    assert "error correction" in str(told)
    assert told.to_dict()["prediction"] == told.prediction


@every_model
def test_a_member_is_a_tree_of_its_own(make):
    columns, y = rows(1_200)
    grown = make()
    grown.learn_many(columns, y)
    member = grown.member(0)
    assert isinstance(member, HoeffdingTreeRegressor)
    (name, said, _), *_ = grown.explain(next(as_dicts(columns))).members
    assert name.startswith("0, ")
    assert member.predict_one(next(as_dicts(columns))) == said
    before = grown.to_bytes()
    member.learn_many(columns, y)
    assert grown.to_bytes() == before
    with pytest.raises(ValueError, match="place = 9"):
        grown.member(9)


@every_model
def test_importances_and_summary(make):
    columns, y = rows(2_000)
    grown = make()
    grown.learn_many(columns, y)
    shares = grown.feature_importances
    assert list(shares) == ["a", "b", "c", "city"]
    assert sum(shares.values()) == pytest.approx(1.0)
    assert max(shares, key=shares.get) == "a"
    told = grown.summary
    assert told.rows == 2_000
    assert told.members[0].leaves == grown.member(0).n_leaves
    assert "candidate" in str(told)


def test_who_listens_is_told_of_splits_replacements_and_restarts():
    columns, y = rows(3_500, change=1_500)
    forest, told = MODELS["forest"](), []
    stop = forest.listen(told.append)
    forest.learn_many(part(columns, 0, 2_999), y[:2_999])
    stop()
    own = forest.replacements
    forest.learn_many(part(columns, 2_999, 3_500), y[2_999:])
    replaced = [event for event in told if event["event"] in ("replaced", "reset")]
    assert replaced == own != []
    assert set(replaced[0]) == {"event", "rows", "member", "age", "error"}
    assert model.from_bytes(forest.to_bytes()).replacements == forest.replacements
    # A tree has as many leaves as was last told of it.
    grown = MODELS["forest"]()
    seen, at_rows = {}, set()

    def hear(event):
        at_rows.add(event["rows"] % 500)
        if event["event"] == "split":
            assert event["leaves"] > seen.get((event["member"], event["rows"] - event["age"]), 1)
            seen[event["member"], event["rows"] - event["age"]] = event["leaves"]

    grown.listen(hear)
    grown.learn_many(part(columns, 0, 500), y[:500])
    leaves = [tree.leaf_count for tree in grown._kernel.trees]
    assert [seen.get((place, 0), 1) for place in range(len(leaves))] == leaves
    assert max(leaves) > 5
    assert at_rows == {0}


@every_model
def test_the_longest_wait_for_a_better_tree_is_saved_and_loaded(make):
    columns, y = rows(200)
    learner = make()
    learner.learn_many(columns, y)
    kernel = learner._kernel
    kernel.end_look(kernel.renew.longest, [])
    twin = type(learner).from_bytes(learner.to_bytes())
    assert twin._kernel.lifetime == kernel.renew.longest


@every_model
@pytest.mark.usefixtures("unsaved_charts")
def test_the_report_tells_who_predicts(make):
    columns, y = rows(2_200)
    learner = make()
    found = prequential(learner, (columns, y))
    page = render(found, learner)
    assert 'id="members"' in page
    told = learner.summary.members
    for member in told:
        assert f'<td class="number">{member.leaves:,}</td>' in page
    assert page.count('<th scope="row">candidate</th>') == 1
    assert ('id="tree"' in page) == hasattr(learner, "draw")
    assert "Left out" not in page.split('id="importances"')[1].split("</section>")[0]


# -- limits of memory ------------------------------------------------------------------------------


def test_names_and_categories_count_in_the_limit():
    """They came after trees had filled what there was, and were counted at the next look alone."""
    rng, limit = np.random.default_rng(0), 1_500_000
    model = ForestRegressor(members=2, max_bytes=limit, grace_period=20)
    for part in range(56):
        X = {f"x{place}": rng.normal(size=500) for place in range(3)}
        codes = rng.integers(0, 357, (8, 500))
        if part > 50:
            X |= {
                f"k{place}": [f"{code} long label" * 4 for code in own]
                for place, own in enumerate(codes)
            }
        with contextlib.suppress(ValueError):  # as there may be no room for all of them
            model.learn_many(X, np.sin(9 * X["x0"]) * X["x1"] + codes[0] % 7)
        model.predict_many(X)
        assert model.nbytes <= limit


@pytest.mark.parametrize("kind", [sapwood.ForestRegressor, sapwood.AdaptiveTreeRegressor])
def test_the_limit_that_has_no_room_is_that_of_the_ensemble(kind):
    more = {"members": 2} if kind is sapwood.ForestRegressor else {}
    model = kind(max_bytes=300_000, **more)
    with pytest.raises(
        ValueError, match=r"^max_bytes = 300000, of which a tree has \d+: there is no"
    ):
        model.learn_many(np.zeros((3, 100)), np.zeros(3))
    model.learn_many(np.zeros((3, 2)), np.zeros(3))
