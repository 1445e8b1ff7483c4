"""`sapwood train --workers`: a job of what was typed, and how it went."""

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from sapwood.cli.failure import Terminal, UsageError
from sapwood.cli.follow import check_rows_read
from sapwood.cli.models import make_model, saved_model
from sapwood.cli.outputs import BadRowFile
from sapwood.cli.reading import Reading
from sapwood.cli.runs import Learning, Targets
from sapwood.cli.values import amount, settings
from sapwood.formatting import number, r_squared
from sapwood.model import StoredModel

if TYPE_CHECKING:
    from sapwood.scale import RoundReport
    from sapwood.scale.sources import Source

__all__ = ["WorkersJob"]

TRAINED = ("HoeffdingTreeRegressor", "ForestRegressor")
"""The models of numbers that workers can train."""


@dataclass(frozen=True)
class WorkersJob:
    """What workers are to learn, as it was typed.

    - `reading`, `targets`, `learning`: groups of options.
    """

    stream: list[str]
    reading: Reading
    targets: Targets
    learning: Learning
    workers: int
    engine: str

    def run(
        self, terminal: Terminal, bad_rows: Path | None, checkpoint: Path | None, every: str
    ) -> Any:
        """Learn all files; return the model, and how it went."""
        from sapwood.merge import MergeError
        from sapwood.scale import Rounds
        from sapwood.scale.engines import engine

        self._check(bad_rows, checkpoint)
        seconds, by_time = amount(every, "--every")
        if checkpoint is not None and not by_time:
            raise UsageError(f"--every {every}: with --workers it is a time, such as 30s")
        saved = saved_model(self.learning.model)
        reading = self.reading.for_model(saved, self.learning.model)
        with ExitStack() as stack:
            rejected = None if bad_rows is None else BadRowFile(bad_rows).open(None)
            if rejected is not None:
                stack.callback(rejected.close)
            try:
                opened = stack.enter_context(engine(self.engine, self.workers))
                rounds = Rounds(
                    self._model_for if saved is None else self._checked(saved),
                    self.stream,
                    workers=self.workers,
                    engine=opened,
                    read_options=reading.read_options() | {"targets": list(reading.target)},
                    on_bad_row=self.targets.on_bad_row,
                    checkpoint=checkpoint,
                    every=seconds,
                    listener=_Lines(terminal),
                    on_bad_rows=None if rejected is None else rejected.write_bad,
                )
                trained = rounds.run()
            except ModuleNotFoundError as error:
                if error.name not in ("distributed", "ray"):
                    raise
                extra = "dask" if error.name == "distributed" else "ray"
                raise UsageError(
                    f"--engine {self.engine} needs {error.name}: pip install 'sapwood[{extra}]'"
                ) from None
            except MergeError as error:
                raise UsageError(str(error)) from None
        _check_learned(trained, rounds.source.name)
        return trained

    def show(self, found: Any, terminal: Terminal) -> None:
        """Print the errors on the way, and what became of all rows."""
        terminal.say(
            f"MAE {number(found.mae, 5)}, RMSE {number(found.rmse, 5)}, R² {r_squared(found.r2)}: each "
            "row predicted before its worker learned it"
        )
        terminal.say(
            f"rows: {found.rows_read:,} read, {found.rows_learned:,} learned, "
            f"{found.refused.total():,} rejected"
        )
        if found.rows_without_target:
            terminal.say(f"  {found.rows_without_target:,} had no target: not learned")
        for reason, count in found.refused.most_common():
            terminal.say(f"  {count:,}: {reason}")
        rate = found.rows_read / max(found.seconds, 1e-9)
        terminal.say(
            f"time: {found.seconds:.2f} s, {rate:,.0f} rows/s; "
            f"{found.rounds} round{'' if found.rounds == 1 else 's'}, "
            f"{found.model.n_leaves:,} leaves, {found.model.nbytes / 1e6:.2f} MB"
        )

    def _check(self, bad_rows: Path | None, checkpoint: Path | None) -> None:
        """Complain of what workers cannot do."""
        if "-" in self.stream:
            raise UsageError("-: the standard input cannot be shared out: save it to a file")
        for name in self.stream:
            if name.startswith("kafka://"):
                raise UsageError(f"{name}: topics cannot be shared out: leave out --workers")
        later = {
            "--delay": self.targets.delay,
            "--labels": self.targets.labels,
            "--lags": self.learning.lags,
            "--lags-of": self.learning.lags_of,
            "--means": self.learning.means,
            "--means-of": self.learning.means_of,
            "--interval": self.learning.interval,
            **self.learning.of_the_target,
            "--time": self.reading.time,
        }
        for option, given in later.items():
            if given:
                raise UsageError(
                    f"{option} needs rows one after the other: leave it out, or leave out --workers"
                )
        if bad_rows is not None and checkpoint is not None:
            raise UsageError("--bad-rows cannot be resumed with --workers: leave out one of them")

    def _model_for(self, source: "Source") -> Any:
        """Make a model for what the files were found to hold."""
        about: Any = SimpleNamespace(
            features=source.features,
            declared=tuple(source.reading.get("categorical", ())),
            target=source.reading["target"],
            name=source.name,
        )
        own = settings(self.learning.set_, "--set")
        made = make_model(self.learning.model, own, about, self.learning.batch)
        if isinstance(made, StoredModel):
            made.schema = source.schema
        return self._checked(made)

    def _checked(self, model: Any) -> Any:
        """Return a model, or complain of one that workers cannot train."""
        if type(model).__name__ not in TRAINED:
            raise UsageError(
                f"--workers {self.workers}: model {self.learning.model} ({type(model).__name__}) "
                "cannot be trained by workers: pass -m tree or -m forest, or leave out --workers"
            )
        return model


def _check_learned(trained: Any, name: str) -> None:
    """Complain if no row was learned: a model of nothing would mislead."""
    check_rows_read(trained.rows_read, name)
    if trained.rows_learned == 0:
        counts = [f"{count:,}: {reason}" for reason, count in trained.refused.most_common()]
        if trained.rows_without_target:
            counts.append(f"{trained.rows_without_target:,} had no target")
        raise UsageError(
            f"{name}: none of {trained.rows_read:,} rows was learned ({'; '.join(counts)}): fix the "
            "rows, or leave out --on-bad-row skip to see the first"
        )


class _Lines:
    """Prints a line about a round whenever rows have doubled."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._next = 0

    def __call__(self, report: "RoundReport") -> None:
        if report.lost:
            self._terminal.say(
                f"sapwood: workers were lost {report.lost} times in round {report.round}: their "
                "shards were done again"
            )
        if report.total_rows < self._next:
            return
        self._next = 2 * report.total_rows
        rate = report.rows / max(report.seconds, 1e-9)
        self._terminal.say(
            f"round {report.round:>4}: {report.total_rows:>13,} rows, {report.leaves:>6,} leaves, "
            f"{rate:>11,.0f} rows/s, {100 * report.done:.0f} % read"
        )
