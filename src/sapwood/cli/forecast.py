"""`sapwood forecast`: a path beyond the last row that a model has learned."""

import math
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sapwood import load
from sapwood.cli import options
from sapwood.cli.failure import Terminal, UsageError, failing_in_one_line
from sapwood.cli.files import check_files, is_stdout
from sapwood.cli.models import check_levels
from sapwood.cli.outputs import bound_names, csv_bytes
from sapwood.cli.reading import Reading, report_missing
from sapwood.durations import duration_in_seconds
from sapwood.lags import LaggedModel
from sapwood.lags.decomposition import Decomposition, decompose, groups_of
from sapwood.lags.forecasting import next_rows
from sapwood.rows.encoded import EncodedColumns, EncodedRow
from sapwood.schema import Calendar
from sapwood.storage.atomic import write_atomically

if TYPE_CHECKING:
    from sapwood.lags.forecasting import Path as ForecastPath

__all__ = ["forecast"]

MOST_SERIES = 6  # in a picture
DAY = 86_400
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Row = dict[Any, Any]


def forecast(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A saved model with lags.")],
    *,
    horizon: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="How far to forecast beyond the last row: 48h. With --rows, default: all rows.",
        ),
    ] = None,
    rows: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Rows to forecast, in the order of time, with the columns that are known ahead. "
            "Default: the times after the last row, at the usual step.",
        ),
    ] = None,
    output: options.Output = Path("-"),
    picture: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a picture of the path and its intervals (SVG)."),
    ] = None,
    contributions: Annotated[
        bool,
        typer.Option(
            "--contributions",
            help="Also write what each prediction consists of: a level, and what calendar, lags, "
            "series and other columns add to it (Shapley values).",
        ),
    ] = False,
    interval: options.Interval = [],  # noqa: B006 - typer wants a list
    minimum: options.Minimum = None,
    maximum: options.Maximum = None,
    quiet: options.Quiet = False,
) -> None:
    """Forecast a series beyond the last row that a model has learned.

    Each prediction becomes a lag of the later rows; the model is not changed. The file has the
    time, the series if there are several, the prediction, and its prediction intervals
    if the model has some: by default of all its levels.
    """
    terminal = Terminal(stderr=True, silent=quiet)
    with failing_in_one_line(terminal, extra="cli"):
        read = [model] if rows is None else [model, rows]
        check_files({"--picture": picture}, {"--output": output}, read=read, format=None)
        loaded = load(model)
        if not isinstance(loaded, LaggedModel):
            raise UsageError(
                f"{model}: it has no lags; train it with --lags, or use sapwood predict"
            )
        if loaded.several_targets:
            raise UsageError(f"{model}: it has several targets; use LaggedModel.forecast in Python")
        if interval:
            check_levels(loaded.model, interval)
        made = _Rows(loaded, str(model))
        ahead = None if horizon is None else _seconds(horizon)
        given = made.beyond(horizon, terminal) if rows is None else made.read(rows, ahead, terminal)
        if rows is None:
            made.report_missing(terminal)
        made.report_ends(given, terminal)
        known = tuple(getattr(loaded.model, "levels", ()))
        path = loaded.forecast_path(given, intervals=bool(known))
        levels = {
            level: place for place, level in enumerate(known) if not interval or level in interval
        }
        limits = options.limits(minimum, maximum)
        parts = made.decomposed(path) if contributions else None
        _write(output, made.table(given, path, levels, limits, parts))
        if picture is not None:
            write_atomically(picture, made.drawn(given, path, levels).encode())
        _report(terminal, loaded, path, bool(levels))


def _seconds(horizon: str) -> float:
    try:
        return duration_in_seconds(horizon, "--horizon")
    except ValueError as error:
        raise UsageError(str(error).replace(" = ", " ")) from None


class _Rows:
    """The rows that are forecast."""

    def __init__(self, model: LaggedModel, name: str) -> None:
        self._model, self._name = model, name
        self._time = model.lags.time
        self._rule = next((r for r in model.schema.rules if r.name == self._time), None)
        self._calendar = None if self._rule is None else self._rule.calendar

    def beyond(self, horizon: str | None, terminal: Terminal) -> list[Row]:
        """Return rows after the last one of each series, at its usual step."""
        if horizon is None:
            raise UsageError("--horizon is missing: how far to forecast, such as --horizon 48h")
        if self._time is None:
            raise UsageError(
                f"{self._name}: its lags count rows, so that the times of the next rows are not "
                "known: give the rows by --rows FILE, or train it with lags by time, as --lags 24h"
            )
        ahead = _seconds(horizon)
        if not self._model.lags.latest_times:
            raise UsageError(f"{self._name}: it has learned no row that has a time")
        try:
            rows, ended = next_rows(self._model, ahead)
        except ValueError as error:
            raise UsageError(f"--horizon: {error}") from None
        if ended:
            terminal.say(
                f"sapwood: {len(ended):,} series ended more than {horizon} before the last row, and "
                "are not forecast"
            )
        return rows

    def read(self, path: Path, ahead: float | None, terminal: Terminal) -> list[Row]:
        """Return the rows of a file, up to the horizon."""
        stream = Reading(model=self._model).open([str(path)])
        report_missing(terminal, self._model, stream)
        rows: list[Row] = []
        for chunk in stream.chunks():
            if chunk.bad:
                raise UsageError(str(chunk.bad[0]))
            rows += map(EncodedRow, chunk.rows())
        if ahead is None or self._time is None:
            return rows
        last = max((time for time, _ in self._model.lags.latest_times.values()), default=0.0)
        return [row for row in rows if (row.get(self._time) or last) <= last + ahead]

    def report_missing(self, terminal: Terminal) -> None:
        """Name the features that are not known without --rows."""
        own = {self._time, *self._model.lags.by}
        own |= set(self._rule.derived if self._rule else ())
        missing = [str(name) for name in self._model.features if name not in own]
        if missing:
            terminal.say(
                f"sapwood: {', '.join(missing)} count as missing; give their values by --rows FILE"
            )

    def report_ends(self, rows: list[Row], terminal: Terminal) -> None:
        """Name special days of which none is known as late as the rows."""
        ends = {} if self._calendar is None else self._calendar.ends
        times = [row.get(self._time) for row in rows]
        last = max((time for time in times if time is not None), default=-math.inf)
        for name, end in ends.items():
            if last >= (end.toordinal() + 1 - EPOCH.toordinal()) * DAY:
                terminal.say(
                    f"sapwood: no special days of {name} are known after {end}: later days count as "
                    "ordinary; train a model with a longer file"
                )

    def table(
        self,
        rows: list[Row],
        path: "ForecastPath",
        levels: dict[float, int],
        limits: tuple[float, float] | None,
        parts: Decomposition | None,
    ) -> Iterator[list[Any]]:
        """Yield the lines of the file, the header first."""
        times = [] if self._time is None else [str(self._time)]
        by = list(self._model.lags.by)
        added = {} if parts is None else parts.parts
        names = [] if parts is None else ["level", *map(_column_name, added)]
        yield [*times, *map(str, by), "prediction", *bound_names(tuple(levels)), *names]
        low, high = limits or (float("-inf"), float("inf"))
        for place, row in enumerate(rows):
            found = [float(path.predictions[place])]
            for known in levels.values():
                assert path.bounds is not None
                found += path.bounds[place, known].tolist()
            held = [min(max(value, low), high) for value in found]
            moment = [] if self._time is None else [_iso(row.get(self._time), self._calendar)]
            if parts is not None:
                held += [parts.level, *(own[place] for own in added.values())]
            yield [*moment, *(row.get(name) for name in by), *held]

    def decomposed(self, path: "ForecastPath") -> Decomposition:
        """Return what the predictions of a path consist of, relative to other rows of the path."""
        model = self._model.model
        names = list(dict.fromkeys(name for row in path.rows for name in row))
        columns = EncodedColumns({name: [row.get(name) for row in path.rows] for name in names})
        return decompose(
            lambda X: model.predict_many(X, record=False), columns, groups_of(self._model, names)
        )

    def drawn(self, rows: list[Row], path: "ForecastPath", levels: dict[float, int]) -> str:
        """Return a picture of the path, of the first few series if there are several."""
        from sapwood.report.fan import Fan, fan_svg

        target, by = self._model.lags.target, self._model.lags.by
        series: dict[tuple[Any, ...], list[int]] = {}
        for place, row in enumerate(rows):
            series.setdefault(tuple(row.get(name) for name in by), []).append(place)
        fans = []
        for key, places in list(series.items())[:MOST_SERIES]:
            bounds = None
            if path.bounds is not None and levels:
                bounds = path.bounds[places][:, [*levels.values()]]
            of = f" of {', '.join(map(str, key))}" if by else ""
            labels = [self._label(rows[place], place) for place in places]
            title = f"Forecast of {target}{of}"
            fans.append(Fan(title, labels, path.predictions[places], bounds))
        return fan_svg(fans, [*levels])

    def _label(self, row: Row, place: int) -> str:
        if self._time is None:
            return f"row {place + 1}"
        return _iso(row.get(self._time), self._calendar)


def _column_name(group: str) -> str:
    """Return the column for the contribution of a group."""
    return f"from_{group.replace(' ', '_')}"


def _iso(seconds: float | None, calendar: Calendar | None) -> str:
    """Return a time as text: with a time zone, the local time and its offset."""
    if seconds is None:
        return ""
    if calendar is None or calendar.timezone is None:
        return (EPOCH + timedelta(seconds=seconds)).replace(tzinfo=None).isoformat(sep=" ")
    offset = timedelta(seconds=calendar.local_one(seconds) - seconds)
    return (EPOCH + timedelta(seconds=seconds)).astimezone(timezone(offset)).isoformat(sep=" ")


def _write(output: Path, lines: Iterator[list[Any]]) -> None:
    data = csv_bytes(lines)
    if is_stdout(output):
        sys.stdout.buffer.write(data)
    elif output.exists() and not output.is_file():  # a device or a named pipe
        output.write_bytes(data)
    else:
        write_atomically(output, data)


def _report(terminal: Terminal, model: LaggedModel, path: "ForecastPath", bounded: bool) -> None:
    """Print how many rows were forecast, how, and what their intervals mean."""
    recursive = int(path.is_recursive.sum())
    terminal.say(f"rows: {len(path.predictions):,} forecast, {recursive:,} of them recursively")
    if model.lags.horizon is None:
        bounds = "; its prediction intervals are too narrow for later rows" if bounded else ""
        terminal.say(
            "the model was trained without --horizon, for rows whose labels are as late as they were "
            f"in training{bounds}: train it with the horizon that matters most"
        )
    elif not bounded:
        return
    elif recursive:
        terminal.say(
            f"prediction intervals hold up to the horizon of the model, {model.lags.horizon}; "
            f"beyond it, in the {recursive:,} recursive rows, they are too narrow"
        )
    else:
        terminal.say(f"prediction intervals are of a horizon of {model.lags.horizon}")
