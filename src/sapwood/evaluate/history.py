"""The data of the charts of a report, of bounded size: a sample of rows, and sums over all rows."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sapwood import validation
from sapwood.evaluate.error_tables import ErrorTables
from sapwood.evaluate.recorder import LabelledRows, Moment, Recorder, packed, saved_array, unpacked
from sapwood.evaluate.result import ROW, ErrorsBy, Sample
from sapwood.evaluate.sampling import SEED, chosen
from sapwood.rows.labels import Labels
from sapwood.streams.stream import Column

__all__ = ["History", "RecentTimes"]

ROWS = 2048  # of the sample; half of them go when there are as many
GROUPS = 4  # categories that are kept with the sample
LABELS = 60  # of each of them
OTHER = -1
MOST_TIMES = 1000  # rows of the window whose times are kept
TIMES = "recent_times"


class History(Recorder):
    """A sample of the rows that were scored, and the errors of all of them by parts.

    The sample has one random row of each block of `interval` rows, which doubles whenever there
    are too many of them; a row at a fixed distance would have the same hour of the day each time.
    """

    def __init__(self, seed: int = SEED) -> None:
        self.seed = seed
        self._level = 0
        self._rows = np.zeros(ROWS, ROW)
        self._codes = np.full((ROWS, GROUPS), OTHER, np.int16)
        self._count = 0
        self._groups: dict[str, dict[Any, int]] = {}
        self._tables = ErrorTables(GROUPS, LABELS)

    @property
    def interval(self) -> int:
        """The sample has one row of so many."""
        return 1 << self._level

    def record(self, rows: LabelledRows) -> None:
        """Take those rows that can be scored, in order."""
        rows = rows.some(np.flatnonzero(rows.is_scored))
        if not len(rows.y):
            return
        columns = rows.features if isinstance(rows.features, Mapping) else _labels(rows.features)
        before, y, times = self._tables.rows, rows.y, rows.times
        codes = self._coded(columns, len(y))
        self._tables.take(rows.predictions, y, times, codes)
        start = 0
        while start < len(y):
            # Not more rows at once than there is room for.
            stop = min(len(y), start + (ROWS - self._count) * self.interval)
            numbers = np.arange(before + start, before + stop)
            places = start + np.flatnonzero(chosen(numbers, self._level, self.seed))
            places = places[: ROWS - self._count]
            if self._count + len(places) == ROWS:
                stop = int(places[-1]) + 1
            kept = self._rows[self._count : self._count + len(places)]
            kept["row"] = before + 1 + places
            kept["y"], kept["prediction"] = y[places], rows.predictions[places]
            kept["time"] = np.nan if times is None else times[places]
            self._codes[self._count : self._count + len(places)] = codes[places]
            self._count += len(places)
            if self._count == ROWS:
                self._thin_out()
            start = stop

    def _coded(self, columns: Mapping[str, Column], count: int) -> NDArray[np.int16]:
        """Return the codes of labels, a column for each category that is kept."""
        codes = np.full((count, GROUPS), OTHER, np.int16)
        for name, column in columns.items():
            if isinstance(column, np.ndarray):
                continue
            if name not in self._groups:
                if len(self._groups) == GROUPS:
                    continue
                self._groups[name] = {}
            place = list(self._groups).index(name)
            codes[:, place] = _codes_of(column, self._groups[name])
        return codes

    def _thin_out(self) -> None:
        """Keep one of two rows."""
        self._level += 1
        kept = np.flatnonzero(chosen(self._rows["row"] - 1, self._level, self.seed))
        for table in (self._rows, self._codes):
            table[: len(kept)] = table[kept]
        self._count = len(kept)
        self._codes[self._count :] = OTHER

    def finished(self) -> Sample:
        """Return the rows that were kept."""
        codes = self._codes[: self._count]
        groups = {
            name: ([str(label) for label in labels], codes[:, place].astype(np.int64))
            for place, (name, labels) in enumerate(self._groups.items())
        }
        return Sample(self._rows[: self._count].copy(), self.interval, groups)

    def results(self, end: Moment) -> dict[str, Any]:
        """Return the sample, and the errors of all rows by parts."""
        return {"sample": self.finished(), "errors_by": self.errors_by()}

    def errors_by(self) -> ErrorsBy:
        """Return the errors of all rows by hour, prediction and category."""
        return self._tables.finished({name: list(each) for name, each in self._groups.items()})

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the state, to be saved."""
        groups = {name: list(labels) for name, labels in self._groups.items()}
        header = {"level": self._level, "seed": self.seed, "groups": groups}
        return {
            "history": self._rows[: self._count].copy(),
            "history_codes": self._codes[: self._count].copy(),
            "history_groups": packed(header),
            **self._tables.to_arrays(),
        }

    def restored(self, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return a history in a state that `to_arrays` returned."""
        rows = saved_array(arrays, "history", ROW, (None,))
        codes = saved_array(arrays, "history_codes", np.int16, (len(rows), GROUPS))
        header = unpacked(arrays["history_groups"])
        made = type(self)(validation.whole(header["seed"], "seed", 0, 2**63))
        if len(rows) >= ROWS:
            raise ValueError(f"the saved history has {len(rows)} rows")
        made._level = validation.whole(header["level"], "level", 0, 53)
        groups = header["groups"]
        if not isinstance(groups, dict) or len(groups) > GROUPS:
            raise TypeError("the saved history has no groups")
        for name, labels in groups.items():
            if not isinstance(labels, list) or len(labels) > LABELS:
                raise TypeError(f"the saved labels of {validation.shown(name)} are none")
            if not all(isinstance(label, str | int) for label in labels):
                raise TypeError(f"a saved label of {validation.shown(name)} is none")
            made._groups[name] = {label: code for code, label in enumerate(labels)}
            if len(made._groups[name]) != len(labels):
                raise ValueError(f"a saved label of {validation.shown(name)} is there twice")
        most = [len(labels) for labels in groups.values()]
        most += [0] * (GROUPS - len(most))
        if ((codes < OTHER) | (codes >= np.array(most))).any():
            raise ValueError("the saved history has codes without labels")
        made._count = len(rows)
        made._rows[: len(rows)], made._codes[: len(rows)] = rows, codes
        made._tables = made._tables.restored(arrays)
        return made


class RecentTimes(Recorder):
    """Keeps the times of the last rows, and adds them to the rows of the window."""

    def __init__(self) -> None:
        self._times = np.zeros(0)

    def record(self, rows: LabelledRows) -> None:
        """Keep the times of rows that can be scored; NaN if they have none."""
        places = np.flatnonzero(rows.is_scored)[-MOST_TIMES:]
        times = np.full(len(places), np.nan) if rows.times is None else rows.times[places]
        self._times = np.concatenate([self._times, times])[-MOST_TIMES:]

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the times, to be saved."""
        return {TIMES: self._times.copy()}

    def restored(self, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return one in a state that `to_arrays` returned; checkpoints of release 0.2 lack it."""
        made = type(self)()
        if TIMES in arrays:
            made._times = saved_array(arrays, TIMES, np.float64, (None,))
            if len(made._times) > MOST_TIMES:
                raise ValueError(f"the saved times are of {len(made._times)} rows")
        return made

    def results(self, end: Moment) -> dict[str, Any]:
        """Return the rows of the window with their times."""
        rows = end.scores.recent
        count = min(len(rows), len(self._times))
        if count:
            rows["time"][-count:] = self._times[-count:]
        return {"recent": rows}


def _labels(rows: Sequence[Mapping[Any, Any]]) -> dict[Any, Column]:
    """Return the categories among the features of some rows, as columns."""
    found: dict[Any, Column] = {}
    for name, first in rows[0].items():
        if isinstance(first, str | int | None):
            column = [row.get(name) for row in rows]
            if first is not None or any(isinstance(label, str | int) for label in column):
                found[name] = column
    return found


def _codes_of(column: Column, known: dict[Any, int]) -> NDArray[np.int16]:
    """Return the codes of a column's labels; new ones become known while there is room."""
    if not isinstance(column, Labels):
        found = (_code_of(label, known) for label in column)
        return np.fromiter(found, np.int16, len(column))
    present = np.flatnonzero(np.bincount(column.codes, minlength=len(column.known)))
    if len(known) < LABELS and len(present) > 1:  # in the order in which they first occur
        places, first = np.unique(column.codes, return_index=True)
        present = places[np.argsort(first)]
    table = np.full(len(column.known), OTHER, np.int16)
    for place in present.tolist():
        table[place] = _code_of(column.known[place], known)
    codes: NDArray[np.int16] = table[column.codes]
    return codes


def _code_of(label: Any, known: dict[Any, int]) -> int:
    if not isinstance(label, str | int):
        return OTHER
    code = known.get(label)
    if code is None:
        code = OTHER
        if len(known) < LABELS:
            code = known[label] = len(known)
    return code
