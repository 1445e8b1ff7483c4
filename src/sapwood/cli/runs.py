"""A run of what was typed: the stream, the model with its lags, and how it is scored."""

from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from sapwood.cli import options
from sapwood.cli.failure import Terminal, UsageError
from sapwood.cli.files import is_stdout
from sapwood.cli.horizons import AUTO, Ahead, not_known_ahead
from sapwood.cli.models import (
    DEFAULTS_SHOWN,
    MODEL_HELP,
    make_model,
    saved_model,
    with_bounds,
    with_named_stage,
    with_stage,
)
from sapwood.cli.options import input_field, model_field, output_field
from sapwood.cli.outputs import BadRowFile, EventFile, Output
from sapwood.cli.reading import Reading, is_topic, open_named
from sapwood.cli.series import score_series
from sapwood.cli.values import amount, settings
from sapwood.drift import Monitor
from sapwood.evaluate.checkpoint import CheckpointFile
from sapwood.evaluate.prequential import OnBadRow, Prequential
from sapwood.evaluate.scores import FADE, WINDOW
from sapwood.lags import LaggedModel, Lags
from sapwood.model import StoredModel
from sapwood.streams.labelled import LabelledStream, labels_of
from sapwood.streams.opening import open_stream
from sapwood.streams.stream import Kind, Stream
from sapwood.streams.targets import SeveralTargets
from sapwood.system import system

__all__ = ["Files", "Learning", "Scoring", "Targets", "make_run"]

SCORES = "Scores"
WRITTEN = ("report", "model", "curve", "errors by series")
SHOWN_FIRST, SHOWN_LAST = 6, 4
"""How many of the first and last columns are named where one is to be chosen."""
USUAL_TARGETS = ("target", "y", "label", "value", "price", "count", "cnt", "demand", "sales")


@dataclass(frozen=True)
class Targets:
    """When and where targets come, and what is done with rows that cannot be used."""

    delay: str | None = input_field(
        "Delay of labels, in rows (24) or by the column --time (2h).", "ROWS|TIME"
    )
    horizon: str | None = input_field(
        "Predict so far ahead: labels are that late, and no lag is shorter. By the time of "
        "rows (24h) or in rows (24); `evaluate` takes several, each with a model of its own.",
        "TIME|ROWS,...",
    )
    known_ahead: str = input_field(
        "Columns whose values are known at the horizon, such as a weather forecast. Others "
        "are left out; the time and the columns of --by always count as known.",
        "all|none|NAME,...",
        default="all",
    )
    labels: Path | None = input_field("File with labels, joined by --id.", "FILE")
    on_bad_row: options.OnBadRowOption = "error"


@dataclass(frozen=True)
class Scoring:
    """How errors are reckoned."""

    fade: Annotated[
        float,
        typer.Option(
            help="Weight of the exponentially weighted error per row; 0.999 is a half-life of 693 rows.",
            rich_help_panel=SCORES,
        ),
    ] = FADE
    window: Annotated[
        int, typer.Option(help="Rows of the windowed error.", rich_help_panel=SCORES)
    ] = WINDOW
    season: str | None = input_field(
        "Season of the seasonal naive forecast and of MASE, such as 24h or 168h. Default "
        "with --horizon: found in the first rows.",
        "TIME|ROWS",
    )
    series: list[str] = input_field(
        "Report errors by series, which this column identifies; may be repeated.",
        "NAME",
        default=[],
    )
    monitor: bool = output_field(
        "Detect concept drift in the errors, the target and all features.",
        default=False,
        names=("--monitor",),
    )
    once_in: float = output_field(
        "Expected number of rows between false alarms of --monitor.", "ROWS", default=1_000_000.0
    )
    minimum: options.Minimum = None
    maximum: options.Maximum = None


@dataclass(frozen=True)
class Learning(options.LagOptions):
    """Which model learns, with which lags in front of it."""

    model: str = model_field(MODEL_HELP, "MODEL", default="tree", names=("--model", "-m"))
    set_: list[str] = model_field(
        f"Set a parameter of the model; may be repeated. The tree's, with their defaults: "
        f"{DEFAULTS_SHOWN}.",
        "NAME=VALUE",
        default=[],
        names=("--set", "-s"),
    )
    task: options.Task = "auto"
    batch: str | None = model_field(
        "The batch learner of -m hybrid: lightgbm or hist_gradient_boosting, refitted on the "
        "latest rows; or the file of a LightGBM model (save_model), which is corrected online.",
        "LEARNER|FILE",
    )
    interval: options.Interval = field(default_factory=list)
    transform: Literal["sqrt", "log1p", "auto"] | None = model_field(
        "Learn the square root or log(1 + y) of a count or skewed target; auto combines a model "
        "of y and one of its square root."
    )
    loss: Literal["poisson", "huber", "winsorized"] | None = model_field(
        "Minimise another loss than the squared error: poisson for counts, huber for targets "
        "with large errors, winsorized for isolated outliers."
    )
    stage: str | None = model_field(
        "Put a stage around the model: screened, for hundreds of features of which few matter; "
        "views:crosses=A:B+C:D:SIZE or views:without=lags, models of several columns; recurring, "
        "for concepts that return; sparse, for rows with few of many names.",
        "NAME[:PARAMETER=VALUE,...]",
    )

    @property
    def of_the_target(self) -> dict[str, str | None]:
        """The options that are for one target, of which one may be given."""
        return {"--transform": self.transform, "--loss": self.loss, "--stage": self.stage}


written = partial(options.writing, metavar="FILE")
PREDICTIONS_HELP = "Write the prediction of each row (CSV); - for standard output."
SERIES_HELP = "Write the errors of each series (CSV); see --series."


@dataclass(frozen=True)
class Files:
    """The files that a run writes."""

    report: options.Report = None
    save: Annotated[Path | None, written(help="Save the model.")] = None
    curve: Annotated[Path | None, written(help="Write the learning curve (CSV).")] = None
    predictions: Annotated[Path | None, written(help=PREDICTIONS_HELP)] = None
    series_errors: Annotated[Path | None, written(help=SERIES_HELP)] = None
    bad_rows: options.BadRows = None
    events: Path | None = output_field(
        "Write drift events, and replacements of trees in a forest (JSON lines).", "FILE"
    )
    checkpoint: options.Checkpoint = None
    every: options.Every = "60s"

    @property
    def whole(self) -> dict[str, Path | None]:
        """The files that are written in the end, by their options."""
        return {
            "--report": self.report,
            "--save": self.save,
            "--curve": self.curve,
            "--series-errors": self.series_errors,
        }

    @property
    def growing(self) -> dict[str, Path | None]:
        """The files that grow along with a run, by their options."""
        return {
            "--predictions": self.predictions,
            "--bad-rows": self.bad_rows,
            "--events": self.events,
        }

    @property
    def takes_stdout(self) -> bool:
        """Whether a file is standard output, so that results are printed elsewhere."""
        return any(map(is_stdout, self.growing.values()))

    def outputs(self, predictions: Callable[[Path], Output]) -> list[Output]:
        """Return the files that grow along with a run; those of predictions differ by the task."""
        made: tuple[tuple[Path | None, Callable[[Path], Output]], ...] = (
            (self.predictions, predictions),
            (self.bad_rows, BadRowFile),
            (self.events, EventFile),
        )
        return [make(path) for path, make in made if path is not None]

    def say(self, terminal: Terminal) -> None:
        """Print which files were written in the end."""
        for words, path in zip(WRITTEN, self.whole.values(), strict=True):
            if path is not None:
                terminal.say(f"{words}: {path}")


def make_run(
    name: str | list[str],
    reading: Reading,
    learning: Learning,
    targets: Targets,
    scoring: Scoring | None = None,
    *,
    checkpoint: Path | None = None,
) -> tuple[Prequential, dict[str, Any]]:
    """Make a run from the command line, and the identity of the run.

    A saved model reads a stream as it knows it: columns that are new to it are left out. A topic
    is read as by the run whose checkpoint is there, even if its first messages are not any more.
    """
    saved, scoring = saved_model(learning.model), scoring or Scoring()
    if checkpoint is not None and is_topic(name):
        reading = replace(reading, sample=CheckpointFile(checkpoint).sample())
    given = [name for name, value in learning.of_the_target.items() if value]
    if saved is not None and (learning.set_ or learning.batch or given):
        raise UsageError(
            f"{learning.model} is a saved model: its parameters cannot be set any more"
        )
    reading = replace(reading.for_model(saved, learning.model), keys=tuple(learning.by))
    if len(given) > 1:
        raise UsageError(f"{given[0]} and {given[1]} both change what is learned: give one of them")
    if given and reading.has_several:
        reading.check_one_target(f"{given[0]} is for one")
    stream = _opened(name, reading, targets)
    others = not_known_ahead(stream, targets.known_ahead, targets.horizon, learning.by)
    if others:
        reading = replace(reading, drop=[*reading.drop, *others])
        stream = _opened(name, reading, targets)
    reading.check_opened(stream, learning.model)
    ahead = Ahead.of(stream, targets, learning, scoring.season)
    ahead.check_saved(getattr(saved, "lags", None), learning.model)
    late = _late_by(targets.delay, stream) if ahead.horizon is None else ahead.delay
    named = [*map(str, stream.targets)] or stream.target or ""
    lags = ahead.lag_options(learning).made(named, stream.clock, ahead.horizon)
    made = _model(saved, learning, stream, ahead, lags)
    if isinstance(made, StoredModel):
        _complete_schema(made, stream, reading, is_new=saved is None)
    try:
        run = Prequential(
            made,
            stream,
            delay=late,
            delay_by_time=None if ahead.horizon is None else ahead.by_time,
            fade=scoring.fade,
            window=scoring.window,
            on_bad_row=targets.on_bad_row,
            monitor=_monitor(scoring, stream),
        )
    except ValueError as error:
        raise UsageError(str(error)) from None
    ahead.score(run, learning.by)
    score_series(run, scoring.series, ahead.season)
    run.learner.limits = options.limits(scoring.minimum, scoring.maximum)
    return run, _identity(run, learning, targets, scoring)


def _model(saved: Any, learning: Learning, stream: Stream, ahead: Ahead, lags: Lags | None) -> Any:
    """Return the model of a run, with its stages: a new one, or one that was saved."""
    if saved is not None:
        if lags is not None:
            raise UsageError(f"{learning.model} is a saved model: its lags cannot be set any more")
        return with_bounds(saved, learning.interval)
    named = [*map(str, stream.targets)] or stream.target or ""
    made = make_model(learning.model, settings(learning.set_, "--set"), stream, learning.batch)
    made = with_stage(made, "--transform", "TransformedRegressor", learning.transform)
    made = with_stage(made, "--loss", "LossRegressor", learning.loss)
    lagged = () if lags is None else lags.features
    made = with_named_stage(made, learning.stage, stream.features, lagged)
    made = ahead.stacked(made, named, lags, stream) if learning.lags == AUTO else made
    made = with_bounds(made, learning.interval)
    return made if lags is None else LaggedModel(made, lags)


def _identity(
    run: Prequential, learning: Learning, targets: Targets, scoring: Scoring
) -> dict[str, Any]:
    """Return the identity of a run; options that are newer than others only if given."""
    stream = run.stream
    return {
        "stream": stream.fingerprint,
        "target": stream.target,
        "features": {str(name): kind for name, kind in stream.features.items()},
        "categorical": list(stream.declared),
        "ids": list(stream.ids),
        "time": stream.time,
        "time_formats": dict(stream.time_formats),
        "encoding": stream.encoding,
        "model": " ".join([learning.model, *learning.set_]),
        "lags": "" if run.lags is None else repr(run.lags),
        **_scoring_identity(scoring),
        **_when(targets),
        "labels": None if targets.labels is None else str(targets.labels),
        **({"interval": list(learning.interval)} if learning.interval else {}),
        **({"calendar": stream.calendar.fingerprint} if stream.calendar else {}),
        **({"batch": learning.batch} if learning.batch else {}),
        **({"transform": learning.transform} if learning.transform else {}),
        **({"loss": learning.loss} if learning.loss else {}),
        **({"stage": learning.stage} if learning.stage else {}),
    }


def _complete_schema(model: StoredModel, stream: Stream, reading: Reading, is_new: bool) -> None:
    """Let a model that has no schema yet, or no target in it, take those of a stream.

    Formats that were typed take the place of those that the model has.
    """
    known, found = model.schema, stream.model_schema
    typed = settings(reading.time_format, "--time-format").keys()
    written = {rule.name: rule.time_format for rule in found.rules if rule.name in typed}
    rules = tuple(
        replace(rule, time_format=written.get(rule.name, rule.time_format)) for rule in known.rules
    )
    if not rules:  # categories of a model that learned in Python may be whole numbers
        rules = tuple(rule for rule in found.rules if is_new or rule.role != "category")
    completed = replace(known, rules=rules, targets=known.targets or found.targets)
    if completed != known:
        model.schema = completed


def _monitor(scoring: Scoring, stream: Stream) -> Monitor | None:
    return Monitor(scoring.once_in, stream.target or "y") if scoring.monitor else None


def _scoring_identity(scoring: Scoring) -> dict[str, Any]:
    """Return the identity of a scoring; a monitor and limits, which are newer, if given."""
    identity = asdict(scoring)
    for name in ("minimum", "maximum"):
        if identity[name] is None:
            del identity[name]
    for name in ("season", "series"):
        if not identity[name]:
            del identity[name]
    if not scoring.monitor:
        del identity["monitor"], identity["once_in"]
    return identity


def _when(targets: Targets) -> dict[str, Any]:
    """Return the identity of targets; horizons, which are newer, if given."""
    identity = asdict(targets)
    if targets.horizon is None:
        del identity["horizon"], identity["known_ahead"]
    return identity


def _opened(name: str | list[str], reading: Reading, targets: Targets) -> Stream:
    """Open a stream that has a target, be it its own or from another file."""
    if targets.labels is not None:
        return _with_labels(name, reading, targets.labels, targets.on_bad_row)
    stream = open_named(name, reading)
    if stream.target is None:
        known = set() if reading.model is None else set(reading.model.features)
        some = _some_targets(stream, known)
        raise UsageError(f"{stream.name}: name the column to predict by -t: {some}")
    return stream


def _with_labels(
    name: str | list[str], reading: Reading, labels: Path, on_bad_row: OnBadRow
) -> Stream:
    """Open a stream whose targets stand in another file."""
    if not reading.id:
        raise UsageError(f"--labels {labels} needs --id, the column that identifies rows")
    target = reading.first_target
    if target is None:
        raise UsageError(f"--labels {labels} needs -t NAME, the column of targets there")
    several = tuple(reading.target) if reading.has_several else ()
    numbers: dict[str, Kind] = dict.fromkeys(several[1:], "number")
    found = open_stream(labels, target=target, ids=reading.id, known=numbers)
    if several:
        found = SeveralTargets(found, several)
    known = labels_of(found, on_bad_row)
    rows = open_named(name, replace(reading, target=[]))
    own = [each for each in reading.target if each in {note.name for note in rows.column_notes}]
    is_pipe = name in ("-", ["-"])
    if own and (is_pipe or len(own) < len(reading.target)):
        place = "-" if is_pipe else rows.name
        raise UsageError(f"{place}: it has a column {own[0]} of its own: leave that out by --drop")
    if own:
        rows = open_named(name, reading)
    return LabelledStream(rows, known, ", ".join(reading.target), several)


def _late_by(delay: str | None, stream: Stream) -> float | None:
    """Return how many rows or seconds late labels are."""
    if delay is None:
        return None
    late, by_time = amount(delay, "--delay")
    if by_time != (stream.time is not None):
        needed = "needs --time, the column of times" if by_time else "counts rows: no --time"
        raise UsageError(f"--delay {delay} {needed}")
    return late


def _some_targets(stream: Stream, known: Collection[Any] = ()) -> str:
    """Return words that name columns to choose from, and the likeliest first.

    The features of a model that exists already are none of them.
    """
    kinds = {note.name: note.kind for note in stream.column_notes}
    kinds = kinds or {str(name): kind for name, kind in stream.features.items()}
    features = set(map(str, known))
    names = [name for name in kinds if name not in features]
    if not names:
        return "all of its columns are features of the model"
    possible = ("number", "true or false", *(["left out"] if features else []))
    numbers = [name for name in names if kinds[name] in possible]
    usual = [name for name in numbers if name.lower() in USUAL_TARGETS]
    classes = [name for name in names[-1:] if kinds[name] == "category" and not usual]
    guesses = [f"-t {_quoted(name)}" for name in (usual or numbers)[-1:] + classes]
    likely = f"perhaps {' or '.join(guesses)}? " if guesses else ""
    if len(names) > SHOWN_FIRST + SHOWN_LAST + 1:
        names = [*names[:SHOWN_FIRST], "…", *names[-SHOWN_LAST:]]
    return f"{likely}Columns are {', '.join(names)}"


def _quoted(name: str) -> str:
    return system.quoted(name)
