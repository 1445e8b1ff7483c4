"""What a classifier holds: its model, classes, calibration and pending predictions, as one."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sapwood.classify._bayes import LeafBayes
from sapwood.classify._calibration import Calibrator
from sapwood.classify.growth import ClassGrowth
from sapwood.classify.widening import restore_latest, widened
from sapwood.corrector._pending import PendingPredictions
from sapwood.regressor import Regressor
from sapwood.tree.memory import most_pending
from sapwood.validation import Label

__all__ = ["Held", "new_pending"]

FloatArray = NDArray[np.float64]


class Held(NamedTuple):
    """All that changes when a class appears: built aside, and then put in place as one."""

    model: Regressor
    classes: tuple[Label, ...]
    codes: dict[Label, int]
    calibrator: Calibrator
    pending: PendingPredictions
    counts: FloatArray  # the weight of each class as it was given, for balanced weights
    unlabelled: int = 0  # rows without a label
    bayes: LeafBayes | None = None  # of leaves that predict by it

    def copied(self, limit: int | None) -> "Held":
        """Return an independent copy of all that a new class changes.

        Parameters
        ----------
        limit : int, optional
            The bytes that the classifier may occupy.
        """
        pending = new_pending(self.pending.width - 1, limit)
        pending.restore(*self.pending.state())
        return self._replace(
            model=self.model.copy(),
            calibrator=self.calibrator.copy(),
            pending=pending,
            counts=self.counts.copy(),
            bayes=None if self.bayes is None else self.bayes.widened(self.bayes.classes),
        )

    def widened(self, classes: tuple[Label, ...], limit: int | None, growth: ClassGrowth) -> "Held":
        """Return what knows one class more.

        Parameters
        ----------
        classes : tuple
            All labels, the new one last.
        limit : int, optional
            The bytes that the classifier may occupy.
        growth : ClassGrowth
            The rules of growth, for any number of classes.
        """
        model, pending, known = self.model, self.pending, len(classes)
        if known > 2:
            first, second = self.calibrator.class_weights[:2].tolist()
            model = widened(model, second / (first + second))
            sizes, keys, ages, contents = pending.state()
            pending = new_pending(known, limit)
            contents = np.hstack(
                [contents, np.zeros((len(contents), known + 1 - contents.shape[1]))]
            )
            restore_latest(pending, sizes, keys, ages, contents)
        model._use_growth(growth.of(known))
        calibrator = self.calibrator.copy()
        calibrator.widen(known)
        codes = {label: code for code, label in enumerate(classes)}
        counts = np.pad(self.counts, (0, max(2, known) - len(self.counts)))
        bayes = None if self.bayes is None else self.bayes.widened(max(2, known))
        return Held(model, classes, codes, calibrator, pending, counts, self.unlabelled, bayes)


def new_pending(width: int, limit: int | None) -> PendingPredictions:
    """Return a memory of ratings that wait for their labels.

    Parameters
    ----------
    width : int
        The ratings of a row.
    limit : int, optional
        The bytes that the classifier may occupy; half of them may be pending.
    """
    return PendingPredictions(
        1 + width, most_pending(None if limit is None else limit // 2, 1 + width)
    )
