"""A classifier as a header and arrays, and back: every value is checked before it is used."""

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sapwood import model
from sapwood.classify._bayes import ARRAYS as BAYES
from sapwood.classify._calibration import EXPONENT_RANGE, LEAST_RATINGS, SET_ORDERS, Calibrator
from sapwood.classify.decisions import BALANCED
from sapwood.classify.held import Held, new_pending
from sapwood.classify.labels import MOST_CLASSES, class_label
from sapwood.classify.leaves import leaves_of
from sapwood.limits import MOST_ROWS, MOST_WEIGHT
from sapwood.model import State, check_unchanged
from sapwood.records import check, doubles
from sapwood.stages.stage import rows_learned
from sapwood.validation import whole

if TYPE_CHECKING:
    from sapwood.classify.classifier import Classifier

__all__ = ["restored", "state_of"]

Array = NDArray[Any]
Kind = TypeVar("Kind", bound="Classifier")

MODEL, CALIBRATION, WEIGHTS = "model", "calibration", "class_weights"
PENDING = ("pending_sizes", "pending_keys", "pending_ages", "pending")
ARRAYS = {MODEL, CALIBRATION, WEIGHTS, *PENDING}
SETS, SETS_SINCE = "prediction_sets", 2  # the format
COUNTS = "class_counts"  # with balanced weights
UNLABELLED = "unlabelled"  # if there were such rows
LATER_PARAMETERS = {"class_weight": None, "cost": None, "merit": None, "split_bound": "hoeffding"}
"""Parameters that older files do not have, and their defaults, which are left out."""
CANDIDATES = len(LEAST_RATINGS)
MOST_LOSS = 1e110
FARTHEST = 1e6  # that a rating may be from 0


def state_of(own: "Classifier") -> State:
    """Return all that a classifier is."""
    held = own._held
    arrays: dict[str, Array] = {
        MODEL: np.frombuffer(held.model.to_bytes(), np.uint8),
        CALIBRATION: held.calibrator.table.copy(),
        WEIGHTS: held.calibrator.class_weights.copy(),
        SETS: held.calibrator.sets.copy(),
        **dict(zip(PENDING, held.pending.state(), strict=True)),
    }
    if own._parameters["class_weight"] == BALANCED:
        arrays[COUNTS] = held.counts.copy()
    if held.bayes is not None:
        arrays |= held.bayes.state(leaves_of(held.model))
    return State(_header(own), arrays)


def _header(own: "Classifier") -> dict[str, Any]:
    parameters = {
        name: list(each) if isinstance(each, tuple) else each
        for name, each in own._parameters.items()
    }
    for name in ("class_weight", "cost"):  # labels are no keys of JSON
        parameters[name] = _pairs(parameters[name])
    for name, default in LATER_PARAMETERS.items():
        if name in parameters and parameters[name] == default:
            del parameters[name]
    header = {"parameters": parameters, "classes": list(own._held.classes)}
    unlabelled = own._held.unlabelled
    return {**header, UNLABELLED: unlabelled} if unlabelled else header


def _pairs(value: Any) -> Any:
    """Return a dict as a list of pairs, and what is in it too."""
    if not isinstance(value, dict):
        return value
    return [[label, _pairs(each)] for label, each in value.items()]


def _dict(value: Any) -> Any:
    """Return what `_pairs` made a list of."""
    if not isinstance(value, list):
        return value
    check(all(isinstance(e, list) and len(e) == 2 for e in value), "its parameters are no pairs")
    labels = [class_label(label) for label, _ in value]
    return dict(zip(labels, (_dict(each) for _, each in value), strict=True))


def restored(kind: type[Kind], state: State, format: int) -> Kind:
    """Return the classifier of a header and arrays, of which nothing is trusted.

    Raises
    ------
    ValueError, TypeError, OverflowError
        If there is anything wrong with them.
    """
    header, arrays = state
    known = header.keys() - {UNLABELLED} == {"parameters", "classes"}
    check(known, "its header has other entries than it should")
    check(isinstance(header["parameters"], dict), "its parameters are no dict")
    given = header["parameters"]
    own = kind(**{n: _dict(e) if n in ("class_weight", "cost") else e for n, e in given.items()})
    balanced = own._parameters["class_weight"] == BALANCED
    expected = ARRAYS | ({COUNTS} if balanced else set())
    expected |= {SETS} if format >= SETS_SINCE else set()
    expected |= set(BAYES) if own._held.bayes is not None else set()
    check(arrays.keys() == expected, f"its arrays are not {', '.join(sorted(expected))}")
    unlabelled = header.get(UNLABELLED, 0)
    if UNLABELLED in header:
        unlabelled = whole(unlabelled, UNLABELLED, 1, 2**62)
    classes = _classes(header["classes"])
    inner = _model(own, arrays[MODEL], len(classes))
    width = max(2, len(classes))
    labels = float(rows_learned(inner) or 0.0)
    calibrator = Calibrator(
        _calibration(arrays[CALIBRATION]),
        _weights(arrays[WEIGHTS], width, len(classes)),
        _sets(arrays[SETS]) if SETS in arrays else None,
    )
    check(calibrator.labels <= MOST_ROWS, "it cannot have so many labels")
    check(
        (labels > 0) == bool(classes), "its model and its classes differ in whether there are rows"
    )
    pending = new_pending(width, own._limit)
    sizes, keys, ages, records = (arrays[name] for name in PENDING)
    good = sizes.dtype == np.float64 and sizes.shape in ((7,), (8,))
    check(good and bool(np.isfinite(sizes).all()), "the counts of pending predictions are wrong")
    check(keys.dtype == np.uint64 and keys.ndim == 1, "the keys of pending predictions are wrong")
    check(ages.dtype == np.int64 and ages.ndim == 1, "the ages of pending predictions are wrong")
    records = doubles(records, (len(keys), 1 + width), "the pending predictions")
    then = records[:, 0]
    are_good = (then >= 0) & (then <= calibrator.labels) & (then == np.floor(then))
    check(bool(are_good.all()), "a pending prediction is newer than all labels")
    check(bool((np.abs(records[:, 1:]) <= FARTHEST).all()), "a pending prediction is too large")
    pending.restore(sizes, keys, ages, np.ascontiguousarray(records))
    inner._use_growth(own._growth.of(len(classes)))
    bayes = None if own._held.bayes is None else own._held.bayes.widened(width)
    if bayes is not None:
        bayes.restore(arrays, leaves_of(inner), len(inner.features))
    codes = {label: code for code, label in enumerate(classes)}
    counts = _weights(arrays[COUNTS], width, len(classes)) if balanced else np.zeros(width)
    own._held = Held(inner, classes, codes, calibrator, pending, counts.copy(), unlabelled, bayes)
    check_unchanged(_header(own), header)
    return own


def _classes(found: Any) -> tuple[Any, ...]:
    check(isinstance(found, list) and len(found) <= MOST_CLASSES, "its classes are no list")
    classes = tuple(class_label(label) for label in found)
    check(len(set(classes)) == len(classes), "two of its classes are the same")
    return classes


def _model(own: "Classifier", data: Array, classes: int) -> Any:
    """Return the model inside, if it is one that such a classifier could have."""
    check(data.dtype == np.uint8 and data.ndim == 1, "its model is no bytes")
    inner = model.from_bytes(data.tobytes(), "the model of the classifier")
    check(type(inner) is own.regressor, f"its model is a {type(inner).__name__}")
    expected = own._held.model.parameters
    same = {name: repr(each) for name, each in inner.parameters.items()} == {
        name: repr(each) for name, each in expected.items()
    }
    check(same, "its model has other parameters than it should")
    targets = inner.targets
    good = targets == (list(range(classes)) if classes > 2 else [])
    check(good, f"its model has {len(targets)} targets and there are {classes} classes")
    return inner


def _calibration(table: Array) -> Array:
    table = doubles(table, (1 + 3 * CANDIDATES,), "the calibration")
    labels, (exponents, curvatures, losses) = table[0], table[1:].reshape(3, CANDIDATES)
    check(labels >= 0 and labels == np.floor(labels), "the calibration has no number of labels")
    low, high = EXPONENT_RANGE
    good = ((exponents >= low) & (exponents <= high)).all()
    check(bool(good), "an exponent of the calibration is wrong")
    for sums in (curvatures, losses):
        check(bool(((sums >= 0) & (sums <= MOST_LOSS)).all()), "the calibration is wrong")
    return table


def _sets(table: Array) -> Array:
    table = doubles(table, Calibrator().sets.shape, "the prediction sets")
    orders, bins = np.split(table, [len(SET_ORDERS)])
    good = (orders >= 0) & (orders <= SET_ORDERS)
    check(bool(good.all()), "the order of a quantile is wrong")
    check(bool(((bins >= 0) & (bins <= MOST_ROWS)).all()), "the prediction sets are wrong")
    return table


def _weights(weights: Array, width: int, classes: int) -> Array:
    weights = doubles(weights, (width,), "the weights of classes")
    good = (weights >= 0).all() and (weights <= MOST_WEIGHT * 2).all()
    check(bool(good), "the weight of a class is wrong")
    check(bool((weights[classes:] == 0).all()), "a class that is not there has a weight")
    # Workers share a first class, of which one of them may have no rows.
    check(bool((weights[1:classes] > 0).all()), "a class has no weight")
    return weights
