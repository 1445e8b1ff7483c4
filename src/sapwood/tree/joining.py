"""What several leaves of a tree know, as what one leaf would know that had seen their rows.

Weights, means and squares add by the formulas of Chan, Golub and LeVeque, each leaf with the rows
that it has seen or inherited. Linear models are joined by their information: with L the inverse of
a leaf's covariance and b its coefficients, in units that all share,

    L = sum of L_i,    b = inverse of L times the sum of L_i b_i

That is the line which least squares would have found through the rows of all of them. The line of a
single leaf need not hold for the rows of others. As a split leaves each child a third of what was
known (see `become_less_sure` in _split.pyx), no row counts twice. The errors that experts recently
had in a leaf grow by the squared differences between the predictions of its models and of the
joined models, over its own rows: L_i yields these, too.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sapwood.limits import MOST_ERROR
from sapwood.records import Records
from sapwood.tree._kernel import TreeKernel
from sapwood.tree.checking.pages import check_models
from sapwood.tree.layout import ERRORS, SAID_ERRORS

__all__ = ["Joined", "joined_models", "joined_records", "mean_of", "shares_of"]

Array = NDArray[Any]
FloatArray = NDArray[np.float64]

RATES = 4  # linear models of a leaf
FADED_ROWS = 100.0  # the weight of exponentially weighted errors, in rows
# As a child does with those of its parent, a leaf trusts errors half that were not its own.
INHERITED_ERROR = 0.5
MOST_INHERITED = 10.0  # rows that the mean of a leaf counts for which has seen none
PRIOR = 1.0  # the variance of a coefficient of which nothing is known


# -- weights, means and errors --------------------------------------------------------------------


class Joined(NamedTuple):
    """What one leaf knows of a target in place of several."""

    leaf: dict[str, float]
    weight: float
    deviation: float


def shares_of(inherited: FloatArray, leaves: Records) -> FloatArray:
    """Return the share of each leaf in the rows of all of them."""
    for weight in (inherited + leaves["weight"], leaves["mean_weight"]):
        if weight.sum() > 0.0:
            return np.asarray(weight / weight.sum())
    return np.full(len(leaves), 1.0 / len(leaves))


def mean_of(shares: FloatArray, leaves: Records) -> float:
    """Return the mean of y over the rows of all leaves."""
    means = leaves["origin"] + leaves["mean"]
    return float(means[0] + shares @ (means - means[0]))


def joined_records(
    inherited: FloatArray, leaves: Records, row_weight: float, apart: FloatArray
) -> Joined:
    """Return what one leaf knows of a target; it begins to watch again.

    Parameters
    ----------
    inherited : array
        The weight that each leaf began with.
    leaves : structured array
        The records of the leaves: LEAF_RECORD or TARGET_LEAF.
    row_weight : float
        What a row weighs on average.
    apart : array, shape (leaves, RATES)
        By how much the linear models of each differ from those of all, in the mean of squares over
        its own rows.
    """
    weight = float((inherited + leaves["weight"]).sum())
    shares = shares_of(inherited, leaves)
    mean = mean_of(shares, leaves)
    beyond = np.square(leaves["origin"] + leaves["mean"] - mean)
    with np.errstate(invalid="ignore"):
        variance = np.where(leaves["weight"] > 0, leaves["target_m2"] / leaves["weight"], 0.0)
    found = {
        "rows": float(leaves["rows"].sum()),
        "origin": mean,
        "mean_weight": min(float(leaves["mean_weight"].sum()), max(weight, MOST_INHERITED)),
    }
    more = np.column_stack([beyond, apart]) * (FADED_ROWS * row_weight)
    for names in (ERRORS, SAID_ERRORS):
        for place, name in enumerate(names):
            error = INHERITED_ERROR * float(shares @ (leaves[name] + more[:, place]))
            found[name] = min(error, MOST_ERROR)
    return Joined(found, weight, float(np.sqrt(shares @ (variance + beyond))))


# -- linear models --------------------------------------------------------------------------------


class Models(NamedTuple):
    """The linear models of several leaves that share centres, scales and covariance.

    Attributes
    ----------
    centres, scales : arrays, shape (leaves, features)
        By which each leaf standardises; one over the scale, 0 while it is not known.
    covariance : array, shape (leaves, terms, terms), or (leaves, terms) of a diagonal
        Of the coefficients.
    coefficients : array, shape (targets, leaves, terms, RATES)
        From the origin of all leaves.
    """

    centres: FloatArray
    scales: FloatArray
    covariance: FloatArray
    coefficients: FloatArray


def joined_models(
    pages: FloatArray, kernel: TreeKernel, origins: FloatArray, shares: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the model page of one leaf in place of several, and how far these are apart from it.

    Parameters
    ----------
    pages : array, shape (leaves, doubles)
        Of the leaves.
    kernel : TreeKernel
        That knows their layout.
    origins : array, shape (targets, leaves)
        What the y of each leaf are measured from, less that of the one leaf.
    shares : array, shape (targets, leaves)
        Of each leaf in the rows of all.

    Returns
    -------
    page : array
        If the models cannot be joined in doubles, those of the leaf with the most rows.
    apart : array, shape (targets, leaves, RATES)
        Mean squared differences, over the rows of each leaf, between the predictions of its models
        and of those of the page.
    """
    apart = np.zeros((len(origins), len(pages), RATES))
    if not kernel.linear:
        return pages[0], apart
    page = np.zeros(pages.shape[1])
    for targets in _sharing(kernel):
        models = _read(pages, kernel, targets, origins)
        with np.errstate(all="ignore"):
            centres, scales = _common_scales(models, shares[targets[0]])
            if models.covariance.ndim == 3:
                covariance, coefficients, far = _joined(models, centres, scales)
            else:
                covariance, coefficients, far = _joined_diagonals(models, centres, scales)
        _write(page, kernel, targets, Models(centres, scales, covariance, coefficients))
        apart[targets] = far
    try:
        check_models(page[None], kernel)
        if np.isfinite(apart).all():
            return page, apart
    except ValueError:
        pass
    return _heaviest(pages, kernel, origins, shares), np.zeros_like(apart)


def _sharing(kernel: TreeKernel) -> list[list[int]]:
    """Return the targets that share centres, scales and a covariance."""
    places = [kernel.model_place(target)[1] for target in range(kernel.targets)]
    return [
        [target for target in range(kernel.targets) if places[target] == place]
        for place in sorted({*places})
    ]


def _read(pages: FloatArray, kernel: TreeKernel, targets: list[int], origins: FloatArray) -> Models:
    centres, scales, covariance, terms = kernel.page_parts()
    known = kernel.features + 1
    rest = kernel.model_place(targets[0])[1]
    own = pages[:, rest : rest + kernel.page_size]
    matrix = own[:, covariance:]
    if matrix.shape[1] != terms:
        matrix = matrix.reshape(len(pages), terms, terms)[:, :known]
    coefficients = np.empty((len(targets), len(pages), known, RATES))
    for place, target in enumerate(targets):
        start = kernel.model_place(target)[0]
        block = pages[:, start : start + RATES * known].reshape(len(pages), known, RATES)
        coefficients[place] = block
        coefficients[place, :, 0] += origins[target][:, None]
    return Models(
        own[:, centres:scales], own[:, scales:covariance], matrix[..., :known], coefficients
    )


def _write(page: FloatArray, kernel: TreeKernel, targets: list[int], models: Models) -> None:
    centres, scales, covariance, terms = kernel.page_parts()
    known = kernel.features + 1
    rest = kernel.model_place(targets[0])[1]
    own = page[rest : rest + kernel.page_size]
    own[centres:scales], own[scales:covariance] = models.centres, models.scales
    if models.covariance.ndim == 2:
        matrix = PRIOR * np.eye(terms)
        matrix[:known, :known] = models.covariance
        own[covariance:] = matrix.reshape(-1)
    else:
        own[covariance:] = PRIOR
        own[covariance : covariance + known] = models.covariance
    for place, target in enumerate(targets):
        start = kernel.model_place(target)[0]
        page[start : start + RATES * known] = models.coefficients[place].reshape(-1)


def _common_scales(models: Models, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the centre of each feature over all leaves, and one over its deviation."""
    weights = np.where(models.scales > 0, shares[:, None], 0.0)
    total = weights.sum(axis=0)
    weights = weights / np.where(total > 0, total, 1.0)
    centres = (weights * models.centres).sum(axis=0)
    within = np.where(models.scales > 0, 1.0 / np.where(models.scales > 0, models.scales, 1.0), 0.0)
    distances = np.hypot(within, models.centres - centres)
    largest = np.where(total > 0, distances.max(axis=0), 1.0)  # so that squares are doubles
    deviations = largest * np.sqrt((weights * (distances / largest) ** 2).sum(axis=0))
    return centres, np.where(total > 0, 1.0 / np.where(total > 0, deviations, 1.0), 0.0)


def _joined(
    models: Models, centres: FloatArray, scales: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return covariance and coefficients of all leaves, and how far each is apart from them."""
    information, moved = [], []
    for leaf in range(len(models.centres)):
        # The terms that all share are `units` times those of the leaf.
        units = np.zeros((len(centres) + 1, len(centres) + 1))
        ratio, shift = _units(models, leaf, centres, scales)
        units[0, 0], units[1:, 0] = 1.0, shift
        units[range(1, len(units)), range(1, len(units))] = ratio
        information.append(units @ _inverse(models.covariance[leaf]) @ units.T)
        moved.append(_moved(models.coefficients[:, leaf], ratio, shift))
    total = np.sum(information, axis=0)
    unknown = 1 + np.flatnonzero(scales == 0)
    total[unknown, unknown] = 1.0 / PRIOR
    covariance = _inverse(total)
    coefficients = covariance @ np.sum(
        [own @ each for own, each in zip(information, moved, strict=True)], axis=0
    )
    apart = np.empty((len(coefficients), len(moved), RATES))
    for leaf, (own, each) in enumerate(zip(information, moved, strict=True)):
        beyond = each - coefficients
        squares = (beyond * (own @ beyond)).sum(axis=1)
        apart[:, leaf] = np.maximum(squares, 0.0) / own[0, 0]
    return covariance, coefficients, apart


def _inverse(matrix: FloatArray) -> FloatArray:
    """Return the inverse of a positive definite matrix, symmetric; NaN if it has none."""
    deviations = np.sqrt(matrix.diagonal())
    try:
        inverse = np.linalg.inv(matrix / np.outer(deviations, deviations))
    except np.linalg.LinAlgError:
        return np.full(matrix.shape, np.nan)
    inverse /= np.outer(deviations, deviations)
    return np.asarray((inverse + inverse.T) / 2)


def _joined_diagonals(
    models: Models, centres: FloatArray, scales: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """As `_joined`, where there are so many terms that only variances are known."""
    information, moved = 1.0 / models.covariance, models.coefficients.copy()
    for leaf in range(len(models.centres)):
        ratio, shift = _units(models, leaf, centres, scales)
        information[leaf, 1:] = information[leaf, 1:] * ratio**2 + information[leaf, 0] * shift**2
        moved[:, leaf] = _moved(models.coefficients[:, leaf], ratio, shift)
    total = information.sum(axis=0)
    total[1 + np.flatnonzero(scales == 0)] = 1.0 / PRIOR
    coefficients = (information[:, :, None] * moved).sum(axis=1) / total[:, None]
    squares = information[:, :, None] * (moved - coefficients[:, None]) ** 2
    return 1.0 / total, coefficients, squares.sum(axis=2) / information[:, :1]


def _units(
    models: Models, leaf: int, centres: FloatArray, scales: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return factor and shift that make terms of features in a leaf those that all share.

    Both are 0 where the leaf does not know the scale, nor therefore the feature.
    """
    own = models.scales[leaf]
    ratio = np.where(own > 0, scales / np.where(own > 0, own, 1.0), 0.0)
    return ratio, np.where(own > 0, (models.centres[leaf] - centres) * scales, 0.0)


def _moved(coefficients: FloatArray, ratio: FloatArray, shift: FloatArray) -> FloatArray:
    """Return coefficients of a leaf in the terms that all share: of the same function."""
    found = coefficients.copy()
    slopes = np.where(ratio > 0, 1.0 / np.where(ratio > 0, ratio, 1.0), 0.0)[:, None]
    found[:, 1:] *= slopes
    found[:, 0] -= (found[:, 1:] * shift[:, None]).sum(axis=1)
    return found


def _heaviest(
    pages: FloatArray, kernel: TreeKernel, origins: FloatArray, shares: FloatArray
) -> FloatArray:
    """Return the page of the leaf with the most rows, its constants from the origin of all."""
    leaf = int(shares.sum(axis=0).argmax())
    page: FloatArray = pages[leaf].copy()
    for target in range(kernel.targets):
        start = kernel.model_place(target)[0]
        page[start : start + RATES] += origins[target, leaf]
    return page
