"""Every example runs, and says what its first lines promise."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest

from cases import PATIENCE
from places import ROOT

EXAMPLES = ROOT / "examples"
PROMISED = {
    "bike_demand": r"RMSE .* better than[\s\S]*%  cnt\.lag1",
    "keep_your_lightgbm": r"RMSE after it: [\s\S]*drift event at row [\s\S]*the same prediction",
    "many_series": r"without lags: RMSE[\s\S]*with lags: RMSE[\s\S]*50 series",
    "moved_from_river": r"1\. our tree[\s\S]*3\. without river +MAE",
    "production": r"rough: killed\nrough: ended\n(the \.\w+ of both are the same\n){2}city,hour,",
    "sensors_with_alarms": r"errors of pump07 have changed: [\s\S]*alarms of others: 0",
    "watch_a_stream": r"QO auto[\s\S]*E-BST",
}


def bikes(path):
    """Write a file with the columns of the bicycles, in which the same hour of a day is alike."""
    rng = np.random.default_rng(2)
    lines = ["instant,dteday,hr,temp,casual,registered,cnt"]
    for row in range(3_000):
        casual, registered = rng.integers(0, 9), 20 + 10 * (row % 24) + rng.integers(0, 9)
        day = np.datetime64("2011-01-01") + row // 24
        lines.append(f"{row + 1},{day},{row % 24},0.5,{casual},{registered},{casual + registered}")
    path.write_text("\n".join(lines) + "\n")


def test_all_examples_are_here():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(PROMISED)


@pytest.mark.parametrize("name", PROMISED)
def test_an_example_does_what_it_says(name, tmp_path):
    bikes(tmp_path / "hour.csv")
    arguments = ["hour.csv"] if name == "bike_demand" else []
    ended = subprocess.run(
        [sys.executable, EXAMPLES / f"{name}.py", *arguments],
        stdin=subprocess.DEVNULL,
        cwd=tmp_path,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-2000:]
    assert re.search(PROMISED[name], ended.stdout), ended.stdout
