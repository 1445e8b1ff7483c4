"""Statistics of the errors of each target, by region, from which intervals are computed."""

import math
from collections.abc import Callable, Iterable
from statistics import NormalDist
from typing import Self

import numpy as np
from numpy.typing import NDArray

from sapwood import validation
from sapwood.corrector._pending import PendingPredictions
from sapwood.intervals import _bounds
from sapwood.intervals._one_row import OneRow

__all__ = ["BoundTable", "checked_levels"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int32]
KeyArray = NDArray[np.uint64]

MOST_PENDING = 8192  # predictions that wait for their labels; the oldest go first
RECENT, LOWEST, HIGHEST = 3, 4, 6
WEIGHT_OF_REGION, ROWS = 1, 2  # of a region, after the sum of its errors
FIRST_REGIONS = 64  # regions at first


def checked_levels(levels: Iterable[float]) -> FloatArray:
    """Return levels, ascending, if they are shares of y that can be within bounds."""
    if isinstance(levels, str) or not isinstance(levels, Iterable):
        raise ValueError(f"levels = {validation.shown(levels)}: a list of shares is expected")
    shares = sorted({validation.between(level, "levels", 1e-3, 0.9995) for level in levels})
    if not 0 < len(shares) <= _bounds.MOST_LEVELS:
        raise ValueError(
            f"levels = {validation.shown(levels)}: from 1 to {_bounds.MOST_LEVELS} levels are expected"
        )
    return np.array(shares)


class BoundTable:
    """The statistics behind prediction intervals, for each target; all targets share the regions.

    Parameters
    ----------
    levels : array of float
        Ascending.
    targets : int
        How many there are.

    Attributes
    ----------
    table : array of float, shape (targets, capacity for regions, numbers)
        The statistics of each region.
    overall : array of float, shape (targets, numbers)
        The statistics over all regions.
    pending : PendingPredictions
        The predictions that wait for their labels.
    labels : array of float, shape (1,)
        How many labels are known.
    factors : array of float, shape (targets, 64, levels)
        Of each group of rows; the first group is that of rows without one.
    """

    def __init__(self, levels: FloatArray, targets: int = 1) -> None:
        count = len(levels)
        self.levels = levels
        spread = [NormalDist().inv_cdf((1 + level) / 2) for level in levels]
        first = np.zeros(_bounds.FIRST_QUANTILE + 2 * count)
        first[_bounds.FIRST_QUANTILE :: 2] = [-reach for reach in spread]
        first[_bounds.FIRST_QUANTILE + 1 :: 2] = spread
        self.table = np.full((targets, FIRST_REGIONS, len(first)), _bounds.NOT_MET)
        self.table[:, 0] = first
        self.overall = np.zeros((targets, _bounds.FIRST_LEVEL + count))
        self.overall[:, RECENT] = 1.0
        self.overall[:, LOWEST], self.overall[:, HIGHEST] = np.inf, -np.inf
        self.overall[:, _bounds.FIRST_LEVEL :] = 1.0
        self.pending = PendingPredictions(1 + targets * self.record, MOST_PENDING)
        self.labels = np.zeros(1)
        self.factors = np.ones((targets, _bounds.MOST_GROUPS, count))
        self._one: OneRow | None = None

    def fill(self, table: FloatArray, overall: FloatArray) -> None:
        """Set the statistics of each region and those over all regions."""
        self.table = self._roomy(table.shape[1])
        self.table[:, : table.shape[1]] = table
        self.overall = overall.copy()
        self._one = None

    def one(self, parents: Callable[[], IntArray], region: int) -> OneRow:
        """Return the object that handles one row of one target, with space for a region.

        Parameters
        ----------
        parents : callable
            Returns the region that each one was split off from.
        region : int
            Of the row.
        """
        one = self._one
        if one is None or region >= one.regions:
            known = np.ascontiguousarray(parents())
            self.table = self._roomy(len(known))
            one = self._one = OneRow(
                _flat(self.table),
                self.overall,
                self.levels,
                known,
                self.pending,
                self.labels,
                self.factors[0],
            )
        return one

    @property
    def targets(self) -> int:
        """How many targets there are."""
        return len(self.overall)

    @property
    def record(self) -> int:
        """Numbers in the record of a target of a row: prediction, usual error, and bounds."""
        return _bounds.FIRST_BOUND + 2 * len(self.levels)

    @property
    def nbytes(self) -> int:
        """Bytes that it occupies."""
        arrays = (self.table, self.overall, self.levels, self.labels, self.factors)
        return sum(array.nbytes for array in arrays) + self.pending.nbytes

    def of_target(self, place: int) -> Self:
        """Return the statistics of one target."""
        made = type(self)(self.levels)
        made.table = self.table[place : place + 1].copy()
        made.overall = self.overall[place : place + 1].copy()
        made.labels = self.labels.copy()
        made.factors = self.factors[place : place + 1].copy()
        return made

    def predict(
        self,
        parents: IntArray,
        regions: IntArray,
        predictions: FloatArray,
        groups: IntArray | None = None,
    ) -> FloatArray:
        """Return the records of rows with their intervals; nothing is changed.

        Parameters
        ----------
        parents : array of int
            The region that each one was split off from.
        regions : array of int
            Of each row.
        predictions : array of float, shape (rows, targets)
            Of each row.
        groups : array of int, optional
            Of each row, 0 for those without one.

        Returns
        -------
        array of float, shape (rows, targets, `record`)
            The prediction, the usual error, and the lower and the upper bound of each level.
        """
        issued = np.empty((len(predictions), self.targets * self.record))
        parents, predictions = np.ascontiguousarray(parents), np.ascontiguousarray(predictions)
        table = _flat(self._roomy(len(parents)))
        _bounds.predict_intervals(
            table,
            self.overall,
            self.levels,
            parents,
            regions,
            predictions,
            issued,
            _flat(self.factors),
            groups,
        )
        return issued.reshape(len(issued), self.targets, self.record)

    def score(
        self,
        parents: IntArray,
        regions: IntArray,
        predictions: FloatArray,
        y: FloatArray,
        w: FloatArray,
        *,
        keys: KeyArray | None = None,
        bounds: FloatArray | None = None,
        groups: IntArray | None = None,
        known_groups: int = 0,
    ) -> None:
        """Learn the labels of rows: in one step, which cannot be interrupted.

        Parameters
        ----------
        parents, regions, predictions
            As for `predict`.
        y : array of float, shape (rows, targets)
            NaN where a target is missing: nothing is learned of it then.
        w : array of float
            The weights of rows.
        keys : array of uint64, optional
            Under which the rows were predicted, by `remember`.
        bounds : array of float, shape (rows, targets, levels, 2), optional
            Gets the bounds that would be issued just before.
        groups : array of int, optional
            As for `predict`.
        known_groups : int
            How many groups there were before; a new one has the next number.
        """
        parents = np.ascontiguousarray(parents)
        if len(parents) > self.table.shape[1]:
            self.table, self._one = self._roomy(len(parents)), None
        _bounds.learn(
            _flat(self.table),
            self.overall,
            self.levels,
            parents,
            regions,
            np.ascontiguousarray(predictions),
            np.ascontiguousarray(y),
            w,
            self.pending,
            keys,
            self.labels,
            None if bounds is None else _joined(bounds),
            _flat(self.factors),
            groups,
            known_groups,
        )

    def remember(self, keys: KeyArray, issued: FloatArray) -> None:
        """Keep the records of rows until their labels arrive, except predictions that are not finite."""
        records = np.empty((len(issued), self.pending.width))
        records[:, 0], records[:, 1:] = self.labels[0], _joined(issued)
        good = np.isfinite(issued[:, :, 0]).all(axis=1)
        if not good.all():
            keys, records = keys[good], records[good]
        self.pending.put_keys(np.ascontiguousarray(keys), records)

    def published(self, issued: FloatArray) -> FloatArray:
        """Return the bounds of all levels as they are published, (rows, targets, levels, 2)."""
        bounds = np.empty((len(issued), self.targets * 2 * len(self.levels)))
        _bounds.publish(_joined(np.ascontiguousarray(issued)), self.overall, bounds)
        return bounds.reshape(len(issued), self.targets, len(self.levels), 2)

    def between(self, issued: FloatArray, level: float) -> FloatArray:
        """Return the bounds of a level, interpolated along a normal distribution.

        Parameters
        ----------
        issued : array of float
            As `predict` returned it.
        level : float
            At most the largest of `levels`.

        Returns
        -------
        array of float, shape (rows, targets, 2)
            Lower and upper.
        """
        bounds = self.published(issued)
        known = np.flatnonzero(self.levels == level)
        if len(known):
            return bounds[:, :, known[0]]
        place = int(np.searchsorted(self.levels, level))
        outer = bounds[:, :, place]
        if place:
            inner = bounds[:, :, place - 1]
        else:
            inner = np.clip(issued[:, :, :1], outer[:, :, :1], outer[:, :, 1:])
        reach = [NormalDist().inv_cdf((1 + each) / 2) for each in (*self.levels, level)]
        start = reach[place - 1] if place else 0.0
        share = (reach[-1] - start) / (reach[place] - start)
        return np.asarray(inner + share * (outer - inner))

    def reachable(self, level: float, name: str) -> float:
        """Return a level, or the one of `levels` that differs from it by rounding alone.

        Parameters
        ----------
        level : float
            From 0 to 1.
        name : {"level", "q"}
            What was given, for a message.

        Raises
        ------
        ValueError
            If it is beyond the largest.
        """
        nearest = float(self.levels[np.abs(self.levels - level).argmin()])
        if abs(nearest - level) < 1e-9:
            return nearest
        if level > self.levels[-1]:
            given = f"the level {level:.6g} of this q" if name == "q" else f"level = {level:.6g}"
            raise ValueError(
                f"{given} is beyond the widest of levels, {self.levels[-1]:g}: name it there, as "
                "intervals are learned from errors"
            )
        return level

    def renumber(self, places: IntArray) -> None:
        """Let regions have other numbers; several that get the same one become one.

        Its quantiles, and the mean size of its errors, are the means over these by their rows; but
        for the first of them, which was there before the others were split off from it.

        Parameters
        ----------
        places : array of int
            The new number of each region.
        """
        known = self.of_regions(len(places))
        made = np.full((len(known), int(places.max()) + 1, known.shape[2]), _bounds.NOT_MET)
        first = np.unique(places, return_index=True)[1]
        made[:, places[first]] = known[:, first]
        (joined,) = np.flatnonzero(np.bincount(places) > 1)[:1].tolist() or (None,)
        if joined is not None:
            below = known[:, np.flatnonzero(places == joined)[1:]]
            for target, own in enumerate(below):
                met = own[(own[:, WEIGHT_OF_REGION] > 0) & (own[:, ROWS] > 0)]
                if len(met):
                    made[target, joined] = _together(met)
        self.table, self._one = made, None

    def rows_of(self, regions: IntArray) -> FloatArray:
        """Return the rows of regions, of shape (targets, regions); 0 if one was never met."""
        table = self._roomy(int(regions.max(initial=0)) + 1)
        return np.maximum(table[:, regions, ROWS], 0.0)

    def of_regions(self, regions: int) -> FloatArray:
        """Return the statistics of the first regions, of shape (targets, regions, numbers)."""
        return self._roomy(regions)[:, :regions]

    def _roomy(self, regions: int) -> FloatArray:
        """Return the table, with space for so many regions."""
        if regions <= self.table.shape[1]:
            return self.table
        targets, _, numbers = self.table.shape
        roomy = np.full((targets, 2 * regions, numbers), _bounds.NOT_MET)
        roomy[:, : self.table.shape[1]] = self.table
        return roomy


def _together(regions: FloatArray) -> FloatArray:
    """Return the joint statistics of several regions."""
    shares = regions[:, ROWS] / regions[:, ROWS].sum()
    found: FloatArray = shares @ regions
    sizes = regions[:, 0] / regions[:, WEIGHT_OF_REGION]
    found[0] = found[WEIGHT_OF_REGION] * (shares @ sizes)
    found[ROWS] = regions[:, ROWS].sum()
    return found


def _joined(rows: FloatArray) -> FloatArray:
    """Return an array with all numbers of a row in one dimension."""
    return rows.reshape(len(rows), math.prod(rows.shape[1:]))


def _flat(table: FloatArray) -> FloatArray:
    return table.reshape(-1, table.shape[2])
