"""Weights for rows that were never predicted before they were learned.

What a model predicts just before it learns a row does not show how well it predicts far ahead. So
when a batch model comes into use, the online models are copied, and these copies, which learn
nothing more, predict one in `EVERY` of the rows that follow, until the next batch model.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sapwood.hybrid import _stack
from sapwood.hybrid.members import StreamRows

__all__ = ["EVERY", "Backtest", "copied"]

FloatArray = NDArray[np.float64]

EVERY = 4


class Backtest(NamedTuple):
    """The online models as they were.

    Attributes
    ----------
    online, corrector : Regressor
        Copies; there may be no corrector.
    """

    online: Any
    corrector: Any

    @property
    def nbytes(self) -> int:
        """Bytes of the copies."""
        return sum(int(model.nbytes) for model in self if model is not None)

    def predict(self, rows: StreamRows, batch: FloatArray, names: Sequence[str]) -> FloatArray:
        """Return predictions of all members, of shape (rows, targets, MEMBERS).

        Parameters
        ----------
        rows : StreamRows
            The rows.
        batch : ndarray of float, shape (rows, targets)
            What the batch model predicts.
        names : sequence of str
            By which the corrector knows these predictions.
        """
        members = np.full((*batch.shape, _stack.MEMBERS), np.nan)
        members[:, :, 0] = rows.predict(self.online, False)
        if self.corrector is not None:
            members[:, :, 1] = rows.with_features(names, batch).predict(self.corrector, False)
        members[:, :, 2] = batch
        return members


def copied(online: Any, corrector: Any) -> Backtest:
    """Return a backtest of the online models as they are now."""
    return Backtest(online.copy(), None if corrector is None else corrector.copy())
