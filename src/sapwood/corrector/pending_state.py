"""Files of pending predictions: their arrays, and the checks of these."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.corrector._pending import PendingPredictions

__all__ = ["PENDING", "pending_arrays", "restore_pending"]

PENDING = ("pending_sizes", "pending_keys", "pending_ages", "pending")
TYPES = [np.float64, np.uint64, np.int64, np.float64]
SIZES = (7, 8)


def pending_arrays(pending: PendingPredictions) -> dict[str, NDArray[Any]]:
    """Return the arrays of pending predictions, by the names that a file has for them."""
    return dict(zip(PENDING, pending.state(), strict=True))


def restore_pending(
    pending: PendingPredictions, arrays: Mapping[str, NDArray[Any]], labels: float
) -> None:
    """Restore what `pending_arrays` returned; nothing of it is trusted.

    Parameters
    ----------
    pending : PendingPredictions
        Gets the predictions. The first number of each is how many labels were known when it was
        issued_prediction.
    arrays : mapping
        Of a file.
    labels : float
        How many labels are known now.

    Raises
    ------
    ValueError
        If there is anything wrong with it.
    """
    saved = [arrays.get(name, np.empty(0)) for name in PENDING]
    typed = [each.dtype for each in saved] == TYPES
    if not typed or [each.ndim for each in saved] != [1, 1, 1, 2] or len(saved[0]) not in SIZES:
        raise ValueError("its pending predictions are of another type")
    sizes, keys, ages, records = (np.ascontiguousarray(each) for each in saved)
    good = records.shape == (len(keys), pending.width) and not np.isinf(records).any()
    good = good and bool(np.isfinite(sizes).all())
    if not (good and bool(((records[:, 0] >= 0) & (records[:, 0] <= labels)).all())):
        raise ValueError("one of its pending predictions is wrong")
    pending.restore(sizes, keys, ages, records)
