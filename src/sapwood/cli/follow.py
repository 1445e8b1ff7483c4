"""Follow a stream to its end: with a bar, with checkpoints, and so that it can be interrupted."""

import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import typer
from rich.console import Console

from sapwood import HoeffdingTreeRegressor
from sapwood.cli.failure import INTERRUPTED, UsageError
from sapwood.cli.outputs import BadRowFile, PredictionFile
from sapwood.cli.progress import RunProgress
from sapwood.cli.values import amount
from sapwood.evaluate.checkpoint import CheckpointError, CheckpointFile, Saved
from sapwood.evaluate.prequential import Prequential
from sapwood.streams.stream import MOST_ROWS

__all__ = ["Follower"]

TERMINATED = 143


class _Abandoned(BaseException):
    """The run was interrupted a second time, in the middle of its work."""


@dataclass
class Follower:
    """A run, the files that grow with it, and when it is saved.

    Parameters
    ----------
    run : Prequential
        The run, not yet started.
    console : Console
        Where people look.
    identity : dict
        What is evaluated on what: a checkpoint of anything else is refused.
    outputs : list of files
        What grows along with the run.
    checkpoint : Path, optional
        Where it is saved.
    every : str
        How often, as it was typed.
    """

    run: Prequential
    console: Console
    identity: dict[str, Any]
    outputs: list[PredictionFile | BadRowFile] = field(default_factory=list)
    checkpoint: Path | None = None
    every: str = "60s"

    def __post_init__(self) -> None:
        self._every, self._by_time = amount(self.every, "--every")
        self._file = None if self.checkpoint is None else CheckpointFile(self.checkpoint)
        if self._file is not None:
            if not isinstance(self.run.model, HoeffdingTreeRegressor):
                raise UsageError("--checkpoint: only trees of sapwood can be saved")
            if any(output.path == "-" for output in self.outputs):
                raise UsageError("--checkpoint: standard output cannot be resumed, name a file")

    def follow(self) -> None:
        """Read, predict and learn all rows, from where an earlier run was saved."""
        saved = self._resume()
        self._signal = 0
        with ExitStack() as stack:
            for output in self.outputs:
                length = None if saved is None else saved.outputs.get(output.path)
                stack.callback(output.open(length).close)
            stack.enter_context(self._on_signals())
            try:
                self._loop()
            except KeyboardInterrupt:
                self._stop()
            except _Abandoned:
                self._say("interrupted at once: what was saved before stays as it is")
                raise typer.Exit(INTERRUPTED) from None

    def _resume(self) -> Saved | None:
        """Go on from the checkpoint, if there is one."""
        saved = None if self._file is None else self._file.load()
        if self._file is None or saved is None:
            return None
        if self._file.warning:
            self._say(f"sapwood: {self._file.warning}")
        for name, value in self.identity.items():
            if saved.identity.get(name) != value:
                raise CheckpointError(
                    f"{self._file.path} belongs to another run, whose {name} was "
                    f"{saved.identity.get(name)}, not {value}: name another file, or remove it"
                )
        self.run.learner.model = saved.model
        saved.resume(self.run)
        self._say(f"going on after {self.run.rows_read:,} rows, from {self._file.path}")
        return saved

    def _loop(self) -> None:
        most_rows = MOST_ROWS
        if self._file is not None and not self._by_time:
            most_rows = max(1, min(MOST_ROWS, int(self._every)))
        self._saved_at = self._mark()
        with RunProgress(self.console, self.run) as progress:
            steps = self.run.steps(most_rows)
            while True:
                step = next(steps, None)
                if step is None:
                    break
                for output in self.outputs:
                    output.write(step)
                progress.update(step.done)
                if self._file is not None and self._mark() - self._saved_at >= self._every:
                    self._save()
                if self._signal:
                    raise KeyboardInterrupt
        if self._file is not None:
            self._save()

    def _mark(self) -> float:
        return time.monotonic() if self._by_time else self.run.rows_read

    def _save(self) -> None:
        if self._file is None:
            return
        lengths = {output.path: output.secure() for output in self.outputs}
        self._file.save(self.run, self.identity, lengths)
        self._saved_at = self._mark()

    # -- interruptions ----------------------------------------------------------------------------

    @contextmanager
    def _on_signals(self) -> Iterator[None]:
        """Let Ctrl-C and SIGTERM end the run between two steps, or while it waits for rows.

        In the middle of a step, they wait for its end; a second one does not.
        """

        def handle(number: int, frame: FrameType | None) -> None:
            if self._signal:
                raise _Abandoned
            self._signal = number
            if self.run.waiting:
                raise KeyboardInterrupt

        old = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in old.items():
                signal.signal(number, handler)

    def _stop(self) -> None:
        """Save what there is, say how to go on, and leave."""
        rows = f"{self.run.rows_read:,}"
        if self._file is not None:
            self._save()
            self._say(f"interrupted after {rows} rows: the same command goes on from there")
        else:
            self._say(
                f"interrupted after {rows} rows; with --checkpoint FILE, the same command could go "
                "on from there"
            )
        raise typer.Exit(TERMINATED if self._signal == signal.SIGTERM else INTERRUPTED)

    def _say(self, line: str) -> None:
        self.console.print(line, markup=False, emoji=False, highlight=False, soft_wrap=True)
