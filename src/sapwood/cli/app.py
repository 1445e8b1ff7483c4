"""All commands together; each is loaded when it is called."""

from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

__all__ = ["COMMANDS", "app", "loaded"]

COMMANDS = {
    "evaluate": "Evaluate a model prequentially (test, then train) and report its error.",
    "train": "Train a model on a stream and save it.",
    "predict": "Predict each row of a stream, in order, as rows arrive.",
    "forecast": "Forecast a series beyond the last row that a model has learned.",
    "inspect": "Show a saved model: its size, feature importances and tree.",
    "serve": "Serve a model over HTTP: predictions, learning, metrics and a live page.",
    "compare": "Evaluate several models on several streams, and rank them.",
    "paper": "Reproduce the study of the Quantizer Observer's paper.",
}
"""The commands, with the first lines of their own help."""
HELP = {"help_option_names": ["-h", "--help"]}


class _Commands(TyperGroup):
    """Commands that stand in for the real ones until they are called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Find the command that was typed, and load it."""
        name, stand_in, rest = super().resolve_command(ctx, args)
        return name, None if stand_in is None else loaded(str(stand_in.name)), rest


def loaded(name: str) -> Any:
    """Return a command, with all that it needs."""
    from sapwood.cli.command import as_command

    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    function = getattr(import_module(f"sapwood.cli.{name}"), name)
    alone.command(context_settings=HELP)(as_command(function))
    return typer.main.get_command(alone)


app = typer.Typer(
    name="sapwood",
    cls=_Commands,
    help="Online learning with trees: models that learn from a stream one row at a time.",
    no_args_is_help=True,
    context_settings=HELP,
    pretty_exceptions_enable=False,
)
for _name, _help in COMMANDS.items():
    app.command(_name, help=_help)(lambda: None)


def _show_version(requested: bool) -> None:
    if requested:
        import sapwood

        print(f"sapwood {sapwood.__version__}")
        raise typer.Exit


@app.callback()
def _sapwood(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Online learning with trees: models that learn from a stream one row at a time."""
