"""How large the numbers of models can be that rows which passed the door have made.

The door lets no y beyond 1e100 in, and weights add up to 1e50 at the most. Means and predictions
stay as NEAR to 0; targets and residuals, which are differences of them, within FAR; and so nothing
comes close to the largest double, squared and weighted.
"""

__all__ = ["FAR", "MOST_ERROR", "MOST_ROWS", "MOST_WEIGHT", "NEAR", "ROUNDING", "SQUARE"]

MOST_WEIGHT, NEAR, FAR, SQUARE = 1e50, 4e100, 1e102, 1e205
MOST_ROWS = 2.0**53
ROUNDING = 1.001  # what it may add to a sum of weights
MOST_ERROR = ROUNDING * MOST_WEIGHT * SQUARE  # of faded sums of squared errors
