"""What an observer says that it occupies: true, and not more than 80 bytes an element."""

import sys
from functools import partial

import numpy as np
import pytest

from cases import every_observer, watching
from sapwood import EBSTObserver, QuantizerObserver, TEBSTObserver

BYTES_AN_ELEMENT = 80

UNBOUNDED = {
    "radius": partial(QuantizerObserver, 0.25),
    "ebst": EBSTObserver,
    "tebst": TEBSTObserver,
}


def table_bytes(observer):
    return sum(array.nbytes for array in observer._store.arrays())


@pytest.mark.parametrize("make", UNBOUNDED.values(), ids=UNBOUNDED.keys())
def test_an_element_takes_at_most_80_bytes_as_the_tables_grow(make):
    observer = make()
    rng = np.random.default_rng(0)
    for count, x in enumerate(rng.permutation(5000).astype(float), start=1):
        observer.update(x, 1.0)
        assert len(observer) == count
        if count >= 100:
            assert observer.nbytes <= BYTES_AN_ELEMENT * count
            assert observer.nbytes >= 48 * count  # a key, weight, prototype and moment cell


@pytest.mark.parametrize("make", UNBOUNDED.values(), ids=UNBOUNDED.keys())
@pytest.mark.parametrize("count", [100, 101, 128, 129, 1000, 1025, 4097])
def test_an_element_takes_at_most_80_bytes_after_a_batch_a_copy_or_a_merge(make, count):
    x = np.random.default_rng(count).permutation(count).astype(float)
    whole = watching(make(), x, x)
    parts = [watching(make(), x[start::2], x[start::2]) for start in (0, 1)]
    for observer in (whole, whole.copy(), parts[0] + parts[1]):
        assert len(observer) == count
        assert observer.nbytes <= BYTES_AN_ELEMENT * count


@pytest.mark.parametrize("slots", [128, 200, 1000])
def test_an_automatic_radius_takes_at_most_80_bytes_an_element(slots):
    observer = QuantizerObserver(slots=slots)
    rng = np.random.default_rng(slots)
    sizes = set()
    for x in rng.normal(size=5 * slots):
        observer.update(x, 1.0)
        if len(observer) >= 100:
            sizes.add(len(observer))
            assert observer.nbytes <= BYTES_AN_ELEMENT * len(observer)
    assert sizes >= set(range(100, slots + 1))
    assert watching(observer, rng.normal(size=20_000), np.ones(20_000)).nbytes <= (
        BYTES_AN_ELEMENT * max(len(observer), 100)
    )
    copied = observer.copy()
    assert copied.nbytes <= BYTES_AN_ELEMENT * max(len(copied), 100)


@every_observer
@pytest.mark.parametrize("targets", [1, 5])
@pytest.mark.parametrize("count", [0, 1, 100, 3000])
def test_nbytes_counts_the_tables_and_the_object(make, targets, count):
    rng = np.random.default_rng(count)
    observer = make(targets=targets)
    observer.update_many(
        rng.normal(size=count),
        rng.normal(size=(count, targets)).squeeze(-1)
        if targets == 1
        else rng.normal(size=(count, targets)),
    )
    assert observer.nbytes >= table_bytes(observer) + sys.getsizeof(observer)
    assert table_bytes(observer) >= len(observer) * 8 * (3 + 3 * targets)
    assert observer.nbytes <= table_bytes(observer) + 2000
