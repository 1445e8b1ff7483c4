"""`sapwood evaluate`: evaluate a model prequentially and report its error."""

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sapwood.cli import options
from sapwood.cli.classes import ClassJob, evaluate_job, is_of_classes
from sapwood.cli.columns import show_columns
from sapwood.cli.failure import Terminal, UsageError, failing_in_one_line
from sapwood.cli.files import check_files
from sapwood.cli.follow import Follower
from sapwood.cli.horizons import decomposed, horizons_of, print_horizons, rows_by_horizon, to_json
from sapwood.cli.models import check_savable
from sapwood.cli.outputs import Output, PredictionFile, write_curve, write_curves
from sapwood.cli.reading import Reading
from sapwood.cli.runs import Files, Learning, Scoring, Targets, make_run
from sapwood.cli.series import check_series, print_series, write_series
from sapwood.cli.summary import print_drift, print_result
from sapwood.evaluate.prequential import Prequential
from sapwood.model import readable_part

if TYPE_CHECKING:
    from sapwood.evaluate.result import Evaluation

__all__ = ["evaluate"]

Parts = tuple[list[str], Reading, Learning, Targets, Scoring]
"""The groups of options that make a run."""


def evaluate(
    stream: options.StreamArgument = [options.EMBEDDED],  # noqa: B006 - typer wants a list
    *,
    reading: Reading,
    targets: Targets,
    learning: Learning,
    scoring: Scoring,
    files: Files,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Evaluate a model prequentially (test, then train) and report its error.

    Without a stream, an embedded one is evaluated: hourly demand in three cities. Rows without a
    target are predicted, and not learned.
    """
    terminal = Terminal(stderr=True, silent=quiet)
    with failing_in_one_line(terminal, extra="cli"):
        check_files(
            files.whole,
            files.growing,
            read=[*stream, *([] if targets.labels is None else [targets.labels])],
            format=reading.format,
            models=[learning.model],
            checkpoint=files.checkpoint,
            settings=reading.setting_files,
            printed="--json" if as_json else None,
        )
        options.check_bad_rows(files.bad_rows, targets.on_bad_row)
        check_series(files.series_errors, scoring.series)
        parts = stream, reading, learning, targets, scoring
        if is_of_classes(stream, reading, learning, terminal):
            evaluate_job(ClassJob(*parts), terminal, files, as_json=as_json, quiet=quiet)
        elif len(horizons_of(targets.horizon)) > 1:
            _check_one_horizon(files)
            _evaluate_horizons(parts, terminal, files.report, as_json=as_json, quiet=quiet)
        else:
            _evaluate(parts, terminal, files, as_json=as_json, quiet=quiet)


def _evaluate(
    parts: Parts, terminal: Terminal, files: Files, *, as_json: bool, quiet: bool
) -> None:
    """Evaluate a model, at one horizon if there is one."""
    targets = parts[3]
    horizons = horizons_of(targets.horizon)
    run, identity = make_run(*parts, checkpoint=files.checkpoint)
    show_columns(terminal, run.stream, run.lags)
    if files.save is not None:
        check_savable(run.model, f"--save {files.save}")
    outputs = _outputs(run, files)
    found = Follower(run, terminal, identity, outputs, files.checkpoint, files.every).follow()
    if files.save is not None:
        run.model.save(files.save)
    if files.curve is not None:
        _write_curve(files.curve, found)
    if files.series_errors is not None:
        write_series(files.series_errors, found)
    results = [(horizon, found) for horizon in horizons]
    if files.report is not None:
        delay = targets.delay or targets.horizon
        _write_report(files.report, found, run, delay, rows_by_horizon(results))
    if as_json:
        print(json.dumps(found.to_dict(), indent=2))
    elif not quiet:
        print_result(found, to_stderr=files.takes_stdout)
        print_horizons(results, targets.known_ahead, files.takes_stdout)
        print_series(found, files.takes_stdout)
    files.say(terminal)


def _check_one_horizon(files: Files) -> None:
    """Complain of files that hold the results of one horizon."""
    one = {**files.whole, **files.growing, "--checkpoint": files.checkpoint, "--report": None}
    for option, path in one.items():
        if path is not None:
            raise UsageError(f"{option} {path} is for one --horizon: name one of them")


def _evaluate_horizons(
    parts: Parts, terminal: Terminal, report: Path | None, *, as_json: bool, quiet: bool
) -> None:
    """Evaluate one horizon after the other, each with a model of its own; print the scores of all."""
    stream, reading, learning, targets, scoring = parts
    results: list[tuple[int | str, Evaluation]] = []
    for place, horizon in enumerate(horizons_of(targets.horizon)):
        own = replace(targets, horizon=str(horizon))
        run, identity = make_run(stream, reading, learning, own, scoring)
        if place == 0:
            show_columns(terminal, run.stream)
        if run.lags is not None:
            named = ", ".join(map(str, run.lags.features))
            terminal.say(f"horizon {horizon}: lag features {named}")
        results.append((horizon, Follower(run, terminal, identity).follow()))
    if as_json:
        print(to_json(results, targets.known_ahead))
    elif not quiet:
        print_horizons(results, targets.known_ahead)
        for horizon, found in results:
            events = found.drift_events
            print_drift(events, Terminal(highlight=False), f"horizon {horizon}: ")
    if report is not None:
        table = rows_by_horizon(results)
        _write_report(report, results[-1][1], run, targets.horizon, table)
        terminal.say(f"report: {report}")


def _outputs(run: Prequential, files: Files) -> list[Output]:
    """Return the files that grow along with a run."""
    listens = run.monitor is not None or hasattr(readable_part(run.model), "listen")
    if files.events is not None and not listens:
        raise UsageError(
            f"--events {files.events} is for what --monitor finds and for trees of an ensemble: add "
            "--monitor, or -m forest"
        )
    described = (run.stream.unit, run.stream.ids, run.learner.levels, run.stream.targets)
    return files.outputs(lambda path: PredictionFile(path, *described))


def _write_curve(path: Path, found: "Evaluation") -> None:
    if found.targets:
        curves = {
            name: (own.curve, own.further, *_bound_curve(own))
            for name, own in found.targets.items()
        }
        write_curves(path, curves)
    else:
        write_curve(path, found.curve, found.further, *_bound_curve(found))


def _bound_curve(found: "Evaluation") -> list[Any]:
    """Return the columns of bounds along the curve, without its rows."""
    if found.intervals is None:
        return []
    names = list(found.intervals.curve.dtype.names or ())
    return [found.intervals.curve[names[1:]]]


def _write_report(
    path: Path,
    found: "Evaluation",
    run: Prequential,
    delay: str | None,
    horizons: Sequence[dict[str, Any]] = (),
) -> None:
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
    if run.lags is not None:
        shown["lags"] = ", ".join(map(str, run.lags.features))
        if run.lags.by:
            shown["series identified by"] = ", ".join(map(str, run.lags.by))
    for name, value in getattr(run.model, "parameters", {}).items():
        shown[name] = str(value)
    parts = decomposed(run) if horizons else None
    write_report(path, found, run.model, settings=shown, horizons=horizons, decomposition=parts)
