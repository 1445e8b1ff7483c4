"""Further scores of predictions, by name or as functions."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood import validation

__all__ = ["Loss", "LossMeans", "mape", "quantile_loss", "smape"]

FloatArray = NDArray[np.float64]
Loss = Callable[[FloatArray, FloatArray], Any]
"""Takes what was right and what was predicted, and returns a loss for each row."""


def mape(y: FloatArray, prediction: FloatArray) -> FloatArray:
    """Return the absolute errors in percent of y; NaN where that is 0.

    Examples
    --------
    >>> mape(np.array([10.0, 0.0]), np.array([12.0, 1.0]))
    array([20., nan])
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(y == 0, np.nan, 100 * np.abs((y - prediction) / y))


def smape(y: FloatArray, prediction: FloatArray) -> FloatArray:
    """Return the absolute errors in percent of the mean size of y and prediction; 0 if both are 0.

    Examples
    --------
    >>> smape(np.array([10.0, 0.0]), np.array([30.0, 0.0]))
    array([100.,   0.])
    """
    size = (np.abs(y) + np.abs(prediction)) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(size == 0, 0.0, 100 * np.abs(y - prediction) / size)


def quantile_loss(level: float) -> Loss:
    """Return the loss that is least for the quantile of a level, in units of y.

    Examples
    --------
    >>> loss = quantile_loss(0.9)
    >>> loss(np.array([10.0, 10.0]), np.array([8.0, 12.0])).round(3)
    array([1.8, 0.2])
    """
    share = validation.between(level, "level", 0.0, 1.0)

    def loss(y: FloatArray, prediction: FloatArray) -> FloatArray:
        error = y - prediction
        return np.maximum(share * error, (share - 1) * error)

    return loss


KNOWN: dict[str, Loss] = {"mape": mape, "smape": smape}


class LossMeans:
    """The means of losses over all rows; those that are NaN are left out.

    - `losses`: "mape", "smape", "quantile:0.9" and the like, or functions of y and prediction,
      which are called by their own name.

    Examples
    --------
    >>> means = LossMeans(["mape", "quantile:0.5"])
    >>> means.take(np.array([10.0, 20.0]), np.array([11.0, 18.0]))
    >>> means.finished()
    {'mape': 10.0, 'quantile:0.5': 0.75}
    """

    def __init__(self, losses: Iterable[str | Loss] | Mapping[str, Loss]) -> None:
        if isinstance(losses, str):
            raise ValueError(f"losses = {validation.shown(losses)}: a list is expected")
        if isinstance(losses, Mapping):
            self._losses = {str(name): _checked(loss) for name, loss in losses.items()}
        else:
            self._losses = dict(map(_named, losses))
        self._sums = dict.fromkeys(self._losses, 0.0)
        self._counts = dict.fromkeys(self._losses, 0)

    def take(self, y: FloatArray, prediction: FloatArray) -> None:
        """Take rows into account."""
        for name, loss in self._losses.items():
            found = np.asarray(loss(y, prediction), dtype=np.float64)
            if found.shape != y.shape:
                raise ValueError(
                    f"the loss {validation.shown(name)} has returned an array of shape {found.shape} for "
                    f"{len(y)} rows: a loss for each row is expected"
                )
            known = ~np.isnan(found)
            self._sums[name] += float(found[known].sum())
            self._counts[name] += int(known.sum())

    def finished(self) -> dict[str, float]:
        """Return the mean of each loss; NaN if no row has one."""
        return {
            name: self._sums[name] / count if (count := self._counts[name]) else float("nan")
            for name in self._losses
        }


def _named(loss: Any) -> tuple[str, Loss]:
    if not isinstance(loss, str):
        return getattr(loss, "__name__", repr(loss)), _checked(loss)
    kind, _, level = loss.partition(":")
    if loss in KNOWN:
        return loss, KNOWN[loss]
    if kind == "quantile" and level:
        try:
            return loss, quantile_loss(float(level))
        except ValueError as error:
            raise ValueError(f"loss {validation.shown(loss)}: {error}") from None
    raise ValueError(
        f"{validation.shown(loss)} is no loss: {', '.join(KNOWN)} or quantile:LEVEL are expected, or a "
        "function of y and prediction"
    )


def _checked(loss: Any) -> Loss:
    if not callable(loss):
        raise TypeError(
            f"{validation.shown(loss)} is no loss: a function of y and prediction is expected"
        )
    found: Loss = loss
    return found
