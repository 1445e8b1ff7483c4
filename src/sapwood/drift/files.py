"""Files of drift monitors: what has to hold for them, and those of the first format."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sapwood.drift import _monitor
from sapwood.drift.detector import check_state
from sapwood.records import check
from sapwood.rows.features import OTHERS

if TYPE_CHECKING:
    from sapwood.drift.monitor import Monitor

__all__ = ["CLOCK", "KEPT", "LATEST", "PARTS", "check_arrays", "few_labels", "of_first_format"]

PARTS = _monitor.column_parts()
KEPT = 400  # last rows, from which the message of an event is made
CLOCK = 2000  # times of rows that are remembered
LATEST = 2.5e11  # of dates, in seconds
FIRST_SPANS = 25
FIRST_FORMAT = (
    *((name, 1) for name in ("known", "weight", "evidence", "likeliest", "since", "unrest")),
    *((name, 1) for name in ("super_unrest", "super_blocks", "blocks", "kind")),
    ("edges", 9),
    *((name, 66) for name in ("block", "before", "recent", "super_block")),
    ("ring", 4 * 66),
    ("errors", 66),
    ("error_rows", 66),
)
"""The parts of a column's record in files of the first format, and their lengths."""


def of_first_format(made: "Monitor", arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return the arrays of a monitor of the first format as those of the present one."""
    old, start = arrays.get("columns", np.zeros(0)), 0
    columns = np.zeros_like(made._columns)
    width = sum(length for _, length in FIRST_FORMAT)
    check(old.shape == (len(columns), width), f"its columns have shape {old.shape}")
    for name, length in FIRST_FORMAT:
        if name in PARTS:
            part = PARTS[name]
            own = slice(part.start, part.start + length)
            columns[:, own] = old[:, start : start + length]
        start += length
    edges = columns[:, PARTS["edges"]]
    columns[:, PARTS["low"]] = columns[:, PARTS["lows"]] = edges[:, -1:]
    columns[:, PARTS["high"]] = columns[:, PARTS["highs"]] = edges[:, :1]
    columns[:, PARTS["turns"]] = columns[:, PARTS["known"]]  # as of independent rows
    columns[:, PARTS["spans"].start] = np.minimum(columns[:, PARTS["blocks"].start], FIRST_SPANS)
    scale = np.zeros_like(made._scale)
    check(arrays["scale"].shape == (2,), "its usual size of errors is wrong")
    scale[:2] = arrays["scale"]
    return {**arrays, "columns": columns, "scale": scale, "clock": np.zeros((0, 2))}


def few_labels(features: Any) -> Any:
    """Return the features of a header without the labels that share a bin.

    Files of the first release may have more labels than there are bins.
    """
    labels = features.get("labels") if isinstance(features, dict) else None
    if not isinstance(labels, list) or not all(isinstance(own, list) for own in labels):
        return features
    return features | {"labels": [own[:OTHERS] for own in labels]}


def check_arrays(made: "Monitor", arrays: dict[str, NDArray[Any]]) -> None:
    """Raise ValueError unless arrays are those that a monitor of such features may have."""
    names = {"columns", "error", "scale", "last", "last_errors", "first", "first_rows", "clock"}
    check(arrays.keys() == names, f"its arrays are not {', '.join(sorted(names))}")
    columns, last, lengths = arrays["columns"], arrays["last"], arrays["first_rows"]
    doubles = all(arrays[name].dtype == np.float64 for name in names - {"first_rows"})
    check(doubles and lengths.dtype == np.int64, "an array is of another type")
    check(columns.shape == made._columns.shape, f"its columns have shape {columns.shape}")
    check(arrays["error"].shape == made._error.shape, "its detector has another shape")
    check_state(arrays["error"])
    scale = arrays["scale"]
    good = scale.shape == made._scale.shape and bool(np.isfinite(scale).all())
    good = good and bool((scale[[0, 1, 2, 5, 6, 7, 10, 11]] >= 0).all())
    check(good, "its usual size of errors is wrong")
    wide = last.ndim == 2 and last.shape[1] == len(columns) and len(last) <= KEPT
    check(wide and arrays["last_errors"].shape == (len(last),), "its last rows are wrong")
    whole = lengths.shape == (len(columns),) and bool((lengths >= 0).all())
    check(whole and arrays["first"].shape == (int(lengths.sum()),), "its first rows are wrong")
    clock = arrays["clock"]
    good = clock.ndim == 2 and clock.shape[1] == 2 and len(clock) <= CLOCK
    good = good and bool((np.abs(clock) < LATEST).all() and (np.diff(clock[:, 0]) > 0).all())
    check(good, "its times are wrong")
    check(bool(np.isfinite(columns).all()), "a number of a column is not finite")
    kinds = columns[:, PARTS["kind"]][:, 0]
    for column, kind in enumerate(kinds.tolist()):
        right = kind == _monitor.CATEGORY
        check(right == made._is_category(column), "a column is of another kind")
        check(kind in (_monitor.CATEGORY, _monitor.NUMBER, _monitor.WAITING), "a kind is wrong")
    for name, part in PARTS.items():
        if name not in ("likeliest", "edges", "low", "high", "lows", "highs"):
            check(bool((columns[:, part] >= 0).all()), f"{name} of a column is below 0")
    blocks = columns[:, PARTS["blocks"]]
    check(bool(((blocks == np.floor(blocks)) & (blocks <= 2**53)).all()), "blocks are not whole")
    check(bool((np.diff(columns[:, PARTS["edges"]], axis=1) >= 0).all()), "edges do not ascend")
    ring = columns[:, PARTS["ring"]].reshape(len(columns), _monitor.RECENT, _monitor.BINS)
    same = np.array_equal(ring.sum(axis=1), columns[:, PARTS["recent"]])
    check(same, "the recent rows of a column are not those of its blocks")
    codes = last[:, kinds == _monitor.CATEGORY]
    good = np.isnan(codes) | ((codes >= 0) & (codes < OTHERS + 1) & (codes == np.floor(codes)))
    check(bool(good.all()), "a label of the last rows is none")
