"""Runs the study: every cell twice, first for what is found, then for how long it takes.

The first pass uses all cores. The second has the machine to itself, one cell at a time, so that
timings do not disturb one another. Each cell is written as soon as it is done.
"""

import gc
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, as_completed
from math import log2
from typing import NamedTuple

import pandas as pd
import pyarrow as pa

from sapwood.paper.errors import StudyError
from sapwood.paper.folder import StudyFolder
from sapwood.paper.measure import measure_splits, measure_times
from sapwood.paper.observers import Factory, find_contender
from sapwood.paper.protocol import Cell, Plan, all_cells
from sapwood.scale.processes import ProcessExecutor, WorkerLostError
from sapwood.system import system

__all__ = ["RESULTS", "Progress", "run_study"]

RESULTS = "results.parquet"


class Progress(NamedTuple):
    """How far the study is; the efforts are proportional to the time that they take."""

    doing: str
    done: float
    total: float


class _Pass(NamedTuple):
    """One way through all cells."""

    kind: str
    doing: str
    measure: Callable[[Cell, int, Sequence[Factory]], pa.Table]
    overhead: float
    alone: bool

    def workers(self) -> int:
        return 1 if self.alone else system.cores

    def effort(self, cell: Cell, runs: int) -> float:
        """Return what a cell costs; E-BST's n log n outweighs everything else."""
        return runs * (cell.n * log2(cell.n) / 20 + self.overhead) / self.workers()


SPLITS = _Pass("splits", "finding splits", measure_splits, overhead=1_000, alone=False)
TIMES = _Pass("times", "measuring times", measure_times, overhead=15_000, alone=True)


def run_study(
    folder: StudyFolder,
    plan: Plan,
    observers: Sequence[str],
    report_progress: Callable[[Progress], None],
) -> pd.DataFrame:
    """Run what is missing of a study, and gather all of it.

    - `folder`: where the study is kept; cells that are done are not run again.
    - `observers`: names for `find_contender`.
    - Returns one row for each cell, run and observer; also written as ``results.parquet``.
    - Raises StudyError if the folder cannot be used, a part is damaged, or an observer is unknown
      or fails.
    """
    for name in observers:
        find_contender(name)
    folder.open(plan, observers)
    cells = all_cells(plan.sizes)
    rows = plan.runs * len(observers)
    total = sum(each.effort(cell, plan.runs) for each in (SPLITS, TIMES) for cell in cells)
    missing = {each: _missing(folder, each.kind, cells, rows) for each in (SPLITS, TIMES)}
    done = total - sum(
        each.effort(cell, plan.runs) for each, some in missing.items() for cell in some
    )
    for each, some in missing.items():
        report_progress(Progress(each.doing, done, total))
        for cell in _run_pass(each, folder, some, plan.runs, observers):
            done += each.effort(cell, plan.runs)
            report_progress(Progress(each.doing, done, total))
    report_progress(Progress("writing the report", total, total))
    results = _gather(folder, cells, rows)
    folder.write_table(RESULTS, results)
    return results.to_pandas()


def _missing(folder: StudyFolder, kind: str, cells: Sequence[Cell], rows: int) -> list[Cell]:
    """Return the cells that are not done; raise for a damaged part before anything is run."""
    missing = []
    for cell in cells:
        if folder.has_part(kind, cell):
            folder.read_part(kind, cell, rows)
        else:
            missing.append(cell)
    return missing


def _run_pass(
    each: _Pass, folder: StudyFolder, cells: Sequence[Cell], runs: int, observers: Sequence[str]
) -> Iterator[Cell]:
    """Run some cells, the largest first so that no core is idle at the end."""
    if not cells:
        return
    pool = ProcessExecutor(each.workers(), _prepare_to_measure if each.alone else None)
    waiting: dict[Future[None], Cell] = {}
    try:
        for cell in sorted(cells, key=lambda cell: -cell.n):
            work = pool.submit(_run_cell, each.kind, folder, cell, runs, tuple(observers))
            waiting[work] = cell
        for work in as_completed(waiting):
            work.result()
            yield waiting[work]
    except WorkerLostError as error:
        raise StudyError(
            "a worker process was killed, perhaps for want of memory: run the command again to "
            "go on where it stopped"
        ) from error
    finally:
        pool.kill_workers()  # all is done, or what is not will be done by the next run


def _prepare_to_measure() -> None:
    """Keep a worker on one core, and from collecting garbage while times are measured."""
    gc.disable()
    system.stay_on_one_core()


def _run_cell(
    kind: str, folder: StudyFolder, cell: Cell, runs: int, observers: Sequence[str]
) -> None:
    measure = {each.kind: each.measure for each in (SPLITS, TIMES)}[kind]
    folder.write_part(kind, cell, measure(cell, runs, [find_contender(name) for name in observers]))


def _gather(folder: StudyFolder, cells: Sequence[Cell], rows: int) -> pa.Table:
    """Join the parts of both passes to one tidy table."""
    parts = []
    for cell in cells:
        splits = folder.read_part(SPLITS.kind, cell, rows)
        times = folder.read_part(TIMES.kind, cell, rows)
        if not all(splits[key].equals(times[key]) for key in ("run", "observer")):
            raise StudyError(
                f"the two parts of {cell} do not belong together: delete the folder "
                f"{folder.path}, or choose another"
            )
        factors = {name: [value] * rows for name, value in cell._asdict().items()}
        columns = {name: splits[name] for name in splits.column_names}
        seconds = {name: times[name] for name in times.column_names[2:]}
        parts.append(pa.table({**factors, **columns, **seconds}))
    return pa.concat_tables(parts)
