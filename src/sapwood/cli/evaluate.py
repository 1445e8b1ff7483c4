"""`sapwood evaluate`: predict each row of a stream, then learn it, and tell how well that went."""

import json
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sapwood.cli import options
from sapwood.cli.columns import show_columns
from sapwood.cli.failure import Terminal, UsageError, failing_in_one_line
from sapwood.cli.files import check_files, is_stdout
from sapwood.cli.follow import Follower
from sapwood.cli.models import check_savable, make_model, saved_model
from sapwood.cli.outputs import BadRowFile, PredictionFile, write_curve
from sapwood.cli.summary import print_result
from sapwood.cli.values import amount, settings
from sapwood.evaluate.prequential import OnBadRow, Prequential
from sapwood.evaluate.scores import FADE, WINDOW
from sapwood.model import StoredModel

if TYPE_CHECKING:
    from sapwood.evaluate.result import Evaluation
    from sapwood.streams.stream import Stream

__all__ = ["Scoring", "evaluate", "make_run"]

SCORES = "The score"


def evaluate(
    stream: options.StreamArgument = [options.EMBEDDED],  # noqa: B006
    *,
    target: options.Target = None,
    drop: options.Drop = [],  # noqa: B006 - typer wants a list
    categorical: options.Categorical = [],  # noqa: B006
    time_format: options.TimeFormats = [],  # noqa: B006
    time_parts: options.TimeParts = "",
    time: options.Time = None,
    delay: options.Delayed = None,
    decimal: options.Decimal = None,
    thousands: options.Thousands = None,
    encoding: options.Encoding = None,
    header: options.HeaderOption = None,
    format: options.FormatOption = None,
    quiet: options.Quiet = False,
    on_bad_row: options.OnBadRowOption = "error",
    model: options.Model = "tree",
    set_: options.Settings = [],  # noqa: B006
    fade: Annotated[
        float,
        typer.Option(
            help="For the faded error, a row's weight is multiplied by this at each later row.",
            rich_help_panel=SCORES,
        ),
    ] = FADE,
    window: Annotated[
        int, typer.Option(help="Rows of the windowed error.", rich_help_panel=SCORES)
    ] = WINDOW,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write a page with pictures (HTML, opens anywhere).",
            rich_help_panel=options.OUTPUT,
        ),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the model.", rich_help_panel=options.OUTPUT),
    ] = None,
    curve: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the learning curve (CSV).",
            rich_help_panel=options.OUTPUT,
        ),
    ] = None,
    predictions: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write each row's prediction (CSV); - for standard output.",
            rich_help_panel=options.OUTPUT,
        ),
    ] = None,
    bad_rows: options.BadRows = None,
    checkpoint: options.Checkpoint = None,
    every: options.Every = "60s",
    as_json: options.AsJson = False,
) -> None:
    """Predict each row of a stream, then learn it, and tell how well that went.

    Without a stream, an embedded one is evaluated: hourly demand in three cities.
    """
    terminal = Terminal(stderr=True)
    with failing_in_one_line(terminal, extra="cli"):
        growing = {"--predictions": predictions, "--bad-rows": bad_rows}
        check_files(
            {"--report": report, "--save": save, "--curve": curve},
            growing,
            read=stream,
            format=format,
            models=[model],
            checkpoint=checkpoint,
            printed="--json" if as_json else None,
        )
        options.check_bad_rows(bad_rows, on_bad_row)
        reading = options.Reading(
            target=target,
            drop=drop,
            categorical=categorical,
            time_formats=time_format,
            time_parts=time_parts,
            time=time,
            format=format,
            decimal=decimal,
            thousands=thousands,
            encoding=encoding,
            header=header,
        )
        scoring = Scoring(delay, fade, window, on_bad_row)
        run, identity = make_run(stream, reading, model, set_, scoring)
        if not quiet:
            show_columns(terminal, run.stream)
        if save is not None:
            check_savable(run.model, f"--save {save}")
        outputs: list[PredictionFile | BadRowFile] = []
        if predictions is not None:
            outputs.append(PredictionFile(predictions, run.stream.unit))
        if bad_rows is not None:
            outputs.append(BadRowFile(bad_rows))
        found = Follower(run, terminal, identity, outputs, checkpoint, every).follow()
        if save is not None:
            run.model.save(save)
        if curve is not None:
            write_curve(curve, found.curve, found.beside)
        if report is not None:
            _write_report(report, found, run, delay)
        if as_json:
            print(json.dumps(found.to_dict(), indent=2))
        else:
            print_result(found, to_stderr=any(map(is_stdout, growing.values())))
        for what, path in (("report", report), ("model", save), ("curve", curve)):
            if path is not None:
                terminal.say(f"{what}: {path}")


@dataclass(frozen=True)
class Scoring:
    """How a model is evaluated, as it was typed."""

    delay: str | None = None
    fade: float = FADE
    window: int = WINDOW
    on_bad_row: OnBadRow = "error"


def make_run(
    name: str | list[str], reading: options.Reading, model: str, set_: list[str], scoring: Scoring
) -> tuple[Prequential, dict[str, Any]]:
    """Make a run of what was typed, and what tells it from others.

    A saved model reads a stream as it knows it: columns that are new to it are left out.
    """
    saved = saved_model(model)
    if saved is not None and set_:
        raise UsageError(f"{model} is a saved model: its parameters cannot be set any more")
    stream = options.open_named(name, replace(reading, model=saved))
    if stream.target is None:
        named = f"--target, one of {_some(stream)}" if saved is None else "-t NAME"
        raise UsageError(f"{stream.name}: say which column to predict: {named}")
    late = _late_by(scoring.delay, stream)
    made = make_model(model, settings(set_, "--set"), stream) if saved is None else saved
    if isinstance(made, StoredModel):
        formats = dict(stream.time_formats)
        made.column_formats.update(
            {name: formats[name] for name in formats if name in stream.features}
        )
    try:
        run = Prequential(
            made,
            stream,
            delay=late,
            fade=scoring.fade,
            window=scoring.window,
            on_bad_row=scoring.on_bad_row,
        )
    except ValueError as error:
        raise UsageError(str(error)) from None
    identity = {
        "stream": stream.fingerprint,
        "target": stream.target,
        "features": {str(name): kind for name, kind in stream.features.items()},
        "categorical": list(stream.declared),
        "time": stream.time,
        "time_formats": dict(stream.time_formats),
        "encoding": stream.encoding,
        "model": " ".join([model, *set_]),
        **asdict(scoring),
    }
    return run, identity


def _late_by(delay: str | None, stream: "Stream") -> float | None:
    """Return how many rows or seconds late labels are."""
    if delay is None:
        return None
    late, by_time = amount(delay, "--delay")
    if by_time != (stream.time is not None):
        needed = "needs --time, the column of times" if by_time else "counts rows: no --time"
        raise UsageError(f"--delay {delay} {needed}")
    return late


def _some(stream: "Stream") -> str:
    names = [note.name for note in stream.column_notes] or list(map(str, stream.features))
    return ", ".join(names[:12]) + (", …" if len(names) > 12 else "")


def _write_report(path: Path, found: "Evaluation", run: Prequential, delay: str | None) -> None:
    from sapwood.report import write_report

    kinds = list(run.stream.features.values())
    shown = {
        "stream": run.stream.name,
        "target": found.target,
        "features": f"{kinds.count('number')} numbers, {kinds.count('category')} categories",
        "command": " ".join(["sapwood", *sys.argv[1:]]),
    }
    if delay is not None:
        shown["labels late by"] = delay
    for name, value in getattr(run.model, "parameters", {}).items():
        shown[name] = str(value)
    write_report(path, found, run.model, settings=shown)
