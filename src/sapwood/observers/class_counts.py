"""Observers of classes: what VFDT's leaves watch a feature with, and where they would split it.

Each observer keeps the weight of rows of every class, by parts of the feature: by its values, by
bins, by slots of a radius, or as a normal distribution of each class. A split is rated by the
reduction of the Gini impurity, or by the information gain.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sapwood import validation
from sapwood.observers._merit import middles
from sapwood.observers._slots import slot_keys, upper_borders

__all__ = [
    "ClassObserver",
    "ClassSplit",
    "Criterion",
    "ExhaustiveClassObserver",
    "GaussianClassObserver",
    "HistogramClassObserver",
    "QuantizerClassObserver",
    "split_merits",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Criterion = Literal["gini", "information_gain"]

MOST_CLASSES = 1000


class ClassSplit(NamedTuple):
    """A split of a feature: rows with ``x < threshold`` go left, the others right.

    Attributes
    ----------
    threshold : float
        Where the feature is split.
    merit : float
        The reduction of the impurity: of Gini's, or the information gain in bits.
    left, right : array of float
        The weight of each class on either side.
    """

    threshold: float
    merit: float
    left: FloatArray
    right: FloatArray


def split_merits(left: FloatArray, right: FloatArray, criterion: Criterion) -> FloatArray:
    """Return the reduction of impurity of some splits.

    Parameters
    ----------
    left, right : array of float, shape (splits, classes)
        The weight of each class on either side.
    criterion : {"gini", "information_gain"}
        The impurity: Gini's, or the entropy in bits.

    Examples
    --------
    >>> split_merits(np.array([[5.0, 0.0]]), np.array([[0.0, 5.0]]), "gini")
    array([0.5])
    >>> split_merits(np.array([[5.0, 0.0]]), np.array([[0.0, 5.0]]), "information_gain")
    array([1.])
    """
    if criterion not in ("gini", "information_gain"):
        raise ValueError(f"criterion = {criterion!r}: 'gini' or 'information_gain' is expected")
    impurity: Callable[[FloatArray], FloatArray] = _gini if criterion == "gini" else _entropy
    sides = left.sum(axis=1), right.sum(axis=1)
    total = sides[0] + sides[1]
    after = sides[0] * impurity(left) + sides[1] * impurity(right)
    found: FloatArray = np.subtract(impurity(left + right), after / total)
    return found


def _shares(counts: FloatArray) -> FloatArray:
    totals = counts.sum(axis=1, keepdims=True)
    found: FloatArray = np.divide(counts, totals, out=np.zeros_like(counts), where=totals > 0)
    return found


def _gini(counts: FloatArray) -> FloatArray:
    found: FloatArray = 1.0 - (_shares(counts) ** 2).sum(axis=1)
    return found


def _entropy(counts: FloatArray) -> FloatArray:
    shares = _shares(counts)
    logs = np.log2(shares, out=np.zeros_like(shares), where=shares > 0)
    found: FloatArray = -(shares * logs).sum(axis=1)
    return found


class ClassObserver(ABC):
    """Summarises one feature and the class, and proposes split points.

    Classes are numbers from 0 on. Rows without a value of the feature (NaN) are left out.
    """

    def __init__(self) -> None:
        self.total: FloatArray = np.zeros(0)  # the weight of each class

    def update(self, x: float, code: int, w: float = 1.0) -> None:
        """Add one row.

        Parameters
        ----------
        x : float
            The value of the feature.
        code : int
            The class.
        w : float
            The weight.
        """
        self.update_many([x], [code], [w])

    def update_many(self, x: ArrayLike, codes: ArrayLike, w: ArrayLike | None = None) -> None:
        """Add many rows: equals `update` in a loop.

        Parameters
        ----------
        x, codes, w
            A value for each row, as for `update`.
        """
        values = np.asarray(validation.column(x, "x"))
        given = np.asarray(codes)
        if given.shape != values.shape or given.dtype.kind not in "iu":
            raise ValueError(
                f"codes have shape {given.shape} and kind {given.dtype}: a whole number is expected "
                f"for each of the {len(values)} values of x"
            )
        own = given.astype(np.int64)
        if len(own) and not 0 <= own.min() <= own.max() < MOST_CLASSES:
            raise ValueError(f"codes are from {own.min()} to {own.max()}: 0 to 999 are expected")
        weights = validation.weights(w, len(values))
        if not bool(((weights > 0) & (weights < np.inf)).all()):
            raise ValueError("a weight in w is not a positive and finite number: leave the row out")
        known = np.isfinite(values)
        if not known.any():
            return
        values, own, weights = values[known], own[known], weights[known]
        if own.max() >= len(self.total):
            more = int(own.max()) + 1 - len(self.total)
            self.total = np.pad(self.total, (0, more))
            self._widen(more)
        self._add(values, own, weights)
        self.total = self.total + np.bincount(own, weights, minlength=len(self.total))

    def candidates(self, criterion: Criterion = "gini") -> tuple[FloatArray, FloatArray]:
        """Return the thresholds of all splits, ascending, and their merits.

        Parameters
        ----------
        criterion : {"gini", "information_gain"}
            The impurity that splits reduce.
        """
        thresholds, left = self._splits()
        return thresholds, split_merits(left, np.maximum(self.total - left, 0.0), criterion)

    def best_split(
        self, criterion: Criterion = "gini", min_share: float = 0.0
    ) -> ClassSplit | None:
        """Return the split of the largest merit, or None if there is nothing to split.

        Parameters
        ----------
        criterion : {"gini", "information_gain"}
            The impurity that splits reduce.
        min_share : float
            The share of rows that either side has to have, at least.
        """
        thresholds, left = self._splits()
        right = np.maximum(self.total - left, 0.0)
        least = min_share * self.total.sum()
        good = (left.sum(axis=1) > least) & (right.sum(axis=1) > least)
        if not good.any():
            return None
        merits = np.where(good, split_merits(left, right, criterion), -np.inf)
        best = int(merits.argmax())
        return ClassSplit(float(thresholds[best]), float(merits[best]), left[best], right[best])

    @abstractmethod
    def _add(self, x: FloatArray, codes: IntArray, w: FloatArray) -> None: ...

    @abstractmethod
    def _widen(self, more: int) -> None: ...

    @abstractmethod
    def _splits(self) -> tuple[FloatArray, FloatArray]:
        """Return thresholds, and the weight of each class left of them."""

    @abstractmethod
    def __len__(self) -> int: ...

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes of the numbers that are kept."""


class _Table(ClassObserver):
    """Parts of the feature, ascending by a key, and the weight of each class in them."""

    def __init__(self) -> None:
        super().__init__()
        self._keys: NDArray[Any] = np.zeros(0)
        self._counts: FloatArray = np.zeros((0, 0))

    def _widen(self, more: int) -> None:
        self._counts = np.pad(self._counts, ((0, 0), (0, more)))

    def _add_keys(self, keys: NDArray[Any], codes: IntArray, w: FloatArray) -> None:
        known = np.union1d(self._keys, keys)
        if len(known) > len(self._keys):
            counts = np.zeros((len(known), self._counts.shape[1]))
            counts[np.searchsorted(known, self._keys)] = self._counts
            self._keys, self._counts = known, counts
        np.add.at(self._counts, (np.searchsorted(known, keys), codes), w)

    def merge(self, other: Self) -> None:
        """Become what watching both streams would have made.

        Parameters
        ----------
        other : observer of the same kind and settings
            It stays as it is.
        """
        wide = max(len(self.total), len(other.total))
        rows, codes = np.nonzero(other._counts)
        self._widen(wide - len(self.total))
        self.total = np.pad(self.total, (0, wide - len(self.total)))
        self._add_keys(other._keys[rows], codes, other._counts[rows, codes])
        self.total[: len(other.total)] += other.total

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def nbytes(self) -> int:
        """Bytes of the numbers that are kept."""
        return self._keys.nbytes + self._counts.nbytes + self.total.nbytes


class ExhaustiveClassObserver(_Table):
    """Stores each value of the feature: finds the best split, without a limit of memory.

    Examples
    --------
    >>> observer = ExhaustiveClassObserver()
    >>> observer.update_many([1, 2, 3, 4], [0, 0, 1, 1])
    >>> observer.best_split().threshold
    2.5
    """

    def _add(self, x: FloatArray, codes: IntArray, w: FloatArray) -> None:
        self._add_keys(x, codes, w)

    def _splits(self) -> tuple[FloatArray, FloatArray]:
        return middles(self._keys), np.cumsum(self._counts, axis=0)[:-1]


class QuantizerClassObserver(_Table):
    """The Quantizer Observer with class weights: slots of a fixed radius.

    Parameters
    ----------
    radius : float
        Width of a slot: x falls into slot ``floor(x / radius)``. Splits are at borders of slots.

    References
    ----------
    S. M. Mastelini and A. C. P. L. F. de Carvalho, "Using dynamical quantization to perform
    split attempts in online tree regressors", Pattern Recognition Letters 145, 2021.

    Examples
    --------
    >>> observer = QuantizerClassObserver(radius=0.5)
    >>> observer.update_many([1.1, 1.3, 2.6, 3.4], [0, 0, 1, 1])
    >>> observer.best_split().threshold, len(observer)
    (1.5, 3)
    """

    def __init__(self, radius: float = 0.25) -> None:
        super().__init__()
        self.radius = validation.positive(radius, "radius")

    def _add(self, x: FloatArray, codes: IntArray, w: FloatArray) -> None:
        self._add_keys(slot_keys(x, self.radius), codes, w)

    def _splits(self) -> tuple[FloatArray, FloatArray]:
        borders: FloatArray = upper_borders(self._keys[:-1], self.radius)
        return borders, np.cumsum(self._counts, axis=0)[:-1]


class HistogramClassObserver(_Table):
    """Stores class weights in bins that start at the first distinct values, as VFML.

    Parameters
    ----------
    bins : int
        How many; later rows fall into the bin whose beginning is next below them.

    Examples
    --------
    >>> observer = HistogramClassObserver(bins=2)
    >>> observer.update_many([1, 4, 3, 6], [0, 1, 0, 1])
    >>> observer.best_split().threshold, len(observer)
    (4.0, 2)
    """

    def __init__(self, bins: int = 64) -> None:
        super().__init__()
        self.bins = validation.whole(bins, "bins", 2, 2**20)

    def _add(self, x: FloatArray, codes: IntArray, w: FloatArray) -> None:
        start = 0
        while start < len(x) and len(self._keys) < self.bins:
            fresh = x[start : start + self.bins - len(self._keys)]
            end = start + len(fresh)
            self._add_keys(fresh, codes[start:end], w[start:end])
            start = end
        places = np.searchsorted(self._keys, x[start:], side="right") - 1
        np.add.at(self._counts, (np.maximum(places, 0), codes[start:]), w[start:])

    def _splits(self) -> tuple[FloatArray, FloatArray]:
        return self._keys[1:], np.cumsum(self._counts, axis=0)[:-1]


def _summed(codes: IntArray, values: FloatArray, wide: int) -> FloatArray:
    """Return the sum of values of each class."""
    found: NDArray[Any] = np.bincount(codes, values, minlength=wide)
    return found


_erf = np.vectorize(math.erf, otypes=[np.float64])


def _normal(z: FloatArray) -> FloatArray:
    """Return the distribution function of the normal distribution."""
    found: FloatArray = 0.5 * (1.0 + _erf(z / math.sqrt(2.0)))
    return found


class GaussianClassObserver(ClassObserver):
    """Stores the mean and variance of the feature in each class, as VFDT in MOA and river.

    Parameters
    ----------
    splits : int
        How many splits are tried, at equal distances between the least and the largest value.

    Examples
    --------
    >>> observer = GaussianClassObserver()
    >>> observer.update_many([1, 2, 3, 7, 8, 9], [0, 0, 0, 1, 1, 1])
    >>> 3 < observer.best_split().threshold < 7
    True
    """

    def __init__(self, splits: int = 10) -> None:
        super().__init__()
        self.splits = validation.whole(splits, "splits", 1, 2**20)
        self._moments: FloatArray = np.zeros((3, 0))  # of each class: weight, mean, m2
        self._range: FloatArray = np.zeros((2, 0))  # its least and its largest value

    def _widen(self, more: int) -> None:
        self._moments = np.pad(self._moments, ((0, 0), (0, more)))
        ends = np.repeat([[np.inf], [-np.inf]], more, axis=1)
        self._range = np.hstack([self._range, ends])

    def _add(self, x: FloatArray, codes: IntArray, w: FloatArray) -> None:
        wide = len(self.total)
        weight = _summed(codes, w, wide)
        sums = _summed(codes, w * x, wide)
        mean: FloatArray = np.divide(sums, weight, out=np.zeros(wide), where=weight > 0)
        m2 = _summed(codes, w * (x - mean[codes]) ** 2, wide)
        self._add_moments(weight, mean, m2)
        np.minimum.at(self._range[0], codes, x)
        np.maximum.at(self._range[1], codes, x)

    def _add_moments(self, weight: FloatArray, mean: FloatArray, m2: FloatArray) -> None:
        """Add what is known of further rows of each class."""
        before, old, squares = self._moments
        total = before + weight
        share = np.divide(weight, total, out=np.zeros(len(total)), where=total > 0)
        delta = mean - old
        self._moments = np.stack(
            [total, old + delta * share, squares + m2 + delta**2 * before * share]
        )

    def _splits(self) -> tuple[FloatArray, FloatArray]:
        if not len(self.total):
            return np.zeros(0), np.zeros((0, 0))
        low, high = self._range[0].min(), self._range[1].max()
        thresholds = np.linspace(low, high, self.splits + 2)[1:-1]
        weight, mean, m2 = self._moments
        variance = np.divide(m2, weight - 1, out=np.zeros(len(weight)), where=weight > 1)
        deviation = np.sqrt(np.maximum(variance, 0.0))[None, :]
        distance = thresholds[:, None] - mean[None, :]
        scaled = np.divide(distance, deviation, out=np.sign(distance) * 40, where=deviation > 0)
        below = np.where(
            thresholds[:, None] <= self._range[0],
            0.0,
            np.where(thresholds[:, None] > self._range[1], 1.0, _normal(scaled)),
        )
        return thresholds, below * weight

    def merge(self, other: Self) -> None:
        """Become what watching both streams would have made, but for rounding.

        Parameters
        ----------
        other : GaussianClassObserver
            It stays as it is.
        """
        wide = max(len(self.total), len(other.total))
        self._widen(wide - len(self.total))
        self.total = np.pad(self.total, (0, wide - len(self.total)))
        wider: FloatArray = np.zeros((3, wide))
        wider[:, : len(other.total)] = other._moments
        self._add_moments(wider[0], wider[1], wider[2])
        for row, pick in ((0, np.minimum), (1, np.maximum)):
            own = self._range[row, : len(other.total)]
            self._range[row, : len(other.total)] = pick(own, other._range[row])
        self.total[: len(other.total)] += other.total

    def __len__(self) -> int:
        return int((self.total > 0).sum())

    @property
    def nbytes(self) -> int:
        """Bytes of the numbers that are kept."""
        return self._moments.nbytes + self._range.nbytes + self.total.nbytes
