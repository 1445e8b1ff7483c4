"""The arrays of a tree from a file of an older format, as this release saves them.

Files of the first release hold tracks in place of the error-correction layer, of which one was
chosen. A tree from such a file continues with the same levels. It begins with the chosen one, and
learns the weights of all of them from new labels. Later fields of records get the values that
`sapwood.tree.layout` declares.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.corrector._layer import (
    FIRST_WINDOW,
    LAYER_DOUBLES,
    LEVEL_RATES,
    RANGE_PARTS,
    fresh_layer,
    layer_parts,
)
from sapwood.corrector._pending import PendingPredictions
from sapwood.records import LARGEST, check, doubles
from sapwood.tree._kernel import PENDING_DOUBLES
from sapwood.tree.layout import (
    CHANGE_RECORD,
    FACTS,
    FACTS_RECORD,
    FINER_THAN_GRIDS,
    LEAVES,
    MOST_UNIT_CHANGES,
    SAMPLE_ROWS,
    STREAM,
    TARGET_COST,
    TARGET_TRIAL,
    UNIT_DETECTION_RECORD,
    UNITS_RECORD,
    no_trial,
)

__all__ = ["LATER", "is_older", "layers_with_records", "upgraded"]

Array = NDArray[Any]

LATER = ("target_costs", "target_trial")
"""The arrays of a tree of several targets that files of ensembles may lack, too."""

WITHOUT_RANGES = 5
"""The last format of trees whose facts of columns have no ranges."""

RATES = (0.0, 0.02, 0.1, 0.3, 0.6, 0.9)
NEAREST = [int(np.argmin(np.abs(np.array(RATES) - rate))) for rate in LEVEL_RATES]
"""The track that is nearest to each level of this release."""


def is_older(arrays: dict[str, Array]) -> bool:
    """Return whether a file is older than the present tables of features."""
    return (
        "units" not in arrays
        or ("target_streams" in arrays and "target_costs" not in arrays)
        or _lack_ranges(arrays)
        or _lack_records(arrays.get("layer", np.zeros(0)), _targets(arrays))
    )


def upgraded(arrays: dict[str, Array], tracking: bool, features: int) -> dict[str, Array]:
    """Return the arrays of a tree as this release saves them; those of this release as they are.

    Parameters
    ----------
    arrays : dict
        Of a file.
    tracking : bool
        Whether the tree has an error-correction layer.
    features : int
        That it knows.
    """
    arrays = _with_layer(arrays, tracking)
    if _lack_ranges(arrays):
        facts = FACTS.upgraded(arrays["facts"])
        facts["low"], facts["high"] = -LARGEST, LARGEST
        arrays = arrays | {"facts": facts}
    if "layer" in arrays:
        arrays = arrays | {"layer": layers_with_records(arrays["layer"], _targets(arrays))}
    later = {
        "units": np.zeros(features + 1, UNITS_RECORD),
        "unrest": np.zeros(1, UNIT_DETECTION_RECORD),
        "changes": np.zeros(MOST_UNIT_CHANGES, CHANGE_RECORD),
    }
    if not later.keys() & arrays.keys():
        arrays = arrays | later
    if "target_streams" in arrays and "target_costs" not in arrays:
        costs = np.zeros(features * arrays["target_streams"].size, TARGET_COST)
        arrays = arrays | {"target_costs": costs}
    if "target_streams" in arrays and "target_trial" not in arrays:
        arrays = arrays | {"target_trial": np.zeros(arrays["target_streams"].size, TARGET_TRIAL)}
    later = _facts(arrays.get("watches"), features)
    return arrays | later if "watches" in arrays and not later.keys() & arrays.keys() else arrays


def layers_with_records(layers: Array, targets: int) -> Array:
    """Return the error-correction layers of so many targets, with records of y if they lack them.

    Both sides of the range are open at first, so that the model predicts as it did.
    """
    if not _lack_records(layers, targets):
        return layers
    start = next(start for name, start, _ in layer_parts() if name == RANGE_PARTS[0])
    own = dict.fromkeys(RANGE_PARTS, 0.0) | {"window": FIRST_WINDOW}
    rows = np.tile(np.array(list(own.values()), np.float64), (targets, 1))
    before = layers.reshape(targets, -1)
    return np.hstack([before[:, :start], rows, before[:, start:]]).reshape(-1)


def _lack_ranges(arrays: dict[str, Array]) -> bool:
    """Return whether the facts of columns lack ranges: linear models go on to extrapolate."""
    return "facts" in arrays and arrays["facts"].dtype == FACTS.of_format(WITHOUT_RANGES)


def _lack_records(layers: Array, targets: int) -> bool:
    """Return whether error-correction layers are of a release that did not count records."""
    old = targets * (LAYER_DOUBLES - len(RANGE_PARTS))
    return layers.dtype == np.float64 and layers.shape == (old,)


def _targets(arrays: dict[str, Array]) -> int:
    return int(arrays["target_streams"].size) if "target_streams" in arrays else 1


def _facts(watches: Array | None, features: int) -> dict[str, Array]:
    """Return what is known of columns whose values are not known: so they are on no grid."""
    facts = np.zeros(features, FACTS_RECORD)
    facts["decimals"] = FINER_THAN_GRIDS
    facts["low"], facts["high"] = -LARGEST, LARGEST
    width = watches.shape[-1] if watches is not None and watches.ndim == 2 else 0
    return {
        "facts": facts,
        "samples": np.full((SAMPLE_ROWS, features), np.nan),
        "trial": no_trial(),
        "trial_watches": np.zeros((0, width)),
    }


def _with_layer(arrays: dict[str, Array], tracking: bool) -> dict[str, Array]:
    """Return arrays with a corrector and pending predictions in place of tracks."""
    if "tracks" not in arrays or "stream" not in arrays:
        return arrays
    kept = {name: array for name, array in arrays.items() if name != "tracks"}
    tracks = doubles(arrays["tracks"], (6, len(RATES)), "the tracks")
    stream = doubles(arrays["stream"], (len(STREAM),), "the numbers of the stream")
    check(tuple(tracks[0]) == RATES, "the rates of tracks are wrong")
    layer = _layer(tracks, dict(zip(STREAM, stream, strict=True)))
    return kept | {
        "leaves": LEAVES.upgraded(arrays["leaves"]) if "leaves" in arrays else np.zeros(0),
        "layer": layer if tracking else np.zeros(0),
        "note_sizes": PendingPredictions(1, 16).state()[0] if tracking else np.zeros(0),
        "note_keys": np.zeros(0, np.uint64),
        "note_ages": np.zeros(0, np.int64),
        "notes": np.zeros((0, PENDING_DOUBLES if tracking else 0)),
    }


def _layer(tracks: Array, stream: dict[str, float]) -> Array:
    layer = fresh_layer()
    part = {name: layer[start : start + size] for name, start, size in layer_parts()}
    _, level, predicted, joint, square, error = tracks
    if stream["rows"] > 0:
        part["level"][:], part["predicted"][:] = level[NEAREST], predicted[NEAREST]
        part["slope"][:] = 1.0
        part["low"][:], part["high"][:] = stream["low"], stream["high"]
        part["first"][:] = stream["first"]
        part["known"][:] = level[-1], level[-1], predicted[-1]
        chosen = int(np.argmin(error))
        if chosen:  # level + slope (p - predicted), in the terms of the transfer model
            slope = joint[chosen] / square[chosen] if square[chosen] > 0 else 1.0
            part["known"][:] = level[chosen], level[chosen], predicted[chosen]
            part["coefficient"][[0, 2]] = 1.0, -min(max(slope, 0.0), 1.0)
            part["theta"][-1] = 1.0
    return layer
