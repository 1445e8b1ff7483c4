"""Pictures of evaluations, observers and trees, by matplotlib.

Each function draws on the axis that it is given, or on one of a new figure, and returns the axis;
``ax.figure.savefig(path)`` writes it to a file. `sapwood.plot.ranks` draws rankings; it needs
scikit-posthocs beside matplotlib.
"""

try:
    import matplotlib as mpl  # noqa: F401
except ImportError as error:
    raise ImportError(
        "sapwood.plot needs matplotlib, which is not installed: run `pip install matplotlib`"
    ) from error

from sapwood.plot.bounds import band, bounds, coverage
from sapwood.plot.evaluation import Measure, learning_curve, leaves, memory, refused, size, speed
from sapwood.plot.hybrid import hybrid_errors, hybrid_weights
from sapwood.plot.members import member_ages, member_errors
from sapwood.plot.model import importances, observer, tree
from sapwood.plot.residuals import (
    bias,
    changes,
    errors_by_hour,
    errors_by_prediction,
    importances_over_time,
    predictions,
    recent,
)

__all__ = [
    "Measure",
    "band",
    "bias",
    "bounds",
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
    "predictions",
    "recent",
    "refused",
    "size",
    "speed",
    "tree",
]
