"""Deltas of workers that have found other features or categories, brought to the same ones.

Features and labels of the snapshot come first, as they are in all of them; then the new ones in the
order of their names, not of their appearance, so that it does not matter who was first. What is
known of categories of few is in `levels`, of those of many in `label_sums`: where one worker has
found few and all together many, it moves, and the slots of single categories are left out, as a
tree leaves them out with the 64th category.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood import validation
from sapwood.merge._delta import RATES_OF_MODELS, delta_doubles, information_doubles
from sapwood.merge.column_facts import aligned_facts
from sapwood.merge.errors import MergeError
from sapwood.merge.leaf_sums import joined_slots
from sapwood.rows.column import CATEGORY, IDENTIFIER, OTHERS, UNKNOWN
from sapwood.rows.features import TARGETS
from sapwood.validation import Label

__all__ = [
    "LABEL_SUMS",
    "aligned",
    "are_few",
    "many_of",
    "slot_counts",
    "targets_of",
    "united",
]

Array = NDArray[Any]
Header = dict[str, Any]

CODES = OTHERS + 1
LABEL_SUMS = ("weight", "sum", "square")
"""What rows have added to a category: their weight, and weighted sums of y and its square, both from
the first y of the tree. While a worker has few categories, it does not count squares. Their sum is
then the least that its rows can have, as if all of them had the same y. It is computed once per
shard, so that it does not depend on the order in which deltas are added."""


def united(one: Header, other: Header, known: list[int]) -> Header:
    """Return the features that two workers know together.

    - `one`, `other`: what `Features.to_header` returns for each.
    - `known`: how many labels each feature of the snapshot had; what comes behind is new.
    - Raises MergeError if a feature holds numbers here and labels there.
    """
    base: list[Label] = one["names"][: len(known)]
    places = [{name: at for at, name in enumerate(each["names"])} for each in (one, other)]
    fresh = sorted({*one["names"], *other["names"]} - set(base), key=_order)
    kinds, labels = [], []
    for at, name in enumerate([*base, *fresh]):
        both = [
            (each["kinds"][place[name]], each["labels"][place[name]])
            for each, place in zip((one, other), places, strict=True)
            if name in place
        ]
        found = sorted({kind for kind, _ in both} - {UNKNOWN})
        if IDENTIFIER in found and set(found) <= {CATEGORY, IDENTIFIER}:
            found = [IDENTIFIER]
        if len(found) > 1:
            raise MergeError(
                f"{validation.shown(name)} holds numbers in one shard and labels in another: declare it "
                f"to be a category, as by --categorical {name}"
            )
        kinds.append(found[0] if found else UNKNOWN)
        old = both[0][1][: known[at]] if at < len(known) else []
        new = {label for _, own in both for label in own} - set(old)
        known_labels = [*old, *sorted(new, key=_order)]
        labels.append([] if kinds[-1] == IDENTIFIER else known_labels)
    return {**one, "names": [*base, *fresh], "kinds": kinds, "labels": labels}


def _order(name: Label) -> tuple[bool, Any]:
    return isinstance(name, str), name


def targets_of(header: Header) -> int:
    """Return the number of targets."""
    return max(1, len(header.get(TARGETS, ())))


def is_separate(header: Header) -> bool:
    """Return whether each of several targets has models of its own: where categories enter them."""
    return targets_of(header) > 1 and CATEGORY in header["kinds"]


def slot_counts(header: Header, slots: int) -> Array:
    """Return how many slots each feature has, that of missing values among them."""
    return np.where(are_few(header), 1 + CODES, 1 + slots)


def are_few(header: Header) -> Array:
    """Return of each feature whether it is a category of few."""
    return np.array(
        [
            kind == CATEGORY and len(labels) <= OTHERS
            for kind, labels in zip(header["kinds"], header["labels"], strict=True)
        ],
        bool,
    )


def many_of(header: Header) -> list[int]:
    """Return which features are categories of many; `label_sums` has their labels in this order."""
    few = are_few(header)
    kinds = header["kinds"]
    return [place for place, kind in enumerate(kinds) if kind == CATEGORY and not few[place]]


def aligned(arrays: dict[str, Array], old: Header, new: Header, slots: int) -> dict[str, Array]:
    """Return the arrays of a delta for other features, which are those that it has and more.

    - `old`, `new`: its features, and those that it is to have.
    """
    if old == new:
        return arrays
    place = {name: at for at, name in enumerate(new["names"])}
    features = np.array([place[name] for name in old["names"]], int)
    stay = are_few(old) & are_few(new)[features]
    codes = [
        _codes(own if few else [], new["labels"][at])
        for own, at, few in zip(old["labels"], features, stay, strict=True)
    ]
    parts_at = arrays["parts_at"].copy()
    parts_at[:, 1] = features[parts_at[:, 1]]
    return {
        **arrays,
        **_aligned_slots(
            _kept_slots(arrays, old, stay, slots),
            (slot_counts(old, slots), slot_counts(new, slots)),
            are_few(old),
            features,
            codes,
        ),
        "models": _aligned_models(arrays["models"], features, old, new),
        "levels": np.stack(
            [
                _aligned_levels(own, features, codes, stay, len(new["names"]))
                for own in arrays["levels"]
            ]
        ),
        "label_sums": _aligned_label_sums(arrays, old, new, features),
        "facts": aligned_facts(arrays["facts"], features, len(new["names"])),
        "parts_at": parts_at,
    }


def _codes(own: list[Label], labels: list[Label]) -> Array:
    """Return the new code of each old one."""
    codes = np.full(CODES, OTHERS)
    code_of = {label: code for code, label in enumerate(labels)}
    codes[: len(own)] = [code_of.get(label, OTHERS) for label in own]
    return codes


def _kept_slots(arrays: dict[str, Array], old: Header, stay: Array, slots: int) -> dict[str, Array]:
    """Return slots without those of categories that become some of many; but missing values."""
    left = are_few(old) & ~stay
    if not left.any():
        return arrays
    ends = np.cumsum(slot_counts(old, slots))
    feature = np.searchsorted(ends, arrays["places"], "right")
    kept = ~left[feature] | (arrays["places"] == ends[feature] - 1)
    sums = arrays["sums"].copy()
    leaf = np.repeat(np.arange(len(sums)), sums["slots"])
    sums["slots"] = np.bincount(leaf[kept], minlength=len(sums))[: len(sums)]
    return {"sums": sums, "places": arrays["places"][kept], "slots": arrays["slots"][kept]}


def _aligned_slots(
    arrays: dict[str, Array],
    counts: tuple[Array, Array],
    few: Array,
    features: Array,
    codes: list[Array],
) -> dict[str, Array]:
    before, after = counts
    starts, ends = np.cumsum(before) - before, np.cumsum(after)
    place, sums = arrays["places"].astype(np.int64), arrays["sums"].copy()
    feature = np.searchsorted(starts, place, "right") - 1
    slot = place - starts[feature]
    missing = slot == before[feature] - 1
    table = np.array([*codes, np.zeros(CODES, int)])
    is_category = few[feature]
    code = table[feature, np.minimum(slot, CODES - 1)]
    slot = np.where(is_category & ~missing, code, slot)
    target = features[feature]
    slot = np.where(missing, after[target] - 1, slot)
    moved = ends[target] - after[target] + slot
    leaf = np.repeat(np.arange(len(sums)), sums["slots"])
    found, sums["slots"] = joined_slots(leaf, moved, arrays["slots"], len(sums))
    return {"sums": sums, **found}


def _aligned_models(models: Array, features: Array, before: Header, after: Header) -> Array:
    """Return increments of models for more terms, of which nothing was learned."""
    if not models.shape[1]:
        return models
    old, new, targets = len(features), len(after["names"]), targets_of(before)
    terms = np.append(0, 1 + features)
    pages = [targets if is_separate(header) else 1 for header in (before, after)]
    result = np.zeros((len(models), delta_doubles(new, True, targets, pages[1] > 1)))
    size, room = information_doubles(old), information_doubles(new)
    given, wide = (
        table[:, : page * width].reshape(len(models), page, width)
        for table, page, width in zip((models, result), pages, (size, room), strict=True)
    )
    row, column = np.tril_indices(old + 1)
    if size == old + 1:
        wide[..., terms] = given  # to all targets, if these have shared it so far
    elif room > new + 1:
        low, high = np.minimum(terms[row], terms[column]), np.maximum(terms[row], terms[column])
        wide[..., high * (high + 1) // 2 + low] = given
    else:  # from a matrix to a diagonal, as there are many terms now
        wide[..., terms] = given[..., row == column]
    shape = len(models), targets * RATES_OF_MODELS
    moved = result[:, pages[1] * room :].reshape(*shape, new + 1)
    moved[..., terms] = models[:, pages[0] * size :].reshape(*shape, old + 1)
    return result


def _aligned_levels(
    levels: Array, features: Array, codes: list[Array], stay: Array, count: int
) -> Array:
    result = np.zeros((count, CODES, len(LABEL_SUMS)))
    for at, (feature, own) in enumerate(zip(features, codes, strict=True)):
        if stay[at]:
            np.add.at(result[feature], own, levels[CODES * at : CODES * (at + 1)])
    return result.reshape(-1, len(LABEL_SUMS))


def _aligned_label_sums(
    arrays: dict[str, Array], old: Header, new: Header, features: Array
) -> Array:
    """Return the sums of labels of many, in another order; those of few that become many begin."""
    parts, start, many = {}, 0, set(many_of(old))
    for place, at in enumerate(features.tolist()):
        labels = old["labels"][place]
        if place in many:
            parts[at] = labels, arrays["label_sums"][start : start + len(labels)]
            start += len(labels)
        elif old["kinds"][place] == CATEGORY:
            parts[at] = labels, arrays["levels"][0, CODES * place : CODES * place + len(labels)]
    result = [np.zeros((0, len(LABEL_SUMS)))]
    for at in many_of(new):
        code_of = {label: code for code, label in enumerate(new["labels"][at])}
        own = np.zeros((len(code_of), len(LABEL_SUMS)))
        labels, sums = parts.get(at, ([], own[:0]))
        own[[code_of[label] for label in labels]] = sums
        result.append(own)
    return np.concatenate(result)
