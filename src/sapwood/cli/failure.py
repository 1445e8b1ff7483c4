"""How a command fails: in one line, with exit code 2."""

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console
from rich.table import Table

__all__ = ["INTERRUPTED", "Terminal", "UsageError", "failing_in_one_line", "table_of", "visible"]

FAILED = 2
INTERRUPTED = 130
MORE_EXTRAS = {
    "confluent_kafka": ("confluent-kafka", "kafka"),
    "holidays": ("holidays", "holidays"),
}
"""Packages that a command needs for some streams alone, and the extras that have them."""


class UsageError(ValueError):
    """A command line that cannot be executed; the message names the reason and what is expected."""


class Terminal(Console):
    """The console for messages: standard output, or standard error if `stderr` is true.

    - `**options`: as for `rich.console.Console`.
    """

    def __init__(self, *, silent: bool = False, **options: Any) -> None:
        super().__init__(**options)
        self.silent = silent

    def say(self, text: str) -> None:
        """Print lines as they are, however long, with names that do nothing to the terminal."""
        if not self.silent:
            self.complain(text)

    def complain(self, text: str) -> None:
        """Print such lines, even if only complaints are to be seen."""
        self.print(visible(text), markup=False, emoji=False, highlight=False, soft_wrap=True)

    def on_broken_pipe(self) -> None:
        """Be quiet if nobody looks any more; but there is no use in results that nobody reads."""
        if not self.stderr:
            raise BrokenPipeError
        self.quiet = True


def table_of(*titles: str, words: int = 1, **options: Any) -> Table:
    """Return a table whose first columns have words, and the others numbers.

    - `options`: as for `rich.table.Table`.
    """
    table = Table(**options)
    for place, title in enumerate(titles):
        table.add_column(title, justify="left" if place < words else "right")
    return table


def visible(text: str) -> str:
    r"""Return text with what is no letter, such as the codes that control a terminal, written out.

    Examples
    --------
    >>> print(visible("wind\x1b[2J"))
    wind\x1b[2J
    """
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() or letter == "\n" else _written_out(letter)
        for letter in text
    )


def _written_out(letter: str) -> str:
    return letter.encode("unicode_escape").decode()


@contextmanager
def failing_in_one_line(terminal: Terminal, extra: str) -> Iterator[None]:
    """Turn what a user can do something about into one line and exit code 2.

    - `extra`: the extra of the package that has the optional dependencies of the command.
    """
    try:
        yield
        sys.stdout.flush()
        return
    except KeyboardInterrupt:
        terminal.complain("sapwood: interrupted")
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        # The reader of the output has closed it: no error, and no message can be written.
        _drop_output()
        raise typer.Exit(0) from None
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "sapwood":
            raise
        name, extra = MORE_EXTRAS.get(error.name.partition(".")[0], (error.name, extra))
        message = f"{name} is not installed: pip install 'sapwood[{extra}]'"
    except OSError as error:
        if error.filename is None and error.errno is None:
            raise
        message = _of_system(error)
        _drop_output()
    except Exception as error:
        found = _message_of(error)
        if found is None:
            raise
        message = found
    terminal.complain(f"sapwood: {' '.join(message.split())}")
    raise typer.Exit(FAILED)


def _message_of(error: Exception) -> str | None:
    """Return the message of an error that a user can correct; None for other errors."""
    from sapwood.evaluate.checkpoint import CheckpointError
    from sapwood.paper.errors import StudyError
    from sapwood.storage.container import ModelFileError
    from sapwood.streams.stream import BadRowError, StreamError

    if isinstance(error, BadRowError):
        return f"{error}; or leave such rows out by --on-bad-row skip"
    expected = (StudyError, UsageError, StreamError, ModelFileError, CheckpointError)
    return str(error) if isinstance(error, expected) else None


def _drop_output() -> None:
    """Forget what standard output does not take, lest Python tries again when it ends."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _of_system(error: OSError) -> str:
    """Return what the system complains of, and what helps."""
    remedies = {
        errno.ENOENT: "check the path",
        errno.EACCES: "check the permissions, or choose another place",
        errno.EISDIR: "name a file",
        errno.ENOTDIR: "check the path",
        errno.ENOSPC: "make room, or choose another place",
        errno.EDQUOT: "make room, or choose another place",
        errno.EFBIG: "raise the limit of a file's size, or choose another place",
        errno.EROFS: "choose another place",
    }
    name = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
    words = (error.strerror or str(error)).lower()
    remedy = remedies.get(error.errno or 0)
    return f"{name}{words}" + (f"; {remedy}" if remedy else "")
