"""`sapwood compare`: several models over several streams, ranked."""

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import numpy as np
import typer
from rich.markup import escape
from rich.table import Table

from sapwood.cli import options
from sapwood.cli.classes import is_of_classes
from sapwood.cli.columns import show_columns
from sapwood.cli.compare_classes import CLASS_MEASURES, CLASS_MODELS, ClassComparison
from sapwood.cli.failure import Terminal, UsageError, failing_in_one_line, visible
from sapwood.cli.files import check_files
from sapwood.cli.follow import check_not_empty
from sapwood.cli.progress import RunProgress
from sapwood.cli.ranks import Failed, described, draw_ranks, verdict
from sapwood.cli.reading import Reading
from sapwood.cli.runs import Learning, Targets, make_run
from sapwood.cli.values import split_models
from sapwood.evaluate.prequential import Prequential
from sapwood.evaluate.result import UNSCORED, Evaluation
from sapwood.formatting import number
from sapwood.streams.kafka_address import is_kafka
from sapwood.streams.stream import StreamError

if TYPE_CHECKING:
    from sapwood.evaluate.ranking import Ranking

__all__ = ["compare"]

Measure = Literal["mae", "rmse", "r2"]
AnyMeasure = Literal["mae", "rmse", "r2", "accuracy", "balanced_accuracy", "kappa", "log_loss"]
TITLES = {"mae": "MAE", "rmse": "RMSE", "r2": "R²"}
MODELS = ["tree", "tree:split_on=target", "tree:leaf=mean", "last", "mean"]
MODELS_OF_TARGETS = MODELS[:3]  # as the others learn one
PICTURES = (".svg", ".png", ".pdf")
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
        AnyMeasure | None,
        typer.Option(
            help="The measure by which models are ranked; of classes accuracy or another of the last "
            "four.",
            show_default="rmse, of classes accuracy",
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

    A model that fails on a stream is the last there; the others go on. With several targets models
    are ranked by the mean over targets, of errors in units of each target's deviation.
    """
    terminal = Terminal(stderr=True, silent=quiet)
    with failing_in_one_line(terminal, extra="cli"):
        given = model != MODELS
        if reading.has_several and not given:
            model = MODELS_OF_TARGETS
        model = split_models(model)
        outputs = {"--diagram": diagram, "--report": report}
        read = [*stream, *([] if targets.labels is None else [str(targets.labels)])]
        settings = reading.setting_files
        check_files(outputs, read=read, format=reading.format, models=model, settings=settings)
        first = Learning(model=model[0] if given else "tree", task=task)
        if is_of_classes(stream[:1], reading, first, terminal):
            model = model if given else list(CLASS_MODELS)
            _check_names(stream, model, diagram)
            how = Learning(**vars(lags))
            compared = ClassComparison(stream, model, reading, targets, how, measure=measure)
            compared.run(terminal)
            compared.show(as_json=as_json, quiet=quiet)
            if diagram is not None:
                draw_ranks(diagram, compared.ranking, compared.title)
                terminal.say(f"diagram: {diagram}")
            if report is not None:
                compared.write_report(report)
                terminal.say(f"report: {report}")
            return
        if measure in CLASS_MEASURES:
            raise UsageError(f"--measure {measure} is for classes: pass --task classes")
        measure = cast("Measure", measure or "rmse")
        _check_names(stream, model, diagram)
        found = []
        for name in stream:
            runs = [
                make_run(name, reading, Learning(model=spec, **vars(lags)), targets)[0]
                for spec in model
            ]
            show_columns(terminal, runs[0].stream, runs[0].lags)
            found.append([_evaluate(terminal, *pair) for pair in zip(runs, model, strict=True)])
        _check_some_went_on(model, found)
        values = np.array([[_value(cell, measure) for cell in row] for row in found])
        ranking = _rank(values, model, measure)
        if as_json:
            print(json.dumps(described(stream, model, found, ranking), indent=2))
        elif not quiet:
            _show(stream, model, found, measure, ranking)
        if diagram is not None:
            draw_ranks(diagram, ranking, TITLES[measure])
            terminal.say(f"diagram: {diagram}")
        if report is not None:
            results = {
                name: {
                    spec: cell.words if isinstance(cell, Failed) else cell
                    for spec, cell in zip(model, row, strict=True)
                }
                for name, row in zip(stream, found, strict=True)
            }
            _write_report(report, results, ranking, measure)
            terminal.say(f"report: {report}")


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


def _check_some_went_on(models: list[str], found: list[list[Evaluation | Failed]]) -> None:
    """Complain if all models have failed on all streams, by the words of the first."""
    first = found[0][0]
    if isinstance(first, Failed) and all(isinstance(cell, Failed) for row in found for cell in row):
        raise UsageError(f"model {models[0]}: {first.words}")


def _evaluate(terminal: Terminal, run: Prequential, model: str) -> Evaluation | Failed:
    title = f"{model} on {run.stream.name}"
    try:
        with RunProgress(terminal, run, title=title) as progress:
            for step in run.steps():
                progress.update(step.done)
            found = run.finish()
    except (OSError, StreamError):
        raise  # of the stream, which no other model could read either
    except Exception as error:  # whatever a model raises
        words = " ".join(f"{type(error).__name__}: {error}".split())
        return Failed(words, run.rows_learned)
    check_not_empty(run)
    run.check_used()
    return found


def _value(cell: Evaluation | Failed, measure: Measure) -> float:
    """Return what a model is ranked by: NaN, the worst, if it has no error on all rows."""
    if isinstance(cell, Failed):
        return math.nan
    return math.nan if cell.unscored else float(getattr(cell.total, measure))


def _rank(values: "np.ndarray[Any, Any]", models: list[str], measure: Measure) -> "Ranking":
    from sapwood.evaluate.ranking import rank

    return rank(values, models, larger_is_better=measure == "r2")


def _show(
    streams: list[str],
    models: list[str],
    found: list[list[Evaluation | Failed]],
    measure: Measure,
    ranking: "Ranking",
) -> None:
    terminal = Terminal(highlight=False)
    table = Table(title=_title(found, measure), title_justify="left")
    table.add_column("stream")
    table.add_column("rows", justify="right")
    for model in models:
        table.add_column(escape(visible(model)), justify="right", overflow="fold")
    for name, row in zip(streams, found, strict=True):
        rows = max(cell.rows_learned for cell in row)
        table.add_row(escape(visible(Path(name).name)), f"{rows:,}", *_cells(row, measure))
        for target, own in _of_targets(row).items():
            learned = max(cell.rows_learned for cell in own if isinstance(cell, Evaluation))
            shown = escape(visible(target))
            table.add_row(f"  {shown}", f"{learned:,}", *_cells(own, measure))
    table.add_section()
    places = dict(zip(ranking.models, ranking.ranks, strict=True))
    table.add_row("average rank", "", *(f"{places[model]:.2f}" for model in models))
    seconds = [sum(row[place].seconds for row in found) for place in range(len(models))]
    table.add_row("seconds", "", *(number(value, 3) for value in seconds))
    terminal.print(table)
    for name, row in zip(streams, found, strict=True):
        counts = [cell.rejected.count for cell in row if isinstance(cell, Evaluation)]
        rejected = max(counts, default=0)
        if rejected:
            terminal.say(f"{name}: {rejected:,} rows rejected")
        for model, cell in zip(models, row, strict=True):
            if isinstance(cell, Failed):
                terminal.say(
                    f"{name}: {model} is last, for it failed after {cell.rows_learned:,} rows: "
                    f"{cell.words}"
                )
            elif cell.unscored:
                terminal.say(
                    f"{name}: {model} is last, for {cell.unscored:,} of {cell.rows_learned:,} rows "
                    f"have no error, the first at {cell.first_unscored}: {UNSCORED}"
                )
    terminal.say(verdict(ranking))


def _title(found: list[list[Evaluation | Failed]], measure: Measure) -> str:
    title = f"{TITLES[measure]} over all rows"
    if not any(map(_of_targets, found)):
        return title
    units = "" if measure == "r2" else ", in deviations"
    return f"{title}: means over targets{units}, and each target"


def _cells(row: list[Evaluation | Failed], measure: Measure) -> list[str]:
    """Return what models reached on a stream or of a target; the best is bold."""
    values = [_value(cell, measure) for cell in row]
    known = [value for value in values if not math.isnan(value)]
    best = (max if measure == "r2" else min)(known, default=math.nan)
    cells = [f"[bold]{number(v, 4)}[/]" if v == best else number(v, 4) for v in values]
    return [
        "failed" if isinstance(cell, Failed) else words
        for cell, words in zip(row, cells, strict=True)
    ]


def _of_targets(row: list[Evaluation | Failed]) -> dict[str, list[Evaluation | Failed]]:
    """Return what models reached on a stream of several targets, by target; nothing of one."""
    names = next((cell.targets for cell in row if isinstance(cell, Evaluation)), {})
    return {
        name: [cell.targets[name] if isinstance(cell, Evaluation) else cell for cell in row]
        for name in names
    }


def _write_report(
    path: Path,
    results: dict[str, dict[str, Evaluation | str]],
    ranking: "Ranking",
    measure: Measure,
) -> None:
    from sapwood.report.comparison import write_comparison
    from sapwood.report.titles import names_of_models

    ranks = dict(zip(ranking.models, ranking.ranks, strict=True))
    words = verdict(ranking, names_of_models(ranks))
    write_comparison(path, results, ranks, measure=measure, verdict=words)
