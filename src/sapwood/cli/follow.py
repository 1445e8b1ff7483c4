"""Follow a stream to its end: with a bar, with checkpoints, and so that it can be interrupted."""

import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Generic, TypeVar

import typer

from sapwood.cli.failure import INTERRUPTED, Terminal, UsageError
from sapwood.cli.files import STDOUT
from sapwood.cli.models import blaming_others, check_savable
from sapwood.cli.outputs import Output
from sapwood.cli.progress import RunProgress
from sapwood.cli.reading import report_missing
from sapwood.cli.values import amount
from sapwood.evaluate.checkpoint import CheckpointError, CheckpointFile, Saved
from sapwood.evaluate.class_run import ClassRun
from sapwood.evaluate.prequential import Prequential
from sapwood.streams.stream import MOST_ROWS
from sapwood.system import system

__all__ = ["Follower", "check_rows_read"]

TERMINATED = 143
UNREADABLE = ("stream", "features", "calendar")
"""Parts of the identity of a run that are not readable text."""


Run = TypeVar("Run", Prequential, ClassRun)


def check_rows_read(rows: int, name: str) -> None:
    """Complain of a stream of which no row was read."""
    if rows == 0:
        raise UsageError(f"{name} has no rows: there is nothing to learn from")


class _Abandoned(BaseException):
    """The run was interrupted a second time, in the middle of its work."""


@dataclass
class Follower(Generic[Run]):
    """A run, the files that grow with it, and when it is saved.

    - `run`: the run, not yet started.
    - `identity`: what is evaluated on what: a checkpoint of anything else is rejected.
    """

    run: Run
    terminal: Terminal
    identity: dict[str, Any]
    outputs: Sequence[Output] = ()
    checkpoint: Path | None = None
    every: str = "60s"

    def __post_init__(self) -> None:
        self._every, self._by_time = amount(self.every, "--every")
        self._file = None if self.checkpoint is None else CheckpointFile(self.checkpoint)
        self._signal = 0
        if self._file is not None:
            check_savable(self.run.model, f"--checkpoint {self._file.path}")
            for path in (output.path for output in self.outputs):
                if path == STDOUT or (os.path.exists(path) and not os.path.isfile(path)):
                    raise UsageError(f"--checkpoint: {path} cannot be resumed, name a file")

    def follow(self) -> Any:
        """Read, predict and learn all rows, from where an earlier run was saved."""
        report_missing(self.terminal, self.run.model, self.run.stream)
        with ExitStack() as stack:
            if self._file is not None and not stack.enter_context(self._file.hold()):
                self.terminal.say(
                    f"sapwood: this system cannot lock {self._file.path}: let no other run use it"
                )
            saved = self._resume()
            lengths = [self._length(output.path, saved) for output in self.outputs]
            for output, length in zip(self.outputs, lengths, strict=True):
                stack.callback(output.open(length).close)
            with self._on_signals():
                try:
                    try:
                        self._loop()
                    except KeyboardInterrupt:
                        self._stop()
                except _Abandoned:
                    self.terminal.say("interrupted: the last checkpoint is unchanged")
                    raise typer.Exit(self._exit_code) from None
            with blaming_others(self.run):
                self._write(self.run.learn_rest())
                self.run.check_used()
                return self.run.finish()

    def _length(self, path: str, saved: Saved | None) -> int | None:
        """Return how much of a file is kept, None if it is written from the start."""
        if saved is None:
            return None
        if path not in saved.outputs:
            raise CheckpointError(
                f"{self.checkpoint} knows nothing of {path}, which would lack the first "
                f"{self.run.rows_read:,} rows: leave it out, or remove the checkpoint to start over"
            )
        return saved.outputs[path]

    def _resume(self) -> Saved | None:
        """Resume from the checkpoint, if there is one."""
        saved = None if self._file is None else self._file.load(self.run.model)
        if self._file is None or saved is None:
            return None
        if self._file.warning:
            self.terminal.say(f"sapwood: {self._file.warning}")
        for name in {**self.identity, **saved.identity}:
            value = self.identity.get(name)
            if saved.identity.get(name) != value:
                differ = f"was {saved.identity.get(name)}, not {value}"
                raise CheckpointError(
                    f"{self._file.path} belongs to another run, whose {name} "
                    f"{'differed' if name in UNREADABLE else differ}: name another file, or "
                    "remove it to start over"
                )
        self.run.model = saved.model
        saved.resume(self.run)
        self.terminal.say(f"resuming after {self.run.rows_read:,} rows, from {self._file.path}")
        return saved

    def _loop(self) -> None:
        most_rows = MOST_ROWS
        if self._file is not None and not self._by_time:
            most_rows = max(1, min(MOST_ROWS, int(self._every)))
        self._saved_at = self._mark()
        with blaming_others(self.run), RunProgress(self.terminal, self.run) as progress:
            for step in self.run.steps(most_rows):
                self._write(step)
                progress.update(step.done)
                if self._file is not None and self._mark() - self._saved_at >= self._every:
                    self._save()
        check_rows_read(self.run.rows_read, self.run.stream.name)
        self.run.check_used()
        self._save()

    def _write(self, step: Any) -> None:
        for output in self.outputs:
            output.write(step)
            output.flush()

    def _mark(self) -> float:
        return time.monotonic() if self._by_time else self.run.rows_read

    def _save(self) -> None:
        if self._file is None or self.run.nothing_used:
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

        def stop_if_requested() -> None:
            if self._signal:
                raise KeyboardInterrupt

        self.run.before_wait = stop_if_requested
        old = {number: signal.signal(number, handle) for number in system.stop_signals}
        try:
            yield
        finally:
            for number, handler in old.items():
                signal.signal(number, handler)

    def _stop(self) -> None:
        """Save a checkpoint, print how to resume, and exit."""
        rows = f"{self.run.rows_read:,}"
        if self.run.nothing_used:
            self.terminal.say(
                f"interrupted after {rows} rows, all rejected: nothing was saved; the first is "
                f"{self.run.first_rejected}"
            )
        elif self._file is not None:
            self._save()
            self.terminal.say(f"interrupted after {rows} rows: the same command resumes there")
        else:
            self.terminal.say(
                f"interrupted after {rows} rows, nothing was saved; with --checkpoint FILE, the same "
                "command would resume there"
            )
        raise typer.Exit(self._exit_code)

    @property
    def _exit_code(self) -> int:
        return TERMINATED if self._signal == signal.SIGTERM else INTERRUPTED
