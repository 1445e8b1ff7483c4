"""How far ahead rows are predicted: horizons, what is known by then, and scores by horizon."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from sapwood.cli.failure import Terminal, UsageError, table_of
from sapwood.cli.values import size_of, spans
from sapwood.durations import in_words
from sapwood.formatting import finite, number, r_squared
from sapwood.lags import LaggedModel, Lags
from sapwood.lags.auto import FIRST_ROWS, Proposal, propose
from sapwood.lags.decomposition import Decomposition, decompose, groups_of
from sapwood.rows.calendar import HOLIDAY
from sapwood.rows.encoded import EncodedColumns
from sapwood.streams.stream import Stream

if TYPE_CHECKING:
    from sapwood.cli.options import LagOptions
    from sapwood.cli.runs import Targets
    from sapwood.evaluate.prequential import Prequential
    from sapwood.evaluate.result import Evaluation

__all__ = [
    "AUTO",
    "Ahead",
    "horizons_of",
    "not_known_ahead",
    "print_horizons",
    "rows_by_horizon",
    "to_json",
]

AUTO = "auto"
ALL, NONE = "all", "none"
FIRST_SERIES, MOST_READ = 50, 1_000_000
"""How many series propose lags, and how many rows are read for them."""
DECOMPOSED = 480
"""Rows whose predictions a report decomposes."""
OTHER_KINDS = ("number", "category", "true or false")
"""Columns whose values may not be known ahead."""
DISORDER = 0.05
"""The share of rows earlier than the row before from which on a stream is not in order."""
HOUR_ROWS = 100
"""Rows of an hour of the day from which on its coverage is printed."""


def horizons_of(text: str | None) -> list[int | str]:
    """Return the horizons that were typed, the shortest first."""
    if text is None:
        return []
    found = spans(text, "--horizon")
    if not found or any(type(each) is not type(found[0]) for each in found):
        raise UsageError(f"--horizon {text}: rows (24) or durations (1h,24h) are expected")
    return sorted(found, key=size_of)


def not_known_ahead(
    stream: Stream, known: str, horizon: str | None, by: Sequence[str]
) -> list[str]:
    """Return the columns that are left out, as their values are not known at the horizon.

    - `horizon`: what was typed; without a horizon, all columns are known.
    """
    if known == ALL:
        return []
    if horizon is None:
        raise UsageError(f"--known-ahead {known} is for --horizon: add it, or leave this out")
    rules = [rule.name for rule in stream.model_schema.rules]
    typed = [] if known == NONE else [part.strip() for part in known.split(",") if part.strip()]
    for name in typed:
        if name not in rules:
            raise UsageError(f"--known-ahead {name}: {stream.name} has no such column")
    kept = {*typed, *by, stream.clock, stream.time}
    return [name for name in rules if name not in kept]


@dataclass(frozen=True)
class Ahead:
    """How far ahead a run predicts."""

    horizon: int | str | None = None
    season: int | str | None = None
    proposal: Proposal | None = None

    @classmethod
    def of(
        cls, stream: Stream, targets: "Targets", learning: "LagOptions", season: str | None
    ) -> "Ahead":
        """Return what was typed, completed by what the first rows show."""
        typed = horizons_of(targets.horizon)
        if len(typed) > 1:
            raise UsageError(
                f"--horizon {targets.horizon}: one is expected; several are for evaluate"
            )
        horizon = typed[0] if typed else None
        if horizon is not None and targets.delay is not None:
            raise UsageError(f"--delay {targets.delay}: labels are as late as --horizon already")
        if isinstance(horizon, str) and stream.clock is None:
            raise UsageError(f"--horizon {horizon} needs --time, the column of times")
        given = spans(season, "--season") if season is not None else []
        proposal = None
        can_read = not given or stream.size is not None
        if learning.lags == AUTO or (horizon is not None and can_read):
            proposal = _proposed(stream, horizon, learning.by)
        found = given[0] if given else None
        if found is None and horizon is not None and proposal is not None:
            found = proposal.season
        return cls(horizon, found, proposal)

    def check_saved(self, lags: Any, typed: str) -> None:
        """Complain of another horizon than that of a saved model's lags."""
        known = getattr(lags, "horizon", None)
        if known is not None and known != self.horizon:
            raise UsageError(
                f"{typed} was trained with --horizon {known}: give the same, as its lags are those "
                "of that"
            )

    @property
    def by_time(self) -> bool:
        """Whether the horizon is a duration."""
        return isinstance(self.horizon, str)

    @property
    def delay(self) -> float | None:
        """How late labels are; None if each is there before the next row."""
        if self.horizon is None:
            return None
        return self.horizon - 1 or None if isinstance(self.horizon, int) else size_of(self.horizon)

    def lag_options(self, learning: Any) -> Any:
        """Return options whose lags are those that were proposed, with `--lags auto`."""
        if learning.lags != AUTO or self.proposal is None:
            return learning
        lags = ",".join(map(str, self.proposal.lags))
        means = learning.means or ",".join(map(str, self.proposal.means))
        return replace(learning, lags=lags, means=means)

    def stacked(self, model: Any, target: str | Sequence[str], lags: Any, stream: Stream) -> Any:
        """Return a model combined with simple forecasts, if lags were proposed."""
        from sapwood.lags import NaiveStack
        from sapwood.regressor import Regressor

        if self.proposal is None or lags is None or not isinstance(target, str):
            return model
        if not isinstance(model, Regressor):
            return model
        last = self.proposal.lags[0]
        naive = last if self.proposal.naive is None else self.proposal.naive
        seasons = [naive, *self.proposal.earlier] if lags.by else [naive]
        linear = [name for name in lags.features if name in lags.own_features]
        means = [name for name in linear if name.startswith(f"{target}.mean")]
        day_off = f"{stream.clock}.{HOLIDAY}"
        return NaiveStack(
            *(model, [f"{target}.lag{each}" for each in seasons], f"{target}.lag{last}"),
            linear=linear,
            time=lags.parameters.get("time"),
            day_off=day_off if day_off in stream.features else None,
            timezone=None if stream.calendar is None else stream.calendar.timezone,
            level=means[0] if lags.by and means else None,
        )

    def score(self, run: "Prequential", by: Sequence[str]) -> None:
        """Let a run score the seasonal naive forecast, if there is a season."""
        from sapwood.evaluate.seasonal import SeasonalScores

        horizon = self.horizon
        if self.season is not None:
            fits = horizon is None or type(horizon) is type(self.season)
            try:
                scores = SeasonalScores(
                    *(self.season, horizon if fits else None, by, run.learner.levels),
                    are_repeated=self.proposal is not None and self.proposal.are_repeated,
                    calendar=run.stream.calendar,
                )
                run.add_recorder(scores)
            except ValueError as error:
                raise UsageError(f"--season: {error}") from None


def _proposed(stream: Stream, horizon: int | str | None, by: Sequence[str]) -> Proposal:
    """Return lags by the first rows of a stream, or of its first series if there are several."""
    if stream.size is None:
        raise UsageError(
            f"{stream.name}: it can be read only once, so that its first rows propose no lags and "
            "no season: name them by --lags and --season"
        )
    labels, times, series = [np.empty(0)], [np.empty(0)], [np.empty(0, np.intp)]
    known: dict[Any, int] = {}
    read = rows = 0
    for chunk in stream.chunks(None, FIRST_ROWS):
        if chunk.y is not None and len(chunk):
            y = chunk.y if chunk.y.ndim == 1 else chunk.y[:, 0]
            own = _series_of(chunk, by, known)
            clock: Any = chunk.times
            if clock is None and stream.clock is not None:
                clock = chunk.columns.get(stream.clock)
            chosen = own >= 0
            labels.append(y[chosen])
            series.append(own[chosen])
            times.append(np.full(len(y), np.nan) if clock is None else np.asarray(clock)[chosen])
            rows += int(chosen.sum())
        read += len(chunk)
        if not by or rows >= FIRST_ROWS or read >= MOST_READ:
            break
    places, moments = np.concatenate(series), np.concatenate(times)
    clocked = stream.clock is not None and not isinstance(horizon, int)
    if clocked:
        _report_disorder(stream, places, moments)
    return propose(
        np.concatenate(labels),
        moments if clocked else None,
        0.0 if horizon is None else size_of(horizon),
        places if by else None,
    )


def _report_disorder(stream: Stream, series: NDArray[np.intp], times: NDArray[np.float64]) -> None:
    """Print that rows are not in the order of time, if many of a series are not."""
    order = np.argsort(series, kind="stable")
    earlier = (np.diff(times[order]) < 0) & (np.diff(series[order]) == 0)
    share = float(earlier.sum()) / max(len(times), 1)
    if share > DISORDER:
        Terminal(stderr=True).say(
            f"sapwood: {stream.name}: {share:.0%} of the first rows are earlier than the row before, "
            f"but lags by time and horizons need the order of time; sort the rows by {stream.clock}"
        )


def _series_of(chunk: Any, by: Sequence[str], known: dict[Any, int]) -> NDArray[np.intp]:
    """Return the number of the series of each row, -1 for those after the first few."""
    if not by:
        return np.zeros(len(chunk), np.intp)
    keys = list(zip(*(list(chunk.columns[name]) for name in by), strict=True))
    for key in dict.fromkeys(keys):
        if key not in known and len(known) < FIRST_SERIES:
            known[key] = len(known)
    return np.array([known.get(key, -1) for key in keys], np.intp)


def decomposed(run: "Prequential") -> Decomposition | None:
    """Return what a model predicts for the last rows of a stream, by groups of columns.

    The rows are read once more, so that they have the lags with which they were predicted. None if
    they cannot be, or if there are several targets.
    """
    model, stream = run.model, run.stream
    if not isinstance(model, LaggedModel) or stream.size is None or model.several_targets:
        return None
    lags = Lags(**model.lags.parameters)
    kept: dict[Any, list[Any]] = {}
    for chunk in stream.chunks():
        columns, y = chunk.part(0, len(chunk))
        if not len(chunk):
            continue
        given = lags.transform_learn_many(EncodedColumns(columns), y)
        for name, column in given.items():
            kept[name] = [*kept.get(name, []), *list(column)[-DECOMPOSED:]][-DECOMPOSED:]
    if not kept:
        return None
    clock = kept.get(stream.clock)
    times = None if clock is None else np.asarray(clock, np.float64)
    if times is not None and stream.calendar is not None:
        times = stream.calendar.local(times)
    inner, groups = model.model, groups_of(model, list(kept))
    return decompose(
        lambda X: inner.predict_many(X, record=False), EncodedColumns(kept), groups, times
    )


# -- results by horizon ----------------------------------------------------------------------------


def rows_by_horizon(results: "Sequence[tuple[int | str, Evaluation]]") -> list[dict[str, Any]]:
    """Return the scores of each horizon."""
    from sapwood.evaluate.seasonal import skill

    rows = []
    for horizon, found in results:
        last = found.baselines.get("last")
        seasonal = found.seasonal
        rows.append(
            {
                "horizon": horizon,
                "rows": found.rows_scored,
                "mae": found.total.mae,
                "rmse": found.total.rmse,
                "r2": found.total.r2,
                "mase": None if seasonal is None else seasonal.mase,
                "season": None if seasonal is None else seasonal.season,
                "skill_seasonal": None if seasonal is None else seasonal.skill,
                "skill_last": None if last is None else skill(found.total.rmse, last.total.rmse),
                **_of_intervals(found),
            }
        )
    return rows


def _of_intervals(found: "Evaluation") -> dict[str, Any]:
    """Return the coverage and the pinball loss of the prediction intervals of the highest level."""
    if found.intervals is None or not found.intervals.levels:
        return {}
    level, scores = max(found.intervals.levels.items())
    hours = () if found.seasonal is None else found.seasonal.hours
    covered = [each.coverage[-1] for each in hours if each.rows >= HOUR_ROWS and each.coverage]
    return {
        "level": level,
        "coverage": scores.total.coverage,
        "coverage_lowest": min(covered, default=None),
        "coverage_highest": max(covered, default=None),
        "pinball": (1.0 - level) / 4.0 * scores.total.score,
    }


def print_horizons(
    results: "Sequence[tuple[int | str, Evaluation]]", known: str, to_stderr: bool = False
) -> None:
    """Print the scores of each horizon, if there is one."""
    if not results:
        return
    terminal = Terminal(stderr=to_stderr, highlight=False)
    first = results[0][1]
    terminal.say(f"{first.stream}: {first.target} ahead, one model for each horizon")
    rows = rows_by_horizon(results)
    season = next((row["season"] for row in rows if row["season"]), None)
    naive = "skill: seasonal naive" if season is None else f"skill: naive {season}"
    titles = ("horizon", "rows", "MAE", "RMSE", "R²", "MASE", naive, "skill: last known")
    table = table_of(*titles, words=0, pad_edge=False)
    level = rows[0].get("level")
    covered = Table("horizon", f"coverage of {level}", "by hour", "pinball loss", pad_edge=False)
    for row in rows:
        table.add_row(
            _in_words(row["horizon"]),
            f"{row['rows']:,}",
            number(row["mae"], 5),
            number(row["rmse"], 5),
            r_squared(row["r2"]),
            *(_score(row[name]) for name in ("mase", "skill_seasonal", "skill_last")),
        )
        if level is not None:
            covered.add_row(_in_words(row["horizon"]), *_interval_cells(row))
    terminal.print(table)
    terminal.say(
        "skill: 1 - RMSE of the model / RMSE of the naive forecast, for the same rows; MASE: MAE / "
        "mean absolute difference of values a season apart"
    )
    if level is not None:
        terminal.print(covered)
        terminal.say(
            "pinball loss: mean over both bounds of the interval; by hour: the lowest and the highest "
            f"coverage of hours of the day with at least {HOUR_ROWS} rows"
        )
    if first.seasonal is not None and first.seasonal.are_repeated:
        terminal.say(
            "several rows have the same time: the seasonal naive forecast of a row is the row of the "
            "same place a season earlier, but lags by time are of the last row of a time; name the "
            "columns that identify series by --by"
        )
    if any(not each.is_target and each.kind in OTHER_KINDS for each in first.columns):
        terminal.say(in_words_known(known))


def _interval_cells(row: dict[str, Any]) -> list[str]:
    lowest, highest = row["coverage_lowest"], row["coverage_highest"]
    hours = "" if lowest is None else f"{lowest:.2f} to {highest:.2f}"
    return [_score(row["coverage"]), hours, number(row["pinball"], 5)]


def in_words_known(known: str) -> str:
    """Return how columns of the row that is predicted are used, in words."""
    if known == ALL:
        return (
            "the other columns of a row count as known at its horizon (--known-ahead all): where they "
            "are forecasts themselves, expect larger errors; --known-ahead none leaves them out"
        )
    named = "no column" if known == NONE else known
    return f"known at the horizon, in addition to the time: {named}; other columns were left out"


def to_json(results: "Sequence[tuple[int | str, Evaluation]]", known: str) -> str:
    """Return the results of all horizons as JSON."""
    tables = rows_by_horizon(results)
    listed = [
        {**finite(row), "evaluation": found.to_dict()}
        for row, (_, found) in zip(tables, results, strict=True)
    ]
    return json.dumps({"known_ahead": known, "horizons": listed}, indent=2)


def _score(value: float | None) -> str:
    return "" if value is None or not np.isfinite(value) else f"{value:.3f}"


def _in_words(horizon: int | str) -> str:
    if isinstance(horizon, int):
        return f"{horizon:,} row{'' if horizon == 1 else 's'}"
    return in_words(size_of(horizon))
