"""`sapwood predict`: a prediction for each row, in order, as rows come."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sapwood import load
from sapwood.cli import options
from sapwood.cli.failure import Terminal, UsageError, failing_in_one_line
from sapwood.cli.files import check_files
from sapwood.cli.models import check_levels
from sapwood.cli.outputs import BadRowFile, GrowingFile, bound_columns, bound_names
from sapwood.cli.reading import Reading, Writing, tell_missing
from sapwood.streams.labelled import keys_of
from sapwood.streams.stream import BadRowError, Chunk, Stream

if TYPE_CHECKING:
    from sapwood.evaluate.prequential import OnBadRow
    from sapwood.streams.stream import Column

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
    interval: options.Interval = [],  # noqa: B006 - typer wants a list
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
        if writing.target is not None and not hasattr(loaded, "lags"):
            raise UsageError(f"--target {writing.target}: {model} has no lags, so leave it out")
        if interval:
            check_levels(loaded.model if hasattr(loaded, "lags") else loaded, interval)
        rows = Reading(**vars(writing), model=loaded).open(stream)
        tell_missing(terminal, loaded, rows)
        asked = _Asked(loaded, tuple(sorted(set(interval))))
        read, refused = _predict(asked, rows, output, bad_rows, on_bad_row)
        terminal.say(f"rows: {read:,} read, {read - refused:,} predicted, {refused:,} refused")


@dataclass(frozen=True)
class _Asked:
    """A model, and the levels of the bounds that it is asked for."""

    model: Any
    levels: tuple[float, ...]

    def predict(self, chunk: Chunk, rows: int) -> list[list[float | str]]:
        """Return the columns for the first rows of a chunk: predictions, and bounds.

        What a model with lags remembers goes on by them.
        """
        columns, y = chunk.part(0, rows)
        if not hasattr(self.model, "lags"):
            return self._told(self.model, columns)
        plan = self.model.lags.plan(columns, None if chunk.y is None else y)
        told = self._told(self.model.model, plan.features)
        plan.push()
        return told

    def _told(self, model: Any, columns: "Mapping[Any, Column]") -> list[list[float | str]]:
        if not self.levels:
            return [model.predict_many(columns).tolist()]
        predictions, bounds = model.predict_intervals_many(columns)
        places = [model.levels.index(level) for level in self.levels]
        return [predictions.tolist(), *bound_columns(bounds[:, places])]


class _Predictions(GrowingFile):
    """Predictions, one a line, behind the ids of rows; bounds are behind them."""

    def __init__(self, path: Path, ids: tuple[str, ...], levels: tuple[float, ...]) -> None:
        columns = [*ids, "prediction", *bound_names(levels)]
        super().__init__(path, columns)
        self._ids, self._empty = ids, [""] * len(columns)

    def write(self, chunk: Chunk, predicted: list[list[float | str]], bad: bool = True) -> None:
        """Write the predictions of a chunk, with an empty line where a row is bad."""
        rows: list[Any] = [list(row) for row in zip(*predicted, strict=True)]
        if self._ids:
            rows = [[*key, *row] for key, row in zip(keys_of(chunk.ids), rows, strict=False)]
        for each in reversed(chunk.bad if bad else ()):
            rows.insert(each.after, self._empty)
        if len(self._empty) > 1:
            self.write_rows(rows)
        else:
            self.write_lines([repr(row[0]) if row[0] != "" else "" for row in rows])
        self.flush()


def _predict(
    asked: _Asked,
    stream: Stream,
    output: Path,
    bad_rows: Path | None,
    on_bad_row: "OnBadRow",
) -> tuple[int, int]:
    """Predict all rows; return how many were read, and how many of them refused."""
    read = refused = 0
    written = _Predictions(output, stream.ids, asked.levels).open(None)
    left_out = None if bad_rows is None else BadRowFile(bad_rows).open(None)
    try:
        for chunk in stream.chunks():
            stopped = chunk.bad[0] if chunk.bad and on_bad_row == "error" else None
            good = len(chunk) if stopped is None else stopped.after
            predicted = asked.predict(chunk, good)
            if stopped is not None:
                written.write(chunk, predicted, bad=False)
                raise BadRowError(stopped)
            written.write(chunk, predicted)
            if left_out is not None:
                left_out.write_bad(chunk.bad)
            read += len(chunk) + len(chunk.bad)
            refused += len(chunk.bad)
    finally:
        written.close()
        if left_out is not None:
            left_out.close()
    return read, refused
