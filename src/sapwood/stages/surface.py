"""What a stage offers of the model inside, where it leaves that as it is."""

from sapwood.stages.stage import Stage, passed_on

__all__ = ["TransparentStage"]


class TransparentStage(Stage):
    """A stage that changes rows or adds to predictions, and leaves the model inside as it is.

    What can be read of that model, or done to it, without rows is offered here.
    """

    # Of all models.
    summary = passed_on("The model in a few numbers.")
    feature_importances = passed_on("The share of each feature in what the model explains.")
    overall_importances = passed_on("The share of each feature over all targets.")
    to_text = passed_on("Return the model as indented text.")
    no_splits = passed_on(
        "The names of features that no leaf splits on; others can be assigned.", settable=True
    )
    unit_changes = passed_on("The changes of units that were found.")

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
    is_refitting = passed_on("Whether a fit is under way.")
    refit_now = passed_on("Fit the batch learner on the rows of the window, and wait for it.")
    refits = passed_on("The fits so far.")
    rows = passed_on("How many rows were learned.")
    staleness = passed_on("How far the batch model has gone stale.")
    weight_history = passed_on("Weights and recent RMSE of the members over time.")
    weights = passed_on("The shares of the members in predictions.")
