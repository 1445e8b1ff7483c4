"""Splits on trial and round cuts once more, slow and obvious; parts of `naive_tree`."""

TRIAL_LEFT, TRIAL_SHARE, TRIAL_EVIDENCE, TRIAL_CLEARER, TRIAL_PAUSE = 0.1, 0.1, 25.0, 2.0, 4.0
COARSEST, FINEST = -3, 4  # decimals of grids that values may be on


def multiple(k, decimals):
    """The k-th multiple of 10 ** -decimals, as the nearest double."""
    return k / 10**decimals if decimals >= 0 else float(k * 10**-decimals)


def decimals_of(x, least):
    """The decimals of a number, none fewer than so many; None if it has more than are looked at."""
    for decimals in range(least, FINEST + 1):
        near = round(x * 10.0**decimals)
        if any(multiple(k, decimals) == x for k in (near - 1, near, near + 1)):
            return decimals
    return None


def round_cut(threshold, decimals):
    """The first multiple that is not below a threshold."""
    if decimals is None:
        return threshold
    k = int(threshold * 10.0**decimals) - 2
    while multiple(k, decimals) < threshold:
        k += 1
    return multiple(k, decimals)


class Side:
    """One side of a split on trial: what it watches, and the moments of its residual."""

    def __init__(self, watches, residual):
        self.watches, self.residual = watches, residual

    def add(self, row, residual, w):
        self.residual.add(residual, w)
        for name, watch in self.watches.items():
            if row[name] is not None:
                watch.add(row[name], w, residual, 0.0)


class Trial:
    """A leaf, the feature of its trial split, and the statistics of both sides.

    `goes_left` maps a place (a slot or a code) to whether its rows go left; `codes` are those that
    were seen, if the feature is a category.
    """

    def __init__(self, leaf, feature, goes_left, missing_left, ends, sides):  # noqa: PLR0917
        self.leaf, self.feature, self.goes_left = leaf, feature, goes_left
        self.missing_left, self.ends, self.sides = missing_left, ends, sides

    @property
    def merit(self):
        """By how much it lowers the variance of the residual itself."""
        left, right = (side.residual for side in self.sides)
        shares = left.weight * right.weight / (left.weight + right.weight) ** 2
        return shares * (left.mean - right.mean) ** 2

    def add(self, row, residual, w):
        value = row[self.feature]
        left = self.missing_left if value is None else self.goes_left(value)
        self.sides[not left].add(row, residual, w)
