"""Lags in river's pipelines."""

from typing import Any, ClassVar

from river import base

from sapwood.adapter_parameters import AdapterParameters
from sapwood.lags import Lags as Past

__all__ = ["Lags"]


# Both, as river's pipelines take what is no plain transformer for their last step.
class Lags(AdapterParameters, base.SupervisedTransformer, base.Transformer):
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

    _model_class: ClassVar[type[Any]] = Past

    def _prepare(self) -> None:
        self.past = self._new_model()
        for name in ("lags", "means", "by"):  # river takes a tuple for a class with its parameters
            value = getattr(self, name)
            setattr(self, name, list(value) if isinstance(value, tuple) else value)

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
        row: dict[Any, Any] = self.past.transform_one(x)
        return row

    @classmethod
    def _unit_test_params(cls) -> Any:
        yield {"lags": [1, 3], "means": [5]}
