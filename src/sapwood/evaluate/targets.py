"""The prequential loop with several targets: one model for all, a score for each."""

import math
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sapwood.door import Label
from sapwood.evaluate.delay import Waiting
from sapwood.evaluate.learner import Learner
from sapwood.evaluate.prequential import Prequential
from sapwood.evaluate.result import CURVE, Errors, Evaluation
from sapwood.evaluate.scores import FADE, WINDOW
from sapwood.evaluate.tally import SAMPLE, OnBadRow, Predicted, Step, Tally
from sapwood.lags import LaggedModel
from sapwood.model import readable_part
from sapwood.streams.stream import Chunk, Column, FloatArray, Stream, StreamError

__all__ = ["TargetsLearner", "TargetsPrequential", "check_model", "run_of"]

OF_TARGETS = "targets"


def run_of(model: Any, stream: Stream, **options: Any) -> Prequential:
    """Return a run of a model on a stream: of several targets, or of one.

    Parameters
    ----------
    model, stream
        As for `Prequential`.
    **options
        Those of `Prequential`.

    Raises
    ------
    StreamError
        If there are several targets, and options for one.
    """
    if not stream.targets:
        return Prequential(model, stream, **options)
    if options.pop("monitor", None) is not None:
        raise StreamError(f"{stream.name}: a monitor is for one target, and there are several")
    return TargetsPrequential(model, stream, **options)


def _without_lags(model: Any, targets: tuple[Label, ...]) -> Any:
    """Return a model itself, or that behind lags of the same targets."""
    if not isinstance(model, LaggedModel):
        return model
    if model.several_targets and model.lags.target != targets:
        told = ", ".join(map(str, model.lags.target))
        raise ValueError(f"the lags of the model are of {told}: name the same in this order")
    return model.model if model.several_targets else model


def check_model(model: Any, targets: tuple[Label, ...]) -> None:
    """Raise unless a model can learn some targets.

    Raises
    ------
    ValueError
        If it learns one, or has learned others.
    """
    kind = type(model).__name__
    if not getattr(model, "several_targets", False):
        raise ValueError(
            f"this {kind} learns one target, and there are {len(targets)}: use a model of "
            "Sapwood, or name one target"
        )
    known = tuple(model.targets)
    if not known and readable_part(model).summary.rows > 0:
        raise ValueError(f"this {kind} has learned one target, and there are {len(targets)}")
    if known and set(known) != set(targets):
        told = ", ".join(map(str, known))
        raise ValueError(f"the targets of this {kind} are {told}: name the same")


class TargetsLearner(Learner):
    """A model of several targets; predictions and y have a column for each.

    Parameters
    ----------
    model : HoeffdingTreeRegressor
        Or another with `several_targets`.
    targets : tuple
        The names of the columns of y.
    """

    def __init__(self, model: Any, targets: tuple[Label, ...]) -> None:
        check_model(model, targets)
        super().__init__(model)
        self._targets = targets

    def predict_learn(self, columns: Mapping[str, Column], y: FloatArray) -> FloatArray:
        """Return the predictions of each row, made before it was learned."""
        start = time.perf_counter()
        try:
            named = {name: y[:, place] for place, name in enumerate(self._targets)}
            if self.levels:
                return self._ordered(*self.model.predict_learn_intervals(dict(columns), named))
            return self._matrix(self.model.predict_learn_many(dict(columns), named))
        finally:
            self.seconds += time.perf_counter() - start

    def predict(self, columns: Mapping[str, Column], y: FloatArray) -> FloatArray:
        """Return the predictions of each row, of which none is learned; y is not looked at."""
        start = time.perf_counter()
        try:
            if self.levels:
                return self._ordered(*self.model.predict_intervals_many(dict(columns)))
            found = self.model.predict_many(dict(columns))
            return self._matrix(found) if isinstance(found, Mapping) else np.zeros(y.shape)
        finally:
            self.seconds += time.perf_counter() - start

    def _predict(self, x: dict[str, Any]) -> Any:
        if self.levels:
            found, bounds = self.model.predict_intervals_one(x)
            if not isinstance(bounds, Mapping):  # before the first row
                bounds = dict.fromkeys(self._targets, bounds)
            self.bounds = np.array([bounds[name] for name in self._targets])
        else:
            found = self.model.predict_one(x)
        if isinstance(found, Mapping):
            return [float(found[name]) for name in self._targets]
        return [0.0] * len(self._targets)

    def _learn(self, x: dict[str, Any], y: Any) -> None:
        self.model.learn_one(x, dict(zip(self._targets, y, strict=True)))

    def _ordered(self, predictions: FloatArray, bounds: FloatArray) -> FloatArray:
        """Return predictions in the order of the targets here, and keep their bounds."""
        if predictions.ndim == 1:  # before the first row
            count = len(self._targets)
            self.bounds = np.repeat(bounds[:, np.newaxis], count, axis=1)
            return np.repeat(predictions[:, np.newaxis], count, axis=1)
        order = [self.model.targets.index(name) for name in self._targets]
        self.bounds = bounds[:, order]
        return predictions[:, order]

    def _matrix(self, predictions: Mapping[Label, FloatArray]) -> FloatArray:
        return np.column_stack([predictions[name] for name in self._targets])


class TargetTally(Tally):
    """The score of one target."""

    def take(self, part: Predicted, chunk: Chunk, seconds: float) -> None:
        """Score the rows of a chunk, all of which have this target; so much time has passed."""
        before = self.scores.rows
        self.rows_learned += len(chunk)
        self.seconds, self._resumed_at = seconds, time.perf_counter()
        self._score(part, chunk, 0, len(chunk))
        self._keep(before, chunk, [part])

    def take_late(self, row: Waiting, seconds: float) -> None:
        """Score a row whose label has come; so much time has passed."""
        self.rows_learned += 1
        self.seconds, self._resumed_at = seconds, time.perf_counter()
        self._score_late(row)


class TargetsPrequential(Prequential):
    """An evaluation of several targets under way.

    A row is learned for those targets that it has. Rows without any are predicted, and not learned.
    If the stream has ids, their labels may come later: as a row of the same id that has some.

    Parameters
    ----------
    model : HoeffdingTreeRegressor
        Or another with `several_targets`.
    stream : Stream
        Of several targets.
    delay, fade, window, on_bad_row
        As for `Prequential`.
    """

    _several_targets: ClassVar[bool] = True

    def __init__(
        self,
        model: Any,
        stream: Stream,
        *,
        delay: float | None = None,
        fade: float = FADE,
        window: int = WINDOW,
        on_bad_row: OnBadRow = "error",
    ) -> None:
        learner = TargetsLearner(_without_lags(model, stream.targets), stream.targets)
        super().__init__(
            model, stream, delay=delay, fade=fade, window=window, on_bad_row=on_bad_row
        )
        self.learner = learner
        self.tallies = [
            TargetTally(
                stream, learner, fade=fade, window=window, on_bad_row=on_bad_row, delay=None
            )
            for _ in stream.targets
        ]

    @property
    def rows_scored(self) -> int:
        """Rows of which the target that most rows have was scored."""
        return max(tally.scores.rows for tally in self.tallies)

    @property
    def total(self) -> Errors:
        """The means over targets, in units of the deviation of each."""
        return _mean([tally.scores.total for tally in self.tallies], self._deviations)

    @property
    def faded(self) -> Errors:
        """The same, faded."""
        return _mean([tally.scores.faded for tally in self.tallies], self._deviations)

    @property
    def _deviations(self) -> list[float]:
        return [tally.scores.target_deviation for tally in self.tallies]

    # -- the rows of a chunk ----------------------------------------------------------------------

    def _learn_rows(self, chunk: Chunk, start: int, stop: int, step: Step) -> None:
        """Predict and learn rows that follow each other."""
        while start < stop:
            due = min(tally.curve.rows_until_due(tally.scores.rows) for tally in self.tallies)
            end = min(stop, start + due)
            self._use(chunk, start, end, step, step.predicted)
            start = end

    def _score(self, part: Predicted, chunk: Chunk, start: int, end: int) -> None:
        """Score each target of rows that follow each other in a chunk."""
        seconds = self.seconds + time.perf_counter() - self._resumed_at
        for place, tally in enumerate(self.tallies):
            known = np.flatnonzero(~np.isnan(part.y[:, place]))
            if len(known):
                rows = _rows_of(chunk, start + known)
                bounds = None if part.bounds is None else part.bounds[known, place]
                y, predictions = part.y[known, place], part.predictions[known, place]
                own = Predicted(rows.numbers, y, predictions, bounds=bounds)
                tally.take(own, rows, seconds)
            if self.first_unscored is None:
                self.first_unscored = tally.first_unscored

    def _forecast(self, moment: float) -> list[float]:
        """Return what baselines forecast for each target, of one after the other."""
        return [told for tally in self.tallies for told in tally.baselines.forecast(moment)]

    def _score_late(self, row: Waiting) -> None:
        """Score each target of a row whose labels have come."""
        seconds = self.seconds + time.perf_counter() - self._resumed_at
        assert isinstance(row.y, list)
        assert isinstance(row.prediction, list)
        forecasts = len(row.told) // len(self.tallies)
        told_bounds = len(row.bounds) // len(self.tallies)
        for place, tally in enumerate(self.tallies):
            if not math.isnan(row.y[place]):
                told = row.told[place * forecasts : (place + 1) * forecasts]
                bounds = row.bounds[place * told_bounds : (place + 1) * told_bounds]
                own = replace(
                    row, y=row.y[place], prediction=row.prediction[place], told=told, bounds=bounds
                )
                tally.take_late(own, seconds)
            if self.first_unscored is None:
                self.first_unscored = tally.first_unscored

    # -- what was found ---------------------------------------------------------------------------

    def finish(self) -> Evaluation:
        """Return what was found: means over targets, and the result of each."""
        self.learn_rest()
        results = {}
        for name, tally in zip(self.stream.targets, self.tallies, strict=True):
            tally.rows_read, tally.rows_predicted = self.rows_read, self.rows_predicted
            tally.labels_joined = self.labels_joined
            tally.rows_without_target = self.rows_predicted - tally.rows_learned
            results[str(name)] = self._evaluation(tally, str(name))
        whole = self._evaluation(self, self.stream.target or "")
        deviations = [each.target_deviation for each in results.values()]
        return replace(
            whole,
            total=_mean([each.total for each in results.values()], deviations),
            faded=_mean([each.faded for each in results.values()], deviations),
            window=_mean([each.window for each in results.values()], deviations),
            unscored=sum(each.unscored for each in results.values()),
            first_unscored=self.first_unscored,
            curve=np.zeros(0, CURVE),
            speed=np.zeros((0, 2)),
            beside=whole.beside[:0],
            baselines={},
            importances=next(iter(results.values())).importances,
            members=next(iter(results.values())).members,
            intervals=None,
            targets=results,
        )

    # -- saving and going on ----------------------------------------------------------------------

    def to_state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return what `restore` needs, but for the model: a header for JSON, and arrays."""
        header, arrays = super().to_state()
        header[OF_TARGETS] = []
        for place, tally in enumerate(self.tallies):
            own, more = tally.to_state()
            header[OF_TARGETS].append(own)
            arrays |= {f"{place}.{name}": more[name] for name in more if name != SAMPLE}
        return header, arrays

    def restore(self, header: dict[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Go on from what `to_state` returned; the model has to be that of then."""
        headers = header[OF_TARGETS]
        if not isinstance(headers, list) or len(headers) != len(self.tallies):
            raise ValueError("it has another number of targets")
        for place, (own, tally) in enumerate(zip(headers, self.tallies, strict=True)):
            start = f"{place}."
            tally.restore(
                own,
                {
                    name.removeprefix(start): array
                    for name, array in arrays.items()
                    if name.startswith(start)
                },
            )
        super().restore(header, arrays)


def _rows_of(chunk: Chunk, places: NDArray[np.intp]) -> Chunk:
    """Return some rows of a chunk; of their features only labels, which pictures tell."""
    if len(places) == len(chunk):
        return replace(chunk, bad=())
    return replace(
        chunk,
        columns={
            name: column[places]
            if isinstance(column, np.ndarray)
            else [column[place] for place in places]
            for name, column in chunk.columns.items()
        },
        y=None,
        numbers=chunk.numbers[places],
        bad=(),
        times=None if chunk.times is None else chunk.times[places],
        ids={},
    )


def _mean(errors: list[Errors], deviations: list[float]) -> Errors:
    """Return the means of errors over targets, in units of their deviations; NaN if one is."""
    shares = [1.0 / each if each > 0 else np.nan for each in deviations]
    return Errors(
        float(np.mean([each.mae * share for each, share in zip(errors, shares, strict=True)])),
        float(np.mean([each.rmse * share for each, share in zip(errors, shares, strict=True)])),
        float(np.mean([each.r2 for each in errors])),
    )
