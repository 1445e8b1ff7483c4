"""`sapwood predict`: a prediction for each row, in order, as rows come."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sapwood import load
from sapwood.cli import options
from sapwood.cli.failure import Terminal, failing_in_one_line
from sapwood.cli.files import check_files
from sapwood.cli.outputs import BadRowFile, GrowingFile
from sapwood.regressor import Regressor
from sapwood.streams.stream import BadRowError, Chunk, Stream

if TYPE_CHECKING:
    import numpy as np

    from sapwood.evaluate.prequential import OnBadRow

__all__ = ["predict"]


def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model that was saved.")],
    stream: options.StreamArgument = ["-"],  # noqa: B006 - typer wants a list
    *,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help="- is standard output."),
    ] = Path("-"),
    time_format: options.TimeFormats = [],  # noqa: B006 - typer wants a list
    decimal: options.Decimal = None,
    thousands: options.Thousands = None,
    encoding: options.Encoding = None,
    header: options.HeaderOption = None,
    format: options.FormatOption = None,
    on_bad_row: options.OnBadRowOption = "error",
    bad_rows: options.BadRows = None,
) -> None:
    """Write a prediction for each row of a stream, in order, as rows come.

    Columns that the model does not know are ignored, those that the stream lacks count as missing.
    A row that cannot be read, if it is not to stop all, gets an empty line.
    """
    terminal = Terminal(stderr=True)
    with failing_in_one_line(terminal, extra="cli"):
        growing = {"--output": output, "--bad-rows": bad_rows}
        check_files({}, growing, read=[model, *stream], format=format)
        options.check_bad_rows(bad_rows, on_bad_row)
        tree = load(model)
        rows = options.Reading(
            time_formats=time_format,
            format=format,
            decimal=decimal,
            thousands=thousands,
            encoding=encoding,
            header=header,
            model=tree,
        ).open(stream)
        options.tell_missing(terminal, tree, rows)
        read, refused = _predict(tree, rows, output, bad_rows, on_bad_row)
        terminal.say(f"rows: {read:,} read, {read - refused:,} predicted, {refused:,} refused")


class _Predictions(GrowingFile):
    """Predictions, one a line."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, ["prediction"])

    def write(self, chunk: Chunk, predictions: "np.ndarray[Any, Any]") -> None:
        """Write the predictions of a chunk, with an empty line where a row is bad."""
        lines = list(map(repr, predictions.tolist()))
        for bad in reversed(chunk.bad):
            lines.insert(bad.after, "")
        self.write_lines(lines)
        self.flush()


def _predict(
    tree: Regressor,
    stream: Stream,
    output: Path,
    bad_rows: Path | None,
    on_bad_row: "OnBadRow",
) -> tuple[int, int]:
    """Predict all rows; return how many were read, and how many of them refused."""
    read = refused = 0
    written = _Predictions(output).open(None)
    left_out = None if bad_rows is None else BadRowFile(bad_rows).open(None)
    try:
        for chunk in stream.chunks():
            stopped = chunk.bad[0] if chunk.bad and on_bad_row == "error" else None
            good = len(chunk) if stopped is None else stopped.after
            predictions = tree.predict_many(chunk.part(0, good)[0])
            if stopped is not None:
                written.write_lines(list(map(repr, predictions.tolist())))
                raise BadRowError(stopped)
            written.write(chunk, predictions)
            if left_out is not None:
                left_out.write_bad(chunk.bad)
            read += len(chunk) + len(chunk.bad)
            refused += len(chunk.bad)
    finally:
        written.close()
        if left_out is not None:
            left_out.close()
    return read, refused
