"""The views that a model has which is one tree, or stands for one."""

from abc import abstractmethod
from typing import Any

from sapwood.inspect import draw, view

__all__ = ["TreeViews"]


class TreeViews:
    """A tree as text, as a frame and as a picture."""

    @abstractmethod
    def _picture(self) -> view.TreePicture:
        """Return the tree as the views see it."""

    def to_text(self, max_depth: int | None = None, digits: int = 4) -> str:
        """Return the tree as indented text, with a line for each node.

        Parameters
        ----------
        max_depth : int, optional
            Nodes at this depth stand for all that is below them.
        digits : int
            Significant digits of a number.
        """
        return view.to_text(self._picture(), max_depth, digits)

    def to_frame(self) -> Any:
        """Return a pandas data frame with one row per node."""
        return view.to_frame(self._picture())

    def draw(self, max_depth: int | None = 5, **options: Any) -> draw.Drawing:
        """Return a picture of the tree, in SVG.

        Parameters
        ----------
        max_depth : int, optional
            Nodes at this depth stand for all that is below them.
        **options
            As for `sapwood.inspect.draw.draw`: digits, target, orientation.
        """
        return draw.draw(self._picture(), max_depth, **options)
