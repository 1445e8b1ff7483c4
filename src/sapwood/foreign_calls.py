"""A tree where it is not alone: in a notebook, and in libraries that have doors of their own."""

import sys
from html import escape
from typing import Any, NoReturn

__all__ = ["Elsewhere"]

SHOWN_DEPTH = 3

SKLEARN = (
    "the tree of sapwood is no estimator of scikit-learn: use "
    "sapwood.sklearn.HoeffdingTreeRegressor, which has the same parameters"
)
RIVER = "in river use sapwood.river.HoeffdingTreeRegressor, which has the same parameters"


class Elsewhere:
    """What other programs ask a tree for: a picture, or something that an adapter has."""

    def fit(self, *arguments: Any, **options: Any) -> NoReturn:
        """Raise TypeError, which names the estimator for scikit-learn."""
        raise TypeError(SKLEARN)

    def score(self, *arguments: Any, **options: Any) -> NoReturn:
        """Raise TypeError, which names the estimator for scikit-learn."""
        raise TypeError(SKLEARN)

    def get_params(self, deep: bool = True) -> NoReturn:
        """Raise TypeError, which names the estimator for scikit-learn."""
        raise TypeError(SKLEARN)

    def __sklearn_tags__(self) -> NoReturn:
        raise TypeError(SKLEARN)

    def __str__(self) -> str:
        # River refuses a tree in words of its own, which end by the tree's.
        asked_by = sys._getframe(1).f_globals.get("__name__", "")
        is_river = asked_by == "river" or asked_by.startswith("river.")
        return f"{self!r}: {RIVER}" if is_river else repr(self)

    def _repr_html_(self) -> str:
        tree: Any = self
        told = f"<b>{escape(repr(tree))}</b>"
        if tree.n_leaves == 1:
            return f"<div>{told}<br>It has not split yet.</div>"
        drawn = tree.draw(SHOWN_DEPTH, orientation="right").svg
        below = f"<small>The top of the tree, to depth {SHOWN_DEPTH}; .draw() shows more.</small>"
        return f'<div>{told}<div style="overflow-x:auto">{drawn}</div>{below}</div>'
