"""`sapwood evaluate`: evaluate a model prequentially and report its error."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sapwood.cli import options
from sapwood.cli.classes import ClassJob, is_of_classes
from sapwood.cli.columns import show_columns
from sapwood.cli.failure import Terminal, UsageError, failing_in_one_line
from sapwood.cli.files import check_files
from sapwood.cli.follow import Follower
from sapwood.cli.horizons import decomposed, horizons_of, print_horizons, rows_by_horizon, to_json
from sapwood.cli.job import Job
from sapwood.cli.outputs import PredictionFile, write_curves
from sapwood.cli.reading import Reading
from sapwood.cli.runs import Files, Learning, Scoring, Targets, make_run
from sapwood.cli.series import check_series, print_series, write_series
from sapwood.cli.summary import print_counts, print_drift, print_result
from sapwood.evaluate.prequential import Prequential
from sapwood.model import readable_part

if TYPE_CHECKING:
    from sapwood.evaluate.result import Evaluation

__all__ = ["NumberJob", "evaluate"]


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
            ClassJob(*parts).evaluate(terminal, files, as_json=as_json, quiet=quiet)
        elif len(horizons_of(targets.horizon)) > 1:
            _check_one_horizon(files)
            _evaluate_horizons(parts, terminal, files.report, as_json=as_json, quiet=quiet)
        else:
            job = NumberJob(*parts, checkpoint=files.checkpoint)
            job.evaluate(terminal, files, as_json=as_json, quiet=quiet)


class NumberJob(Job):
    """A run of a regressor over a stream, at one horizon if there is one."""

    run: Prequential
    print_counts = staticmethod(print_counts)

    def __init__(
        self,
        name: list[str],
        reading: Reading,
        learning: Learning,
        targets: Targets,
        scoring: Scoring | None = None,
        *,
        checkpoint: Path | None = None,
    ) -> None:
        made = make_run(name, reading, learning, targets, scoring, checkpoint=checkpoint)
        self.run, self.identity = made
        self._targets = targets

    def prediction_file(self, path: Path) -> PredictionFile:
        """Return the file of predictions."""
        stream = self.run.stream
        return PredictionFile(
            path, stream.unit, stream.ids, self.run.learner.levels, stream.targets
        )

    def check_events(self, path: Path) -> None:
        """Complain of a file for events if there are none."""
        if self.run.monitor is None and not hasattr(readable_part(self.model), "listen"):
            raise UsageError(
                f"--events {path} is for what --monitor finds and for trees of an ensemble: add "
                "--monitor, or -m forest"
            )

    def write(self, files: Files, found: "Evaluation") -> None:
        """Write the files that are written in the end, but for the model."""
        if files.curve is not None:
            curves = {}
            for name, own in (found.targets or {"": found}).items():
                curves[name] = [own.curve, own.further]
                if own.intervals is not None:  # without its rows
                    names = list(own.intervals.curve.dtype.names or ())
                    curves[name].append(own.intervals.curve[names[1:]])
            write_curves(files.curve, curves)
        if files.series_errors is not None:
            write_series(files.series_errors, found)
        if files.report is not None:
            self.write_report(files.report, found, rows_by_horizon(self._by_horizon(found)))

    def _by_horizon(self, found: "Evaluation") -> "list[tuple[int | str, Evaluation]]":
        return [(horizon, found) for horizon in horizons_of(self._targets.horizon)]

    def write_report(
        self, path: Path, found: "Evaluation", table: Sequence[dict[str, Any]]
    ) -> None:
        """Write the HTML report, with the scores of each horizon."""
        from sapwood.report import write_report

        run, targets = self.run, self._targets
        shown = {"stream": run.stream.name, "target": found.target}
        shown |= self.described(run.stream.features.values())
        if delay := targets.delay or targets.horizon:
            shown["labels late by"] = delay
        if run.lags is not None:
            shown["lags"] = ", ".join(map(str, run.lags.features))
            if run.lags.by:
                shown["series identified by"] = ", ".join(map(str, run.lags.by))
        for name, value in getattr(run.model, "parameters", {}).items():
            shown[name] = str(value)
        parts = decomposed(run) if table else None
        write_report(path, found, run.model, settings=shown, horizons=table, decomposition=parts)

    def show(self, found: "Evaluation", to_stderr: bool) -> None:
        """Print the scores, and what became of all rows."""
        print_result(found, to_stderr)
        print_horizons(self._by_horizon(found), self._targets.known_ahead, to_stderr)
        print_series(found, to_stderr)


def _check_one_horizon(files: Files) -> None:
    """Complain of files that hold the results of one horizon."""
    one = {**files.whole, **files.growing, "--checkpoint": files.checkpoint, "--report": None}
    for option, path in one.items():
        if path is not None:
            raise UsageError(f"{option} {path} is for one --horizon: name one of them")


def _evaluate_horizons(
    parts: tuple[list[str], Reading, Learning, Targets, Scoring],
    terminal: Terminal,
    report: Path | None,
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    """Evaluate one horizon after the other, each with a model of its own; print the scores of all."""
    stream, reading, learning, targets, scoring = parts
    results: list[tuple[int | str, Evaluation]] = []
    for place, horizon in enumerate(horizons_of(targets.horizon)):
        own = replace(targets, horizon=str(horizon))
        job = NumberJob(stream, reading, learning, own, scoring)
        if place == 0:
            show_columns(terminal, job.run.stream)
        if job.run.lags is not None:
            named = ", ".join(map(str, job.run.lags.features))
            terminal.say(f"horizon {horizon}: lag features {named}")
        results.append((horizon, Follower(job.run, terminal, job.identity).follow()))
    if as_json:
        print(to_json(results, targets.known_ahead))
    elif not quiet:
        print_horizons(results, targets.known_ahead)
        for horizon, found in results:
            events = found.drift_events
            print_drift(events, Terminal(highlight=False), f"horizon {horizon}: ")
    if report is not None:
        job.write_report(report, results[-1][1], rows_by_horizon(results))
        terminal.say(f"report: {report}")
