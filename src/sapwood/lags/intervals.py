"""The prediction intervals of a model with lags: those of the model inside, whose rows have lags."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sapwood.corrector.tokens import RowToken, RowTokens, key_of, keys_of
from sapwood.lags.lags import LaggedRows
from sapwood.lags.pending_rows import plain, rows_of
from sapwood.rows import frames
from sapwood.stages.stage import offered
from sapwood.stages.surface import TransparentStage

__all__ = ["LaggedIntervals"]


class LaggedIntervals(TransparentStage):
    """The part of a model with lags that returns prediction intervals."""

    @abstractmethod
    def _ask(
        self, x: Any, key: int, record: bool, ask: Callable[[dict[Any, Any], int], Any]
    ) -> Any:
        """Return what the model inside predicts for the next row, which has its lags."""

    @abstractmethod
    def _planned(self, X: Any, keys: Any = None) -> tuple[LaggedRows, Any]:
        """Return the next rows with their lags, and by which keys their predictions are kept."""

    @abstractmethod
    def _learn_rows(self, learn: Callable[[Any, Any, Any], Any], X: Any, y: Any, keys: Any) -> Any:
        """Let the model learn rows that are not past yet, by their keys or else by their tokens."""

    @abstractmethod
    def _are_pending(self, keys: Any) -> bool:
        """Whether any of some keys is that of a row that waits for its label."""

    def _ask_one(self, method: str, x: Any, *arguments: Any, id: Any = None) -> Any:
        """Call a method of the model inside with a row that has its lags."""

        def ask(row: dict[Any, Any], key: int) -> Any:
            return getattr(self.model, method)(row, *arguments, id=RowToken(key) if key else None)

        return self._ask(x, 0 if id is None else key_of(id), True, ask)

    def _ask_many(self, method: str, X: Any, *arguments: Any) -> Any:
        """Call a method of the model inside with the next rows, which have their lags."""
        with self._turn():
            plan, own = self._planned(X)
            ids = {} if own is None else {"ids": RowTokens(own)}
            return getattr(self.model, method)(plan.in_kind, *arguments, **ids)

    @offered
    def predict_interval_one(self, x: dict[Any, Any], level: float = 0.9, *, id: Any = None) -> Any:
        """Predict the next row, with its prediction interval."""
        return self._ask_one("predict_interval_one", x, level, id=id)

    @offered
    def predict_intervals_one(self, x: dict[Any, Any], *, id: Any = None) -> Any:
        """Predict the next row, with the intervals of all levels."""
        return self._ask_one("predict_intervals_one", x, id=id)

    @offered
    def predict_quantile_one(self, x: dict[Any, Any], q: float, *, id: Any = None) -> Any:
        """Return a quantile of y for the next row."""
        return self._ask_one("predict_quantile_one", x, q, id=id)

    @offered
    def predict_intervals_many(self, X: Any, *, ids: Any = None) -> Any:
        """Predict the next rows, with the intervals of all levels."""
        if ids is None:
            return self._ask_many("predict_intervals_many", X)
        rows = zip(rows_of(self._encoded(X)), keys_of(ids).tolist(), strict=True)
        found = [self.predict_intervals_one(x, id=RowToken(key)) for x, key in rows]
        return tuple(np.array([plain(each) for each in part]) for part in zip(*found, strict=True))

    @offered
    def predict_interval_many(self, X: Any, level: float = 0.9) -> Any:
        """Return the prediction intervals of the next rows."""
        found = self._ask_many("predict_interval_many", X, level)
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
                return self.model.predict_learn_intervals(rows, y, w, ids=RowTokens(keys))

            return self._learn_rows(learn, X, y, keys)
