"""Two classifiers that have learned different rows as one: a forest that has the trees of both."""

from typing import TYPE_CHECKING, Any

import numpy as np

from sapwood.classify._calibration import Calibrator
from sapwood.classify.held import Held, new_pending
from sapwood.classify.predicting import MODEL_SHARE, OWN_BYTES
from sapwood.classify.widening import reordered
from sapwood.merge.errors import MergeError
from sapwood.merge.union import merged as merged_models
from sapwood.validation import Label

if TYPE_CHECKING:
    from sapwood.classify.classifier import Classifier
    from sapwood.classify.models import ForestClassifier

__all__ = ["check_mergeable", "merged", "start_with"]

SAME = ("class_weight", "cost", "grace_period", "leaf")  # and what the models inside compare


def merged(one: "Classifier", other: Any) -> "ForestClassifier":
    """Return a forest of the trees of two classifiers; both stay as they are.

    Parameters
    ----------
    one, other : HoeffdingTreeClassifier or ForestClassifier
        That have learned different rows, with the same parameters.

    Raises
    ------
    MergeError
        If they cannot be one model.
    """
    from sapwood.classify.models import ForestClassifier

    for model in (one, other):
        check_mergeable(model)
    for name in SAME:
        mine, theirs = one._parameters[name], other._parameters[name]
        if mine != theirs:
            raise MergeError(f"{name} is {mine!r} in one model and {theirs!r} in the other")
    classes = (*one.classes, *(label for label in other.classes if label not in one._held.codes))
    pair = [_with_classes(each, classes) for each in (one, other)]
    inner = merged_models(pair[0].model, pair[1].model)
    made = ForestClassifier(**_parameters(one, inner))
    inner._use_growth(made._growth.of(len(classes)))
    calibrator, counts = _joined(pair)
    codes = {label: code for code, label in enumerate(classes)}
    pending = new_pending(max(2, len(classes)), made._limit)
    unlabelled = one.rows_unlabelled + other.rows_unlabelled
    made._held = Held(inner, classes, codes, calibrator, pending, counts, unlabelled)
    return made


def check_mergeable(model: Any) -> None:
    """Raise MergeError unless a model is a classifier that can become part of a forest."""
    from sapwood.classify.models import ForestClassifier, HoeffdingTreeClassifier

    if not isinstance(model, HoeffdingTreeClassifier | ForestClassifier):
        raise MergeError(
            f"{type(model).__name__} cannot be merged with a classifier: trees "
            "(HoeffdingTreeClassifier) and forests (ForestClassifier) can be"
        )
    if model._held.bayes is not None or model._growth.merit is not None:
        raise MergeError("a forest has no leaves of naive Bayes and no merit of VFDT")


def start_with(model: "Classifier", first: Label) -> None:
    """Let an empty classifier know its first class, so that it can be merged with others."""
    model._held = model._held.widened((first,), model._limit, model._growth)


def _with_classes(own: "Classifier", classes: tuple[Label, ...]) -> Held:
    """Return what a classifier holds, with all classes in one order."""
    with own._turn():
        held = own._held
        if held.classes == classes[: len(held.classes)] and len(classes) == len(held.classes):
            return held
        if len(classes) < 3 and held.classes != classes[: len(held.classes)]:
            first = classes[0]
            raise MergeError(
                f"the first class is {first!r} in one model and {held.classes[0]!r} in the other, "
                f"and there are but two: let both models learn a row of {first!r} first"
            )
        held = held.copied(own._limit)
        order = list(held.classes)
        for label in classes:
            if label not in held.codes:
                order.append(label)
                held = held.widened(tuple(order), own._limit, own._growth)
    places = [order.index(label) for label in classes]
    if places == list(range(len(classes))):
        return held
    calibrator = Calibrator(
        held.calibrator.table, held.calibrator.class_weights[places], held.calibrator.sets
    )
    model = reordered(held.model, places)
    return held._replace(
        model=model, classes=classes, calibrator=calibrator, counts=held.counts[places]
    )


def _joined(pair: list[Held]) -> tuple[Calibrator, Any]:
    """Return the calibration of the classifier that has more labels, and the weights of both."""
    first, second = (held.calibrator for held in pair)
    more = first if first.labels >= second.labels else second
    width = max(len(first.class_weights), len(second.class_weights))
    weights, counts = np.zeros(width), np.zeros(width)
    for held in pair:
        own = held.calibrator.class_weights
        weights[: len(own)] += own
        counts[: len(held.counts)] += held.counts
    table = more.table.copy()
    table[0] = first.labels + second.labels
    return Calibrator(table, weights, more.sets), counts


def _parameters(one: "Classifier", inner: Any) -> dict[str, Any]:
    """Return the parameters of a forest classifier whose model is the given one."""
    found = {name: each for name, each in inner.parameters.items() if name in one._parameters}
    found |= {name: inner.parameters[name] for name in ("members", "seed", "threads")}
    found |= {name: one._parameters[name] for name in SAME}
    limit = inner.parameters["max_bytes"]
    if limit is not None:  # the least whose share is that of the trees
        limit = int((limit + OWN_BYTES) / MODEL_SHARE) - 2
        while int(MODEL_SHARE * limit) - OWN_BYTES < inner.parameters["max_bytes"]:
            limit += 1
    return found | {"max_bytes": limit}
