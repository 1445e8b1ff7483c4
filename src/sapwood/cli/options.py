"""Options that several commands share: how a stream is read, and how a model is made."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from sapwood.cli.failure import Terminal, UsageError
from sapwood.cli.models import DEFAULTS_SHOWN, MODEL_HELP
from sapwood.cli.values import settings, split_spec
from sapwood.door import Label
from sapwood.regressor import Regressor
from sapwood.streams.opening import open_stream
from sapwood.streams.schema import PARTS, nearest
from sapwood.streams.stream import MOST_ROWS, Chunk, Kind, Position, Stream

__all__ = ["EMBEDDED", "Reading", "check_bad_rows", "open_named", "tell_missing"]

READING = "How the stream is read"
MODEL = "The model"
OUTPUT = "What is written"
EMBEDDED = "demand"
GENERATORS = (
    "friedman",
    "friedman-gra",
    "friedman-gsg",
    "friedman-lea",
    "mv",
    "planes2d",
    "hyperplane",
    "demand",
)
"""Those of `sapwood.streams`, which take a while to load."""

STREAM_HELP = (
    "A file (CSV, TSV, Parquet, Arrow, ARFF, JSON lines; text may be compressed), several of them, "
    "a folder or a pattern such as 'days/*.csv', read in order; - for standard input; or a "
    f"generator: {', '.join(GENERATORS)}, such as friedman:rows=1000000,seed=3."
)

Format = Literal["csv", "tsv", "parquet", "arrow", "arff", "jsonl"]

StreamArgument = Annotated[list[str], typer.Argument(metavar="STREAM", help=STREAM_HELP)]
Target = Annotated[
    str | None, typer.Option("--target", "-t", metavar="NAME", help="The column to predict.")
]
Drop = Annotated[
    list[str],
    typer.Option(
        metavar="NAME", help="Leave a column out; may be repeated.", rich_help_panel=READING
    ),
]
Categorical = Annotated[
    list[str],
    typer.Option(
        metavar="NAME",
        help="Take a column of numbers for categories; may be repeated.",
        rich_help_panel=READING,
    ),
]
TimeFormats = Annotated[
    list[str],
    typer.Option(
        "--time-format",
        metavar="NAME=FORMAT",
        help="A column holds times in this format, such as 'sold=%d.%m.%Y %H:%M' or "
        "sold=milliseconds, or none: sold=none. Most formats are found without.",
        rich_help_panel=READING,
    ),
]
TimeParts = Annotated[
    str,
    typer.Option(
        metavar="PARTS",
        help=f"Add these parts of each time as features: any of {','.join(PARTS)}, or none. If not "
        "given, those of hour, weekday and season that vary.",
        rich_help_panel=READING,
    ),
]
Decimal = Annotated[
    str | None,
    typer.Option(
        metavar="MARK",
        help="What stands before decimals, . or , - if the data do not tell it.",
        rich_help_panel=READING,
    ),
]
Thousands = Annotated[
    str | None,
    typer.Option(
        metavar="MARK",
        help="What stands between thousands: . , ' or a blank.",
        rich_help_panel=READING,
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The encoding of a text, such as cp1252, if the first lines do not tell it.",
        rich_help_panel=READING,
    ),
]
HeaderOption = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether the first line of a CSV file names its columns; else they are c1, c2, …",
        show_default=False,
        rich_help_panel=READING,
    ),
]
FormatOption = Annotated[
    Format | None,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help="csv, tsv, parquet, arrow, arff or jsonl, if the name does not tell it.",
        rich_help_panel=READING,
    ),
]
Model = Annotated[
    str, typer.Option("--model", "-m", metavar="MODEL", help=MODEL_HELP, rich_help_panel=MODEL)
]
Settings = Annotated[
    list[str],
    typer.Option(
        "--set",
        "-s",
        metavar="NAME=VALUE",
        help=f"Set a parameter of the model; may be repeated. The tree's, with their defaults: "
        f"{DEFAULTS_SHOWN}.",
        rich_help_panel=MODEL,
    ),
]
OnBadRowOption = Annotated[
    Literal["error", "skip"],
    typer.Option(
        help="A row that cannot be read stops all, or is counted and left out.",
        rich_help_panel=READING,
    ),
]
BadRows = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Write the rows left out to a file, with their places and reasons (CSV).",
        rich_help_panel=OUTPUT,
    ),
]
Delayed = Annotated[
    str | None,
    typer.Option(
        metavar="ROWS|TIME",
        help="Labels come so many rows late (24), or so much later by --time (2h).",
        rich_help_panel=READING,
    ),
]
Time = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The column that tells the time of a row: for --delay, for the same hour last week, "
        "and for the report. The first column of times, if not given.",
        rich_help_panel=READING,
    ),
]
Checkpoint = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Save all from time to time; the same command again goes on from there.",
        rich_help_panel=OUTPUT,
    ),
]
Every = Annotated[
    str,
    typer.Option(
        metavar="ROWS|TIME",
        help="How often --checkpoint saves: after so many rows (100000) or so long (30s).",
        rich_help_panel=OUTPUT,
    ),
]
Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet",
        "-q",
        help="Leave out the table that says how columns are read.",
        rich_help_panel=READING,
    ),
]
AsJson = Annotated[
    bool,
    typer.Option(
        "--json", help="Print the result as JSON on standard output.", rich_help_panel=OUTPUT
    ),
]


@dataclass(frozen=True)
class Reading:
    """How a stream is to be read, as it was typed; and for which model, if that knows features."""

    target: str | None = None
    drop: Sequence[str] = ()
    categorical: Sequence[str] = ()
    time_formats: Sequence[str] = ()
    time_parts: str = ""
    time: str | None = None
    format: Format | None = None
    decimal: str | None = None
    thousands: str | None = None
    encoding: str | None = None
    header: bool | None = None
    model: Regressor | None = None

    def open(self, name: str | Sequence[str]) -> Stream:
        """Open a stream by its name, or by those of its files."""
        if not isinstance(name, str) and len(name) == 1:
            name = name[0]
        generated = _generated(name) if isinstance(name, str) else None
        if generated is not None and isinstance(name, str):
            self._check_generated(name, generated)
            return generated
        categorical, known, known_formats = self.categorical, None, None
        if self.model is not None and self.model.features:
            categorical = [*categorical, *map(str, self.model.parameters["categorical"])]
            known = _known_by(self.model)
            known_formats = self.model.column_formats
        try:
            opened = open_stream(
                name,
                target=self.target,
                drop=self.drop,
                categorical=categorical,
                time_formats=settings(self.time_formats, "--time-format"),
                time_parts=_parts(self.time_parts),
                time=self.time,
                known=known,
                known_formats=known_formats,
                decimal=self.decimal,
                thousands=self.thousands,
                encoding=self.encoding,
                header=self.header,
                format=self.format,
            )
        except FileNotFoundError:
            if not isinstance(name, str) or os.path.basename(name) != name or "." in name:
                raise
            raise UsageError(
                f"{name}: neither a file nor a generator: {nearest(name, GENERATORS)}"
            ) from None
        if "pyarrow" in sys.modules:
            # It handles signals itself while it parses, and loses some that come at the end of it.
            sys.modules["pyarrow"].enable_signal_handlers(False)
        return opened if self.model is None else _Renamed.for_model(opened, self.model)

    def _check_generated(self, name: str, stream: Stream) -> None:
        """Complain of options that a stream which is computed cannot heed."""
        if self.target not in (None, stream.target):
            raise UsageError(f"--target {self.target}: the target of {name} is {stream.target}")
        given = {
            "--drop": self.drop,
            "--categorical": self.categorical,
            "--time-format": self.time_formats,
            "--time-parts": self.time_parts,
            "--time": self.time,
            "--format": self.format,
            "--decimal": self.decimal,
            "--thousands": self.thousands,
            "--encoding": self.encoding,
            "--header or --no-header": self.header is not None,
        }
        for option, value in given.items():
            if value:
                raise UsageError(f"{option} is for files, and {name} is computed: leave it out")


class _Renamed(Stream):
    """A stream whose columns "0", "1", … are the features 0, 1, … of a model that learned arrays.

    Parameters
    ----------
    stream : Stream
        What is read.
    names : mapping of str to int
        The features that such columns are.
    """

    def __init__(self, stream: Stream, names: Mapping[str, int]) -> None:
        self.unit = stream.unit  # type: ignore[misc]
        super().__init__(
            stream.name,
            {names.get(name, name): kind for name, kind in stream.features.items()},
            stream.target,
            stream.size,
            stream.length,
            stream.declared,
            stream.time,
            stream.time_formats,
            stream.column_notes,
            stream.encoding,
            stream.ids,
        )
        self._stream, self._names = stream, names

    @classmethod
    def for_model(cls, stream: Stream, model: Regressor) -> Stream:
        """Return a stream whose columns are called as a model calls them."""
        names = {
            str(name): name
            for name in model.features
            if isinstance(name, int) and str(name) not in model.features
        }
        return cls(stream, names) if names else stream

    def chunks(self, start: Position | None = None, most_rows: int = MOST_ROWS) -> Iterator[Chunk]:
        """Yield the rows from a position on."""
        for chunk in self._stream.chunks(start, most_rows):
            columns = {self._names.get(name, name): chunk.columns[name] for name in chunk.columns}
            yield replace(chunk, columns=columns)

    @property
    def clock(self) -> Label | None:
        """That of what is read, called as the model calls it."""
        clock = self._stream.clock
        return self._names.get(clock, clock) if isinstance(clock, str) else clock

    @property
    def fingerprint(self) -> str:
        """That of what is read."""
        return self._stream.fingerprint


def _known_by(tree: Regressor) -> dict[str, Kind]:
    return {
        str(name): "category" if kind == "category" else "number"
        for name, kind in tree.feature_kinds.items()
    }


def _parts(typed: str) -> tuple[str, ...] | None:
    """Return the parts of times that were asked for; None if the stream shall choose."""
    parts = tuple(dict.fromkeys(part.strip() for part in typed.split(",") if part.strip()))
    return (() if parts == ("none",) else parts) if parts else None


def _generated(name: str) -> Stream | None:
    """Return the generated stream of a name, None if it is that of a file."""
    if name.partition(":")[0] not in GENERATORS or os.path.exists(name):
        return None
    from sapwood.streams.generators import generator

    return generator(name)


def check_bad_rows(bad_rows: Path | None, on_bad_row: str) -> None:
    """Complain of a file for rows left out if none is."""
    if bad_rows is not None and on_bad_row == "error":
        raise UsageError("--bad-rows is for rows that are left out: add --on-bad-row skip")


def tell_missing(terminal: Terminal, tree: Regressor, stream: Stream) -> None:
    """Say which features of a model a stream lacks."""
    there = set(map(str, stream.features))
    missing = [str(name) for name in tree.features if str(name) not in there]
    if missing:
        terminal.say(f"sapwood: {stream.name} lacks {', '.join(missing)}: missing in all rows")


OWN_OPTIONS = ("target", "drop", "categorical", "time_parts", "time_format", "format")


def open_named(spec: str | Sequence[str], reading: Reading) -> Stream:
    """Open a stream whose own options may follow its name, those of many values joined by "+".

    Examples
    --------
    >>> open_named("friedman:rows=500", Reading()).length
    500
    """
    if not isinstance(spec, str):
        return reading.open(spec) if len(spec) > 1 else open_named(spec[0], reading)
    name, own = split_spec(spec)
    if not own or os.path.exists(spec) or _generated(spec) is not None:
        return reading.open(spec)
    for key in own:
        if key not in OWN_OPTIONS:
            raise UsageError(f"{spec}: {key} is none of {', '.join(OWN_OPTIONS)}")
    changed: dict[str, Any] = {key: own[key] for key in ("target", "format") if key in own}
    changed.update({key: own[key].split("+") for key in ("drop", "categorical") if key in own})
    if "time_parts" in own:
        changed["time_parts"] = own["time_parts"].replace("+", ",")
    if "time_format" in own:
        changed["time_formats"] = [own["time_format"].replace(":", "=", 1)]
    return replace(reading, **changed).open(name)
