"""What is known of the errors of each target, by region: of what bounds are made."""

import math
from collections.abc import Iterable
from statistics import NormalDist
from typing import Self

import numpy as np
from numpy.typing import NDArray

from sapwood import door
from sapwood.intervals import _bounds

__all__ = ["BoundTable", "checked_levels"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int32]

LATELY, LOWEST, HIGHEST = 3, 4, 6
ROWS = 2  # of a region
ROOM = 64  # regions at first


def checked_levels(levels: Iterable[float]) -> FloatArray:
    """Return levels, ascending, if they are shares of y that can be within bounds."""
    if isinstance(levels, str) or not isinstance(levels, Iterable):
        raise ValueError(f"levels = {door.shown(levels)}: a list of shares is expected")
    shares = sorted({door.between(level, "levels", 1e-3, 0.9995) for level in levels})
    if not 0 < len(shares) <= _bounds.MOST_LEVELS:
        raise ValueError(
            f"levels = {door.shown(levels)}: from 1 to {_bounds.MOST_LEVELS} levels are expected"
        )
    return np.array(shares)


class BoundTable:
    """The numbers behind bounds, for each target alone; regions are those of all targets.

    Parameters
    ----------
    levels : array of float
        Ascending.
    targets : int
        How many there are.

    Attributes
    ----------
    table : array of float, shape (targets, room for regions, numbers)
        What is known of each region.
    overall : array of float, shape (targets, numbers)
        What is known of all together.
    """

    def __init__(self, levels: FloatArray, targets: int = 1) -> None:
        count = len(levels)
        self.levels = levels
        spread = [NormalDist().inv_cdf((1 + level) / 2) for level in levels]
        first = np.zeros(_bounds.FIRST_QUANTILE + 2 * count)
        first[_bounds.FIRST_QUANTILE :: 2] = [-reach for reach in spread]
        first[_bounds.FIRST_QUANTILE + 1 :: 2] = spread
        self.table = np.full((targets, ROOM, len(first)), _bounds.NOT_MET)
        self.table[:, 0] = first
        self.overall = np.zeros((targets, _bounds.FIRST_LEVEL + count))
        self.overall[:, LATELY] = 1.0
        self.overall[:, LOWEST], self.overall[:, HIGHEST] = np.inf, -np.inf
        self.overall[:, _bounds.FIRST_LEVEL :] = 1.0

    def fill(self, table: FloatArray, overall: FloatArray) -> None:
        """Go on from what was known of all regions, and of all together."""
        self.table = self._roomy(table.shape[1])
        self.table[:, : table.shape[1]] = table
        self.overall = overall.copy()

    @property
    def targets(self) -> int:
        """How many targets there are."""
        return len(self.overall)

    @property
    def record(self) -> int:
        """How many numbers are said of a target of a row: its prediction, what is usual, bounds."""
        return _bounds.FIRST_BOUND + 2 * len(self.levels)

    @property
    def nbytes(self) -> int:
        """Bytes that it occupies."""
        return self.table.nbytes + self.overall.nbytes + self.levels.nbytes

    def of_target(self, place: int) -> Self:
        """Return what is known of one target."""
        made = type(self)(self.levels)
        made.table = self.table[place : place + 1].copy()
        made.overall = self.overall[place : place + 1].copy()
        return made

    def say(self, parents: IntArray, regions: IntArray, predictions: FloatArray) -> FloatArray:
        """Return what is said of rows; nothing is changed.

        Parameters
        ----------
        parents : array of int
            The region that each one was split off from.
        regions : array of int
            Of each row.
        predictions : array of float, shape (rows, targets)
            Of each row.

        Returns
        -------
        array of float, shape (rows, targets, `record`)
            The prediction, what is usual, and the lower and the upper bound of each level.
        """
        said = np.empty((len(predictions), self.targets * self.record))
        parents, predictions = np.ascontiguousarray(parents), np.ascontiguousarray(predictions)
        table = _flat(self._roomy(len(parents)))
        _bounds.foresee(table, self.overall, self.levels, parents, regions, predictions, said)
        return said.reshape(len(said), self.targets, self.record)

    def judge(
        self,
        parents: IntArray,
        regions: IntArray,
        predictions: FloatArray,
        y: FloatArray,
        w: FloatArray,
        *,
        said: FloatArray | None = None,
        bounds: FloatArray | None = None,
    ) -> None:
        """Learn what came of what was said.

        Parameters
        ----------
        parents, regions, predictions
            As for `say`.
        y : array of float, shape (rows, targets)
            NaN where a target is missing: nothing is learned of it then.
        w : array of float
            The weights of rows.
        said : array of float, optional
            What was said of rows when they were predicted, NaN of those that were not.
        bounds : array of float, shape (rows, targets, levels, 2), optional
            Gets the bounds that would be told just before.
        """
        parents = np.ascontiguousarray(parents)
        self.table = self._roomy(len(parents))
        _bounds.learn(
            _flat(self.table),
            self.overall,
            self.levels,
            parents,
            regions,
            np.ascontiguousarray(predictions),
            np.ascontiguousarray(y),
            w,
            None if said is None else _joined(np.ascontiguousarray(said)),
            None if bounds is None else _joined(bounds),
        )

    def told(self, said: FloatArray) -> FloatArray:
        """Return the bounds of all levels as they are told, of shape (rows, targets, levels, 2)."""
        bounds = np.empty((len(said), self.targets * 2 * len(self.levels)))
        _bounds.publish(_joined(np.ascontiguousarray(said)), self.overall, bounds)
        return bounds.reshape(len(said), self.targets, len(self.levels), 2)

    def between(self, said: FloatArray, level: float) -> FloatArray:
        """Return the bounds of a level, interpolated along a normal distribution.

        Parameters
        ----------
        said : array of float
            As `say` returned it.
        level : float
            At most the largest of `levels`.

        Returns
        -------
        array of float, shape (rows, targets, 2)
            Lower and upper.
        """
        bounds = self.told(said)
        known = np.flatnonzero(self.levels == level)
        if len(known):
            return bounds[:, :, known[0]]
        place = int(np.searchsorted(self.levels, level))
        outer = bounds[:, :, place]
        if place:
            inner = bounds[:, :, place - 1]
        else:
            inner = np.clip(said[:, :, :1], outer[:, :, :1], outer[:, :, 1:])
        reach = [NormalDist().inv_cdf((1 + each) / 2) for each in (*self.levels, level)]
        start = reach[place - 1] if place else 0.0
        share = (reach[-1] - start) / (reach[place] - start)
        return np.asarray(inner + share * (outer - inner))

    def reachable(self, level: float, name: str) -> float:
        """Return a level, that of `levels` which is meant if rounding alone tells them apart.

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
            told = f"the level {level:.6g} of this q" if name == "q" else f"level = {level:.6g}"
            raise ValueError(
                f"{told} is beyond the widest of levels, {self.levels[-1]:g}: name it there, as "
                "only errors can tell it"
            )
        return level

    def rows_of(self, regions: IntArray) -> FloatArray:
        """Return the rows of regions, of shape (targets, regions); 0 if one was never met."""
        table = self._roomy(int(regions.max(initial=0)) + 1)
        return np.maximum(table[:, regions, ROWS], 0.0)

    def of_regions(self, regions: int) -> FloatArray:
        """Return what is known of the first regions, of shape (targets, regions, numbers)."""
        return self._roomy(regions)[:, :regions]

    def _roomy(self, regions: int) -> FloatArray:
        """Return the table, with room for so many regions."""
        if regions <= self.table.shape[1]:
            return self.table
        targets, _, numbers = self.table.shape
        roomy = np.full((targets, 2 * regions, numbers), _bounds.NOT_MET)
        roomy[:, : self.table.shape[1]] = self.table
        return roomy


def _joined(told: FloatArray) -> FloatArray:
    """Return what is told of rows with all numbers of a row in one dimension."""
    return told.reshape(len(told), math.prod(told.shape[1:]))


def _flat(table: FloatArray) -> FloatArray:
    return table.reshape(-1, table.shape[2])
