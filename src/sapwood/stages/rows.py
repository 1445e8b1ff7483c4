"""Rows on their way through stages, as dicts."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from sapwood.rows.encoded import EncodedColumns, EncodedRow
from sapwood.rows.encoder import is_rows
from sapwood.streams.memory import columns_of

__all__ = ["plain", "rows_of"]


def rows_of(X: Any, names: Any = ()) -> list[Any]:
    """Return rows as dicts; those that are dicts already stay as they are.

    Parameters
    ----------
    X : array_like, mapping of columns, list of dicts, or data frame
        The rows.
    names : sequence, optional
        Of the features, if X may be an array.
    """
    if is_rows(X):
        return list(X)
    columns = columns_of(X, names)
    lists = [each.tolist() if isinstance(each, np.ndarray) else each for each in columns.values()]
    kind = EncodedRow if isinstance(X, EncodedColumns) else dict
    return [kind(zip(columns, row, strict=True)) for row in zip(*lists, strict=True)]


def plain(found: Any) -> Any:
    """Return what was found for a row; of several targets, as a list."""
    return [*found.values()] if isinstance(found, Mapping) else found
