"""All commands together."""

import typer

from sapwood.cli.paper import paper

__all__ = ["app"]

app = typer.Typer(
    name="sapwood",
    help="Online regression trees that learn from a stream one row at a time.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(paper)


@app.callback()
def _sapwood() -> None:
    """Online regression trees that learn from a stream one row at a time."""
