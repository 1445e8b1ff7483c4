"""Trees of classes take the decisions of the reference implementation, by the rules of classes."""

import numpy as np

import naive_targets
import naive_tree
from naive_targets import NaiveTargets
from sapwood import HoeffdingTreeRegressor
from sapwood.classify.growth import ClassGrowth, least_evidence
from target_cases import NAMES
from target_reference_cases import learned, same_leaves, same_splits


def gini_units(together):
    return [1.0 if face.seen.variance else 0.0 for face in together.faces]


def stream(count):
    rng = np.random.default_rng(3)
    for _ in range(count):
        x = {"u": rng.random(), "v": rng.random()}
        code = int((x["u"] + x["v"]) * 1.499)
        yield x, {name: float(place == code) for place, name in enumerate(NAMES)}, 1.0


def test_splits_are_those_of_the_reference(monkeypatch):
    assert len(NAMES) == 3
    monkeypatch.setattr(naive_targets.Together, "units", property(gini_units))
    monkeypatch.setattr(naive_tree, "LEAST_EVIDENCE", least_evidence(3, 5.0))
    tree = HoeffdingTreeRegressor(grace_period=80)
    tree._use_growth(ClassGrowth(3))
    twin = NaiveTargets(NAMES, grace_period=40, split_bound="none")
    learned(list(stream(450)), tree, twin)
    assert len(twin.splits) >= 2
    same_splits(tree, twin)
    same_leaves(tree, twin)


def test_two_classes_grow_as_one_target_does():
    rules = object()
    for rate, number in ((0.0, 1), (6.0, 0), (6.0, 3)):
        assert ClassGrowth(2)(rules, rate, number) is rules
