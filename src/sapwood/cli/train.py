"""`sapwood train`: train a model on a stream and save it."""

from pathlib import Path
from typing import Annotated

import typer

from sapwood.cli import options
from sapwood.cli.class_workers import ClassWorkersJob
from sapwood.cli.classes import ClassJob, is_of_classes
from sapwood.cli.evaluate import NumberJob
from sapwood.cli.failure import Terminal, failing_in_one_line
from sapwood.cli.files import check_files
from sapwood.cli.reading import Reading
from sapwood.cli.runs import Files, Learning, Targets
from sapwood.cli.workers import WorkersJob

__all__ = ["train"]


def train(
    stream: options.StreamArgument,
    *,
    save: Annotated[
        Path, typer.Option(metavar="FILE", help="Save the model to this file.", show_default=False)
    ],
    reading: Reading,
    targets: Targets,
    learning: Learning,
    bad_rows: options.BadRows = None,
    checkpoint: options.Checkpoint = None,
    every: options.Every = "60s",
    workers: options.Workers = None,
    engine: options.EngineOption = "processes",
    quiet: options.Quiet = False,
) -> None:
    """Train a model on a stream and save it.

    It also reports the prequential error: each row is predicted before it is learned. With --model
    FILE, training of a saved model continues. With --workers, several processes or a cluster learn
    parts of the files.
    """
    terminal = Terminal(stderr=True, silent=quiet)
    with failing_in_one_line(terminal, extra="cli"):
        check_files(
            {"--save": save},
            {"--bad-rows": bad_rows},
            read=[*stream, *([] if targets.labels is None else [targets.labels])],
            format=reading.format,
            models=[learning.model],
            checkpoint=checkpoint,
            settings=reading.setting_files,
            printed="the model's name",
        )
        options.check_bad_rows(bad_rows, targets.on_bad_row)
        of_classes = is_of_classes(stream, reading, learning, terminal)
        if workers is not None:
            kind = ClassWorkersJob if of_classes else WorkersJob
            job = kind(stream, reading, targets, learning, workers, engine)
            trained = job.run(terminal, bad_rows, checkpoint, every)
            trained.model.save(save)
            job.show(trained, terminal)
        else:
            files = Files(save=save, bad_rows=bad_rows, checkpoint=checkpoint, every=every)
            parts = stream, reading, learning, targets
            one = ClassJob(*parts) if of_classes else NumberJob(*parts, checkpoint=checkpoint)
            one.print_counts(one.follow(terminal, files), terminal)
        if not quiet:
            print(save)
