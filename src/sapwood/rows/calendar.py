"""Local time and special days: what a time means where a series was measured.

Times are seconds since 1970 in UTC. With a time zone, a time that was given without an offset is a
local time, and the parts of a time are those of the local one. A local time that occurs twice, when
clocks go back, is the first of both; one that clocks skip counts from the offset before, so that it
is as much later as they skip. Special days are those of the local date.
"""

from __future__ import annotations

import csv
import hashlib
import importlib
import json
import math
import zoneinfo
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from sapwood import validation
from sapwood.rows.times import DAY, PARTS
from sapwood.validation import FloatArray

__all__ = ["HOLIDAY", "Calendar"]

HOLIDAY = "holiday"
"""The name of public holidays among special days."""
HOLIDAY_YEARS = range(1970, 2070)
MOST_KINDS = 20
MOST_SPANS = 10_000
HOUR = 3600
EARLIEST, LATEST = -17_000_000, 70_000_000
"""Hours since 1970 between which offsets are looked up: the years 30 to 9955."""
NAIVE_EPOCH, EPOCH = datetime(1970, 1, 1), datetime(1970, 1, 1, tzinfo=UTC)
FIRST_DAY, LAST_DAY = (each.toordinal() - EPOCH.toordinal() for each in (date.min, date.max))
Days = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Calendar:
    """The time zone of a column of times, and its special days.

    Parameters
    ----------
    timezone : str, optional
        Such as "Europe/Berlin"; UTC if not given.
    days : tuple of (str, tuple of int)
        The name of each kind of special days, and the days: the first day of each span, counted
        from 1970-01-01, and the day after its last one, in ascending order.

    Examples
    --------
    >>> berlin = Calendar("Europe/Berlin", (("fair", (19_813, 19_814)),))
    >>> summer = 1_711_846_800.0  # 2024-03-31T01:00Z, when clocks go to 03:00
    >>> berlin.local(np.array([summer - 1.0, summer])) - summer
    array([3599., 7200.])
    >>> berlin.special_days(np.array([summer, summer + 86_400.0]))
    {'fair': array([1., 0.])}
    """

    timezone: str | None = None
    days: tuple[tuple[str, Days], ...] = ()

    def __post_init__(self) -> None:
        if self.timezone is not None:
            _zone(self.timezone)
        names = [name for name, _ in self.days]
        if len(set(names)) < len(names) or len(names) > MOST_KINDS:
            raise ValueError(
                f"special days {', '.join(names)}: at most {MOST_KINDS} kinds of different names are "
                "expected"
            )
        for name, edges in self.days:
            _check_days(name, edges)

    @classmethod
    def of(
        cls,
        timezone: str | None = None,
        holidays: str | None = None,
        special_days: Iterable[str | Path] = (),
    ) -> Calendar:
        """Return the calendar of a place.

        Parameters
        ----------
        timezone : str, optional
            A name of the IANA database, such as "Europe/Berlin".
        holidays : str, optional
            The country whose public holidays are special days, such as "DE", or a part of it, such
            as "DE-BY". The days from 1970 to 2069 are taken from the package `holidays`.
        special_days : iterable of paths
            CSV files with the column "date", or "date" and "until" for spans with their last day.
            The name of the file without its ending is that of the feature.

        Examples
        --------
        >>> Calendar.of("Europe/Oslo")
        Calendar(timezone='Europe/Oslo', days=())
        """
        kinds = [] if holidays is None else [(HOLIDAY, _holidays(holidays))]
        kinds += [(Path(path).stem, _days_of_file(Path(path))) for path in special_days]
        return cls(timezone, tuple(kinds))

    def __bool__(self) -> bool:
        return self.timezone is not None or bool(self.days)

    @property
    def names(self) -> tuple[str, ...]:
        """The kinds of special days."""
        return tuple(name for name, _ in self.days)

    @property
    def ends(self) -> dict[str, date]:
        """The last day of each kind of special days, if it has any."""
        return {
            name: date.fromordinal(edges[-1] - 1 + EPOCH.toordinal())
            for name, edges in self.days
            if edges
        }

    @property
    def fingerprint(self) -> str:
        """A short text that differs for other calendars."""
        return hashlib.blake2b(json.dumps(self.to_header()).encode(), digest_size=8).hexdigest()

    # -- times ------------------------------------------------------------------------------------

    def local(self, seconds: FloatArray) -> FloatArray:
        """Return local times, in seconds since 1970-01-01 of the place."""
        return seconds if self.timezone is None else seconds + self._offsets(seconds, False)

    def local_one(self, seconds: float) -> float:
        """Return what `local` does, of one time."""
        return seconds if self.timezone is None else seconds + self._offset(seconds, False)

    def absolute(self, seconds: FloatArray) -> FloatArray:
        """Return the times of local ones, in seconds since 1970 in UTC."""
        return seconds if self.timezone is None else seconds - self._offsets(seconds, True)

    def absolute_one(self, seconds: float) -> float:
        """Return what `absolute` does, of one time."""
        return seconds if self.timezone is None else seconds - self._offset(seconds, True)

    def _offset(self, seconds: float, is_local: bool) -> float:
        assert self.timezone is not None
        if not math.isfinite(seconds):
            return 0.0
        hour = int(min(max(seconds // HOUR, EARLIEST), LATEST))
        found = _offset_of_hour(self.timezone, hour, is_local)
        return _offset_at(self.timezone, seconds, is_local) if found is None else found

    def _offsets(self, seconds: FloatArray, is_local: bool) -> FloatArray:
        known = np.where(np.isfinite(seconds), seconds, 0.0)
        hours, places = np.unique(known // HOUR, return_inverse=True)
        zone = str(self.timezone)
        each = [
            _offset_of_hour(zone, int(min(max(hour, EARLIEST), LATEST)), is_local) for hour in hours
        ]
        found: FloatArray = np.array(each, np.float64)[places]
        for row in np.flatnonzero(np.isnan(found)):  # clocks change within the hour
            found[row] = _offset_at(zone, float(known[row]), is_local)
        return found

    # -- days -------------------------------------------------------------------------------------

    def special_days(self, seconds: FloatArray) -> dict[str, FloatArray]:
        """Return 1 for times on special days of each kind, 0 for others, NaN for missing ones."""
        days = np.floor(self.local(seconds) / DAY)
        found = {}
        for name, edges in self.days:
            inside = np.searchsorted(np.array(edges, np.float64), days, side="right") % 2
            found[name] = np.where(np.isfinite(days), inside, np.nan)
        return found

    def special_days_one(self, seconds: float) -> dict[str, float]:
        """Return what `special_days` does, of one time."""
        day = self.local_one(seconds) // DAY
        if not math.isfinite(day):
            return dict.fromkeys(self.names, math.nan)
        return {name: float(bisect_right(edges, day) % 2) for name, edges in self.days}

    # -- files ------------------------------------------------------------------------------------

    def to_header(self) -> dict[str, Any]:
        """Return all that it is, in terms of JSON."""
        return {"timezone": self.timezone, "days": {name: list(days) for name, days in self.days}}

    @classmethod
    def from_header(cls, header: Any) -> Calendar:
        """Return the calendar of a header, of which nothing is trusted.

        Raises
        ------
        ValueError
            If there is anything wrong with it.
        """
        if not isinstance(header, dict) or header.keys() != {"timezone", "days"}:
            raise ValueError("the entries of a calendar are wrong")
        zone, days = header["timezone"], header["days"]
        if not (zone is None or type(zone) is str) or not isinstance(days, Mapping):
            raise ValueError("a calendar has no time zone, or no days")
        if any(type(edges) is not list for edges in days.values()):
            raise ValueError("the days of a calendar are no list")
        return cls(zone, tuple((name, tuple(edges)) for name, edges in days.items()))


@lru_cache(maxsize=256)
def _zone(name: str) -> zoneinfo.ZoneInfo:
    try:
        return zoneinfo.ZoneInfo(name)
    except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
        known = zoneinfo.available_timezones()
        remedy = (
            'a name such as "Europe/Berlin" is expected' if known else "pip install tzdata first"
        )
        raise ValueError(f"timezone {validation.shown(name)} is not known: {remedy}") from None


def _offset_at(zone: str, seconds: float, is_local: bool) -> float:
    """Return the seconds by which local time is ahead of UTC."""
    passed = timedelta(seconds=math.floor(seconds))
    if is_local:
        moment = (NAIVE_EPOCH + passed).replace(tzinfo=_zone(zone))
    else:
        moment = (EPOCH + passed).astimezone(_zone(zone))
    offset = moment.utcoffset()
    assert offset is not None
    return offset.total_seconds()


@lru_cache(maxsize=2**15)
def _offset_of_hour(zone: str, hour: int, is_local: bool) -> float | None:
    """Return the offset of an hour since 1970; None if it changes within the hour."""
    first = _offset_at(zone, hour * HOUR, is_local)
    return first if _offset_at(zone, hour * HOUR + HOUR - 1, is_local) == first else None


def _check_days(name: Any, edges: Sequence[Any]) -> None:
    """Check the name of special days, and that they are spans in ascending order."""
    if type(name) is not str or not name or "." in name or name in PARTS:
        raise ValueError(
            f"special days are called {validation.shown(name)}: a name without a dot is expected "
            f"that is none of {', '.join(PARTS)}; rename the file"
        )
    good = all(type(day) is int and FIRST_DAY <= day <= LAST_DAY for day in edges)
    ascending = good and all(one < other for one, other in pairwise(edges))
    if not ascending or len(edges) % 2 or len(edges) > 2 * MOST_SPANS:
        raise ValueError(
            f"special days {validation.shown(name)}: at most {MOST_SPANS:,} spans are expected, each "
            "with its first day and the day after its last one, in ascending order"
        )


def _merged(spans: Iterable[tuple[int, int]]) -> Days:
    """Return spans, with the days after their last ones, in order and without touching others."""
    edges: list[int] = []
    for start, end in sorted(spans):
        if edges and start <= edges[-1]:
            edges[-1] = max(edges[-1], end)
        else:
            edges += [start, end]
    return tuple(edges)


def _day(text: str) -> int:
    return date.fromisoformat(text.strip()).toordinal() - EPOCH.toordinal()


def _holidays(country: str) -> Days:
    """Return the public holidays of a country, or of a part of it such as "DE-BY"."""
    try:
        package: Any = importlib.import_module("holidays")
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "holidays by country need the package holidays: pip install 'sapwood[holidays]'",
            name="holidays",
        ) from None
    name, _, part = country.partition("-")
    try:
        found = package.country_holidays(name, subdiv=part or None, years=HOLIDAY_YEARS)
    except NotImplementedError as error:
        raise ValueError(f"holidays {validation.shown(country)}: {error}") from None
    days = [day.toordinal() - EPOCH.toordinal() for day in found]
    return _merged((day, day + 1) for day in days)


def _days_of_file(path: Path) -> Days:
    """Return the special days of a CSV file."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.DictReader(file)
        if "date" not in (reader.fieldnames or ()):
            raise ValueError(f'{path}: the header "date", or "date,until", is expected')
        spans = []
        for row in reader:
            first, last = row["date"] or "", row.get("until") or row["date"] or ""
            try:
                spans.append((_day(first), _day(last) + 1))
                is_span = spans[-1][0] < spans[-1][1]
            except ValueError:
                is_span = False
            if not is_span:
                raise ValueError(
                    f"{path}, line {reader.line_num}: {validation.shown(first)} until "
                    f"{validation.shown(last)} is no span of days, such as 2026-12-23 until "
                    "2027-01-08"
                )
    return _merged(spans)
