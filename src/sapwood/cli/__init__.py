"""The command line: `sapwood --help`."""

import gc
import io
import os
import sys
from typing import Any

__all__ = ["main"]

FAILED = 2
INTERRUPTED = 130
READING = ("evaluate", "train", "predict", "forecast", "serve")
"""Commands that read files by pyarrow, and need no pandas for that."""


def main() -> None:
    """Run the command that was typed."""
    _start_quickly()
    try:
        _prepare_streams()
        from sapwood.cli.app import app

        app(prog_name="sapwood")
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        _fail(f"the command line needs {error.name}: pip install 'sapwood[cli]'")
    except OSError as error:  # of help or a version that cannot be printed
        _fail_to_print(error)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except SystemExit as ended:
        _leave(ended.code)
        raise


def _leave(code: object) -> None:
    """End the process at once, if a code is given and all output is written.

    As it ends in the usual way, pyarrow's threads are now and then found still running, and the
    process is aborted although all went well; and freeing all objects takes a while.
    """
    if isinstance(code, int | None):
        try:
            for stream in (sys.stdout, sys.stderr):
                if stream is not None:
                    stream.flush()
        except OSError as error:
            _fail_to_print(error)
        os._exit(code or 0)


def _start_quickly() -> None:
    """Leave out what a command would load, and not use.

    NumPy starts threads for linear algebra, of which trees have none. Imports make many objects that
    stay, so that a search for unused ones among them is rarely worth it.
    """
    gc.set_threshold(50_000, 20, 50)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if sys.argv[1:2] and sys.argv[1] in READING:
        _keep_pandas_out_of_arrow()


def _keep_pandas_out_of_arrow() -> None:
    """Let pyarrow's first conversion of a value not find pandas.

    It would import pandas, to recognise its objects, which takes as long as all other imports of a
    command together. Who needs pandas, as models of other libraries do, can import it later.
    """
    finder = _WithoutPandas()
    sys.meta_path.insert(0, finder)
    try:
        import pyarrow

        pyarrow.scalar(0)
    except ImportError:  # the command names what is missing, if it needs it
        pass
    finally:
        sys.meta_path.remove(finder)


class _WithoutPandas:
    """Lets an import of pandas fail, as if it were not installed."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Find nothing, and let others look for all but pandas."""
        if name == "pandas":
            raise ModuleNotFoundError("pandas is not used here", name=name)


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


def _fail_to_print(error: OSError) -> None:
    """Report the error, and drop unwritten output, so that Python does not write it again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    _fail(f"standard output: {(error.strerror or str(error)).lower()}")


def _fail(message: str) -> None:
    if sys.stderr is not None:
        print(f"sapwood: {message}", file=sys.stderr)
    sys.exit(FAILED)
