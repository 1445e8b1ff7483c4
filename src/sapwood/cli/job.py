"""A job of what was typed: a run, the files that it writes, and what it prints."""

import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sapwood.cli.columns import show_columns
from sapwood.cli.failure import Terminal
from sapwood.cli.follow import Follower
from sapwood.cli.models import check_savable
from sapwood.cli.outputs import Output

if TYPE_CHECKING:
    from sapwood.cli.runs import Files

__all__ = ["Job"]


class Job(ABC):
    """A run of a model over a stream, as it was typed.

    - `run`: the run, not yet started.
    - `identity`: what is evaluated on what, for checkpoints.
    - `show`: prints the scores, and what became of all rows.
    - `print_counts`: prints what became of all rows.
    """

    run: Any
    identity: dict[str, Any]
    show: Callable[[Any, bool], None]
    print_counts: Callable[[Any, Terminal], None]

    @property
    def model(self) -> Any:
        """The model as it is now."""
        return self.run.model

    @abstractmethod
    def prediction_file(self, path: Path) -> Output:
        """Return the file of predictions."""

    @abstractmethod
    def check_events(self, path: Path) -> None:
        """Complain of a file for events if there are none."""

    @abstractmethod
    def write(self, files: "Files", found: Any) -> None:
        """Write the files that are written in the end, but for the model."""

    def follow(self, terminal: Terminal, files: "Files") -> Any:
        """Predict and learn all rows, from where an earlier run was saved; save the model."""
        if files.save is not None:
            check_savable(self.model, f"--save {files.save}")
        if files.events is not None:
            self.check_events(files.events)
        show_columns(terminal, self.run.stream, getattr(self.model, "lags", None))
        outputs = files.outputs(self.prediction_file)
        saving = files.checkpoint, files.every
        found = Follower(self.run, terminal, self.identity, outputs, *saving).follow()
        if files.save is not None:
            self.model.save(files.save)
        return found

    def evaluate(self, terminal: Terminal, files: "Files", *, as_json: bool, quiet: bool) -> None:
        """Follow the stream, and report the scores."""
        found = self.follow(terminal, files)
        self.write(files, found)
        if as_json:
            print(json.dumps(found.to_dict(), indent=2))
        elif not quiet:
            self.show(found, files.takes_stdout)
        files.say(terminal)

    def described(self, kinds: Iterable[str]) -> dict[str, str]:
        """Return settings for a report: how many features there are of some kinds, and the command."""
        listed = list(kinds)
        numbers, categories = listed.count("number"), listed.count("category")
        return {
            "features": f"{numbers} numbers, {categories} categories",
            "command": " ".join(["sapwood", *sys.argv[1:]]),
        }
