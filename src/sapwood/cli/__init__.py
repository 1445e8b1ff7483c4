"""The command line: `sapwood --help`."""

import io
import sys

__all__ = ["main"]


def main() -> None:
    """Run the command that was typed."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # it is None if it was closed
            stream.reconfigure(errors="backslashreplace")
    try:
        from sapwood.cli.app import app
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        sys.exit(_fail_without(error.name))
    except KeyboardInterrupt:
        sys.exit(130)
    app(prog_name="sapwood")


def _fail_without(package: str) -> int:
    message = f"the command line needs {package}: pip install 'sapwood[cli]'"
    print(f"sapwood: {message}", file=sys.stderr)
    return 2
