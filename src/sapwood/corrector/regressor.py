"""The error-correction layer around any model."""

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sapwood import validation
from sapwood.corrector._layer import CORRECTED_DOUBLES, LAYER_DOUBLES, ErrorCorrectionLayer
from sapwood.corrector.checking import check_layer_of
from sapwood.stages.scored import LabelledBatch, ScoredStage
from sapwood.validation import Label

__all__ = ["CorrectedRegressor"]

FloatArray = NDArray[np.float64]
Layers = tuple[ErrorCorrectionLayer, ...]

LAYERS, ROWS = "layers", "layer_rows"


class CorrectedRegressor(ScoredStage):
    """Any model with an error-correction layer, which follows shifts of the whole target.

    It is the layer that trees and forests have by default (`track`). Put it around a model that has
    none: a linear model, a fitted model of another library, a hybrid. The model inside learns as it
    would alone.

    Parameters
    ----------
    model : object
        A model of Sapwood without a layer; or any model with `predict_one` and `learn_one`,
        `predict_many` and `learn_many`, or `predict` and `partial_fit`. Prediction intervals and lags
        go around this stage.

    Notes
    -----
    Like the layer of a tree, it learns from predictions that were issued. Predictions are limited to
    the range of y, except on a side where y still sets records. Predictions that are not finite, or
    beyond 1e100, are issued as they are.

    Examples
    --------
    >>> import numpy as np, sapwood
    >>> rng = np.random.default_rng(1)
    >>> x = rng.uniform(-1, 1, (4_000, 2))
    >>> y = x[:, 0] + rng.normal(0, 0.1, 4_000) + 8.0 * (np.arange(4_000) >= 2_000)
    >>> tree = sapwood.HoeffdingTreeRegressor(track=None)
    >>> models = tree.copy(), sapwood.CorrectedRegressor(tree)
    >>> errors = [np.abs(model.predict_learn_many(x, y) - y)[2_000:2_100] for model in models]
    >>> bool(errors[1].mean() < 0.6 * errors[0].mean())
    True
    """

    kind: ClassVar[str] = "CorrectedRegressor"
    format: ClassVar[int] = 1
    _note: ClassVar[int] = CORRECTED_DOUBLES

    def _fresh(self, names: tuple[Label, ...]) -> Layers:
        return tuple(ErrorCorrectionLayer() for _ in range(max(1, len(names))))

    def _issued(self, own: Layers, members: FloatArray) -> tuple[FloatArray, FloatArray]:
        parts = [layer.predict(members[:, place].copy()) for place, layer in enumerate(own)]
        if len(parts) == 1:
            return parts[0][0][:, np.newaxis], parts[0][1]
        issued, notes = zip(*parts, strict=True)
        return np.column_stack(issued), np.hstack(notes)

    def _learned(self, own: Layers, batch: LabelledBatch) -> tuple[Layers, FloatArray]:
        layers, issued = tuple(layer.copy() for layer in own), np.empty(batch.y.shape)
        for place, layer in enumerate(layers):
            notes = None
            if batch.notes is not None:
                start = place * CORRECTED_DOUBLES
                notes = np.ascontiguousarray(batch.notes[:, start : start + CORRECTED_DOUBLES])
            columns = batch.members[:, place].copy(), batch.y[:, place].copy()
            w = np.ascontiguousarray(batch.w)
            issued[:, place] = layer.learn(*columns, notes, w, at_once=batch.at_once)
        return layers, issued

    def __repr__(self) -> str:
        return f"<CorrectedRegressor({self.model!r})>"

    # -- files ------------------------------------------------------------------------------------

    def _own_bytes(self) -> int:
        return 8 * LAYER_DOUBLES * len(self._held.own)

    def _arguments(self) -> dict[str, Any]:
        return {}

    @classmethod
    def _around(cls, model: Any, arguments: dict[str, Any]) -> Self:
        if arguments:
            raise ValueError("its header has other entries than it should")
        return cls(model)

    def _arrays(self) -> dict[str, NDArray[Any]]:
        layers: Layers = self._held.own
        return {
            LAYERS: np.array([layer.state for layer in layers]),
            ROWS: np.array([layer.rows for layer in layers]),
        }

    def _restored_own(self, arrays: dict[str, NDArray[Any]], labels: int) -> Layers:
        if arrays.keys() != {LAYERS, ROWS}:
            raise ValueError("its arrays are not those of a corrected model")
        layers, rows, count = arrays[LAYERS], arrays[ROWS], self._held.targets
        good = layers.dtype == rows.dtype == np.float64
        if not good or layers.shape != (count, LAYER_DOUBLES) or rows.shape != (count,):
            raise ValueError("its layers are not as they were saved")
        for layer, own in zip(layers, rows.tolist(), strict=True):
            validation.whole(int(own) if own == own // 1 else -1, ROWS, 0, labels)
            check_layer_of(layer, own)
        return tuple(
            ErrorCorrectionLayer(*each) for each in zip(layers, rows.tolist(), strict=True)
        )
