"""Rows that wait for their labels, with the lags that they were predicted with."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood import validation
from sapwood.corrector.tokens import is_id
from sapwood.lags.lags import Lags, Ticket
from sapwood.storage import lists

__all__ = ["MOST_PENDING", "Pending", "packed", "pending_bytes", "restored"]

MOST_PENDING = 100_000  # rows with ids that wait for their labels; the oldest go first
ROW_BYTES, LAG_BYTES = 400, 34  # that such a row takes at most: its objects, and each of its lags

Pending = tuple[list[float | None], Ticket]
"""The lags of a row that waits for its label, and what it is found by in its series."""


def pending_bytes(pending: Mapping[int, Pending]) -> int:
    """Return how many bytes the rows that wait for their labels take at most."""
    known, _ = next(iter(pending.values()), ([], None))
    return len(pending) * (ROW_BYTES + LAG_BYTES * len(known))


def packed(pending: Mapping[int, Pending]) -> NDArray[np.uint8]:
    """Return the rows that wait for their labels as an array of a file."""
    waiting = [
        [key, known, list(ticket.key), ticket.number] for key, (known, ticket) in pending.items()
    ]
    return lists.packed(waiting)


def restored(array: NDArray[Any], lags: Lags, format: int) -> dict[int, Pending]:
    """Return the pending rows, if they are valid."""
    saved = lists.unpacked(array)
    if not isinstance(saved, list) or len(saved) > MOST_PENDING:
        raise ValueError("the pending rows are not as they were saved")
    names, labels = lags.features, lags.label_features
    pending: dict[int, Pending] = {}
    for entry in saved:
        if not isinstance(entry, list) or len(entry) != 4:
            raise ValueError("a pending row is not as it was saved")
        key, known, series, number = entry
        if format < 4:  # whole rows, as pairs of names and values
            given = dict(map(tuple, known))
            known = [given.get(name) for name in names]
        if not isinstance(known, list) or len(known) != len(names):
            raise ValueError("a pending row has not all of its lags")
        of = {name: lag for name, lag in zip(names, known, strict=True) if lag is not None}
        if not all(type(lag) is (str if name in labels else float) for name, lag in of.items()):
            raise ValueError("a pending row has a lag that is no number")
        if not all(type(lag) is str or -np.inf < lag < np.inf for lag in of.values()):
            raise ValueError("a pending row has a lag that is not finite")
        if type(key) is not int or not is_id(key) or key >= 2**64 or not isinstance(series, list):
            raise ValueError("a pending row is not as it was saved")
        if not all(isinstance(part, str | int | float | bool | None) for part in series):
            raise ValueError("the series of a pending row is wrong")
        ticket = Ticket(tuple(series), validation.whole(number, "the number of a row", 0, 2**53))
        pending[key] = known, ticket
    return pending
