"""How the trees of an ensemble went on during an evaluation: at few moments, however long it is."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sapwood.evaluate.result import MemberHistory
from sapwood.model import readable_part

__all__ = ["MemberLog"]

FIRST_MOMENT = 400  # rows; a point of the learning curve is there, too
MOMENTS = 200  # half of them go when there are as many


class MemberLog:
    """Ages and errors of an ensemble's trees at moments whose distance doubles with time."""

    def __init__(self) -> None:
        self.interval = FIRST_MOMENT
        self._moments: list[NDArray[np.float64]] = []

    def add(self, rows: int, model: Any) -> None:
        """Note all trees after so many scored rows, if that is due.

        Parameters
        ----------
        rows : int
            How many rows were scored.
        model : object
            What has predicted them; of one that is no ensemble nothing is noted.
        """
        if rows % self.interval or rows == 0:
            return
        moment = _moment(rows, model)
        if moment is None:
            return
        self._moments.append(moment)
        if len(self._moments) == MOMENTS:
            self._moments = self._moments[1::2]
            self.interval *= 2

    def finished(self, rows: int, model: Any) -> MemberHistory | None:
        """Return the moments, with the last row as one of them; None if there are no members.

        Parameters
        ----------
        rows, model
            As for `add`, in the end.
        """
        last = _moment(rows, model)
        if last is None or not rows:
            return None
        table = np.array([*(each for each in self._moments if each[0] < rows), last])
        trees = table.shape[1] // 2 - 1
        born, errors = table[:, 2 : 2 + trees], table[:, 2 + trees :]
        return MemberHistory(table[:, 0], born, table[:, 1:2] - born, errors)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return all that is known, to be saved."""
        table = np.array(self._moments) if self._moments else np.zeros((0, 2))
        return {"members": table, "members_interval": np.array([self.interval])}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Go on from what `to_arrays` returned; runs of before have noted nothing."""
        made = cls()
        if "members" not in arrays:
            return made
        table, interval = arrays["members"], arrays["members_interval"]
        if table.dtype != np.float64 or table.ndim != 2 or table.shape[1] % 2:
            raise ValueError("the saved members are none")
        if interval.dtype != np.int64 or interval.shape != (1,) or interval[0] < FIRST_MOMENT:
            raise ValueError(f"the saved interval of members is {interval.tolist()}")
        made.interval = int(interval[0])
        if len(table) >= MOMENTS or (table[:, 0] % made.interval).any():
            raise ValueError(f"the saved moments of members are not {made.interval} rows apart")
        made._moments = list(table)
        return made


def _moment(rows: int, model: Any) -> NDArray[np.float64] | None:
    """Return what is noted at a moment; None of a model that is no ensemble.

    These are the rows that were scored and learned, those learned when each tree began, and errors.
    """
    ensemble = readable_part(model)
    if not hasattr(ensemble, "replacements"):
        return None
    summary = ensemble.summary
    born = [summary.rows - each.age for each in summary.members]
    errors = [each.error for each in summary.members]
    return np.array([rows, summary.rows, *born, *errors], np.float64)
