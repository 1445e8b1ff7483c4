"""Some rows of a batch, whatever it is made of."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from sapwood import validation
from sapwood.rows.encoded import EncodedColumns

__all__ = ["check_rows", "rows_at"]


def rows_at(X: Any, places: Any) -> Any:
    """Return some rows of a batch, of the same kind.

    Parameters
    ----------
    X : array_like, mapping of columns, list of dicts, or data frame
        The batch.
    places : slice or array of int
        Of the rows.

    Examples
    --------
    >>> rows_at({"x": [1, 2, 3], "c": ["a", "b", "c"]}, np.array([0, 2]))
    {'x': [1, 3], 'c': ['a', 'c']}
    >>> rows_at([1, 2, 3], slice(1, 3))
    [2, 3]
    """
    if isinstance(X, Mapping):
        part = {name: rows_at(column, places) for name, column in X.items()}
        return EncodedColumns(part) if isinstance(X, EncodedColumns) else part
    if not isinstance(places, slice):
        if isinstance(X, list | tuple):
            return [X[place] for place in places.tolist()]
        if not isinstance(X, np.ndarray) and hasattr(X, "take") and not hasattr(X, "iloc"):
            return X.take(places)  # of pyarrow
    by_place = getattr(X, "iloc", X)  # of pandas
    return by_place[places]


def check_rows(X: Any, labels: int) -> None:
    """Raise ValueError unless a batch has as many rows as there are labels."""
    rows = len(next(iter(X.values()), ())) if isinstance(X, Mapping) else len(X)
    if not (isinstance(X, Mapping) and not X):
        validation.check_labels(rows, labels)
