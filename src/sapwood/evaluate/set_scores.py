"""How often prediction sets hold the actual class, and how large they are."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sapwood import validation
from sapwood.evaluate.classes import PredictedRows
from sapwood.evaluate.recorder import Moment, Recorder, packed, unpacked
from sapwood.validation import Label

__all__ = ["SetScores"]


class SetScores(Recorder):
    """The coverage and the mean size of prediction sets of some levels.

    - `levels`: the nominal levels, between 0 and 1.

    Examples
    --------
    >>> scores = SetScores([0.9])
    >>> scores.update([["a", "b"]], "a")
    >>> scores.update([["a"]], "b")
    >>> scores.to_dict()
    {'0.9': {'coverage': 0.5, 'size': 1.5, 'rows': 2}}
    """

    def __init__(self, levels: Iterable[float]) -> None:
        found = {validation.between(level, "level", 1e-3, 0.9995) for level in levels}
        self.levels = tuple(sorted(found))
        self.rows = 0
        self._held = [0] * len(self.levels)
        self._sizes = [0] * len(self.levels)

    def update(self, sets: Sequence[Sequence[Label]], actual: Label) -> None:
        """Take a row.

        - `sets`: the prediction set of each level.
        - `actual`: the label of the row.
        """
        self.rows += 1
        for place, own in enumerate(sets):
            self._held[place] += actual in own
            self._sizes[place] += len(own)

    def to_dict(self) -> dict[str, dict[str, float]]:
        """Return coverage, mean size and rows by level; nothing before the first row."""
        if not self.rows:
            return {}
        return {
            f"{level:g}": {
                "coverage": held / self.rows,
                "size": size / self.rows,
                "rows": self.rows,
            }
            for level, held, size in zip(self.levels, self._held, self._sizes, strict=True)
        }

    def record(self, rows: PredictedRows) -> None:
        """Take those rows of a chunk that have labels, and were predicted when classes were known."""
        for place in np.flatnonzero(rows.has_label & rows.is_known) if rows.sets else ():
            label = rows.labels[place]
            assert label is not None
            self.update(rows.sets[place], label)

    def results(self, end: Moment) -> dict[str, Any]:
        """Return coverage, mean size and rows by level."""
        return {"sets": self.to_dict()}

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the state, to be saved."""
        return {"sets": packed({"rows": self.rows, "held": self._held, "sizes": self._sizes})}

    def restored(self, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return scores of the same levels in a state that `to_arrays` returned."""
        state = unpacked(arrays["sets"])
        made = type(self)(self.levels)
        made.rows = validation.whole(state["rows"], "rows", 0, 2**53)
        made._held = [validation.whole(each, "held", 0, made.rows) for each in state["held"]]
        made._sizes = [validation.whole(each, "sizes", 0, 2**53) for each in state["sizes"]]
        if not len(made._held) == len(made._sizes) == len(self.levels):
            raise ValueError("its prediction sets have other levels")
        return made
