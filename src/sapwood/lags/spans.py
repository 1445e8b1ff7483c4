"""How far back lags and rolling means reach: by rows, or by time."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np

from sapwood import validation
from sapwood.durations import EXAMPLES, duration_in_seconds, duration_text
from sapwood.lags.history import ByTime
from sapwood.validation import Label

__all__ = ["Horizon", "Source", "Span", "SpanTable", "Spans", "read_horizon", "read_spans"]

LONGEST_SPAN = 100_000
Spans = int | str | timedelta | Iterable[int | str | timedelta]
Horizon = int | str | timedelta | None
Source = Any  # a column by its name; the target as None, one of several by its place


@dataclass(frozen=True, slots=True)
class Span:
    """How far back a value is: so many rows, or seconds.

    Parameters
    ----------
    given : int or str
        As a parameter of lags.
    amount : float
        Rows or seconds.
    by_time : bool
        Whether these are seconds.
    """

    given: int | str
    amount: float
    by_time: bool


def read_span(given: Any, name: str) -> Span:
    """Return one span.

    Examples
    --------
    >>> read_span(24, "lags"), read_span(" 24H ", "lags")
    (Span(given=24, amount=24, by_time=False), Span(given='24h', amount=86400.0, by_time=True))
    """
    if isinstance(given, str | timedelta):
        seconds = duration_in_seconds(given, name)
        text = duration_text(seconds) if isinstance(given, timedelta) else given
        return Span("".join(text.lower().split()), seconds, True)
    rows = validation.whole(given, name, 1, LONGEST_SPAN)
    return Span(rows, rows, False)


def read_spans(given: Any, name: str) -> tuple[Span, ...]:
    """Return spans in order, each once."""
    if isinstance(given, int | np.integer | str | timedelta):
        given = [given]
    if isinstance(given, bytes) or not isinstance(given, Iterable):
        raise ValueError(
            f"{name} = {validation.shown(given)}: whole numbers of rows are expected, or "
            f"durations such as {EXAMPLES}"
        )
    by_amount: dict[tuple[float, bool], Span] = {}
    for each in given:
        span = read_span(each, name)
        by_amount.setdefault((span.amount, span.by_time), span)
    return tuple(by_amount.values())


def read_horizon(given: Horizon) -> Span | None:
    """Return the horizon, if there is one."""
    return None if given is None else read_span(given, "horizon")


class SpanTable:
    """The features of lags: where each is found.

    Parameters
    ----------
    spans : mapping
        Spans by what they are of, and "lag" or "mean".
    sources : sequence
        What lags are of.
    target : str or tuple of names
        The name of the target, or of several.
    horizon : Span, optional
        How far ahead a row is predicted.
    tolerance : float
        Seconds by which the time of a value may differ from that of a lag.

    Attributes
    ----------
    by_time : bool
        Whether spans are durations.
    wanted : dict
        By names of features the column, the span in rows, and the first row back of a mean, 0
        for a lag; see `History.features`.
    depth : int
        How many rows are looked back at most; by time, this is not known.
    """

    def __init__(
        self,
        spans: Mapping[tuple[Source, str], tuple[Span, ...]],
        sources: Sequence[Source],
        target: str | tuple[Label, ...],
        horizon: Span | None,
        tolerance: float,
    ) -> None:
        every = [span for each in spans.values() for span in each]
        self.by_time = every[0].by_time
        for span in [*every, *([] if horizon is None else [horizon])]:
            if span.by_time != self.by_time:
                raise ValueError(
                    f"{every[0].given} and {span.given}: spans are all rows, or all durations; "
                    "give each in the same unit"
                )
        self.horizon, self._tolerance = horizon, tolerance
        first = 1 if horizon is None else int(horizon.amount)
        self.wanted: dict[Label, tuple[int, int, int]] = {}
        self._timed: list[tuple[float, float]] = []
        for (of, what), each in spans.items():
            named = target if of is None else target[of[0]] if isinstance(of, tuple) else of
            for span in each:
                self._check_horizon(span, what)
                name = f"{named}.{what}{span.given}"
                if name in self.wanted:
                    raise ValueError(
                        f"two features would be called {validation.shown(name)}: rename one"
                    )
                rows = 0 if self.by_time else int(span.amount)
                start = 1 if self.by_time else first
                self.wanted[name] = sources.index(of), rows, start if what == "mean" else 0
                near = min(tolerance, span.amount / 2) if what == "lag" else 0.0
                self._timed.append((span.amount, near))
        self.depth = max(rows + max(start - 1, 0) for _, rows, start in self.wanted.values())

    def _check_horizon(self, span: Span, what: str) -> None:
        if what == "lag" and self.horizon is not None and span.amount < self.horizon.amount:
            raise ValueError(
                f"lag {span.given}: it is not known yet at a horizon of {self.horizon.given}; give "
                "lags of at least the horizon"
            )

    @property
    def in_seconds(self) -> ByTime | None:
        """What is looked for by time; None if rows are counted."""
        if not self.by_time:
            return None
        spans, tolerances = zip(*self._timed, strict=True)
        horizon = 0.0 if self.horizon is None else self.horizon.amount
        return ByTime(list(spans), list(tolerances), horizon)
