"""The Hypothesis profiles, neither of which has a clock.

``sapwood`` tries the same examples in every run. ``random``, which `make test-long` takes by
``--hypothesis-profile=random``, tries others each time, and more of them; what fails is kept in
``.hypothesis``, is tried first by the next such run, and is told by ``@reproduce_failure``.
"""

import gc
import os
import signal
import sys

import pytest
from _pytest.doctest import DoctestModule
from hypothesis import HealthCheck, Phase, settings

import slow_tests

# Who runs the tests in the background of a shell lets them ignore Ctrl-C, and all that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The tests start hundreds of processes. Where Python may not keep bytecode, each of them would compile
# all modules again, which is two thirds of its time.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Each process of the tests has one core. Threads of OpenMP and OpenBLAS that wait for another core wait
# by computing: an example with gradient boosting then takes eight times its processor time.
for library in ("OMP", "OPENBLAS"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

settings.register_profile(
    "sapwood",
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=60,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "random",
    deadline=None,
    max_examples=500,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("sapwood")


# Until all tests are collected, there is next to no garbage.
gc.disable()


@pytest.hookimpl(wrapper=True)
def pytest_collect_file():
    """Look for no examples in the docstrings of tests, which have none."""
    found = yield
    return [each for each in found if not isinstance(each, DoctestModule)]


def pytest_collection_finish():
    """Let no search for garbage look at the tests, which are millions of objects that stay."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_configure(config):
    """Let tests predict batches whose later rows have no lags, as rows with late labels have."""
    config.addinivalue_line("filterwarnings", "ignore:.*is not known from row:UserWarning")


def pytest_addoption(parser):
    """Add the option of `make check`."""
    parser.addoption(
        "--quick", action="store_true", help=f"leave out the tests of {slow_tests.LIST}"
    )


def pytest_collection_modifyitems(config, items):
    """Leave out slow tests, if that is asked for."""
    if config.getoption("--quick"):
        slow = slow_tests.names()
        left_out = [item for item in items if slow_tests.function_of(item) in slow]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if slow_tests.function_of(item) not in slow]


@pytest.fixture
def unsaved_charts(monkeypatch):
    """Draw charts of reports, but do not convert them to SVG, which takes three quarters of the time.

    For tests of the text of a report. `tests/unit/report` looks at charts.
    """
    from matplotlib.figure import Figure

    monkeypatch.setattr(
        Figure, "savefig", lambda self, file, **_: file.write(b'<svg viewBox="0 0 1 1"/>')
    )
