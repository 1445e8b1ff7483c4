"""Files of trees that were made to do harm, each by one lie: the checksum is right.

That a change at any other place does no harm either is the matter of test_tree_file_damage.py.
"""

import numpy as np
import pytest

from sapwood import EBSTObserver, HoeffdingTreeRegressor, QuantizerObserver
from sapwood.model import State
from sapwood.rows.features import CATEGORY
from sapwood.tree import tree_state
from tree_file_cases import (
    Tree,
    assert_refused,
    grown,
    packed,
    refused_or_harmless,
    with_idle_leaves,
)

# A tree that is none

ROOT_CASES = {
    "root is its own child": ("child", 0, 0),
    "root is a leaf of its own": ("kind", 0, 0),
    "child before its parent": ("child", -3, 1),
    "child of another": ("child", 0, 3),
    "parent is another": ("parent", 1, 2),
    "parent is itself": ("parent", 2, 2),
    "root has a parent": ("parent", 0, 0),
    "depth": ("depth", 3, 7),
    "kind": ("kind", 0, 3),
    "way of missing values": ("missing_left", 0, 2),
}


@pytest.mark.parametrize(("field", "place", "value"), ROOT_CASES.values(), ids=ROOT_CASES.keys())
def test_nodes_that_are_no_tree(field, place, value):
    header, arrays = tree_state.state_of(grown())
    inner = np.flatnonzero(arrays["nodes"]["kind"])
    arrays["nodes"] = arrays["nodes"].copy()
    arrays["nodes"][field][inner[place] if place < 0 else place] = value
    assert_refused(packed(header, arrays), "is damaged: ")


def test_two_splits_that_share_their_children():
    header, arrays = tree_state.state_of(grown())
    nodes = arrays["nodes"].copy()
    one, other = np.flatnonzero(nodes["kind"])[1:3]
    nodes["child"][other] = nodes["child"][one]
    assert_refused(packed(header, arrays, nodes=nodes))


def test_a_cycle():
    header, arrays = tree_state.state_of(grown())
    nodes = arrays["nodes"].copy()
    deepest = np.flatnonzero(nodes["kind"])[-1]
    nodes["child"][deepest] = nodes["parent"][deepest]
    assert_refused(packed(header, arrays, nodes=nodes), "the child of node")


def test_leaves_that_are_swapped():
    header, arrays = tree_state.state_of(grown())
    leaves = arrays["leaves"].copy()
    leaves[[0, 1]] = leaves[[1, 0]]
    assert_refused(packed(header, arrays, leaves=leaves), "a leaf belongs to another node")
    nodes = arrays["nodes"].copy()
    at = np.flatnonzero(nodes["kind"] == 0)[:2]
    nodes["child"][at] = nodes["child"][at[::-1]]
    assert_refused(packed(header, arrays, nodes=nodes), "a leaf belongs to another node")
    nodes["child"][at] = 0
    assert_refused(packed(header, arrays, nodes=nodes), "nodes share a leaf, or have none")


def test_no_nodes_at_all():
    header, arrays = tree_state.state_of(grown())
    empty = {name: array[:0] for name, array in arrays.items() if name in ("nodes", "leaves")}
    assert_refused(packed(header, arrays, **empty), "there cannot be 0 nodes and 0 leaves")


def test_leaves_that_do_not_watch_are_never_due():
    """They have no page to decide by."""
    header, arrays = tree_state.state_of(with_idle_leaves())
    for field in ("due", "review"):
        leaves = arrays["leaves"].copy()
        leaves[field][0] = 1.0
        assert_refused(packed(header, arrays, leaves=leaves), f"the {field} of leaf 0 is wrong")


def test_leaves_that_say_that_they_watch():
    header, arrays = tree_state.state_of(with_idle_leaves())
    leaves = arrays["leaves"].copy()
    leaves["watching"][:2] = [1, 0]
    assert_refused(packed(header, arrays, leaves=leaves))
    leaves["watching"] = 1
    assert_refused(packed(header, arrays, leaves=leaves), "the pages of what is watched have shape")


def test_splits_on_features_that_are_not_there():
    header, arrays = tree_state.state_of(grown())
    names = header["features"]["names"]
    for feature in (-1, len(names), 2**31 - 1, names.index("none")):
        nodes = arrays["nodes"].copy()
        nodes["feature"][0] = feature
        assert_refused(packed(header, arrays, nodes=nodes), "feature")


def test_nodes_below_the_depth_that_is_allowed():
    header, arrays = tree_state.state_of(grown())
    header["parameters"]["max_depth"] = 1
    assert_refused(packed(header, arrays), "below the depth of 1")


# What leaves watch by


def raw_state():
    tree = grown(rows=20)
    header, arrays = tree_state.state_of(tree)
    return header, {name: array.copy() for name, array in arrays.items()}, tree._kernel


@pytest.mark.parametrize("kept", [-1.0, 0.5, 24.0, 25.0, 1e9, 1e300])
def test_more_kept_rows_than_there_is_room_for(kept):
    header, arrays, _ = raw_state()
    assert arrays["watches"][0, 3] == 17  # in three rows x0 is missing
    arrays["watches"][0, 3] = kept
    assert_refused(packed(header, arrays), "the number of rows that are kept is wrong in page 0")


def test_kept_rows_that_are_none():
    header, arrays, kernel = raw_state()
    start = kernel.slot_start(0)
    arrays["watches"][0, start] = 0.0
    assert_refused(packed(header, arrays), "a row that is kept has no weight")


@pytest.mark.parametrize("change", [(0, -1.0), (1, 2.0), (2, 0.0), (2, -1.0), (2, 1e9), (3, 5.0)])
def test_grids_of_categories_are_fixed(change):
    header, arrays = tree_state.state_of(grown())
    place, value = change
    watches = arrays["watches"].copy()
    watches[0, 4 * header["features"]["kinds"].index(CATEGORY) + place] = value
    assert_refused(packed(header, arrays, watches=watches), "the grid of a category is wrong")


def test_grids_where_observers_watch():
    header, arrays = tree_state.state_of(grown(observer=EBSTObserver()))
    for place in range(4):
        watches = arrays["watches"].copy()
        watches[0, place] = 1.0
        assert_refused(packed(header, arrays, watches=watches), "what was never seen")


def test_slots_of_rows_that_the_leaf_never_saw():
    tree = grown()
    header, arrays = tree_state.state_of(tree)
    watches = arrays["watches"].copy()
    watches[0, tree._kernel.slot_start(1)] += 1e6
    assert_refused(packed(header, arrays, watches=watches), "more rows than their leaf")


# Observers


def observer_state(**parameters):
    tree = grown(**parameters)
    header, arrays = tree_state.state_of(tree)
    own = [each for leaf in tree._kernel.observers for each in leaf or ()]
    return header, arrays, own


def with_observers(arrays, blobs):
    sizes = np.array([len(blob) for blob in blobs], dtype=np.int64)
    return {
        **arrays,
        "observer_sizes": sizes,
        "observers": np.frombuffer(b"".join(blobs), dtype=np.uint8),
    }


def like(observer, **changed):
    return type(observer)(**{**observer._parameters(), **changed})


def test_observers_of_another_kind():
    header, arrays, own = observer_state(observer=QuantizerObserver(0.25))
    blobs = [each.to_bytes() for each in own]
    others = {
        "radius": like(own[0], radius=0.5),
        "auto": QuantizerObserver(targets=2),
        "one target": like(own[0], targets=1),
        "cut": like(own[0], cut="prototype"),
        "std": like(own[0], radius="std/2"),
        "ebst": EBSTObserver(targets=2),
    }
    for other in others.values():
        changed = [other.to_bytes(), *blobs[1:]]
        assert_refused(packed(header, with_observers(arrays, changed)), "is damaged: ")
    assert not refused_or_harmless(packed(header, with_observers(arrays, blobs)))


def test_observers_of_features_that_are_not_observed():
    header, arrays, own = observer_state(observer=EBSTObserver())
    blobs = [each.to_bytes() for each in own]
    for name in ("colour", "none"):
        place = header["features"]["names"].index(name)
        changed = [*blobs]
        changed[place] = blobs[0]
        words = f"feature {place} was never observed"
        assert_refused(packed(header, with_observers(arrays, changed)), words)


def test_observers_of_more_rows_than_their_leaf():
    header, arrays, own = observer_state(observer=EBSTObserver())
    observer = like(own[0])
    observer.update_many(np.arange(2000.0), np.zeros((2000, 2)))
    blobs = [observer.to_bytes(), *(each.to_bytes() for each in own[1:])]
    assert_refused(packed(header, with_observers(arrays, blobs)), "more rows than their leaf")


def test_observers_whose_bytes_or_sizes_are_wrong():
    header, arrays, _ = observer_state(observer=EBSTObserver())
    rng = np.random.default_rng(0)
    for place in rng.integers(0, len(arrays["observers"]), 50):
        data = arrays["observers"].copy()
        data[place] ^= 1
        # A bit of its version is reported as that, all others as a damaged observer.
        assert_refused(packed(header, arrays, observers=data), "is damaged: ")
    sizes = arrays["observer_sizes"]
    for first, second in ((1, -1), (-(2**62), 2**62), (2**63 - 1 - sizes[0], 0)):
        changed = sizes.copy()
        changed[:2] += [first, second]
        assert_refused(packed(header, arrays, observer_sizes=changed))
    wrapping = np.full(len(sizes), 2**62)
    wrapping[3] += len(arrays["observers"])
    assert_refused(packed(header, arrays, observer_sizes=wrapping), "the sizes of its observers")
    assert_refused(packed(header, arrays, observer_sizes=sizes[:-1]), "observers, not")


# Parameters and features


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("grace_period", True),
        ("grace_period", 40),
        ("grace_period", -1.0),
        ("delta", 2.0),
        ("min_share", 0.9),
        ("leaf", "mean"),
        ("leaf", "forest"),
        ("split_on", None),
        ("track", "never"),
        ("max_bytes", 100),
        ("max_bytes", 20_000),
        ("max_bytes", -1),
        ("max_depth", 0),
        ("max_depth", 2.0),
        ("observer", ["QuantizerObserver", {"radius": "auto", "slots": 16}]),
        ("observer", ["EBSTObserver", {"targets": 1}]),
        ("observer", ["Moments", {}]),
        ("observer", ["object", {}]),
        ("observer", [["EBSTObserver"], {"targets": 1}]),
        ("observer", "EBSTObserver"),
        ("categorical", ["x0"]),
    ],
)
def test_parameters_that_do_not_fit(name, value):
    header, arrays = tree_state.state_of(grown(leaf="adaptive"))
    header["parameters"][name] = value
    assert_refused(packed(header, arrays), "is damaged: ")


def test_a_tree_larger_than_its_limit():
    tree = grown()
    header, arrays = tree_state.state_of(tree)
    header["parameters"]["max_bytes"] = tree.nbytes
    twin = HoeffdingTreeRegressor.from_bytes(packed(header, arrays))
    assert twin.nbytes == tree.nbytes
    header["parameters"]["max_bytes"] = tree.nbytes - 1
    words = f"it occupies {tree.nbytes} bytes and its max_bytes are {tree.nbytes - 1}"
    assert_refused(packed(header, arrays), words)


@pytest.mark.parametrize(
    ("field", "place", "value"),
    [
        ("kinds", 0, "category"),
        ("kinds", 0, "unknown"),
        ("kinds", 2, "number"),
        ("kinds", 2, "unknown"),
        ("kinds", 3, "category"),
        ("kinds", 0, "word"),
        ("names", 0, "x1"),
        ("names", 0, None),
        ("names", 0, True),
        ("labels", 0, ["a"]),
        ("labels", 2, ["red"] * 4),
        ("labels", 2, list(map(str, range(64)))),
        ("labels", 2, [[]]),
    ],
)
def test_features_that_do_not_fit(field, place, value):
    header, arrays = tree_state.state_of(grown())
    header["features"][field][place] = value
    assert_refused(packed(header, arrays), "is damaged: ")


def test_a_small_file_takes_little_memory():
    """A header that promises thousands of features is refused before there is room for them."""
    header, arrays = tree_state.state_of(Tree(observer=QuantizerObserver(slots=4096)))
    names = [f"x{place}" for place in range(4096)]
    header["features"] = {
        "names": names,
        "kinds": ["number"] * 4096,
        "labels": [[]] * 4096,
        "categorical": [],
    }
    assert_refused(packed(header, arrays), "the levels have shape")


def test_covariances_beyond_all_bounds_contradict_each_other():
    """So large that the correlation overflows, which a decomposition would not complain of."""
    header, arrays = tree_state.state_of(grown(leaf="linear"))
    features = len(header["features"]["names"])
    terms = (features + 4) // 4 * 4
    matrix = arrays["models"][0][4 * terms + 2 * features :].reshape(terms, terms)
    matrix[0, 1] = matrix[1, 0] = 1e308
    with pytest.raises(ValueError, match="the covariances of leaf 0 contradict"):
        HoeffdingTreeRegressor.from_state(State(header, arrays), HoeffdingTreeRegressor.format)
