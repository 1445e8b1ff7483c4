"""Every state that an observer can reach is saved, loaded and copied, and goes on to the same bits.

As test_tree_states.py, for observers alone: they watch rows one by one or in batches, and are
merged; changed bytes of them are refused, or make an observer that works.
"""

from collections import Counter
from functools import partial
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from model_states import tried
from mutation_cases import changed_observer, pick
from sapwood import EBSTObserver, QuantizerObserver, TEBSTObserver
from state_cases import COPIES, NUMBERS, TARGETS, WEIGHTS, by_bytes, outcome

OBSERVERS = {
    "auto": QuantizerObserver,
    "auto-2": partial(QuantizerObserver, slots=2),
    "auto-8": partial(QuantizerObserver, slots=8),
    "auto, prototype": partial(QuantizerObserver, slots=16, cut="prototype"),
    "radius": partial(QuantizerObserver, 0.25),
    "small radius": partial(QuantizerObserver, 1e-9, cut="prototype"),
    "large radius": partial(QuantizerObserver, 1e300),
    "std/2": partial(QuantizerObserver, "std/2"),
    "ebst": EBSTObserver,
    "tebst": TEBSTObserver,
    "tebst-0": partial(TEBSTObserver, 0),
}


def rows_of(rng, count, style, targets):
    """Rows of a style: x, y and weights."""
    x, y, w = style
    columns = [TARGETS[y](rng, rng.normal(size=count)) for _ in range(targets)]
    y = columns[0] if targets == 1 else np.array(columns).T
    return NUMBERS[x](rng, count), y, WEIGHTS[w](rng, count)


@st.composite
def styles(draw):
    """What describes a batch of rows."""
    x = draw(st.one_of(st.just("normal"), st.sampled_from(sorted(NUMBERS))))
    y = draw(st.one_of(st.just("ordinary"), st.sampled_from(sorted(TARGETS))))
    w = draw(st.one_of(st.just("ones"), st.sampled_from(sorted(WEIGHTS))))
    return draw(st.integers(0, 999)), draw(st.integers(1, 60)), x, y, w


def answers(observer):
    """All that an observer says, as bytes."""
    thresholds, merits = observer.candidates()
    total = observer.total if observer.targets > 1 else [observer.total]
    split = observer.best_split()
    numbers = [
        *thresholds,
        *merits,
        *(part for each in total for part in (each.n, each.mean, each.m2)),
    ]
    if split is not None:
        sides = [split.left, split.right] if observer.targets == 1 else [*split.left, *split.right]
        numbers += [split.threshold, split.merit]
        numbers += [part for each in sides for part in (each.n, each.mean, each.m2)]
    return np.array(numbers)


class ObserverStates(RuleBasedStateMachine):
    """Two observers that are merged now and then, and their twins that come from bytes."""

    seen: ClassVar[Counter] = Counter()

    @initialize(kind=st.sampled_from(sorted(OBSERVERS)), width=st.sampled_from([1, 1, 2, 3]))
    def make(self, kind, width):
        self.pair = [OBSERVERS[kind](targets=width) for _ in range(2)]
        self.twins = [by_bytes(each) for each in self.pair]

    def both(self, work):
        """Let both pairs do the same, with the same outcome."""
        found = outcome(work, *self.pair)
        assert outcome(work, *self.twins) == found
        self.seen["rejected"] += isinstance(found, tuple)

    def rows(self, style):
        seed, count, *rest = style
        return rows_of(np.random.default_rng(seed), count, rest, self.pair[0].targets)

    @rule(style=styles(), which=st.integers(0, 1))
    def update_many(self, style, which):
        rows = self.rows(style)
        self.both(lambda *pair: pair[which].update_many(*rows))

    @rule(style=styles(), which=st.integers(0, 1))
    def update(self, style, which):
        for x, y, w in list(zip(*self.rows(style), strict=True))[:5]:
            self.both(lambda *pair, x=x, y=y, w=w: pair[which].update(x, y, w))

    @rule(which=st.integers(0, 1))
    def merge(self, which):
        self.both(lambda *pair: pair[which].merge(pair[1 - which]))
        self.seen["merged"] += 1

    @rule(way=st.sampled_from(COPIES), which=st.integers(0, 1))
    def copy(self, way, which):
        self.twins[which] = way(self.twins[which])
        self.seen["copied"] += 1

    @invariant()
    @precondition(lambda self: hasattr(self, "pair"))
    def saved_and_loaded(self):
        for observer, twin in zip(self.pair, self.twins, strict=True):
            data = observer.to_bytes()
            assert twin.to_bytes() == data
            loaded = type(observer).from_bytes(data)
            assert loaded.to_bytes() == data
            said = answers(observer)
            assert np.isfinite(said).all()
            assert answers(loaded).tobytes() == answers(twin).tobytes() == said.tobytes()
            self.seen["states saved and loaded"] += 1


def test_states_of_observers():
    seen = tried(ObserverStates, max_examples=50, stateful_step_count=20)
    assert seen["states saved and loaded"] > 500


@pytest.mark.long
def test_many_states_of_observers():
    seen = tried(ObserverStates, max_examples=5_000, stateful_step_count=30, derandomize=False)
    assert seen["states saved and loaded"] > 100_000
    assert min(seen.values()) > 0


# States that once were saved and could not be loaded


def test_the_smallest_weights():
    observer = QuantizerObserver(slots=2)
    for x, y in ((0.0, 1.0), (1.0, 2.5), (0.5, -1.7)):
        observer.update(x, y, 5e-324)
    assert by_bytes(observer).to_bytes() == observer.to_bytes()


@pytest.mark.parametrize("light", [5e-324, 1e-25, 1.0])
def test_weights_that_are_far_apart(light):
    """The mean of heavy rows is as inexact as the distance of light ones that came before."""
    observer = QuantizerObserver(slots=2)
    rng = np.random.default_rng(0)
    x = rng.normal(size=40)
    observer.update(0.0, 0.0, light)
    observer.update_many(x, 1e40 * rng.normal(size=40), np.full(40, light))
    observer.update_many(x, rng.normal(size=40), np.full(40, 1e7 * max(light, 1.0) * 1e30))
    assert by_bytes(observer).to_bytes() == observer.to_bytes()


# Changed bytes


def verdict(rng, kind, data):
    """Whether bytes are refused; if not, the observer has to work."""
    try:
        observer = kind.from_bytes(data)
    except ValueError:
        return "rejected"
    assert np.isfinite(answers(observer)).all()
    for style in (("normal", "ordinary", "ones"), ("outliers", "offset", "wild")):
        try:
            observer.update_many(*rows_of(rng, 150, style, observer.targets))
            observer.merge(by_bytes(observer))
        except OverflowError:  # it is full of weight, or y is too far from its first one
            pass
        assert np.isfinite(answers(observer)).all()
    assert by_bytes(observer).to_bytes() == observer.to_bytes()
    return "accepted"


def try_changed(seed, count):
    """Change observers of all kinds; how many were refused and accepted."""
    found = Counter()
    makers = list(OBSERVERS.values())
    for place in range(count):
        rng = np.random.default_rng([seed, place])
        observer = pick(rng, makers)(targets=pick(rng, (1, 1, 2)))
        observer.update_many(
            *rows_of(
                rng, pick(rng, (0, 1, 5, 40)), ("rounded", "ordinary", "eighths"), observer.targets
            )
        )
        with np.errstate(all="ignore"):
            data = changed_observer(rng, observer.to_bytes())
        found[verdict(rng, type(observer), data)] += 1
    print(f"\nchanged observers: {dict(found)}")
    return found


def test_changed_observers():
    found = try_changed(seed=0, count=1_000)
    assert min(found["rejected"], found["accepted"]) > 100


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2])
def test_many_changed_observers(seed):
    found = try_changed(seed, count=5_000)
    assert min(found["rejected"], found["accepted"]) > 500
