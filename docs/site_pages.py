"""Writes the generated pages of the reference: the command line, and lists of public names.

The pages are made from the program itself whenever the site is built, and are not part of the
repository.
"""

import inspect
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from shutil import rmtree
from typing import Any

__all__ = ["ADVANCED", "PUBLIC", "command_pages", "main_page", "module_page", "write_pages"]

PUBLIC = {
    "sapwood": "Models: trees, forests, hybrids, prediction intervals; loading of files.",
    "sapwood.evaluate": "Prequential evaluation: scores, baselines, learning curves.",
    "sapwood.streams": "Data streams: files, pipes, Kafka topics and generators.",
    "sapwood.classify": "Classifiers and their labels.",
    "sapwood.sparse": "Models of rows that have a few of very many names.",
    "sapwood.transform": "Models of a transformed target.",
    "sapwood.loss": "Models with another loss than the squared error.",
    "sapwood.views": "Models of several views of the same rows.",
    "sapwood.screening": "Models of many features, of which few matter.",
    "sapwood.recurring": "Models that keep retired models for recurring concepts.",
    "sapwood.lags": "Lag features and rolling means.",
    "sapwood.drift": "Concept drift: detector and monitor.",
    "sapwood.plot": "Charts with matplotlib.",
    "sapwood.report": "Self-contained HTML reports.",
    "sapwood.export": "Export to ONNX, SHAP, treelite and scikit-learn.",
    "sapwood.river": "Adapters for river.",
    "sapwood.sklearn": "Adapters for scikit-learn.",
}
"""Modules that most users need."""
ADVANCED = {
    "sapwood.observers": "Observers: summaries of a feature that find split points.",
    "sapwood.hybrid": "Batch learners of a hybrid, and warnings of failed fits.",
    "sapwood.schema": "How columns become features.",
    "sapwood.merge": "Snapshots, shards and deltas for distributed training.",
    "sapwood.scale": "Rounds of workers on processes, Dask or Ray.",
    "sapwood.stages": "The protocol of models around models.",
}
"""Modules for distributed training and for extensions."""


def write_pages(folder: Path) -> list[Path]:
    """Write all generated pages; return their paths.

    Parameters
    ----------
    folder : Path
        That of the reference.
    """
    pages = {
        "command-line.md": main_page(),
        **{f"commands/{name}.md": text for name, text in command_pages()},
        "api.md": _api_page("API", PUBLIC, "Modules that most users need."),
        "api-advanced.md": _api_page(
            "API: advanced", ADVANCED, "Modules for distributed training and for extensions."
        ),
        **{
            f"api/{name}.rst": module_page(name, text) for name, text in (PUBLIC | ADVANCED).items()
        },
    }
    rmtree(folder / "api", ignore_errors=True)  # pages of names that are gone
    written = []
    for name, text in pages.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
        written.append(path)
    return written


# -- the command line ------------------------------------------------------------------------------


def main_page() -> str:
    """Return the page that lists all commands."""
    from sapwood.cli.app import COMMANDS

    rows = [
        f"| [`sapwood {name}`](commands/{name}.md) | {text} |" for name, text in COMMANDS.items()
    ]
    return "\n".join(
        [
            "# Command line",
            "",
            "Every command prints its options with `--help` or `-h`. `sapwood --version` prints the",
            "version. This reference is generated from the program.",
            "",
            "| command | purpose |",
            "| --- | --- |",
            *rows,
            "",
            "See also [configuration files and checkpoints](configuration.md), [streams and column",
            "inference](columns.md), [events](events.md) and [exit codes](exit-codes.md).",
            "",
            "```{toctree}",
            ":hidden:",
            "",
            *(f"commands/{name}" for name in COMMANDS),
            "```",
            "",
        ]
    )


def command_pages() -> Iterator[tuple[str, str]]:
    """Yield the name of each command and its page."""
    from sapwood.cli.app import COMMANDS, loaded

    for name in COMMANDS:
        yield name, _command_page(name, loaded(name))


def _command_page(name: str, command: Any) -> str:
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    options = [each for each in command.params if each.param_type_name == "option"]
    usage = " ".join(["sapwood", name, "[OPTIONS]", *map(_usage, arguments)])
    lines = [f"# sapwood {name}", "", _cleaned(command.help or ""), "", "```text", usage, "```", ""]
    if arguments:
        lines += ["## Arguments", "", "| argument | meaning |", "| --- | --- |"]
        lines += [f"| `{each.name.upper()}` | {_cell(each.help)} |" for each in arguments]
        lines.append("")
    panels: dict[str, list[Any]] = {}
    for each in options:
        if not each.hidden:
            panels.setdefault(getattr(each, "rich_help_panel", None) or "Options", []).append(each)
    for panel, members in panels.items():
        lines += [f"## {panel}", "", "| option | meaning |", "| --- | --- |"]
        lines += [f"| {_names(each)} | {_cell(each.help)}{_default(each)} |" for each in members]
        lines.append("")
    return "\n".join(lines)


def _usage(argument: Any) -> str:
    text = argument.name.upper() + ("..." if argument.nargs == -1 else "")
    return text if argument.required else f"[{text}]"


def _is_flag(option: Any) -> bool:
    return bool(getattr(option, "is_flag", False))


def _names(option: Any) -> str:
    names = ", ".join(f"`{name}`" for name in [*option.opts, *option.secondary_opts])
    value = (option.metavar or "VALUE").replace("|", "\\|")
    return names if _is_flag(option) else f"{names} `{value}`"


def _default(option: Any) -> str:
    value = option.default
    if _is_flag(option) or value is None or callable(value) or value in ((), [], ""):
        return ""
    value = getattr(value, "value", value)
    return f" Default: `{value}`."


def _cleaned(text: str) -> str:
    return inspect.cleandoc(text.replace("\f", "").replace("\b", "")).replace("*", "\\*")


def _cell(text: str | None) -> str:
    words = " ".join((text or "").split())
    for sign in "*_<>|[]":
        words = words.replace(sign, f"\\{sign}")
    return words.replace("--", "\\-\\-")


# -- the API ---------------------------------------------------------------------------------------


def _api_page(title: str, modules: dict[str, str], text: str) -> str:
    rows = [f"| [`{name}`](api/{name}.rst) | {about} |" for name, about in modules.items()]
    return "\n".join(
        [
            f"# {title}",
            "",
            text,
            "",
            "| module | contents |",
            "| --- | --- |",
            *rows,
            "",
            "```{toctree}",
            ":hidden:",
            "",
            *(f"api/{name}" for name in modules),
            "```",
            "",
        ]
    )


def module_page(name: str, text: str) -> str:
    """Return the page of a module: a list of its public names, each with a page of its own.

    Parameters
    ----------
    name : str
        Of the module.
    text : str
        What it is for.
    """
    module, main = import_module(name), import_module("sapwood")
    values = {each: getattr(module, each) for each in sorted(module.__all__)}
    own = [
        each
        for each, value in values.items()
        if callable(value) and (module is main or value is not getattr(main, each, None))
    ]
    others = [each for each in values if each not in own and not each.startswith("__")]
    return "\n".join(
        [
            name,
            "=" * len(name),
            "",
            text,
            "",
            f".. currentmodule:: {name}",
            "",
            ".. autosummary::",
            "   :toctree: generated",
            "",
            *(f"   {each}" for each in own),
            "",
            *([f"Also: {', '.join(f'``{each}``' for each in others)}.", ""] if others else []),
        ]
    )
