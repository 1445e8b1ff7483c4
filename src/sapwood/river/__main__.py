"""Run every check that river has for an estimator, and tell how each went."""

import sys

from river.checks import yield_checks

from sapwood.river import HoeffdingTreeRegressor


def main() -> int:
    """Print a line for each check; return 1 if one failed."""
    model = HoeffdingTreeRegressor()
    failed = False
    for check in yield_checks(model):
        try:
            check(model.clone())
            outcome = "ok"
        except Exception as error:
            outcome = f"FAILED: {error!r}"
            failed = True
        print(f"{check.__name__}: {outcome}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
