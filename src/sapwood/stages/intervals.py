"""The prediction intervals of the model inside a stage that passes rows on to it."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sapwood.corrector.tokens import RowToken, RowTokens, key_of, keys_of
from sapwood.rows import frames
from sapwood.stages.rows import plain, rows_of
from sapwood.stages.stage import offered, passed_on
from sapwood.stages.surface import TransparentStage

__all__ = ["OfferedIntervals"]


class OfferedIntervals(TransparentStage):
    """A stage that offers the prediction intervals of the model inside, if that has some."""

    levels = passed_on("The levels of the prediction intervals.")
    widths = passed_on("How wide intervals are in each region.")
    region_tree = passed_on("The tree whose leaves are the regions of intervals.")

    @abstractmethod
    def _ask(
        self, x: Any, key: int, record: bool, ask: Callable[[dict[Any, Any], int], Any]
    ) -> Any:
        """Return what the model inside predicts for a row, as it gets it, under a key."""

    @abstractmethod
    def _ask_many(self, X: Any, record: bool, ask: Callable[[Any, dict[str, Any]], Any]) -> Any:
        """Return what the model inside predicts for rows, as it gets them, under their ids."""

    @abstractmethod
    def _learn_rows(
        self, learn: Callable[[Any, Any, Any], Any], X: Any, y: Any, keys: Any, w: Any = None
    ) -> Any:
        """Let the model inside learn rows, given a function of rows, labels and keys."""

    def _are_pending(self, keys: Any) -> bool:
        """Whether some of the rows can be learned one by one alone."""
        return False

    def _ask_one(self, method: str, x: Any, *arguments: Any, id: Any = None) -> Any:
        """Call a method of the model inside with a row."""

        def ask(row: dict[Any, Any], key: int) -> Any:
            return getattr(self.model, method)(row, *arguments, id=RowToken(key) if key else None)

        return self._ask(x, 0 if id is None else key_of(id), True, ask)

    @offered
    def predict_interval_one(self, x: dict[Any, Any], level: float = 0.9, *, id: Any = None) -> Any:
        """Predict one row, with its prediction interval."""
        return self._ask_one("predict_interval_one", x, level, id=id)

    @offered
    def predict_intervals_one(self, x: dict[Any, Any], *, id: Any = None) -> Any:
        """Predict one row, with the intervals of all levels."""
        return self._ask_one("predict_intervals_one", x, id=id)

    @offered
    def predict_quantile_one(self, x: dict[Any, Any], q: float, *, id: Any = None) -> Any:
        """Return a quantile of y for one row."""
        return self._ask_one("predict_quantile_one", x, q, id=id)

    @offered
    def predict_intervals_many(self, X: Any, *, ids: Any = None, record: bool = True) -> Any:
        """Predict rows, with the intervals of all levels."""
        if ids is None:

            def ask(rows: Any, own: dict[str, Any]) -> Any:
                return self.model.predict_intervals_many(rows, record=record, **own)

            return self._ask_many(X, record, ask)
        each = zip(rows_of(self._encoded(X)), keys_of(ids).tolist(), strict=True)
        found = [self.predict_intervals_one(x, id=RowToken(key)) for x, key in each]
        return tuple(np.array([plain(each) for each in part]) for part in zip(*found, strict=True))

    @offered
    def predict_interval_many(self, X: Any, level: float = 0.9) -> Any:
        """Return the prediction intervals of rows."""

        def ask(rows: Any, own: dict[str, Any]) -> Any:
            return self.model.predict_interval_many(rows, level, **own)

        found = self._ask_many(X, True, ask)
        if isinstance(found, Mapping) or found.ndim == 3:
            return found
        return frames.frame_like(X, {"lower": found[:, 0], "upper": found[:, 1]}, found)

    @offered
    def predict_learn_intervals(
        self, X: Any, y: Any, w: ArrayLike | None = None, *, ids: Any = None
    ) -> Any:
        """Predict each row before it is learned, with the intervals of all levels."""
        keys = None if ids is None else keys_of(ids)
        with self._turn():
            if self._are_pending(keys):
                raise ValueError(
                    "some of the rows have pending predictions: learn them by learn_many, as their "
                    "intervals were returned when they were predicted"
                )

            def learn(rows: Any, y: Any, keys: Any) -> Any:
                own = {} if keys is None else {"ids": RowTokens(keys)}
                return self.model.predict_learn_intervals(rows, y, w, **own)

            return self._learn_rows(learn, X, y, keys, w)
