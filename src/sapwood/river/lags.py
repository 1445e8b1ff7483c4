"""Lags in river's pipelines."""

from collections.abc import Mapping, Sequence
from typing import Any

from river import base

from sapwood.lags import Lags as Past
from sapwood.lags.lags import MOST_SERIES, TOLERANCE
from sapwood.lags.spans import Spans
from sapwood.validation import Label

__all__ = ["Lags"]


# Both, as river's pipelines take what is no plain transformer for their last step.
class Lags(base.SupervisedTransformer, base.Transformer):
    """`sapwood.lags.Lags` as a transformer of river, with the same parameters.

    An unknown lag is left out of the row, as river's models expect. With delayed labels, river
    transforms a row when it is predicted, and again when it is learned; a lag of 1 is then the last
    label that has arrived. `sapwood.evaluate.prequential` with a `sapwood.lags.LaggedModel` keeps
    the lags of the prediction.

    Attributes
    ----------
    past : sapwood.lags.Lags
        The lag features, with the values of earlier rows.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from sapwood.river import HoeffdingTreeRegressor, Lags
    >>> model = Lags([1, 7], target="approval") | HoeffdingTreeRegressor()
    >>> evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE())
    MAE: 0.1...
    """

    def __init__(
        self,
        lags: Spans = (),
        means: Spans = (),
        *,
        lags_of: Mapping[Label, Spans] | None = None,
        means_of: Mapping[Label, Spans] | None = None,
        by: Label | Sequence[Label] = (),
        target: str = "y",
        max_series: int = MOST_SERIES,
        time: Label | None = None,
        tolerance: str = TOLERANCE,
        horizon: int | str | None = None,
    ) -> None:
        self.past = Past(
            lags,
            means,
            lags_of=lags_of,
            means_of=means_of,
            by=by,
            target=target,
            max_series=max_series,
            time=time,
            tolerance=tolerance,
            horizon=horizon,
        )
        # Lists, as river takes a tuple for a class with its parameters.
        self.lags, self.means = _listed(lags), _listed(means)
        self.lags_of, self.means_of, self.by = lags_of, means_of, _listed(by)
        self.target, self.max_series = target, max_series
        self.time, self.tolerance, self.horizon = time, tolerance, horizon

    def learn_one(self, x: dict[Any, Any], y: Any) -> None:
        """Add a row, so that it provides lags for later rows.

        Parameters
        ----------
        x : dict
            The features.
        y : float
            The target.
        """
        self.past.learn_one(x, y)

    def transform_one(self, x: dict[Any, Any]) -> dict[Any, Any]:
        """Return a row with its lag features.

        Parameters
        ----------
        x : dict
            The features.
        """
        return self.past.transform_one(x)

    @classmethod
    def _unit_test_params(cls) -> Any:
        yield {"lags": [1, 3], "means": [5]}


def _listed(given: Any) -> Any:
    return list(given) if isinstance(given, tuple) else given
