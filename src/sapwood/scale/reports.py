"""How rounds went, and what became of a source."""

from collections import Counter
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
        forest, by the members of the first worker. See `r2`.
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
        return float(self.scores[1] / self.scores[0]) if self.scores[0] else float("nan")

    @property
    def rmse(self) -> float:
        """The root of the mean squared error."""
        return float((self.scores[2] / self.scores[0]) ** 0.5) if self.scores[0] else float("nan")

    @property
    def r2(self) -> float:
        """The share of the variance of y that predictions explain."""
        return float(1.0 - self.scores[2] / self.scores[4]) if self.scores[4] else float("nan")
