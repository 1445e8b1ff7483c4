"""Run every check that sktime has for our forecaster, and print the result of each."""

import sys

from sktime.utils.estimator_checks import check_estimator

from sapwood.sktime import OnlineForecaster


def main() -> int:
    """Print a line for each check; return 1 if one failed."""
    failed = False
    for name, outcome in check_estimator(OnlineForecaster, verbose=False).items():
        print(f"{name}: {'ok' if outcome == 'PASSED' else repr(outcome)}")
        failed = failed or outcome != "PASSED"
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
