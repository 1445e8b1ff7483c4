"""Run every check that river has for our estimators, and print the result of each."""

import sys

from river.checks import yield_checks

from sapwood import river

OTHERS = ("HybridRegressor", "Lags", "ModelRegressor")
"""What needs arguments."""
MODELS = [
    getattr(river, name)
    for name in river.__all__
    if name not in OTHERS and not name.endswith("Splitter")
]


def main() -> int:
    """Print a line for each model and check; return 1 if one failed."""
    failed = False
    for model in (*(kind() for kind in MODELS), river.Lags([1, 3], means=[5])):
        for check in yield_checks(model):
            try:
                check(model.clone())
                outcome = "ok"
            except Exception as error:
                outcome = f"FAILED: {error!r}"
                failed = True
            print(f"{type(model).__name__}, {check.__name__}: {outcome}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
