"""How rounds went, and what became of a source."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = ["RoundReport", "Trained"]


@dataclass(frozen=True)
class RoundReport:
    """The result of one round.

    Parameters
    ----------
    round, rows, leaves : int
        Its number from 0, the rows that were learned in it, and the leaves that the tree has then.
    total_rows : int
        The rows that the tree has learned.
    done : float
        The share of the source that is read.
    bytes_out, bytes_in : int
        Bytes sent to all workers, and bytes received from them.
    driver_seconds, seconds : float
        Working time of the driver, and duration of the round.
    worker_seconds : dict of str to float
        Working time by activity, summed over all workers.
    lost : int
        How often workers were lost.
    """

    round: int
    rows: int
    leaves: int
    total_rows: int
    done: float
    bytes_out: int
    bytes_in: int
    driver_seconds: float
    seconds: float
    worker_seconds: dict[str, float]
    lost: int


@dataclass
class Trained:
    """The result of training on a source.

    Parameters
    ----------
    model : HoeffdingTreeRegressor or ForestRegressor
        The trained model.
    rows_read, rows_learned, rows_without_target : int
        How many rows there were, how many were learned, and how many have no target.
    refused : Counter of str
        Rows left out, by reason.
    rounds : int
        How many there were.
    seconds : float
        Duration, without the time before the checkpoint from which training resumed.
    scores : array
        The sums of errors of all rows; each was predicted before its worker learned it: of a
        forest, by the members of the first worker. Of several targets, a row for each. See `r2`.

    Notes
    -----
    Of several targets, `mae` and `rmse` are means over targets in units of the deviation of each, and
    `r2` is the mean over targets.
    """

    model: Any
    rows_read: int = 0
    rows_learned: int = 0
    rows_without_target: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    rounds: int = 0
    seconds: float = 0.0
    scores: Any = field(default_factory=lambda: np.zeros(5))

    @property
    def mae(self) -> float:
        """The mean absolute error, each row predicted before it was learned."""
        return self._mean(lambda rows, absolute, square, m2: absolute / rows, 0.5)

    @property
    def rmse(self) -> float:
        """The root of the mean squared error."""
        return self._mean(lambda rows, absolute, square, m2: (square / rows) ** 0.5, 0.5)

    @property
    def r2(self) -> float:
        """The share of the variance of y that predictions explain."""
        return self._mean(lambda rows, absolute, square, m2: 1.0 - square / m2, 0.0)

    def _mean(self, error: Callable[..., Any], power: float) -> float:
        """Return the mean of an error over targets, divided by a power of the variance of each."""
        scores = np.atleast_2d(self.scores)
        rows, absolute, square, m2 = scores[:, [0, 1, 2, 4]].T
        with np.errstate(divide="ignore", invalid="ignore"):
            found = error(rows, absolute, square, m2)
            if len(scores) > 1:
                found = found / (m2 / rows) ** power
        mean = float(np.mean(found))
        return mean if np.isfinite(mean) else float("nan")
