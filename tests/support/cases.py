"""What several test files share: the observers under test, rows to watch, and comparisons."""

import math
import subprocess
import sys
from contextlib import contextmanager
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import strategies as st

import naive
from sapwood import EBSTObserver, QuantizerObserver, TEBSTObserver

# Seconds after which a process that does not end is taken to hang, however slow the machine is.
PATIENCE = 600

# Each makes an empty observer; all take `targets`.
OBSERVERS = {
    "radius": partial(QuantizerObserver, radius=0.25),
    "prototype": partial(QuantizerObserver, radius=0.25, cut="prototype"),
    "auto": QuantizerObserver,
    "auto-4": partial(QuantizerObserver, slots=4),
    "ebst": EBSTObserver,
    "tebst": TEBSTObserver,
}

every_observer = pytest.mark.parametrize("make", OBSERVERS.values(), ids=OBSERVERS.keys())

anything_finite = st.floats(allow_nan=False, allow_infinity=False)
ordinary_x = st.one_of(st.integers(-20, 20).map(float), st.floats(-50, 50, allow_subnormal=False))
# Squares of what is smaller are no doubles any more.
ordinary_y = st.one_of(
    st.integers(-3, 3).map(float),
    st.floats(-1e6, 1e6).map(lambda number: number if abs(number) > 1e-100 else 0.0),
)
eighths = st.integers(1, 80).map(lambda number: number / 8)  # weights whose sums are exact


@st.composite
def streams(draw, *, x=ordinary_x, w=eighths, targets=1, min_size=0, max_size=40):
    """Arrays x (n,), y (n,) or (n, targets), and w (n,)."""
    y = ordinary_y if targets == 1 else st.tuples(*[ordinary_y] * targets)
    rows = draw(st.lists(st.tuples(x, y, w), min_size=min_size, max_size=max_size))
    shape = (len(rows),) if targets == 1 else (len(rows), targets)
    return (
        np.array([row[0] for row in rows], dtype=float),
        np.array([row[1] for row in rows], dtype=float).reshape(shape),
        np.array([row[2] for row in rows], dtype=float),
    )


def watching(observer, x, y, w=None):
    """Return the observer after it watched the rows."""
    observer.update_many(x, y, w)
    return observer


def predicted_one_by_one(model, rows, y):
    """Predict each row, then learn it; return the predictions."""
    found = []
    for x, label in zip(rows, y.tolist(), strict=True):
        found.append(model.predict_one(x))
        model.learn_one(x, label)
    return found


def one_by_one(observer, x, y, w=None):
    """Return the observer after it watched the rows in single updates."""
    for row, value in enumerate(x):
        weight = {} if w is None else {"w": w[row]}
        observer.update(value, y[row], **weight)
    return observer


def close(actual, exact, scale, tolerance=1e-12):
    """Whether a double is right to a tolerance, relative to a scale (or nearly underflows)."""
    error = abs(Fraction(float(actual)) - Fraction(exact))
    return error <= Fraction(tolerance) * abs(Fraction(scale)) + Fraction(1e-290)


def assert_moments(moments, y, w=None):
    """The moments are those of the rows: weight exactly, mean and M2 to 1e-12."""
    n, mean, m2 = naive.exact_moments(y, w)
    assert moments.n == n
    assert close(moments.mean, mean, max(map(abs, y), default=0), 1e-14)
    assert close(moments.m2, m2, m2)


def assert_like_reference(observer, reference):
    """Elements, thresholds, merits and the sides of the best cut are those of the reference."""
    assert len(observer) == len(reference)
    thresholds, merits = observer.candidates()
    np.testing.assert_array_equal(thresholds, reference.thresholds())
    if len(reference) < 2:
        assert observer.best_split() is None
        return
    exact = reference.merits()
    scale = naive.variance(reference.y, reference.w)
    assert all(close(*pair, scale) for pair in zip(merits, exact, strict=True))
    split = observer.best_split()
    cut = thresholds.tolist().index(split.threshold)
    # Merits that are equal in truth may differ in their last bits, and so change places.
    assert cut == reference.best_cut() or close(exact[cut], max(exact), scale, 1e-15)
    assert close(split.merit, exact[cut], exact[cut] + scale / 1000)
    left = reference.left_of(cut)
    assert_moments(split.left, reference.y[left], reference.w[left])
    assert_moments(split.right, reference.y[~left], reference.w[~left])


def assert_finite_answers(observer):
    """Nothing that the observer reports is NaN or infinite."""
    thresholds, merits = observer.candidates()
    assert np.isfinite(thresholds).all()
    assert np.isfinite(merits).all()
    total = observer.total
    for moments in total if isinstance(total, list) else [total]:
        assert all(map(math.isfinite, (moments.n, moments.mean, moments.m2)))


@contextmanager
def unchanged(*observers):
    """Check that a block, whatever it raises, leaves observers as they were."""
    before = [observer.to_bytes() for observer in observers]
    yield
    assert [observer.to_bytes() for observer in observers] == before


def run_apart(program, *, seconds=PATIENCE):
    """Run a program that might crash or hang in a process of its own; what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout
