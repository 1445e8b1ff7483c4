"""Which features have shown evidence that they matter.

The first `FIRST` rows give the thresholds of each feature's bins, at the eighths of its values. From
then on, the mean score of each bin is compared with the mean of all rows: under chance the sum of
n (mean - overall mean)² over the bins is about that of χ² with `BINS` - 1 degrees of freedom. A
feature is chosen if its evidence on labels, or on errors of the model inside, exceeds
`SIGNIFICANT`. The features with most evidence are chosen even if it does not, one for each `SLOW`
rows up to `AT_LEAST` of them, as weak features may matter together with others.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sapwood.screening import _evidence

__all__ = ["FIRST", "Evidence", "fresh"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

FIRST = 100  # rows that give thresholds, and after which features are chosen first
GROWTH = 4  # features are chosen again after a fourth of the rows
SIGNIFICANT = 36.0  # χ² with 8 degrees of freedom exceeds it in 2 of 100,000 cases
AT_LEAST, SLOW = 16, 100
MOST_ROWS = 20_000.0  # whose sums are halved


class Evidence(NamedTuple):
    """What is known of features; it is replaced as a whole, but for `sums`.

    Attributes
    ----------
    rows, due : int
        How many rows there were, and after how many features are chosen.
    tracks : ndarray of float
        Means and variances of scores.
    first, scores : ndarray of float
        The first rows and their scores, until there are thresholds.
    places : ndarray of int
        The columns of features that may be chosen; none before there are thresholds.
    thresholds : ndarray of float, shape (d, 7)
        Those of their bins.
    sums : ndarray of float, shape (d, BINS * 3)
        See `_evidence`.
    chosen : tuple of int
        The columns that were chosen.
    """

    rows: int
    due: int
    tracks: FloatArray
    first: FloatArray
    scores: FloatArray
    places: IntArray
    thresholds: FloatArray
    sums: FloatArray
    chosen: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return sum(each.nbytes for each in self if isinstance(each, np.ndarray))

    def scored(self, y: FloatArray, before: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the tracks after rows, and the scores of these."""
        tracks, scores = self.tracks.copy(), np.empty((len(y), 2))
        _evidence.standardised(tracks, y, before, self.rows == 0, scores)
        return tracks, scores

    def after(
        self, X: FloatArray, tracks: FloatArray, scores: FloatArray, done: NDArray[np.uint8]
    ) -> "Evidence":
        """Return the evidence after rows; `done` is whether the sums have them already."""
        made = self._replace(rows=self.rows + len(X), tracks=tracks)
        if self.rows >= FIRST:
            if len(self.places):
                _evidence.add(X, self.places, self.thresholds, scores, self.sums, done)
            return made
        width = max(X.shape[1], self.first.shape[1])
        first = np.vstack([_widened(self.first, width), _widened(X, width)])
        return made._replace(first=first, scores=np.vstack([self.scores, scores]))

    def begun(self, used: Sequence[int], places: Sequence[int]) -> "Evidence":
        """Return the evidence of the first rows on features that may be chosen.

        Parameters
        ----------
        used : sequence of int
            The columns of those that count as chosen.
        places : sequence of int
            The columns of the others.
        """
        own = np.array(places, np.int64)
        values = np.sort(self.first[:, own], axis=0)  # missing ones last
        known = np.count_nonzero(~np.isnan(values), axis=0)
        eighths = np.arange(1, _evidence.BINS - 1)[:, np.newaxis] * known // (_evidence.BINS - 1)
        thresholds = np.take_along_axis(values, np.minimum(eighths, len(values) - 1), axis=0)
        made = self._replace(
            chosen=tuple(used),
            places=own,
            thresholds=np.ascontiguousarray(np.where(known, thresholds, 0.0).T),
            sums=np.zeros((len(own), 3 * _evidence.BINS)),
            first=np.empty((0, 0)),
            scores=np.empty((0, 2)),
        )
        done = np.zeros(1, np.uint8)
        first = np.ascontiguousarray(self.first)
        _evidence.add(first, own, made.thresholds, self.scores, made.sums, done)
        return made

    def reviewed(self, most: int) -> "Evidence":
        """Return the evidence with further features chosen, if there are any.

        Parameters
        ----------
        most : int
            How many may be chosen.
        """
        found = self._found()
        order = np.argsort(-found, kind="stable")
        others = [at for at in order.tolist() if self.places[at] not in self.chosen]
        significant = sum(found[at] > SIGNIFICANT for at in others)
        least = min(AT_LEAST, self.rows // SLOW) - len(self.chosen)
        count = max(0, min(max(significant, least), most - len(self.chosen), len(others)))
        chosen = (*self.chosen, *self.places[others[:count]].tolist())
        made = self._replace(chosen=chosen, due=self.rows + max(1, self.rows // GROWTH))
        if len(chosen) >= most or count == len(others):  # nothing more is to be chosen
            return made._replace(
                places=made.places[:0], thresholds=made.thresholds[:0], sums=made.sums[:0]
            )
        if made.sums[0, ::3].sum() > MOST_ROWS:
            return made._replace(sums=0.5 * made.sums)
        return made

    def _found(self) -> FloatArray:
        """Return the evidence of each feature: the larger one of labels and errors."""
        table = self.sums.reshape(-1, _evidence.BINS, 3)
        rows, sums = table[:, :, :1], table[:, :, 1:]
        means = sums / np.maximum(rows, 1.0)
        overall = sums.sum(axis=1, keepdims=True) / rows.sum(axis=1, keepdims=True)
        found: FloatArray = (rows * (means - overall) ** 2).sum(axis=1).max(axis=1)
        return found


def fresh() -> Evidence:
    """Return the evidence of no rows."""
    return Evidence(
        rows=0,
        due=FIRST,
        tracks=np.zeros(_evidence.TRACKS),
        first=np.empty((0, 0)),
        scores=np.empty((0, 2)),
        places=np.empty(0, np.int64),
        thresholds=np.empty((0, _evidence.THRESHOLD_COUNT)),
        sums=np.empty((0, 3 * _evidence.BINS)),
        chosen=(),
    )


def _widened(X: FloatArray, width: int) -> FloatArray:
    made = np.full((len(X), width), np.nan)
    made[:, : X.shape[1]] = X
    return made
