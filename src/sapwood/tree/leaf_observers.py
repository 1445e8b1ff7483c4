"""By what the leaves of a tree watch their features."""

from typing import Any

import numpy as np

from sapwood.observers.base import TableObserver
from sapwood.observers.quantizer import QuantizerObserver

__all__ = ["LeafObservers", "columns_for"]

LEAST_SLOTS, MOST_SLOTS = 8, 4096


def columns_for(targets: int) -> int:
    """Return what an observer averages: y and residual of each target, and which of several lack.

    That is `observer_cells` of `sapwood/tree/_target_records.pxd`.
    """
    return 2 if targets == 1 else 3 * targets


class LeafObservers:
    """The observers of leaves: what the parameter `observer` of the tree sets.

    Parameters
    ----------
    observer : observer
        One that is empty, as a model for those of the leaves. A quantizer of radius "auto" stands
        for slots in the tree's own tables; others watch each number of each leaf.
    """

    def __init__(self, observer: Any) -> None:
        if not isinstance(observer, TableObserver) or len(observer):
            raise ValueError(
                f"observer = {observer!r}: an empty QuantizerObserver, EBSTObserver or "
                "TEBSTObserver is expected"
            )
        self.model = observer
        self.by_observers = not (isinstance(observer, QuantizerObserver) and observer.adaptive)
        self.slots = 0
        if not self.by_observers:
            self.slots = observer._parameters()["slots"]
            if not LEAST_SLOTS <= self.slots <= MOST_SLOTS:
                raise ValueError(
                    f"observer = {observer!r}: in a tree, the number of slots has to be from "
                    f"{LEAST_SLOTS} to {MOST_SLOTS}"
                )

    def fresh(
        self, features: int, deviations: list[float] | None = None, targets: int = 1
    ) -> list[TableObserver]:
        """Return new observers, one per feature, each of `columns_for` the targets."""
        known = deviations or [0.0] * features
        return [self._like_model(deviation, targets) for deviation in known]

    def _like_model(self, deviation: float, targets: int) -> TableObserver:
        """Return an empty observer like the model, for a feature of such a deviation."""
        parameters = {**self.model._parameters(), "targets": columns_for(targets)}
        if isinstance(self.model, QuantizerObserver) and self.model.divisor:
            radius = deviation / self.model.divisor
            if 0.0 < radius < np.inf:
                parameters["radius"] = radius
        return type(self.model)(**parameters)

    def threshold(self, observer: TableObserver, place: int) -> float:
        """Return where an observer cuts after an element."""
        keys, table, order = observer._tables()
        pair = order[place : place + 2]
        return float(observer._thresholds(keys.take(pair), table.take(pair, axis=0))[0])
