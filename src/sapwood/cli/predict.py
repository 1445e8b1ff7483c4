"""`sapwood predict`: a prediction for each row, in order, as rows come."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sapwood import load
from sapwood.cli import options
from sapwood.cli.failure import Terminal, UsageError, failing_in_one_line
from sapwood.cli.files import check_files
from sapwood.cli.outputs import BadRowFile, GrowingFile
from sapwood.cli.reading import Reading, Writing, tell_missing
from sapwood.lags import LaggedModel
from sapwood.streams.labelled import keys_of
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
    writing: Writing,
    on_bad_row: options.OnBadRowOption = "error",
    bad_rows: options.BadRows = None,
    quiet: options.Quiet = False,
) -> None:
    """Write a prediction for each row of a stream, in order, as rows come.

    Columns that the model does not know are ignored, those that the stream lacks count as missing.
    A row that cannot be read, if it is not to stop all, gets an empty line. For a model with lags,
    the rows follow those that it has learned; with --target, their own targets become lags of
    the rows behind them.
    """
    terminal = Terminal(stderr=True, silent=quiet)
    with failing_in_one_line(terminal, extra="cli"):
        growing = {"--output": output, "--bad-rows": bad_rows}
        check_files({}, growing, read=[model, *stream], format=writing.format)
        options.check_bad_rows(bad_rows, on_bad_row)
        loaded = load(model)
        if writing.target is not None and not isinstance(loaded, LaggedModel):
            raise UsageError(f"--target {writing.target}: {model} has no lags, so leave it out")
        rows = Reading(**vars(writing), model=loaded).open(stream)
        tell_missing(terminal, loaded, rows)
        read, refused = _predict(loaded, rows, output, bad_rows, on_bad_row)
        terminal.say(f"rows: {read:,} read, {read - refused:,} predicted, {refused:,} refused")


class _Predictions(GrowingFile):
    """Predictions, one a line, behind the ids of rows."""

    def __init__(self, path: Path, ids: tuple[str, ...]) -> None:
        super().__init__(path, [*ids, "prediction"])
        self._ids = ids

    def write(self, chunk: Chunk, predictions: "np.ndarray[Any, Any]", bad: bool = True) -> None:
        """Write the predictions of a chunk, with an empty line where a row is bad."""
        lines = [*map(repr, predictions.tolist())]
        empty = "" if not self._ids else [""] * (len(self._ids) + 1)
        rows: list[Any] = lines
        if self._ids:
            rows = [[*key, line] for key, line in zip(keys_of(chunk.ids), lines, strict=False)]
        for each in reversed(chunk.bad if bad else ()):
            rows.insert(each.after, empty)
        if self._ids:
            self.write_rows(rows)
        else:
            self.write_lines(rows)
        self.flush()


def _predict(
    model: Any,
    stream: Stream,
    output: Path,
    bad_rows: Path | None,
    on_bad_row: "OnBadRow",
) -> tuple[int, int]:
    """Predict all rows; return how many were read, and how many of them refused."""
    read = refused = 0
    written = _Predictions(output, stream.ids).open(None)
    left_out = None if bad_rows is None else BadRowFile(bad_rows).open(None)
    try:
        for chunk in stream.chunks():
            stopped = chunk.bad[0] if chunk.bad and on_bad_row == "error" else None
            good = len(chunk) if stopped is None else stopped.after
            predictions = _predicted(model, chunk, good)
            if stopped is not None:
                written.write(chunk, predictions, bad=False)
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


def _predicted(model: Any, chunk: Chunk, rows: int) -> "np.ndarray[Any, Any]":
    """Predict the first rows of a chunk; what a model with lags remembers goes on by them."""
    columns, y = chunk.part(0, rows)
    if not isinstance(model, LaggedModel):
        predictions: np.ndarray[Any, Any] = model.predict_many(columns)
        return predictions
    plan = model.lags.plan(columns, None if chunk.y is None else y)
    predictions = model.model.predict_many(plan.features)
    plan.push()
    return predictions
