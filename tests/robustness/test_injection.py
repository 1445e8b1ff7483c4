"""Whatever breaks off what is being done, a model is as before or as after, and can be used.

Exceptions are raised at every line and every bytecode, allocations fail one by one, and signals
arrive at random moments: see `injection`. The quick form tries points here and there.
"""

import json
import os
import subprocess
import sys

import pytest

from injection_cases import CASES
from places import SUPPORT

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="sweeps need processes that fork")

SCRIPT = SUPPORT / "injection.py"
LONGEST = 3000  # seconds that a sweep may take; only for one that hangs
INTERRUPTIONS = 200
# Of each fault, about how many points of a case the long form tries; None for all of them.
FAULTS = {
    "lines": None,
    "bytecodes": 2000,
    "allocation": 2000,
    "allocations": 500,
    "array": None,
    "arrays": 200,
    "kernel": None,
    "kernels": None,
}
SOME_CASES = (
    "new features, one",
    "new features, mapping",
    "new features, E-BST",
    "first features, array",
    "new categories, mapping",
    "unknown kinds, one",
    "split, slots",
    "split, E-BST",
    "targets, first",
    "targets, split",
    "targets, new category",
    "classes, known",
    "classes, new one",
    "review",
    "other units of a feature",
    "ranking, slots",
    "from_bytes",
    "delta",
    "classes, one",
    "classes, unlabelled one",
    "prune",
    "no splits",
    "union, trees",
    "save",
    "looking",
    "forest, looking",
    "forest, new features",
    "forest, targets, first",
    "update, auto, coarser",
    "update_many, radius",
    "merge, auto",
    "merge, coarser",
    "checkpoint",
    "run",
)


# Before each line there is a bytecode, so that few cases suffice for lines. Where arrays may not be
# allocated, each allocation is slow. Kernels ask for memory themselves in a few cases.
CASES_OF_FAULTS = {
    "lines": SOME_CASES[::6],
    "bytecodes": SOME_CASES,
    "allocation": SOME_CASES,
    "array": SOME_CASES[::2],
    "kernel": ("split, E-BST", "update, auto, coarser", "merge, auto", "merge, coarser"),
}


def swept(fault, cases, *options):
    """Sweep, and return the reports."""
    if fault.startswith("kernel") and not (sys.platform == "linux" and sys.maxsize > 2**32):
        pytest.skip("only files in the format of 64-bit Linux are understood")
    if fault.startswith("allocation"):
        pytest.importorskip("_testcapi", reason="Python was built without _testcapi")
        if sys.version_info >= (3, 13):
            pytest.skip("NumPy itself crashes on Python 3.13 if small allocations fail")
    done = subprocess.run(
        [sys.executable, str(SCRIPT), fault, *cases, *options],
        stdout=subprocess.PIPE,
        text=True,
        timeout=LONGEST,
        check=True,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
    )
    reports = [json.loads(line) for line in done.stdout.splitlines()]
    for report in reports:
        left = ", ".join(f"{count} {how}" for how, count in report["left"].items())
        print(f"{report['fault']}, {report['case']}: {report['points']} points; {left}")
    assert [report["case"] for report in reports] == [*cases]
    return reports


def complaints(reports):
    return [f"{report['case']}: {each}" for report in reports for each in report["described"]]


@pytest.mark.parametrize("fault", CASES_OF_FAULTS)
def test_here_and_there(fault):
    reports = swept(fault, CASES_OF_FAULTS[fault], "--most-points", "4")
    assert complaints(reports) == []
    assert sum(report["points"] for report in reports) > 5


def test_signals_at_a_few_moments():
    [report] = swept("timer", ["batches"], "--strikes", "20")
    assert complaints([report]) == []
    assert report["points"] == 20


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not limit memory so")
def test_too_little_memory_for_the_process():
    # How much of the megabytes comes from memory that was freed before is up to the C library.
    [report] = swept("address-space", ["wide"], "--most-points", "30")
    assert complaints([report]) == []
    assert report["points"] > 0


@pytest.mark.long
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("fault", FAULTS)
def test_everywhere(fault, case):
    options = [] if FAULTS[fault] is None else ["--most-points", str(FAULTS[fault])]
    assert complaints(swept(fault, [case], *options)) == []


@pytest.mark.long
@pytest.mark.parametrize("case", ["batches", "batches, E-BST", "batches, max_bytes"])
def test_signals_at_many_moments(case):
    # The seeds of the delays are 1, 2, 3, … until so many signals have arrived in time.
    [report] = swept("timer", [case], "--strikes", str(INTERRUPTIONS))
    assert complaints([report]) == []
    assert report["points"] == INTERRUPTIONS
