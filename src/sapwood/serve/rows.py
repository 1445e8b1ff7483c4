"""Request bodies become batches of rows: JSON, or an Arrow IPC stream.

An item is an object ``{"x": features, "id": text, "y": target, "w": weight}``; a body is one item,
or ``{"rows": [items]}``. Values of features are left to the model, which rejects bad ones with the
same message as elsewhere.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, ClassVar, NoReturn

from sapwood.classify.labels import class_label
from sapwood.validation import Label

__all__ = ["Batch", "BodyError", "Limits", "RowError", "TooLargeError", "read_json"]

JSON = "application/json"
LONGEST_ID = 256
LARGEST = 1e100
"""The largest target that a model takes."""
HEAVIEST = 1e9
"""The largest weight of a row."""
MOST_KEYS = 4096
"""Features of a row."""


class BodyError(ValueError):
    """The body is not what its content type states."""

    status: ClassVar[int] = 400


class RowError(ValueError):
    """The body is well-formed, but a row is not acceptable."""

    status: ClassVar[int] = 422
    reason: ClassVar[str] = "bad_row"


class TargetError(RowError):
    """A target, or the label of a class, is not acceptable."""

    reason: ClassVar[str] = "bad_target"


class WeightError(RowError):
    """The weight of a row is not acceptable."""

    reason: ClassVar[str] = "bad_weight"


class IdError(RowError):
    """The identifier of a row is not acceptable."""

    reason: ClassVar[str] = "bad_id"


class UnknownFeatureError(RowError):
    """A row has a feature that the model does not know."""

    reason: ClassVar[str] = "unknown_feature"


class TooLargeError(ValueError):
    """The body has too many rows or bytes."""

    status: ClassVar[int] = 413


@dataclass(frozen=True)
class Limits:
    """The sizes that a request may have."""

    bytes: int = 16 * 2**20
    rows: int = 10_000


@dataclass
class Batch:
    """Rows of one request.

    - `count`: the number of rows.
    - `ids`, `y`, `w`: the identifiers, the targets and the weights of the rows.
    - `encoded`: whether the schema of the model was applied to the rows already.
    """

    rows: Any
    count: int
    ids: list[str | None] | None = None
    y: list[Any] | None = None
    w: list[float] | None = None
    encoded: bool = False

    def as_dicts(self) -> list[dict[Any, Any]]:
        """Return the rows as dicts."""
        if not isinstance(self.rows, Mapping):
            return list(self.rows)
        names = list(self.rows)
        return [
            dict(zip(names, values, strict=True))
            for values in zip(*(self.rows[name] for name in names), strict=True)
        ]


def reject_constant(name: str) -> NoReturn:
    """Raise for NaN and infinities, which JSON does not have."""
    raise BodyError(f"{name} is no JSON value; send null for a missing value")


decode_json = json.JSONDecoder(parse_constant=reject_constant).decode


def loads(body: bytes) -> Any:
    """Return what a JSON text means.

    - Raises BodyError if it is no JSON text.
    """
    try:
        return decode_json(body.decode().removeprefix("\ufeff"))
    except BodyError:
        raise
    except UnicodeDecodeError as error:
        raise BodyError(
            f"the body is not UTF-8 at byte {error.start}; send JSON in UTF-8"
        ) from None
    except RecursionError:
        raise BodyError("the body is nested too deeply; send one object with rows") from None
    except ValueError as error:
        raise BodyError(f"the body is no JSON: {error}; send one JSON object") from None


def read_json(body: bytes, wanted: str, limits: Limits, task: str = "numbers") -> Batch:
    """Return the rows of a JSON body.

    - `wanted`: the keys of an item that are required: "x", "xy" (features and target) or "iy"
      (identifier and target).
    - `limits`: the sizes that it may have.

    Examples
    --------
    >>> read_json(b'{"x": {"temp": 21.5}, "y": 310}', "xy", Limits()).y
    [310]
    """
    found = loads(body)
    if not isinstance(found, dict):
        raise RowError(f"the body is {shown(found)}; send an object with x, or with rows")
    name = "labels" if wanted == "iy" else "rows"
    items, single = ([found], True) if name not in found else (found[name], False)
    if not single:
        check_keys(found, {name}, "the body")
        if not isinstance(items, list):
            raise RowError(f"{name} is {shown(items)}; send a list of objects")
    if len(items) > limits.rows:
        raise TooLargeError(
            f"{len(items):,} rows are more than {limits.rows:,}; send fewer at once"
        )
    if not items:
        raise RowError(f"{name} is empty; send at least one row")
    return collected(items, wanted, "" if single else name, task)


def collected(items: Sequence[Any], wanted: str, place: str, task: str) -> Batch:
    """Return items as a batch."""
    allowed = {"iy": {"id", "y"}, "xy": {"x", "y", "w", "id"}, "x": {"x", "id"}}[wanted]
    required = {"iy": ("id", "y"), "xy": ("x", "y"), "x": ("x",)}[wanted]
    for number, item in enumerate(items):
        where = f"{place}[{number}]" if place else "the body"
        if not isinstance(item, dict):
            raise RowError(f"{where} is {shown(item)}; send an object")
        if not item.keys() <= allowed:
            check_keys(item, allowed, where)
        for key in required:
            if key not in item:
                raise RowError(f"{where} has no {key!r}; add it")
        if "x" in item:
            check_features(item["x"], where)
        if "id" in item and item["id"] is None:
            raise IdError(f"id of {where} is null; send a text, or leave it out")
    ids = ids_of([item.get("id") for item in items], place)
    weights = None
    if any("w" in item for item in items):
        weights = [item.get("w", 1.0) for item in items]
        check_weights(weights)
    rows = [item["x"] for item in items] if wanted != "iy" else []
    y = [item["y"] for item in items] if wanted != "x" else None
    check_targets(y or (), task)
    return Batch(rows, len(items), ids, y, weights)


def check_features(x: Any, where: str) -> None:
    """Raise RowError unless features are an object of a sane size."""
    if not isinstance(x, dict):
        raise RowError(f"x of {where} is {shown(x)}; send an object of features by name")
    if not x:
        raise RowError(f"x of {where} is empty; send at least one feature, null if it is missing")
    if len(x) > MOST_KEYS:
        raise RowError(
            f"x of {where} has {len(x):,} features, more than {MOST_KEYS:,}; send fewer features"
        )


def check_names(rows: Any, known: frozenset[str]) -> None:
    """Raise RowError for features that a model does not know.

    - `known`: the features that the model knows.
    """
    for row in [rows] if isinstance(rows, Mapping) else rows:
        if not row.keys() <= known:
            name = next(name for name in row if name not in known)
            near = get_close_matches(name, known, 1)
            hint = (
                f"did you mean {shown(near[0])}?"
                if near
                else "leave it out, or pass --new-features"
            )
            raise UnknownFeatureError(
                f"x has the feature {shown(name)}, which the model does not know; {hint}"
            )


def check_targets(y: Sequence[Any], task: str = "numbers") -> None:
    """Raise TargetError for targets that no model takes, whether they are learned or not."""
    if task == "classes":
        try:
            for place, value in enumerate(y):
                if value is None:
                    raise ValueError(
                        f"y = None at position {place}: leave out a row whose label is missing"
                    )
                class_label(value, place)
        except ValueError as error:
            raise TargetError(str(error)) from None
        return
    for place, value in enumerate(y):
        is_several = isinstance(value, dict) and any(each is not None for each in value.values())
        for each in value.values() if is_several else [value]:
            is_number = isinstance(each, int | float) and not isinstance(each, bool)
            if not (is_number or (is_several and each is None)):
                raise TargetError(
                    f"y = {shown(each)} at position {place} must be a number; fix the value, or drop "
                    "the row until its label is known"
                )
            if is_number and not abs(each) <= LARGEST:
                raise TargetError(
                    f"y = {shown(each)} at position {place} must not be beyond {LARGEST:g}; scale "
                    "y down or drop the row"
                )


def check_target_names(y: Sequence[Any], names: Sequence[str]) -> None:
    """Raise TargetError for targets that are not those of a model.

    - `y`: the targets of each row: a number, or a dict of several.
    - `names`: the names of the targets of the model; none if it has one.
    """
    for place, value in enumerate(y):
        if isinstance(value, dict) != bool(names):
            expected = f"an object with {', '.join(names)}" if names else "a number"
            raise TargetError(f"y = {shown(value)} at position {place}: send {expected}")
        wrong = next((name for name in value if name not in names), None) if names else None
        if wrong is not None:
            raise TargetError(
                f"y at position {place} has the target {shown(wrong)}, which the model does not know; "
                f"send {', '.join(names)}"
            )


def check_classes(y: Sequence[Any], known: Sequence[Label]) -> None:
    """Raise TargetError for labels of classes that a model does not know.

    - `known`: the classes that the model knows.
    """
    own = set(known)
    for place, label in enumerate(y):
        if label not in own:
            near = get_close_matches(str(label), [str(each) for each in known], 1)
            hint = next((f"did you mean {each!r}?" for each in known if near == [str(each)]), "")
            raise TargetError(
                f"y = {shown(label)} at position {place} is no class that the model knows; "
                f"{hint or 'send one of ' + shown(list(known)) + ', or pass --new-classes'}"
            )


def check_weights(weights: Sequence[Any]) -> None:
    """Raise RowError unless weights are positive numbers of a sane size."""
    for place, weight in enumerate(weights):
        is_number = isinstance(weight, int | float) and not isinstance(weight, bool)
        if not (is_number and 0 < weight <= HEAVIEST):
            message = f"w = {shown(weight)} at position {place} must be above 0 and at most 1e9"
            raise WeightError(f"{message}; scale the weights, or drop the row")


def check_keys(item: dict[str, Any], allowed: set[str], where: str) -> None:
    """Raise RowError for keys that mean nothing here."""
    for key in item:
        if key not in allowed:
            expected = ", ".join(sorted(allowed))
            raise RowError(
                f"{where} has the key {shown(key)}; only {expected} are expected: rename it or leave it "
                "out"
            )


def ids_of(found: Sequence[Any], place: str) -> list[str | None] | None:
    """Return identifiers once they are known to be texts, None where a row has none."""
    if all(each is None for each in found):
        return None
    for number, each in enumerate(found):
        where = f"id of {place}[{number}]" if place else "id"
        if each is None:
            continue
        if not isinstance(each, str) or not 0 < len(each) <= LONGEST_ID:
            raise IdError(f"{where} is {shown(each)}; send a text of 1 to {LONGEST_ID} characters")
        if "\\ud" in ascii(each):
            raise IdError(f"{where} has half of a surrogate pair; send text that is valid Unicode")
    return list(found)


def shown(value: Any) -> str:
    """Return a value for a message, in short."""
    text = ascii(value)
    return text if len(text) <= 60 else f"{text[:40]}...{text[-10:]}"
