"""What the pages of leaves of several targets have to be like: slot by slot, in plain Python."""

from sapwood.limits import FAR, NEAR, ROUNDING
from sapwood.tree._column_tables import GRID_DOUBLES
from sapwood.tree._tables import most_kept_rows

INEXACT = 1e-8


def naive_pages_are_good(watches, leaves, kinds, kernel, of_targets):
    """Whether what leaves watch of several targets is possible.

    Parameters
    ----------
    watches, leaves, kinds, kernel, of_targets
        As of `sapwood.tree.checking.pages.check_watches`.
    """
    return all(
        grid_is_good(page, feature, kinds, kernel)
        and feature_is_good(page, feature, leaf, own, kernel)
        for page, leaf, own in zip(watches, leaves, of_targets, strict=True)
        for feature in range(len(kinds[0]))
    )


def grid_is_good(page, feature, kinds, kernel):
    low, width, inverse, kept = page[GRID_DOUBLES * feature : GRID_DOUBLES * (feature + 1)]
    if kinds[0][feature]:
        return (low, width, inverse, kept) == (0, 1, 1, 0)
    if kinds[1][feature] and (low, width, inverse, kept) != (0, 0, 0, 0):
        return False
    most = most_kept_rows(kernel.slots)
    if not (0 <= kept <= most and kept == int(kept)):
        return False
    if inverse > 0:
        return width > 0 and inverse == 1 / width
    return inverse == 0 and width == 0 and kept < max(most, 1)


def feature_is_good(page, feature, leaf, own, kernel):
    start, end = kernel.slot_start(feature), kernel.slot_start(feature + 1)
    gap_start, gap_end = kernel.gap_start(feature), kernel.gap_start(feature + 1)
    targets = kernel.targets
    size = 1 + 2 * targets
    gaps = page[gap_start:gap_end].reshape(-1, targets)
    slots = page[start:end].reshape(len(gaps), size)
    _, _, inverse, kept = page[GRID_DOUBLES * feature : GRID_DOUBLES * (feature + 1)]
    if inverse > 0:
        whole = slots[:, 0].sum() <= ROUNDING * leaf["weight"] + 1e-300
        return whole and sums_are_good(slots, gaps, leaf, own)
    count = int(kept)
    rows = page[start : start + count * (size + 1)].reshape(count, size + 1)
    return (
        all(row[0] > 0 for row in rows)
        and sums_are_good(rows, gaps[:count], leaf, own)
        and sums_are_good(slots[-1:], gaps[-1:], leaf, own)
    )


def sums_are_good(slots, gaps, leaf, own):
    for target, record in enumerate(own):
        total = 0.0
        for slot, missing in zip(slots, gaps[:, target], strict=True):
            if not 0 <= missing <= ROUNDING * slot[0]:
                return False
            weight = max(slot[0] - missing, 0.1 * INEXACT * slot[0])
            y, residual = slot[1 + 2 * target], slot[2 + 2 * target]
            total += weight
            if abs(y + record["origin"] * weight) > NEAR * weight:
                return False
            if abs(residual) > FAR * weight or weight < 0:
                return False
        if total > ROUNDING * record["weight"] + INEXACT * leaf["weight"] + 1e-300:
            return False
    return True
