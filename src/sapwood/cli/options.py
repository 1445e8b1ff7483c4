"""Options that several commands share: how a stream is read, and how a model is made."""

from collections.abc import Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from sapwood.cli.failure import UsageError
from sapwood.cli.values import longer, spans
from sapwood.validation import Label

if TYPE_CHECKING:
    from sapwood.lags import Lags

__all__ = ["EMBEDDED", "LagOptions", "check_bad_rows", "default_of", "given_options", "long_name"]

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
working = partial(typer.Option, rich_help_panel=WORKERS)


def option(
    help: str,
    metavar: str | None = None,
    *,
    default: Any = None,
    names: Sequence[str] = (),
    panel: str | None = None,
    **more: Any,
) -> Any:
    """Return a field of a group of options, which `as_command` makes one of a command."""
    info = typer.Option(*names, help=help, metavar=metavar, rich_help_panel=panel, **more)
    metadata = {"option": info}
    if isinstance(default, list):
        return field(default_factory=default.copy, metadata=metadata)
    return field(default=default, metadata=metadata)


def default_of(each: Field[Any]) -> Any:
    """Return the default value of a field of a group of options."""
    return each.default if each.default_factory is MISSING else each.default_factory()


def long_name(info: Any, name: str) -> str:
    """Return the long form of an option of typer, by that and the name of its parameter."""
    declared = (info.default, *(info.param_decls or ()))  # typer takes the first for the default
    long = (text for text in declared if isinstance(text, str) and text.startswith("--"))
    return next(long, f"--{name.replace('_', '-')}")


def given_options(group: Any) -> list[str]:
    """Return the options of a group that were typed."""
    return [
        long_name(each.metadata["option"], each.name)
        for each in fields(group)
        if "option" in each.metadata and getattr(group, each.name) != default_of(each)
    ]


input_field = partial(option, panel=READING)
model_field = partial(option, panel=MODEL)
output_field = partial(option, panel=OUTPUT)
lag_field = partial(option, panel=LAGS)

StreamArgument = Annotated[list[str], typer.Argument(metavar="STREAM", help=STREAM_HELP)]
Task = Annotated[
    Literal["auto", "numbers", "classes"],
    learning(
        help="What is predicted: numbers or classes. auto: classes if the target is text, or if "
        "the model is a saved classifier."
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
Report = Annotated[Path | None, writing(metavar="FILE", help="Write a self-contained HTML report.")]
Output = Annotated[
    Path, typer.Option("--output", "-o", metavar="FILE", help="- is standard output.")
]
SavedModel = Annotated[Path, typer.Argument(metavar="MODEL", help="A saved model.")]
AsJson = Annotated[bool, writing("--json", help="Print the result as JSON on standard output.")]


@dataclass(frozen=True)
class LagOptions:
    """Which lags are features, as it was typed."""

    lags: str = lag_field(
        "Add earlier targets as features, by rows (1,24,168) or by the time of rows "
        "(24h,168h); auto: by the autocorrelation of the first rows. With several targets, "
        "those of each.",
        "ROWS,...|TIME,...|auto",
        default="",
    )
    lags_of: list[str] = lag_field(
        "Add earlier values of a column: temp:1,3 or temp:24h; may be repeated.",
        "NAME:ROWS,...|TIME,...",
        default=[],
    )
    means: str = lag_field(
        "Add the rolling mean of the target over this many rows (24) or this time (24h).",
        "ROWS,...|TIME,...",
        default="",
    )
    means_of: list[str] = lag_field(
        "Add the rolling mean of a column: temp:24 or temp:24h; may be repeated.",
        "NAME:ROWS,...|TIME,...",
        default=[],
    )
    by: list[str] = lag_field(
        "Column that identifies a series, such as a station; lags are those of the same "
        "series. May be repeated.",
        "NAME",
        default=[],
    )
    max_series: int = lag_field(
        "Number of series in memory; beyond that, the least recently used series is evicted.",
        "COUNT",
        default=MOST_SERIES,
        min=1,
    )

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
