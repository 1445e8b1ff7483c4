"""What the tests of features share: features that know something, and values of every kind."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

from sapwood.rows.features import Features

NAN = math.nan
INF = math.inf
LONG = "x" * 2000


def known(**more):
    """Features that have seen a number `a`, a category `c`, and `u` only as missing."""
    features = Features(**more)
    features.matrix({"a": [1.0], "c": ["red"], "u": [None]}, learn=True)
    return features


def same(actual, expected):
    np.testing.assert_array_equal(actual, np.array(expected, dtype=float))
    assert actual.dtype == np.float64
    assert actual.flags.c_contiguous


class Key(str):
    """Two of them are never the same key of a dict."""

    __slots__ = ()
    __eq__ = object.__eq__
    __hash__ = object.__hash__


plain_values = st.one_of(
    st.none(),
    st.floats(allow_infinity=False),
    st.integers(-3, 3),
    st.booleans(),
    st.sampled_from(["red", "blue", "", "3"]),
)
odd_values = st.sampled_from(
    (
        np.float32(0.5),
        np.int8(3),
        np.str_("red"),
        np.bool(True),
        Decimal("3"),
        Fraction(1, 2),
        INF,
        10**400,
        LONG,
        b"red",
        [],
        1j,
        np.ma.masked,
        np.array(2.5),
        Decimal("NaN"),
        2**63,
    )
)
names = st.sampled_from(["a", "c", "u", "day", "new", 7])
values = plain_values | odd_values
