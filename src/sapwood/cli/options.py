"""Options that several commands share: how a stream is read, and how a model is made."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sapwood.cli.failure import UsageError
from sapwood.cli.models import DEFAULTS_SHOWN, MODEL_HELP
from sapwood.cli.values import whole_numbers
from sapwood.door import Label
from sapwood.streams.schema import PARTS

if TYPE_CHECKING:
    from sapwood.lags import Lags
    from sapwood.lags.lags import Spans

__all__ = ["EMBEDDED", "LagOptions", "check_bad_rows"]

READING = "How the stream is read"
MODEL = "The model"
OUTPUT = "What is written"
LAGS = "What came before, as features"
WORKERS = "Who learns"
MOST_SERIES = 10_000
"""As of `sapwood.lags`, which takes a while to load."""
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
    "a folder or a pattern such as 'days/*.csv', read in order; - for standard input; a topic of "
    "Kafka: kafka://HOST:PORT/TOPIC; or a "
    f"generator: {', '.join(GENERATORS)}, such as friedman:rows=1000000,seed=3."
)

Format = Literal["csv", "tsv", "parquet", "arrow", "arff", "jsonl"]

StreamArgument = Annotated[list[str], typer.Argument(metavar="STREAM", help=STREAM_HELP)]
Target = Annotated[
    list[str],
    typer.Option(
        "--target",
        "-t",
        metavar="NAME",
        help="The column to predict; may be repeated, for several targets of one tree.",
    ),
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
        help="Read the numbers of a column as categories; may be repeated.",
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
UntilEnd = Annotated[
    bool,
    typer.Option(
        "--until-end",
        help="Read a topic up to where it ends now; else it is followed until Ctrl-C.",
        rich_help_panel=READING,
    ),
]
KafkaConfig = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Settings of the client of a topic, such as TLS and SASL: lines of name=value.",
        rich_help_panel=READING,
        show_default=False,
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
        help="A row that cannot be read ends the run, or is counted and left out.",
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
MonitorOption = Annotated[
    bool,
    typer.Option(
        "--monitor",
        help="Watch errors, the target and all features, and tell what has changed.",
        rich_help_panel=OUTPUT,
    ),
]
OnceIn = Annotated[
    float,
    typer.Option(
        "--once-in",
        metavar="ROWS",
        help="How rare false alarms of --monitor are to be: at most one in so many rows.",
        rich_help_panel=OUTPUT,
    ),
]
Events = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Write what --monitor finds changed, and what trees of a forest do (JSON lines).",
        rich_help_panel=OUTPUT,
    ),
]
Interval = Annotated[
    list[float],
    typer.Option(
        "--interval",
        metavar="LEVEL",
        help="Bounds that are to contain this share of all targets, such as 0.9; may be repeated. "
        "Of several targets, each has its own.",
        rich_help_panel=MODEL,
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
        help="Save the run from time to time; the same command again goes on from there.",
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
Workers = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="COUNT",
        help="Let so many workers learn: parts of the files, or members of a forest.",
        rich_help_panel=WORKERS,
    ),
]
EngineOption = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="NAME|ADDRESS",
        help="Where they are: processes or threads of this machine; dask or ray, a local cluster; "
        "dask://HOST:PORT or ray://HOST:PORT.",
        rich_help_panel=WORKERS,
    ),
]
Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet",
        "-q",
        help="Print nothing but errors and what --json or - asks for.",
        rich_help_panel=OUTPUT,
    ),
]
Ids = Annotated[
    list[str],
    typer.Option(
        "--id",
        metavar="NAME",
        help="A column that tells rows apart: not a feature, but written beside predictions; a row "
        "without a target is learned when another row of its id brings it. May be repeated.",
        rich_help_panel=READING,
    ),
]
Labels = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Another file with the targets of rows, told by --id.",
        rich_help_panel=READING,
    ),
]
LagsOption = Annotated[
    str,
    typer.Option(
        metavar="ROWS,...",
        help="Add the targets of so many rows before as features: 1,24,168. Of several targets, "
        "those of each.",
        rich_help_panel=LAGS,
    ),
]
LagsOf = Annotated[
    list[str],
    typer.Option(
        metavar="NAME:ROWS,...",
        help="Add earlier values of a column: temp:1,3; may be repeated.",
        rich_help_panel=LAGS,
    ),
]
Means = Annotated[
    str,
    typer.Option(
        metavar="ROWS,...",
        help="Add the mean target of the last so many rows: 24.",
        rich_help_panel=LAGS,
    ),
]
MeansOf = Annotated[
    list[str],
    typer.Option(
        metavar="NAME:ROWS,...",
        help="Add the mean of a column over the last so many rows: temp:24; may be repeated.",
        rich_help_panel=LAGS,
    ),
]
By = Annotated[
    list[str],
    typer.Option(
        metavar="NAME",
        help="A column that tells series apart, such as stations: rows before are then those of "
        "the same series. May be repeated.",
        rich_help_panel=LAGS,
    ),
]
MaxSeries = Annotated[
    int,
    typer.Option(
        min=1,
        metavar="COUNT",
        help="How many series are remembered; for a new one beyond these, the one is forgotten "
        "that has had no row for the longest time.",
        rich_help_panel=LAGS,
    ),
]
AsJson = Annotated[
    bool,
    typer.Option(
        "--json", help="Print the result as JSON on standard output.", rich_help_panel=OUTPUT
    ),
]


@dataclass(frozen=True)
class LagOptions:
    """Which lags are features, as it was typed."""

    lags: LagsOption = ""
    lags_of: LagsOf = field(default_factory=list)
    means: Means = ""
    means_of: MeansOf = field(default_factory=list)
    by: By = field(default_factory=list)
    max_series: MaxSeries = MOST_SERIES

    def made(self, target: "str | Sequence[str]") -> "Lags | None":
        """Return the lags of a target, or of several; None if none are asked for."""
        wanted = (self.lags, self.lags_of, self.means, self.means_of)
        if not any(wanted):
            if self.by:
                raise UsageError(f"--by {self.by[0]} is for lags: add --lags 1, or leave it out")
            return None
        from sapwood.lags import Lags

        try:
            return Lags(
                whole_numbers(self.lags, "--lags"),
                whole_numbers(self.means, "--means"),
                lags_of=_spans_of(self.lags_of, "--lags-of"),
                means_of=_spans_of(self.means_of, "--means-of"),
                by=self.by,
                target=target,
                max_series=self.max_series,
            )
        except ValueError as error:
            raise UsageError(str(error)) from None


def _spans_of(texts: Sequence[str], option: str) -> "dict[Label, Spans]":
    spans: dict[Label, Spans] = {}
    for text in texts:
        name, colon, numbers = text.rpartition(":")
        if not (colon and name):
            raise UsageError(f"{option} {text}: NAME:ROWS is expected, such as temp:1,3")
        if name in spans:
            raise UsageError(f"{option} {text}: {name} is given twice, join its numbers by commas")
        spans[name] = whole_numbers(numbers, option)
    return spans


def check_bad_rows(bad_rows: Path | None, on_bad_row: str) -> None:
    """Complain of a file for rows left out if none is."""
    if bad_rows is not None and on_bad_row == "error":
        raise UsageError("--bad-rows is for rows that are left out: add --on-bad-row skip")
