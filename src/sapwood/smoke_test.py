"""Check an installed package in a second: ``python -m sapwood.smoke_test``.

It needs NumPy alone and no compiler. It learns an embedded stream, compares the error with what is
expected, and saves and loads the model.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

import sapwood
from sapwood.evaluate import prequential
from sapwood.streams import friedman

ROWS = 5_000
LEAST_R2 = 0.8


def main() -> int:
    """Return 0 if the package works, 1 after printing what does not."""
    rows = np.random.default_rng(0).random((100, 10))
    for kind in (
        sapwood.HoeffdingTreeRegressor,
        sapwood.AdaptiveTreeRegressor,
        sapwood.ForestRegressor,
    ):
        model = kind()
        result = prequential(model, friedman(rows=ROWS, seed=1))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "model.sapwood")
            model.save(path)
            loaded = sapwood.load(path)
        same = np.array_equal(model.predict_many(rows), loaded.predict_many(rows))
        if not (result.total.r2 > LEAST_R2 and same):
            print(f"{kind.__name__}: R² {result.total.r2:.3f}, same after loading: {same}")
            return 1
        print(f"{kind.__name__}: R² {result.total.r2:.3f}")
    print(f"sapwood {sapwood.__version__} works")
    return 0


if __name__ == "__main__":
    sys.exit(main())
