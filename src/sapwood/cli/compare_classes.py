"""`sapwood compare` where the targets are classes."""

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.markup import escape
from rich.table import Table

from sapwood.cli.classes import ClassJob
from sapwood.cli.columns import show_columns
from sapwood.cli.failure import Terminal, UsageError, visible
from sapwood.cli.follow import check_not_empty
from sapwood.cli.progress import RunProgress
from sapwood.cli.ranks import Failed, described, verdict
from sapwood.cli.reading import Reading
from sapwood.cli.runs import Learning, Targets
from sapwood.evaluate.classes import ClassEvaluation
from sapwood.evaluate.ranking import Ranking, rank
from sapwood.formatting import number
from sapwood.streams.stream import StreamError

__all__ = ["CLASS_MEASURES", "CLASS_MODELS", "ClassComparison"]

CLASS_MODELS = ("tree", "adaptive", "forest")
CLASS_MEASURES = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "kappa": "Cohen's kappa",
    "log_loss": "log-loss",
}
BASELINES = {"majority": "accuracy_majority", "last": "accuracy_no_change"}

Cell = ClassEvaluation | Failed


class ClassComparison:
    """Several classifiers over several streams, ranked.

    - `streams`, `models`: as they were typed.
    - `reading`, `targets`, `learning`: as of `sapwood.cli.runs.make_run`; of learning, the lags.
    - `measure`: by which models are ranked, a key of `CLASS_MEASURES`; accuracy by default.
    """

    def __init__(
        self,
        streams: list[str],
        models: list[str],
        reading: Reading,
        targets: Targets,
        learning: Learning,
        *,
        measure: str | None,
    ) -> None:
        self.measure = measure or "accuracy"
        if self.measure not in CLASS_MEASURES:
            known = ", ".join(CLASS_MEASURES)
            raise UsageError(
                f"--measure {measure} is for numbers, and the target is a class: choose of {known}"
            )
        self.streams, self.models = streams, models
        self._reading, self._targets, self._learning = reading, targets, learning
        self.found: list[list[Cell]] = []

    @property
    def title(self) -> str:
        """The measure, as diagrams show it."""
        return CLASS_MEASURES[self.measure]

    def run(self, terminal: Terminal) -> None:
        """Evaluate all models on all streams; one that fails is last there."""
        for name in self.streams:
            jobs = [
                ClassJob([name], self._reading, replace(self._learning, model=spec), self._targets)
                for spec in self.models
            ]
            show_columns(terminal, jobs[0].stream, getattr(jobs[0].model, "lags", None))
            self.found.append(
                [_evaluated(terminal, *each) for each in zip(jobs, self.models, strict=True)]
            )
        if all(isinstance(cell, Failed) for row in self.found for cell in row):
            first = self.found[0][0]
            assert isinstance(first, Failed)
            raise UsageError(f"model {self.models[0]}: {first.words}")

    @property
    def ranking(self) -> Ranking:
        """The average ranks of models."""
        values = np.array([[self._value(cell) for cell in row] for row in self.found])
        return rank(values, self.models, larger_is_better=self.measure != "log_loss")

    def _value(self, cell: Cell) -> float:
        return math.nan if isinstance(cell, Failed) else cell.scores.metrics()[self.measure]

    def show(self, *, as_json: bool, quiet: bool) -> None:
        """Print the results."""
        ranking = self.ranking
        if as_json:
            print(json.dumps(described(self.streams, self.models, self.found, ranking), indent=2))
        elif not quiet:
            self._print(ranking)

    def write_report(self, path: Path) -> None:
        """Write the HTML report."""
        from sapwood.report.class_comparison import write_class_comparison
        from sapwood.report.titles import names_of_models

        results = {
            name: {
                spec: cell.words if isinstance(cell, Failed) else cell
                for spec, cell in zip(self.models, row, strict=True)
            }
            for name, row in zip(self.streams, self.found, strict=True)
        }
        ranking = self.ranking
        words = verdict(ranking, names_of_models(ranking.models))
        write_class_comparison(path, results, ranking, self.measure, words)

    def _print(self, ranking: Ranking) -> None:
        terminal = Terminal(highlight=False)
        table = Table(title=f"{self.title} over all rows", title_justify="left")
        table.add_column("stream")
        table.add_column("rows", justify="right")
        baselines = list(BASELINES) if self.measure == "accuracy" else []
        for name in (*self.models, *baselines):
            table.add_column(escape(visible(name)), justify="right", overflow="fold")
        for name, row in zip(self.streams, self.found, strict=True):
            known = [cell for cell in row if isinstance(cell, ClassEvaluation)]
            rows = max((cell.scores.rows for cell in known), default=0)
            of_first = known[0].scores.metrics() if known else {}
            shown = [f"{of_first.get(BASELINES[each], math.nan):.4f}" for each in baselines]
            table.add_row(escape(visible(Path(name).name)), f"{rows:,}", *self._cells(row), *shown)
        table.add_section()
        places = dict(zip(ranking.models, ranking.ranks, strict=True))
        table.add_row("average rank", "", *(f"{places[model]:.2f}" for model in self.models))
        seconds = [
            sum(row[place].seconds for row in self.found) for place in range(len(self.models))
        ]
        table.add_row("seconds", "", *(number(value, 3) for value in seconds))
        terminal.print(table)
        for name, row in zip(self.streams, self.found, strict=True):
            for model, cell in zip(self.models, row, strict=True):
                if isinstance(cell, Failed):
                    terminal.say(
                        f"{name}: {model} is last, for it failed after {cell.rows_learned:,} rows: "
                        f"{cell.words}"
                    )
        terminal.say(verdict(ranking))

    def _cells(self, row: Sequence[Cell]) -> list[str]:
        """Return what models reached on a stream; the best is bold."""
        values = [self._value(cell) for cell in row]
        known = [value for value in values if not math.isnan(value)]
        best = (min if self.measure == "log_loss" else max)(known, default=math.nan)
        cells = [f"[bold]{v:.4f}[/]" if v == best else f"{v:.4f}" for v in values]
        return [
            "failed" if isinstance(cell, Failed) else words
            for cell, words in zip(row, cells, strict=True)
        ]


def _evaluated(terminal: Terminal, job: ClassJob, model: str) -> Cell:
    run: Any = job.run
    try:
        with RunProgress(terminal, run, title=f"{model} on {job.stream.name}") as progress:
            for step in run.steps():
                progress.update(step.done)
            found: ClassEvaluation = run.finish()
    except (OSError, StreamError):
        raise  # of the stream, which no other model could read either
    except Exception as error:  # whatever a model raises
        return Failed(f"{type(error).__name__}: {error}", run.rows_read)
    check_not_empty(run)
    run.check_used()
    return found
