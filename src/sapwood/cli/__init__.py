"""The command line: `sapwood --help`."""

import io
import os
import sys

__all__ = ["main"]

FAILED = 2
INTERRUPTED = 130


def main() -> None:
    """Run the command that was typed."""
    try:
        _prepare_streams()
        from sapwood.cli.app import app

        app(prog_name="sapwood")
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        _fail(f"the command line needs {error.name}: pip install 'sapwood[cli]'")
    except OSError as error:  # of help or a version that cannot be printed
        _forget_output()
        _fail(f"standard output: {(error.strerror or str(error)).lower()}")
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _prepare_streams() -> None:
    """Let no file be opened in place of a standard stream, and none fail at a letter."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest that is free is taken
    if sys.stdout is None:
        _fail("standard output is closed: let it go to a file, or to /dev/null")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _forget_output() -> None:
    """Forget what standard output does not take, lest Python tries again when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _fail(message: str) -> None:
    if sys.stderr is not None:
        print(f"sapwood: {message}", file=sys.stderr)
    sys.exit(FAILED)
