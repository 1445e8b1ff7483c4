"""Lags in river's pipelines."""

from typing import Any, ClassVar

from river import base

from sapwood.adapter_parameters import AdapterParameters
from sapwood.lags import Lags as Past

__all__ = ["Lags"]


# Both, as river's pipelines take what is no plain transformer for their last step.
class Lags(AdapterParameters, base.SupervisedTransformer, base.Transformer):
    """`sapwood.lags.Lags` as a transformer of river, with the same parameters.

    A feature that is not known yet is left out of the row, as river's models expect it. Where
    labels come late, river transforms a row when it is predicted and again when it is learned, and
    a lag of 1 is then the last label that has arrived; `sapwood.evaluate.prequential` with a
    `sapwood.lags.LaggedModel` keeps what was known at first.

    Attributes
    ----------
    past : sapwood.lags.Lags
        What is remembered of earlier rows.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from sapwood.river import HoeffdingTreeRegressor, Lags
    >>> model = Lags([1, 7], target="approval") | HoeffdingTreeRegressor()
    >>> evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE())
    MAE: 0.1...
    """

    _model_class: ClassVar[type[Any]] = Past

    def _prepare(self) -> None:
        self.past = self._new_model()
        for name in ("lags", "means", "by"):  # river takes a tuple for a class with its parameters
            value = getattr(self, name)
            setattr(self, name, list(value) if isinstance(value, tuple) else value)

    def learn_one(self, x: dict[Any, Any], y: Any) -> None:
        """Let a row become past.

        Parameters
        ----------
        x : dict
            The features.
        y : float
            The target.
        """
        self.past.learn_one(x, y)

    def transform_one(self, x: dict[Any, Any]) -> dict[Any, Any]:
        """Return a row with what is known of those before it.

        Parameters
        ----------
        x : dict
            The features.
        """
        row: dict[Any, Any] = self.past.transform_one(x)
        return row

    @classmethod
    def _unit_test_params(cls) -> Any:
        yield {"lags": [1, 3], "means": [5]}
