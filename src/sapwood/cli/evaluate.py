"""`sapwood evaluate`: predict each row of a stream, then learn it, and tell how well that went."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from sapwood.cli import options
from sapwood.cli.failure import UsageError, failing_in_one_line
from sapwood.cli.follow import Follower
from sapwood.cli.models import make_model
from sapwood.cli.outputs import BadRowFile, PredictionFile, check_writable, write_curve
from sapwood.cli.summary import print_result
from sapwood.cli.values import amount, settings
from sapwood.evaluate.prequential import OnBadRow, Prequential
from sapwood.evaluate.scores import FADE, WINDOW

if TYPE_CHECKING:
    from sapwood.evaluate.result import Evaluation
    from sapwood.streams.stream import Stream

__all__ = ["evaluate", "make_run"]

SCORES = "The score"


def evaluate(
    stream: options.StreamArgument = options.EMBEDDED,
    *,
    target: options.Target = None,
    drop: options.Drop = [],  # noqa: B006 - typer wants a list
    categorical: options.Categorical = [],  # noqa: B006
    time_format: options.TimeFormats = [],  # noqa: B006
    time_parts: options.TimeParts = "",
    time: options.Time = None,
    delay: options.Delayed = None,
    format: options.FormatOption = None,
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
    console = Console(stderr=True)
    with failing_in_one_line(console, extra="cli"):
        check_writable(report, save, curve, predictions, bad_rows, checkpoint)
        if as_json and str(predictions) == "-":
            raise UsageError("--json and --predictions - both want standard output: name a file")
        reading = options.Reading(target, drop, categorical, time_format, time_parts, time, format)
        rows = reading.open(stream)
        run, identity = make_run(
            rows, model, set_, delay=delay, fade=fade, window=window, on_bad_row=on_bad_row
        )
        outputs: list[Any] = []
        if predictions is not None:
            outputs.append(PredictionFile(predictions, rows.unit))
        if bad_rows is not None:
            outputs.append(BadRowFile(bad_rows))
        Follower(run, console, identity, outputs, checkpoint, every).follow()
        found = run.finish()
        shown = _shown_settings(rows, run.model, identity)
        _write(found, run.model, report=report, save=save, curve=curve, shown=shown)
        if as_json:
            print(json.dumps(found.to_dict(), indent=2))
        else:
            print_result(found, to_stderr=str(predictions) == "-")
        for what, path in (("report", report), ("model", save), ("curve", curve)):
            if path is not None:
                console.print(f"{what}: {path}", markup=False, highlight=False, soft_wrap=True)


def make_run(
    stream: "Stream",
    model: str,
    set_: list[str],
    *,
    delay: str | None = None,
    fade: float = FADE,
    window: int = WINDOW,
    on_bad_row: OnBadRow = "error",
) -> tuple[Prequential, dict[str, Any]]:
    """Make a run of what was typed, and what tells it from others."""
    if stream.target is None:
        named = "-t NAME" if not stream.features else f"--target, one of {_some(stream)}"
        raise UsageError(f"{stream.name}: say which column to predict: {named}")
    late = None
    if delay is not None:
        late, by_time = amount(delay, "--delay")
        if by_time != (stream.time is not None):
            needed = "needs --time, the column of times" if by_time else "counts rows: no --time"
            raise UsageError(f"--delay {delay} {needed}")
    elif stream.time is not None:
        raise UsageError("--time is for labels that come late: say how late by --delay")
    made = make_model(model, settings(set_, "--set"), stream)
    try:
        run = Prequential(made, stream, delay=late, fade=fade, window=window, on_bad_row=on_bad_row)
    except ValueError as error:
        raise UsageError(str(error)) from None
    identity = {
        "stream": stream.fingerprint,
        "target": stream.target,
        "features": dict(stream.features),
        "model": " ".join([model, *set_]),
        "delay": delay,
        "fade": fade,
        "window": window,
        "on_bad_row": on_bad_row,
    }
    return run, identity


def _some(stream: "Stream") -> str:
    names = list(stream.features)
    return ", ".join(names[:12]) + (", …" if len(names) > 12 else "")


def _shown_settings(stream: "Stream", model: Any, identity: dict[str, Any]) -> dict[str, str]:
    kinds = list(stream.features.values())
    shown = {
        "stream": stream.name,
        "target": str(stream.target),
        "features": f"{kinds.count('number')} numbers, {kinds.count('category')} categories",
        "command": " ".join(["sapwood", *sys.argv[1:]]),
    }
    if identity["delay"] is not None:
        shown["labels late by"] = identity["delay"]
    for name, value in getattr(model, "parameters", {}).items():
        shown[name] = str(value)
    return shown


def _write(
    found: "Evaluation",
    model: Any,
    *,
    report: Path | None,
    save: Path | None,
    curve: Path | None,
    shown: dict[str, str],
) -> None:
    if save is not None:
        if not hasattr(model, "save"):
            raise UsageError(f"--save {save}: only trees of sapwood can be saved")
        model.save(save)
    if curve is not None:
        write_curve(curve, found.curve)
    if report is not None:
        from sapwood.report import write_report

        write_report(report, found, model, settings=shown)
