"""Flags of missing values: when they come, what they are worth, and where they are hidden."""

import pickle

import numpy as np
import pytest

import sapwood
from sapwood import AdaptiveTreeRegressor, ForestRegressor, HoeffdingTreeRegressor, model
from sapwood.rows import encoder
from sapwood.rows.missing_flags import FLAG_ROWS, FLAG_SHARE, flag_name
from sapwood.storage import container

KINDS = (HoeffdingTreeRegressor, AdaptiveTreeRegressor, ForestRegressor)


def stream(rows=1200, seed=1, share=0.3):
    """A number that is missing where it is large, one that never is, and a category."""
    rng = np.random.default_rng(seed)
    x, z = rng.random(rows), rng.random(rows)
    y = 10 * x + z + rng.normal(0, 0.1, rows)
    x[x > 1 - share] = np.nan
    return {"x": x, "z": z, "c": rng.choice(["a", "b"], rows).astype(object)}, y


def dicts(columns):
    names = list(columns)
    rows = zip(*(columns[name].tolist() for name in names), strict=True)
    return [dict(zip(names, row, strict=True)) for row in rows]


def flagged_at(rows):
    """After which row each column has a flag, found by looking at all rows before; naive."""
    found = {}
    for name in {name for row in rows for name in row}:
        missing = present = 0
        is_known = False  # to be a number, by its first value
        for number, row in enumerate(rows):
            value = row.get(name)
            if isinstance(value, str):
                break
            if value is None or np.isnan(value):
                missing += is_known
            else:
                is_known, present = True, present + (missing > 0)
            least, most = sorted([missing, present])
            if least >= FLAG_ROWS and FLAG_SHARE * least >= most:
                found[name] = number + 1
                break
    return found


def flags(tree):
    known = tree._features.known
    return {known.names[place]: known.names[owner] for place, owner in known.flags.items()}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("share", [0.03, 0.06, 0.3, 0.9])
def test_a_flag_comes_when_the_reference_has_it(kind, share):
    columns, y = stream(share=share)
    expected = flagged_at(dicts(columns))
    tree = kind()
    for number, (row, value) in enumerate(zip(dicts(columns), y.tolist(), strict=True)):
        tree.learn_one(row, value)
        due = {name for name, at in expected.items() if number >= at}
        assert set(flags(tree).values()) == due
    assert set(expected) <= {"x"}
    assert tree.features == ["x", "z", "c"]
    assert list(tree.feature_kinds) == ["x", "z", "c"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", ["columns", "dicts", "frame"])
def test_batches_are_as_rows_one_by_one(kind, form):
    columns, y = stream(700)
    one = kind()
    for row, value in zip(dicts(columns), y.tolist(), strict=True):
        one.learn_one(row, value)
    assert flags(one) == {"x is missing": "x"}
    for size in (700, 90, 7):
        many = kind()
        for start in range(0, 700, size):
            part = {name: column[start : start + size] for name, column in columns.items()}
            if form == "dicts":
                part = dicts(part)
            elif form == "frame":
                part = pytest.importorskip("pandas").DataFrame(part)
            many.learn_many(part, y[start : start + size])
        assert many.to_bytes() == one.to_bytes()


@pytest.mark.parametrize("kind", KINDS)
def test_arrays_keep_their_width(kind):
    columns, y = stream(700)
    X = np.column_stack([columns["x"], columns["z"]])
    one, many = kind(), kind()
    many.learn_many(X[:400], y[:400])
    many.learn_many(X[400:], y[400:])
    for row, value in zip(X.tolist(), y.tolist(), strict=True):
        one.learn_one(dict(enumerate(row)), value)
    assert one.to_bytes() == many.to_bytes()
    assert many.features == [0, 1]
    assert flags(many) == {"0 is missing": 0}
    np.testing.assert_array_equal(
        many.predict_many(X[:9]), [many.predict_one(dict(enumerate(row))) for row in X[:9].tolist()]
    )
    with pytest.raises(ValueError, match="X has 3 columns and there are 2 features"):
        many.predict_many(np.zeros((4, 3)))


def test_new_columns_and_flags_come_in_their_order():
    """A flag that becomes due in a batch, before and after rows that bring further columns."""
    rng = np.random.default_rng(2)
    rows = []
    for number in range(400):
        row = {"x": None if rng.random() < 0.5 else float(rng.random())}
        if number > 70:
            row["late"] = None if rng.random() < 0.3 else float(rng.random())
        if number == 150:
            row["last"] = 1.0
        rows.append(row)
    y = rng.random(400)
    one, many = HoeffdingTreeRegressor(), HoeffdingTreeRegressor()
    for row, value in zip(rows, y.tolist(), strict=True):
        one.learn_one(row, value)
    many.learn_many(rows, y)
    assert one.to_bytes() == many.to_bytes()
    assert set(flags(one).values()) == set(flagged_at(rows)) >= {"x", "late"}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_missing_is_learned(kind):
    columns, y = stream(6000)
    plain = kind()
    plain._features.flagging = False
    plain._reader.refresh()
    found = []
    for tree in (plain, kind()):
        said = np.concatenate(
            [
                (
                    tree.predict_many(part := {n: c[at : at + 500] for n, c in columns.items()}),
                    tree.learn_many(part, y[at : at + 500]),
                )[0]
                for at in range(0, 6000, 500)
            ]
        )
        found.append(np.mean((said - y)[1000:] ** 2))
    assert found[1] < 0.95 * found[0]


def test_without_missing_values_nothing_changes():
    columns, y = stream(900, share=0.0)
    tree, plain = HoeffdingTreeRegressor(), HoeffdingTreeRegressor()
    plain._features.flagging = False
    for each in (tree, plain):
        each.learn_many(columns, y)
    assert tree.to_bytes() == plain.to_bytes()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [40, 80, 600])
def test_copies_pickles_and_files_go_on_alike(kind, rows):
    columns, y = stream(1200)
    head = {name: column[:rows] for name, column in columns.items()}
    tree = kind()
    tree.learn_many(head, y[:rows])
    others = [tree.copy(), pickle.loads(pickle.dumps(tree)), model.from_bytes(tree.to_bytes())]
    tail = [{name: column[rows:] for name, column in columns.items()}, y[rows:]]
    tree.learn_many(*tail)
    for other in others:
        for row, value in zip(dicts(tail[0]), tail[1].tolist(), strict=True):
            other.learn_one(row, value)
        assert other.to_bytes() == tree.to_bytes()


def test_several_targets_and_classes():
    columns, y = stream(800)
    tree = ForestRegressor(members=3)
    tree.learn_many(columns, {"a": y, "b": -y})
    assert flags(tree) == {"x is missing": "x"}
    alone = tree.of_target("a")
    row = {"x": None, "z": 0.5, "c": "a"}
    assert alone.predict_one(row) == tree.predict_one(row)["a"]
    classes = sapwood.HoeffdingTreeClassifier()
    classes.learn_many(columns, np.where(y > 5, "high", "low").astype(object))
    assert classes.features == ["x", "z", "c"]
    assert set(classes.feature_importances) == {"x", "z", "c"}


@pytest.mark.parametrize("kind", KINDS)
def test_importances_belong_to_the_column_and_explanations_name_the_flag(kind):
    columns, y = stream(3000)
    tree = kind()
    tree.predict_learn_many(columns, y)
    assert list(tree.feature_importances) == ["x", "z", "c"]
    assert sum(tree.overall_importances.values()) == pytest.approx(1.0)
    explained = HoeffdingTreeRegressor()
    explained.learn_many(columns, y)
    assert "x is missing" in str(explained.explain({"x": None, "z": 0.5, "c": "a"}))


def test_no_leaf_splits_on_a_flag():
    columns, y = stream(20_000)
    tree = HoeffdingTreeRegressor()
    tree.learn_many(columns, y)
    flag = tree._features.index["x is missing"]
    assert tree.n_leaves > 2
    inner = tree._kernel.node_table[: tree._kernel.node_count]
    assert flag not in inner["feature"][inner["kind"] != 0]


def test_a_name_that_is_taken_is_not_derived():
    columns, y = stream(700)
    columns["x is missing"] = np.isnan(columns["x"]).astype(float)
    tree = HoeffdingTreeRegressor()
    tree.learn_many(columns, y)
    assert flags(tree) == {}
    for row, value in zip(dicts(columns)[:5], y[:5].tolist(), strict=True):
        tree.learn_one(row, value)
    other = HoeffdingTreeRegressor()
    other.learn_many({name: columns[name] for name in "xzc"}, y)
    with pytest.raises(ValueError, match=r"x\['x is missing'\]: the model derives this feature"):
        other.learn_one({"x is missing": 1.0}, 2.0)
    assert other.predict_one({"x": 0.2, "x is missing": 1.0}) == other.predict_one({"x": 0.2})


def test_models_are_merged_by_flags_too():
    columns, y = stream(900)
    other, more = stream(900, seed=2)
    whole, _ = stream(900, seed=3, share=0.0)
    one, two, three = (HoeffdingTreeRegressor(track=None) for _ in range(3))
    one.learn_many(columns, y)
    two.learn_many(other, more)
    three.learn_many(whole, more[::-1])
    for both in (one.merge(two), one.merge(three), three.merge(one)):
        assert flags(both) == {"x is missing": "x"}
        both.learn_many(columns, y)
    np.testing.assert_allclose(
        one.merge(two).member(1).predict_many(other), two.predict_many(other), rtol=1e-9
    )


@pytest.mark.parametrize("gaps", [[[0, 0, 3]], [[0, 2, -3]], [[9, 1, 1]], [[2, 1, 1]], "x", [[0]]])
def test_counts_that_cannot_be_are_rejected(gaps):
    columns, y = stream(40)
    tree = HoeffdingTreeRegressor()
    tree.learn_many(columns, y)
    header, arrays = container.unpack(tree.to_bytes(), tree.kind)
    own = next(
        name for name, entry in header.items() if isinstance(entry, dict) and "gaps" in entry
    )
    data = container.pack(tree.kind, {**header, own: {**header[own], "gaps": gaps}}, arrays)
    with pytest.raises(model.ModelFileError):
        model.from_bytes(data)


@pytest.mark.parametrize("kind", KINDS)
def test_exported_models_have_the_flag_as_a_column(kind):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    from sapwood.export import encode, to_onnx

    columns, y = stream(1500)
    tree = kind()
    tree.learn_many(columns, y)
    rows = encode(tree, {name: column[:50] for name, column in columns.items()})
    assert rows.shape == (50, 4)
    session = runtime.InferenceSession(to_onnx(tree).SerializeToString())
    found = session.run(None, {session.get_inputs()[0].name: rows})[0].ravel()
    expected = tree.predict_many({name: column[:50] for name, column in columns.items()})
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_flags_are_named_by_their_columns():
    assert (flag_name("age"), flag_name(0)) == ("age is missing", "0 is missing")


def test_wide_models_have_no_flags_beyond_their_room():
    rng = np.random.default_rng(4)
    X = rng.random((300, 30))
    X[rng.random(X.shape) < 0.4] = np.nan
    tree, one = HoeffdingTreeRegressor(), HoeffdingTreeRegressor()
    tree.learn_many(X, rng.random(300))
    assert len(flags(tree)) == 9
    rng = np.random.default_rng(4)
    rng.random((300, 30)), rng.random(X.shape)
    for row, value in zip(X.tolist(), rng.random(300).tolist(), strict=True):
        one.learn_one(dict(enumerate(row)), value)
    assert one.to_bytes() == tree.to_bytes()
    assert model.from_bytes(one.to_bytes()).to_bytes() == one.to_bytes()


def test_a_flag_that_is_declared_a_category_is_not_derived():
    columns, y = stream(300)
    tree = HoeffdingTreeRegressor(categorical=["x is missing"])
    tree.learn_many(columns, y)
    assert flags(tree) == {}


def test_a_flag_that_another_thread_adds_while_rows_are_read(monkeypatch):
    """The rows are read without it, and read again by the model."""
    columns, y = stream()
    tree = HoeffdingTreeRegressor()
    tree.learn_many({name: column[:60] for name, column in columns.items()}, y[:60])
    assert not flags(tree)
    read = encoder.read

    def read_slowly(features, X, learn):
        plan = read(features, X, learn)
        monkeypatch.undo()
        tree.learn_many(columns, y)
        return plan

    monkeypatch.setattr(encoder, "read", read_slowly)
    found = tree.predict_many(columns)
    assert flags(tree)
    np.testing.assert_array_equal(found, tree.predict_many(columns))
