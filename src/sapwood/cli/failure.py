"""How a command fails: in one line, with exit code 2."""

from collections.abc import Iterator
from contextlib import contextmanager

import typer
from rich.console import Console

from sapwood.paper.errors import StudyError

__all__ = ["failing_in_one_line"]

FAILED = 2


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
    try:
        yield
    except StudyError as error:
        message = str(error)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "sapwood":
            raise
        message = f"{error.name} is not installed: pip install 'sapwood[{extra}]'"
    else:
        return
    console.print(f"sapwood: {message}", markup=False, emoji=False, highlight=False, soft_wrap=True)
    raise typer.Exit(FAILED)
