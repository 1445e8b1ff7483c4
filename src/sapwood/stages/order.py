"""Which stages may be around which: orders that make no sense are rejected, with the reason."""

from typing import Any

from sapwood.model import StoredModel
from sapwood.stages.stage import Stage

__all__ = ["check_order"]

REPEATED = {
    "LaggedModel": "a row has one past: name all lags in one Lags",
    "LaggedClassifier": "a row has one past: name all lags in one Lags",
    "IntervalRegressor": (
        "a prediction has one interval at each level: name all levels in one IntervalRegressor"
    ),
}
CLASSES = {
    "LaggedModel": (
        "and a class has no number that could be a lag: put a sapwood.classify.LaggedClassifier "
        "around it, whose lags are labels"
    ),
    "IntervalRegressor": (
        "and intervals are around numbers: its uncertainty is what predict_proba_one returns"
    ),
}


def check_order(kind: str, model: Any) -> None:
    """Raise ValueError if a stage of some kind makes no sense around a model.

    Parameters
    ----------
    kind : str
        The `kind` of the stage.
    model : object
        What it is to be put around.
    """
    inner, around = model, ""
    while True:
        of_classes = isinstance(inner, StoredModel) and hasattr(type(inner), "predict_proba_one")
        if of_classes and kind in CLASSES:
            raise ValueError(
                f"the model is a {around}{type(inner).__name__}, which predicts classes, "
                f"{CLASSES[kind]}"
            )
        if not isinstance(inner, Stage):
            return
        if inner.kind == kind:
            raise ValueError(
                f"the model is a {around}{kind} already, and {REPEATED[kind]}; or put this one "
                "around the model inside that"
            )
        around += f"{inner.kind} around a "
        inner = inner.model
