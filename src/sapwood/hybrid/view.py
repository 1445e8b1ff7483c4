"""What can be read of a hybrid."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.hybrid.core import HISTORY, HybridCore
from sapwood.hybrid.refits import Refit
from sapwood.rows.features import Features
from sapwood.stages import passed_on
from sapwood.stages.stage import RowStage
from sapwood.validation import Label

__all__ = ["HybridView"]

FloatArray = NDArray[np.float64]


class HybridView(RowStage):
    """The properties of a hybrid; `HybridRegressor` adds how it learns and predicts."""

    _core: HybridCore
    _features: Features
    _parameters: dict[str, Any]

    @property
    def parameters(self) -> dict[str, Any]:
        """The arguments that make a model like this one; with the online model as it is now."""
        return dict(self._parameters)

    @property
    def model(self) -> Any:
        """The online model."""
        return self._parameters["online"]

    @property
    def corrector(self) -> Any:
        """The online model that has the batch model's prediction as a feature; None without one."""
        return self._core.corrector

    @property
    def rows(self) -> int:
        """The number of rows learned."""
        return self._core.rows

    @property
    def weights(self) -> Any:
        """The shares of the members in predictions: a dict; of several targets, one for each."""
        found = self._core.weights().tolist()
        shares = [dict(zip(HISTORY[1:4], each, strict=True)) for each in found]
        names = self._core.names
        return dict(zip(names, shares, strict=True)) if names else shares[0]

    @property
    def weight_history(self) -> dict[str, FloatArray]:
        """Weights and recent RMSE over time, as columns; of several targets, their means."""
        table = np.array(self._core.history).reshape(-1, len(HISTORY))
        return dict(zip(HISTORY, table.T.copy(), strict=True))

    @property
    def refits(self) -> list[Refit]:
        """The fits so far: when each started, on how many rows, when it was used, its seconds."""
        return list(self._core.refits)

    @property
    def is_refitting(self) -> bool:
        """Whether a fit is running."""
        return self._core.fit is not None

    @property
    def staleness(self) -> dict[str, Any]:
        """The weight that the batch model has lost, and recent errors with and without correction.

        Returns
        -------
        dict
            ``rows`` learned; ``batch_weight`` now, and ``best_batch_weight`` so far;
            ``batch_rmse`` and ``rmse`` of recent rows, of the batch model and of the hybrid;
            ``best_batch_rmse`` so far; ``correction_gain``, the share of the batch model's squared
            error that the hybrid avoids; ``drift_events``, when the batch model's errors grew.
        """
        core, history = self._core, self.weight_history
        online, _, batch, own = core.errors().mean(axis=0).tolist()
        share = float(core.weights()[:, 2].mean())
        settled = np.isfinite(history["batch_rmse"])
        return {
            "rows": core.rows,
            "batch_weight": share,
            "best_batch_weight": max([share, *history["batch"][settled].tolist()]),
            "online_rmse": online,
            "batch_rmse": batch,
            "best_batch_rmse": min([batch, *history["batch_rmse"][settled].tolist()]),
            "rmse": own,
            "correction_gain": 1.0 - (own / batch) ** 2 if batch > 0 else math.nan,
            "drift_events": [dict(event) for event in core.learned.events],
        }

    @property
    def targets(self) -> list[Label]:
        """The names of several targets, in their order; none if there is one, or none yet."""
        return list(self._core.names)

    @property
    def features(self) -> list[Label]:
        """The names of the features, in the order of their first appearance."""
        return list(self._features.names)

    feature_kinds = passed_on("What each feature is, as the online model reports it.")
    feature_importances = passed_on("The shares of the features in what the online model explains.")
    to_rules = passed_on("Return one rule for each leaf of the online model.")

    @property
    def n_leaves(self) -> int:
        """How many leaves the online model and the corrector have."""
        corrector = self._core.corrector
        return int(self.model.n_leaves) + (0 if corrector is None else int(corrector.n_leaves))

    @property
    def nbytes(self) -> int:
        """Bytes of the online models, of the window, and of all else that is known."""
        core = self._core
        window, own = core.learned.window, core.pending.nbytes + core.learned.state.nbytes
        backtest = core.learned.backtest
        for part in (window, core.batch, core.batch_rows, core.online, core.corrector, backtest):
            own += int(getattr(part, "nbytes", 0))
        return own + self._features.nbytes

    @property
    def batch_name(self) -> str:
        """The batch learner, or the class of the fitted model, as messages name it."""
        core = self._core
        if core.frozen is not None:
            return f"fitted {type(core.frozen.model).__name__}"
        if core.learner is not None:
            return core.learner.name
        return f"{core.lost}, which the file does not hold"

    def __repr__(self) -> str:
        fits = len(self._core.refits)
        return f"<HybridRegressor({self.model!r}, {self.batch_name}): {fits} fits>"
