"""A stream of counts, for models of one target."""

from typing import Any

import numpy as np


def counts(rows: int = 1_500, seed: int = 0) -> tuple[dict[str, Any], Any]:
    """Return two columns of numbers, and counts that depend on them."""
    rng = np.random.default_rng(seed)
    X = {"a": rng.random(rows), "b": rng.random(rows)}
    return X, rng.poisson(np.exp(2.0 * X["a"] + (X["b"] > 0.5))).astype(float)
