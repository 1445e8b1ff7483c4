"""Which stages may be around which: orders that make no sense are rejected, with the reason."""

from typing import Any

from sapwood.model import StoredModel
from sapwood.regressor import Regressor
from sapwood.stages.stage import Stage
from sapwood.stages.surface import TransparentStage

__all__ = ["check_order", "takes_tokens"]

REPEATED = {
    "LaggedModel": "a row has one past: name all lags in one Lags",
    "LaggedClassifier": "a row has one past: name all lags in one Lags",
    "IntervalRegressor": (
        "a prediction has one interval at each level: name all levels in one IntervalRegressor"
    ),
    "CorrectedRegressor": "a second layer would follow the same errors",
    "MonitoredRegressor": "one monitor watches all features, y and the errors",
}
CLASSES = {
    "LaggedModel": (
        "and a class has no number that could be a lag: put a sapwood.classify.LaggedClassifier "
        "around it, whose lags are labels"
    ),
    "IntervalRegressor": (
        "and intervals are around numbers: its uncertainty is what predict_proba_one returns"
    ),
    "CorrectedRegressor": "and errors are those of numbers: calibrated classifiers need no layer",
    "MonitoredRegressor": (
        "and errors are those of numbers: sapwood.evaluate.evaluate_classes has a monitor of them"
    ),
}
CORRECTED = "CorrectedRegressor"


def check_order(kind: str, model: Any) -> None:
    """Raise ValueError if a stage of some kind makes no sense around a model, TypeError if it is none.

    Parameters
    ----------
    kind : str
        The `kind` of the stage.
    model : object
        What it is to be put around.
    """
    if isinstance(model, type):
        name = model.__name__
        raise TypeError(f"the model is the class {name}: give an object of it, such as {name}()")
    inner, around = model, ""
    while True:
        of_classes = isinstance(inner, StoredModel) and hasattr(type(inner), "predict_proba_one")
        if of_classes and kind in CLASSES:
            raise ValueError(
                f"the model is a {around}{type(inner).__name__}, which predicts classes, "
                f"{CLASSES[kind]}"
            )
        if not isinstance(inner, Stage):
            break
        if inner.kind == kind:
            raise ValueError(
                f"the model is a {around}{kind} already, and {REPEATED[kind]}; or put this one "
                "around the model inside that"
            )
        if kind == CORRECTED and inner.kind == "IntervalRegressor":
            raise ValueError(
                f"the model is a {around}{inner.kind}, whose intervals would be around predictions "
                "that are not corrected: put the IntervalRegressor around the corrected model"
            )
        around += f"{inner.kind} around a "
        inner = inner.model
    if kind == CORRECTED:
        _check_layer(model)


def _check_layer(model: Any) -> None:
    """Raise ValueError if what a model predicts is corrected already."""
    while isinstance(model, TransparentStage):
        model = model.model
    if isinstance(model, Regressor) and model.parameters.get("track") is not None:
        raise ValueError(
            f"the {type(model).__name__} has an error-correction layer of its own, which corrects "
            f"the same errors: use the model as it is, or make it with track=None"
        )


def takes_tokens(model: Any) -> bool:
    """Whether a model knows rows without ids by their keys, as stages that store predictions do."""
    return bool(getattr(model, "_takes_tokens", False))
