"""`sapwood evaluate`: evaluate a model prequentially and report its error."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sapwood.cli import options
from sapwood.cli.classes import ClassJob, Files, evaluate_job, is_of_classes
from sapwood.cli.columns import show_columns
from sapwood.cli.failure import Terminal, UsageError, failing_in_one_line
from sapwood.cli.files import check_files, is_stdout
from sapwood.cli.follow import Follower
from sapwood.cli.horizons import decomposed, horizons_of, print_horizons, rows_by_horizon, to_json
from sapwood.cli.models import check_savable
from sapwood.cli.outputs import BadRowFile, EventFile, PredictionFile, write_curve, write_curves
from sapwood.cli.reading import Reading
from sapwood.cli.runs import Learning, Scoring, Targets, make_run
from sapwood.cli.series import check_series, print_series, write_series
from sapwood.cli.summary import print_result
from sapwood.evaluate.prequential import Prequential
from sapwood.model import readable_part

if TYPE_CHECKING:
    from sapwood.evaluate.result import Evaluation

__all__ = ["evaluate"]


def evaluate(
    stream: options.StreamArgument = [options.EMBEDDED],  # noqa: B006 - typer wants a list
    *,
    reading: Reading,
    targets: Targets,
    learning: Learning,
    scoring: Scoring,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write a self-contained HTML report.",
            rich_help_panel=options.OUTPUT,
        ),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Save the model.", rich_help_panel=options.OUTPUT),
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
            help="Write the prediction of each row (CSV); - for standard output.",
            rich_help_panel=options.OUTPUT,
        ),
    ] = None,
    series_errors: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the errors of each series (CSV); see --series.",
            rich_help_panel=options.OUTPUT,
        ),
    ] = None,
    bad_rows: options.BadRows = None,
    events: options.Events = None,
    checkpoint: options.Checkpoint = None,
    every: options.Every = "60s",
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Evaluate a model prequentially (test, then train) and report its error.

    Without a stream, an embedded one is evaluated: hourly demand in three cities. Rows without a
    target are predicted, and not learned.
    """
    terminal = Terminal(stderr=True, silent=quiet)
    with failing_in_one_line(terminal, extra="cli"):
        growing = {"--predictions": predictions, "--bad-rows": bad_rows, "--events": events}
        check_files(
            {
                "--report": report,
                "--save": save,
                "--curve": curve,
                "--series-errors": series_errors,
            },
            growing,
            read=[*stream, *([] if targets.labels is None else [targets.labels])],
            format=reading.format,
            models=[learning.model],
            checkpoint=checkpoint,
            settings=reading.setting_files,
            printed="--json" if as_json else None,
        )
        options.check_bad_rows(bad_rows, targets.on_bad_row)
        check_series(series_errors, scoring.series)
        if is_of_classes(stream, reading, learning, terminal):
            evaluate_job(
                ClassJob(stream, reading, learning, targets, scoring),
                terminal,
                Files(predictions, bad_rows, events),
                save=save,
                report=report,
                curve=curve,
                checkpoint=checkpoint,
                every=every,
                as_json=as_json,
                quiet=quiet,
            )
            return
        horizons = horizons_of(targets.horizon)
        if len(horizons) > 1:
            one_file = {"--save": save, "--curve": curve, "--predictions": predictions}
            one_file |= {"--events": events, "--checkpoint": checkpoint, "--bad-rows": bad_rows}
            one_file |= {"--series-errors": series_errors}
            _check_one_horizon(one_file)
            at_each = _Horizons(stream, reading, targets, learning, scoring, terminal)
            at_each.run(horizons, report, as_json=as_json, quiet=quiet)
            return
        run, identity = make_run(stream, reading, learning, targets, scoring, checkpoint=checkpoint)
        show_columns(terminal, run.stream, run.lags)
        if save is not None:
            check_savable(run.model, f"--save {save}")
        outputs = _outputs(run, predictions, bad_rows, events)
        found = Follower(run, terminal, identity, outputs, checkpoint, every).follow()
        if save is not None:
            run.model.save(save)
        if curve is not None:
            _write_curve(curve, found)
        if series_errors is not None:
            write_series(series_errors, found)
        if report is not None:
            table = rows_by_horizon(_at(horizons, found))
            _write_report(report, found, run, targets.delay or targets.horizon, table)
        if as_json:
            print(json.dumps(found.to_dict(), indent=2))
        elif not quiet:
            to_stderr = any(map(is_stdout, growing.values()))
            print_result(found, to_stderr=to_stderr)
            print_horizons(_at(horizons, found), targets.known_ahead, to_stderr)
            print_series(found, to_stderr)
        written = {
            "report": report,
            "model": save,
            "curve": curve,
            "errors by series": series_errors,
        }
        for what, path in written.items():
            if path is not None:
                terminal.say(f"{what}: {path}")


def _check_one_horizon(files: Mapping[str, Path | None]) -> None:
    """Complain of files that hold the results of one horizon."""
    for option, path in files.items():
        if path is not None:
            raise UsageError(f"{option} {path} is for one --horizon: name one of them")


def _at(horizons: Sequence[int | str], found: "Evaluation") -> "list[tuple[int | str, Evaluation]]":
    """Return a result with its horizon, if it has one."""
    return [(horizon, found) for horizon in horizons]


@dataclass(frozen=True)
class _Horizons:
    """An evaluation at several horizons, each with a model of its own."""

    stream: list[str]
    reading: Reading
    targets: Targets
    learning: Learning
    scoring: Scoring
    terminal: Terminal

    def run(
        self, horizons: Sequence[int | str], report: Path | None, *, as_json: bool, quiet: bool
    ) -> None:
        """Evaluate one horizon after the other, and print the scores of all."""
        results: list[tuple[int | str, Evaluation]] = []
        for place, horizon in enumerate(horizons):
            targets = replace(self.targets, horizon=str(horizon))
            parts = self.stream, self.reading, self.learning, targets, self.scoring
            run, identity = make_run(*parts)
            if place == 0:
                show_columns(self.terminal, run.stream)
            if run.lags is not None:
                named = ", ".join(map(str, run.lags.features))
                self.terminal.say(f"horizon {horizon}: lag features {named}")
            results.append((horizon, Follower(run, self.terminal, identity).follow()))
        if as_json:
            print(to_json(results, self.targets.known_ahead))
        elif not quiet:
            print_horizons(results, self.targets.known_ahead)
        if report is not None:
            table = rows_by_horizon(results)
            _write_report(report, results[-1][1], run, self.targets.horizon, table)
            self.terminal.say(f"report: {report}")


def _outputs(
    run: Prequential, predictions: Path | None, bad_rows: Path | None, events: Path | None
) -> list[PredictionFile | BadRowFile | EventFile]:
    """Return the files that grow along with a run."""
    outputs: list[PredictionFile | BadRowFile | EventFile] = []
    if predictions is not None:
        described = (run.stream.unit, run.stream.ids, run.learner.levels, run.stream.targets)
        outputs.append(PredictionFile(predictions, *described))
    if bad_rows is not None:
        outputs.append(BadRowFile(bad_rows))
    if events is not None:
        if run.monitor is None and not hasattr(readable_part(run.model), "listen"):
            raise UsageError(
                f"--events {events} is for what --monitor finds and for trees of an ensemble: add "
                "--monitor, or -m forest"
            )
        outputs.append(EventFile(events))
    return outputs


def _write_curve(path: Path, found: "Evaluation") -> None:
    if found.targets:
        curves = {
            name: (own.curve, own.beside, *_bound_curve(own)) for name, own in found.targets.items()
        }
        write_curves(path, curves)
    else:
        write_curve(path, found.curve, found.beside, *_bound_curve(found))


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
