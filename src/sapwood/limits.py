"""The largest numbers that a model can hold after rows that passed validation.

Validation rejects any y beyond 1e100, and weights add up to at most 1e50. Means and predictions stay
within NEAR; targets and residuals, which are differences of them, stay within FAR. So no weighted
square comes close to the largest double.
"""

__all__ = ["FAR", "MOST_ERROR", "MOST_ROWS", "MOST_WEIGHT", "NEAR", "ROUNDING", "SQUARE"]

MOST_WEIGHT, NEAR, FAR, SQUARE = 1e50, 4e100, 1e102, 1e205
MOST_ROWS = 2.0**53
ROUNDING = 1.001  # what it may add to a sum of weights
MOST_ERROR = ROUNDING * MOST_WEIGHT * SQUARE  # of exponentially weighted sums of squared errors
