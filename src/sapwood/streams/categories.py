"""The labels of categories, from Arrow's columns."""

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from sapwood import validation
from sapwood.rows.labels import Labels
from sapwood.rows.words import label_of
from sapwood.streams import bad_rows
from sapwood.streams.arrow import as_numpy, is_time
from sapwood.validation import Label

__all__ = ["labels_of"]

REASONS = {
    validation.LABEL_LENGTH: bad_rows.LABEL_TOO_LONG,
    validation.FEATURE_FINITE: bad_rows.NOT_FINITE,
}


class _Unfit(Exception):  # noqa: N818 - it is made a fault before anybody sees it
    """The reason why a value can be no label."""


def labels_of(array: pa.Array, declared: bool) -> tuple[Labels, dict[int, str]]:
    """Return the labels of an array, None where one is missing, and what is wrong with rows.

    Only distinct values are looked at one by one; rows stay codes.

    - `array`: numbers, booleans, times or strings, or a dictionary of them.
    - `declared`: whether whole numbers are labels of their own; else they are their text.

    Examples
    --------
    >>> labels_of(pa.array(["7", "07", "7.0", "?"]), declared=True)
    ([7, '07', 7, None], {})
    >>> labels_of(pa.array([7.0, 7.5, float("inf")]), declared=False)
    (['7.0', '7.5', None], {2: 'not finite'})
    """
    if pa.types.is_dictionary(array.type) and len(array.dictionary) > len(array):
        array = array.dictionary_decode()  # most of the dictionary is not used here
    encoded = array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
    labels: list[Label | None] = []
    unfit: dict[int, str] = {}
    for code, value in enumerate(_values(encoded.dictionary)):
        try:
            labels.append(_label(value, declared))
        except _Unfit as reason:
            labels.append(None)
            unfit[code] = str(reason)
    codes = as_numpy(encoded.indices.fill_null(len(labels)))
    bad = np.flatnonzero(np.isin(codes, list(unfit))).tolist() if unfit else []
    return Labels(codes, [*labels, None]), {row: unfit[int(codes[row])] for row in bad}


def _values(entries: pa.Array) -> list[Any]:
    """Return values as objects of Python; text as bytes if some is no UTF-8, times as text."""
    if is_time(entries.type):
        entries = entries.cast(pa.string())
    elif pa.types.is_decimal(entries.type):  # by way of text, as some fail to be made by pyarrow
        texts = entries.cast(pa.string()).to_pylist()
        return [None if text is None else Decimal(text) for text in texts]
    try:
        values: list[Any] = entries.to_pylist()
    except UnicodeDecodeError:
        values = entries.cast(pa.binary()).to_pylist()
    return values


def _label(value: Any, declared: bool) -> Label | None:
    """Return the label that a value is, None if it is missing; else raise `_Unfit`."""
    if isinstance(value, bytes):
        try:
            value = value.decode()
        except UnicodeDecodeError:
            raise _Unfit(bad_rows.BAD_ENCODING) from None
    try:
        return label_of(value, declared)
    except validation.Unfit as rule:
        raise _Unfit(REASONS[str(rule)]) from None
