"""`sapwood inspect`: what a saved model has learned."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from sapwood import load
from sapwood.cli.failure import Terminal, UsageError, failing_in_one_line
from sapwood.cli.files import check_files
from sapwood.cli.options import AsJson, SavedModel
from sapwood.formatting import plain
from sapwood.hybrid import summary as hybrids
from sapwood.lags import LaggedModel
from sapwood.model import readable_part
from sapwood.storage.atomic import write_atomically

__all__ = ["inspect"]

BAR = 30


def inspect(
    model: SavedModel,
    depth: Annotated[
        int, typer.Option(min=0, help="How deep the tree is shown; deeper nodes are summarised.")
    ] = 3,
    rules: Annotated[
        int, typer.Option(min=0, help="Show this many rules, those that cover most rows first.")
    ] = 0,
    svg: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the tree into a file (SVG).")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show a saved model: its size, feature importances and tree."""
    with failing_in_one_line(Terminal(stderr=True), extra="cli"):
        check_files({"--svg": svg}, read=[model])
        loaded = load(model)
        levels = getattr(loaded, "levels", ())
        hybrid = hybrids.hybrid_of(loaded)
        tree = loaded if hasattr(loaded, "to_text") else readable_part(loaded)
        if tree is None:
            raise UsageError(f"{model} holds a {type(loaded).__name__}, which has no tree to show")
        _check_shown(tree, model, {"--svg": svg is not None, "--rules": rules > 0})
        if svg is not None:
            write_atomically(svg, str(tree.draw(max_depth=depth)).encode())
        if as_json:
            bounds: dict[str, Any] = {"levels": list(levels)} if levels else {}
            if hybrid is not None:
                bounds["hybrid"] = hybrids.described(hybrid)
            found = {"rules": tree.to_rules()[:rules]} if rules else {}
            found = {name: [rule.to_dict() for rule in each] for name, each in found.items()}
            print(json.dumps({**_described(tree), **bounds, **found}, indent=2))
        else:
            if hybrid is not None:
                Terminal(highlight=False).say(hybrids.to_text(hybrid))
                Terminal(highlight=False).say("the online model:")
            _show(tree, depth)
            if rules:
                Terminal(highlight=False).say(tree.to_rules().to_text(rules))
            if levels:
                print(
                    f"prediction intervals: {', '.join(f'{100 * level:g} %' for level in levels)}"
                )


def _check_shown(tree: Any, model: Path, options: dict[str, bool]) -> None:
    """Complain of options that a model of several trees or several targets has nothing for."""
    for option in (name for name, given in options.items() if given):
        targets = tree.schema.targets
        if len(targets) > 1:
            raise UsageError(
                f"{option} is for one target, and {model} predicts {_listed(targets)}: leave it out"
            )
        if option == "--svg" and not hasattr(tree, "draw"):
            raise UsageError(f"--svg is for one tree, and {model} holds several: leave it out")


def _described(tree: Any) -> dict[str, object]:
    summary = tree.summary
    depth = getattr(summary, "depth", None)  # of a tree, not of several
    return {
        "rows": summary.rows,
        "leaves": tree.n_leaves,
        **({} if depth is None else {"depth": depth}),
        "bytes": tree.nbytes,
        "features": {str(name): kind for name, kind in tree.feature_kinds.items()},
        "importances": {str(name): share for name, share in tree.feature_importances.items()},
        "parameters": {name: str(value) for name, value in tree.parameters.items()},
        "column_formats": tree.schema.formats,
        "lags": list(map(str, tree.lags.features)) if isinstance(tree, LaggedModel) else [],
    }


def _listed(names: Sequence[object]) -> str:
    return ", ".join(plain(str(name)) for name in names)


def _show(tree: Any, depth: int) -> None:
    terminal = Terminal(highlight=False)
    terminal.say(str(tree.summary))
    if isinstance(tree, LaggedModel):
        series = f" of {tree.lags.n_series:,} series" if tree.lags.by else ""
        terminal.say(f"it remembers earlier rows{series} for {_listed(tree.lags.features)}")
    shares = sorted(tree.feature_importances.items(), key=lambda item: -item[1])
    table = Table(
        title="permutation feature importance", title_justify="left", box=None, padding=(0, 1)
    )
    table.add_column("feature")
    table.add_column("share", justify="right")
    table.add_column("")
    mark = "#" if terminal.options.ascii_only else "█"
    for name, share in shares:
        table.add_row(escape(plain(name)), f"{share:.1%}", mark * round(BAR * share))
    terminal.print(table)
    terminal.say(tree.to_text(max_depth=depth))
