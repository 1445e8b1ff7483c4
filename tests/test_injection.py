"""Whatever breaks off what is being done, a model is as before or as after, and can be used.

Exceptions are raised at every line and every bytecode, allocations fail one by one, and signals
arrive at random moments: see `injection`. The quick form tries points here and there.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from injection_cases import CASES

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="sweeps need processes that fork")

SCRIPT = Path(__file__).with_name("injection.py")
LONGEST = 3000  # seconds that a sweep may take; only for one that hangs
EVERYWHERE = ("lines", "bytecodes", "allocation", "allocations", "array", "arrays")
INTERRUPTIONS = 200
BATCHES = [name for name in CASES if name.startswith("batches")]


def swept(fault, cases, *options):
    """Sweep, and return the reports."""
    if fault.startswith("allocation"):
        pytest.importorskip("_testcapi", reason="Python was built without _testcapi")
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
    return [f"{report['case']}: {each}" for report in reports for each in report["told"]]


@pytest.mark.parametrize("fault", EVERYWHERE)
def test_here_and_there(fault):
    reports = swept(fault, CASES, "--most-points", "5")
    assert complaints(reports) == []
    assert sum(report["points"] for report in reports) > 100


def test_signals_at_a_few_moments():
    [report] = swept("timer", ["batches"], "--strikes", "20")
    assert complaints([report]) == []
    assert report["points"] == 20


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not limit memory so")
def test_too_little_memory_for_the_process():
    [report] = swept("address-space", ["wide"])
    assert complaints([report]) == []
    assert report["points"] > 5


@pytest.mark.long
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("fault", EVERYWHERE)
def test_everywhere(fault, case):
    assert complaints(swept(fault, [case])) == []


@pytest.mark.long
@pytest.mark.parametrize("case", BATCHES)
def test_signals_at_many_moments(case):
    # The seeds of the delays are 1, 2, 3, … until so many signals have arrived in time.
    [report] = swept("timer", [case], "--strikes", str(INTERRUPTIONS))
    assert complaints([report]) == []
    assert report["points"] == INTERRUPTIONS
