"""Options that several commands share: how a stream is read, and how a model is made."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sapwood.cli.failure import UsageError
from sapwood.cli.models import DEFAULTS_SHOWN, MODEL_HELP
from sapwood.cli.values import longer, spans
from sapwood.streams.schema import PARTS
from sapwood.validation import Label

if TYPE_CHECKING:
    from sapwood.lags import Lags

__all__ = ["EMBEDDED", "LagOptions", "check_bad_rows"]

READING = "Input"
MODEL = "Model"
OUTPUT = "Output"
LAGS = "Lag features"
WORKERS = "Distributed training"
MOST_SERIES = 10_000
"""As of `sapwood.lags`, which takes a while to load."""
MOST_WORKERS = 65_536
"""As of `sapwood.scale`."""
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
    "A file (CSV, TSV, Parquet, Arrow, ARFF, JSON lines; text may be compressed), several files, "
    "a folder or a pattern such as 'days/*.csv'; - for standard input; a Kafka topic, "
    "kafka://HOST:PORT/TOPIC; or a "
    f"generator: {', '.join(GENERATORS)}, such as friedman:rows=1000000,seed=3."
)

Format = Literal["csv", "tsv", "parquet", "arrow", "arff", "jsonl"]

reading = partial(typer.Option, rich_help_panel=READING)
learning = partial(typer.Option, rich_help_panel=MODEL)
writing = partial(typer.Option, rich_help_panel=OUTPUT)
lagging = partial(typer.Option, rich_help_panel=LAGS)
working = partial(typer.Option, rich_help_panel=WORKERS)

StreamArgument = Annotated[list[str], typer.Argument(metavar="STREAM", help=STREAM_HELP)]
Target = Annotated[
    list[str],
    typer.Option(
        "--target",
        "-t",
        metavar="NAME",
        help="The column to predict; repeat it for multi-target regression.",
    ),
]
Drop = Annotated[list[str], reading(metavar="NAME", help="Leave a column out; may be repeated.")]
Categorical = Annotated[
    list[str],
    reading(metavar="NAME", help="Read the numbers of a column as categories; may be repeated."),
]
TimeFormats = Annotated[
    list[str],
    reading(
        "--time-format",
        metavar="NAME=FORMAT",
        help="Format of a column of times, such as 'sold=%d.%m.%Y %H:%M' or "
        "sold=milliseconds; sold=none for a number. Most formats are detected.",
    ),
]
TimeParts = Annotated[
    str,
    reading(
        metavar="PARTS",
        help=f"Parts of times to add as features: any of {','.join(PARTS)}, or none. Default: "
        "those of hour, weekday and season that vary.",
    ),
]
TimeZone = Annotated[
    str | None,
    reading(
        "--timezone",
        metavar="NAME",
        help="Time zone of the column of times, such as Europe/Berlin: times without an offset are "
        "local, and hour and weekday are those of local time.",
    ),
]
Holidays = Annotated[
    str | None,
    reading(
        metavar="COUNTRY",
        help="Add the public holidays of a country or a part of it, such as DE or DE-BY, as a feature.",
    ),
]
SpecialDays = Annotated[
    list[Path],
    reading(
        metavar="FILE",
        help="Add special days as a feature, such as school holidays: a CSV file with the column "
        "date, or date and until; may be repeated.",
    ),
]
Decimal = Annotated[
    str | None, reading(metavar="MARK", help="Decimal mark, . or , - if it is not detected.")
]
Thousands = Annotated[
    str | None, reading(metavar="MARK", help="Thousands separator: . , ' or a blank.")
]
Encoding = Annotated[
    str | None,
    reading(metavar="NAME", help="Text encoding, such as cp1252, if it is not detected."),
]
HeaderOption = Annotated[
    bool | None,
    reading(
        "--header/--no-header",
        show_default=False,
        help="Whether the first line of a CSV file has the column names; otherwise c1, c2, …",
    ),
]
FormatOption = Annotated[
    Format | None,
    reading(
        "--format",
        metavar="FORMAT",
        help="csv, tsv, parquet, arrow, arff or jsonl, if the file name does not show it.",
    ),
]
SampleRows = Annotated[
    int | None,
    reading(
        "--sample",
        metavar="ROWS",
        show_default=False,
        help="Rows that are looked at to find what columns are (1000): from a pipe, predictions "
        "are written once so many have come.",
    ),
]
SchemaOption = Annotated[
    Path | None,
    reading(
        "--schema",
        metavar="FILE",
        help="Read the columns as this saved model reads them; from a pipe, predictions are "
        "written at once.",
    ),
]
UntilEnd = Annotated[
    bool,
    reading(
        "--until-end", help="Stop at the present end of a topic; otherwise follow it until Ctrl-C."
    ),
]
KafkaConfig = Annotated[
    Path | None,
    reading(
        metavar="FILE",
        show_default=False,
        help="Settings of the Kafka client, such as TLS and SASL: lines of name=value.",
    ),
]
Model = Annotated[str, learning("--model", "-m", metavar="MODEL", help=MODEL_HELP)]
Settings = Annotated[
    list[str],
    learning(
        "--set",
        "-s",
        metavar="NAME=VALUE",
        help=f"Set a parameter of the model; may be repeated. The tree's, with their defaults: "
        f"{DEFAULTS_SHOWN}.",
    ),
]
Task = Annotated[
    Literal["auto", "numbers", "classes"],
    learning(
        help="What is predicted: numbers or classes. auto: classes if the target is text, or if "
        "the model is a saved classifier."
    ),
]
Batch = Annotated[
    str | None,
    learning(
        "--batch",
        metavar="LEARNER|FILE",
        help="The batch learner of -m hybrid: lightgbm or hist_gradient_boosting, refitted on the "
        "latest rows; or the file of a LightGBM model (save_model), which is corrected online.",
    ),
]
Transform = Annotated[
    Literal["sqrt", "log1p", "auto"] | None,
    learning(
        "--transform",
        help="Learn the square root or log(1 + y) of a count or skewed target; auto combines a model "
        "of y and one of its square root.",
    ),
]
LossName = Annotated[
    Literal["poisson", "huber"] | None,
    learning(
        "--loss",
        help="Minimise another loss than the squared error: poisson for counts, huber for targets "
        "with outliers.",
    ),
]
OnBadRowOption = Annotated[
    Literal["error", "skip"],
    reading(help="Stop at a row that cannot be read, or skip and count it."),
]
BadRows = Annotated[
    Path | None,
    writing(metavar="FILE", help="Write skipped rows, with their places and reasons (CSV)."),
]
MonitorOption = Annotated[
    bool,
    writing("--monitor", help="Detect concept drift in the errors, the target and all features."),
]
OnceIn = Annotated[
    float,
    writing(
        "--once-in",
        metavar="ROWS",
        help="Expected number of rows between false alarms of --monitor.",
    ),
]
Events = Annotated[
    Path | None,
    writing(
        metavar="FILE",
        help="Write drift events, and replacements of trees in a forest (JSON lines).",
    ),
]
Interval = Annotated[
    list[float],
    learning(
        "--interval",
        metavar="LEVEL",
        help="Coverage of the prediction intervals, such as 0.9; may be repeated. "
        "Each target has its own intervals; of classes, coverage of prediction sets.",
    ),
]
Minimum = Annotated[
    float | None,
    writing(
        "--min",
        metavar="NUMBER",
        help="Least possible target, such as 0 for counts: predictions and prediction intervals "
        "are held above it.",
    ),
]
Maximum = Annotated[
    float | None,
    writing(
        "--max",
        metavar="NUMBER",
        help="Largest possible target: predictions and prediction intervals are held below it.",
    ),
]
Delayed = Annotated[
    str | None,
    reading(
        metavar="ROWS|TIME", help="Delay of labels, in rows (24) or by the column --time (2h)."
    ),
]
HorizonOption = Annotated[
    str | None,
    reading(
        metavar="TIME|ROWS,...",
        help="Predict so far ahead: labels are that late, and no lag is shorter. By the time of "
        "rows (24h) or in rows (24); `evaluate` takes several, each with a model of its own.",
    ),
]
KnownAhead = Annotated[
    str,
    reading(
        metavar="all|none|NAME,...",
        help="Columns whose values are known at the horizon, such as a weather forecast. Others "
        "are left out; the time and the columns of --by always count as known.",
    ),
]
SeriesOption = Annotated[
    list[str],
    reading(
        "--series",
        metavar="NAME",
        help="Report errors by series, which this column identifies; may be repeated.",
    ),
]
Season = Annotated[
    str | None,
    reading(
        metavar="TIME|ROWS",
        help="Season of the seasonal naive forecast and of MASE, such as 24h or 168h. Default "
        "with --horizon: found in the first rows.",
    ),
]
Time = Annotated[
    str | None,
    reading(
        metavar="NAME",
        help="Column with the time of a row, for --delay, the weekly baseline and the report. "
        "Default, except for --delay: the first column of times.",
    ),
]
Checkpoint = Annotated[
    Path | None,
    writing(
        metavar="FILE", help="Save the state of the run regularly; the same command resumes it."
    ),
]
Every = Annotated[
    str, writing(metavar="ROWS|TIME", help="Rows (100000) or time (30s) between checkpoints.")
]
Workers = Annotated[
    int | None,
    working(
        min=1,
        max=MOST_WORKERS,
        metavar="COUNT",
        help="Number of workers, which share the files or the members of a forest.",
    ),
]
EngineOption = Annotated[
    str,
    working(
        "--engine",
        metavar="NAME|ADDRESS",
        help="Where workers run: processes or threads; dask or ray, a local cluster; "
        "dask://HOST:PORT or ray://HOST:PORT.",
    ),
]
Quiet = Annotated[bool, writing("--quiet", "-q", help="Print errors and requested output only.")]
Ids = Annotated[
    list[str],
    reading(
        "--id",
        metavar="NAME",
        help="Row identifier. Copied to the output, not used as a feature; joins labels that "
        "arrive later. May be repeated.",
    ),
]
Labels = Annotated[Path | None, reading(metavar="FILE", help="File with labels, joined by --id.")]
LagsOption = Annotated[
    str,
    lagging(
        metavar="ROWS,...|TIME,...|auto",
        help="Add earlier targets as features, by rows (1,24,168) or by the time of rows "
        "(24h,168h); auto: by the autocorrelation of the first rows. With several targets, "
        "those of each.",
    ),
]
LagsOf = Annotated[
    list[str],
    lagging(
        metavar="NAME:ROWS,...|TIME,...",
        help="Add earlier values of a column: temp:1,3 or temp:24h; may be repeated.",
    ),
]
Means = Annotated[
    str,
    lagging(
        metavar="ROWS,...|TIME,...",
        help="Add the rolling mean of the target over this many rows (24) or this time (24h).",
    ),
]
MeansOf = Annotated[
    list[str],
    lagging(
        metavar="NAME:ROWS,...|TIME,...",
        help="Add the rolling mean of a column: temp:24 or temp:24h; may be repeated.",
    ),
]
By = Annotated[
    list[str],
    lagging(
        metavar="NAME",
        help="Column that identifies a series, such as a station; lags are those of the same "
        "series. May be repeated.",
    ),
]
MaxSeries = Annotated[
    int,
    lagging(
        min=1,
        metavar="COUNT",
        help="Number of series in memory; beyond that, the least recently used series is evicted.",
    ),
]
Report = Annotated[Path | None, writing(metavar="FILE", help="Write a self-contained HTML report.")]
Output = Annotated[
    Path, typer.Option("--output", "-o", metavar="FILE", help="- is standard output.")
]
SavedModel = Annotated[Path, typer.Argument(metavar="MODEL", help="A saved model.")]
AsJson = Annotated[bool, writing("--json", help="Print the result as JSON on standard output.")]


@dataclass(frozen=True)
class LagOptions:
    """Which lags are features, as it was typed."""

    lags: LagsOption = ""
    lags_of: LagsOf = field(default_factory=list)
    means: Means = ""
    means_of: MeansOf = field(default_factory=list)
    by: By = field(default_factory=list)
    max_series: MaxSeries = MOST_SERIES

    @property
    def wants_lags(self) -> bool:
        """Whether any lag or rolling mean is requested."""
        return any((self.lags, self.lags_of, self.means, self.means_of))

    def made(
        self,
        target: "str | Sequence[str]",
        time: "Label | None" = None,
        horizon: int | str | None = None,
    ) -> "Lags | None":
        """Return the lags of a target, or of several; None if none are requested.

        - `target`: the name of the target, or those of several.
        - `time`: the feature that is the time of rows, for durations.
        - `horizon`: how far ahead rows are predicted: shorter lags are left out. If none is left,
          there is one of the horizon.
        """
        if not self.wants_lags:
            if self.by:
                raise UsageError(f"--by {self.by[0]} is for lags: add --lags 1, or leave it out")
            return None
        from sapwood.lags import Lags

        lags, means = spans(self.lags, "--lags"), spans(self.means, "--means")
        lags_of = _spans_of(self.lags_of, "--lags-of")
        means_of = _spans_of(self.means_of, "--means-of")
        if horizon is not None:
            lags = longer(lags, horizon) or ([horizon] if lags else [])
            lags_of = {name: longer(each, horizon) for name, each in lags_of.items()}
        every = [*lags, *means]
        for each in (*lags_of.values(), *means_of.values()):
            every += each
        durations = [each for each in every if isinstance(each, str)]
        if durations and time is None:
            raise UsageError(f"{durations[0]} before a row needs --time, the column of times")
        try:
            return Lags(
                lags,
                means,
                lags_of=lags_of,
                means_of=means_of,
                by=self.by,
                target=target,
                max_series=self.max_series,
                time=time if durations else None,
                horizon=horizon,
            )
        except ValueError as error:
            raise UsageError(str(error)) from None


def _spans_of(texts: Sequence[str], option: str) -> "dict[Label, list[int | str]]":
    found: dict[Label, list[int | str]] = {}
    for text in texts:
        name, colon, numbers = text.rpartition(":")
        if not (colon and name):
            raise UsageError(f"{option} {text}: NAME:ROWS is expected, such as temp:1,3")
        if name in found:
            raise UsageError(f"{option} {text}: {name} is given twice, join its numbers by commas")
        found[name] = spans(numbers, option)
    return found


def check_bad_rows(bad_rows: Path | None, on_bad_row: str) -> None:
    """Complain of a file for rows left out if none is."""
    if bad_rows is not None and on_bad_row == "error":
        raise UsageError("--bad-rows is for rows that are left out: add --on-bad-row skip")


def limits(minimum: float | None, maximum: float | None) -> tuple[float, float] | None:
    """Return the range of --min and --max, None if there is none."""
    if minimum is None and maximum is None:
        return None
    from sapwood.evaluate.learner import checked_limits

    try:
        return checked_limits(minimum, maximum)
    except ValueError as error:
        words = str(error).replace("minimum", "--min").replace("maximum", "--max")
        raise UsageError(words.replace(" = ", " ")) from None
