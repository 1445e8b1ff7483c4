"""Run every check that river has for an estimator on our models, and tell how each went."""

import sys

from river.checks import yield_checks

from sapwood.river import AdaptiveTreeRegressor, ForestRegressor, HoeffdingTreeRegressor

MODELS = (HoeffdingTreeRegressor, AdaptiveTreeRegressor, ForestRegressor)


def main() -> int:
    """Print a line for each model and check; return 1 if one failed."""
    failed = False
    for kind in MODELS:
        model = kind()
        for check in yield_checks(model):
            try:
                check(model.clone())
                outcome = "ok"
            except Exception as error:
                outcome = f"FAILED: {error!r}"
                failed = True
            print(f"{kind.__name__}, {check.__name__}: {outcome}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
