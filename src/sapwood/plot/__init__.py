"""Pictures of evaluations, observers and trees, by matplotlib.

Each function draws on the axis that it is given, or on one of a new figure, and returns the axis;
``ax.figure.savefig(path)`` writes it to a file. `sapwood.plot.ranks` draws rankings; it needs
scikit-posthocs as well.
"""

from typing import Any

from sapwood.deprecation import deprecated

try:
    import matplotlib as mpl  # noqa: F401
except ImportError as error:
    raise ImportError(
        "sapwood.plot needs matplotlib, which is not installed: run `pip install matplotlib`"
    ) from error

from sapwood.plot.evaluation import Measure, learning_curve, leaves, memory, rejected, size, speed
from sapwood.plot.hybrid import hybrid_errors, hybrid_weights
from sapwood.plot.intervals import band, coverage, prediction_intervals
from sapwood.plot.members import member_ages, member_errors
from sapwood.plot.model import importances, observer, tree
from sapwood.plot.residuals import (
    actual_vs_predicted,
    bias,
    changes,
    errors_by_hour,
    errors_by_prediction,
    importances_over_time,
    predictions,
    recent,
    residual_histogram,
)

__all__ = [
    "Measure",
    "actual_vs_predicted",
    "band",
    "bias",
    "changes",
    "coverage",
    "errors_by_hour",
    "errors_by_prediction",
    "hybrid_errors",
    "hybrid_weights",
    "importances",
    "importances_over_time",
    "learning_curve",
    "leaves",
    "member_ages",
    "member_errors",
    "memory",
    "observer",
    "prediction_intervals",
    "predictions",
    "recent",
    "rejected",
    "residual_histogram",
    "size",
    "speed",
    "tree",
]

RENAMED = {"bounds": prediction_intervals, "refused": rejected}
"""Names of the release before this one, and what they are now."""


def __getattr__(name: str) -> Any:
    """Return what an old name stands for, with a warning."""
    if name in RENAMED:
        deprecated(f"sapwood.plot.{name}", f"sapwood.plot.{RENAMED[name].__name__}")
        return RENAMED[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
