"""The protocol of recorders: each keeps one part of the result of an evaluation.

A recorder defines what it keeps of labelled rows (`score`, `record`), what it notes at the points of
the learning curve (`mark`), its state (`to_arrays`, `restored`), the fields of an `Evaluation` that it
fills in (`results`), and what becomes of these fields if there are several targets (`merge`). A new
measure of numbers is a recorder, and a line in `sapwood.evaluate.record.Record`; one of classes is a
recorder of `sapwood.evaluate.classes.PredictedRows`, and a line in `ClassRun`.

A batch is learned in one call of the model, whatever points of the curve are in it: what depends on
rows is computed from their predictions afterwards. Batches end only at the few points where recorders
see the model (`rows_until_look`).
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from sapwood import validation
from sapwood.lags.lags import Lags
from sapwood.rows.labels import Labels
from sapwood.storage.lists import packed, unpacked
from sapwood.streams.stream import Column, FloatArray

if TYPE_CHECKING:
    from sapwood.evaluate.delay import Late

__all__ = [
    "LabelledRows",
    "Moment",
    "Recorder",
    "packed",
    "ratio",
    "restored_lags",
    "rows_until_look",
    "saved_array",
    "saved_lags",
    "saved_place",
    "saved_seconds",
    "unpacked",
]

LOOKS = (100, 400, *range(1000, 20_000, 1000))
"""Rows after which recorders see the model for the first times."""
LOOK = 5000
"""Rows between two looks later on, if there are points of the learning curve after so many."""


def rows_until_look(rows: int, interval: int) -> int:
    """Return after how many more rows recorders see the model.

    - `rows`: the number of scored rows.
    - `interval`: how many rows the points of the learning curve are apart. Looks are at such
      points.

    Examples
    --------
    >>> [rows_until_look(rows, 100) for rows in (0, 99, 100, 1600, 5000)]
    [100, 1, 300, 400, 1000]
    >>> rows_until_look(20_000, 400)
    10000
    """
    distance = math.lcm(LOOK, interval)
    early = (look for look in LOOKS if look > rows and look % interval == 0)
    later = rows - rows % distance + distance
    return min(next(early, later), later) - rows


class Moment(NamedTuple):
    """A point of the learning curve, or the end of a stream.

    - `scores`: the errors up to here.
    - `seconds`: the time that the evaluation has taken.
    - `leaves`, `nbytes`: the size of the model, -1 if it is not known.
    - `further`: the bias, and the errors of baselines: `sapwood.evaluate.result.FURTHER`.
    - `interval`: how many rows the points of the curve are apart.
    - `model`: the model after these rows; None if it is not looked at here (`rows_until_look`).
    """

    scores: Any
    seconds: float
    leaves: int = -1
    nbytes: int = -1
    further: tuple[float, ...] | None = None
    interval: int = 1
    model: Any = None


class LabelledRows(NamedTuple):
    """Rows of one target whose labels are known, in the order in which the labels arrived.

    - `predictions`, `y`: what was predicted, and what was observed.
    - `times`: the seconds since 1970 of each row, NaN where they are not known.
    - `bounds`: the prediction intervals.
    - `features`: the features; dicts if labels are delayed.
    - `where`: returns the place of a row in the stream, for messages.
    - `late`: if labels are delayed, all rows that were predicted or labelled.
    - `events`: what happened to the rows of `late`, as `Late.events`.
    """

    predictions: FloatArray
    y: FloatArray
    times: FloatArray | None = None
    bounds: FloatArray | None = None
    features: Mapping[Any, Column] | Sequence[Mapping[Any, Any]] = {}
    where: Callable[[int], str] = str
    late: "Late | None" = None
    events: NDArray[np.int64] | None = None

    def part(self, places: Any) -> Self:
        """Return some of the rows, without their features."""
        times, bounds = self.times, self.bounds
        return self._replace(
            predictions=self.predictions[places],
            y=self.y[places],
            times=None if times is None else times[places],
            bounds=None if bounds is None else bounds[places],
            features={},
        )

    def some(self, places: NDArray[np.intp]) -> Self:
        """Return some of the rows, in order, with their features."""
        if len(places) == len(self.y):
            return self
        if isinstance(self.features, Mapping):
            features: Any = {
                name: column[places]
                if isinstance(column, np.ndarray | Labels)
                else [column[place] for place in places.tolist()]
                for name, column in self.features.items()
            }
        else:
            features = [self.features[place] for place in places.tolist()]
        where = self.where
        return self.part(places)._replace(
            features=features, where=lambda place: where(int(places[place]))
        )

    def column(self, name: Any) -> Any:
        """Return a column of the features."""
        if isinstance(self.features, Mapping):
            return self.features[name]
        return [x.get(name) for x in self.features]

    @property
    def is_scored(self) -> NDArray[np.bool_]:
        """Which rows have an error that can be summed up."""
        from sapwood.evaluate.scores import scorable

        rows, found = len(self.y), len(self.predictions)
        if rows != found:
            raise ValueError(
                f"there are {found} predictions and {rows} targets: the lengths must agree"
            )
        return scorable(self.predictions, self.y)

    def until(self, ends: Sequence[int]) -> Iterator[Self]:
        """Yield the rows up to each of some ends, and those after the last one."""
        start = 0
        for end in (*ends, len(self.y)):
            yield self.part(slice(start, end))._replace(events=self._events(start, end))
            start = end

    def _events(self, start: int, end: int) -> NDArray[np.int64] | None:
        """Return the events after one label, up to another."""
        if self.late is None or self.events is None:
            return None
        events, arrived = self.events, -1 - self.events
        labels = np.flatnonzero((events < 0) & ~np.isnan(self.late.y[arrived]))
        first = int(labels[start - 1]) + 1 if start else 0
        return events[first : int(labels[end - 1]) + 1 if end < len(self.y) else len(events)]


class Recorder:
    """Keeps one part of the result of an evaluation; it does nothing where nothing is stated."""

    def score(self, rows: LabelledRows) -> None:
        """Take rows into account, in order, up to a point of the learning curve at most."""

    def record(self, rows: Any) -> None:
        """Take rows into account, in order; points of the learning curve may be among them."""

    def mark(self, moment: Moment) -> None:
        """Note what is needed at a point of the learning curve."""

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the state, to be saved."""
        return {}

    def restored(self, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return a recorder of the same settings in a state that `to_arrays` returned.

        Raises
        ------
        KeyError, TypeError, ValueError
            If it is no such state.
        """
        return self

    def results(self, end: Moment) -> dict[str, Any]:
        """Return fields of an `Evaluation` at the end of a stream."""
        return {}

    @staticmethod
    def merge(targets: Sequence[Any]) -> dict[str, Any]:
        """Return these fields of an evaluation of several targets, by the `Evaluation` of each.

        Fields that are left out are those of a recorder without rows.
        """
        return {}


def saved_array(
    arrays: Mapping[str, NDArray[Any]], name: str, dtype: Any, shape: tuple[int | None, ...]
) -> NDArray[Any]:
    """Return a copy of a saved array of a dtype and a shape; None stands for any length."""
    saved = arrays[name]
    lengths = zip(saved.shape, shape, strict=False)
    fits = saved.ndim == len(shape) and all(b is None or a == b for a, b in lengths)
    if saved.dtype != dtype or not fits:
        raise ValueError(f"the saved {name} are {saved.dtype} of shape {saved.shape}")
    return saved.copy()


def saved_lags(name: str, lags: Lags) -> dict[str, NDArray[Any]]:
    """Return the state of lags as arrays."""
    header, arrays = lags.to_state()
    found = {f"{name}_{each}": np.array(own) for each, own in arrays.items()}
    return {name: packed(header), **found}


def restored_lags(arrays: Mapping[str, NDArray[Any]], name: str, like: Lags) -> Lags:
    """Return lags in a state that `saved_lags` returned; they have to be like others."""
    start = f"{name}_"
    own = {each.removeprefix(start): array for each, array in arrays.items() if start in each}
    found = Lags.from_state(unpacked(arrays[name]), own)
    if found.parameters != like.parameters:
        raise ValueError("the saved scores are of another season")
    return found


def ratio(one: float, other: float) -> float:
    """Return a ratio, NaN if the second number is not above 0."""
    return one / other if other > 0 else math.nan


def saved_place(saved: Any) -> str | None:
    """Return the place of a first row that was saved, None if there was no such row."""
    if not isinstance(saved, str | None):
        raise TypeError(f"the first row not scored or rejected is {validation.shown(saved)}")
    return saved


def saved_seconds(saved: Any) -> float:
    """Return a time that was saved, once it is known to be one."""
    if type(saved) not in (int, float) or not 0 <= saved < math.inf:
        raise ValueError(f"{validation.shown(saved)} seconds are saved")
    return float(saved)
