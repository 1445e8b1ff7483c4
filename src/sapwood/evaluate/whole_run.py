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
        One of our trees, or anything with `predict_one` and `learn_one`, such as river's models.
        It goes on learning from where it is.
    stream : Stream, path, X, tuple of X and y, or iterable of pairs
        The rows: a stream of `sapwood.streams`; the path of a file, with its target; arrays,
        columns or a frame, with their targets as y; or pairs of a dict and a target, as river's
        data sets give. The columns of an array are the features of a tree in their order, called
        0, 1, … if there are none yet, as in `learn_many`.
    y : array_like of float, optional
        The targets, if the stream is X. Several are an array of two dimensions, a mapping of
        columns or a frame.
    target : str or sequence of str, optional
        The column to predict, if the stream is a path; or several.
    delay : int or float, optional
        How late labels are: each row is predicted when it comes and learned so many rows later;
        or so many seconds later, if the stream has a time column.
    fade : float
        For exponentially weighted errors, the weight of a row is multiplied by this at each
        later one.
    window : int
        The rows of the windowed errors.
    on_bad_row : {"error", "skip"}
        Whether a row that cannot be used ends the evaluation by `BadRowError`, or is counted and
        left out.
    minimum, maximum : float, optional
        The range of the target, such as a minimum of 0 for counts: predictions, and the bounds of
        prediction intervals, are held within it before they are scored. The model learns as it
        would without.
    losses : iterable of str or callables, or mapping of names to callables
        Further scores, whose means over all rows are reported: "mape", "smape", "quantile:0.9", or
        functions that take arrays of y and of predictions and return a loss for each row.
    keep_predictions : bool
        Whether all predictions are returned with the result.
    progress : bool
        Whether a bar on standard error shows how far the evaluation is.
    monitor : sapwood.drift.Monitor, optional
        It watches all rows; `Evaluation.alarms` lists drift alerts. Of several targets, each gets a
        monitor like it, and features are watched once; alerts name their target.
    listener : callable, optional
        Called with each drift alert of the monitor, once the rows up to it were learned.

    Returns
    -------
    Evaluation
        The errors, the learning curve, the speed, and what became of all rows; of several targets,
        those of each are in `Evaluation.targets`.

    Raises
    ------
    StreamError
        If the stream cannot be read, or if each of its rows was rejected, so that nothing was
        learned; `BadRowError`, a kind of it, at a bad row that ends the evaluation.

    Notes
    -----
    A model may predict NaN, infinity, or a number beyond 1e140, as some do that diverge. The row is
    learned like any other, and its prediction returned as it is; but it has no error, so it is counted
    as `Evaluation.unscored`, and all errors are those of the other rows.

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
    told = 0
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
        told = _tell(run.alarms, told, listener)
        if bar is not None:
            bar.update(step.done)
    found = replace(run.finish(), losses=means.finished())
    _tell(run.alarms, told, listener)
    if bar is not None:
        bar.close()
    run.check_used()
    if keep_predictions:
        found = replace(found, predictions=np.concatenate([np.zeros(0, PREDICTION), *kept]))
    return found


def _tell(
    alarms: Sequence[DriftEvent], told: int, listener: Callable[[DriftEvent], object] | None
) -> int:
    """Pass the drift alerts after so many to a listener; return their number."""
    if listener is not None:
        for alarm in alarms[told:]:
            listener(alarm)
    return len(alarms)
