"""What the pictures of an evaluation are drawn from: few rows and moments, however long it is."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sapwood import door
from sapwood.evaluate.result import ROW, Sample
from sapwood.model import readable_part
from sapwood.streams.stream import Column

__all__ = ["History", "ImportanceLog"]

ROWS = 2048  # of the sample; half of them go when there are as many
GROUPS = 4  # categories that are kept with the sample
LABELS = 60  # of each of them
MOMENTS = 12  # at which importances are noted; half of them go when there are as many
FIRST_MOMENT = 5000  # rows
MOST_FEATURES = 1000
OTHER = -1


class History:
    """Every k-th row that was scored, where k doubles whenever there are too many of them."""

    def __init__(self) -> None:
        self.interval = 1
        self._rows = np.zeros(ROWS, ROW)
        self._codes = np.full((ROWS, GROUPS), OTHER, np.int16)
        self._count = 0
        self._groups: dict[str, list[Any]] = {}

    def take(
        self,
        before: int,
        predictions: NDArray[np.float64],
        y: NDArray[np.float64],
        times: NDArray[np.float64] | None,
        columns: Mapping[str, Column],
    ) -> None:
        """Take rows that were scored, of which some are kept.

        Parameters
        ----------
        before : int
            How many rows were scored before them.
        predictions, y : arrays of float
            What was predicted, and what was right.
        times : array of float, optional
            The seconds since 1970 of each row.
        columns : mapping of columns
            Their features.
        """
        place = -before % self.interval
        while place < len(y):
            stop = min(len(y), place + (ROWS - self._count) * self.interval)
            part = slice(place, stop, self.interval)
            places = np.arange(place, stop, self.interval)
            kept = self._rows[self._count : self._count + len(places)]
            kept["row"] = before + 1 + places
            kept["y"], kept["prediction"] = y[part], predictions[part]
            kept["time"] = np.nan if times is None else times[part]
            self._keep_labels(columns, part, len(places))
            self._count += len(places)
            if self._count == ROWS:
                self._thin_out()
            place = int(places[-1]) + 1
            place += -(before + place) % self.interval

    def _keep_labels(self, columns: Mapping[str, Column], part: slice, count: int) -> None:
        for name, column in columns.items():
            if isinstance(column, np.ndarray):
                continue
            if name not in self._groups:
                if len(self._groups) == GROUPS:
                    continue
                self._groups[name] = []
            place = list(self._groups).index(name)
            codes = [self._code(self._groups[name], label) for label in column[part]]
            self._codes[self._count : self._count + count, place] = codes

    @staticmethod
    def _code(known: list[Any], label: Any) -> int:
        if label is None or not isinstance(label, str | int):
            return OTHER
        if label in known:
            return known.index(label)
        if len(known) == LABELS:
            return OTHER
        known.append(label)
        return len(known) - 1

    def _thin_out(self) -> None:
        self._count //= 2
        self.interval *= 2
        for table in (self._rows, self._codes):
            table[: self._count] = table[::2].copy()
        self._codes[self._count :] = OTHER

    def finished(self) -> Sample:
        """Return the rows that were kept."""
        codes = self._codes[: self._count]
        groups = {
            name: ([str(label) for label in labels], codes[:, place].astype(np.int64))
            for place, (name, labels) in enumerate(self._groups.items())
        }
        return Sample(self._rows[: self._count].copy(), self.interval, groups)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return all that is known, to be saved."""
        return {
            "history": self._rows[: self._count].copy(),
            "history_codes": self._codes[: self._count].copy(),
            "history_groups": _packed({"interval": self.interval, "groups": self._groups}),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Go on from what `to_arrays` returned."""
        made = cls()
        rows, codes = arrays["history"], arrays["history_codes"]
        header = _unpacked(arrays["history_groups"])
        if rows.dtype != ROW or rows.ndim != 1 or len(rows) >= ROWS:
            raise ValueError("the saved history has no rows")
        if codes.dtype != np.int16 or codes.shape != (len(rows), GROUPS):
            raise ValueError("the saved history has no codes of categories")
        made.interval = door.whole(header["interval"], "interval", 1, 2**53)
        groups = header["groups"]
        if not isinstance(groups, dict) or len(groups) > GROUPS:
            raise TypeError("the saved history has no groups")
        for name, labels in groups.items():
            if not isinstance(labels, list) or len(labels) > LABELS:
                raise TypeError(f"the saved labels of {door.shown(name)} are none")
            if not all(isinstance(label, str | int) for label in labels):
                raise TypeError(f"a saved label of {door.shown(name)} is none")
        most = [len(labels) for labels in groups.values()]
        most += [0] * (GROUPS - len(most))
        if ((codes < OTHER) | (codes >= np.array(most))).any():
            raise ValueError("the saved history has codes without labels")
        made._groups, made._count = dict(groups), len(rows)
        made._rows[: len(rows)], made._codes[: len(rows)] = rows, codes
        return made


class ImportanceLog:
    """The importances of a tree's features at a few moments, whose distance doubles with time."""

    def __init__(self) -> None:
        self.interval = FIRST_MOMENT
        self._moments: list[tuple[int, dict[str, float]]] = []

    def add(self, rows: int, model: Any) -> None:
        """Note the importances after so many rows, if that is due."""
        if rows % self.interval or rows == 0:
            return
        tree = readable_part(model)
        if tree is None:
            return
        shares = list(tree.feature_importances.items())[:MOST_FEATURES]
        self._moments.append((rows, {str(name): share for name, share in shares}))
        if len(self._moments) == MOMENTS:
            self._moments = self._moments[1::2]
            self.interval *= 2

    def finished(self, rows: int, model: Any) -> list[tuple[int, dict[str, float]]]:
        """Return the moments, with the last row as one of them."""
        tree = readable_part(model)
        if tree is None or not rows:
            return []
        last = (rows, {str(name): share for name, share in tree.feature_importances.items()})
        return [*(moment for moment in self._moments if moment[0] < rows), last]

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return all that is known, to be saved."""
        return {"importances": _packed({"interval": self.interval, "moments": self._moments})}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Go on from what `to_arrays` returned."""
        made = cls()
        header = _unpacked(arrays["importances"])
        made.interval = door.whole(header["interval"], "interval", FIRST_MOMENT, 2**53)
        moments = header["moments"]
        if not isinstance(moments, list) or len(moments) >= MOMENTS:
            raise TypeError("the saved importances are no moments")
        made._moments = [_moment(moment) for moment in moments]
        return made


def _moment(saved: Any) -> tuple[int, dict[str, float]]:
    if not isinstance(saved, Sequence) or len(saved) != 2 or not isinstance(saved[1], dict):
        raise TypeError(f"{door.shown(saved)} is no moment with importances")
    rows, shares = saved
    if not all(type(share) is float and 0 <= share <= 1 for share in shares.values()):
        raise ValueError("a saved importance is none")
    return door.whole(rows, "rows", 1, 2**53), dict(shares)


def _packed(value: Any) -> NDArray[np.uint8]:
    """Return JSON as an array, as headers of files are held short."""
    return np.frombuffer(json.dumps(value).encode(), np.uint8)


def _unpacked(array: NDArray[Any]) -> dict[str, Any]:
    found = json.loads(array.tobytes())
    if not isinstance(found, dict):
        raise TypeError("the saved text is no dict")
    return found
