"""The views that a model has which is one tree, or stands for one."""

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from sapwood import validation
from sapwood.inspect import draw, view
from sapwood.rows.features import Features
from sapwood.validation import Label

if TYPE_CHECKING:
    from sapwood.inspect.rules import RuleSet

__all__ = ["TreeViews"]


class TreeViews:
    """A tree as text, as a frame and as a picture."""

    _features: Features

    @abstractmethod
    def _tree_of(self, target: Label) -> "TreeViews":
        """Return the tree as that of one of its several targets."""

    @abstractmethod
    def _picture(self) -> view.TreePicture:
        """Return the tree as the views see it."""

    def to_text(
        self, max_depth: int | None = None, digits: int = 4, target: Label | None = None
    ) -> str:
        """Return the tree as indented text, with a line for each node.

        Parameters
        ----------
        max_depth : int, optional
            Nodes at this depth are shown without the nodes below them.
        digits : int
            Significant digits of a number.
        target : str or int, optional
            For several targets, the target that is shown; all by default.
        """
        if target is not None:
            return self._tree_of(target).to_text(max_depth, digits)
        return view.to_text(self._picture(), max_depth, digits)

    @abstractmethod
    def _one_tree(self) -> Any:
        """Return the tree as a `HoeffdingTreeRegressor`."""

    def to_rules(self, target: Label | None = None) -> "RuleSet":
        """Return one rule for each leaf, ordered by the number of rows; `print` shows them.

        Conditions on the same feature are merged.

        Parameters
        ----------
        target : str or int, optional
            The target whose predictions the rules describe, if there are several.

        Returns
        -------
        RuleSet
            A sequence of rules, with `to_text`, `to_frame`, `to_records` and `to_json`.
        """
        from sapwood.inspect.rule_reading import rules_of

        if target is not None:
            return self._tree_of(target).to_rules()
        if self._features.known.targets:
            raise ValueError(several_targets("to_rules", self._features.known.targets[0]))
        return rules_of(self._one_tree())

    def to_frame(self) -> Any:
        """Return a pandas data frame with one row per node."""
        return view.to_frame(self._picture())

    def draw(self, max_depth: int | None = 5, **options: Any) -> draw.Drawing:
        """Return a picture of the tree, in SVG.

        Parameters
        ----------
        max_depth : int, optional
            Nodes at this depth are shown without the nodes below them.
        **options
            As for `sapwood.inspect.draw.draw`: digits, target, orientation. Of several targets,
            `target` is the name of the one that is drawn.
        """
        names = self._features.known.targets
        if not names:
            return draw.draw(self._picture(), max_depth, **options)
        if "target" not in options:
            raise ValueError(several_targets("draw", names[0]))
        tree = self._tree_of(options["target"])
        return tree.draw(max_depth, **{**options, "target": str(options["target"])})


def several_targets(method: str, target: Label) -> str:
    """Return the message for a view that shows one of several targets."""
    return (
        f"the tree has several targets: name the one to show, as in "
        f"{method}(target={validation.shown(target)})"
    )
