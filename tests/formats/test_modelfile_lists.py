"""Long lists of a header, which a file keeps in arrays."""

import copy
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sapwood
from places import DATA
from sapwood.drift import Monitor
from sapwood.lags import LaggedModel, Lags
from sapwood.storage import container, lists
from tree_file_cases import stream

OLD = DATA / "version_1"
KIND = "test"
PLAIN = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5)
    | st.just("\ud800")
)
LISTS = st.lists(PLAIN, max_size=3) | st.lists(PLAIN, min_size=64, max_size=80)
ROWS = st.integers(1, 3).flatmap(
    lambda width: st.lists(st.lists(PLAIN, min_size=width, max_size=width), max_size=70)
)
HEADERS = st.recursive(
    PLAIN | LISTS | ROWS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=6,
)


def typed(value):
    """A value with the types of all that is in it, as True equals 1, and -0.0 equals 0.0."""
    if isinstance(value, dict):
        return {key: typed(own) for key, own in value.items()}
    if isinstance(value, list):
        return [typed(own) for own in value]
    return type(value), value, math.copysign(1, value) if type(value) is float else None


def version_of(data):
    return container.PREFIX.unpack_from(data)[1]


@given(st.dictionaries(st.text(max_size=3), HEADERS))
def test_any_header_is_read_as_it_was(header):
    before = copy.deepcopy(header)
    data = container.pack(KIND, header, {"a": np.arange(3)})
    found, arrays = container.unpack(data, KIND)
    assert typed(found) == typed(header) == typed(before)
    assert list(arrays) == ["a"]
    entries = lists.taken_out(header)[1]
    assert version_of(data) == (2 if entries else 1)


def test_headers_are_small_whatever_their_lists_are():
    """A header of 64 MiB, or more, was refused when the model was saved."""
    labels = [f"{place:05}" + "ä" * 995 for place in range(20_000)]
    series = [[place, f"{place}"] for place in range(200_000)]
    header = {"labels": [[], labels], "past": {"series": series}, "names": ["x" * 1000] * 2}
    rest, entries, arrays = lists.taken_out(header)
    assert rest == {"labels": [[], []], "past": {"series": []}, "names": []}
    assert [entry[1:] for entry in entries] == [[20_000, 0], [200_000, 2], [2, 0]]
    assert lists.put_back(rest, entries, arrays) == header


def test_models_with_more_labels_than_a_header_could_hold():
    """12,000 labels of 1,000 characters, each six bytes of JSON."""
    labels = [f"{place:05}" + "ä" * 995 for place in range(12_000)]
    tree = sapwood.HoeffdingTreeRegressor()
    tree.learn_many({"k": labels}, np.arange(12_000.0) % 7)
    twin = sapwood.HoeffdingTreeRegressor.from_bytes(tree.to_bytes())
    assert twin.predict_one({"k": labels[-1]}) == tree.predict_one({"k": labels[-1]})
    assert twin.to_bytes() == tree.to_bytes()


@pytest.mark.long
def test_models_of_millions_of_series():
    """3.2 million series, whose keys were more than a header could hold."""
    model = LaggedModel(sapwood.HoeffdingTreeRegressor(), Lags(1, by="shop", max_series=10_000_000))
    for start in range(0, 3_200_000, 400_000):
        shops = [f"shop number {place:08}" for place in range(start, start + 400_000)]
        model.learn_many({"shop": shops, "x": np.zeros(400_000)}, np.ones(400_000))
    data = model.to_bytes()
    twin = LaggedModel.from_bytes(data)
    assert twin.lags.n_series == 3_200_000
    assert twin.lags.transform_one({"shop": shops[-1]})["y.lag1"] == 1.0


# -- damage ----------------------------------------------------------------------------------------

LABELS = [f"shop {place}" for place in range(70)]
ENTRIES = [[["labels"], 70, 0]]
CASES = {
    "no entries": (None, {}),
    "no list": ({}, {}),
    "a path of nothing": ([[[], 70, 0]], {}),
    "a path that is none": ([[["other"], 70, 0]], {}),
    "a path into a number": ([[["one", 0], 70, 0]], {}),
    "a place that is taken": ([[["one"], 70, 0]], {}),
    "a length below 0": ([[["labels"], -1, 0]], {}),
    "a length that is no number": ([[["labels"], 70.0, 0]], {}),
    "fewer values": ([[["labels"], 69, 0]], {}),
    "more values": ([[["labels"], 71, 0]], {}),
    "far more values": ([[["labels"], 2**52, 2**52]], {}),
    "rows of another length": ([[["labels"], 35, 3]], {}),
    "an unknown kind": (ENTRIES, {"list kinds": (0, 8)}),
    "a value that is none, and a number": (ENTRIES, {"list kinds": (0, 0)}),
    "no number": (ENTRIES, {"list kinds": (0, 7)}),
    "a text below 0": (ENTRIES, {"list numbers": (0, -1)}),
    "a text beyond the end": (ENTRIES, {"list numbers": (0, 2**62)}),
    "a longer text": (ENTRIES, {"list numbers": (0, 7)}),
    "no text": (ENTRIES, {"list text": (0, 255)}),
}


@pytest.mark.parametrize(("entries", "changes"), CASES.values(), ids=CASES.keys())
def test_lists_that_do_not_fit(entries, changes):
    rest, _, arrays = lists.taken_out({"labels": LABELS, "one": 1})
    for name, (place, value) in changes.items():
        arrays[name] = arrays[name].copy()
        arrays[name][place] = value
    with pytest.raises(ValueError):  # noqa: PT011 - any of the words of lists
        lists.put_back(rest, entries, arrays)


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_numbers_that_json_does_not_keep(number):
    with pytest.raises(ValueError, match="the header cannot be kept in JSON"):
        container.pack(KIND, {"a": [number] * 70}, {})


def test_arrays_that_have_the_name_of_lists():
    arrays = {"list text": np.zeros(3)}
    assert list(container.unpack(container.pack(KIND, {}, arrays), KIND)[1]) == ["list text"]
    with pytest.raises(ValueError, match="has the name of one that holds lists"):
        container.pack(KIND, {"labels": LABELS}, arrays)


# -- files of before -------------------------------------------------------------------------------


def with_labels(model):
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 100, 600)
    X = {"shop": [f"shop {code}" for code in codes], "x": rng.normal(size=600)}
    model.learn_many(X, X["x"] + codes % 5)
    return model


def of_series():
    lags = Lags([1, 2], by=["shop", "till"], target="sold")
    model = LaggedModel(sapwood.HoeffdingTreeRegressor(), lags)
    for row in range(300):
        x = {"shop": f"shop {row % 100}", "till": row % 3, "x": row % 7}
        model.learn_one(x, float(row % 11))
    return model


def of_monitor():
    monitor = Monitor()
    columns, y = stream(700, seed=2)
    monitor.update_many(columns, y)
    return monitor


OLDER = {
    "tree": lambda: with_labels(sapwood.HoeffdingTreeRegressor()),
    "forest": lambda: with_labels(sapwood.ForestRegressor(members=2)),
    "lags": of_series,
    "monitor": of_monitor,
}
"""What the files of version 1 were made of, by the release before lists were kept in arrays."""
LONGER_NOW = {"note_sizes", "columns", "scale", "error", "layer", "facts"}
"""Arrays that later formats of these models have extended."""


@pytest.mark.parametrize("name", OLDER)
def test_files_of_version_1_are_read(name):
    data = (OLD / f"{name}.sapwood").read_bytes()
    assert version_of(data) == 1
    model = sapwood.load(OLD / f"{name}.sapwood")
    again = model.to_bytes()
    assert version_of(again) == (1 if name == "monitor" else 2)
    kind, header, arrays = container.unpack_any(data, "the old file")
    found, own, tables = container.unpack_any(again, "the new file")
    assert found == kind
    if name == "lags":  # the tree inside is a file of its own
        header, own = header["model"], own["model"]
        tables, arrays = ({**each, "model": np.zeros(0)} for each in (tables, arrays))
    else:
        header, own = header["model"]["features"], own["model"]["features"]
    assert own == header
    assert arrays.keys() <= tables.keys()
    kept = {each for each in arrays if each.split()[-1] not in LONGER_NOW}
    assert len(kept) >= 4
    for each in kept:
        assert tables[each].tobytes() == arrays[each].tobytes(), each
    assert sapwood.load(OLD / f"{name}.sapwood").to_bytes() == again


def test_a_limited_forest_of_format_2_goes_on_within_its_limit():
    """Its trees did not count the names of features and categories."""
    forest = sapwood.load(OLD / "limited_forest.sapwood")
    assert forest.nbytes <= forest.parameters["max_bytes"]
    for seed in range(10):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=500)
        forest.learn_many({"shop": ["shop 1"] * 500, "x": x}, np.sin(3 * x))
    assert forest.nbytes <= forest.parameters["max_bytes"]
    twin = type(forest).from_bytes(forest.to_bytes())
    assert (twin.nbytes, twin.to_bytes()) == (forest.nbytes, forest.to_bytes())
