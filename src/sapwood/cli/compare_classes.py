"""`sapwood compare` where the targets are classes."""

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from sapwood.cli.classes import ClassJob
from sapwood.cli.comparison import Comparison, Failed
from sapwood.cli.runs import Learning
from sapwood.evaluate.classes import ClassEvaluation

__all__ = ["CLASS_MODELS", "ClassComparison"]

CLASS_MODELS = ("tree", "adaptive", "forest")
BASELINES = {"majority": "accuracy_majority", "last": "accuracy_no_change"}


class ClassComparison(Comparison):
    """Several classifiers over several streams, ranked."""

    titles: ClassVar = {
        "accuracy": "accuracy",
        "balanced_accuracy": "balanced accuracy",
        "kappa": "Cohen's kappa",
        "log_loss": "log-loss",
    }
    best_is_largest = ("accuracy", "balanced_accuracy", "kappa")

    @property
    def wrong_measure(self) -> str:
        """The message about a measure of numbers."""
        return (
            f"--measure {self.measure} is for numbers, and the target is a class: choose of "
            f"{', '.join(self.titles)}"
        )

    def make_run(self, stream: str, learning: Learning) -> tuple[Any, Any]:
        """Return the run of a model on a stream, and its lags."""
        job = ClassJob([stream], self.reading, learning, self.targets)
        return job.run, getattr(job.model, "lags", None)

    def value(self, cell: ClassEvaluation | Failed) -> float:
        """Return what a model is ranked by."""
        return math.nan if isinstance(cell, Failed) else cell.scores.metrics()[self.measure]

    def rows_of(self, row: Sequence[Any]) -> int:
        """Return how many rows were scored."""
        known = [cell.scores.rows for cell in row if not isinstance(cell, Failed)]
        return max(known, default=0)

    def shown(self, value: float) -> str:
        """Return a value for the table."""
        return f"{value:.4f}"

    def baselines(self, row: Sequence[Any] | None = None) -> list[str]:
        """Return the accuracies of baselines, if models are ranked by that."""
        names = BASELINES if self.measure == "accuracy" else {}
        if row is None:
            return [*names]
        known = next((cell for cell in row if not isinstance(cell, Failed)), None)
        metrics = {} if known is None else known.scores.metrics()
        return [f"{metrics.get(name, math.nan):.4f}" for name in names.values()]
