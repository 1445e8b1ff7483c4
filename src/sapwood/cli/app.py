"""All commands together."""

from typing import Annotated

import typer

import sapwood
from sapwood.cli.compare import compare
from sapwood.cli.evaluate import evaluate
from sapwood.cli.inspect import inspect
from sapwood.cli.paper import paper
from sapwood.cli.predict import predict
from sapwood.cli.train import train

__all__ = ["app"]

app = typer.Typer(
    name="sapwood",
    help="Online regression trees that learn from a stream one row at a time.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (evaluate, train, predict, inspect, compare, paper):
    app.command()(command)


def _tell_version(asked: bool) -> None:
    if asked:
        print(f"sapwood {sapwood.__version__}")
        raise typer.Exit


@app.callback()
def _sapwood(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_tell_version, is_eager=True, help="Tell the version."),
    ] = False,
) -> None:
    """Online regression trees that learn from a stream one row at a time."""
