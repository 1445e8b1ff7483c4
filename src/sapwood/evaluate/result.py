"""What an evaluation has found."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sapwood.deprecation import deprecated
from sapwood.evaluate.display import as_html, as_text
from sapwood.formatting import finite, number, r_squared
from sapwood.streams.stream import ColumnNote

if TYPE_CHECKING:
    from sapwood.drift import DriftEvent
    from sapwood.evaluate.rule_log import RuleEvent
    from sapwood.evaluate.seasonal import SeasonalErrors
    from sapwood.evaluate.series import SeriesTable

__all__ = [
    "BAND",
    "BASELINES",
    "BY_PREDICTION",
    "CURVE",
    "FURTHER",
    "MEASURES",
    "PART",
    "PREDICTION",
    "ROW",
    "UNSCORED",
    "Baseline",
    "Coverage",
    "Errors",
    "ErrorsBy",
    "Evaluation",
    "Intervals",
    "MemberHistory",
    "Rejections",
    "Sample",
    "compared",
]

CURVE = np.dtype(
    [
        ("row", np.int64),
        ("mae", np.float64),
        ("rmse", np.float64),
        ("r2", np.float64),
        ("faded_mae", np.float64),
        ("faded_rmse", np.float64),
        ("faded_r2", np.float64),
        ("window_mae", np.float64),
        ("window_rmse", np.float64),
        ("window_r2", np.float64),
        ("leaves", np.int64),
        ("bytes", np.int64),
    ]
)
"""A point of the learning curve: the errors after so many scored rows, of all of them, faded, and
of the last window; and the model then. -1 stands for leaves or bytes that the model does not report."""

BASELINES = {
    "last": "repeating the last value",
    "mean": "the mean so far",
    "faded_mean": "the exponentially weighted mean",
    "week": "the value one week earlier",
}
"""What any model has to beat, in words."""
MEASURES = ("mae", "rmse", "faded_mae", "faded_rmse")
"""The errors of a baseline along the curve."""
FURTHER = np.dtype(
    [
        ("time", np.float64),
        ("bias", np.float64),
        ("faded_bias", np.float64),
        *((f"{name}_{measure}", np.float64) for name in BASELINES for measure in MEASURES),
    ]
)
"""Further values at a point of the learning curve: the time of its last row in seconds since 1970,
if that is known; how much the model predicts too much, on average; and the errors of baselines."""

ROW = np.dtype(
    [
        ("row", np.int64),
        ("time", np.float64),
        ("y", np.float64),
        ("prediction", np.float64),
    ]
)
"""A row of a sample: how many rows were scored with it, its time in seconds since 1970 (NaN if that
is not known), what was right, and what was predicted."""

PART = np.dtype([("rows", np.int64), ("bias", np.float64), ("mae", np.float64)])
"""The errors of some of the rows: how many they are, by how much predictions are too high on
average, and the mean absolute error; NaN if there is no row."""

BY_PREDICTION = np.dtype([("prediction", np.float64), *PART.descr])
"""The errors of rows with similar predictions, and the mean of these predictions."""

BAND = np.dtype([*ROW.descr, ("lower", np.float64), ("upper", np.float64)])
"""A row of a sample with the bounds of the widest level, NaN if there are none."""

PREDICTION = np.dtype([("number", np.int64), ("y", np.float64), ("prediction", np.float64)])
"""A row that was predicted: its line or row in the stream, what was right, what was predicted."""

Over = Literal["total", "faded", "window"]
"""Over which rows an error is: all, recent ones with more weight, or the last ones."""
EQUAL = "as good as"

UNSCORED = "prediction or target is not finite or beyond 1e140"
"""Why a row has no error, in words."""


@dataclass(frozen=True, slots=True)
class Errors:
    """Errors of predictions, in the units of the target; R² is NaN where y does not vary."""

    mae: float
    rmse: float
    r2: float


@dataclass(frozen=True, slots=True)
class Baseline:
    """The errors of a forecast that needs no model, on the same rows."""

    total: Errors
    faded: Errors
    window: Errors


@dataclass(frozen=True, slots=True)
class Rejections:
    """Rows that were left out.

    Parameters
    ----------
    count : int
        How many.
    reasons : mapping of str to int
        How many for each reason.
    where : array of int, shape (bins, 2)
        Where in the stream: counts of rejected rows, each up to so many rows read.
    """

    count: int
    reasons: Mapping[str, int]
    where: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Sample:
    """A random sample of the scored rows, for charts.

    Parameters
    ----------
    rows : structured array
        Each of `ROW`.
    interval : int
        One random row of each block of so many rows is there.
    groups : mapping of names to tuples
        For the first categories among the features, the labels that there are, and for each row of
        the sample the number of its label among them; -1 if it is missing or none of them.
    """

    rows: NDArray[Any]
    interval: int
    groups: Mapping[str, tuple[list[str], NDArray[np.int64]]]


class ErrorsBy(NamedTuple):
    """The errors of all rows that were scored, by parts of them.

    Attributes
    ----------
    hours : structured array
        For each hour of the day (UTC), of `PART`.
    predictions : structured array
        For similar predictions, in ascending order, of `BY_PREDICTION`.
    groups : mapping of names to tuples
        For the first categories among the features, their first labels, and for each of them the
        errors, of `PART`.
    """

    hours: NDArray[Any]
    predictions: NDArray[Any]
    groups: Mapping[str, tuple[list[str], NDArray[Any]]]


class MemberHistory(NamedTuple):
    """The trees of an ensemble at some moments; the last of them is the one that waits.

    Attributes
    ----------
    rows : array of float, shape (moments,)
        How many rows were scored until then.
    born : array of float, shape (moments, trees)
        How many rows the model had learned when each of them began.
    ages : array of float, shape (moments, trees)
        How many rows it has learned since then.
    errors : array of float, shape (moments, trees)
        The recent RMSE of each; infinite if there is none yet.
    """

    rows: NDArray[np.float64]
    born: NDArray[np.float64]
    ages: NDArray[np.float64]
    errors: NDArray[np.float64]


class Coverage(NamedTuple):
    """The coverage, mean width and interval score of prediction intervals.

    The interval score (Winkler) is the width, plus 2 / (1 - level) times the distance of a target
    outside the interval. Smaller is better.
    """

    coverage: float
    width: float
    score: float


@dataclass(frozen=True, slots=True)
class Intervals:
    """The quality of the prediction intervals of a model.

    Parameters
    ----------
    levels : mapping of float to Intervals.Level
        For each level, its scores over all rows that had bounds, and exponentially weighted.
    curve : structured array
        For each point of the learning curve the row, and coverage, width and score of each level.
    sample : structured array
        Some of the rows, each of `BAND`.
    interval : int
        One row in so many is there.
    recent : structured array
        The last rows, each of `BAND`.
    """

    class Level(NamedTuple):
        """The scores of one level."""

        total: Coverage
        faded: Coverage

    levels: Mapping[float, Level]
    curve: NDArray[Any]
    sample: NDArray[Any]
    interval: int
    recent: NDArray[Any]


@dataclass(frozen=True, repr=False)
class Evaluation:
    """The whole result of a prequential evaluation.

    Parameters
    ----------
    stream, target, model : str
        The names of the stream, the target and the model.
    rows_read, rows_predicted, rows_learned : int
        The numbers of rows that were read (including rejected rows), predicted and learned.
    rows_without_target, labels_joined : int
        The numbers of rows without a target, and of rows that contained the labels of such rows.
    rejected : Rejections
        The rejected rows. The old name, `refused`, is deprecated.
    total, faded, window : Errors
        The errors of all scored rows, the exponentially weighted errors, and the errors of the last
        `window_rows`.
    fade : float
        Each new row multiplies the weights of earlier rows by this factor.
    window_rows : int
        The width of the window.
    curve : structured array
        Points of `CURVE`.
    speed : array of float, shape (points, 2)
        For each point of the curve, the seconds until then, and the rows per second since the
        point before it. Times differ from run to run, all else does not.
    seconds : float
        The duration of reading, predicting, learning and scoring.
    model_seconds : float
        The part of it that the model took.
    leaves, model_bytes : int, optional
        The size of the model at the end, if it is known.
    target_mean, target_deviation : float
        Of all scored rows.
    unscored : int
        Rows that were predicted and learned, but are not part of any error, as the prediction is
        NaN, infinite or beyond 1e140, or the target beyond that.
    first_unscored : str, optional
        Where the first of them is, such as "bikes.csv, line 17".
    bias : float
        The mean of prediction minus target, over all scored rows.
    baselines : mapping of str to Baseline
        The errors of forecasts that need no model, for the same rows: see `BASELINES`. The value
        one week earlier is there if the stream has times, and covers more than two weeks or so.
    further : structured array
        For each point of the curve further values: see `FURTHER`. The old name, `beside`, is
        deprecated.
    sample : Sample, optional
        Some of the rows, a random one of each block.
    errors_by : ErrorsBy, optional
        The errors of all rows by hour of the day, by prediction and by category.
    recent : structured array
        The rows of the window, each of `ROW`; the last 1,000 with their times.
    columns : sequence of ColumnNote
        How the columns of a file were read: `Stream.column_notes`.
    losses : mapping of str to float
        The means of further losses, if some were requested.
    predictions : structured array, optional
        All rows that were predicted, each of `PREDICTION`, if they were requested.
    importances : list of pairs
        At a few moments, how many rows were scored until then, and the importance of each feature;
        empty for a model that is not one of Sapwood's.
    intervals : Intervals, optional
        How good the bounds were, if the model has intervals.
    drift_events : list of DriftEvent, optional
        The drift events, if a monitor was there.
    seasonal : SeasonalErrors, optional
        Errors relative to the season of the series, if one is known.
    series : SeriesTable, optional
        The errors of each series, if they were requested.
    members : MemberHistory, optional
        How the trees of an ensemble went on.
    rule_events : sequence of RuleEvent
        Which of the eight largest rules of the model were divided, removed or changed; empty of
        several targets, of forests, and of a model that has no rules.
    label_delay : str, optional
        How late labels arrived, in words such as "24 rows"; None if they arrived with their rows.
    targets : mapping of str to Evaluation
        Of several targets, the result of each, whose rows are those that have it. Then all else
        that depends on targets is here only as far as it has a mean: errors are means over them,
        in units of the standard deviation of each, and R² the mean of theirs.
    """

    stream: str
    target: str
    model: str
    rows_read: int
    rows_predicted: int
    rows_learned: int
    rejected: Rejections
    total: Errors
    faded: Errors
    window: Errors
    fade: float
    window_rows: int
    curve: NDArray[Any]
    speed: NDArray[np.float64]
    seconds: float
    model_seconds: float
    leaves: int | None
    model_bytes: int | None
    target_mean: float
    target_deviation: float
    rows_without_target: int = 0
    labels_joined: int = 0
    unscored: int = 0
    first_unscored: str | None = None
    bias: float = math.nan
    baselines: Mapping[str, Baseline] = field(default_factory=dict)
    further: NDArray[Any] = field(default_factory=lambda: np.zeros(0, FURTHER))
    sample: Sample | None = None
    errors_by: ErrorsBy | None = None
    recent: NDArray[Any] = field(default_factory=lambda: np.zeros(0, ROW))
    columns: Sequence[ColumnNote] = ()
    losses: Mapping[str, float] = field(default_factory=dict)
    predictions: NDArray[Any] | None = None
    importances: Sequence[tuple[int, Mapping[str, float]]] = ()
    intervals: Intervals | None = None
    drift_events: "Sequence[DriftEvent] | None" = None
    seasonal: "SeasonalErrors | None" = None
    series: "SeriesTable | None" = None
    members: MemberHistory | None = None
    rule_events: "Sequence[RuleEvent]" = ()
    label_delay: str | None = None
    targets: "Mapping[str, Evaluation]" = field(default_factory=dict)

    def __repr__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str:
        return as_html(self)

    @property
    def alarms(self) -> "Sequence[DriftEvent] | None":
        """Deprecated: use `drift_events`."""
        deprecated("Evaluation.alarms", "Evaluation.drift_events")
        return self.drift_events

    @property
    def beside(self) -> NDArray[Any]:
        """Deprecated: use `further`."""
        deprecated("Evaluation.beside", "Evaluation.further")
        return self.further

    @property
    def refused(self) -> Rejections:
        """Deprecated: use `rejected`."""
        deprecated("Evaluation.refused", "Evaluation.rejected")
        return self.rejected

    @property
    def rows_scored(self) -> int:
        """Rows that errors are of."""
        if self.targets:
            return max(each.rows_scored for each in self.targets.values())
        return self.rows_learned - self.unscored

    @property
    def rows_per_second(self) -> float:
        """Rows read, predicted, learned and scored in a second."""
        return self.rows_read / self.seconds if self.seconds > 0 else 0.0

    @property
    def steady_rows_per_second(self) -> float:
        """The same without the first tenth of the rows, in which the program starts."""
        rows, seconds = self.curve["row"], self.speed[:, 0] if len(self.speed) else np.zeros(0)
        late = np.flatnonzero(rows >= 0.1 * rows[-1]) if len(rows) else rows
        if len(late) < 2 or seconds[-1] <= seconds[late[0]]:
            return self.rows_per_second
        return float((rows[-1] - rows[late[0]]) / (seconds[-1] - seconds[late[0]]))

    @property
    def headline(self) -> str:
        """The error in one line, compared with the best baseline.

        If the model is better than all baselines over all rows, and worse than one of them over
        the last rows, or the other way round, both are reported.

        Examples
        --------
        >>> from sapwood.evaluate import prequential
        >>> from sapwood.evaluate.baselines import LastValue
        >>> prequential(LastValue(), ([[0.0]] * 4, [1.0, 2.0, 3.0, 3.5])).headline
        'RMSE 0.9014, as good as repeating the last value'
        """
        if self.targets:
            mean = r_squared(self.total.r2)
            return f"mean R² {mean} over {len(self.targets)} targets"
        words = f"RMSE {number(self.total.rmse, 4)}"
        if self.best_baseline is None or not math.isfinite(self.total.rmse):
            return words
        words += f", {self._against('total')}"
        over, lately = self._gain("total"), self._gain("window")
        if self.window_rows < self.rows_scored and over * lately < 0:
            own = number(self.window.rmse, 4)
            words += f"; last {self.window_rows:,} rows: RMSE {own}, {self._against('window')}"
        return words

    def _gain(self, over: Over) -> int:
        """Return 1 if the model is better than the best baseline, -1 if it is worse, else 0."""
        best = self.best_baseline_over(over)
        if best is None:
            return 0
        words = compared(getattr(self, over).rmse, getattr(self.baselines[best], over).rmse)
        return 0 if words == EQUAL else 1 if words.endswith("better than") else -1

    def _against(self, over: Over) -> str:
        """Return the model's RMSE compared with that of the best baseline."""
        best = self.best_baseline_over(over)
        assert best is not None
        rival = getattr(self.baselines[best], over).rmse
        return f"{compared(getattr(self, over).rmse, rival)} {BASELINES[best]}"

    @property
    def best_baseline(self) -> str | None:
        """The name of the baseline whose RMSE over all rows is the least; None if there is none."""
        return self.best_baseline_over("total")

    def best_baseline_over(self, over: Over) -> str | None:
        """Return the name of the baseline with the least RMSE; None if there is none.

        Parameters
        ----------
        over : {"total", "faded", "window"}
            Over which rows.
        """
        known = {
            name: getattr(found, over).rmse
            for name, found in self.baselines.items()
            if math.isfinite(getattr(found, over).rmse)
        }
        return min(known, key=known.__getitem__, default=None)

    def to_dict(self) -> dict[str, Any]:
        """Return all but the curve in terms of JSON.

        NaN, which JSON lacks, becomes None.
        """
        fade = {"fade": self.fade}
        errors = _over(self)
        intervals = {} if self.intervals is None else self.intervals.levels
        optional: dict[str, Any] = {
            "targets": {name: own._own_fields() for name, own in self.targets.items()},
            "intervals": {f"{level:g}": _over(found) for level, found in intervals.items()},
            "seasonal": None if self.seasonal is None else self.seasonal.to_dict(),
            "series": None if self.series is None else self.series.to_dict(),
            "rule_events": [event.to_dict() for event in self.rule_events],
        }
        if self.drift_events is not None:
            optional["changes"] = [event.to_dict() for event in self.drift_events]
        found = {
            "stream": self.stream,
            "target": self.target,
            "model": self.model,
            "rows": {
                "read": self.rows_read,
                "predicted": self.rows_predicted,
                "learned": self.rows_learned,
                "without_target": self.rows_without_target,
                "labels_joined": self.labels_joined,
                "rejected": self.rejected.count,
                "refused": self.rejected.count,  # the old name, for one release
                "reasons": dict(self.rejected.reasons),
                "unscored": self.unscored,
                "first_unscored": self.first_unscored,
            },
            "headline": self.headline,
            "total": errors["total"],
            "weighted": errors["weighted"] | fade,
            "faded": errors["faded"] | fade,
            "window": errors["window"] | {"rows": self.window_rows},
            "bias": self.bias,
            "baselines": {name: _over(own) for name, own in self.baselines.items()},
            "losses": self.losses,
            **{name: own for name, own in optional.items() if own or name == "changes"},
            "leaves": self.leaves,
            "bytes": self.model_bytes,
            "seconds": self.seconds,
            "model_seconds": self.model_seconds,
            "rows_per_second": self.rows_per_second,
        }
        made: dict[str, Any] = finite(found)
        return made

    def _own_fields(self) -> dict[str, Any]:
        """Return the result of one of several targets in terms of JSON, without what all share."""
        shared = {"stream", "target", "model", "leaves", "bytes", "seconds", "model_seconds"}
        shared |= {"rows_per_second"}
        return {name: own for name, own in self.to_dict().items() if name not in shared}


def _over(found: Any) -> dict[str, dict[str, float]]:
    """Return errors, or scores of intervals, over all rows, the weighted ones, and of the window."""
    fields = {"total": "total", "weighted": "faded", "faded": "faded", "window": "window"}
    # "faded" is the old name of "weighted", for one release.
    known = {name: getattr(found, field, None) for name, field in fields.items()}
    return {
        name: asdict(own) if isinstance(own, Errors) else own._asdict()
        for name, own in known.items()
        if own is not None
    }


def compared(error: float, rival: float) -> str:
    """Return in words how much better or worse an error is than that of a rival.

    Examples
    --------
    >>> compared(0.951, 0.98), compared(3.0, 2.0), compared(9.0, 2.0), compared(1.0, 1.001)
    ('3 % better than', '50 % worse than', '4.5 times that of', 'as good as')
    """
    if rival == 0.0:
        return EQUAL if error == 0.0 else "worse than"
    percent = 100 * (1 - error / rival)
    if abs(percent) < 0.5:
        return EQUAL
    if percent <= -100:
        return f"{number(error / rival, 2)} times that of"
    digits = 3 if percent > 99 else 2
    return f"{number(abs(percent), digits)} % {'better' if percent > 0 else 'worse'} than"
