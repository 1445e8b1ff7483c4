"""The study from the command line: what it writes, how it resumes, and how it fails."""

import gc
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from cases import PATIENCE
from sapwood.cli.app import app
from sapwood.observers._watch import Watch
from sapwood.paper import protocol, run
from sapwood.paper.findings import check_study
from sapwood.paper.folder import StudyFolder
from sapwood.paper.measure import measure_times
from sapwood.paper.observers import OURS, PAPERS, find_contender
from sapwood.paper.statistics import METRICS, average_over_runs, compare

TIMES = ["observe_seconds", "query_seconds"]
FIGURES = ("metrics", "ranks", "ranks-all", "differences", "regret", "numerics")


def invoke(*arguments: object):
    return CliRunner().invoke(app, ["paper", "--quick", *map(str, arguments)])


def test_everything_is_written(finished) -> None:
    files = {str(file.relative_to(finished.path)) for file in finished.path.rglob("*.*")}
    expected = {f"figures/{name}.{suffix}" for name in FIGURES for suffix in ("png", "svg")}
    expected |= {"results.parquet", "report.html", "summary.md", "numerics.parquet", "study.json"}
    assert expected <= files
    assert finished.result.stdout.strip() == str(finished.path / "report.html")


def test_the_table_is_tidy(finished, tiny_plan) -> None:
    table = finished.table
    keys = ["n", "distribution", "target", "noisy", "run", "observer"]
    assert len(table) == 36 * len(tiny_plan.sizes) * tiny_plan.runs * 6
    assert not table.duplicated(keys).any()
    assert set(table["observer"]) == {*PAPERS, *OURS}
    assert table.notna().all().all()
    assert (table[["merit", "elements", "bytes", *TIMES]] > 0).all().all()
    trees = table[table["observer"] == "E-BST"]
    assert (trees["split_difference"] == 0).all()
    assert (trees["elements"] == trees["n"]).all()


def test_the_report_has_its_parts_and_needs_nothing_else(finished) -> None:
    page = (finished.path / "report.html").read_text(encoding="utf-8")
    for name in FIGURES:
        assert f'<figure id="{name}"><img src="data:image/svg+xml;base64,' in page
    assert "<script" not in page
    assert 'src="http' not in page
    assert 'href="http' not in page
    for word in ("paper", "ours", "difference", "within one CD?", "processor", "numpy"):
        assert word in page


def test_the_reports_numbers_are_the_tables(finished) -> None:
    page = (finished.path / "report.html").read_text(encoding="utf-8")
    summary = (finished.path / "summary.md").read_text(encoding="utf-8")
    averages = average_over_runs(finished.table)
    papers = [compare(averages, metric, list(PAPERS)) for metric in METRICS]
    everyone = [compare(averages, metric, [*PAPERS, *OURS]) for metric in METRICS]
    for comparison in [*papers, *everyone]:
        for rank in comparison.ranks:
            assert f"<td>{rank:.3f}</td>" in page
            assert f"| {rank:.3f} |" in summary
    for check in check_study(papers, everyone, averages):
        assert f"| {check.evidence} | {'yes' if check.holds else 'no'} |" in summary


def test_a_finished_study_is_not_run_again(finished, tiny_plan, monkeypatch) -> None:
    monkeypatch.setattr(run, "ProcessExecutor", None)
    before = (finished.path / "results.parquet").read_bytes()
    table = run.run_study(
        StudyFolder(finished.path), tiny_plan, [*PAPERS, *OURS], lambda progress: None
    )
    pd.testing.assert_frame_equal(table, finished.table)
    assert (finished.path / "results.parquet").read_bytes() == before


# A study that kills itself when so many cells are done.
SCRIPT = """
import os, signal, sys
from sapwood.cli.app import app
from sapwood.paper import protocol, run

class Progress(run.Progress):
    left = int(sys.argv[2])

    def __init__(self, *told):
        Progress.left -= 1
        if Progress.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    protocol.QUICK = protocol.Plan(sizes=(50, 150), runs=2)
    run.Progress = Progress
    run.all_cells = lambda sizes: protocol.all_cells(sizes)[::5]
    app(["paper", "--quick", "--output", sys.argv[1]])
"""


@pytest.mark.parametrize("reports", [7, pytest.param(20, marks=pytest.mark.long)])
def test_a_killed_study_ends_with_the_same_table(
    finished, tiny_plan, tmp_path, monkeypatch, reports
) -> None:
    """Each fifth cell is run: there are 15 of them in either pass."""
    script, path = tmp_path / "study.py", tmp_path / "out"
    script.write_text(SCRIPT, encoding="utf-8")
    command = [sys.executable, script, path, str(reports)]
    victim = subprocess.run(command, stderr=subprocess.DEVNULL, timeout=PATIENCE, check=False)
    assert victim.returncode == -signal.SIGKILL
    done = {part: part.stat().st_mtime_ns for part in path.glob("parts/*/*.parquet")}
    cells = protocol.all_cells(tiny_plan.sizes)[::5]
    assert reports - 2 <= len(done) < 2 * len(cells)
    monkeypatch.setattr(run, "all_cells", lambda sizes: cells)
    table = run.run_study(StudyFolder(path), tiny_plan, [*PAPERS, *OURS], lambda progress: None)
    rows = len(finished.table) // len(protocol.all_cells(tiny_plan.sizes))  # of each cell
    expected = finished.table[np.arange(len(finished.table)) // rows % 5 == 0]
    pd.testing.assert_frame_equal(
        table.drop(columns=TIMES),
        expected.drop(columns=TIMES).reset_index(drop=True),
        check_exact=True,
    )
    assert {part: part.stat().st_mtime_ns for part in done} == done


def test_a_damaged_part_is_named(finished, tmp_path) -> None:
    path = tmp_path / "damaged"
    subprocess.run(["cp", "-r", finished.path, path], check=True)
    part = sorted(path.glob("parts/splits/*.parquet"))[5]
    data = bytearray(part.read_bytes())
    data[len(data) // 4] ^= 0xFF
    part.write_bytes(data)
    result = invoke("--output", path)
    assert result.exit_code == 2
    assert f"sapwood: {part} is damaged" in result.stderr
    assert "delete it and run the command again" in result.stderr
    part.write_bytes(b"")
    assert invoke("--output", path).exit_code == 2


def test_a_folder_of_another_study_is_refused(finished) -> None:
    result = invoke("--output", finished.path, "--observer", "sapwood:EBSTObserver")
    assert result.exit_code == 2
    assert "holds a study with other observers" in result.stderr


def test_an_unwritable_folder_is_one_line(tmp_path) -> None:
    (tmp_path / "file").touch()
    result = invoke("--output", tmp_path / "file" / "folder")
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert "cannot be written: Not a directory" in result.stderr


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nothing", "unknown; the study has E-BST"),
        ("no_such_module:x", "module no_such_module cannot be imported"),
        ("sapwood:Nothing", "module sapwood has no Nothing"),
        ("sapwood:__version__", "__version__ cannot be called"),
        ("builtins:dict", "has no update_many, best_split, nbytes"),
        ("sapwood:Split", "the factory requires threshold, merit, left, right"),
    ],
)
def test_an_unknown_observer_is_one_line(tmp_path: Path, name: str, message: str) -> None:
    result = invoke("--output", tmp_path / "new", "--observer", name)
    assert result.exit_code == 2
    assert f"observer {name}: " in result.stderr
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "new").exists()


def test_an_observer_is_added_by_one_line(tmp_path, monkeypatch) -> None:
    module = tmp_path / "coarse_observers.py"
    module.write_text(
        "from sapwood import QuantizerObserver\n"
        "def whole_sd(sd):\n    return QuantizerObserver(radius=sd)\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert find_contender("coarse_observers:whole_sd").make(2.0).radius == 2.0
    names = [*PAPERS, *OURS, "coarse_observers:whole_sd"]
    monkeypatch.setattr(run, "all_cells", lambda sizes: protocol.all_cells(sizes)[:3])
    folder = StudyFolder(tmp_path / "out")
    table = run.run_study(folder, protocol.Plan((50,), 1), names, lambda progress: None)
    assert list(table["observer"]) == names * 3


def test_an_observer_that_fails_is_named(tmp_path, monkeypatch) -> None:
    module = tmp_path / "failing_observers.py"
    module.write_text(
        "from sapwood import EBSTObserver\n"
        "class Failing(EBSTObserver):\n"
        "    def best_split(self):\n        raise ArithmeticError('too hard')\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(tmp_path)
    result = invoke("--output", tmp_path / "out", "--observer", "failing_observers:Failing")
    assert result.exit_code == 2
    assert "observer failing_observers:Failing failed on n = " in result.stderr
    assert "too hard" in result.stderr


def test_a_worker_that_is_killed_ends_the_study_in_words(tmp_path, monkeypatch) -> None:
    module = tmp_path / "dying_observers.py"
    module.write_text(
        "import signal\n"
        "from sapwood import EBSTObserver\n"
        "class Dying(EBSTObserver):\n"
        "    def best_split(self):\n        signal.raise_signal(signal.SIGKILL)\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(tmp_path)
    result = invoke("--output", tmp_path / "out", "--observer", "dying_observers:Dying")
    assert result.exit_code == 2
    told = "a worker process was killed, perhaps for want of memory: run the command again to"
    assert told in " ".join(result.stderr.split())


def test_a_missing_package_names_the_extra(tmp_path, monkeypatch) -> None:
    monkeypatch.delitem(sys.modules, "sapwood.paper.study")
    monkeypatch.setitem(sys.modules, "pandas", None)
    result = invoke("--output", tmp_path)
    assert result.exit_code == 2
    assert result.stderr == "sapwood: pandas is not installed: pip install 'sapwood[paper]'\n"


@pytest.mark.long
def test_the_real_quick_study_runs_as_a_program(tmp_path) -> None:
    command = "from sapwood.cli import main\nif __name__ == '__main__':\n    main()\n"
    script = tmp_path / "command.py"
    script.write_text(command, encoding="utf-8")
    arguments = [sys.executable, script, "paper", "--quick", "--output", tmp_path / "out"]
    done = subprocess.run(arguments, check=True, capture_output=True, text=True)
    assert done.stdout.strip() == str(tmp_path / "out" / "report.html")
    assert (tmp_path / "out" / "report.html").stat().st_size > 100_000


def test_measuring_times_keeps_no_observer_alive() -> None:
    """Workers have no garbage collector: what refers to itself would stay for ever."""
    cell = protocol.Cell(50, "N(0, 1)", "lin", noisy=False)
    gc.collect()
    gc.disable()
    try:
        before = observers_alive()
        measure_times(cell, 2, [*PAPERS.values()])
        assert observers_alive() == before
    finally:
        gc.enable()


def observers_alive() -> int:
    return sum(isinstance(thing, Watch) for thing in gc.get_objects())
