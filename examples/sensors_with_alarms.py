"""Sensors that change: a model beside each, and an alarm when its errors are no longer the same.

Twenty pumps tell their temperature. A model of each predicts it from the load. One pump begins to
run hot: its errors change their mean, and a detector says so, since when, and from what to what.
The others stay silent.
"""

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

import sapwood
from sapwood.drift import ChangeDetector

PUMPS = 20
STEPS = 3_000
BROKEN, SINCE = "pump07", 2_000
LEARNED = 500
"""Steps after which the models have learned enough for their errors to tell something."""


def readings(seed: int = 5) -> Iterator[tuple[int, str, dict[str, float], float]]:
    """Yield rows of all pumps, step by step, with the temperature that was measured."""
    rng = np.random.default_rng(seed)
    usual = rng.normal(60.0, 5.0, PUMPS)
    for step in range(STEPS):
        load = 0.5 + 0.4 * np.sin(2 * np.pi * step / 96) + rng.normal(0.0, 0.05, PUMPS)
        for place in range(PUMPS):
            pump = f"pump{place:02d}"
            heat = 4.0 if pump == BROKEN and step >= SINCE else 0.0
            measured = usual[place] + 12.0 * load[place] + heat + rng.normal(0.0, 0.5)
            yield step, pump, {"load": float(load[place])}, float(measured)


def main() -> None:
    """Predict, watch the errors of each pump, learn, and tell what has changed."""
    # Without tracking of recent errors: what is to be noticed is not to be followed at once.
    models: dict[str, sapwood.HoeffdingTreeRegressor] = defaultdict(
        lambda: sapwood.HoeffdingTreeRegressor(track=None)
    )
    watched: dict[str, ChangeDetector] = defaultdict(lambda: ChangeDetector(once_in=1_000_000))
    alarms: set[str] = set()
    for step, pump, x, measured in readings():
        error = measured - models[pump].predict_one(x)
        if step >= LEARNED and watched[pump].update(error):
            alarms.add(pump)
            print(f"step {step}: the errors of {pump} have changed: {watched[pump].last}")
        models[pump].learn_one(x, measured)
    print(f"{BROKEN} ran hot from step {SINCE} on; alarms of others: {len(alarms - {BROKEN})}")


if __name__ == "__main__":
    main()
