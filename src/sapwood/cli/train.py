"""`sapwood train`: learn a stream, and keep the model."""

from pathlib import Path
from typing import Annotated

import typer

from sapwood.cli import options
from sapwood.cli.class_workers import ClassWorkersJob
from sapwood.cli.classes import ClassJob, is_of_classes, print_class_counts
from sapwood.cli.columns import show_columns
from sapwood.cli.failure import Terminal, failing_in_one_line
from sapwood.cli.files import check_files
from sapwood.cli.follow import Follower
from sapwood.cli.models import check_savable
from sapwood.cli.outputs import BadRowFile
from sapwood.cli.reading import Reading
from sapwood.cli.runs import Files, Learning, Targets, make_run
from sapwood.cli.summary import print_counts
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
        elif of_classes:
            files = Files(bad_rows=bad_rows, checkpoint=checkpoint, every=every)
            one = ClassJob(stream, reading, learning, targets)
            classes = one.follow(terminal, files)
            one.model.save(save)
            print_class_counts(classes, terminal)
        else:
            run, identity = make_run(stream, reading, learning, targets, checkpoint=checkpoint)
            show_columns(terminal, run.stream, run.lags)
            check_savable(run.model, f"--save {save}")
            outputs = [] if bad_rows is None else [BadRowFile(bad_rows)]
            found = Follower(run, terminal, identity, [*outputs], checkpoint, every).follow()
            run.model.save(save)
            print_counts(found, terminal)
        if not quiet:
            print(save)
