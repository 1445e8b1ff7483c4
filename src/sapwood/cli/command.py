"""Functions become commands: groups of options are spread out, and files can hold options."""

import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any, get_origin, get_type_hints

import typer

from sapwood.cli import files
from sapwood.cli.failure import Terminal, UsageError, failing_in_one_line
from sapwood.cli.options import default_of, long_name
from sapwood.streams.schema import nearest

__all__ = ["as_command", "as_toml"]

CONFIG = "config"
PRINT_CONFIG = "print_config"
OPTIONS_OF_ALL = (CONFIG, PRINT_CONFIG)
BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
JOINTS = {"lags-of": ":", "means-of": ":"}
"""What stands between name and value where a table is given for an option; else "="."""


def as_command(function: Callable[..., None]) -> Callable[..., None]:
    """Return a function as typer takes it.

    A parameter that is a dataclass is spread out into options, one for each of its fields that
    is annotated for typer. And there are --config and --print-config, for all options.
    """
    hints = get_type_hints(function, include_extras=True)
    parameters: list[Parameter] = []
    groups: dict[str, tuple[type[Any], list[str]]] = {}
    for parameter in inspect.signature(function).parameters.values():
        kind = hints[parameter.name]
        if isinstance(kind, type) and is_dataclass(kind):
            spread = list(_options_of(kind))
            groups[parameter.name] = kind, [each.name for each in spread]
            parameters += spread
        else:
            parameters.append(parameter.replace(annotation=kind))
    parameters += _options_of_all(function.__name__)

    def command(**given: Any) -> None:
        config = given.pop(CONFIG)
        if given.pop(PRINT_CONFIG):
            print(as_toml(function.__name__, _named(parameters, given)), end="")
            return
        for name, (kind, names) in groups.items():
            given[name] = kind(**{each: given.pop(each) for each in names})
        token = files.CONFIG.set(config)
        try:
            function(**given)
        finally:
            files.CONFIG.reset(token)

    command.__name__, command.__doc__ = function.__name__, _unwrapped(function.__doc__ or "")
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    command.__signature__ = inspect.Signature(_with_defaults_last(parameters))  # type: ignore[attr-defined]
    return command


def _unwrapped(document: str) -> str:
    r"""Return a docstring whose paragraphs are lines, which typer breaks to the width of a terminal.

    Examples
    --------
    >>> _unwrapped("One line.\n\n    Two lines,\n    indented.\n    ")
    'One line.\n\nTwo lines, indented.'
    """
    return "\n\n".join(" ".join(each.split()) for each in inspect.cleandoc(document).split("\n\n"))


def _options_of(kind: type[Any]) -> Iterable[Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    for each in fields(kind):
        hint = hints[each.name]
        if "option" in each.metadata:
            hint = Annotated[hint, each.metadata["option"]]
        if get_origin(hint) is Annotated:
            own = {"default": default_of(each), "annotation": hint}
            yield Parameter(each.name, Parameter.KEYWORD_ONLY, **own)


def _with_defaults_last(parameters: Iterable[Parameter]) -> list[Parameter]:
    """Return parameters all of which are given by name, so that their order is free."""
    return [each.replace(kind=Parameter.KEYWORD_ONLY) for each in parameters]


def _options_of_all(command: str) -> list[Parameter]:
    def read(context: typer.Context, path: Path | None) -> Path | None:
        if path is not None:
            with failing_in_one_line(Terminal(stderr=True), extra="cli"):
                context.default_map = _defaults(path, command, context.command.params)
        return path

    panel = "Configuration"
    return [
        Parameter(
            CONFIG,
            Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[
                Path | None,
                typer.Option(
                    "--config",
                    metavar="FILE",
                    help="Read options from a file (TOML); those that are typed take precedence.",
                    is_eager=True,
                    callback=read,
                    rich_help_panel=panel,
                ),
            ],
        ),
        Parameter(
            PRINT_CONFIG,
            Parameter.KEYWORD_ONLY,
            default=False,
            annotation=Annotated[
                bool,
                typer.Option(
                    "--print-config",
                    help="Print all options as such a file, and do nothing else.",
                    rich_help_panel=panel,
                ),
            ],
        ),
    ]


# -- reading ---------------------------------------------------------------------------------------


def _defaults(path: Path, command: str, parameters: Iterable[Any]) -> dict[str, Any]:
    """Return the values of parameters that a file gives.

    Options of all commands stand first in it, those of one command in a table of its name; what
    stands there goes before.
    """
    import tomllib

    from sapwood.cli.app import COMMANDS

    try:
        with open(path, "rb") as file:
            found = tomllib.load(file)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is no TOML: {error}") from None
    own = found.get(command, {})
    if not isinstance(own, dict):
        raise UsageError(f"{path}: {command} is a command, so a table [{command}] is expected")
    known = {name: each for each in parameters for name in _names(each)}
    common = {name: value for name, value in found.items() if name not in COMMANDS}
    every = {name for other in COMMANDS for name in _option_names(other)} if common else set()
    values: dict[str, Any] = {}
    for names, given in ((every, common), (known, own)):
        for name, value in given.items():
            if name not in names or name.replace("-", "_") in OPTIONS_OF_ALL:
                place = f"{path}: {name} is no option"
                raise UsageError(f"{place}: {nearest(name, sorted(names))}")
            if name in known:
                each = known[name]
                values[each.name] = _value(path, name, value, each.multiple or each.nargs == -1)
    return values


def _names(parameter: Any) -> list[str]:
    """Return by which names a file may give a parameter: those of long options."""
    if parameter.param_type_name == "argument":
        return [parameter.name]
    options = [*parameter.opts, *parameter.secondary_opts]
    return [each.removeprefix("--") for each in options if each.startswith("--")][:1]


def _option_names(command: str) -> list[str]:
    from sapwood.cli.app import loaded

    return [name for each in loaded(command).params for name in _names(each)]


def _value(path: Path, name: str, value: Any, many: bool) -> Any:
    """Return what stands in a file as what would have been typed."""
    if isinstance(value, dict):
        joint = JOINTS.get(name, "=")
        value = [f"{key}{joint}{_as_typed(each)}" for key, each in value.items()]
    if isinstance(value, list):
        texts = [each if isinstance(each, str) else _as_typed(each) for each in value]
        return texts if many else ",".join(texts)
    if not isinstance(value, str | bool | int | float):
        raise UsageError(f"{path}: {name} = {value}: text, a number, true or false is expected")
    typed = value if isinstance(value, bool | str) else _as_typed(value)
    return [typed] if many else typed


def _as_typed(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(map(_as_typed, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


# -- printing --------------------------------------------------------------------------------------


def _named(parameters: Iterable[Parameter], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return values by the names of options, but for those of --config itself."""
    named = {}
    for each in parameters:
        if each.name not in OPTIONS_OF_ALL:
            info = each.annotation.__metadata__[0]
            name = long_name(info, each.name).removeprefix("--")
            is_argument = isinstance(info, typer.models.ArgumentInfo)
            named[each.name if is_argument else name.partition("/")[0]] = given[each.name]
    return named


def as_toml(table: str, values: Mapping[str, Any]) -> str:
    r"""Return values as a table of TOML; those that are not given stand there as comments.

    Examples
    --------
    >>> print(as_toml("evaluate", {"target": "cnt", "lags": None, "drop": ["a", 'b"c']}), end="")
    [evaluate]
    target = "cnt"
    # lags =
    drop = ["a", "b\"c"]
    """
    lines = [f"[{table}]"]
    for name, value in values.items():
        shown = name if BARE_KEY.fullmatch(name) else _toml_text(name)
        lines.append(f"# {shown} =" if value is None else f"{shown} = {_toml(value)}")
    return "\n".join([*lines, ""])


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return _toml_text(str(value))


def _toml_text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
