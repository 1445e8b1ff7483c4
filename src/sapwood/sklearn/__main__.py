"""Run every check that scikit-learn has for our estimators, and print the result of each."""

import os
import sys

import numpy as np
from sklearn.utils.estimator_checks import check_estimator

from sapwood.sklearn import (
    AdaptiveTreeClassifier,
    AdaptiveTreeRegressor,
    ForestClassifier,
    ForestRegressor,
    HoeffdingTreeClassifier,
    HoeffdingTreeRegressor,
    HybridRegressor,
    Lags,
)

MODELS = (
    HoeffdingTreeRegressor,
    AdaptiveTreeRegressor,
    ForestRegressor,
    HybridRegressor,
    HoeffdingTreeClassifier,
    AdaptiveTreeClassifier,
    ForestClassifier,
)

OF_ROWS = "a row's lags are those of the rows before it, so the order and the batch of rows matter"
OF_FIT = "the rows of transform follow those of fit, and are not the same rows once more"
OF_MODELS = {
    "check_sample_weight_equivalence_on_dense_data": (
        "an online learner depends on the order of its rows, which the check shuffles on one side "
        "only; and the errors by which it follows a stream fade by the row, not by the weight"
    ),
}
OF_LAGS = {
    "check_transformer_data_not_an_array": OF_FIT,
    "check_transformer_general": OF_FIT,
    "check_methods_sample_order_invariance": OF_ROWS,
    "check_methods_subset_invariance": OF_ROWS,
}


def main() -> int:
    """Print a line for each check; return 1 if one failed that should not have, or was skipped."""
    os.environ["SCIPY_ARRAY_API"] = "1"  # else the check of array API input is skipped
    np.random.seed(1)  # noqa: NPY002 - the checks draw from it, so that each run has the same results
    failed = False
    for estimator in (*(kind() for kind in MODELS), Lags()):
        name = type(estimator).__name__
        for result in check_estimator(
            estimator,
            expected_failed_checks=OF_LAGS if name == "Lags" else OF_MODELS,
            on_skip=None,
            on_fail=None,
        ):
            outcome = "ok"
            if result["status"] == "xfail":
                outcome = f"expected failure ({result['expected_to_fail_reason']})"
            elif result["status"] != "passed":
                outcome = f"{result['status'].upper()}: {result['exception']!r}"
                failed = True
            print(f"{name}, {result['check_name']}: {outcome}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
