"""What is noted of a model at a few moments of an evaluation, however long it is."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sapwood import validation
from sapwood.evaluate.recorder import Moment, Recorder, packed, saved_array, unpacked
from sapwood.evaluate.result import MemberHistory
from sapwood.model import readable_part

__all__ = ["ImportanceLog", "MemberLog", "ModelLog"]

MOST_FEATURES = 1000


class ModelLog(Recorder):
    """Notes of a model at moments whose distance doubles with time."""

    first: ClassVar[int]
    """Rows between two moments at first."""
    most: ClassVar[int]
    """Half of the moments are removed when there are as many."""

    def __init__(self) -> None:
        self.interval = self.first
        self._moments: list[Any] = []

    @staticmethod
    def _note(rows: int, model: Any) -> Any:
        """Return what is noted of a model after so many rows; None if there is nothing."""
        raise NotImplementedError

    @staticmethod
    def _is_noted(model: Any) -> bool:
        """Whether there is something to note of a model."""
        return readable_part(model) is not None

    def mark(self, moment: Moment) -> None:
        """Note the model, if that is due."""
        if moment.model is not None:
            self.add(moment.scores.rows, moment.model)

    def add(self, rows: int, model: Any) -> None:
        """Note a model after so many scored rows, if that is due."""
        if rows % self.interval or rows == 0 or not self._is_noted(model):
            return
        self._moments.append(self._note(rows, model))
        if len(self._moments) == self.most:
            self._moments = self._moments[1::2]
            self.interval *= 2


class ImportanceLog(ModelLog):
    """The importances of a model's features."""

    first, most = 5000, 12

    @staticmethod
    def _note(rows: int, model: Any) -> tuple[int, dict[str, float]]:
        shares = list(readable_part(model).feature_importances.items())[:MOST_FEATURES]
        return rows, {str(name): share for name, share in shares}

    def finished(self, rows: int, model: Any) -> list[tuple[int, dict[str, float]]]:
        """Return the moments, with the last row as one of them."""
        tree = readable_part(model)
        if tree is None or not rows:
            return []
        last = (rows, {str(name): share for name, share in tree.feature_importances.items()})
        return [*(moment for moment in self._moments if moment[0] < rows), last]

    def results(self, end: Moment) -> dict[str, Any]:
        """Return the moments, with the end as one of them."""
        return {"importances": self.finished(end.scores.rows, end.model)}

    @staticmethod
    def merge(targets: Sequence[Any]) -> dict[str, Any]:
        """Return the importances that are noted with the first target: all share one model."""
        return {"importances": targets[0].importances}

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the state, to be saved."""
        return {"importances": packed({"interval": self.interval, "moments": self._moments})}

    def restored(self, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return a log in a state that `to_arrays` returned."""
        made, header = type(self)(), unpacked(arrays["importances"])
        made.interval = validation.whole(header["interval"], "interval", self.first, 2**53)
        moments = header["moments"]
        if not isinstance(moments, list) or len(moments) >= self.most:
            raise TypeError("the saved importances are no moments")
        made._moments = [_moment(moment) for moment in moments]
        return made


def _moment(saved: Any) -> tuple[int, dict[str, float]]:
    if not isinstance(saved, Sequence) or len(saved) != 2 or not isinstance(saved[1], dict):
        raise TypeError(f"{validation.shown(saved)} is no moment with importances")
    rows, shares = saved
    if not all(type(share) is float and 0 <= share <= 1 for share in shares.values()):
        raise ValueError("a saved importance is none")
    return validation.whole(rows, "rows", 1, 2**53), dict(shares)


class MemberLog(ModelLog):
    """Ages and errors of the trees of an ensemble."""

    first, most = 100, 200

    @staticmethod
    def _is_noted(model: Any) -> bool:
        return hasattr(readable_part(model), "replacements")

    @staticmethod
    def _note(rows: int, model: Any) -> NDArray[np.float64]:
        """Return the rows scored and learned, those learned when each tree began, and errors."""
        summary = readable_part(model).summary
        born = [summary.rows - each.age for each in summary.members]
        errors = [each.error for each in summary.members]
        return np.array([rows, summary.rows, *born, *errors], np.float64)

    def finished(self, rows: int, model: Any) -> MemberHistory | None:
        """Return the moments, with the last row as one of them; None if there are no members."""
        if not rows or not self._is_noted(model):
            return None
        known = [each for each in self._moments if each[0] < rows]
        table = np.array([*known, self._note(rows, model)])
        trees = table.shape[1] // 2 - 1
        born, errors = table[:, 2 : 2 + trees], table[:, 2 + trees :]
        return MemberHistory(table[:, 0], born, table[:, 1:2] - born, errors)

    def results(self, end: Moment) -> dict[str, Any]:
        """Return the moments, with the end as one of them."""
        return {"members": self.finished(end.scores.rows, end.model)}

    @staticmethod
    def merge(targets: Sequence[Any]) -> dict[str, Any]:
        """Return the members that are noted with the first target: all share one model."""
        return {"members": targets[0].members}

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the state, to be saved."""
        table = np.array(self._moments) if self._moments else np.zeros((0, 2))
        return {"members": table, "members_interval": np.array([self.interval])}

    def restored(self, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return a log in a state that `to_arrays` returned; earlier formats have none."""
        made = type(self)()
        if "members" not in arrays:
            return made
        table = saved_array(arrays, "members", np.float64, (None, None))
        made.interval = int(saved_array(arrays, "members_interval", np.int64, (1,))[0])
        if table.shape[1] % 2:
            raise ValueError("the saved members are none")
        if made.interval < self.first:
            raise ValueError(f"the saved interval of members is {made.interval}")
        if len(table) >= self.most or (np.diff(table[:, 0], prepend=0.0) < self.first).any():
            raise ValueError("the saved moments of members are too many, or too close")
        made._moments = list(table)
        return made
