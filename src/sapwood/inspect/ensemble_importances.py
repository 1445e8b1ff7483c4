"""Permutation feature importance of an ensemble, from the rows that its trees keep as samples.

Permuting a column changes the predictions of all members at once. Where features are correlated,
members use different ones, and their changes partly cancel. The mean of the members' importances
contains their changes one by one, so it is no estimate of the importance for the ensemble.

The growth of the squared error is E[change²] + 2 E[change · error]. The second term is 0 in the
mean if errors are noise, so no labels are needed.
"""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from sapwood.ensemble._ensemble import EnsembleKernel
    from sapwood.rows.features import Features

__all__ = ["permutation_importances"]

FloatArray = NDArray[np.float64]

MOST_VALUES = 2**14  # rows that are predicted with another value, of all columns together
FEWEST_ROWS = 32
MOST_REPEATS = 4  # permutations of each column
MOST_SHARE = 1e250  # as more may be only where a variance is next to none


def permutation_importances(kernel: "EnsembleKernel", features: "Features") -> FloatArray:
    """Return the mean squared change of the prediction when each column is permuted.

    Of several targets, the mean of the squares as shares of each one's variance. A flag of missing
    values is permuted with its column, and has no importance of its own. All are 0 if nothing is
    known. The caller holds the lock of the kernel.
    """
    rows = _sample_rows(kernel)
    found = np.zeros(rows.shape[1])
    if not rows.size:
        return found
    flags = features.known.flags
    repeats = int(np.clip(MOST_VALUES // rows.size, 1, MOST_REPEATS))
    usual, rng = _combined_predictions(kernel, rows), np.random.default_rng(1)
    orders = [rng.permutation(len(rows)) for _ in range(repeats)]
    units = _variances(kernel)
    for column in range(rows.shape[1]):
        if column in flags:
            continue
        together = [column, *(flag for flag, owner in flags.items() if owner == column)]
        for order in orders:
            permuted = rows.copy()
            permuted[:, together] = rows[order][:, together]
            changes = _combined_predictions(kernel, permuted) - usual
            with np.errstate(over="ignore"):
                shares = np.mean(np.square(changes), axis=1) / units
            found[column] += np.minimum(shares, MOST_SHARE).mean()
    return found


def _sample_rows(kernel: "EnsembleKernel") -> FloatArray:
    """Return rows that trees have kept, fewer of many columns."""
    kept = [tree.columns.known_samples for tree in kernel.trees if tree.rows > 0]
    if not kept:
        return np.zeros((0, 0))
    rows = np.unique(np.vstack(kept), axis=0)
    most = max(FEWEST_ROWS, MOST_VALUES // max(1, rows.shape[1]))
    return rows[np.linspace(0, len(rows) - 1, most).astype(np.intp)] if len(rows) > most else rows


def _combined_predictions(kernel: "EnsembleKernel", rows: FloatArray) -> FloatArray:
    """Return what the ensemble predicts without error correction: an array of targets and rows."""
    members = np.empty((kernel.members, len(rows) * kernel.targets))
    for tree, predictions in zip(kernel.trees, members, strict=False):
        tree.predict(rows, predictions, asked=False)
    found = np.empty((kernel.targets, len(rows)))
    for target in range(kernel.targets):
        own = members[:, target :: kernel.targets]
        # A tree that has not learned the target predicts the mean of the others.
        has_seen = np.asarray(kernel.has_seen_target(target))[: kernel.members]
        if kernel.targets > 1 and has_seen.any():
            own = np.where(has_seen[:, None], own, own[has_seen].mean(axis=0))
        weights = np.asarray(kernel.weights(target))[: kernel.members]
        found[target] = np.clip(weights @ own, own.min(axis=0), own.max(axis=0))
    return found


def _variances(kernel: "EnsembleKernel") -> FloatArray:
    """Return the variance of each of several targets; infinite where it is not known."""
    if kernel.targets == 1:
        return np.ones(1)
    records = kernel.tables.record_table
    is_known = (records["m2"] > 0.0) & (records["weight"] > 0.0)
    weight = np.where(is_known, records["weight"], 1.0)
    return np.where(is_known, records["m2"] / weight, np.inf)
