"""How a command fails: in one line, with exit code 2."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

import typer
from rich.console import Console

from sapwood.evaluate.checkpoint import CheckpointError
from sapwood.modelfile import ModelFileError
from sapwood.streams.stream import StreamError

__all__ = ["INTERRUPTED", "UsageError", "failing_in_one_line"]

FAILED = 2
INTERRUPTED = 130


class UsageError(ValueError):
    """What was typed cannot be meant; the message says why, and what is expected."""


@contextmanager
def failing_in_one_line(console: Console, extra: str) -> Iterator[None]:
    """Turn what a user can do something about into one line and exit code 2.

    Parameters
    ----------
    console : Console
        Where the line goes.
    extra : str
        The extra of the package that has the optional dependencies of the command.
    """
    from sapwood.paper.errors import StudyError

    try:
        yield
        return
    except (StudyError, UsageError, StreamError, ModelFileError, CheckpointError) as error:
        message = str(error)
    except BrokenPipeError:
        # Whoever read the output has enough: nothing is wrong, and nothing can be said there.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        raise typer.Exit(0) from None
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "sapwood":
            raise
        message = f"{error.name} is not installed: pip install 'sapwood[{extra}]'"
    except OSError as error:
        if error.filename is None and error.errno is None:
            raise
        message = _of_system(error)
    console.print(
        f"sapwood: {' '.join(message.split())}",
        markup=False,
        emoji=False,
        highlight=False,
        soft_wrap=True,
    )
    raise typer.Exit(FAILED)


def _of_system(error: OSError) -> str:
    """Return what the system complains of, and what helps."""
    remedies = {
        errno.ENOENT: "check the path",
        errno.EACCES: "check the permissions, or choose another place",
        errno.EISDIR: "name a file",
        errno.ENOTDIR: "check the path",
        errno.ENOSPC: "make room, or choose another place",
        errno.EROFS: "choose another place",
    }
    name = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
    words = (error.strerror or str(error)).lower()
    remedy = remedies.get(error.errno or 0)
    return f"{name}{words}" + (f"; {remedy}" if remedy else "")
