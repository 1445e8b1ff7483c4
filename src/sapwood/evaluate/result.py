"""What an evaluation has found."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["CURVE", "UNSCORED", "Errors", "Evaluation", "Refusals"]

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
of the last window; and the model then. -1 stands for leaves or bytes that the model cannot tell."""

UNSCORED = "prediction or target is not finite or beyond 1e140"
"""Why a row has no error, in words."""


@dataclass(frozen=True, slots=True)
class Errors:
    """Errors of predictions, in the units of the target; R² is NaN where y does not vary."""

    mae: float
    rmse: float
    r2: float


@dataclass(frozen=True, slots=True)
class Refusals:
    """Rows that were left out.

    Parameters
    ----------
    count : int
        How many.
    reasons : mapping of str to int
        How many for each reason.
    where : array of int, shape (bins, 2)
        Where in the stream: counts of refused rows, each up to so many rows read.
    """

    count: int
    reasons: Mapping[str, int]
    where: NDArray[np.int64]


@dataclass(frozen=True)
class Evaluation:
    """The whole result of a prequential evaluation.

    Parameters
    ----------
    stream, target, model : str
        What was evaluated on what.
    rows_read, rows_predicted, rows_learned : int
        Rows of the stream, the refused ones included; and what became of them.
    refused : Refusals
        The others.
    total, faded, window : Errors
        Of all scored rows, with each row's weight fading by `fade` a row, and of the last
        `window_rows`.
    fade : float
        What the weight of a row is multiplied by at each later one.
    window_rows : int
        The width of the window.
    curve : structured array
        Points of `CURVE`.
    speed : array of float, shape (points, 2)
        For each point of the curve, the seconds until then, and the rows per second since the
        point before it. Times differ from run to run, all else does not.
    seconds : float
        The time that reading, predicting, learning and scoring took.
    model_seconds : float
        The model's own part of it.
    leaves, model_bytes : int, optional
        The size of the model in the end, if it can tell.
    target_mean, target_deviation : float
        Of all scored rows.
    unscored : int
        Rows that were predicted and learned, but are not part of any error, as the prediction is
        NaN, infinite or beyond 1e140, or the target beyond that.
    first_unscored : str, optional
        Where the first of them is, such as "bikes.csv, line 17".
    """

    stream: str
    target: str
    model: str
    rows_read: int
    rows_predicted: int
    rows_learned: int
    refused: Refusals
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
    unscored: int = 0
    first_unscored: str | None = None

    @property
    def rows_per_second(self) -> float:
        """Rows read, predicted, learned and scored in a second."""
        return self.rows_read / self.seconds if self.seconds > 0 else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return all but the curve in terms of JSON.

        NaN, which JSON lacks, becomes None.
        """

        def errors(found: Errors) -> dict[str, float | None]:
            values = {"mae": found.mae, "rmse": found.rmse, "r2": found.r2}
            return {name: value if np.isfinite(value) else None for name, value in values.items()}

        return {
            "stream": self.stream,
            "target": self.target,
            "model": self.model,
            "rows": {
                "read": self.rows_read,
                "predicted": self.rows_predicted,
                "learned": self.rows_learned,
                "refused": self.refused.count,
                "reasons": dict(self.refused.reasons),
                "unscored": self.unscored,
                "first_unscored": self.first_unscored,
            },
            "total": errors(self.total),
            "faded": {**errors(self.faded), "fade": self.fade},
            "window": {**errors(self.window), "rows": self.window_rows},
            "leaves": self.leaves,
            "bytes": self.model_bytes,
            "seconds": self.seconds,
            "model_seconds": self.model_seconds,
            "rows_per_second": self.rows_per_second,
        }
