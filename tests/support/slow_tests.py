"""The tests that `make check` leaves out, and the plugin of pytest that lists them.

``pytest -p slow_tests -m "not long" tests/unit tests/properties`` writes the list again: the functions
whose tests take at least `SLOW` seconds of processor time together, in this process and in others.
"""

import os
from collections import Counter

import pytest

from places import DATA

LIST = DATA / "slow_tests.txt"
SLOW = 0.5

_seconds: Counter[str] = Counter()


def names():
    """Return the functions of the list, by their file and name."""
    return frozenset(LIST.read_text(encoding="utf-8").split())


def function_of(item):
    """Return the file and the name of a test, without its parameters."""
    return item.nodeid.partition("[")[0]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Add up what a test takes."""
    before = sum(os.times()[:4])
    result = yield
    _seconds[function_of(item)] += sum(os.times()[:4]) - before
    return result


def pytest_sessionfinish():
    """Write the list."""
    slow = sorted(name for name, seconds in _seconds.items() if seconds >= SLOW)
    LIST.write_text("".join(f"{name}\n" for name in slow), encoding="utf-8")
