"""All that is recorded of one target during an evaluation."""

import copy
import math
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sapwood import validation
from sapwood.evaluate.baseline_scores import BaselineScores
from sapwood.evaluate.curve import Curve
from sapwood.evaluate.history import History, RecentTimes
from sapwood.evaluate.interval_scores import IntervalScores
from sapwood.evaluate.model_log import ImportanceLog, MemberLog
from sapwood.evaluate.recorder import (
    LabelledRows,
    Moment,
    Recorder,
    rows_until_look,
    saved_place,
    saved_seconds,
)
from sapwood.evaluate.rule_log import RuleLog
from sapwood.evaluate.scores import Scores

__all__ = ["Record", "Recorders"]


class Recorders:
    """The recorders of one target, which are updated, saved and merged together.

    - `recorders`: in the order in which they take rows into account.
    """

    def __init__(self, recorders: Sequence[Recorder]) -> None:
        self.recorders = list(recorders)

    def add(self, recorder: Recorder) -> None:
        """Let a further recorder take part."""
        self.recorders.append(recorder)

    def record(self, rows: Any) -> None:
        """Let each recorder take rows into account."""
        for each in self.recorders:
            each.record(rows)

    def results(self, end: Moment) -> dict[str, Any]:
        """Return the fields of an evaluation at the end of a stream."""
        found: dict[str, Any] = {}
        for each in self.recorders:
            found |= each.results(end)
        return found

    def merge(self, targets: Sequence[Any]) -> dict[str, Any]:
        """Return the fields of an evaluation of several targets, by the `Evaluation` of each."""
        found: dict[str, Any] = {}
        for each in self.recorders:
            found |= each.merge(targets)
        return found

    def to_state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return what `restored` needs: a header for JSON, and arrays."""
        return {}, {name: own for each in self.recorders for name, own in each.to_arrays().items()}

    def restored(self, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return recorders of the same settings in a state that `to_state` returned."""
        made = copy.copy(self)
        made.recorders = [each.restored(arrays) for each in self.recorders]
        return made


class Record(Recorders):
    """The recorders of one target that is a number.

    - `levels`: of the prediction intervals, if the model has some.
    - `fade`, `window`: as for `Scores`.
    """

    def __init__(self, levels: Sequence[float], fade: float, window: int) -> None:
        scores = Scores(fade, window)
        # The curve is before those that note its points.
        super().__init__([scores, BaselineScores(scores.fade, scores.window_rows), Curve()])
        self.recorders += [RecentTimes(), History(), ImportanceLog(), MemberLog(), RuleLog()]
        self.recorders += [IntervalScores(levels, scores.fade)] if levels else []
        self._name_first()
        self.rows_learned = 0
        self.time = math.nan  # of the last row that was scored
        self.first_unscored: str | None = None
        self.seconds = 0.0  # up to the last row

    def _name_first(self) -> None:
        """Name the recorders that make the points of the learning curve."""
        first: Any = self.recorders
        self.scores: Scores = first[0]
        self.baselines: BaselineScores = first[1]
        self.curve: Curve = first[2]

    def rows_until_look(self) -> int:
        """Return after how many more rows recorders see the model."""
        return rows_until_look(self.scores.rows, self.curve.interval)

    def update(self, rows: LabelledRows, model: Any, size: tuple[int, int], seconds: float) -> None:
        """Record rows whose labels have arrived.

        - `rows`: in order. If there are none, baselines may still have to forecast some.
        - `model`: the model after the last of them.
        - `size`: its leaves and bytes, as for `Moment`.
        - `seconds`: the time that the evaluation has taken up to now.
        """
        count, interval = len(rows.y), self.curve.interval
        is_scored = rows.is_scored
        due = interval - self.scores.rows % interval
        ends = (np.flatnonzero(is_scored)[due - 1 :: interval] + 1).tolist()
        before = self.seconds
        for end, part in zip((*ends, None), rows.until(ends), strict=True):
            if len(part.y) or part.late is not None:
                for each in self.recorders:
                    each.score(part)
            if end is not None:
                is_look = end == count and rows_until_look(self.scores.rows - 1, interval) == 1
                self.time = float(rows.times[end - 1]) if rows.times is not None else self.time
                self.seconds = before + end / count * (seconds - before)
                self._mark(model if is_look else None, size)
        self.rows_learned += count
        self.seconds = seconds
        if not count:
            return
        if not is_scored.all() and self.first_unscored is None:
            self.first_unscored = rows.where(int(np.argmin(is_scored)))
        if rows.times is not None and (rows.late is None or is_scored.any()):
            last = -1 if rows.late is None else np.flatnonzero(is_scored)[-1]
            self.time = float(rows.times[last])
        self.record(rows)

    def _mark(self, model: Any, size: tuple[int, int]) -> None:
        """Let all recorders note a point of the curve, if it has one here."""
        if self.scores.rows % self.curve.interval == 0:
            moment = self.moment(model, size, self.seconds)
            for each in self.recorders:
                each.mark(moment._replace(interval=self.curve.interval))

    def moment(self, model: Any, size: tuple[int, int], seconds: float) -> Moment:
        """Return this point of the stream; parameters as for `update`."""
        further = self.baselines.point(self.time)
        return Moment(self.scores, seconds, *size, further, self.curve.interval, model)

    def results(self, end: Moment) -> dict[str, Any]:
        """Return the fields of an `Evaluation` at the end of a stream."""
        return {"first_unscored": self.first_unscored, **super().results(end)}

    def to_state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return what `restored` needs: a header for JSON, and arrays."""
        header = {
            "rows_learned": self.rows_learned,
            "seconds": self.seconds,
            "first_unscored": self.first_unscored,
            "time": None if math.isnan(self.time) else self.time,
        }
        return header, super().to_state()[1]

    def restored(self, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return a record of the same settings in a state that `to_state` returned."""
        made = super().restored(header, arrays)
        made._name_first()
        made.rows_learned = validation.whole(header["rows_learned"], "rows_learned", 0, 2**53)
        made.seconds = saved_seconds(header["seconds"])
        made.first_unscored = saved_place(header["first_unscored"])
        moment = header["time"]
        if moment is not None and type(moment) is not float:
            raise TypeError(f"the time of the last row is {validation.shown(moment)}")
        made.time = math.nan if moment is None else moment
        return made
