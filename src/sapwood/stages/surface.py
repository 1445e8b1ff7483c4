"""What a stage offers of the model inside, where it leaves that as it is."""

from collections.abc import Mapping
from typing import Any, ClassVar, NoReturn

from numpy.typing import ArrayLike

from sapwood import validation
from sapwood.deprecation import deprecated
from sapwood.model import can_be_saved, is_all_or_nothing
from sapwood.row_methods import RegionMethods
from sapwood.stages.stage import RowStage, offered, passed_on
from sapwood.validation import Label

__all__ = ["TransparentStage"]


class TransparentStage(RowStage):
    """A stage that changes rows or adds to predictions, and leaves the model inside as it is.

    What can be read of that model, or done to it, without rows is offered here.
    """

    _cannot_merge: ClassVar[str]  # why, and what to do
    _of_target: ClassVar[str]  # why there is no model of one target, and what to do

    @property
    def several_targets(self) -> bool:
        """Whether the model can learn several targets."""
        return bool(getattr(self.model, "several_targets", False))

    @property
    def targets(self) -> list[Label]:
        """The names of several targets, in their order; none if there is one, or none yet."""
        return list(self.model.targets) if self.several_targets else []

    def _names(self) -> tuple[Label, ...]:
        return tuple(self.targets)

    @property
    def all_or_nothing(self) -> bool:  # type: ignore[override]
        """Whether rows that are rejected have changed nothing, as the model promises."""
        return is_all_or_nothing(self.model)

    @property
    def can_be_saved(self) -> bool:
        """Whether the model inside can be saved."""
        return can_be_saved(self.model)

    def merge(self, other: Any, *more: Any) -> NoReturn:
        """Raise ValueError: a stage has learned from its own stream and model.

        Parameters
        ----------
        other, *more : objects
            Whatever is to be merged.
        """
        raise ValueError(self._cannot_merge)

    def of_target(self, target: Label) -> Any:
        """Raise ValueError: the model of one target is the one inside.

        Parameters
        ----------
        target : str or int
            Its name.
        """
        raise ValueError(f"target = {validation.shown(target)}: {self._of_target}")

    predict_region_one = offered(RegionMethods.predict_region_one)
    predict_regions = offered(RegionMethods.predict_regions)
    predict_learn_regions = offered(RegionMethods.predict_learn_regions)

    @offered
    def explain(self, x: Mapping[Any, Any], *arguments: Any, **own: Any) -> Any:
        """Explain the prediction for a row, as the model inside does."""
        return self.model.explain(self._encoded_one(x), *arguments, **own)

    @offered
    def tell_one(self, x: dict[Any, Any]) -> Any:
        """Predict one row: deprecated, use ``predict_one(x, record=False)``."""
        deprecated("tell_one(x)", "predict_one(x, record=False)")
        return self.predict_one(x, record=False)

    @offered
    def learn_telling(self, X: Any, y: Any, w: ArrayLike | None = None) -> Any:
        """Learn rows: deprecated, use ``predict_learn_many(X, y, w, delayed=True)``."""
        deprecated("learn_telling(X, y, w)", "predict_learn_many(X, y, w, delayed=True)")
        return self.predict_learn_many(X, y, w, delayed=True)

    # Of all models.
    features = passed_on("The names of the features, in the order of their first appearance.")
    feature_kinds = passed_on("What each feature is, as the model reports it.")
    n_leaves = passed_on("The number of leaves of the model.")
    summary = passed_on("The model in a few numbers.")
    feature_importances = passed_on("The share of each feature in what the model explains.")
    overall_importances = passed_on("The share of each feature over all targets.")
    to_text = passed_on("Return the model as indented text.")
    no_splits = passed_on(
        "The names of features that no leaf splits on; others can be assigned.", settable=True
    )
    unit_changes = passed_on("The changes of units that were found.")

    # Of monitored models.
    drift_events = passed_on("The latest drift alerts of the monitor.")
    monitor = passed_on("The drift monitor as it is now.")

    # Of trees.
    to_rules = passed_on("Return one rule for each leaf of the tree.")
    to_frame = passed_on("Return the nodes of the tree as a frame.")
    draw = passed_on("Return a picture of the tree.")
    prune = passed_on("Turn a node into a leaf again.")
    region_parents = passed_on("The node that each node was split off from.")

    # Of ensembles.
    tree = passed_on("The tree that stands for the model.")
    member = passed_on("Return a member of an ensemble.")
    replacements = passed_on("How often trees of an ensemble were replaced.")
    listen = passed_on("Call a function whenever something happens to the trees.")

    # Of hybrids.
    batch_name = passed_on("The name of the batch learner.")
    attach = passed_on("Give a batch learner to a hybrid whose file could not hold it.")
    corrector = passed_on("The online model that has the batch model's prediction as a feature.")
    is_refitting = passed_on("Whether a fit is running.")
    refit_now = passed_on("Fit the batch learner on the rows of the window, and wait for it.")
    refits = passed_on("The fits so far.")
    rows = passed_on("The number of rows learned.")
    staleness = passed_on("The weight that the batch model has lost, and its recent errors.")
    weight_history = passed_on("Weights and recent RMSE of the members over time.")
    weights = passed_on("The shares of the members in predictions.")
