"""`sapwood compare`: several models over several streams, ranked."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import typer

from sapwood.cli import options
from sapwood.cli.classes import ClassJob, is_of_classes
from sapwood.cli.comparison import Comparison, Failed
from sapwood.cli.failure import Terminal, UsageError, failing_in_one_line
from sapwood.cli.files import check_files
from sapwood.cli.reading import Reading
from sapwood.cli.runs import Learning, Targets, make_run
from sapwood.cli.values import split_models
from sapwood.evaluate.classes import ClassEvaluation
from sapwood.evaluate.result import UNSCORED, Evaluation
from sapwood.streams.kafka_address import is_kafka

__all__ = ["compare"]

Cell = Evaluation | Failed
Measure = Literal["mae", "rmse", "r2", "accuracy", "balanced_accuracy", "kappa", "log_loss"]
TITLES = {"rmse": "RMSE", "mae": "MAE", "r2": "R²"}
MODELS = ["tree", "tree:split_on=target", "tree:leaf=mean", "last", "mean"]
MODELS_OF_TARGETS = MODELS[:3]  # as the others learn one
PICTURES = (".svg", ".png", ".pdf")
CLASS_MODELS = ("tree", "adaptive", "forest")
CLASS_BASELINES = {"majority": "accuracy_majority", "last": "accuracy_no_change"}
STREAMS = ["friedman", "friedman-lea", "mv", "planes2d", "hyperplane", "demand"]


def compare(
    stream: Annotated[
        list[str],
        typer.Argument(
            metavar="STREAM...",
            help="As for evaluate; options of one stream may follow its name, as in "
            "bikes.csv:target=count,drop=casual+registered.",
            show_default=" ".join(STREAMS),
        ),
    ] = STREAMS,
    *,
    model: Annotated[
        list[str],
        typer.Option(
            "--models",
            "--model",
            "-m",
            metavar="MODEL,...",
            help="As for evaluate, joined by commas; parameters follow after a colon, as in "
            "tree,tree:leaf=mean,lightgbm; may be repeated.",
            show_default=",".join(MODELS),
        ),
    ] = MODELS,
    measure: Annotated[
        Measure | None,
        typer.Option(
            help="The measure by which models are ranked: of numbers one of the first three, of "
            "classes one of the last four.",
            show_default="rmse; accuracy for classes",
        ),
    ] = None,
    task: options.Task = "auto",
    reading: Reading,
    targets: Targets,
    lags: options.LagOptions,
    diagram: Annotated[
        Path | None,
        options.writing(
            metavar="FILE",
            help="Draw the average ranks and their critical difference (SVG, PNG or PDF).",
        ),
    ] = None,
    report: options.Report = None,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Evaluate several models on several streams, and rank them.

    A model that fails on a stream is ranked last there; the other models continue. With several
    targets, models are ranked by the mean over targets, of errors in units of each target's deviation.
    """
    terminal = Terminal(stderr=True, silent=quiet)
    with failing_in_one_line(terminal, extra="cli"):
        given = model != MODELS
        outputs = {"--diagram": diagram, "--report": report}
        read = [*stream, *([] if targets.labels is None else [str(targets.labels)])]
        models = split_models(model)
        settings = reading.setting_files
        check_files(outputs, read=read, format=reading.format, models=models, settings=settings)
        first = Learning(model=models[0] if given else "tree", task=task)
        kind: type[Comparison] = NumberComparison
        if is_of_classes(stream[:1], reading, first, terminal):
            kind, models = ClassComparison, models if given else list(CLASS_MODELS)
        elif reading.has_several and not given:
            models = MODELS_OF_TARGETS
        compared = kind(stream, models, reading, targets, lags, measure=measure)
        _check_names(stream, models, diagram)
        compared.run(terminal)
        compared.show(as_json=as_json, quiet=quiet)
        if diagram is not None:
            compared.draw(diagram)
            terminal.say(f"diagram: {diagram}")
        if report is not None:
            compared.write_report(report)
            terminal.say(f"report: {report}")


class NumberComparison(Comparison):
    """Several regressors over several streams, ranked."""

    titles = TITLES
    best_is_largest = ("r2",)

    @property
    def wrong_measure(self) -> str:
        """The message about a measure of classes."""
        return f"--measure {self.measure} is for classes: pass --task classes"

    def make_run(self, stream: str, learning: Learning) -> tuple[Any, Any]:
        """Return the run of a model on a stream, and its lags."""
        run, _ = make_run(stream, self.reading, learning, self.targets)
        return run, run.lags

    def value(self, cell: Cell) -> float:
        """Return what a model is ranked by: NaN, the worst, if it has no error on all rows."""
        if isinstance(cell, Failed) or cell.unscored:
            return math.nan
        return float(getattr(cell.total, self.measure))

    def rows_of(self, row: Sequence[Any]) -> int:
        """Return how many rows were learned."""
        known = [cell for cell in row if isinstance(cell, Evaluation)]
        return max(cell.rows_learned for cell in known or row)

    @property
    def table_title(self) -> str:
        """What stands above the table."""
        title = super().table_title
        if not any(next(self.parts(row), None) for row in self.found):
            return title
        units = "" if self.measure == "r2" else ", in deviations"
        return f"{title}: means over targets{units}, and each target"

    def parts(self, row: Sequence[Any]) -> Iterator[tuple[str, list[Any]]]:
        """Yield what models reached on each of several targets."""
        for name in next((cell.targets for cell in row if isinstance(cell, Evaluation)), {}):
            yield (
                str(name),
                [cell.targets[name] if isinstance(cell, Evaluation) else cell for cell in row],
            )

    def notes(self, row: Sequence[Any]) -> Iterator[str]:
        """Yield how many rows were rejected, or could not be scored."""
        counts = [cell.rejected.count for cell in row if isinstance(cell, Evaluation)]
        if rejected := max(counts, default=0):
            yield f"{rejected:,} rows rejected"
        for model, cell in zip(self.models, row, strict=True):
            if isinstance(cell, Evaluation) and cell.unscored:
                yield (
                    f"{model} is last, for {cell.unscored:,} of {cell.rows_learned:,} rows have no "
                    f"error, the first at {cell.first_unscored}: {UNSCORED}"
                )


class ClassComparison(Comparison):
    """Several classifiers over several streams, ranked."""

    titles: ClassVar = {
        "accuracy": "accuracy",
        "balanced_accuracy": "balanced accuracy",
        "kappa": "Cohen's kappa",
        "log_loss": "log-loss",
    }
    best_is_largest = ("accuracy", "balanced_accuracy", "kappa")

    @property
    def wrong_measure(self) -> str:
        """The message about a measure of numbers."""
        return (
            f"--measure {self.measure} is for numbers, and the target is a class: choose of "
            f"{', '.join(self.titles)}"
        )

    def make_run(self, stream: str, learning: Learning) -> tuple[Any, Any]:
        """Return the run of a model on a stream, and its lags."""
        job = ClassJob([stream], self.reading, learning, self.targets)
        return job.run, getattr(job.model, "lags", None)

    def value(self, cell: ClassEvaluation | Failed) -> float:
        """Return what a model is ranked by."""
        return math.nan if isinstance(cell, Failed) else cell.scores.metrics()[self.measure]

    def rows_of(self, row: Sequence[Any]) -> int:
        """Return how many rows were scored."""
        known = [cell.scores.rows for cell in row if not isinstance(cell, Failed)]
        return max(known, default=0)

    def shown(self, value: float) -> str:
        """Return a value for the table."""
        return f"{value:.4f}"

    def baselines(self, row: Sequence[Any] | None = None) -> list[str]:
        """Return the accuracies of baselines, if models are ranked by that."""
        names = CLASS_BASELINES if self.measure == "accuracy" else {}
        if row is None:
            return [*names]
        known = next((cell for cell in row if not isinstance(cell, Failed)), None)
        metrics = {} if known is None else known.scores.metrics()
        return [f"{metrics.get(name, math.nan):.4f}" for name in names.values()]


def _check_names(streams: list[str], models: list[str], diagram: Path | None) -> None:
    for what, names in (("model", models), ("stream", streams)):
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise UsageError(f"{what} {twice[0]} is named twice")
    if "-" in streams:
        raise UsageError("-: each model reads the streams again, so save standard input to a file")
    if topics := [name for name in streams if is_kafka(name)]:
        raise UsageError(
            f"{topics[0]}: each model reads the streams again, and a topic may have more messages "
            "then, so save it to a file of JSON lines"
        )
    if diagram is not None:
        from sapwood.evaluate.ranking import ENOUGH

        if diagram.suffix.lower() not in PICTURES:
            raise UsageError(f"--diagram {diagram}: end the name by one of {', '.join(PICTURES)}")
        if len(streams) < ENOUGH or len(models) < 3:
            raise UsageError(
                f"--diagram {diagram}: too few to test whether ranks differ: {ENOUGH} streams and "
                "3 models are needed"
            )
