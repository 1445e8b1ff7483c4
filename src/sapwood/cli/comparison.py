"""A comparison of models on streams: what comparisons of numbers and of classes have in common."""

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from rich.markup import escape
from rich.table import Table

from sapwood.cli.columns import show_columns
from sapwood.cli.failure import Terminal, UsageError, visible
from sapwood.cli.follow import check_rows_read
from sapwood.cli.options import LagOptions
from sapwood.cli.progress import RunProgress
from sapwood.cli.reading import Reading
from sapwood.cli.runs import Learning, Targets
from sapwood.evaluate.class_run import ClassRun
from sapwood.formatting import number
from sapwood.streams.stream import StreamError

if TYPE_CHECKING:
    from sapwood.evaluate.ranking import Ranking

__all__ = ["Comparison", "Failed"]


@dataclass(frozen=True)
class Failed:
    """A model that failed: its error message, and the number of rows before it."""

    words: str
    rows_learned: int
    seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return that in terms of JSON."""
        return {"failed": self.words, "rows": {"learned": self.rows_learned}}


class Comparison(ABC):
    """Several models on several streams, ranked; a model that fails on a stream is last there.

    - `measure`: by which models are ranked, a key of `titles`; the first of them by default.
    """

    titles: ClassVar[Mapping[str, str]]
    best_is_largest: ClassVar[Sequence[str]]

    def __init__(
        self,
        streams: list[str],
        models: list[str],
        reading: Reading,
        targets: Targets,
        lags: LagOptions,
        *,
        measure: str | None,
    ) -> None:
        self.measure = measure or next(iter(self.titles))
        self.streams, self.models = streams, models
        self.reading, self.targets, self._lags = reading, targets, lags
        self.found: list[list[Any]] = []
        if self.measure not in self.titles:
            raise UsageError(self.wrong_measure)

    @property
    @abstractmethod
    def wrong_measure(self) -> str:
        """The message about a measure that is not for these targets."""

    @abstractmethod
    def make_run(self, stream: str, learning: Learning) -> tuple[Any, Any]:
        """Return the run of a model on a stream, and its lags."""

    @abstractmethod
    def value(self, cell: Any) -> float:
        """Return what a model is ranked by: NaN, the worst, if it has no error on all rows."""

    @abstractmethod
    def rows_of(self, row: Sequence[Any]) -> int:
        """Return how many rows of a stream models have learned."""

    @property
    def title(self) -> str:
        """The measure, as diagrams show it."""
        return self.titles[self.measure]

    @property
    def table_title(self) -> str:
        """What stands above the table."""
        return f"{self.title} over all rows"

    def shown(self, value: float) -> str:
        """Return a value for the table."""
        return number(value, 4)

    def baselines(self, row: Sequence[Any] | None = None) -> list[str]:
        """Return the names of baselines that get columns of their own, or their values in a row."""
        return []

    def parts(self, row: Sequence[Any]) -> Iterator[tuple[str, list[Any]]]:
        """Yield further rows below that of a stream."""
        yield from ()

    def notes(self, row: Sequence[Any]) -> Iterator[str]:
        """Yield what else there is to know about a stream."""
        yield from ()

    def run(self, terminal: Terminal) -> None:
        """Evaluate all models on all streams."""
        for name in self.streams:
            runs = [self.make_run(name, Learning(model=m, **vars(self._lags))) for m in self.models]
            show_columns(terminal, runs[0][0].stream, runs[0][1])
            self.found.append(
                [
                    _evaluated(terminal, run, spec)
                    for (run, _), spec in zip(runs, self.models, strict=True)
                ]
            )
        if all(isinstance(cell, Failed) for row in self.found for cell in row):
            raise UsageError(f"model {self.models[0]}: {self.found[0][0].words}")

    @property
    def ranking(self) -> "Ranking":
        """The average ranks of models."""
        from sapwood.evaluate.ranking import rank

        values = np.array([[self.value(cell) for cell in row] for row in self.found])
        return rank(values, self.models, larger_is_better=self.measure in self.best_is_largest)

    def verdict(self, names: Mapping[str, str] | None = None) -> str:
        """Return whether the ranks of models differ."""
        from sapwood.evaluate.ranking import ENOUGH

        ranking = self.ranking
        if ranking.tests is None:
            return f"too few to test whether ranks differ: {ENOUGH} streams and 3 models are needed"
        names = names or dict(zip(ranking.models, ranking.models, strict=True))
        groups = [", ".join(names[model] for model in group) for group in ranking.groups()]
        alike = f"not significantly different: {'; '.join(groups)}" if groups else "all differ"
        return (
            f"Friedman's test: p = {ranking.tests.friedman_p:.2g}; critical difference "
            f"{ranking.tests.critical_difference:.2f} (Nemenyi, alpha = 0.05); {alike}"
        )

    def show(self, *, as_json: bool, quiet: bool) -> None:
        """Print the results."""
        if as_json:
            print(json.dumps(self.to_dict(), indent=2))
        elif not quiet:
            self._print()

    def to_dict(self) -> dict[str, Any]:
        """Return a result of each model on each stream, and ranks, in terms of JSON."""
        ranking = self.ranking
        tests = ranking.tests
        return {
            "results": [
                {**cell.to_dict(), "stream": name, "model": model}
                for name, row in zip(self.streams, self.found, strict=True)
                for model, cell in zip(self.models, row, strict=True)
            ],
            "ranks": dict(zip(ranking.models, ranking.ranks, strict=True)),
            "friedman_p": None if tests is None else tests.friedman_p,
            "critical_difference": None if tests is None else tests.critical_difference,
        }

    def draw(self, path: Path) -> None:
        """Draw average ranks, and which of them do not differ."""
        from sapwood.plot.ranks import ranks

        drawn = ranks(self.ranking, title=f"Average rank by {self.title}").get_figure(root=True)
        assert drawn is not None
        drawn.savefig(path, bbox_inches="tight")

    def write_report(self, path: Path) -> None:
        """Write the HTML report."""
        from sapwood.report.comparison import write_comparison
        from sapwood.report.titles import names_of_models

        ranking = self.ranking
        ranks = dict(zip(ranking.models, ranking.ranks, strict=True))
        words = self.verdict(names_of_models(ranks))
        results = {
            name: {
                spec: cell.words if isinstance(cell, Failed) else cell
                for spec, cell in zip(self.models, row, strict=True)
            }
            for name, row in zip(self.streams, self.found, strict=True)
        }
        write_comparison(path, results, ranks, measure=self.measure, verdict=words)

    def _print(self) -> None:
        terminal, ranking = Terminal(highlight=False), self.ranking
        table = Table(title=self.table_title, title_justify="left")
        table.add_column("stream")
        table.add_column("rows", justify="right")
        for name in (*self.models, *self.baselines()):
            table.add_column(escape(visible(name)), justify="right", overflow="fold")
        for name, row in zip(self.streams, self.found, strict=True):
            self._add(table, Path(name).name, row, self.baselines(row))
            for part, own in self.parts(row):
                self._add(table, f"  {part}", own)
        table.add_section()
        places = dict(zip(ranking.models, ranking.ranks, strict=True))
        table.add_row("average rank", "", *(f"{places[model]:.2f}" for model in self.models))
        seconds = [sum(cell.seconds for cell in own) for own in zip(*self.found, strict=True)]
        table.add_row("seconds", "", *(number(value, 3) for value in seconds))
        terminal.print(table)
        for name, row in zip(self.streams, self.found, strict=True):
            for words in (*self.notes(row), *self._failures(row)):
                terminal.say(f"{name}: {words}")
        terminal.say(self.verdict())

    def _add(self, table: Table, name: str, row: Sequence[Any], more: Sequence[str] = ()) -> None:
        """Add what models reached on a stream or of a target; the best is bold."""
        values = [self.value(cell) for cell in row]
        known = [value for value in values if not math.isnan(value)]
        best = (max if self.measure in self.best_is_largest else min)(known, default=math.nan)
        cells = [
            "failed"
            if isinstance(cell, Failed)
            else f"[bold]{self.shown(value)}[/]"
            if value == best
            else self.shown(value)
            for cell, value in zip(row, values, strict=True)
        ]
        table.add_row(escape(visible(name)), f"{self.rows_of(row):,}", *cells, *more)

    def _failures(self, row: Sequence[Any]) -> Iterator[str]:
        for model, cell in zip(self.models, row, strict=True):
            if isinstance(cell, Failed):
                yield (
                    f"{model} is last, for it failed after {cell.rows_learned:,} rows: {cell.words}"
                )


def _evaluated(terminal: Terminal, run: Any, model: str) -> Any:
    try:
        with RunProgress(terminal, run, title=f"{model} on {run.stream.name}") as progress:
            for step in run.steps():
                progress.update(step.done)
            found = run.finish()
    except (OSError, StreamError):
        raise  # of the stream, which no other model could read either
    except Exception as error:  # whatever a model raises
        words = " ".join(f"{type(error).__name__}: {error}".split())
        return Failed(words, run.rows_read if isinstance(run, ClassRun) else run.rows_learned)
    check_rows_read(run.rows_read, run.stream.name)
    run.check_used()
    return found
