from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from sapwood.cli.app import app
from sapwood.paper import protocol

TINY = protocol.Plan(sizes=(50, 150), runs=2)


class Finished(NamedTuple):
    """A study that `sapwood paper --quick` made, with fewer sizes than it has."""

    path: Path
    result: Result
    table: pd.DataFrame


@pytest.fixture(scope="session")
def tiny_plan() -> Iterator[protocol.Plan]:
    """Make `--quick` quicker."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(protocol, "QUICK", TINY)
        yield TINY


@pytest.fixture(scope="session")
def finished(tiny_plan: protocol.Plan, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    path = tmp_path_factory.mktemp("study") / "new" / "folder"
    result = CliRunner().invoke(app, ["paper", "--quick", "--output", str(path)])
    assert result.exit_code == 0, result.output
    return Finished(path, result, pd.read_parquet(path / "results.parquet"))
