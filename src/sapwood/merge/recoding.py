"""A tree as it would be, had its features and categories come in another order.

Two models that have learned different rows know features and categories in the order of their appearance. For
one encoder to read rows for the trees of both, all have to know the same ones, in the same order.
`sapwood.tree.memory.relay` adds what a tree lacks; the order is changed here, in the
arrays of its state. Nothing else of it changes, so it predicts and learns as before.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood import validation
from sapwood.merge.errors import MergeError
from sapwood.records import Records
from sapwood.rows.column import CATEGORY, IDENTIFIER, OTHERS, UNKNOWN
from sapwood.rows.features import TARGETS, Features
from sapwood.tree import tree_state
from sapwood.tree._column_tables import ENCODING_HEAD, GRID_DOUBLES
from sapwood.tree._kernel import TreeKernel
from sapwood.tree.layout import CATEGORY as CATEGORY_NODE
from sapwood.tree.layout import LEAF, LISTED
from sapwood.validation import Label

__all__ = ["Order", "check_labels", "known_by_both", "listed_labels", "recoded"]

Array = NDArray[Any]
Header = dict[str, Any]

CODES = OTHERS + 1
RATES = 4  # linear models of a leaf


def known_by_both(one: Header, other: Header, listed: dict[Label, list[Label]]) -> Header:
    """Return the features of two models: those of the first, then the further ones of the second.

    - `one`, `other`: what `Features.to_header` returns for each, of the same targets.
    - `listed`: labels that splits distinguish one by one: where there are many, these come first.
    - Raises MergeError if a feature holds numbers here and labels there.
    """
    places = {name: place for place, name in enumerate(one["names"])}
    names, kinds = list(one["names"]), list(one["kinds"])
    labels = [list(own) for own in one["labels"]]
    for name, kind, own in zip(other["names"], other["kinds"], other["labels"], strict=True):
        place = places.get(name)
        if place is None:
            names.append(name)
            kinds.append(kind)
            labels.append(list(own))
            continue
        kinds[place] = _kind_of_both(name, kinds[place], kind)
        have = set(labels[place])
        labels[place] += [label for label in own if label not in have]
    for place, kind in enumerate(kinds):
        if kind == IDENTIFIER:
            labels[place] = []
        if len(labels[place]) > OTHERS:
            labels[place] = list(dict.fromkeys([*listed.get(names[place], ()), *labels[place]]))
    declared = {*one["categorical"], *other["categorical"]}
    for name, kind in zip(names, kinds, strict=True):
        if name in declared and kind not in (CATEGORY, IDENTIFIER):
            raise _of_two_kinds(name)
    order = sorted(declared, key=lambda name: (isinstance(name, str), name))
    targets = {TARGETS: one[TARGETS]} if TARGETS in one else {}
    return {"names": names, "kinds": kinds, "labels": labels, "categorical": order, **targets}


def check_labels(features: Header, most_labels: int) -> None:
    """Raise unless all labels of each feature can have codes of their own.

    - Raises MergeError if one has more than `most_labels`.
    """
    for name, labels in zip(features["names"], features["labels"], strict=True):
        if len(labels) > most_labels:
            raise MergeError(
                f"{validation.shown(name)} has {len(labels):,} categories in all models together, and at "
                f"most {most_labels:,} can be distinguished: leave it out, or allow more memory "
                "(max_bytes)"
            )


def _kind_of_both(name: Label, one: str, other: str) -> str:
    kinds = {one, other} - {UNKNOWN}
    if kinds == {CATEGORY, IDENTIFIER}:
        return IDENTIFIER
    if len(kinds) > 1:
        raise _of_two_kinds(name)
    return kinds.pop() if kinds else UNKNOWN


def _of_two_kinds(name: Label) -> MergeError:
    return MergeError(
        f"{validation.shown(name)} holds numbers in one model and labels in the other: they cannot mean "
        "the same; declare it to be categorical in both, or leave it out"
    )


def listed_labels(kernel: TreeKernel, features: Features) -> dict[Label, list[Label]]:
    """Return, of each feature, the labels that splits of a tree distinguish one by one."""
    found: dict[Label, dict[Label, None]] = {}
    tables = [list(table) for table in features.categories]
    for node in kernel.node_table[: kernel.node_count]:
        if node["kind"] in (CATEGORY_NODE, LISTED):
            subset, feature = int(node["subset"]), int(node["feature"])
            own = found.setdefault(features.names[feature], {})
            own |= dict.fromkeys(_distinguished(subset, tables[feature]))
    return {name: list(own) for name, own in found.items()}


def _distinguished(subset: int, labels: list[Label]) -> list[Label]:
    others = subset >> OTHERS & 1
    return [label for code, label in enumerate(labels[:OTHERS]) if subset >> code & 1 != others]


@dataclass(frozen=True)
class Order:
    """Where the features and categories of a tree are to be.

    - `features`: of each feature that there will be, the place that it has now.
    - `codes`: of each feature that there will be, and of each of its codes, the code that it has
      now; empty for other features than categories.
    """

    features: Array
    codes: list[Array]

    @classmethod
    def between(cls, now: Features, then: Header) -> "Order":
        """Return the order of the same features and labels in a header."""
        codes = []
        for name, labels in zip(then["names"], then["labels"], strict=True):
            table = now.categories[now.index[name]]
            codes.append(np.array([table[label] for label in labels], int))
        return cls(np.array([now.index[name] for name in then["names"]], int), codes)

    @property
    def is_that_of_before(self) -> bool:
        """Whether all stay where they are."""
        return all(bool((own == np.arange(len(own))).all()) for own in (self.features, *self.codes))

    @property
    def places(self) -> Array:
        """Of each feature that there is now, the place that it will have."""
        return np.argsort(self.features)


def recoded(kernel: TreeKernel, order: Order, names: list[Label]) -> dict[str, Array]:
    """Return the arrays of a tree, in another order of its features and categories.

    - `kernel`: of the tree; its split on trial, if there is one, stays as it is.
    - `names`: of the features, in that order, for messages.
    - Raises MergeError if a split distinguishes categories that are target-encoded there.
    """
    arrays = tree_state.kernel_arrays(kernel)
    places = kernel.columns.place_table
    return {
        **arrays,
        "nodes": _nodes(arrays["nodes"], order, places, names),
        "levels": np.concatenate(
            [_levels(own, order, places) for own in arrays["levels"].reshape(kernel.targets, -1, 2)]
        ),
        "facts": arrays["facts"][order.features],
        "samples": _samples(arrays["samples"], order),
        "units": arrays["units"][np.append(0, 1 + order.features)],
        "changes": _changes(arrays["changes"], order),
        "models": _models(arrays["models"], order, kernel),
        "watches": _watches(arrays["watches"], order, kernel),
        **_observers(arrays["observer_sizes"], arrays["observers"], order),
        **_costs(arrays, order, kernel.targets),
    }


def _costs(arrays: dict[str, Array], order: Order, targets: int) -> dict[str, Array]:
    """Return what features cost each of several targets."""
    if "target_costs" not in arrays:
        return {}
    costs = arrays["target_costs"].reshape(-1, targets)
    return {"target_costs": np.ascontiguousarray(costs[order.features]).reshape(-1)}


def _nodes(nodes: Records, order: Order, places: Array, names: list[Label]) -> Records:
    nodes = nodes.copy()
    inner = nodes["kind"] != LEAF
    nodes["feature"][inner] = order.places[nodes["feature"][inner]]
    for place in np.flatnonzero(np.isin(nodes["kind"], (CATEGORY_NODE, LISTED))).tolist():
        feature = int(nodes["feature"][place])
        nodes["subset"][place] = _subset(
            int(nodes["subset"][place]), order.codes[feature], names[feature]
        )
    return nodes


def _subset(subset: int, codes: Array, name: Label) -> int:
    """Return which codes go left; the last bit stands for those of which there is no other."""
    others = subset >> OTHERS & 1
    found = others << OTHERS
    for code in range(OTHERS):
        old = int(codes[code]) if code < len(codes) else code
        found |= (subset >> min(old, OTHERS) & 1) << code
    for old in codes[OTHERS:].tolist():
        if old < OTHERS and subset >> old & 1 != others:
            raise MergeError(
                f"{validation.shown(name)} has more than {OTHERS} categories in both models together, "
                "and their splits distinguish too many of them: leave it out in one of them"
            )
    return found


def _levels(levels: Array, order: Order, places: Array) -> Array:
    few = levels[: CODES * len(places)].reshape(-1, CODES, 2)
    many, start = {}, CODES * len(places)
    for feature, count in enumerate(places.tolist()):
        if count >= 0:
            many[feature] = levels[start : start + ENCODING_HEAD + count]
            start += ENCODING_HEAD + count
    parts = []
    for old, codes in zip(order.features.tolist(), order.codes, strict=True):
        own = few[old].copy()
        if old not in many:
            own[: len(codes)] = own[codes]
        parts.append(own)
    for old, codes in zip(order.features.tolist(), order.codes, strict=True):
        if old in many:
            own = many[old].copy()
            own[ENCODING_HEAD : ENCODING_HEAD + len(codes)] = own[ENCODING_HEAD + codes]
            parts.append(own)
    return np.concatenate([*parts, np.zeros((0, 2))])


def _samples(samples: Array, order: Order) -> Array:
    samples = samples[:, order.features].copy()
    for feature, codes in enumerate(order.codes):
        if not len(codes):
            continue
        new = np.argsort(codes)
        own = samples[:, feature]
        known = own < len(codes)  # neither missing nor a code that many labels share
        own[known] = new[own[known].astype(int)]
    return samples


def _changes(changes: Records, order: Order) -> Records:
    changes = changes.copy()
    own = (changes["row"] > 0) & (changes["column"] >= 0)
    changes["column"][own] = order.places[changes["column"][own].astype(int)]
    return changes


def _models(pages: Array, order: Order, kernel: TreeKernel) -> Array:
    if not kernel.linear:
        return pages
    centres, scales, covariance, terms = kernel.page_parts()
    moved = np.append(0, 1 + order.features)
    known = len(moved)
    pages = pages.copy()
    starts, rests = zip(*(kernel.model_place(each) for each in range(kernel.targets)), strict=True)
    for start in starts:
        coefficients = pages[:, start : start + centres].reshape(len(pages), terms, RATES)
        coefficients[:, :known] = coefficients[:, moved]
        pages[:, start : start + centres] = coefficients.reshape(len(pages), -1)
    for at in sorted({*rests}):  # which targets may share
        for start in (at + centres, at + scales):
            own = pages[:, start : start + known - 1]
            own[:] = own[:, order.features]
        rest = pages[:, at + covariance : at + kernel.page_size]
        if rest.shape[1] == terms:  # a diagonal, as there are many terms
            rest[:, :known] = rest[:, moved]
        else:
            square = rest.reshape(len(pages), terms, terms).copy()
            square[:, :known, :known] = square[:, moved[:, None], moved[None, :]]
            rest[:] = square.reshape(len(pages), -1)
    return pages


def _watches(pages: Array, order: Order, kernel: TreeKernel) -> Array:
    count = len(order.features)
    grids = pages[:, : GRID_DOUBLES * count].reshape(len(pages), count, GRID_DOUBLES)
    parts = [grids[:, order.features].reshape(len(pages), -1)]
    tables = [(kernel.slot_start, kernel.slot_doubles)]
    if kernel.targets > 1:
        tables.append((kernel.gap_start, kernel.targets))
    for start_of, size in tables:
        for old, codes in zip(order.features.tolist(), order.codes, strict=True):
            own = pages[:, start_of(old) : start_of(old + 1)]
            own = own.reshape(len(pages), -1, size).copy()
            if kernel.columns.is_category[old]:
                own[:, : len(codes)] = own[:, codes]
            parts.append(own.reshape(len(pages), -1))
    return np.ascontiguousarray(np.hstack(parts))


def _observers(sizes: Array, data: Array, order: Order) -> dict[str, Array]:
    if not len(sizes):
        return {"observer_sizes": sizes, "observers": data}
    blobs = np.split(data, np.cumsum(sizes)[:-1])
    width = len(order.features)
    leaves = range(0, len(blobs), width)
    moved = [blobs[leaf + old] for leaf in leaves for old in order.features.tolist()]
    return {
        "observer_sizes": np.array([len(blob) for blob in moved], np.int64),
        "observers": np.concatenate(moved),
    }
