"""Keep a LightGBM model that is in use already, and keep it fresh.

A model was fitted on last month's rows. Then the world changes: other features matter. Alone the
model goes stale. In a hybrid it is corrected online: an online model has its prediction as a
feature, another one has not, and weights that follow the errors decide who predicts. The hybrid
reports when the model went stale, and by how much the correction helps. It is saved without pickle.

    python examples/keep_your_lightgbm.py            # a generated stream
    python examples/keep_your_lightgbm.py --rows 20000

It needs LightGBM: pip install 'sapwood[hybrid]'.
"""

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import sapwood
from sapwood import HybridRegressor

NAMES = [f"x{place}" for place in range(10)]


def main() -> None:
    """Fit a model, let it meet a drift, and compare."""
    parser = argparse.ArgumentParser(description="Keep a LightGBM model fresh.")
    parser.add_argument("--rows", type=int, default=4_000, help="rows after the model was fitted")
    options = parser.parse_args()
    model = fitted_last_month(rows=3_000)
    rows, y = stream(options.rows, seed=2, drift=options.rows // 2)

    hybrid = HybridRegressor(batch=model, refit=None)
    alone = model.predict(np.array([list(x.values()) for x in rows]), num_threads=1)
    corrected = np.empty(len(y))
    for place, (x, label) in enumerate(zip(rows, y.tolist(), strict=True)):
        corrected[place] = hybrid.predict_one(x)
        hybrid.learn_one(x, label)

    half = len(y) // 2
    for name, part in (("before the drift", slice(0, half)), ("after it", slice(half, None))):
        errors = [float(np.sqrt(np.mean((p - y)[part] ** 2))) for p in (alone, corrected)]
        print(f"RMSE {name}: the model alone {errors[0]:.2f}, corrected {errors[1]:.2f}")
    found = hybrid.staleness
    print(f"weight of the model: {found['best_batch_weight']:.2f} at best, now", end=" ")
    print(f"{found['batch_weight']:.2f}")
    print(f"the correction avoids {found['correction_gain']:.0%} of its squared error")
    for event in found["drift_events"][:1]:
        print(f"drift event at row {event['row']:,}: mean error", end=" ")
        print(f"{event['before']:.2f} → {event['after']:.2f}")

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "hybrid.sapwood")
        hybrid.save(path)
        again = sapwood.load(path)
    same = again.predict_one(rows[0]) == hybrid.predict_one(rows[0])
    print(f"saved without pickle, and loaded: {'the same' if same else 'another'} prediction")


def fitted_last_month(rows: int) -> Any:
    """Return the model that is in use; yours comes from a file, as by Booster(model_file=...)."""
    import lightgbm

    history, y = stream(rows, seed=1)
    X = np.array([list(x.values()) for x in history])
    own = {"verbose": -1, "num_threads": 1}
    return lightgbm.train(own, lightgbm.Dataset(X, y, params=own, feature_name=NAMES), 100)


def stream(rows: int, seed: int, drift: int | None = None) -> tuple[list[dict[str, float]], Any]:
    """Return rows of Friedman's function; from a row on, other features matter."""
    rng = np.random.default_rng(seed)
    X = rng.random((rows, 10))
    Z = X.copy()
    if drift is not None:
        Z[drift:] = X[drift:, ::-1]
    y = 10 * np.sin(np.pi * Z[:, 0] * Z[:, 1]) + 20 * (Z[:, 2] - 0.5) ** 2 + 10 * Z[:, 3]
    y += 5 * Z[:, 4] + rng.normal(size=rows)
    return [dict(zip(NAMES, row, strict=True)) for row in X.tolist()], y


if __name__ == "__main__":
    main()
