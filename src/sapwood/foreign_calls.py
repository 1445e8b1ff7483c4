"""A model where it is not alone: in a notebook, and in libraries that have doors of their own."""

import sys
from html import escape
from typing import Any, NoReturn

__all__ = ["ForeignCalls"]

SHOWN_DEPTH = 3


class ForeignCalls:
    """What other programs ask a model for: a picture, or something that an adapter has."""

    def fit(self, *arguments: Any, **options: Any) -> NoReturn:
        """Raise TypeError, which names the estimator for scikit-learn."""
        self._point_to_sklearn()

    def score(self, *arguments: Any, **options: Any) -> NoReturn:
        """Raise TypeError, which names the estimator for scikit-learn."""
        self._point_to_sklearn()

    def get_params(self, deep: bool = True) -> NoReturn:
        """Raise TypeError, which names the estimator for scikit-learn."""
        self._point_to_sklearn()

    def __sklearn_tags__(self) -> NoReturn:
        self._point_to_sklearn()

    def _point_to_sklearn(self) -> NoReturn:
        name = type(self).__name__
        raise TypeError(
            f"sapwood.{name} is no estimator of scikit-learn: use sapwood.sklearn.{name}, which "
            "has the same parameters"
        )

    def __str__(self) -> str:
        # River rejects a model with its own message, which ends with that of the model.
        asked_by = sys._getframe(1).f_globals.get("__name__", "")
        is_river = asked_by == "river" or asked_by.startswith("river.")
        if not is_river:
            return repr(self)
        name = type(self).__name__
        return f"{self!r}: in river use sapwood.river.{name}, which has the same parameters"

    def _repr_html_(self) -> str:
        tree: Any = self
        title = f"<b>{escape(repr(tree))}</b>"
        if not hasattr(tree, "draw"):  # of several trees, none of which stands for all
            return f"<div>{title}<pre>{escape(str(tree.summary))}</pre></div>"
        if tree.n_leaves == 1:
            return f"<div>{title}<br>It has not split yet.</div>"
        drawn = tree.draw(SHOWN_DEPTH, orientation="right").svg
        below = f"<small>The top of the tree, to depth {SHOWN_DEPTH}; .draw() shows more.</small>"
        return f'<div>{title}<div style="overflow-x:auto">{drawn}</div>{below}</div>'
