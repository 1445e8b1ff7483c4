"""Random requests by the OpenAPI description: every answer is as described, none is a fault."""

import subprocess
import sys

import pytest

from cases import PATIENCE
from serve_cases import saved, serving

TOKEN = "0123456789abcdef-token"


@pytest.mark.parametrize(
    ("kind", "rows", "how"),
    [
        ("tree", 2_000, ([], {})),
        ("intervals", 2_000, ([], {})),
        ("tree", 0, (["--no-learn"], {})),
        ("forest", 500, ([], {"SAPWOOD_TOKEN": TOKEN})),
        ("lags", 500, ([], {})),
        ("targets", 500, ([], {})),
        ("classes", 2_000, ([], {})),
    ],
    ids=["tree", "intervals", "no-learning", "token", "lags", "targets", "classes"],
)
@pytest.mark.parametrize("examples", [12, pytest.param(60, marks=pytest.mark.long)])
def test_schemathesis_finds_no_failure(tmp_path, kind, rows, how, examples):
    options, env = how
    path = saved(tmp_path, rows, kind)
    with serving(path, *options, env=env) as (server, _):
        command = [
            *(sys.executable, "-m", "schemathesis.cli", "run"),
            *(f"{server.url}/openapi.json", f"--max-examples={examples}", "--seed=1", "--no-color"),
            *("--generation-deterministic", "--suppress-health-check=all", "--wait-for-schema=60"),
        ]
        if env:
            command += ["--header", f"Authorization: Bearer {TOKEN}"]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE, check=False, cwd=tmp_path
        )
        assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
        assert server.process.poll() is None
        assert not [line for line in server.lines if line["level"] in ("error", "critical")]
        assert server.stop() == 0
