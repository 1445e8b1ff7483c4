"""`sapwood train`: learn a stream, and keep the model."""

from pathlib import Path
from typing import Annotated

import typer

from sapwood.cli import options
from sapwood.cli.columns import show_columns
from sapwood.cli.evaluate import Scoring, make_run
from sapwood.cli.failure import Terminal, failing_in_one_line
from sapwood.cli.files import check_files
from sapwood.cli.follow import Follower
from sapwood.cli.models import check_savable
from sapwood.cli.outputs import BadRowFile
from sapwood.cli.summary import print_counts

__all__ = ["train"]


def train(
    stream: options.StreamArgument,
    *,
    save: Annotated[
        Path, typer.Option(metavar="FILE", help="Where the model goes.", show_default=False)
    ],
    target: options.Target = None,
    drop: options.Drop = [],  # noqa: B006 - typer wants a list
    categorical: options.Categorical = [],  # noqa: B006
    time_format: options.TimeFormats = [],  # noqa: B006
    time_parts: options.TimeParts = "",
    decimal: options.Decimal = None,
    thousands: options.Thousands = None,
    encoding: options.Encoding = None,
    header: options.HeaderOption = None,
    format: options.FormatOption = None,
    quiet: options.Quiet = False,
    on_bad_row: options.OnBadRowOption = "error",
    model: options.Model = "tree",
    set_: options.Settings = [],  # noqa: B006
    bad_rows: options.BadRows = None,
    checkpoint: options.Checkpoint = None,
    every: options.Every = "60s",
) -> None:
    """Learn a stream, and keep the model.

    The error on the way costs nothing, so it is shown: each row was predicted before it was
    learned. With --model FILE a saved model goes on learning.
    """
    terminal = Terminal(stderr=True)
    with failing_in_one_line(terminal, extra="cli"):
        check_files(
            {"--save": save},
            {"--bad-rows": bad_rows},
            read=stream,
            format=format,
            models=[model],
            checkpoint=checkpoint,
            printed="the model's name",
        )
        options.check_bad_rows(bad_rows, on_bad_row)
        reading = options.Reading(
            target=target,
            drop=drop,
            categorical=categorical,
            time_formats=time_format,
            time_parts=time_parts,
            format=format,
            decimal=decimal,
            thousands=thousands,
            encoding=encoding,
            header=header,
        )
        run, identity = make_run(stream, reading, model, set_, Scoring(on_bad_row=on_bad_row))
        if not quiet:
            show_columns(terminal, run.stream)
        check_savable(run.model, f"--save {save}")
        outputs = [] if bad_rows is None else [BadRowFile(bad_rows)]
        found = Follower(run, terminal, identity, [*outputs], checkpoint, every).follow()
        run.model.save(save)
        print_counts(found, terminal)
        print(save)
