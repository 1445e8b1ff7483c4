"""A whole evaluation in one call."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.drift import DriftEvent, Monitor
from sapwood.evaluate.bar import Bar
from sapwood.evaluate.learner import checked_limits
from sapwood.evaluate.losses import Loss, LossMeans
from sapwood.evaluate.prequential import OnBadRow, Prequential
from sapwood.evaluate.result import PREDICTION, Evaluation
from sapwood.evaluate.scores import FADE, WINDOW, scorable
from sapwood.schema import Schema
from sapwood.streams.memory import as_stream
from sapwood.streams.stream import StreamError

__all__ = ["prequential"]


def prequential(
    model: Any,
    stream: Any,
    y: Any = None,
    *,
    target: str | Sequence[str] | None = None,
    delay: float | None = None,
    fade: float = FADE,
    window: int = WINDOW,
    on_bad_row: OnBadRow = "error",
    minimum: float | None = None,
    maximum: float | None = None,
    losses: Iterable[str | Loss] | Mapping[str, Loss] = (),
    keep_predictions: bool = False,
    progress: bool = False,
    monitor: Monitor | None = None,
    listener: Callable[[DriftEvent], object] | None = None,
) -> Evaluation:
    """Evaluate a model on a stream: predict each row, then learn it.

    Parameters
    ----------
    model : object
        A model of Sapwood, or any object with `predict_one` and `learn_one`, such as a model of
        river. The evaluation trains it further; it need not be empty.
    stream : Stream, path, X, tuple of X and y, or iterable of pairs
        The rows: a stream of `sapwood.streams`; the path of a file, with `target`; arrays, columns
        or a data frame, with `y`; or an iterable of pairs of a dict and a target, such as river's
        data sets. Columns of an array are named as in `learn_many`.
    y : array_like of float, optional
        The targets, if the stream is X. Several targets are a two-dimensional array, a mapping of
        columns or a data frame.
    target : str or sequence of str, optional
        The column or columns to predict, if the stream is a path.
    delay : int or float, optional
        The label delay: each row is predicted when it arrives, and learned this number of rows
        later; or this number of seconds later, if the stream has a column of times.
    fade : float
        For exponentially weighted errors: each new row multiplies the weights of earlier rows by
        this factor.
    window : int
        The rows of the windowed errors.
    on_bad_row : {"error", "skip"}
        Whether a bad row stops the evaluation with `BadRowError`, or is skipped and counted.
    minimum, maximum : float, optional
        The range of the target, such as a minimum of 0 for counts. Predictions and prediction
        intervals are limited to it before they are scored. The model learns as it would without.
    losses : iterable of str or callables, or mapping of names to callables
        Further scores, whose means over all rows are reported: "mape", "smape", "quantile:0.9", or
        functions that take arrays of y and of predictions and return a loss for each row.
    keep_predictions : bool
        Whether all predictions are returned with the result.
    progress : bool
        Whether a bar on standard error shows how far the evaluation is.
    monitor : sapwood.drift.Monitor, optional
        Detects concept drift; `Evaluation.drift_events` lists the alerts. With several targets,
        each target has a monitor of its own, and features are monitored once; alerts name their
        target.
    listener : callable, optional
        Called with each drift alert of the monitor, once the rows up to it were learned.

    Returns
    -------
    Evaluation
        The errors, the learning curve, the throughput and the numbers of rows. `Evaluation.targets`
        has the results of each of several targets.

    Raises
    ------
    StreamError
        If the stream cannot be read, or if each of its rows was rejected, so that nothing was
        learned; `BadRowError`, a kind of it, at a bad row that ends the evaluation.

    Notes
    -----
    A model that diverges may predict NaN, infinity, or a number beyond 1e140. Such a row is learned
    like any other, and its prediction is returned unchanged. It is not scored, but counted as
    `Evaluation.unscored`.

    Examples
    --------
    >>> import sapwood
    >>> from sapwood import streams
    >>> found = prequential(sapwood.HoeffdingTreeRegressor(), streams.friedman(rows=20_000))
    >>> found.rows_learned, found.total.r2 > 0.85
    (20000, True)
    >>> from sapwood.evaluate.baselines import LastValue
    >>> prequential(LastValue(), [[0.0], [1.0], [2.0]], [1.0, 2.0, 4.0], losses=["mape"]).losses
    {'mape': 66.66666666666667}
    """
    if getattr(model, "task", None) == "classes":
        raise ValueError(
            f"the model is a {type(model).__name__}, which predicts classes: evaluate it by "
            "sapwood.evaluate.evaluate_classes(model, X, y)"
        )
    names = getattr(model, "features", ())
    schema = getattr(model, "schema", None)
    schema = schema if isinstance(schema, Schema) and schema.converting else None
    rows = as_stream(stream, y, target, names, schema)
    limits = checked_limits(minimum, maximum)
    run = Prequential(
        model,
        rows,
        delay=delay,
        fade=fade,
        window=window,
        on_bad_row=on_bad_row,
        monitor=monitor,
    )
    run.learner.limits = limits
    reported = 0
    if rows.targets and (losses or keep_predictions):
        raise StreamError("losses and keep_predictions are for one target, and there are several")
    means, bar = LossMeans(losses), Bar(run) if progress else None
    kept: list[NDArray[Any]] = []
    for step in run.steps():
        for numbers, right, predicted, _, _bounds in () if rows.targets else step.predicted:
            good = scorable(predicted, right)
            means.take(right[good], predicted[good])
            if keep_predictions:
                part = np.zeros(len(right), PREDICTION)
                part["number"], part["y"], part["prediction"] = numbers, right, predicted
                kept.append(part)
        reported = _report(run.drift_events, reported, listener)
        if bar is not None:
            bar.update(step.done)
    found = replace(run.finish(), losses=means.finished())
    _report(run.drift_events, reported, listener)
    if bar is not None:
        bar.close()
    run.check_used()
    if keep_predictions:
        found = replace(found, predictions=np.concatenate([np.zeros(0, PREDICTION), *kept]))
    return found


def _report(
    drift_events: Sequence[DriftEvent],
    reported: int,
    listener: Callable[[DriftEvent], object] | None,
) -> int:
    """Pass the drift alerts after so many to a listener; return their number."""
    if listener is not None:
        for event in drift_events[reported:]:
            listener(event)
    return len(drift_events)
