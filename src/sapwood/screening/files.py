"""The evidence of features in files, of which nothing is trusted."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood import validation
from sapwood.screening import _evidence
from sapwood.screening.evidence import FIRST, Evidence, fresh

__all__ = ["restored", "state_of"]

COUNTS = ("rows", "due", "chosen")
ARRAYS = tuple(name for name in Evidence._fields if name not in COUNTS)
MOST_ROWS = 2**53


def state_of(own: Evidence) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return evidence in terms of JSON, and its arrays."""
    arrays = {name: np.ascontiguousarray(getattr(own, name)) for name in ARRAYS}
    return {"rows": own.rows, "due": own.due, "chosen": list(own.chosen)}, arrays


def restored(
    header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], columns: int, most: int
) -> Evidence:
    """Return the evidence of a file.

    Parameters
    ----------
    header, arrays
        What `state_of` returned.
    columns : int
        How many columns rows have.
    most : int
        How many features may be chosen.

    Raises
    ------
    ValueError
        If there is anything wrong with it.
    """
    _check(header.keys() == {*COUNTS} and arrays.keys() == {*ARRAYS}, "has other entries")
    empty = fresh()
    for name in ARRAYS:
        wanted, found = getattr(empty, name), arrays[name]
        good = found.dtype == wanted.dtype and found.ndim == wanted.ndim
        _check(good, f"has {name} of another type")
    rows = validation.whole(header["rows"], "rows", 0, MOST_ROWS)
    due = validation.whole(header["due"], "due", rows + 1, MOST_ROWS)
    own = Evidence(rows, due, **{name: np.array(arrays[name]) for name in ARRAYS}, chosen=())
    candidates, bins = len(own.places), _evidence.BINS
    first = len(own.scores)
    _check(
        own.tracks.shape == (_evidence.TRACKS,) and bool(np.isfinite(own.tracks).all()), "scores"
    )
    _check(bool((own.tracks[[0, 2, 3, 5]] >= 0.0).all()), "has a variance below 0")
    _check(first == (rows if rows < FIRST else 0) == len(own.first), "lacks first rows")
    _check(own.first.shape[1] <= columns and own.scores.shape[1] == 2, "has other first rows")
    _check(not np.isinf(own.first).any() and bool((np.abs(own.scores) <= 3.0).all()), "has scores")
    _check(own.thresholds.shape == (candidates, _evidence.THRESHOLD_COUNT), "has other thresholds")
    _check(own.sums.shape == (candidates, 3 * bins), "has other sums")
    _check(bool(np.isfinite(own.thresholds).all() and np.isfinite(own.sums).all()), "is not finite")
    _check(bool((own.sums[:, ::3] >= 0.0).all()), "has fewer rows than none")
    _check(candidates == 0 or bool((own.sums[:, ::3].sum(axis=1) > 0.0).all()), "has no rows")
    inside = np.append(own.places, header["chosen"]).astype(np.int64)
    _check(bool(((inside >= 0) & (inside < columns)).all()), "names columns that rows do not have")
    _check(bool((np.diff(own.places) > 0).all()), "has columns in another order")
    chosen = tuple(validation.whole(each, "chosen", 0, columns) for each in header["chosen"])
    _check(len({*chosen}) == len(chosen) <= most, "has chosen other features")
    return own._replace(chosen=chosen)


def _check(good: bool, complaint: str) -> None:
    if not good:
        raise ValueError(f"the evidence of features {complaint}")
