"""A drift monitor around any model."""

import math
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sapwood import validation
from sapwood.drift.log import ALARMS, DriftLog
from sapwood.drift.monitor import DriftEvent, Monitor
from sapwood.stages.rows import GivenRow
from sapwood.stages.scored import LabelledBatch, ScoredStage
from sapwood.validation import Label

__all__ = ["MonitoredRegressor"]

FloatArray = NDArray[np.float64]

MOST_ALARMS = 1000  # that are kept; of more, the latest
MONITOR, IGNORED = "monitor", "ignored"


class MonitoredRegressor(ScoredStage):
    """Any model with a drift monitor of its features, its target and its errors.

    The model inside learns and predicts as it would alone. The monitor gets each row when its label
    arrives, with the prediction that was issued for it.

    Parameters
    ----------
    model : object
        A model of Sapwood; or any model with `predict_one` and `learn_one`, `predict_many` and
        `learn_many`, or `predict` and `partial_fit`.
    monitor : Monitor, optional
        A monitor that has seen no rows; the stage has a copy of it. Of several targets, each has a
        monitor like it, and features are watched once.
    ignored : iterable of str or int
        Features that are not watched, such as the hour.

    Notes
    -----
    Rows that the model learns and the monitor cannot read, such as a text in a column of numbers, are
    not watched.

    Examples
    --------
    >>> import numpy as np, sapwood
    >>> rng = np.random.default_rng(1)
    >>> x = rng.normal(0, 1, 12_000)
    >>> x[9_000:] += 6.0
    >>> model = sapwood.MonitoredRegressor(sapwood.HoeffdingTreeRegressor())
    >>> model.learn_many({"x": x}, rng.normal(0, 1, 12_000))
    >>> [(event.name, event.severity) for event in model.drift_events]
    [('x', 'major')]
    """

    kind: ClassVar[str] = "MonitoredRegressor"
    format: ClassVar[int] = 1
    _note: ClassVar[int] = 1

    def __init__(
        self, model: Any, monitor: Monitor | None = None, ignored: Iterable[Label] = ()
    ) -> None:
        found = Monitor() if monitor is None else monitor
        if not isinstance(found, Monitor):
            raise TypeError(
                f"monitor = {validation.shown(monitor)}: a sapwood.drift.Monitor is expected"
            )
        if found.rows:
            raise ValueError(
                f"the monitor has seen {found.rows:,} rows, which are not those of the model: give a "
                "new one"
            )
        if isinstance(ignored, str):
            raise ValueError(f"ignored = {validation.shown(ignored)}: a list of names is expected")
        self._parameters = found.parameters
        self._ignored = tuple(validation.feature_name(name) for name in ignored)
        super().__init__(model)

    def _fresh(self, names: tuple[Label, ...]) -> DriftLog:
        ignored = frozenset(self._ignored)
        return DriftLog(Monitor(**self._parameters), [str(name) for name in names], ignored)

    def _issued(self, own: DriftLog, members: FloatArray) -> tuple[FloatArray, FloatArray]:
        return members, members

    def _issued_one(self, own: DriftLog, member: float) -> tuple[float, Sequence[float]]:
        return member, (member,)

    def _learned_one(
        self,
        own: DriftLog,
        row: GivenRow,
        member: float,
        *,
        y: float,
        w: float,
        note: FloatArray | None,
    ) -> DriftLog:
        issued = member if note is None or math.isnan(note[0]) else note[0]
        try:
            return _latest(own.with_row(row.x, (y,), (issued,)))
        except ValueError:  # the model has learned the row
            return own

    def _learned(self, own: DriftLog, batch: LabelledBatch) -> tuple[DriftLog, FloatArray]:
        issued = batch.members
        if batch.notes is not None:
            issued = np.where(np.isnan(batch.notes), issued, batch.notes)
        try:
            if isinstance(batch.rows, GivenRow):
                log = own.with_row(batch.rows.x, batch.y[0], issued[0])
            else:
                log = own.settled().copy()
                log.update(self._columns(batch.rows.X), batch.y, issued)
        except ValueError:  # the model has learned the rows, which a model of others may accept
            return own, batch.members
        return _latest(log), batch.members

    def _log(self) -> DriftLog:
        """Return the drift log after all rows."""
        with self._turn():
            own: DriftLog = _latest(self._held.own.settled())
            self._held = self._held._replace(own=own)
            return own

    @property
    def monitor(self) -> Monitor:
        """The monitor as it is now; of several targets, that of the first and of all features."""
        return self._log().monitors[0].copy()

    @property
    def drift_events(self) -> list[DriftEvent]:
        """The latest 1,000 drift alerts, in the order of rows."""
        return list(self._log().drift_events)

    @property
    def ignored(self) -> tuple[Label, ...]:
        """The features that are not watched."""
        return self._ignored

    def __repr__(self) -> str:
        return f"<MonitoredRegressor({self.model!r}, {self.monitor!r})>"

    # -- files ------------------------------------------------------------------------------------

    def _own_bytes(self) -> int:
        return sum(monitor.nbytes for monitor in self._log().monitors)

    def _arguments(self) -> dict[str, Any]:
        return {MONITOR: self._parameters, IGNORED: list(self._ignored)}

    @property
    def parameters(self) -> dict[str, Any]:
        """The arguments that make a stage like this one; with the model as it is now."""
        monitor = Monitor(**self._parameters)
        return {"model": self.model, MONITOR: monitor, IGNORED: self._ignored}

    @classmethod
    def _around(cls, model: Any, arguments: dict[str, Any]) -> Self:
        if arguments.keys() != {MONITOR, IGNORED} or not isinstance(arguments[IGNORED], list):
            raise ValueError("its header has other entries than it should")
        made = cls(model, Monitor(**arguments[MONITOR]), arguments[IGNORED])
        if made._arguments() != arguments:
            raise ValueError("its parameters are not as they were saved")
        return made

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return self._log().to_arrays()

    def _restored_own(self, arrays: dict[str, NDArray[Any]], labels: int) -> DriftLog:
        fresh: DriftLog = self._held.own
        if arrays.keys() != fresh.to_arrays().keys():
            raise ValueError("its arrays are not those of a monitored model")
        log = fresh.restored(arrays)
        if len(log.drift_events) > MOST_ALARMS or any(each.rows > labels for each in log.monitors):
            raise ValueError(f"its {ALARMS} or rows are more than it can have seen")
        once_in = fresh.monitors[0].parameters
        if any(each.parameters["once_in"] != once_in["once_in"] for each in log.monitors):
            raise ValueError("its monitors have other parameters")
        return log


def _latest(log: DriftLog) -> DriftLog:
    """Return a log without the alerts that are not kept."""
    if len(log.drift_events) > MOST_ALARMS:
        log.drift_events = log.drift_events[-MOST_ALARMS:]
    return log
