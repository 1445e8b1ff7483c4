"""How unusual rows are to the trees of a model."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.rows import frames
from sapwood.rows.encoder import EncodedRows
from sapwood.rows.features import Features
from sapwood.tree._kernel import TreeKernel

__all__ = ["AnomalyScores"]

FloatArray = NDArray[np.float64]


class AnomalyScores:
    """Scores of rows that differ from those that a model has learned."""

    _features: Features
    _kernel: Any
    _parameters: dict[str, Any]

    def _scored_trees(self) -> Sequence[TreeKernel]:
        """Return the trees whose mean the score is."""
        return [self._kernel]

    def anomaly_score_one(self, x: dict[Any, Any]) -> float:
        """Return how unusual a row is: 0 is usual, 1 is unlike all rows that were learned.

        Parameters
        ----------
        x : dict
            The features, as for `predict_one`. Missing values do not raise the score.

        Returns
        -------
        float
            1 - 1 / (1 + a). The value of a grows with the distance of the row from the rows of its
            leaf, and is larger in leaves with few rows. A forest takes the geometric mean of 1 + a
            over its members. Compare scores with each other: no threshold suits all streams. The
            score is 0.0 before a row was learned.

        Raises
        ------
        ValueError
            If the leaves have no linear models.

        Examples
        --------
        >>> import numpy as np, sapwood
        >>> x = np.random.default_rng(1).normal(size=2000)
        >>> tree = sapwood.HoeffdingTreeRegressor()
        >>> tree.learn_many({"power": x, "heat": 2 * x}, x)
        >>> usual, odd = {"power": 1.0, "heat": 2.0}, {"power": 1.0, "heat": -2.0}
        >>> tree.anomaly_score_one(usual) < tree.anomaly_score_one(odd)
        True
        """
        if self._features.encoding is not None:
            x = self._features.encoding.encode_one(x)
        return float(self._anomalies(partial(self._features.read_one, x, learn=False))[0])

    def anomaly_score_many(self, X: Any) -> FloatArray:
        """Return how unusual each row is: the same as `anomaly_score_one` in a loop.

        Parameters
        ----------
        X : array_like, mapping of columns, list of dicts, or data frame
            The features, as for `predict_many`.

        Returns
        -------
        ndarray of float, shape (n,)
            The scores.
        """
        return self._anomalies(partial(self._features.read, frames.lasting(X), learn=False))

    def _anomalies(self, read: Callable[[], EncodedRows]) -> FloatArray:
        if self._parameters["leaf"] == "mean":
            raise ValueError(
                "leaf = 'mean': its leaves do not know where their rows are; anomaly scores need "
                "linear models (leaf='adaptive' or 'linear')"
            )
        rows = read()
        found: FloatArray = self._kernel.read_locked(self._unusual, rows, read)
        return -np.expm1(-found)

    def _unusual(self, rows: EncodedRows, read: Callable[[], EncodedRows]) -> FloatArray:
        """Return the mean of log(1 + a) over the trees, while nothing is changed."""
        if not rows.is_current():
            rows = read()
        trees, found = self._scored_trees(), np.zeros(len(rows.matrix))
        for tree in trees:
            tree.add_unusualness(rows.matrix, found)
        return found / len(trees)
