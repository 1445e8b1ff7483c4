"""Ids of callers and tokens of stages: by both, labels find the predictions that wait for them."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sapwood.corrector._pending import key_of_id, key_of_row, keys_of_columns, keys_of_ids

__all__ = ["RowToken", "RowTokens", "is_id", "key_of", "keys_of", "token_of_row", "tokens_of_rows"]

KeyArray = NDArray[np.uint64]
EMPTY = 1  # the token of a row without values: models take 0 for none
ID = 1 << 63  # the bit that keys of ids have, and those of rows have not


class RowToken(int):
    """A key that a stage hands inwards in place of an id."""

    __slots__ = ()


class RowTokens(NamedTuple):
    """Keys that a stage hands inwards in place of ids.

    Parameters
    ----------
    keys : array of uint64
        One for each row.
    """

    keys: KeyArray


def key_of(id: Any) -> int:
    """Return the key of an id, or a token as it is.

    Examples
    --------
    >>> key_of(RowToken(7)), key_of(7) == key_of(7.0)
    (7, True)
    """
    return int(id) if type(id) is RowToken else key_of_id(id)


def keys_of(ids: Any) -> KeyArray:
    """Return the keys of ids, or tokens as they are.

    Examples
    --------
    >>> keys_of(RowTokens(np.array([7], np.uint64)))
    array([7], dtype=uint64)
    """
    return ids.keys if type(ids) is RowTokens else keys_of_ids(ids)


def is_id(key: int) -> bool:
    """Whether a key is that of an id; else it is that of a row, or 0.

    Examples
    --------
    >>> is_id(key_of("a")), is_id(token_of_row({"x": 1.0}))
    (True, False)
    """
    return key >= ID


def token_of_row(x: Mapping[Any, Any]) -> int:
    """Return the token of a row as the caller gave it, whatever stages make of it."""
    return key_of_row(x) or EMPTY


def tokens_of_rows(X: Any, columns: Mapping[Any, Any], rows: int) -> KeyArray:
    """Return the tokens of rows, given as a list of dicts or else as columns.

    Examples
    --------
    >>> tokens_of_rows(None, {}, 2)
    array([1, 1], dtype=uint64)
    """
    if isinstance(X, list | tuple) and X and isinstance(X[0], Mapping):
        return np.array([token_of_row(x) for x in X], np.uint64)
    keys = keys_of_columns(columns, rows)
    keys[keys == 0] = EMPTY
    return keys
