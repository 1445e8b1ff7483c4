"""A reference implementation of merging: leaf by leaf, with inverse matrices and sums of all."""

import numpy as np

from sapwood.tree.layout import ERRORS, SAID_ERRORS

FADE = 0.99
RATES = 4


class Leaf:
    """What a leaf knows, of a tree that does not grow."""

    def __init__(self, tree, number):
        kernel = tree._kernel
        self.record = kernel.leaf_table[number].copy()
        self.features = kernel.features
        self.watch = kernel.watch_page(number)
        self.linear = kernel.linear
        if not self.linear:
            return
        page = kernel.model_page(number)
        _, _, covariance, terms = kernel.page_parts()
        known = self.features + 1
        self.coefficients = page[: RATES * terms].reshape(terms, RATES)[:known]
        rest = page[covariance:]
        if len(rest) == terms:
            self.covariance = np.diag(rest[:known])
        else:
            self.covariance = rest.reshape(terms, terms)[:known, :known]


def merged_moments(parts):
    """Weight, mean and M2 of parts, by their sums of y and of squares from the first mean."""
    weight = sum(w for w, _, _ in parts)
    pivot = parts[0][1]
    total = sum(w * (mean - pivot) for w, mean, _ in parts)
    squares = sum(m2 + w * (mean - pivot) ** 2 for w, mean, m2 in parts)
    mean = total / weight if weight else 0.0
    return weight, pivot + mean, squares - weight * mean**2


def merged_leaf(base, started, shards):
    """What a leaf is to become.

    Parameters
    ----------
    base : Leaf
        Of the tree itself.
    started : list of float
        How many rows each shard took the leaf to have learned when it began.
    shards : list of Leaf
        The leaf after each shard.
    """
    pairs = [
        (shard.record["rows"] - start, shard)
        for start, shard in zip(started, shards, strict=True)
        if shard.record["rows"] > start
    ]
    if not pairs:
        return None
    rows = sum(count for count, _ in pairs)
    found = {"rows": base.record["rows"] + rows}
    for name in ("target", "residual"):
        fields = ("weight", f"{name}_mean", f"{name}_m2")
        parts = [tuple(each.record[field] for field in fields) for _, each in pairs]
        parts.insert(0, tuple(base.record[field] for field in fields))
        found["weight"], found[f"{name}_mean"], found[f"{name}_m2"] = merged_moments(parts)
    sums = sum(each.record["weight"] * each.record["target_mean"] for _, each in pairs)
    found["mean_weight"] = base.record["mean_weight"] + found["weight"] - base.record["weight"]
    before = base.record["mean"] * base.record["mean_weight"]
    found["mean"] = (before + sums) / found["mean_weight"]
    for name in (*ERRORS, *SAID_ERRORS):
        own = sum(each.record[name] - FADE**count * base.record[name] for count, each in pairs)
        mass = sum(1 - FADE**count for count, _ in pairs)
        found[name] = FADE**rows * base.record[name] + (1 - FADE**rows) * own / mass
    if base.linear:
        found["coefficients"], found["covariance"] = merged_models(base, pairs, rows)
    return found


def merged_models(base, pairs, rows):
    before = np.linalg.inv(base.covariance)
    information, gradient = before.copy(), 0.0
    moves = np.zeros_like(base.coefficients)
    for count, shard in pairs:
        own = np.linalg.inv(shard.covariance)
        information += own - before
        gradient = gradient + own @ (shard.coefficients[:, 0] - base.coefficients[:, 0])
        moves += count * (shard.coefficients - base.coefficients)
    covariance = np.linalg.inv(information)
    coefficients = base.coefficients + moves / rows
    coefficients[:, 0] = base.coefficients[:, 0] + covariance @ gradient
    return coefficients, covariance
